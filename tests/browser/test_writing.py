"""The page, driven as a visitor would, on the real model."""

import json
import re
from urllib.parse import quote, quote_plus

import pandas as pd
import pytest
from playwright.sync_api import Page, expect

PROMPT = "Le chat dort sur le"


def open_page(page: Page, query: str = "") -> None:
    page.goto(f"/{query}")
    expect(page.locator(".sentence")).to_be_visible(timeout=60_000)
    settled(page)


def settled(page: Page) -> None:
    """Wait until no script run is under way and the table is drawn, unless the text has ended."""
    expect(page.locator("[data-testid=stApp]")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.locator("[data-testid=stDataFrame] [role=row]").nth(1).or_(page.get_by_text("Rien à tirer"))).to_be_attached()


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).first.click()
    settled(page)


def chips(page: Page) -> list[str]:
    return page.locator(".sentence .chip:not(.cursor)").all_inner_texts()


def wait_for_chips(page: Page, count: int) -> None:
    expect(page.locator(".sentence .chip:not(.cursor)")).to_have_count(count)
    settled(page)


def rows(page: Page) -> list[dict[str, str]]:
    """The table of candidates, as a screen reader gets it."""
    header, *body = page.locator("[data-testid=stDataFrame] [role=row]").all()
    names = header.locator("[role=columnheader]").all_inner_texts()
    return [dict(zip(names, row.locator("[role=gridcell]").all_inner_texts(), strict=True)) for row in body]


def row_of(page: Page, token: str) -> dict[str, str]:
    return next(row for row in rows(page) if row["token"] == token)


def percent_of(cell: str) -> float:
    return float(re.match(r"[\d,]+", cell)[0].replace(",", "."))


def u_of(page: Page) -> str:
    return page.locator(".needle .u").text_content()


def move_temperature(page: Page, key: str, times: int, result: str) -> None:
    """Press a key on the slider, then wait for the address to hold the new temperature and the table to follow."""
    table = page.locator("[data-testid=stDataFrame] table")
    before = table.inner_text()
    page.get_by_role("slider", name="Température").focus()
    for _ in range(times):
        page.keyboard.press(key)
    expect(page).to_have_url(re.compile(f"[?&]t={re.escape(result)}(&|$)"))
    expect(table).not_to_have_text(before)
    settled(page)


def test_a_ticked_row_is_forgotten_when_the_rows_change(page):
    """The rest is the last of 17 rows, then of 16: a position kept from one table to the next would point outside."""
    open_page(page, "?source=fiche&t=2&p=non&graine=4")
    page.locator("[data-testid=stDataFrame]").click(position={"x": 18, "y": 35 * len(rows(page)) + 18})
    settled(page)
    move_temperature(page, "Home", 1, "0")
    expect(page.get_by_text("Cochez la ligne")).to_be_visible()
    assert len(rows(page)) == 16


def test_undoing_a_prompt_puts_it_back_in_its_field(page):
    open_page(page)
    page.get_by_label("Texte de départ").fill("Bonjour")
    press(page, "Écrire la suite")
    wait_for_chips(page, 2)
    press(page, "Annuler")
    wait_for_chips(page, 6)
    expect(page.get_by_label("Texte de départ")).to_have_value(PROMPT)


def force_row(page: Page, token: str) -> None:
    """Tick the row of a token with the mouse, then confirm."""
    position = [row["token"] for row in rows(page)].index(token)
    page.locator("[data-testid=stDataFrame]").click(position={"x": 18, "y": 35 * (position + 1) + 18})
    settled(page)
    press(page, f"Forcer « {token} »")


def test_the_page_shows_the_probabilities_measured_in_float32(page):
    open_page(page, "?p=non")
    assert percent_of(row_of(page, "␣lit")["softmax"]) == pytest.approx(22.9, abs=0.1)
    assert percent_of(row_of(page, "␣can")["softmax"]) == pytest.approx(2.2, abs=0.05)
    force_row(page, "␣can")
    wait_for_chips(page, 7)
    assert rows(page)[0]["token"] == "apé"
    assert percent_of(rows(page)[0]["softmax"]) == pytest.approx(95.9, abs=0.1)


def test_ten_steps_then_force_rewind_and_change_the_temperature(page):
    open_page(page)
    for step in range(10):
        press(page, "Token suivant")
        wait_for_chips(page, 7 + step)
    press(page, "Recommencer")
    wait_for_chips(page, 6)
    force_row(page, "␣can")
    wait_for_chips(page, 7)
    assert "forcé" in chips(page)[-1]
    assert rows(page)[0]["token"] == "apé"
    press(page, "Retour")
    wait_for_chips(page, 6)
    u, before = u_of(page), row_of(page, "␣lit")
    move_temperature(page, "ArrowLeft", 8, "0.6")
    assert u_of(page) == u
    after = row_of(page, "␣lit")
    assert percent_of(after["softmax"]) > percent_of(before["softmax"])
    assert after["logit"] == before["logit"] and after["logit ÷ T"] != before["logit ÷ T"]


