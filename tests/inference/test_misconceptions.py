"""What answers the misconceptions, on a tiny network: a batch that changes known choices, a text whose tokens are timed."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from inference.charts.misconceptions import streaming_figure
from inference.conversation import write
from inference.measurement import Spread
from inference.misconceptions import STORY, SameQuestion, Streaming, measure_same_question, measure_streaming
from inference.near_ties import NearTie, read_sentences
from inference.prefix_cache import PrefixCache
from inference.routes import AGAIN, ALONE, BATCH
from inference.temperature_zero import PROMPT, SERVED, Comparison
from tests.conftest import answers, follow

CHECKED = 4


class Batches:
    """`Arithmetic` that gives the model's own logits, plus `nudge` times a noise in a batch of more than one row."""

    def __init__(self, nudge: float, alone: float = 0.0):
        self.nudge, self.alone, self.calls = nudge, alone, 0

    def thread_count(self) -> int:
        return 1

    def logits_in_batch(self, model, texts) -> np.ndarray:
        self.calls += 1
        logits = np.array([model.prefill(token_ids).scores.logits for token_ids in texts])
        if self.alone and len(texts) == 1:
            logits = logits + np.float32(self.alone * self.calls)
        noise = np.where(np.arange(logits.shape[1]) % 2, 1, -1).astype(np.float32)
        return logits + np.float32(self.nudge) * noise if len(texts) > 1 else logits


def served(model):
    """The same network, said to be in the servers' precision."""
    return SimpleNamespace(
        info=replace(model.info, dtype=SERVED), vocabulary=model.vocabulary, prefill=model.prefill, logits_along=model.logits_along
    )


@pytest.fixture(scope="module")
def scorer(tiny) -> PrefixCache:
    return PrefixCache(tiny)


def same_question(scorer, arithmetic):
    return follow(measure_same_question(scorer, arithmetic, lambda model, name: served(model), CHECKED))


def test_an_arithmetic_that_does_not_depend_on_the_batch_changes_nothing(scorer):
    progress, result = same_question(scorer, Batches(0.0))
    assert (result.again.differing, result.batch.differing, result.flips, result.unstable) == (0, 0, (), ())
    assert (result.changes_alone, result.changes_in_batch) == (False, False)
    assert (result.precision, len(result.near_ties)) == (SERVED, CHECKED)
    context = scorer.info.context_length
    assert result.positions == sum(min(context, len(scorer.vocabulary.encode(sentence))) - 1 for sentence in read_sentences())
    fractions = [one.fraction for one in progress]
    assert fractions == sorted(fractions) and fractions[0] == 0 and fractions[-1] <= 1


def test_a_batch_that_moves_every_logit_flips_the_choices_it_flips_by_hand(scorer, tiny):
    arithmetic = Batches(0.02)
    _, result = same_question(scorer, arithmetic)
    assert (result.batch.differing, result.again.differing) == (tiny.vocabulary.size, 0)
    assert result.batch.largest == pytest.approx(0.02, rel=1e-3)
    assert result.batch.tokens == len(tiny.vocabulary.encode(PROMPT))
    found = []
    for sentence in read_sentences():
        token_ids = tiny.vocabulary.encode(sentence)[: tiny.info.context_length]
        for length, row in enumerate(tiny.logits_along(token_ids), start=1):
            second, first = np.sort(row)[-2:]
            if length > 1:
                found.append((float(first - second), token_ids[:length]))
    by_hand = []
    for _, token_ids in sorted(found)[:CHECKED]:
        alone, batch = (int(arithmetic.logits_in_batch(tiny, [token_ids] * rows)[0].argmax()) for rows in (1, 8))
        by_hand += [(token_ids, alone, batch)] if alone != batch else []
    assert by_hand, "the nudge is large enough to flip one"
    assert [(flip.token_ids, flip.favourites[ALONE], flip.favourites[BATCH]) for flip in result.flips] == by_hand
    assert all(flip.again == flip.favourites[ALONE] for flip in result.flips)
    assert (result.changes_alone, result.changes_in_batch) == (False, True)


def test_logits_that_differ_alone_are_no_other_answer():
    """The verdict is about the answer: only another favourite is one."""
    logits = np.array([1, 3, 2], np.float32)
    same = Comparison.of(3, AGAIN, logits, logits)
    near, other = (Comparison.of(3, AGAIN, logits, logits + np.float32(change)) for change in ((0, 0, 0.5), (0, 0, 2)))
    assert near.differing
    steady = NearTie((1, 2), (5, 6), {ALONE: 0.5, BATCH: 0.5}, {ALONE: 5, BATCH: 5})
    flip = NearTie((1, 2), (5, 6), {ALONE: 0.5, BATCH: -0.5}, {ALONE: 5, BATCH: 6}, again=5)
    unstable = replace(flip, again=6)
    for again, batch, place, expected in (
        (near, near, steady, (False, False)),
        (near, other, steady, (False, True)),
        (same, same, flip, (False, True)),
        (other, same, steady, (True, False)),
        (same, same, unstable, (True, False)),
    ):
        result = SameQuestion(again, batch, SERVED, 1, (place,))
        assert (result.changes_alone, result.changes_in_batch) == expected


def test_a_machine_that_never_computes_twice_the_same_is_seen(scorer):
    _, result = same_question(scorer, Batches(0.0, alone=0.01))
    assert result.again.differing > 0


def test_the_models_own_precision_is_used_when_it_is_the_servers(tiny):
    scorer = PrefixCache(served(tiny))
    _, result = follow(measure_same_question(scorer, Batches(0.0), lambda model, name: pytest.fail("no copy is needed"), 1))
    assert (result.precision, len(result.near_ties)) == (SERVED, 1)


def test_visitors_are_answered_all_along(scorer):
    work = measure_same_question(scorer, Batches(0.0), lambda model, name: served(model), CHECKED)
    for step, _ in enumerate(work):
        if step % 4 == 0:
            assert answers(scorer, (step, 3))


# Word by word


def test_tokens_come_out_one_after_the_other(scorer):
    progress, result = follow(measure_streaming(scorer, 6))
    prompt_ids = scorer.vocabulary.encode(STORY)
    assert result.token_ids == tuple(token_id for token_id, _ in write(scorer, prompt_ids, 6))
    assert [0, *result.arrivals_s] == sorted({0, *result.arrivals_s})
    assert [one.fraction for one in progress] == pytest.approx([n / 6 for n in range(7)])


def test_shares_and_passes_by_hand():
    streaming = Streaming((1, 2, 3), (0.5, 0.25, 1.25))
    assert streaming.arrivals_s == (0.5, 0.75, 2)
    assert streaming.total_s == 2
    assert streaming.first_share == 0.25
    assert streaming.later == Spread(0.75, 0.25, 1.25, 2)


def test_a_model_that_stops_at_once_leaves_nothing_to_compare(tiny):
    scorer = PrefixCache(tiny)
    first = next(token_id for token_id, _ in write(scorer, tiny.vocabulary.encode(STORY), 1))
    scorer.info = replace(scorer.info, eos_ids=frozenset([first]))
    _, streaming = follow(measure_streaming(scorer, 6))
    assert streaming.token_ids == (first,)
    assert (streaming.later, streaming.first_share) == (None, 1)
    assert streaming_figure(streaming, tiny.vocabulary.label).data[0].x == (streaming.total_s * 1e3,)
