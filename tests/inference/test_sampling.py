"""Each stage, then the pipeline in both orders. Cases are stated in probabilities; scores are their logarithms."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.distributions import softmax
from inference.drawing import uniform
from inference.records import SamplingParams, Scores, StepTrace
from inference.sampling import (
    ORDERS,
    apply_min_p,
    apply_repetition_penalty,
    apply_temperature,
    apply_top_k,
    apply_top_p,
    run_pipeline,
)

INF = np.inf
MAX_SEED = 2**32 - 1


def scores_of(*probs: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.array(probs, dtype=np.float64))


def kept_ids(scores: np.ndarray) -> list[int]:
    return np.flatnonzero(np.isfinite(scores)).tolist()


def run(logits, context_ids=(), step=0, **params) -> StepTrace:
    return run_pipeline(Scores(np.array(logits, dtype=np.float32)), SamplingParams(**params), context_ids, step)


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [
        (1.0, [0.8, 0.2]),
        (0.5, [16 / 17, 1 / 17]),
        (2.0, [2 / 3, 1 / 3]),
    ],
)
def test_temperature_divides_scores(temperature, expected):
    assert softmax(apply_temperature(scores_of(0.8, 0.2), temperature)) == pytest.approx(expected)


def test_temperature_leaves_cut_tokens_cut():
    assert apply_temperature(np.array([1.0, -INF]), 0.5).tolist() == [2, -INF]


@pytest.mark.parametrize(
    ("logits", "penalty", "seen_ids", "expected"),
    [
        ([2.0, -1.0, 0.0, 3.0], 2.0, (0, 1, 2), [1, -2, 0, 3]),
        ([2.0, -1.0, 0.0, 3.0], 0.5, (0, 1, 2), [4, -0.5, 0, 3]),
        ([2.0, -1.0, 0.0, 3.0], 2.0, (0, 0, 0), [1, -1, 0, 3]),
        ([2.0, -1.0, 0.0, 3.0], 2.0, (), [2, -1, 0, 3]),
        ([2.0, -1.0, 0.0, 3.0], 1.0, (0, 1, 2, 3), [2, -1, 0, 3]),
        ([2.0, -INF], 1.5, (1,), [2, -INF]),
    ],
)
def test_repetition_penalty_pulls_seen_tokens_down_once(logits, penalty, seen_ids, expected):
    assert apply_repetition_penalty(np.array(logits), penalty, seen_ids).tolist() == expected


@pytest.mark.parametrize(
    ("probs", "top_k", "kept"),
    [
        ([0.1, 0.2, 0.3, 0.4], 1, [3]),
        ([0.1, 0.2, 0.3, 0.4], 3, [1, 2, 3]),
        ([0.1, 0.2, 0.3, 0.4], 4, [0, 1, 2, 3]),
        ([0.1, 0.2, 0.3, 0.4], 300_000, [0, 1, 2, 3]),
        ([0.4, 0.2, 0.2, 0.2], 2, [0, 1, 2, 3]),
        ([0.3, 0.3, 0.3, 0.1], 1, [0, 1, 2]),
        ([0.6, 0.4, 0.0, 0.0], 3, [0, 1]),
    ],
)
def test_top_k_keeps_k_tokens_and_ties_with_the_last(probs, top_k, kept):
    assert kept_ids(apply_top_k(scores_of(*probs), top_k)) == kept


@pytest.mark.parametrize(
    ("probs", "top_p", "kept"),
    [
        pytest.param([0.4, 0.3, 0.2, 0.1], 0.6, [0, 1], id="0.4 + 0.3 crosses 0.6: the token that crosses stays"),
        pytest.param([0.4, 0.3, 0.2, 0.1], 0.39, [0], id="0.4 alone crosses 0.39"),
        pytest.param([0.1, 0.2, 0.3, 0.4], 0.8, [1, 2, 3], id="0.4 + 0.3 = 0.7 is not enough, 0.9 is"),
        pytest.param([0.5, 0.25, 0.15, 0.1], 0.5, [0], id="0.5 equals p exactly: no extra token"),
        pytest.param([0.5, 0.25, 0.15, 0.1], 0.75, [0, 1], id="0.5 + 0.25 equals p exactly: no extra token"),
        pytest.param([0.5, 0.25, 0.15, 0.1], 0.0, [0], id="p = 0 keeps the favourite"),
        pytest.param([0.5, 0.25, 0.15, 0.1], 1e-9, [0], id="tiny p keeps the favourite"),
        pytest.param([0.5, 0.25, 0.15, 0.1], 5e-324, [0], id="the smallest p keeps the favourite"),
        pytest.param([0.5, 0.25, 0.15, 0.1], 1.0, [0, 1, 2, 3], id="p = 1 is off"),
        pytest.param([1.0, 1e-30, 1e-40], 1.0, [0, 1, 2], id="p = 1 keeps a tail that rounding hides"),
        pytest.param([0.25, 0.25, 0.25, 0.25], 0.5, [2, 3], id="equal tokens at the cut: the larger ids stay"),
        pytest.param([0.5, 0.125, 0.125, 0.25], 0.875, [0, 2, 3], id="ties only matter at the cut"),
        pytest.param([0.6, 0.0, 0.4, 0.0], 0.99, [0, 2], id="a cut token stays cut"),
        pytest.param([1.0], 0.5, [0], id="one token"),
    ],
)
def test_top_p_keeps_the_nucleus(probs, top_p, kept):
    assert kept_ids(apply_top_p(scores_of(*probs), top_p)) == kept


@pytest.mark.parametrize(("top_p", "count"), [(0.5, 131_072), (0.25, 65_536), (1 / 262_144, 1)])
def test_top_p_counts_the_whole_vocabulary(top_p, count):
    assert len(kept_ids(apply_top_p(np.zeros(262_144), top_p))) == count


@pytest.mark.parametrize(
    ("probs", "min_p", "kept"),
    [
        ([0.6, 0.3, 0.1], 0.4, [0, 1]),
        ([0.6, 0.3, 0.1], 0.1, [0, 1, 2]),
        ([0.5, 0.25, 0.125, 0.125], 0.5, [0, 1]),
        ([0.5, 0.25, 0.125, 0.125], 0.25, [0, 1, 2, 3]),
        ([0.5, 0.25, 0.125, 0.125], 1.0, [0]),
        ([0.4, 0.4, 0.2], 1.0, [0, 1]),
        ([0.5, 0.5, 0.0], 0.0, [0, 1]),
        ([1.0, 1e-300], 0.0, [0, 1]),
    ],
)
def test_min_p_keeps_a_share_of_the_favourite(probs, min_p, kept):
    assert kept_ids(apply_min_p(scores_of(*probs), min_p)) == kept


CUTS = [
    pytest.param(lambda scores: apply_top_k(scores, 2), id="top_k"),
    pytest.param(lambda scores: apply_top_p(scores, 0.6), id="top_p"),
    pytest.param(lambda scores: apply_min_p(scores, 0.5), id="min_p"),
]
STAGES = [
    *CUTS,
    pytest.param(lambda scores: apply_top_k(scores, 99), id="top_k off"),
    pytest.param(lambda scores: apply_top_p(scores, 1.0), id="top_p off"),
    pytest.param(lambda scores: apply_min_p(scores, 0.0), id="min_p off"),
    pytest.param(lambda scores: apply_temperature(scores, 0.7), id="temperature"),
    pytest.param(lambda scores: apply_repetition_penalty(scores, 1.3, (0, 2)), id="repetition_penalty"),
]


@pytest.mark.parametrize("apply", STAGES)
def test_stages_do_not_write_to_what_they_receive(apply):
    scores = scores_of(0.4, 0.3, 0.2, 0.1)
    before = scores.copy()
    scores.flags.writeable = False
    apply(scores)
    assert scores.tolist() == before.tolist()


@pytest.mark.parametrize("apply", CUTS)
def test_cuts_do_not_move_the_scores_of_kept_tokens(apply):
    scores = scores_of(0.4, 0.3, 0.2, 0.1)
    after = apply(scores)
    assert 1 <= len(kept_ids(after)) < 4
    assert after[kept_ids(after)].tolist() == scores[kept_ids(after)].tolist()


@pytest.mark.parametrize("order", ORDERS)
def test_none_switches_every_stage_off(order):
    trace = run([2.0, 1.0, 0.0], context_ids=(0, 1), order=order, temperature=None)
    assert [stage.applied for stage in trace.stages] == [False] * 5
    assert all(stage.scores.tolist() == [2, 1, 0] for stage in trace.stages)
    assert trace.probs == pytest.approx(softmax(np.array([2.0, 1.0, 0.0])), abs=1e-15)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("neutral", [{"temperature": 1.0}, {"top_k": 3}, {"top_p": 1.0}, {"min_p": 0.0}, {"repetition_penalty": 1.0}])
def test_neutral_values_change_nothing(order, neutral):
    trace = run([2.0, 1.0, -3.0], context_ids=(0, 2), order=order, **neutral)
    assert trace.stages[-1].scores.tolist() == [2, 1, -3]


@pytest.mark.parametrize(("order", "names"), ORDERS.items())
def test_stages_stand_in_the_order_they_ran(order, names):
    trace = run([1.0, 0.0], order=order)
    assert tuple(stage.name for stage in trace.stages) == names


def test_orders_are_the_published_ones():
    assert ORDERS["huggingface"] == ("repetition_penalty", "temperature", "top_k", "top_p", "min_p")
    assert ORDERS["llamacpp"] == ("repetition_penalty", "top_k", "top_p", "min_p", "temperature")


@pytest.mark.parametrize("order", ORDERS)
def test_each_stage_receives_what_the_previous_one_gave(order):
    trace = run([3.0, 2.0, 1.0, 0.0], (0,), order=order, temperature=0.5, top_k=3, top_p=0.99, min_p=0.01, repetition_penalty=1.2)
    assert trace.before("repetition_penalty").tolist() == [3, 2, 1, 0]
    for previous, stage in zip(trace.stages, trace.stages[1:]):
        assert trace.before(stage.name) is previous.scores
    assert softmax(trace.stages[-1].scores).tolist() == trace.probs.tolist()


def test_pipeline_leaves_the_model_scores_alone():
    scores = Scores(np.array([2.0, 1.0, 0.0], dtype=np.float32))
    run_pipeline(scores, SamplingParams(0.5, 2, 0.9, 0.1, 1.3), (0, 1), 0)
    assert scores.logits.tolist() == [2, 1, 0]
    with pytest.raises(ValueError, match="read-only"):
        scores.logits[0] = 0


def test_top_p_counts_the_mass_top_k_left():
    """Of 0.4 | 0.3 | 0.2 | 0.1, top-k 2 leaves 4/7 | 3/7: 4/7 reaches 0.5 alone, which 0.4 did not."""
    logits = scores_of(0.4, 0.3, 0.2, 0.1)
    assert kept_ids(run(logits, top_p=0.5).stages[-1].scores) == [0, 1]
    assert kept_ids(run(logits, top_p=0.5, top_k=2).stages[-1].scores) == [0]


ORDER_CASES = [
    pytest.param(
        [0.5, 0.25, 0.15, 0.1],
        {"temperature": 2.0, "top_p": 0.7},
        [0, 1, 2],
        [0, 1],
        id="square roots: 0.370 + 0.262 < 0.7, 0.5 + 0.25 > 0.7",
    ),
    pytest.param([0.5, 0.25, 0.15, 0.1], {"temperature": 0.5, "top_p": 0.7}, [0], [0, 1], id="squares: 0.725 > 0.7, 0.5 < 0.7"),
    pytest.param([0.6, 0.3, 0.1], {"temperature": 0.5, "min_p": 0.4}, [0], [0, 1], id="squares: 1/4 < 0.4, 1/2 > 0.4"),
    pytest.param([0.6, 0.3, 0.1], {"temperature": 2.0, "min_p": 0.4}, [0, 1, 2], [0, 1], id="square roots: 0.408 > 0.4, 1/6 < 0.4"),
    pytest.param(
        [0.4, 0.3, 0.2, 0.1],
        {"temperature": 2.0, "top_k": 3, "top_p": 0.75},
        [0, 1, 2],
        [0, 1],
        id="of three, square roots: 0.388 + 0.336 < 0.75, 4/9 + 3/9 > 0.75",
    ),
]


@pytest.mark.parametrize(("probs", "params", "huggingface", "llamacpp"), ORDER_CASES)
def test_the_two_orders_keep_different_tokens(probs, params, huggingface, llamacpp):
    assert kept_ids(run(scores_of(*probs), order="huggingface", **params).stages[-1].scores) == huggingface
    assert kept_ids(run(scores_of(*probs), order="llamacpp", **params).stages[-1].scores) == llamacpp


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [
        pytest.param(2.0, [2**0.5 / (2**0.5 + 1), 1 / (2**0.5 + 1)], id="0.5 : 0.25 is 2 : 1, whose roots are 1.414 : 1"),
        pytest.param(0.5, [0.8, 0.2], id="0.5 : 0.25 is 2 : 1, whose squares are 4 : 1"),
        pytest.param(1.0, [2 / 3, 1 / 3], id="0.5 : 0.25"),
    ],
)
def test_llamacpp_order_heats_what_top_p_kept(temperature, expected):
    trace = run(scores_of(0.5, 0.25, 0.15, 0.1), order="llamacpp", temperature=temperature, top_p=0.7)
    assert trace.probs == pytest.approx([*expected, 0, 0], abs=1e-7)


def test_huggingface_order_cuts_what_temperature_heated():
    """Roots of 0.5 | 0.25 | 0.15 are 0.7071 | 0.5 | 0.3873, 1.5944 together."""
    trace = run(scores_of(0.5, 0.25, 0.15, 0.1), order="huggingface", temperature=2.0, top_p=0.7)
    assert trace.probs == pytest.approx([0.7071 / 1.5944, 0.5 / 1.5944, 0.3873 / 1.5944, 0], abs=1e-4)


ANY_PARAMS = st.builds(
    SamplingParams,
    temperature=st.one_of(st.none(), st.floats(0.05, 2)),
    top_k=st.one_of(st.none(), st.integers(1, 60)),
    top_p=st.one_of(st.none(), st.floats(0, 1)),
    min_p=st.one_of(st.none(), st.floats(0, 1)),
    repetition_penalty=st.one_of(st.none(), st.floats(0.5, 2)),
    order=st.sampled_from(sorted(ORDERS)),
    seed=st.integers(0, MAX_SEED),
)


def random_scores(seed: int) -> Scores:
    return Scores((np.random.default_rng(seed).normal(size=50) * 4).astype(np.float32))


@settings(deadline=None)
@given(params=ANY_PARAMS, seed=st.integers(0, 1000))
def test_llamacpp_rule_cuts_on_undivided_logits_then_divides(params, seed):
    params = dataclasses.replace(params, order="llamacpp", temperature=params.temperature or 1.0)
    scores, context_ids = random_scores(seed), (1, 2, 3)
    trace = run_pipeline(scores, params, context_ids, 0)
    undivided = run_pipeline(scores, dataclasses.replace(params, temperature=None), context_ids, 0)
    assert trace.kept.tolist() == undivided.kept.tolist()
    divided = np.where(undivided.kept, trace.stage("repetition_penalty").scores / params.temperature, -INF)
    assert trace.probs == pytest.approx(softmax(divided), abs=1e-12)


@settings(deadline=None)
@given(params=ANY_PARAMS, seed=st.integers(0, 1000))
def test_any_settings_leave_a_distribution_and_a_kept_choice(params, seed):
    trace = run_pipeline(random_scores(seed), params, (1, 2, 3), step=4)
    assert trace.probs.sum() == pytest.approx(1, abs=1e-12)
    assert trace.kept_count >= 1
    assert not trace.probs[~trace.kept].any()
    assert trace.kept[np.argmax(trace.uncut_scores)]
    assert trace.choice.probability == trace.probs[trace.choice.token_id] > 0
    assert trace.choice.low <= trace.u < trace.choice.low + trace.choice.probability + 1e-12


@settings(deadline=None)
@given(params=ANY_PARAMS, seed=st.integers(0, 1000))
def test_summaries_of_a_step_agree_with_its_distributions(params, seed):
    trace = run_pipeline(random_scores(seed), params, (1, 2, 3), 0)
    assert trace.uncut_probs.sum() == pytest.approx(1, abs=1e-12)
    assert trace.removed_mass == pytest.approx(1 - trace.uncut_probs[trace.kept].sum(), abs=1e-12)
    assert trace.kept_count == np.count_nonzero(trace.kept)
    assert 1 - 1e-9 <= trace.effective_choices <= trace.kept_count + 1e-9


@settings(deadline=None)
@given(params=ANY_PARAMS, seed=st.integers(0, 1000))
def test_huggingface_cuts_share_the_removed_mass_in_proportion(params, seed):
    trace = run_pipeline(random_scores(seed), dataclasses.replace(params, order="huggingface"), (1, 2, 3), 0)
    kept_before = trace.uncut_probs[trace.kept]
    assert trace.probs[trace.kept] == pytest.approx(kept_before / kept_before.sum(), abs=1e-12)


def test_summaries_of_a_hand_computed_step():
    """Top-k 2 of 0.5 | 0.25 | 0.15 | 0.1 removes 0.25 and leaves 2/3 | 1/3: 0.9183 bit, 2 ** 0.9183 = 1.8899 choices."""
    trace = run(scores_of(0.5, 0.25, 0.15, 0.1), top_k=2)
    assert trace.uncut_probs == pytest.approx([0.5, 0.25, 0.15, 0.1], abs=1e-7)
    assert trace.kept.tolist() == [True, True, False, False]
    assert trace.kept_count == 2
    assert trace.removed_mass == pytest.approx(0.25, abs=1e-7)
    assert trace.entropy_bits == pytest.approx(0.9183, abs=1e-4)
    assert trace.effective_choices == pytest.approx(1.8899, abs=1e-4)


@pytest.mark.parametrize(
    ("order", "removed"),
    [
        pytest.param("huggingface", 0.7035 / 1.9106, id="divided first: roots 0.7071 | 0.5 | 0.3873 | 0.3162, the last two removed"),
        pytest.param("llamacpp", 0.25, id="divided last: 0.15 and 0.1 removed"),
    ],
)
def test_removed_mass_is_that_which_the_cut_looked_at(order, removed):
    trace = run(scores_of(0.5, 0.25, 0.15, 0.1), order=order, temperature=2.0, top_k=2)
    assert trace.removed_mass == pytest.approx(removed, abs=1e-4)


@pytest.mark.parametrize("order", ORDERS)
def test_uncut_scores_are_penalised_and_divided_in_both_orders(order):
    trace = run([4.0, 2.0, -1.0], (0, 2), order=order, temperature=0.5, top_k=1, repetition_penalty=2.0)
    assert trace.uncut_scores.tolist() == [4, 4, -4]


@pytest.mark.parametrize("count", [1, 2, 10, 1000])
def test_equal_tokens_are_as_many_effective_choices(count):
    assert run(np.zeros(count)).effective_choices == pytest.approx(count)


@pytest.mark.parametrize("params", [{"temperature": 0.3}, {"top_k": 1}, {"top_p": 0.1}, {"repetition_penalty": 2.0}, {"temperature": 0.0}])
def test_settings_never_alter_the_model_probabilities(params):
    assert run(scores_of(0.7, 0.2, 0.1), (0,), **params).model_probs == pytest.approx([0.7, 0.2, 0.1], abs=1e-7)


@pytest.mark.parametrize("order", ORDERS)
def test_greedy_does_not_divide_cut_or_draw(order):
    trace = run([1.0, 3.0, 2.0], order=order, temperature=0.0, top_k=1, top_p=0.1, min_p=1.0)
    assert not any(stage.applied for stage in trace.stages)
    assert all(stage.scores.tolist() == [1, 3, 2] for stage in trace.stages)
    assert trace.probs == pytest.approx(softmax(np.array([1.0, 3.0, 2.0])), abs=1e-15)
    assert trace.uncut_probs.tolist() == trace.probs.tolist()
    assert (trace.kept_count, trace.removed_mass) == (3, 0)
    assert trace.u is None
    assert trace.choice.token_id == 1


@pytest.mark.parametrize("order", ORDERS)
def test_greedy_still_penalises_repetition(order):
    trace = run([3.0, 2.0], context_ids=(0,), order=order, temperature=0.0, repetition_penalty=2.0)
    assert trace.stage("repetition_penalty").applied
    assert trace.choice.token_id == 1


@pytest.mark.parametrize("order", ORDERS)
def test_top_k_1_chooses_what_greedy_chooses(order):
    for seed in range(50):
        scores = random_scores(seed)
        greedy = run_pipeline(scores, SamplingParams(temperature=0.0, order=order), (), 0)
        single = run_pipeline(scores, SamplingParams(temperature=1.5, top_k=1, order=order, seed=seed), (), 0)
        assert single.choice.token_id == greedy.choice.token_id
        assert single.choice.probability == 1


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("temperature", [1e-6, 2.0])
def test_lowest_and_highest_temperatures_give_finite_probabilities(order, temperature):
    trace = run([14.0, 13.9, -30.0], order=order, temperature=temperature, top_p=0.9)
    assert np.isfinite(trace.probs).all()
    assert trace.probs.sum() == pytest.approx(1)


@pytest.mark.parametrize(("temperature", "favourite"), [(1e-6, 1.0), (2.0, 1 / (1 + np.exp(-0.5)))])
def test_extreme_temperatures_of_two_logits_one_apart(temperature, favourite):
    assert run([1.0, 0.0], temperature=temperature).probs[0] == pytest.approx(favourite)


def test_u_of_a_step_depends_on_seed_and_step():
    trace = run([1.0, 0.0], step=7, seed=3)
    assert (trace.step, trace.u) == (7, uniform(3, 7))


@pytest.mark.parametrize(("top_k", "is_exact"), [(None, False), (4, False), (3, True), (1, True)])
def test_partial_scores_are_exact_once_top_k_cuts_within_them(top_k, is_exact):
    scores = Scores(np.array([3.0, 2.0, 1.0, -INF, -INF], dtype=np.float32), unknown_mass=0.1, known_count=3)
    assert run_pipeline(scores, SamplingParams(top_k=top_k), (), 0).is_exact is is_exact
