"""Invented facts: what their sentences hold, and the whole measurement on a model whose answers are known."""

import itertools
import math
import statistics

import numpy as np
import pytest

from inference.answers import Answer
from inference.context_weights import ContextWeights, measure
from inference.facts import BEFORE, END, FILLERS, LEANING, MIDDLE, NOTHING, REPEATED, START, STATED, VAGUE, WITHOUT, ask, read_facts
from inference.models.base import Forward, ModelInfo, State, checked_ids
from inference.passages import read_passages
from inference.prefix_cache import PrefixCache
from inference.records import Scores
from inference.tokens import Vocabulary
from tests.conftest import follow

FACTS = read_facts()
SIZE = 257
OPENING = 256


class Bigram:
    """`Model` over bytes, whose scores after a token are a row of a table."""

    vocabulary = Vocabulary(
        SIZE,
        lambda token_id: f"<0x{token_id:02X}>",
        lambda text: [OPENING, *text.encode()],
        lambda p: bytes([int(p[3:5], 16)]),
        frozenset(),
    )
    info = ModelInfo("bigramme", "1", "float32", 4096, frozenset())

    def __init__(self):
        self.table = np.random.default_rng(0).normal(scale=3, size=(SIZE, SIZE)).astype(np.float32)

    def prefill(self, token_ids, state=None) -> Forward:
        read = checked_ids(self.info, token_ids, state)
        return Forward(Scores(self.table[read[-1]].copy()), State(read))


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_what_each_document_holds(fact):
    documents = fact.documents
    holding = {name for name, text in documents.items() if fact.answer.lower() in text.lower()}
    assert holding == {BEFORE, LEANING, STATED, REPEATED, START, MIDDLE, END}
    assert documents[LEANING] == f"{documents[BEFORE]} {documents[VAGUE]}", "what leans has both of its controls"
    assert documents[REPEATED] != documents[STATED]
    filler = documents[WITHOUT].split("\n")
    assert tuple(filler) == read_passages()[:FILLERS]
    for name, place in ((START, 0), (MIDDLE, FILLERS // 2), (END, FILLERS)):
        paragraphs = documents[name].split("\n")
        assert paragraphs.pop(place) == fact.stated
        assert paragraphs == filler


def test_there_are_several_facts_each_with_a_name_of_its_own():
    assert len({fact.name for fact in FACTS}) == len(FACTS) >= 4
    assert FACTS[0].stated == "Velkaris est la capitale du Zandoria."


def test_a_prompt_ends_where_the_answer_begins():
    assert ask("", "Qui ?", "") == "Question : Qui ?\nRéponse :"
    assert ask("", "Qui ?", "C’est") == "Question : Qui ?\nRéponse : C’est"
    assert ask("Un document.", "Qui ?", "C’est") == "Un document.\n\nQuestion : Qui ?\nRéponse : C’est"


def test_the_measurement_gives_each_answer_its_products():
    model = Bigram()
    progress, result = follow(measure(PrefixCache(model), FACTS[:2], lambda model: [model.table.tobytes()]))
    fractions = [one.fraction for one in progress]
    assert fractions == sorted(fractions) and fractions[0] == 0
    assert result.documents == tuple(FACTS[0].documents)
    probs = np.exp(model.table.astype(np.float64))
    probs /= probs.sum(axis=1, keepdims=True)
    for fact in FACTS[:2]:
        text = [fact.opening.encode()[-1], *f" {fact.answer}".encode()]
        by_hand = math.prod(probs[before, after] for before, after in itertools.pairwise(text))
        for document, answer in result.answers[fact.name].items():
            assert answer.probability == pytest.approx(by_hand, rel=1e-6)
            assert answer.prompt_tokens == 1 + len(fact.prompt(fact.documents[document]).encode())
    assert result.memory.is_unchanged


def test_medians_and_counts():
    def answer(probability: float, favourite: int) -> Answer:
        return Answer(9, (1,), (math.log(probability),), (favourite,), (0.5,))

    chances = {"a": 0.1, "b": 0.4, "c": 0.7, "d": 0.2}
    given = {name: {STATED: answer(chance, int(chance > 0.3)), NOTHING: answer(0.01, 0)} for name, chance in chances.items()}
    result = ContextWeights(given, memory=None)
    assert result.probabilities(STATED) == pytest.approx(chances)
    assert result.median(STATED) == pytest.approx(statistics.median(chances.values()))
    assert (result.written(STATED), result.written(NOTHING)) == (2, 0)
