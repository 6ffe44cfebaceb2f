"""Each lab driven to its end on the real model, by mouse, and its numbers read back. They are checked for sense, never for a time."""

import csv
import re

import pytest
from playwright.sync_api import Page, expect

from inference.formatting import french
from inference.lab_text import read_lab
from tests.browser.axe import violations
from tests.browser.conftest import watched_page

LABS = {
    "forward_pass": "Passe avant",
    "prefill_decode": "Prefill et décodage",
    "memory_floor": "Le plancher mémoire",
    "quantization": "Quantification",
    "costs": "Coûts",
}
MEASURE_MS = 300_000
ANDROID = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Mobile Safari/537.36"
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "user_agent": ANDROID}


def open_lab(page: Page, name: str) -> None:
    """From the home page, by the menu."""
    page.goto("/")
    page.get_by_role("button", name="Laboratoires").click()
    page.get_by_role("menuitem", name=LABS[name]).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(read_lab(name).title)


def make_bet(page: Page, name: str, choice: int = 1) -> str:
    answer = read_lab(name).choices()[choice]
    page.get_by_role("radiogroup").get_by_text(answer, exact=True).click()
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


def test_prefill_and_decode_to_the_end(browser, server, page):
    open_lab(page, "prefill_decode")
    make_bet(page, "prefill_decode")
    start(page)
    wait_for_result(page)
    times, texts, cache = (read_csv(page, position) for position in range(3))

    ttft_ms = floats(times["TTFT (ms)"])
    assert times["tokens"] == ["16", "64", "128", "256", "512", "1024"]
    assert ttft_ms[-1] > 4 * ttft_ms[0], "sixty-four times the prompt takes longer to read"
    assert ttft_ms[-1] < 1024 * floats(times["décodage (ms)"])[-1], "reading a token costs less than writing one"
    for low, median, high in zip(*(floats(times[f"TTFT{part} (ms)"]) for part in (", le plus court", "", ", le plus long")), strict=True):
        assert low <= median <= high
    assert sum(floats(texts["avec cache (ms)"])[1:]) < sum(floats(texts["sans cache (ms)"])[1:]), "the cache beats no cache"
    assert cache["mesuré (octets)"] == cache["calcul exact (octets)"]
    assert int(cache["calcul des manuels (octets)"][-1]) > 6 * int(cache["mesuré (octets)"][-1])
    expect(page.get_by_text(french("6,9 fois trop"))).to_be_visible()  # 144 Mio over 21: the tensors' own sizes, whatever the machine

    with watched_page(browser, server) as other:  # what one has measured is there for the next one, after a bet of their own
        open_lab(other, "prefill_decode")
        make_bet(other, "prefill_decode", 0)
        wait_for_result(other)
        expect(other.get_by_role("button", name="Mesurer de nouveau")).to_be_visible()


def test_the_memory_floor_to_the_end_and_its_calculator(page):
    open_lab(page, "memory_floor")
    expect(page.get_by_text(french("41,8 ms par token"))).to_be_visible()  # the sheet's 42 ms: 140 Go at 3.35 To/s
    make_bet(page, "memory_floor")
    start(page)
    wait_for_result(page)
    rounds = read_csv(page, 0)
    assert len(rounds["tour"]) == 25
    assert min(floats(rounds["décodage (ms)"])) > 0
    conclusion = page.get_by_text("La mémoire a débité").inner_text()
    ratio = float(re.search(r"soit ([\d,]+)\sfois le plancher", conclusion)[1].replace(",", "."))
    bandwidth = float(re.search(r"débité ([\d,]+)\sGo/s", conclusion)[1].replace(",", "."))
    floor_ms = float(re.search(r"une fois prend ([\d,]+)\sms", conclusion)[1].replace(",", "."))
    assert ratio > 0.9, "nothing decodes faster than memory is read"
    assert bandwidth == pytest.approx(max(floats(rounds["débit (Go/s)"])), abs=0.06)
    assert floor_ms == pytest.approx(1072.392704 / bandwidth, rel=0.01)


def test_the_calculator_opens_on_what_a_link_says(browser, server):
    context = browser.new_context(base_url=server, locale="fr-FR")
    page = context.new_page()
    page.goto("/memory_floor?machine=Raspberry+Pi+5&bits=8&modele=Llama+3.1+8B")
    expect(page.get_by_text(french("471 ms par token"))).to_be_visible(timeout=60_000)
    expect(page.get_by_text(french("la taille de lot où le calcul devient la limite reste inconnue"))).to_be_visible()
    page.goto("/memory_floor?machine=<img src=x onerror=alert(1)>&bits=-3&modele=")
    expect(page.get_by_text(french("41,8 ms par token"))).to_be_visible(timeout=60_000)
    context.close()


