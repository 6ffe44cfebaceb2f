"""What text costs, against sums done by hand and properties that hold whatever the prices."""

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.costs import (
    Prices,
    conversation,
    conversation_input_tokens,
    read_examples,
    request_cost,
    seen_at_s,
    tokens_cost,
    turn_cost,
)

PATH = Path(__file__).parents[2] / "assets" / "prices.json"
EXAMPLES, FALL = read_examples(PATH)
PRICES = Prices(input=3, cache_write=3.75, cached_input=0.3, output=15)

tokens = st.integers(0, 5000)
turns = st.integers(1, 60)
price = st.floats(0, 1000)


def test_a_request_by_hand():
    assert tokens_cost(1_000_000, 2.5) == 2.5
    assert request_cost(1000, 200, PRICES) == pytest.approx(0.003 + 0.003)
    assert request_cost(0, 0, PRICES) == 0


def test_a_conversation_by_hand():
    told = conversation(system_tokens=100, message_tokens=10, answer_tokens=50, turns=3)
    assert [turn.input_tokens for turn in told] == [110, 170, 230]
    assert [turn.reread_tokens for turn in told] == [0, 110, 170]
    assert [turn.new_tokens for turn in told] == [110, 60, 60]
    assert conversation_input_tokens(100, 10, 50, 3) == 510
    assert turn_cost(told[1], PRICES, is_cached=False) == pytest.approx((170 * 3 + 50 * 15) / 1e6)
    assert turn_cost(told[1], PRICES, is_cached=True) == pytest.approx((110 * 0.3 + 60 * 3.75 + 50 * 15) / 1e6)


@given(tokens, tokens, tokens, turns)
def test_the_closed_form_is_the_sum_of_the_turns(system, message, answer, count):
    told = conversation(system, message, answer, count)
    assert len(told) == count
    assert sum(turn.input_tokens for turn in told) == conversation_input_tokens(system, message, answer, count)
    assert sum(turn.output_tokens for turn in told) == count * answer


@given(tokens, tokens, tokens, turns)
def test_a_turn_rereads_what_the_one_before_read_and_its_answer_is_new(system, message, answer, count):
    told = conversation(system, message, answer, count)
    assert told[0].reread_tokens == 0 and told[0].new_tokens == system + message
    for before, turn in pairwise(told):
        assert turn.reread_tokens == before.input_tokens
        assert turn.new_tokens == answer + message


@given(st.integers(1, 500), st.integers(1, 500), st.integers(50, 500))
def test_twice_the_turns_read_about_four_times_the_tokens(message, answer, count):
    ratio = conversation_input_tokens(0, message, answer, 2 * count) / conversation_input_tokens(0, message, answer, count)
    assert ratio == pytest.approx(4, rel=1.1 / count)


@given(tokens, tokens, tokens, turns, price, price)
def test_a_cache_that_discounts_nothing_changes_nothing(system, message, answer, count, read, written):
    prices = Prices(input=read, cache_write=read, cached_input=read, output=written)
    for turn in conversation(system, message, answer, count):
        assert turn_cost(turn, prices, True) == pytest.approx(turn_cost(turn, prices, False))


@given(tokens, tokens, tokens, turns, price, st.floats(0, 1))
def test_a_free_write_and_a_cheaper_read_never_cost_more(system, message, answer, count, read, discount):
    prices = Prices(input=read, cache_write=read, cached_input=read * discount, output=1)
    for turn in conversation(system, message, answer, count):
        assert turn_cost(turn, prices, True) <= turn_cost(turn, prices, False) * (1 + 1e-12)


def test_a_dearer_write_loses_on_the_first_turn_and_wins_later():
    first, second, *_ = conversation(1000, 10, 10, 3)
    assert turn_cost(first, PRICES, True) > turn_cost(first, PRICES, False)
    assert turn_cost(second, PRICES, True) < turn_cost(second, PRICES, False)


@given(st.integers(0, 300), st.floats(0, 60), st.floats(0, 5))
def test_streaming_changes_when_tokens_are_seen_and_never_when_the_last_one_is(count, ttft_s, itl_s):
    streamed, whole = (seen_at_s(count, ttft_s, itl_s, is_streamed) for is_streamed in (True, False))
    assert len(streamed) == len(whole) == count
    assert streamed == sorted(streamed)
    assert all(early <= late for early, late in zip(streamed, whole, strict=True))
    if count:
        assert streamed[0] == ttft_s
        assert whole == [streamed[-1]] * count
        assert streamed[-1] == pytest.approx(ttft_s + (count - 1) * itl_s)


# The examples


def test_the_fall_is_the_one_the_sheet_quotes():
    assert (FALL.before, FALL.after) == (60, 0.06)
    assert FALL.factor == pytest.approx(1000)
    assert FALL.yearly_factor == pytest.approx(10)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.key)
def test_an_example_is_dated_and_sourced(example):
    assert example.name and example.source.label
    assert example.key.isascii() and example.key.isalnum()
    assert 2020 <= int(example.date.split()[-1]) <= 2100
    assert example.prices.cached_input <= example.prices.input <= example.prices.output


def test_examples_are_told_apart():
    for names in ({example.key for example in EXAMPLES}, {example.name for example in EXAMPLES}):
        assert len(names) == len(EXAMPLES)


def test_an_output_token_costs_four_to_five_input_tokens_where_the_two_differ():
    ratios = [example.prices.output / example.prices.input for example in EXAMPLES if example.prices.output != example.prices.input]
    assert ratios and all(4 <= ratio <= 5 for ratio in ratios)


@pytest.mark.parametrize("bad", [-0.01, math.nan, math.inf, None, "3", True])
@pytest.mark.parametrize("name", ["input", "cache_write", "cached_input", "output"])
def test_what_is_not_a_price_is_refused(name, bad):
    with pytest.raises(ValueError):
        Prices(**{**vars(PRICES), name: bad})


@pytest.mark.parametrize("source", [{"label": "Nous", "url": "javascript:alert(1)"}, {"label": "", "url": "https://example.org"}])
def test_a_file_without_a_source_is_refused(tmp_path, source):
    file = json.loads(PATH.read_text(encoding="utf-8"))
    file["examples"][0]["source"] = source
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(file), encoding="utf-8")
    with pytest.raises(ValueError):
        read_examples(path)
