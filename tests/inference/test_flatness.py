"""Repetition measured on texts whose answer is known by counting."""

import pytest

from inference.flatness import distinct, ngrams, repeated_share, repeats

SAME = [7] * 10
ALL_DIFFERENT = list(range(10))
PERIOD_3 = [1, 2, 3] * 4


def test_ngrams_are_every_run_in_order():
    assert ngrams([1, 2, 3, 4], 3) == [(1, 2, 3), (2, 3, 4)]
    assert ngrams([1, 2], 3) == [] == ngrams([], 1)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_one_token_again_and_again_has_one_ngram(n):
    assert repeated_share(SAME, n) == pytest.approx(1 - 1 / (11 - n))
    assert distinct(SAME, n) == 1 / 10


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_text_that_never_repeats(n):
    assert repeated_share(ALL_DIFFERENT, n) == 0 and not any(repeats(ALL_DIFFERENT, n))
    assert distinct(ALL_DIFFERENT, n) == (11 - n) / 10


def test_a_loop_has_as_many_ngrams_as_tokens_in_its_period():
    assert repeated_share(PERIOD_3, 3) == 1 - 3 / 10
    assert distinct(PERIOD_3, 2) == 3 / 12
    assert repeats(PERIOD_3, 3) == [False] * 5 + [True] * 7


def test_a_mark_is_where_a_run_ends_for_the_second_time():
    assert repeats([1, 2, 3, 9, 1, 2, 3, 4, 2, 3, 4], 3) == [False] * 6 + [True] + [False] * 3 + [True]
    assert repeats([5, 5], 1) == [False, True]


@pytest.mark.parametrize("text", [SAME, ALL_DIFFERENT, PERIOD_3, [1, 1, 2, 1, 1, 2, 3], [1, 2], [4]])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_share_is_that_of_the_marks(text, n):
    marks = repeats(text, n)
    assert len(marks) == len(text)
    assert sum(marks) == pytest.approx(repeated_share(text, n) * len(ngrams(text, n)))


def test_too_short_to_repeat():
    assert repeated_share([1, 2], 3) == 0 == distinct([], 1)
    assert repeats([], 3) == []
