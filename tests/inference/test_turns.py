import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from inference import turns
from inference.turns import Turns


@pytest.fixture
def waits(monkeypatch):
    """Of a length a test can tell apart: a rest of 0.2 s, a patience of 1 s."""
    monkeypatch.setattr(turns, "COURTESY_S", 0.2)
    monkeypatch.setattr(turns, "PATIENCE_S", 1.0)


class Log:
    """Who entered, in order. `holding` is set while someone is inside."""

    def __init__(self):
        self.entered: list[str] = []
        self.inside = 0
        self.most_inside = 0

    def take(self, turn, name: str, hold_s: float = 0.0) -> None:
        with turn():
            self.entered.append(name)
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
            time.sleep(hold_s)
            self.inside -= 1


def wait_for_visitors(turn: Turns, count: int) -> None:
    end = time.monotonic() + 10
    while turn._visitors < count:
        assert time.monotonic() < end
        time.sleep(0.001)


def test_one_at_a_time_whoever_asks():
    turn, log = Turns(), Log()
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            pool.submit(log.take, turn.visitor, f"visitor {number}", 0.002)
        for number in range(4):
            pool.submit(log.take, turn.measurement, f"measurement {number}", 0.002)
    assert len(log.entered) == 24
    assert log.most_inside == 1


def test_a_visitor_who_waits_goes_before_the_next_pass_of_a_measurement(waits):
    turn, log = Turns(), Log()

    def passes() -> None:
        for _ in range(3):
            log.take(turn.measurement, "pass", 0.05)

    with ThreadPoolExecutor(2) as pool:
        with turn.measurement():
            asked = pool.submit(log.take, turn.visitor, "visitor")
            wait_for_visitors(turn, 1)
            measuring = pool.submit(passes)
        asked.result(10)
        measuring.result(10)
    assert log.entered == ["visitor", "pass", "pass", "pass"]


def test_a_measurement_rests_while_a_visitors_page_is_drawn_and_no_longer(waits):
    turn = Turns()
    with turn.visitor():
        pass
    start = time.monotonic()
    with turn.measurement():
        rested_s = time.monotonic() - start
    with turn.measurement():
        again_s = time.monotonic() - start - rested_s
    assert 0.15 < rested_s < 0.9
    assert again_s < 0.15


def test_an_announced_visitor_counts_although_the_model_was_not_needed(waits):
    turn = Turns()
    turn.announce_visitor()
    start = time.monotonic()
    with turn.measurement():
        assert time.monotonic() - start > 0.15


def test_a_measurement_goes_on_in_the_end_among_visitors_who_never_stop(waits):
    turn, entered = Turns(), threading.Event()

    def visit() -> None:
        while not entered.is_set():
            with turn.visitor():
                time.sleep(0.01)

    def measure() -> None:
        with turn.measurement():
            entered.set()

    with ThreadPoolExecutor(3) as pool:
        pool.submit(visit)
        pool.submit(visit)
        time.sleep(0.05)
        start = time.monotonic()
        pool.submit(measure)
        was_in = entered.wait(20)
        waited_s = time.monotonic() - start
        entered.set()
    assert was_in
    assert 0.9 < waited_s < 5


def test_an_error_inside_lets_the_next_one_in():
    turn = Turns()
    for one in (turn.visitor, turn.measurement):
        with pytest.raises(MemoryError), one():
            raise MemoryError
    with turn.visitor():
        pass
