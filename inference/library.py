"""What the reference pages show: the terms of the field, and what to read."""

import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from inference.formatting import french

ASSETS = Path(__file__).parents[1] / "assets"


@dataclass(frozen=True)
class Term:
    """A term in both languages, our definition in French, and the name of the page where it is seen at work."""

    fr: str
    en: str
    definition: str
    page: str


@dataclass(frozen=True)
class Reading:
    """Something to read.

    language  « fr » or « en ».
    url       None where we know of no address.
    shows     what one learns from it, in our own French words.
    page      the name of the page that replays it.
    """

    title: str
    authors: str
    year: int
    language: str
    url: str | None
    shows: str
    page: str


def read_glossary() -> tuple[Term, ...]:
    """In the order of a French dictionary."""
    entries = json.loads((ASSETS / "glossary.json").read_text(encoding="utf-8"))
    terms = [Term(entry["fr"], entry["en"], french(entry["definition"]), entry["page"]) for entry in entries]
    return tuple(sorted(terms, key=lambda term: fold(term.fr)))


def read_readings() -> dict[str, tuple[Reading, ...]]:
    """By section, in the order of the file."""
    sections = json.loads((ASSETS / "reading.json").read_text(encoding="utf-8"))
    return {
        section: tuple(Reading(**{**entry, "shows": french(entry["shows"])}) for entry in entries) for section, entries in sections.items()
    }


def fold(text: str) -> str:
    """A text without its accents and capitals, for comparing."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(letter))


def search(terms: Iterable[Term], wanted: str) -> tuple[Term, ...]:
    """The terms whose name holds what is wanted, then those whose definition does; all of them when nothing is."""
    wanted = fold(wanted.strip())
    named = [term for term in terms if wanted in fold(f"{term.fr} {term.en}")]
    return (*named, *(term for term in terms if term not in named and wanted in fold(term.definition)))
