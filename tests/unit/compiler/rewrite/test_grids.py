"""Grids: fine enough under any noise, coarse enough for 64 bits, and bounds that only move inward."""

from decimal import Decimal
from fractions import Fraction

import pytest

from dpsql.compiler.plan.expressions import Column, Quantise
from dpsql.compiler.rewrite.grids import MAX_STEPS, STEP_BITS, quantize_arg
from dpsql.errors import UnboundedValues
from dpsql.schema.model import Domain
from dpsql.types import BIGINT, DOUBLE, INTEGER, Type, decimal_type


def chosen(lower: object, upper: object, type_: Type = DOUBLE, declared: Fraction | None = None) -> Quantise:
    domain = Domain(type_, True, Fraction(str(lower)), Fraction(str(upper)))
    return quantize_arg(Column("x", type_), domain, declared)


def test_whole_numbers_count_themselves() -> None:
    assert chosen(-3, 14, INTEGER) == Quantise(Column("x", INTEGER), Fraction(1), -3, 14)


def test_decimals_count_their_last_digit() -> None:
    value = chosen(Decimal("-1.25"), 100, decimal_type(10, 2))
    assert (value.grid, value.lower, value.upper) == (Fraction(1, 100), -125, 10_000)


def test_a_declared_grid_is_used_and_bounds_move_inward_to_it() -> None:
    value = chosen("0.1", "9.9", DOUBLE, Fraction(1, 2))
    assert (value.grid, value.lower, value.upper) == (Fraction(1, 2), 1, 19)


def test_bounds_between_two_steps_become_one_step() -> None:
    value = chosen("0.6", "0.9", DOUBLE, Fraction(1))
    assert value.lower == value.upper == 1


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(0, 1), (-1, 1), ("1e-30", "2e-30"), ("-1e-300", "1e-300"), (0, "1e100"), (10**9, 10**9 + 1), (-1, 10**17)],
)
def test_doubles_get_a_power_of_two_that_64_bits_hold(lower: object, upper: object) -> None:
    value = chosen(lower, upper)
    grid = value.grid
    assert grid.numerator & (grid.numerator - 1) == 0 and grid.denominator & (grid.denominator - 1) == 0
    assert max(abs(value.lower), abs(value.upper)) <= MAX_STEPS
    low, high = Fraction(str(lower)), Fraction(str(upper))
    spread, largest = high - low, max(abs(low), abs(high))
    # At least 2^FINE steps over the range, or nearly all that 64 bits have room for beside an offset.
    assert spread < grid or spread / grid >= 1 << STEP_BITS or largest / grid >= 1 << 42


@pytest.mark.parametrize(("lower", "upper"), [(0, 1), (-1, 1), (10**9, 10**9 + 1), (0, "1e100")])
def test_a_grid_never_widens_the_domain(lower: object, upper: object) -> None:
    value = chosen(lower, upper)
    assert Fraction(str(lower)) <= value.lower * value.grid and value.upper * value.grid <= Fraction(str(upper))


def test_whole_numbers_past_the_limit_get_a_coarser_grid() -> None:
    value = chosen(0, 2**60, BIGINT)
    assert value.grid > 1 and value.upper * value.grid <= 2**60 and value.upper <= MAX_STEPS


def test_a_declared_grid_that_is_too_fine_is_not_used() -> None:
    value = chosen(0, 10**9, DOUBLE, Fraction(1, 10**9))
    assert value.grid > Fraction(1, 10**9) and value.upper <= MAX_STEPS


@pytest.mark.parametrize(("lower", "upper"), [(0, "1.000001e100"), ("-1e101", 0), ("-1e300", "1e300")])
def test_bounds_whose_square_is_no_double_are_refused(lower: object, upper: object) -> None:
    with pytest.raises(UnboundedValues, match="beyond 1e100"):
        chosen(lower, upper)
