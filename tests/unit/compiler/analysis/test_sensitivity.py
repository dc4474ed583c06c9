"""Sensitivities by hand: the constants of both neighboring relations, of groups of units and of weights."""

from fractions import Fraction
from math import isqrt

import pytest

from dpsql.compiler.analysis.sensitivity import Neighboring, derive_sensitivity_bounds, max_selection_keys
from dpsql.compiler.plan.aggregate import CountUnits, Distinct, Gather, Listed, ListedRows, Part, Sum, Weigh
from dpsql.compiler.plan.bundles import Bundle, CountBundle, CovarianceBundle, MomentBundle, SumBundle, VarianceBundle
from dpsql.compiler.plan.clipped_sums import Norm
from dpsql.compiler.plan.expressions import ROW_WEIGHT, Column, Quantise
from dpsql.compiler.plan.relations import Field, Scan, ScanColumn, UnitId
from dpsql.errors import InternalError, UnboundedContribution
from dpsql.privacy.noise import Sensitivity
from dpsql.schema.model import Domain, EngineTable
from dpsql.types import BIGINT, TEXT

ADD_REMOVE, CHANGE_ONE = Neighboring(False, 1), Neighboring(True, 1)
COUNT = CountBundle("rows", None)
KEY = Field("k", TEXT)
TWO = Listed((ListedRows((KEY,), (("a",), ("b",))),))


def scan(unique: bool) -> Scan:
    def column(name: str) -> ScanColumn:
        return ScanColumn(name, name, BIGINT, Domain(TEXT if name == "k" else BIGINT), 100, name == "id")

    unit = UnitId(column("id"))
    return Scan("t", EngineTable(("t",)), (column("k"), column("x")), unit, unique, frozenset())


def values(lower: int, upper: int) -> Quantise:
    return Quantise(Column("x", BIGINT), Fraction(1), lower, upper)


def gather(part: Part, keyed: bool = True, listed: Listed | None = TWO) -> Gather:
    return Gather((KEY,) if keyed else (), listed if keyed else None, None, (part,))


def claimed(part: Part, relation: Neighboring = ADD_REMOVE, keyed: bool = True) -> Sensitivity:
    (claim,) = derive_sensitivity_bounds(gather(part, keyed), relation)
    return claim.sensitivity


def one_row(bundle: Bundle, keyed: bool = True) -> Sum:
    return Sum(scan(unique=True), ("k",) if keyed else (), (bundle,))


def weighted(bundle: Bundle, norm: Norm, rows: int = 5, keys: tuple[str, ...] = ("k",)) -> Sum:
    return Sum(Weigh(scan(unique=False), keys, rows, norm), ("k",), (bundle,))


VARIANCE = VarianceBundle("r", "s", "l", values(-1, 4))
COVARIANCE = CovarianceBundle(("r", "aa", "a", "b", "bb", "ab"), values(-1, 4), values(0, 5), (1, 1))


def test_noise_is_drawn_even_where_nothing_can_move() -> None:
    assert claimed(one_row(SumBundle("s", values(0, 0)))) == Sensitivity(1, 1, 1)


@pytest.mark.parametrize(
    ("bundle", "keyed", "expected"),
    [
        (COUNT, True, Sensitivity(1, 1, 1)),
        (SumBundle("s", values(-7, 3)), True, Sensitivity(7, 49, 7)),
        (MomentBundle("a", "b", "m", values(0, 10)), True, Sensitivity(10, 100, 10)),
        (COUNT, False, Sensitivity(1, 1, 1)),
        # W = 5: squares are 25.
        (VARIANCE, True, Sensitivity(50, 1250, 25)),
        (COVARIANCE, False, Sensitivity(125, 3125, 25)),
    ],
)
def test_add_remove_moves_cells_by_one_contribution(bundle: Bundle, keyed: bool, expected: Sensitivity) -> None:
    assert claimed(one_row(bundle, keyed), ADD_REMOVE, keyed) == expected


