"""The labs' tables and charts: they hold the records' numbers, in the units their headings say, and show hostile tokens as text."""

import numpy as np
import pandas as pd
import pytest

from inference.charts import forward_pass as forward_charts
from inference.charts import memory_floor as floor_charts
from inference.charts import precisions as precision_charts
from inference.charts import prefill_decode as prefill_charts
from inference.decode_floor import DecodeFloor
from inference.forward_pass import ForwardPass, Neighbours, Reading
from inference.measurement import Spread
from inference.memory_floor import Hardware, Source
from inference.models.base import Architecture
from inference.precisions import Precision
from inference.prefill_decode import Generation, LengthTiming
from inference.records import Scores

HOSTILE = "<img src=x onerror=alert(1)>"
SHAPE = Architecture(layers=2, sliding_layers=1, window=5, query_heads=4, kv_heads=1, head_size=8, element_bytes=4)


def spread(seconds: float) -> Spread:
    return Spread(seconds, seconds / 2, seconds * 2, 3)


TIMINGS = (LengthTiming(4, spread(0.2), spread(0.1), 512), LengthTiming(8, spread(0.3), spread(0.11), 768))


def reading(top_ids: tuple[int, ...], rank: int) -> Reading:
    return Reading(top_ids, (0.6, 0.3), 1.2, 0.6 if rank == 1 else 0.1, rank)


def passage() -> ForwardPass:
    attentions = np.zeros((1, 1, 2, 2), np.float32)
    attentions[0, 0] = [[1, 0], [0.25, 0.75]]
    return ForwardPass(
        token_ids=(2, 7),
        embedding_norms=np.array([1.0, 2.0], np.float32),
        neighbours=(Neighbours((3,), (0.5,)), Neighbours((4,), (0.25,))),
        layer_types=("full",),
        window=None,
        attentions=attentions,
        position=1,
        lens=(reading((3, 4), 5), reading((4, 3), 1)),
        logits=np.arange(5, dtype=np.float32),
    )


def label(token_id: int) -> str:
    return HOSTILE if token_id in (4, 7) else f"t{token_id}"


def test_timings_are_in_ms_with_their_spread():
    table = prefill_charts.timings_table(TIMINGS)
    assert table["tokens"].tolist() == [4, 8]
    assert table["TTFT (ms)"].tolist() == [200, 300]
    assert table["TTFT, le plus court (ms)"].tolist() == [100, 150]
    assert table["décodage, le plus long (ms)"].tolist() == [200, 220]
    assert table["tokens lus/s"].tolist() == [20, pytest.approx(26.7)]
    figure = prefill_charts.timings_figure(TIMINGS)
    assert list(figure.data[0].y) == [200, 300]
    assert list(figure.data[0].error_y.array) == [200, 300] and list(figure.data[0].error_y.arrayminus) == [100, 150]


def test_a_time_line_has_as_many_ms_as_the_text_took():
    generation = Generation(4, (0.2, 0.1, 0.1), (0.2, 0.21, 0.22))
    figure = prefill_charts.generation_figure(generation)
    assert [sum(bar.x[row] for bar in figure.data) for row in range(2)] == [pytest.approx(630), pytest.approx(400)]
    assert prefill_charts.generation_table(generation)["sans cache (ms)"].tolist() == [200, 210, 220]


def test_cache_formulas_by_hand():
    table = prefill_charts.cache_table(TIMINGS, SHAPE)
    assert table["calcul des manuels (octets)"].tolist() == [2 * 2 * 4 * 8 * 4 * 4, 2 * 2 * 4 * 8 * 4 * 8]
    assert table["calcul exact (octets)"].tolist() == [2 * 8 * 4 * (4 + 4), 2 * 8 * 4 * (8 + 4)]
    assert table["mesuré (octets)"].tolist() == [512, 768]


def test_floor_line_and_hardware():
    result = DecodeFloor(10**9, spread(0.1), 2 * 10**9, spread(0.3), (0.1, 0.05), (0.3, 0.4))
    figure = floor_charts.floor_figure(result)
    assert list(figure.data[1].y) == [pytest.approx(100), pytest.approx(100)]  # 2 Go at 1 Go in 50 ms
    assert floor_charts.rounds_table(result)["débit (Go/s)"].tolist() == [10, 20]
    machine = Hardware("M", 1e12, None, None, Source("S", "https://example.org"))
    assert floor_charts.hardware_table((machine,), 5e9)["plancher (ms/token)"].tolist() == [5]


def test_attention_hides_what_a_token_cannot_see_and_escapes_names():
    figure = forward_charts.attention_figure(passage(), 0, 0, label)
    assert list(figure.data[0].z[0]) == [1.0, None]
    assert list(figure.data[0].z[1]) == [0.25, 0.75]
    assert "<img" not in " ".join(figure.data[0].x)
    assert forward_charts.attention_table(passage(), 0, 0, label)["attention"].tolist() == [1.0, 0.25, 0.75]


def test_lens_frames_the_final_favourite_wherever_it_shows():
    figure = forward_charts.lens_figure(passage(), label)
    assert [(shape.x0, shape.y0) for shape in figure.layout.shapes] == [(0.51, -0.47), (-0.49, 0.53)]
    assert "<img" not in " ".join(text for row in figure.data[0].text for text in row)
    assert forward_charts.lens_table(passage(), label)["rang du favori final"].tolist() == [5, 1]
    assert list(forward_charts.rank_figure(passage()).data[0].y) == [5, 1]


def precision(name: str, size: int, kl: float) -> Precision:
    scores = Scores(np.log(np.array([0.5, 0.3, 0.2], np.float32)))
    return Precision(name, size, None, 0.5, spread(0.1), spread(0.2), 0.05, np.full(4, kl), np.array([1, 1, 1, 0], bool), (scores,))


def test_precisions_side_by_side():
    both = (precision("float32", 2**21, 0.0), precision("int8", 2**20, 0.1))
    table = precision_charts.precisions_table(both)
    assert table["poids (Mio)"].tolist() == [2, 1]
    assert table["même favori (%)"].tolist() == [75, 75]
    assert list(precision_charts.cost_figure(both).data[0].y) == [pytest.approx(0.1)]
    pair = ("float32", "int8")
    frame = precision_charts.side_by_side_table(pair, (both[0].examples[0], both[1].examples[0]), label)
    assert frame["float32"].tolist() == [pytest.approx(0.5), pytest.approx(0.3), pytest.approx(0.2)]
    assert len(precision_charts.side_by_side_figure(pair, frame).data) == 2
    same = precision_charts.side_by_side_table(("int8", "int8"), (both[1].examples[0],) * 2, label)
    assert len(precision_charts.side_by_side_figure(("int8", "int8"), same).data) == 1
    hostile = pd.DataFrame({"token": [HOSTILE], "float32": [0.5], "int8": [0.4]})
    assert "<img" not in " ".join(precision_charts.side_by_side_figure(pair, hostile).layout.yaxis.ticktext)
