"""What may be typed, what is refused, and a text that is only ever replaced by another."""

import dataclasses

import numpy as np
import pytest

from inference.errors import UserError
from inference.prefix_cache import PrefixCache
from inference.records import SamplingParams, Scores
from inference.sampling import run_pipeline
from inference.sentence import (
    MAX_BRANCHES,
    MAX_PROMPT_CHARACTERS,
    MAX_PROMPT_TOKENS,
    Choice,
    Sentence,
    forced,
    open_sentence,
    with_branch,
    written,
)

TEXT = Sentence("Le chat", (0, 2, 3), (Choice(4, 0.5), Choice(5, 0.25, forced=True), Choice(6, 0.125)))


@pytest.fixture
def scripted_scorer(scripted) -> PrefixCache:
    return PrefixCache(scripted)


def test_opening_tokenizes_the_prompt_and_keeps_it_as_typed(scripted_scorer):
    sentence = open_sentence("Le chat dort sur le", scripted_scorer)
    assert sentence == Sentence("Le chat dort sur le", (0, 2, 3, 4, 5, 6), ())


def test_an_empty_prompt_is_refused(scripted_scorer):
    with pytest.raises(UserError, match=r"est vide.*Écrivez"):
        open_sentence("", scripted_scorer)


@pytest.mark.parametrize(
    ("length", "shown"), [(100_000, "100\u202f000"), (10_001, "10\u202f001")], ids=["far too long", "one character too long"]
)
def test_a_prompt_of_too_many_characters_is_refused_before_it_is_tokenized(length, shown):
    with pytest.raises(UserError, match=f"{shown} caractères.*10\u202f000.*Raccourcissez"):
        open_sentence("a" * length, scorer=None)


def test_a_prompt_of_too_many_tokens_is_refused_with_their_number(scorer):
    prompt = "é€" * 3000
    tokens = len(scorer.vocabulary.encode(prompt))
    assert len(prompt) <= MAX_PROMPT_CHARACTERS
    assert tokens > MAX_PROMPT_TOKENS
    shown = f"{tokens:,}".replace(",", "\u202f")
    with pytest.raises(UserError, match=f"{shown} tokens.*2\u202f048.*Raccourcissez"):
        open_sentence(prompt, scorer)


@pytest.mark.parametrize(("words", "fits"), [(254, True), (255, False)])
def test_a_prompt_leaves_room_for_one_token_in_the_context(scripted_scorer, words, fits):
    """The opening token and 254 words make 255 of a context of 256."""
    prompt = "Le" + " chat" * (words - 1)
    if fits:
        assert len(open_sentence(prompt, scripted_scorer).prompt_ids) == 255
    else:
        with pytest.raises(UserError, match=r"256 tokens.*255"):
            open_sentence(prompt, scripted_scorer)


SURVIVORS = {
    "emoji": "J’ai vu un 👩‍👩‍👧‍👦 hier 😀",
    "right to left": "שלום עולם مرحبا",
    "direction override": "abc\u202edef",
    "NUL": "avant\x00après",
    "control characters": "\x01\x1b[31mrouge\x7f",
    "script": "<script>alert(1)</script>",
    "formula": "$x$ et $$y$$",
    "emphasis": "**gras** _italique_",
    "colour": ":red[x]",
    "spaces": "   ",
    "line ends": "\n\r\n\t",
    "combining": "e\u0301\u0301\u0301",
    "zero width": "a\u200bb\ufeff",
    "one letter": "a",
    "special tokens": "<bos><eos>",
    "outside the basic plane": "𝕏 𐍈",
}


@pytest.mark.parametrize("prompt", SURVIVORS.values(), ids=SURVIVORS)
def test_any_characters_can_be_continued(scorer, prompt):
    sentence = open_sentence(prompt, scorer)
    assert sentence.prompt == prompt
    assert all(0 <= token_id < scorer.vocabulary.size for token_id in sentence.prompt_ids)
    assert np.isfinite(scorer.scores_after(sentence.token_ids).logits).all()


@pytest.mark.parametrize("name", [name for name in SURVIVORS if name != "special tokens"])
def test_prompt_tokens_spell_the_prompt(scorer, name):
    assert scorer.vocabulary.text(open_sentence(SURVIVORS[name], scorer).prompt_ids) == SURVIVORS[name]


@pytest.mark.parametrize(
    ("prompt", "text"), [("a\ud800b", "a\ufffdb"), ("\udfff", "\ufffd"), ("\ude00\ud83d", "\ufffd\ufffd"), ("\ud83d\ude00", "😀")]
)
def test_a_lone_surrogate_reads_as_a_replacement_character(scorer, prompt, text):
    sentence = open_sentence(prompt, scorer)
    assert scorer.vocabulary.text(sentence.prompt_ids) == text
    assert np.isfinite(scorer.scores_after(sentence.token_ids).logits).all()


