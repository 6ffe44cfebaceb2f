"""A conversation on a tiny network: what is read at each turn, what it writes, and a fingerprint that sees a weight move."""

import dataclasses
import itertools
import time
from contextlib import contextmanager

import pytest

from inference.conversation import MAX_REPLY_TOKENS, Memory, fingerprint, measure_memory, said_of, with_one_bit_changed, write
from inference.errors import UserError
from inference.facts import Fact
from inference.measurement import Progress, timed
from inference.prefix_cache import PrefixCache
from tests.conftest import answers, follow

FACT = Fact("un fait", "Quoi ?", "Un", "mot", "C’est dit.", "C’est lui.", "Il y a un mot.")
PROMPT = (5, 80, 33)


def stored(model) -> list[bytes]:
    """The weights of a model that has none to show."""
    return [b"name\n", bytes(range(100))]


@pytest.fixture
def measured(noted) -> tuple[list[Progress], Memory]:
    return follow(measure_memory(PrefixCache(noted), FACT, stored))


def test_one_bit_changes_and_the_original_does_not():
    original = [b"abc", memoryview(bytearray(b"\x00\x10"))]
    changed = list(with_one_bit_changed(original))
    assert changed == [b"abc", b"\x00\x11"]
    assert bytes(original[1]) == b"\x00\x10"


def test_a_fingerprint_is_the_same_however_the_bytes_come():
    assert follow(fingerprint([b"ab", b"c"], 3, ""))[1] == follow(fingerprint([b"a", memoryview(b"bc")], 3, ""))[1]
    assert follow(fingerprint([b""], 0, ""))[1] == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # FIPS 180-4


# Writing


def test_what_is_written_is_what_transformers_writes(tiny):
    import torch

    written = [token_id for token_id, _ in write(PrefixCache(tiny), PROMPT, 10)]
    expected = tiny.model.generate(torch.tensor([PROMPT]), do_sample=False, max_new_tokens=10, eos_token_id=-1, pad_token_id=0)
    assert written == expected[0, len(PROMPT) :].tolist()


def test_each_token_is_a_pass_that_read_the_one_before(noted):
    total_s, written = timed(lambda: list(write(PrefixCache(noted), PROMPT, 4)))
    token_ids = tuple(token_id for token_id, _ in written)
    assert noted.passes == [((), PROMPT)] + [(PROMPT + token_ids[:n], token_ids[n : n + 1]) for n in range(3)]
    assert all(pass_s > 0 for _, pass_s in written)
    assert sum(pass_s for _, pass_s in written) < total_s


def test_waiting_for_another_visitor_is_no_part_of_a_pass(tiny, monkeypatch):
    scorer = PrefixCache(tiny)
    soon = scorer.model_alone

    @contextmanager
    def after_a_visitor():
        time.sleep(0.3)
        with soon() as model:
            yield model

    monkeypatch.setattr(scorer, "model_alone", after_a_visitor)
    total_s, written = timed(lambda: list(write(scorer, PROMPT, 3)))
    assert sum(pass_s for _, pass_s in written) <= total_s - 3 * 0.3


def test_writing_ends_where_asked_or_where_the_context_does(tiny):
    scorer = PrefixCache(tiny)
    token_ids = [token_id for token_id, _ in write(scorer, PROMPT, 10)]
    third = tiny.vocabulary.text([token_ids[2]])
    ended = [token_id for token_id, _ in write(scorer, PROMPT, 10, third)]
    assert ended == token_ids[: token_ids.index(token_ids[2]) + 1]
    full = (7,) * (tiny.info.context_length - 2)
    assert len(list(write(scorer, full, 10))) == 3  # the last one is written, not read
    with pytest.raises(UserError, match="contexte"):
        list(write(scorer, full + (7,) * 4, 10))


# What a conversation leaves behind


def test_at_each_turn_the_whole_conversation_is_read_again(measured, noted):
    _, memory = measured
    assert [turn.said for turn in memory.turns] == list(said_of(FACT))
    from_the_start = [read for before, read in noted.passes if not before]
    alone, *turns, inside, again = from_the_start
    assert [len(read) for read in turns] == [turn.read_tokens for turn in memory.turns]
    for earlier, later in itertools.pairwise([*turns, inside]):
        assert later[: len(earlier)] == earlier and len(later) > len(earlier)
    assert alone == again == noted.vocabulary.encode(FACT.prompt())
    assert turns[0] == noted.vocabulary.encode("Élève : C’est dit.\nModèle :")
    ending = noted.vocabulary.encode(f"\n\n{FACT.prompt()}")
    assert inside[-len(ending) :] == ending


def test_nothing_is_left_behind(measured):
    _, memory = measured
    assert memory.is_unchanged and memory.before == memory.after != memory.altered
    assert memory.alone[0] == memory.alone[1]
    assert memory.inside.probability != memory.alone[0].probability
    assert memory.passes == sum(turn.reply_tokens for turn in memory.turns)
    assert all(0 < turn.reply_tokens <= MAX_REPLY_TOKENS for turn in memory.turns)


def test_a_reply_keeps_neither_the_end_of_its_line_nor_an_end_token(noted):
    scorer = PrefixCache(noted)
    first = next(token_id for token_id, _ in write(scorer, noted.vocabulary.encode("Élève : C’est dit.\nModèle :"), 1))
    scorer.info = dataclasses.replace(scorer.info, eos_ids=frozenset([first]))
    _, memory = follow(measure_memory(scorer, FACT, stored))
    assert (memory.turns[0].reply, memory.turns[0].reply_tokens) == ("", 1)
    assert memory.turns[1].read_tokens == memory.turns[0].read_tokens + len(
        noted.vocabulary.encode("\nÉlève : Tu t’en souviendras ?\nModèle :")
    )


def test_a_weight_that_moves_meanwhile_is_seen(noted):
    weights = bytearray(100)

    def learn(token_ids, state=None, read=noted.prefill):
        weights[50] = 1
        return read(token_ids, state)

    noted.prefill = learn
    _, memory = follow(measure_memory(PrefixCache(noted), FACT, lambda model: [bytes(weights)]))
    assert not memory.is_unchanged


def test_progress_goes_forward_and_visitors_are_answered_all_along(tiny):
    scorer, fractions = PrefixCache(tiny), []
    work = measure_memory(scorer, FACT, stored)
    for step, progress in enumerate(work):
        fractions.append(progress.fraction)
        if step % 5 == 0:
            assert answers(scorer, (step, 1))
    assert fractions == sorted(fractions) and fractions[0] == 0 and fractions[-1] <= 1
