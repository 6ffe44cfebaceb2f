"""The batching measurement on a tiny network, and on engines that say what they were asked."""

import gc
import weakref
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from inference import batching
from inference.batching import READINGS, REQUESTS, SLOTS, Alone, Batching, BatchSize, measure
from inference.errors import UserError
from inference.measurement import Spread
from inference.prefix_cache import PrefixCache
from inference.serving import Request, Served, Service, StaticBatches
from inference.serving_cost import ImaginedContinuous, ImaginedRows, PassCost, predict
from tests.conftest import answers, follow

SIZES, ROUNDS, COUNT = (1, 2, 4), 2, 5


class Rows(ImaginedRows):
    def __init__(self, model, prompts):
        super().__init__(prompts)


class Engine(ImaginedContinuous):
    """Holds something until it is closed."""

    block_tokens, cache_bytes = 16, 1000
    opened: ClassVar[list["Engine"]] = []

    def __init__(self, model, slots, longest):
        super().__init__(slots)
        self.asked, self.is_open = (slots, longest), True
        Engine.opened.append(self)

    def close(self) -> None:
        self.is_open = False


def work(scorer, open_rows=Rows, open_engine=Engine, count=COUNT):
    return measure(scorer, open_rows, open_engine, SIZES, ROUNDS, count)


@pytest.fixture(scope="module")
def seen(tiny) -> SimpleNamespace:
    """A whole measurement with the real engines, on a tiny network."""
    from inference.models.continuous import PaddedRows, PagedEngine

    progress, result = follow(measure(PrefixCache(tiny), PaddedRows, PagedEngine, SIZES, ROUNDS, COUNT))
    return SimpleNamespace(progress=progress, result=result)


def test_progress_goes_from_0_towards_1_and_never_back(seen):
    fractions = [progress.fraction for progress in seen.progress]
    assert fractions[0] == 0 and fractions[-1] <= 1
    assert fractions == sorted(fractions)
    assert all(progress.doing for progress in seen.progress)


def test_each_size_and_each_reading_is_timed_as_often(seen):
    assert [(one.rows, one.step.repeats) for one in seen.result.sizes] == [(rows, ROUNDS) for rows in SIZES]
    assert [(one.positions, one.step.repeats) for one in seen.result.readings] == [(positions, ROUNDS) for positions in READINGS]


def test_both_policies_serve_the_same_requests_and_write_what_is_written_alone(seen):
    result = seen.result
    for service in (result.static, result.continuous):
        assert [one.request for one in service.served] == list(result.requests)
        assert [one.token_ids for one in service.served] == [one.token_ids for one in result.alone]
        assert result.differences(service) == ()


def test_what_is_written_alone_is_the_model_s_favourite_with_its_margin(seen, tiny):
    request, alone = seen.result.requests[0], seen.result.alone[0]
    text = list(request.prompt)
    for token_id, margin in zip(alone.token_ids, alone.margins, strict=True):
        second, first = np.sort(tiny.prefill(text).scores.logits)[-2:]
        assert margin == pytest.approx(first - second, abs=1e-4)
        text.append(token_id)
    assert 0 < alone.ttft_s < alone.latency_s


def test_blocks_are_seen_in_continuous_batching_alone(seen):
    assert all(step.made.allotted.keys() == step.made.tokens.keys() for step in seen.result.continuous.steps)
    assert not any(step.made.allotted for step in seen.result.static.steps)
    allotted, used = seen.result.continuous.peak_bytes
    assert 0 < used <= allotted <= seen.result.cache_bytes


def test_predictions_come_from_the_sizes_and_readings_alone(seen):
    result = seen.result
    read = ((1, result.sizes[0].step.median_s), *((reading.positions, reading.step.median_s) for reading in result.readings))
    static, continuous = (
        PassCost(tuple((size.rows, size.step.median_s) for size in sizes), read) for sizes in (result.sizes, result.paged_sizes)
    )
    assert result.static_predicted.end_s == predict(StaticBatches(ImaginedRows, SLOTS), result.requests, SLOTS, static).end_s
    assert result.continuous_predicted.end_s == predict(ImaginedContinuous(SLOTS), result.requests, SLOTS, continuous).end_s


