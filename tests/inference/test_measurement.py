"""Measurements whose second step waits for a gate: one at a time, joined, given up, failed, kept."""

import threading
from types import SimpleNamespace

import pytest

from inference.errors import UserError
from inference.measurement import MAX_KEPT, MAX_WAITING, Laboratory, Measurement, Progress, Spread, Work, timed, within

GENERAL = "La mesure a échoué. Réessayez ; si cela dure, le journal du serveur dit pourquoi."


class Gated:
    """Work that enters its second step, waits there for its gate, yields once more, and ends as told."""

    def __init__(self, result):
        self._result = result
        self.made: list[Work] = []
        self.entered, self.gate, self.went_on, self.let_go = (threading.Event() for _ in range(4))

    def __call__(self) -> Work:
        self.made.append(self._steps())
        return self.made[-1]

    def _steps(self) -> Work:
        try:
            yield Progress(0.0, "commence")
            self.entered.set()
            assert self.gate.wait(5)
            yield Progress(0.5, "a passé la porte")
            self.went_on.set()
            if isinstance(self._result, Exception):
                raise self._result
            return self._result
        finally:
            self.let_go.set()


@pytest.fixture
def gated():
    """Makes them, and lets those still waiting at the end of the test go."""
    made = []

    def make(result=None) -> Gated:
        made.append(Gated(result))
        return made[-1]

    yield make
    for work in made:
        work.gate.set()


@pytest.fixture
def lab() -> Laboratory:
    return Laboratory()


def threads_of(key: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == f"measurement-{key}"]


def end(measurement: Measurement) -> Measurement:
    """The measurement, once its thread has nothing left to do."""
    assert measurement.finished.wait(5)
    for thread in threads_of(measurement.key):
        thread.join(5)
    return measurement


def run(lab: Laboratory, key: str, result=None, visitor: str = "ana") -> Measurement:
    """A whole measurement without a gate."""
    work = Gated(result)
    work.gate.set()
    return end(lab.start(key, work, visitor))


# From its start to its result


def test_a_measurement_is_waited_for_then_kept(lab, gated):
    work = gated(42)
    measurement = lab.start("x", work, "ana")
    assert work.entered.wait(5)
    assert lab.under_way("x", "ana") is measurement and lab.latest("x") is None
    assert (measurement.state, measurement.progress, measurement.result) == ("running", Progress(0.0, "commence"), None)
    assert measurement.ended is None and not measurement.finished.is_set()
    work.gate.set()
    end(measurement)
    assert (measurement.state, measurement.progress.fraction, measurement.result, measurement.error) == ("done", 0.5, 42, "")
    assert measurement.ended.tzinfo and measurement.duration_s > 0
    assert lab.under_way("x", "ana") is None and lab.latest("x") is measurement


def test_one_measurement_at_a_time(lab, gated):
    first, second = gated(1), gated(2)
    one = lab.start("x", first, "ana")
    assert first.entered.wait(5)
    two = lab.start("y", second, "bob")
    assert not second.entered.wait(0.2)
    assert (one.state, two.state, two.progress) == ("running", "waiting", Progress(0.0, "attend son tour"))
    assert lab.under_way("y", "bob") is two
    for work in (second, first):
        work.gate.set()
    assert (end(one).result, end(two).result) == (1, 2)


def test_two_laboratories_do_not_wait_for_each_other(lab, gated):
    work = gated()
    lab.start("x", work, "ana")
    assert work.entered.wait(5)
    assert run(Laboratory(), "y", 2).result == 2


@pytest.mark.parametrize("is_stopped", [True, False], ids=["stopped", "failed"])
def test_a_measurement_that_does_not_come_to_its_end_lets_the_next_one_run(lab, gated, is_stopped):
    work = gated(MemoryError("no room"))
    measurement = lab.start("x", work, "ana")
    assert work.entered.wait(5)
    if is_stopped:
        measurement.give_up("ana")
    work.gate.set()
    assert run(lab, "y", 2).result == 2
    assert end(measurement).state == ("cancelled" if is_stopped else "failed")


# Several visitors


def test_a_second_visitor_joins_the_measurement_under_way(lab, gated):
    work, never = gated(42), gated(43)
    measurement = lab.start("x", work, "ana")
    assert work.entered.wait(5)
    assert lab.start("x", never, "bob") is measurement and not never.made
    assert [lab.under_way("x", visitor) for visitor in ("ana", "bob", "eve")] == [measurement, measurement, None]
    assert lab.is_under_way("x") and not lab.is_under_way("y")
    work.gate.set()
    assert end(measurement).result == 42
    assert not lab.is_under_way("x")


