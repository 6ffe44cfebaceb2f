"""What every lab page owes its visitors before and after the bet: nothing given away, no barrier, a phone's width."""

import re

import pytest
from playwright.sync_api import expect

from inference.lab_text import read_lab
from tests.browser.axe import violations
from tests.browser.conftest import watched_page
from tests.browser.labs import LABS, make_bet, open_lab, wait_for_rest

ANDROID = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Mobile Safari/537.36"
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "user_agent": ANDROID}


@pytest.mark.parametrize("name", LABS)
def test_a_lab_shows_nothing_before_the_bet_and_suits_axe_after_it(browser, server, name):
    with watched_page(browser, server, reduced_motion="reduce") as page:
        open_lab(page, name)
        expect(page.get_by_text("Votre pari.").first).to_be_visible()
        expect(page.get_by_role("button", name="Mesurer")).to_have_count(0)
        expect(page.get_by_text(re.compile("^(Pari gagné|Vous aviez parié)"))).to_have_count(0)
        make_bet(page, name)
        expect(page.get_by_text(re.compile("^Source"))).to_be_visible(timeout=60_000)
        wait_for_rest(page)
        for colours in ("light", "dark"):
            page.emulate_media(color_scheme=colours, reduced_motion="reduce")
            assert violations(page) == []


@pytest.mark.parametrize("name", LABS)
def test_a_lab_fits_a_phone(browser, server, name):
    with watched_page(browser, server, **PHONE) as page:
        page.goto("/")
        page.get_by_test_id("stExpandSidebarButton").click()
        page.get_by_test_id("stSidebar").get_by_role("link", name=LABS[name]).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(read_lab(name).title)
        make_bet(page, name)
        expect(page.get_by_text(re.compile("^Source"))).to_be_visible(timeout=60_000)
        width = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        assert width <= PHONE["viewport"]["width"]
