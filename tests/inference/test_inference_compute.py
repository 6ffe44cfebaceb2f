"""Answers drawn from a model small enough to know everything of: its scores depend on the last token alone."""

import threading

import numpy as np
import pytest

from inference.distributions import log_softmax, softmax
from inference.estimators import Interval, pass_at
from inference.inference_compute import (
    BEST,
    MAX_TOKENS,
    PASS,
    ROUNDS,
    STRATEGIES,
    TIMED,
    VOTE,
    Answered,
    InferenceCompute,
    Sample,
    _favourite,
    measure,
    uniform,
)
from inference.measurement import Progress, Spread
from inference.models.base import Forward, ModelInfo, State, checked_ids
from inference.prefix_cache import PrefixCache
from inference.questions import Question
from inference.records import Scores
from inference.tokens import Vocabulary
from tests.conftest import answers, follow

SIZE, END = 257, 256
SIZES = (1, 2, 4, 8)
NEXT = {"?": {"a": 0.5, "b": 0.3, "c": 0.2}, "a": {".": 0.9, "b": 0.1}, "b": {".": 0.8, END: 0.2}, "c": {"c": 1.0}}
"""After a question, « a », « b » or a « c » that never ends; « b » may be the end of the text."""
QUESTIONS = tuple(Question("lettres", f"{letter}?", f"{letter}?", ("A", "ab")) for letter in "defgh")


def code(token: str | int) -> int:
    return token if token == END else ord(token)


def encode(text: str) -> list[int]:
    return list(text.encode())


class Letters:
    """`Model` of `NEXT`, and the `Branches` after it."""

    info = ModelInfo("lettres", "1", "float32", 64, frozenset([END]))
    vocabulary = Vocabulary(
        SIZE, lambda token_id: f"<0x{token_id:02X}>", encode, lambda piece: bytes([int(piece[3:5], 16)]), frozenset([END])
    )

    def __init__(self):
        self.table = np.full((SIZE, SIZE), -50, np.float32)
        for last, following in NEXT.items():
            for token, probability in following.items():
                self.table[code(last), code(token)] = np.log(probability)
        self.prefills, self.decodes, self.reads = [], 0, []

    def prefill(self, token_ids, state=None) -> Forward:
        read = checked_ids(self.info, token_ids, state)
        self.prefills.append(read)
        return Forward(Scores(self.table[read[-1]].copy()), State(read))

    def decode(self, token_id, state) -> Forward:
        self.decodes += 1
        return Forward(Scores(self.table[token_id].copy()), State((*state.token_ids, token_id)))

    def truncate(self, state, length) -> State:
        return State(state.token_ids[:length])


class LetterBranches:
    def __init__(self, model: Letters, prompt: Forward, temperature: float):
        self.model, self.prompt, self.temperature = model, prompt, temperature

    def draw(self, text, u) -> tuple[int, float]:
        scores = self.model.table[text[-1]] if text else self.prompt.scores.logits
        token_id = int(np.searchsorted(np.cumsum(softmax(scores / self.temperature)), u, side="right"))
        return token_id, float(log_softmax(scores)[token_id])

    def read(self, texts) -> None:
        self.model.reads.append(list(texts))


def run(temperature: float = 1.0, sizes=SIZES, questions=QUESTIONS) -> tuple[Letters, list[Progress], InferenceCompute]:
    model = Letters()
    return model, *follow(measure(PrefixCache(model), LetterBranches, temperature, questions, sizes))


@pytest.fixture(scope="module")
def ran():
    return run()


@pytest.fixture(scope="module")
def result(ran) -> InferenceCompute:
    return ran[2]


def texts(result: InferenceCompute) -> list[list[str]]:
    return [["".join("$" if t == END else chr(t) for t in one.token_ids) for one in answered.samples] for answered in result.answered]


