"""The four texts: what the model makes of each, read again by hand; the same u for both draws; a measurement one can leave."""

from dataclasses import replace

import numpy as np
import pytest

from inference.distributions import entropy_bits, log_softmax, softmax
from inference.drawing import uniform
from inference.errors import UserError
from inference.generation import generate
from inference.measurement import Progress
from inference.prefix_cache import PrefixCache
from inference.records import SamplingParams, StopRules
from inference.strategies import (
    BEAM,
    DRAW_A,
    DRAW_B,
    GREEDY,
    MAX_PROMPT_TOKENS,
    Settings,
    Strategies,
    Written,
    checked_prompt,
    measure,
    parts_at,
)
from tests.conftest import PROMPT, answers, follow

TOKENS = 12
SEED = 3
SETTINGS = Settings(3, 1.0, SamplingParams(seed=SEED), SamplingParams(top_p=0.5, seed=SEED))
RECOMPUTED = 1e-4
"""Nats or bits, of a token read with the cache or with all the others. Seen: 2e-6, and 2e-5 on the real model."""


def strategies(model, settings: Settings = SETTINGS, prompt: str = "Il", tokens: int = TOKENS) -> Strategies:
    return follow(measure(PrefixCache(model), model.vocabulary.encode(prompt), settings, tokens))[1]


@pytest.fixture(scope="module")
def measured(tiny) -> tuple[list[Progress], Strategies]:
    return follow(measure(PrefixCache(tiny), tiny.vocabulary.encode("Il"), SETTINGS, TOKENS))


@pytest.fixture(scope="module")
def texts(measured) -> dict[str, Written]:
    return {text.name: text for text in measured[1].texts}


def written(log_prob: float, *token_ids: int) -> Written:
    return Written("", token_ids, np.full(len(token_ids), log_prob / len(token_ids)), np.arange(len(token_ids), dtype=float))


def test_each_strategy_writes_what_it_says(tiny, measured, texts):
    scorer, prompt_ids = PrefixCache(tiny), tiny.vocabulary.encode("Il")
    assert list(texts) == [GREEDY, BEAM, DRAW_A, DRAW_B]
    for name, params in {GREEDY: SamplingParams(temperature=0), DRAW_A: SETTINGS.draw_a, DRAW_B: SETTINGS.draw_b}.items():
        expected = tuple(trace.choice.token_id for trace, _ in generate(scorer, prompt_ids, params, StopRules(TOKENS)))
        assert texts[name].token_ids == expected
    assert texts[BEAM].token_ids == measured[1].search.best.token_ids
    assert len({text.token_ids for text in texts.values()}) == 4


def test_log_probabilities_and_entropies_are_the_models_own_whatever_the_settings(tiny, texts):
    """Against a full recompute, token after token, without a cache."""
    prompt_ids = tiny.vocabulary.encode("Il")
    for text in texts.values():
        rows = [tiny.prefill((*prompt_ids, *text.token_ids[:length])).scores.logits for length in range(len(text.token_ids))]
        log_probs = [log_softmax(row)[token_id] for row, token_id in zip(rows, text.token_ids, strict=True)]
        assert text.log_probs == pytest.approx(log_probs, abs=RECOMPUTED)
        assert text.log_prob == pytest.approx(sum(log_probs), abs=RECOMPUTED * TOKENS)
        assert text.mean_log_prob == pytest.approx(text.log_prob / TOKENS)
        assert text.entropies_bits == pytest.approx([entropy_bits(softmax(row)) for row in rows], abs=RECOMPUTED)


def test_the_beams_own_sum_is_what_the_model_finds_when_it_reads_again(measured, texts):
    assert measured[1].search.best.log_prob == pytest.approx(texts[BEAM].log_prob, abs=RECOMPUTED)


def test_the_real_models_sums_are_a_full_recomputes(model):
    result = strategies(model, Settings(2, 0.0, SETTINGS.draw_a, SETTINGS.draw_b), PROMPT, tokens=4)
    assert result.search.best.log_prob == pytest.approx(result.texts[1].log_prob, abs=RECOMPUTED)
    scorer, prompt_ids = PrefixCache(model), model.vocabulary.encode(PROMPT)
    traces = [trace for trace, _ in generate(scorer, prompt_ids, SETTINGS.draw_a, StopRules(4))]
    added_up = sum(float(np.log(trace.model_probs[trace.choice.token_id])) for trace in traces)
    assert result.texts[2].log_prob == pytest.approx(added_up, abs=RECOMPUTED)


def test_both_draws_have_the_same_u_at_each_step(texts):
    for name in (DRAW_A, DRAW_B):
        assert [drawn.u for drawn in texts[name].draws] == [uniform(SEED, step) for step in range(TOKENS)]
        assert [drawn.draw.token_id for drawn in texts[name].draws] == list(texts[name].token_ids)
        for drawn in texts[name].draws:
            assert drawn.draw.low <= drawn.u < drawn.draw.low + drawn.draw.probability
    assert texts[GREEDY].draws == texts[BEAM].draws == ()


