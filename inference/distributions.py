"""Distributions over the vocabulary, always the whole of it. Arrays are `(vocab_size,)`; -inf scores are tokens of probability 0."""

from collections.abc import Iterator

import numpy as np


def softmax(scores: np.ndarray) -> np.ndarray:
    """exp(scores) normalised to sum 1, in float64. At least one score must be finite."""
    finite = scores > -np.inf
    if not finite.all():
        probs = np.zeros(len(scores))
        probs[finite] = softmax(scores[finite])
        return probs
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


def descending_heads(probs: np.ndarray) -> Iterator[np.ndarray]:
    """The largest probabilities, sorted downwards, more and more of them; the last head holds all that are not 0.

    A nucleus or a draw nearly always ends among the first thousand tokens, and sorting 262,144 of them costs more than everything
    else in a step. So callers take heads until one is long enough. Zeros are set aside first: selecting among that many equal
    values is slow.
    """
    positive = probs > 0
    values = probs if positive.all() else probs[positive]
    for count in (1_024, 16_384):
        if count < len(values):
            yield np.sort(np.partition(values, len(values) - count)[len(values) - count :])[::-1]
    yield np.sort(values)[::-1]
