"""What fewer bits per weight save, and what they cost, measured against the model that is running."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from inference.distributions import kl_divergence, softmax
from inference.measurement import Progress, Spread, Work, timed
from inference.memory_floor import floor_s
from inference.models.base import Model
from inference.passages import prompt_of, read_passages
from inference.prefix_cache import PrefixCache
from inference.records import Scores

PROMPTS = ("Le chat dort sur le", "La capitale de la France est", "Deux et deux font", "Il était une fois")
DECODE_ROUNDS = 15
PREFILL_ROUNDS = 3
PREFILL_TOKENS = 128


class ReadableModel(Model, Protocol):
    def logits_along(self, token_ids: Sequence[int]) -> np.ndarray:
        """(n, vocab_size) float32: the scores of the token after each one, read in one pass."""


@dataclass(frozen=True, eq=False)
class Precision:
    """One way to store the weights.

    load_s         to load the model and to quantize it; None for the one that was already running.
    decode         one token after a short prompt; `prefill` of 128 tokens. Taken in turn with the other precisions.
    floor_s        of a decode: a reading of `weights_bytes` at the machine's bandwidth.
    kl_nats        (positions,) KL divergence from the reference's next-token distribution, at temperature 1.
    same_favourite (positions,) whether the most likely token is the same.
    examples       the scores after each of `PROMPTS`.
    """

    name: str
    weights_bytes: int
    load_s: float | None
    decode: Spread
    prefill: Spread
    floor_s: float
    kl_nats: np.ndarray
    same_favourite: np.ndarray
    examples: tuple[Scores, ...]

    @property
    def top1_agreement(self) -> float:
        return float(self.same_favourite.mean())


def measure(
    scorer: PrefixCache,
    names: Sequence[str],
    open_precision: Callable[[ReadableModel, str], ReadableModel],
    open_block: Callable[[], Callable[[], int]],
) -> Work[tuple[Precision, ...]]:
    """The model of `scorer` first, then each of `names`, all in memory at once so that they are timed in turn."""
    reference = scorer.info.dtype
    load_s: dict[str, float | None] = {reference: None}
    others: dict[str, ReadableModel] = {}
    for position, name in enumerate(names):
        yield Progress(0.3 * position / len(names), f"charge les poids en {name}")
        load_s[name], others[name] = timed(lambda name=name: open_precision(scorer.model, name))

    read = open_block()
    prompt = prompt_of(PREFILL_TOKENS, scorer.vocabulary.encode)
    with scorer.model_alone() as model:
        models = {reference: model, **others}
        states = {name: model.prefill(prompt[:16]).state for name, model in models.items()}
    reads_s: list[float] = []
    decodes_s, prefills_s = ({name: [] for name in models} for _ in range(2))
    for round_number in range(DECODE_ROUNDS + 1):
        yield Progress(0.3 + 0.2 * round_number / DECODE_ROUNDS, f"décodage, {round_number} sur {DECODE_ROUNDS}")
        with scorer.model_alone():
            read_s, read_bytes = timed(read)
            for name, model in models.items():
                seconds, _ = timed(lambda name=name, model=model: model.decode(prompt[16], states[name]))
                if round_number:  # the first pass after a rest is slower
                    decodes_s[name].append(seconds)
        reads_s.append(read_s)
    for round_number in range(PREFILL_ROUNDS):
        for name, model in models.items():
            yield Progress(0.5 + 0.1 * round_number / PREFILL_ROUNDS, f"prefill de {PREFILL_TOKENS} tokens en {name}")
            with scorer.model_alone():
                prefills_s[name].append(timed(lambda model=model: model.prefill(prompt))[0])

    kl_nats, same = ({name: [] for name in models} for _ in range(2))
    passages = read_passages()
    for position, passage in enumerate(passages):
        token_ids = scorer.vocabulary.encode(passage)
        yield Progress(0.6 + 0.4 * position / len(passages), f"lit le texte {position + 1} sur {len(passages)}")
        with scorer.model_alone() as model:
            expected = [softmax(row) for row in model.logits_along(token_ids)]
        for name, model in models.items():
            found = expected if name == reference else [softmax(row) for row in model.logits_along(token_ids)]
            kl_nats[name] += [kl_divergence(p, q) for p, q in zip(expected, found, strict=True)]
            same[name] += [p.argmax() == q.argmax() for p, q in zip(expected, found, strict=True)]
            yield Progress(0.6 + 0.4 * position / len(passages), f"compare le texte {position + 1} sur {len(passages)} en {name}")

    with scorer.model_alone():
        examples = {
            name: tuple(model.prefill(scorer.vocabulary.encode(prompt)).scores for prompt in PROMPTS) for name, model in models.items()
        }
    bandwidth_bytes_per_s = read_bytes / min(reads_s)
    return tuple(
        Precision(
            name=name,
            weights_bytes=model.info.weights_bytes,
            load_s=load_s[name],
            decode=Spread.of(decodes_s[name]),
            prefill=Spread.of(prefills_s[name]),
            floor_s=floor_s(model.info.weights_bytes, bandwidth_bytes_per_s),
            kl_nats=np.array(kl_nats[name]),
            same_favourite=np.array(same[name]),
            examples=examples[name],
        )
        for name, model in models.items()
    )