def test_quantization_to_the_end(page):
    open_lab(page, "quantization")
    make_bet(page, "quantization")
    start(page)
    wait_for_result(page)
    table = read_csv(page, 0)
    assert table["précision"] == ["float32", "bfloat16", "int8", "int4"]
    sizes, divergences, agreements = (floats(table[name]) for name in ("poids (Mio)", "KL moyenne (nat)", "même favori (%)"))
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 4, "fewer bits are fewer bytes"
    assert divergences == sorted(divergences) and divergences[0] == 0 < divergences[1], "and further from the reference"
    assert agreements == sorted(agreements, reverse=True) and agreements[0] == 100
    assert divergences[1] < 0.002, "bfloat16 stays within what its choice asked for"

    side = read_csv(page, 2)
    assert "␣lit" in side["token"]
    assert floats(side["float32"])[0] == pytest.approx(0.229, abs=0.001)
    assert sum(floats(side["int4"])) < 1
    step = read_csv(page, 3)  # the whole step in float32, under the bench's settings: 90 % of the mass is kept and drawn from
    expect(page.get_by_text(re.compile("^Le pas entier"))).to_contain_text(french("le même u = 0,5316"))
    assert floats(step["tirage (%)"])[0] == pytest.approx(22.9 / 0.9, abs=0.2)


def test_the_forward_pass_to_the_bench(page):
    open_lab(page, "forward_pass")
    make_bet(page, "forward_pass")
    expect(page.get_by_text(re.compile("^(Pari gagné|Vous aviez parié)"))).to_be_visible(timeout=60_000)
    wait_for_rest(page)
    lens = read_csv(page, 1)
    assert len(lens["couche"]) == 19
    assert lens["rang du favori final"][-1] == "1"
    assert float(lens["sa probabilité"][-1]) == pytest.approx(0.229, abs=0.001)
    attention = read_csv(page, 0)
    last = [float(weight) for reader, weight in zip(attention["lecteur"], attention["attention"], strict=True) if reader == "5 ␣le"]
    assert len(last) == 6 and sum(last) == pytest.approx(1, abs=1e-5)

    page.get_by_label("Texte à suivre").fill("La capitale de la France est")
    page.get_by_label("Texte à suivre").press("Enter")
    expect(page.get_by_text(french("Le texte devient 7 tokens"))).to_be_visible()
    page.get_by_role("button", name=re.compile("^Ouvrir ce texte")).click()
    expect(page.locator(".chip.prompt").last).to_have_text("␣est")
    expect(page.get_by_label("Texte de départ")).to_have_value("La capitale de la France est")


def test_a_text_too_long_to_follow_says_so(page):
    open_lab(page, "forward_pass")
    make_bet(page, "forward_pass")
    page.get_by_label("Texte à suivre").fill("mot " * 90)
    page.get_by_label("Texte à suivre").press("Enter")
    expect(page.get_by_text("Raccourcissez-le.")).to_be_visible()


def test_two_visitors_share_a_measurement_and_one_leaves(browser, server):
    with watched_page(browser, server) as one, watched_page(browser, server) as other:
        for visitor in (one, other):
            open_lab(visitor, "prefill_decode")
            make_bet(visitor, "prefill_decode")
        again = one.get_by_role("button", name=re.compile("^Mesurer"))
        again.click()
        expect(one.get_by_role("progressbar")).to_be_visible()
        other.get_by_role("button", name=re.compile("^Mesurer")).click()
        expect(other.get_by_text(french("Suivie aussi par 1 autre"))).to_be_visible()
        one.get_by_role("button", name="Arrêter la mesure").click()
        expect(one.get_by_role("progressbar")).to_have_count(0)
        expect(one.get_by_role("button", name=re.compile("^Mesurer"))).to_be_visible()
        expect(other.get_by_role("progressbar")).to_be_visible()
        other.get_by_role("button", name="Arrêter la mesure").click()
        expect(other.get_by_role("progressbar")).to_have_count(0)
        other.get_by_role("button", name="Écrire").click()  # and the bench answers
        other.get_by_role("menuitem", name="Un token à la fois").click()
        other.get_by_role("button", name="Token suivant").click()
        expect(other.locator(".chip.written")).to_have_count(1)


@pytest.mark.parametrize("name", LABS)
def test_a_lab_shows_nothing_before_the_bet_and_suits_axe_after_it(browser, server, name):
    with watched_page(browser, server, reduced_motion="reduce") as page:
        open_lab(page, name)
        expect(page.get_by_text("Votre pari.")).to_be_visible()
        expect(page.get_by_role("button", name="Mesurer")).to_have_count(0)
        expect(page.get_by_text(re.compile("^(Pari gagné|Vous aviez parié)"))).to_have_count(0)
        make_bet(page, name)
        expect(page.get_by_text("Source")).to_be_visible(timeout=60_000)
        wait_for_rest(page)
        for colours in ("light", "dark"):
            page.emulate_media(color_scheme=colours, reduced_motion="reduce")
            assert violations(page) == []


@pytest.mark.parametrize("name", LABS)
def test_a_lab_fits_a_phone(browser, server, name):
    with watched_page(browser, server, **PHONE) as page:
        page.goto("/")
        page.get_by_test_id("stExpandSidebarButton").click()
        page.get_by_role("link", name=LABS[name]).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(read_lab(name).title)
        make_bet(page, name)
        expect(page.get_by_text("Source")).to_be_visible(timeout=60_000)
        width = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        assert width <= PHONE["viewport"]["width"]
