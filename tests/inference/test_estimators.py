"""What n answers of N are worth: against every subset of n taken one by one, and against closed forms."""

import math
from collections import Counter
from itertools import combinations, permutations
from statistics import fmean

import pytest

from inference.estimators import Interval, best_of, pass_at, student_t, vote_of

DRAWN = ("rome", "rome", "milan", "milan", "milan", "roma", "turin")
"""« rome » and « roma » are both right: two spellings split their votes."""
RIGHT = {"rome", "roma", "roms"}


def winners(answers: tuple[str, ...]) -> set[str]:
    votes = Counter(answers)
    return {answer for answer, count in votes.items() if count == max(votes.values())}


@pytest.mark.parametrize("n", range(1, 8))
def test_each_is_the_average_over_every_subset(n):
    subsets = list(combinations(range(len(DRAWN)), n))
    is_right = [answer in RIGHT for answer in DRAWN]
    assert pass_at(n, sum(is_right), len(DRAWN)) == pytest.approx(fmean(any(is_right[i] for i in subset) for subset in subsets))
    assert best_of(n, is_right) == pytest.approx(fmean(is_right[min(subset)] for subset in subsets))
    voted = [winners(tuple(DRAWN[i] for i in subset)) for subset in subsets]
    by_hand = fmean(len(leaders & RIGHT) / len(leaders) for leaders in voted)
    assert vote_of(n, Counter(DRAWN), RIGHT) == pytest.approx(by_hand)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_tie_broken_at_random_is_one_broken_by_the_first_drawn(n):
    """`Counter.most_common` keeps the first seen of equals: over every order of drawing, it comes to the same."""
    orders = permutations(DRAWN[:5], n)
    by_hand = fmean(Counter(order).most_common(1)[0][0] in RIGHT for order in orders)
    assert vote_of(n, Counter(DRAWN[:5]), RIGHT) == pytest.approx(by_hand)


@pytest.mark.parametrize(("n", "right", "drawn"), [(1, 3, 10), (5, 3, 10), (7, 3, 10), (8, 3, 10), (10, 0, 10), (4, 10, 10), (32, 1, 32)])
def test_pass_at_n_is_the_product_of_drawing_only_wrong_ones(n, right, drawn):
    """∏ (N − c − i) / (N − i), one answer after the other."""
    none = math.prod(max(0, drawn - right - i) / (drawn - i) for i in range(n))
    assert pass_at(n, right, drawn) == pytest.approx(1 - none, abs=1e-12)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("n", [1, 3, 8])
def test_pass_at_n_is_unbiased(p, n):
    """Its mean over the binomial number of right answers among 16 is 1 − (1 − p)^n exactly; that of 1 − (1 − c/N)^n is not."""
    weights = [math.comb(16, c) * p**c * (1 - p) ** (16 - c) for c in range(17)]
    assert sum(w * pass_at(n, c, 16) for c, w in enumerate(weights)) == pytest.approx(1 - (1 - p) ** n)
    naive = sum(w * (1 - (1 - c / 16) ** n) for c, w in enumerate(weights))
    assert (naive < 1 - (1 - p) ** n - 1e-7) == (n > 1)


def test_one_answer_is_worth_the_same_to_all_and_so_are_two_to_a_vote():
    is_right = [answer in RIGHT for answer in DRAWN]
    votes = Counter(DRAWN)
    chances = [pass_at(1, 3, 7), best_of(1, is_right), vote_of(1, votes, RIGHT), vote_of(2, votes, RIGHT)]
    assert chances == pytest.approx([3 / 7] * 4)


def test_two_answers_only_make_a_vote_a_majority_of_hypergeometric_draws():
    """Odd n, two answers: right when more than n / 2 of those taken are."""
    n, right, wrong = 9, 14, 18
    more = sum(math.comb(right, k) * math.comb(wrong, n - k) for k in range(5, 10)) / math.comb(32, n)
    assert vote_of(n, Counter(oui=right, non=wrong), {"oui"}) == pytest.approx(more)


def test_32_different_answers_are_a_vote_for_any_of_them():
    votes = Counter(str(number) for number in range(32))
    assert [vote_of(n, votes, {"7"}) for n in (1, 16, 32)] == pytest.approx([1 / 32] * 3)
    assert vote_of(32, votes, {"non"}) == 0


@pytest.mark.parametrize(
    ("freedom", "in_tables"),
    [(3, 3.1824), (4, 2.7764), (5, 2.5706), (6, 2.4469), (8, 2.3060), (10, 2.2281), (30, 2.0423), (60, 2.0003), (120, 1.9799)],
)
def test_students_t_is_that_of_the_tables(freedom, in_tables):
    assert student_t(freedom) == pytest.approx(in_tables, rel=1e-4 if freedom > 5 else 2e-3)


@pytest.mark.parametrize("freedom", [3, 6, 62])
def test_students_t_leaves_2_5_percent_beyond_it(freedom):
    """By the integral of its density, Γ((ν + 1) / 2) / (√(νπ) Γ(ν / 2)) · (1 + t² / ν)^(−(ν + 1) / 2)."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    step = student_t(freedom) / 10_000
    middles = ((i + 0.5) * step for i in range(10_000))
    below = step * scale * sum((1 + t * t / freedom) ** (-(freedom + 1) / 2) for t in middles)
    assert 0.5 - below == pytest.approx(0.025, abs=1e-4)


def test_differences_have_students_interval():
    interval = Interval.of_differences([0.0, 0.5, 0.5, 0.0])
    half = 3.1824 * math.sqrt(1 / 12) / 2
    assert (interval.value, interval.low, interval.high) == pytest.approx((0.25, 0.25 - half, 0.25 + half), abs=1e-3)


def test_differences_that_are_all_the_same_leave_no_width():
    assert not Interval.of_differences([0.1 + 0.2, 0.3, 0.3, 0.3]).has_width
    assert Interval.of_differences([0.0, 0.0, 0.0, 1 / 32]).has_width
    assert Interval.of_chances([1.0] * 63).has_width


def test_no_interval_leaves_what_can_be():
    few = Interval.of_differences([-1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert few.value < few.high == 1
    assert Interval.of_differences([-value for value in (-1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)]).low == -1
    for questions in range(1, 80):
        none, every = Interval.of_chances([0.0] * questions), Interval.of_chances([1.0] * questions)
        assert 0 <= none.low < 1e-12 and 1 - 1e-12 < every.high <= 1
        assert none.high == pytest.approx(1 - every.low) and 0 < none.high < 1, "right every time is not right for ever"


def test_chances_have_the_interval_of_noughts_and_ones_of_the_same_mean():
    assert Interval.of_chances([0.5] * 6) == Interval.of_chances([True, False] * 3)


@pytest.mark.parametrize(("right", "asked"), [(0, 10), (10, 10), (32, 63)])
def test_wilson_holds_the_shares_the_data_do_not_reject(right, asked):
    """Its bounds are where the score test is at its limit: |p̂ − p| = 1.96 √(p (1 − p) / n)."""
    interval = Interval.of_chances([True] * right + [False] * (asked - right))
    assert interval.value == right / asked
    assert -1e-12 < interval.low <= interval.value + 1e-12 and interval.value - 1e-12 <= interval.high < 1 + 1e-12
    for bound in (interval.low, interval.high):
        assert abs(right / asked - bound) == pytest.approx(1.959964 * math.sqrt(bound * (1 - bound) / asked), abs=1e-6)
