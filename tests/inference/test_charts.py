"""Rows and figures say what the trace says, on an absolute axis, and show any token as it is."""

import re

import numpy as np
import pandas as pd
import pytest

from inference.charts.candidates import REST, candidate_rows, candidates_figure, full_table, rank_of
from inference.charts.style import CHOSEN, CUT, NEUTRAL
from inference.drawing import uniform
from inference.records import SamplingParams, Scores, StepTrace
from inference.sampling import run_pipeline
from inference.tokens import Vocabulary, sentencepiece_bytes

PROBS = (0.4, 0.3, 0.15, 0.1, 0.05)
PIECES = ("▁can", "▁lit", "▁tapis", "▁sol", "▁toit")


def make_vocabulary(*pieces: str) -> Vocabulary:
    return Vocabulary(len(pieces), pieces.__getitem__, lambda text: [], sentencepiece_bytes, frozenset())


def make_trace(probs=PROBS, step=0, **params) -> StepTrace:
    return run_pipeline(Scores(np.log(np.array(probs)).astype(np.float32)), SamplingParams(**params), (), step)


def wide_trace(seed: int, **params) -> StepTrace:
    """1000 tokens, of which any may be drawn."""
    logits = np.random.default_rng(seed).normal(size=1000).astype(np.float32)
    return run_pipeline(Scores(logits), SamplingParams(seed=seed, **params), (), 0)


def frame(*arguments) -> pd.DataFrame:
    return pd.DataFrame(candidate_rows(*arguments))


VOCABULARY = make_vocabulary(*PIECES)
WIDE = make_vocabulary(*(f"t{token_id}" for token_id in range(1000)))
SETTINGS = [
    {},
    {"temperature": 0.0},
    {"temperature": 2.0, "top_k": 50},
    {"top_p": 0.5},
    {"temperature": 0.3, "min_p": 0.1},
    {"top_k": 3},
    {"order": "llamacpp", "temperature": 2.0, "top_p": 0.7},
]


@pytest.mark.parametrize("params", SETTINGS, ids=str)
@pytest.mark.parametrize("shown", [1, 10, 999, 1000, 5000])
def test_rows_account_for_the_whole_vocabulary(params, shown):
    trace = wide_trace(1, **params)
    rows = frame(trace, WIDE, shown)
    assert rows["uncut"].sum() == pytest.approx(1, abs=1e-12)
    assert rows["prob"].sum() == pytest.approx(1, abs=1e-12)
    assert rows["tokens"].sum() == 1000
    assert rows["kept"].sum() == trace.kept_count


