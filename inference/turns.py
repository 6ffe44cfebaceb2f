"""Whose turn it is in the model: one thread at a time, visitors before measurements.

Turns are taken in the order they are asked for; a plain lock is not fair, and whoever lets it go takes it again before the next has woken
up. A measurement only asks once no visitor is about.
"""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

COURTESY_S = 0.3
"""How long measurements rest once a visitor has asked for something: what a page takes to be computed, sent and drawn."""
PATIENCE_S = 1.0
"""How long one pass of a measurement waits for visitors at most: a class that never stops slows a measurement, and does not end it."""


class Turns:
    """Visitors ask at once, and wait for one pass of a measurement at most. A measurement asks when no visitor was there lately."""

    def __init__(self):
        self._changed = threading.Condition()
        self._tickets = 0
        self._finished = 0
        self._visitors = 0
        self._last_visit_s = -math.inf

    def announce_visitor(self) -> None:
        """A visitor's page is being computed: measurements rest a moment, whether it needs the model or not."""
        self._last_visit_s = time.monotonic()

    @contextmanager
    def visitor(self) -> Iterator[None]:
        with self._changed:
            self._visitors += 1
        try:
            with self._in_order():
                yield
        finally:
            with self._changed:
                self._visitors -= 1
                self.announce_visitor()
                self._changed.notify_all()

    @contextmanager
    def measurement(self) -> Iterator[None]:
        at_latest_s = time.monotonic() + PATIENCE_S
        with self._changed:
            while (rest_s := min(self._quiet_from_s(), at_latest_s) - time.monotonic()) > 0:
                self._changed.wait(rest_s)
        with self._in_order():
            yield

    def _quiet_from_s(self) -> float:
        return math.inf if self._visitors else self._last_visit_s + COURTESY_S

    @contextmanager
    def _in_order(self) -> Iterator[None]:
        with self._changed:
            ticket, self._tickets = self._tickets, self._tickets + 1
            self._changed.wait_for(lambda: self._finished == ticket)
        try:
            yield
        finally:
            with self._changed:
                self._finished += 1
                self._changed.notify_all()
