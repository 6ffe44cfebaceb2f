"""Speculative decoding: what comes out follows the target, exactly and over many draws; the formulas; the drafts that compute nothing."""

from collections import Counter
from itertools import count, product

import numpy as np
import pytest

from inference.speculative import (
    ModelDraft,
    NoDraft,
    PromptLookup,
    certain,
    chi_square_limit,
    distribution,
    draw_many,
    expected_speedup,
    expected_tokens,
    output_distribution,
    overlap,
    residual,
    uniforms_of,
    verify,
)

P = np.array([0.5, 0.3, 0.2, 0.0])
Q = np.array([0.2, 0.6, 0.0, 0.2])


def pairs():
    generator = np.random.default_rng(0)
    for size in (2, 5, 1000):
        for sharpness in (1, 6):
            p, q = (np.exp(sharpness * generator.normal(size=size)) for _ in range(2))
            q[generator.random(size) < 0.3] = 0.0
            q[0] = 1.0
            yield p / p.sum(), q / q.sum()


# One step, exactly


@pytest.mark.parametrize(("p", "q"), [(P, Q), (Q, P), (P, P), (P, certain(4, 2)), (certain(4, 1), Q), *pairs()])
def test_one_step_draws_from_the_target(p, q):
    assert np.abs(output_distribution(p, q) - p).max() < 1e-12


def test_the_overlap_and_the_residual_by_hand():
    assert overlap(P, Q) == pytest.approx(0.2 + 0.3)
    assert residual(P, Q) == pytest.approx([0.3 / 0.5, 0, 0.2 / 0.5, 0])
    assert np.array_equal(residual(P, P), P)


def test_temperature_shapes_the_distribution_and_zero_leaves_one_token():
    logits = np.array([1.0, 3.0, 3.0, 0.0], dtype=np.float32)
    assert distribution(logits, 0) == pytest.approx([0, 1, 0, 0])
    expected = np.exp(logits.astype(float) / 0.5)
    assert distribution(logits, 0.5) == pytest.approx(expected / expected.sum())


# One round, by hand


def test_a_proposal_is_accepted_under_p_over_q_and_the_next_token_is_a_bonus():
    one = verify([(0, Q), (1, Q)], iter([P, P, P]), iter([0.99, 0.49, 0.45]))
    assert [proposal.is_accepted for proposal in one.proposals] == [True, True]
    assert one.proposals[1].acceptance == pytest.approx(0.5)
    assert one.is_bonus and one.new_ids == (0, 1, 0)


def test_a_refused_proposal_is_replaced_from_the_residual_and_the_rest_is_not_read():
    target = iter([P, P, P])
    one = verify([(1, Q), (0, Q)], target, iter([0.51, 0.7]))
    assert not one.is_bonus and one.accepted_ids == ()
    assert one.new_ids == (2,)  # the residual: 0.6 on token 0, 0.4 on token 2
    assert [proposal.p for proposal in one.proposals] == [pytest.approx(0.3), None]
    assert len(one.examined) == 1 and len(list(target)) == 2


def test_what_the_target_never_says_is_refused():
    assert not verify([(3, Q)], iter([P]), iter([0.0, 0.1])).is_bonus


def test_a_round_without_proposal_is_plain_decoding():
    one = verify([], iter([P]), iter([0.6]))
    assert one.new_ids == (1,) and one.is_bonus


# Whole texts, over many draws

TARGET = {last: probs / probs.sum() for last, probs in enumerate(np.random.default_rng(1).random((3, 3)))}
DRAFT = {last: probs / probs.sum() for last, probs in enumerate(np.random.default_rng(2).random((3, 3)) ** 3)}


class Chain:
    """A model whose next token depends on the last one only."""

    token_ids = np.arange(3)

    def logits_after(self, text_ids):
        return np.log(DRAFT[text_ids[-1]])


def test_texts_follow_the_target_over_many_draws():
    texts, length, draft = 20_000, 3, ModelDraft(Chain(), 3, 1.0)
    uniforms = iter(np.random.default_rng(0).random, None)
    counts = Counter()
    for _ in range(texts):
        text = (0,)
        while len(text) <= length:
            proposed = draft.propose(text, 2, uniforms)
            lasts = (text[-1], *(token_id for token_id, _ in proposed))
            text += verify(proposed, (TARGET[last] for last in lasts), uniforms).new_ids
        counts[text[1 : length + 1]] += 1
    expected = {
        written: texts * np.prod([TARGET[last][token] for last, token in zip((0, *written), written, strict=False)])
        for written in product(range(3), repeat=length)
    }
    chi_square = sum((counts[written] - times) ** 2 / times for written, times in expected.items())
    assert min(expected.values()) > 5
    assert chi_square < chi_square_limit(len(expected) - 1)


