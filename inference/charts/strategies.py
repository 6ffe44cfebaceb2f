"""Strategies compared, as tables and charts."""

from collections.abc import Callable, Sequence

import pandas as pd
import plotly.graph_objects as go

from inference.beam import DROPPED, FINISHED, KEPT, BeamSearch, Candidate, Path
from inference.charts.style import CHOSEN, CUT, MEASURED, NEUTRAL, figure
from inference.escaping import html_text
from inference.formatting import number, percent
from inference.strategies import BEAM, DRAW_A, DRAW_B, GREEDY, NGRAM, Drawn, Written

TokenIds = Sequence[int]
Label = Callable[[int], str]
TextOf = Callable[[TokenIds], str]
Places = dict[tuple[int, ...], tuple[float, float]]
"""x and y of each path in the tree, by its ids."""
LINES = {GREEDY: (NEUTRAL, "solid"), BEAM: (CHOSEN, "solid"), DRAW_A: (MEASURED, "solid"), DRAW_B: (MEASURED, "dot")}
LEFT_OUT, GOING_ON, WINNER = "laissé", "gardé", "gagnant"
LOOKS = {
    LEFT_OUT: {"line": {"color": CUT, "width": 1}, "marker": {"color": NEUTRAL, "size": 8, "symbol": "x-thin-open"}},
    GOING_ON: {"line": {"color": NEUTRAL, "width": 1.5}, "marker": {"color": NEUTRAL, "size": 9}},
    WINNER: {"line": {"color": CHOSEN, "width": 4}, "marker": {"color": CHOSEN, "size": 12}},
}
"""Of the kinds of paths in the tree, the last drawn over the first."""
FATES = {KEPT: GOING_ON, FINISHED: "fini", DROPPED: LEFT_OUT}
LEGEND = {"orientation": "h", "y": 1.0, "yanchor": "bottom"}
LABEL_CHARACTERS = 9
"""Of a token in the tree, so that four columns fit a phone; hovering shows the rest."""
STEP_PX = 58
ASIDE = 0.25
"""By how much of a column the paths left are moved, out of the way of those that go on."""


def texts_table(texts: Sequence[Written], text_of: TextOf) -> pd.DataFrame:
    """One row a strategy; log-probabilities in nats, shares in [0, 1]."""
    return pd.DataFrame(
        {
            "stratégie": [text.name for text in texts],
            "tokens": [len(text.token_ids) for text in texts],
            "log p du texte (nats)": [round(text.log_prob, 3) for text in texts],
            "log p par token (nats)": [round(text.mean_log_prob, 3) for text in texts],
            f"{NGRAM}-grammes déjà vus": [round(text.repeated_share, 3) for text in texts],
            **{f"distinct-{n}": [round(text.distinct(n), 3) for text in texts] for n in (1, 2, 3)},
            "entropie moyenne (bits)": [round(text.mean_entropy_bits, 3) for text in texts],
            "texte": [text_of(text.token_ids) for text in texts],
        }
    )


def flatness_figure(texts: Sequence[Written]) -> go.Figure:
    """How likely each text is against how much it repeats itself. Strategies that wrote the same text share a point."""
    points: dict[tuple[int, ...], list[Written]] = {}
    for text in texts:
        points.setdefault(text.token_ids, []).append(text)
    shown = [(", ".join(text.name for text in same), same[0]) for same in points.values()]
    return figure(
        data=[
            {
                "type": "scatter",
                "mode": "markers+text",
                "x": [text.log_prob for _, text in shown],
                "y": [text.repeated_share for _, text in shown],
                "marker": {"size": 14, "color": [LINES[text.name][0] for _, text in shown]},
                "text": [names for names, _ in shown],
                "textposition": ["top center" if rank % 2 else "bottom center" for rank in range(len(shown))],
                "cliponaxis": False,
                "customdata": [f"log p = {number(text.log_prob, 2)} nats, déjà vus {percent(text.repeated_share)}" for _, text in shown],
                "hovertemplate": "%{text} : %{customdata}<extra></extra>",
            }
        ],
        layout={
            "height": 360,
            "showlegend": False,
            "margin": {"l": 10, "r": 40, "t": 20, "b": 50},
            "xaxis": {"title": {"text": "log p du texte, nats (à droite : plus probable)"}, "fixedrange": True},
            "yaxis": {
                "title": {"text": f"{NGRAM}-grammes déjà vus"},
                "range": [-0.15, 1.1],
                "tickvals": [0, 0.25, 0.5, 0.75, 1],
                "tickformat": ".0%",
                "fixedrange": True,
            },
        },
    )


