"""How much faster speculative decoding writes, measured draft by draft against plain decoding on the same prompts."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import numpy as np

from inference.distributions import largest, softmax
from inference.measurement import Progress, Spread, Work, timed
from inference.models.base import State
from inference.passages import read_passages
from inference.precisions import ReadableModel
from inference.prefix_cache import PrefixCache
from inference.speculative import (
    Draft,
    DrawsCheck,
    ModelDraft,
    NoDraft,
    PromptLookup,
    Round,
    SmallModel,
    distribution,
    draw_many,
    expected_speedup,
    expected_tokens,
    overlap,
    uniforms_of,
    verify,
)

PROMPTS = (
    "Le matin, avant d’ouvrir la boutique, le boulanger",
    "La photosynthèse est le mécanisme par lequel les plantes",
    "Pour aller de la gare au musée, il faut d’abord",
)
TOKENS = 24
"""Written after each prompt, or a few more: a round is never cut short."""
DRAFT_ROWS = 32_768
DRAWS = 20_000
PLAIN, SMALL, LOOKUP = "sans brouillon", "modèle réduit", "relecture du texte"
NUM_DRAFT_TOKENS = {SMALL: (1, 2, 3, 4), LOOKUP: (2, 4)}
"""γ, the tokens proposed at each pass, that each draft is tried with."""


class VerifyingModel(ReadableModel, Protocol):
    def verify(self, token_ids: Sequence[int], state: State) -> tuple[np.ndarray, State]:
        """(n, vocab_size) float32: the scores after each proposed token, and the state after all of them."""


@dataclass(frozen=True)
class TimedRound:
    """A round, and what it took.

    overlaps  Σ min(p, q) at each proposal examined: the chance, before anything is drawn there, that it is accepted.
    draft_s   of the proposals.
    total_s   with the target's pass and the draws.
    """

    round: Round
    overlaps: tuple[float, ...]
    draft_s: float
    total_s: float


@dataclass(frozen=True)
class Text:
    """One prompt continued by rounds."""

    prompt_ids: tuple[int, ...]
    rounds: tuple[TimedRound, ...]

    @property
    def token_ids(self) -> tuple[int, ...]:
        """What was written."""
        return tuple(token_id for timed_round in self.rounds for token_id in timed_round.round.new_ids)

    @property
    def tokens(self) -> int:
        return len(self.token_ids)

    @property
    def token_s(self) -> float:
        """Seconds per token written."""
        return sum(timed_round.total_s for timed_round in self.rounds) / self.tokens


@dataclass(frozen=True)
class Run:
    """One draft and one γ, over all prompts, beside plain decoding on the same."""

    draft: str
    num_draft_tokens: int
    texts: tuple[Text, ...]
    plain: tuple[Text, ...]

    @property
    def rounds(self) -> tuple[TimedRound, ...]:
        return tuple(timed_round for text in self.texts for timed_round in text.rounds)

    @property
    def tokens_per_pass(self) -> float:
        return sum(text.tokens for text in self.texts) / len(self.rounds)

    @property
    def acceptance_rate(self) -> float:
        """α, the mean of Σ min(p, q) where a proposal was examined; 0 when none was."""
        overlaps = [overlap for timed_round in self.rounds for overlap in timed_round.overlaps]
        return sum(overlaps) / len(overlaps) if overlaps else 0.0

    @property
    def accepted_share(self) -> float:
        """Of the proposals examined: what α predicts."""
        examined = [proposal for timed_round in self.rounds for proposal in timed_round.round.examined]
        return sum(proposal.is_accepted for proposal in examined) / len(examined) if examined else 0.0

    @property
    def speedup(self) -> float:
        """Plain seconds per token over these, all prompts together."""
        return _token_s(self.plain) / _token_s(self.texts)

    @property
    def speedups(self) -> Spread:
        """The same prompt by prompt."""
        return Spread.of([plain.token_s / text.token_s for plain, text in zip(self.plain, self.texts, strict=True)])

    @property
    def same_texts(self) -> int:
        """How many texts begin as without a draft, as far as both go."""
        pairs = zip(self.texts, self.plain)
        return sum(all(one == other for one, other in zip(text.token_ids, plain.token_ids)) for text, plain in pairs)

    @property
    def draft_cost(self) -> float:
        """Seconds for one proposal, in plain passes."""
        proposed = sum(len(timed_round.round.proposals) for timed_round in self.rounds)
        return sum(timed_round.draft_s for timed_round in self.rounds) / max(1, proposed) / self._plain_pass_s

    @property
    def verify_cost(self) -> float:
        """Seconds for one verification, its draws included, in plain passes."""
        return sum(one.total_s - one.draft_s for one in self.rounds) / len(self.rounds) / self._plain_pass_s

    @property
    def expected_tokens(self) -> float:
        """By the formula, which takes every pass to have its γ proposals."""
        return expected_tokens(self.acceptance_rate, self.num_draft_tokens)

    @property
    def expected_speedup(self) -> float:
        """By the formula, a verification taken to cost one plain pass."""
        return expected_speedup(self.acceptance_rate, self.num_draft_tokens, self.draft_cost)

    @property
    def expected_speedup_here(self) -> float:
        """By the formula, with what a verification cost here."""
        return expected_speedup(self.acceptance_rate, self.num_draft_tokens, self.draft_cost, self.verify_cost)

    @property
    def _plain_pass_s(self) -> float:
        return _token_s(self.plain)


def _token_s(texts: Sequence[Text]) -> float:
    return sum(text.token_s * text.tokens for text in texts) / sum(text.tokens for text in texts)


@dataclass(frozen=True)
class SpeculativeSpeed:
    """plain: the texts without a draft. check: many draws of the first step of the first text."""

    plain: tuple[Text, ...]
    runs: tuple[Run, ...]
    check: DrawsCheck

    @property
    def spreads(self) -> tuple[Spread, ...]:
        """Of a pass, without a draft and under each setting."""
        of_each = [[one for text in self.plain for one in text.rounds], *(run.rounds for run in self.runs)]
        return tuple(Spread.of([one.total_s for one in rounds]) for rounds in of_each)

    @property
    def best(self) -> Run:
        return max(self.runs, key=lambda run: run.speedup)

    def run(self, draft: str, num_draft_tokens: int) -> Run:
        return next(run for run in self.runs if (run.draft, run.num_draft_tokens) == (draft, num_draft_tokens))


def measure(
    scorer: PrefixCache,
    temperature: float,
    open_draft: Callable[[VerifyingModel, Sequence[int]], SmallModel],
    prompts: Sequence[str] = PROMPTS,
    tokens: int = TOKENS,
    draft_rows: int = DRAFT_ROWS,
) -> Work[SpeculativeSpeed]:
    """Every draft and γ in turn on each prompt, so that a slow moment of the machine weighs on all. Raises `UserError`."""
    vocab_size = scorer.vocabulary.size
    rows = yield from _likeliest_tokens(scorer, draft_rows)
    yield Progress(0.15, "range le brouillon en int8")
    small = open_draft(scorer.model, rows)
    drafts: dict[str, Draft] = {
        PLAIN: NoDraft(),
        SMALL: ModelDraft(small, vocab_size, temperature),
        LOOKUP: PromptLookup(vocab_size),
    }
    settings = [(PLAIN, 0), *((name, gamma) for name, gammas in NUM_DRAFT_TOKENS.items() for gamma in gammas)]
    texts: dict[tuple[str, int], list[Text]] = {setting: [] for setting in settings}
    for position, prompt in enumerate(prompts):
        prompt_ids = tuple(scorer.vocabulary.encode(prompt))
        for place, (name, gamma) in enumerate(settings):
            doing = f"écrit le texte {position + 1} sur {len(prompts)}, {name}" + (f", γ = {gamma}" if gamma else "")
            done = Progress(0.15 + 0.8 * (position * len(settings) + place) / (len(prompts) * len(settings)), doing)
            timed_rounds = []
            for timed_round in speculate(scorer, drafts[name], gamma, prompt_ids, temperature):
                yield done
                timed_rounds.append(timed_round)
                if sum(len(one.round.new_ids) for one in timed_rounds) >= tokens:
                    break
            texts[name, gamma].append(Text(prompt_ids, tuple(timed_rounds)))
    yield Progress(0.95, f"tire {DRAWS} fois le même pas")
    check = _check(scorer, drafts[SMALL], scorer.vocabulary.encode(prompts[0]), temperature)
    plain = tuple(texts.pop((PLAIN, 0)))
    runs = tuple(Run(name, gamma, tuple(written), plain) for (name, gamma), written in texts.items())
    return SpeculativeSpeed(plain, runs, check)


def speculate(
    scorer: PrefixCache, draft: Draft, num_draft_tokens: int, prompt_ids: Sequence[int], temperature: float, seed: int = 0
) -> Iterator[TimedRound]:
    """Rounds without end after a prompt of two tokens or more. What the target has read is always the text but its last token."""
    text_ids = tuple(prompt_ids)
    state = _read(scorer, text_ids[:-1])
    for number in count():
        timed_round, read = _round(scorer, draft, num_draft_tokens, text_ids, state, temperature, uniforms_of(seed, number))
        text_ids += timed_round.round.new_ids
        # A sliding window that has let go of what a refusal brings back must be read again.
        state = scorer.model.truncate(read, len(text_ids) - 1) or _read(scorer, text_ids[:-1])
        yield timed_round


def _round(
    scorer: PrefixCache,
    draft: Draft,
    num_draft_tokens: int,
    text_ids: tuple[int, ...],
    state: State,
    temperature: float,
    uniforms: Iterator[float],
) -> tuple[TimedRound, State]:
    """A round, with everybody else kept out of the model meanwhile, and the state after all that the target has read."""
    with scorer.model_alone() as model:
        start_s = time.perf_counter()
        draft_s, proposed = timed(lambda: draft.propose(text_ids, num_draft_tokens, uniforms))
        logits, read = model.verify((text_ids[-1], *(token_id for token_id, _ in proposed)), state)
        done = verify(proposed, (distribution(row, temperature) for row in logits), uniforms)
        total_s = time.perf_counter() - start_s
    examined = zip(logits, (q for _, q in proposed[: len(done.examined)]))
    return TimedRound(done, tuple(overlap(distribution(row, temperature), q) for row, q in examined), draft_s, total_s), read


def _read(scorer: PrefixCache, token_ids: tuple[int, ...]) -> State:
    with scorer.model_alone() as model:
        return model.prefill(token_ids).state


def _likeliest_tokens(scorer: PrefixCache, size: int) -> Work[np.ndarray]:
    """Ids of the tokens the target finds likeliest on average along the French passages, increasing."""
    total, passages = np.zeros(scorer.vocabulary.size), read_passages()
    for position, passage in enumerate(passages):
        yield Progress(0.15 * position / len(passages), f"cherche les tokens du français, texte {position + 1} sur {len(passages)}")
        with scorer.model_alone() as model:
            logits = model.logits_along(scorer.vocabulary.encode(passage))
        for row in logits:
            total += softmax(row)
    return np.sort(largest(total, size))


def _check(scorer: PrefixCache, draft: Draft, prompt_ids: Sequence[int], temperature: float) -> DrawsCheck:
    """The first step after a prompt, drawn many times."""
    ((_, q),) = draft.propose(prompt_ids, 1, uniforms_of(0, 0))
    with scorer.model_alone() as model:
        p = distribution(model.prefill(prompt_ids).scores.logits, temperature)
    return draw_many(p, q, DRAWS, seed=0)
