"""A sum of floating-point numbers, added up in several orders: each is right but for its roundings, and they differ."""

from dataclasses import dataclass
from functools import reduce

import numpy as np


@dataclass(frozen=True, eq=False)
class Sums:
    """The additions behind one logit, made again in other orders, each rounded to float32.

    terms  (n,) float32, in the order of the hidden state.
    logit  what the model made of them.
    """

    token_id: int
    terms: np.ndarray
    logit: float

    @property
    def triple(self) -> tuple[np.float32, np.float32, np.float32]:
        """Two consecutive terms and any other: those on which the two ways to add disagree most, for the size of their sum."""
        a, b, c = self.terms[:-1, None], self.terms[1:, None], self.terms[None, :]
        size = np.abs(a.astype(np.float64) + b + c) + np.finfo(np.float64).tiny
        disagreement = np.abs(((a + b) + c) - (a + (b + c))) / size
        pairs = np.arange(len(a))
        disagreement[pairs, pairs] = disagreement[pairs, pairs + 1] = -1  # no term twice
        start, other = np.unravel_index(disagreement.argmax(), disagreement.shape)
        return self.terms[start], self.terms[start + 1], self.terms[other]

    @property
    def orders(self) -> dict[str, np.float32]:
        """The sum of all the terms: from the first to the last, from the last to the first, and by pairs, then pairs of pairs."""
        return {
            "de gauche à droite": in_order(self.terms),
            "de droite à gauche": in_order(self.terms[::-1]),
            "deux à deux": pairwise(self.terms),
        }


def in_order(terms: np.ndarray) -> np.float32:
    """The sum of float32 terms, one after the other, rounded after each addition."""
    return reduce(np.add, terms)


def pairwise(terms: np.ndarray) -> np.float32:
    """The sum of float32 terms: each half on its own, then both. The usual way to round less (Higham, 1993)."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return pairwise(terms[:half]) + pairwise(terms[half:])
