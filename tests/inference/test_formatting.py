"""Numbers as French readers expect them, and never a rounding that lies."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.formatting import count, dollars, french, gigabytes, mebibytes, milliseconds, number, percent, plural

SPACE = "\u202f"


@pytest.mark.parametrize(
    ("probability", "shown"),
    [
        (0, "0_%"),
        (1, "100_%"),
        (0.0, "0_%"),
        (1.0, "100_%"),
        (0.5, "50,0_%"),
        (0.229, "22,9_%"),
        (0.1, "10,0_%"),
        (0.0999, "9,99_%"),
        (0.09999, "10,0_%"),
        (0.0221, "2,21_%"),
        (0.01, "1,00_%"),
        (0.005, "0,50_%"),
        (0.0009, "0,09_%"),
        (0.0002, "0,02_%"),
        (1e-4, "0,01_%"),
        (9.9e-5, "<_0,01_%"),
        (1e-12, "<_0,01_%"),
        (5e-324, "<_0,01_%"),
        (0.99, "99,0_%"),
        (0.9985, "99,9_%"),
        (0.9994, "99,9_%"),
        (0.9995, ">_99,9_%"),
        (0.99951, ">_99,9_%"),
        (0.9999999, ">_99,9_%"),
        (math.nextafter(1, 0), ">_99,9_%"),
    ],
)
def test_percent(probability, shown):
    assert percent(probability) == shown.replace("_", SPACE)


def exact_value(shown: str) -> float:
    return float(shown.removesuffix(f"{SPACE}%").replace(",", ".")) / 100


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_percent_never_rounds_to_nothing_or_to_everything_and_is_right_to_half_a_digit(probability):
    shown = percent(probability)
    if shown.startswith("<"):
        assert probability < 1e-4
    elif shown.startswith(">"):
        assert probability > 0.999
    else:
        assert 0 < exact_value(shown) < 1
        half_a_digit = 5e-5 if len(shown.split(",")[1]) == 4 else 5e-4
        assert abs(exact_value(shown) - probability) <= half_a_digit * (1 + 1e-9)


@given(st.floats(0, 1), st.floats(0, 1))
def test_percent_keeps_the_order_of_probabilities(one, other):
    low, high = sorted((one, other))
    rank = {"<": 1e-5, ">": 0.9999}
    shown = [percent(value) for value in (low, high)]
    values = [rank[text[0]] if text[0] in rank else exact_value(text) for text in shown]
    assert values[0] <= values[1]


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (12.34, 2, "12,34"),
        (-3.5, 1, "\u22123,5"),
        (262144, 0, f"262{SPACE}144"),
        (1234567.891, 2, f"1{SPACE}234{SPACE}567,89"),
        (-1234.5, 1, f"\u22121{SPACE}234,5"),
        (999, 0, "999"),
        (0, 2, "0,00"),
        (-0.0, 2, "0,00"),
        (-0.001, 2, "0,00"),
        (-0.005001, 2, "\u22120,01"),
        (math.inf, 2, "∞"),
        (-math.inf, 2, "\u2212∞"),
    ],
)
def test_number(value, digits, shown):
    assert number(value, digits) == shown


@pytest.mark.parametrize(("value", "shown"), [(0, "0"), (999, "999"), (1000, f"1{SPACE}000"), (262_144, f"262{SPACE}144")])
def test_count(value, shown):
    assert count(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0 token"), (1, "1 token"), (2, "2 tokens"), (262_144, f"262{SPACE}144 tokens"), (-1, "\u22121 token")]
)
def test_plural_begins_at_two(value, shown):
    assert plural(value, "token") == shown


@pytest.mark.parametrize(("value", "shown"), [(1, "1 choix"), (3, "3 choix")])
def test_plural_of_a_word_that_takes_no_s(value, shown):
    assert plural(value, "choix", "choix") == shown


def test_our_prose_gets_narrow_spaces_that_do_not_break():
    assert french("Il dit : « oui ! » à 5 %.") == "Il dit\u202f: «\u202foui\u202f!\u202f» à 5\u202f%."


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.00853, "8,53\u202fms"),
        (0.001, "1,00\u202fms"),
        (0.00999, "9,99\u202fms"),
        (0.01, "10,0\u202fms"),
        (0.0924, "92,4\u202fms"),
        (0.09994, "99,9\u202fms"),
        (0.1, "100\u202fms"),
        (0.9, "900\u202fms"),
        (1.84, f"1{SPACE}840\u202fms"),
        (0.0001491, "0,149\u202fms"),
        (0.0000405, "0,0405\u202fms"),
    ],
)
def test_milliseconds_have_three_digits_that_count(seconds, shown):
    assert milliseconds(seconds) == shown


@given(st.floats(1e-3, 1e3))
def test_milliseconds_are_right_to_half_a_percent(seconds):
    shown = float(milliseconds(seconds).removesuffix("\u202fms").replace(SPACE, "").replace(",", ".")) / 1e3
    assert shown == pytest.approx(seconds, rel=0.00501)


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0,0\u202fMio"),
        (2**20, "1,0\u202fMio"),
        (21 * 2**20, "21,0\u202fMio"),
        (1.25 * 2**20 + 1, "1,3\u202fMio"),
        (999.9 * 2**20, "999,9\u202fMio"),
        (1000 * 2**20, f"1{SPACE}000\u202fMio"),
        (2**30, f"1{SPACE}024\u202fMio"),
    ],
)
def test_mebibytes(size, shown):
    assert mebibytes(size) == shown


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (140e9, "140\u202fGo"),
        (0.54e9, "0,54\u202fGo"),
        (4.5e9, "4,50\u202fGo"),
        (17.1e9, "17,1\u202fGo"),
        (999e9, "999\u202fGo"),
        (1e12, "1,00\u202fTo"),
        (3.35e12, "3,35\u202fTo"),
    ],
)
def test_gigabytes(size, shown):
    assert gigabytes(size) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0_$"),
        (0.00123, "0,00123_$"),
        (0.06, "0,0600_$"),
        (0.718, "0,718_$"),
        (1, "1,00_$"),
        (12.3, "12,30_$"),
        (1234.5, "1_234,50_$"),
    ],
)
def test_dollars(value, shown):
    assert dollars(value) == shown.replace("_", SPACE)
