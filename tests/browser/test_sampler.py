"""What the browser computes while a slider moves, against Python's float64 over the whole vocabulary: every text shown is the same."""

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from playwright.sync_api import Page

from inference.charts.bench import KNOWN, exact_step, live_scores, live_settings
from inference.distributions import largest
from inference.drawing import draw_inverse_cdf, uniform
from inference.formatting import count, decimal, number, percent, plural
from inference.records import Draw, SamplingParams, Scores, StepTrace
from inference.sampling import run_pipeline
from inference.sentence import open_sentence, written
from inference.tokens import Vocabulary, sentencepiece_bytes
from tests.conftest import ROOT

PROMPTS = {
    # How many tokens the model writes after each, before the step compared.
    "Le chat dort sur le": 0,
    "La capitale de la France est": 0,
    "1, 2, 3, 4, 5,": 3,
    "def somme(a, b):\n    return": 0,
    "« Comment ça va ? » demanda-t-elle.": 1,
    "Pour faire une omelette, il faut des œufs, des œufs et des": 8,
    "The quick brown fox jumps over the": 2,
    "Zzz": 0,
}
SETTINGS_PER_PROMPT = 40
DEEP_SETTINGS_PER_PROMPT = 24
SHOWN = 13

SAME = 1e-8
"""Relative error of what the browser computes from bins alone. A text may be that of a value this near, where two roundings meet."""
COUNT_BOUND = 2e-3
"""How far off the number of tokens kept may be, as a share of it, when top-p or min-p cuts among the tokens sent as bins."""
MASS_BOUND = 2e-4
"""How far off a probability may be then."""

SAMPLE = """(text) => {
  const [sent, cases, shown] = JSON.parse(text);
  const scores = readScores(sent);
  const results = cases.map(([settings, u]) => {
    scores.u = u;
    const step = sample(scores, settings, shown);
    const { figures, choice, rest } = step;
    const texts = {
      entropy: number(figures.entropy, 2),
      effective: number(figures.effective, 1),
      kept: count(figures.kept),
      size: count(figures.size),
      "kept mass": percent(figures.keptMass),
      removed: percent(figures.removed),
      sum: number(figures.sum * 100, 4),
    };
    if (choice.id !== null) {
      texts.low = number(choice.low, 4);
      texts.choice = percent(choice.prob);
    }
    step.rows.forEach((row, position) => {
      texts[`logit ${position}`] = number(row.logit, 2);
      texts[`scaled ${position}`] = number(row.scaled, 2);
      texts[`uncut ${position}`] = percent(row.uncut);
      texts[`prob ${position}`] = percent(row.prob);
    });
    if (rest) {
      texts["rest tokens"] = plural(rest.tokens, "autre");
      texts["rest kept"] = plural(rest.kept, "gardé");
      texts["rest uncut"] = percent(rest.uncut);
      texts["rest prob"] = percent(rest.prob);
    }
    return { step, texts };
  });
  return JSON.stringify(results);
}"""


@dataclass(frozen=True, eq=False)
class Case:
    """One step under some settings, as Python has it and as the browser makes it of the scores sent.

    exact   what `exact_step` says; without a chosen row when that token was not sent.
    binned  which tokens were sent as bins.
    step    the browser's.
    texts   how the browser writes each of its values.
    """

    params: SamplingParams
    trace: StepTrace
    exact: dict
    binned: np.ndarray
    step: dict
    texts: dict[str, str]

    @property
    def cuts_among_the_bins(self) -> bool:
        return 0 < np.count_nonzero(self.trace.kept & self.binned) < np.count_nonzero(self.binned)


def in_browser(
    page: Page,
    scores: Scores,
    seen_ids: Sequence[int],
    vocabulary: Vocabulary,
    settings: Sequence[SamplingParams],
    us: Sequence[float],
    shown: int = SHOWN,
) -> list[dict]:
    """The browser's steps under `settings`, each with its u, and their texts. Scores and settings travel as JSON."""
    cases = [[live_settings(params), u] for params, u in zip(settings, us, strict=True)]
    return json.loads(page.evaluate(SAMPLE, json.dumps([live_scores(scores, seen_ids, vocabulary), cases, shown], allow_nan=False)))


