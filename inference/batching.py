"""What serving several visitors at once gains and costs, measured on the model that is running."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from inference.errors import UserError
from inference.formatting import plural
from inference.measurement import Progress, Spread, Work, timed, within
from inference.models.base import Model
from inference.passages import prompt_of
from inference.prefix_cache import PrefixCache
from inference.serving import (
    OUTPUT_TOKENS,
    PROMPT_TOKENS,
    Engine,
    Pass,
    Request,
    Rows,
    Served,
    Service,
    StaticBatches,
    draw_requests,
    serve,
)
from inference.serving_cost import ImaginedContinuous, ImaginedRows, PassCost, predict

SIZES = (1, 2, 4, 8, 16, 32, 64)
READINGS = (2, 4, 16, 64, 192)
ROUNDS = 5
SHORT_PROMPT = 2
PAGED_PROMPT = 32
SLOTS = 4
REQUESTS = 12
SEED = 2031
GAP_PASSES = 3
"""Mean gap between two arrivals, in passes of one text: enough to keep the slots busy, whatever the machine's speed."""
OFFSET = 24
"""Tokens from the start of one request's prompt to the start of the next one's, in the same passages."""

OpenRows = Callable[[Model, Sequence[tuple[int, ...]]], Rows]


class PagedEngine(Engine, Protocol):
    """Keeps its texts in blocks of `block_tokens`, in a cache of `cache_bytes` that is its own until it is closed."""

    block_tokens: int
    cache_bytes: int

    def close(self) -> None:
        """Let go of the cache, whatever was being served."""


@dataclass(frozen=True)
class BatchSize:
    """One token more for each of `rows` texts, in one pass."""

    rows: int
    step: Spread

    @property
    def throughput_tps(self) -> float:
        return self.rows / self.step.median_s


@dataclass(frozen=True)
class Reading:
    """One text of so many tokens read in one pass, its last one scored."""

    positions: int
    step: Spread


@dataclass(frozen=True)
class Alone:
    """A request served with nobody else there. `margins` (tokens,): logits between the token chosen and the next best."""

    ttft_s: float
    latency_s: float
    token_ids: tuple[int, ...]
    margins: tuple[float, ...]


@dataclass(frozen=True)
class Difference:
    """Where a text written among others first leaves the one written alone; `margin` of the latter there."""

    number: int
    position: int
    alone_id: int
    other_id: int
    margin: float


@dataclass(frozen=True, eq=False)
class Batching:
    """`alone` is by number of the request. Each prediction is made from the passes of its own engine, `sizes` or `paged_sizes`, and from
    `readings`. `block_tokens` and `cache_bytes` are those of the continuous engine, whose cache is reserved as a whole."""

    sizes: tuple[BatchSize, ...]
    paged_sizes: tuple[BatchSize, ...]
    readings: tuple[Reading, ...]
    requests: tuple[Request, ...]
    alone: tuple[Alone, ...]
    static: Service
    continuous: Service
    static_predicted: Service
    continuous_predicted: Service
    block_tokens: int
    cache_bytes: int

    @property
    def spreads(self) -> tuple[Spread, ...]:
        """The timings everything else rests on."""
        return tuple(one.step for one in (*self.sizes, *self.paged_sizes, *self.readings))

    @property
    def one_by_one_tps(self) -> float:
        """Tokens per second when the requests are served one after the other, without a pause."""
        return sum(request.tokens for request in self.requests) / sum(one.latency_s for one in self.alone)

    def step_ratio(self, rows: int) -> float:
        """How much longer a pass takes for `rows` texts than for one."""
        by_rows = {one.rows: one.step.median_s for one in self.sizes}
        return by_rows[rows] / by_rows[1]

    def differences(self, service: Service) -> tuple[Difference, ...]:
        return tuple(found for one, alone in zip(service.served, self.alone, strict=True) if (found := _difference(one, alone)))


def _difference(one: Served, alone: Alone) -> Difference | None:
    pairs = zip(alone.token_ids, one.token_ids, alone.margins, strict=True)
    for position, (alone_id, other_id, margin) in enumerate(pairs):
        if alone_id != other_id:
            return Difference(one.request.number, position, alone_id, other_id, margin)
    return None


def measure(
    scorer: PrefixCache,
    open_rows: OpenRows,
    open_engine: Callable[[Model, int, int], PagedEngine],
    sizes: Sequence[int] = SIZES,
    rounds: int = ROUNDS,
    count: int = REQUESTS,
) -> Work[Batching]:
    """`open_rows` makes texts computed together; `open_engine` one that serves so many at a time, of at most so many tokens each.

    Raises `UserError` for a model whose context is too short, or that the engine cannot run.
    """
    longest = max(PROMPT_TOKENS) + max(OUTPUT_TOKENS)
    if scorer.info.context_length < max(longest, *READINGS):
        raise UserError("Le contexte de ce modèle est trop court pour cette mesure.")
    with scorer.model_alone() as model:
        engine = open_engine(model, SLOTS, longest)
    try:
        row_sizes, readings = yield from within(0.0, 0.25, _time_sizes(scorer, open_rows, sizes, rounds))
        paged_sizes = yield from within(0.25, 0.3, _time_paged(scorer, engine, count, rounds))
        one_s = row_sizes[0].step.median_s
        requests = draw_requests(count, GAP_PASSES * one_s, lambda number, length: _prompt(scorer, number, length), SEED)
        alone = yield from within(0.3, 0.6, _serve_alone(scorer, requests))
        batches = StaticBatches(lambda prompts: open_rows(scorer.model, prompts), SLOTS)
        static = yield from within(0.6, 0.85, _serve(scorer, batches, requests, "par lots fixes"))
        continuous = yield from within(0.85, 1.0, _serve(scorer, engine, requests, "en continu"))
    finally:
        engine.close()
    read = ((1, one_s), *((one.positions, one.step.median_s) for one in readings))
    costs = [PassCost(tuple((one.rows, one.step.median_s) for one in passes), read) for passes in (row_sizes, paged_sizes)]
    return Batching(
        sizes=row_sizes,
        paged_sizes=paged_sizes,
        readings=readings,
        requests=requests,
        alone=alone,
        static=static,
        continuous=continuous,
        static_predicted=predict(StaticBatches(ImaginedRows, SLOTS), requests, SLOTS, costs[0]),
        continuous_predicted=predict(ImaginedContinuous(SLOTS), requests, SLOTS, costs[1]),
        block_tokens=engine.block_tokens,
        cache_bytes=engine.cache_bytes,
    )


