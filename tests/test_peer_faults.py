"""Wrong numbers seen in tools of this kind. Each is a promise of ours, under its own name, on the real model where it matters."""

import numpy as np
import pytest

from inference.charts.bench import exact_step, live_scores
from inference.charts.candidates import REST, candidate_rows, candidates_figure
from inference.distributions import entropy_bits, largest, log_softmax, softmax
from inference.formatting import percent
from inference.records import SamplingParams, Scores
from inference.sampling import run_pipeline
from inference.sentence import Choice, Sentence, forced, open_sentence
from tests.conftest import PROMPT

SHOWN = 50


@pytest.fixture(scope="module")
def sentence(scorer) -> Sentence:
    return open_sentence(PROMPT, scorer)


@pytest.fixture(scope="module")
def step(scorer, sentence):
    """`step(**settings)`: the trace of the token after the example's prompt."""
    return lambda **settings: run_pipeline(scorer.scores_after(sentence.token_ids), SamplingParams(**settings), sentence.token_ids, 0)


def test_the_softmax_is_over_the_vocabulary_and_not_over_the_rows_shown(step, scorer):
    trace = step(top_p=0.9)
    rows = candidate_rows(trace, scorer.vocabulary, SHOWN)
    over_the_rows = softmax(trace.scores.logits[largest(trace.scores.logits, SHOWN)])
    assert rows[0].uncut == pytest.approx(softmax(trace.scores.logits)[rows[0].token_id], abs=1e-12)
    assert rows[0].uncut < over_the_rows[0] - 0.05
    drawn = exact_step(trace, scorer.vocabulary, 13)
    assert drawn["rows"][0]["uncut"] == rows[0].uncut
    assert sum(row["uncut"] for row in drawn["rows"]) == pytest.approx(1 - drawn["rest"]["uncut"], abs=1e-12)
    assert trace.kept_count > SHOWN > np.searchsorted(np.cumsum(over_the_rows), 0.9)


def test_the_nucleus_keeps_the_token_that_crosses_p():
    trace = run_pipeline(Scores(np.log([0.5, 0.3, 0.2]).astype(np.float32)), SamplingParams(top_p=0.6), (), 0)
    assert trace.kept.tolist() == [True, True, False]


def test_only_what_is_under_the_display_precision_reads_under_a_hundredth():
    assert [percent(p) for p in (0.0099, 0.0002, 0.00011, 0.00009)] == ["0,99\u202f%", "0,02\u202f%", "0,01\u202f%", "<\u202f0,01\u202f%"]


def test_raising_the_temperature_shortens_the_first_bar_on_an_unchanged_axis(step, scorer):
    cold, hot = (candidates_figure(candidate_rows(step(temperature=t), scorer.vocabulary, SHOWN)) for t in (0.5, 1.5))
    assert hot.data[0].x[0] < cold.data[0].x[0] / 2
    assert cold.layout.xaxis.range == hot.layout.xaxis.range == (0, 1)


def test_log_probabilities_are_natural_and_entropies_in_bits(step):
    trace = step()
    assert np.exp(log_softmax(trace.scores.logits)) == pytest.approx(trace.model_probs, abs=1e-12)
    assert entropy_bits(np.full(8, 1 / 8)) == 3


def test_the_model_receives_ids_and_never_a_label_or_a_new_tokenization(scorer, sentence):
    """« ␣ca » + « napé » reads « canapé », whose tokens are others; « ↵ » is a label, and the token is a line end."""
    for pieces in (("▁ca", "nap", "é"), ("\n",)):
        ids = [scorer.vocabulary.search(piece.replace("▁", " ").replace("\n", "↵")) for piece in pieces]
        exact = [min(found, key=lambda token_id: len(scorer.vocabulary.label(token_id))) for found in ids]
        text = sentence
        for token_id in exact:
            text = forced(text, scorer, token_id)
        assert text.token_ids == (*sentence.prompt_ids, *exact)
        assert scorer.knows(text.rewound(len(exact) - 1).token_ids)
    again = scorer.vocabulary.encode(PROMPT + " canapé")
    assert scorer.vocabulary.text(again[6:]) == " canapé" and len(again) == 8


def test_tokens_are_told_apart_by_id_and_never_by_text_or_probability():
    trace = run_pipeline(Scores(np.zeros(4, dtype=np.float32)), SamplingParams(seed=5), (), 0)

    class Alike:
        def label(self, token_id: int) -> str:
            return "pareil"

    rows = candidate_rows(trace, Alike(), 4)
    assert [row.token_id for row in rows if row.chosen] == [trace.choice.token_id]
    assert [row["id"] for row in exact_step(trace, Alike(), 4)["rows"]] == [0, 1, 2, 3]
    assert len(live_scores(trace.scores, (), Alike())["labels"]) == 4


@pytest.mark.parametrize(
    "settings", [{"temperature": 0.3}, {"top_k": 3}, {"top_p": 0.2}, {"order": "llamacpp"}, {"repetition_penalty": 1.5}]
)
def test_moving_a_slider_does_not_draw_again(step, settings):
    assert step(**settings).u == step().u


def test_the_top_k_slider_is_alive(step):
    assert [step(top_k=k).kept_count for k in (1, 5, 200)] == [1, 5, 200]


def test_the_bytes_of_a_kv_cache_are_those_of_its_tensors(model):
    """One key-value head of 256 in 18 layers, float32: 36,864 bytes a token, not the 147,456 of a formula that counts query heads."""
    state = model.prefill(model.vocabulary.encode(PROMPT)).state
    assert state.nbytes == 36_864 * len(state.token_ids)


def test_temperature_zero_divides_nothing_and_orders_the_others(step, scorer):
    trace = step(temperature=0.0)
    rows = [row for row in candidate_rows(trace, scorer.vocabulary, SHOWN) if row.token_id != REST]
    assert trace.u is None and rows[0].chosen
    assert all(row.prob > 0 for row in rows)
    assert [row.prob for row in rows] == sorted((row.prob for row in rows), reverse=True)


def test_a_forced_token_keeps_the_probability_the_model_gave_it(scorer, sentence):
    text = forced(sentence, scorer, 740)
    assert text.choices == (Choice(740, pytest.approx(0.0221, abs=1e-4), True),)
