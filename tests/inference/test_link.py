"""An address gives back the state it was made from, and no address breaks the page."""

from urllib.parse import parse_qs, urlencode

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.link import DEFAULT_PARAMS, MAX_LINKED_CHARACTERS, LinkState, from_query, to_query
from inference.records import (
    MAX_NEW_TOKENS,
    MAX_SEED,
    MAX_STOP_LENGTH,
    MAX_STOP_SEQUENCES,
    MAX_TEMPERATURE,
    SamplingParams,
    Scores,
    StopRules,
)
from inference.sampling import ORDERS, run_pipeline
from inference.sentence import Choice

SOURCES = ("modele", "fiche")
NOTHING = from_query({}, SOURCES)
KEYS = ("t", "k", "p", "minp", "rep", "ordre", "graine", "max", "stop", "source", "texte", "suite")


def read(**values: str | list[str]) -> LinkState:
    return from_query({key: value if isinstance(value, list) else [value] for key, value in values.items()}, SOURCES)


def through_an_address(prompt, choices, params, rules, source) -> LinkState:
    address = urlencode(to_query(prompt, choices, params, rules, source), doseq=True)
    return from_query(parse_qs(address, keep_blank_values=True), SOURCES)


def perhaps(strategy):
    return st.one_of(st.none(), strategy)


ANY_PARAMS = st.builds(
    SamplingParams,
    temperature=perhaps(st.one_of(st.just(0.0), st.floats(0.01, MAX_TEMPERATURE))),
    top_k=perhaps(st.integers(1, 300_000)),
    top_p=perhaps(st.floats(0, 1)),
    min_p=perhaps(st.floats(0, 1)),
    repetition_penalty=perhaps(st.floats(0.5, 2)),
    order=st.sampled_from(sorted(ORDERS)),
    seed=st.integers(0, MAX_SEED),
)
ANY_RULES = st.builds(
    StopRules,
    max_new_tokens=st.integers(1, MAX_NEW_TOKENS),
    stop_sequences=st.lists(st.text(min_size=1, max_size=MAX_STOP_LENGTH), max_size=MAX_STOP_SEQUENCES).map(tuple),
)
ANY_CHOICES = st.lists(st.builds(Choice, st.integers(0, 262_143), st.floats(0, 1), st.booleans()), max_size=60).map(tuple)


@given(prompt=st.text(max_size=200), choices=ANY_CHOICES, params=ANY_PARAMS, rules=ANY_RULES, source=st.sampled_from(SOURCES))
def test_an_address_gives_back_the_state_it_was_made_from(prompt, choices, params, rules, source):
    state = through_an_address(prompt, choices, params, rules, source)
    assert state.problems == ()
    assert state.prompt == prompt
    assert state.token_ids == tuple((choice.token_id, choice.forced) for choice in choices)
    assert state.params == params
    assert state.rules == rules
    assert state.source == source


@pytest.mark.parametrize("value", [0.1, 0.95, 0.123456789, 0.9999999, 1 / 3, 1e-7, 1.0, 0.0])
def test_decimals_come_back_in_full(value):
    state = through_an_address("a", (), SamplingParams(top_p=value, min_p=value), StopRules(), "modele")
    assert (state.params.top_p, state.params.min_p) == (value, value)


def test_an_address_holds_nothing_it_can_do_without():
    assert to_query("Le chat", (), DEFAULT_PARAMS, StopRules(), "modele") == {"texte": "Le chat"}


def test_an_empty_address_is_the_default_state():
    assert from_query({}, SOURCES) == LinkState(None, (), DEFAULT_PARAMS, StopRules(), "modele")


def test_an_address_may_open_a_step_of_the_walkthrough_and_the_projector():
    state = from_query({"visite": ["6"], "projecteur": ["1"]}, SOURCES)
    assert (state.tour, state.is_projected, state.problems) == (6, True, ())


@pytest.mark.parametrize("value", ["7", "-1", "03", "x", "٣", ""])
def test_a_step_the_walkthrough_does_not_have_is_refused(value):
    state = from_query({"visite": [value]}, SOURCES)
    assert state.tour == 0
    assert state.problems == ("« visite » : c’est une étape de 1 à 6. La valeur par défaut la remplace.",)


@pytest.mark.parametrize("length", [MAX_LINKED_CHARACTERS, MAX_LINKED_CHARACTERS + 1])
def test_a_prompt_too_long_for_an_address_is_left_out_with_its_tokens(length):
    state = through_an_address("é" * length, (Choice(7, 0.5),), SamplingParams(seed=3), StopRules(), "modele")
    fits = length <= MAX_LINKED_CHARACTERS
    assert state.prompt == ("é" * length if fits else None)
    assert state.token_ids == (((7, False),) if fits else ())
    assert (state.params.seed, state.problems) == (3, ())


@pytest.mark.parametrize("length", [MAX_NEW_TOKENS, MAX_NEW_TOKENS + 1, 3 * MAX_NEW_TOKENS])
def test_an_address_we_make_is_never_one_we_refuse(length):
    assert through_an_address("a", (Choice(1, 0.5),) * length, SamplingParams(), StopRules(), "modele").problems == ()


