"""Precisions measured in turn, on a model small enough to know everything of: its scores depend on the last token alone."""

import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inference.distributions import kl_divergence, softmax
from inference.errors import UserError
from inference.measurement import Laboratory, Progress
from inference.models.base import Forward, ModelInfo, State, checked_ids
from inference.passages import read_passages
from inference.precisions import DECODE_ROUNDS, PREFILL_ROUNDS, PREFILL_TOKENS, PROMPTS, Precision, measure
from inference.prefix_cache import PrefixCache
from inference.records import Scores
from inference.tokens import Vocabulary
from tests.conftest import follow

OPENING, SIZE = 256, 257
"""An opening token, after the 256 bytes."""
BLOCK_BYTES = 1000
DISK = Path(tempfile.gettempdir())
WEIGHTS_BYTES = {"float32": 4000, "int8": 1000, "int4": 500}
NOISE = {"float32": 0.0, "int8": 0.05, "int4": 1.0}
"""What rounding adds to the scores."""


def encode(text: str) -> list[int]:
    return [OPENING, *text.encode()]


class Bigram:
    """`Model` whose scores after a token are its row of a table. Remembers what it was asked to read."""

    vocabulary = Vocabulary(SIZE, lambda token_id: f"<0x{token_id:02X}>", encode, lambda piece: bytes([int(piece[3:5], 16)]), frozenset())

    def __init__(self, precision: str):
        random = np.random.default_rng(0)
        self.table = random.normal(scale=3, size=(SIZE, SIZE))
        self.table = (self.table + NOISE[precision] * random.normal(size=self.table.shape)).astype(np.float32)
        self.info = ModelInfo("bigramme", "1", precision, 4096, frozenset(), weights_bytes=WEIGHTS_BYTES[precision])
        self.prefills, self.decodes = [], 0

    def prefill(self, token_ids, state=None) -> Forward:
        read = checked_ids(self.info, token_ids, state)
        self.prefills.append(read)
        return Forward(Scores(self.table[read[-1]].copy()), State(read))

    def decode(self, token_id, state) -> Forward:
        self.decodes += 1
        return Forward(Scores(self.table[token_id].copy()), State((*state.token_ids, token_id)))

    def truncate(self, state, length) -> State:
        return State(state.token_ids[:length])

    def logits_along(self, token_ids) -> np.ndarray:
        return self.table[list(token_ids)]


def weight_chunks(model) -> Iterator[bytes]:
    """There is no room for int8."""
    yield bytes(model.info.weights_bytes)
    if model.info.dtype == "int8":
        raise OSError("no room")


class Bench:
    """A measurement of `names`, and what it went through."""

    def __init__(self, names: tuple[str, ...] = ("int8", "int4")):
        self.scorer = PrefixCache(Bigram("float32"))
        self.models = {"float32": self.scorer.model}
        self.work = measure(self.scorer, names, self.open_precision, lambda: lambda: BLOCK_BYTES, weight_chunks, DISK)

    def open_precision(self, model, name: str) -> Bigram:
        assert model is self.scorer.model
        self.models[name] = Bigram(name)
        return self.models[name]

    def run(self) -> tuple[list[Progress], tuple[Precision, ...]]:
        return follow(self.work)


def is_free(scorer: PrefixCache) -> bool:
    """Whether somebody else can use the model now."""

    def use():
        with scorer.model_alone():
            pass

    visitor = threading.Thread(target=use, daemon=True)
    visitor.start()
    visitor.join(timeout=30)
    return not visitor.is_alive()


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


@pytest.fixture(scope="module")
def measured(bench) -> tuple[list[Progress], tuple[Precision, ...]]:
    return bench.run()


@pytest.fixture(scope="module")
def precisions(measured) -> dict[str, Precision]:
    return {precision.name: precision for precision in measured[1]}


def positions() -> list[int]:
    """Every token of every passage, in the order they are read."""
    return [token_id for passage in read_passages() for token_id in encode(passage)]


def test_the_model_that_is_running_comes_first_then_the_others_as_asked(measured):
    _, result = measured
    assert [precision.name for precision in result] == ["float32", "int8", "int4"]
    assert [precision.weights_bytes for precision in result] == list(WEIGHTS_BYTES.values())
    assert [precision.store_s is None for precision in result] == [True, False, False]
    assert all(precision.store_s >= 0 for precision in result[1:])


def test_the_time_from_the_disk_is_told_where_there_was_room(precisions):
    assert precisions["float32"].load_s > 0
    assert precisions["int8"].load_s is None
    assert precisions["int4"].load_s > 0


