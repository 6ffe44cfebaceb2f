"""A decode and a prefill while another process keeps a core busy, and while none does, by how torch's threads wait for each other.

Asleep at once, spinning a moment first, as the app asks, or for long, as GNU's OpenMP does by itself. The setting is read once, so each
run is a process of its own; runs are taken in turn, and each is a median.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
from contextlib import contextmanager

from benchmarks.report import machine

ROUNDS = 3
POLICIES = {"asleep": {"GOMP_SPINCOUNT": "0"}, "ours": {}, "spinning": {"GOMP_SPINCOUNT": "300000"}}
"""What each adds to the environment; the last number is the library's default."""

CHILD = """
import json, statistics
from inference.measurement import timed
from inference.models import embedded
model = embedded.load()
ids = model.vocabulary.encode("Le chat dort sur le canapé, et la souris fait la fête. " * 9)[:128]
state = model.prefill(ids).state
decodes = [timed(lambda: model.decode(ids[-1], state))[0] for _ in range(25)][5:]
prefills = [timed(lambda: model.prefill(ids))[0] for _ in range(4)][1:]
print(json.dumps([statistics.median(decodes), statistics.median(prefills)]))
"""


@contextmanager
def neighbour(is_busy: bool):
    """Another process that computes all the time, or nobody."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if is_busy else None
    try:
        yield
    finally:
        if process:
            process.kill()
            process.wait()


def run(policy: dict[str, str]) -> tuple[float, float]:
    """Seconds of a decode and of a prefill."""
    command = [sys.executable, "-W", "ignore", "-c", CHILD]
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | policy).stdout
    return tuple(json.loads(output.splitlines()[-1]))


def main() -> None:
    print(machine())
    cases = list(itertools.product((False, True), POLICIES))
    times = {case: [] for case in cases}
    for _ in range(ROUNDS):
        for is_busy, name in cases:
            with neighbour(is_busy):
                times[is_busy, name].append(run(POLICIES[name]))
    for (is_busy, name), runs in times.items():
        around = "a busy neighbour" if is_busy else "nobody else"
        for what, seconds in zip(("decode", "prefill of 128"), zip(*runs, strict=True), strict=True):
            low, middle, high = min(seconds), statistics.median(seconds), max(seconds)
            print(f"{around}, threads {name}: {what} {middle * 1000:.0f} ms ({low * 1000:.0f} to {high * 1000:.0f})")
        if name != "ours":
            ratios = [other / ours for (other, _), (ours, _) in zip(runs, times[is_busy, "ours"], strict=True)]
            print(f"{around}, threads {name}: a decode takes {statistics.median(ratios):.2f} times ours")


if __name__ == "__main__":
    main()
