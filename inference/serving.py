"""Requests served several at a time: who is in each pass of the model, and when each one gets its tokens.

The clock advances by what passes last, measured or computed: nobody sleeps until a request arrives.
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Protocol

import numpy as np

PROMPT_TOKENS = (8, 16, 32, 48)
OUTPUT_TOKENS = (6, 8, 12, 32)


@dataclass(frozen=True)
class Request:
    """number     its rank in the order of arrival, from 0.
    arrival_s  after the first one.
    tokens     how many it writes, decided in advance.
    """

    number: int
    arrival_s: float
    prompt: tuple[int, ...]
    tokens: int


@dataclass(frozen=True)
class Allotment:
    """What a paged cache holds for one request: its tokens, the blocks of each kind of layer, their bytes, and those that are in use."""

    tokens: int
    blocks: dict[str, int]
    nbytes: int
    used_bytes: int


@dataclass(frozen=True)
class Pass:
    """One pass of the model over several texts.

    rows       texts in it, those that were finished already and are computed for nothing included: as many tokens are chosen.
    positions  tokens read, padding included.
    tokens     the token each request got, by its number; a request gets its first in the pass that reads its prompt.
    allotted   by number, with a paged cache.
    """

    rows: int
    positions: int
    tokens: dict[int, int]
    allotted: dict[int, Allotment] = field(default_factory=dict)


class Engine(Protocol):
    """Serves requests under a policy of its own, a pass at a time."""

    def add(self, request: Request) -> None:
        """A request has arrived."""

    def step(self) -> Pass:
        """The next pass. There is a request to serve."""


@dataclass(frozen=True)
class Served:
    """What became of a request, in seconds of the service's clock; `slot` is its place among those served together, from 0."""

    request: Request
    slot: int
    start_s: float
    first_token_s: float
    end_s: float
    token_ids: tuple[int, ...]

    @property
    def ttft_s(self) -> float:
        """Time to first token, the wait included."""
        return self.first_token_s - self.request.arrival_s

    @property
    def latency_s(self) -> float:
        return self.end_s - self.request.arrival_s


@dataclass(frozen=True)
class Step:
    start_s: float
    duration_s: float
    made: Pass


@dataclass(frozen=True, eq=False)
class Service:
    """A stream of requests served to its end, at most `slots` at a time; `served` in the order of arrival."""

    slots: int
    served: tuple[Served, ...]
    steps: tuple[Step, ...]

    @cached_property
    def end_s(self) -> float:
        """Since the first arrival, which is time 0."""
        return max(one.end_s for one in self.served)

    @property
    def throughput_tps(self) -> float:
        """Tokens written per second, from the first arrival to the last token."""
        return sum(one.request.tokens for one in self.served) / self.end_s

    @property
    def idle_share(self) -> float:
        """Of the slots, while the model computes: empty ones, and those whose text is finished."""
        busy_s = sum(step.duration_s * len(step.made.tokens) for step in self.steps)
        return 1 - busy_s / (self.slots * sum(step.duration_s for step in self.steps))

    @property
    def peak_bytes(self) -> tuple[int, int]:
        """Of a paged cache, at the pass that holds most: the blocks allotted, and the tokens in them."""
        held = [step.made.allotted.values() for step in self.steps]
        return max((sum(one.nbytes for one in now), sum(one.used_bytes for one in now)) for now in held)

    def ttft_s(self, share: float) -> float:
        """A percentile, interpolated: about `share` of the requests, from 0 to 1, waited no longer for their first token."""
        return percentile([one.ttft_s for one in self.served], share)

    def latency_s(self, share: float) -> float:
        return percentile([one.latency_s for one in self.served], share)


def percentile(values: Sequence[float], share: float) -> float:
    """Linear between the two values around it (Hyndman and Fan 1996, definition 7)."""
    return float(np.percentile(values, 100 * share))


def draw_requests(count: int, mean_gap_s: float, make_prompt: Callable[[int, int], tuple[int, ...]], seed: int) -> tuple[Request, ...]:
    """Poisson arrivals, the first at 0: gaps are exponential. Lengths are drawn evenly from `PROMPT_TOKENS` and `OUTPUT_TOKENS`.

    make_prompt  the prompt of a request, from its number and its length in tokens.

    The same seed gives the same stream, its times in proportion to `mean_gap_s`.
    """
    random, arrival_s, requests = Random(seed), 0.0, []
    for number in range(count):
        prompt = make_prompt(number, random.choice(PROMPT_TOKENS))
        requests.append(Request(number, arrival_s, prompt, random.choice(OUTPUT_TOKENS)))
        arrival_s += mean_gap_s * random.expovariate(1)
    return tuple(requests)


