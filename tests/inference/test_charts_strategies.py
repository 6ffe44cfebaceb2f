"""The tables and charts of the strategies lab: the records' numbers, the tree's branches, and hostile tokens shown as text."""

import numpy as np
import pytest

from inference.beam import DROPPED, FINISHED, KEPT, BeamSearch, Candidate, Path
from inference.charts import strategies as charts
from inference.records import Draw
from inference.strategies import BEAM, DRAW_A, DRAW_B, GREEDY, Drawn, Written

HOSTILE = "<img src=x onerror=alert(1)>"


def label(token_id: int) -> str:
    return HOSTILE if token_id == 7 else f"t{token_id}"


def text_of(token_ids) -> str:
    return "".join(map(label, token_ids))


def written(name: str, *token_ids: int, draws: tuple[Drawn, ...] = ()) -> Written:
    count = len(token_ids)
    return Written(name, token_ids, np.full(count, -0.5), np.arange(count, dtype=float), draws)


def path(*token_ids: int) -> Path:
    return Path(token_ids, tuple(-float(token_id) for token_id in token_ids))


DRAWS_A = (Drawn(0.25, Draw(1, 0.5, 0.0)), Drawn(0.75, Draw(2, 0.125, 0.625)))
DRAWS_B = (Drawn(0.25, Draw(1, 0.5, 0.0)), Drawn(0.75, Draw(3, 0.5, 0.5)))
TEXTS = (
    written(GREEDY, 7, 7, 7, 7),
    written(BEAM, 7, 7, 7, 7),
    written(DRAW_A, 1, 2, draws=DRAWS_A),
    written(DRAW_B, 1, 3, draws=DRAWS_B),
)
SEARCH = BeamSearch(
    width=2,
    length_penalty=1.0,
    steps=(
        (Candidate(path(1), KEPT), Candidate(path(2), KEPT), Candidate(path(3), DROPPED), Candidate(path(7), DROPPED)),
        (
            Candidate(path(1, 1), FINISHED),
            Candidate(path(2, 1), FINISHED),
            Candidate(path(1, 7), DROPPED),
            Candidate(path(2, 2), DROPPED),
            Candidate(path(1, 9), DROPPED),
        ),
    ),
    finished=(path(2, 1), path(1, 1)),
)


def trace(figure, name: str):
    return next(one for one in figure.data if one.name == name)


def test_texts():
    table = charts.texts_table(TEXTS, text_of)
    assert table["tokens"].tolist() == [4, 4, 2, 2]
    assert table["log p du texte (nats)"].tolist() == [-2, -2, -1, -1]
    assert table["log p par token (nats)"].tolist() == [-0.5] * 4
    assert table["3-grammes déjà vus"].tolist() == [0.5, 0.5, 0, 0]
    assert table["distinct-1"].tolist() == [0.25, 0.25, 1, 1]
    assert table["distinct-2"].tolist() == [0.25, 0.25, 0.5, 0.5]
    assert table["entropie moyenne (bits)"].tolist() == [1.5, 1.5, 0.5, 0.5]
    assert table["texte"].tolist() == [HOSTILE * 4, HOSTILE * 4, "t1t2", "t1t3"]


def test_strategies_that_wrote_the_same_text_share_a_point():
    points = charts.flatness_figure(TEXTS).data[0]
    assert list(points.text) == ["glouton, faisceau", DRAW_A, DRAW_B]
    assert list(points.x) == [-2, -1, -1]
    assert list(points.y) == [0.5, 0, 0]


def test_entropy_along_each_text_with_large_points_where_it_repeats():
    figure = charts.entropy_figure(TEXTS)
    assert [line.name for line in figure.data] == [GREEDY, BEAM, DRAW_A, DRAW_B]
    assert list(figure.data[0].x) == [1, 2, 3, 4] and list(figure.data[0].y) == [0, 1, 2, 3]
    assert list(figure.data[0].marker.size) == [4, 4, 4, 10]
    table = charts.tokens_table(TEXTS, label)
    assert len(table) == 12
    assert table["finit un 3-gramme déjà vu"].tolist().count("oui") == 2
    assert table["token"].tolist()[:2] == [HOSTILE] * 2


