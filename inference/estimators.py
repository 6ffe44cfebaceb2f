"""What n answers to a question are worth, from N ≥ n answers already drawn.

Each function is an average over all the ways to take n of the N answers, none of them favoured: exact, without drawing anything again.
"""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

Z = statistics.NormalDist().inv_cdf(0.975)


def student_t(freedom: int) -> float:
    """What Student's t with so many degrees of freedom, 3 or more, exceeds 2.5 % of the time, to 0.2 %: the expansion in powers of their
    inverse of Abramowitz and Stegun 1964, 26.7.5."""
    terms = (
        Z,
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
        (79 * Z**9 + 776 * Z**7 + 1482 * Z**5 - 1920 * Z**3 - 945 * Z) / 92160,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))


def pass_at(n: int, right: int, drawn: int) -> float:
    """That at least one of n answers is right, when `right` of the `drawn` are: 1 − C(N − c, n) / C(N, n) (Chen et al. 2021)."""
    return 1 - math.comb(drawn - right, n) / math.comb(drawn, n)


def best_of(n: int, ranked: Sequence[bool]) -> float:
    """That the first ranked of n answers is right. `ranked` says which of the N are, best first."""
    ways = sum(math.comb(len(ranked) - 1 - rank, n - 1) for rank, is_right in enumerate(ranked) if is_right)
    return ways / math.comb(len(ranked), n)


def vote_of(n: int, votes: Counter[str], right: set[str]) -> float:
    """That the most frequent of n answers is right, a tie being broken at random. `votes` counts the N answers."""
    ways = 0.0
    for winner in right & votes.keys():
        others = [count for answer, count in votes.items() if answer != winner]
        for score in range(1, min(n, votes[winner]) + 1):
            by_ties = _ways_below(others, n - score, score)
            ways += math.comb(votes[winner], score) * sum(count / (1 + ties) for ties, count in by_ties.items())
    return ways / math.comb(votes.total(), n)


def _ways_below(counts: Sequence[int], n: int, score: int) -> dict[int, int]:
    """The ways to take n answers, none of them more than `score` times, by how many of them are taken exactly `score` times."""
    ways = Counter({(0, 0): 1})
    left = sum(counts)
    for count in counts:
        left -= count
        longer = Counter()
        for (taken, ties), so_far in ways.items():
            for more in range(max(0, n - taken - left), min(score, count, n - taken) + 1):
                longer[taken + more, ties + (more == score)] += so_far * math.comb(count, more)
        ways = longer
    return {ties: count for (taken, ties), count in ways.items() if taken == n}


@dataclass(frozen=True)
class Interval:
    """An estimate over a set of questions, and the bounds of its 95 % confidence interval: what other questions of the kind might give."""

    value: float
    low: float
    high: float

    @property
    def has_width(self) -> bool:
        """Not when it comes from differences that are all the same, to their rounding: they do not say how others would vary."""
        return self.high - self.low > 1e-9

    @classmethod
    def of_chances(cls, chances: Sequence[float]) -> "Interval":
        """Of the mean of values from 0 to 1, by Wilson 1927. It takes them for noughts and ones, which vary most of all those that have
        their mean: with others, it is too wide rather than too narrow."""
        asked = len(chances)
        share, spread = statistics.fmean(chances), Z**2 / asked
        middle = (share + spread / 2) / (1 + spread)
        half = Z * math.sqrt(share * (1 - share) / asked + spread / asked / 4) / (1 + spread)
        return cls(share, max(0.0, middle - half), min(1.0, middle + half))

    @classmethod
    def of_differences(cls, differences: Sequence[float]) -> "Interval":
        """Of the mean of n ≥ 4 values from −1 to 1: mean ± t s / √n (Student 1908)."""
        n = len(differences)
        mean, half = statistics.fmean(differences), student_t(n - 1) * statistics.stdev(differences) / math.sqrt(n)
        return cls(mean, max(-1.0, mean - half), min(1.0, mean + half))
