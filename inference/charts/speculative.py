"""Speculative decoding, as tables and charts."""

from collections.abc import Callable

import pandas as pd
import plotly.graph_objects as go

from inference.charts.style import CHOSEN, MEASURED, NEUTRAL, figure, token_bars
from inference.escaping import html_text
from inference.formatting import number, percent
from inference.speculative import DrawsCheck, Round
from inference.speculative_speed import LOOKUP, SMALL, Run

COLOURS = {SMALL: MEASURED, LOOKUP: NEUTRAL}
SHOWN = 10


def runs_table(runs: tuple[Run, ...]) -> pd.DataFrame:
    """One row a draft and a γ; costs in plain passes of the target, rates in [0, 1]. Nothing is computed for a draft that may propose
    less than γ tokens."""
    computed = [run if run.draft == SMALL else None for run in runs]
    return pd.DataFrame(
        {
            "brouillon": [run.draft for run in runs],
            "γ": [run.num_draft_tokens for run in runs],
            "accélération": [round(run.speedup, 2) for run in runs],
            "texte le moins accéléré": [round(run.speedups.low_s, 2) for run in runs],
            "texte le plus accéléré": [round(run.speedups.high_s, 2) for run in runs],
            "tokens par passe": [round(run.tokens_per_pass, 2) for run in runs],
            "calcul : tokens par passe": [run and round(run.expected_tokens, 2) for run in computed],
            "α, moyenne de Σ min(p, q)": [round(run.acceptance_rate, 3) for run in runs],
            "part acceptée": [round(run.accepted_share, 3) for run in runs],
            "coût d’une proposition (passes)": [round(run.draft_cost, 3) for run in runs],
            "coût d’une vérification (passes)": [round(run.verify_cost, 3) for run in runs],
            "calcul : accélération": [run and round(run.expected_speedup_here, 2) for run in computed],
            "calcul, vérification à une passe": [run and round(run.expected_speedup, 2) for run in computed],
            "passes": [len(run.rounds) for run in runs],
        }
    )


def speedups_figure(runs: tuple[Run, ...]) -> go.Figure:
    """The speed-up against γ for each draft, from the slowest to the fastest text, and what the formula makes of the small model's α."""
    data = []
    for draft in dict.fromkeys(run.draft for run in runs):
        own = [run for run in runs if run.draft == draft]
        gammas = [run.num_draft_tokens for run in own]
        measured = [run.speedup for run in own]
        data.append(
            _line(draft, gammas, measured, COLOURS[draft])
            | {
                "error_y": {
                    "array": [max(0.0, run.speedups.high_s - run.speedup) for run in own],
                    "arrayminus": [max(0.0, run.speedup - run.speedups.low_s) for run in own],
                }
            }
        )
        if draft == SMALL:
            computed = [run.expected_speedup_here for run in own]
            data.append(_line(f"{draft}, calcul", gammas, computed, COLOURS[draft], dash="dot"))
    return figure(
        data=data,
        layout={
            "height": 380,
            "xaxis": {"dtick": 1, "title": {"text": "γ, tokens proposés par passe"}, "fixedrange": True},
            "yaxis": {"rangemode": "tozero", "title": {"text": "fois plus vite que sans brouillon"}, "fixedrange": True},
            "shapes": [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1, "line": {"color": NEUTRAL, "width": 1}}],
            "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom"},
        },
    )


def _line(name: str, gammas: list[int], values: list[float], colour: str, dash: str = "solid") -> dict:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": gammas,
        "y": values,
        "line": {"color": colour, "width": 3, "dash": dash},
        "marker": {"size": 9},
        "text": [number(value, 2) for value in values],
        "hovertemplate": "γ = %{x} : × %{text}",
    }


def outcome(done: Round, position: int) -> str:
    """What became of a proposal, in French."""
    proposal = done.proposals[position]
    return "non lu" if proposal.p is None else "accepté" if proposal.is_accepted else "refusé"


def round_table(done: Round, label: Callable[[int], str]) -> pd.DataFrame:
    """One row a proposal; probabilities in [0, 1], empty where a refusal before it left it unread."""
    return pd.DataFrame(
        {
            "token": [label(proposal.token_id) for proposal in done.proposals],
            "id": [proposal.token_id for proposal in done.proposals],
            "q, brouillon": [proposal.q for proposal in done.proposals],
            "p, gros modèle": [proposal.p for proposal in done.proposals],
            "min(1, p/q)": [proposal.acceptance for proposal in done.proposals],
            "u": [proposal.u for proposal in done.proposals],
            "sort": [outcome(done, position) for position in range(len(done.proposals))],
        }
    )


def round_figure(done: Round, label: Callable[[int], str]) -> go.Figure:
    """Each proposal read: a bar as long as its chance of being accepted, and the u that falls on it or beyond it."""
    examined = done.examined
    positions = list(range(len(examined)))
    chances = [percent(proposal.acceptance) for proposal in examined]
    return figure(
        data=[
            {
                "type": "bar",
                "orientation": "h",
                "name": "min(1, p/q)",
                "y": positions,
                "x": [proposal.acceptance for proposal in examined],
                "marker": {"color": MEASURED},
                "customdata": chances,
                "hovertemplate": "%{customdata}",
            },
            {
                "type": "scatter",
                "mode": "markers",
                "name": "u",
                "y": positions,
                "x": [proposal.u for proposal in examined],
                "marker": {"color": CHOSEN, "size": 16, "symbol": "diamond", "line": {"color": "white", "width": 1}},
                "customdata": [number(proposal.u, 4) for proposal in examined],
                "hovertemplate": "u = %{customdata}",
            },
        ],
        layout={
            "height": 64 * len(examined) + 110,
            "bargap": 0.55,
            "xaxis": {"range": [0, 1.02], "tickformat": ".0%", "fixedrange": True},
            "yaxis": {
                "range": [len(examined) - 0.4, -0.75],
                "tickmode": "array",
                "tickvals": positions,
                "ticktext": [f"{html_text(label(one.token_id))}<br>{chance}" for one, chance in zip(examined, chances, strict=True)],
                "fixedrange": True,
            },
            "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom"},
        },
    )


def draws_table(check: DrawsCheck, label: Callable[[int], str]) -> pd.DataFrame:
    """One row a token expected often enough, then the others together; p, q and the share of draws in [0, 1]."""
    others = {"p": check.expected[-1] / check.draws, "q": max(0.0, 1 - float(check.q.sum()))}
    return pd.DataFrame(
        {
            "token": [*(label(token_id) for token_id in check.token_ids.tolist()), "les autres"],
            "q, brouillon": [*check.q, others["q"]],
            "p, gros modèle": [*check.p, others["p"]],
            "tirés": check.counts / check.draws,
            "fois": check.counts,
            "attendu": check.expected.round(1),
        }
    )


def draws_figure(table: pd.DataFrame) -> go.Figure:
    """The likeliest tokens of the target: what the draft gives them, what the target gives them, how often they came out."""
    bars = {"q, brouillon": NEUTRAL, "p, gros modèle": MEASURED, "tirés": CHOSEN}
    columns = ["token", *bars]
    likeliest, others = table[columns][:-1][:SHOWN], table[columns][min(SHOWN, len(table) - 1) :]
    shown = pd.concat([likeliest, others.sum().to_frame().T.assign(token="les autres")], ignore_index=True)
    return token_bars(shown, bars, row_height=46, xaxis={"rangemode": "tozero"})
