"""The same question asked again and answered by another arithmetic: which logits change, by how much, and whether the choice does."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inference.distributions import largest
from inference.errors import UserError
from inference.measurement import Progress, Work, within
from inference.models.base import Model
from inference.near_ties import NearTie, find_near_ties, read_sentences
from inference.passages import read_passages
from inference.precisions import ReadableModel
from inference.prefix_cache import PrefixCache
from inference.routes import AGAIN, ALONE, BATCH, BATCHES, Arithmetic, Route, read_by, routes_of
from inference.summation import Sums

PROMPT = "Le chat dort sur le"
LEFT_OUT = tuple(f"lot de {rows}" for rows in BATCHES[:-1])
"""Of the search: one size of batch is enough there."""
SERVED = "bfloat16"
"""What servers commonly compute in."""
EDGES = 10.0 ** np.arange(-9, 1.5, 0.5)
"""Of the histogram's bins: two to a power of ten."""
WRITTEN = 12
PASSAGE_TOKENS = 32
"""Eight of that length in one pass are read in half a second or so: nobody else waits longer."""


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


def _compare(scorer: PrefixCache, routes: Mapping[str, Route], texts: Sequence[tuple[int, ...]]) -> Work[tuple[Comparison, ...]]:
    """Each text by each route against the text alone; first of all the text alone once more, which is the control."""
    others = {AGAIN: routes[ALONE]} | {name: route for name, route in routes.items() if name != ALONE}
    comparisons = []
    for position, token_ids in enumerate(texts):
        yield Progress(position / len(texts), f"lit {len(token_ids)} tokens, {ALONE}")
        alone = read_by(scorer, scorer.model, routes[ALONE], token_ids)
        for rank, (name, route) in enumerate(others.items()):
            yield Progress((position + rank / len(others)) / len(texts), f"lit {len(token_ids)} tokens, {name}")
            comparisons.append(Comparison.of(len(token_ids), name, alone, read_by(scorer, scorer.model, route, token_ids)))
    return tuple(comparisons)


def _search(scorer: PrefixCache, model: ReadableModel, arithmetic: Arithmetic, sentences: Sequence[tuple[int, ...]]) -> Work[Search]:
    routes = {route: function for route, function in routes_of(arithmetic).items() if route not in LEFT_OUT}
    positions, near_ties = yield from within(0.0, 0.75, find_near_ties(scorer, model, routes, sentences))
    fork = yield from within(0.75, 1.0, _follow(scorer, model, routes, near_ties))
    return Search(model.info.dtype, positions, near_ties, fork)


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
        written += (int(read_by(scorer, model, route, token_ids + written).argmax()),)
    return written
