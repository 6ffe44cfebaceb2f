"""A conversation with the model, and what it leaves behind: the weights before and after, an answer outside of it and inside."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from inference.answers import Answer, answer_ids, score_answer
from inference.facts import Fact
from inference.measurement import Progress, Work, timed, within
from inference.models.base import Model
from inference.prefix_cache import PrefixCache

MAX_REPLY_TOKENS = 12
LINE_END = "\n"

WeightChunks = Callable[[Model], Iterable[bytes | memoryview]]
"""`inference.models.weights.weight_chunks`: all the bytes of a model's weights, some at a time."""


@dataclass(frozen=True)
class Turn:
    """read_tokens  how many the model read before its first word: the whole conversation up to there."""

    said: str
    reply: str
    read_tokens: int
    reply_tokens: int


@dataclass(frozen=True)
class Memory:
    """What a conversation that states a fact changes.

    before, after  fingerprints of the weights around it: SHA-256, in hexadecimal.
    altered        the fingerprint of the same bytes with one single bit changed, in a copy.
    alone          what the model gives to the fact's answer outside of the conversation, before and after it.
    inside         the same, asked at its end.
    """

    before: str
    after: str
    altered: str
    alone: tuple[Answer, Answer]
    inside: Answer
    turns: tuple[Turn, ...]

    @property
    def passes(self) -> int:
        """Of the model, to write the replies."""
        return sum(turn.reply_tokens for turn in self.turns)

    @property
    def is_unchanged(self) -> bool:
        return self.before == self.after


def write(scorer: PrefixCache, prompt_ids: tuple[int, ...], tokens: int, ends: str | None = None) -> Iterator[tuple[int, float]]:
    """Yield the favourites one by one, each with the seconds its pass took, whatever the server knows already.

    The time spent waiting for other visitors to be done with the model is not counted.

    Stops at an end token, after a token that holds `ends`, after `tokens` of them, or where the context does. Raises `UserError`.
    """
    unread, state = prompt_ids, None
    for _ in range(max(1, min(tokens, scorer.info.context_length - len(prompt_ids) + 1))):
        with scorer.model_alone() as model:
            pass_s, forward = timed(partial(model.prefill, unread, state))
        token_id = int(forward.scores.logits.argmax())
        yield token_id, pass_s
        if _ends(scorer, token_id, ends):
            return
        unread, state = (token_id,), forward.state


def _ends(scorer: PrefixCache, token_id: int, ends: str | None) -> bool:
    return token_id in scorer.info.eos_ids or (ends is not None and ends in scorer.vocabulary.text([token_id]))


def fingerprint(chunks: Iterable[bytes | memoryview], expected_bytes: int, doing: str) -> Work[str]:
    """SHA-256 of all the bytes, in hexadecimal. `expected_bytes`, about how many there are, only serves the progress."""
    digest, read_bytes = hashlib.sha256(), 0
    for chunk in chunks:
        yield Progress(min(1.0, read_bytes / max(1, expected_bytes)), doing)
        digest.update(chunk)
        read_bytes += len(chunk)
    return digest.hexdigest()


def with_one_bit_changed(chunks: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """The same bytes but for the lowest bit of the last of them, in a copy."""
    *others, last = chunks
    copy = bytearray(last)
    copy[-1] ^= 1
    yield from others
    yield bytes(copy)


def said_of(fact: Fact) -> tuple[str, ...]:
    """What the visitor of the conversation says, turn by turn."""
    return (fact.stated, "Tu t’en souviendras ?", fact.question)


def measure_memory(scorer: PrefixCache, fact: Fact, weight_chunks: WeightChunks) -> Work[Memory]:
    """Raises `UserError` when the conversation is longer than the model's context."""
    vocabulary = scorer.vocabulary
    question, expected = vocabulary.encode(fact.prompt()), answer_ids(vocabulary, fact.answer)
    size = scorer.info.weights_bytes
    before = yield from within(0.0, 0.3, fingerprint(weight_chunks(scorer.model), size, "prend l’empreinte des poids"))
    yield Progress(0.3, "pose la question avant la conversation")
    alone_before = score_answer(scorer.model_alone, question, expected)
    token_ids, turns = yield from within(0.3, 0.6, _converse(scorer, said_of(fact)))
    yield Progress(0.6, "pose la question dans la conversation")
    inside = score_answer(scorer.model_alone, token_ids + _more(scorer, 2 * LINE_END + fact.prompt()), expected)
    yield Progress(0.63, "pose la question hors de la conversation")
    alone_after = score_answer(scorer.model_alone, question, expected)
    after = yield from within(0.65, 0.8, fingerprint(weight_chunks(scorer.model), size, "prend l’empreinte une seconde fois"))
    altered_chunks = with_one_bit_changed(weight_chunks(scorer.model))
    altered = yield from within(0.8, 1.0, fingerprint(altered_chunks, size, "prend l’empreinte d’une copie à un bit près"))
    return Memory(before, after, altered, (alone_before, alone_after), inside, turns)


def _converse(scorer: PrefixCache, said: tuple[str, ...]) -> Work[tuple[tuple[int, ...], tuple[Turn, ...]]]:
    """The tokens of the whole conversation and its turns; at each one the model reads everything again from the first token."""
    token_ids, turns = scorer.vocabulary.encode(""), []
    for position, sentence in enumerate(said):
        opening = LINE_END if turns else ""
        token_ids += _more(scorer, f"{opening}Élève : {sentence}\nModèle :")
        reply: tuple[int, ...] = ()
        yield Progress(position / len(said), f"tient la conversation, tour {position + 1} sur {len(said)}")
        for token_id, _ in write(scorer, token_ids, MAX_REPLY_TOKENS, LINE_END):
            reply += (token_id,)
            yield Progress(position / len(said), f"tient la conversation, tour {position + 1} sur {len(said)}")
        kept = reply[:-1] if _ends(scorer, reply[-1], LINE_END) else reply
        turns.append(Turn(sentence, scorer.vocabulary.text(kept).strip(), len(token_ids), len(reply)))
        token_ids += kept
    return token_ids, tuple(turns)


def _more(scorer: PrefixCache, text: str) -> tuple[int, ...]:
    """Ids of a text that goes on, without the opening token."""
    return scorer.vocabulary.encode(text)[len(scorer.vocabulary.encode("")) :]
