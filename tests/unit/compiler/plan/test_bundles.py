"""Bundles: no row of any value is larger than its bundle says, and some row is as large."""

from fractions import Fraction
from itertools import product

import pytest

from dpsql.compiler.plan.bundles import (
    MAX_WIDTH,
    Bundle,
    CountBundle,
    CovarianceBundle,
    MomentBundle,
    SumBundle,
    VarianceBundle,
)
from dpsql.compiler.plan.expressions import Column, Quantise
from dpsql.types import BIGINT

X, Y = Column("x", BIGINT), Column("y", BIGINT)
SIX = ("rest", "aa", "a", "b", "bb", "ab")
BOUNDS = [(0, 1), (-1, 1), (-7, 3), (5, 17), (-9, -2), (0, 40)]


def value(lower: int, upper: int, column: Column = X) -> Quantise:
    return Quantise(column, Fraction(1), lower, upper)


def one_row(bundle: Bundle, values: tuple[int | None, ...]) -> tuple[int, ...]:
    """What the definition says that a row adds to the cells, computed apart from the SQL."""
    if isinstance(bundle, CountBundle):
        return (1,)
    if None in values and not isinstance(bundle, MomentBundle):
        return (0,) * len(bundle.cells)
    if isinstance(bundle, SumBundle):
        return (values[0] or 0,)
    if isinstance(bundle, MomentBundle):
        lower, upper = bundle.value.lower, bundle.value.upper
        if values[0] is None:
            return (0, 0, upper - lower)[: len(bundle.cells)]
        return (values[0] - lower, upper - values[0], 0)[: len(bundle.cells)]
    wide = bundle.max_width
    scales = (1,) if isinstance(bundle, VarianceBundle) else bundle.scales
    a, *b = (s * (2 * (v or 0) - q.lower - q.upper) for s, v, q in zip(scales, values, bundle.values, strict=True))
    return (wide**2 - a * a, a * a, wide * a, *(c for z in b for c in (wide * z, z * z, a * z)))


def every_row(bundle: Bundle) -> list[tuple[int, ...]]:
    ranges = [[None, *range(q.lower, q.upper + 1)] for q in bundle.values]
    return [one_row(bundle, values) for values in product(*ranges)]


def bundles(lower: int, upper: int) -> list[Bundle]:
    return [
        CountBundle("n", None),
        SumBundle("s", value(lower, upper)),
        MomentBundle("a", "b", None, value(lower, upper)),
        MomentBundle("a", "b", "m", value(lower, upper)),
        VarianceBundle("r", "s", "l", value(lower, upper)),
        CovarianceBundle(SIX, value(lower, upper), value(-3, 4, Y), (5, 5)),
        CovarianceBundle(SIX, value(lower, upper), value(2, 2, Y), (1, 1)),
    ]


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_no_row_is_larger_than_the_norms(lower: int, upper: int) -> None:
    for bundle in bundles(lower, upper):
        for row in every_row(bundle):
            assert len(row) == len(bundle.cells)
            assert sum(map(abs, row)) <= bundle.row_l1
            assert sum(c * c for c in row) <= bundle.row_l2_squared
            assert max(map(abs, row)) <= bundle.row_linf
            assert not bundle.non_negative or min(row) >= 0


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_some_row_is_as_large_as_the_norms(lower: int, upper: int) -> None:
    """At a bound, or at both where two values have the same width."""
    same = CovarianceBundle(SIX, value(lower, upper), value(lower, upper, Y), (3, 3))
    for bundle in (*bundles(lower, upper)[:5], same):
        rows = every_row(bundle)
        assert max(sum(map(abs, row)) for row in rows) == bundle.row_l1
        assert max(sum(c * c for c in row) for row in rows) == bundle.row_l2_squared
        assert max(max(map(abs, row)) for row in rows) == bundle.row_linf


def test_rows_of_both_signs_are_said_to_be() -> None:
    assert [b.non_negative for b in bundles(-7, 3)] == [True, False, True, True, False, False, False]
    assert SumBundle("s", value(0, 3)).non_negative


def test_squares_fit_64_bits_with_their_weight() -> None:
    assert MAX_WIDTH**2 << 16 <= 1 << 62
    with pytest.raises(ValueError, match="apart"):
        VarianceBundle("r", "s", "l", value(0, MAX_WIDTH + 1))
    with pytest.raises(ValueError, match="apart"):
        VarianceBundle("r", "s", "l", value(4, 4))
    with pytest.raises(ValueError, match="apart"):
        CovarianceBundle(SIX, value(0, 10), value(0, 10, Y), (MAX_WIDTH, 1))
    with pytest.raises(ValueError, match="apart"):
        CovarianceBundle(SIX, value(0, 10), value(0, 10, Y), (0, 1))


def test_one_step_is_worth_its_grid() -> None:
    fine = Quantise(X, Fraction(1, 4), 0, 8)
    assert SumBundle("s", fine).grid == MomentBundle("a", "b", None, fine).grid == Fraction(1, 4)
    assert CountBundle("n", None).grid == 1
    assert VarianceBundle("r", "s", "l", fine).grid == Fraction(1, 64)
    assert CovarianceBundle(SIX, fine, value(0, 4, Y), (3, 6)).grid == Fraction(1, 576)
