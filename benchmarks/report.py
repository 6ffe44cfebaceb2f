"""What the benchmarks share: timing in turn, and printing with the spread."""

import platform
import statistics
from collections.abc import Callable
from importlib.metadata import version
from typing import TypeVar

from inference import measurement
from inference.machine import describe_machine

Result = TypeVar("Result")


def machine() -> str:
    """Processor, cores and versions, in one line."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("streamlit", "numpy"))
    return f"{describe_machine()}, Python {platform.python_version()}, {packages}"


def timed(function: Callable[[], object]) -> float:
    """Seconds one call takes."""
    return measurement.timed(function)[0]


def finish(work: measurement.Work[Result]) -> Result:
    """The result of a lab's measurement, whatever its progress."""
    try:
        while True:
            next(work)
    except StopIteration as end:
        return end.value


def in_turn(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds per call of each function, taken in turn so that the machine's drift hits them alike. One unmeasured round first."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for round_number in range(rounds + 1):
        for name, function in functions.items():
            seconds = timed(function)
            if round_number:
                times[name].append(seconds)
    return times


def spread_ms(seconds: list[float]) -> str:
    """« median 45.1 ms (44.0 to 52.3) »."""
    return f"median {statistics.median(seconds) * 1e3:.1f} ms ({min(seconds) * 1e3:.1f} to {max(seconds) * 1e3:.1f})"


def ratio(a: list[float], b: list[float]) -> str:
    """Median of the ratios taken round by round, with the middle half of them."""
    ratios = [x / y for x, y in zip(a, b, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.3f} (middle half {low:.3f} to {high:.3f})"