@pytest.mark.parametrize("params", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_the_chosen_token_is_always_shown_once(params, seed):
    trace = wide_trace(seed, **params)
    rows = frame(trace, WIDE, 5)
    assert rows[rows["chosen"]]["token_id"].tolist() == [trace.choice.token_id]


def test_a_chosen_token_that_is_not_among_the_most_likely_takes_the_place_of_the_last_with_its_rank():
    trace = wide_trace(2)
    rows = frame(trace, WIDE, 5)
    assert rows["rank"].tolist()[:4] == [1, 2, 3, 4]
    assert rows["rank"].tolist()[4] == rank_of(trace, trace.choice.token_id) > 6
    assert rows["rank"].tolist()[4] == 1 + np.count_nonzero(trace.probs > trace.choice.probability)
    assert rows["token_id"].tolist()[4:] == [trace.choice.token_id, REST]
    assert rows["chosen"].tolist() == [False, False, False, False, True, False]
    assert rows["tokens"].tolist() == [1, 1, 1, 1, 1, 995]


@pytest.mark.parametrize("seed", range(8))
def test_the_other_rows_are_those_of_the_most_likely_tokens_whatever_is_chosen(seed):
    trace = wide_trace(seed)
    assert frame(trace, WIDE, 5)["token_id"].tolist()[:4] == np.argsort(-trace.scores.logits)[:4].tolist()


def test_rows_of_a_hand_computed_step():
    """Top-k 2 of 0.4 | 0.3 | 0.15 | 0.1 | 0.05 leaves 4/7 | 3/7; three rows are shown and two tokens make the rest."""
    rows = frame(make_trace(top_k=2), VOCABULARY, 3)
    assert rows["label"].tolist() == ["␣can", "␣lit", "␣tapis", "2 autres tokens"]
    assert rows["token_id"].tolist() == [0, 1, 2, REST]
    assert rows["tokens"].tolist() == [1, 1, 1, 2]
    assert rows["kept"].tolist() == [1, 1, 0, 0]
    assert [row.cut_by for row in candidate_rows(make_trace(top_k=2), VOCABULARY, 3)] == [None, None, "top_k", None]
    assert rows["uncut"].tolist() == pytest.approx([0.4, 0.3, 0.15, 0.15], abs=1e-7)
    assert rows["prob"].tolist() == pytest.approx([4 / 7, 3 / 7, 0, 0], abs=1e-7)
    assert rows["logit"].tolist()[:3] == pytest.approx(np.log([0.4, 0.3, 0.15]), abs=1e-6)
    assert rows["logit"].isna().tolist() == rows["scaled"].isna().tolist() == [False, False, False, True]


def test_a_rest_of_one_token_is_singular():
    assert frame(make_trace(), VOCABULARY, 4)["label"].tolist()[-1] == "1 autre token"


def test_a_vocabulary_shown_whole_has_no_rest():
    assert frame(make_trace(), VOCABULARY, 5)["token_id"].tolist() == [0, 1, 2, 3, 4]


def test_equal_tokens_are_ranked_by_id():
    trace = make_trace((0.25, 0.5, 0.25))
    assert [rank_of(trace, token_id) for token_id in range(3)] == [2, 1, 3]
    assert frame(trace, VOCABULARY, 3)["token_id"].tolist() == [1, 0, 2]


def test_two_tokens_with_the_same_label_stay_two_rows_and_two_bars():
    class Alike(Vocabulary):
        def label(self, token_id: int) -> str:
            return "pareil"

    alike = Alike(5, PIECES.__getitem__, lambda text: [], sentencepiece_bytes, frozenset())
    listed = candidate_rows(make_trace(), alike, 3)
    rows = pd.DataFrame(listed)
    assert rows["prob"].tolist() == pytest.approx([0.4, 0.3, 0.15, 0.15], abs=1e-7)
    after, before = candidates_figure(listed).data
    assert list(after.y) == list(before.y) == [0, 1, 2, 3]
    assert after.x == pytest.approx([0.4, 0.3, 0.15, 0.15], abs=1e-7)


def test_bars_are_the_rows_probabilities():
    rows = candidate_rows(make_trace(top_k=2), VOCABULARY, 3)
    after, before = candidates_figure(rows).data
    assert list(after.x) == [row.prob for row in rows]
    assert list(before.x) == [row.uncut for row in rows]


def test_a_higher_temperature_shortens_the_first_bar_on_the_same_axis():
    """Of 0.8 | 0.2, temperature 2 makes 2/3 | 1/3: the axis still goes from 0 to 1."""
    cold, hot = (candidates_figure(candidate_rows(make_trace((0.8, 0.2), temperature=value), VOCABULARY, 2)) for value in (1.0, 2.0))
    assert cold.layout.xaxis.range == hot.layout.xaxis.range == (0, 1)
    assert (cold.data[0].x[0], hot.data[0].x[0]) == pytest.approx((0.8, 2 / 3), abs=1e-7)


def test_colours_and_texts_tell_the_chosen_the_kept_and_the_cut_apart():
    trace = make_trace((0.5, 0.25, 0.15, 0.1), top_k=2, seed=0)
    assert (trace.u, trace.choice.token_id) == (uniform(0, 0), 0)
    after, _ = candidates_figure(candidate_rows(trace, VOCABULARY, 3)).data
    assert list(after.marker.color) == [CHOSEN, NEUTRAL, CUT, CUT]
    assert list(after.text) == ["66,7\u202f%", "33,3\u202f%", "coupé", "coupé"]


def test_the_full_table_has_every_token_by_id():
    table = full_table(make_trace(top_k=2), VOCABULARY)
    assert table["token_id"].tolist() == [0, 1, 2, 3, 4]
    assert table["label"].tolist() == ["␣can", "␣lit", "␣tapis", "␣sol", "␣toit"]
    assert table["kept"].tolist() == [True, True, False, False, False]
    assert table["uncut"].sum() == pytest.approx(1)
    assert table["prob"].tolist() == pytest.approx([4 / 7, 3 / 7, 0, 0, 0], abs=1e-7)


HOSTILE = ("<b>gras</b>", "<script>", "a&lt;b", "&", '"', "'", "<br>", "%{x}", "$x$", "<a/href='javascript:1'>")
PLOTLY_ENTITIES = {"mu": "μ", "amp": "&", "lt": "<", "gt": ">", "nbsp": "\xa0", "times": "×", "plusmn": "±", "deg": "°"}
"""The named entities Plotly knows; it shows any other as it is written, and numeric ones it decodes."""


def shown_by_plotly(text: str) -> str:
    def decoded(match: re.Match) -> str:
        name = match[1]
        if name.startswith("#x"):
            return chr(int(name[2:], 16))
        return chr(int(name[1:])) if name.startswith("#") else PLOTLY_ENTITIES.get(name, match[0])

    return re.sub(r"&(#\d+|#x[\da-fA-F]+|[a-z]+);", decoded, text)


def hostile_figures() -> list[list[str]]:
    """The labels of ten equal tokens, in the two places where the figure writes them."""
    trace = make_trace((0.1,) * len(HOSTILE))
    rows = candidate_rows(trace, make_vocabulary(*HOSTILE), len(HOSTILE))
    bars = candidates_figure(rows)
    return [
        list(bars.layout.yaxis.ticktext),
        list(bars.data[0].customdata),
    ]


def test_no_label_brings_markup_into_a_figure():
    for labels in hostile_figures():
        assert len(labels) == len(HOSTILE)
        assert not any(re.search(r"[<>]|&(?!(?:#\d+|#x[\da-fA-F]+|[a-z]+);)", label) for label in labels)


@pytest.mark.parametrize("rank", range(len(HOSTILE)), ids=HOSTILE)
def test_plotly_shows_each_label_as_it_is(rank):
    assert [shown_by_plotly(labels[rank]) for labels in hostile_figures()] == [HOSTILE[rank]] * 2