def sent_as_bins(scores: Scores, seen_ids: Sequence[int]) -> np.ndarray:
    """(vocab_size,) bool: the tokens the browser does not know one by one."""
    binned = np.isfinite(scores.logits)
    binned[largest(scores.logits, KNOWN)] = False
    binned[list(seen_ids)] = False
    return binned


def compare(
    page: Page,
    scores: Scores,
    seen_ids: Sequence[int],
    vocabulary: Vocabulary,
    settings: Sequence[SamplingParams],
    shown: int = SHOWN,
) -> Iterator[Case]:
    """Each of `settings` on one step, on both sides."""
    step = len(seen_ids)
    results = in_browser(page, scores, seen_ids, vocabulary, settings, [uniform(params.seed, step) for params in settings], shown)
    binned = sent_as_bins(scores, seen_ids)
    for params, result in zip(settings, results, strict=True):
        trace = run_pipeline(scores, params, seen_ids, step)
        show = without_choice if binned[trace.choice.token_id] else exact_step
        yield Case(params, trace, show(trace, vocabulary, shown), binned, **result)


def without_choice(trace: StepTrace, vocabulary: Vocabulary, shown: int) -> dict:
    """The step as it is drawn when the token chosen has no row: the favourite takes its place, so that no row makes room."""
    favourite = int(np.argmax(trace.uncut_scores))
    exact = exact_step(dataclasses.replace(trace, choice=Draw(favourite, 0.0, 0.0)), vocabulary, shown)
    rows = [row | {"chosen": False} for row in exact["rows"]]
    return exact | {"rows": rows, "choice": {"id": None, "low": None, "prob": None}}


def shown_by_python(exact: dict) -> dict[str, tuple[float, Callable[[float], str]]]:
    """Each value on the screen, and how Python writes it."""
    figures, choice, rest = exact["figures"], exact["choice"], exact["rest"]
    shown = {
        "entropy": (figures["entropy"], partial(number, digits=2)),
        "effective": (figures["effective"], partial(number, digits=1)),
        "kept": (figures["kept"], count),
        "size": (figures["size"], count),
        "kept mass": (figures["keptMass"], percent),
        "removed": (figures["removed"], percent),
        "sum": (figures["sum"] * 100, partial(number, digits=4)),
    }
    if choice["id"] is not None:
        shown["low"] = choice["low"], partial(number, digits=4)
        shown["choice"] = choice["prob"], percent
    for position, row in enumerate(exact["rows"]):
        shown[f"logit {position}"] = row["logit"], partial(number, digits=2)
        shown[f"scaled {position}"] = row["scaled"], partial(number, digits=2)
        shown[f"uncut {position}"] = row["uncut"], percent
        shown[f"prob {position}"] = row["prob"], percent
    if rest:
        shown["rest tokens"] = rest["tokens"], partial(plural, singular="autre")
        shown["rest kept"] = rest["kept"], partial(plural, singular="gardé")
        shown["rest uncut"] = rest["uncut"], percent
        shown["rest prob"] = rest["prob"], percent
    return shown


def assert_same_rows(case: Case) -> None:
    for field in ("id", "rank", "label", "cutBy", "chosen"):
        assert [row[field] for row in case.step["rows"]] == [row[field] for row in case.exact["rows"]], (field, case.params)


def assert_same_screen(case: Case) -> int:
    """Same rows, same token, same texts. How many texts are those of a value within `SAME` of Python's rather than its own."""
    assert case.step["choice"]["id"] == case.exact["choice"]["id"], case.params
    assert_same_rows(case)
    shown = shown_by_python(case.exact)
    assert set(case.texts) == set(shown)
    near = {name: case.texts[name] for name, (value, write) in shown.items() if case.texts[name] != write(value)}
    for name, text in near.items():
        value, write = shown[name]
        assert text in {write(value * (1 - SAME)), write(value * (1 + SAME))}, (name, text, value, case.params)
    return len(near)


