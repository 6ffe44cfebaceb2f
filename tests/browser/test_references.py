"""The calculator of costs and the reference pages in a browser: what is typed changes what is read, and hostile text stays text."""

import re

import pytest
from playwright.sync_api import Page, expect

from inference.formatting import french
from tests.browser.axe import violations
from tests.browser.conftest import watched_page
from tests.browser.labs import make_bet, open_lab, read_csv, wait_for_rest

HOSTILE = "<img src=x onerror=alert(1)> $x$ **b**"
REFERENCES = ("Glossaire", "Pour aller plus loin")


def open_reference(page: Page, title: str) -> None:
    page.goto("/")
    page.get_by_role("button", name="Repères").click()
    page.get_by_role("menuitem", name=title).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(title)


def fill(page: Page, label: str, value: str) -> None:
    page.get_by_label(label, exact=True).fill(value)
    page.keyboard.press("Tab")
    wait_for_rest(page)


def test_costs_follow_the_texts_and_the_prices(page):
    open_lab(page, "costs")
    make_bet(page, "costs", 2)
    expect(page.get_by_text(french("Pari gagné : près de 50 000."))).to_be_visible(timeout=60_000)
    fill(page, french("L’invite (4 000 caractères au plus)"), "Le chat dort sur le")
    fill(page, french("La réponse (4 000 caractères au plus)"), HOSTILE)
    expect(page.get_by_text("L’invite fait")).to_contain_text("5 tokens")
    expect(page.get_by_text("GPT-4o, 1er octobre 2024")).to_contain_text("d’après OpenAI")
    fill(page, "Entrée", "1000")
    expect(page.get_by_text("GPT-4o, 1er octobre 2024")).to_have_text("Prix modifiés par vous, à partir de GPT-4o, 1er octobre 2024.")
    fill(page, "Sortie", "0")
    expect(page.get_by_text(re.compile("mille requêtes comme celle-ci"))).to_contain_text("5,00 $")
    table = read_csv(page, 1)
    assert float(table["cumul sans cache ($)"][-1]) == pytest.approx(
        sum(int(table[f"entrée {part} (tokens)"][turn]) for part in ("relue", "nouvelle") for turn in range(20))
    )
    fill(page, french("La réponse (4 000 caractères au plus)"), "")
    expect(page.get_by_text("Une réponse vide")).to_be_visible()


def test_a_term_is_found_and_leads_to_its_page(page):
    open_reference(page, "Glossaire")
    page.get_by_label("Chercher un terme").fill(HOSTILE)
    expect(page.get_by_text("Aucun terme ne contient")).to_contain_text(HOSTILE)
    page.get_by_label("Chercher un terme").fill("TEMPERATURE")
    expect(page.locator("strong").first).to_have_text("Température")
    page.get_by_role("link", name="Un token à la fois").first.click()
    expect(page.locator(".bench")).to_be_visible(timeout=60_000)


@pytest.mark.parametrize("title", REFERENCES)
def test_a_reference_page_is_accessible_and_fits_a_phone(browser, server, title):
    with watched_page(browser, server, reduced_motion="reduce") as page:
        open_reference(page, title)
        wait_for_rest(page)
        for colours in ("light", "dark"):
            page.emulate_media(color_scheme=colours, reduced_motion="reduce")
            assert violations(page) == []
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
