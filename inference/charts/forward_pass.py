"""A pass through the network, as tables and charts."""

from collections.abc import Callable

import pandas as pd
import plotly.graph_objects as go

from inference.charts.style import CHOSEN, MEASURED, NEUTRAL, figure
from inference.escaping import html_text
from inference.formatting import count, percent
from inference.forward_pass import ForwardPass

BLUES = [[0, "#eef3fc"], [1, MEASURED]]
"""Opaque, so that the text on a cell contrasts with it on a dark page too."""


def tokens_table(passage: ForwardPass, label: Callable[[int], str]) -> pd.DataFrame:
    """One row a token: what it is, and the tokens whose vectors are nearest, with their cosine."""
    return pd.DataFrame(
        {
            "position": range(len(passage.token_ids)),
            "token": [label(token_id) for token_id in passage.token_ids],
            "id": passage.token_ids,
            "norme du vecteur": [round(float(norm), 3) for norm in passage.embedding_norms],
            "voisins (cosinus)": [
                ", ".join(
                    f"{label(token_id)} {cosine:.2f}".replace(".", ",") for token_id, cosine in zip(near.ids, near.cosines, strict=True)
                )
                for near in passage.neighbours
            ],
        }
    )


def attention_figure(passage: ForwardPass, layer: int, head: int, label: Callable[[int], str]) -> go.Figure:
    """Who looks at whom, in one head of one layer (both from 0): one row a reader, from 0 to 100 %."""
    names = [html_text(f"{position} {label(token_id)}") for position, token_id in enumerate(passage.token_ids)]
    weights = passage.attentions[layer, head]
    is_seen = [[position <= reader for position in range(len(names))] for reader in range(len(names))]
    return figure(
        data=[
            {
                "type": "heatmap",
                "x": names,
                "y": names,
                "z": [
                    [float(value) if seen else None for value, seen in zip(*rows, strict=True)]
                    for rows in zip(weights, is_seen, strict=True)
                ],
                "zmin": 0,
                "zmax": 1,
                "colorscale": BLUES,
                "xgap": 2,
                "ygap": 2,
                "text": [
                    [percent(float(value)) if seen else "" for value, seen in zip(*rows, strict=True)]
                    for rows in zip(weights, is_seen, strict=True)
                ],
                "texttemplate": "%{text}" if len(names) <= 12 else "",
                "hoverongaps": False,
                "hovertemplate": "%{y} regarde %{x} : %{text}<extra></extra>",
                "textfont": {"size": 12},
                "showscale": False,
            }
        ],
        layout={
            "height": max(320, 26 * len(names) + 120),
            "xaxis": {"title": {"text": "regardé"}, "side": "top", "fixedrange": True, "tickangle": -40},
            "yaxis": {"title": {"text": "lecteur"}, "autorange": "reversed", "fixedrange": True},
            "margin": {"l": 10, "r": 10, "t": 60, "b": 10},
        },
    )


def attention_table(passage: ForwardPass, layer: int, head: int, label: Callable[[int], str]) -> pd.DataFrame:
    """The same, one row a pair, in [0, 1]."""
    ids, weights = passage.token_ids, passage.attentions[layer, head]
    pairs = [(reader, position) for reader in range(len(ids)) for position in range(reader + 1)]
    return pd.DataFrame(
        {
            "lecteur": [f"{reader} {label(ids[reader])}" for reader, _ in pairs],
            "regardé": [f"{position} {label(ids[position])}" for _, position in pairs],
            "attention": [float(weights[pair]) for pair in pairs],
        }
    )


def lens_table(passage: ForwardPass, label: Callable[[int], str]) -> pd.DataFrame:
    """One row a layer, the embedding first: the favourite's place, and what the layer would answer itself."""
    return pd.DataFrame(
        {
            "couche": range(len(passage.lens)),
            "rang du favori final": [reading.favourite_rank for reading in passage.lens],
            "sa probabilité": [reading.favourite_prob for reading in passage.lens],
            "entropie (bits)": [round(reading.entropy_bits, 3) for reading in passage.lens],
            "réponses de la couche": [
                ", ".join(f"{label(token_id)} {percent(prob)}" for token_id, prob in zip(reading.top_ids, reading.top_probs, strict=True))
                for reading in passage.lens
            ],
        }
    )


def lens_figure(passage: ForwardPass, label: Callable[[int], str]) -> go.Figure:
    """Each layer's first answers, one row a layer, coloured by probability; the final favourite framed wherever it shows."""
    depth = list(range(len(passage.lens)))
    columns = range(len(passage.lens[0].top_ids))
    found = [(layer, column) for layer in depth for column in columns if passage.lens[layer].top_ids[column] == passage.favourite_id]
    return figure(
        data=[
            {
                "type": "heatmap",
                "x": [f"{column + 1}<sup>{'er' if column == 0 else 'e'}</sup>" for column in columns],
                "y": ["entrée", *map(str, depth[1:])],
                "z": [reading.top_probs for reading in passage.lens],
                "zmin": 0,
                "zmax": 1,
                "colorscale": BLUES,
                "xgap": 2,
                "ygap": 2,
                "text": [[html_text(label(token_id)) for token_id in reading.top_ids] for reading in passage.lens],
                "customdata": [[percent(prob) for prob in reading.top_probs] for reading in passage.lens],
                "texttemplate": "%{text}",
                "hovertemplate": "couche %{y}, %{x} : %{text}, %{customdata}<extra></extra>",
                "textfont": {"size": 12},
                "showscale": False,
            }
        ],
        layout={
            "height": 25 * len(depth) + 90,
            "xaxis": {"side": "top", "fixedrange": True},
            "yaxis": {"type": "category", "title": {"text": "couche"}, "fixedrange": True},
            "margin": {"l": 10, "r": 10, "t": 40, "b": 10},
            "shapes": [
                {
                    "type": "rect",
                    "x0": column - 0.49,
                    "x1": column + 0.49,
                    "y0": layer - 0.47,
                    "y1": layer + 0.47,
                    "line": {"color": CHOSEN, "width": 3},
                }
                for layer, column in found
            ],
        },
    )


def rank_figure(passage: ForwardPass) -> go.Figure:
    """The favourite's rank after each layer, first place on top, on a logarithmic axis."""
    ranks = [reading.favourite_rank for reading in passage.lens]
    return figure(
        data=[
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": list(range(len(ranks))),
                "y": ranks,
                "line": {"color": NEUTRAL, "width": 2},
                "marker": {"size": 10, "color": [CHOSEN if rank == 1 else NEUTRAL for rank in ranks]},
                "text": [
                    f"rang {count(rank)}, {percent(reading.favourite_prob)}" for rank, reading in zip(ranks, passage.lens, strict=True)
                ],
                "hovertemplate": "couche %{x} : %{text}<extra></extra>",
            }
        ],
        layout={
            "height": 260,
            "showlegend": False,
            "xaxis": {"title": {"text": "couche (0 : l’entrée)"}, "dtick": 2, "range": [-0.5, len(ranks) - 0.5], "fixedrange": True},
            "yaxis": {
                "type": "log",
                "autorange": "reversed",
                "title": {"text": "rang"},
                "dtick": 1,
                "tickformat": ",.0f",
                "fixedrange": True,
            },
        },
    )
