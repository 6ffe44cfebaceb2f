"""What every figure shares: one accent for the chosen token, greys for the rest, no frame, readable on light and dark."""

import plotly.graph_objects as go

CHOSEN = "#e8710a"
NEUTRAL = "#7a8599"
MEASURED = "#2f6fde"
"""What was measured, beside the greys of what is only computed."""
CUT = "rgba(122, 133, 153, 0.35)"


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
    return go.Figure(data=data, layout=merged)
