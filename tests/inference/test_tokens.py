"""Bytes, texts and labels of tokens, over the whole vocabulary of the embedded model: 262,144 tokens."""

import html
import random
import re
import unicodedata
from collections import defaultdict
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode

from inference.escaping import html_text
from inference.models.hf import make_vocabulary
from inference.tokens import Vocabulary, byte_level_bytes, replace_surrogates, sentencepiece_bytes, visible

SIZE = 262_144
PRINT_NOTHING = [
    # Unicode's Default_Ignorable_Code_Point.
    *[range(0xAD, 0xAE), range(0x34F, 0x350), range(0x61C, 0x61D), range(0x115F, 0x1161), range(0x17B4, 0x17B6), range(0x180B, 0x1810)],
    *[range(0x200B, 0x2010), range(0x202A, 0x202F), range(0x2060, 0x2070), range(0x3164, 0x3165), range(0xFE00, 0xFE10)],
    *[range(0xFEFF, 0xFF00), range(0xFFA0, 0xFFA1), range(0xFFF0, 0xFFF9), range(0x1BCA0, 0x1BCA4), range(0x1D173, 0x1D17B)],
    range(0xE0000, 0xE1000),
    # An empty Braille cell, Khitan filler, the null notehead; and the object replacement character, of no width in browsers.
    *[range(0x2800, 0x2801), range(0x16FE4, 0x16FE5), range(0x1D159, 0x1D15A), range(0xFFFC, 0xFFFD)],
]
INVISIBLE = {chr(code) for codes in PRINT_NOTHING for code in codes}
FORBIDDEN_CATEGORIES = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}
TEXTS = [
    "Le chat dort sur le canapé du salon et ronronne doucement.",
    "À l’œuvre, ça va ? « Évidemment ! » — 1 234,56 €\u202f%",
    "Deux  espaces,\ttabulation\r\net\n\n\nlignes vides \n",
    "😀 👩‍👩‍👧‍👦 🇫🇷 🛰️ 👍🏽 𓀀 🜂 ﷽",
    "القط ينام على الأريكة في الصالون.",
    "החתול ישן על הספה בסלון.",
    "猫がソファで眠っている。 고양이 बिल्ली แมว",
    "e\u0301 n\u0303 a\u0323\u0302",
    "<bold> & \"guillemets\" 'apostrophes' <0x41> ▁",
    "\u200b\ufeff\u202eabc\u2066",
    "def f(x):\n    return {'a': x ** 2}\n",
]