def entropy_figure(texts: Sequence[Written]) -> go.Figure:
    """The entropy before each token, a line a strategy, a large point where the token ends a run already seen."""
    return figure(
        data=[
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": text.name,
                "x": list(range(1, len(text.token_ids) + 1)),
                "y": text.entropies_bits.tolist(),
                "line": {"color": LINES[text.name][0], "dash": LINES[text.name][1], "width": 2},
                "marker": {"size": [10 if repeated else 4 for repeated in text.repeats]},
                "text": [f"{number(bits, 2)} bits" for bits in text.entropies_bits],
                "hovertemplate": "token %{x} : %{text}",
            }
            for text in texts
        ],
        layout={
            "height": 360,
            "xaxis": {"title": {"text": "token du texte"}, "fixedrange": True},
            "yaxis": {"title": {"text": "entropie, bits"}, "rangemode": "tozero", "fixedrange": True},
            "legend": LEGEND,
        },
    )


def tokens_table(texts: Sequence[Written], label: Label) -> pd.DataFrame:
    """One row a token of each text."""
    rows = [
        (text.name, position, label(token_id), token_id, round(log_prob, 4), round(bits, 4), "oui" if repeated else "non")
        for text in texts
        for position, (token_id, log_prob, bits, repeated) in enumerate(
            zip(text.token_ids, text.log_probs.tolist(), text.entropies_bits.tolist(), text.repeats, strict=True), start=1
        )
    ]
    names = ("stratégie", "position", "token", "id", "log p (nats)", "entropie (bits)", f"finit un {NGRAM}-gramme déjà vu")
    return pd.DataFrame(rows, columns=names)


def tree_figure(search: BeamSearch, greedy_ids: TokenIds, steps: int, label: Label, text_of: TextOf) -> go.Figure:
    """The first `steps` tokens, downwards: paths that go on, a branch cut short for each of those left, and the one that won.

    A ring follows the greedy text as long as the search looks at it.
    """
    shown = search.steps[:steps]
    places = _places(search, steps)
    kinds = {kind: [] for kind in LOOKS}
    for one in (one for step in shown for one in step if one.path.token_ids in places):
        kinds[_kind(one, search.best)].append(one)
    rings = [places[path] for length in range(1, steps + 1) if (path := tuple(greedy_ids[:length])) in places]
    return figure(
        data=[
            *(_branches(kind, own, places) for kind, own in kinds.items()),
            {
                "type": "scatter",
                "mode": "markers",
                "name": GREEDY,
                "x": [x for x, _ in rings],
                "y": [y for _, y in rings],
                "marker": {"symbol": "circle-open", "size": 19, "color": MEASURED, "line": {"width": 2}},
                "hoverinfo": "skip",
            },
            *(_marks(kind, own, places, label, text_of) for kind, own in kinds.items()),
        ],
        layout={
            "height": STEP_PX * len(shown) + 110,
            "margin": {"l": 10, "r": 10, "t": 50, "b": 10},
            "xaxis": {"visible": False, "range": [-0.3, search.width + 0.1], "fixedrange": True},
            "yaxis": {
                "range": [len(shown) + 0.4, -0.4],
                "tickvals": list(range(1, len(shown) + 1)),
                "fixedrange": True,
                "showgrid": False,
                "zeroline": False,
            },
            "legend": LEGEND,
        },
    )


def _kind(candidate: Candidate, best: Path) -> str:
    if candidate.fate == DROPPED:
        return LEFT_OUT
    ids = candidate.path.token_ids
    return WINNER if ids == best.token_ids[: len(ids)] else GOING_ON


