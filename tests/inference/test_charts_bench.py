"""What the browser receives: scores small enough to send, that lose nothing it needs, and steps ready for JSON."""

import base64
import json

import numpy as np
import pytest

from inference.charts.bench import BINS, KNOWN, exact_step, live_scores
from inference.distributions import largest
from inference.records import SamplingParams, Scores, StepTrace
from inference.sampling import run_pipeline
from inference.tokens import Vocabulary, sentencepiece_bytes

PROMPTS = ("Le chat dort sur le", "Je pense que", "1, 2, 3, 4, 5,", "def somme(a, b):\n    return", "Zzz")
MAX_SENT_BYTES = 70_000
"""What the scores of a step may weigh, as JSON in UTF-8: a fifteenth of its logits in float32."""
TEMPERATURES = (0.05, 0.1, 0.3, 0.5, 0.7, 0.85, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)


def make_vocabulary(size: int) -> Vocabulary:
    return Vocabulary(size, lambda token_id: f"t{token_id}", lambda text: [], sentencepiece_bytes, frozenset())


def make_trace(probs=(0.4, 0.3, 0.15, 0.1, 0.05), **params) -> StepTrace:
    return run_pipeline(Scores(np.log(np.array(probs)).astype(np.float32)), SamplingParams(**params), (), 0)


FIVE = make_vocabulary(5)


def unpacked(sent: dict, name: str) -> np.ndarray:
    dtype = {"ids": "<u4", "logits": "<f4", "counts": "<u4", "means": "<f8", "variances": "<f4"}[name]
    return np.frombuffer(base64.b64decode(sent[name]), dtype)


def log_sum(sent: dict, temperature: float) -> float:
    """Logarithm of the sum of exp(logit / temperature) over the vocabulary, from what is sent."""
    logits, means = unpacked(sent, "logits").astype(np.float64), unpacked(sent, "means")
    top = logits.max()
    spread = unpacked(sent, "variances").astype(np.float64) / (2 * temperature**2)
    in_bins = unpacked(sent, "counts") * np.exp((means - top) / temperature) * (1 + spread)
    return top / temperature + float(np.log(np.exp((logits - top) / temperature).sum() + in_bins.sum()))


@pytest.fixture(scope="module", params=PROMPTS)
def step(request, scorer) -> tuple[tuple[int, ...], Scores, dict]:
    """The ids of a text, the real model's scores after it, and what is sent of them."""
    token_ids = tuple(scorer.vocabulary.encode(request.param))
    scores = scorer.scores_after(token_ids)
    return token_ids, scores, live_scores(scores, token_ids, scorer.vocabulary)


def test_every_token_is_sent_once_by_name_or_within_a_bin(step):
    _, scores, sent = step
    ids = unpacked(sent, "ids")
    assert sent["size"] == len(scores.logits) == len(ids) + unpacked(sent, "counts").sum()
    assert len(set(ids.tolist())) == len(ids) == len(sent["labels"])
    assert len(unpacked(sent, "counts")) == len(unpacked(sent, "means")) == len(unpacked(sent, "variances")) <= BINS
    assert (unpacked(sent, "counts") > 0).all()


def test_the_largest_logits_and_those_of_the_text_are_sent_as_they_are(step, scorer):
    token_ids, scores, sent = step
    ids = unpacked(sent, "ids")
    assert set(ids.tolist()) == {*largest(scores.logits, KNOWN).tolist(), *token_ids}
    assert np.array_equal(unpacked(sent, "logits"), scores.logits[ids])
    assert sent["labels"] == [scorer.vocabulary.label(token_id) for token_id in ids.tolist()]
    assert sent["seen"] == list(dict.fromkeys(token_ids))
    assert set(token_ids) - set(largest(scores.logits, KNOWN).tolist())  # the first token of every text, at least


def test_bins_go_downwards_from_the_largest_logit_that_is_not_sent(step):
    _, scores, sent = step
    binned = np.delete(scores.logits, unpacked(sent, "ids")).astype(np.float64)
    means, counts = unpacked(sent, "means"), unpacked(sent, "counts")
    assert sent["binsTop"] == binned.max()
    assert (np.diff(means) < 0).all()
    assert means @ counts / counts.sum() == pytest.approx(binned.mean(), abs=1e-9)
    edges = np.sort(binned)[::-1][np.cumsum(counts)[:-1]]  # the largest logit of each bin but the first
    assert (edges < means[:-1]).all() and (edges >= means[1:]).all()


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_the_sum_of_the_exponentials_is_right_to_a_billionth(step, temperature):
    _, scores, sent = step
    scaled = scores.logits.astype(np.float64) / temperature
    exact = scaled.max() + np.log(np.exp(scaled - scaled.max()).sum())
    assert abs(np.expm1(log_sum(sent, temperature) - exact)) <= 1e-9


def test_what_is_sent_is_small(step):
    assert len(json.dumps(step[2], ensure_ascii=False, allow_nan=False).encode("utf-8")) <= MAX_SENT_BYTES


def test_a_small_vocabulary_is_sent_whole(scripted):
    token_ids = tuple(scripted.vocabulary.encode("Le chat dort"))
    scores = scripted.prefill(token_ids).scores
    sent = json.loads(json.dumps(live_scores(scores, token_ids, scripted.vocabulary), allow_nan=False))
    assert sorted(unpacked(sent, "ids").tolist()) == list(range(48))
    assert len(unpacked(sent, "counts")) == 0
    assert sent["binsTop"] is None


