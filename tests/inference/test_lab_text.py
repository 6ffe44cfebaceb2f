"""The prose of the labs: what every file has, how blanks are filled, and that each page fills those of its own."""

import ast
import string

import pytest

from inference import lab_text
from inference.lab_text import LABS, read_lab
from tests.conftest import ROOT

SPACE = "\u202f"
NAMES = sorted(path.stem for path in LABS.glob("*.md"))
ON_EVERY_PAGE = ("question", "pari", "source")

FILE = """# Un titre : le bon

## question
Combien de {units} ?

Un second paragraphe.

## réponses
- un : peu
une ligne de trop
- deux

## guillemets
Il dit « {what} » !
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    (tmp_path / "essai.md").write_text(FILE, encoding="utf-8")
    monkeypatch.setattr(lab_text, "LABS", tmp_path)
    return read_lab("essai")


def test_a_file_is_cut_at_its_headings(lab):
    assert lab.title == f"Un titre{SPACE}: le bon"
    assert list(lab.parts) == ["question", "réponses", "guillemets"]
    assert lab.choices() == (f"un{SPACE}: peu", "deux")


def test_blanks_are_filled_and_spaces_are_french(lab):
    assert lab.part("question", units="tokens") == f"Combien de tokens{SPACE}?\n\nUn second paragraphe."
    assert lab.part("guillemets", what=3) == f"Il dit «{SPACE}3{SPACE}»{SPACE}!"


def test_it_asks_its_last_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(lab_text, "LABS", tmp_path)
    (tmp_path / "essai.md").write_text("# T\n\n## question\nOn lit. Un mot, puis deux : combien ?", encoding="utf-8")
    assert read_lab("essai").asks == f"Un mot, puis deux{SPACE}: combien{SPACE}?"


def test_what_fills_a_blank_is_not_filled_again(lab):
    assert lab.part("guillemets", what="{units} {0} }") == f"Il dit «{SPACE}{{units}} {{0}} }}{SPACE}»{SPACE}!"


def test_an_unknown_part_or_an_empty_blank_is_an_error(lab):
    for heading, blanks in (("question", {}), ("question", {"unit": 1}), ("Question", {"units": 1}), ("", {})):
        with pytest.raises(KeyError):
            lab.part(heading, **blanks)


# The files


def blanks_of(part: str) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(part) if name is not None]


def test_there_are_labs():
    assert len(NAMES) >= 4


@pytest.mark.parametrize("name", NAMES)
def test_a_lab_has_a_question_a_bet_three_answers_and_a_source(name):
    lab = read_lab(name)
    assert lab.title and not lab.title.startswith("#")
    assert all(lab.part(heading) for heading in ON_EVERY_PAGE), "pages show these without filling anything"
    assert len(set(lab.choices())) == 3


@pytest.mark.parametrize("name", NAMES)
def test_every_blank_is_a_plain_name(name):
    for heading, part in read_lab(name).parts.items():
        for _, blank, spec, conversion in string.Formatter().parse(part):
            assert blank is None or (blank.isidentifier() and not spec and not conversion), f"{heading}: {{{blank}}}"


def page(name: str) -> ast.Module:
    return ast.parse((ROOT / "pages" / f"{name}.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_its_page_fills_the_blanks_of_each_part_and_no_others(name):
    parts = read_lab(name).parts
    shown = [
        (node.args[0].value, {keyword.arg for keyword in node.keywords})
        for node in ast.walk(page(name))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "part"
        if isinstance(node.args[0], ast.Constant)
    ]
    assert shown
    assert [(heading, filled) for heading, filled in shown if filled != set(blanks_of(parts[heading]))] == []


@pytest.mark.parametrize("name", NAMES)
def test_its_page_shows_every_part(name):
    named = {node.value for node in ast.walk(page(name)) if isinstance(node, ast.Constant)}
    assert set(read_lab(name).parts) - named - {*ON_EVERY_PAGE, "réponses"} == set()