def assert_nearly_the_same_screen(case: Case) -> None:
    """The cut is among tokens the browser does not know one by one: what does not depend on it is the same, the rest is near."""
    figures, exact = case.step["figures"], case.exact["figures"]
    assert abs(figures["kept"] - exact["kept"]) <= COUNT_BOUND * exact["kept"], case.params
    if case.params.top_p is None and case.params.min_p is None:
        assert figures["kept"] == case.params.top_k  # Python also keeps what ties with the last
        assert exact["kept"] == np.count_nonzero(case.trace.uncut_scores >= np.sort(case.trace.uncut_scores)[-case.params.top_k])
    assert figures["effective"] == pytest.approx(exact["effective"], rel=COUNT_BOUND), case.params
    assert figures["entropy"] == pytest.approx(exact["entropy"], abs=COUNT_BOUND / np.log(2)), case.params
    for name in ("keptMass", "removed"):
        assert figures[name] == pytest.approx(exact[name], abs=MASS_BOUND), (name, case.params)
    # The same token, unless u is this near to the end of its segment.
    low, high = segment(case.trace.probs, case.step["choice"]["id"]) if case.step["choice"]["id"] is not None else (0, 1)
    assert low - MASS_BOUND <= case.trace.u < high + MASS_BOUND, case.params
    if case.step["choice"]["id"] != case.exact["choice"]["id"]:
        return
    assert_same_rows(case)
    shown = shown_by_python(case.exact)
    for name in (name for name in shown if name.startswith(("logit", "scaled", "uncut"))):
        value, write = shown[name]
        assert case.texts[name] in {write(value), write(value * (1 - SAME)), write(value * (1 + SAME))}, (name, case.params)
    for row, expected in zip(case.step["rows"], case.exact["rows"], strict=True):
        assert row["prob"] == pytest.approx(expected["prob"], abs=MASS_BOUND), case.params


def segment(probs: np.ndarray, token_id: int) -> tuple[float, float]:
    """Where a token lies on the line from 0 to 1."""
    before = (probs > probs[token_id]) | ((probs == probs[token_id]) & (np.arange(len(probs)) < token_id))
    low = float(probs.sum(where=before))
    return low, low + float(probs[token_id])


def random_params(generator: np.random.Generator) -> SamplingParams:
    def perhaps(draw):
        return draw() if generator.random() < 0.6 else None

    def one_of(*draws):
        return draws[generator.integers(len(draws))]()

    return SamplingParams(
        temperature=one_of(
            lambda: one_of(lambda: 0.0, lambda: 1e-6, lambda: 0.05, lambda: 1.0, lambda: None),
            lambda: float(10 ** generator.uniform(-6, -1)),
            lambda: float(generator.uniform(0.05, 2)),
            lambda: float(generator.uniform(0.05, 2)),
        ),
        top_k=perhaps(lambda: one_of(lambda: int(np.exp(generator.uniform(0, np.log(20_000)))), lambda: 300_000, lambda: 13)),
        top_p=perhaps(
            lambda: one_of(
                lambda: float(generator.choice([0.0, 1e-9, 1.0])),
                lambda: float(generator.uniform(0, 1)),
                lambda: float(1 - 10 ** generator.uniform(-6, -1)),
            )
        ),
        min_p=perhaps(lambda: one_of(lambda: float(generator.choice([0.0, 1.0])), lambda: float(10 ** generator.uniform(-6, 0)))),
        repetition_penalty=perhaps(lambda: one_of(lambda: 1.0, lambda: float(generator.uniform(0.5, 2)))),
        order=str(generator.choice(["huggingface", "llamacpp"])),
        seed=int(generator.integers(2**32)),
    )


def deep_params(generator: np.random.Generator) -> SamplingParams:
    """A temperature that spreads the mass, and one cut that passes where tokens are thousands."""
    cut = [
        {"top_k": int(np.exp(generator.uniform(np.log(1_990), np.log(200_000))))},
        {"top_p": float(1 - 10 ** generator.uniform(-5, -1.5))},
        {"min_p": float(10 ** generator.uniform(-6, -2.5))},
    ][generator.integers(3)]
    return SamplingParams(
        temperature=float(generator.uniform(1, 2)),
        repetition_penalty=float(generator.uniform(0.5, 2)),
        order=str(generator.choice(["huggingface", "llamacpp"])),
        seed=int(generator.integers(2**32)),
        **cut,
    )


@pytest.fixture(scope="module", params=PROMPTS)
def context(request, scorer) -> tuple[tuple[int, ...], Scores]:
    sentence = open_sentence(request.param, scorer)
    for _ in range(PROMPTS[request.param]):
        sentence = written(sentence, scorer, SamplingParams(seed=7))
    return sentence.token_ids, scorer.scores_after(sentence.token_ids)


