"""The page, driven as a visitor would, on the real model."""

import json
import re
from urllib.parse import quote, quote_plus

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

PROMPT = "Le chat dort sur le"
SHOWN = 13
LOADING_MS = 60_000

SETTLED = """() => {
  const bench = [...document.querySelectorAll("*")].map((element) => element.shadowRoot?.querySelector(".bench")?.bench).find(Boolean);
  if (!bench || document.querySelector("[data-testid=stApp]").dataset.testScriptState !== "notRunning") return false;
  const isDrawn = bench.data.step ? bench.root.dataset.from === "python" : bench.root.innerText.includes("Rien à tirer");
  return isDrawn && bench.outbox.length === 0;
}"""
ROWS = """rows => rows.filter((row) => !row.hidden).map((row) => {
  const cells = [...row.cells].map((cell) => [cell.className.match(/c-(\\w+)/)[1], cell.innerText.trim()]);
  return { ...Object.fromEntries(cells), chosen: row.classList.contains("chosen"), cut: row.classList.contains("is-cut") };
})"""

SEGMENTS = """segments => segments.map((one) => [one.textContent, one.className, one.style.left, one.style.width])"""


def open_page(page: Page, query: str = "") -> None:
    page.goto(f"/{query}")
    expect(page.locator(".sentence")).to_be_visible(timeout=LOADING_MS)
    settled(page)