def test_a_sample_ends_with_its_word_with_the_text_or_at_the_ceiling(result):
    written = {text for samples in texts(result) for text in samples}
    assert written <= {"a.", "ab.", "ab$", "b.", "b$", "c" * MAX_TOKENS}
    assert {"a.", "b.", "c" * MAX_TOKENS} <= written
    for answered in result.answered:
        for one in (*answered.samples, answered.greedy):
            assert one.answer == "".join(chr(t) for t in one.token_ids if t != END).rstrip(".")


def test_the_log_probability_is_the_sum_at_temperature_1_whatever_the_draw():
    for temperature in (0.5, 1.0):
        model, _, result = run(temperature)
        for answered in result.answered:
            for one in (*answered.samples, answered.greedy):
                steps = zip((ord("?"), *one.token_ids), one.token_ids, strict=False)
                assert one.logprob == pytest.approx(sum(log_softmax(model.table[last])[token] for last, token in steps))


def test_a_temperature_draws_the_favourite_more_often():
    count = {}
    for temperature in (0.3, 1.0):
        *_, result = run(temperature, sizes=(32,))
        first = [text[0] for samples in texts(result) for text in samples]
        count[temperature] = first.count("a") / len(first)
    assert count[1.0] == pytest.approx(0.5, abs=0.15)
    assert count[0.3] == pytest.approx(0.5**3.33 / (0.5**3.33 + 0.3**3.33 + 0.2**3.33), abs=0.15)


def test_the_greedy_answer_is_that_of_the_favourites(result):
    assert {answered.greedy.token_ids for answered in result.answered} == {tuple(b"a.")}
    assert result.greedy_tokens == 2
    assert result.greedy_accuracy == Interval.of_chances([True] * len(QUESTIONS))


def test_the_same_samples_come_back_and_each_question_has_its_own(result):
    *_, again = run()
    assert texts(again) == texts(result)
    assert len({tuple(samples) for samples in texts(result)}) > 1
    assert len({uniform(*place) for place in ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0))}) == 4


def test_tokens_are_those_really_written(result):
    written = [len(text) for samples in texts(result) for text in samples]
    assert result.tokens(1) == pytest.approx(sum(written) / len(written))
    assert result.tokens(8) == pytest.approx(sum(written) / len(QUESTIONS))


def test_accuracies_are_means_over_the_questions(result):
    rights = [sum(text.strip(".$") in ("a", "ab") for text in samples) for samples in texts(result)]
    assert [answered.right for answered in result.answered] == rights
    for strategy in STRATEGIES:
        assert result.accuracy(strategy, 1).value == pytest.approx(sum(rights) / 8 / len(QUESTIONS))
    for n in SIZES:
        by_hand = [pass_at(n, right, 8) for right in rights]
        assert result.accuracy(PASS, n).value == pytest.approx(sum(by_hand) / len(by_hand))
        assert result.accuracy(VOTE, n).value <= result.accuracy(PASS, n).value + 1e-12
    assert result.accuracy(BEST, 8).value == sum(answered.best.answer in ("a", "ab") for answered in result.answered) / len(QUESTIONS)


def sample(answer: str, logprob: float, tokens: int = 2) -> Sample:
    return Sample((1,) * tokens, logprob, answer)


def record() -> InferenceCompute:
    """Two questions, each twice: the vote is wrong on the first though the likeliest is right, and ties on the second."""
    first = Answered(QUESTIONS[0], (sample("b", -2), sample("a", -1, 4), sample("b", -3), sample("c", -4)), sample("b", -2))
    second = Answered(QUESTIONS[1], (sample("a", -2), sample("b", -1), sample("b", -3), sample("a", -4)), sample("a", -2))
    return InferenceCompute(1.0, (first, second) * 2, {n: Spread.of([n / 10]) for n in (1, 2, 4)}, Spread.of([0.1]))


def test_what_all_the_samples_give():
    one, two, *_ = record().answered
    assert (one.leaders, one.best.answer, one.right, one.tokens) == (("b",), "a", 1, 2.5)
    assert (set(two.leaders), two.best.answer, two.right) == ({"a", "b"}, "b", 2)
    assert [one.chance(strategy, 4) for strategy in STRATEGIES] == [0, 1, 1]
    assert [two.chance(strategy, 4) for strategy in STRATEGIES] == [0.5, 0, 1]