def test_a_visitor_joins_a_measurement_that_still_waits_for_its_turn(lab, gated):
    work, waiting, never = gated(), gated(42), gated(43)
    lab.start("x", work, "ana")
    assert work.entered.wait(5)
    measurement = lab.start("y", waiting, "ana")
    assert lab.start("y", never, "bob") is measurement and not never.made
    for each in (work, waiting):
        each.gate.set()
    assert end(measurement).result == 42


def test_one_gives_up_and_the_other_still_gets_the_result(lab, gated):
    work = gated(42)
    measurement = lab.start("x", work, "ana")
    assert work.entered.wait(5)
    lab.start("x", work, "bob")
    measurement.give_up("ana")
    assert lab.under_way("x", "ana") is None and lab.under_way("x", "bob") is measurement
    work.gate.set()
    assert (end(measurement).state, measurement.result) == ("done", 42)
    assert lab.latest("x") is measurement


def test_once_nobody_wants_it_the_work_stops_between_two_steps_and_lets_go(lab, gated):
    work = gated(42)
    measurement = lab.start("x", work, "ana")
    assert work.entered.wait(5)
    lab.start("x", work, "bob")
    for visitor in ("ana", "bob"):
        measurement.give_up(visitor)
    assert not work.let_go.is_set() and measurement.state == "running", "a step is never interrupted"
    work.gate.set()
    assert (end(measurement).state, measurement.result, measurement.error) == ("cancelled", None, "")
    assert work.let_go.is_set() and not work.went_on.is_set()
    assert work.made[0].gi_frame is None
    assert [lab.under_way("x", visitor) for visitor in ("ana", "bob")] == [None, None] and lab.latest("x") is None


def test_given_up_before_its_turn_it_never_begins(lab, gated):
    work, waiting = gated(), gated()
    lab.start("x", work, "ana")
    assert work.entered.wait(5)
    measurement = lab.start("y", waiting, "bob")
    measurement.give_up("bob")
    assert lab.under_way("y", "bob") is None
    work.gate.set()
    assert end(measurement).state == "cancelled"
    assert waiting.made[0].gi_frame is None and not waiting.entered.is_set()


def test_giving_up_what_one_never_asked_for_changes_nothing(lab, gated):
    work = gated(42)
    measurement = lab.start("x", work, "ana")
    measurement.give_up("eve")
    work.gate.set()
    assert end(measurement).result == 42


def test_asking_again_after_giving_up_measures_anew(lab, gated):
    """Even while the one given up is still in its last step."""
    stopped, again = gated(1), gated(2)
    first = lab.start("x", stopped, "ana")
    assert stopped.entered.wait(5)
    first.give_up("ana")
    second = lab.start("x", again, "ana")
    assert second is not first and lab.under_way("x", "ana") is second and second.state == "waiting"
    for work in (stopped, again):
        work.gate.set()
    assert (end(first).state, end(second).state, lab.latest("x").result) == ("cancelled", "done", 2)


# Failures


def test_our_own_errors_are_said_as_they_are(lab, caplog):
    measurement = run(lab, "x", UserError("Trop long."))
    assert (measurement.state, measurement.error, measurement.result) == ("failed", "Trop long.", None)
    assert measurement.ended and not caplog.records


def test_other_errors_are_told_in_general_and_logged_in_full(lab, caplog):
    measurement = run(lab, "x", MemoryError("a detail for the log"))
    assert (measurement.state, measurement.error) == ("failed", GENERAL)
    assert "a detail for the log" in caplog.text and "Traceback" in caplog.text


def test_a_failure_is_shown_to_those_who_waited_until_they_have_read_it(lab, gated):
    work = gated(UserError("Trop long."))
    measurement = lab.start("x", work, "ana")
    lab.start("x", work, "bob")
    work.gate.set()
    end(measurement)
    assert [lab.under_way("x", visitor) for visitor in ("ana", "bob", "eve")] == [measurement, measurement, None]
    measurement.give_up("ana")
    assert [lab.under_way("x", visitor) for visitor in ("ana", "bob")] == [None, measurement]
    assert work.let_go.is_set() and work.made[0].gi_frame is None
    assert run(lab, "x", 2, "bob").result == 2


def test_work_that_cannot_be_made_leaves_nothing_to_wait_for(lab):
    def fail():
        raise MemoryError

    with pytest.raises(MemoryError):
        lab.start("x", fail, "ana")
    assert lab.under_way("x", "ana") is None
    assert run(lab, "x", 2).result == 2


# What is kept


