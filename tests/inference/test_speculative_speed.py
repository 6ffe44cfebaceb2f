"""The measurement of speculative decoding, on a random network: its texts, its figures, and what it leaves behind."""

from itertools import islice

import numpy as np
import pytest

from inference.distributions import log_softmax
from inference.generation import generate
from inference.prefix_cache import PrefixCache
from inference.records import SamplingParams, StopRules
from inference.speculative import ModelDraft, NoDraft, PromptLookup
from inference.speculative_speed import NUM_DRAFT_TOKENS, PLAIN, SMALL, Run, Text, measure, speculate
from tests.conftest import answers, follow

PROMPT = "abcabcab"


@pytest.fixture
def scorer(tiny):
    return PrefixCache(tiny)


class Blurred:
    """The same network with noise in its logits, that knows the first 200 tokens only."""

    token_ids = np.arange(200)

    def __init__(self, model, noise: float = 0.5):
        self.model, self.noise = model, noise

    def logits_after(self, text_ids):
        logits = self.model.prefill(text_ids).scores.logits[:200]
        return logits + np.random.default_rng(text_ids[-1]).normal(scale=self.noise, size=200).astype(np.float32)


def drafts(tiny):
    return [NoDraft(), PromptLookup(256), ModelDraft(Blurred(tiny), 256, 0.0)]


@pytest.mark.parametrize("which", range(3))
def test_at_temperature_zero_the_text_is_the_greedy_one(tiny, scorer, which):
    prompt_ids = tiny.vocabulary.encode(PROMPT)
    greedy = generate(scorer, prompt_ids, SamplingParams(temperature=0), StopRules(max_new_tokens=20))
    expected = [trace.choice.token_id for trace, _ in greedy]
    rounds = islice(speculate(scorer, drafts(tiny)[which], 3, prompt_ids, 0.0), 20)
    assert [token_id for one in rounds for token_id in one.round.new_ids][:20] == expected


def test_at_temperature_zero_every_text_is_the_plain_one(scorer):
    _, result = follow(measure(scorer, 0.0, lambda model, rows: Blurred(model), prompts=("abcabc",), tokens=6, draft_rows=200))
    assert [run.same_texts for run in result.runs] == [1] * len(result.runs)


def test_p_is_what_the_model_gives_to_the_whole_text(tiny, scorer):
    """Read in pieces and cut back after each refusal, the target scores as if it read the text at once."""
    text = tiny.vocabulary.encode(PROMPT)
    refused = 0
    for one in islice(speculate(scorer, ModelDraft(Blurred(tiny, 2.0), 256, 1.0), 3, text, 1.0), 12):
        for proposal in one.round.examined:
            expected = log_softmax(tiny.prefill(text).scores.logits)[proposal.token_id]
            assert np.log(proposal.p) == pytest.approx(expected, abs=1e-4)
            refused += not proposal.is_accepted
            text += (proposal.token_id,) if proposal.is_accepted else ()
        text += (one.round.token_id,)
    assert refused > 2


def test_every_draft_and_every_gamma_on_every_prompt(tiny, scorer):
    work = measure(scorer, 1.0, lambda model, rows: Blurred(model), prompts=("abcabc", "xyzxyz"), tokens=6, draft_rows=200)
    progress = []
    try:
        while True:
            progress.append(next(work))
            assert answers(scorer, (len(progress) % 200, 1))  # nobody holds the model between two steps
    except StopIteration as end:
        result = end.value
    fractions = [one.fraction for one in progress]
    assert fractions == sorted(fractions) and fractions[0] >= 0 and fractions[-1] <= 1
    assert [(run.draft, run.num_draft_tokens) for run in result.runs] == [
        (draft, gamma) for draft, gammas in NUM_DRAFT_TOKENS.items() for gamma in gammas
    ]
    assert {one.doing.split(", ")[-1] for one in progress} >= {PLAIN, "γ = 1", "γ = 4"}
    assert all(len(run.texts) == 2 and min(text.tokens for text in run.texts) >= 6 for run in result.runs)
    assert all(len(timed_round.round.new_ids) == 1 for text in result.plain for timed_round in text.rounds)
    assert result.check.draws == 20_000 and result.check.largest_error < 1e-12
    for run in result.runs:
        assert all(len(one.overlaps) == len(one.round.examined) for one in run.rounds)
    assert result.best.speedup == max(run.speedup for run in result.runs)


def test_the_small_model_is_given_the_likeliest_tokens_of_the_passages(scorer):
    asked = []

    def open_draft(model, rows):
        asked.extend(rows.tolist())
        return Blurred(model)

    list(measure(scorer, 1.0, open_draft, prompts=("abc",), tokens=1, draft_rows=50))
    assert len(asked) == 50 and asked == sorted(set(asked))


def test_a_measurement_closed_half_way_lets_go_of_the_model(scorer):
    work = measure(scorer, 1.0, lambda model, rows: Blurred(model), prompts=("abc",), tokens=4, draft_rows=200)
    for _ in range(12):
        next(work)
    work.close()
    assert answers(scorer, (1, 2))


# The figures of a run, by hand


class FakeRound:
    def __init__(self, tokens, examined=0):
        self.new_ids = tuple(range(tokens))
        self.proposals = self.examined = tuple(FakeProposal(position == 0) for position in range(examined))


class FakeProposal:
    def __init__(self, is_accepted):
        self.is_accepted = is_accepted


class FakeTimed:
    def __init__(self, tokens, total_s, draft_s=0.0, examined=0):
        self.round, self.overlaps, self.draft_s, self.total_s = FakeRound(tokens, examined), (0.5,) * examined, draft_s, total_s


def test_the_figures_of_a_run_by_hand():
    plain = (Text((1,), (FakeTimed(1, 2.0),) * 4), Text((1,), (FakeTimed(1, 2.0),) * 4))
    texts = (
        Text((1,), (FakeTimed(2, 3.0, draft_s=0.5, examined=2),) * 2),
        Text((1,), (FakeTimed(4, 3.0, draft_s=0.5, examined=2),)),
    )
    run = Run(SMALL, 2, texts, plain)
    assert run.tokens_per_pass == pytest.approx(8 / 3)
    assert run.speedup == pytest.approx(2.0 / (9.0 / 8))
    assert (run.speedups.low_s, run.speedups.high_s) == (pytest.approx(2 / 1.5), pytest.approx(2 / 0.75))
    assert run.draft_cost == pytest.approx(1.5 / 6 / 2)
    assert run.verify_cost == pytest.approx(2.5 / 2)
    assert (run.acceptance_rate, run.accepted_share) == (0.5, 0.5)
    assert run.expected_tokens == pytest.approx(1.75)
    assert run.expected_speedup_here == pytest.approx(1.75 / (2 * 0.125 + 1.25))