def test_gains_are_paired_question_by_question():
    both = record()
    assert both.gain(VOTE) == Interval.of_differences([0 - 0.25, 0.5 - 0.5] * 2)
    assert both.gain(PASS) == Interval.of_differences([0.75, 0.5] * 2)
    assert both.gain_over_greedy(VOTE) == Interval.of_differences([0, 0.5 - 1] * 2)


def test_each_size_is_timed_as_often_as_the_others(ran):
    model, _, result = ran
    assert tuple(result.sample_times) == SIZES == result.sizes
    spreads = [*result.sample_times.values(), result.greedy_time]
    assert {spread.repeats for spread in spreads} == {ROUNDS}
    assert all(0 < spread.low_s <= spread.median_s <= spread.high_s for spread in spreads)
    assert len(model.prefills) == len(QUESTIONS) + ROUNDS * TIMED * (len(SIZES) + 1)
    assert model.decodes == len(QUESTIONS) + ROUNDS * TIMED


def test_what_is_finished_is_no_longer_read(ran):
    model, *_ = ran
    endings = (ord("."), END)
    assert all(len(set(map(len, batch))) == 1 and not {text[-1] for text in batch} & set(endings) for batch in model.reads)


def test_progress_never_goes_back(ran):
    fractions = [step.fraction for step in ran[1]]
    assert fractions == sorted(fractions)
    assert fractions[0] == 0 and fractions[-1] <= 1
    assert all(step.doing for step in ran[1])


@pytest.mark.parametrize("reached", [0, 0.3, 0.8])
def test_the_model_is_free_between_two_steps_and_after_a_cancellation(reached):
    scorer = PrefixCache(Letters())
    work = measure(scorer, LetterBranches, 1.0, QUESTIONS, SIZES)
    while next(work).fraction < reached:
        pass
    assert answers(scorer, tuple(b"une lettre"))
    work.close()
    assert answers(scorer, tuple(b"une autre"))


def test_what_is_timed_has_the_model_to_itself(monkeypatch):
    scorer, held = PrefixCache(Letters()), {}

    def look(name: str) -> None:
        visitor = threading.Thread(target=scorer.scores_after, args=(tuple(name.encode()),), daemon=True)
        visitor.start()
        visitor.join(0.05)
        held.setdefault(name, visitor.is_alive())

    class Watched(LetterBranches):
        def __init__(self, *opened):
            look("open")
            super().__init__(*opened)

        def draw(self, text, u):
            look("draw")
            return super().draw(text, u)

        def read(self, texts):
            look("read")

    monkeypatch.setattr("inference.inference_compute.log_softmax", lambda scores: (look("favourite"), log_softmax(scores))[1])
    work = measure(scorer, Watched, 1.0, QUESTIONS[:1], (2,))
    while len(held) < 4:
        next(work)
    work.close()
    assert held == dict.fromkeys(("open", "draw", "read", "favourite"), True)


def test_times_are_of_the_passes_and_of_the_choices_for_drawn_and_greedy_alike(monkeypatch):
    """A clock that each of them moves on by one: to open, a read before each draw but the first, a draw, and a choice of a favourite."""
    clock = [0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])

    def tick(function):
        def run(*arguments):
            clock[0] += 1
            return function(*arguments)

        return run

    for owner, name in ((Letters, "prefill"), (Letters, "decode"), (LetterBranches, "__init__"), (LetterBranches, "draw")):
        monkeypatch.setattr(owner, name, tick(getattr(owner, name)))
    monkeypatch.setattr("inference.inference_compute._favourite", tick(_favourite))
    *_, result = run(sizes=(1,))
    assert result.greedy_time.median_s == 1 + 2 + 1, "a prompt, two favourites, and a pass between them"
    timed_tokens = [len(answered.samples[0].token_ids) for answered in result.answered[:TIMED]]
    assert result.sample_times[1].median_s == pytest.approx(2 + sum(timed_tokens) / TIMED), "a prompt, an opening, a draw a token"