def test_the_tree_shows_each_path_once_in_its_kind():
    figure = charts.tree_figure(SEARCH, (1, 7, 3), 2, label, text_of)
    assert [html.replace("\u00a0", "") for html in trace(figure, "gagnant").text] == ["<b>t2</b>", "<b>t1</b>"]
    assert [html.replace("\u00a0", "") for html in trace(figure, "gardé").text] == ["<b>t1</b>", "<b>t1</b>"]
    assert len(trace(figure, "laissé").text) == 4, "two for each step, as many as paths go on"
    assert not any("<img" in text for text in (*trace(figure, "laissé").text, *trace(figure, "laissé").customdata))
    assert any("&lt;img src=x onerror=alert(1)&gt;" in told for told in trace(figure, "laissé").customdata)
    assert "log p = −3,00 nats, dont −1,00 ici" in trace(figure, "gagnant").customdata[1]


def test_branches_of_the_tree_go_from_parent_to_child():
    figure = charts.tree_figure(SEARCH, (1, 7, 3), 2, label, text_of)
    places = charts._places(SEARCH, 2)
    lines = [one for one in figure.data if one.mode == "lines"]
    assert len(lines) == 3
    winner = lines[-1]
    assert list(zip(winner.x, winner.y)) == [places[()], places[(2,)], (None, None), places[(2,)], places[(2, 1)], (None, None)]
    assert places[(2,)][1] == 1 and places[(2, 1)][1] == 2
    assert 1 < places[(1, 7)][1] < 2, "a branch left out stops short of the next row"
    assert len(set(places.values())) == len(places)


@pytest.mark.parametrize(("greedy", "followed"), [((1, 7, 3), [(1,), (1, 7)]), ((3, 1), [(3,)]), ((9,), [])])
def test_a_ring_follows_the_greedy_text_as_long_as_it_is_looked_at(greedy, followed):
    figure = charts.tree_figure(SEARCH, greedy, 2, label, text_of)
    places = charts._places(SEARCH, 2)
    rings = trace(figure, GREEDY)
    assert list(zip(rings.x, rings.y)) == [places[path] for path in followed]


def test_a_tree_of_fewer_steps_or_more_than_there_are():
    assert len(trace(charts.tree_figure(SEARCH, (1,), 1, label, text_of), "gagnant").x) == 1
    assert len(trace(charts.tree_figure(SEARCH, (1,), 40, label, text_of), "gagnant").x) == 2


def test_the_table_of_the_tree_holds_every_path():
    table = charts.tree_table(SEARCH, label, text_of)
    assert table["étape"].tolist() == [1] * 4 + [2] * 5
    assert table["rang"].tolist() == [1, 2, 3, 4, 1, 2, 3, 4, 5]
    assert table["sort"].tolist() == ["gardé"] * 2 + ["laissé"] * 2 + ["fini"] * 2 + ["laissé"] * 3
    assert table["log p du chemin (nats)"].tolist() == [-1, -2, -3, -7, -2, -3, -8, -4, -10]
    assert table["chemin"].tolist()[6] == f"t1{HOSTILE}"


def test_draws_side_by_side():
    table = charts.draws_table(TEXTS[2], TEXTS[3], label)
    assert table["u"].tolist() == [0.25, 0.75]
    assert table[DRAW_A].tolist() == ["t1", "t2"] and table[DRAW_B].tolist() == ["t1", "t3"]
    assert table[f"{DRAW_A}, segment"].tolist()[1] == "de 0,6250 à 0,7500"
    assert table["même début"].tolist() == ["oui", "non"]


def test_a_draw_at_temperature_zero_has_no_segment():
    greedy = written(DRAW_B, 1, draws=(Drawn(None, Draw(1, 0.5, 0.0)),))
    table = charts.draws_table(TEXTS[2], greedy, label)
    assert table["u"].tolist() == [0.25]
    assert table[f"{DRAW_B}, segment"].tolist() == ["sans tirage"]
    assert "u" not in charts.draws_table(greedy, greedy, label)
