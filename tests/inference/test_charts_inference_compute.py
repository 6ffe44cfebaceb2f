"""The tables and charts of the inference-compute lab: the records' numbers, and answers shown as text."""

import pandas as pd
import pytest

from inference.charts import inference_compute as charts
from inference.inference_compute import BEST, PASS, VOTE
from tests.inference.test_inference_compute import QUESTIONS, record

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def result():
    return record()


def test_accuracies(result):
    table = charts.accuracy_table(result)
    assert len(table) == 3 * 3 + 1
    assert table["façon de répondre"].tolist() == [VOTE] * 3 + [BEST] * 3 + [PASS] * 3 + [charts.GREEDY]
    assert table["réponses"].tolist() == [1, 2, 4] * 3 + [1]
    assert table["justes (%)"].tolist()[::3] == [37.5, 37.5, 37.5, 50]
    assert table["tokens écrits par question"].tolist()[2::3] == [9, 9, 9]
    assert table["secondes par question"].tolist() == [0.1, 0.2, 0.4] * 3 + [0.1]
    assert table["au moins (%)"].min() >= 0 and table["au plus (%)"].max() <= 100
    assert (table["au moins (%)"] <= table["justes (%)"]).all() and (table["justes (%)"] <= table["au plus (%)"]).all()


def test_curves_share_their_first_point_and_have_bands(result):
    *bands, vote, best, passed, greedy = charts.accuracy_figure(result).data
    assert [line.name for line in (vote, best, passed, greedy)] == [VOTE, BEST, PASS, charts.GREEDY]
    assert vote.y[0] == best.y[0] == passed.y[0] == pytest.approx(0.375)
    assert (vote.y[-1], best.y[-1], passed.y[-1]) == (0.25, 0.5, 1)
    assert set(greedy.y) == {0.5}
    for band, line in zip(bands, (vote, best), strict=True):
        assert list(band.x) == [1, 2, 4, 4, 2, 1]
        assert (pd.Series(band.y[:3]) <= list(line.y)).all() and (pd.Series(band.y[:2:-1]) >= list(line.y)).all()


@pytest.mark.parametrize(("unit", "costs", "greedy_cost"), [(charts.TOKENS, [2.25, 4.5, 9], 2), (charts.SECONDS, [0.1, 0.2, 0.4], 0.1)])
def test_costs(result, unit, costs, greedy_cost):
    vote, best, greedy = charts.cost_figure(result, unit).data
    assert list(vote.x) == list(best.x) == pytest.approx(costs)
    assert (list(greedy.x), list(greedy.y)) == ([greedy_cost], [0.5])
    assert list(best.text) == ["1", "2", "4"] and unit in vote.customdata[0]


def test_questions(result):
    table = charts.questions_table(result)
    assert table["question"].tolist() == [one.asked for one in QUESTIONS[:2]] * 2
    assert table["attendu"].tolist() == ["A ou ab"] * 4
    assert table["justes sur 4"].tolist() == [1, 2] * 2
    assert table["vote"].tolist() == ["b", "a ou b"] * 2
    assert table[BEST].tolist() == ["a", "b"] * 2 and table[charts.GREEDY].tolist() == ["b", "a"] * 2


def test_answers(result):
    table = charts.answers_table(result.answered[0])
    assert table.to_dict("list") == {
        "réponse": ["b", "a", "c"],
        "fois": [2, 1, 1],
        "juste": ["non", "oui", "non"],
        "log-probabilité (nat)": [-2, -1, -4],
    }
    right, wrong = charts.answers_figure(table).data
    assert (list(right.y), list(right.x)) == ([1], [1])
    assert (list(wrong.y), list(wrong.x)) == ([0, 2], [2, 1])


def test_beyond_the_first_answers_one_bar_holds_the_rest_and_nothing_is_markup():
    answers = [HOSTILE, "", *map(str, range(20))]
    table = pd.DataFrame({"réponse": answers, "fois": 1, "juste": ["non"] * 21 + ["oui"]})
    figure = charts.answers_figure(table)
    names = figure.layout.yaxis.ticktext
    assert names[1] == "(aucune)" and names[-2:] == ("19", "9 autres") and len(names) == charts.SHOWN + 2
    right, wrong = figure.data
    assert (list(right.y), list(right.x)) == ([charts.SHOWN], [1])
    assert sum(wrong.x) == len(answers) - 1 and wrong.x[-1] == 9
    assert "<img" not in " ".join(names)