@pytest.fixture(scope="module")
def tokenizer(model_folder) -> Tokenizer:
    return Tokenizer.from_file(str(model_folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def vocabulary(tokenizer) -> Vocabulary:
    return make_vocabulary(tokenizer, SIZE)


@pytest.fixture(scope="module")
def labels(vocabulary) -> list[str]:
    return [vocabulary.label(token_id) for token_id in range(SIZE)]


@pytest.fixture(scope="module")
def byte_ids(tokenizer) -> list[int]:
    """Ids of the tokens that stand for one byte, in the order of the bytes."""
    return [tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in range(256)]


def hidden_characters(text: str) -> list[str]:
    """Characters of a text that show nothing, or change how their neighbours show."""
    return [f"U+{ord(c):04X}" for c in text if c in INVISIBLE or c.isspace() or unicodedata.category(c) in FORBIDDEN_CATEGORIES]


def toy_vocabulary(pieces: list[str], special: frozenset[int] = frozenset(), size: int = 8) -> Vocabulary:
    return Vocabulary(size, dict(enumerate(pieces)).get, lambda text: [], sentencepiece_bytes, special)


# Labels


def test_every_label_shows_something_and_hides_nothing(labels):
    assert [token_id for token_id, label in enumerate(labels) if not label] == []
    assert {token_id: hidden for token_id, label in enumerate(labels) if (hidden := hidden_characters(label))} == {}


def test_no_two_tokens_have_the_same_label(labels, tokenizer):
    ids_of = defaultdict(list)
    for token_id, label in enumerate(labels):
        ids_of[label].append(token_id)
    assert {label: [tokenizer.id_to_token(token_id) for token_id in ids] for label, ids in ids_of.items() if len(ids) > 1} == {}


def test_every_label_is_inert_in_html_and_reads_the_same_there(labels):
    for label in labels:
        escaped = html_text(label)
        assert not re.search(r"[<>\"']|&(?!(?:lt|gt|amp|#34|#39);)", escaped)
        assert html.unescape(escaped) == label


def test_spaces_line_ends_and_tabs_have_their_signs(vocabulary, tokenizer):
    pieces = {"▁chat": "␣chat", "▁": "␣", "▁▁": "␣␣", "\n": "↵", "\n\n": "↵↵", "\t": "⇥", "apé": "apé", "▁lit": "␣lit"}
    assert {piece: vocabulary.label(tokenizer.token_to_id(piece)) for piece in pieces} == pieces


def test_byte_tokens_read_in_hexadecimal(vocabulary, byte_ids):
    assert [vocabulary.label(token_id) for token_id in byte_ids] == [f"⟨0x{byte:02X}⟩" for byte in range(256)]


def test_special_tokens_go_by_their_name_and_add_no_text(vocabulary):
    assert [vocabulary.label(token_id) for token_id in range(4)] == ["<pad>", "<eos>", "<bos>", "<unk>"]
    assert {vocabulary.token_bytes(token_id) for token_id in vocabulary.special} == {b""}


@pytest.mark.parametrize("piece", ["\n", " ", "\u200b", "\u202e<fin>"])
def test_a_special_token_with_a_blank_name_is_seen_too(piece):
    label = toy_vocabulary([piece], special=frozenset([0])).label(0)
    assert label
    assert hidden_characters(label) == []


def test_a_row_without_a_token_goes_by_its_id_and_adds_no_text():
    vocabulary = toy_vocabulary(["a"], size=3)
    assert [vocabulary.label(token_id) for token_id in range(3)] == ["a", "⟨id 1⟩", "⟨id 2⟩"]
    assert vocabulary.text([0, 1, 0]) == "aa"


def test_a_token_that_reads_like_one_of_our_signs_is_spelled():
    pieces = ["␣", "↵", "⟨id 7⟩", "⟨0xE2⟩", "◌"]
    shown = [toy_vocabulary(pieces).label(token_id) for token_id in range(5)]
    assert shown == ["⟨U+2423⟩", "⟨U+21B5⟩", "⟨U+27E8⟩id␣7⟨U+27E9⟩", "⟨U+27E8⟩0xE2⟨U+27E9⟩", "⟨U+25CC⟩"]


# Characters one can see


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=12), min_size=2, max_size=6, unique=True))
def test_different_bytes_never_look_the_same(tokens):
    assert len({visible(token) for token in tokens}) == len(tokens)


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=12) | st.text(min_size=1, max_size=8).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_bytes_never_look_blank(token):
    assert visible(token)
    assert hidden_characters(visible(token)) == []


def test_each_character_that_prints_nothing_is_spelled():
    assert {f"U+{ord(c):04X}" for c in INVISIBLE if visible(c.encode()) != f"⟨U+{ord(c):04X}⟩"} == set()


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (b" le chat", "␣le␣chat"),
        (b"\n\t", "↵⇥"),
        (b"\0", "⟨U+0000⟩"),
        ("\u202e".encode(), "⟨U+202E⟩"),
        ("\u00a0".encode(), "⟨U+00A0⟩"),
        (b"\xe2\x82", "⟨0xE2⟩⟨0x82⟩"),
        (b"a\xff", "a⟨0xFF⟩"),
        ("\u0301".encode(), "◌\u0301"),
        ("e\u0301".encode(), "e\u0301"),
        ("😀".encode(), "😀"),
    ],
)
def test_what_bytes_look_like(token, shown):
    assert visible(token) == shown


# Texts


@pytest.mark.parametrize("text", [*TEXTS, "a\0b"], ids=ascii)
def test_a_prompt_is_given_back_whole(vocabulary, tokenizer, text):
    ids = vocabulary.encode(text)
    assert vocabulary.text(ids) == text.replace("▁", " ")
    assert vocabulary.text(ids) == tokenizer.decode(list(ids), skip_special_tokens=True)


def test_any_run_of_tokens_reads_as_the_tokenizer_reads_it(vocabulary, tokenizer, byte_ids):
    """Bytes included, here those of whole characters; the next test has the others."""
    draw = random.Random(0)
    others = sorted(set(range(SIZE)) - set(byte_ids))
    for _ in range(4000):
        ids = draw.choices(others, k=draw.randrange(1, 40))
        at = draw.randrange(len(ids) + 1)
        ids[at:at] = [byte_ids[byte] for byte in draw.choice("Aé€🜂𓀀").encode()]
        assert vocabulary.text(ids) == tokenizer.decode(ids, skip_special_tokens=True)


