"""The same logits by several routes, against transformers' own forward pass and the full recomputation."""

import numpy as np
import pytest
import torch

from inference.errors import UserError
from inference.models import batched
from inference.routes import ALONE, CachedRoute, routes_of
from tests.conftest import PROMPT

TEXT = (7, 40, 41, 60, 9, 3)
OTHER = (50, 12, 13, 7, 7, 8)
TINY_TOLERANCE = 1e-4
"""Between logits of at most 12 added in another order. Largest difference seen: 1e-6."""
TOLERANCE = 2e-4
"""The same on the real model, logits of at most 25 or so. Largest difference seen: 3.8e-5."""
ROUTES = (ALONE, "lot de 2", "lot de 8", "avec le cache", "sur 1 fil")


def by_transformers(network, texts) -> np.ndarray:
    """Scores after the last token of each row: the whole forward pass, nothing left out."""
    with torch.inference_mode():
        return network(torch.tensor(texts)).logits[:, -1].float().numpy()


@pytest.fixture
def threads():
    """At least two, whatever the machine, and as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield 2
    torch.set_num_threads(before)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_each_row_is_what_transformers_says_of_its_text(tiny, rows):
    texts = [TEXT, OTHER, TEXT[::-1], OTHER[::-1], TEXT][:rows]
    logits = batched.logits_in_batch(tiny, texts)
    assert logits.shape == (rows, tiny.vocabulary.size) and logits.dtype == np.float32
    assert logits == pytest.approx(by_transformers(tiny.model, texts), abs=TINY_TOLERANCE)
    for row, token_ids in zip(logits, texts, strict=True):
        assert row == pytest.approx(tiny.prefill(token_ids).scores.logits, abs=TINY_TOLERANCE)


def test_rows_of_one_text_agree_with_each_other_and_with_the_text_alone(model):
    token_ids = model.vocabulary.encode(PROMPT)
    alone, rows = (batched.logits_in_batch(model, [token_ids] * count) for count in (1, 8))
    assert np.array_equal(alone[0], model.prefill(token_ids).scores.logits), "alone is what the bench shows"
    assert np.abs(rows - alone).max() < TOLERANCE
    assert np.abs(rows - by_transformers(model.model, [token_ids] * 8)).max() < TOLERANCE


def test_every_route_of_the_real_model_is_the_full_recomputation_but_for_rounding(model, threads):
    """The cache above all, also after a token it has decoded itself. And each route says the same thing twice."""
    assert tuple(routes_of(batched)) == ROUTES
    token_ids = model.vocabulary.encode(PROMPT)
    expected = by_transformers(model.model, [token_ids])[0]
    for name in ROUTES:
        route, anew = routes_of(batched)[name], routes_of(batched)[name]
        logits = route(model, token_ids)
        assert np.abs(logits - expected).max() < TOLERANCE, name
        assert logits.argmax() == expected.argmax()
        assert np.array_equal(logits, anew(model, token_ids)), f"{name}: nothing was kept from the first time"
    grown = CachedRoute()
    grown(model, token_ids[:-1])
    assert np.abs(grown(model, token_ids) - expected).max() < TOLERANCE


def test_a_text_that_grows_costs_one_decode_a_token(noted):
    route = CachedRoute()
    for length in (3, 4, 5):
        route(noted, TEXT[:length])
    assert noted.passes == [((), TEXT[:2]), (TEXT[:2], TEXT[2:3]), (TEXT[:3], TEXT[3:4]), (TEXT[:4], TEXT[4:5])]
    route(noted, OTHER)
    assert noted.passes[4:] == [((), OTHER[:-1]), (OTHER[:-1], OTHER[-1:])]


def test_texts_of_several_lengths_are_refused(tiny):
    with pytest.raises(ValueError, match="length"):
        batched.logits_in_batch(tiny, [TEXT, TEXT[:2]])
    for texts in ([()], [TEXT, ()], [(1,) * 257]):
        with pytest.raises(UserError):
            batched.logits_in_batch(tiny, texts)


def test_the_number_of_threads_is_given_back(tiny, threads, monkeypatch):
    seen = []
    forward = tiny.model.forward
    monkeypatch.setattr(tiny.model, "forward", lambda *args, **options: seen.append(torch.get_num_threads()) or forward(*args, **options))
    logits = batched.logits_on_threads(tiny, TEXT, 1)
    assert (seen, batched.thread_count()) == ([1], 2)
    assert logits == pytest.approx(tiny.prefill(TEXT).scores.logits, abs=TINY_TOLERANCE)
    monkeypatch.setattr(tiny.model, "forward", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        batched.logits_on_threads(tiny, TEXT, 1)
    assert batched.thread_count() == 2


def test_a_machine_of_one_thread_is_compared_with_two(threads):
    torch.set_num_threads(1)
    assert list(routes_of(batched))[-1] == "sur 2 fils"


@pytest.mark.parametrize("name", ["tiny", "model"])
def test_the_terms_of_a_logit_add_up_to_it(name, request):
    model = request.getfixturevalue(name)
    token_ids = model.vocabulary.encode(PROMPT)
    logits = model.prefill(token_ids).scores.logits
    for token_id in (int(logits.argmax()), 5):
        terms, logit = batched.logit_terms(model, token_ids, token_id)
        assert terms.dtype == np.float32 and len(terms) == model.model.config.hidden_size
        assert logit == logits[token_id]
        assert terms.sum(dtype=np.float64) == pytest.approx(logit, abs=TOLERANCE)
    assert not model.model.get_output_embeddings()._forward_hooks


def test_a_bias_is_a_term(tiny):
    head = tiny.model.get_output_embeddings()
    head.bias = torch.nn.Parameter(torch.arange(256.0))
    try:
        terms, logit = batched.logit_terms(tiny, TEXT, 9)
    finally:
        head.bias = None
    assert terms[-1] == 9 and len(terms) == tiny.model.config.hidden_size + 1
    assert terms.sum(dtype=np.float64) == pytest.approx(logit, abs=TINY_TOLERANCE)
