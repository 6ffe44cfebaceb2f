"""Distributions over the vocabulary, always the whole of it. Arrays are `(vocab_size,)`; -inf scores are tokens of probability 0."""

from collections.abc import Iterator

import numpy as np


def softmax(scores: np.ndarray) -> np.ndarray:
    """exp(scores) normalised to sum 1, in float64. At least one score must be finite."""
    probs = np.subtract(scores, scores.max(), dtype=np.float64)
    np.exp(probs, out=probs)
    probs /= probs.sum()
    return probs


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """Log-probabilities in nats, float64."""
    shifted = np.subtract(scores, scores.max(), dtype=np.float64)
    return shifted - np.log(np.exp(shifted).sum())


def entropy_bits(probs: np.ndarray) -> float:
    """Shannon entropy, -Σ p log2 p, in bits."""
    positive = probs[probs > 0]
    return max(0.0, -float(positive @ np.log2(positive)))


def kl_divergence(p: np.ndarray, q: np.ndarray) -> float:
    """KL(p ‖ q) = Σ p ln(p / q), in nats; infinite where q is 0 and p is not."""
    support = p > 0
    with np.errstate(divide="ignore"):
        return float(p[support] @ (np.log(p[support]) - np.log(q[support])))


def largest(scores: np.ndarray, count: int) -> np.ndarray:
    """Ids of the `count` largest scores, by decreasing score, ties by increasing id, without sorting the rest."""
    count = min(count, len(scores))
    if count == 0:
        return np.empty(0, dtype=np.intp)
    threshold = np.partition(scores, len(scores) - count)[len(scores) - count]
    candidates = np.flatnonzero(scores >= threshold)
    return candidates[np.argsort(-scores[candidates], kind="stable")][:count]


def growing_heads(scores: np.ndarray, floor: float) -> Iterator[np.ndarray]:
    """`largest(scores, n)` for growing n, up to every score above `floor`: -inf for scores, 0 for probabilities.

    A nucleus or a draw nearly always ends among the first thousand tokens, and sorting 262,144 of them costs as much as
    everything else in a step. So callers take heads until one is long enough. Cut tokens are set aside first: selecting among
    that many equal values is slow.
    """
    above = scores > floor
    ids = None if above.all() else np.flatnonzero(above)
    candidates = scores if ids is None else scores[ids]
    count = 1024
    while True:
        head = largest(candidates, count)
        yield head if ids is None else ids[head]
        if count >= len(candidates):
            return
        count *= 16
