"""The records the other modules exchange: what is asked for, what a model says, what one step decided.

Arrays over the vocabulary are numpy, of shape `(vocab_size,)`, entry i being token i. They are shared between visitors and never
written to. Probabilities lie in [0, 1], log-probabilities are in nats, entropies in bits.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inference.distributions import entropy_bits, softmax
from inference.errors import InvalidParameter
from inference.formatting import count, decimal

ORDERS: dict[str, tuple[str, ...]] = {
    # transformers, generation/utils.py: processors first, then the warpers.
    "huggingface": ("repetition_penalty", "temperature", "top_k", "top_p", "min_p"),
    # llama.cpp, common/common.h: penalties … top_k … top_p, min_p … temperature.
    "llamacpp": ("repetition_penalty", "top_k", "top_p", "min_p", "temperature"),
}
"""In which order the stages run: the temperature moves, and with it what top-p and min-p cut."""

MIN_TEMPERATURE = 1e-6
"""The smallest that is divided by; 0 is greedy. Below, dividing a logit would overflow."""
MAX_TEMPERATURE = 2.0
MAX_TOP_K = 1_000_000
MAX_SEED = 2**32 - 1
MAX_NEW_TOKENS = 512
MAX_STOP_SEQUENCES = 4
MAX_STOP_LENGTH = 40


@dataclass(frozen=True)
class SamplingParams:
    """The settings of one draw. `None` means off, for every stage.

    temperature        in [1e-6, 2], or 0 for greedy decoding: no division, no draw.
    top_k              in [1, 1,000,000]; larger than the vocabulary changes nothing.
    top_p              in [0, 1]; 1 changes nothing, 0 leaves the most likely token alone.
    min_p              in [0, 1], a share of the favourite's probability.
    repetition_penalty in [0.5, 2]; 1 changes nothing.
    order              a key of `ORDERS`.
    seed               an integer in [0, 2**32 - 1]; it fixes the draws, not the arithmetic.

    Raises `InvalidParameter`, so that a link or a file can be read straight into this record.
    """

    temperature: float | None = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    order: str = "huggingface"
    seed: int = 0

    def __post_init__(self):
        _require_number("temperature", "La température", self.temperature, 0, MAX_TEMPERATURE)
        if self.temperature and self.temperature < MIN_TEMPERATURE:
            raise InvalidParameter("temperature", "La température est 0, ou un nombre entre 0,000001 et 2.")
        _require_integer("top_k", "Top-k", self.top_k, 1, MAX_TOP_K)
        _require_number("top_p", "Top-p", self.top_p, 0, 1)
        _require_number("min_p", "Min-p", self.min_p, 0, 1)
        _require_number("repetition_penalty", "La pénalité de répétition", self.repetition_penalty, 0.5, 2)
        _require_integer("seed", "La graine", self.seed, 0, MAX_SEED)
        if self.seed is None:
            raise InvalidParameter("seed", "La graine est un nombre entier.")
        if self.order not in ORDERS:
            raise InvalidParameter("order", "L’ordre des étapes est « huggingface » ou « llamacpp ».")

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0


@dataclass(frozen=True)
class StopRules:
    """The three things that end a text, besides the model's context running out: an end token, a ceiling, a stop sequence."""

    max_new_tokens: int = 40
    stop_sequences: tuple[str, ...] = ()

    def __post_init__(self):
        _require_integer("max_new_tokens", "Le plafond", self.max_new_tokens, 1, MAX_NEW_TOKENS)
        if len(self.stop_sequences) > MAX_STOP_SEQUENCES:
            raise InvalidParameter("stop_sequences", f"Au plus {MAX_STOP_SEQUENCES} séquences d’arrêt.")
        if any(not 0 < len(sequence) <= MAX_STOP_LENGTH for sequence in self.stop_sequences):
            raise InvalidParameter("stop_sequences", f"Une séquence d’arrêt fait de 1 à {MAX_STOP_LENGTH} caractères.")


@dataclass(frozen=True)
class Stop:
    """What ended a text: `kind` is "end_token", "max_new_tokens", "stop_sequence" or "context_length"."""

    kind: str
    sequence: str | None = None


@dataclass(frozen=True, eq=False)
class Scores:
    """What a model says of the next token.

    logits        (vocab_size,) float32. Read-only.
    unknown_mass  probability, at temperature 1, of the tokens the model kept to itself: 0 for a model we run. An engine behind
                  an API that returns its best N log-probabilities puts those in `logits`, -inf elsewhere, and the rest here.
    known_count   how many logits are known; `vocab_size` for a model we run.
    """

    logits: np.ndarray
    unknown_mass: float = 0.0
    known_count: int | None = None

    def __post_init__(self):
        self.logits.flags.writeable = False
        if self.known_count is None:
            object.__setattr__(self, "known_count", len(self.logits))

    @property
    def is_complete(self) -> bool:
        return self.known_count == len(self.logits)


