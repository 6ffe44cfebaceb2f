"""Softmax, entropy, divergence and the largest entries, against values one can work out by hand."""

import numpy as np
import pytest

from inference.distributions import descending_heads, entropy_bits, kl_divergence, largest, log_softmax, softmax

INF = np.inf


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.0], [1]),
        ([3.0, 3.0], [1 / 2, 1 / 2]),
        ([np.log(3), 0.0], [3 / 4, 1 / 4]),
        ([np.log(5), np.log(3), np.log(2)], [0.5, 0.3, 0.2]),
        ([0.0, -INF], [1, 0]),
        ([-INF, np.log(3), -INF, 0.0], [0, 3 / 4, 0, 1 / 4]),
        ([1e6, 1e6 - np.log(4), -1e6], [0.8, 0.2, 0]),
    ],
)
def test_softmax_closed_form(scores, expected):
    assert softmax(np.array(scores)) == pytest.approx(expected, abs=1e-9)


def test_softmax_of_float32_is_computed_in_float64():
    scores = np.random.default_rng(0).normal(size=262_144).astype(np.float32) * 10
    probs = softmax(scores)
    assert probs.dtype == np.float64
    assert probs.sum() == pytest.approx(1, abs=1e-12)


def test_softmax_ignores_a_constant_added_to_every_score():
    scores = np.array([2.0, 0.5, -1.0])
    assert softmax(scores + 1000) == pytest.approx(softmax(scores), abs=1e-12)


def test_softmax_gives_probability_0_to_a_cut_token_and_to_no_other():
    assert (softmax(np.array([1.0, -INF, -700.0])) > 0).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.0, 0.0], [-np.log(2), -np.log(2)]),
        ([np.log(3), 0.0], [np.log(0.75), np.log(0.25)]),
        ([5.0, -INF], [0, -INF]),
        ([0.0, -2000.0], [0, -2000]),
    ],
)
def test_log_softmax_closed_form(scores, expected):
    assert log_softmax(np.array(scores)) == pytest.approx(expected, abs=1e-12)


def test_log_softmax_is_natural_logarithm_of_softmax():
    scores = np.random.default_rng(1).normal(size=100)
    assert np.exp(log_softmax(scores)) == pytest.approx(softmax(scores), abs=1e-15)


@pytest.mark.parametrize(
    ("probs", "bits"),
    [
        ([1.0], 0),
        ([1.0, 0.0], 0),
        ([0.5, 0.5], 1),
        ([0.5, 0.25, 0.25], 1.5),
        ([0.25] * 4, 2),
        ([1 / 1024] * 1024, 10),
        ([0.0, 0.5, 0.0, 0.5], 1),
    ],
)
def test_entropy_closed_form(probs, bits):
    assert entropy_bits(np.array(probs)) == pytest.approx(bits, abs=1e-12)


def test_entropy_is_never_negative():
    assert entropy_bits(np.array([1.0 + 1e-15, 0.0])) == 0


@pytest.mark.parametrize(
    ("p", "q", "nats"),
    [
        ([0.5, 0.5], [0.5, 0.5], 0),
        ([1.0, 0.0], [0.5, 0.5], np.log(2)),
        ([0.5, 0.5], [0.75, 0.25], 0.5 * np.log(4 / 3)),
        ([0.0, 1.0], [0.0, 1.0], 0),
        ([0.5, 0.5], [1.0, 0.0], INF),
    ],
)
def test_kl_divergence_closed_form(p, q, nats):
    assert kl_divergence(np.array(p), np.array(q)) == pytest.approx(nats, abs=1e-12)


def test_kl_divergence_of_two_distributions_is_positive_and_not_symmetric():
    p, q = np.array([0.9, 0.1]), np.array([0.5, 0.5])
    assert kl_divergence(p, q) > 0
    assert kl_divergence(p, q) != pytest.approx(kl_divergence(q, p))


@pytest.mark.parametrize(
    ("scores", "count", "ids"),
    [
        ([1.0, 3.0, 2.0], 2, [1, 2]),
        ([1.0, 3.0, 2.0], 3, [1, 2, 0]),
        ([1.0, 3.0, 2.0], 50, [1, 2, 0]),
        ([1.0, 3.0], 0, []),
        ([7.0, 7.0, 7.0, 7.0], 2, [0, 1]),
        ([2.0, 5.0, 2.0, 5.0, 2.0], 4, [1, 3, 0, 2]),
        ([-INF, 0.0, -INF], 2, [1, 0]),
    ],
)
def test_largest_goes_by_decreasing_score_then_by_id(scores, count, ids):
    assert largest(np.array(scores), count).tolist() == ids


def test_largest_agrees_with_a_full_stable_sort():
    scores = np.random.default_rng(2).integers(0, 40, size=3000).astype(np.float64)
    assert largest(scores, 700).tolist() == np.argsort(-scores, kind="stable")[:700].tolist()


@pytest.mark.parametrize("size", [1, 1023, 1024, 1025, 20_000])
def test_descending_heads_begin_the_full_order_and_end_with_all_of_it(size):
    probs = np.random.default_rng(3).integers(1, 500, size=size) / 500
    order = sorted(probs.tolist(), reverse=True)
    heads = [head.tolist() for head in descending_heads(probs)]
    assert all(head == order[: len(head)] for head in heads)
    assert heads[-1] == order
    assert [len(head) for head in heads] == sorted({len(head) for head in heads})


def test_descending_heads_leave_zeros_out():
    assert [head.tolist() for head in descending_heads(np.array([0.0, 0.2, 0.0, 0.5, 0.3]))] == [[0.5, 0.3, 0.2]]


@pytest.mark.parametrize(
    "function",
    [
        softmax,
        log_softmax,
        entropy_bits,
        lambda values: kl_divergence(values, values),
        lambda values: largest(values, 2),
        lambda values: list(descending_heads(values)),
    ],
    ids=["softmax", "log_softmax", "entropy_bits", "kl_divergence", "largest", "descending_heads"],
)
def test_arguments_are_not_written_to(function):
    values = np.array([0.2, 0.5, 0.3, 0.0])
    values.flags.writeable = False
    function(values)
    assert values.tolist() == [0.2, 0.5, 0.3, 0.0]
