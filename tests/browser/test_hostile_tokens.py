"""Tokens that would do harm, were they ever taken for markup, for a formula or for a writing direction: shown, and nothing more.

A copy of the app whose illustrative model knows such tokens, then the real model's own.
"""

import json
import re
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import running_app, watched_page
from tests.conftest import ROOT

HOSTILE = {
    # Token: its label. No spaces, of which a label makes « ␣ »: HTML does without.
    "<img/src=x/onerror=alert(1)>": "<img/src=x/onerror=alert(1)>",
    "</script><script>alert(1)</script>": "</script><script>alert(1)</script>",
    "<svg/onload=alert(1)>": "<svg/onload=alert(1)>",
    "\u202eabc": "⟨U+202E⟩abc",
    "שלום": "שלום",
    "x" * 300: "x" * 300,
    "$x$": "$x$",
    "**gras**": "**gras**",
    ":red[x]": ":red[x]",
    "&amp;": "&amp;",
    "\n": "↵",
    "\u200b": "⟨U+200B⟩",
    "$&{size}": "$&{size}",
}
LABELS = list(HOSTILE.values())
SHARES = [8.0 - 0.1 * rank for rank in range(len(HOSTILE))]
"""In per cent: the order of the rows is that of `HOSTILE`, and each segment is wide enough for its label."""
WIDTHS = (1280, 390)

TOKEN_MARKUP = "[onerror], [onload], img[src='x'], [href^='javascript:'], .katex, body script"
"""What the tokens would become if something parsed them. Streamlit's own scripts are in the head of the page."""


@pytest.fixture(scope="module")
def hostile_app(tmp_path_factory) -> Iterator[str]:
    """The address of a copy of the app that has hostile tokens in its illustrative vocabulary."""
    folder = tmp_path_factory.mktemp("app")
    shutil.copy(ROOT / "app.py", folder)
    for name in (".streamlit", "assets", "inference", "pages"):
        shutil.copytree(ROOT / name, folder / name)
    path = folder / "assets" / "scenarios" / "chat.json"
    scenario = json.loads(path.read_text(encoding="utf-8"))
    scenario["vocabulary"] += HOSTILE
    scenario["rules"] = [{"after": [], "percent": dict(zip(HOSTILE, SHARES, strict=True))}]
    path.write_text(json.dumps(scenario), encoding="utf-8")
    with running_app(folder, folder / "log", {}) as address:
        yield address


@pytest.fixture(params=WIDTHS)
def page(browser, hostile_app, request) -> Iterator[Page]:
    """A page on that app. A dialog, which a script in a token would open, fails the test."""
    with watched_page(browser, hostile_app, viewport={"width": request.param, "height": 800}) as page:
        yield page
        assert page.locator(TOKEN_MARKUP).count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= request.param
        assert page.locator(".bench").evaluate("bench => bench.scrollWidth <= bench.clientWidth")


def open_page(page: Page, query: str) -> None:
    page.goto(f"/?source=fiche&{query}")
    expect(page.locator(".sentence .chip").first).to_be_visible(timeout=60_000)
    settled(page)


def settled(page: Page) -> None:
    expect(page.locator("[data-testid=stApp]")).to_have_attribute("data-test-script-state", "notRunning")


def assert_inert(shown: Locator, labels: list[str]) -> None:
    """Each element holds the label of a token, all of it, as one text; its direction does not spread to what is on the same line."""
    found = shown.evaluate_all(
        """elements => elements.map((element) => {
            const { display, unicodeBidi } = getComputedStyle(element);
            return [element.textContent, element.childElementCount, display !== "inline" || unicodeBidi === "isolate"];
        })"""
    )
    assert found == [[label, 0, True] for label in labels]


def test_rows_and_the_line_of_the_draw(page):
    open_page(page, "p=non")
    assert_inert(page.locator(".candidates .c-token button"), LABELS)
    segments = page.locator(".segment:not([hidden], .others)")
    assert_inert(segments, LABELS)
    assert_inert(page.locator(".draw-caption strong"), [page.locator(".candidates tr.chosen .c-token button").text_content()])


def test_the_card(page):
    open_page(page, "p=non")
    for position, label in enumerate(LABELS):
        page.locator(".candidates tbody tr").nth(position).hover()
        assert_inert(page.locator(".card h2"), [label])


def test_the_greedy_caption(page):
    open_page(page, "t=0")
    assert_inert(page.locator(".draw-caption strong"), LABELS[:1])


