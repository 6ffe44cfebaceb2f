"""Continuations drawn together are those of texts read alone: same probabilities, same draws, same log-probabilities."""

import numpy as np
import pytest
import torch

from inference.distributions import log_softmax, softmax
from inference.drawing import uniform
from inference.inference_compute import measure
from inference.models.sampled import Branches
from inference.prefix_cache import PrefixCache
from inference.questions import read_answer, read_questions
from tests.conftest import follow

PROMPT = tuple(b"abc")
TEXTS = [(1,), (2,), (1,), (3,)]


def draw_by_hand(logits: np.ndarray, temperature: float, u: float) -> int:
    return int(np.searchsorted(np.cumsum(softmax(logits.astype(np.float64) / temperature)), u, side="right"))


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_a_draw_is_that_of_the_whole_text_read_alone(tiny, temperature):
    branches = Branches(tiny, tiny.prefill(PROMPT), temperature)
    texts, total = [()] * 6, [0.0] * 6
    for step in range(5):
        if step:
            branches.read(texts)
        for sample, text in enumerate(texts):
            logits, u = tiny.prefill(PROMPT + text).scores.logits, uniform(sample, step)
            token_id, logprob = branches.draw(text, u)
            assert token_id == draw_by_hand(logits, temperature, u)
            assert logprob == pytest.approx(log_softmax(logits)[token_id], abs=1e-4)
            texts[sample] += (token_id,)
            total[sample] += logprob
    for text, logprob in zip(texts, total, strict=True):
        rows = tiny.logits_along(PROMPT + text)[len(PROMPT) - 1 : -1]
        assert logprob == pytest.approx(sum(log_softmax(row)[token] for row, token in zip(rows, text, strict=True)), abs=1e-4)


def test_draws_follow_the_probabilities(tiny):
    """Evenly spread u fall on each token as often as its probability says."""
    prompt = tiny.prefill(PROMPT)
    branches = Branches(tiny, prompt, 0.7)
    drawn = np.bincount([branches.draw((), (i + 0.5) / 2000)[0] for i in range(2000)], minlength=tiny.vocabulary.size)
    assert np.abs(drawn / 2000 - softmax(prompt.scores.logits / 0.7)).max() <= 1 / 2000


def test_equal_texts_share_a_row_and_the_others_are_let_go_of(tiny):
    branches = Branches(tiny, tiny.prefill(PROMPT), 1.0)
    branches.read(TEXTS)
    assert branches._cache.layers[0].keys.shape[0] == 3
    branches.read([(3, 4), (3, 5), (2, 4)])
    assert branches._cache.layers[0].keys.shape[0] == 3
    with pytest.raises(KeyError):
        branches.draw((1,), 0.5)
    with pytest.raises(KeyError):
        branches.read([(1, 1)])


def test_the_prompt_is_left_as_it_was(tiny):
    prompt = tiny.prefill(PROMPT)
    before = [(layer.keys.clone(), layer.values.clone()) for layer in prompt.state.payload.layers]
    logits = prompt.scores.logits.copy()
    branches = Branches(tiny, prompt, 1.0)
    branches.read(TEXTS)
    for layer, (keys, values) in zip(prompt.state.payload.layers, before, strict=True):
        assert torch.equal(layer.keys, keys) and torch.equal(layer.values, values)
    assert np.array_equal(prompt.scores.logits, logits)


# The real model


def test_the_real_model_answers_and_its_log_probabilities_are_those_of_a_full_recompute(scorer: PrefixCache):
    question = next(one for one in read_questions() if one.asked == "La capitale de l’Italie est")
    _, result = follow(measure(scorer, Branches, 1.0, [question], sizes=(4,)))
    prompt = scorer.vocabulary.encode(question.prompt)
    answered = result.answered[0]
    for one in (*answered.samples, answered.greedy):
        assert one.answer == read_answer(scorer.vocabulary.text(one.token_ids))[0]
        rows = scorer.model.logits_along(prompt + one.token_ids)[len(prompt) - 1 : -1]
        by_hand = sum(log_softmax(row)[token] for row, token in zip(rows, one.token_ids, strict=True))
        assert one.logprob == pytest.approx(by_hand, abs=1e-3)
        favourites = rows.argmax(axis=1).tolist()
        assert (favourites == list(one.token_ids)) == (one.token_ids == answered.greedy.token_ids)
