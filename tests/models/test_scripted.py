"""The illustrative model, and the data file it reads: every figure a page shows comes from that file unchanged."""

import json

import numpy as np
import pytest

from inference.distributions import softmax
from inference.errors import UserError
from inference.generation import generate
from inference.models.scripted import CONTEXT_LENGTH
from inference.prefix_cache import PrefixCache
from inference.records import SamplingParams, Stop, StopRules
from tests.conftest import PROMPT, ROOT

SCENARIO = json.loads((ROOT / "assets" / "scenarios" / "chat.json").read_text(encoding="utf-8"))
PIECES = SCENARIO["vocabulary"]
RULES = SCENARIO["rules"]


def ids(pieces) -> tuple[int, ...]:
    return tuple(PIECES.index(piece) for piece in pieces)


def percentages(scripted, token_ids) -> dict[str, float]:
    return dict(zip(PIECES, 100 * softmax(scripted.prefill(token_ids).scores.logits)))


def test_every_piece_of_the_file_is_in_its_vocabulary_once():
    named = {piece for rule in RULES for piece in [*rule["after"], *rule["percent"]]}
    named |= {SCENARIO["opening_token"], SCENARIO["end_token"], *SCENARIO["special"]}
    assert named <= set(PIECES)
    assert len(PIECES) == len(set(PIECES))


def test_each_ending_has_one_rule_and_the_empty_one_has_too():
    endings = [tuple(rule["after"]) for rule in RULES]
    assert len(endings) == len(set(endings))
    assert () in endings


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: " ".join(rule["after"]) or "(empty)")
def test_percentages_are_positive_leave_room_for_the_rest_and_outrank_it(rule):
    listed = rule["percent"].values()
    rest = 100 - sum(listed)
    assert min(listed) > 0
    assert rest > 0
    assert rest / (len(PIECES) - len(listed)) < min(listed)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: " ".join(rule["after"]) or "(empty)")
def test_softmax_of_the_logits_gives_the_percentages_back(scripted, rule):
    ending = ids(rule["after"]) if rule["after"] else ids(["▁toute"])
    shown = percentages(scripted, ending)
    assert {piece: shown[piece] for piece in rule["percent"]} == pytest.approx(rule["percent"], abs=1e-4)
    assert sum(shown.values()) == pytest.approx(100)
    unlisted = [value for piece, value in shown.items() if piece not in rule["percent"]]
    assert max(unlisted) == pytest.approx(min(unlisted))


def test_the_favourite_has_the_logit_the_file_says(scripted):
    logits = scripted.prefill(scripted.vocabulary.encode(PROMPT)).scores.logits
    assert logits.max() == SCENARIO["top_logit"]
    assert logits.dtype == np.float32
    assert logits.shape == (len(PIECES),)


def test_the_first_two_rounds_are_those_of_the_sheet(scripted):
    first = scripted.vocabulary.encode(PROMPT)
    assert [scripted.vocabulary.label(token_id) for token_id in first] == ["<début>", "Le", "␣chat", "␣dort", "␣sur", "␣le"]
    one = percentages(scripted, first)
    assert (one["▁can"], one["▁lit"]) == pytest.approx((45, 22), abs=1e-4)
    two = percentages(scripted, first + ids(["▁can"]))
    assert two["apé"] == pytest.approx(97, abs=1e-4)


def test_greedy_ends_the_sentence_in_ten_bets_then_the_end_token(scripted):
    prompt_ids = scripted.vocabulary.encode(PROMPT)
    steps = list(generate(PrefixCache(scripted), prompt_ids, SamplingParams(temperature=0), StopRules()))
    written = [trace.choice.token_id for trace, _ in steps]
    assert [scripted.vocabulary.label(token_id) for token_id in written[10:]] == ["<fin>"]
    assert scripted.vocabulary.text(written) == " canapé du salon et ronronne doucement."
    assert steps[-1][1] == Stop("end_token")
    assert [stop for _, stop in steps[:-1]] == [None] * 10


def test_it_says_that_its_figures_are_illustrative(scripted):
    assert scripted.info.is_illustrative
    assert "illustratifs" in scripted.info.name
    assert scripted.info.eos_ids == {PIECES.index("<fin>")}


@pytest.mark.parametrize("prompt", ["Le chien dort", "LE CHAT", "Le chat\n", "🐈", "\ud800", "Le chat dort sur le lit bleu"])
def test_a_prompt_outside_its_vocabulary_is_refused_in_french(scripted, prompt):
    with pytest.raises(UserError, match="passez au modèle réel"):
        scripted.vocabulary.encode(prompt)


@pytest.mark.parametrize("text", ["Le chat dort sur le canapé du salon.", "Le chat ronronne, bien fort!", "Le chat"])
def test_a_text_it_knows_is_read_and_given_back_whole(scripted, text):
    assert scripted.vocabulary.text(scripted.vocabulary.encode(text)) == text


def test_reading_on_equals_reading_at_once_and_leaves_the_state_alone(scripted):
    prompt_ids = scripted.vocabulary.encode(PROMPT)
    start = scripted.prefill(prompt_ids[:3])
    whole = scripted.prefill(prompt_ids)
    assert np.array_equal(scripted.prefill(prompt_ids[3:], start.state).scores.logits, whole.scores.logits)
    assert start.state.token_ids == prompt_ids[:3]
    back = scripted.truncate(whole.state, 3)
    assert np.array_equal(scripted.decode(prompt_ids[3], back).scores.logits, scripted.decode(prompt_ids[3], start.state).scores.logits)


def test_a_text_longer_than_the_context_is_refused_in_french(scripted):
    full = scripted.prefill(ids(["Le"]) * CONTEXT_LENGTH)
    with pytest.raises(UserError, match=f"{CONTEXT_LENGTH} tokens. Raccourcissez"):
        scripted.decode(0, full.state)
    with pytest.raises(UserError, match=f"{CONTEXT_LENGTH} tokens. Raccourcissez"):
        scripted.prefill(ids(["Le"]) * (CONTEXT_LENGTH + 1))
