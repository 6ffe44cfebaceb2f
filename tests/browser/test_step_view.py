"""What is drawn of a step: the line of the draw, and the same page whichever side computed the step."""

import json

import numpy as np
import pytest
from playwright.sync_api import Page

from inference.charts.bench import exact_step, live_scores, live_settings
from inference.drawing import uniform
from inference.records import SamplingParams, Scores, StepTrace
from inference.sampling import run_pipeline
from inference.tokens import Vocabulary, sentencepiece_bytes

SETTINGS = [
    {},
    {"temperature": 2.0, "top_k": 50},
    {"top_p": 0.5},
    {"temperature": 0.3, "min_p": 0.1},
    {"top_k": 3},
    {"order": "llamacpp", "temperature": 2.0, "top_p": 0.7},
]


def make_vocabulary(*pieces: str) -> Vocabulary:
    return Vocabulary(len(pieces), pieces.__getitem__, lambda text: [], sentencepiece_bytes, frozenset())


WIDE = make_vocabulary(*(f"t{token_id}" for token_id in range(1000)))


def wide_trace(seed: int, **params) -> StepTrace:
    """1000 tokens, of which any may be drawn."""
    logits = np.random.default_rng(seed).normal(size=1000).astype(np.float32)
    return run_pipeline(Scores(logits), SamplingParams(seed=seed, **params), (), 0)


def strip_segments(page: Page, trace: StepTrace, vocabulary: Vocabulary, shown: int) -> list[dict]:
    return page.evaluate("stripSegments", exact_step(trace, vocabulary, shown))


@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_the_strip_is_full_and_u_falls_in_the_chosen_segment(bench_scripts, params):
    for seed in range(8):
        trace = wide_trace(seed, **params)
        segments = strip_segments(bench_scripts, trace, WIDE, 5)
        lows, ends = [segment["low"] for segment in segments], [segment["low"] + segment["width"] for segment in segments]
        assert lows[0] == 0
        assert lows[1:] == pytest.approx(ends[:-1], abs=1e-9)
        assert ends[-1] == pytest.approx(1, abs=1e-9)
        (chosen,) = (segment for segment in segments if segment["chosen"])
        assert chosen["id"] == trace.choice.token_id
        assert (chosen["low"], chosen["width"]) == (trace.choice.low, trace.choice.probability)
        assert chosen["low"] - 1e-12 <= trace.u <= chosen["low"] + chosen["width"] + 1e-12


def test_the_tokens_without_a_row_make_one_stretch_split_around_the_chosen_one(bench_scripts):
    trace = wide_trace(2)
    segments = strip_segments(bench_scripts, trace, WIDE, 5)
    assert trace.probs[trace.choice.token_id] < np.sort(trace.probs)[-5]
    assert [segment["id"] for segment in segments][-3:] == [None, trace.choice.token_id, None]
    assert [segment["label"] for segment in segments][-3:] == ["autres", f"t{trace.choice.token_id}", "autres"]
    assert len(segments) == 4 + 3


def test_the_strip_goes_by_decreasing_probability_and_leaves_cut_tokens_out(bench_scripts):
    scores = Scores(np.log(np.array((0.1, 0.4, 0.3, 0.2))).astype(np.float32))
    trace = run_pipeline(scores, SamplingParams(top_k=3), (), 0)
    segments = strip_segments(bench_scripts, trace, make_vocabulary("▁can", "▁lit", "▁tapis", "▁sol"), 4)
    assert [segment["width"] for segment in segments] == pytest.approx([4 / 9, 3 / 9, 2 / 9], abs=1e-7)
    assert [segment["label"] for segment in segments] == ["␣lit", "␣tapis", "␣sol"]


def test_a_draw_among_the_tokens_that_were_not_sent_lights_the_stretch_of_the_others(bench_scripts):
    step = exact_step(wide_trace(2), WIDE, 5)
    rows = [row | {"chosen": False} for row in step["rows"]]
    segments = bench_scripts.evaluate("stripSegments", step | {"rows": rows, "choice": {"id": None, "low": 0.5, "prob": None}})
    assert [segment["id"] for segment in segments if segment["chosen"]] == [None]
    assert [segment["id"] for segment in segments] == [*(row["id"] for row in rows), None]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_bars_are_the_probabilities_on_an_axis_that_never_moves(bench_scripts, temperature):
    """A bar is its probability of the cell's width, before the cut as after it: none is stretched to the longest."""
    params = SamplingParams(temperature=temperature, top_k=4)
    step = exact_step(run_pipeline(wide_trace(1).scores, params, (), 0), WIDE, 13)
    widths = bench_scripts.evaluate(
        """([step, settings]) => {
          const view = new StepView(() => {});
          view.draw(step, settings);
          const share = (cell) => Number(cell.fill.style.transform.match(/^scaleX\\((.*)\\)$/)[1]);
          return [...view.rows, view.rest].map((row) => [share(row.cells.softmax), share(row.cells.draw)]);
        }""",
        [step, live_settings(params)],
    )
    expected = [[row["uncut"], row["prob"]] for row in [*step["rows"], step["rest"]]]
    assert widths == [pytest.approx(pair, rel=1e-5, abs=1e-7) for pair in expected]
    assert sum(pair[0] for pair in widths) == pytest.approx(1, abs=1e-5)


DRAWN = """([sent, cases]) => {
  const scores = readScores(sent);
  const view = new StepView(() => {});
  const texts = (step, settings) => {
    view.draw(step, settings);
    const parts = [view.figures, view.table, view.strip, view.card].map((part) => part.textContent);
    const marks = [...view.table.querySelectorAll("tr")].map((row) => `${row.className} ${row.hidden}`);
    return [...parts, ...marks];
  };
  return cases.map(([settings, u, exact]) => {
    scores.u = u;
    return [texts(exact, settings), texts(sample(scores, settings, SHOWN), settings)];
  });
}"""


def test_letting_a_slider_go_changes_nothing_on_the_page(bench_scripts, scorer):
    """Every text and every mark: drawn from Python's step, then from the browser's."""
    seen_ids = tuple(scorer.vocabulary.encode("Pour faire une omelette, il faut des œufs, des œufs et des"))
    scores = scorer.scores_after(seen_ids)
    extremes = [{"temperature": 0.0}, {"temperature": 1e-6}, {"top_k": 1}, {"top_p": 0.0}, {"temperature": 1.7, "top_k": 1500}]
    more = ({}, {"repetition_penalty": 1.4, "seed": 5})
    settings = [SamplingParams(**params, **others) for params in SETTINGS + extremes for others in more]
    cases = []
    for params in settings:
        trace = run_pipeline(scores, params, seen_ids, len(seen_ids))
        cases.append([live_settings(params), uniform(params.seed, trace.step), exact_step(trace, scorer.vocabulary, 13)])
    sent = json.loads(json.dumps([live_scores(scores, seen_ids, scorer.vocabulary), cases]))
    for params, (exact, live) in zip(settings, bench_scripts.evaluate(DRAWN, sent), strict=True):
        assert live == exact, params
