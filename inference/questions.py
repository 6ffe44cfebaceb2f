"""The short French questions the model is asked, and how its answer is read."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from inference.library import fold

QUESTIONS = Path(__file__).parents[1] / "assets" / "texts" / "questions.json"
_ARTICLE = "(?:le|la|les|un|une|des|du|de)"
_ANSWER = re.compile(rf"\W*(?:{_ARTICLE}\s+|[ld]['’])*(?!{_ARTICLE}\s*$)(\w[\w'’-]*)([^\w'’-]?)")
"""A word after its articles, and the character that ends it; an article that nothing follows yet is no word."""


@dataclass(frozen=True)
class Question:
    """A sentence to complete.

    prompt   what the model reads: solved examples of the same theme, then `asked`.
    answers  the words that count as right.
    """

    theme: str
    asked: str
    prompt: str
    answers: tuple[str, ...]

    def is_right(self, answer: str) -> bool:
        return answer in map(fold, self.answers)


def read_questions() -> tuple[Question, ...]:
    themes = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    return tuple(
        Question(theme["thème"], one["invite"], " ".join([*theme["exemples"], one["invite"]]), tuple(one["réponses"]))
        for theme in themes
        for one in theme["questions"]
    )


def read_answer(text: str) -> tuple[str, bool]:
    """The answer in what the model wrote, and whether more text could not change it.

    It is the first word after any punctuation, spaces and articles, without capitals or accents; « » when there is none. A word goes on
    until a character other than a letter, a digit, « _ », an apostrophe or a hyphen.
    """
    found = _ANSWER.match(fold(text.rstrip("\ufffd")))  # the bytes of a character still incomplete
    return (found[1].rstrip("'’-"), bool(found[2])) if found else ("", False)
