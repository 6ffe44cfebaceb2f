"""Thirty visitors who each move a slider once a second, over the server's own WebSocket protocol, on the real model.

A response is timed from the widget's message to the end of the script run it causes. The same is done with Streamlit's garbage
collector left alone, for comparison: `--gc`.
"""

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks.report import machine

ROOT = Path(__file__).parent.parent
PORT = 8765
SLIDER = "Température"


class Visitor:
    """One WebSocket session: opens the page, then moves the temperature slider."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.slider_id = self.fragment_id = self.page_hash = ""

    async def open(self) -> None:
        self.socket = await websockets.connect(f"ws://127.0.0.1:{PORT}/_stcore/stream", subprotocols=["streamlit"], max_size=None)
        message = BackMsg()
        message.rerun_script.query_string = ""
        await self._run(message)
        assert self.slider_id, "the page shows no temperature slider"

    async def move(self) -> float:
        """Seconds from moving the slider to the end of the run."""
        message = BackMsg()
        message.rerun_script.fragment_id = self.fragment_id
        message.rerun_script.page_script_hash = self.page_hash
        state = message.rerun_script.widget_states.widgets.add(id=self.slider_id)
        state.double_array_value.data.append(round(self.random.uniform(0.1, 2.0), 2))
        start = time.perf_counter()
        await self._run(message)
        return time.perf_counter() - start

    async def _run(self, message: BackMsg) -> None:
        await self.socket.send(message.SerializeToString())
        while True:
            received = ForwardMsg()
            received.ParseFromString(await self.socket.recv())
            if received.WhichOneof("type") == "script_finished":
                return
            if received.WhichOneof("type") == "new_session":
                self.page_hash = received.new_session.page_script_hash
            element = received.delta.new_element
            if element.WhichOneof("type") == "slider" and element.slider.label == SLIDER:
                self.slider_id, self.fragment_id = element.slider.id, received.delta.fragment_id
            if element.WhichOneof("type") == "exception":
                raise RuntimeError(element.exception.message)


async def visit(visitor: Visitor, seconds: int, delay: float) -> list[float]:
    await asyncio.sleep(delay)
    times = []
    start = time.perf_counter()
    for second in range(seconds):
        await asyncio.sleep(max(0.0, start + second - time.perf_counter()))
        times.append(await visitor.move())
    return times


async def measure(count: int, seconds: int) -> list[float]:
    visitors = [Visitor(seed) for seed in range(count)]
    for visitor in visitors:
        await visitor.open()
    results = await asyncio.gather(*(visit(visitor, seconds, position / count) for position, visitor in enumerate(visitors)))
    return [seconds for times in results for seconds in times]


def wait_for_server() -> None:
    import urllib.request

    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/_stcore/health").close()
            return
        except OSError:
            time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visitors", type=int, default=30)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--gc", action="store_true", help="leave Streamlit's garbage collection on (objects stay frozen)")
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true", f"--server.port={PORT}"]
    command += [f"--runner.postScriptGC={str(arguments.gc).lower()}"]
    server = subprocess.Popen(command, cwd=ROOT, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_server()
        print(machine())
        times = sorted(asyncio.run(measure(arguments.visitors, arguments.seconds)))
    finally:
        server.terminate()
        server.wait()
    print(
        f"{arguments.visitors} visitors, one move a second for {arguments.seconds} s, postScriptGC={arguments.gc}: {len(times)} responses,"
        f" median {statistics.median(times) * 1e3:.0f} ms, p95 {times[int(len(times) * 0.95)] * 1e3:.0f} ms, max {times[-1] * 1e3:.0f} ms"
    )


if __name__ == "__main__":
    main()