REFUSED = [
    ("t", ["nan", "inf", "-inf", "1e400", "-0.1", "-1", "2.0001", "99", "abc", "", " ", "1,5", "0x1", "None", "True"]),
    ("k", ["nan", "inf", "0", "-1", "1.5", "1e3", "abc", "", "9" * 30, "9" * 400, "9" * 5000]),
    ("p", ["nan", "inf", "-inf", "-0.1", "1.1", "1e400", "abc", ""]),
    ("minp", ["nan", "inf", "-0.1", "1.1", "abc", ""]),
    ("rep", ["nan", "inf", "0", "0.49", "2.01", "-1", "abc", ""]),
    ("ordre", ["", "abc", "HUGGINGFACE", "non", "<script>"]),
    ("graine", ["nan", "-1", "4294967296", "1.5", "abc", "", "non", "9" * 5000]),
    ("max", ["nan", "inf", "0", "-1", "513", "1.5", "abc", "", "non", "9" * 5000]),
    ("source", ["", "abc", "non", "modele "]),
    ("suite", ["abc", "1.2.x", "-1", "1..2", ".", "1.2.", "1,2", "1.5e3", "f", "1ff", "٣", "²", "9" * 5000, ".".join("1" * 513)]),
]


@pytest.mark.parametrize(
    ("key", "value"), [pytest.param(key, value, id=f"{key}={value[:12]}") for key, values in REFUSED for value in values]
)
def test_a_bad_value_is_refused_in_french_and_costs_only_itself(key, value):
    good = {"texte": "Le chat", "t": "0.5", "k": "7", "graine": "3", "max": "9"}
    state = read(**good | {key: value})
    (problem,) = state.problems
    assert problem.startswith(f"« {key} » : ")
    assert problem.endswith(". La valeur par défaut la remplace.")
    expected = read(**{name: text for name, text in good.items() if name != key})
    assert (state.prompt, state.token_ids, state.params, state.rules, state.source) == (
        expected.prompt,
        expected.token_ids,
        expected.params,
        expected.rules,
        expected.source,
    )


@pytest.mark.parametrize(
    "sequences", [[""], ["x" * (MAX_STOP_LENGTH + 1)], ["a", ""], ["a"] * (MAX_STOP_SEQUENCES + 1), ["a"] * 10_000], ids=len
)
def test_bad_stop_sequences_are_refused_and_the_ceiling_kept(sequences):
    state = read(stop=sequences, max="9")
    assert state.rules == StopRules(9)
    assert len(state.problems) == 1
    assert state.problems[0].startswith("« stop » : ")


def test_each_bad_value_has_its_own_sentence():
    state = read(t="nan", k="0", p="2", suite="x", source="y", graine="3")
    assert sorted(problem.split(" ")[1] for problem in state.problems) == ["k", "p", "source", "suite", "t"]
    assert state.params.seed == 3


def test_the_last_of_repeated_values_counts():
    assert read(t=["0.3", "0.9"], texte=["a", "b"]).params.temperature == 0.9
    assert read(texte=["a", "b"]).prompt == "b"


def test_unknown_keys_are_ignored():
    assert read(utm_source="x", T="9", __class__="y") == NOTHING


def test_a_setting_can_be_switched_off():
    params = read(t="non", k="non", p="non", minp="non", rep="non").params
    assert (params.temperature, params.top_k, params.top_p, params.min_p, params.repetition_penalty) == (None,) * 5


@pytest.mark.parametrize("prompt", ["", " ", "a&b=c#d", "<script>", "é😀", "a\nb", "\x00", "100 %", "$x$ **y**", "+ +"])
def test_any_prompt_survives_an_address(prompt):
    assert through_an_address(prompt, (), SamplingParams(), StopRules(), "modele").prompt == prompt


TRICKY = st.sampled_from(
    ["nan", "-inf", "1e400", "5e-324", "non", "", "0", "-1", "1_0", "9" * 30, "9" * 5000, "٣", "²", "\x00", "1.2f.3", "...", "ff"]
)
VALUES = st.one_of(TRICKY, st.text(max_size=30), st.floats().map(str), st.integers().map(str))


@settings(max_examples=300, deadline=None)
@given(query=st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=5)), st.lists(VALUES, min_size=1, max_size=6)))
def test_no_address_breaks_the_reading_or_the_pipeline(query):
    state = from_query(query, SOURCES)
    trace = run_pipeline(Scores(np.array([14.0, 13.0, -20.0], dtype=np.float32)), state.params, (0, 1), 0)
    assert trace.probs.sum() == pytest.approx(1)
    assert state.source in SOURCES
    assert all(0 <= token_id < 10**9 for token_id, _ in state.token_ids)
    assert all(problem.endswith(".") for problem in state.problems)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_without_a_value_is_no_error(key):
    state = read(**{key: []})
    assert (state.params, state.rules, state.source) == (NOTHING.params, NOTHING.rules, NOTHING.source)


@pytest.mark.parametrize("temperature", ["5e-324", "1e-320", "1e-310", "1e-300"])
def test_a_temperature_too_small_to_divide_by_still_gives_a_distribution(temperature):
    trace = run_pipeline(Scores(np.array([14.0, 13.0, -20.0], dtype=np.float32)), read(t=temperature).params, (), 0)
    assert trace.probs.sum() == pytest.approx(1)
