"""Answers drawn many times: how often they are right, what they cost, and which they are, as tables and charts."""

import pandas as pd
import plotly.graph_objects as go

from inference.charts.style import CHOSEN, MEASURED, NEUTRAL, figure
from inference.escaping import html_text
from inference.estimators import Interval
from inference.formatting import number, percent, plural
from inference.inference_compute import BEST, PASS, STRATEGIES, VOTE, Answered, InferenceCompute

GREEDY = "glouton"
LINES = {VOTE: (MEASURED, "solid"), BEST: (CHOSEN, "solid"), PASS: (NEUTRAL, "dash")}
BANDS = {VOTE: "rgba(47, 111, 222, 0.15)", BEST: "rgba(232, 113, 10, 0.15)"}
TOKENS, SECONDS = "tokens", "secondes"
SHOWN = 12


def accuracy_table(result: InferenceCompute) -> pd.DataFrame:
    """One row a strategy and a number of samples, the greedy answer last; shares with their 95 % confidence intervals."""
    rows = [
        _row(strategy, n, result.accuracy(strategy, n), result.tokens(n), result.sample_times[n].median_s)
        for strategy in STRATEGIES
        for n in result.sizes
    ]
    greedy = _row(GREEDY, 1, result.greedy_accuracy, result.greedy_tokens, result.greedy_time.median_s)
    return pd.DataFrame([*rows, greedy])


def _row(strategy: str, n: int, share: Interval, tokens: float, seconds: float) -> dict:
    return {
        "façon de répondre": strategy,
        "réponses": n,
        "justes (%)": round(share.value * 100, 1),
        "au moins (%)": round(share.low * 100, 1),
        "au plus (%)": round(share.high * 100, 1),
        "tokens écrits par question": round(tokens, 1),
        "secondes par question": round(seconds, 3),
    }


def accuracy_figure(result: InferenceCompute) -> go.Figure:
    """The share of right answers against their number, with bands for the two ways to answer; the greedy answer is a level line."""
    sizes = result.sizes
    curves = {strategy: [result.accuracy(strategy, n) for n in sizes] for strategy in STRATEGIES}
    bands = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [*sizes, *reversed(sizes)],
            "y": [*(one.low for one in curves[strategy]), *(one.high for one in reversed(curves[strategy]))],
            "fill": "toself",
            "fillcolor": colour,
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
        }
        for strategy, colour in BANDS.items()
    ]
    lines = [
        _line(strategy, sizes, [one.value for one in shares], *LINES[strategy], [_interval(one) for one in shares])
        for strategy, shares in curves.items()
    ]
    greedy = result.greedy_accuracy
    level = _line(GREEDY, sizes, [greedy.value] * len(sizes), NEUTRAL, "dot", [_interval(greedy)] * len(sizes)) | {"mode": "lines"}
    return figure(
        data=[*bands, *lines, level],
        layout={
            "height": 440,
            "xaxis": {"type": "log", "tickvals": sizes, "title": {"text": "réponses tirées (chaque pas double)"}, "fixedrange": True},
            "yaxis": _SHARE_AXIS,
            "legend": _LEGEND,
        },
    )


def cost_figure(result: InferenceCompute, unit: str) -> go.Figure:
    """The share of right answers against the tokens written, or the seconds taken, for a question; the number of answers is on one line."""
    costs = [result.tokens(n) if unit == TOKENS else result.sample_times[n].median_s for n in result.sizes]
    notes = [f"{plural(n, 'réponse')}, {number(cost, 1)} {unit}" for n, cost in zip(result.sizes, costs, strict=True)]
    lines = [
        _line(strategy, costs, [result.accuracy(strategy, n).value for n in result.sizes], *LINES[strategy], notes)
        for strategy in (VOTE, BEST)
    ]
    lines[-1] |= {"mode": "lines+markers+text", "text": [str(n) for n in result.sizes], "textposition": "top center"}
    cost = result.greedy_tokens if unit == TOKENS else result.greedy_time.median_s
    greedy = _line(GREEDY, [cost], [result.greedy_accuracy.value], NEUTRAL, "solid", [f"1 réponse, {number(cost, 1)} {unit}"])
    greedy |= {"mode": "markers", "marker": {"size": 14, "color": NEUTRAL, "symbol": "diamond"}}
    tokens_axis = {
        "type": "log",
        "tickvals": costs,
        "ticktext": [number(cost, 0) for cost in costs],
        "title": {"text": "tokens écrits par question (échelle logarithmique)"},
    }
    seconds_axis = {"rangemode": "tozero", "title": {"text": "secondes par question"}}
    return figure(
        data=[*lines, greedy],
        layout={
            "height": 380,
            "xaxis": {"fixedrange": True} | (tokens_axis if unit == TOKENS else seconds_axis),
            "yaxis": _SHARE_AXIS,
            "legend": _LEGEND,
        },
    )


