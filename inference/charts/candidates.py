"""The rows shown for one step, the rest of the vocabulary as one more, and the bars drawn from them."""

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


def candidate_rows(trace: StepTrace, vocabulary: Vocabulary, shown: int) -> pd.DataFrame:
    """The `shown` most likely tokens, the chosen one if it is not among them, then the rest as one row.

    Columns: token_id (REST for the last row), rank (1 is the most likely), label, tokens (how many the row stands for),
    logit, scaled (logit ÷ T, penalty included), uncut (the softmax the cuts look at, whole vocabulary), kept (how many of the row's
    tokens survive the cuts), prob (what is drawn from), chosen. Logits of the last row are NaN: it has no single one.
    """
    ids = largest(trace.uncut_scores, shown).tolist()
    ranks = list(range(1, len(ids) + 1))
    chosen = trace.choice.token_id
    if chosen not in ids:
        ids.append(chosen)
        ranks.append(rank_of(trace, chosen))
    columns = {
        "token_id": ids,
        "rank": ranks,
        "label": [vocabulary.label(token_id) for token_id in ids],
        "tokens": [1] * len(ids),
        "logit": trace.scores.logits[ids].tolist(),
        "scaled": trace.uncut_scores[ids].tolist(),
        "uncut": trace.uncut_probs[ids].tolist(),
        "kept": trace.kept[ids].astype(int).tolist(),
        "prob": trace.probs[ids].tolist(),
        "chosen": [token_id == chosen for token_id in ids],
    }
    others = len(trace.probs) - len(ids)
    if others:
        unseen = np.ones(len(trace.probs), dtype=bool)
        unseen[ids] = False
        rest = {
            "token_id": REST,
            "rank": 0,
            "label": plural(others, "autre token", "autres tokens"),
            "tokens": others,
            "logit": np.nan,
            "scaled": np.nan,
            "uncut": float(trace.uncut_probs.sum(where=unseen)),
            "kept": trace.kept_count - sum(columns["kept"]),
            "prob": float(trace.probs.sum(where=unseen)),
            "chosen": False,
        }
        for name, value in rest.items():
            columns[name].append(value)
    return pd.DataFrame(columns)


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
            "label": [csv_text(vocabulary.label(token_id)) for token_id in range(len(trace.probs))],
            "logit": trace.scores.logits,
            "scaled": trace.uncut_scores,
            "uncut": trace.uncut_probs,
            "kept": trace.kept,
            "prob": trace.probs,
        }
    )


def candidates_figure(rows: pd.DataFrame) -> go.Figure:
    """Two bars a row, on an axis that always goes from 0 to 100 %: before the cuts, and what is drawn from."""
    names = [html_text(label) for label in rows["label"]]
    positions = list(range(len(rows)))
    colours = [CHOSEN if row.chosen else NEUTRAL if row.kept else CUT for row in rows.itertuples()]
    return figure(
        data=[
            {
                "type": "bar",
                "orientation": "h",
                "name": "après la coupe",
                "y": positions,
                "x": rows["prob"].tolist(),
                "marker": {"color": colours},
                "text": [percent(value) if kept else "coupé" for value, kept in zip(rows["prob"], rows["kept"])],
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
                "x": rows["uncut"].tolist(),
                "marker": {"color": "rgba(0,0,0,0)", "line": {"color": NEUTRAL, "width": 1}},
                "customdata": names,
                "text": [percent(value) for value in rows["uncut"]],
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