@pytest.mark.parametrize(
    ("bundle", "keyed", "expected"),
    [
        # One group loses 1, another gains 1: the root of 2.
        (COUNT, True, Sensitivity(2, 2, 1)),
        # A single cell that is never negative moves from 0 to 1 at most.
        (COUNT, False, Sensitivity(1, 1, 1)),
        (SumBundle("s", values(0, 9)), False, Sensitivity(9, 81, 9)),
        # A signed cell moves from -9 to 9, even alone.
        (SumBundle("s", values(-9, 3)), False, Sensitivity(18, 324, 18)),
        (SumBundle("s", values(-9, 3)), True, Sensitivity(18, 324, 18)),
        (VARIANCE, False, Sensitivity(100, 5000, 50)),
        (COVARIANCE, True, Sensitivity(250, 12500, 50)),
        # Two cells: (10, 0) becomes (0, 10).
        (MomentBundle("a", "b", None, values(0, 10)), False, Sensitivity(20, 200, 10)),
    ],
)
def test_change_one_puts_one_contribution_in_place_of_another(
    bundle: Bundle, keyed: bool, expected: Sensitivity
) -> None:
    assert claimed(one_row(bundle, keyed), CHANGE_ONE, keyed) == expected


def test_a_group_of_units_multiplies_every_norm() -> None:
    assert claimed(one_row(COUNT), Neighboring(False, 3)) == Sensitivity(3, 9, 3)
    assert claimed(one_row(COUNT), Neighboring(True, 3)) == Sensitivity(6, 18, 3)
    assert claimed(one_row(SumBundle("s", values(-2, 2))), Neighboring(True, 3)) == Sensitivity(12, 144, 12)


def test_weights_of_the_l1_norm_bound_all_norms_by_rows() -> None:
    most = 5 * ROW_WEIGHT
    assert claimed(weighted(COUNT, Norm.L1)) == Sensitivity(most, most**2, most)
    assert claimed(weighted(SumBundle("s", values(-7, 3)), Norm.L1)) == Sensitivity(7 * most, (7 * most) ** 2, 7 * most)


def test_weights_multiply_each_norm_of_a_row_by_its_own() -> None:
    """The L2 norm of a row of several cells is below its L1 norm."""
    most = 5 * ROW_WEIGHT
    assert claimed(weighted(VARIANCE, Norm.L1)) == Sensitivity(50 * most, 1250 * most**2, 25 * most)
    moved = claimed(weighted(COVARIANCE, Norm.L2))
    assert (moved.l2_squared, moved.linf) == (3125 * most**2, 25 * most)


def test_weights_of_the_l2_norm_bound_the_l2_norm_and_each_cell() -> None:
    moved = claimed(weighted(COUNT, Norm.L2))
    assert (moved.l2_squared, moved.linf) == ((5 * ROW_WEIGHT) ** 2, 5 * ROW_WEIGHT)


