"""What n answers to a question are worth, from N ≥ n answers already drawn.

Each function is an average over all the ways to take n of the N answers, none of them favoured: exact, without drawing anything again.
"""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

Z = statistics.NormalDist().inv_cdf(0.975)


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

    @classmethod
    def of_mean(cls, values: Sequence[float]) -> "Interval":
        """Of two values or more: mean ± 1.96 s / √Q."""
        mean, half = statistics.fmean(values), Z * statistics.stdev(values) / math.sqrt(len(values))
        return cls(mean, mean - half, mean + half)

    @classmethod
    def of_share(cls, right: int, asked: int) -> "Interval":
        """Of a proportion, by Wilson 1927."""
        share, spread = right / asked, Z**2 / asked
        middle = (share + spread / 2) / (1 + spread)
        half = Z * math.sqrt(share * (1 - share) / asked + spread / asked / 4) / (1 + spread)
        return cls(share, middle - half, middle + half)
