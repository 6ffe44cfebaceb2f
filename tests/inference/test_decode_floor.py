"""A decode against a reading of memory: what is timed, on a tiny network; what is derived, by hand."""

import threading

import pytest

from inference.decode_floor import PROMPT_TOKENS, DecodeFloor, measure
from inference.measurement import Spread
from inference.models.bandwidth import BLOCK_BYTES, open_block
from inference.prefix_cache import PrefixCache
from tests.conftest import answers, follow

ROUNDS = 3
BLOCK = 1000


def test_reading_and_decoding_take_turns(noted):
    """(tokens in the state, tokens read) of a pass; the first decode is not timed."""

    def read() -> int:
        noted.passes.append("memory")
        return BLOCK

    progress, result = follow(measure(PrefixCache(noted), lambda: read, ROUNDS))
    turns = [one if one == "memory" else (len(one[0]), len(one[1])) for one in noted.passes]
    decode = (PROMPT_TOKENS, 1)
    assert turns == [(0, PROMPT_TOKENS), decode, *["memory", decode] * ROUNDS]
    assert len(set(noted.passes[1::2])) == 1, "the same decode every time"
    assert len(result.reads_s) == len(result.decodes_s) == ROUNDS
    assert (result.read, result.decode) == (Spread.of(result.reads_s), Spread.of(result.decodes_s))
    assert (result.read_bytes, result.weights_bytes) == (BLOCK, noted.info.weights_bytes)
    assert [one.fraction for one in progress] == [0, 0, 1 / 3, 2 / 3]


def test_memory_is_read_while_everybody_else_waits(tiny):
    scorer = PrefixCache(tiny)
    answered = threading.Event()
    was_answered = []

    def open_watched():
        read = open_block()

        def watched() -> int:
            ask = threading.Thread(target=lambda: (scorer.scores_after((1, 2)), answered.set()), daemon=True)
            ask.start()
            was_answered.append(answered.wait(0.1))
            return read()

        return watched

    _, result = follow(measure(scorer, open_watched, rounds=1))
    assert was_answered == [False] and answered.wait(5)
    assert result.read_bytes == BLOCK_BYTES == 256 * 2**20


def test_visitors_are_answered_between_two_steps_and_after_a_cancellation(tiny):
    scorer = PrefixCache(tiny)
    work = measure(scorer, lambda: lambda: BLOCK, ROUNDS)
    for step in range(3):
        next(work)
        assert answers(scorer, (step, 1))
    work.close()
    assert answers(scorer, (3, 1))


def test_visitors_are_answered_after_a_failure(tiny):
    scorer = PrefixCache(tiny)

    def fail():
        raise MemoryError

    work = measure(scorer, lambda: fail, ROUNDS)
    next(work), next(work)
    with pytest.raises(MemoryError):
        next(work)
    assert answers(scorer, (1, 2))


def test_what_is_derived_by_hand():
    """The fastest reading, 1 GB in 0.1 s, is 10 GB/s: 2 GB of weights take 0.2 s at least, and half a second was needed."""
    result = DecodeFloor(
        read_bytes=10**9,
        read=Spread(0.2, 0.1, 0.4, 3),
        weights_bytes=2 * 10**9,
        decode=Spread(0.5, 0.3, 0.9, 3),
        reads_s=(0.1, 0.2, 0.4),
        decodes_s=(0.3, 0.5, 0.9),
    )
    assert result.bandwidth_bytes_per_s == pytest.approx(10e9)
    assert result.floor_s == pytest.approx(0.2)
    assert result.ratio == pytest.approx(2.5)
    assert result.mbu == pytest.approx(0.4)