def test_the_walkthrough(page):
    for query in ("visite=2", "visite=5&p=non", "visite=2&suite=52f"):
        open_page(page, query)
        text = page.locator(".tour p")
        expect(text).to_contain_text("«")
        assert set(text.evaluate("text => [...text.children].map((child) => child.tagName)")) == {"BDI"}
        assert "{" not in text.text_content().replace("$&{size}", "")


def test_the_text_and_its_branches(page):
    open_page(page, "p=non")
    first = page.locator(".candidates .c-token button").first
    for written, label in enumerate(LABELS, start=1):
        row = page.locator(".candidates .c-token button").nth(written - 1)
        row.click()
        expect(page.locator(".chip.written")).to_have_count(written)
        assert_inert(page.locator(".chip.written button > span").last, [label])
    assert_inert(page.locator(".chip.written button > span"), LABELS)
    expect(first).to_be_visible()
    page.get_by_role("button", name="Recommencer").click()
    expect(page.locator(".branches button")).to_have_count(1)
    assert_inert(page.locator(".branches button"), [f"…{''.join(LABELS).replace('␣', ' ')[-39:]}"])


def test_a_text_that_holds_them_as_its_prompt(page):
    page.goto("/?source=fiche")
    expect(page.locator(".sentence .chip").first).to_be_visible(timeout=60_000)
    typed = [token for token in HOSTILE if token != "\n"]  # which a text field does not take
    page.get_by_label("Texte de départ").fill("".join(typed))
    page.get_by_role("button", name="Écrire la suite").click()
    expect(page.locator(".chip.prompt")).to_have_count(1 + len(typed))
    assert page.locator(".chip.prompt").all_text_contents()[1:] == [HOSTILE[token] for token in typed]


def search(page: Page, wanted: str) -> Locator:
    """Search the vocabulary; the button that forces what was found."""
    page.get_by_label("Chercher dans tout le vocabulaire").fill(wanted)
    page.keyboard.press("Enter")
    settled(page)
    return page.get_by_role("button", name="Forcer «")


def disarmed(text: str) -> re.Pattern:
    """The text, alone, with the joiners that Markdown may have been given to disarm it."""
    return re.compile("^\u2060?" + "\u2060?".join(map(re.escape, text)) + "$")


def test_the_search(page):
    open_page(page, "p=non")
    page.get_by_role("button", name="Forcer un autre token").click()
    for label in LABELS:
        force = search(page, label)
        expect(force).to_have_text(disarmed(f"Forcer « {label} »"))
        assert force.locator("p *").count() == 0
        assert page.locator(TOKEN_MARKUP).count() == 0
    force.click()
    expect(page.locator(".chip.written")).to_have_count(1)


def test_the_table_and_the_chart(page):
    open_page(page, "p=non")
    page.get_by_role("button", name="Tableau et fichiers").click()
    cells = page.locator("[data-testid=stDataFrame] [role=gridcell][aria-colindex='2']")
    expect(cells.first).to_be_attached()
    shown = cells.all_inner_texts()
    assert shown == LABELS[: len(shown)] and shown
    expect(page.locator(".js-plotly-plot .ytick text").first).to_be_attached()
    ticks = page.locator(".js-plotly-plot .ytick text").all_text_contents()
    assert any("<img/src=x/onerror=alert(1)>" in tick for tick in ticks)


@pytest.fixture
def real_page(browser, server) -> Iterator[Page]:
    with watched_page(browser, server) as page:
        yield page
        assert page.locator(TOKEN_MARKUP).count() == 0


@pytest.mark.parametrize("wanted", ["</", "<img>", "<a>", "&#", "$$", "**", "](", "U+202E", "U+200F", "ש"])
def test_the_real_model_s_own_tokens_are_inert_in_the_search_and_in_the_text(real_page, wanted):
    real_page.goto("/")
    expect(real_page.locator(".sentence .chip").first).to_be_visible(timeout=60_000)
    real_page.get_by_role("button", name="Forcer un autre token").click()
    force = search(real_page, wanted)
    expect(force).to_be_visible()
    label = force.text_content().replace("\u2060", "").removeprefix("Forcer « ").removesuffix(" »")
    assert wanted in label
    force.click()
    expect(real_page.locator(".chip.written")).to_have_count(1)
    assert_inert(real_page.locator(".chip.written button > span"), [label])
