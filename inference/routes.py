"""The ways to compute the logits that follow a text: alone, in a batch, with the cache, on another number of threads."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from inference.models.base import Model
from inference.prefix_cache import PrefixCache

ALONE, AGAIN, CACHE = "seul", "seul, une seconde fois", "avec le cache"
BATCHES = (2, 8)
BATCH = f"lot de {BATCHES[-1]}"


class Arithmetic(Protocol):
    """What computes the same logits in several ways: `inference.models.batched`."""

    def logits_in_batch(self, model: Model, texts: Sequence[Sequence[int]]) -> np.ndarray: ...

    def thread_count(self) -> int: ...

    def logits_on_threads(self, model: Model, token_ids: Sequence[int], threads: int) -> np.ndarray: ...

    def logit_terms(self, model: Model, token_ids: Sequence[int], token_id: int) -> tuple[np.ndarray, float]: ...


Route = Callable[[Model, tuple[int, ...]], np.ndarray]
"""A way to compute the logits (vocab_size,) that follow two tokens or more."""


class CachedRoute:
    """Reads all of a text but its last token, then that one after them; a text that grows by a token costs one decode."""

    def __init__(self):
        self._state = None

    def __call__(self, model: Model, token_ids: tuple[int, ...]) -> np.ndarray:
        if self._state is None or self._state.token_ids != token_ids[:-1]:
            self._state = model.prefill(token_ids[:-1]).state
        forward = model.decode(token_ids[-1], self._state)
        self._state = forward.state
        return forward.scores.logits


def routes_of(arithmetic: Arithmetic) -> dict[str, Route]:
    """By name: the text alone, in batches of itself, its last token decoded with the cache, and on another number of threads."""
    threads = 1 if arithmetic.thread_count() > 1 else 2
    return {
        ALONE: partial(_first_row, arithmetic, 1),
        **{f"lot de {rows}": partial(_first_row, arithmetic, rows) for rows in BATCHES},
        CACHE: CachedRoute(),
        f"sur {threads} fil{'s' if threads > 1 else ''}": lambda model, token_ids: arithmetic.logits_on_threads(model, token_ids, threads),
    }


def _first_row(arithmetic: Arithmetic, rows: int, model: Model, token_ids: tuple[int, ...]) -> np.ndarray:
    return arithmetic.logits_in_batch(model, [token_ids] * rows)[0]


def read_by(scorer: PrefixCache, model: Model, route: Route, token_ids: tuple[int, ...]) -> np.ndarray:
    """By `model`, with everybody else kept out of the scorer's: the two share the processor and the number of threads."""
    with scorer.model_alone():
        return route(model, token_ids)
