"""Five seconds of dragging the temperature, in a real browser on the real model, against the same drag on a plain `st.slider` app and on
a bare page.

Counted: frames whose visible change differs from the frame before, the time from an input event to the numbers in the document and, by
the browser's own trace, to the frame on the screen, and the messages the browser sends to the server meanwhile. The bare page is one
slider and one number, without a server: what this machine's browser takes at least. The plain app shows as many rows of as many logits
with Streamlit's own slider and table; it answers when the slider is let go, so one drag is one change.

With `--pages 30`, as many other pages are open in the same browser, and each in turn moves its own handle by a key and waits for
Python's values while the first one is dragged.
"""

import argparse
import asyncio
import itertools
import statistics
import tempfile
import time
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright

from benchmarks.report import machine
from benchmarks.server import CHROMIUM, FLAGS, ROOT, serve

MOVES_PER_S = 80
BENCH, PLAIN = "http://127.0.0.1:8766", "http://127.0.0.1:8767"
SEEN = "[data-testid=stText]"
"""What the plain app shows of the favourite's probability."""

PLAIN_APP = """
import numpy as np, pandas as pd, streamlit as st
st.set_page_config(layout="wide")
@st.cache_resource
def logits():
    return np.random.default_rng(0).normal(0, 3, 262_144)
temperature = st.slider("Température", 0.01, 2.0, 1.0, 0.01)
scores = logits() / temperature
probs = np.exp(scores - scores.max())
probs /= probs.sum()
top = np.argsort(-logits())[:13]
st.text(f"{probs[top[0]]:.6f}")
st.dataframe(pd.DataFrame({"logit": logits()[top], "scaled": scores[top], "prob": probs[top]}))
"""

WATCH = """(selector) => {
  const find = (root) => {
    const inside = [...root.querySelectorAll("*")].filter((element) => element.shadowRoot);
    return root.querySelector(selector) ?? inside.map((element) => find(element.shadowRoot)).find(Boolean);
  };
  const state = (window.drag = { changes: 0, drawn: [] });
  let seen = find(document);
  let text = seen.textContent;
  addEventListener("input", (event) => state.drawn.push(performance.now() - event.timeStamp));
  const frame = () => {
    if (!seen.isConnected) seen = find(document) ?? seen;
    if (seen.textContent !== text) state.changes += 1;
    text = seen.textContent;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""
"""Counts frames that show something new."""

BARE = """<input type="range" min="0" max="2" step="0.01" style="width: 800px"><p>1</p><script>
document.querySelector("input").oninput = (event) => { document.querySelector("p").textContent = event.target.value; };
</script>"""


async def drag(page: Page, box: dict, seconds: float) -> None:
    """Sweep the handle to and fro at the pace of a mouse, which does not wait for the page.

    The moves go straight to the browser's input: `page.mouse` would also run its own script in the page at each of them.
    """
    middle = box["y"] + box["height"] / 2
    await page.mouse.move(box["x"] + box["width"] / 2, middle)
    await page.mouse.down()
    browser_input = await page.context.new_cdp_session(page)
    moves = []
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        share = abs((elapsed * 0.37 + 0.5) % 2 - 1)
        move = {"type": "mouseMoved", "button": "left", "buttons": 1, "x": box["x"] + box["width"] * (0.03 + 0.94 * share), "y": middle}
        moves.append(asyncio.create_task(browser_input.send("Input.dispatchMouseEvent", move)))
        await asyncio.sleep(max(0.0, start + len(moves) / MOVES_PER_S - time.perf_counter()))
    await asyncio.gather(*moves)
    await page.mouse.up()


async def trace_drag(page: Page, box: dict, seconds: float) -> tuple[list[float], float]:
    """Drag. Milliseconds from each move to the frame that shows it on the screen, moves that shared a frame included; and the moment the
    handle was let go of."""
    tracing = await page.context.browser.new_browser_cdp_session()
    events, complete = [], asyncio.Event()
    tracing.on("Tracing.dataCollected", lambda message: events.extend(message["value"]))
    tracing.on("Tracing.tracingComplete", lambda _: complete.set())
    await tracing.send("Tracing.start", {"traceConfig": {"includedCategories": ["cc", "benchmark", "input"], "excludedCategories": ["*"]}})
    await drag(page, box, seconds)
    released = time.perf_counter()
    await tracing.send("Tracing.end")
    await complete.wait()
    began, latencies = {}, []
    for event in sorted((event for event in events if event["name"] == "EventLatency"), key=lambda event: event["ts"]):
        key = event["pid"], str(event.get("id") or event.get("id2"))
        if event["ph"] == "b":
            began[key] = event
        elif (start := began.pop(key, None)) and start["args"].get("event_latency", {}).get("event_type") == "MOUSE_DRAGGED":
            latencies.append((event["ts"] - start["ts"]) / 1000)
    return latencies, released


async def measure_bare(browser: Browser, seconds: float) -> str:
    page = await browser.new_page(viewport={"width": 1440, "height": 900})
    await page.set_content(BARE)
    latencies, _ = await trace_drag(page, await page.locator("input").bounding_box(), seconds)
    await page.close()
    return f"input to screen {spread(latencies)}"


async def open_bench(browser: Browser, sent: list[float]) -> Page:
    """The bench, ready; the moments at which it sends a message to the server are appended to `sent`."""
    page = await browser.new_page(viewport={"width": 1440, "height": 900})
    page.on("websocket", lambda socket: socket.on("framesent", lambda _: sent.append(time.perf_counter())))
    await page.goto(BENCH)
    await page.locator(".bench[data-from=python]").wait_for(timeout=60_000)
    return page


async def settle_in_turn(pages: list[Page]) -> list[float]:
    """Milliseconds each page waits for Python's values after one key on its temperature; runs until it is cancelled."""
    waits: list[float] = []
    try:
        for key in itertools.cycle(["ArrowLeft", "ArrowRight"]):
            for page in pages:
                handle = page.get_by_role("slider", name="Température")
                await handle.focus()
                start = time.perf_counter()
                await handle.press(key)
                await page.locator(".bench[data-from=python]").wait_for()
                waits.append((time.perf_counter() - start) * 1000)
    except asyncio.CancelledError:
        pass
    return waits


