"""Token ids, their bytes, their text, and a label one can see for each of them.

Ids are the state of a text everywhere in this library: text is made from ids for showing, never the other way round, except once for
the prompt. Labels are for showing and never go back to a model.
"""

import codecs
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache

OPEN, CLOSE = "⟨", "⟩"
_VISIBLE = {" ": "␣", "\n": "↵", "\t": "⇥"}
_BLANK_LETTERS = frozenset("ᅟᅠㅤﾠ឴឵⠀͏\U00016fe4\U0001d159\ufffc")
"""Letters, marks and symbols that Unicode does not call spaces and that print nothing."""
_BLANK_RANGES = ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
"""Variation selectors: they change the character before them and print nothing."""


class Vocabulary:
    """The tokens of one model.

    size     number of logits, `vocab_size`.
    piece    id -> the tokenizer's own spelling, None where the model has a row to spare.
    encode   text -> ids, with the model's opening token.
    to_bytes piece -> bytes of one token.
    special  ids that stand for no text (`<bos>`…).
    """

    def __init__(
        self,
        size: int,
        piece: Callable[[int], str | None],
        encode: Callable[[str], list[int]],
        to_bytes: Callable[[str], bytes],
        special: frozenset[int],
    ):
        self._piece = piece
        self._encode = encode
        self._to_bytes = to_bytes
        self.size = size
        self.special = special

    def encode(self, text: str) -> tuple[int, ...]:
        """Ids of a prompt. Lone surrogates, which no tokenizer accepts, become U+FFFD first."""
        return tuple(self._encode(replace_surrogates(text)))

    def token_bytes(self, token_id: int) -> bytes:
        """What the token adds to the text, in bytes: possibly part of a character. Special tokens add nothing."""
        piece = None if token_id in self.special else self._piece(token_id)
        return self._to_bytes(piece) if piece else b""

    def text(self, token_ids: Iterable[int]) -> str:
        """The text of a run of tokens; a character still incomplete reads « � »."""
        return b"".join(map(self.token_bytes, token_ids)).decode("utf-8", errors="replace")

    def label(self, token_id: int) -> str:
        """A printable name, different for each id, never blank: « ␣chat », « ⟨0xE2⟩ », « ⟨U+200B⟩ ». Plain text: escape it."""
        piece = self._piece(token_id)
        if not piece:
            return f"{OPEN}id {token_id}{CLOSE}"
        if token_id in self.special:
            return visible(piece.encode("utf-8"))
        token = self._to_bytes(piece)
        if len(token) == 1 and piece == f"<0x{token[0]:02X}>":  # « <0x21> » is not the token « ! »
            return f"{OPEN}0x{token[0]:02X}{CLOSE}"
        return visible(token)

    @cached_property
    def labels(self) -> list[str]:
        """Of every token, by id. The first call takes a second."""
        return [self.label(token_id) for token_id in range(self.size)]

    def search(self, text: str) -> list[int]:
        """Ids of the tokens whose label holds `text`, in which a space may be typed for « ␣ »; by id. The first call takes a second."""
        wanted = text.replace(" ", "␣")
        return [token_id for token_id, label in enumerate(self.labels) if wanted in label]

    def labels_in_text(self, token_ids: Sequence[int]) -> list[str]:
        """A label for each token of a text. Where bytes complete a character, its last token also shows it: « ⟨0x98⟩ = 😀 »."""
        labels, pending = [], b""
        for token_id in token_ids:
            token = self.token_bytes(token_id)
            label = self.label(token_id)
            if not token:
                pending = b""
            elif pending or not _is_utf8(token):
                joined = pending + token
                pending = _unfinished_end(joined)
                complete = joined[: len(joined) - len(pending)]
                if complete and _is_utf8(complete):
                    label += f" = {visible(complete)}"
            labels.append(label)
        return labels


def replace_surrogates(text: str) -> str:
    """The same text with every lone surrogate replaced by U+FFFD, as browsers do."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def sentencepiece_bytes(piece: str) -> bytes:
    """Bytes of a SentencePiece-style token: « ▁ » is a space and « <0xE2> » one byte (Kudo & Richardson, 2018)."""
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        return bytes([int(piece[3:5], 16)])
    return piece.replace("▁", " ").encode("utf-8")


def byte_level_bytes(piece: str) -> bytes:
    """Bytes of a GPT-2-style token, in which each byte is written as one printable character (Radford et al., 2019)."""
    alphabet = _byte_level_alphabet()
    if all(character in alphabet for character in piece):
        return bytes(alphabet[character] for character in piece)
    return piece.encode("utf-8")


@lru_cache(1)
def _byte_level_alphabet() -> dict[str, int]:
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + rank): byte for rank, byte in enumerate(hidden)}


def visible(token: bytes) -> str:
    """Bytes, at least one, as characters one can see and tell apart: two different byte strings never give the same result.

    Spaces, line ends and tabs take their usual signs; every other character that prints nothing, changes the writing direction or
    could be taken for one of our signs is spelled by its code, « ⟨U+202E⟩ »; bytes that are not UTF-8 are spelled one by one.
    """
    shown = "".join(_visible_character(character) for character in token.decode("utf-8", errors="surrogateescape"))
    return f"◌{shown}" if unicodedata.combining(shown[0]) else shown


@lru_cache(4096)
def _visible_character(character: str) -> str:
    code = ord(character)
    if character in _VISIBLE:
        return _VISIBLE[character]
    if 0xDC80 <= code <= 0xDCFF:  # an undecodable byte, as `surrogateescape` marks it
        return f"{OPEN}0x{code - 0xDC00:02X}{CLOSE}"
    hidden = (
        unicodedata.category(character) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs")
        or character in _BLANK_LETTERS
        or any(low <= code <= high for low, high in _BLANK_RANGES)
        or character in "␣↵⇥⟨⟩◌"
    )
    return f"{OPEN}U+{code:04X}{CLOSE}" if hidden else character


def _unfinished_end(token: bytes) -> bytes:
    """The last bytes, if they begin a character and more must follow."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(token)
    return decoder.getstate()[0]


def _is_utf8(token: bytes) -> bool:
    try:
        token.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
