"""Proposals from data: rounded outward, and rare values left out; norms by what is lost and what is noise."""

from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql import types as t
from dpsql.owner.draft.suggestions import (
    MIN_STEPS,
    count_clipped_units,
    count_lost_rows,
    find_best_norm,
    histogram_quantile,
    norms_to_show,
    propose_bounds,
    round_outward,
    round_up,
    step_below,
)
from dpsql.owner.introspect.statistics import ColumnFacts

NUMBERS = st.fractions(-(10**9), 10**9, max_denominator=1000)
HISTOGRAMS = st.dictionaries(st.integers(1, 300), st.integers(1, 50), min_size=1)


def facts(low, high):
    return ColumnFacts(10, 10, low=low, high=high)


@given(NUMBERS, NUMBERS)
def test_bounds_hold_what_they_are_proposed_for_and_not_much_more(a, b):
    low, high = min(a, b), max(a, b)
    below, above = round_outward(low, high)
    assert below <= low and high <= above and below < above
    if high - low > 0:
        reach = max(high - low, F(0))
        assert above - high <= reach / MIN_STEPS and (low - below <= reach / MIN_STEPS or below == 0)


@given(st.fractions(F(1, 1000), 10**9))
def test_a_step_is_one_two_or_five(width):
    step = step_below(width)
    assert step <= width < 5 * step / 2 + step * 3
    digits = f"{float(step):e}"
    assert digits[0] in "125"


@given(st.integers(1, 10**9))
def test_nice_numbers_are_above(number):
    assert number <= round_up(number) <= 5 * number


@pytest.mark.parametrize(
    ("type_", "low", "high", "bounds"),
    [
        (t.INTEGER, 19.0, 93.0, ("0", "100")),
        (t.INTEGER, 39.0, 93.0, ("30", "100")),
        (t.SMALLINT, 1.0, 32_760.0, ("0", "32767")),
        (t.decimal_type(10, 2), 0.25, 0.75, ("0.2", "0.8")),
        (t.decimal_type(10, 0), 0.25, 0.75, None),
        (t.DOUBLE, 20.0, 1900.0, ("0", "2000")),
        (t.DATE, 18_628.0, 20_400.0, ("2021-01-01", "2025-11-30")),
        (t.DATE, 7_305.0, 20_400.0, ("1990-01-01", "2025-12-31")),
        (t.DATE, 19_675.0, 19_678.0, ("2023-11-14", "2023-11-17")),
        (t.TIMESTAMP, 20_000 * 86_400e6, 20_400 * 86_400e6, ("2024-10-01", "2025-12-01")),
        (t.TIMESTAMP, 19_675 * 86_400e6, 19_692 * 86_400e6, ("2023-11-14", "2023-12-01 23:59:59.999999")),
        (t.TIMESTAMP, 19_675 * 86_400e6, 19_691 * 86_400e6, ("2023-11-14", "2023-12-01")),
        (t.TIMESTAMP, 1.7e15, 1.7e15 + 3 * 86_400e6, ("2023-11-14", "2023-11-17 23:59:59.999999")),
        (t.TIMESTAMP, -1e18, 1e18, None),
        (t.DOUBLE, None, None, None),
    ],
)
def test_bounds_fit_the_type(type_, low, high, bounds):
    assert propose_bounds(facts(low, high), type_) == bounds


@given(HISTOGRAMS, st.integers(1, 310))
def test_what_a_norm_loses(histogram, norm):
    units = [n for n, count in histogram.items() for _ in range(count)]
    assert count_lost_rows(histogram, norm) == sum(max(0, n - norm) for n in units)
    assert count_clipped_units(histogram, norm) == sum(n > norm for n in units)


@given(HISTOGRAMS, st.fractions(0, 1))
def test_a_rank_covers_its_share(histogram, share):
    units = sum(histogram.values())
    assert count_clipped_units(histogram, histogram_quantile(histogram, share)) <= units - share * units


@given(HISTOGRAMS, st.floats(0.01, 1000))
def test_the_best_norm_is_better_than_those_beside_it(histogram, noise):
    best = find_best_norm(histogram, noise)

    def error(norm):
        return count_lost_rows(histogram, norm) + noise * norm

    assert all(error(best) <= error(norm) * (1 + 1e-9) for norm in range(1, min(20, max(histogram)) + 1))
    assert best in {*norms_to_show(histogram, 10**6, noise)}


def test_more_noise_leads_to_a_smaller_norm():
    histogram = {1: 900, 5: 90, 50: 10}
    assert (
        find_best_norm(histogram, 1.0) == 50
        and find_best_norm(histogram, 60.0) == 5
        and find_best_norm(histogram, 200.0) == 1
    )


@pytest.mark.parametrize(
    ("name", "type_", "low", "high", "bounds"),
    [
        ("year", t.BIGINT, 2013.0, 2013.0, ("2010", "2020")),
        ("birth_year", t.INTEGER, 1931.0, 2006.0, ("1930", "2010")),
        ("day_of_year", t.INTEGER, 1.0, 365.0, ("0", "400")),
        ("year", t.DOUBLE, 0.5, 2.5, ("0", "2.6")),
        ("day", t.BIGINT, 1.0, 28.0, ("1", "31")),
        ("month", t.BIGINT, 6.0, 6.0, ("1", "12")),
        ("month", t.BIGINT, 0.0, 60.0, ("0", "60")),
        ("hour", t.SMALLINT, 5.0, 23.0, ("0", "23")),
        ("age", t.INTEGER, 19.0, 119.0, ("0", "120")),
        ("age", t.INTEGER, 19.0, 130.0, ("0", "140")),
        ("percent", t.DOUBLE, 0.01, 0.99, ("0", "1")),
        ("lat", t.DOUBLE, -89.0, 89.9, ("-90", "90")),
    ],
)
def test_parts_of_calendars_have_their_usual_bounds(name, type_, low, high, bounds):
    assert propose_bounds(facts(low, high), type_, name) == bounds
