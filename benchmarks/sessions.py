"""Thirty visitors who each move a slider once a second, over the server's own WebSocket protocol, on the real model.

A response is timed from the instant the visitor meant to move the slider to the end of the script run it causes, so a server that
falls behind is charged for it. `--gc` leaves Streamlit's own collection on; objects alive once the model is loaded stay frozen.
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
from inference.formatting import decimal

ROOT = Path(__file__).parent.parent
PORT = 8765
SLIDER = "Température"
STOPS = [round(0.05 * position, 2) for position in range(2, 41) if position != 20]


class Visitor:
    """One WebSocket session: opens the page, then moves the temperature slider."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.slider_id = self.fragment_id = self.page_hash = self.address = ""

    async def open(self) -> None:
        self.socket = await websockets.connect(f"ws://127.0.0.1:{PORT}/_stcore/stream", subprotocols=["streamlit"], max_size=None)
        message = BackMsg()
        message.rerun_script.query_string = ""
        await self._run(message)
        assert self.slider_id, "the page shows no temperature slider"

    async def move(self) -> None:
        """Move the slider and wait for the end of the run it causes, which must show the new value in the address."""
        message = BackMsg()
        message.rerun_script.fragment_id = self.fragment_id
        message.rerun_script.page_script_hash = self.page_hash
        state = message.rerun_script.widget_states.widgets.add(id=self.slider_id)
        temperature = decimal(self.random.choice(STOPS))
        state.string_array_value.data.append(temperature)
        await self._run(message)
        assert f"t={temperature.replace(',', '.')}" in self.address.split("&"), f"the slider did not move to {temperature}"

    async def _run(self, message: BackMsg) -> None:
        await self.socket.send(message.SerializeToString())
        while True:
            received = ForwardMsg()
            received.ParseFromString(await self.socket.recv())
            if received.WhichOneof("type") == "script_finished":
                return
            if received.WhichOneof("type") == "new_session":
                self.page_hash = received.new_session.page_script_hash
            if received.WhichOneof("type") == "page_info_changed":
                self.address = received.page_info_changed.query_string
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
        await visitor.move()
        times.append(time.perf_counter() - (start + second))
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