def model_distribution(scores: Scores) -> np.ndarray:
    """The model's own probabilities, (vocab_size,) float64: they sum to 1, or to what is known when the model keeps tokens to itself."""
    return softmax(scores.logits) * (1.0 - scores.unknown_mass)


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage of the pipeline, after it ran.

    scores   (vocab_size,) float64: logits, divided by the temperature once that stage has run; -inf for a token that was cut.
    applied  False when the stage is off, or has no effect by definition (the cuts, under greedy decoding).
    """

    name: str
    scores: np.ndarray
    applied: bool


@dataclass(frozen=True)
class Draw:
    """A token chosen, and where u fell: in [low, low + probability) on the line where kept tokens stand by decreasing probability."""

    token_id: int
    probability: float
    low: float


@dataclass(frozen=True, eq=False)
class StepTrace:
    """Everything that happened between the forward pass and the chosen token, for one step. Charts read it and compute nothing.

    step    how many tokens had been generated before this one.
    stages  in the order they ran, the first five always present.
    probs   (vocab_size,) float64, sums to 1: what the token is drawn from. Greedy: the softmax before any cut, for display only.
    u       the uniform number of this step; it depends on (seed, step) and on nothing else. None when greedy: nothing is drawn.
    choice  the token those settings choose.
    """

    step: int
    params: SamplingParams
    scores: Scores
    stages: tuple[Stage, ...]
    probs: np.ndarray
    u: float | None
    choice: Draw

    def stage(self, name: str) -> Stage:
        return next(stage for stage in self.stages if stage.name == name)

    def before(self, name: str) -> np.ndarray:
        """Scores that the stage `name` received, (vocab_size,) float64."""
        previous = self.scores.logits.astype(np.float64)
        for stage in self.stages:
            if stage.name == name:
                return previous
            previous = stage.scores
        raise KeyError(name)

    @cached_property
    def model_probs(self) -> np.ndarray:
        """The model's own distribution, before any setting: softmax of the logits over the whole vocabulary."""
        return model_distribution(self.scores)

    @cached_property
    def uncut_scores(self) -> np.ndarray:
        """The scores with penalty and temperature, every token still in: what the column « logit ÷ T » shows."""
        penalised = self.stage("repetition_penalty").scores
        temperature = self.params.temperature
        return penalised / temperature if temperature else penalised

    @cached_property
    def uncut_probs(self) -> np.ndarray:
        """What the first cut looks at: a softmax over the whole vocabulary, divided by the temperature only if that comes first.

        Where the model keeps tokens to itself, over those it told: see `is_exact`.
        """
        return softmax(self.before("top_k"))

    @cached_property
    def kept(self) -> np.ndarray:
        """(vocab_size,) bool: tokens that survived every cut."""
        return np.isfinite(self.stages[-1].scores)

    def cut_by(self, token_id: int) -> str | None:
        """The stage that removed a token; None when it survived, or when the model kept its logit to itself."""
        if self.scores.logits[token_id] == -np.inf:
            return None
        return next((stage.name for stage in self.stages if stage.scores[token_id] == -np.inf), None)

    @property
    def kept_count(self) -> int:
        return int(np.count_nonzero(self.kept))

    @cached_property
    def removed_mass(self) -> float:
        """Share of `uncut_probs` that the cuts removed."""
        return float(self.uncut_probs[~self.kept].sum())

    @property
    def kept_mass(self) -> float:
        """Share of `uncut_probs` that the cuts left: 1 only when they removed none of it, however the sum is rounded."""
        return min(float(self.uncut_probs[self.kept].sum()), math.nextafter(1, 0)) if self.removed_mass else 1.0

    @cached_property
    def entropy_bits(self) -> float:
        return entropy_bits(self.probs)

    @property
    def effective_choices(self) -> float:
        """2 ** entropy: how many equally likely tokens would hesitate as much (perplexity of this one distribution)."""
        return 2.0**self.entropy_bits

    @property
    def is_exact(self) -> bool:
        """Whether `probs` is exact. An engine that tells only its best N is, once top-k cuts within those N and no penalty has
        moved a known token below one it kept to itself."""
        top_k, penalty = self.params.top_k, self.params.repetition_penalty
        return self.scores.is_complete or (top_k is not None and top_k <= self.scores.known_count and penalty in (None, 1))


def _require_number(field: str, name: str, value, low: float, high: float) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or not low <= value <= high:
        raise InvalidParameter(field, f"{name} est un nombre entre {decimal(low)} et {decimal(high)}.")


def _require_integer(field: str, name: str, value, low: int, high: int) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidParameter(field, f"{name} est un nombre entier entre {count(low)} et {count(high)}.")
