"""The floor of a decode step, against divisions one can do by hand and against those other people published."""

import json
import math
from pathlib import Path

import pytest

from inference.memory_floor import (
    Hardware,
    ModelSize,
    Published,
    Source,
    achieved_bytes_per_s,
    critical_batch_size,
    floor_s,
    mbu,
    read_presets,
    weights_read_bytes,
)

PATH = Path(__file__).parents[2] / "assets" / "hardware.json"
PRESETS = read_presets(PATH)
EVERY_PRESET = [*PRESETS.hardware, *PRESETS.models, *PRESETS.published]
SOURCE = Source("Nous", "https://example.org")
NOT_POSITIVE = [0, -1, math.nan, math.inf, None, "3", True]


def hardware(name: str) -> Hardware:
    return next(machine for machine in PRESETS.hardware if machine.name == name)


@pytest.mark.parametrize(
    ("parameters", "bits", "active_share", "size"),
    [
        (70e9, 16, 1, 140e9),
        (70e9, 4, 1, 35e9),
        (8e9, 4.5, 1, 4.5e9),
        (100e9, 8, 0.1, 10e9),
        (1, 8, 1, 1),
    ],
)
def test_bytes_read(parameters, bits, active_share, size):
    assert weights_read_bytes(parameters, bits, active_share) == pytest.approx(size)


@pytest.mark.parametrize(
    ("parameters", "bits", "machine", "floor_ms"),
    [
        (70e9, 16, "H100 SXM", 42),  # 140 / 3.35 = 41.8
        (70e9, 4, "H100 SXM", 10),  # 35 / 3.35 = 10.4
        (70e9, 4, "Mac, M4 Max (GPU à 40 cœurs)", 64),  # 35 / 0.546 = 64.1
        (70e9, 4, "Mac, M3 Ultra", 43),  # 35 / 0.819 = 42.7
        (8e9, 8, "Raspberry Pi 5", 471),  # 8 / 0.017 = 470.6
    ],
)
def test_floor_of_a_preset(parameters, bits, machine, floor_ms):
    assert round(1000 * floor_s(weights_read_bytes(parameters, bits), hardware(machine).bandwidth_bytes_per_s)) == floor_ms


@pytest.mark.parametrize("example", PRESETS.published, ids=lambda example: example.source.label)
def test_published_floor_is_found_again(example):
    floor = floor_s(weights_read_bytes(example.parameters, example.bits), example.bandwidth_bytes_per_s)
    assert round(1000 * floor) == round(1000 * example.floor_s, 9)


def test_quantizing_divides_the_floor_as_it_divides_the_bits():
    assert floor_s(weights_read_bytes(7e9, 16), 1e12) == 4 * floor_s(weights_read_bytes(7e9, 4), 1e12)


@pytest.mark.parametrize(
    ("bytes_read", "step_s", "bandwidth", "achieved", "utilization"),
    [
        (14e9, 0.014, 2e12, 1e12, 0.5),  # Databricks' own example
        (14e9, 0.007, 2e12, 2e12, 1),
        (1e9, 0.1, 40e9, 10e9, 0.25),
    ],
)
def test_achieved_bandwidth_and_its_share_of_the_peak(bytes_read, step_s, bandwidth, achieved, utilization):
    assert achieved_bytes_per_s(bytes_read, step_s) == pytest.approx(achieved)
    assert mbu(bytes_read, step_s, bandwidth) == pytest.approx(utilization)
    assert mbu(bytes_read, step_s, bandwidth) == pytest.approx(floor_s(bytes_read, bandwidth) / step_s)


@pytest.mark.parametrize(
    ("bandwidth", "flops", "bits", "batch_size"),
    [
        (3.35e12, 989e12, 16, 295),  # 989 / 3.35 = 295.2
        (3.35e12, 989e12, 8, 148),  # half the bytes, the same computing
        (1.5e12, 312e12, 16, 208),  # kipply's A100 40 GB
        (1e12, 1e12, 16, 1),
    ],
)
def test_critical_batch_size_of_a_dense_model_depends_on_the_machine_and_the_bits_alone(bandwidth, flops, bits, batch_size):
    machine = Hardware("", bandwidth, flops, "bf16", SOURCE)
    for parameters in (270e6, 70e9):
        assert round(critical_batch_size(weights_read_bytes(parameters, bits), parameters, machine)) == batch_size


