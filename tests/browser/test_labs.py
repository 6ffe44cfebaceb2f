"""Each measured lab driven to its end on the real model, and its numbers read back. They are checked for sense, never for a time."""

import re

import pytest
from playwright.sync_api import expect

from inference.formatting import count, french
from tests.browser.conftest import watched_page
from tests.browser.labs import floats, make_bet, open_lab, read_csv, start, wait_for_rest, wait_for_result


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


@pytest.mark.long
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


@pytest.mark.long
def test_temperature_zero_to_the_end(page):
    open_lab(page, "temperature_zero")
    make_bet(page, "temperature_zero")
    start(page)
    wait_for_result(page)
    found = read_csv(page, 0)
    differing = [int(value) for value in found["logits différents"]]
    assert found["logits"] == ["262144"] * len(differing)
    again = [value for value, route in zip(differing, found["calculé"], strict=True) if route == "seul, une seconde fois"]
    assert len(again) == 2
    if not any(again):
        expect(page.get_by_text(french("La même passe faite deux fois, seule : aucun logit ne change."))).to_be_visible()
    batch = next(value for value, route in zip(differing, found["calculé"], strict=True) if route == "lot de 8")
    expect(page.get_by_text("L’invite seule, puis dans un lot de 8")).to_contain_text(count(batch))
    expect(page.get_by_role("heading", name="L’ordre des additions")).to_be_visible()


@pytest.mark.long
def test_batching_to_the_end(page):
    open_lab(page, "batching")
    make_bet(page, "batching")
    start(page)
    wait_for_result(page)
    sizes, requests = read_csv(page, 0), read_csv(page, 2)
    assert sizes["textes"] == ["1", "2", "4", "8", "16", "32", "64"]
    throughput = floats(sizes["tokens/s, tous ensemble"])
    assert throughput[-1] > 2 * throughput[0], "sixty-four texts share what one pays alone"
    half = len(requests["demande"]) // 2
    assert sorted(requests["demande"][:half]) == sorted(requests["demande"][half:]), "the same stream under both policies"
    for arrived, begun, first, ended in zip(
        *(floats(requests[f"{moment} (s)"]) for moment in ("arrivée", "début", "premier token", "fin")), strict=True
    ):
        assert arrived <= begun < first <= ended
    compared = page.get_by_text("Par lots fixes,").first.inner_text()
    static, continuous = (
        float(re.search(pattern, compared)[1].replace(",", ".")) for pattern in (r"([\d,]+)\s% du temps", r"En continu, ([\d,]+)\s%")
    )
    assert continuous < static, "nobody waits for the longest text"


@pytest.mark.long
def test_speculative_decoding_to_the_end(page):
    open_lab(page, "speculative")
    make_bet(page, "speculative")
    start(page)
    wait_for_result(page)
    runs = read_csv(page, 0)
    for gamma, per_pass, share in zip(floats(runs["γ"]), floats(runs["tokens par passe"]), floats(runs["part acceptée"]), strict=True):
        assert 1 <= per_pass <= gamma + 1 and 0 <= share <= 1
    assert floats(runs["tokens par passe"])[1] > 1.5, "two proposals of the small model"
    assert floats(runs["α, moyenne de Σ min(p, q)"])[0] > 0.8
    expect(page.get_by_text("Le texte est celui du gros modèle")).to_be_visible()
    page.get_by_label("Passe", exact=True).press("ArrowUp")
    page.get_by_label("Passe", exact=True).press("Enter")
    expect(page.get_by_text(re.compile(" · (en prime|repêché)$"))).to_have_count(1)
    passes = read_csv(page, 1)
    assert passes["sort"][0] in ("accepté", "refusé")
    assert (float(passes["u"][0]) < float(passes["min(1, p/q)"][0])) == (passes["sort"][0] == "accepté")


def test_strategies_to_the_end(page):
    open_lab(page, "strategies")
    make_bet(page, "strategies")
    start(page)
    wait_for_result(page)
    texts = read_csv(page, 0)
    assert texts["stratégie"] == ["glouton", "faisceau", "tirage A", "tirage B"]
    assert all(total < 0 for total in floats(texts["log p du texte (nats)"]))
    expect(page.get_by_role("heading", name="L’arbre du faisceau")).to_be_visible()


def test_inference_time_compute_on_one_theme(page):
    open_lab(page, "inference_compute")
    make_bet(page, "inference_compute")
    page.get_by_label("Questions").click()
    page.get_by_role("option", name="capitales").click()
    expect(page.get_by_text("Le modèle complète 7 phrases courtes")).to_be_visible()
    start(page)
    wait_for_result(page)
    accuracy = read_csv(page, 0)
    passed = [share for way, share in zip(accuracy["façon de répondre"], floats(accuracy["justes (%)"]), strict=True) if way == "pass@n"]
    assert len(passed) > 3 and passed == sorted(passed), "one more answer can only help whoever knows the right one"


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
        make_bet(one, "prefill_decode")
        again = one.get_by_role("button", name=re.compile("^Mesurer"))
        again.click()
        expect(one.get_by_role("progressbar")).to_be_visible()
        make_bet(other, "prefill_decode")
        expect(other.get_by_text("Un autre visiteur fait cette mesure en ce moment")).to_be_visible()
        other.get_by_role("button", name=re.compile("^Mesurer")).click()
        expect(other.get_by_text(french("Un autre visiteur suit aussi cette mesure"))).to_be_visible()
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


@pytest.mark.long
def test_context_and_weights_to_the_end(page):
    open_lab(page, "context_weights")
    make_bet(page, "context_weights")
    start(page)
    wait_for_result(page)
    expect(page.get_by_text(french("Les deux empreintes sont les mêmes : aucun poids n’a bougé."))).to_be_visible()
    own = read_csv(page, 1)
    assert "␣Vel" in own["token"]
    page.get_by_label("Passage").fill("<img src=x onerror=alert(1)> **Rien** à voir.")
    page.keyboard.press("Control+Enter")
    wait_for_rest(page)
    expect(page.get_by_text("La réponse entière :")).to_contain_text(french("< 0,01 % avec"))


def test_each_misconception_is_bet_on_and_measured(page):
    open_lab(page, "misconceptions")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for position in range(3):
        page.get_by_role("radiogroup").nth(position).get_by_text("fausse", exact=True).click()
        page.get_by_role("button", name="Mesurer", exact=True).click()
        expect(page.get_by_text("Mesuré le")).to_have_count(position + 1, timeout=120_000)
        wait_for_rest(page)
    holds = page.get_by_text(french("Rien n’a basculé ici")).count()  # whether a near-tie flips in a batch depends on the machine
    assert page.get_by_text("aucun choix ne change").count() == holds
    expect(page.get_by_text(french("Pari gagné : fausse."))).to_have_count(3 - holds)
    expect(page.get_by_role("link", name="Température zéro")).to_be_visible()


def test_two_measurements_of_one_page_are_followed_together(page):
    open_lab(page, "misconceptions")
    measure = page.get_by_role("button", name=re.compile("^Mesurer"))
    for bets, position in enumerate((0, 2), start=1):
        page.get_by_role("radiogroup").nth(position).get_by_text("fausse", exact=True).click()
        expect(measure).to_have_count(bets)
    for left in (1, 0):
        measure.first.click()
        expect(measure).to_have_count(left)
    expect(page.get_by_role("button", name="Arrêter la mesure")).to_have_count(2)
    expect(page.get_by_role("progressbar")).to_have_count(0, timeout=120_000)
    wait_for_rest(page)
    expect(page.get_by_test_id("stException")).to_have_count(0)
