"""The same question asked again and answered by another arithmetic: which logits change, by how much, and whether the choice does."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from inference.distributions import largest
from inference.errors import UserError
from inference.measurement import Progress, Work, within
from inference.models.base import Model
from inference.passages import read_passages
from inference.precisions import ReadableModel
from inference.prefix_cache import PrefixCache
from inference.summation import Sums

PROMPT = "Le chat dort sur le"
ALONE, AGAIN, CACHE = "seul", "seul, une seconde fois", "avec le cache"
BATCHES = (2, 8)
BATCH = f"lot de {BATCHES[-1]}"
LEFT_OUT = tuple(f"lot de {rows}" for rows in BATCHES[:-1])
"""Of the search: one size of batch is enough there."""
SERVED = "bfloat16"
"""What servers commonly compute in."""
EDGES = 10.0 ** np.arange(-9, 1.5, 0.5)
"""Of the histogram's bins: two to a power of ten."""
CHECKED = 12
"""Places, those where two tokens are nearest to a tie, that are computed again every other way."""
WRITTEN = 12
PASSAGE_TOKENS = 32
"""Eight of that length in one pass are read in half a second or so: nobody else waits longer."""


class Arithmetic(Protocol):
    """What computes the same logits in several ways: `inference.models.batched`."""

    def logits_in_batch(self, model: Model, texts: Sequence[Sequence[int]]) -> np.ndarray: ...

    def thread_count(self) -> int: ...

    def logits_on_threads(self, model: Model, token_ids: Sequence[int], threads: int) -> np.ndarray: ...

    def logit_terms(self, model: Model, token_ids: Sequence[int], token_id: int) -> tuple[np.ndarray, float]: ...


Route = Callable[[Model, tuple[int, ...]], np.ndarray]
"""A way to compute the logits (vocab_size,) that follow two tokens or more."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """The logits after a text, computed by some route, against those of the text read alone.

    differing   how many of the `vocabulary` logits are not the same number.
    largest     of the absolute differences.
    counts      (len(EDGES) - 1,) logits that differ, by absolute difference; the first and last bins also hold what lies beyond them.
    favourites  ids of the most likely token: alone, then by that route.
    gap         by how much the favourite, alone, is ahead of the runner-up.
    """

    tokens: int
    route: str
    vocabulary: int
    differing: int
    largest: float
    counts: np.ndarray
    favourites: tuple[int, int]
    gap: float

    @classmethod
    def of(cls, tokens: int, route: str, alone: np.ndarray, other: np.ndarray) -> "Comparison":
        difference = np.abs(alone.astype(np.float64) - other)
        favourite, runner_up = largest(alone, 2)
        return cls(
            tokens=tokens,
            route=route,
            vocabulary=len(alone),
            differing=int(np.count_nonzero(alone != other)),
            largest=float(difference.max()),
            counts=np.histogram(difference[difference > 0].clip(EDGES[0], EDGES[-1]), EDGES)[0],
            favourites=(int(favourite), int(other.argmax())),
            gap=float(alone[favourite]) - float(alone[runner_up]),
        )

    @property
    def share(self) -> float:
        """Of the logits, those that differ."""
        return self.differing / self.vocabulary

    @property
    def flips(self) -> bool:
        return self.favourites[0] != self.favourites[1]


@dataclass(frozen=True)
class NearTie:
    """A place where two tokens are nearly equal, computed every way.

    pair        the favourite and the runner-up, alone.
    gaps        by route, `ALONE` first: logit of the first of the pair minus logit of the second. Below 0, the order has changed.
    favourites  by route: the most likely token.
    again       the most likely token alone, a second time: the control, computed where a route has another favourite, else None.
    """

    token_ids: tuple[int, ...]
    pair: tuple[int, int]
    gaps: dict[str, float]
    favourites: dict[str, int]
    again: int | None = None

    @property
    def gap(self) -> float:
        return self.gaps[ALONE]

    @property
    def change(self) -> float:
        """The most that another route does to the gap."""
        return max(abs(gap - self.gap) for gap in self.gaps.values())

    @property
    def is_unstable(self) -> bool:
        """Whether `ALONE` does not even agree with itself: what another route changes is then nothing of its own."""
        return self.again not in (None, self.favourites[ALONE])

    @property
    def flipped_by(self) -> tuple[str, ...]:
        """The routes whose favourite is another token than the one `ALONE` gives twice."""
        if self.again != self.favourites[ALONE]:
            return ()
        return tuple(route for route, token_id in self.favourites.items() if token_id != self.again)


@dataclass(frozen=True)
class Fork:
    """Two greedy continuations of one text, different from their first token on: each token of `alone` is computed by the route
    `ALONE`, each of `other` by `route`."""

    token_ids: tuple[int, ...]
    route: str
    alone: tuple[int, ...]
    other: tuple[int, ...]


@dataclass(frozen=True)
class Search:
    """For a favourite that flips, in one precision.

    positions  of the sentences, searched for near-ties.
    near_ties  the nearest of them, by increasing gap.
    fork       where a favourite flipped; None when none did.
    """

    precision: str
    positions: int
    near_ties: tuple[NearTie, ...]
    fork: Fork | None

    @property
    def flipped(self) -> tuple[NearTie, ...]:
        return tuple(one for one in self.near_ties if one.flipped_by)

    @property
    def unstable(self) -> tuple[NearTie, ...]:
        return tuple(one for one in self.near_ties if one.is_unstable)


@dataclass(frozen=True)
class TemperatureZero:
    """comparisons  of two texts, a short prompt then a passage, each by every route in the same order.
    searches     in the precision of the running model, then in bfloat16 where that is another.
    """

    comparisons: tuple[Comparison, ...]
    searches: tuple[Search, ...]
    sums: Sums


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


def measure(
    scorer: PrefixCache, arithmetic: Arithmetic, open_precision: Callable[[ReadableModel, str], ReadableModel]
) -> Work[TemperatureZero]:
    """Texts are cut to the model's context, with room for the continuations. Raises `UserError` when that leaves too little."""
    room = scorer.info.context_length - WRITTEN
    if room < len(scorer.vocabulary.encode(PROMPT)):
        raise UserError("Le contexte de ce modèle est trop court pour cette mesure.")
    prompt, passage, *sentences = (scorer.vocabulary.encode(text)[:room] for text in (PROMPT, read_passages()[0], *read_sentences()))
    passage = passage[:PASSAGE_TOKENS]
    with scorer.model_alone() as model:
        favourite_id = int(arithmetic.logits_in_batch(model, [prompt])[0].argmax())
        sums = Sums(favourite_id, *arithmetic.logit_terms(model, prompt, favourite_id))
    comparisons = yield from within(0.0, 0.2, _compare(scorer, routes_of(arithmetic), (prompt, passage)))
    searches = [(yield from within(0.2, 0.6, _search(scorer, scorer.model, arithmetic, sentences)))]
    if scorer.info.dtype != SERVED:
        yield Progress(0.6, f"range les poids en {SERVED}")
        served = open_precision(scorer.model, SERVED)
        searches.append((yield from within(0.62, 1.0, _search(scorer, served, arithmetic, sentences))))
    return TemperatureZero(comparisons, tuple(searches), sums)


