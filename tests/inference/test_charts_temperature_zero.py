"""The tables and charts of the temperature-zero lab: the records' numbers, in millionths, and hostile tokens shown as text."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from inference.charts import temperature_zero as charts
from inference.formatting import tiny
from inference.near_ties import NearTie
from inference.routes import ALONE, BATCH
from inference.summation import Sums
from inference.temperature_zero import EDGES, Comparison, Fork

HOSTILE = "<img src=x onerror=alert(1)>"
LOGITS = np.array([5, 4, 3, 2], np.float32)


def label(token_id: int) -> str:
    return HOSTILE if token_id == 7 else f"t{token_id}"


def comparison(tokens: int, route: str, *changes: float) -> Comparison:
    return Comparison.of(tokens, route, LOGITS, LOGITS + np.array(changes, np.float32))


NOTHING = comparison(6, "encore", 0, 0, 0, 0)
SMALL = comparison(6, BATCH, 0, 2**-20, 2**-20, 2**-19)
LARGE = comparison(57, BATCH, -2, 0, 0, 0)
NEAR_TIES = (
    NearTie((1, 2), (7, 8), {ALONE: 0.0, BATCH: -0.125}, {ALONE: 7, BATCH: 8}, again=7),
    NearTie((1,), (3, 4), {ALONE: 2**-8, BATCH: 2**-8}, {ALONE: 3, BATCH: 3}),
)


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (1.9073e-5, "0,000019"), (2.5, "2,5"), (-0.0625, "−0,062"), (1e-9, "0,000000001")])
def test_tiny_numbers_keep_two_digits(value, text):
    assert tiny(value) == text


@pytest.mark.parametrize(("differing", "text"), [(0, "aucun logit ne change"), (1, "1 logit change"), (2, "2 logits changent")])
def test_how_many_logits_change_is_a_sentence(differing, text):
    assert charts.changes(differing) == text


def test_comparisons():
    table = charts.comparisons_table((NOTHING, SMALL, LARGE))
    assert table["logits différents"].tolist() == [0, 3, 1]
    assert table["plus grand écart (millionièmes)"].tolist() == [0, pytest.approx(1.907), 2e6]
    assert table["même favori"].tolist() == ["oui", "oui", "non"]
    figure = charts.comparisons_figure((NOTHING, SMALL, LARGE))
    assert [list(bar.x) for bar in figure.data] == [[0, 0.75], [0.25]]
    assert [list(bar.y) for bar in figure.data] == [["encore", BATCH], [BATCH]]
    assert tuple(figure.layout.xaxis.range) == (0, 1)


def test_differences_hold_every_logit_that_changed_and_no_other():
    table = charts.differences_table((NOTHING, SMALL))
    assert table["encore"].sum() == 0 and table[BATCH].sum() == 3
    for low, high, counted in zip(table["écart de (millionièmes)"], table["à (millionièmes)"], table[BATCH], strict=True):
        assert counted == sum(low <= change * 1e6 < high for change in (2**-20, 2**-20, 2**-19))
    figure = charts.differences_figure((NOTHING, SMALL))
    assert [line.name for line in figure.data] == [BATCH]
    assert sum(figure.data[0].y) == pytest.approx(0.75)


def test_differences_at_either_end_of_the_bins_are_drawn():
    for change in (2e-9, 20.0):
        one = Comparison.of(6, "a", np.zeros(2, np.float32), np.array([0, change], np.float32))
        assert sum(charts.differences_figure((one,)).data[0].y) == 0.5, EDGES


def test_near_ties():
    table = charts.near_ties_table(NEAR_TIES, lambda token_ids: f"{len(token_ids)} tokens", label)
    assert table["texte"].tolist() == ["2 tokens", "1 tokens"]
    assert table[f"avance, {ALONE} (millionièmes)"].tolist() == [0, 3906.25]
    assert table[f"avance, {BATCH} (millionièmes)"].tolist() == [-125000, 3906.25]
    assert table["favori, seul, une seconde fois"].tolist() == [HOSTILE, ""]
    assert table["bascule"].tolist() == [BATCH, "non"]
    unstable = charts.near_ties_table((replace(NEAR_TIES[0], again=8),), str, label)
    assert unstable["bascule"].tolist() == [ALONE]


def test_what_flips_stands_apart():
    figure = charts.near_ties_figure(NEAR_TIES, label)
    alone, batch = figure.data
    assert (list(alone.x), list(batch.x)) == ([0, 2**-8], [-0.125, 2**-8])
    assert [colour == charts.CHOSEN for colour in (*alone.marker.color, *batch.marker.color)] == [False, False, True, False]
    assert batch.text[1] == "t3 / t4 : avance 0,0039"
    assert "<img" not in alone.text[0] + figure.layout.yaxis.ticktext[0]


def test_continuations_side_by_side():
    table = charts.fork_table(Fork((1,), BATCH, (3, 4, 5), (7, 4)), label)
    assert table[ALONE].tolist() == ["t3", "t4", "t5"]
    assert table[BATCH].tolist() == [HOSTILE, "t4", ""]
    assert table["même"].tolist() == ["non", "oui", "non"]


def test_sums_show_every_digit():
    terms = np.array([0.1, 1e8, -1e8, 1], np.float32)
    sums = Sums(3, terms, 1.125)
    triple = charts.triple_table(sums)
    tenth = "0,100000001490116119384765625"
    assert triple["valeur"].tolist() == [tenth, "100000000", "−100000000", "0", tenth, tenth]
    orders = charts.orders_table(sums)
    assert orders["ordre des additions"].tolist()[-2:] == ["par le modèle", "somme exacte"]
    assert orders["écart à l’exact (millionièmes)"].tolist()[-1] == 0
    exact = 1 + Fraction(float(np.float32(0.1)))
    assert orders["écart à l’exact (millionièmes)"].tolist()[-2] == pytest.approx(float(1125000 - exact * 10**6), abs=1e-3)
    assert charts.exact_decimal(Fraction(-1, 2**30)) == "−0,000000000931322574615478515625"
