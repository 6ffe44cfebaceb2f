"""What every figure shares: one accent for the chosen token, greys for the rest, no frame, readable on light and dark."""

import pandas as pd
import plotly.graph_objects as go

from inference.escaping import html_text
from inference.formatting import percent

CHOSEN = "#e8710a"
NEUTRAL = "#7a8599"
MEASURED = "#2f6fde"
"""What was measured, beside the greys of what is only computed."""
CUT = "rgba(122, 133, 153, 0.35)"

_LEGIBLE = {"constraintext": "none", "textangle": 0}
"""Plotly would shrink or turn the text of a bar that has little room."""


def figure(data: list[dict], layout: dict) -> go.Figure:
    """A figure without Plotly's default template, which costs more to build than the figure; Streamlit's theme colours it."""
    base = {
        "template": None,
        "margin": {"l": 10, "r": 70, "t": 30, "b": 40},
        "yaxis": {},
        "font": {"size": 14},
        "separators": ",\u202f",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "showlegend": True,
        "bargap": 0.25,
    }
    merged = base | layout
    merged["yaxis"] = {"automargin": True} | merged["yaxis"]
    return go.Figure(data=[_LEGIBLE | trace if trace["type"] == "bar" else trace for trace in data], layout=merged)


def token_bars(table: pd.DataFrame, colours: dict[str, str], row_height: int, xaxis: dict) -> go.Figure:
    """Probabilities in [0, 1] side by side: for each row of `table`, named by its `token`, one bar a column of `colours`."""
    positions = list(range(len(table)))
    return figure(
        data=[
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "y": positions,
                "x": table[name],
                "marker": {"color": colour},
                "text": [percent(probability) for probability in table[name]],
                "textposition": "outside",
                "cliponaxis": False,
                "hovertemplate": f"%{{text}}<extra>{name}</extra>",
            }
            for name, colour in colours.items()
        ],
        layout={
            "height": row_height * len(table) + 90,
            "barmode": "group",
            "xaxis": {"tickformat": ".0%", "title": {"text": "probabilité"}, "fixedrange": True} | xaxis,
            "yaxis": {
                "autorange": "reversed",
                "tickmode": "array",
                "tickvals": positions,
                "ticktext": [html_text(token) for token in table["token"]],
                "fixedrange": True,
            },
            "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "traceorder": "normal"},
        },
    )
