"""The loop and what stops it, on scripted texts; then greedy writing against transformers' own `generate`."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from inference.drawing import uniform
from inference.errors import UserError
from inference.generation import find_stop, find_stop_sequence, generate
from inference.models.base import ModelInfo
from inference.prefix_cache import PrefixCache
from inference.records import SamplingParams, Scores, Stop, StopRules
from inference.sampling import apply_repetition_penalty
from inference.tokens import Vocabulary, sentencepiece_bytes

GREEDY = SamplingParams(temperature=0.0)
CAT = "Le chat dort sur le"
WHOLE_TEXT = " canapé du salon et ronronne doucement."


class Typist:
    """A `Scorer` that writes the given pieces one after the other, then its end token, whatever it is asked to continue."""

    PROMPT_IDS = (1,)

    def __init__(self, *pieces: str, context_length: int = 64):
        spelling = ("<fin>", "Début", *pieces)
        self.asked: list[tuple[int, ...]] = []
        self.info = ModelInfo("typist", "1", "", context_length, frozenset([0]))
        self.vocabulary = Vocabulary(len(spelling), spelling.__getitem__, lambda text: [1], sentencepiece_bytes, frozenset([0]))

    def scores_after(self, token_ids) -> Scores:
        self.asked.append(tuple(token_ids))
        token_id = len(token_ids) + 1
        return Scores(np.eye(self.vocabulary.size, dtype=np.float32)[token_id if token_id < self.vocabulary.size else 0] * 9)


@pytest.fixture
def cache(scripted) -> PrefixCache:
    return PrefixCache(scripted)


def write(scorer, prompt_ids, params: SamplingParams, rules: StopRules) -> tuple[list, Stop]:
    """The ids generated, and the stop; each token but the last came with none."""
    steps = list(generate(scorer, prompt_ids, params, rules))
    assert [stop for _, stop in steps[:-1]] == [None] * (len(steps) - 1)
    return [trace.choice.token_id for trace, _ in steps], steps[-1][1]


def test_the_end_token_stops_the_text_and_belongs_to_it(cache):
    ids, stop = write(cache, cache.vocabulary.encode(CAT), GREEDY, StopRules())
    assert stop == Stop("end_token")
    assert cache.vocabulary.text(ids) == WHOLE_TEXT
    assert cache.vocabulary.label(ids[-1]) == "<fin>"


def test_an_end_token_that_comes_first_stops_at_once(cache):
    ids, stop = write(cache, cache.vocabulary.encode("Le chat dort."), GREEDY, StopRules())
    assert (len(ids), stop) == (1, Stop("end_token"))
    assert cache.vocabulary.text(ids) == ""


@pytest.mark.parametrize("ceiling", [1, 2, 10])
def test_the_ceiling_stops_the_text_after_that_many_tokens(cache, ceiling):
    ids, stop = write(cache, cache.vocabulary.encode(CAT), GREEDY, StopRules(ceiling))
    assert (len(ids), stop) == (ceiling, Stop("max_new_tokens"))


@pytest.mark.parametrize(
    ("sequence", "text"),
    [
        pytest.param("apé", " canapé", id="a whole token"),
        pytest.param("canapé", " canapé", id="two tokens"),
        pytest.param(" canapé du salon", " canapé du salon", id="four tokens"),
        pytest.param("é", " canapé", id="two bytes inside a token"),
        pytest.param("pé d", " canapé du", id="from inside one token to inside another"),
        pytest.param("n", " can", id="inside the first token"),
        pytest.param("nn", " canapé du salon et ronronne", id="not the n n of ron|ronne cut elsewhere"),
        pytest.param(WHOLE_TEXT, WHOLE_TEXT, id="the whole text"),
    ],
)
def test_a_stop_sequence_stops_the_text_at_the_token_that_completes_it(cache, sequence, text):
    ids, stop = write(cache, cache.vocabulary.encode(CAT), GREEDY, StopRules(stop_sequences=(sequence,)))
    assert stop == Stop("stop_sequence", sequence)
    assert cache.vocabulary.text(ids) == text


@pytest.mark.parametrize("sequence", ["chat", "le can", "sur le", "Canapé", "salon du", "<fin>"])
def test_a_stop_sequence_found_in_the_prompt_or_nowhere_does_not_fire(cache, sequence):
    ids, stop = write(cache, cache.vocabulary.encode(CAT), GREEDY, StopRules(stop_sequences=(sequence,)))
    assert stop == Stop("end_token")
    assert cache.vocabulary.text(ids) == WHOLE_TEXT


@pytest.mark.parametrize(
    ("pieces", "sequence", "length"),
    [
        pytest.param(["<0xC3>", "<0xA9>", "x"], "é", 2, id="a character in two byte tokens"),
        pytest.param(["<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "x"], "😀", 4, id="a character in four byte tokens"),
        pytest.param(["a<", "b", "<0xE2>", "<0x82>", "<0xAC>", "x"], "<b€", 5, id="letters then a character in three byte tokens"),
        pytest.param(["a", "b", "c", "d", "x"], "abcd", 4, id="four tokens of one letter"),
        pytest.param(["aa", "ab", "x"], "aab", 2, id="a false start just before"),
        pytest.param(["\n", "\n", "x"], "\n\n", 2, id="two line ends"),
        pytest.param(["▁", "▁", "x"], "  ", 2, id="two spaces"),
        pytest.param(["abcdef", "x"], "cd", 1, id="the middle of a token"),
    ],
)
def test_stop_sequences_are_compared_in_bytes(pieces, sequence, length):
    scorer = Typist(*pieces)
    ids, stop = write(scorer, Typist.PROMPT_IDS, GREEDY, StopRules(stop_sequences=(sequence,)))
    assert (len(ids), stop) == (length, Stop("stop_sequence", sequence))


def test_half_a_character_is_not_a_stop_sequence():
    assert write(Typist("<0xC3>", "<0xA8>"), Typist.PROMPT_IDS, GREEDY, StopRules(stop_sequences=("é",)))[1] == Stop("end_token")


def test_a_stop_sequence_seen_earlier_does_not_fire_again():
    vocabulary = Typist("ab", "c", "d").vocabulary
    assert find_stop_sequence(vocabulary, (2,), ("ab",)) == "ab"
    assert find_stop_sequence(vocabulary, (2, 3), ("ab",)) is None
    assert find_stop_sequence(vocabulary, (2, 3, 4), ("ab", "cd")) == "cd"


def test_of_two_sequences_completed_by_one_token_the_first_listed_is_recorded():
    vocabulary = Typist("xaby").vocabulary
    assert find_stop_sequence(vocabulary, (2,), ("b", "a")) == "b"
    assert find_stop_sequence(vocabulary, (2,), ("a", "b")) == "a"


def test_a_stop_sequence_with_a_lone_surrogate_does_not_break_the_text(cache):
    assert write(cache, cache.vocabulary.encode(CAT), GREEDY, StopRules(stop_sequences=("\ud800",)))[1] == Stop("end_token")


@pytest.mark.parametrize(
    ("prompt_length", "generated_ids", "rules", "stop"),
    [
        pytest.param(1, (2,), StopRules(5), None, id="nothing yet"),
        pytest.param(1, (), StopRules(5), None, id="nothing generated"),
        pytest.param(9, (2, 0), StopRules(2, ("a",)), Stop("end_token"), id="end token over ceiling and context"),
        pytest.param(9, (2,), StopRules(1, ("a",)), Stop("stop_sequence", "a"), id="stop sequence over ceiling and context"),
        pytest.param(9, (2,), StopRules(1), Stop("max_new_tokens"), id="ceiling over context"),
        pytest.param(9, (2,), StopRules(5), Stop("context_length"), id="context alone"),
        pytest.param(8, (2,), StopRules(5), None, id="one token of context left"),
        pytest.param(1, (0, 2), StopRules(5), None, id="an end token that is not last was forced past"),
    ],
)
def test_one_stop_is_recorded_in_order_of_priority(prompt_length, generated_ids, rules, stop):
    assert find_stop(Typist("a", context_length=10), prompt_length, generated_ids, rules) == stop


@pytest.mark.parametrize(("prompt_length", "written"), [(250, 6), (255, 1), (256, 1)])
def test_a_full_context_stops_the_text(cache, prompt_length, written):
    prompt_ids = cache.vocabulary.encode(CAT) * 60
    prompt_ids = prompt_ids[-prompt_length:]
    ids, stop = write(cache, prompt_ids, GREEDY, StopRules(40))
    assert (len(ids), stop) == (written, Stop("context_length"))


def test_a_prompt_longer_than_the_context_is_refused(cache):
    with pytest.raises(UserError, match="256 tokens"):
        next(generate(cache, (2,) * 257, GREEDY, StopRules()))


@pytest.mark.parametrize("scorer_name", ["cache", "scorer"])
def test_an_empty_prompt_is_refused(request, scorer_name):
    with pytest.raises(UserError):
        next(generate(request.getfixturevalue(scorer_name), (), GREEDY, StopRules()))


def test_nothing_is_computed_before_it_is_asked_for():
    scorer = Typist("a", "b", "c")
    steps = generate(scorer, Typist.PROMPT_IDS, GREEDY, StopRules())
    assert scorer.asked == []
    next(steps)
    assert scorer.asked == [(1,)]
    next(steps)
    assert scorer.asked == [(1,), (1, 2)]


def test_steps_are_numbered_and_see_the_prompt_and_what_was_written(cache):
    prompt_ids = cache.vocabulary.encode(CAT)
    written = ()
    for expected_step, (trace, _) in enumerate(generate(cache, prompt_ids, SamplingParams(repetition_penalty=2.0, seed=5), StopRules(6))):
        assert trace.step == expected_step
        penalised = apply_repetition_penalty(trace.before("repetition_penalty"), 2.0, prompt_ids + written)
        assert trace.stage("repetition_penalty").scores.tolist() == penalised.tolist()
        written += (trace.choice.token_id,)


def test_the_same_seed_writes_the_same_text_and_another_writes_another(cache):
    prompt_ids = cache.vocabulary.encode(CAT)
    texts = {seed: write(cache, prompt_ids, SamplingParams(seed=seed), StopRules()) for seed in range(20)}
    assert all(write(cache, prompt_ids, SamplingParams(seed=seed), StopRules()) == text for seed, text in texts.items())
    assert len({tuple(ids) for ids, _ in texts.values()}) > 10


@pytest.mark.parametrize(
    "change", [{"temperature": 0.3}, {"top_k": 2}, {"top_p": 0.2}, {"min_p": 0.5}, {"repetition_penalty": 1.8}, {"order": "llamacpp"}]
)
def test_u_of_each_step_stays_when_a_setting_moves(cache, change):
    prompt_ids = cache.vocabulary.encode(CAT)
    params = SamplingParams(seed=11)
    before = [trace.u for trace, _ in generate(cache, prompt_ids, params, StopRules(8))]
    after = [trace.u for trace, _ in generate(cache, prompt_ids, replace(params, **change), StopRules(8))]
    common = min(len(before), len(after))
    assert before[:common] == after[:common] == [uniform(11, step) for step in range(common)]


FRENCH_PROMPTS = (
    "Le chat dort sur le",
    "La capitale de la France est",
    "Il était une fois, dans un pays lointain,",
    "Pour faire une omelette, il faut",
    "Les principaux fleuves français sont",
    "Bonjour, je m’appelle Claire et",
    "En 1789, la Révolution",
    "Le professeur explique à la classe que",
    "« Où vas-tu ? » demanda",
    "La photosynthèse est le processus par lequel",
)


@pytest.mark.parametrize("prompt", FRENCH_PROMPTS)
def test_greedy_writes_what_transformers_writes(model, prompt):
    """Token for token over 40 tokens, or up to the end token, at which both stop after having written it."""
    cache = PrefixCache(model)
    prompt_ids = cache.vocabulary.encode(prompt)
    ids, _ = write(cache, prompt_ids, GREEDY, StopRules(40))
    input_ids = torch.tensor([prompt_ids])
    expected = model.model.generate(input_ids, attention_mask=torch.ones_like(input_ids), do_sample=False, max_new_tokens=40)
    assert ids == expected[0, len(prompt_ids) :].tolist()
    assert len(ids) == 40 or ids[-1] in model.info.eos_ids
