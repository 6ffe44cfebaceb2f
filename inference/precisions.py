"""What fewer bits per weight save, and what they cost, measured against the model that is running."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from inference.decode_floor import time_in_turn
from inference.distributions import kl_divergence, softmax
from inference.loading import time_load
from inference.measurement import Progress, Spread, Work, timed, within
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

    store_s        to store the running model's weights this way; None for the one that was already running.
    load_s         to read them from the disk; None where there was no room to try.
    decode         one token after a short prompt; `prefill` of 128 tokens. Taken in turn with the other precisions.
    floor_s        of a decode: a reading of `weights_bytes` at the machine's bandwidth.
    kl_nats        (positions,) KL divergence from the reference's next-token distribution, at temperature 1.
    same_favourite (positions,) whether the most likely token is the same.
    examples       the scores after each of `PROMPTS`.
    """

    name: str
    weights_bytes: int
    store_s: float | None
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
    weight_chunks: Callable[[ReadableModel], Iterable[bytes | memoryview]],
    disk: Path,
) -> Work[tuple[Precision, ...]]:
    """The model of `scorer` first, then each of `names`, all in memory at once so that they are timed in turn.

    weight_chunks  all the bytes of a model's weights, some at a time.
    disk           a folder to load them from.
    """
    models: dict[str, ReadableModel] = {scorer.info.dtype: scorer.model}
    store_s: dict[str, float | None] = {scorer.info.dtype: None}
    for position, name in enumerate(names):
        yield Progress(0.2 * position / len(names), f"range les poids en {name}")
        store_s[name], models[name] = timed(lambda name=name: open_precision(scorer.model, name))
    load_s = yield from within(0.2, 0.3, _time_loads(models, weight_chunks, disk))
    read_bytes, reads_s, decodes_s = yield from within(0.3, 0.5, time_in_turn(scorer, models, open_block, DECODE_ROUNDS))
    prefills_s = yield from _time_prefills(scorer, models)
    kl_nats, same_favourite = yield from _compare(scorer, models)
    with scorer.model_alone():
        examples = {
            name: tuple(model.prefill(scorer.vocabulary.encode(prompt)).scores for prompt in PROMPTS) for name, model in models.items()
        }
    return tuple(
        Precision(
            name=name,
            weights_bytes=model.info.weights_bytes,
            store_s=store_s[name],
            load_s=load_s[name],
            decode=Spread.of(decodes_s[name]),
            prefill=Spread.of(prefills_s[name]),
            floor_s=floor_s(model.info.weights_bytes, read_bytes / min(reads_s)),
            kl_nats=np.array(kl_nats[name]),
            same_favourite=np.array(same_favourite[name]),
            examples=examples[name],
        )
        for name, model in models.items()
    )


def _time_loads(
    models: dict[str, ReadableModel], weight_chunks: Callable[[ReadableModel], Iterable[bytes | memoryview]], disk: Path
) -> Work[dict[str, float | None]]:
    load_s: dict[str, float | None] = {}
    for position, (name, model) in enumerate(models.items()):
        timing = time_load(weight_chunks(model), model.info.weights_bytes, disk, f"relit du disque les poids en {name}")
        try:
            load_s[name] = yield from within(position / len(models), (position + 1) / len(models), timing)
        except OSError:
            load_s[name] = None
    return load_s


def _time_prefills(scorer: PrefixCache, models: dict[str, ReadableModel]) -> Work[dict[str, list[float]]]:
    prompt = prompt_of(PREFILL_TOKENS, scorer.vocabulary.encode)
    prefills_s = {name: [] for name in models}
    for position in range(PREFILL_ROUNDS):
        for name, model in models.items():
            yield Progress(0.5 + 0.1 * position / PREFILL_ROUNDS, f"prefill de {PREFILL_TOKENS} tokens en {name}")
            with scorer.model_alone():
                prefills_s[name].append(timed(lambda model=model: model.prefill(prompt))[0])
    return prefills_s


def _compare(scorer: PrefixCache, models: dict[str, ReadableModel]) -> Work[tuple[dict[str, list[float]], dict[str, list[bool]]]]:
    """KL divergence from the running model, and whether the favourite is the same, at every position of the French passages."""
    reference, *others = models
    kl_nats, same_favourite = ({name: [] for name in models} for _ in range(2))
    passages = read_passages()
    for position, passage in enumerate(passages):
        token_ids = scorer.vocabulary.encode(passage)
        yield Progress(0.6 + 0.4 * position / len(passages), f"lit le texte {position + 1} sur {len(passages)}")
        with scorer.model_alone():
            expected = [softmax(row) for row in models[reference].logits_along(token_ids)]
        kl_nats[reference] += [0.0] * len(expected)  # from itself
        same_favourite[reference] += [True] * len(expected)
        for name in others:
            yield Progress(0.6 + 0.4 * position / len(passages), f"compare le texte {position + 1} sur {len(passages)} en {name}")
            for p, row in zip(expected, models[name].logits_along(token_ids), strict=True):
                kl_nats[name].append(kl_divergence(p, softmax(row)))
                same_favourite[name].append(bool(p.argmax() == row.argmax()))
    return kl_nats, same_favourite
