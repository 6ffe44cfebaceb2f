"""The batching lab's tables and charts: they hold the records' numbers, in the units their headings say."""

import pytest

from inference.batching import Alone, Batching, BatchSize, Difference
from inference.charts import batching as charts
from inference.measurement import Spread
from inference.serving import Allotment, Pass, Request, Served, Service, Step

HOSTILE = "<img src=x onerror=alert(1)>"
REQUESTS = (Request(0, 0.0, (1, 2), 2), Request(1, 0.5, (3,), 1))


def held(tokens: int) -> Allotment:
    return Allotment(tokens, {"sliding_attention": 1, "full_attention": 2}, 2**20, 2**18)


SERVICE = Service(
    2,
    (Served(REQUESTS[0], 0, 0.0, 1.0, 3.0, (5, 6)), Served(REQUESTS[1], 1, 1.0, 3.0, 3.0, (7,))),
    (Step(0.0, 1.0, Pass(1, 2, {0: 5}, {0: held(2)})), Step(1.0, 2.0, Pass(2, 2, {0: 6, 1: 7}, {0: held(3), 1: held(1)}))),
)
SLOWER = Service(2, SERVICE.served, (*SERVICE.steps, Step(3.0, 1.0, Pass(1, 1, {}))))
SIZES = (BatchSize(1, Spread(0.1, 0.05, 0.2, 3)), BatchSize(4, Spread(0.2, 0.2, 0.3, 3)))
ALONE = (Alone(0.5, 1.5, (5, 6), (1.0, 1.0)), Alone(0.5, 0.5, (7,), (1.0,)))
RESULT = Batching(SIZES, SIZES, (), REQUESTS, ALONE, SLOWER, SERVICE, SLOWER, SERVICE, 16, 2**22)
SERVICES = {"lots fixes": SLOWER, "lot continu": SERVICE}


def label(token_id: int) -> str:
    return HOSTILE if token_id == 6 else f"t{token_id}"


def text(token_ids: tuple[int, ...]) -> str:
    return "".join(map(label, token_ids))


def test_passes_are_in_ms_beside_as_many_passes_of_one_text():
    table = charts.sizes_table(SIZES)
    assert table["une passe (ms)"].tolist() == [100, 200]
    assert table["la plus longue (ms)"].tolist() == [200, 300]
    assert table["tokens/s, tous ensemble"].tolist() == [10, 20]
    assert table["tokens/s, chacun"].tolist() == [10, 5]
    measured, computed = charts.passes_figure(SIZES).data
    assert list(measured.y) == [100, 200] and list(computed.y) == [100, 400]
    assert list(measured.error_y.array) == pytest.approx([100, 100]) and list(measured.error_y.arrayminus) == pytest.approx([50, 0])
    assert list(charts.throughput_figure(SIZES).data[0].y) == [10, 20]


def test_the_slots_of_both_policies_share_an_axis():
    reading, writing, idle, arrivals = charts.gantt_figure(SERVICES).data
    assert list(zip(reading.y, reading.base, reading.x, strict=True)) == [
        ("lots fixes 1", 0, 1),
        ("lots fixes 2", 1, 2),
        ("lot continu 1", 0, 1),
        ("lot continu 2", 1, 2),
    ]
    assert list(zip(writing.y, writing.base, writing.x, writing.text, strict=True)) == [
        ("lots fixes 1", 1, 2, "1"),
        ("lot continu 1", 1, 2, "1"),
    ]
    assert list(zip(idle.y, idle.base, idle.x, strict=True)) == [("lots fixes 2", 0, 1), ("lot continu 2", 0, 1)]
    assert list(arrivals.x) == [0, 0.5] and list(arrivals.customdata) == [1, 2]


def test_a_request_s_times_are_in_seconds_from_its_arrival():
    table = charts.requests_table(SERVICES, text)
    assert table["service"].tolist() == ["lots fixes"] * 2 + ["lot continu"] * 2
    assert table["TTFT (s)"].tolist() == [1, 2.5] * 2
    assert table["latence (s)"].tolist() == [3, 2.5] * 2
    assert table["texte écrit"].tolist() == [f"t5{HOSTILE}", "t7"] * 2


def test_services_side_by_side():
    table = charts.services_table(SERVICES).set_index("mesure")
    assert table.loc["débit (tokens/s)"].tolist() == [1, 1]
    assert table.loc["latence médiane (s)"].tolist() == [2.75, 2.75]
    assert table.loc["cases inoccupées (%)"].tolist() == [pytest.approx(37.5), pytest.approx(16.67)]
    assert table.loc["passes"].tolist() == [3, 2]


def test_what_a_visitor_pays_is_beside_what_they_would_alone():
    alone, static, continuous = charts.paid_figure(RESULT, SERVICES).data
    assert list(alone.x) == [1.5, 0.5] and list(static.x) == list(continuous.x) == [3, 2.5]
    table = charts.paid_table(RESULT, SERVICES)
    assert table["seule (s)"].tolist() == [1.5, 0.5]
    assert table["lot continu (s)"].tolist() == [3, 2.5]


def test_blocks_are_those_of_all_the_requests_of_a_pass():
    allotted, used = charts.blocks_figure(SERVICE).data
    assert list(allotted.x) == [0, 1, 3] and list(allotted.y) == [1, 2, 0]
    assert list(used.y) == [0.25, 0.5, 0]
    table = charts.blocks_table(SERVICE)
    assert table["passe"].tolist() == [1, 2, 2] and table["demande"].tolist() == [1, 1, 2]
    assert table["blocs, couches pleines"].tolist() == [2] * 3 and table["blocs, couches glissantes"].tolist() == [1] * 3
    assert table["alloué (octets)"].tolist() == [2**20] * 3


def test_texts_that_differ_are_counted_from_1_with_their_margin():
    table = charts.differences_table({"lots fixes": (), "lot continu": (Difference(2, 0, 5, 6, 1e-5),)}, label)
    assert table.iloc[0].tolist() == ["lot continu", 3, 1, "t5", HOSTILE, 1e-5]


def test_a_prediction_s_error_is_relative_to_the_measurement():
    table = charts.predictions_table({"lots fixes": (SERVICE, SLOWER)}).set_index("grandeur")
    assert table.loc["passes"].tolist() == ["lots fixes", 2, 3, 50]
    assert table.loc["débit (tokens/s)", "écart (%)"] == 0
