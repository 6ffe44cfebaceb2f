"""The rows shown for one step, the rest of the vocabulary as one more, and the bars drawn from them."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inference.charts.style import CHOSEN, CUT, NEUTRAL, figure
from inference.distributions import largest
from inference.escaping import csv_text, html_text
from inference.formatting import percent, plural
from inference.records import StepTrace
from inference.tokens import Vocabulary

REST = -1
"""The token id of the row that stands for every token not shown."""


@dataclass(frozen=True)
class CandidateRow:
    """One token, or all those not shown.

    token_id  REST for the row of those not shown, whose logits are NaN: it has no single one.
    rank      1 for the most likely; 0 for the rest.
    tokens    how many tokens the row stands for.
    logit     the model's.
    scaled    logit ÷ T, penalty included.
    uncut     the softmax the cuts look at, over the whole vocabulary.
    kept      how many of the row's tokens survive the cuts.
    cut_by    the stage that cut the token, « top_p »; None when it is kept, and for the rest.
    prob      what is drawn from.
    """

    token_id: int
    rank: int
    label: str
    tokens: int
    logit: float
    scaled: float
    uncut: float
    kept: int
    cut_by: str | None
    prob: float
    chosen: bool


def candidate_rows(trace: StepTrace, vocabulary: Vocabulary, shown: int) -> list[CandidateRow]:
    """The `shown` most likely tokens, the last of which makes room for the chosen one if it is not among them, then the rest as one row."""
    ids = largest(trace.uncut_scores, shown).tolist()
    ranks = list(range(1, len(ids) + 1))
    chosen = trace.choice.token_id
    if chosen not in ids:
        ids[-1], ranks[-1] = chosen, rank_of(trace, chosen)
    rows = [
        CandidateRow(
            token_id=token_id,
            rank=rank,
            label=vocabulary.label(token_id),
            tokens=1,
            logit=float(trace.scores.logits[token_id]),
            scaled=float(trace.uncut_scores[token_id]),
            uncut=float(trace.uncut_probs[token_id]),
            kept=int(trace.kept[token_id]),
            cut_by=trace.cut_by(token_id),
            prob=float(trace.probs[token_id]),
            chosen=token_id == chosen,
        )
        for token_id, rank in zip(ids, ranks)
    ]
    others = len(trace.probs) - len(ids)
    if others:
        unseen = np.ones(len(trace.probs), dtype=bool)
        unseen[ids] = False
        rows.append(
            CandidateRow(
                token_id=REST,
                rank=0,
                label=plural(others, "autre token", "autres tokens"),
                tokens=others,
                logit=math.nan,
                scaled=math.nan,
                uncut=float(trace.uncut_probs.sum(where=unseen)),
                kept=trace.kept_count - sum(row.kept for row in rows),
                cut_by=None,
                prob=float(trace.probs.sum(where=unseen)),
                chosen=False,
            )
        )
    return rows


def rank_of(trace: StepTrace, token_id: int) -> int:
    """1 for the most likely token; ties by id."""
    scores = trace.uncut_scores
    own = scores[token_id]
    return 1 + int(np.count_nonzero(scores > own)) + int(np.count_nonzero(scores[:token_id] == own))


def full_table(trace: StepTrace, vocabulary: Vocabulary) -> pd.DataFrame:
    """Every token of the vocabulary, by id: what the CSV holds. (vocab_size rows)"""
    return pd.DataFrame(
        {
            "token_id": np.arange(len(trace.probs)),
            "label": list(map(csv_text, vocabulary.labels)),
            "logit": trace.scores.logits,
            "scaled": trace.uncut_scores,
            "uncut": trace.uncut_probs,
            "kept": trace.kept,
            "prob": trace.probs,
        }
    )


def candidates_table(rows: list[CandidateRow], is_greedy: bool) -> pd.DataFrame:
    """The tokens as numbers, which sort as such; probabilities in per cent. The rest is not a token and stays out."""
    tokens = [row for row in rows if row.token_id != REST]
    return pd.DataFrame(
        {
            "rang": [row.rank for row in tokens],
            "token": [row.label for row in tokens],
            "id": [row.token_id for row in tokens],
            "logit": [row.logit for row in tokens],
            "logit ÷ T": [row.scaled for row in tokens],
            "softmax (%)": [row.uncut * 100 for row in tokens],
            "coupé par": [row.cut_by or "" for row in tokens],
            "choix (%)" if is_greedy else "tirage (%)": [row.prob * 100 for row in tokens],
        }
    )


def candidates_figure(rows: list[CandidateRow]) -> go.Figure:
    """Two bars a row, on an axis that always goes from 0 to 100 %: before the cuts, and what is drawn from."""
    names = [html_text(row.label) for row in rows]
    positions = list(range(len(rows)))
    colours = [CHOSEN if row.chosen else NEUTRAL if row.kept else CUT for row in rows]
    return figure(
        data=[
            {
                "type": "bar",
                "orientation": "h",
                "name": "après la coupe",
                "y": positions,
                "x": [row.prob for row in rows],
                "marker": {"color": colours},
                "text": [percent(row.prob) if row.kept else "coupé" for row in rows],
                "textposition": "outside",
                "cliponaxis": False,
                "customdata": names,
                "hovertemplate": "%{customdata} : %{text}<extra>après la coupe</extra>",
            },
            {
                "type": "bar",
                "orientation": "h",
                "name": "softmax, avant la coupe",
                "y": positions,
                "x": [row.uncut for row in rows],
                "marker": {"color": "rgba(0,0,0,0)", "line": {"color": NEUTRAL, "width": 1}},
                "customdata": names,
                "text": [percent(row.uncut) for row in rows],
                "textposition": "none",
                "hovertemplate": "%{customdata} : %{text}<extra>avant la coupe</extra>",
            },
        ],
        layout={
            "barmode": "overlay",
            "height": 28 * len(rows) + 70,
            "xaxis": {"range": [0, 1], "tickformat": ".0%", "title": {"text": "probabilité"}, "fixedrange": True},
            "yaxis": {
                "autorange": "reversed",
                "tickmode": "array",
                "tickvals": positions,
                "ticktext": names,
                "fixedrange": True,
            },
            "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom"},
        },
    )
