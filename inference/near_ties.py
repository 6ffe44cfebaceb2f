"""Where two tokens are so nearly equal that another way to compute them may change the favourite."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inference.distributions import largest
from inference.measurement import Progress, Work, within
from inference.models.base import Model
from inference.passages import read_passages
from inference.precisions import ReadableModel
from inference.prefix_cache import PrefixCache
from inference.routes import AGAIN, ALONE, Route, read_by

CHECKED = 12
"""Places, those where two tokens are nearest to a tie, that are computed again every other way."""


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


def read_sentences() -> tuple[str, ...]:
    """Of the passages."""
    return tuple(sentence for passage in read_passages() for sentence in re.split(r"(?<=[.?]) (?=[A-ZÉ])", passage))


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
        logits = read_by(scorer, model, route, token_ids)
        if name == ALONE:
            first, second = largest(logits, 2).tolist()
        gaps[name] = float(logits[first]) - float(logits[second])
        favourites[name] = int(logits.argmax())
    if len(set(favourites.values())) > 1:
        yield Progress(len(routes) / (len(routes) + 1), f"{doing}, {AGAIN}")
        again = int(read_by(scorer, model, routes[ALONE], token_ids).argmax())
    return NearTie(token_ids, (first, second), gaps, favourites, again)


def _nearest(
    scorer: PrefixCache, model: ReadableModel, sentences: Sequence[tuple[int, ...]], checked: int
) -> Work[tuple[int, list[tuple[int, ...]]]]:
    """How many positions there are, and the texts that end at the nearest to a tie. A sentence's first token is no place: the cache
    needs one before it."""
    found = []
    for position, sentence in enumerate(sentences):
        yield Progress(position / len(sentences), f"cherche des presque ex æquo, phrase {position + 1} sur {len(sentences)}")
        gaps = read_by(scorer, model, _gaps, sentence)
        found += [(gap, sentence[:length]) for length, gap in enumerate(gaps.tolist(), start=1) if length > 1]
    return len(found), [token_ids for _, token_ids in sorted(found)[:checked]]


def _gaps(model: ReadableModel, token_ids: tuple[int, ...]) -> np.ndarray:
    """(n,) by how much the favourite is ahead of the runner-up after each token."""
    second, first = np.partition(model.logits_along(token_ids), -2, axis=1)[:, -2:].T
    return first - second
