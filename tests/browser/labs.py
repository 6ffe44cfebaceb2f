"""Opening a lab, betting, measuring, and reading the file behind a chart."""

import csv
import re

from playwright.sync_api import Page, expect

from inference.lab_text import read_lab
from pages.ui.frame import PAGES

LABS = PAGES["Laboratoires"]
MEASURE_MS = 300_000


def open_lab(page: Page, name: str) -> None:
    """From the home page, by the menu."""
    page.goto("/")
    page.get_by_role("button", name="Laboratoires").click()
    page.get_by_role("menuitem", name=LABS[name]).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(read_lab(name).title)


def make_bet(page: Page, name: str, choice: int = 1) -> str:
    answer = read_lab(name).choices()[choice]
    missing = page.get_by_text("Choisissez d’abord")
    expect(missing.first).to_be_visible()
    others = missing.count() - 1
    page.get_by_role("radiogroup").first.get_by_text(answer, exact=True).click()
    expect(missing).to_have_count(others)
    return answer


def start(page: Page) -> None:
    page.get_by_role("button", name="Mesurer", exact=True).click()
    expect(page.get_by_role("progressbar")).to_be_visible()


def wait_for_result(page: Page) -> None:
    expect(page.get_by_text("Mesuré le")).to_be_visible(timeout=MEASURE_MS)
    wait_for_rest(page)
    expect(page.get_by_text(re.compile("^(Pari gagné|Vous aviez parié)"))).to_be_visible()


def wait_for_rest(page: Page) -> None:
    expect(page.locator("[data-testid=stApp]")).to_have_attribute("data-test-script-state", "notRunning")


def read_csv(page: Page, position: int) -> dict[str, list[str]]:
    """The file behind a chart of the page, by column."""
    expander = page.get_by_test_id("stExpander").nth(position)
    expander.locator("summary").click()
    expect(expander.locator("canvas").first).to_be_visible()  # it comes late, and moves the button
    wait_for_rest(page)
    with page.expect_download() as download:
        expander.get_by_role("button", name="Télécharger (CSV)").press("Enter")
    with open(download.value.path(), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {column: [row[column] for row in rows] for column in rows[0]}


def floats(column: list[str]) -> list[float]:
    return [float(value) for value in column]
