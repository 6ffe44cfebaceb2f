"""Requests served under a policy: streams by their seed, schedules against closed forms, a simulation against a recurrence."""

import math
from dataclasses import replace

import numpy as np
import pytest

from inference.serving import (
    OUTPUT_TOKENS,
    PROMPT_TOKENS,
    Allotment,
    Bar,
    Pass,
    Request,
    Service,
    StaticBatches,
    Step,
    draw_requests,
    percentile,
    serve,
    timeline,
)
from inference.serving_cost import ImaginedContinuous, ImaginedRows, PassCost, predict

SLOTS = 4


def requests_of(*tokens: int, gap_s: float = 0.0, prompt: int = 1) -> tuple[Request, ...]:
    """One after the other, `gap_s` apart."""
    return tuple(Request(number, number * gap_s, (7,) * prompt, count) for number, count in enumerate(tokens))


def one_second(rows: int, positions: int) -> float:
    return 1.0


def a_second_each(rows: int, positions: int) -> float:
    return float(positions)


def static(requests, slots=SLOTS, cost=one_second) -> Service:
    return predict(StaticBatches(ImaginedRows, slots), requests, slots, cost)


def continuous(requests, slots=SLOTS, cost=one_second) -> Service:
    return predict(ImaginedContinuous(slots), requests, slots, cost)


POLICIES = {"static": static, "continuous": continuous}
both = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


def stream(seed: int, count: int = 12, gap_s: float = 2.0) -> tuple[Request, ...]:
    return draw_requests(count, gap_s, lambda number, length: (number,) * length, seed)


# The stream


def test_a_stream_is_that_of_its_seed():
    assert stream(1) == stream(1)
    assert stream(1) != stream(2)


def test_a_stream_starts_at_0_and_its_times_are_in_proportion_to_the_gap():
    first, second = stream(5, gap_s=1.0), stream(5, gap_s=3.0)
    assert first[0].arrival_s == 0
    assert [request.arrival_s for request in second] == pytest.approx([3 * request.arrival_s for request in first])
    assert [replace(request, arrival_s=0) for request in first] == [replace(request, arrival_s=0) for request in second]


def test_prompts_are_made_by_number_and_lengths_are_those_offered():
    requests = stream(3, count=400)
    assert [request.number for request in requests] == list(range(400))
    assert all(set(request.prompt) == {request.number} for request in requests)
    assert {len(request.prompt) for request in requests} == set(PROMPT_TOKENS)
    assert {request.tokens for request in requests} == set(OUTPUT_TOKENS)


def test_gaps_are_exponential():
    """Mean 2, standard deviation 2, and 1/e of them beyond the mean; 4,000 of them are within four standard errors."""
    gaps_s = np.diff([request.arrival_s for request in stream(7, count=4001)])
    assert gaps_s.min() >= 0
    assert gaps_s.mean() == pytest.approx(2, abs=4 * 2 / math.sqrt(4000))
    assert gaps_s.std() == pytest.approx(2, rel=0.15)
    assert (gaps_s > 2).mean() == pytest.approx(math.exp(-1), abs=4 * 0.5 / math.sqrt(4000))


# Closed forms


