"""What tokens cost, as tables and charts: all of it computed, in dollars for a thousand requests or conversations."""

from itertools import accumulate

import pandas as pd
import plotly.graph_objects as go

from inference.charts.style import CHOSEN, NEUTRAL, figure
from inference.costs import BATCH_SHARE, COUNTED, PriceExample, Prices, Turn, seen_at_s, tokens_cost, turn_cost
from inference.formatting import count, dollars, number

LEGEND = {"orientation": "h", "y": 1.0, "yanchor": "bottom"}


def bill_table(input_tokens: int, output_tokens: int, prices: Prices) -> pd.DataFrame:
    """The same request, answered at once and in a batch."""
    costs = [tokens_cost(input_tokens, prices.input) * COUNTED, tokens_cost(output_tokens, prices.output) * COUNTED]
    costs.append(sum(costs))
    return pd.DataFrame(
        {
            "poste": ["entrée", "sortie", "total"],
            "tokens": [input_tokens, output_tokens, input_tokens + output_tokens],
            "coût de mille ($)": [round(cost, 6) for cost in costs],
            "par lots ($)": [round(cost * BATCH_SHARE, 6) for cost in costs],
        }
    )


def conversation_table(turns: tuple[Turn, ...], prices: Prices) -> pd.DataFrame:
    """One row a turn."""
    plain, cached = _costs(turns, prices, False), _costs(turns, prices, True)
    return pd.DataFrame(
        {
            "tour": range(1, len(turns) + 1),
            "entrée relue (tokens)": [turn.reread_tokens for turn in turns],
            "entrée nouvelle (tokens)": [turn.new_tokens for turn in turns],
            "sortie (tokens)": [turn.output_tokens for turn in turns],
            **{
                f"{name} ($)": [round(cost, 6) for cost in costs]
                for name, costs in {
                    "mille, sans cache": plain,
                    "mille, avec cache": cached,
                    "cumul sans cache": accumulate(plain),
                    "cumul avec cache": accumulate(cached),
                }.items()
            },
        }
    )


def _costs(turns: tuple[Turn, ...], prices: Prices, is_cached: bool) -> list[float]:
    return [turn_cost(turn, prices, is_cached) * COUNTED for turn in turns]


def tokens_figure(turns: tuple[Turn, ...]) -> go.Figure:
    """« calcul »: what each turn makes the model read."""
    parts = {
        "déjà lu au tour d’avant": ([turn.reread_tokens for turn in turns], NEUTRAL),
        "nouveau": ([turn.new_tokens for turn in turns], CHOSEN),
    }
    bars = [
        {
            "type": "bar",
            "name": name,
            "x": list(range(1, len(turns) + 1)),
            "y": tokens,
            "marker": {"color": colour},
            "text": [f"{count(value)} tokens" for value in tokens],
            "textposition": "none",
            "hovertemplate": f"tour %{{x}}, {name} : %{{text}}<extra>calcul</extra>",
        }
        for name, (tokens, colour) in parts.items()
    ]
    return figure(
        data=bars,
        layout={
            "height": 320,
            "barmode": "stack",
            "xaxis": {"title": {"text": "tour"}, "tickformat": "d", "fixedrange": True},
            "yaxis": {"title": {"text": "tokens d’entrée (calcul)"}, "tickformat": ",d", "rangemode": "tozero", "fixedrange": True},
            "legend": LEGEND | {"traceorder": "normal"},
        },
    )


def cost_figure(turns: tuple[Turn, ...], prices: Prices) -> go.Figure:
    """« calcul »: what a thousand conversations have cost so far, with a cache and without."""
    lines = [
        _line(name, list(range(1, len(turns) + 1)), list(accumulate(_costs(turns, prices, is_cached))), colour, dash)
        for name, is_cached, colour, dash in (("sans cache", False, NEUTRAL, "dash"), ("avec cache", True, CHOSEN, "solid"))
    ]
    for line in lines:
        line["text"] = [dollars(cost) for cost in line["y"]]
        line["hovertemplate"] = "tour %{x} : %{text}"
    return figure(
        data=lines,
        layout={
            "height": 320,
            "xaxis": {"title": {"text": "tour"}, "tickformat": "d", "fixedrange": True},
            "yaxis": {"title": {"text": "dollars, mille conversations (calcul)"}, "rangemode": "tozero", "fixedrange": True},
            "legend": LEGEND,
        },
    )


def streaming_table(tokens: int, ttft_s: float, itl_s: float) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "token": range(1, tokens + 1),
            "vu en streaming (s)": [round(seconds, 6) for seconds in seen_at_s(tokens, ttft_s, itl_s, True)],
            "vu d’un bloc (s)": [round(seconds, 6) for seconds in seen_at_s(tokens, ttft_s, itl_s, False)],
        }
    )


def streaming_figure(tokens: int, ttft_s: float, itl_s: float) -> go.Figure:
    """« calcul »: how many tokens are seen as time goes by."""
    seen = list(range(tokens + 1))
    lines = []
    for name, is_streamed, colour, dash in (("d’un bloc", False, NEUTRAL, "dash"), ("en streaming", True, CHOSEN, "solid")):
        line = _line(name, [0.0, *seen_at_s(tokens, ttft_s, itl_s, is_streamed)], seen, colour, dash)
        line["line"]["shape"] = "hv"
        line["text"] = [f"{number(seconds, 2)} s" for seconds in line["x"]]
        line["hovertemplate"] = "%{text} : %{y} tokens vus"
        lines.append(line)
    return figure(
        data=lines,
        layout={
            "height": 300,
            "xaxis": {"title": {"text": "secondes depuis la question (calcul)"}, "rangemode": "tozero", "fixedrange": True},
            "yaxis": {"title": {"text": "tokens vus"}, "rangemode": "tozero", "fixedrange": True},
            "legend": LEGEND | {"traceorder": "normal"},
        },
    )


def _line(name: str, x: list[float], y: list[float], colour: str, dash: str) -> dict:
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": {"color": colour, "width": 3, "dash": dash}}


def examples_table(examples: tuple[PriceExample, ...]) -> pd.DataFrame:
    """Dollars per million tokens, with their date and where they come from."""
    return pd.DataFrame(
        {
            "exemple": [example.name for example in examples],
            "date": [example.date for example in examples],
            "entrée ($/M)": [example.prices.input for example in examples],
            "écriture en cache ($/M)": [example.prices.cache_write for example in examples],
            "lecture du cache ($/M)": [example.prices.cached_input for example in examples],
            "sortie ($/M)": [example.prices.output for example in examples],
            "source": [example.source.label for example in examples],
            "adresse": [example.source.url for example in examples],
        }
    )
