"""Choosing a token: the most likely one, or the one on which a uniform number falls."""

import numpy as np

from inference.distributions import descending_heads
from inference.records import Draw


def uniform(seed: int, step: int) -> float:
    """The number u in [0, 1) of one step: a function of (seed, step) alone.

    Moving a slider, forcing a token, going back or branching never changes it, so a class sees the chosen token flip because the
    distribution moved under the same u.
    """
    return float(np.random.default_rng([seed, step]).random())


def choose_greedy(scores: np.ndarray, probs: np.ndarray) -> Draw:
    """The largest score; among equals the smallest id, as torch.argmax does."""
    token_id = int(np.argmax(scores))
    return Draw(token_id, float(probs[token_id]), 0.0)


def draw_inverse_cdf(probs: np.ndarray, u: float) -> Draw:
    """The token whose segment holds u, when kept tokens lie end to end on [0, 1) by decreasing probability, ties by increasing id."""
    for head in descending_heads(probs):
        ends = np.cumsum(head)
        if u < ends[-1]:
            break
    # Rounding can leave the whole line a hair short of 1: a u beyond it falls on the last token.
    rank = min(int(np.searchsorted(ends, u, side="right")), len(head) - 1)
    probability = head[rank]
    rank_among_equals = rank - int(np.count_nonzero(probs > probability))
    token_id = int(np.flatnonzero(probs == probability)[rank_among_equals])
    return Draw(token_id, float(probability), float(ends[rank - 1]) if rank else 0.0)
