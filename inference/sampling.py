"""From logits to the distribution a token is drawn from.

Each `apply_` function maps scores (vocab_size,) float64 to new scores of the same shape, -inf marking a token that is cut, and never
writes to what it received. Conventions are those of transformers' logits processors unless said otherwise.
"""

from collections.abc import Callable, Sequence

import numpy as np

from inference.distributions import descending_heads, softmax
from inference.drawing import choose_greedy, draw_inverse_cdf, uniform
from inference.records import ORDERS, SamplingParams, Scores, Stage, StepTrace


def apply_repetition_penalty(scores: np.ndarray, penalty: float, seen_ids: Sequence[int]) -> np.ndarray:
    """Divide the positive logits of tokens already in the text by `penalty`, multiply the negative ones (Keskar et al., 2019)."""
    seen = np.unique(np.asarray(seen_ids, dtype=np.intp))
    penalised = scores.copy()
    penalised[seen] = np.where(scores[seen] < 0, scores[seen] * penalty, scores[seen] / penalty)
    return penalised


def apply_temperature(scores: np.ndarray, temperature: float) -> np.ndarray:
    """Divide by the temperature, which is > 0: below 1 the favourite gains, above 1 the outsiders do (Ackley et al., 1985)."""
    return scores / temperature


def apply_top_k(scores: np.ndarray, top_k: int) -> np.ndarray:
    """Keep the k largest scores, and all that equal the k-th (Fan et al., 2018)."""
    if top_k >= len(scores):
        return scores
    threshold = np.partition(scores, len(scores) - top_k)[len(scores) - top_k]
    return _keep(scores, scores >= threshold)


def apply_top_p(scores: np.ndarray, top_p: float) -> np.ndarray:
    """Keep the nucleus: the most likely tokens up to and including the one that brings their mass to p (Holtzman et al., 2020).

    The mass is that of the tokens still in, renormalised. At least one token stays. When equal scores straddle the cut the larger
    ids stay, as with a stable ascending sort; transformers' own is not stable, so which of them it keeps is left to chance. p >= 1
    is off: a rounded sum must not cut the tail.
    """
    if top_p >= 1:
        return scores
    probs = softmax(scores)
    for head in descending_heads(probs):
        mass = np.cumsum(head)
        if mass[-1] >= top_p:
            break
    size = min(int(np.searchsorted(mass, top_p, side="left")) + 1, len(head))
    kept = probs > head[size - 1]
    equals = np.flatnonzero(probs == head[size - 1])
    kept[equals[len(equals) - (size - np.count_nonzero(kept)) :]] = True
    return _keep(scores, kept)


def apply_min_p(scores: np.ndarray, min_p: float) -> np.ndarray:
    """Keep tokens at least `min_p` times as likely as the favourite (Nguyen et al., 2024)."""
    if min_p == 0:
        return scores
    return _keep(scores, scores - scores.max() >= np.log(min_p))


def _keep(scores: np.ndarray, kept: np.ndarray) -> np.ndarray:
    return np.where(kept, scores, -np.inf)


_APPLY: dict[str, Callable[[np.ndarray, float, Sequence[int]], np.ndarray]] = {
    "repetition_penalty": apply_repetition_penalty,
    "temperature": lambda scores, value, _: apply_temperature(scores, value),
    "top_k": lambda scores, value, _: apply_top_k(scores, value),
    "top_p": lambda scores, value, _: apply_top_p(scores, value),
    "min_p": lambda scores, value, _: apply_min_p(scores, value),
}


def run_pipeline(scores: Scores, params: SamplingParams, context_ids: Sequence[int], step: int) -> StepTrace:
    """Run every stage in the order asked for, then choose a token.

    context_ids  the whole text so far, prompt included: what the repetition penalty looks at.
    step         how many tokens were generated before this one; with the seed it fixes u.

    Temperature 0 is greedy decoding: after the penalty nothing divides, cuts or draws, in both orders, since every cut keeps the
    most likely token.
    """
    current = scores.logits.astype(np.float64)
    stages = []
    for name in ORDERS[params.order]:
        value = getattr(params, name)
        applied = value is not None and (name == "repetition_penalty" or not params.is_greedy)
        if applied:
            current = _APPLY[name](current, value, context_ids)
        stages.append(Stage(name, current, applied))
    probs = softmax(current)
    if params.is_greedy:
        u, choice = None, choose_greedy(current, probs)
    else:
        u = uniform(params.seed, step)
        choice = draw_inverse_cdf(probs, u)
    return StepTrace(step, params, scores, tuple(stages), probs, u, choice)
