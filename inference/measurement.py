"""Measurements that last: one at a time on this machine, with progress, cancelled between two steps, the result kept for the next visit.

A measurement is a generator: it yields its progress between two pieces of work and returns its result. Nothing is interrupted half-way,
so whatever it holds is let go of by its own `finally` and `with`.
"""

import logging
import statistics
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from inference.allocator import release_free_memory
from inference.errors import UserError

MAX_KEPT = 64
MAX_WAITING = 8
STEADY = 2
"""A median this many times the shortest timing says more of the machine's other work than of what was timed."""


@dataclass(frozen=True)
class Progress:
    """How far a measurement is: `fraction` from 0 to 1, and what it is `doing`, in French."""

    fraction: float
    doing: str


Result = TypeVar("Result")
Work = Generator[Progress, None, Result]


@dataclass(frozen=True)
class Spread:
    """Repeated timings of one thing, in seconds: the median, the shortest and the longest."""

    median_s: float
    low_s: float
    high_s: float
    repeats: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Spread":
        """Raises ValueError when there are none."""
        if not seconds:
            raise ValueError("nothing was timed")
        return cls(statistics.median(seconds), min(seconds), max(seconds), len(seconds))

    @property
    def is_steady(self) -> bool:
        """Whether the machine did little else meanwhile: its slowness, when it comes, comes in threes and tens."""
        return self.median_s < STEADY * self.low_s


def within(start: float, end: float, work: Work[Result]) -> Work[Result]:
    """A part of a longer measurement: the same work, its progress going from `start` to `end`."""
    try:
        while True:
            progress = next(work)
            yield Progress(start + (end - start) * progress.fraction, progress.doing)
    except StopIteration as stop:
        return stop.value
    finally:
        work.close()


def timed(function: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds one call takes, and what it returns."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


@dataclass(eq=False)
class Measurement:
    """One measurement, seen by every visitor who asked for it.

    state    "waiting" for its turn, "running", "done", "cancelled" or "failed".
    error    a French sentence when it failed.
    began_s  when its turn came, by `time.monotonic`.
    """

    key: Hashable
    wanted_by: set[str]
    state: str = "waiting"
    progress: Progress = Progress(0.0, "attend son tour")
    result: Any = None
    error: str = ""
    began_s: float | None = None
    ended: datetime | None = None
    duration_s: float = 0.0
    finished: threading.Event = field(default_factory=threading.Event)

    def give_up(self, visitor: str) -> None:
        """This visitor no longer wants it. It stops at its next step once nobody does."""
        self.wanted_by.discard(visitor)

    def run(self, work: Work, turn: threading.Lock) -> str:
        """Do the work, when its turn comes. Returns the state it ends in; whoever keeps the measurement then sets it."""
        try:
            with turn:
                self.state, self.began_s = "running", time.monotonic()
                self.duration_s, is_complete = timed(lambda: self._follow(work))
            return "done" if is_complete else "cancelled"
        except UserError as error:
            self.error = str(error)
        except Exception:
            logging.exception("a measurement failed")
            self.error = "La mesure a échoué. Réessayez ; si cela dure, le journal du serveur dit pourquoi."
        finally:
            self.ended = datetime.now().astimezone()
        return "failed"

    def _follow(self, work: Work) -> bool:
        """Whether the work came to its end before everyone gave up."""
        try:
            while self.wanted_by:
                self.progress = next(work)
        except StopIteration as end:
            self.result = end.value
            return True
        finally:
            work.close()
        return False


class Laboratory:
    """Where the measurements of a server run: one at a time, the last ones kept."""

    def __init__(self):
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._unfinished: set[Measurement] = set()
        self._latest: OrderedDict[Hashable, Measurement] = OrderedDict()
        self._done: OrderedDict[Hashable, Measurement] = OrderedDict()

    def start(self, key: Hashable, work: Callable[[], Work], visitor: str) -> Measurement:
        """Measure, or join the measurement of the same `key` that is under way. Raises `UserError` when too many are waiting."""
        with self._lock:
            if self.is_under_way(key):
                self._latest[key].wanted_by.add(visitor)
                return self._latest[key]
            if len(self._unfinished) >= MAX_WAITING:
                raise UserError("Trop de mesures attendent déjà leur tour. Réessayez dans une minute.")
            measurement, started = Measurement(key, {visitor}), work()
            self._unfinished.add(measurement)
            _keep(self._latest, measurement)
        threading.Thread(target=self._run, args=(measurement, started), daemon=True, name=f"measurement-{key}").start()
        return measurement

    def under_way(self, key: Hashable, visitor: str) -> Measurement | None:
        """The measurement this visitor is waiting for, or that failed while they waited."""
        latest = self._latest.get(key)
        is_awaited = latest and visitor in latest.wanted_by and latest.state in ("waiting", "running", "failed")
        return latest if is_awaited else None

    def is_under_way(self, key: Hashable) -> bool:
        """Whether somebody is waiting for this measurement."""
        latest = self._latest.get(key)
        return latest in self._unfinished and bool(latest.wanted_by)

    def latest(self, key: Hashable) -> Measurement | None:
        """The last one that came to its end, whoever asked for it."""
        return self._done.get(key)

    def _run(self, measurement: Measurement, work: Work) -> None:
        state = measurement.run(work, self._turn)
        release_free_memory()  # copies of the weights, batches of logits: the server is as large as before
        with self._lock:
            if state == "done":
                _keep(self._done, measurement)
            self._unfinished.discard(measurement)
            measurement.state = state
        measurement.finished.set()


def _keep(measurements: OrderedDict[Hashable, Measurement], measurement: Measurement) -> None:
    """As the newest of its kind; the oldest goes once there are too many."""
    measurements[measurement.key] = measurement
    measurements.move_to_end(measurement.key)
    while len(measurements) > MAX_KEPT:
        measurements.popitem(last=False)
