"""The glossary and the readings: every entry is whole and leads to a page, and a term is found however it is typed."""

import re

import pytest

from inference.library import fold, read_glossary, read_readings, search
from pages.ui.frame import TITLES

TERMS = read_glossary()
READINGS = [reading for section in read_readings().values() for reading in section]
SPACES_BEFORE_PUNCTUATION = re.compile(r" [;:!?%»]|« ")


@pytest.mark.parametrize("term", TERMS, ids=lambda term: fold(term.fr))
def test_a_term_is_whole(term):
    assert term.fr and term.en
    assert term.definition.endswith(".") and not SPACES_BEFORE_PUNCTUATION.search(term.definition)
    assert term.definition.count(". ") <= 1, "one sentence or two"


def test_every_page_linked_to_is_there():
    assert {entry.page for entry in (*TERMS, *READINGS)} - set(TITLES) == set()


def test_terms_are_in_order_and_different():
    names = [fold(term.fr) for term in TERMS]
    assert names == sorted(names) and len(set(names)) == len(names)


def test_nothing_wanted_is_everything():
    assert search(TERMS, "") == search(TERMS, "  ") == TERMS


@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        ("temperature", "Température"),
        ("TEMPÉRATURE", "Température"),
        ("nucleus", "Top-p, noyau"),
        ("noyau", "Top-p, noyau"),
        ("echantillonnage", "Échantillonnage"),
        ("tpot", "ITL, TPOT"),
        (" KV ", "Cache KV"),
    ],
)
def test_accents_capitals_and_language_do_not_matter(wanted, first):
    assert search(TERMS, wanted)[0].fr == first


def test_names_come_before_definitions_and_nothing_twice():
    found = [term.fr for term in search(TERMS, "cache")]
    assert found[:2] == ["Cache KV", "Pagination du cache"]
    assert "Fenêtre glissante" not in found and "Attention à requêtes groupées" in found
    assert len(set(found)) == len(found)


def test_what_is_nowhere_is_not_found():
    assert search(TERMS, "<img src=x>") == search(TERMS, "(.*)") == ()


@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: reading.title)
def test_a_reading_is_whole(reading):
    assert reading.title and reading.authors
    assert 1985 <= reading.year <= 2100
    assert reading.language in ("fr", "en")
    assert reading.url is None or re.fullmatch(r"https?://[^\s()]+", reading.url), "it is shown as a Markdown link"
    assert reading.shows.endswith(".") and not SPACES_BEFORE_PUNCTUATION.search(reading.shows)


def test_a_reading_is_there_once():
    assert len({reading.title for reading in READINGS}) == len(READINGS)
    addresses = [reading.url for reading in READINGS if reading.url]
    assert len(set(addresses)) == len(addresses)