def test_the_same_settings_under_the_same_u_write_the_same_text(tiny):
    same = strategies(tiny, replace(SETTINGS, draw_b=SETTINGS.draw_a))
    assert same.texts[2].token_ids == same.texts[3].token_ids
    assert parts_at(*same.texts[2:]) is None


def test_a_draw_at_temperature_zero_is_greedy_and_the_first_to_be_likeliest_wins(tiny):
    greedy = SamplingParams(temperature=0)
    result = strategies(tiny, Settings(1, 1.0, greedy, greedy))
    assert {text.token_ids for text in result.texts} == {result.texts[0].token_ids}
    assert len({text.log_prob for text in result.texts}) == 1, "the same text is the same pass"
    assert result.likeliest.name == GREEDY
    assert [drawn.u for drawn in result.texts[2].draws] == [None] * TOKENS


def test_where_texts_part():
    assert parts_at(written(-1, 1, 2, 3), written(-1, 1, 2, 4)) == 2
    assert parts_at(written(-1, 5), written(-1, 1, 2)) == 0
    assert parts_at(written(-1, 1, 2), written(-2, 1, 2)) is None


def test_the_likeliest_the_least_and_the_flattest(measured):
    texts = (written(-8.0, 1, 2, 3, 4), written(-4.0, 7, 7, 7, 7), written(-9.0, 1, 2, 1, 2), written(-40.0, 5, 6, 7, 8))
    result = Strategies(texts, measured[1].search)
    assert (result.likeliest, result.least_likely, result.flattest) == (texts[1], texts[3], texts[1])
    assert [text.repeated_share for text in texts] == [0, 0.5, 0, 0]
    assert texts[1].entropies_by_repeat == (3.0, 1.0)
    assert texts[1].distinct(1) == 0.25 and texts[0].distinct(1) == 1


def test_an_end_token_ends_a_text(tiny):
    end_ids = frozenset(range(0, 256, 2))
    scorer = PrefixCache(tiny)
    scorer.info = replace(tiny.info, eos_ids=end_ids)
    _, result = follow(measure(scorer, tiny.vocabulary.encode("Il"), SETTINGS, TOKENS))
    assert min(len(text.token_ids) for text in result.texts) < TOKENS
    for text in result.texts:
        assert not end_ids.intersection(text.token_ids[:-1])
        assert len(text.token_ids) == TOKENS or text.token_ids[-1] in end_ids


@pytest.mark.parametrize(("penalty", "is_behind"), [(0.0, False), (1.0, True)])
def test_a_text_the_beam_followed_to_its_end_loses_to_a_less_likely_one_only_by_the_penalty(tiny, penalty, is_behind):
    scorer = PrefixCache(tiny)
    scorer.info = replace(tiny.info, eos_ids=frozenset(range(0, 256, 3)))
    settings = replace(SETTINGS, width=2, length_penalty=penalty)
    _, result = follow(measure(scorer, tiny.vocabulary.encode("Un"), settings, TOKENS))
    greedy, beam, *_ = result.texts
    assert result.search.leaves(greedy.token_ids) is None
    assert (beam.log_prob < greedy.log_prob - RECOMPUTED * TOKENS) == is_behind


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_prompt_is_refused(tiny, text):
    with pytest.raises(UserError, match="Écrivez"):
        checked_prompt(text, tiny.info, tiny.vocabulary)


def test_a_prompt_too_long_is_refused_by_the_lab_or_by_the_models_context(tiny):
    longest = checked_prompt("a" * MAX_PROMPT_TOKENS, tiny.info, tiny.vocabulary)
    assert len(longest) == MAX_PROMPT_TOKENS
    with pytest.raises(UserError, match="65 tokens, et ce laboratoire en prend 64"):
        checked_prompt("a" * (MAX_PROMPT_TOKENS + 1), tiny.info, tiny.vocabulary)
    with pytest.raises(UserError, match="11 tokens, et ce laboratoire en prend 10"):
        checked_prompt("a" * 11, replace(tiny.info, context_length=50), tiny.vocabulary)


def test_progress_never_goes_back(measured):
    fractions = [step.fraction for step in measured[0]]
    assert fractions == sorted(fractions) and fractions[0] == 0 and fractions[-1] < 1
    assert len(fractions) > 3 * TOKENS


@pytest.mark.parametrize("reached", [0, 0.2, 0.7, 0.96])
def test_the_model_is_free_between_two_steps_and_after_a_cancellation(tiny, reached):
    scorer = PrefixCache(tiny)
    work = measure(scorer, tiny.vocabulary.encode("Il"), SETTINGS, TOKENS)
    while next(work).fraction < reached:
        pass
    assert answers(scorer, (1, 2))
    work.close()
    assert answers(scorer, (3, 4))
