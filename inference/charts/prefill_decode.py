"""The time to read a prompt and to write after it, as tables and charts."""

import pandas as pd
import plotly.graph_objects as go

from inference.charts.style import MEASURED, NEUTRAL, figure
from inference.formatting import count, number
from inference.kv_cache import cache_bytes, grouped_bytes, multi_head_bytes
from inference.measurement import Spread
from inference.models.base import Architecture
from inference.prefill_decode import Generation, LengthTiming

MIO = 2**20


def timings_table(timings: tuple[LengthTiming, ...]) -> pd.DataFrame:
    """One row a prompt length; times in ms."""
    return pd.DataFrame(
        {
            "tokens": [timing.tokens for timing in timings],
            **_spread_columns("TTFT", [timing.ttft for timing in timings]),
            **_spread_columns("décodage", [timing.itl for timing in timings]),
            "tokens lus/s": [round(timing.input_tps, 1) for timing in timings],
            "tokens écrits/s": [round(timing.output_tps, 1) for timing in timings],
        }
    )


def _spread_columns(name: str, spreads: list[Spread]) -> dict[str, list[float]]:
    parts = {"": "median_s", ", le plus court": "low_s", ", le plus long": "high_s"}
    return {f"{name}{suffix} (ms)": [round(getattr(spread, part) * 1e3, 2) for spread in spreads] for suffix, part in parts.items()}


def timings_figure(timings: tuple[LengthTiming, ...]) -> go.Figure:
    """Both times against the length, on logarithmic axes; each bar goes from the shortest to the longest repeat."""
    lengths = [timing.tokens for timing in timings]
    return figure(
        data=[
            _with_spread("lire l’invite (TTFT)", lengths, [timing.ttft for timing in timings], MEASURED),
            _with_spread("écrire un token après elle", lengths, [timing.itl for timing in timings], NEUTRAL),
        ],
        layout={
            "height": 380,
            "xaxis": {"type": "log", "tickvals": lengths, "title": {"text": "tokens de l’invite"}, "fixedrange": True},
            "yaxis": {"type": "log", "title": {"text": "ms (échelle logarithmique)"}, "dtick": 1, "tickformat": ",.0f", "fixedrange": True},
            "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom"},
        },
    )


def _with_spread(name: str, lengths: list[int], spreads: list[Spread], colour: str) -> dict:
    medians = [spread.median_s * 1e3 for spread in spreads]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": lengths,
        "y": medians,
        "error_y": {
            "array": [spread.high_s * 1e3 - median for spread, median in zip(spreads, medians, strict=True)],
            "arrayminus": [median - spread.low_s * 1e3 for spread, median in zip(spreads, medians, strict=True)],
        },
        "line": {"color": colour, "width": 3},
        "marker": {"size": 9},
        "text": [f"{number(median, 1)} ms" for median in medians],
        "hovertemplate": "%{x} tokens : %{text}",
    }


def generation_table(generation: Generation) -> pd.DataFrame:
    """Milliseconds of each token of the same text, with and without the cache."""
    return pd.DataFrame(
        {
            "token": range(1, len(generation.cached_s) + 1),
            "avec cache (ms)": [round(seconds * 1e3, 2) for seconds in generation.cached_s],
            "sans cache (ms)": [round(seconds * 1e3, 2) for seconds in generation.recomputed_s],
        }
    )


def generation_figure(generation: Generation) -> go.Figure:
    """A time line: the block of the prefill, then one tick a token."""
    rows = {"sans cache": generation.recomputed_s, "avec cache": generation.cached_s}
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "y": list(rows),
            "x": [seconds[position] * 1e3 for seconds in rows.values()],
            "marker": {"color": MEASURED if position == 0 else NEUTRAL, "line": {"color": "rgba(255,255,255,0.8)", "width": 1}},
            "name": "prefill" if position == 0 else "décodage",
            "showlegend": position <= 1,
            "text": [f"{number(seconds[position] * 1e3, 0)} ms" for seconds in rows.values()],
            "textposition": "none",
            "hovertemplate": f"token {position + 1} : %{{text}}<extra></extra>",
        }
        for position in range(len(generation.cached_s))
    ]
    return figure(
        data=bars,
        layout={
            "barmode": "stack",
            "height": 200,
            "xaxis": {"title": {"text": "ms depuis le départ"}, "tickformat": ",.0f", "fixedrange": True},
            "yaxis": {"fixedrange": True},
            "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "traceorder": "normal"},
        },
    )


def cache_table(timings: tuple[LengthTiming, ...], shape: Architecture) -> pd.DataFrame:
    """Bytes of the cache: read from the tensors, and by three formulas."""
    lengths = [timing.tokens for timing in timings]
    return pd.DataFrame(
        {
            "tokens": lengths,
            "mesuré (octets)": [timing.cache_bytes for timing in timings],
            "calcul exact (octets)": [cache_bytes(shape, tokens) for tokens in lengths],
            "calcul sans fenêtre (octets)": [grouped_bytes(shape, tokens) for tokens in lengths],
            "calcul des manuels (octets)": [multi_head_bytes(shape, tokens) for tokens in lengths],
        }
    )


def cache_figure(timings: tuple[LengthTiming, ...], shape: Architecture) -> go.Figure:
    lengths = [timing.tokens for timing in timings]
    formulas = {"calcul des manuels": multi_head_bytes, "calcul sans fenêtre": grouped_bytes, "calcul exact": cache_bytes}
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": lengths,
            "y": [formula(shape, tokens) / MIO for tokens in lengths],
            "line": {"color": NEUTRAL, "dash": dash},
            "hovertemplate": "%{x} tokens : %{y:.1f} Mio",
        }
        for (name, formula), dash in zip(formulas.items(), ("dot", "dash", "solid"), strict=True)
    ]
    measured = {
        "type": "scatter",
        "mode": "markers",
        "name": "mesuré sur les tenseurs",
        "x": lengths,
        "y": [timing.cache_bytes / MIO for timing in timings],
        "marker": {"color": MEASURED, "size": 10},
        "text": [f"{count(timing.cache_bytes)} octets" for timing in timings],
        "hovertemplate": "%{x} tokens : %{text}",
    }
    return figure(
        data=[*lines, measured],
        layout={
            "height": 340,
            "xaxis": {"title": {"text": "tokens dans le cache"}, "tickvals": lengths[2:], "fixedrange": True},
            "yaxis": {"title": {"text": "Mio"}, "fixedrange": True, "rangemode": "tozero"},
            "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom"},
        },
    )
