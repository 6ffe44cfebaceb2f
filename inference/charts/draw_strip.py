"""The line from 0 to 1 on which the kept tokens lie end to end, under the number u."""

from dataclasses import dataclass

from inference.charts.candidates import REST, CandidateRow
from inference.records import StepTrace

OTHERS = "autres tokens"


@dataclass(frozen=True)
class Segment:
    """One stretch of the line, [low, low + width): a token, or several that are not shown."""

    label: str
    low: float
    width: float
    chosen: bool


def draw_segments(trace: StepTrace, rows: list[CandidateRow]) -> list[Segment]:
    """Segments by decreasing probability; they fill the line. `rows` are those of `candidate_rows`.

    Tokens not shown make one segment at the end, split around the chosen one when it lies among them. Not for a greedy trace,
    which draws nothing.
    """
    segments: list[Segment] = []
    end = 0.0
    for row in rows:
        if row.prob == 0 or row.token_id == REST:
            continue
        if row.chosen and trace.choice.low > end + 1e-12:
            segments.append(Segment(OTHERS, end, trace.choice.low - end, False))
            end = trace.choice.low
        segments.append(Segment(row.label, end, row.prob, row.chosen))
        end += row.prob
    if end < 1 - 1e-9:
        segments.append(Segment(OTHERS, end, 1 - end, False))
    return segments
