"""Reading a prompt and writing after it: what is timed, on a tiny network; what is derived, by hand."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from inference.kv_cache import cache_bytes
from inference.measurement import Spread
from inference.passages import prompt_of
from inference.prefill_decode import COMPARED_PROMPT, COMPARED_TOKENS, Generation, LengthTiming, measure
from inference.prefix_cache import PrefixCache
from tests.conftest import Noted, answers, follow

LENGTHS = (8, 40, 252, 253, 1024)
"""The context is 256 tokens: with four decodes, 252 is the longest that fits."""
REPEATS, DECODES = 2, 4
VISITED = (1, 2, 3)


@pytest.fixture(scope="module")
def seen(tiny) -> SimpleNamespace:
    """A whole measurement, on a server that has answered one visitor: its progress, its result, its passes, the server."""
    noted = Noted(tiny)
    scorer = PrefixCache(noted)
    scorer.scores_after(VISITED)
    noted.passes.clear()
    progress, result = follow(measure(scorer, LENGTHS, REPEATS, DECODES))
    return SimpleNamespace(progress=progress, result=result, passes=noted.passes, scorer=scorer)


def test_progress_goes_from_0_towards_1_and_never_back(seen):
    fractions = [progress.fraction for progress in seen.progress]
    assert fractions[0] == 0
    assert fractions == sorted(fractions)
    assert 0.9 < fractions[-1] < 1


def test_lengths_beyond_the_context_are_left_out(seen):
    assert [timing.tokens for timing in seen.result.timings] == [8, 40, 252]


def test_each_length_is_read_whole_from_an_empty_cache_then_written_after(seen):
    """(tokens in the state, tokens read); the first pass of all is not timed."""
    passes = [(len(before), len(read)) for before, read in seen.passes]
    expected = [(0, 8)]
    for length in (8, 40, 252):
        expected += [(0, length)] * REPEATS + [(length + written, 1) for written in range(DECODES)]
    assert passes[: len(expected)] == expected
    for timing in seen.result.timings:
        assert (timing.ttft.repeats, timing.itl.repeats) == (REPEATS, DECODES)
        assert timing.ttft.low_s > 0 and timing.itl.low_s > 0


def test_what_is_written_is_the_models_favourite(seen, tiny):
    before, read = next(one for one in seen.passes if len(one[0]) == 9)
    prompt = prompt_of(8, tiny.vocabulary.encode)
    first = int(np.argmax(tiny.prefill(prompt).scores.logits))
    assert before == (*prompt, first)
    assert read == (int(np.argmax(tiny.prefill(before).scores.logits)),)


def test_the_cache_weighed_is_the_prompts_alone(seen, tiny):
    for timing in seen.result.timings:
        assert timing.cache_bytes == tiny.prefill([5] * timing.tokens).state.nbytes == cache_bytes(tiny.info.architecture, timing.tokens)


def test_with_and_without_the_cache_the_same_texts_are_read(seen):
    cached, recomputed = seen.passes[-2 * COMPARED_TOKENS : -COMPARED_TOKENS], seen.passes[-COMPARED_TOKENS:]
    assert [len(read) for _, read in cached] == [COMPARED_PROMPT] + [1] * (COMPARED_TOKENS - 1)
    assert all(before == () for before, _ in recomputed)
    assert [before + read for before, read in cached] == [read for _, read in recomputed]
    generation = seen.result.generation
    assert len(generation.cached_s) == len(generation.recomputed_s) == COMPARED_TOKENS
    assert generation.prompt_tokens == COMPARED_PROMPT


def test_a_short_context_is_never_outgrown(noted):
    noted.info = dataclasses.replace(noted.info, context_length=100)
    follow(measure(PrefixCache(noted), LENGTHS, repeats=1, decodes=1))
    assert max(len(before) + len(read) for before, read in noted.passes) <= 100


def test_visitors_are_answered_between_two_steps_and_after_a_cancellation(tiny):
    scorer = PrefixCache(tiny)
    work = measure(scorer, (8, 16), REPEATS, DECODES)
    for step in range(8):
        next(work)
        assert answers(scorer, (step, 1))
    work.close()
    assert answers(scorer, (8, 1))


def test_visitors_are_answered_after_a_failure(tiny, noted, monkeypatch):
    scorer = PrefixCache(noted)
    work = measure(scorer, (8,), REPEATS, DECODES)
    next(work)

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(noted, "prefill", fail)
    with pytest.raises(MemoryError):
        next(work)
    monkeypatch.undo()
    assert answers(scorer, (8, 1))


def test_measuring_leaves_no_scores_behind_and_pushes_none_out(seen):
    assert seen.scorer.knows(VISITED)
    assert not seen.scorer.knows(prompt_of(8, seen.scorer.vocabulary.encode))


# Records


def test_tokens_per_second():
    timing = LengthTiming(tokens=512, ttft=Spread(2.0, 1.0, 4.0, 3), itl=Spread(0.05, 0.04, 0.1, 8), cache_bytes=0)
    assert timing.input_tps == 256
    assert timing.output_tps == 20


def test_the_speedup_leaves_the_first_token_out():
    assert Generation(128, cached_s=(9.0, 1.0, 2.0), recomputed_s=(1.0, 10.0, 20.0)).speedup == 10
