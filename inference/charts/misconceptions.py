"""What answers the misconceptions, as tables and a chart."""

from collections.abc import Callable

import pandas as pd
import plotly.graph_objects as go

from inference.charts.style import MEASURED, NEUTRAL, figure
from inference.escaping import html_text
from inference.formatting import milliseconds
from inference.misconceptions import Streaming
from inference.near_ties import NearTie
from inference.routes import ALONE, BATCH

Label = Callable[[int], str]


def flips_table(flips: tuple[NearTie, ...], text: Callable[[tuple[int, ...]], str], label: Label) -> pd.DataFrame:
    """One row a text whose next token depends on the batch."""
    return pd.DataFrame(
        {
            "texte": [text(flip.token_ids) for flip in flips],
            "choisi seul, deux fois": [label(flip.favourites[ALONE]) for flip in flips],
            "choisi dans le lot": [label(flip.favourites[BATCH]) for flip in flips],
        }
    )


def streaming_table(streaming: Streaming, label: Label) -> pd.DataFrame:
    """One row a token, in ms."""
    return pd.DataFrame(
        {
            "position": range(1, len(streaming.token_ids) + 1),
            "token": [label(token_id) for token_id in streaming.token_ids],
            "sorti à (ms)": [round(seconds * 1e3, 1) for seconds in streaming.arrivals_s],
            "durée (ms)": [round(seconds * 1e3, 1) for seconds in streaming.passes_s],
        }
    )


def streaming_figure(streaming: Streaming, label: Label) -> go.Figure:
    """A time line, one row a token: its pass, after the one before it."""
    rows = list(range(len(streaming.token_ids)))
    passes_ms = [seconds * 1e3 for seconds in streaming.passes_s]
    return figure(
        data=[
            {
                "type": "bar",
                "orientation": "h",
                "y": rows,
                "base": [arrival * 1e3 - pass_ms for arrival, pass_ms in zip(streaming.arrivals_s, passes_ms, strict=True)],
                "x": passes_ms,
                "marker": {"color": [MEASURED, *[NEUTRAL] * (len(rows) - 1)]},
                "text": [milliseconds(seconds) for seconds in streaming.arrivals_s],
                "textposition": "none",
                "hovertemplate": "%{y} : sorti à %{text}<extra></extra>",
            }
        ],
        layout={
            "height": 22 * len(rows) + 90,
            "showlegend": False,
            "margin": {"l": 10, "r": 20, "t": 10, "b": 40},
            "xaxis": {"title": {"text": "ms de calcul depuis l’invite"}, "tickformat": ",.0f", "rangemode": "tozero", "fixedrange": True},
            "yaxis": {
                "autorange": "reversed",
                "tickvals": rows,
                "ticktext": [html_text(label(token_id)) for token_id in streaming.token_ids],
                "fixedrange": True,
            },
        },
    )