def test_temperature_zero_is_greedy_and_says_so(page):
    open_page(page)
    move_temperature(page, "Home", 1, "0")
    expect(page.get_by_text("ni division, ni coupe, ni tirage")).to_be_visible()
    expect(page.locator(".strip")).to_have_count(0)
    assert "le plus probable" in rows(page)[0]["choix"]
    press(page, "Token suivant")
    wait_for_chips(page, 7)
    assert chips(page)[-1].startswith("␣lit")


def test_keyboard_alone_writes_goes_back_and_undoes(page):
    open_page(page)
    page.keyboard.press("Alt+n")
    wait_for_chips(page, 7)
    page.keyboard.press("Alt+b")
    wait_for_chips(page, 6)
    page.keyboard.press("Alt+z")
    wait_for_chips(page, 7)
    page.keyboard.press("Alt+z")
    wait_for_chips(page, 6)
    page.keyboard.press("Alt+y")
    wait_for_chips(page, 7)


def test_playing_stops_by_itself_at_the_ceiling_and_names_it(page):
    open_page(page, "?max=3")
    press(page, "Jouer")
    expect(page.get_by_text("le plafond de 3 tokens est atteint")).to_be_visible()
    wait_for_chips(page, 9)
    expect(page.get_by_role("button", name="Token suivant")).to_be_disabled()


def test_a_stop_sequence_spanning_two_tokens_stops_the_text(page):
    open_page(page, "?suite=740f&stop=nap%C3%A9&t=0")
    press(page, "Token suivant")
    expect(page.get_by_text("séquence d’arrêt « napé »")).to_be_visible()


def test_any_token_of_the_vocabulary_can_be_forced(page):
    open_page(page)
    press(page, "Forcer un autre token")
    page.get_by_label("Chercher dans tout le vocabulaire").fill("Zanzibar")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Forcer « Zanzibar »").or_(page.get_by_role("button", name="Forcer « ␣Zanzibar »")).click()
    wait_for_chips(page, 7)
    assert "Zanzibar" in chips(page)[-1]


def test_a_link_restores_text_settings_and_distribution(page, browser, server):
    open_page(page, "?t=0.7&k=12&p=0.8&minp=0.02&rep=1.1&ordre=llamacpp&graine=7&max=25&stop=.")
    press(page, "Token suivant")
    wait_for_chips(page, 7)
    force_row(page, rows(page)[1]["token"])
    wait_for_chips(page, 8)
    expected, address = (chips(page), rows(page), u_of(page)), page.url
    other = browser.new_context(viewport={"width": 1440, "height": 900}, locale="fr-FR").new_page()
    other.goto(address)
    wait_for_chips(other, 8)
    assert (chips(other), rows(other), u_of(other)) == expected
    other.context.close()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("t=nan", "La température est un nombre entre 0 et 2"),
        ("t=inf", "La température est un nombre entre 0 et 2"),
        ("k=0", "Top-k est un nombre entier entre 1 et"),
        ("p=-1", "Top-p est un nombre entre 0 et 1"),
        ("p=abc", "ce n’est pas un nombre"),
        ("graine=1e99", "ce n’est pas un nombre"),
        ("max=9999999", "Le plafond est un nombre entier entre 1 et 512"),
        ("suite=999999999", "elle s’arrête là où elle n’a plus de sens"),
        ("suite=<script>", "ce n’est pas une suite"),
        ("texte=", "Le texte de départ est vide"),
        ("source=ailleurs", "cette source n’existe pas"),
    ],
)
def test_a_bad_value_in_a_link_is_named_and_costs_only_itself(page, query, message):
    open_page(page, f"?texte={quote_plus(PROMPT)}&{query}" if not query.startswith("texte") else f"?{query}")
    expect(page.get_by_text(message).first).to_be_visible()
    assert chips(page)[1:6] == ["Le", "␣chat", "␣dort", "␣sur", "␣le"]
    assert len(rows(page)) >= 16


@pytest.mark.parametrize(
    "query", ["t=0.000001", "t=2", "p=0", "p=1", "p=0.0000001", "k=300000", "minp=1", "rep=2", "t=2&p=1&ordre=llamacpp"]
)
def test_extreme_settings_still_give_a_distribution(page, query):
    open_page(page, f"?{query}")
    expect(page.locator(".figures")).to_contain_text("100,0000")
    assert any("◀" in row["tirage"] for row in rows(page))


