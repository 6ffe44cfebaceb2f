"""Precisions compared, as tables and charts."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inference.charts.style import MEASURED, NEUTRAL, figure, token_bars
from inference.distributions import largest, softmax
from inference.formatting import mebibytes, milliseconds, percent
from inference.precisions import Precision
from inference.records import Scores

MIO = 2**20
SHOWN = 10


def precisions_table(precisions: tuple[Precision, ...]) -> pd.DataFrame:
    """One row a precision; sizes in Mio, times in ms."""
    return pd.DataFrame(
        {
            "précision": [one.name for one in precisions],
            "poids (Mio)": [round(one.weights_bytes / MIO, 1) for one in precisions],
            "préparation (s)": [None if one.store_s is None else round(one.store_s, 2) for one in precisions],
            "chargement (s)": [None if one.load_s is None else round(one.load_s, 2) for one in precisions],
            "décodage (ms)": [round(one.decode.median_s * 1e3, 1) for one in precisions],
            "le plus court (ms)": [round(one.decode.low_s * 1e3, 1) for one in precisions],
            "le plus long (ms)": [round(one.decode.high_s * 1e3, 1) for one in precisions],
            "plancher (ms)": [round(one.floor_s * 1e3, 1) for one in precisions],
            "décodage ÷ plancher": [round(one.decode.median_s / one.floor_s, 2) for one in precisions],
            "prefill de 128 tokens (ms)": [round(one.prefill.median_s * 1e3, 1) for one in precisions],
            "KL moyenne (nat)": [round(float(one.kl_nats.mean()), 5) for one in precisions],
            "KL maximale (nat)": [round(float(one.kl_nats.max()), 5) for one in precisions],
            "même favori (%)": [round(one.top1_agreement * 100, 1) for one in precisions],
            "positions": [len(one.kl_nats) for one in precisions],
        }
    )


def cost_figure(precisions: tuple[Precision, ...]) -> go.Figure:
    """Bytes against divergence: each precision a point, the size of its decode time in its label."""
    others = precisions[1:]
    return figure(
        data=[
            {
                "type": "scatter",
                "mode": "markers+text",
                "x": [one.weights_bytes / MIO for one in others],
                "y": [float(one.kl_nats.mean()) for one in others],
                "marker": {"color": MEASURED, "size": 16},
                "text": [one.name for one in others],
                "textposition": "top center",
                "cliponaxis": False,
                "customdata": [f"{mebibytes(one.weights_bytes)}, même favori {percent(one.top1_agreement)}" for one in others],
                "hovertemplate": "%{text} : %{customdata}<extra></extra>",
            }
        ],
        layout={
            "height": 320,
            "showlegend": False,
            "xaxis": {"title": {"text": "poids, Mio"}, "rangemode": "tozero", "fixedrange": True},
            "yaxis": {
                "type": "log",
                "title": {"text": "KL moyenne, nat (axe log)"},
                "dtick": 1,
                "tickformat": ",",
                "fixedrange": True,
            },
        },
    )


def speed_figure(precisions: tuple[Precision, ...]) -> go.Figure:
    """The decode of each precision, beside the floor of its own bytes."""
    names = [one.name for one in precisions]
    bars = {
        "décodage, mesuré": ([one.decode.median_s for one in precisions], MEASURED),
        "plancher": ([one.floor_s for one in precisions], NEUTRAL),
    }
    return figure(
        data=[
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "y": names,
                "x": [value * 1e3 for value in seconds],
                "marker": {"color": colour},
                "text": [milliseconds(value) for value in seconds],
                "textposition": "outside",
                "cliponaxis": False,
                "hovertemplate": "%{y} : %{text}",
            }
            for name, (seconds, colour) in bars.items()
        ],
        layout={
            "height": 46 * len(names) + 90,
            "barmode": "group",
            "xaxis": {"title": {"text": "ms par token"}, "fixedrange": True},
            "yaxis": {"type": "category", "autorange": "reversed", "fixedrange": True},
            "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "traceorder": "normal"},
        },
    )


def side_by_side_table(names: tuple[str, str], scores: tuple[Scores, Scores], label: Callable[[int], str]) -> pd.DataFrame:
    """The likeliest tokens of either precision, by the first one's probability, in [0, 1]."""
    first, second = (softmax(one.logits) for one in scores)
    ids = np.union1d(largest(first, SHOWN), largest(second, SHOWN))
    ids = ids[np.argsort(-first[ids], kind="stable")]
    columns = {names[0]: first[ids]} if names[0] == names[1] else {names[0]: first[ids], names[1]: second[ids]}
    return pd.DataFrame({"token": [label(token_id) for token_id in ids.tolist()], "id": ids, **columns})


def side_by_side_figure(names: tuple[str, str], table: pd.DataFrame) -> go.Figure:
    """Two bars a token, on an axis that always goes from 0 to 100 %."""
    colours = dict(zip(dict.fromkeys(names), (MEASURED, NEUTRAL), strict=False))
    return token_bars(table, colours, row_height=40, xaxis={"range": [0, 1]})
