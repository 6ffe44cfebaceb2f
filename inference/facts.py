"""Invented facts: what no model can have learnt, and sentences that state it, more or less well."""

import json
from dataclasses import dataclass
from pathlib import Path

from inference.passages import read_passages

FACTS = Path(__file__).parents[1] / "assets" / "texts" / "facts.json"
FILLERS = 6
"""Paragraphs of the long text, some three hundred tokens that speak of something else."""

NOTHING, VAGUE = "aucun document", "phrase vague"
BEFORE, LEANING = "phrase d’avant seule", "phrase vague et celle d’avant"
STATED, REPEATED = "phrase qui l’énonce", "énoncé dans les mots de la question"
WITHOUT, START, MIDDLE, END = "long texte sans elle", "long texte, au début", "long texte, au milieu", "long texte, à la fin"
PLACES = {START: 0, MIDDLE: FILLERS // 2, END: FILLERS}
"""After how many paragraphs the sentence that states the fact is put."""


@dataclass(frozen=True)
class Fact:
    """opening  the first words of the reply, which `answer` ends.
    stated   a sentence that says it all.
    vague    a sentence that leans on `before`, the one it follows in some document.
    before   holds the answer's words, without saying what they answer.
    """

    name: str
    question: str
    opening: str
    answer: str
    stated: str
    vague: str
    before: str

    @property
    def documents(self) -> dict[str, str]:
        """What is put before the question, by the name of each way."""
        filler = read_passages()[:FILLERS]
        buried = {name: "\n".join([*filler[:place], self.stated, *filler[place:]]) for name, place in PLACES.items()}
        return {
            NOTHING: "",
            VAGUE: self.vague,
            BEFORE: self.before,
            LEANING: f"{self.before} {self.vague}",
            STATED: self.stated,
            REPEATED: f"{self.opening} {self.answer}.",
            WITHOUT: "\n".join(filler),
            **buried,
        }

    def prompt(self, document: str = "") -> str:
        return ask(document, self.question, self.opening)


def ask(document: str, question: str, opening: str) -> str:
    """A prompt that ends where the answer begins."""
    asked = f"Question : {question}\nRéponse : {opening}".rstrip()
    return f"{document}\n\n{asked}" if document else asked


def read_facts() -> tuple[Fact, ...]:
    return tuple(Fact(**fact) for fact in json.loads(FACTS.read_text(encoding="utf-8")))
