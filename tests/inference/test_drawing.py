"""The number u of a step, and the token on which it falls."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.drawing import choose_greedy, draw_inverse_cdf, uniform
from inference.records import Draw

MAX_SEED = 2**32 - 1
ALMOST_1 = 1 - 2**-53
VOCAB_SIZE = 262_144


@given(seed=st.integers(0, MAX_SEED), step=st.integers(0, 10_000))
def test_u_is_a_function_of_seed_and_step_in_0_1(seed, step):
    u = uniform(seed, step)
    np.random.default_rng(seed).random(step % 7)
    assert 0 <= u < 1
    assert uniform(seed, step) == u


def test_u_differs_between_steps_and_between_seeds():
    drawn = {uniform(seed, step) for seed in range(40) for step in range(40)}
    assert len(drawn) == 1600


def test_u_does_not_mistake_seed_for_step():
    assert uniform(1, 2) != uniform(2, 1)


@pytest.mark.parametrize("seed", [0, 1, MAX_SEED])
def test_u_is_spread_evenly_over_the_steps(seed):
    """A fair u falls in each tenth 200 times of 2000, give or take 13: 65 off would be five standard deviations."""
    tenths, _ = np.histogram([uniform(seed, step) for step in range(2000)], bins=10, range=(0, 1))
    assert tenths.tolist() == pytest.approx([200] * 10, abs=65)


@pytest.mark.parametrize(
    ("probs", "u", "token_id", "low"),
    [
        pytest.param([0.5, 0.25, 0.25], 0.0, 0, 0.0, id="0 falls on the favourite"),
        pytest.param([0.5, 0.25, 0.25], 0.4999, 0, 0.0, id="inside the first segment"),
        pytest.param([0.5, 0.25, 0.25], 0.5, 1, 0.5, id="a boundary belongs to the segment it opens"),
        pytest.param([0.5, 0.25, 0.25], 0.75, 2, 0.75, id="the next boundary too"),
        pytest.param([0.5, 0.25, 0.25], ALMOST_1, 2, 0.75, id="the largest u falls on the last token"),
        pytest.param([0.25, 0.5, 0.25], 0.0, 1, 0.0, id="segments go by decreasing probability"),
        pytest.param([0.25, 0.5, 0.25], 0.5, 0, 0.5, id="then ties by increasing id"),
        pytest.param([0.25, 0.5, 0.25], 0.75, 2, 0.75, id="ties: the larger id comes last"),
        pytest.param([0.0, 1.0, 0.0], ALMOST_1, 1, 0.0, id="a sure token"),
        pytest.param([0.0, 0.5, 0.0, 0.5], 0.0, 1, 0.0, id="0 does not fall on a token of probability 0"),
        pytest.param([0.5, 0.0, 0.5], ALMOST_1, 2, 0.5, id="nor does the largest u"),
    ],
)
def test_draw_falls_on_the_segment_that_holds_u(probs, u, token_id, low):
    assert draw_inverse_cdf(np.array(probs), u) == Draw(token_id, probs[token_id], low)


@pytest.mark.parametrize("probs", [[0.1] * 10, [1 / 3, 1 / 3, 1 / 3], [0.7, 0.2, 0.1], [0.9999999, 1e-9]])
def test_a_line_short_of_1_by_rounding_ends_on_its_last_token(probs):
    assert draw_inverse_cdf(np.array(probs), ALMOST_1).token_id == len(probs) - 1


@given(weights=st.lists(st.integers(0, 5), min_size=1, max_size=30).filter(any), u=st.floats(0, ALMOST_1))
def test_a_token_of_probability_0_is_never_drawn_and_u_lies_in_the_segment(weights, u):
    probs = np.array(weights) / sum(weights)
    draw = draw_inverse_cdf(probs, u)
    assert draw.probability == probs[draw.token_id] > 0
    assert draw.low <= u < draw.low + draw.probability + 1e-12


@pytest.mark.parametrize("counts", [[500, 300, 200], [1, 998, 0, 1], [100] * 10, [0, 0, 1000]])
def test_draws_over_an_even_grid_of_u_reproduce_the_probabilities(counts):
    """A grid of 1000 midpoints puts exactly n of them in a segment n thousandths wide."""
    probs = np.array(counts) / 1000
    drawn = [draw_inverse_cdf(probs, (k + 0.5) / 1000).token_id for k in range(1000)]
    assert np.bincount(drawn, minlength=len(counts)).tolist() == counts


@pytest.mark.parametrize("token_id", [0, 1, 1023, 1024, 16_384, 200_000, VOCAB_SIZE - 1])
def test_draw_reaches_any_token_of_a_flat_vocabulary(token_id):
    probs = np.full(VOCAB_SIZE, 1 / VOCAB_SIZE)
    u = (token_id + 0.5) / VOCAB_SIZE
    assert draw_inverse_cdf(probs, u) == Draw(token_id, 1 / VOCAB_SIZE, token_id / VOCAB_SIZE)


def test_draw_reaches_the_far_end_of_a_long_tail():
    probs = np.append(np.full(VOCAB_SIZE - 1, 0.5 / (VOCAB_SIZE - 1)), 0.5)
    assert draw_inverse_cdf(probs, 0.25).token_id == VOCAB_SIZE - 1
    assert draw_inverse_cdf(probs, 0.5 + 1e-9).token_id == 0
    assert draw_inverse_cdf(probs, ALMOST_1).token_id == VOCAB_SIZE - 2


@pytest.mark.parametrize(
    ("scores", "token_id"),
    [
        ([1.0, 3.0, 2.0], 1),
        ([3.0, 1.0, 3.0], 0),
        ([2.0, 2.0, 2.0], 0),
        ([-np.inf, -5.0, -5.0], 1),
        ([-1.0], 0),
    ],
)
def test_greedy_takes_the_largest_score_and_the_smallest_id_among_equals(scores, token_id):
    probs = np.linspace(0.1, 0.3, len(scores))
    assert choose_greedy(np.array(scores), probs) == Draw(token_id, probs[token_id], 0.0)


def test_drawing_does_not_write_to_the_probabilities():
    probs = np.array([0.2, 0.5, 0.3])
    probs.flags.writeable = False
    draw_inverse_cdf(probs, 0.6)
    choose_greedy(probs, probs)
    assert probs.tolist() == [0.2, 0.5, 0.3]