def _prompt(scorer: PrefixCache, number: int, length: int) -> tuple[int, ...]:
    """What starts a text, then the passages from a place of its own."""
    first, *others = prompt_of(number * OFFSET + length, scorer.vocabulary.encode)
    return (first, *others[number * OFFSET :])


def _time_sizes(
    scorer: PrefixCache, open_rows: OpenRows, sizes: Sequence[int], rounds: int
) -> Work[tuple[tuple[BatchSize, ...], tuple[Reading, ...]]]:
    """A pass of each size and a reading of each length in each round, so that the machine's drift hits them alike."""
    prompt = prompt_of(SHORT_PROMPT, scorer.vocabulary.encode)
    batches = {}
    for rows in sizes:
        yield Progress(0.0, f"ouvre {plural(rows, 'texte')} à la fois")
        with scorer.model_alone() as model:
            batches[rows] = open_rows(model, [prompt] * rows)
        with scorer.model_alone():
            batches[rows].step()
    steps_s, reads_s = {rows: [] for rows in sizes}, {positions: [] for positions in READINGS}
    for round_ in range(rounds):
        for rows, batch in batches.items():
            yield Progress(round_ / rounds, f"un token de plus pour {plural(rows, 'texte')}, {round_ + 1} sur {rounds}")
            with scorer.model_alone():
                steps_s[rows].append(timed(batch.step)[0])
        for positions in READINGS:
            read = prompt_of(positions, scorer.vocabulary.encode)
            yield Progress((round_ + 0.7) / rounds, f"lecture de {positions} tokens, {round_ + 1} sur {rounds}")
            with scorer.model_alone() as model:
                reads_s[positions].append(timed(lambda model=model, read=read: model.prefill(read))[0])
    return (
        tuple(BatchSize(rows, Spread.of(seconds)) for rows, seconds in steps_s.items()),
        tuple(Reading(positions, Spread.of(seconds)) for positions, seconds in reads_s.items()),
    )


def _time_paged(scorer: PrefixCache, engine: Engine, first_number: int, rounds: int) -> Work[tuple[BatchSize, ...]]:
    """Passes of the continuous engine for one text, then one more, up to all its slots; it is left as empty as it was."""
    prompt, sizes = prompt_of(PAGED_PROMPT, scorer.vocabulary.encode), []
    for rows in range(1, SLOTS + 1):
        engine.add(Request(first_number + rows, 0.0, prompt, (SLOTS - rows + 1) * (rounds + 1)))
        seconds = []
        for round_ in range(rounds + 1):
            yield Progress((rows - 1 + round_ / (rounds + 1)) / SLOTS, f"un token de plus pour {plural(rows, 'texte')}, en continu")
            with scorer.model_alone():
                seconds.append(timed(engine.step)[0])
        sizes.append(BatchSize(rows, Spread.of(seconds[1:])))  # the first pass reads a prompt
    return tuple(sizes)


def _serve_alone(scorer: PrefixCache, requests: Sequence[Request]) -> Work[tuple[Alone, ...]]:
    """Each request as if nobody else had come."""
    total, done, alone = sum(request.tokens for request in requests), 0, []
    for request in requests:
        seconds, token_ids, margins, state, read = [], [], [], None, request.prompt
        while len(token_ids) < request.tokens:
            yield Progress(done / total, f"demande {request.number + 1} sur {len(requests)}, seule")
            with scorer.model_alone() as model:
                elapsed, forward = timed(lambda model=model, read=read, state=state: model.prefill(read, state))
            second, first = np.partition(forward.scores.logits, -2)[-2:]
            seconds.append(elapsed)
            token_ids.append(int(forward.scores.logits.argmax()))
            margins.append(float(first - second))
            state, read = forward.state, (token_ids[-1],)
            done += 1
        alone.append(Alone(seconds[0], sum(seconds), tuple(token_ids), tuple(margins)))
    return tuple(alone)


def _serve(scorer: PrefixCache, engine: Engine, requests: Sequence[Request], how: str) -> Work[Service]:
    """The stream, with everybody else kept out of the model for a pass at a time."""

    def run(step: Callable[[], Pass]) -> tuple[float, Pass]:
        with scorer.model_alone():
            return timed(step)

    work, total, done = serve(engine, requests, SLOTS, run), sum(request.tokens for request in requests), 0
    while True:
        yield Progress(done / total, f"les mêmes demandes {how}, {done} tokens sur {total}")
        try:
            done += len(next(work).made.tokens)
        except StopIteration as end:
            return end.value