def test_the_continuous_engine_is_timed_with_each_of_its_slots_taken_and_left_empty(seen):
    """Who had been served for the timings would take a slot, or a pass, from the stream."""
    result = seen.result
    assert [(one.rows, one.step.repeats) for one in result.paged_sizes] == [(rows, ROUNDS) for rows in range(1, SLOTS + 1)]
    assert {number for step in result.continuous.steps for number in step.made.tokens} == set(range(COUNT))


def test_requests_of_different_visitors_have_different_prompts(tiny):
    _, result = follow(work(PrefixCache(tiny), count=REQUESTS))
    assert len({request.prompt for request in result.requests}) == REQUESTS


def test_visitors_are_answered_between_two_steps(tiny):
    scorer = PrefixCache(tiny)
    steps = work(scorer, count=2)
    for step, _ in zip(range(40), steps, strict=False):
        assert answers(scorer, (step, 1))


@pytest.mark.parametrize("reached", [0, 0.1, 0.3, 0.7, 0.9])
def test_stopped_half_way_it_closes_what_it_opened_and_frees_the_model(tiny, reached):
    Engine.opened.clear()
    scorer = PrefixCache(tiny)
    steps = work(scorer)
    while next(steps).fraction < reached:
        pass
    assert [engine.is_open for engine in Engine.opened] == [True]
    steps.close()
    assert not any(engine.is_open for engine in Engine.opened)
    assert answers(scorer, (1, 2))


def test_stopped_half_way_the_paged_cache_is_gone(tiny):
    from inference.models.continuous import PaddedRows, PagedEngine

    opened = []

    def open_engine(*asked):
        engine = PagedEngine(*asked)
        opened.append(weakref.ref(engine._processor.cache.cache_tensor))
        return engine

    steps = work(PrefixCache(tiny), PaddedRows, open_engine)
    while next(steps).fraction < 0.9:
        pass
    assert opened[0]() is not None
    steps.close()
    gc.collect()
    assert opened[0]() is None


def test_an_engine_that_fails_is_closed_and_the_model_freed(tiny):
    class Failing(Engine):
        def step(self):
            raise MemoryError

    Engine.opened.clear()
    scorer = PrefixCache(tiny)
    with pytest.raises(MemoryError):
        follow(work(scorer, open_engine=Failing))
    assert [engine.is_open for engine in Engine.opened] == [False]
    assert answers(scorer, (1, 2))


def test_the_engine_has_room_for_the_longest_request(tiny):
    Engine.opened.clear()
    follow(work(PrefixCache(tiny)))
    assert [engine.asked for engine in Engine.opened] == [(SLOTS, 48 + 32)]


def test_a_context_too_short_is_said(tiny, monkeypatch):
    monkeypatch.setattr(batching, "READINGS", (2, 257))
    with pytest.raises(UserError, match="trop court"):
        next(work(PrefixCache(tiny)))


# Records


def service_of(*texts: tuple[int, ...]) -> Service:
    requests = [Request(number, 0.0, (1,), len(token_ids)) for number, token_ids in enumerate(texts)]
    return Service(2, tuple(Served(request, 0, 0.0, 1.0, 2.0, token_ids) for request, token_ids in zip(requests, texts, strict=True)), ())


def batching_of(alone: tuple[Alone, ...], services: Service) -> Batching:
    sizes = (BatchSize(1, Spread(0.1, 0.1, 0.1, 1)), BatchSize(16, Spread(0.25, 0.2, 0.3, 1)))
    requests = tuple(one.request for one in services.served)
    return Batching(sizes, (), (), requests, alone, services, services, services, services, 16, 0)


def test_a_text_that_differs_says_where_first_and_by_what_margin_alone():
    alone = (Alone(0.1, 0.3, (5, 6, 7), (2.0, 0.0001, 1.0)), Alone(0.1, 0.2, (5, 6), (1.0, 1.0)))
    services = service_of((5, 9, 8), (5, 6))
    (found,) = batching_of(alone, services).differences(services)
    assert (found.number, found.position, found.alone_id, found.other_id, found.margin) == (0, 1, 6, 9, 0.0001)


def test_rates():
    result = batching_of((Alone(0.1, 0.5, (5, 6, 7), (1.0,) * 3), Alone(0.1, 0.3, (5,), (1.0,))), service_of((5, 6, 7), (5,)))
    assert result.one_by_one_tps == pytest.approx(4 / 0.8)
    assert result.step_ratio(16) == pytest.approx(2.5)
    assert result.sizes[1].throughput_tps == pytest.approx(64)