@pytest.mark.parametrize("groups", [2, 26, 400, 5_000])
def test_weights_of_the_l2_norm_bound_the_l1_norm_too(groups: int) -> None:
    """The worst case for L1: one row in each group, of weight 5 * 2^16 // (ceil(sqrt(groups)) + 1), at most 2^16."""
    listed = Listed((ListedRows((KEY,), tuple((str(number),) for number in range(groups))),))
    (claim,) = derive_sensitivity_bounds(gather(weighted(COUNT, Norm.L2), listed=listed), ADD_REMOVE)
    weight = min(ROW_WEIGHT, 5 * ROW_WEIGHT // (isqrt(groups - 1) + 2))
    assert groups * weight <= claim.sensitivity.l1


def test_weights_without_keys_are_of_the_l1_norm_whatever_they_are_called() -> None:
    most = 5 * ROW_WEIGHT
    part = Sum(Weigh(scan(unique=False), (), 5, Norm.L2), ("k",), (COUNT,))
    assert claimed(part) == Sensitivity(most, most**2, most)


def test_dividing_rows_divides_norms_and_never_below_one() -> None:
    most = 5 * ROW_WEIGHT
    bundle = SumBundle("s", values(0, 7), shift=4)
    assert claimed(weighted(bundle, Norm.L1)) == Sensitivity(7 * most >> 4, (7 * most) ** 2 >> 8, 7 * most >> 4)
    assert claimed(one_row(SumBundle("s", values(0, 7), shift=10))) == Sensitivity(1, 1, 1)


def test_rows_without_weights_and_without_a_unique_unit_are_refused() -> None:
    with pytest.raises(UnboundedContribution):
        claimed(Sum(scan(unique=False), ("k",), (COUNT,)))


def test_weights_for_finer_groups_than_the_sums_are_refused() -> None:
    part = Sum(Weigh(scan(unique=False), ("k", "x"), 5, Norm.L2), ("k",), (COUNT,))
    with pytest.raises(UnboundedContribution):
        claimed(part)


# --- distinct values -------------------------------------------------------------------------------------------------


def distinct(bundle: Bundle, limit: int | None, unique: bool = False) -> Sum:
    return Sum(Distinct(scan(unique), ("k",), ("x",), limit), ("k",), (bundle,))


def test_a_unit_brings_as_many_distinct_values_as_it_may_keep() -> None:
    """All in one group at worst: the norms are those of that many rows."""
    assert claimed(distinct(COUNT, 4)) == Sensitivity(4, 16, 4)
    assert claimed(distinct(SumBundle("s", values(-7, 3)), 4)) == Sensitivity(28, 28**2, 28)
    assert claimed(distinct(COUNT, 4), CHANGE_ONE) == Sensitivity(8, 32, 4)
    assert claimed(distinct(COUNT, 4), Neighboring(False, 3)) == Sensitivity(12, 144, 12)


def test_without_a_limit_a_unit_brings_its_rows() -> None:
    assert claimed(distinct(COUNT, None, unique=True)) == Sensitivity(1, 1, 1)
    with pytest.raises(UnboundedContribution):
        claimed(distinct(COUNT, None))


# --- units per group -------------------------------------------------------------------------------------------------


def units(limit: int | None = None, unique: bool = False, one_row: bool = False, weighted: bool = False) -> CountUnits:
    return CountUnits(scan(unique), ("k",), "units", limit, one_row, weighted)


def test_units_count_once_in_each_group_that_they_reach() -> None:
    assert claimed(units(limit=8)) == Sensitivity(2, 2, 1)  # the list has two groups
    many = Listed((ListedRows((KEY,), tuple((str(i),) for i in range(50))),))
    (claim,) = derive_sensitivity_bounds(gather(units(limit=8), listed=many), ADD_REMOVE)
    assert claim.sensitivity == Sensitivity(8, 8, 1)
    assert claimed(units(unique=True, one_row=True)) == Sensitivity(1, 1, 1)
    assert claimed(units(limit=1), CHANGE_ONE) == Sensitivity(2, 2, 1)


def test_rows_are_not_counted_as_units_where_a_unit_may_have_several() -> None:
    with pytest.raises(UnboundedContribution):
        claimed(units(one_row=True))


def test_weighted_counts_answer_no_question() -> None:
    with pytest.raises(InternalError):
        claimed(units(limit=4, weighted=True))


def selecting(part: CountUnits) -> Gather:
    return Gather((KEY,), None, part, ())


def test_a_selection_reaches_as_many_keys_as_its_limit() -> None:
    assert max_selection_keys(selecting(units(limit=4))) == 4
    assert max_selection_keys(selecting(units(unique=True, one_row=True))) == 1


def test_a_selection_without_a_limit_is_refused() -> None:
    with pytest.raises(UnboundedContribution):
        max_selection_keys(selecting(units()))


def test_where_nothing_is_selected_there_are_no_keys() -> None:
    with pytest.raises(InternalError):
        max_selection_keys(gather(one_row(COUNT)))
