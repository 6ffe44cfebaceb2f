"""The tables and charts of « Contexte et poids » and « Idées reçues »: the records' numbers, and hostile tokens as text."""

import math

import pytest

from inference.answers import Answer
from inference.charts import context_weights as charts
from inference.charts import misconceptions as others
from inference.context_weights import ContextWeights
from inference.conversation import Memory, Turn
from inference.facts import read_facts
from inference.misconceptions import Streaming
from inference.near_ties import NearTie
from inference.routes import ALONE, BATCH


def answer(*probs: float, favourite: int = 0) -> Answer:
    token_ids = tuple(range(len(probs)))
    return Answer(9, token_ids, tuple(map(math.log, probs)), (favourite,) * len(probs), (0.5,) * len(probs))


RESULT = ContextWeights(
    {"a": {"rien": answer(0.01), "phrase qui dit": answer(0.5, 0.8)}, "b": {"rien": answer(0.03), "phrase qui dit": answer(0.9, 0.9)}},
    memory=None,
)


def label(token_id: int) -> str:
    return f"<b>{token_id}"


def test_the_documents_table_has_a_row_a_fact_and_a_document():
    table = charts.documents_table(RESULT)
    assert table["fait"].tolist() == ["a", "a", "b", "b"]
    assert table["document"].tolist() == ["rien", "phrase qui dit"] * 2
    assert table["probabilité de la réponse"].tolist() == pytest.approx([0.01, 0.4, 0.03, 0.81])
    assert table["de son premier token"].tolist() == pytest.approx([0.01, 0.5, 0.03, 0.9])
    assert table["ce que le modèle écrirait"].tolist() == ["oui", "non", "oui", "non"]


def test_the_documents_figure_has_medians_and_a_mark_a_fact_on_an_absolute_axis():
    chart = charts.documents_figure(RESULT)
    medians, *marks = chart.data
    assert list(medians.x) == pytest.approx([0.02, 0.605])
    assert [mark.name for mark in marks] == ["a", "b"]
    assert list(marks[1].x) == pytest.approx([0.03, 0.81])
    assert tuple(chart.layout.xaxis.range) == (0, 1)
    assert chart.layout.yaxis.ticktext == ("rien", "phrase<br>qui dit")


def test_there_is_a_symbol_for_each_fact():
    assert len(set(charts.SYMBOLS)) == len(charts.SYMBOLS) == len(read_facts())


def test_the_tokens_of_an_answer_and_their_product():
    given = {"avec": answer(0.5, 0.8), "sans": answer(0.1, 0.2, favourite=1)}
    table = charts.tokens_table(given, label)
    assert table["token"].tolist() == ["<b>0", "<b>1"]
    assert table["sans : probabilité"].tolist() == pytest.approx([0.1, 0.2])
    assert table["sans : favori"].tolist() == ["<b>1 50,0\u202f%"] * 2
    chart = charts.tokens_figure(given, label)
    assert [list(bars.x) for bars in chart.data] == [pytest.approx([0.5, 0.8, 0.4]), pytest.approx([0.1, 0.2, 0.02])]
    assert chart.layout.yaxis.ticktext[:2] == ("&lt;b&gt;0", "&lt;b&gt;1")
    assert tuple(chart.layout.xaxis.range) == (0, 1)


def test_turns_and_fingerprints():
    memory = Memory("aa", "ab", "ff", (answer(0.1), answer(0.1)), answer(0.5), (Turn("dit", "réponse", 20, 3), Turn("redit", "", 41, 12)))
    turns = charts.turns_table(memory.turns)
    assert turns["tokens lus avant d’écrire"].tolist() == [20, 41]
    assert turns["il écrit"].tolist() == ["réponse", ""]
    assert charts.fingerprints_table(memory)["empreinte (SHA-256)"].tolist() == ["aa", "ab", "ff"]


def test_flips_and_the_time_line():
    flip = NearTie((1, 2), (3, 4), {ALONE: 0.5, BATCH: -0.5}, {ALONE: 3, BATCH: 4}, again=3)
    flips = others.flips_table((flip,), lambda ids: f"texte {ids}", label)
    assert flips.iloc[0].tolist() == ["texte (1, 2)", "<b>3", "<b>4"]
    streaming = Streaming((7, 8, 9), (0.5, 0.25, 1.25))
    table = others.streaming_table(streaming, label)
    assert table["sorti à (ms)"].tolist() == [500, 750, 2000]
    assert table["durée (ms)"].tolist() == [500, 250, 1250]
    (bars,) = others.streaming_figure(streaming, label).data
    assert list(bars.base) == pytest.approx([0, 500, 750])
    assert list(bars.x) == pytest.approx([500, 250, 1250])
    assert others.streaming_figure(streaming, label).layout.yaxis.ticktext[0] == "&lt;b&gt;7"
