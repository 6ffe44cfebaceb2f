"""The floor of a decode step, measured here and computed elsewhere, as tables and charts."""

import pandas as pd
import plotly.graph_objects as go

from inference.charts.style import CHOSEN, MEASURED, NEUTRAL, figure
from inference.decode_floor import DecodeFloor
from inference.formatting import milliseconds
from inference.memory_floor import Hardware, Published, floor_s


def rounds_table(result: DecodeFloor) -> pd.DataFrame:
    """One row a round; times in ms, bandwidth in Go/s (1e9)."""
    return pd.DataFrame(
        {
            "tour": range(1, len(result.reads_s) + 1),
            "lecture du bloc (ms)": [round(seconds * 1e3, 3) for seconds in result.reads_s],
            "débit (Go/s)": [round(result.read_bytes / seconds / 1e9, 2) for seconds in result.reads_s],
            "décodage (ms)": [round(seconds * 1e3, 3) for seconds in result.decodes_s],
        }
    )


def floor_figure(result: DecodeFloor) -> go.Figure:
    """The decode of each round against the floor, from 0."""
    rounds = list(range(1, len(result.decodes_s) + 1))
    return figure(
        data=[
            {
                "type": "bar",
                "name": "un décodage, mesuré",
                "x": rounds,
                "y": [seconds * 1e3 for seconds in result.decodes_s],
                "marker": {"color": MEASURED},
                "text": [milliseconds(seconds) for seconds in result.decodes_s],
                "textposition": "none",
                "hovertemplate": "tour %{x} : %{text}<extra></extra>",
            },
            {
                "type": "scatter",
                "mode": "lines",
                "name": "plancher : une lecture des poids",
                "x": [0.5, len(rounds) + 0.5],
                "y": [result.floor_s * 1e3] * 2,
                "line": {"color": CHOSEN, "width": 3, "dash": "dash"},
                "hovertemplate": f"plancher : {milliseconds(result.floor_s)}<extra></extra>",
            },
        ],
        layout={
            "height": 300,
            "xaxis": {"title": {"text": "tour de mesure"}, "fixedrange": True},
            "yaxis": {"title": {"text": "ms"}, "rangemode": "tozero", "fixedrange": True},
            "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom"},
        },
    )


def hardware_table(hardware: tuple[Hardware, ...], bytes_read: float) -> pd.DataFrame:
    """The floor of every machine for so many bytes a token, and where its bandwidth comes from."""
    return pd.DataFrame(
        {
            "machine": [machine.name for machine in hardware],
            "débit (Go/s)": [machine.bandwidth_bytes_per_s / 1e9 for machine in hardware],
            "plancher (ms/token)": [round(floor_s(bytes_read, machine.bandwidth_bytes_per_s) * 1e3, 3) for machine in hardware],
            "source": [machine.source.label for machine in hardware],
            "adresse": [machine.source.url for machine in hardware],
        }
    )


def hardware_figure(hardware: tuple[Hardware, ...], bytes_read: float) -> go.Figure:
    """« calcul »: one dot a machine, on a logarithmic axis, as they span three orders of magnitude."""
    floors_s = [floor_s(bytes_read, machine.bandwidth_bytes_per_s) for machine in hardware]
    return figure(
        data=[
            {
                "type": "scatter",
                "mode": "markers+text",
                "y": [machine.name for machine in hardware],
                "x": [seconds * 1e3 for seconds in floors_s],
                "marker": {"color": NEUTRAL, "size": 12},
                "text": [milliseconds(seconds) for seconds in floors_s],
                "textposition": "middle right",
                "cliponaxis": False,
                "hovertemplate": "%{y} : %{text}<extra>calcul</extra>",
            }
        ],
        layout={
            "height": 34 * len(hardware) + 80,
            "showlegend": False,
            "xaxis": {
                "type": "log",
                "title": {"text": "plancher, ms par token (calcul, échelle logarithmique)"},
                "fixedrange": True,
                "dtick": 1,
                "tickformat": ",.0f",
            },
            "yaxis": {"autorange": "reversed", "fixedrange": True},
        },
    )


def published_table(published: tuple[Published, ...], computed_s: list[float]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "exemple": [example.name for example in published],
            "publié": [milliseconds(example.floor_s) for example in published],
            "notre calcul": [milliseconds(seconds) for seconds in computed_s],
            "ce que dit la source": [example.says for example in published],
            "source": [example.source.label for example in published],
            "adresse": [example.source.url for example in published],
        }
    )
