"""Axe, the accessibility checker, on the whole page in each of its states, Streamlit's own elements included (see `axe.py`)."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from inference.formatting import french
from tests.browser.axe import violations
from tests.browser.conftest import watched_page

PHONE = {"width": 390, "height": 844}
LONG_PROMPT = "Le chat dort sur le canapé du salon. " * 12


def nothing(page: Page) -> None:
    """A state that the link alone opens."""


def open_help(page: Page) -> None:
    page.get_by_role("button", name="Aide").click()
    expect(page.get_by_role("region", name="Aide")).to_be_visible()


def write_to_the_end(page: Page) -> None:
    page.get_by_role("button", name="Token suivant").click()
    expect(page.get_by_role("status").filter(has_text=french("le plafond de 1 token est atteint"))).to_be_visible()


def leave_a_branch(page: Page) -> None:
    page.get_by_role("button", name="Token suivant").click()
    expect(page.locator(".chip.written")).to_have_count(1)
    page.get_by_role("button", name="Recommencer").click()
    expect(page.locator(".branches")).to_be_visible()


def point_at_a_row(page: Page) -> None:
    page.locator(".candidates tr.chosen").hover()
    expect(page.locator(".candidates tr.chosen.pointed")).to_be_visible()


def open_stops(page: Page) -> None:
    page.get_by_role("button", name="Arrêts").click()
    expect(page.get_by_label("Plafond de tokens")).to_be_visible()


def open_search(page: Page) -> None:
    page.get_by_role("button", name="Forcer un autre token").click()
    page.get_by_label("Chercher dans tout le vocabulaire").fill("chat")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=french("Forcer « ␣chat »"))).to_be_visible()


def open_table(page: Page) -> None:
    page.get_by_role("button", name="Tableau et fichiers").click()
    expect(page.locator("[data-testid=stCode]")).to_be_visible()


@dataclass(frozen=True)
class State:
    """A state of the page: its link, what the visitor then does, and what else the browser is told."""

    query: str = ""
    act: Callable[[Page], None] = nothing
    options: tuple[tuple[str, object], ...] = ()


STATES = {
    "default": State(),
    "walkthrough, the text": State("?visite=1"),
    "walkthrough, the logits": State("?visite=2"),
    "walkthrough, the softmax": State("?visite=3"),
    "walkthrough, the cut": State("?visite=4"),
    "walkthrough, the draw": State("?visite=5"),
    "walkthrough, the loop": State("?visite=6"),
    "help": State(act=open_help),
    "projector": State("?projecteur=1"),
    "illustrative": State("?source=fiche"),
    "greedy": State("?t=0"),
    "most rows cut": State("?p=0.2"),
    "ended by the model": State("?source=fiche&suite=1"),
    "ended by the ceiling": State("?max=1", write_to_the_end),
    "branch": State(act=leave_a_branch),
    "row pointed at": State(act=point_at_a_row),
    "problems in the link": State("?t=nan&suite=999999999"),
    "phone": State(options=(("viewport", PHONE),)),
    "phone, walkthrough": State("?visite=3", options=(("viewport", PHONE),)),
    "dark": State(options=(("color_scheme", "dark"),)),
    "dark, walkthrough": State("?visite=4", options=(("color_scheme", "dark"),)),
    "dark, row pointed at": State(act=point_at_a_row, options=(("color_scheme", "dark"),)),
    "dark, projector": State("?projecteur=1", options=(("color_scheme", "dark"),)),
    "dark, search": State(act=open_search, options=(("color_scheme", "dark"),)),
    "long prompt": State(f"?texte={LONG_PROMPT}"),
    "stops": State(act=open_stops),
    "search": State(act=open_search),
    "table and files": State(act=open_table),
}


@pytest.mark.parametrize("name", STATES)
def test_axe_finds_no_serious_violation(browser, server, name):
    state = STATES[name]
    with watched_page(browser, server, reduced_motion="reduce", **dict(state.options)) as page:
        page.goto(f"/{state.query}")
        expect(page.locator(".sentence .chip").first).to_be_visible(timeout=60_000)
        expect(page.locator("[data-testid=stApp]")).to_have_attribute("data-test-script-state", "notRunning")
        state.act(page)
        expect(page.locator("[data-testid=stApp]")).to_have_attribute("data-test-script-state", "notRunning")
        assert violations(page) == []


def test_axe_sees_what_is_inside_the_bench(page):
    """The bench is in a shadow root: were axe to stop at its edge, the tests above would find nothing."""
    page.goto("/")
    page.locator(".settings").evaluate("element => element.querySelector('label').remove()")
    assert any("label" in violation and "setting-temperature" in violation for violation in violations(page))


def test_the_page_says_it_is_in_french(page):
    page.goto("/")
    expect(page.locator(".bench")).to_be_visible(timeout=60_000)
    expect(page.locator("html")).to_have_attribute("lang", "fr")