@both
@pytest.mark.parametrize(("count", "slots"), [(1, 4), (4, 4), (5, 4), (12, 4), (3, 1), (7, 3)])
def test_equal_texts_that_arrive_together_leave_by_full_batches(policy, count, slots):
    """Both policies are then one: ceil(n / slots) rounds of 6 passes."""
    service = policy(requests_of(*[6] * count), slots)
    rounds = math.ceil(count / slots)
    assert service.end_s == 6 * rounds
    assert service.throughput_tps == count / rounds
    assert service.idle_share == pytest.approx(1 - count / (slots * rounds))
    assert [one.end_s for one in service.served] == [6 * (number // slots + 1) for number in range(count)]
    assert [one.first_token_s for one in service.served] == [6 * (number // slots) + 1 for number in range(count)]
    assert [one.slot for one in service.served] == [number % slots for number in range(count)]


def test_a_fixed_batch_lasts_as_long_as_its_longest_text():
    service = static(requests_of(2, 9, 3, 1, 5, 4))
    assert [one.start_s for one in service.served] == [0, 0, 0, 0, 9, 9]
    assert [one.end_s for one in service.served] == [2, 9, 3, 1, 14, 13]
    assert service.idle_share == pytest.approx(1 - (2 + 9 + 3 + 1 + 5 + 4) / (4 * (9 + 5)))
    assert [step.made.rows for step in service.steps] == [4] * 9 + [2] * 5, "a finished text is computed to the end"


def test_in_continuous_batching_a_slot_is_taken_again_at_once():
    service = continuous(requests_of(2, 9, 3, 1, 5, 4))
    assert [one.start_s for one in service.served] == [0, 0, 0, 0, 1, 2]
    assert [one.slot for one in service.served] == [0, 1, 2, 3, 3, 0]
    assert [one.end_s for one in service.served] == [2, 9, 3, 1, 6, 6]
    assert [step.made.rows for step in service.steps] == [4, 4, 4, 3, 3, 3, 1, 1, 1]


@both
def test_padding_is_read_in_fixed_batches_alone(policy):
    """Prompts of 1, 2 and 5 tokens, one token each: 15 positions padded, 8 otherwise."""
    requests = tuple(Request(number, 0.0, (0,) * length, 1) for number, length in enumerate((1, 2, 5)))
    service = policy(requests, cost=a_second_each)
    assert [step.made.positions for step in service.steps] == [15 if policy is static else 8]
    assert service.end_s == service.steps[0].made.positions


@both
@pytest.mark.parametrize("gap_s", [2.0, 5.0, 6.0, 9.5])
def test_one_slot_is_a_queue_with_one_server(policy, gap_s):
    """Lindley's recurrence: who arrives waits for what the one before still had to wait and to write, less the gap."""
    lengths = (5, 3, 8, 5, 2, 6)
    service = policy(requests_of(*lengths, gap_s=gap_s), slots=1)
    wait_s = 0.0
    for number, one in enumerate(service.served):
        wait_s = max(0.0, wait_s + lengths[number - 1] - gap_s) if number else 0.0
        assert one.start_s - one.request.arrival_s == pytest.approx(wait_s)
        assert one.latency_s == pytest.approx(wait_s + lengths[number])
        assert one.ttft_s == pytest.approx(wait_s + 1)


@both
def test_regular_arrivals_slower_than_the_service_never_wait(policy):
    service = policy(requests_of(*[4] * 6, gap_s=5.0))
    assert [one.latency_s for one in service.served] == [4] * 6
    assert service.end_s == 5 * 5 + 4
    assert service.idle_share == pytest.approx(3 / 4)


def test_in_continuous_batching_as_many_slots_as_texts_means_no_wait():
    """Arrivals every 2 s, texts of 8 s: four at a time (Little), and each is served as if alone."""
    service = continuous(requests_of(*[8] * 20, gap_s=2.0))
    assert [one.latency_s for one in service.served] == [8] * 20
    assert {one.slot for one in service.served} == set(range(4))
    assert service.steps[20].made.rows == 4


@both
@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_stream_everyone_gets_their_tokens_and_slots_are_never_shared(policy, seed):
    requests = stream(seed)
    service = policy(requests, cost=lambda rows, positions: 0.1 + 0.02 * rows + 0.01 * positions)
    assert [one.request for one in service.served] == list(requests)
    assert sum(len(step.made.tokens) for step in service.steps) == sum(request.tokens for request in requests)
    assert all(len(one.token_ids) == one.request.tokens for one in service.served)
    assert all(one.request.arrival_s <= one.start_s < one.first_token_s <= one.end_s for one in service.served)
    assert all(len(step.made.tokens) <= step.made.rows <= SLOTS for step in service.steps)
    starts = [step.start_s for step in service.steps]
    assert all(b >= a + step.duration_s - 1e-9 for a, b, step in zip(starts, starts[1:], service.steps, strict=False))


@pytest.mark.parametrize("seed", range(5))
def test_continuous_batching_never_ends_after_fixed_batches(seed):
    """With passes that cost the same whatever is in them."""
    requests = stream(seed)
    assert continuous(requests).end_s <= static(requests).end_s


# The loop


def test_a_service_yields_each_step_once_made_and_asks_for_no_more():
    made = []

    def run(step):
        made.append(step())
        return 2.0, made[-1]

    work = serve(ImaginedContinuous(2), requests_of(3, 1), 2, run)
    assert made == []
    assert next(work) == Step(0.0, 2.0, made[0])
    assert next(work).start_s == 2.0
    assert len(made) == 2
    work.close()
    assert len(made) == 2


def test_the_clock_jumps_to_the_next_arrival_when_nobody_is_there():
    service = continuous((Request(0, 0.0, (1,), 2), Request(1, 30.0, (1,), 1)))
    assert [step.start_s for step in service.steps] == [0, 1, 30]
    assert service.idle_share == pytest.approx(3 / 4), "the model was not computing meanwhile"
    assert service.throughput_tps == pytest.approx(3 / 31)


def test_a_request_that_arrives_during_a_pass_enters_at_the_next_one():
    service = continuous((Request(0, 0.0, (1,), 3), Request(1, 0.5, (1,), 1)))
    assert (service.served[1].start_s, service.served[1].end_s) == (1, 2)


def test_the_peak_of_the_cache_is_that_of_one_pass():
    held = [{0: Allotment(3, {}, 100, 30)}, {0: Allotment(4, {}, 100, 40), 1: Allotment(1, {}, 60, 10)}, {1: Allotment(2, {}, 60, 20)}]
    steps = tuple(Step(float(at), 1.0, Pass(1, 1, {}, allotted)) for at, allotted in enumerate(held))
    assert Service(2, (), steps).peak_bytes == (160, 50)


# The cost of a pass, percentiles, time lines


def test_a_cost_is_the_measured_one_where_it_was_measured_and_between_elsewhere():
    cost = PassCost(((1, 1.0), (2, 1.2), (4, 2.0)), ((1, 1.0), (4, 1.3), (16, 2.5)))
    assert [cost(rows, rows) for rows in (1, 2, 4)] == pytest.approx([1.0, 1.2, 2.0])
    assert cost(3, 3) == pytest.approx(1.6)
    assert cost(1, 16) == pytest.approx(2.5), "a lone text read is what was measured"
    assert cost(4, 16) == pytest.approx(2.0 + 2.5 - 1.3)
    assert cost(1, 10) == pytest.approx(1.9)


@pytest.mark.parametrize(("share", "expected"), [(0, 1), (0.5, 3), (0.95, 4.8), (1, 5)])
def test_percentiles_are_linear_between_values(share, expected):
    assert percentile([5, 1, 4, 2, 3], share) == pytest.approx(expected)


def test_a_time_line_says_what_each_slot_does_from_0_to_the_end():
    service = static(requests_of(1, 3, 2), slots=2)
    assert timeline(service) == (
        Bar(0, 0, 1, 0, is_reading=True),
        Bar(0, 1, 3, None),
        Bar(0, 3, 4, 2, is_reading=True),
        Bar(0, 4, 5, 2),
        Bar(1, 0, 1, 1, is_reading=True),
        Bar(1, 1, 3, 1),
        Bar(1, 3, 5, None),
    )


@both
def test_a_time_line_has_no_gap_and_no_overlap(policy):
    service = policy(stream(2))
    for slot in range(SLOTS):
        bars = [bar for bar in timeline(service) if bar.slot == slot]
        assert bars[0].start_s == 0 and bars[-1].end_s == service.end_s
        assert [bar.end_s for bar in bars[:-1]] == [bar.start_s for bar in bars[1:]]
