"""Speculative decoding: a cheap draft proposes tokens, the target reads them all in one pass, and what comes out follows the target.

Leviathan, Kalman and Matias 2023, « Fast Inference from Transformers via Speculative Decoding »; Chen et al. 2023. Distributions are
(vocab_size,) float64, over the whole vocabulary: p is the target's, q the draft's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from inference.distributions import softmax
from inference.drawing import draw_inverse_cdf

LOOKUP_NGRAMS = (3, 2, 1)


@dataclass(frozen=True)
class Proposal:
    """One token of the draft.

    q, p  its probability for the draft and for the target; p and u are None when a refusal before it left it unread.
    u     the uniform number the ratio is held against.
    """

    token_id: int
    q: float
    p: float | None = None
    u: float | None = None

    @property
    def acceptance(self) -> float | None:
        """min(1, p / q): the chance that this very token is accepted."""
        return None if self.p is None else min(1.0, self.p / self.q)

    @property
    def is_accepted(self) -> bool:
        return self.u is not None and self.u < self.acceptance


@dataclass(frozen=True)
class Round:
    """One pass of the target: what was proposed, then the token the target adds. A round of no proposal is plain decoding.

    token_id  "recovered" from the residual in the place of the proposal refused, or "bonus" when none was.
    """

    proposals: tuple[Proposal, ...]
    token_id: int

    @property
    def accepted_ids(self) -> tuple[int, ...]:
        return tuple(proposal.token_id for proposal in self.proposals if proposal.is_accepted)

    @property
    def new_ids(self) -> tuple[int, ...]:
        return (*self.accepted_ids, self.token_id)

    @property
    def is_bonus(self) -> bool:
        return len(self.accepted_ids) == len(self.proposals)

    @property
    def examined(self) -> tuple[Proposal, ...]:
        return tuple(proposal for proposal in self.proposals if proposal.p is not None)


class Draft(Protocol):
    def propose(self, text_ids: Sequence[int], count: int, uniforms: Iterator[float]) -> list[tuple[int, np.ndarray]]:
        """Up to `count` tokens to follow the text, each drawn from the q it comes with."""


def distribution(logits: np.ndarray, temperature: float) -> np.ndarray:
    """softmax(logits / T); at temperature 0, all of it on the favourite."""
    if temperature == 0:
        return certain(len(logits), int(np.argmax(logits)))
    return softmax(logits / np.float64(temperature))


def certain(size: int, token_id: int) -> np.ndarray:
    probs = np.zeros(size)
    probs[token_id] = 1.0
    return probs


def overlap(p: np.ndarray, q: np.ndarray) -> float:
    """Σ min(p, q): the acceptance rate of a draft that proposes from q."""
    return float(np.minimum(p, q).sum())


def residual(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """What the target gives beyond the draft, max(0, p − q), as a distribution; p itself when there is nothing."""
    beyond = np.maximum(p - q, 0.0)
    mass = beyond.sum()
    return beyond / mass if mass > 0 else p


def output_distribution(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """What one step of speculative decoding draws from, summed over everything the draft may propose: p, up to rounding."""
    accepted = q * np.minimum(1.0, np.divide(p, q, out=np.zeros_like(p), where=q > 0))
    return accepted + (1.0 - accepted.sum()) * residual(p, q)


def verify(proposed: Sequence[tuple[int, np.ndarray]], target: Iterator[np.ndarray], uniforms: Iterator[float]) -> Round:
    """Accept the proposals from the first on, each with probability min(1, p / q), and stop at the first refused.

    target  the p at each proposal's place, then the one after them all; read no further than needed.
    """
    examined = []
    for position, (token_id, q) in enumerate(proposed):
        p = next(target)
        examined.append(Proposal(token_id, float(q[token_id]), float(p[token_id]), next(uniforms)))
        if not examined[-1].is_accepted:
            unread = (Proposal(later_id, float(later_q[later_id])) for later_id, later_q in proposed[position + 1 :])
            return Round((*examined, *unread), draw_inverse_cdf(residual(p, q), next(uniforms)).token_id)
    return Round(tuple(examined), draw_inverse_cdf(next(target), next(uniforms)).token_id)


def uniforms_of(seed: int, number: int) -> Iterator[float]:
    """The numbers in [0, 1) that round `number` may use: the draft's, then the tests', then the draw of the last token."""
    generator = np.random.default_rng([seed, number])
    while True:
        yield float(generator.random())


class PromptLookup:
    """Proposes what followed the last time the text's last tokens were seen in it (Saxena 2023, « Prompt Lookup Decoding »)."""

    def __init__(self, vocab_size: int):
        self.vocab_size = vocab_size

    def propose(self, text_ids: Sequence[int], count: int, uniforms: Iterator[float]) -> list[tuple[int, np.ndarray]]:
        text_ids = tuple(text_ids)
        for size in LOOKUP_NGRAMS:
            for start in range(len(text_ids) - size - 1, -1, -1):
                if text_ids[start : start + size] == text_ids[-size:]:
                    followed = text_ids[start + size : start + size + count]
                    return [(token_id, certain(self.vocab_size, token_id)) for token_id in followed]
        return []


