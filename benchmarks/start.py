"""First start and later starts: seconds from a bare process to the first distribution, and peak memory.

Each run is a fresh Python process that imports what the app imports, prepares and loads the model, and reads the example's prompt.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.report import machine

LATER_RUNS = 5

CHILD = """
import time; start = time.perf_counter()
import json, resource, sys
from pathlib import Path
import streamlit, pandas, plotly.graph_objects
from inference.models import embedded
from inference.prefix_cache import PrefixCache
steps = {}
def report(step, fraction):
    steps.setdefault(step, round(time.perf_counter() - start, 2))
scorer = PrefixCache(embedded.load(report, Path(sys.argv[1])))
scorer.scores_after(scorer.vocabulary.encode("Le chat dort sur le"))
status = dict(line.split(":", 1) for line in open("/proc/self/status") if line.startswith(("Vm", "Rss")))
kib = {name: int(status[name].split()[0]) for name in ("VmHWM", "RssAnon", "RssFile")}
print(json.dumps({"seconds": time.perf_counter() - start, "steps": steps, **kib}))
"""


def start(folder: Path) -> dict:
    output = subprocess.run([sys.executable, "-W", "ignore", "-c", CHILD, folder], check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])


def describe(run: dict) -> str:
    gib = {name: run[name] / 2**20 for name in ("VmHWM", "RssAnon", "RssFile")}
    return (
        f"{run['seconds']:.1f} s; peak {gib['VmHWM']:.2f} GiB, at the end {gib['RssAnon']:.2f} GiB of its own"
        f" and {gib['RssFile']:.2f} GiB of mapped files; steps began at {run['steps']}"
    )


def main() -> None:
    print(machine())
    with tempfile.TemporaryDirectory() as cache:
        folder = Path(cache) / "model"
        print("first start:", describe(start(folder)))
        later = [start(folder) for _ in range(LATER_RUNS)]
        seconds = [run["seconds"] for run in later]
        print(f"later starts: median {statistics.median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f})")
        print("a later start:", describe(later[0]))


if __name__ == "__main__":
    main()