def test_the_reference_does_not_differ_from_itself(precisions):
    reference = precisions["float32"]
    assert (reference.kl_nats == 0).all()
    assert reference.same_favourite.all() and reference.top1_agreement == 1


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_the_divergence_is_that_of_each_position_from_the_reference(bench, precisions, name):
    """Σ p ln(p / q), by hand, p being the reference."""
    reference, other = bench.models["float32"].table, bench.models[name].table
    by_hand = []
    for token_id in positions():
        p, q = (np.exp(table[token_id].astype(np.float64)) for table in (reference, other))
        p, q = p / p.sum(), q / q.sum()
        by_hand.append(float(np.sum(p * np.log(p / q))))
    assert precisions[name].kl_nats == pytest.approx(by_hand, rel=1e-9, abs=1e-12)
    assert precisions[name].kl_nats[0] == kl_divergence(softmax(reference[OPENING]), softmax(other[OPENING]))


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_the_favourite_is_the_same_where_both_have_it_first(bench, precisions, name):
    reference, other = (bench.models[one].table.argmax(axis=1) for one in ("float32", name))
    same = [bool(reference[token_id] == other[token_id]) for token_id in positions()]
    assert precisions[name].same_favourite.tolist() == same
    assert precisions[name].top1_agreement == sum(same) / len(same)


def test_the_noisier_it_is_the_more_it_differs(precisions):
    assert 0 < precisions["int8"].kl_nats.mean() < precisions["int4"].kl_nats.mean()
    assert 1 > precisions["int8"].top1_agreement > precisions["int4"].top1_agreement


def test_examples_are_the_scores_after_each_prompt(bench, precisions):
    for name, precision in precisions.items():
        expected = [bench.models[name].table[encode(prompt)[-1]] for prompt in PROMPTS]
        assert [scores.logits.tolist() for scores in precision.examples] == [row.tolist() for row in expected]


def test_each_precision_is_timed_as_often_as_the_others(bench, precisions):
    for name, precision in precisions.items():
        model = bench.models[name]
        assert (precision.decode.repeats, precision.prefill.repeats) == (DECODE_ROUNDS, PREFILL_ROUNDS)
        assert model.decodes == DECODE_ROUNDS + 1  # the first does not count
        assert [len(read) for read in model.prefills].count(PREFILL_TOKENS) == PREFILL_ROUNDS
        assert 0 < precision.decode.low_s <= precision.decode.median_s <= precision.decode.high_s


def test_floors_share_one_bandwidth(precisions):
    per_byte = [precision.floor_s / precision.weights_bytes for precision in precisions.values()]
    assert per_byte == pytest.approx([per_byte[0]] * 3)
    assert 0 < per_byte[0] * BLOCK_BYTES < 1  # seconds the fastest reading of the block took


def test_progress_never_goes_back(measured):
    fractions = [step.fraction for step in measured[0]]
    assert fractions == sorted(fractions)
    assert fractions[0] == 0 and fractions[-1] <= 1
    assert all(step.doing for step in measured[0])


@pytest.mark.parametrize("reached", [0, 0.3, 0.5, 0.6, 0.9])
def test_the_model_is_free_between_two_steps_and_after_a_cancellation(reached):
    bench = Bench()
    while next(bench.work).fraction < reached:
        pass
    assert is_free(bench.scorer)
    bench.work.close()
    assert is_free(bench.scorer)


def test_a_measurement_that_nobody_wants_any_more_stops_half_way():
    scorer, known = PrefixCache(Bigram("float32")), threading.Event()

    def read() -> int:
        known.wait()
        measurement.give_up("élève")
        return BLOCK_BYTES

    laboratory = Laboratory()
    work = measure(scorer, ("int8",), lambda _, name: Bigram(name), lambda: read, weight_chunks, DISK)
    measurement = laboratory.start("précisions", lambda: work, "élève")
    known.set()
    assert measurement.finished.wait(60)
    assert (measurement.state, measurement.result) == ("cancelled", None)
    assert 0.3 <= measurement.progress.fraction <= 0.5
    assert is_free(scorer)


def test_weights_that_do_not_load_end_the_measurement_and_free_the_model():
    scorer = PrefixCache(Bigram("float32"))

    def refuse(model, name):
        raise UserError(f"Pas de {name}.")

    work = measure(scorer, ("int8",), refuse, lambda: pytest.fail("it goes on all the same"), weight_chunks, DISK)
    assert next(work).fraction == 0
    with pytest.raises(UserError, match="Pas de int8"):
        next(work)
    assert is_free(scorer)


def test_a_reference_in_bfloat16_is_compared_with_what_remains():
    bench = Bench(("int8",))
    bench.scorer.info = bench.scorer.model.info = replace(bench.scorer.info, dtype="bfloat16")
    _, result = bench.run()
    assert [(precision.name, precision.store_s is None) for precision in result] == [("bfloat16", True), ("int8", False)]
