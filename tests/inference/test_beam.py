"""Beam search against transformers' own, and what the tree of paths must be whatever the model."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from inference.beam import DROPPED, FINISHED, KEPT, BeamSearch, Path, beam_search
from inference.distributions import log_softmax
from inference.generation import generate
from inference.models.hf import HfModel
from inference.prefix_cache import PrefixCache
from inference.records import SamplingParams, StopRules
from tests.conftest import PROMPT, answers, follow

PROMPTS = ("Il", "ab", "z", "Le chat", "été", "?!")
ENDS = {"never": (), "seldom": (17, 80, 200), "often": tuple(range(0, 256, 9))}
"""Tokens that end a text, which a random network writes more or less often."""
TOKENS = 8
SCORE = 1e-5
"""Relative, between sums in float64 and transformers' in float32, computed in a batch. Largest seen: 7e-7, and with the real model,
whose 262,144 terms transformers adds up in float32, 2e-5."""
RECOMPUTED = 1e-4
"""Nats, of a path's log-probability, added up token by token with the cache or read at once. Seen: 3e-6, and 2e-5 on the real model."""


def run(work) -> BeamSearch:
    return follow(work)[1]


def ending_at(model: HfModel, end_ids: Iterable[int]) -> PrefixCache:
    scorer = PrefixCache(model)
    scorer.info = replace(model.info, eos_ids=frozenset(end_ids))
    return scorer


def search(model: HfModel, prompt: str, ends: str, width: int, penalty: float = 1.0, tokens: int = TOKENS) -> BeamSearch:
    return run(beam_search(ending_at(model, ENDS[ends]), model.vocabulary.encode(prompt), width, penalty, tokens))


def transformers_beam(model: HfModel, prompt: str, end_ids: Iterable[int], width: int, penalty: float) -> tuple[list[int], float]:
    """What transformers writes, and the score it gives it."""
    import torch

    input_ids = torch.tensor([model.vocabulary.encode(prompt)])
    output = model.model.generate(
        input_ids,
        attention_mask=torch.ones_like(input_ids),
        num_beams=width,
        length_penalty=penalty,
        early_stopping=False,
        do_sample=False,
        max_new_tokens=TOKENS,
        eos_token_id=list(end_ids) or None,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_scores=True,
    )
    return output.sequences[0, input_ids.shape[1] :].tolist(), float(output.sequences_scores[0])


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize(("width", "penalty"), [(2, 1.0), (3, 0.0), (4, 2.0), (4, -1.0), (5, 0.5)])
def test_it_writes_what_transformers_writes(tiny, ends, width, penalty):
    for prompt in PROMPTS:
        found = search(tiny, prompt, ends, width, penalty)
        token_ids, score = transformers_beam(tiny, prompt, ENDS[ends], width, penalty)
        assert list(found.best.token_ids) == token_ids, prompt
        assert found.best.score(penalty) == pytest.approx(score, rel=SCORE)


@pytest.mark.parametrize(("prompt", "width", "penalty"), [(PROMPT, 3, 1.0), ("Il était une fois", 2, 0.0)])
def test_it_writes_what_transformers_writes_with_the_real_model(model, prompt, width, penalty):
    scorer = PrefixCache(model)
    found = run(beam_search(scorer, model.vocabulary.encode(prompt), width, penalty, TOKENS))
    token_ids, score = transformers_beam(model, prompt, model.info.eos_ids, width, penalty)
    assert list(found.best.token_ids) == token_ids
    assert found.best.score(penalty) == pytest.approx(score, rel=10 * SCORE)


@pytest.mark.parametrize("ends", ENDS)
def test_a_single_path_is_greedy(tiny, ends):
    for prompt in PROMPTS:
        scorer, prompt_ids = ending_at(tiny, ENDS[ends]), tiny.vocabulary.encode(prompt)
        greedy = [trace.choice.token_id for trace, _ in generate(scorer, prompt_ids, SamplingParams(temperature=0), StopRules(TOKENS))]
        assert list(search(tiny, prompt, ends, width=1).best.token_ids) == greedy


def test_wide_enough_it_finds_the_likeliest_text_of_all(tiny):
    """256 paths hold every first token, so the best of the 65,536 texts of two tokens cannot escape."""
    prompt_ids = tiny.vocabulary.encode("Il")
    first = log_softmax(tiny.logits_along(prompt_ids)[-1])
    both = np.array([first[i] + log_softmax(tiny.logits_along((*prompt_ids, i))[-1]) for i in range(256)])
    found = search(tiny, "Il", "never", width=256, tokens=2)
    assert found.best.token_ids == np.unravel_index(both.argmax(), both.shape)
    assert found.best.log_prob == pytest.approx(both.max(), abs=RECOMPUTED)