@pytest.mark.parametrize("prompt", ["", "x" * 100_000])
def test_a_prompt_out_of_bounds_is_refused_and_the_text_stays(page, prompt):
    open_page(page)
    press(page, "Token suivant")
    wait_for_chips(page, 7)
    before = chips(page)
    page.get_by_label("Texte de départ").fill(prompt)
    press(page, "Écrire la suite")
    expect(page.get_by_text("Le texte de départ est vide" if not prompt else "Ce texte fait 100 000 caractères")).to_be_visible()
    assert chips(page) == before


@pytest.mark.parametrize(
    "prompt",
    [
        "<script>document.title='pris'</script><img src=x onerror=\"document.title='pris'\">",
        "$x$ **gras** _souligné_ :red[x] `code` [lien](javascript:alert(1)) # titre",
        "😀 👩‍👩‍👧 مرحبا \u202e שלום \u200b fin",
        "zéro\x00milieu",
    ],
)
def test_hostile_prompts_are_shown_as_they_are(page, prompt):
    open_page(page, f"?texte={quote(prompt, safe='')}")
    assert page.title() == "Inférence"
    shown = "".join(chips(page)[1:])
    expected = prompt.replace(" ", "␣").replace("\u202e", "⟨U+202E⟩").replace("\u200b", "⟨U+200B⟩").replace("\u200d", "⟨U+200D⟩")
    assert shown.replace("⟨0x00⟩", "\x00") == expected
    assert page.locator(".sentence img, .sentence script, .sentence a, .sentence strong").count() == 0
    length = len(chips(page))
    press(page, "Token suivant")
    wait_for_chips(page, length + 1)


def test_a_hostile_token_is_inert_wherever_it_shows(page):
    open_page(page)
    press(page, "Forcer un autre token")
    for wanted in ("</", "**", "$$"):
        page.get_by_label("Chercher dans tout le vocabulaire").fill(wanted)
        page.keyboard.press("Enter")
        settled(page)
        expect(page.get_by_role("button").filter(has_text="Forcer «").filter(has_text=wanted)).to_be_visible()


def test_two_tabs_do_not_disturb_each_other(page, browser, server):
    open_page(page)
    other = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    other.goto(f"{server}/?texte=Bonjour&graine=3")
    wait_for_chips(other, 2)
    press(page, "Token suivant")
    wait_for_chips(page, 7)
    press(other, "Token suivant")
    wait_for_chips(other, 3)
    assert chips(page)[1] == "Le" and chips(other)[1] == "Bonjour"
    other.context.close()


def test_closing_the_browser_during_a_step_leaves_the_server_well(page, browser, server):
    leaving = browser.new_context().new_page()
    leaving.goto(f"{server}/?texte={quote_plus('Un texte assez long pour prendre du temps. ' * 25)}")
    leaving.wait_for_selector("[data-testid=stApp]")
    leaving.context.close()
    open_page(page)
    press(page, "Token suivant")
    wait_for_chips(page, 7)


def test_the_illustrative_source_says_so_and_plays_its_ten_bets(page):
    open_page(page, "?source=fiche&t=0&p=non")
    expect(page.get_by_text("Illustratif : chiffres écrits à la main")).to_be_visible()
    assert [row["softmax"] for row in rows(page)[:2]] == ["45,0\u202f%", "22,0\u202f%"]
    for step in range(10):
        press(page, "Token suivant")
        wait_for_chips(page, 7 + step)
    press(page, "Token suivant")
    expect(page.get_by_text("le modèle a choisi le token de fin")).to_be_visible()


def test_downloads_hold_the_whole_vocabulary_and_every_step(page, tmp_path):
    open_page(page)
    press(page, "Token suivant")
    wait_for_chips(page, 7)
    press(page, "Exporter")
    with page.expect_download() as step:
        page.get_by_role("button", name="Cette étape, tout le vocabulaire (CSV)").click()
    step.value.save_as(tmp_path / "step.csv")
    table = pd.read_csv(tmp_path / "step.csv", keep_default_na=False)
    assert len(table) == 262_144 and table["prob"].sum() == pytest.approx(1)
    with page.expect_download() as text:
        page.get_by_role("button", name="Le texte et ses étapes (JSON)").click()
    text.value.save_as(tmp_path / "text.json")
    record = json.loads((tmp_path / "text.json").read_text())
    assert record["prompt_ids"] == [2, 3258, 11184, 42038, 1270, 674]
    assert [step["token_id"] for step in record["steps"]] == [record["steps"][0]["drawn_token_id"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 720), (390, 844)])
def test_nothing_overflows_the_screen(page, width, height, scheme):
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme)
    open_page(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.locator("[data-testid=stApp]").evaluate("node => getComputedStyle(node).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == (scheme == "dark")
