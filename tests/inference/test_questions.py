"""The shipped questions, and how an answer is read."""

from collections import Counter

import pytest

from inference.library import fold
from inference.questions import read_answer, read_questions

QUESTIONS = read_questions()


@pytest.mark.parametrize(
    ("text", "answer", "is_complete"),
    [
        (" Rome.", "rome", True),
        (" Rome", "rome", False),
        (" Rome et", "rome", True),
        (" la livre sterling", "livre", True),
        (" le", "", False),
        (" le ", "", False),
        (" le\n", "", False),
        (" le.", "le", True),
        (" le froid", "froid", False),
        (" lent", "lent", False),
        (" l’euro.", "euro", True),
        (" l'", "l", False),
        (" d’un chiot,", "chiot", True),
        (" « froid »", "froid", True),
        (" Février\n", "fevrier", True),
        ("\n\n : **7**", "7", True),
        (" 13.", "13", True),
        (" 1", "1", False),
        (" Saint-Denis,", "saint-denis", True),
        (" Saint-", "saint", False),
        (" 7 - 1", "7", True),
        (" lac ", "lac", True),
        ("", "", False),
        (" … ", "", False),
        (" a\ufffd", "a", False),
    ],
)
def test_an_answer_is_the_first_word_after_articles(text, answer, is_complete):
    assert read_answer(text) == (answer, is_complete)


def test_there_are_enough_questions_each_asked_once():
    assert len(QUESTIONS) >= 60
    assert len({one.asked for one in QUESTIONS}) == len(QUESTIONS)
    assert set(Counter(one.theme for one in QUESTIONS).values()) == {7}


@pytest.mark.parametrize("one", QUESTIONS, ids=lambda one: one.asked)
def test_an_expected_answer_is_read_as_one(one):
    """Whatever comes before and after it, and only it."""
    for answer in one.answers:
        assert answer and answer == answer.strip()
        for written in (f" {answer}.", f" le {answer} et", f" « {answer} »", f" {answer.upper()}\n"):
            assert one.is_right(read_answer(written)[0]), written
    assert not one.is_right("") and not one.is_right(f"{fold(one.answers[0])}s x")


@pytest.mark.parametrize("one", QUESTIONS, ids=lambda one: one.asked)
def test_a_prompt_ends_with_what_is_asked_after_examples_that_do_not_give_it_away(one):
    assert one.prompt.endswith(f". {one.asked}") and one.asked == one.asked.strip()
    examples = one.prompt.removesuffix(one.asked)
    assert one.asked not in examples and examples.count(". ") == 3