class NoDraft:
    """Plain decoding: one pass, one token."""

    def propose(self, text_ids: Sequence[int], count: int, uniforms: Iterator[float]) -> list[tuple[int, np.ndarray]]:
        return []


class SmallModel(Protocol):
    """A model that scores some tokens only."""

    token_ids: np.ndarray

    def logits_after(self, text_ids: Sequence[int]) -> np.ndarray:
        """(len(token_ids),) float32."""


class ModelDraft:
    """Proposes by drawing from a smaller model at the same temperature as the target."""

    def __init__(self, model: SmallModel, vocab_size: int, temperature: float):
        self.model, self.vocab_size, self.temperature = model, vocab_size, temperature

    def propose(self, text_ids: Sequence[int], count: int, uniforms: Iterator[float]) -> list[tuple[int, np.ndarray]]:
        text_ids, proposed = tuple(text_ids), []
        for _ in range(count):
            known = distribution(self.model.logits_after(text_ids), self.temperature)
            token_id = int(self.model.token_ids[draw_inverse_cdf(known, next(uniforms)).token_id])
            q = np.zeros(self.vocab_size)
            q[self.model.token_ids] = known
            proposed.append((token_id, q))
            text_ids += (token_id,)
        return proposed


# What the formulas say


def expected_tokens(acceptance_rate: float, num_draft_tokens: int) -> float:
    """Tokens per pass of the target, (1 − α^(γ+1)) / (1 − α), were each proposal accepted independently with probability α."""
    return float(sum(acceptance_rate**count for count in range(num_draft_tokens + 1)))


def expected_speedup(acceptance_rate: float, num_draft_tokens: int, draft_cost: float, verify_cost: float = 1.0) -> float:
    """Against plain decoding. Costs in passes of the target on one token; Leviathan et al. take a verification to cost no more than one."""
    return expected_tokens(acceptance_rate, num_draft_tokens) / (num_draft_tokens * draft_cost + verify_cost)


# What is drawn, against what should be


@dataclass(frozen=True, eq=False)
class DrawsCheck:
    """Many draws of one step, against p.

    largest_error       of the exact output distribution, |Σ − p|.
    counts, expected    (bins,) the tokens expected at least `MIN_EXPECTED` times, the likeliest first, then all the others together.
    chi_square, limit   the statistic, and what it exceeds once in a hundred when the distribution is p.
    """

    token_ids: np.ndarray
    p: np.ndarray
    q: np.ndarray
    counts: np.ndarray
    expected: np.ndarray
    largest_error: float
    accepted: float

    @property
    def draws(self) -> int:
        return int(self.counts.sum())

    @property
    def chi_square(self) -> float:
        counts, expected = self.counts[self._is_counted], self.expected[self._is_counted]
        return float(((counts - expected) ** 2 / expected).sum())

    @property
    def degrees(self) -> int:
        return int(self._is_counted.sum()) - 1

    @property
    def limit(self) -> float:
        return chi_square_limit(self.degrees)

    @property
    def _is_counted(self) -> np.ndarray:
        """The others together may be too few for the statistic."""
        return self.expected >= MIN_EXPECTED


MIN_EXPECTED = 5
NORMAL_99 = 2.3263478740408408


def chi_square_limit(degrees: int) -> float:
    """The 99th percentile of χ², within 1 % from 3 degrees on (Wilson and Hilferty 1931)."""
    spread = 2 / (9 * degrees) if degrees else 0.0
    return degrees * (1 - spread + NORMAL_99 * spread**0.5) ** 3


def draw_many(p: np.ndarray, q: np.ndarray, draws: int, seed: int) -> DrawsCheck:
    """So many steps of speculative decoding from the same p and q."""
    generator = np.random.default_rng(seed)
    proposed = _draw(q, generator.random(draws))
    is_accepted = generator.random(draws) < np.minimum(1.0, p[proposed] / q[proposed])
    recovered = _draw(residual(p, q), generator.random(draws))
    drawn = np.bincount(np.where(is_accepted, proposed, recovered), minlength=len(p))
    alone = np.flatnonzero(p * draws >= MIN_EXPECTED)
    alone = alone[np.argsort(-p[alone], kind="stable")]
    counts, expected = drawn[alone], p[alone] * draws
    return DrawsCheck(
        token_ids=alone,
        p=p[alone],
        q=q[alone],
        counts=np.append(counts, draws - counts.sum()),
        expected=np.append(expected, max(0.0, draws - expected.sum())),
        largest_error=float(np.abs(output_distribution(p, q) - p).max()),
        accepted=float(is_accepted.mean()),
    )


def _draw(probs: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Ids by inverse CDF, in the order of the ids. A rounded sum may fall short of 1: what lies beyond goes to the last possible token."""
    ends = np.cumsum(probs)
    return np.minimum(np.searchsorted(ends, uniforms, side="right"), np.flatnonzero(probs)[-1])