def test_an_opened_prompt_can_be_written_to_a_file_or_an_address(scorer):
    assert "a" in open_sentence("a\ud800", scorer).prompt.encode("utf-8").decode("utf-8")


def test_words_the_example_does_not_know_are_refused(scripted_scorer):
    with pytest.raises(UserError, match="phrase de l’exemple"):
        open_sentence("Le chien", scripted_scorer)


def test_token_ids_are_those_of_the_prompt_then_those_chosen():
    assert TEXT.generated_ids == (4, 5, 6)
    assert TEXT.token_ids == (0, 2, 3, 4, 5, 6)


def test_a_choice_makes_a_longer_text_and_leaves_the_shorter_one():
    longer = TEXT.with_choice(Choice(7, 0.1))
    assert longer.generated_ids == (4, 5, 6, 7)
    assert TEXT.generated_ids == (4, 5, 6)
    assert (longer.prompt, longer.prompt_ids) == (TEXT.prompt, TEXT.prompt_ids)


@pytest.mark.parametrize(("length", "ids"), [(0, ()), (1, (4,)), (3, (4, 5, 6)), (9, (4, 5, 6))])
def test_rewinding_keeps_the_first_tokens_and_how_they_were_chosen(length, ids):
    rewound = TEXT.rewound(length)
    assert rewound.generated_ids == ids
    assert rewound.choices == TEXT.choices[:length]
    assert rewound.prompt == TEXT.prompt


def test_a_text_cannot_be_changed_in_place():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TEXT.choices = ()


@pytest.mark.parametrize(
    "params", [SamplingParams(temperature=0.0), SamplingParams(seed=2), SamplingParams(temperature=0.5, top_k=3)], ids=str
)
def test_writing_adds_the_token_the_settings_choose_with_the_model_probability(scripted_scorer, params):
    sentence = open_sentence("Le chat dort sur le", scripted_scorer)
    for step in range(3):
        trace = run_pipeline(scripted_scorer.scores_after(sentence.token_ids), params, sentence.token_ids, step)
        sentence = written(sentence, scripted_scorer, params)
        assert sentence.choices[-1] == Choice(trace.choice.token_id, trace.model_probs[trace.choice.token_id], forced=False)


@pytest.mark.parametrize("by_hand", [True, False])
def test_forcing_adds_any_token_with_the_model_probability(scripted_scorer, by_hand):
    """The example gives 22 % to « lit » after « Le chat dort sur le »."""
    sentence = forced(open_sentence("Le chat dort sur le", scripted_scorer), scripted_scorer, 9, by_hand)
    assert sentence.generated_ids == (9,)
    assert sentence.choices[0].probability == pytest.approx(0.22, abs=1e-6)
    assert sentence.choices[0].forced is by_hand


class Reticent:
    """A scorer that tells the probability of two tokens, 3/4 in all."""

    def scores_after(self, token_ids) -> Scores:
        return Scores(np.log(np.array([0.5, 0.25], dtype=np.float32)), unknown_mass=0.25)


def test_written_and_forced_tokens_leave_the_model_what_it_kept_to_itself():
    sentence = Sentence("a", (1,))
    assert written(sentence, Reticent(), SamplingParams(temperature=0.0)).choices[0].probability == pytest.approx(0.5)
    assert forced(sentence, Reticent(), 0).choices[0].probability == pytest.approx(0.5)


def text(*token_ids: int, prompt_ids: tuple[int, ...] = (1, 2)) -> Sentence:
    return Sentence("a", prompt_ids, tuple(Choice(token_id, 0.5) for token_id in token_ids))


@pytest.mark.parametrize(
    ("branches", "left", "kept"),
    [
        ((), text(), ()),
        ((), text(5), (text(5),)),
        ((text(5),), text(5, 6), (text(5, 6),)),
        ((text(5, 6),), text(5), (text(5, 6),)),
        ((text(5, 6),), text(5, 7), (text(5, 6), text(5, 7))),
        ((text(5),), text(5, prompt_ids=(3,)), (text(5), text(5, prompt_ids=(3,)))),
    ],
)
def test_a_text_that_is_left_stays_reachable_at_its_longest(branches, left, kept):
    assert with_branch(branches, left) == kept


def test_the_oldest_branches_go_first():
    branches = ()
    for token_id in range(MAX_BRANCHES + 3):
        branches = with_branch(branches, text(token_id))
    assert branches == tuple(text(token_id) for token_id in range(3, MAX_BRANCHES + 3))


def test_a_token_forced_or_drawn_is_the_same_branch():
    assert text(5).begins(Sentence("a", (1, 2), (Choice(5, 0.5, forced=True), Choice(6, 0.5))))
    assert not text(5, 6).begins(text(5))
