"""Ways to choose the next token, on one prompt: the favourite, several paths at once, two draws. What they write, and how flat it is."""

import math
from dataclasses import dataclass

import numpy as np

from inference.beam import BeamSearch, beam_search
from inference.distributions import entropy_bits, log_softmax
from inference.errors import UserError
from inference.flatness import distinct, repeated_share, repeats
from inference.formatting import count
from inference.generation import generate
from inference.measurement import Progress, Work, within
from inference.models.base import ModelInfo
from inference.prefix_cache import PrefixCache
from inference.records import Draw, SamplingParams, StopRules
from inference.tokens import Vocabulary

GREEDY, BEAM, DRAW_A, DRAW_B = "glouton", "faisceau", "tirage A", "tirage B"
TOKENS = 40
"""A text's ceiling: long enough for a text to turn in circles."""
NGRAM = 3
"""Tokens in a row that count as repeated."""
WIDTHS = (1, 4)
"""The narrowest search and the widest."""
LENGTH_PENALTIES = (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)
MAX_PROMPT_CHARACTERS = 300
MAX_PROMPT_TOKENS = 64


@dataclass(frozen=True)
class Settings:
    """`draw_a` and `draw_b` have the same seed: at each step both draw with the same u."""

    width: int
    length_penalty: float
    draw_a: SamplingParams
    draw_b: SamplingParams


@dataclass(frozen=True)
class Drawn:
    """u and where it fell, on the distribution left by the settings. u is None where nothing is drawn, at temperature 0."""

    u: float | None
    draw: Draw


@dataclass(frozen=True, eq=False)
class Written:
    """What one strategy wrote after the prompt, n tokens, read again from end to end by the model.

    log_probs       (n,) float64: the model's own log-probability of each token, in nats, whatever the settings it was drawn under.
    entropies_bits  (n,) float64: of the model's own distribution before each token, in bits.
    draws           one per token; none for the strategies that draw nothing.
    """

    name: str
    token_ids: tuple[int, ...]
    log_probs: np.ndarray
    entropies_bits: np.ndarray
    draws: tuple[Drawn, ...] = ()

    @property
    def log_prob(self) -> float:
        return float(self.log_probs.sum())

    @property
    def mean_log_prob(self) -> float:
        return float(self.log_probs.mean())

    @property
    def mean_entropy_bits(self) -> float:
        return float(self.entropies_bits.mean())

    @property
    def repeats(self) -> list[bool]:
        """For each token, whether the `NGRAM` tokens that end there were already in the text."""
        return repeats(self.token_ids, NGRAM)

    @property
    def repeated_share(self) -> float:
        return repeated_share(self.token_ids, NGRAM)

    @property
    def entropies_by_repeat(self) -> tuple[float, float]:
        """Mean entropy in bits before the tokens that `repeats` marks, then before the others. NaN where there are none."""
        marked = np.array(self.repeats)
        return tuple(float(self.entropies_bits[kind].mean()) if kind.any() else math.nan for kind in (marked, ~marked))

    def distinct(self, n: int) -> float:
        return distinct(self.token_ids, n)


@dataclass(frozen=True, eq=False)
class Strategies:
    """texts  `GREEDY`, `BEAM`, `DRAW_A`, `DRAW_B`, in that order."""

    texts: tuple[Written, ...]
    search: BeamSearch

    @property
    def likeliest(self) -> Written:
        """The first of them when several wrote the same text."""
        return max(self.texts, key=lambda text: text.log_prob)

    @property
    def least_likely(self) -> Written:
        return min(self.texts, key=lambda text: text.log_prob)

    @property
    def flattest(self) -> Written:
        return max(self.texts, key=lambda text: text.repeated_share)


def parts_at(a: Written, b: Written) -> int | None:
    """The first position where two texts differ; None when they are the same."""
    if a.token_ids == b.token_ids:
        return None
    pairs = zip(a.token_ids, b.token_ids)
    return next((position for position, (x, y) in enumerate(pairs) if x != y), min(len(a.token_ids), len(b.token_ids)))


def checked_prompt(text: str, info: ModelInfo, vocabulary: Vocabulary) -> tuple[int, ...]:
    """Ids of a prompt. Raises `UserError` when it is empty, or too long for the lab or for the model."""
    if not text.strip():
        raise UserError("Écrivez le début d’un texte.")
    prompt_ids = vocabulary.encode(text[:MAX_PROMPT_CHARACTERS])
    longest = min(MAX_PROMPT_TOKENS, info.context_length - TOKENS)
    if len(prompt_ids) > longest:
        raise UserError(
            f"Le début compte {count(len(prompt_ids))} tokens, et ce laboratoire en prend {count(longest)} au plus. Raccourcissez-le."
        )
    return prompt_ids


def measure(scorer: PrefixCache, prompt_ids: tuple[int, ...], settings: Settings, tokens: int = TOKENS) -> Work[Strategies]:
    """Have each strategy write up to `tokens` after the prompt, then read every text again. The model is a `ReadableModel`."""
    greedy_ids, _ = yield from within(0.0, 0.15, _write(scorer, prompt_ids, SamplingParams(temperature=0), tokens, GREEDY))
    search = yield from within(0.15, 0.65, beam_search(scorer, prompt_ids, settings.width, settings.length_penalty, tokens))
    a_ids, a_draws = yield from within(0.65, 0.8, _write(scorer, prompt_ids, settings.draw_a, tokens, DRAW_A))
    b_ids, b_draws = yield from within(0.8, 0.95, _write(scorer, prompt_ids, settings.draw_b, tokens, DRAW_B))
    written = {GREEDY: (greedy_ids, ()), BEAM: (search.best.token_ids, ()), DRAW_A: (a_ids, a_draws), DRAW_B: (b_ids, b_draws)}
    texts = []
    for position, (name, (token_ids, draws)) in enumerate(written.items()):
        yield Progress(0.95 + 0.05 * position / len(written), f"relit le texte du {name}")
        with scorer.model_alone() as model:
            rows = model.logits_along(prompt_ids + token_ids)
        texts.append(Written(name, token_ids, *read(rows[len(prompt_ids) - 1 : -1], token_ids), draws))
    return Strategies(tuple(texts), search)


def _write(
    scorer: PrefixCache, prompt_ids: tuple[int, ...], params: SamplingParams, tokens: int, name: str
) -> Work[tuple[tuple[int, ...], tuple[Drawn, ...]]]:
    drawn = []
    yield Progress(0.0, f"{name}, token 1 sur {tokens}")
    for trace, _ in generate(scorer, prompt_ids, params, StopRules(tokens)):
        drawn.append(Drawn(trace.u, trace.choice))
        yield Progress(len(drawn) / tokens, f"{name}, token {min(len(drawn) + 1, tokens)} sur {tokens}")
    return tuple(one.draw.token_id for one in drawn), tuple(drawn)


def read(rows: np.ndarray, token_ids: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The log-probability in nats of each of n tokens, (n,), and the entropy in bits of the distribution before it, (n,).

    rows  (n, vocab_size): the scores before each token.
    """
    log_probs, entropies_bits = [], []
    for row, token_id in zip(rows, token_ids, strict=True):
        of_all = log_softmax(row)
        log_probs.append(of_all[token_id])
        entropies_bits.append(entropy_bits(np.exp(of_all)))
    return np.array(log_probs), np.array(entropies_bits)
