"""The line from 0 to 1 on which the kept tokens lie end to end, and the number u that falls on one of them."""

import pandas as pd
import plotly.graph_objects as go

from inference.charts.candidates import REST
from inference.charts.style import CHOSEN, NEUTRAL, figure
from inference.escaping import html_text
from inference.formatting import number, percent
from inference.records import StepTrace

_SHADES = ("rgba(122,133,153,0.55)", "rgba(122,133,153,0.3)")
_READABLE_WIDTH = 0.05
"""Segments narrower than this carry no label; hovering names them."""


def draw_strip_figure(trace: StepTrace, rows: pd.DataFrame) -> go.Figure:
    """Segments by decreasing probability, for a trace that draws: not a greedy one.

    `rows` are those of `candidate_rows`: tokens not shown make one segment at the end, split around the chosen one when it lies
    among them.
    """
    segments = []
    start = 0.0
    shown = rows[(rows["prob"] > 0) & (rows["token_id"] != REST)]
    for row in shown.itertuples():
        if row.chosen and trace.choice.low > start + 1e-12:  # chosen among tokens not shown: fill what lies before it
            segments.append(("autres tokens", start, trace.choice.low - start, False))
            start = trace.choice.low
        segments.append((row.label, start, row.prob, row.chosen))
        start += row.prob
    if start < 1 - 1e-9:
        segments.append(("autres tokens", start, 1 - start, False))
    labels, lows, widths, chosen = zip(*segments)
    names = [html_text(label) for label in labels]
    segment_bars = {
        "type": "bar",
        "orientation": "h",
        "y": [0] * len(segments),
        "base": lows,
        "x": widths,
        "marker": {"color": [CHOSEN if is_chosen else _SHADES[rank % 2] for rank, is_chosen in enumerate(chosen)], "line": {"width": 0}},
        "text": [name if width >= _READABLE_WIDTH else "" for name, width in zip(names, widths)],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "customdata": [(name, percent(width)) for name, width in zip(names, widths)],
        "hovertemplate": "%{customdata[0]} : %{customdata[1]}<extra></extra>",
    }
    needle = {"type": "line", "x0": trace.u, "x1": trace.u, "y0": -0.75, "y1": 0.75, "line": {"color": NEUTRAL, "width": 3}}
    note = {"x": trace.u, "y": 0.95, "text": f"u = {number(trace.u, 4)}", "showarrow": False, "font": {"size": 15}}
    return figure(
        data=[segment_bars],
        layout={
            "barmode": "overlay",
            "height": 150,
            "shapes": [needle],
            "annotations": [note],
            "xaxis": {"range": [0, 1], "fixedrange": True, "tickformat": ".1f", "title": {"text": "probabilités cumulées"}},
            "yaxis": {"range": [-0.8, 1.2], "visible": False, "fixedrange": True},
            "showlegend": False,
            "margin": {"l": 10, "r": 10, "t": 10, "b": 40},
        },
    )
