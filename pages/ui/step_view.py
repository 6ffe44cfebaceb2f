"""One step's figures, and the line on which its token is drawn."""

from inference.charts.candidates import CandidateRow
from inference.charts.draw_strip import Segment, draw_segments
from inference.formatting import count, number, percent
from inference.records import StepTrace
from pages.ui.markup import Html, element

_READABLE_WIDTH = 0.05
"""Segments narrower than this carry no label; pointing at them names them."""


def step_view(trace: StepTrace, rows: list[CandidateRow]) -> Html:
    """The summary of the distribution, then the strip unless the step is greedy."""
    drawn = next(row for row in rows if row.chosen)
    strip = [] if trace.u is None else [_strip(trace, rows, drawn)]
    return element("div", _summary(trace, drawn), *strip)


def _summary(trace: StepTrace, drawn: CandidateRow) -> Html:
    total = f"{number(float(trace.probs.sum()) * 100, 4)}\u202f%"
    entropy = f"{number(trace.entropy_bits, 2)} bits"
    if trace.params.is_greedy:
        figures = {
            "Décodage glouton": "ni division, ni coupe, ni tirage",
            "Choix": f"{drawn.label}, le plus probable, {percent(drawn.prob)}",
            "Entropie, avant le choix": entropy,
            "Somme": total,
        }
    else:
        figures = {
            "Entropie": entropy,
            "Choix effectifs": number(trace.effective_choices, 1),
            "Tokens gardés": f"{count(trace.kept_count)} sur {count(len(trace.probs))}",
            "Masse retirée": percent(trace.removed_mass),
            "Somme": total,
        }
    pairs = (element("div", element("dt", name), element("dd", value)) for name, value in figures.items())
    return element("dl", *pairs, class_="figures")


def _strip(trace: StepTrace, rows: list[CandidateRow], drawn: CandidateRow) -> Html:
    segments = (_segment(segment) for segment in draw_segments(trace, rows))
    needle = element("div", element("span", f"u = {number(trace.u, 4)}", class_="u"), class_="needle", style=f"left:{trace.u:.4%}")
    bars = element("div", *segments, needle, class_="strip", aria_hidden="true")
    drawn_with = f", dont la probabilité après la coupe est {percent(drawn.prob)}."
    caption = element("figcaption", f"u = {number(trace.u, 4)} tombe sur ", element("strong", drawn.label), drawn_with)
    return element("figure", bars, caption, class_="draw")


def _segment(segment: Segment) -> Html:
    return element(
        "span",
        segment.label if segment.width >= _READABLE_WIDTH else "",
        class_="segment chosen" if segment.chosen else "segment",
        style=f"width:{segment.width:.4%}",
        title=f"{segment.label} : {percent(segment.width)}",
    )
