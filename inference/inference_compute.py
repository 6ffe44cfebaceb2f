"""More answers from the same weights: what a vote, or a choice by probability, makes of them, against the tokens and the time they take."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Protocol

import numpy as np

from inference.distributions import log_softmax
from inference.estimators import Interval, best_of, pass_at, vote_of
from inference.measurement import Progress, Result, Spread, Work, timed, within
from inference.models.base import Forward, Model
from inference.prefix_cache import PrefixCache
from inference.questions import Question, read_answer

SIZES = (1, 2, 4, 8, 16, 32)
SAMPLES = SIZES[-1]
SEED = 1
MAX_TOKENS = 8
"""Of an answer: longer ones are cut."""
TIMED, ROUNDS = 3, 3
"""Questions answered again to time each size, and how often."""
STRATEGIES = VOTE, BEST, PASS = "vote", "la plus probable", "pass@n"
GREEDY = 0
"""Beside the sizes, where the greedy answer is timed as they are."""

TokenIds = tuple[int, ...]


class Branches(Protocol):
    """Continuations of one prompt, drawn together: `inference.models.sampled`."""

    def draw(self, text: TokenIds, u: float) -> tuple[int, float]: ...

    def read(self, texts: Sequence[TokenIds]) -> None: ...


OpenBranches = Callable[[Model, Forward, float], Branches]
"""From a model, a prompt it read and a temperature."""


@dataclass(frozen=True)
class Sample:
    """One text written after a prompt.

    token_ids  as generated, up to the one that ends the answer.
    logprob    of them all, in nats, at temperature 1.
    """

    token_ids: TokenIds
    logprob: float
    answer: str


@dataclass(frozen=True)
class Answered:
    """A question, the samples drawn for it, and the greedy answer."""

    question: Question
    samples: tuple[Sample, ...]
    greedy: Sample

    @cached_property
    def votes(self) -> Counter[str]:
        """How often each answer was drawn."""
        return Counter(one.answer for one in self.samples)

    @property
    def right(self) -> int:
        """How many of the samples are right."""
        return sum(self.question.is_right(one.answer) for one in self.samples)

    @property
    def leaders(self) -> tuple[str, ...]:
        """The answers drawn most often: one, or those that tie."""
        most = max(self.votes.values())
        return tuple(answer for answer, count in self.votes.items() if count == most)

    @property
    def best(self) -> Sample:
        return max(self.samples, key=lambda one: one.logprob)

    @property
    def tokens(self) -> float:
        """Written for one sample, on average."""
        return sum(len(one.token_ids) for one in self.samples) / len(self.samples)

    def chance(self, strategy: str, n: int) -> float:
        """That n of the samples, taken at random, give the right answer."""
        if strategy == VOTE:
            return vote_of(n, self.votes, {answer for answer in self.votes if self.question.is_right(answer)})
        if strategy == BEST:
            ranked = sorted(self.samples, key=lambda one: one.logprob, reverse=True)
            return best_of(n, [self.question.is_right(one.answer) for one in ranked])
        return pass_at(n, self.right, len(self.samples))


@dataclass(frozen=True, eq=False)
class InferenceCompute:
    """What was drawn, and what it is worth.

    sample_times  n -> to answer one question with n samples: the passes, that of the prompt included, and the draws.
    greedy_time   the same for the greedy answer.
    """

    temperature: float
    answered: tuple[Answered, ...]
    sample_times: dict[int, Spread]
    greedy_time: Spread

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.sample_times)

    @cached_property
    def _chances(self) -> dict[tuple[str, int], list[float]]:
        """By strategy and n, question by question."""
        return {(strategy, n): [one.chance(strategy, n) for one in self.answered] for strategy in STRATEGIES for n in self.sizes}

    @property
    def _greedy(self) -> list[bool]:
        return [one.question.is_right(one.greedy.answer) for one in self.answered]

    def accuracy(self, strategy: str, n: int) -> Interval:
        """The share of questions answered right with n samples. With one, all strategies are the same."""
        return Interval.of_chances(self._chances[strategy, n])

    @property
    def greedy_accuracy(self) -> Interval:
        return Interval.of_chances(self._greedy)

    def gain(self, strategy: str) -> Interval:
        """What all the samples bring over one, question by question."""
        return self._difference(strategy, self._chances[strategy, 1])

    def gain_over_greedy(self, strategy: str) -> Interval:
        return self._difference(strategy, self._greedy)

    def _difference(self, strategy: str, base: Sequence[float]) -> Interval:
        return Interval.of_differences([more - less for more, less in zip(self._chances[strategy, self.sizes[-1]], base, strict=True)])

    def tokens(self, n: int) -> float:
        """Written for a question by n samples, on average."""
        return n * fmean(one.tokens for one in self.answered)

    @property
    def greedy_tokens(self) -> float:
        return fmean(len(one.greedy.token_ids) for one in self.answered)


def measure(
    scorer: PrefixCache,
    open_branches: OpenBranches,
    temperature: float,
    questions: Sequence[Question],
    sizes: Sequence[int] = SIZES,
) -> Work[InferenceCompute]:
    """Every question answered greedily, and by the largest of `sizes`; a few again by each size, in turn, to time them."""
    asking = _Asking(scorer, open_branches, temperature)
    answered = []
    for number, question in enumerate(questions):
        doing = Progress(0.75 * number / len(questions), f"question {number + 1} sur {len(questions)}")
        yield doing
        _, prompt = asking.read_prompt(question)
        _, samples = yield from asking.sample(number, prompt, sizes[-1], doing)
        _, greedy = yield from asking.favourites(prompt, doing)
        answered.append(Answered(question, samples, greedy))
    times_s = yield from within(0.75, 1.0, _time_sizes(asking, questions, sizes))
    spreads = {n: Spread.of(seconds) for n, seconds in times_s.items()}
    return InferenceCompute(temperature, tuple(answered), {n: spreads[n] for n in sizes}, spreads[GREEDY])


def _time_sizes(asking: "_Asking", questions: Sequence[Question], sizes: Sequence[int]) -> Work[dict[int, list[float]]]:
    """By size, and for the greedy answer: seconds a question takes, over the timed ones, each round."""
    timed_questions = list(enumerate(questions))[:: max(1, len(questions) // TIMED)][:TIMED]
    times_s = {n: [] for n in (*sizes, GREEDY)}
    for position in range(ROUNDS):
        for done, n in enumerate(times_s):
            doing = Progress((position + done / len(times_s)) / ROUNDS, f"chronomètre {n} réponses" if n > 1 else "chronomètre une réponse")
            total_s = 0.0
            for number, question in timed_questions:
                yield doing
                reading_s, prompt = asking.read_prompt(question)
                answer = asking.favourites(prompt, doing) if n == GREEDY else asking.sample(number, prompt, n, doing)
                writing_s, _ = yield from answer
                total_s += reading_s + writing_s
            times_s[n].append(total_s / len(timed_questions))
    return times_s


@dataclass(frozen=True)
class _Asking:
    """How a question is put to the model: one pass at a time, each with everybody else waiting. Seconds are those of the passes, and of
    choosing each token and adding up its log-probability, so that drawn and greedy answers pay for the same things."""

    scorer: PrefixCache
    open_branches: OpenBranches
    temperature: float

    def read_prompt(self, question: Question) -> tuple[float, Forward]:
        token_ids = self.scorer.vocabulary.encode(question.prompt)
        return self._alone(self.scorer.model.prefill, token_ids)

    def sample(self, number: int, prompt: Forward, n: int, doing: Progress) -> Work[tuple[float, tuple[Sample, ...]]]:
        """n samples for the question of this number, together."""
        spent_s, branches = self._alone(self.open_branches, self.scorer.model, prompt, self.temperature)
        texts, logprobs, unfinished = [()] * n, [0.0] * n, list(range(n))
        for _ in range(MAX_TOKENS):
            yield doing
            seconds, drawn = self._alone(_draw, branches, number, {sample: texts[sample] for sample in unfinished})
            spent_s += seconds
            for sample, (token_id, logprob) in drawn.items():
                texts[sample] += (token_id,)
                logprobs[sample] += logprob
            unfinished = [sample for sample in unfinished if not self._is_over(texts[sample])]
            if not unfinished:
                break
        return spent_s, tuple(map(self._sample_of, texts, logprobs))

    def favourites(self, prompt: Forward, doing: Progress) -> Work[tuple[float, Sample]]:
        """The answer made of the likeliest token at each step."""
        spent_s, forward, text, logprob = 0.0, prompt, (), 0.0
        while True:
            seconds, (token_id, gained) = self._alone(_favourite, forward)
            spent_s += seconds
            logprob += gained
            text += (token_id,)
            if len(text) == MAX_TOKENS or self._is_over(text):
                return spent_s, self._sample_of(text, logprob)
            yield doing
            seconds, forward = self._alone(self.scorer.model.decode, token_id, forward.state)
            spent_s += seconds

    def _alone(self, run: Callable[..., Result], *arguments) -> tuple[float, Result]:
        with self.scorer.model_alone():
            return timed(lambda: run(*arguments))

    def _is_over(self, text: TokenIds) -> bool:
        return text[-1] in self.scorer.info.eos_ids or read_answer(self.scorer.vocabulary.text(text))[1]

    def _sample_of(self, text: TokenIds, logprob: float) -> Sample:
        return Sample(text, logprob, read_answer(self.scorer.vocabulary.text(text))[0])


def _draw(branches: Branches, question: int, texts: dict[int, TokenIds]) -> dict[int, tuple[int, float]]:
    """By sample, the next token and its log-probability. The texts are all as long; when empty, the prompt was read already."""
    step = len(next(iter(texts.values())))
    if step:
        branches.read(list(texts.values()))
    return {sample: branches.draw(text, uniform(question, sample, step)) for sample, text in texts.items()}


def _favourite(forward: Forward) -> tuple[int, float]:
    token_id = int(forward.scores.logits.argmax())
    return token_id, float(log_softmax(forward.scores.logits)[token_id])


def uniform(question: int, sample: int, step: int) -> float:
    """The number u in [0, 1) of a draw: the same samples come back at each measurement, and others for each question."""
    return float(np.random.default_rng([SEED, question, sample, step]).random())