def test_random_settings_put_the_same_texts_on_the_screen(bench_scripts, scorer, context):
    seen_ids, scores = context
    generator = np.random.default_rng(seen_ids)
    settings = [random_params(generator) for _ in range(SETTINGS_PER_PROMPT)]
    near = same = 0
    for case in compare(bench_scripts, scores, seen_ids, scorer.vocabulary, settings):
        if case.cuts_among_the_bins:
            assert_nearly_the_same_screen(case)
        else:
            assert case.step["figures"]["kept"] == case.exact["figures"]["kept"]
            near += assert_same_screen(case)
            same += 1
    assert same >= 0.8 * SETTINGS_PER_PROMPT
    assert near <= 1  # of some 2,500 texts


def test_a_cut_among_thousands_of_tokens_is_near(bench_scripts, scorer, context):
    seen_ids, scores = context
    generator = np.random.default_rng([*seen_ids, 1])
    settings = [deep_params(generator) for _ in range(DEEP_SETTINGS_PER_PROMPT)]
    cases = list(compare(bench_scripts, scores, seen_ids, scorer.vocabulary, settings))
    deep = [case for case in cases if case.cuts_among_the_bins]
    assert len(deep) >= DEEP_SETTINGS_PER_PROMPT / 4
    for case in deep:
        assert_nearly_the_same_screen(case)


def test_the_token_chosen_has_a_name_exactly_when_it_was_sent(bench_scripts, scorer, context):
    seen_ids, scores = context
    params, us = SamplingParams(temperature=2.0), (np.arange(200) / 200).tolist()
    probs, binned = run_pipeline(scores, params, seen_ids, 0).probs, sent_as_bins(scores, seen_ids)
    expected = [draw_inverse_cdf(probs, u).token_id for u in us]
    results = in_browser(bench_scripts, scores, seen_ids, scorer.vocabulary, [params] * len(us), us)
    names = [None if binned[token_id] else token_id for token_id in expected]
    assert [result["step"]["choice"]["id"] for result in results] == names
    assert None in names and len(set(names)) > 10


@pytest.mark.parametrize("penalty", [None, 1.3, 2.0])
def test_a_token_of_the_text_that_is_hardly_likely_stands_among_the_others_and_not_before_them(bench_scripts, scorer, context, penalty):
    """Its logit is sent, but thousands of binned tokens are more likely: right after the tokens known, u falls on one of those."""
    seen_ids, scores = context
    params = SamplingParams(temperature=2.0, repetition_penalty=penalty)
    trace, binned = run_pipeline(scores, params, seen_ids, 0), sent_as_bins(scores, seen_ids)
    likeliest = trace.uncut_scores[binned].max()
    unlikely = [token_id for token_id in dict.fromkeys(seen_ids) if trace.uncut_scores[token_id] < likeliest]
    assert unlikely
    known = float(trace.probs.sum(where=trace.uncut_scores > likeliest))
    us = [known + 1e-9, known + float(trace.probs[unlikely].max()) / 2]
    assert all(binned[draw_inverse_cdf(trace.probs, u).token_id] for u in us)
    results = in_browser(bench_scripts, scores, seen_ids, scorer.vocabulary, [params] * 2, us)
    assert [result["step"]["choice"]["id"] for result in results] == [None, None]
    ahead = bench_scripts.evaluate(
        """([sent, penalty, ids]) => {
          const scores = readScores(sent);
          const { positions, ahead } = rank(scores, penalty);
          return ids.map((id) => ahead[positions.findIndex((position) => scores.ids[position] === id)]);
        }""",
        [live_scores(scores, seen_ids, scorer.vocabulary), penalty, [*unlikely, int(np.argmax(trace.uncut_scores))]],
    )
    expected = [np.count_nonzero(binned & (trace.uncut_scores > trace.uncut_scores[token_id])) for token_id in unlikely]
    assert ahead == [*(pytest.approx(tokens, rel=COUNT_BOUND, abs=6) for tokens in expected), 0]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Le chat dort sur le", SHOWN),
        ("Le chat dort sur le", 48),
        ("Le chat dort", 48),
        ("Le chat dort sur le canapé", 48),
        ("Le chat dort sur le lit du", 48),
        ("Le chat dort sur le lit et", 48),
    ],
)
def test_a_small_vocabulary_full_of_ties_is_the_same_to_the_last_token(bench_scripts, scripted, text, shown):
    """Most of the 48 tokens share one logit: which of them top-p keeps goes by id, on both sides."""
    seen_ids = tuple(scripted.vocabulary.encode(text))
    scores = scripted.prefill(seen_ids).scores
    generator = np.random.default_rng(seen_ids)
    settings = [random_params(generator) for _ in range(60)]
    settings += [SamplingParams(top_p=float(top_p), seed=9) for top_p in generator.uniform(0.85, 1, 30)]
    settings += [SamplingParams(top_k=top_k, top_p=0.999, order="llamacpp", temperature=1.7) for top_k in range(1, 50, 2)]
    cut_through_ties = 0
    for case in compare(bench_scripts, scores, seen_ids, scripted.vocabulary, settings, shown):
        assert assert_same_screen(case) == 0
        lowest = case.trace.uncut_scores[case.trace.kept].min()
        cut_through_ties += bool((~case.trace.kept & (case.trace.uncut_scores == lowest)).any())
    assert cut_through_ties >= 10


