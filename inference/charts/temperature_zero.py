"""The same logits by several routes, as tables and charts. Differences are in millionths: most are of that size in float32."""

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from itertools import zip_longest

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inference.charts.style import CHOSEN, MEASURED, NEUTRAL, figure
from inference.escaping import html_text
from inference.formatting import count, number, percent, plural, tiny
from inference.near_ties import NearTie
from inference.routes import AGAIN, ALONE
from inference.summation import Sums
from inference.temperature_zero import EDGES, Comparison, Fork

MILLIONTH = 1e-6
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
MARKS = (("circle", 18), ("diamond", 13), ("square", 8), ("x-thin", 5))
Label = Callable[[int], str]


def changes(differing: int) -> str:
    """« aucun logit ne change », « 1 logit change », « 240 139 logits changent »."""
    return plural(differing, "logit change", "logits changent") if differing else "aucun logit ne change"


def comparisons_table(comparisons: tuple[Comparison, ...]) -> pd.DataFrame:
    """One row a text and a route."""
    return pd.DataFrame(
        {
            "texte (tokens)": [one.tokens for one in comparisons],
            "calculé": [one.route for one in comparisons],
            "logits différents": [one.differing for one in comparisons],
            "logits": [one.vocabulary for one in comparisons],
            "plus grand écart (millionièmes)": [round(one.largest / MILLIONTH, 3) for one in comparisons],
            "avance du favori (millionièmes)": [round(one.gap / MILLIONTH, 3) for one in comparisons],
            "même favori": ["non" if one.flips else "oui" for one in comparisons],
        }
    )


def comparisons_figure(comparisons: tuple[Comparison, ...]) -> go.Figure:
    """The share of the logits that change, one bar a route, for either text."""
    texts = dict.fromkeys(one.tokens for one in comparisons)
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "name": f"texte de {tokens} tokens",
            "y": [one.route for one in comparisons if one.tokens == tokens],
            "x": [one.share for one in comparisons if one.tokens == tokens],
            "marker": {"color": colour},
            "text": [count(one.differing) for one in comparisons if one.tokens == tokens],
            "textposition": "outside",
            "cliponaxis": False,
            "hovertemplate": f"%{{y}} : %{{text}} logits différents<extra>{tokens} tokens</extra>",
        }
        for tokens, colour in zip(texts, (MEASURED, NEUTRAL), strict=True)
    ]
    return figure(
        data=bars,
        layout={
            "height": 380,
            "barmode": "group",
            "xaxis": {"range": [0, 1], "tickformat": ".0%", "title": {"text": "logits qui changent"}, "fixedrange": True},
            "yaxis": {"autorange": "reversed", "fixedrange": True},
            "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "traceorder": "normal"},
        },
    )


def differences_table(comparisons: tuple[Comparison, ...]) -> pd.DataFrame:
    """How many logits fall in each bin, one column a route; bins that are empty for all are left out."""
    counts = np.array([one.counts for one in comparisons])
    kept = np.flatnonzero(counts.any(axis=0))
    return pd.DataFrame(
        {
            "écart de (millionièmes)": (EDGES[kept] / MILLIONTH).round(4),
            "à (millionièmes)": (EDGES[kept + 1] / MILLIONTH).round(4),
            **{one.route: one.counts[kept] for one in comparisons},
        }
    )


def differences_figure(comparisons: tuple[Comparison, ...]) -> go.Figure:
    """Of one text: how large the differences are, a line a route that made any."""
    changed = [one for one in comparisons if one.differing]
    used = np.flatnonzero(np.any([one.counts for one in changed], axis=0))
    shown = range(max(0, used[0] - 1), min(len(EDGES) - 1, used[-1] + 2))
    centres = [float(np.sqrt(EDGES[place] * EDGES[place + 1])) for place in shown]
    lines = []
    for one, dash in zip(changed, DASHES, strict=False):
        shares = [float(one.counts[place]) / one.vocabulary for place in shown]
        lines.append(
            {
                "type": "scatter",
                "mode": "lines",
                "line": {"shape": "hvh", "color": MEASURED if "lot" in one.route else NEUTRAL, "dash": dash, "width": 3},
                "name": one.route,
                "x": centres,
                "y": shares,
                "text": [f"{percent(share)} des logits, autour de {tiny(centre)}" for centre, share in zip(centres, shares, strict=True)],
                "hovertemplate": "%{text}",
            }
        )
    powers = [10.0**power for power in range(-9, 2)]
    return figure(
        data=lines,
        layout={
            "height": 360,
            "xaxis": {
                "type": "log",
                "title": {"text": "écart du logit (axe logarithmique)"},
                "tickvals": powers,
                "ticktext": [tiny(power) for power in powers],
                "fixedrange": True,
            },
            "yaxis": {"tickformat": ".0%", "title": {"text": "part des logits"}, "rangemode": "tozero", "fixedrange": True},
            "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom"},
        },
    )


