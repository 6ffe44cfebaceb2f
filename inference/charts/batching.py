"""Several visitors served at once, as tables and charts."""

from collections.abc import Callable

import pandas as pd
import plotly.graph_objects as go

from inference.batching import Batching, BatchSize, Difference
from inference.charts.style import CHOSEN, CUT, MEASURED, NEUTRAL, figure
from inference.formatting import number
from inference.serving import Bar, Service, timeline

MIO = 2**20
KINDS = {"sliding_attention": "glissantes", "full_attention": "pleines"}
LEGEND = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "traceorder": "normal"}


def sizes_table(sizes: tuple[BatchSize, ...]) -> pd.DataFrame:
    """One row a batch size; times in ms."""
    return pd.DataFrame(
        {
            "textes": [one.rows for one in sizes],
            "une passe (ms)": [round(one.step.median_s * 1e3, 1) for one in sizes],
            "la plus courte (ms)": [round(one.step.low_s * 1e3, 1) for one in sizes],
            "la plus longue (ms)": [round(one.step.high_s * 1e3, 1) for one in sizes],
            "tokens/s, tous ensemble": [round(one.throughput_tps, 1) for one in sizes],
            "tokens/s, chacun": [round(1 / one.step.median_s, 1) for one in sizes],
        }
    )


def passes_figure(sizes: tuple[BatchSize, ...]) -> go.Figure:
    """A pass against the texts in it, on logarithmic axes, beside what as many passes of one text would take."""
    rows = [one.rows for one in sizes]
    medians = [one.step.median_s * 1e3 for one in sizes]
    measured = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "une passe, mesurée",
        "x": rows,
        "y": medians,
        "error_y": {
            "array": [one.step.high_s * 1e3 - median for one, median in zip(sizes, medians, strict=True)],
            "arrayminus": [median - one.step.low_s * 1e3 for one, median in zip(sizes, medians, strict=True)],
        },
        "line": {"color": MEASURED, "width": 3},
        "marker": {"size": 9},
        "text": [f"{number(median, 1)} ms" for median in medians],
        "hovertemplate": "%{x} textes : %{text}",
    }
    one_by_one = {
        "type": "scatter",
        "mode": "lines",
        "name": "un texte après l’autre (calcul)",
        "x": rows,
        "y": [medians[0] * count for count in rows],
        "line": {"color": NEUTRAL, "dash": "dot"},
        "hovertemplate": "%{x} textes : %{y:,.0f} ms",
    }
    return figure(
        data=[measured, one_by_one],
        layout={
            "height": 360,
            "xaxis": {"type": "log", "tickvals": rows, "title": {"text": "textes dans la passe"}, "fixedrange": True},
            "yaxis": {"type": "log", "title": {"text": "ms (axe log)"}, "dtick": 1, "tickformat": ",.0f", "fixedrange": True},
            "legend": LEGEND,
        },
    )


def throughput_figure(sizes: tuple[BatchSize, ...]) -> go.Figure:
    """Tokens per second of all the texts together."""
    rows = [one.rows for one in sizes]
    bars = {
        "type": "bar",
        "x": [str(count) for count in rows],
        "y": [one.throughput_tps for one in sizes],
        "marker": {"color": MEASURED},
        "text": [number(one.throughput_tps, 0) for one in sizes],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertemplate": "%{x} textes : %{text} tokens/s<extra></extra>",
    }
    layout = {
        "height": 300,
        "showlegend": False,
        "xaxis": {"type": "category", "title": {"text": "textes dans la passe"}, "fixedrange": True},
        "yaxis": {"title": {"text": "tokens par seconde"}, "fixedrange": True},
    }
    return figure([bars], layout)


def gantt_figure(services: dict[str, Service]) -> go.Figure:
    """Each slot of each policy through time, on one time axis; the requests that arrive above."""
    bars = [(f"{name} {bar.slot + 1}", bar) for name, service in services.items() for bar in timeline(service)]
    slots = [f"{name} {slot + 1}" for name, service in services.items() for slot in range(service.slots)]
    requests = [one.request for one in next(iter(services.values())).served]
    kinds = {
        "lit l’invite": (CHOSEN, [(row, bar) for row, bar in bars if bar.is_reading]),
        "écrit": (MEASURED, [(row, bar) for row, bar in bars if bar.number is not None and not bar.is_reading]),
        "case inoccupée": (CUT, [(row, bar) for row, bar in bars if bar.number is None]),
    }
    arrivals = {
        "type": "scatter",
        "mode": "markers",
        "name": "arrivée",
        "x": [request.arrival_s for request in requests],
        "y": ["arrivées"] * len(requests),
        "marker": {"color": NEUTRAL, "symbol": "triangle-down", "size": 11},
        "customdata": [request.number + 1 for request in requests],
        "hovertemplate": "demande %{customdata} : %{x:,.2f} s<extra></extra>",
    }
    return figure(
        data=[*(_gantt_bars(kind, colour, placed) for kind, (colour, placed) in kinds.items()), arrivals],
        layout={
            "height": 34 * (len(slots) + 1) + 130,
            "barmode": "overlay",
            "margin": {"l": 10, "r": 10, "t": 30, "b": 40},
            "xaxis": {"title": {"text": "secondes depuis la première arrivée"}, "tickformat": ",", "fixedrange": True},
            "yaxis": {"categoryorder": "array", "categoryarray": ["arrivées", *slots], "autorange": "reversed", "fixedrange": True},
            "legend": {**LEGEND, "y": 1.02},
        },
    )