def test_at_the_critical_batch_size_reading_takes_as_long_as_computing():
    h100, read = hardware("H100 SXM"), weights_read_bytes(70e9, 16)
    batch_size = critical_batch_size(read, 70e9, h100)
    assert batch_size * 2 * 70e9 / h100.flops_per_s == pytest.approx(floor_s(read, h100.bandwidth_bytes_per_s))


def test_critical_batch_size_is_unknown_without_peak_flops():
    assert critical_batch_size(140e9, 70e9, hardware("Raspberry Pi 5")) is None


def test_a_mixture_of_experts_reads_one_token_s_share_alone_and_everything_in_a_large_batch():
    model = next(model for model in PRESETS.models if model.name == "DeepSeek-V3")
    alone = weights_read_bytes(model.parameters, 8, model.active_share)
    everything = weights_read_bytes(model.parameters, 8)
    assert alone == pytest.approx(37e9)
    assert everything == 671e9
    one_share, all_experts = (critical_batch_size(read, 37e9, hardware("H100 SXM")) for read in (alone, everything))
    assert all_experts / one_share == pytest.approx(671 / 37)


@pytest.mark.parametrize("preset", EVERY_PRESET, ids=lambda preset: preset.name)
def test_every_preset_has_a_name_and_a_source(preset):
    assert preset.name
    assert preset.source.label
    assert preset.source.url.startswith("https://")


def test_presets_are_told_apart_by_their_names():
    for section in (PRESETS.hardware, PRESETS.models, PRESETS.published):
        assert len({preset.name for preset in section}) == len(section)


@pytest.mark.parametrize("bad", NOT_POSITIVE)
@pytest.mark.parametrize(
    "call",
    [
        lambda bad: weights_read_bytes(bad, 16),
        lambda bad: weights_read_bytes(7e9, bad),
        lambda bad: floor_s(bad, 1e12),
        lambda bad: floor_s(14e9, bad),
        lambda bad: achieved_bytes_per_s(bad, 0.014),
        lambda bad: achieved_bytes_per_s(14e9, bad),
        lambda bad: mbu(14e9, 0.014, bad),
        lambda bad: critical_batch_size(bad, 7e9, hardware("H100 SXM")),
        lambda bad: critical_batch_size(14e9, bad, hardware("H100 SXM")),
        lambda bad: Hardware("", bad, None, None, SOURCE),
        lambda bad: Hardware("", 1e12, bad, "bf16", SOURCE),
        lambda bad: ModelSize("", bad, 1, SOURCE),
        lambda bad: ModelSize("", 7e9, bad, SOURCE),
        lambda bad: Published("", 7e9, 16, 1e12, bad, "", SOURCE),
    ],
)
def test_what_is_not_positive_is_refused(call, bad):
    with pytest.raises(ValueError):
        call(bad)


@pytest.mark.parametrize(
    "call",
    [
        lambda: weights_read_bytes(7e9, 16, 0),
        lambda: weights_read_bytes(7e9, 16, 1.01),
        lambda: ModelSize("", 7e9, 8e9, SOURCE),
        lambda: Hardware("", 1e12, 1e15, None, SOURCE),
        lambda: Hardware("", 1e12, None, "bf16", SOURCE),
        lambda: Source("", "https://example.org"),
        lambda: Source("Nous", "http://example.org"),
        lambda: Source("Nous", ""),
    ],
)
def test_what_cannot_be_is_refused(call):
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize(("key", "bad"), [("bandwidth_bytes_per_s", 0), ("source", {"label": "Nous", "url": "javascript:alert(1)"})])
def test_a_file_with_a_bad_value_is_refused(tmp_path, key, bad):
    file = json.loads(PATH.read_text(encoding="utf-8"))
    file["hardware"][0][key] = bad
    path = tmp_path / "hardware.json"
    path.write_text(json.dumps(file), encoding="utf-8")
    with pytest.raises(ValueError):
        read_presets(path)