async def measure_bench(browser: Browser, seconds: float, others: list[Page]) -> str:
    sent: list[float] = []
    page = await open_bench(browser, sent)
    box = await page.get_by_role("slider", name="Température").bounding_box()
    await page.evaluate(WATCH, ".candidates tbody")
    before = len(sent)
    settling = asyncio.create_task(settle_in_turn(others)) if others else None
    start = time.perf_counter()
    latencies, released = await trace_drag(page, box, seconds)
    if settling:
        settling.cancel()
    result = await page.evaluate("window.drag")
    during = sum(1 for moment in sent[before:] if moment < released - 0.05)
    await page.locator(".bench[data-from=python]").wait_for()
    await page.close()
    text = (
        f"{result['changes'] / (released - start):.1f} visible changes/s, input to numbers {spread(result['drawn'])}, "
        f"to screen {spread(latencies)}, {during} messages sent during the drag"
    )
    if settling:
        text += f"; the {len(others)} others wait {spread(await settling)} for Python"
    return text


def spread(times_ms: list[float]) -> str:
    ordered = sorted(times_ms)
    return f"median {statistics.median(ordered):.1f} ms, p95 {ordered[int(len(ordered) * 0.95)]:.1f} ms ({len(ordered)})"


async def measure_plain(browser: Browser, seconds: float) -> str:
    page = await browser.new_page(viewport={"width": 1440, "height": 900})
    await page.goto(PLAIN)
    await page.locator(SEEN).wait_for(timeout=60_000)
    await page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    handle = await page.get_by_role("slider").first.bounding_box()
    box = await page.get_by_test_id("stSlider").bounding_box() | {"y": handle["y"], "height": handle["height"]}
    await page.evaluate(WATCH, SEEN)
    start = time.perf_counter()
    await drag(page, box, seconds)
    await page.wait_for_function("window.drag.changes > 0")
    changes = await page.evaluate("window.drag.changes")
    await page.close()
    return f"{changes / (time.perf_counter() - start):.2f} visible changes/s"


async def measure(seconds: float, rounds: int, pages: int) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        others = [await open_bench(browser, []) for _ in range(pages - 1)]
        for _ in range(rounds):
            print("bench:", await measure_bench(browser, seconds, others))
            print("st.slider:", await measure_plain(browser, seconds))
            print("bare page:", await measure_bare(browser, seconds))
        await browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=1)
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.py"
        plain.write_text(PLAIN_APP)
        servers = [serve(ROOT / "app.py", 8766), serve(plain, 8767)]
        try:
            asyncio.run(measure(arguments.seconds, arguments.rounds, arguments.pages))
        finally:
            for server in servers:
                server.terminate()
                server.wait()


if __name__ == "__main__":
    main()