def test_many_draws_of_one_step_follow_the_target_and_not_the_draft():
    p, q = next(pair for pair in pairs() if len(pair[0]) == 1000)
    check = draw_many(p, q, 20_000, seed=0)
    assert check.draws == 20_000 and check.expected.sum() == pytest.approx(20_000)
    assert check.chi_square < check.limit and check.largest_error < 1e-12
    assert check.accepted == pytest.approx(overlap(p, q), abs=0.02)
    wrong = draw_many(q, q, 20_000, seed=0)
    counted = wrong.counts[:-1]
    expected = p[wrong.token_ids] * 20_000
    assert ((counted - expected) ** 2 / expected).sum() > check.limit


def test_a_certain_token_leaves_nothing_to_test():
    check = draw_many(certain(5, 3), np.full(5, 0.2), 1000, seed=0)
    assert check.degrees == 0 and check.chi_square == 0 and list(check.counts) == [1000, 0]


@pytest.mark.parametrize(("degrees", "limit"), [(3, 11.345), (10, 23.209), (30, 50.892), (100, 135.807)])
def test_the_limit_is_that_of_the_tables(degrees, limit):
    assert chi_square_limit(degrees) == pytest.approx(limit, rel=0.01)


# The formulas


def test_tokens_per_pass():
    assert expected_tokens(0.0, 4) == 1
    assert expected_tokens(1.0, 4) == 5
    assert expected_tokens(0.8, 3) == pytest.approx((1 - 0.8**4) / (1 - 0.8))


@pytest.mark.parametrize("acceptance_rate", [0.3, 0.9])
def test_tokens_per_pass_when_proposals_are_accepted_independently(acceptance_rate):
    q = np.array([1.0, 0.0])
    p = np.array([acceptance_rate, 1 - acceptance_rate])
    uniforms = iter(np.random.default_rng(3).random, None)
    rounds = [verify([(0, q)] * 3, iter([p] * 4), uniforms) for _ in range(4000)]
    assert np.mean([len(one.new_ids) for one in rounds]) == pytest.approx(expected_tokens(acceptance_rate, 3), rel=0.03)


def test_the_speedup_of_a_free_draft_and_of_one_as_slow_as_the_target():
    assert expected_speedup(0.8, 2, draft_cost=0) == pytest.approx(1 + 0.8 + 0.64)
    assert expected_speedup(1.0, 1, draft_cost=1) == pytest.approx(1)
    assert expected_speedup(0.8, 2, draft_cost=0.2, verify_cost=1.5) == pytest.approx(2.44 / 1.9)


# Drafts and numbers


def test_the_lookup_proposes_what_followed_the_longest_ending_seen_before():
    propose = PromptLookup(10).propose
    text = (1, 2, 3, 4, 5, 9, 3, 6, 1, 2, 3)
    assert [token_id for token_id, _ in propose(text, 3, iter(()))] == [4, 5, 9]
    assert [token_id for token_id, _ in propose((7, 3, 8, 3), 5, iter(()))] == [8, 3]
    assert propose((1, 2, 3), 3, iter(())) == []
    assert propose((1,), 3, iter(())) == []
    ((token_id, q),) = propose(text, 1, iter(()))
    assert q[token_id] == 1 == q.sum()


def test_a_small_model_proposes_among_the_tokens_it_knows():
    class Small:
        token_ids = np.array([2, 5])

        def logits_after(self, text_ids):
            return np.array([0.0, np.log(3)], dtype=np.float32)

    (first, q), (second, _) = ModelDraft(Small(), 7, 1.0).propose((1,), 2, iter([0.5, 0.9]))
    assert (first, second) == (5, 2)
    assert q == pytest.approx([0, 0, 0.25, 0, 0, 0.75, 0])


def test_no_draft_proposes_nothing():
    assert NoDraft().propose((1, 2), 4, iter(())) == []


def test_the_numbers_of_a_round_depend_on_its_seed_and_its_place_alone():
    def first(seed, number):
        uniforms = uniforms_of(seed, number)
        return [next(uniforms) for _ in range(3)]

    assert first(1, 2) == first(1, 2)
    assert len({*first(1, 2), *first(1, 3), *first(2, 2)}) == 9
    assert all(0 <= u < 1 for _, u in zip(count(), first(1, 2), strict=False))