@pytest.mark.parametrize("ends", ENDS)
def test_log_probabilities_are_the_models_own(tiny, ends):
    prompt_ids = tiny.vocabulary.encode("Le chat")
    for candidates in search(tiny, "Le chat", ends, width=4).steps:
        for path in (one.path for one in candidates):
            rows = tiny.logits_along((*prompt_ids, *path.token_ids))[len(prompt_ids) - 1 : -1]
            again = [log_softmax(row)[token_id] for row, token_id in zip(rows, path.token_ids, strict=True)]
            assert path.log_prob == pytest.approx(sum(again), abs=RECOMPUTED)


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("width", [1, 2, 4])
def test_the_tree_keeps_the_best_of_what_it_looked_at(tiny, ends, width):
    end_ids = set(ENDS[ends])
    for prompt in PROMPTS:
        found = search(tiny, prompt, ends, width)
        parents = {()}
        for length, candidates in enumerate(found.steps, start=1):
            paths = [one.path for one in candidates]
            assert {path.token_ids[:-1] for path in paths} <= parents
            assert len(set(paths)) == len(paths) and all(len(path.token_ids) == length for path in paths)
            assert paths == sorted(paths, key=lambda path: path.log_prob, reverse=True)
            by_fate = {fate: [one.path for one in candidates if one.fate == fate] for fate in (KEPT, FINISHED, DROPPED)}
            if length < TOKENS:
                assert by_fate[KEPT] == [path for path in paths if path.token_ids[-1] not in end_ids][:width]
                assert by_fate[FINISHED] == [path for path in paths[:width] if path.token_ids[-1] in end_ids]
            else:
                assert by_fate[FINISHED] == paths[:width] and not by_fate[KEPT]
            parents = {path.token_ids for path in by_fate[KEPT]}
        every_end = [one.path for step in found.steps for one in step if one.fate == FINISHED]
        assert list(found.finished) == sorted(every_end, key=lambda path: path.score(1.0), reverse=True)[:width]


def test_it_ends_as_soon_as_nothing_that_goes_on_scores_better(tiny):
    early = 0
    for prompt in PROMPTS:
        found = search(tiny, prompt, "often", width=2)
        scores = [[one.path.score(1.0) for one in step if one.fate == KEPT] for step in found.steps]
        finished: list[float] = []
        for step, going_on in zip(found.steps, scores):
            finished = sorted([*finished, *(one.path.score(1.0) for one in step if one.fate == FINISHED)], reverse=True)[:2]
            is_over = len(finished) == 2 and (not going_on or going_on[0] <= finished[-1])
            assert is_over == (step is found.steps[-1])
        early += len(found.steps) < TOKENS
    assert early >= 1


def test_a_path_costs_a_pass_and_no_token_is_read_twice(noted):
    """One pass for the prompt, then one for each path that goes on, reading its last token after a state it may share."""
    prompt_ids = noted.vocabulary.encode("Il")
    found = run(beam_search(PrefixCache(noted), prompt_ids, 3, 1.0, TOKENS))
    going_on = [one.path.token_ids for step in found.steps for one in step if one.fate == KEPT]
    assert noted.passes == [((), prompt_ids), *(((*prompt_ids, *ids[:-1]), ids[-1:]) for ids in going_on)]


def test_others_have_the_model_between_two_passes_and_progress_never_goes_back(tiny):
    scorer, prompt_ids = PrefixCache(tiny), tiny.vocabulary.encode("Il")
    fractions = []
    for progress in beam_search(scorer, prompt_ids, 2, 1.0, 4):
        fractions.append(progress.fraction)
        assert answers(scorer, (len(fractions),))
    assert fractions == sorted(fractions) and fractions[0] == 0 and fractions[-1] < 1


def test_a_score_is_the_log_probability_over_a_power_of_the_length():
    path = Path().then(3, -1.0).then(4, -3.0)
    assert (path.token_ids, path.log_prob) == ((3, 4), -4.0)
    assert [path.score(penalty) for penalty in (0, 1, 2, -1)] == [-4, -2, -1, -8]


def test_where_a_text_is_no_longer_followed(tiny):
    found = search(tiny, "Il", "never", width=2)
    assert found.leaves(found.best.token_ids) is None
    assert found.leaves(found.finished[1].token_ids) is None
    for step, candidates in enumerate(found.steps, start=1):
        dropped = next(one.path.token_ids for one in candidates if one.fate == DROPPED)
        assert found.leaves(dropped) == step == found.leaves((*dropped, 0))
