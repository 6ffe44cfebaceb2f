"""The pipeline against transformers' own processors, on the scores of the real model, over its whole vocabulary."""

import functools

import numpy as np
import pytest
import torch
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from inference.records import SamplingParams, Scores
from inference.sampling import apply_top_k, apply_top_p, run_pipeline

PROMPTS = (
    "Le chat dort sur le",
    "La capitale de la France est",
    "Il était une fois une princesse qui",
    "1, 2, 3, 4, 5,",
    "Bonjour, je m’appelle",
    "def somme(a, b):\n    return",
    "Je pense que",
    "« Comment ça va ? » demanda-t-elle.",
    "Pour faire une omelette, il faut des œufs, des œufs et des",
    "Zzz",
)
SETTINGS_PER_PROMPT = 24


@pytest.fixture(scope="module", params=PROMPTS)
def context(request, scorer) -> tuple[tuple[int, ...], Scores]:
    token_ids = scorer.vocabulary.encode(request.param)
    return token_ids, scorer.scores_after(token_ids)


def random_params(generator: np.random.Generator) -> SamplingParams:
    def perhaps(draw):
        return draw() if generator.random() < 0.6 else None

    return SamplingParams(
        temperature=float(generator.uniform(0.05, 2)),
        top_k=perhaps(lambda: int(np.exp(generator.uniform(0, np.log(300_000))))),
        top_p=perhaps(lambda: float(generator.choice([generator.uniform(0, 1), 1 - 10 ** generator.uniform(-6, -1)]))),
        min_p=perhaps(lambda: float(10 ** generator.uniform(-6, 0))),
        repetition_penalty=perhaps(lambda: float(generator.uniform(0.5, 2))),
        seed=int(generator.integers(2**32)),
    )


def transformers_scores(logits: np.ndarray, params: SamplingParams, context_ids: tuple[int, ...]) -> np.ndarray:
    processors = []
    if params.repetition_penalty is not None:
        processors.append(RepetitionPenaltyLogitsProcessor(params.repetition_penalty))
    processors.append(TemperatureLogitsWarper(params.temperature))
    if params.top_k is not None:
        processors.append(TopKLogitsWarper(params.top_k))
    if params.top_p is not None:
        processors.append(TopPLogitsWarper(params.top_p))
    if params.min_p is not None:
        processors.append(MinPLogitsWarper(params.min_p))
    input_ids = torch.tensor([context_ids])
    scores = torch.from_numpy(logits.astype(np.float64))[None]
    for processor in processors:
        scores = processor(input_ids, scores)
    return scores[0].numpy()


def test_random_settings_give_the_distribution_of_transformers(context):
    context_ids, scores = context
    generator = np.random.default_rng(context_ids)
    for _ in range(SETTINGS_PER_PROMPT):
        params = random_params(generator)
        trace = run_pipeline(scores, params, context_ids, 0)
        expected = transformers_scores(scores.logits, params, context_ids)
        assert np.array_equal(trace.kept, np.isfinite(expected)), params
        assert np.abs(trace.probs - torch.from_numpy(expected).softmax(-1).numpy()).max() <= 1e-6, params


def rounded_like_bfloat16(scores: Scores) -> np.ndarray:
    """Logits to the nearest 1/16, the step of bfloat16 between 8 and 16: most of the vocabulary is then tied with something."""
    return np.round(scores.logits.astype(np.float64) * 16) / 16


def test_top_k_keeps_the_ties_that_transformers_keeps(context):
    logits = rounded_like_bfloat16(context[1])
    more_than_asked = 0
    for top_k in (1, 2, 5, 10, 40, 100, 300, 1000, 5000, 20_000, 100_000, 262_144, 300_000):
        kept = np.isfinite(apply_top_k(logits, top_k))
        expected = np.isfinite(TopKLogitsWarper(top_k)(None, torch.from_numpy(logits)[None])[0].numpy())
        assert np.array_equal(kept, expected), top_k
        more_than_asked += kept.sum() > top_k
    assert more_than_asked >= 5


@pytest.fixture
def stable_sort(monkeypatch):
    """torch sorts equal values in whatever order its vector instructions leave them in, unless it is asked for a stable sort."""
    monkeypatch.setattr(torch, "sort", functools.partial(torch.sort, stable=True))


def random_top_p(context_ids: tuple[int, ...]) -> list[float]:
    return [*np.random.default_rng(context_ids).uniform(0.2, 1, 6).tolist(), 0.0, 1e-9, 0.9999]


def test_top_p_cut_among_ties_keeps_the_ids_that_transformers_keeps_with_a_stable_sort(context, stable_sort):
    logits = rounded_like_bfloat16(context[1])
    cut_through_ties = 0
    for top_p in random_top_p(context[0]):
        kept = np.isfinite(apply_top_p(logits, top_p))
        expected = np.isfinite(TopPLogitsWarper(top_p)(None, torch.from_numpy(logits)[None])[0].numpy())
        assert np.array_equal(kept, expected), top_p
        cut_through_ties += (~kept & (logits == logits[kept].min())).any()
    assert cut_through_ties >= 1


def test_top_p_cut_among_ties_keeps_as_many_of_the_same_scores_as_transformers(context):
    logits = rounded_like_bfloat16(context[1])
    for top_p in random_top_p(context[0]):
        kept = np.isfinite(apply_top_p(logits, top_p))
        expected = np.isfinite(TopPLogitsWarper(top_p)(None, torch.from_numpy(logits)[None])[0].numpy())
        assert np.array_equal(np.sort(logits[kept]), np.sort(logits[expected])), top_p
