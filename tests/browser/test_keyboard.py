"""The page with the keyboard alone: no mouse, no focus set by script. At no frame may the focus fall back to the page's body."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from inference.formatting import french
from pages.ui.frame import PAGES
from tests.browser.conftest import watched_page

WATCH_FOCUS = """
window.framesWithoutFocus = 0;
window.hasHadFocus = false;
const look = () => {
  const isOnBody = !document.activeElement || document.activeElement === document.body;
  if (!isOnBody) window.hasHadFocus = true;
  else if (window.hasHadFocus) window.framesWithoutFocus += 1;
  requestAnimationFrame(look);
};
look();
"""

FOCUSED = """() => {
  let element = document.activeElement;
  while (element.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  const label = element.labels?.[0] ?? element;
  const icons = [...element.querySelectorAll("[data-testid=stIconMaterial]")].map((icon) => icon.innerText);
  const lines = (element.ariaLabel || label.innerText).split("\\n").filter((line) => line && !icons.includes(line));
  return {
    name: lines[0] ?? element.tagName,
    outline: getComputedStyle(element).outlineStyle,
    place: element.closest(".candidates, .sentence, .branches, .tour, .help, .settings")?.classList[0] ?? null,
    isInBench: element.getRootNode() !== document,
    value: element.ariaValueText,
  };
}"""

TAB_LIMIT = 60


@pytest.fixture
def page(browser, server) -> Iterator[Page]:
    """A page on which losing the focus, once something has had it, fails the test."""
    with watched_page(browser, server) as page:
        page.add_init_script(WATCH_FOCUS)
        yield page
        assert page.evaluate("hasHadFocus") and page.evaluate("framesWithoutFocus") == 0


def open_page(page: Page, query: str = "") -> None:
    page.goto(f"/{query}")
    expect(page.locator(".sentence .chip").first).to_be_visible(timeout=60_000)
    answered(page)


def answered(page: Page) -> None:
    """Wait until Python has answered and the bench shows its answer."""
    expect(page.locator(".bench[data-from=python]")).to_be_visible()
    expect(page.locator("[data-testid=stApp]")).to_have_attribute("data-test-script-state", "notRunning")


def focused(page: Page) -> dict:
    """The element with the focus, which must be ringed."""
    found = page.evaluate(FOCUSED)
    assert found["outline"] != "none", f"nothing shows that « {found['name']} » has the focus"
    return found


def tab(page: Page, key: str = "Tab") -> dict:
    page.keyboard.press(key)
    return focused(page)


def tab_to(page: Page, name: str, key: str = "Tab") -> None:
    """Press Tab until the element of that name has the focus."""
    stops = []
    while name not in stops:
        assert len(stops) < TAB_LIMIT, f"« {name} » is not among {stops}"
        stops.append(tab(page, key)["name"])


def retype(page: Page, name: str, text: str) -> None:
    """Go to a field and type over what it holds."""
    tab_to(page, name)
    page.keyboard.press("Control+a")
    page.keyboard.type(text)


def wait_for_written(page: Page, count: int) -> None:
    expect(page.locator(".chip.written")).to_have_count(count)
    answered(page)


def write(page: Page, count: int) -> None:
    for written in range(count):
        page.keyboard.press("Alt+n")
        wait_for_written(page, written + 1)


def test_tab_goes_through_every_control_from_top_to_bottom(browser, server):
    with watched_page(browser, server) as page:  # the focus leaves the page at the end, as it should
        open_page(page, "?suite=740f")
        tab_to(page, "Modèle réel")
        stops = []
        while page.evaluate("() => document.activeElement !== document.body"):
            stops.append(focused(page)["name"])
            page.keyboard.press("Tab")
        rows = page.locator(".candidates .c-token button").all_inner_texts()
    assert len(rows) == 13
    assert stops == [
        "Modèle réel",
        "Texte de départ",
        "Écrire la suite",
        "␣can",
        *("Token suivant", "Retour", "Jouer", "Recommencer", "Annuler", "Rétablir"),
        *("Visite guidée", "Projecteur", "Copier le lien", "Aide"),
        *("Température", "Top-k", "Top-p", "Min-p", "Pénalité de répétition"),
        *("Ordre des étapes", "Graine", "Autre graine", "Réglages de départ"),
        *rows,
        *("Arrêts", "Forcer un autre token", "Tableau et fichiers"),
        "D’où viennent ces nombres",
        *PAGES["Laboratoires"].values(),
    ]


@pytest.mark.parametrize(
    ("query", "end"),
    [("?max=4", "le plafond de 4 tokens est atteint"), ("?source=fiche&t=0&p=non", "le modèle a choisi le token de fin")],
)
def test_the_whole_walkthrough(page, query, end):
    open_page(page, query)
    tab_to(page, "Visite guidée")
    page.keyboard.press("Enter")
    for step in range(1, 6):
        assert focused(page)["name"].startswith(f"{step}/6 · ")
        tab_to(page, "Suivant")
        page.keyboard.press("Space" if step % 2 else "Enter")
    assert focused(page)["name"] == "6/6 · La boucle"
    tab_to(page, "Jouer la boucle jusqu’à l’arrêt")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text=end)).to_be_visible(timeout=40_000)
    assert focused(page)["name"] == "Jouer la boucle jusqu’à l’arrêt"
    tab_to(page, "Quitter la visite")
    page.keyboard.press("Space")
    assert focused(page)["name"] == "Visite guidée"
    expect(page.locator(".tour")).to_be_hidden()


def test_the_walkthrough_goes_back_no_further_than_its_first_step(page):
    open_page(page, "?visite=2")
    tab_to(page, "Précédent")
    page.keyboard.press("Enter")
    assert focused(page)["name"].startswith("1/6")
    tab_to(page, "Précédent")
    page.keyboard.press("Enter")
    assert focused(page)["name"] == "Précédent"
    expect(page.get_by_role("button", name="Précédent")).to_be_disabled()
    expect(page.locator(".tour h2")).to_contain_text("1/6")


def test_stepping_keeps_the_focus_up_to_the_stop_and_back(page):
    open_page(page, "?max=2")
    tab_to(page, "Token suivant")
    for written in (1, 2):
        page.keyboard.press("Enter")
        wait_for_written(page, written)
        assert focused(page)["name"] == "Token suivant"
    expect(page.get_by_role("button", name="Token suivant")).to_be_disabled()
    page.keyboard.press("Enter")  # nothing left to do: the text stays as it is
    tab_to(page, "Retour")
    for written in (1, 0):
        page.keyboard.press("Space")
        wait_for_written(page, written)
        assert focused(page)["name"] == "Retour"


def test_playing_and_pausing_keep_the_focus(page):
    open_page(page)
    tab_to(page, "Jouer")
    page.keyboard.press("Enter")
    assert focused(page)["name"] == "Pause"
    expect(page.locator(".chip.written")).to_have_count(2)
    page.keyboard.press("Enter")
    assert focused(page)["name"] == "Jouer"


def card_title(page: Page) -> str:
    return page.locator(".card h2").inner_text()


def test_arrows_move_through_the_rows_and_fill_the_card(page):
    open_page(page)
    rows = page.locator(".candidates .c-token button").all_inner_texts()
    tab_to(page, rows[0])
    for row in rows[1:4]:
        page.keyboard.press("ArrowDown")
        assert (focused(page)["name"], card_title(page)) == (row, row)
    page.keyboard.press("ArrowUp")
    assert (focused(page)["name"], card_title(page)) == (rows[2], rows[2])
    for _ in rows:
        page.keyboard.press("ArrowUp")
    assert focused(page)["name"] == rows[0]


def test_forcing_a_token_leaves_the_focus_on_its_row_and_the_card_follows(page):
    open_page(page, "?p=non")
    tab_to(page, "␣can")
    page.keyboard.press("Enter")
    wait_for_written(page, 1)
    expect(page.locator(".chip.forced")).to_contain_text("␣can")
    now = focused(page)
    assert now["place"] == "candidates" and now["name"] != "␣can"
    assert card_title(page) == now["name"]


def test_forcing_the_end_leaves_the_focus_on_the_last_token(page):
    """The rows, of which one had the focus, then go away."""
    open_page(page, "?source=fiche&texte=Le chat dort sur le lit.")
    tab_to(page, "<fin>")
    page.keyboard.press("Enter")
    expect(page.locator(".ended")).to_be_visible()
    now = focused(page)
    assert (now["place"], now["name"]) == ("sentence", "<fin>")


def test_rewinding_leaves_the_focus_at_the_end_of_the_text(page):
    open_page(page)
    tab_to(page, "Token suivant")
    write(page, 3)
    first, _, third = (label.split("\n")[0] for label in page.locator(".chip.written").all_inner_texts())
    assert tab(page, "Shift+Tab")["name"] == third
    tab(page, "Shift+Tab")
    page.keyboard.press("Enter")
    wait_for_written(page, 1)
    now = focused(page)
    assert (now["place"], now["name"]) == ("sentence", first)
    page.keyboard.press("Enter")
    wait_for_written(page, 0)
    assert focused(page)["name"] == "Token suivant"


def test_writing_on_leaves_the_focus_on_the_token_it_was_on(page):
    open_page(page)
    tab_to(page, "Token suivant")
    write(page, 1)
    chip = tab(page, "Shift+Tab")
    assert chip["place"] == "sentence"
    page.keyboard.press("Alt+n")
    wait_for_written(page, 2)
    assert focused(page) == chip


def test_going_back_to_a_branch_leaves_the_focus_at_the_end_of_the_text(page):
    open_page(page)
    tab_to(page, "Token suivant")
    write(page, 2)
    last = page.locator(".chip.written").last.inner_text().split("\n")[0]
    tab_to(page, "Recommencer")
    page.keyboard.press("Enter")
    wait_for_written(page, 0)
    while tab(page, "Shift+Tab")["place"] != "branches":
        assert focused(page)["name"] != "Texte de départ"
    page.keyboard.press("Enter")
    wait_for_written(page, 2)
    now = focused(page)
    assert (now["place"], now["name"]) == ("sentence", last)


def test_undoing_to_the_beginning_and_redoing_to_the_end_keep_the_focus(page):
    open_page(page)
    tab_to(page, "Token suivant")
    write(page, 2)
    for name, counts in (("Annuler", (1, 0)), ("Rétablir", (1, 2))):
        tab_to(page, name)
        for count in counts:
            page.keyboard.press("Enter")
            wait_for_written(page, count)
            assert focused(page)["name"] == name
        expect(page.get_by_role("button", name=name)).to_be_disabled()


@pytest.mark.parametrize(
    ("name", "keys", "value", "address"),
    [
        ("Température", ["ArrowLeft"] * 5, "0,95", r"\bt=0\.95\b"),
        ("Température", ["Home", "ArrowRight"], "0,01", r"\bt=0\.01\b"),
        ("Température", ["End"], "2", r"\bt=2\b"),
        ("Top-k", ["Home"], "non", r"^[^?]*\?(?!.*\bk=)"),
        ("Top-k", ["Home", "ArrowRight"], "1", r"\bk=1\b"),
        ("Top-p", ["End"], "non", r"\bp=non\b"),
        ("Top-p", ["Home"], "0", r"\bp=0(&|$)"),
        ("Min-p", ["ArrowRight"], "0,001", r"\bminp=0\.001\b"),
        ("Pénalité de répétition", ["ArrowRight"] * 2, "1,1", r"\brep=1\.1\b"),
    ],
)
def test_arrows_move_a_slider_which_says_its_value_and_keeps_the_focus(page, name, keys, value, address):
    open_page(page, "?k=7&p=0.9")
    tab_to(page, name)
    for key in keys:
        page.keyboard.press(key)
    expect(page).to_have_url(re.compile(address))
    answered(page)
    now = focused(page)
    assert (now["name"], now["value"]) == (name, value)


def test_the_order_and_the_seed_keep_the_focus(page):
    open_page(page)
    tab_to(page, "Ordre des étapes")
    page.keyboard.press("ArrowDown")
    expect(page).to_have_url(re.compile("ordre=llamacpp"))
    answered(page)
    assert focused(page)["name"] == "Ordre des étapes"
    retype(page, "Graine", "12345")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("graine=12345"))
    answered(page)
    assert focused(page)["name"] == "Graine"
    expect(page.get_by_label("Graine")).to_have_value("12345")


def test_a_seed_half_typed_is_not_erased_by_an_answer(page):
    open_page(page)
    retype(page, "Graine", "77")
    page.keyboard.press("Alt+n")
    wait_for_written(page, 1)
    expect(page.get_by_label("Graine")).to_have_value("77")


def test_the_help_takes_the_focus_and_gives_it_back(page):
    open_page(page)
    tab_to(page, "Aide")
    page.keyboard.press("Enter")
    assert focused(page)["place"] == "help"
    page.keyboard.press("Alt+a")
    assert focused(page)["name"] == "Aide"
    expect(page.locator(".help")).to_be_hidden()


def test_the_projector_keeps_the_keyboard_within_what_it_shows(browser, server):
    with watched_page(browser, server) as page:  # the focus leaves the page at the end, as it should
        open_page(page)
        tab_to(page, "Texte de départ")
        page.keyboard.press("Alt+j")
        assert focused(page)["name"] == "Projecteur"
        stops = []
        while page.evaluate("() => document.activeElement !== document.body"):
            stops.append(focused(page))
            page.keyboard.press("Tab")
        assert len(stops) > 20 and all(stop["isInBench"] for stop in stops)
        assert tab(page)["name"] == "Token suivant"  # and not what the bench covers
        page.keyboard.press("Escape")
        assert tab(page, "Shift+Tab")["name"] == "Écrire la suite"


def test_what_the_projector_leaves_out_does_not_keep_the_focus(page):
    open_page(page)
    tab_to(page, "Réglages de départ")
    page.keyboard.press("Alt+j")
    assert focused(page)["name"] == "Projecteur"


def test_searching_the_vocabulary_and_forcing_what_was_found(page):
    """As the first thing done: the page is then drawn again for the first time."""
    open_page(page)
    tab_to(page, "Forcer un autre token")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Chercher dans tout le vocabulaire")).to_be_visible()
    answered(page)
    assert focused(page)["name"] == "Forcer un autre token"
    tab_to(page, "Chercher dans tout le vocabulaire")
    page.keyboard.type("Zanzibar")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Forcer « ␣Zanzibar »")).to_be_visible()
    tab_to(page, "Forcer « ␣Zanzibar »")
    page.keyboard.press("Enter")
    wait_for_written(page, 1)
    expect(page.locator(".chip.forced")).to_contain_text("Zanzibar")


def test_typing_another_text_keeps_the_focus(page):
    open_page(page)
    retype(page, "Texte de départ", "Bonjour")
    page.keyboard.press("Enter")
    expect(page.locator(".chip.prompt")).to_have_count(2)
    answered(page)
    assert focused(page)["name"] == "Texte de départ"


def test_a_long_text_scrolls_with_the_keyboard(page):
    open_page(page, f"?texte={'Le chat dort. ' * 100}")
    tab_to(page, "Écrire la suite")
    assert tab(page)["place"] == "sentence"
    page.keyboard.press("Home")
    expect(page.locator(".sentence .chip").first).to_be_in_viewport()


def test_a_shortcut_acts_once_after_going_to_another_source_and_back(page):
    open_page(page)
    tab_to(page, "Modèle réel")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(page.get_by_text(french("Illustratif : ces chiffres"))).to_be_visible()
    answered(page)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    expect(page.get_by_text("sur cette machine")).to_be_visible()
    answered(page)
    assert focused(page)["name"] == "Modèle réel"
    page.keyboard.press("Alt+n")
    wait_for_written(page, 1)
    page.keyboard.press("Alt+n")
    wait_for_written(page, 2)


def test_on_a_phone_the_walkthrough_brings_what_it_speaks_of_on_the_screen(browser, server):
    with watched_page(browser, server, viewport={"width": 390, "height": 844}) as page:
        page.goto("/?visite=1")
        expect(page.locator(".candidates tbody tr").first).to_be_visible(timeout=60_000)
        for part in (".candidates", "[data-part=temperature]", ".candidates", ".strip", ".sentence"):
            page.get_by_role("button", name="Suivant", exact=True).press("Enter")
            box = page.locator(part).first.bounding_box()
            card = page.get_by_role("region", name="Visite guidée").bounding_box()
            assert 0 <= box["y"] < card["y"], f"{part} is above the card"
