"""The draft of a Gemma 3 against the network it stands for, tiny and real."""

import numpy as np
import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from inference.distributions import softmax
from inference.errors import UserError
from inference.models.draft import MAX_TOKENS, Gemma3Draft, open_draft
from inference.speculative import overlap
from tests.conftest import PROMPT

WINDOW = 8
TEXT = tuple(np.random.default_rng(0).integers(0, 60, size=20).tolist())
LOOSE = 0.05
"""Of the largest logit: what int8 weights and bfloat16 numbers may change."""


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    config = Gemma3TextConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        sliding_window=WINDOW,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        max_position_embeddings=64,
    )
    return Gemma3ForCausalLM(config).eval()


def expected_logits(network, text_ids) -> np.ndarray:
    with torch.inference_mode():
        return network(torch.tensor([text_ids])).logits[0, -1].numpy()


@pytest.mark.parametrize("length", [1, 5, WINDOW, 20])
def test_it_scores_like_the_network_sliding_windows_included(network, length):
    draft, text = Gemma3Draft(network, range(64)), TEXT[:length]
    expected = expected_logits(network, text)
    assert np.abs(draft.logits_after(text) - expected).max() < LOOSE * np.abs(expected).max()


def test_the_window_matters_to_that_comparison(network):
    blind = (0,) * 6 + TEXT[6:]
    expected = expected_logits(network, TEXT)
    assert np.abs(expected_logits(network, blind) - expected).max() > 2 * LOOSE * np.abs(expected).max()


def test_it_scores_the_tokens_it_was_given_alone(network):
    some = [3, 10, 40]
    assert np.allclose(Gemma3Draft(network, some).logits_after(TEXT), Gemma3Draft(network, range(64)).logits_after(TEXT)[some])


def test_reading_token_by_token_going_back_and_branching_equal_reading_at_once(network):
    draft = Gemma3Draft(network, range(64))
    for length in (1, 2, 3, 12, 13, 20):
        draft.logits_after(TEXT[:length])
    branch = (*TEXT[:9], 7, 7, 7)
    for text in (branch, TEXT, TEXT[:4]):
        afresh = Gemma3Draft(network, range(64)).logits_after(text)
        assert np.abs(draft.logits_after(text) - afresh).max() < LOOSE * np.abs(afresh).max()


def test_texts_it_cannot_hold_are_refused(network):
    draft = Gemma3Draft(network, range(64))
    for text in ((), (1,) * (MAX_TOKENS + 1)):
        with pytest.raises(ValueError, match="tokens"):
            draft.logits_after(text)


def test_another_architecture_is_told_so(tiny):
    with pytest.raises(UserError, match="Gemma 3"):
        open_draft(tiny, range(10))


def test_a_draft_of_the_real_model_nearly_agrees_with_it(model):
    text = model.vocabulary.encode(f"{PROMPT} canapé, près de la fenêtre, et")
    expected = model.logits_along(text)
    tokens = np.sort(np.unique(np.argsort(-expected, axis=1)[:, :3000]))
    draft = open_draft(model, tokens)
    overlaps = []
    for length in range(2, len(text) + 1):
        q = np.zeros(model.vocabulary.size)
        q[tokens] = softmax(draft.logits_after(text[:length]))
        overlaps.append(overlap(softmax(expected[length - 1]), q))
    assert np.mean(overlaps) > 0.85