def _branches(kind: str, candidates: Sequence[Candidate], places: Places) -> dict:
    """From each path's parent to it."""
    ends = [(places[one.path.token_ids[:-1]], places[one.path.token_ids]) for one in candidates]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [x for start, end in ends for x in (start[0], end[0], None)],
        "y": [y for start, end in ends for y in (start[1], end[1], None)],
        "line": LOOKS[kind]["line"],
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _marks(kind: str, candidates: Sequence[Candidate], places: Places, label: Label, text_of: TextOf) -> dict:
    """Each path's last token."""
    weight = "\u00a0{}" if kind == LEFT_OUT else "\u00a0<b>{}</b>"
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": kind,
        "x": [places[one.path.token_ids][0] for one in candidates],
        "y": [places[one.path.token_ids][1] for one in candidates],
        "marker": LOOKS[kind]["marker"],
        "text": [weight.format(html_text(_short(label(one.path.token_ids[-1])))) for one in candidates],
        "textposition": "middle right" if kind == LEFT_OUT else "top right",  # above the branches that go on from there
        "textfont": {"size": 12},
        "cliponaxis": False,
        "customdata": [_told(one, text_of) for one in candidates],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _places(search: BeamSearch, steps: int) -> Places:
    """Paths that go on are spread over the row of their step, the likeliest of those left over a row
    just above; both in the order of their parents, so that few branches cross."""
    places = {(): ((search.width - 1) / 2, 0.0)}
    for row, step in enumerate(search.steps[:steps], start=1):
        going_on = [one for one in step if one.fate != DROPPED]
        left = [one for one in step if one.fate == DROPPED][: search.width]
        for group, shift, y in ((going_on, 0, row), (left, ASIDE, row - 0.5)):
            group.sort(key=lambda one: places[one.path.token_ids[:-1]][0])
            for rank, one in enumerate(group):
                places[one.path.token_ids] = (rank + (search.width - len(group)) / 2 + shift, y)
    return places


def _short(label: str) -> str:
    return label if len(label) <= LABEL_CHARACTERS else f"{label[: LABEL_CHARACTERS - 1]}…"


def _told(candidate: Candidate, text_of: TextOf) -> str:
    path = candidate.path
    text = html_text(text_of(path.token_ids))
    return f"« {text} », {FATES[candidate.fate]}<br>log p = {number(path.log_prob, 2)} nats, dont {number(path.log_probs[-1], 2)} ici"


def tree_table(search: BeamSearch, label: Label, text_of: TextOf) -> pd.DataFrame:
    """One row a path that was looked at, in the order of the search."""
    rows = [
        (
            step,
            rank,
            label(one.path.token_ids[-1]),
            round(one.path.log_probs[-1], 4),
            round(one.path.log_prob, 4),
            FATES[one.fate],
            text_of(one.path.token_ids),
        )
        for step, candidates in enumerate(search.steps, start=1)
        for rank, one in enumerate(candidates, start=1)
    ]
    names = ("étape", "rang", "token", "log p du token (nats)", "log p du chemin (nats)", "sort", "chemin")
    return pd.DataFrame(rows, columns=names)


def draws_table(a: Written, b: Written, label: Label) -> pd.DataFrame:
    """One row a step that both texts reached: u, unless nothing is drawn in either, and the segment of [0, 1) it fell on."""
    rows = []
    for step, (one, other) in enumerate(zip(a.draws, b.draws), start=1):
        u = other.u if one.u is None else one.u
        row = {"token": step} if u is None else {"token": step, "u": u}
        for text, drawn in ((a, one), (b, other)):
            row[text.name] = label(drawn.draw.token_id)
            row[f"{text.name}, segment"] = _segment(drawn)
        row["même début"] = "oui" if a.token_ids[:step] == b.token_ids[:step] else "non"
        rows.append(row)
    return pd.DataFrame(rows)


def _segment(drawn: Drawn) -> str:
    if drawn.u is None:
        return "sans tirage"
    return f"de {number(drawn.draw.low, 4)} à {number(drawn.draw.low + drawn.draw.probability, 4)}"