def read_sentences() -> tuple[str, ...]:
    """Of the passages."""
    return tuple(sentence for passage in read_passages() for sentence in re.split(r"(?<=[.?]) (?=[A-ZÉ])", passage))


def _read(scorer: PrefixCache, model: Model, route: Route, token_ids: tuple[int, ...]) -> np.ndarray:
    """By `model`, with everybody else kept out of the scorer's: the two share the processor and the number of threads."""
    with scorer.model_alone():
        return route(model, token_ids)


def _compare(scorer: PrefixCache, routes: Mapping[str, Route], texts: Sequence[tuple[int, ...]]) -> Work[tuple[Comparison, ...]]:
    """Each text by each route against the text alone; first of all the text alone once more, which is the control."""
    others = {AGAIN: routes[ALONE]} | {name: route for name, route in routes.items() if name != ALONE}
    comparisons = []
    for position, token_ids in enumerate(texts):
        yield Progress(position / len(texts), f"lit {len(token_ids)} tokens, {ALONE}")
        alone = _read(scorer, scorer.model, routes[ALONE], token_ids)
        for rank, (name, route) in enumerate(others.items()):
            yield Progress((position + rank / len(others)) / len(texts), f"lit {len(token_ids)} tokens, {name}")
            comparisons.append(Comparison.of(len(token_ids), name, alone, _read(scorer, scorer.model, route, token_ids)))
    return tuple(comparisons)


def _search(scorer: PrefixCache, model: ReadableModel, arithmetic: Arithmetic, sentences: Sequence[tuple[int, ...]]) -> Work[Search]:
    routes = {route: function for route, function in routes_of(arithmetic).items() if route not in LEFT_OUT}
    positions, near_ties = yield from within(0.0, 0.75, find_near_ties(scorer, model, routes, sentences))
    fork = yield from within(0.75, 1.0, _follow(scorer, model, routes, near_ties))
    return Search(model.info.dtype, positions, near_ties, fork)


