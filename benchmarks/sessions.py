"""Thirty visitors who each let go of a slider once a second, over the server's own WebSocket protocol, on the real model.

While a slider moves the browser computes alone; the server is asked once, when it is let go. A response is timed from the instant the
visitor meant to let go to the end of the script run it causes, so a server that falls behind is charged for it. `--gc` leaves
Streamlit's own collection on; objects alive once the model is loaded stay frozen.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import websockets
from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks.report import machine

ROOT = Path(__file__).parent.parent
PORT = 8765
TEMPERATURES = [round(0.01 * position, 2) for position in range(5, 201)]


class Visitor:
    """One WebSocket session: opens the page, then sets the temperature.

    bytes_received  of the messages that answered its moves.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.component_id = self.fragment_id = self.page_hash = ""
        self.data: dict = {}
        self.kept_hashes: set[str] = set()
        self.bytes_received = 0

    async def open(self) -> None:
        self.socket = await websockets.connect(f"ws://127.0.0.1:{PORT}/_stcore/stream", subprotocols=["streamlit"], max_size=None)
        message = BackMsg()
        message.rerun_script.query_string = ""
        await self._run(message)
        assert self.component_id, "the page shows no bench"

    async def move(self) -> None:
        """Let go of the temperature slider and wait for the end of the run it causes, which must bring the exact step back."""
        settings = self.data["settings"] | {"temperature": self.random.choice(TEMPERATURES)}
        event = {"seq": self.data["acknowledged"] + 1, "name": "settle", "settings": settings}
        message = BackMsg()
        message.rerun_script.fragment_id = self.fragment_id
        message.rerun_script.page_script_hash = self.page_hash
        message.rerun_script.widget_states.widgets.add(id=self.component_id).json_value = "{}"
        state = message.rerun_script.widget_states.widgets.add(id=_make_trigger_id(self.component_id, "events"))
        state.json_trigger_value = json.dumps([{"event": "events", "value": [event]}])
        self.bytes_received += await self._run(message)
        assert self.data["step"]["settings"] == settings, "the bench did not follow"

    async def _run(self, message: BackMsg) -> int:
        """Ask for a run, as a browser does: with the hashes of the large messages it kept. Returns the bytes received until it ends."""
        message.rerun_script.cached_message_hashes.extend(self.kept_hashes)
        await self.socket.send(message.SerializeToString())
        received_bytes = 0
        while True:
            content = await self.socket.recv()
            received_bytes += len(content)
            received = ForwardMsg()
            received.ParseFromString(content)
            if received.WhichOneof("type") == "script_finished":
                return received_bytes
            if received.WhichOneof("type") == "new_session":
                self.page_hash = received.new_session.page_script_hash
            if received.metadata.cacheable:
                self.kept_hashes.add(received.hash)
            element = received.delta.new_element
            if element.WhichOneof("type") == "bidi_component" and element.bidi_component.component_name == "bench":
                self.component_id, self.fragment_id = element.bidi_component.id, received.delta.fragment_id
                self.data = json.loads(element.bidi_component.json)
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


async def measure(count: int, seconds: int) -> tuple[list[float], float]:
    """Seconds of each response, and bytes of the mean one."""
    visitors = [Visitor(seed) for seed in range(count)]
    for visitor in visitors:
        await visitor.open()
    results = await asyncio.gather(*(visit(visitor, seconds, position / count) for position, visitor in enumerate(visitors)))
    responses = [response for times in results for response in times]
    return responses, sum(visitor.bytes_received for visitor in visitors) / len(responses)


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
        times, response_bytes = asyncio.run(measure(arguments.visitors, arguments.seconds))
        times.sort()
    finally:
        server.terminate()
        server.wait()
    print(
        f"{arguments.visitors} visitors, one move a second for {arguments.seconds} s, postScriptGC={arguments.gc}: {len(times)} responses,"
        f" median {statistics.median(times) * 1e3:.0f} ms, p95 {times[int(len(times) * 0.95)] * 1e3:.0f} ms, max {times[-1] * 1e3:.0f} ms,"
        f" {response_bytes / 1e3:.0f} kB each"
    )


if __name__ == "__main__":
    main()