def test_equal_tokens_that_reach_p_exactly_are_as_many_on_both_sides(bench_scripts):
    """Of ten equal tokens, eight make 0.7999999999999999 in floating point: less than 0.8, so a ninth stays."""
    vocabulary = Vocabulary(10, "abcdefghij".__getitem__, lambda text: [], sentencepiece_bytes, frozenset())
    settings = [SamplingParams(top_p=tenths / 10, seed=seed) for tenths in range(11) for seed in range(5)]
    for case in compare(bench_scripts, Scores(np.zeros(10, dtype=np.float32)), (), vocabulary, settings, 10):
        assert assert_same_screen(case) == 0


def test_probabilities_that_add_up_to_a_hair_less_than_one_leave_no_u_without_a_token_and_no_p_without_a_cut(bench_scripts):
    """n equal tokens, and one whose probability is too small for a float: a sum that falls short of p, or of u, stops before it."""
    almost_one, short = float(np.nextafter(1, 0)), 0
    for equal in range(2, 60):
        scores = Scores(np.array([0.0] * equal + [-1e4], dtype=np.float32))
        vocabulary = Vocabulary(equal + 1, lambda token_id: f"t{token_id}", lambda text: [], sentencepiece_bytes, frozenset())
        settings = [SamplingParams(), SamplingParams(top_p=almost_one), SamplingParams(top_k=equal)]
        results = in_browser(bench_scripts, scores, (), vocabulary, settings, [almost_one] * 3)
        for params, result in zip(settings, results, strict=True):
            trace = run_pipeline(scores, params, (), 0)
            assert result["step"]["choice"]["id"] == draw_inverse_cdf(trace.probs, almost_one).token_id == equal - 1
            assert result["step"]["figures"]["kept"] == trace.kept_count == (equal if trace.params != SamplingParams() else equal + 1)
        short += np.cumsum(trace.probs)[-1] < almost_one
    assert short >= 5


@pytest.mark.parametrize("known", [1, 5, 20])
def test_a_model_that_tells_only_its_best_tokens_is_shown_alike(bench_scripts, known):
    """The others are -inf: they have no row, whatever the settings, and stay among those cut."""
    generator = np.random.default_rng(known)
    logits = np.full(1_000, -np.inf, dtype=np.float32)
    ids = generator.choice(1_000, known, replace=False)
    logits[ids] = np.log(generator.dirichlet(np.ones(known)) * 0.9).astype(np.float32)
    scores = Scores(logits, unknown_mass=0.1, known_count=known)
    vocabulary = Vocabulary(1_000, lambda token_id: f"t{token_id}", lambda text: [], sentencepiece_bytes, frozenset())
    seen_ids = (int(ids[0]), int(np.flatnonzero(np.isinf(logits))[0]))
    settings = [random_params(generator) for _ in range(100)]
    for case in compare(bench_scripts, scores, seen_ids, vocabulary, settings):
        assert assert_same_screen(case) == 0
        assert len(case.step["rows"]) == min(known, SHOWN)
        assert all(row["cutBy"] in (None, "top_k", "top_p", "min_p") for row in case.exact["rows"])


def test_the_page_states_the_bound_tested_here():
    script = (ROOT / "assets" / "bench" / "bench.js").read_text(encoding="utf-8")
    assert f"approché à {decimal(COUNT_BOUND * 100)} % près" in script
