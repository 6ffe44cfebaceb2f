"""A text as data: complete, true to the trace, and readable by any JSON parser."""

import json

import numpy as np
import pytest

from inference.drawing import uniform
from inference.export import CANDIDATES, sentence_record
from inference.generation import generate
from inference.models.base import ModelInfo
from inference.prefix_cache import PrefixCache
from inference.records import SamplingParams, Scores, StopRules
from inference.sampling import run_pipeline
from inference.sentence import Choice, Sentence, open_sentence
from inference.tokens import Vocabulary, sentencepiece_bytes

PARAMS = SamplingParams(temperature=1.5, top_k=10, top_p=0.9, min_p=0.01, repetition_penalty=1.2, order="llamacpp", seed=4)
RULES = StopRules(5, ("salon",))


@pytest.fixture
def cache(scripted) -> PrefixCache:
    return PrefixCache(scripted)


@pytest.fixture
def sentence(cache) -> Sentence:
    """Five tokens drawn, then one forced."""
    text = open_sentence("Le chat dort sur le", cache)
    for trace, _ in generate(cache, text.prompt_ids, PARAMS, StopRules(5)):
        text = text.with_choice(Choice(trace.choice.token_id, float(trace.model_probs[trace.choice.token_id])))
    return text.with_choice(Choice(33, 0.5, forced=True))


def test_a_record_holds_the_model_the_text_and_the_settings(cache, sentence):
    record = sentence_record(sentence, cache, PARAMS, RULES)
    assert record["model"] == {"name": cache.info.name, "revision": "1", "dtype": ""}
    assert record["illustrative"] is True
    assert record["prompt"] == "Le chat dort sur le"
    assert record["prompt_ids"] == [0, 2, 3, 4, 5, 6]
    assert record["text"] == cache.vocabulary.text(sentence.generated_ids)
    assert record["params"] == {
        "temperature": 1.5,
        "top_k": 10,
        "top_p": 0.9,
        "min_p": 0.01,
        "repetition_penalty": 1.2,
        "order": ["repetition_penalty", "top_k", "top_p", "min_p", "temperature"],
        "seed": 4,
    }
    assert record["stop_rules"] == {"max_new_tokens": 5, "stop_sequences": ["salon"]}


def test_each_step_is_the_trace_of_its_own_context(cache, sentence):
    steps = sentence_record(sentence, cache, PARAMS, RULES)["steps"]
    assert len(steps) == 6
    for number, (step, choice) in enumerate(zip(steps, sentence.choices)):
        context = sentence.prompt_ids + sentence.generated_ids[:number]
        trace = run_pipeline(cache.scores_after(context), PARAMS, context, number)
        assert step["step"] == number
        assert step["token_id"] == choice.token_id
        assert step["token"] == cache.vocabulary.label(choice.token_id)
        assert step["model_probability"] == choice.probability
        assert step["u"] == trace.u == uniform(4, number)
        assert step["kept_count"] == trace.kept_count
        assert step["entropy_bits"] == trace.entropy_bits


def test_drawn_and_forced_tokens_are_told_apart(cache, sentence):
    steps = sentence_record(sentence, cache, PARAMS, RULES)["steps"]
    assert [step["forced"] for step in steps] == [False] * 5 + [True]
    assert all(step["drawn_token_id"] == step["token_id"] for step in steps[:5])
    assert steps[5]["token_id"] == 33


def test_candidates_are_the_most_likely_tokens_before_the_cuts_in_full_precision(cache, sentence):
    step = sentence_record(sentence, cache, PARAMS, RULES)["steps"][0]
    trace = run_pipeline(cache.scores_after(sentence.prompt_ids), PARAMS, sentence.prompt_ids, 0)
    candidates = step["candidates"]
    assert len(candidates) == CANDIDATES
    assert [candidate["token_id"] for candidate in candidates] == np.argsort(-trace.uncut_scores, kind="stable")[:CANDIDATES].tolist()
    for candidate in candidates:
        token_id = candidate["token_id"]
        assert candidate["logit"] == trace.scores.logits[token_id]
        assert candidate["uncut_probability"] == trace.uncut_probs[token_id]
        assert candidate["probability"] == trace.probs[token_id]
        assert candidate["token"] == cache.vocabulary.label(token_id)


def test_numbers_survive_json_unchanged(cache, sentence):
    record = sentence_record(sentence, cache, PARAMS, RULES)
    assert json.loads(json.dumps(record, allow_nan=False)) == record


@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(temperature=0.0), SamplingParams(temperature=None, top_k=1)], ids=str)
def test_any_settings_make_json(cache, sentence, params):
    record = json.loads(json.dumps(sentence_record(sentence, cache, params, StopRules()), allow_nan=False))
    assert record["params"]["temperature"] == params.temperature
    assert (record["steps"][0]["u"] is None) is params.is_greedy


def test_a_prompt_alone_has_no_steps(cache):
    record = sentence_record(open_sentence("Le chat", cache), cache, PARAMS, RULES)
    assert (record["steps"], record["text"]) == ([], "")


class Reticent:
    """A scorer that tells three logits out of thirty."""

    info = ModelInfo("reticent", "1", "", 64, frozenset())
    vocabulary = Vocabulary(30, "t{}".format, lambda text: [1], sentencepiece_bytes, frozenset())

    def scores_after(self, token_ids) -> Scores:
        logits = np.full(30, -np.inf, dtype=np.float32)
        logits[:3] = np.log([0.5, 0.25, 0.125])
        return Scores(logits, unknown_mass=0.125, known_count=3)


def test_scores_a_model_keeps_to_itself_still_make_json():
    record = sentence_record(Sentence("a", (1,), (Choice(0, 0.5),)), Reticent(), SamplingParams(top_k=3), StopRules())
    candidates = json.loads(json.dumps(record, allow_nan=False))["steps"][0]["candidates"]
    assert [candidate["token_id"] for candidate in candidates][:3] == [0, 1, 2]