def find_near_ties(
    scorer: PrefixCache, model: ReadableModel, routes: Mapping[str, Route], sentences: Sequence[tuple[int, ...]], checked: int = CHECKED
) -> Work[tuple[int, tuple[NearTie, ...]]]:
    """How many positions the sentences have, the first of each apart, and the `checked` nearest to a tie, by increasing gap.

    The routes, `ALONE` first, are those of `routes_of`, all or some; `model` is the scorer's, or a copy of it in another precision.
    """
    positions, places = yield from within(0.0, 0.3, _nearest(scorer, model, sentences, checked))
    near_ties = []
    for position, token_ids in enumerate(places):
        doing = f"presque ex æquo {position + 1} sur {len(places)}, en {model.info.dtype}"
        place = _compute_every_way(scorer, model, routes, token_ids, doing)
        near_ties.append((yield from within(0.3 + 0.7 * position / len(places), 0.3 + 0.7 * (position + 1) / len(places), place)))
    return positions, tuple(sorted(near_ties, key=lambda one: one.gap))


def _compute_every_way(
    scorer: PrefixCache, model: Model, routes: Mapping[str, Route], token_ids: tuple[int, ...], doing: str
) -> Work[NearTie]:
    gaps, favourites, again = {}, {}, None
    for rank, (name, route) in enumerate(routes.items()):
        yield Progress(rank / (len(routes) + 1), f"{doing}, {name}")
        logits = _read(scorer, model, route, token_ids)
        if name == ALONE:
            first, second = largest(logits, 2).tolist()
        gaps[name] = float(logits[first]) - float(logits[second])
        favourites[name] = int(logits.argmax())
    if len(set(favourites.values())) > 1:
        yield Progress(len(routes) / (len(routes) + 1), f"{doing}, {AGAIN}")
        again = int(_read(scorer, model, routes[ALONE], token_ids).argmax())
    return NearTie(token_ids, (first, second), gaps, favourites, again)


def _nearest(
    scorer: PrefixCache, model: ReadableModel, sentences: Sequence[tuple[int, ...]], checked: int
) -> Work[tuple[int, list[tuple[int, ...]]]]:
    """How many positions there are, and the texts that end at the nearest to a tie. A sentence's first token is no place: the cache
    needs one before it."""
    found = []
    for position, sentence in enumerate(sentences):
        yield Progress(position / len(sentences), f"cherche des presque ex æquo, phrase {position + 1} sur {len(sentences)}")
        gaps = _read(scorer, model, _gaps, sentence)
        found += [(gap, sentence[:length]) for length, gap in enumerate(gaps.tolist(), start=1) if length > 1]
    return len(found), [token_ids for _, token_ids in sorted(found)[:checked]]


def _gaps(model: ReadableModel, token_ids: tuple[int, ...]) -> np.ndarray:
    """(n,) by how much the favourite is ahead of the runner-up after each token."""
    second, first = np.partition(model.logits_along(token_ids), -2, axis=1)[:, -2:].T
    return first - second


def _follow(scorer: PrefixCache, model: Model, routes: Mapping[str, Route], near_ties: Sequence[NearTie]) -> Work[Fork | None]:
    """Both continuations of the first near-tie that flips, in a batch rather than another way."""
    flips = [(route != BATCH, rank, route) for rank, one in enumerate(near_ties) for route in one.flipped_by]
    if not flips:
        return None
    _, rank, route = min(flips)
    token_ids = near_ties[rank].token_ids
    alone = yield from within(0.0, 0.4, _write(scorer, model, routes[ALONE], token_ids, ALONE))
    other = yield from within(0.4, 1.0, _write(scorer, model, routes[route], token_ids, route))
    return Fork(token_ids, route, alone, other)


def _write(scorer: PrefixCache, model: Model, route: Route, token_ids: tuple[int, ...], name: str) -> Work[tuple[int, ...]]:
    """The favourites one after the other, `WRITTEN` at most, up to the end of the text."""
    written = ()
    while len(written) < WRITTEN and not scorer.info.eos_ids.intersection(written):
        yield Progress(len(written) / WRITTEN, f"écrit la suite, {name}, token {len(written) + 1} sur {WRITTEN}")
        written += (int(_read(scorer, model, route, token_ids + written).argmax()),)
    return written