def other_page(browser: Browser, address: str) -> Page:
    """A page in a browser context of its own: another visitor."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}, locale="fr-FR").new_page()
    page.goto(address)
    expect(page.locator(".sentence")).to_be_visible(timeout=LOADING_MS)
    settled(page)
    return page


def settled(page: Page) -> None:
    """Wait until no script run is under way, Python has answered every event, and its step is drawn, unless the text has ended."""
    page.wait_for_function(SETTLED, timeout=LOADING_MS)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).first.click()
    settled(page)


def chips(page: Page) -> list[str]:
    return page.locator(".sentence .chip").all_inner_texts()


def wait_for_chips(page: Page, count: int) -> None:
    expect(page.locator(".sentence .chip")).to_have_count(count)
    settled(page)


def write(page: Page, count: int) -> None:
    """Press « Token suivant » that many times, each seen on the page before the next."""
    before = len(chips(page))
    for step in range(count):
        press(page, "Token suivant")
        wait_for_chips(page, before + step + 1)


def rows(page: Page) -> list[dict]:
    """The candidates that have a row: the text of each cell by the name of its column, and whether it is chosen, or cut."""
    return page.locator(".candidates tbody tr:not(.rest, .cut)").evaluate_all(ROWS)


def row_of(page: Page, token: str) -> dict:
    return next(row for row in rows(page) if row["token"] == token)


def chosen(page: Page) -> str:
    return next(row["token"] for row in rows(page) if row["chosen"])


def columns(page: Page) -> list[str]:
    return page.locator(".candidates thead th").evaluate_all("heads => heads.map((head) => head.firstChild.textContent)")


def percent_of(cell: str) -> float:
    return float(re.match(r"[\d,]+", cell)[0].replace(",", "."))


def u_of(page: Page) -> str:
    return page.locator(".needle").text_content()


def bars(page: Page) -> list[str]:
    return page.locator(".candidates tbody .bar i").evaluate_all("bars => bars.map((bar) => bar.style.transform)")


def step_shown(page: Page) -> tuple:
    """Everything the page says of the step."""
    texts = [page.locator(part).inner_text() for part in (".figures", ".draw-caption", ".candidates .rest", ".candidates .cut")]
    return rows(page), u_of(page), texts, page.locator(".segment:not([hidden])").evaluate_all(SEGMENTS)


def force_row(page: Page, token: str) -> None:
    page.locator(".candidates tbody tr").filter(has=page.get_by_role("button", name=token, exact=True)).locator(".c-softmax").click()
    settled(page)


def temperature(page: Page):
    return page.get_by_role("slider", name="Température")


def move_temperature(page: Page, key: str, times: int, result: str) -> None:
    """Press a key on the slider, then wait for the address to hold the new temperature."""
    temperature(page).focus()
    for _ in range(times):
        page.keyboard.press(key)
    expect(page).to_have_url(re.compile(f"[?&]t={re.escape(result)}(&|$)"))
    settled(page)


def grab_temperature(page: Page) -> tuple[float, float, float]:
    """Press the mouse on the handle, which stands in the middle, at 1; the left, width and middle height of the slider."""
    box = temperature(page).bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, height)
    page.mouse.down()
    return box["x"], box["width"], height


def count_sent_frames(page: Page) -> list:
    """Frames the page will send to the server, to be asked for before it opens."""
    sent: list = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    return sent


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
    write(page, 10)
    press(page, "Recommencer")
    wait_for_chips(page, 6)
    force_row(page, "␣can")
    wait_for_chips(page, 7)
    assert "forcé" in chips(page)[-1]
    assert rows(page)[0]["token"] == "apé"
    press(page, "Retour")
    wait_for_chips(page, 6)
    u, before = u_of(page), row_of(page, "␣lit")
    move_temperature(page, "ArrowLeft", 40, "0.6")
    assert u_of(page) == u
    after = row_of(page, "␣lit")
    assert percent_of(after["softmax"]) > percent_of(before["softmax"])
    assert after["logit"] == before["logit"] and after["scaled"] != before["scaled"]


def test_temperature_zero_is_greedy_and_says_so(page):
    open_page(page)
    move_temperature(page, "Home", 1, "0")
    expect(page.get_by_text("ni division, ni coupe, ni tirage")).to_be_visible()
    expect(page.locator(".needle")).to_be_hidden()
    assert columns(page)[-1] == "choix"
    assert [row["draw"] for row in rows(page)] == ["◀ le favori"] + [""] * (SHOWN - 1)
    write(page, 1)
    assert chips(page)[-1].startswith("␣lit")


def test_lowering_only_the_temperature_changes_the_token_the_same_u_chooses(page):
    open_page(page)
    u = u_of(page)
    assert chosen(page) == "␣can"
    move_temperature(page, "ArrowLeft", 50, "0.5")
    assert chosen(page) == "␣lit" and u_of(page) == u
    write(page, 1)
    assert chips(page)[-1].startswith("␣lit")


def test_a_drag_moves_everything_but_u_without_the_server_which_then_confirms_it(page):
    sent = count_sent_frames(page)
    open_page(page)
    before, bars_before, sent_before = step_shown(page), bars(page), len(sent)
    left, width, height = grab_temperature(page)
    seen = []
    for share in (0.45, 0.4, 0.35, 0.3, 0.25):
        page.mouse.move(left + width * share, height, steps=4)
        expect(page.locator(".bench")).to_have_attribute("data-from", "browser")
        seen.append(step_shown(page))
        assert u_of(page) == before[1]
        assert page.locator("[data-testid=stApp]").get_attribute("data-test-script-state") == "notRunning"
    assert all(one[0] != other[0] and one[2] != other[2] for one, other in zip([before, *seen], seen))
    assert bars(page) != bars_before
    assert chosen(page) == "␣lit" and next(row["token"] for row in before[0] if row["chosen"]) == "␣can"
    assert len(sent) == sent_before
    page.mouse.up()
    settled(page)
    expect(page.locator(".bench")).to_have_attribute("data-from", "python")
    assert len(sent) > sent_before
    assert step_shown(page) == seen[-1]


def test_clicking_a_row_forces_its_token(page):
    open_page(page)
    token = rows(page)[4]["token"]
    assert token != chosen(page)
    force_row(page, token)
    wait_for_chips(page, 7)
    assert chips(page)[-1].startswith(token) and "forcé" in chips(page)[-1]


def test_clicking_a_written_token_goes_back_to_just_before_it(page):
    open_page(page)
    write(page, 1)
    second = step_shown(page)
    write(page, 2)
    kept = chips(page)[:7]
    page.locator(".sentence .chip").nth(7).get_by_role("button").click()
    wait_for_chips(page, 7)
    assert chips(page) == kept and step_shown(page) == second


def test_an_abandoned_continuation_is_offered_and_comes_back(page):
    open_page(page)
    write(page, 3)
    left = chips(page)
    press(page, "Recommencer")
    wait_for_chips(page, 6)
    force_row(page, "␣tapis")
    wait_for_chips(page, 7)
    other = chips(page)
    expect(page.get_by_text("Autres suites")).to_be_visible()
    branches = page.locator(".branches button")
    expect(branches).to_have_count(1)
    branches.click()
    wait_for_chips(page, 9)
    assert chips(page) == left
    expect(branches).to_have_count(1)
    branches.click()
    wait_for_chips(page, 7)
    assert chips(page) == other


def test_undo_and_redo_go_through_every_change(page):
    open_page(page)
    expect(page.get_by_role("button", name="Annuler")).to_be_disabled()
    write(page, 2)
    force_row(page, rows(page)[2]["token"])
    wait_for_chips(page, 9)
    whole = chips(page)
    press(page, "Recommencer")
    for count in (9, 8, 7, 6):
        press(page, "Annuler")
        wait_for_chips(page, count)
    expect(page.get_by_role("button", name="Annuler")).to_be_disabled()
    for count in (7, 8, 9):
        press(page, "Rétablir")
        wait_for_chips(page, count)
    assert chips(page) == whole
    press(page, "Rétablir")
    wait_for_chips(page, 6)
    expect(page.get_by_role("button", name="Rétablir")).to_be_disabled()


def test_undoing_a_prompt_puts_it_back_in_its_field(page):
    open_page(page)
    page.get_by_label("Texte de départ").fill("Bonjour")
    press(page, "Écrire la suite")
    wait_for_chips(page, 2)
    press(page, "Annuler")
    wait_for_chips(page, 6)
    expect(page.get_by_label("Texte de départ")).to_have_value(PROMPT)


def test_keyboard_alone_writes_goes_back_undoes_and_plays(page):
    open_page(page, "?max=3")
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
    page.keyboard.press("Alt+p")
    expect(page.get_by_text("le plafond de 3 tokens est atteint")).to_be_visible()
    wait_for_chips(page, 9)


def test_keyboard_alone_moves_among_the_rows_and_forces_one(page):
    open_page(page)
    page.locator(".candidates").get_by_role("button").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    token = rows(page)[2]["token"]
    expect(page.locator(".card h2")).to_have_text(token)
    page.keyboard.press("Enter")
    wait_for_chips(page, 7)
    assert chips(page)[-1].startswith(token) and "forcé" in chips(page)[-1]


@pytest.mark.parametrize(("key", "code"), [("n", "KeyN"), ("N", "KeyN"), ("n", "KeyL"), ("˜", "KeyN"), ("Dead", "KeyN")])
def test_a_shortcut_is_the_letter_on_the_key_else_its_place(page, key, code):
    """A layout where N is elsewhere; a system where Alt and N make another character."""
    open_page(page)
    page.locator("body").dispatch_event("keydown", {"key": key, "code": code, "altKey": True})
    wait_for_chips(page, 7)


def test_shortcuts_open_and_close_the_walkthrough_the_help_and_the_projector(page):
    open_page(page)
    for letter, shown in (("v", "section.tour"), ("a", "section.help"), ("j", ".bench.projector")):
        expect(page.locator(shown)).to_be_hidden()
        page.keyboard.press(f"Alt+{letter}")
        expect(page.locator(shown)).to_be_visible()
        page.keyboard.press(f"Alt+{letter}")
        expect(page.locator(shown)).to_be_hidden()


def test_two_quick_presses_write_two_tokens(page):
    open_page(page)
    page.keyboard.press("Alt+n")
    page.keyboard.press("Alt+n")
    wait_for_chips(page, 8)


def test_no_press_is_lost_however_many_come_while_the_server_is_busy(page):
    """Python takes 50 events at a time."""
    open_page(page, "?t=2")
    move_temperature(page, "ArrowLeft", 120, "0.8")
    expect(page.locator(".settings output").first).to_have_text("0,8")


def test_playing_stops_by_itself_at_the_ceiling_and_names_it(page):
    open_page(page, "?max=3")
    press(page, "Jouer")
    expect(page.get_by_text("le plafond de 3 tokens est atteint")).to_be_visible()
    wait_for_chips(page, 9)
    expect(page.get_by_role("button", name="Token suivant")).to_be_disabled()
    expect(page.get_by_role("button", name="Jouer")).to_be_disabled()


def test_pausing_stops_playing(page):
    open_page(page)
    press(page, "Jouer")
    press(page, "Pause")
    expect(page.get_by_role("button", name="Jouer")).to_be_enabled()
    written = len(chips(page))
    assert written > 6
    write(page, 1)
    assert len(chips(page)) == written + 1


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
    assert "Zanzibar" in chips(page)[-1] and "forcé" in chips(page)[-1]


def test_a_link_restores_text_settings_and_distribution(page, browser):
    open_page(page, "?t=0.7&k=12&p=0.8&minp=0.02&rep=1.1&ordre=llamacpp&graine=7&max=25&stop=.")
    write(page, 1)
    force_row(page, rows(page)[1]["token"])
    wait_for_chips(page, 8)
    settings = page.locator(".settings output").all_inner_texts()
    assert settings == ["0,7", "12", "0,8", "0,02", "1,1"]
    other = other_page(browser, page.url)
    assert chips(other) == chips(page)
    assert step_shown(other) == step_shown(page)
    assert other.locator(".settings output").all_inner_texts() == settings
    expect(other.get_by_label("Ordre des étapes")).to_have_value("llamacpp")
    expect(other.get_by_label("Graine", exact=True)).to_have_value("7")
    assert other.url == page.url
    other.context.close()


def test_the_link_is_copied(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_page(page)
    write(page, 1)
    page.get_by_role("button", name="Copier le lien").click()
    expect(page.get_by_text("Le lien est copié. Il ne s’ouvre que sur cet ordinateur")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_the_link_copied_leaves_the_projector_to_whoever_has_one(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_page(page, "?projecteur=1")
    page.get_by_role("button", name="Copier le lien").click()
    expect(page.get_by_text("Le lien est copié.")).to_be_visible()
    assert "projecteur=1" in page.url
    assert page.evaluate("navigator.clipboard.readText()") == re.sub("[?&]projecteur=1", "", page.url)


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
        ("visite=9", "c’est une étape de 1 à 6"),
    ],
)
def test_a_bad_value_in_a_link_is_named_and_costs_only_itself(page, query, message):
    open_page(page, f"?texte={quote_plus(PROMPT)}&{query}" if not query.startswith("texte") else f"?{query}")
    expect(page.get_by_text(message).first).to_be_visible()
    assert chips(page)[1:6] == ["Le", "␣chat", "␣dort", "␣sur", "␣le"]
    assert len(rows(page)) == SHOWN


@pytest.mark.parametrize(
    "query", ["t=0.000001", "t=2", "p=0", "p=1", "p=0.0000001", "k=300000", "minp=1", "rep=2", "t=2&p=1&ordre=llamacpp"]
)
def test_extreme_settings_still_give_a_distribution(page, query):
    open_page(page, f"?{query}")
    expect(page.locator(".figures")).to_contain_text("100,0000")
    assert [row["chosen"] for row in rows(page)].count(True) == 1
    assert [row["chosen"] for row in rows(page)] == ["◀" in row["draw"] for row in rows(page)]


@pytest.mark.parametrize("prompt", ["", "x" * 100_000])
def test_a_prompt_out_of_bounds_is_refused_and_the_text_stays(page, prompt):
    open_page(page)
    write(page, 1)
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
    assert page.locator(".bench").locator("img, script, a, .sentence strong, .sentence em, .sentence code").count() == 0
    write(page, 1)


def test_a_hostile_token_is_inert_wherever_it_shows(page):
    open_page(page)
    press(page, "Forcer un autre token")
    for wanted in ("</", "**", "$$"):
        page.get_by_label("Chercher dans tout le vocabulaire").fill(wanted)
        page.keyboard.press("Enter")
        settled(page)
        expect(page.get_by_role("button").filter(has_text="Forcer «").filter(has_text=wanted)).to_be_visible()
    page.get_by_role("button").filter(has_text="Forcer «").click()
    wait_for_chips(page, 7)
    assert "$$" in chips(page)[-1]


def test_two_tabs_do_not_disturb_each_other(page, browser, server):
    open_page(page)
    other = other_page(browser, f"{server}/?texte=Bonjour&graine=3")
    wait_for_chips(other, 2)
    write(page, 1)
    write(other, 1)
    assert chips(page)[1] == "Le" and chips(other)[1] == "Bonjour"
    assert len(chips(page)) == 7 and len(chips(other)) == 3
    other.context.close()


def test_closing_the_browser_during_a_step_leaves_the_server_well(page, browser, server):
    leaving = browser.new_context().new_page()
    leaving.goto(f"{server}/?texte={quote_plus('Un texte assez long pour prendre du temps. ' * 25)}")
    leaving.wait_for_selector("[data-testid=stApp]")
    leaving.context.close()
    open_page(page)
    write(page, 1)


def test_the_illustrative_source_says_so_and_plays_its_ten_bets(page):
    open_page(page, "?source=fiche&t=0&p=non")
    expect(page.get_by_text("ces chiffres ont été écrits à la main")).to_be_visible()
    expect(page.locator(".badge")).to_be_visible()
    assert [row["softmax"] for row in rows(page)[:2]] == ["45,0\u202f%", "22,0\u202f%"]
    write(page, 10)
    press(page, "Token suivant")
    expect(page.get_by_text("le modèle a choisi le token de fin")).to_be_visible()
    expect(page.get_by_text("Rien à tirer")).to_be_visible()
    expect(page.locator(".candidates")).to_be_hidden()
    press(page, "Retour")
    expect(page.locator(".candidates")).to_be_visible()


def test_each_source_keeps_its_own_text(page):
    open_page(page)
    write(page, 2)
    real = chips(page)
    page.get_by_role("radio", name="Chiffres de la fiche").or_(page.get_by_role("button", name="Chiffres de la fiche")).click()
    expect(page.locator(".badge")).to_be_visible()
    wait_for_chips(page, 6)
    write(page, 1)
    page.get_by_role("radio", name="Modèle réel").or_(page.get_by_role("button", name="Modèle réel")).click()
    wait_for_chips(page, 8)
    expect(page.locator(".badge")).to_be_hidden()
    assert chips(page) == real


def test_downloads_hold_the_whole_vocabulary_and_every_step(page, tmp_path):
    open_page(page)
    write(page, 1)
    press(page, "Tableau et fichiers")
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


def test_another_seed_is_another_u_and_the_first_settings_come_back(page):
    open_page(page)
    first = step_shown(page)
    press(page, "Autre graine")
    expect(page).to_have_url(re.compile("graine=191"))
    assert u_of(page) != first[1]
    move_temperature(page, "End", 1, "2")
    press(page, "Réglages de départ")
    expect(page).not_to_have_url(re.compile("graine|[?&]t="))
    settled(page)
    assert step_shown(page) == first


@pytest.mark.parametrize(("name", "query"), [("Autre graine", "graine=191"), ("Réglages de départ", "Le[+]chat[+]dort[+]sur[+]le$")])
def test_the_first_click_after_a_slider_is_not_lost(page, name, query):
    """The help of the slider goes away as the button is pressed: it may not take the button from under the mouse."""
    open_page(page)
    temperature(page).click(position={"x": 60, "y": 10})
    expect(page).to_have_url(re.compile("[?&]t="))
    press(page, name)
    expect(page).to_have_url(re.compile(query))


@pytest.mark.parametrize(("first", "second"), [("Température", "Top-k"), ("Top-k", "Top-p"), ("Top-p", "Min-p")])
def test_the_mouse_reaches_the_slider_it_aims_at_from_the_one_above(page, first, second):
    open_page(page)
    page.get_by_role("slider", name=first).hover()
    target = page.get_by_role("slider", name=second)
    box = target.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=15)
    page.mouse.down()
    page.mouse.up()
    expect(target).to_be_focused()


def test_the_first_settings_come_back_even_after_a_handle_was_pressed_without_moving_it(page):
    open_page(page, "?graine=7")
    grab_temperature(page)
    page.mouse.up()
    page.get_by_role("button", name="Réglages de départ").focus()
    page.keyboard.press("Enter")
    expect(page).not_to_have_url(re.compile("graine"))
    settled(page)
    expect(page.get_by_label("Graine", exact=True)).to_have_value("190")


def test_a_token_asked_for_right_after_the_first_settings_is_drawn_under_them(page):
    open_page(page, "?t=0")
    page.get_by_role("button", name="Réglages de départ").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Alt+n")
    wait_for_chips(page, 7)
    assert chips(page)[-1].startswith("␣can")
    expect(page).not_to_have_url(re.compile("[?&]t="))


def test_the_columns_stand_in_the_order_of_the_stages(page):
    open_page(page)
    assert columns(page) == ["token", "logit", "logit ÷ T", "softmax", "coupe", "tirage"]
    page.get_by_label("Ordre des étapes").select_option("llamacpp")
    expect(page).to_have_url(re.compile("ordre=llamacpp"))
    settled(page)
    assert columns(page) == ["token", "logit", "softmax", "coupe", "logit ÷ T", "tirage"]
    assert list(rows(page)[0])[:6] == ["token", "logit", "softmax", "cut", "scaled", "draw"]


def test_the_projector_fills_the_window_and_escape_leaves_it(page):
    open_page(page)
    press(page, "Projecteur")
    expect(page).to_have_url(re.compile("projecteur=1"))
    assert page.locator(".bench").bounding_box() == {"x": 0, "y": 0, "width": 1440, "height": 900}
    expect(page.get_by_label("Texte de départ")).to_be_hidden()
    write(page, 1)
    expect(page.locator(".bench.projector")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".bench.projector")).to_have_count(0)
    expect(page.get_by_label("Texte de départ")).to_be_visible()
    expect(page).not_to_have_url(re.compile("projecteur"))


def test_a_link_can_open_the_projector(page):
    open_page(page, "?projecteur=1")
    expect(page.locator(".bench.projector")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".bench.projector")).to_have_count(0)


def test_a_link_can_open_the_walkthrough_at_a_step(page):
    open_page(page, "?visite=3")
    tour = page.get_by_role("region", name="Visite guidée")
    expect(tour.get_by_role("heading")).to_have_text("3/6 · La température et le softmax")
    expect(tour).to_contain_text("divisé par T = 1")
    tour.get_by_role("button", name="Suivant").click()
    expect(tour.get_by_role("heading")).to_have_text("4/6 · La coupe")
    expect(page).to_have_url(re.compile("visite=4"))
    tour.get_by_role("button", name="Quitter la visite").click()
    expect(tour).to_be_hidden()
    expect(page).not_to_have_url(re.compile("visite"))


def test_stepping_leaves_the_back_button_alone(page):
    open_page(page)
    length, address = page.evaluate("history.length"), page.url
    write(page, 2)
    move_temperature(page, "ArrowLeft", 3, "0.97")
    press(page, "Visite guidée")
    expect(page).to_have_url(re.compile("visite=1"))
    assert page.url != address
    assert page.evaluate("history.length") == length


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 720), (390, 844)])
def test_nothing_overflows_the_screen(page, width, height, scheme):
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme)
    open_page(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".bench").evaluate("bench => bench.scrollWidth <= bench.clientWidth")
    background = page.locator("[data-testid=stApp]").evaluate("node => getComputedStyle(node).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == (scheme == "dark")


def test_a_long_text_says_that_the_model_is_reading_it(page):
    open_page(page)
    page.get_by_label("Texte de départ").fill("Les chats dorment surtout le jour, dit la voisine. " * 150)
    page.get_by_role("button", name="Écrire la suite").click()
    expect(page.get_by_text("Le modèle lit le texte…")).to_be_visible()
    settled(page)
    expect(page.get_by_text("Le modèle lit le texte…")).to_have_count(0)
    assert len(chips(page)) > 1_500


def test_answers_that_come_while_it_plays_do_not_hasten_the_loop(page):
    """A popover that opens, say: each answer would otherwise leave a token to come."""
    open_page(page)
    pending = page.locator(".bench").evaluate(
        """({ bench }) => {
            const pending = new Set();
            const [set, clear] = [window.setTimeout, window.clearTimeout];
            window.setTimeout = () => { const timer = {}; pending.add(timer); return timer; };
            window.clearTimeout = (timer) => pending.delete(timer);
            bench.isPlaying = true;
            for (let answer = 0; answer < 3; answer++) bench.receive(bench.data);
            bench.isPlaying = false;
            [window.setTimeout, window.clearTimeout] = [set, clear];
            return pending.size;
        }"""
    )
    assert pending == 1


def test_nothing_is_drawn_after_the_end_and_the_text_can_still_be_taken_away(page):
    open_page(page, "?source=fiche&t=0&p=non")
    write(page, 11)
    press(page, "Tableau et fichiers")
    expect(page.get_by_role("button", name="Le texte et ses étapes (JSON)")).to_be_visible()
    expect(page.get_by_role("button", name="Cette étape, tout le vocabulaire (CSV)")).to_have_count(0)
    expect(page.get_by_text("Rien à tirer après cet arrêt")).to_have_count(2)
