"""How long requests served several at a time would take, by calculation alone: engines of no model, and the cost of a pass."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from inference.serving import Engine, Pass, Request, Service, serve


class ImaginedRows:
    """`Rows` of no model: passes of the right size, to compute how long they would take."""

    def __init__(self, prompts: Sequence[tuple[int, ...]]):
        self._rows = len(prompts)
        self._positions = self._rows * max(map(len, prompts))

    def step(self) -> Pass:
        made = Pass(self._rows, self._positions, dict.fromkeys(range(self._rows), 0))
        self._positions = self._rows
        return made


class ImaginedContinuous:
    """`Engine` of no model: whoever has finished leaves, whoever waits enters, at every pass; first come, first served."""

    def __init__(self, slots: int):
        self._slots = slots
        self._waiting: deque[Request] = deque()
        self._left: dict[int, int] = {}

    def add(self, request: Request) -> None:
        self._waiting.append(request)

    def step(self) -> Pass:
        positions = len(self._left)
        while self._waiting and len(self._left) < self._slots:
            request = self._waiting.popleft()
            self._left[request.number] = request.tokens
            positions += len(request.prompt)
        made = Pass(len(self._left), positions, dict.fromkeys(self._left, 0))
        self._left = {number: left - 1 for number, left in self._left.items() if left > 1}
        return made


@dataclass(frozen=True)
class PassCost:
    """Seconds of any pass, from two measured curves.

    written  (rows, seconds) of passes that read one token a row and score every row.
    read     (positions, seconds) of passes that read one text and score its last token alone.

    A pass is taken to be its positions through the layers, then its rows through the output matrix. With one position a row, that is
    `written`; other positions add the difference `read` shows. Straight lines between the points measured.
    """

    written: tuple[tuple[int, float], ...]
    read: tuple[tuple[int, float], ...]

    def __call__(self, rows: int, positions: int) -> float:
        return _between(self.written, rows) + _between(self.read, positions) - _between(self.read, rows)


def _between(points: Sequence[tuple[int, float]], x: int) -> float:
    return float(np.interp(x, *zip(*points, strict=True)))


def predict(engine: Engine, requests: Sequence[Request], slots: int, cost: Callable[[int, int], float]) -> Service:
    """The same stream under a policy, by computation alone."""

    def run(step: Callable[[], Pass]) -> tuple[float, Pass]:
        made = step()
        return cost(made.rows, made.positions), made

    work = serve(engine, requests, slots, run)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value