def near_ties_table(near_ties: tuple[NearTie, ...], text: Callable[[tuple[int, ...]], str], label: Label) -> pd.DataFrame:
    """One row a place: its two tokens, and by how much the first is ahead of the second by every route."""
    routes = list(near_ties[0].gaps)
    return pd.DataFrame(
        {
            "texte": [text(one.token_ids) for one in near_ties],
            "favori": [label(one.pair[0]) for one in near_ties],
            "second": [label(one.pair[1]) for one in near_ties],
            **{f"avance, {name} (millionièmes)": [round(one.gaps[name] / MILLIONTH, 3) for one in near_ties] for name in routes},
            f"favori, {AGAIN}": ["" if one.again is None else label(one.again) for one in near_ties],
            "bascule": [", ".join(one.flipped_by) or (ALONE if one.is_unstable else "non") for one in near_ties],
        }
    )


def near_ties_figure(near_ties: tuple[NearTie, ...], label: Label) -> go.Figure:
    """One row a place, one mark a route, one inside the other where they agree: the lead it gives to the token that is ahead alone."""
    rows = list(range(len(near_ties)))
    names = [f"{html_text(label(first))} / {html_text(label(second))}" for first, second in (one.pair for one in near_ties)]
    marks = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": route,
            "x": [one.gaps[route] for one in near_ties],
            "y": rows,
            "marker": {
                "symbol": f"{symbol}-open",
                "size": size,
                "line": {"width": 2},
                "color": [CHOSEN if route in one.flipped_by else MEASURED if route == ALONE else NEUTRAL for one in near_ties],
            },
            "text": [f"{name} : avance {tiny(one.gaps[route])}" for name, one in zip(names, near_ties, strict=True)],
            "hovertemplate": f"%{{text}}<extra>{route}</extra>",
        }
        for route, (symbol, size) in zip(near_ties[0].gaps, MARKS, strict=False)
    ]
    return figure(
        data=marks,
        layout={
            "height": 30 * len(rows) + 130,
            "xaxis": {"title": {"text": "avance, en logit"}, "rangemode": "tozero", "zerolinewidth": 2, "fixedrange": True},
            "yaxis": {"autorange": "reversed", "tickvals": rows, "ticktext": names, "fixedrange": True},
            "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom"},
        },
    )


def fork_table(fork: Fork, label: Label) -> pd.DataFrame:
    """The two continuations, token by token."""
    pairs = list(zip_longest(fork.alone, fork.other))
    return pd.DataFrame(
        {
            "token": range(1, len(pairs) + 1),
            ALONE: ["" if a is None else label(a) for a, _ in pairs],
            fork.route: ["" if b is None else label(b) for _, b in pairs],
            "même": ["oui" if a == b else "non" for a, b in pairs],
        }
    )


def triple_table(sums: Sums) -> pd.DataFrame:
    """Three terms, and their sum in either order in float32 beside the exact one, every digit of each."""
    a, b, c = sums.triple
    rows = {"a": a, "b": b, "c": c, "(a + b) + c en float32": (a + b) + c, "a + (b + c) en float32": a + (b + c)}
    exact = {name: Fraction(float(value)) for name, value in rows.items()} | {"a + b + c exact": exact_sum(sums.triple)}
    return pd.DataFrame({"nombre": list(exact), "valeur": [exact_decimal(value) for value in exact.values()]})


def orders_table(sums: Sums) -> pd.DataFrame:
    """The sum of all the terms in several orders, as the model made it, and exact."""
    exact = exact_sum(sums.terms)
    values = {name: float(value) for name, value in sums.orders.items()} | {"par le modèle": sums.logit}
    return pd.DataFrame(
        {
            "ordre des additions": [*values, "somme exacte"],
            "somme": [number(value, 9) for value in [*values.values(), float(exact)]],
            "écart à l’exact (millionièmes)": [round(float(Fraction(value) - exact) / MILLIONTH, 3) for value in values.values()] + [0.0],
        }
    )


def exact_sum(terms: np.ndarray) -> Fraction:
    return sum(Fraction(float(term)) for term in terms)


def exact_decimal(value: Fraction) -> str:
    """Every digit of a fraction whose denominator is a power of two, as those of all float32 numbers and of their sums are."""
    exact = Context(prec=400).divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{exact:f}".replace("-", "−").replace(".", ",")
