"""What the bench draws: one step as exact rows, and the scores from which a browser redoes them while a slider moves.

Everything here is ready for JSON. `assets/bench/sampler.js` reads the scores and writes steps of the same shape as `exact_step`.
"""

import base64
import dataclasses
from collections.abc import Sequence

import numpy as np

from inference.charts.candidates import REST, candidate_rows
from inference.distributions import largest
from inference.records import SamplingParams, Scores, StepTrace
from inference.tokens import Vocabulary

KNOWN = 2_000
"""How many of the largest logits a browser gets one by one."""
BINS = 512
"""Into how many bins the other logits go."""
WIDENING = 1.5
"""The i-th edge, from the largest logit down, is i ** WIDENING away: bins are narrow where tokens weigh, wide where they hardly do."""


def live_scores(scores: Scores, seen_ids: Sequence[int], vocabulary: Vocabulary) -> dict:
    """A model's scores, small enough to follow a hand: the `KNOWN` largest logits and those of `seen_ids` exactly, the rest in bins.

    seen_ids  the text so far, whose logits the repetition penalty moves.

    Tokens whose logit is -inf are left out: no setting brings them back. A bin holds its count, mean and variance, from which the
    sum of its exponentials follows to the second order at any temperature.
    """
    logits = scores.logits
    finite = np.isfinite(logits)
    seen = [token_id for token_id in dict.fromkeys(seen_ids) if finite[token_id]]
    known = [token_id for token_id in largest(logits, KNOWN).tolist() if finite[token_id]]
    known = list(dict.fromkeys([*known, *seen]))
    binned = finite.copy()
    binned[known] = False
    counts, means, variances = _bins(logits[binned].astype(np.float64))
    return {
        "size": len(logits),
        "largest": KNOWN,
        "ids": _packed(known, "<u4"),
        "logits": _packed(logits[known], "<f4"),
        "labels": [vocabulary.label(token_id) for token_id in known],
        "seen": seen,
        "counts": _packed(counts, "<u4"),
        "means": _packed(means, "<f8"),
        "variances": _packed(variances, "<f4"),
        "binsTop": float(logits[binned].max()) if binned.any() else None,
    }


def live_settings(params: SamplingParams) -> dict:
    """Settings as the sliders hold them: a temperature that is off stands at 1, which divides by nothing."""
    return dataclasses.asdict(params) | {"temperature": 1.0 if params.temperature is None else params.temperature}


def exact_step(trace: StepTrace, vocabulary: Vocabulary, shown: int) -> dict:
    """The rows, figures and draw of a step, computed over the whole vocabulary in float64."""
    # A token that the model keeps to itself gets no row: it has neither a logit nor a stage that cut it.
    known = int(np.count_nonzero(np.isfinite(trace.scores.logits)))
    rows = candidate_rows(trace, vocabulary, min(shown, known))
    rest = next(
        ({"tokens": row.tokens, "kept": row.kept, "uncut": row.uncut, "prob": row.prob} for row in rows if row.token_id == REST), None
    )
    return {
        "rows": [
            {
                "id": row.token_id,
                "rank": row.rank,
                "label": row.label,
                "logit": row.logit,
                "scaled": row.scaled,
                "uncut": row.uncut,
                "cutBy": row.cut_by,
                "prob": row.prob,
                "chosen": row.chosen,
            }
            for row in rows
            if row.token_id != REST
        ],
        "rest": rest,
        "u": trace.u,
        "choice": {"id": trace.choice.token_id, "low": trace.choice.low, "prob": trace.choice.probability},
        "figures": {
            "entropy": trace.entropy_bits,
            "effective": trace.effective_choices,
            "kept": trace.kept_count,
            "known": known,
            "size": len(trace.probs),
            "keptMass": trace.kept_mass,
            "removed": trace.removed_mass,
            "sum": float(trace.probs.sum()),
        },
    }


def _bins(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count, mean and variance of each bin that is not empty, by decreasing mean."""
    if not len(values):
        return np.empty(0), np.empty(0), np.empty(0)
    low, high = values.min(), values.max()
    depths = (high - values) / ((high - low) or 1.0)
    bins = np.minimum((BINS * depths ** (1 / WIDENING)).astype(np.intp), BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    filled = counts > 0
    means = np.bincount(bins, values, BINS) / np.maximum(counts, 1)
    variances = np.bincount(bins, (values - means[bins]) ** 2, BINS) / np.maximum(counts, 1)
    return counts[filled], means[filled], variances[filled]


def _packed(values, dtype: str) -> str:
    return base64.b64encode(np.asarray(values, dtype=dtype).tobytes()).decode("ascii")