def _gantt_bars(kind: str, colour: str, placed: list[tuple[str, Bar]]) -> dict:
    lengths_s = [bar.end_s - bar.start_s for _, bar in placed]
    return {
        "type": "bar",
        "orientation": "h",
        "name": kind,
        "y": [row for row, _ in placed],
        "base": [bar.start_s for _, bar in placed],
        "x": lengths_s,
        "marker": {"color": colour, "line": {"color": "rgba(255,255,255,0.8)", "width": 1}},
        "text": ["" if bar.number is None or bar.is_reading else str(bar.number + 1) for _, bar in placed],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "constraintext": "none",
        "customdata": [
            f"{kind if bar.number is None else f'demande {bar.number + 1}, {kind}'} : {number(length_s, 2)} s"
            for (_, bar), length_s in zip(placed, lengths_s, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def requests_table(services: dict[str, Service], decode: Callable[[tuple[int, ...]], str]) -> pd.DataFrame:
    """One row a request and a policy; seconds since the first arrival. `decode` makes text of tokens."""
    rows = [(name, one) for name, service in services.items() for one in service.served]
    return pd.DataFrame(
        {
            "service": [name for name, _ in rows],
            "demande": [one.request.number + 1 for _, one in rows],
            "case": [one.slot + 1 for _, one in rows],
            "invite (tokens)": [len(one.request.prompt) for _, one in rows],
            "écrits (tokens)": [one.request.tokens for _, one in rows],
            "arrivée (s)": [round(one.request.arrival_s, 3) for _, one in rows],
            "début (s)": [round(one.start_s, 3) for _, one in rows],
            "premier token (s)": [round(one.first_token_s, 3) for _, one in rows],
            "fin (s)": [round(one.end_s, 3) for _, one in rows],
            "TTFT (s)": [round(one.ttft_s, 3) for _, one in rows],
            "latence (s)": [round(one.latency_s, 3) for _, one in rows],
            "texte écrit": [decode(one.token_ids) for _, one in rows],
        }
    )


def figures_of(service: Service) -> dict[str, float]:
    """What a service is judged on; seconds, tokens per second, percents."""
    return {
        "débit (tokens/s)": service.throughput_tps,
        "TTFT médian (s)": service.ttft_s(0.5),
        "TTFT, 95 % (s)": service.ttft_s(0.95),
        "latence médiane (s)": service.latency_s(0.5),
        "latence, 95 % (s)": service.latency_s(0.95),
        "cases inoccupées (%)": 100 * service.idle_share,
        "passes": len(service.steps),
    }


def services_table(services: dict[str, Service]) -> pd.DataFrame:
    """One row a figure, one column a policy."""
    columns = {name: figures_of(service) for name, service in services.items()}
    names = list(next(iter(columns.values())))
    return pd.DataFrame({"mesure": names, **{name: [round(float(of[key]), 2) for key in names] for name, of in columns.items()}})


def paid_figure(result: Batching, services: dict[str, Service]) -> go.Figure:
    """The latency of each request: served alone, then among the others."""
    numbers = [request.number + 1 for request in result.requests]
    latencies = {
        "seule": [one.latency_s for one in result.alone],
        **{name: [one.latency_s for one in service.served] for name, service in services.items()},
    }
    styles = ((CHOSEN, "circle"), (NEUTRAL, "square"), (MEASURED, "diamond"))
    return figure(
        data=[
            {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": values,
                "y": numbers,
                "marker": {"color": colour, "symbol": symbol, "size": 11},
                "text": [f"{number(value, 2)} s" for value in values],
                "hovertemplate": "demande %{y} : %{text}",
            }
            for (name, values), (colour, symbol) in zip(latencies.items(), styles, strict=True)
        ],
        layout={
            "height": 24 * len(numbers) + 130,
            "margin": {"l": 10, "r": 10, "t": 30, "b": 40},
            "xaxis": {"title": {"text": "latence, secondes"}, "rangemode": "tozero", "tickformat": ",", "fixedrange": True},
            "yaxis": {"title": {"text": "demande"}, "tickvals": numbers, "autorange": "reversed", "fixedrange": True},
            "legend": LEGEND,
        },
    )


def paid_table(result: Batching, services: dict[str, Service]) -> pd.DataFrame:
    """One row a request; latencies in seconds."""
    return pd.DataFrame(
        {
            "demande": [request.number + 1 for request in result.requests],
            "invite (tokens)": [len(request.prompt) for request in result.requests],
            "écrits (tokens)": [request.tokens for request in result.requests],
            "seule (s)": [round(one.latency_s, 3) for one in result.alone],
            **{f"{name} (s)": [round(one.latency_s, 3) for one in service.served] for name, service in services.items()},
        }
    )


def blocks_figure(service: Service) -> go.Figure:
    """Bytes of the blocks allotted through time, and those of the tokens in them."""
    start_s = [*(step.start_s for step in service.steps), service.end_s]
    lines = {
        "blocs alloués": ("nbytes", MEASURED, "rgba(47, 111, 222, 0.25)"),
        "tokens rangés dedans": ("used_bytes", NEUTRAL, "rgba(122, 133, 153, 0.35)"),
    }
    return figure(
        data=[
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": start_s,
                "y": [*(sum(getattr(one, part) for one in step.made.allotted.values()) / MIO for step in service.steps), 0],
                "line": {"color": colour, "width": 2, "shape": "hv"},
                "fill": "tozeroy",
                "fillcolor": fill,
                "hovertemplate": "%{x:,.2f} s : %{y:,.2f} Mio",
            }
            for name, (part, colour, fill) in lines.items()
        ],
        layout={
            "height": 320,
            "margin": {"l": 10, "r": 10, "t": 30, "b": 40},
            "xaxis": {"title": {"text": "secondes depuis la première arrivée"}, "tickformat": ",", "fixedrange": True},
            "yaxis": {"title": {"text": "Mio"}, "rangemode": "tozero", "tickformat": ",", "fixedrange": True},
            "legend": LEGEND,
        },
    )


def blocks_table(service: Service) -> pd.DataFrame:
    """One row a request in a pass: what the cache held for it then."""
    rows = [(position, step, number, held) for position, step in enumerate(service.steps) for number, held in step.made.allotted.items()]
    kinds = list(rows[0][3].blocks)
    return pd.DataFrame(
        {
            "passe": [position + 1 for position, _, _, _ in rows],
            "instant (s)": [round(step.start_s, 3) for _, step, _, _ in rows],
            "demande": [number + 1 for _, _, number, _ in rows],
            "tokens": [held.tokens for _, _, _, held in rows],
            **{f"blocs, couches {KINDS.get(kind, kind)}": [held.blocks[kind] for _, _, _, held in rows] for kind in kinds},
            "alloué (octets)": [held.nbytes for _, _, _, held in rows],
            "utilisé (octets)": [held.used_bytes for _, _, _, held in rows],
        }
    )


def differences_table(differences: dict[str, tuple[Difference, ...]], label: Callable[[int], str]) -> pd.DataFrame:
    """One row a text that left the one written alone; margins in logits."""
    rows = [(name, one) for name, found in differences.items() for one in found]
    return pd.DataFrame(
        {
            "service": [name for name, _ in rows],
            "demande": [one.number + 1 for _, one in rows],
            "au token": [one.position + 1 for _, one in rows],
            "seule": [label(one.alone_id) for _, one in rows],
            "avec les autres": [label(one.other_id) for _, one in rows],
            "écart des deux premiers logits, seule": [one.margin for _, one in rows],
        }
    )


def predictions_table(pairs: dict[str, tuple[Service, Service]]) -> pd.DataFrame:
    """One row a figure and a policy: measured, computed, and the difference relative to the measurement, in percent."""
    rows = [
        (name, figure_, measured, figures_of(computed)[figure_])
        for name, (service, computed) in pairs.items()
        for figure_, measured in figures_of(service).items()
    ]
    return pd.DataFrame(
        {
            "service": [name for name, _, _, _ in rows],
            "grandeur": [figure_ for _, figure_, _, _ in rows],
            "mesure": [round(float(measured), 2) for _, _, measured, _ in rows],
            "calcul": [round(float(computed), 2) for _, _, _, computed in rows],
            "écart (%)": [round(100 * (computed / measured - 1), 1) if measured else None for _, _, measured, computed in rows],
        }
    )