def test_a_token_the_model_keeps_to_itself_is_not_sent_even_when_it_is_in_the_text():
    logits = np.array([1.0, -np.inf, 3.0, -np.inf, 2.0], dtype=np.float32)
    sent = json.loads(json.dumps(live_scores(Scores(logits, 0.2, 3), (1, 0), FIVE), allow_nan=False))
    assert unpacked(sent, "ids").tolist() == [2, 4, 0]
    assert sent["seen"] == [0]
    assert sent["size"] == 5
    assert len(unpacked(sent, "counts")) == 0


def test_no_token_kept_to_itself_is_counted_in_a_bin():
    logits = np.random.default_rng(0).normal(size=5_000).astype(np.float32)
    logits[::2] = -np.inf
    sent = live_scores(Scores(logits, 0.2, 2_500), (), make_vocabulary(5_000))
    assert unpacked(sent, "counts").sum() == 2_500 - KNOWN
    assert np.isfinite(unpacked(sent, "means")).all()


def test_logits_that_are_all_equal_make_one_bin():
    sent = live_scores(Scores(np.zeros(3_000, dtype=np.float32)), (), make_vocabulary(3_000))
    assert unpacked(sent, "counts").tolist() == [3_000 - KNOWN]
    assert unpacked(sent, "means").tolist() == unpacked(sent, "variances").tolist() == [0]
    assert unpacked(sent, "ids").tolist() == list(range(KNOWN))


SETTINGS = [
    {},
    {"temperature": 0.0},
    {"temperature": 1e-6, "top_k": 5},
    {"temperature": 2.0, "top_k": 50},
    {"top_p": 0.5},
    {"temperature": 0.3, "min_p": 0.1},
    {"order": "llamacpp", "temperature": 2.0, "top_p": 0.7},
]


@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_an_exact_step_survives_json_and_adds_up(scorer, params):
    token_ids = tuple(scorer.vocabulary.encode(PROMPTS[0]))
    trace = run_pipeline(scorer.scores_after(token_ids), SamplingParams(seed=3, **params), token_ids, 5)
    step = exact_step(trace, scorer.vocabulary, 13)
    assert json.loads(json.dumps(step, allow_nan=False)) == step
    rows, rest, figures = step["rows"], step["rest"], step["figures"]
    assert len(rows) == 13
    assert len(rows) + rest["tokens"] == figures["size"] == 262_144
    assert sum(row["cutBy"] is None for row in rows) + rest["kept"] == figures["kept"] == trace.kept_count
    assert sum(row["uncut"] for row in rows) + rest["uncut"] == pytest.approx(1, abs=1e-12)
    assert sum(row["prob"] for row in rows) + rest["prob"] == pytest.approx(figures["sum"], abs=1e-12)
    assert figures["keptMass"] + figures["removed"] == pytest.approx(1, abs=1e-12)
    assert (figures["entropy"], figures["effective"]) == (trace.entropy_bits, trace.effective_choices)
    assert [row["id"] for row in rows if row["chosen"]] == [step["choice"]["id"]] == [trace.choice.token_id]
    assert step["u"] == trace.u


def test_a_step_of_a_whole_small_vocabulary_has_no_rest():
    assert exact_step(make_trace(), FIVE, 5)["rest"] is None
    assert exact_step(make_trace(), FIVE, 4)["rest"]["tokens"] == 1


def test_a_token_the_model_keeps_to_itself_has_no_row_and_stays_in_the_rest():
    logits = np.array([1.0, -np.inf, 3.0, -np.inf, 2.0], dtype=np.float32)
    step = exact_step(run_pipeline(Scores(logits, 0.2, 3), SamplingParams(), (), 0), FIVE, 5)
    assert json.loads(json.dumps(step, allow_nan=False)) == step
    assert [row["id"] for row in step["rows"]] == [2, 4, 0]
    assert step["rest"] == {"tokens": 2, "kept": 0, "uncut": 0, "prob": 0}


def test_all_of_the_mass_is_kept_only_when_nothing_was_removed():
    """However the sum is rounded: that of a whole distribution is now and then a hair off 1."""
    sums = []
    for seed in range(20):
        trace = run_pipeline(Scores(np.random.default_rng(seed).normal(size=1_000).astype(np.float32)), SamplingParams(), (), 0)
        figures = exact_step(trace, make_vocabulary(1_000), 5)["figures"]
        assert (figures["keptMass"], figures["removed"]) == (1, 0)
        sums.append(trace.uncut_probs.sum())
    assert any(total != 1 for total in sums)
    probs = [1 - 1e-17, 1e-17]
    nearly = exact_step(make_trace(probs, top_k=1), make_vocabulary(2), 2)["figures"]
    assert 0 < nearly["removed"] < 1e-16
    assert 1 - 1e-15 < nearly["keptMass"] < 1


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [None, None, None, None, None]),
        ({"top_k": 3}, [None, None, None, "top_k", "top_k"]),
        ({"top_p": 0.6}, [None, None, "top_p", "top_p", "top_p"]),
        ({"min_p": 0.3}, [None, None, None, "min_p", "min_p"]),
        ({"top_k": 4, "top_p": 0.8, "min_p": 0.5}, [None, None, "min_p", "top_p", "top_k"]),
        ({"top_k": 2, "top_p": 0.99, "min_p": 0.9, "order": "llamacpp"}, [None, "min_p", "top_k", "top_k", "top_k"]),
        ({"top_k": 2, "top_p": 0.5, "temperature": 0.0}, [None, None, None, None, None]),
    ],
    ids=str,
)
def test_a_cut_token_names_the_first_stage_that_removed_it(params, expected):
    """Of 0.4 | 0.3 | 0.15 | 0.1 | 0.05."""
    trace = make_trace(**params)
    assert [trace.cut_by(token_id) for token_id in range(5)] == expected
    assert [row["cutBy"] for row in exact_step(trace, FIVE, 5)["rows"]] == expected
    assert [stage is None for stage in expected] == trace.kept.tolist()