def serve(
    engine: Engine, requests: Sequence[Request], slots: int, run: Callable[[Callable[[], Pass]], tuple[float, Pass]]
) -> Generator[Step, None, Service]:
    """All the requests, by an engine that takes `slots` at a time at most: each step once it is made, then the whole.

    run  makes a pass, and says how many seconds it took.
    """
    clock_s, coming = 0.0, deque(requests)
    started: dict[int, tuple[int, float]] = {}
    written: dict[int, list[int]] = {}
    first_s: dict[int, float] = {}
    served: dict[int, Served] = {}
    steps, free = [], set(range(slots))
    while len(served) < len(requests):
        if len(coming) + len(served) == len(requests):  # nobody is there: nothing happens until the next one comes
            clock_s = max(clock_s, coming[0].arrival_s)
        while coming and coming[0].arrival_s <= clock_s:
            engine.add(coming.popleft())
        seconds, made = run(engine.step)
        steps.append(Step(clock_s, seconds, made))
        for number, token_id in made.tokens.items():
            if number not in started:
                started[number] = min(free), clock_s
                free.remove(min(free))
                first_s[number] = clock_s + seconds
            written.setdefault(number, []).append(token_id)
            if len(written[number]) == requests[number].tokens:
                end_s = clock_s + seconds
                served[number] = Served(requests[number], *started[number], first_s[number], end_s, tuple(written[number]))
        free |= {served[number].slot for number in made.tokens if number in served}
        clock_s += seconds
        yield steps[-1]
    return Service(slots, tuple(served[request.number] for request in requests), tuple(steps))


class Rows(Protocol):
    """Texts computed together, as the rows of one tensor, all of them in every pass: `Pass.tokens` by row."""

    def step(self) -> Pass:
        """The first pass reads the prompts, the next ones the tokens chosen last."""


class StaticBatches:
    """`Engine`: those who wait are taken together, `slots` at most, and nobody enters or leaves until the longest text is finished.

    What Yu et al. 2022, « Orca », call scheduling by request.
    """

    def __init__(self, open_rows: Callable[[Sequence[tuple[int, ...]]], Rows], slots: int):
        self._open_rows = open_rows
        self._slots = slots
        self._waiting: deque[Request] = deque()
        self._batch: list[Request] = []
        self._rows: Rows | None = None
        self._passes = 0

    def add(self, request: Request) -> None:
        self._waiting.append(request)

    def step(self) -> Pass:
        if self._rows is None:
            self._batch = [self._waiting.popleft() for _ in range(min(self._slots, len(self._waiting)))]
            self._rows, self._passes = self._open_rows([request.prompt for request in self._batch]), 0
        made = self._rows.step()
        self._passes += 1
        tokens = {request.number: made.tokens[row] for row, request in enumerate(self._batch) if self._passes <= request.tokens}
        if self._passes == max(request.tokens for request in self._batch):
            self._rows = None
        return Pass(made.rows, made.positions, tokens)


@dataclass(frozen=True)
class Bar:
    """A piece of a slot's time: `number` of the request it served, None when it did nothing for anyone."""

    slot: int
    start_s: float
    end_s: float
    number: int | None
    is_reading: bool = False


def timeline(service: Service) -> tuple[Bar, ...]:
    """Each slot from 0 to the end of the service without a gap: a request's prompt, then its tokens; idle time in between."""
    bars = []
    for slot in range(service.slots):
        reached_s = 0.0
        for one in sorted((one for one in service.served if one.slot == slot), key=lambda one: one.start_s):
            if one.start_s > reached_s:
                bars.append(Bar(slot, reached_s, one.start_s, None))
            bars.append(Bar(slot, one.start_s, one.first_token_s, one.request.number, is_reading=True))
            if one.end_s > one.first_token_s:
                bars.append(Bar(slot, one.first_token_s, one.end_s, one.request.number))
            reached_s = one.end_s
        if service.end_s > reached_s:
            bars.append(Bar(slot, reached_s, service.end_s, None))
    return tuple(bars)
