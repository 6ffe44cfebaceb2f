"""The probability of an answer with and without a document, as tables and charts."""

from collections.abc import Callable

import pandas as pd
import plotly.graph_objects as go

from inference.answers import Answer
from inference.charts.style import CHOSEN, MEASURED, NEUTRAL, figure
from inference.context_weights import ContextWeights
from inference.conversation import Memory, Turn
from inference.escaping import html_text
from inference.formatting import percent

Label = Callable[[int], str]
LEGEND = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "traceorder": "normal"}
SYMBOLS = ("circle-open", "square-open", "diamond-open", "triangle-up-open", "star-open", "hexagon-open")
"""One a fact."""


def probability_axis(title: str) -> dict:
    """From 0 to 100 %, whatever is shown."""
    return {"range": [0, 1], "tickformat": ".0%", "title": {"text": title}, "fixedrange": True}


def documents_table(result: ContextWeights) -> pd.DataFrame:
    """One row a fact and a document; probabilities in [0, 1]."""
    rows = [(fact, document, answer) for fact, answers in result.answers.items() for document, answer in answers.items()]
    return pd.DataFrame(
        {
            "fait": [fact for fact, _, _ in rows],
            "document": [document for _, document, _ in rows],
            "tokens lus": [answer.prompt_tokens for _, _, answer in rows],
            "probabilité de la réponse": [answer.probability for _, _, answer in rows],
            "de son premier token": [answer.probs[0] for _, _, answer in rows],
            "ce que le modèle écrirait": ["oui" if answer.is_written else "non" for _, _, answer in rows],
        }
    )


def documents_figure(result: ContextWeights) -> go.Figure:
    """One row a document: a bar for the median of the facts, a mark for each of them."""
    documents = result.documents
    medians = [result.median(document) for document in documents]
    bars = {
        "type": "bar",
        "orientation": "h",
        "name": "médiane",
        "y": documents,
        "x": medians,
        "marker": {"color": MEASURED, "opacity": 0.45},
        "hovertemplate": "%{y} : %{text}",
        "text": [percent(median) for median in medians],
        "textposition": "none",
    }
    marks = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": fact,
            "y": documents,
            "x": [answers[document].probability for document in documents],
            "marker": {"symbol": symbol, "size": 11, "color": CHOSEN if symbol == SYMBOLS[0] else NEUTRAL, "line": {"width": 2}},
            "cliponaxis": False,
            "text": [percent(answers[document].probability) for document in documents],
            "hovertemplate": "%{y} : %{text}",
        }
        for (fact, answers), symbol in zip(result.answers.items(), SYMBOLS, strict=False)
    ]
    return figure(
        data=[bars, *marks],
        layout={
            "height": 48 * len(documents) + 150,
            "margin": {"l": 10, "r": 20, "t": 30, "b": 40},
            "xaxis": probability_axis("probabilité de la bonne réponse"),
            "yaxis": {
                "autorange": "reversed",
                "tickvals": documents,
                "ticktext": [_on_two_lines(document) for document in documents],
                "fixedrange": True,
            },
            "legend": LEGEND,
        },
    )


def _on_two_lines(name: str) -> str:
    """Cut near its middle, for a phone."""
    words = name.split()
    cuts = [(" ".join(words[:place]), " ".join(words[place:])) for place in range(1, len(words))]
    return "<br>".join(min(cuts, key=lambda halves: max(map(len, halves)))) if cuts else name


def tokens_table(answers: dict[str, Answer], label: Label) -> pd.DataFrame:
    """One row a token of one answer; for each way to ask, its probability and what the model would have bet instead."""
    some = next(iter(answers.values()))
    columns = {"token": [label(token_id) for token_id in some.token_ids], "id": some.token_ids}
    for name, answer in answers.items():
        columns[f"{name} : probabilité"] = answer.probs
        columns[f"{name} : favori"] = [
            f"{label(token_id)} {percent(prob)}" for token_id, prob in zip(answer.favourites, answer.favourite_probs, strict=True)
        ]
    return pd.DataFrame(columns)


def tokens_figure(answers: dict[str, Answer], label: Label) -> go.Figure:
    """The tokens of one answer, one row each and a last one for their product; a bar for each way to ask."""
    some = next(iter(answers.values()))
    names = [*(html_text(label(token_id)) for token_id in some.token_ids), "<b>réponse entière</b>"]
    rows = list(range(len(names)))
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": rows,
            "x": [*answer.probs, answer.probability],
            "marker": {"color": colour},
            "text": [percent(prob) for prob in (*answer.probs, answer.probability)],
            "textposition": "outside",
            "cliponaxis": False,
            "hovertemplate": "%{text}",
        }
        for (name, answer), colour in zip(answers.items(), (MEASURED, NEUTRAL), strict=True)
    ]
    return figure(
        data=bars,
        layout={
            "height": 52 * len(rows) + 110,
            "barmode": "group",
            "xaxis": probability_axis("probabilité, les tokens d’avant étant les bons"),
            "yaxis": {"autorange": "reversed", "tickvals": rows, "ticktext": names, "fixedrange": True},
            "legend": LEGEND,
        },
    )


def turns_table(turns: tuple[Turn, ...]) -> pd.DataFrame:
    """The conversation, and how many tokens the model read at each turn."""
    return pd.DataFrame(
        {
            "tour": range(1, len(turns) + 1),
            "on lui dit": [turn.said for turn in turns],
            "il écrit": [turn.reply for turn in turns],
            "tokens lus avant d’écrire": [turn.read_tokens for turn in turns],
        }
    )


def fingerprints_table(memory: Memory) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "poids": ["avant la conversation", "après", "copie à un bit près"],
            "empreinte (SHA-256)": [memory.before, memory.after, memory.altered],
        }
    )
