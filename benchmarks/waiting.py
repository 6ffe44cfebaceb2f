"""What a visitor waits for the next token while another visitor's lab measures, and what a measurement leaves in memory.

Two real browsers on one server. One starts a lab's measurement; the other, on the bench, asks for one token a second or so, each new to
the server, and each wait is timed from the click to the token on the page. Halfway through the list the lab is then started again and
stopped at once, for the time that takes.
"""

import argparse
import asyncio
import itertools
import statistics
import time

from playwright.async_api import Browser, Page, async_playwright

from benchmarks.report import machine
from benchmarks.server import CHROMIUM, FLAGS, ROOT, resident_bytes, serve
from pages.ui.frame import PAGES

PORT = 8768
ADDRESS = f"http://127.0.0.1:{PORT}"
MEASURED = tuple(name for name in PAGES["Laboratoires"] if name not in ("forward_pass", "costs"))
TOKENS = 10
"""Asked for in a row, before another text."""
PAUSE_S = 1.0
"""What a visitor takes to look at a token."""
chapters = itertools.count(1)


async def open_bench(browser: Browser) -> Page:
    page = await (await browser.new_context(locale="fr-FR")).new_page()
    await page.goto(ADDRESS)
    await page.locator(".bench[data-from=python]").wait_for(timeout=90_000)
    return page


async def start_text(page: Page) -> None:
    """A text the server has never read."""
    await page.get_by_label("Texte de départ").fill(f"Chapitre {next(chapters)}. Il y a longtemps, dans un village")
    await page.get_by_label("Texte de départ").press("Enter")
    await page.locator(".chip.written").first.wait_for(state="detached")


TIME_NEXT = """(sentence) => new Promise((resolve) => {
  const written = () => sentence.querySelectorAll(".chip.written").length;
  const before = written();
  let clicked = null;
  addEventListener("click", (event) => { clicked = event.timeStamp; }, { capture: true, once: true });
  const observer = new MutationObserver(() => {
    if (written() === before) return;
    observer.disconnect();
    resolve((performance.now() - clicked) / 1000);
  });
  observer.observe(sentence, { childList: true });
})"""
"""Seconds from the next click to the next token, by the page's own clock: a driver that polls would add up to half a second."""


async def next_token(page: Page) -> float:
    """Seconds from the click to the token."""
    if await page.locator(".chip.written").count() == TOKENS:
        await start_text(page)
    await asyncio.sleep(PAUSE_S)
    timing = asyncio.create_task(page.locator(".sentence").evaluate(TIME_NEXT))
    await asyncio.sleep(0.1)  # the page is listening
    await page.get_by_role("button", name="Token suivant").click()
    return await asyncio.wait_for(timing, 60)


async def open_lab(browser: Browser, name: str) -> Page:
    page = await (await browser.new_context(locale="fr-FR")).new_page()
    await page.goto(ADDRESS)
    await page.get_by_role("button", name="Laboratoires").click()
    await page.get_by_role("menuitem", name=PAGES["Laboratoires"][name]).click()
    await page.get_by_role("radiogroup").first.locator("label").first.click()
    await page.get_by_role("button", name="Mesurer").first.wait_for(timeout=60_000)
    return page


async def start(lab: Page) -> None:
    await lab.get_by_role("button", name="Mesurer").first.click()
    await lab.get_by_role("progressbar").wait_for(timeout=30_000)


def spread(seconds: list[float]) -> str:
    return f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s, {len(seconds)} tokens"


async def measure(names: list[str], server) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        bench = await open_bench(browser)
        await start_text(bench)
        print("alone:", spread([await next_token(bench) for _ in range(TOKENS)]))
        for name in names:
            lab = await open_lab(browser, name)
            before = resident_bytes(server)
            await start(lab)
            waits = []
            while await lab.get_by_role("progressbar").count():
                waits.append(await next_token(bench))
            await start(lab)
            stopping = time.perf_counter()
            await lab.get_by_role("button", name="Arrêter la mesure").click()
            await lab.get_by_role("progressbar").wait_for(state="detached", timeout=60_000)
            stopped = time.perf_counter() - stopping
            grown = (resident_bytes(server) - before) / 2**20
            print(f"{name}: {spread(waits)}; stopped in {stopped:.2f} s; memory {grown:+.0f} MiB")
            await lab.close()
        await browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labs", nargs="*", default=MEASURED)
    arguments = parser.parse_args()
    print(machine())
    server = serve(ROOT / "app.py", PORT)
    try:
        asyncio.run(measure(arguments.labs, server))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
