"""Tables and charts of speculative decoding say what the records hold."""

import numpy as np
import pytest

from inference.charts import speculative as charts
from inference.speculative import Proposal, Round, draw_many
from inference.speculative_speed import LOOKUP, SMALL, Run, Text, TimedRound

ACCEPTED, REFUSED, UNREAD = Proposal(1, 0.5, 0.4, 0.1), Proposal(2, 0.8, 0.2, 0.6), Proposal(3, 0.3)
ROUND = Round((ACCEPTED, REFUSED, UNREAD), 7)


def label(token_id: int) -> str:
    return f"<{token_id}>"


def run(draft: str, gamma: int) -> Run:
    plain = Text((1,), (TimedRound(Round((), 4), (), 0.0, 0.1),) * 4)
    return Run(draft, gamma, (Text((1,), (TimedRound(ROUND, (0.9, 0.5), 0.02, 0.15),) * 2),), (plain,))


RUNS = tuple(run(draft, gamma) for draft in (SMALL, LOOKUP) for gamma in (1, 2))


def test_a_round_row_by_row():
    table = charts.round_table(ROUND, label)
    assert list(table["sort"]) == ["accepté", "refusé", "non lu"]
    assert list(table["min(1, p/q)"][:2]) == [pytest.approx(0.8), pytest.approx(0.25)]
    assert np.isnan(table["u"][2])


def test_the_chart_of_a_round_shows_what_was_read_and_its_labels_are_inert():
    figure = charts.round_figure(ROUND, label)
    bars, needles = figure.data
    assert list(bars.x) == [pytest.approx(0.8), pytest.approx(0.25)] and list(needles.x) == [0.1, 0.6]
    assert figure.layout.yaxis.ticktext[0].startswith("&lt;1&gt;<br>80,0")


def test_the_table_of_the_runs_has_one_row_each():
    table = charts.runs_table(RUNS)
    assert list(table["γ"]) == [1, 2, 1, 2] and list(table["brouillon"]) == [SMALL, SMALL, LOOKUP, LOOKUP]
    assert table["accélération"][0] == round(0.1 / (0.3 / 4), 2)
    assert table["tokens par passe"][0] == 2
    assert table["calcul : accélération"].notna().tolist() == [True, True, False, False], "a lookup may propose nothing"


def test_measured_and_computed_lines_share_a_colour():
    figure = charts.speedups_figure(RUNS)
    assert [trace.name for trace in figure.data] == [SMALL, f"{SMALL}, calcul", LOOKUP]
    assert figure.data[0].line.color == figure.data[1].line.color != figure.data[2].line.color
    assert figure.data[1].line.dash == "dot"


def test_draws_add_up_with_the_others_last():
    p = np.arange(1, 101) / 5050
    table = charts.draws_table(draw_many(p, np.full(100, 0.01), 2000, seed=0), label)
    for column in ("q, brouillon", "p, gros modèle", "tirés"):
        assert table[column].sum() == pytest.approx(1)
    figure = charts.draws_figure(table)
    assert [len(trace.x) for trace in figure.data] == [charts.SHOWN + 1] * 3
    assert all(sum(trace.x) == pytest.approx(1) for trace in figure.data)
    assert list(figure.layout.yaxis.ticktext)[:1] == ["&lt;99&gt;"] and figure.layout.yaxis.ticktext[-1] == "les autres"


def test_draws_of_a_certain_token_still_have_their_others():
    table = charts.draws_table(draw_many(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 100, seed=0), label)
    assert list(table["token"]) == ["<1>", "les autres"]
    assert list(charts.draws_figure(table).data[2].x) == [1, 0]
