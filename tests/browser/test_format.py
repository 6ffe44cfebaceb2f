"""The browser writes every number exactly as Python does."""

import math

import numpy as np
import pytest

from inference.formatting import count, decimal, french, number, percent, plural

HALVES = (14.125, 0.5, 2.5, 12.25, 0.125, 0.375, 1.5, 3.5, 0.03125, 0.0078125, 2**-13, 3 * 2**-13, 2.0**45 + 0.125, 2.0**45 + 0.375)
"""Values half-way between two roundings, which a binary number holds exactly."""
THRESHOLDS = (0.0, 1e-4, 0.09995, 0.0999499999, 0.0995, 0.9985, 0.9994, 0.9995, 0.99949999999, 1.0)
"""Around which `percent` changes its mind."""


def neighbours(values) -> list[float]:
    """Each value, with the numbers right below and above it."""
    return [near for value in values for near in (math.nextafter(value, -math.inf), value, math.nextafter(value, math.inf))]


def probabilities() -> list[float]:
    generator = np.random.default_rng(1)
    return [
        *neighbours(THRESHOLDS[1:]),
        0.0,
        5e-324,
        *(10 ** generator.uniform(-20, 0, 2_000)),
        *generator.uniform(0, 1, 2_000),
        *(1 - 10 ** generator.uniform(-17, -1, 500)),
        *(np.arange(1, 2_000) / 2_000),
        *(np.arange(1, 4_096) / 4_096),
        *neighbours(np.arange(1, 400) / 400 + 0.00125),
    ]


def numbers() -> list[float]:
    generator = np.random.default_rng(2)
    sizes = [
        *neighbours(HALVES),
        *neighbours((0.001, 0.005, 0.05, 0.995, 9.995, 99.95, 999.5, 999.95, 999.995, 999_999.5)),
        *(10 ** generator.uniform(-8, 16, 2_000)),
        *generator.uniform(0, 40, 2_000),
        *(np.arange(4_000) / 64),
        *generator.uniform(0, 40, 500).astype(np.float32).astype(float),
        1e20,
        1e21,
        math.nextafter(1e21, 0),
        1.2345e25,
        1e300,
        5e-324,
        0.0,
        math.inf,
    ]
    return [*sizes, *(-size for size in sizes)]


def settings() -> list[float]:
    generator = np.random.default_rng(3)
    return [
        *(np.arange(2_001) / 1_000),
        *(np.arange(2_000) * 1e-6),
        *(np.arange(1, 500) * 2**-13),
        *generator.uniform(0, 2, 1_000),
        *(10 ** generator.uniform(-13, 6, 500)),
        1e6,
        300_000.0,
    ]


def in_browser(page, call: str, values: list) -> list[str]:
    return page.evaluate(f"(values) => values.map((value) => {call})", [float(value) for value in values])


def differences(values: list, there: list[str], here: list[str]) -> list[tuple]:
    return [each for each in zip(values, there, here, strict=True) if each[1] != each[2]]


def test_percentages_are_written_alike(bench_scripts):
    values = probabilities()
    assert differences(values, in_browser(bench_scripts, "percent(value)", values), [percent(value) for value in values]) == []


@pytest.mark.parametrize("digits", range(5))
def test_numbers_are_written_alike(bench_scripts, digits):
    values = numbers()
    there = in_browser(bench_scripts, f"number(value, {digits})", values)
    assert differences(values, there, [number(float(value), digits) for value in values]) == []


def test_a_number_halfway_goes_to_the_even_one(bench_scripts):
    """Not toFixed's rule: of 14.125 it makes 14.13."""
    assert in_browser(bench_scripts, "number(value, 2)", [14.125, 14.135, 0.375, -0.125]) == ["14,12", "14,13", "0,38", "\u22120,12"]
    assert in_browser(bench_scripts, "number(value, 0)", [0.5, 1.5, 2.5]) == ["0", "2", "2"]


def test_settings_are_written_alike(bench_scripts):
    values = settings()
    assert differences(values, in_browser(bench_scripts, "decimal(value)", values), [decimal(float(value)) for value in values]) == []


def test_counts_and_plurals_are_written_alike(bench_scripts):
    values = [*range(-3, 1_100), 9_999, 10_000, 262_144, 999_999, 1_000_000, 2**53 - 1]
    assert differences(values, in_browser(bench_scripts, "count(value)", values), list(map(count, values))) == []
    there = in_browser(bench_scripts, 'plural(value, "autre")', values)
    assert differences(values, there, [plural(value, "autre") for value in values]) == []
    there = in_browser(bench_scripts, 'plural(value, "choix", "choix")', values)
    assert differences(values, there, [plural(value, "choix", "choix") for value in values]) == []


def test_french_spaces_are_written_alike(bench_scripts):
    generator = np.random.default_rng(4)
    texts = ["".join(generator.choice(list(" ;:!?»«%a\n\u202f"), size)) for size in generator.integers(0, 30, 2_000)]
    texts.append("Il dit : « oui ! » à 5 % ; n’est-ce pas ?")
    there = bench_scripts.evaluate("(texts) => texts.map(french)", texts)
    assert differences(texts, there, list(map(french, texts))) == []
