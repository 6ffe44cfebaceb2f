"""The same logits by several routes: the maths by hand, and the measurement on a model and an arithmetic small enough to know all of."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from inference.errors import UserError
from inference.lab_text import read_lab
from inference.models.base import Forward, ModelInfo, State, checked_ids
from inference.near_ties import CHECKED, NearTie, find_near_ties, read_sentences
from inference.passages import read_passages
from inference.prefix_cache import PrefixCache
from inference.records import Scores
from inference.routes import AGAIN, ALONE, BATCH, BATCHES, CACHE, routes_of
from inference.summation import Sums, in_order, pairwise
from inference.temperature_zero import EDGES, PASSAGE_TOKENS, PROMPT, WRITTEN, Comparison, measure
from inference.tokens import Vocabulary
from tests.conftest import answers, follow

OPENING, SIZE = 256, 257
"""An opening token, after the 256 bytes."""
NUDGE = np.float32(0.02)
"""What a batch of eight adds to the logits of odd tokens."""
THREAD = "sur 1 fil"


def encode(text: str) -> list[int]:
    return [OPENING, *text.encode()]


class Bigram:
    """`Model` whose scores after a token are its row of a table."""

    vocabulary = Vocabulary(SIZE, lambda token_id: f"<0x{token_id:02X}>", encode, lambda piece: bytes([int(piece[3:5], 16)]), frozenset())

    def __init__(self, dtype: str = "float32"):
        self.table = np.random.default_rng(0).normal(scale=3, size=(SIZE, SIZE)).astype(np.float32)
        self.info = ModelInfo("bigramme", "1", dtype, 4096, frozenset())

    def prefill(self, token_ids, state=None) -> Forward:
        read = checked_ids(self.info, token_ids, state)
        return Forward(Scores(self.table[read[-1]].copy()), State(read))

    def decode(self, token_id, state) -> Forward:
        return self.prefill((token_id,), state)

    def truncate(self, state, length) -> State:
        return State(state.token_ids[:length])

    def logits_along(self, token_ids) -> np.ndarray:
        return self.table[list(token_ids)]


class Nudging:
    """`Arithmetic` that is exact, except in a batch of eight."""

    nudge = NUDGE

    def logits_in_batch(self, model, texts) -> np.ndarray:
        logits = model.table[[token_ids[-1] for token_ids in texts]]
        if len(texts) == BATCHES[-1]:
            logits[:, 1::2] += self.nudge
        return logits

    def thread_count(self) -> int:
        return 2

    def logits_on_threads(self, model, token_ids, threads) -> np.ndarray:
        assert threads == 1
        return self.logits_in_batch(model, [token_ids])[0]

    def logit_terms(self, model, token_ids, token_id) -> tuple[np.ndarray, float]:
        return model.table[0], float(model.table[token_ids[-1], token_id])


def work_on(scorer: PrefixCache, arithmetic=None):
    return measure(scorer, arithmetic or Nudging(), lambda model, name: Bigram(name))


@pytest.fixture(scope="module")
def seen() -> SimpleNamespace:
    scorer = PrefixCache(Bigram())
    progress, result = follow(work_on(scorer))
    return SimpleNamespace(progress=progress, result=result, table=scorer.model.table, scorer=scorer)


# Records


def test_a_comparison_by_hand():
    alone = np.array([1, 4, 3.5, -2], np.float32)
    other = np.array([1, 4 - 2**-1, 3.5 + 2**-4, -2 + 2**-20], np.float32)
    one = Comparison.of(6, "lot", alone, other)
    assert (one.differing, one.vocabulary, one.share, one.largest) == (3, 4, 0.75, 0.5)
    assert (one.favourites, one.flips, one.gap) == ((1, 2), True, 0.5)
    assert one.counts.sum() == 3
    for difference in (2**-1, 2**-4, 2**-20):
        assert one.counts[np.searchsorted(EDGES, difference) - 1] == 1


def test_nothing_differs_from_itself():
    logits = np.array([3, 3, 1], np.float32)
    one = Comparison.of(2, "seul", logits, logits.copy())
    assert (one.differing, one.share, one.largest, one.gap, one.flips) == (0, 0, 0, 0, False)
    assert not one.counts.any()


def test_a_near_tie_flips_where_its_favourite_does():
    one = NearTie((1, 2), (5, 6), {ALONE: 0.25, "a": 0.125, "b": -0.5}, {ALONE: 5, "a": 5, "b": 6}, again=5)
    assert (one.gap, one.change, one.flipped_by, one.is_unstable) == (0.25, 0.75, ("b",), False)


def test_what_does_not_agree_with_itself_is_no_flip():
    one = NearTie((1, 2), (5, 6), {ALONE: 0.25, "a": -0.5}, {ALONE: 5, "a": 6}, again=6)
    assert (one.flipped_by, one.is_unstable) == ((), True)
    unchecked = replace(one, again=None)
    assert (unchecked.flipped_by, unchecked.is_unstable) == ((), False)


def test_additions_in_three_orders_by_hand():
    """Near 1e8 float32 numbers are 8 apart: a 1 added to it is lost, one added at the end is not."""
    terms = np.array([1e8, 1, -1e8, 1], np.float32)
    assert in_order(terms) == 1
    assert in_order(terms[::-1]) == 0
    assert pairwise(terms) == 0
    assert Sums(0, terms, 2.0).orders == {"de gauche à droite": 1, "de droite à gauche": 0, "deux à deux": 0}
    assert all(value.dtype == np.float32 for value in Sums(0, terms, 2.0).orders.values())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 640])
def test_pairwise_adds_everything_once(size):
    terms = np.arange(size, dtype=np.float32)
    assert pairwise(terms) == in_order(terms) == size * (size - 1) // 2


def test_the_triple_is_the_one_on_which_the_orders_disagree_most():
    terms = np.array([1, 2, 3, 1e8, -1e8, 5, 6], np.float32)
    assert Sums(0, terms, 0.0).triple == (3, 1e8, -1e8)  # 0 or 3 for 3; the next one, 5 or 8 for 5


def test_a_triple_that_adds_up_to_nothing_is_no_division_by_zero():
    assert Sums(0, np.array([1, -1, 0, 0.5], np.float32), 0.0).triple == (1, -1, 0)


def test_random_terms_disagree_and_stay_within_rounding():
    terms = np.random.default_rng(1).normal(size=640).astype(np.float32)
    sums = Sums(0, terms, 0.0)
    a, b, c = sums.triple
    assert (a + b) + c != a + (b + c)
    exact = float(sum(Fraction(float(term)) for term in terms))
    bound = len(terms) * 2**-24 * float(np.abs(terms).sum())  # Higham, 1993: n u Σ|x|
    assert all(abs(float(value) - exact) <= bound for value in sums.orders.values())


# Texts


def test_sentences_are_the_passages_cut():
    sentences = read_sentences()
    assert " ".join(sentences) == " ".join(read_passages())
    assert len(sentences) > 2 * len(read_passages())
    assert min(len(sentence) for sentence in sentences) > 20


def test_the_bet_names_the_prompt_and_the_batch_that_are_measured():
    question = read_lab("temperature_zero").part("pari")
    assert PROMPT in question and BATCH in question


# The measurement


def test_each_text_is_compared_by_each_route_the_same_one_first(seen):
    routes = [AGAIN, "lot de 2", BATCH, CACHE, THREAD]
    lengths = [len(encode(PROMPT)), len(encode(read_passages()[0])[:PASSAGE_TOKENS])]
    assert [(one.tokens, one.route) for one in seen.result.comparisons] == [(n, route) for n in lengths for route in routes]
    for one in seen.result.comparisons:
        assert one.differing == (SIZE // 2 if one.route == BATCH else 0)
        assert one.largest == pytest.approx(NUDGE if one.route == BATCH else 0, abs=1e-6)


def gaps_by_hand(table: np.ndarray) -> list[float]:
    """Of every position of every sentence but its first, in increasing order."""
    gaps = []
    for sentence in read_sentences():
        rows = np.sort(table[encode(sentence)[1:]], axis=1)
        gaps += (rows[:, -1] - rows[:, -2]).tolist()
    return sorted(gaps)


def test_the_search_keeps_the_nearest_of_all_positions(seen):
    expected = gaps_by_hand(seen.table)
    for search in seen.result.searches:
        assert search.positions == len(expected)
        assert [one.gap for one in search.near_ties] == expected[:CHECKED]


def test_each_near_tie_is_computed_by_each_route(seen):
    for one in seen.result.searches[0].near_ties:
        row = seen.table[one.token_ids[-1]]
        first, second = one.pair
        assert row[first] == row.max() and one.gap == float(row[first]) - float(row[second])
        assert list(one.gaps) == list(one.favourites) == [ALONE, BATCH, CACHE, THREAD]
        assert one.gaps[CACHE] == one.gaps[THREAD] == one.gap
        assert one.gaps[BATCH] == pytest.approx(one.gap + float(NUDGE) * (first % 2 - second % 2), abs=1e-6)
        nudged = row.copy()
        nudged[1::2] += NUDGE
        flips = nudged.argmax() != first
        assert one.flipped_by == ((BATCH,) if flips else ())
        assert one.again == (first if flips else None), "the control is computed where it is needed"


def test_a_flip_is_followed_by_its_own_route_to_the_end(seen):
    search = seen.result.searches[0]
    assert search.flipped, "the nudge was chosen for this"
    fork = search.fork
    assert (fork.token_ids, fork.route) == (search.flipped[0].token_ids, BATCH)
    assert len(fork.alone) == len(fork.other) == WRITTEN
    assert fork.alone[0] != fork.other[0]
    for written, nudge in ((fork.alone, 0), (fork.other, NUDGE)):
        last = fork.token_ids[-1]
        for token_id in written:
            row = seen.table[last].copy()
            row[1::2] += nudge
            assert token_id == row.argmax()
            last = token_id


class Wavering(Nudging):
    """Alone, the second time a text is read the favourite and the runner-up change places."""

    def __init__(self):
        self.seen = set()

    def logits_in_batch(self, model, texts) -> np.ndarray:
        logits = super().logits_in_batch(model, texts)
        if len(texts) == 1 and texts[0] in self.seen:
            second, first = np.argsort(logits[0])[-2:]
            logits[0, [first, second]] = logits[0, [second, first]]
        self.seen |= set(texts) if len(texts) == 1 else set()
        return logits


def test_a_choice_that_does_not_hold_alone_is_counted_apart_and_not_followed():
    scorer, arithmetic = PrefixCache(Bigram()), Wavering()
    routes = {name: route for name, route in routes_of(arithmetic).items() if name in (ALONE, BATCH)}
    sentences = [tuple(encode(text)) for text in read_sentences()]
    _, (positions, near_ties) = follow(find_near_ties(scorer, scorer.model, routes, sentences, 3 * CHECKED))
    assert positions == len(gaps_by_hand(scorer.model.table)) and len(near_ties) == 3 * CHECKED
    assert any(one.is_unstable for one in near_ties), "the nudge was chosen for this"
    assert not any(one.flipped_by for one in near_ties)
    assert all(one.is_unstable == (one.favourites[BATCH] != one.favourites[ALONE]) for one in near_ties)
    search = follow(work_on(scorer, Wavering()))[1].searches[0]
    assert search.unstable and (search.flipped, search.fork) == ((), None)


def test_without_a_flip_there_is_nothing_to_follow():
    exact = Nudging()
    exact.nudge = np.float32(0)
    _, result = follow(work_on(PrefixCache(Bigram()), exact))
    assert not any(one.differing for one in result.comparisons)
    assert [(search.flipped, search.fork) for search in result.searches] == [((), None)] * 2


def test_a_continuation_ends_with_the_text(seen):
    scorer = PrefixCache(Bigram())
    first = seen.result.searches[0].fork.alone[0]
    scorer.model.info = scorer.info = replace(scorer.info, eos_ids=frozenset([first]))
    _, result = follow(work_on(scorer))
    assert result.searches[0].fork.alone == (first,)


def test_bfloat16_comes_second_unless_it_is_what_runs(seen):
    assert [search.precision for search in seen.result.searches] == ["float32", "bfloat16"]
    work = measure(PrefixCache(Bigram("bfloat16")), Nudging(), lambda *_: pytest.fail("there is nothing to convert"))
    assert [search.precision for search in follow(work)[1].searches] == ["bfloat16"]


def test_a_context_without_room_for_the_prompt_is_refused():
    scorer = PrefixCache(Bigram())
    scorer.info = replace(scorer.info, context_length=len(encode(PROMPT)) + WRITTEN - 1)
    with pytest.raises(UserError, match="trop court"):
        next(work_on(scorer))


def test_progress_goes_from_0_towards_1_and_never_back(seen):
    fractions = [progress.fraction for progress in seen.progress]
    assert fractions[0] == 0 and fractions == sorted(fractions) and 0.9 < fractions[-1] < 1
    assert all(progress.doing for progress in seen.progress)


def test_visitors_are_answered_between_two_steps_and_after_a_cancellation():
    scorer = PrefixCache(Bigram())
    work = work_on(scorer)
    for step, progress in enumerate(work):
        if step % 20 == 0:
            assert answers(scorer, (step % SIZE, 1))
        if progress.fraction > 0.9:
            break
    work.close()
    assert answers(scorer, (8, 2))


# A real network, too small to mean anything


def test_on_a_network_every_figure_is_transformers_own(tiny):
    import torch

    from inference.models import batched
    from inference.models.quantization import open_precision

    def logits(network, texts) -> np.ndarray:
        with torch.inference_mode():
            return network(torch.tensor(texts)).logits[:, -1].float().numpy()

    served = open_precision(tiny, "bfloat16")
    _, result = follow(measure(PrefixCache(tiny), batched, lambda *_: served))
    networks = {"float32": tiny.model, "bfloat16": served.model}
    prompt = tiny.vocabulary.encode(PROMPT)
    for one in result.comparisons:
        assert one.differing == 0 or one.route != AGAIN
        assert one.largest < 1e-4
        if one.tokens == len(prompt):
            assert one.favourites[0] == logits(tiny.model, [prompt])[0].argmax()
    for search in result.searches:
        for one in search.near_ties:
            row = logits(networks[search.precision], [one.token_ids])[0]
            assert row[one.pair[0]] - row[one.pair[1]] == pytest.approx(one.gap, abs=1e-4 if search.precision == "float32" else 0.5)
        assert (search.fork is None) == (not search.flipped)