_SHARE_AXIS = {"range": [0, 1], "tickformat": ".0%", "title": {"text": "bonnes réponses"}, "fixedrange": True}
_LEGEND = {"orientation": "h", "y": 1.0, "yanchor": "bottom"}


def _line(name: str, x: list, y: list[float], colour: str, dash: str, notes: list[str]) -> dict:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": x,
        "y": y,
        "line": {"color": colour, "width": 3, "dash": dash},
        "marker": {"size": 9},
        "customdata": [f"{percent(share)} ({note})" for share, note in zip(y, notes, strict=True)],
        "hovertemplate": "%{customdata}",
    }


def _interval(share: Interval) -> str:
    return f"de {percent(share.low)} à {percent(share.high)}"


def questions_table(result: InferenceCompute) -> pd.DataFrame:
    """One row a question: what was expected, how many samples say it, and what each way to answer says."""
    return pd.DataFrame(
        {
            "thème": [one.question.theme for one in result.answered],
            "question": [one.question.asked for one in result.answered],
            "attendu": [" ou ".join(one.question.answers) for one in result.answered],
            f"justes sur {result.sizes[-1]}": [one.right for one in result.answered],
            "vote": [" ou ".join(one.leaders) for one in result.answered],
            BEST: [one.best.answer for one in result.answered],
            GREEDY: [one.greedy.answer for one in result.answered],
            "tokens par réponse": [round(one.tokens, 1) for one in result.answered],
        }
    )


def answers_table(answered: Answered) -> pd.DataFrame:
    """One row an answer drawn, the most frequent first; the log-probability is that of the likeliest sample that gives it."""
    votes = answered.votes.most_common()
    return pd.DataFrame(
        {
            "réponse": [answer for answer, _ in votes],
            "fois": [count for _, count in votes],
            "juste": ["oui" if answered.question.is_right(answer) else "non" for answer, _ in votes],
            "log-probabilité (nat)": [
                round(max(one.logprob for one in answered.samples if one.answer == answer), 2) for answer, _ in votes
            ],
        }
    )


def answers_figure(table: pd.DataFrame) -> go.Figure:
    """The votes for each answer, right ones apart; wrong ones beyond the first dozen are together in the last bar."""
    is_shown = (table["juste"] == "oui") | (table.index < SHOWN)
    shown, rest = table[is_shown], table[~is_shown]
    names = [html_text(answer) or "(aucune)" for answer in shown["réponse"]]
    counts, kinds = shown["fois"].tolist(), shown["juste"].tolist()
    if len(rest):
        names.append(plural(len(rest), "autre"))
        counts.append(int(rest["fois"].sum()))
        kinds.append("non")
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": [position for position, one in enumerate(kinds) if one == kind],
            "x": [count for count, one in zip(counts, kinds, strict=True) if one == kind],
            "marker": {"color": colour},
            "texttemplate": "%{x}",
            "textposition": "outside",
            "cliponaxis": False,
            "hovertemplate": "%{y} : %{x} fois<extra></extra>",
        }
        for name, kind, colour in (("juste", "oui", MEASURED), ("fausse", "non", NEUTRAL))
    ]
    return figure(
        data=data,
        layout={
            "height": 28 * len(names) + 90,
            "xaxis": {"rangemode": "tozero", "title": {"text": "fois"}, "fixedrange": True},
            "yaxis": {
                "autorange": "reversed",
                "tickmode": "array",
                "tickvals": list(range(len(names))),
                "ticktext": names,
                "fixedrange": True,
            },
            "legend": _LEGEND,
        },
    )