def test_bytes_that_make_no_character_cost_nothing_but_themselves(vocabulary, tokenizer, byte_ids):
    """In a run of byte tokens that is not UTF-8, the tokenizers library shows « � » for each byte of the run, good ones too. Here the
    good ones are kept, and « � » stands for what Python's decoder replaces. Around such runs the two agree.
    """
    draw = random.Random(1)
    byte_of = {token_id: byte for byte, token_id in enumerate(byte_ids)}
    others = sorted(set(range(SIZE)) - set(byte_ids) - vocabulary.special)
    for _ in range(2000):
        ids = [draw.choice(draw.choice([byte_ids, others])) for _ in range(draw.randrange(1, 20))]
        expected = ""
        for is_byte, run in groupby(ids, byte_of.__contains__):
            if is_byte:
                expected += bytes(map(byte_of.get, run)).decode("utf-8", "replace")
            else:
                expected += tokenizer.decode(list(run))
        assert vocabulary.text(ids) == expected


@pytest.mark.parametrize(
    ("text", "read_as"), [("\ud800 chat", "\ufffd chat"), ("chat\udfff", "chat\ufffd"), ("\ud83d\ude00", "😀"), ("chat", "chat")], ids=ascii
)
def test_lone_surrogates_become_replacement_characters(vocabulary, text, read_as):
    assert replace_surrogates(text) == read_as
    assert vocabulary.encode(text) == vocabulary.encode(read_as)


def test_a_prompt_opens_with_the_opening_token_once(vocabulary):
    assert vocabulary.encode("Le chat dort sur le") == (2, 3258, 11184, 42038, 1270, 674)
    assert vocabulary.encode("") == (2,)


# Labels in their text


def test_bytes_show_themselves_then_the_character_they_complete(vocabulary, tokenizer):
    assert tokenizer.token_to_id("🜂") is None
    ids = vocabulary.encode("le 🜂")
    assert vocabulary.labels_in_text(ids)[-4:] == ["⟨0xF0⟩", "⟨0x9F⟩", "⟨0x9C⟩", "⟨0x82⟩ = 🜂"]
    assert vocabulary.text(ids[:-1]) == "le \ufffd"


def test_two_characters_in_bytes_are_completed_one_by_one(vocabulary):
    shown = vocabulary.labels_in_text(vocabulary.encode("🜂𓀀"))
    assert [label for label in shown if "=" in label] == ["⟨0x82⟩ = 🜂", "⟨0x80⟩ = 𓀀"]


def test_tokens_after_an_unfinished_character_keep_their_labels(vocabulary, byte_ids):
    text = vocabulary.encode(
        "le chat dort sur le canapé du salon et ronronne doucement pendant que la pluie tombe sur les toits de la ville"
    )[1:]
    ids = [byte_ids[0xF0], byte_ids[0x9F], *text]
    assert vocabulary.labels_in_text(ids) == [vocabulary.label(token_id) for token_id in ids]


def test_a_character_in_bytes_is_completed_even_after_a_stray_byte(vocabulary, byte_ids):
    ids = [byte_ids[0xFF], *(byte_ids[byte] for byte in "🜂".encode())]
    assert vocabulary.labels_in_text(ids) == ["⟨0xFF⟩", "⟨0xF0⟩", "⟨0x9F⟩", "⟨0x9C⟩", "⟨0x82⟩ = 🜂"]


def test_a_special_token_leaves_its_neighbours_labels_alone(vocabulary, byte_ids):
    ids = [byte_ids[0xF0], 1, *vocabulary.encode("chat")]
    assert vocabulary.labels_in_text(ids) == ["⟨0xF0⟩", "<eos>", "<bos>", "chat"]


# Spellings


def test_byte_level_letters_stand_for_the_256_bytes_one_to_one():
    alphabet = bytes_to_unicode()
    assert {byte: byte_level_bytes(letter) for byte, letter in alphabet.items()} == {byte: bytes([byte]) for byte in range(256)}


@settings(deadline=None)
@given(st.binary(max_size=20))
def test_byte_level_spelling_is_undone(token):
    assert byte_level_bytes("".join(map(bytes_to_unicode().get, token))) == token


@pytest.mark.parametrize(
    ("piece", "token"),
    [
        ("▁chat", b" chat"),
        ("<0xE2>", b"\xe2"),
        ("<0x0A>", b"\n"),
        ("<0x0A>a", b"<0x0A>a"),
        ("<bold>", b"<bold>"),
        ("▁▁", b"  "),
        ("é", b"\xc3\xa9"),
    ],
)
def test_sentencepiece_spelling_is_undone(piece, token):
    assert sentencepiece_bytes(piece) == token
