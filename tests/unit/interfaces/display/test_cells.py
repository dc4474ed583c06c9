"""Digits of noisy values. The law: what is shown covers what is known."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.amounts import CellError
from dpsql.interfaces.display.cells import format_cell, half_width


def cell(value, half, digits="significant"):
    written = format_cell(value, CellError(half / 1.96, float(value) - half, float(value) + half), digits)
    return f"{written.text} ± {written.bar}"


@pytest.mark.parametrize(
    ("value", "half", "shown"),
    [
        (8981, 102, "8980 ± 110"),
        (8981, 10, "8981 ± 10"),
        (8981, 99, "8981 ± 99"),
        (8981, 99.5, "8981 ± 100"),
        (8981, 2.3, "8981 ± 3"),
        (12, 102, "10 ± 110"),
        (-3, 102, "0 ± 110"),
        (123456789, 98765, "123457000 ± 99000"),
        (425.3, 10.2, "425 ± 11"),
        (0.123456, 0.00123, "0.1235 ± 0.0013"),
        (0.5, 0.25, "0.50 ± 0.25"),
        (Decimal("12.30"), 0.001, "12.30 ± 0.01"),
        (Decimal("12345.67"), 123.0, "12350 ± 130"),
        (1e300, 1e299, "1e+300 ± 1e+299"),
        (3.5, 0.0, "3.5 ± 0"),
        (7, 0.0, "7 ± 0"),
    ],
)
def test_significant_digits(value, half, shown):
    assert cell(value, half) == shown


@pytest.mark.parametrize(
    ("value", "half", "shown"),
    [(8981, 101.8, "8981 ± 102"), (425.3123, 10.2, "425.3123 ± 11"), (0.123456, 0.00123, "0.123456 ± 0.0013")],
)
def test_all_digits(value, half, shown):
    assert cell(value, half, "all") == shown


def test_an_interval_that_a_bound_cuts_is_reported_by_its_longer_side():
    assert format_cell(10.0, CellError(45.0, 0.0, 100.0)).bar == "90"


def test_without_an_end():
    endless = CellError(math.inf, -math.inf, math.inf)
    assert format_cell(5, endless).bar == "" and format_cell(math.nan, endless).text == "NaN"
    assert format_cell(5, CellError(1.0, 0.0, math.inf)).bar == "Infinity"
    assert format_cell(None, endless).text == "NULL" and format_cell(True, endless).text == "true"


numbers = st.one_of(
    st.integers(-(10**19), 10**19),
    st.floats(-1e12, 1e12),
    st.decimals(-(10**12), 10**12, places=2),
)


@given(numbers, st.floats(1e-6, 1e12), st.sampled_from(["significant", "all"]))
def test_what_is_shown_covers_what_is_known(value, half, digits):
    error = CellError(half / 1.96, float(value) - half, float(value) + half)
    written = format_cell(value, error, digits)
    width = half_width(value, error)
    shown, known = Decimal(written.text), Decimal(repr(value) if isinstance(value, float) else value)
    hair = Decimal(width) * Decimal("1e-11")
    assert Decimal(written.bar) + hair >= Decimal(width) + abs(shown - known)
    # And not by much: at most a step of the second digit, and the value's own rounding.
    assert Decimal(written.bar) <= Decimal(width) * Decimal("1.16") + 1


@pytest.mark.parametrize(
    ("value", "half", "shown"),
    [
        (22_063, 1_997.0, ("22063", "2000")),
        (22_063, 2_000.0, ("22063", "2000")),
        (22_063, 1_940.0, ("22100", "2000")),
        (22_063, 2_001.0, ("22100", "2100")),
        (22_063.456789, 1_997.0, ("22063", "2000")),
        (12.3456, 0.2, ("12.35", "0.21")),
    ],
)
def test_an_error_that_was_asked_for_is_shown_as_it_was(value: float, half: float, shown: tuple[str, str]) -> None:
    """A rounded value widens its bar; where that would show 2100 for 2000, the value keeps its digits."""
    cell = format_cell(value, CellError(half / 1.96, value - half, value + half))
    assert (cell.text, cell.bar) == shown
    assert abs(float(cell.text) - value) + half <= float(cell.bar)
