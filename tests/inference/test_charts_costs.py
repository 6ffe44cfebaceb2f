"""The tables and charts of costs hold what was computed, for a thousand, in the units their headings say."""

import pytest

from inference.charts import costs as charts
from inference.costs import Prices, conversation, read_examples
from tests.conftest import ROOT

PRICES = Prices(input=3, cache_write=3.75, cached_input=0.3, output=15)
TURNS = conversation(system_tokens=100, message_tokens=10, answer_tokens=50, turns=3)


def test_a_bill_adds_up_and_a_batch_is_half_of_it():
    bill = charts.bill_table(1000, 200, PRICES)
    assert bill["tokens"].tolist() == [1000, 200, 1200]
    assert bill["coût de mille ($)"].tolist() == [pytest.approx(3), pytest.approx(3), pytest.approx(6)]
    assert bill["par lots ($)"].tolist() == [pytest.approx(1.5), pytest.approx(1.5), pytest.approx(3)]


def test_a_conversation_adds_up():
    table = charts.conversation_table(TURNS, PRICES)
    assert table["tour"].tolist() == [1, 2, 3]
    assert table["entrée relue (tokens)"].tolist() == [0, 110, 170]
    assert table["mille, sans cache ($)"].tolist() == [pytest.approx(cost) for cost in (1.08, 1.26, 1.44)]
    assert table["mille, avec cache ($)"].tolist() == [pytest.approx(cost) for cost in (1.1625, 1.008, 1.026)]
    for way in ("sans cache", "avec cache"):
        assert table[f"cumul {way} ($)"].iloc[-1] == pytest.approx(table[f"mille, {way} ($)"].sum())


def test_the_figures_show_the_tables():
    table = charts.conversation_table(TURNS, PRICES)
    bars = charts.tokens_figure(TURNS).data
    assert [sum(bar.y[turn] for bar in bars) for turn in range(3)] == [110, 170, 230]
    lines = {line.name: list(line.y) for line in charts.cost_figure(TURNS, PRICES).data}
    for way, costs in lines.items():
        assert costs == pytest.approx(table[f"cumul {way} ($)"].tolist())


def test_both_ways_of_seeing_an_answer_end_together():
    table = charts.streaming_table(4, 0.5, 0.1)
    assert table["vu en streaming (s)"].tolist() == [0.5, 0.6, 0.7, 0.8]
    assert table["vu d’un bloc (s)"].tolist() == [0.8] * 4
    for line in charts.streaming_figure(4, 0.5, 0.1).data:
        assert (line.x[0], line.y[0]) == (0, 0)
        assert (line.x[-1], line.y[-1]) == (pytest.approx(0.8), 4)


def test_every_example_is_shown_with_its_date_and_address():
    examples, _ = read_examples(ROOT / "assets" / "prices.json")
    table = charts.examples_table(examples)
    assert table["date"].all() and table["adresse"].str.startswith("https://").all()
    assert table["entrée ($/M)"].tolist() == [example.prices.input for example in examples]