def test_the_result_is_kept_for_the_next_visitor_until_a_newer_one(lab, gated):
    first = run(lab, "x", 1)
    assert lab.latest("x") is first and lab.latest("y") is None
    work = gated(2)
    second = lab.start("x", work, "bob")
    assert lab.latest("x") is first
    work.gate.set()
    assert lab.latest(end(second).key) is second


def test_the_result_is_kept_by_the_time_the_measurement_is_said_to_be_finished(lab, gated):
    """Or a page drawn in between would offer to measure again."""
    found = []

    class Watched(threading.Event):
        def set(self):
            found.append(lab.latest("x"))
            super().set()

    work = gated(42)
    measurement = lab.start("x", work, "ana")
    assert work.entered.wait(5)
    measurement.finished = Watched()
    work.gate.set()
    assert end(measurement).state == "done"
    assert found == [measurement]


def test_neither_a_failure_nor_a_cancellation_takes_the_place_of_a_result(lab, gated):
    kept = run(lab, "x", 1)
    assert run(lab, "x", UserError("Trop long.")).state == "failed"
    work = gated(3)
    stopped = lab.start("x", work, "ana")
    assert work.entered.wait(5)
    stopped.give_up("ana")
    work.gate.set()
    assert end(stopped).state == "cancelled"
    assert lab.latest("x") is kept


def test_the_last_results_are_kept_and_no_others(lab):
    for number in range(MAX_KEPT):
        run(lab, f"{number}", number)
    run(lab, "0", "again")
    run(lab, "one more")
    assert lab.latest("1") is None
    assert lab.latest("0").result == "again"
    assert [lab.latest(f"{number}").result for number in range(2, MAX_KEPT)] == list(range(2, MAX_KEPT))


# Who may wait


def test_so_many_measurements_wait_and_no_more(lab, gated):
    works = [gated(number) for number in range(MAX_WAITING)]
    measurements = [lab.start(f"{number}", work, "ana") for number, work in enumerate(works)]
    never = gated()
    with pytest.raises(UserError, match="Trop de mesures attendent déjà leur tour"):
        lab.start("one more", never, "ana")
    assert not never.made and lab.under_way("one more", "ana") is None
    assert lab.start("3", never, "bob") is measurements[3], "joining is always possible"
    for work in works:
        work.gate.set()
    assert [end(measurement).result for measurement in measurements] == list(range(MAX_WAITING))
    assert run(lab, "one more", 42).result == 42


def test_starting_and_stopping_again_and_again_makes_no_more_of_them_wait(lab, gated):
    work = gated()
    lab.start("x", work, "ana")
    assert work.entered.wait(5)
    for _ in range(3 * MAX_WAITING):
        try:
            lab.start("y", gated(), "bob").give_up("bob")
        except UserError:
            break
    assert len(threads_of("y")) < MAX_WAITING


# Timings


@pytest.mark.parametrize(
    ("seconds", "spread"),
    [
        ([3.0], Spread(3, 3, 3, 1)),
        ([5.0, 1.0, 2.0], Spread(2, 1, 5, 3)),
        ((4.0, 1.0, 2.0, 9.0), Spread(3, 1, 9, 4)),
    ],
)
def test_a_spread_is_a_median_and_two_ends(seconds, spread):
    assert Spread.of(seconds) == spread


def test_a_spread_of_nothing_is_refused():
    with pytest.raises(ValueError, match="nothing was timed"):
        Spread.of([])


def test_a_call_is_timed_from_just_before_to_just_after(monkeypatch):
    clock = iter([10.0, 12.5])
    monkeypatch.setattr("inference.measurement.time", SimpleNamespace(perf_counter=lambda: next(clock)))
    assert timed(lambda: "result") == (2.5, "result")


@pytest.mark.parametrize(("seconds", "is_steady"), [([1, 1, 1], True), ([1, 1.9, 9], True), ([1, 2, 2], False), ([0.1, 1.1, 1.2], False)])
def test_a_machine_busy_with_something_else_shows(seconds, is_steady):
    assert Spread.of(seconds).is_steady is is_steady


def test_a_part_of_a_measurement_has_its_share_of_the_progress_and_is_closed_with_the_whole():
    closed = []

    def work() -> Work[str]:
        try:
            yield Progress(0.0, "a")
            yield Progress(1.0, "b")
            return "result"
        finally:
            closed.append(True)

    part = within(0.25, 0.75, work())
    assert [next(part).fraction, next(part).fraction] == [0.25, 0.75]
    with pytest.raises(StopIteration) as end:
        next(part)
    assert end.value.value == "result"
    cancelled = within(0, 1, work())
    next(cancelled)
    cancelled.close()
    assert closed == [True, True]
