"""What is worked out within a unit is exact: whole steps, one spelling of equal values, no frame that can raise."""

from fractions import Fraction

import pytest

from dpsql.compiler.analysis.domains import derive_domains
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import Arithmetic, Call, Cast, Column, Expr, Literal, Quantise
from dpsql.compiler.plan.measures import CountRows
from dpsql.compiler.plan.relations import (
    Named,
    PerUnit,
    Project,
    Rows,
    Scan,
    ScanColumn,
    SetKind,
    SetOperation,
    UnitId,
    UnitMeasure,
    UnitWindow,
)
from dpsql.compiler.rewrite.make_total import make_unit_aggregates_exact
from dpsql.errors import UnboundedValues, Unsupported
from dpsql.schema.model import Domain, EngineTable
from dpsql.types import BIGINT, DOUBLE, HUGEINT, TEXT, Type, decimal_type, sum_type

DOMAINS = {
    "cost": (Domain(DOUBLE, True, Fraction(0), Fraction(100)), None),
    "price": (Domain(DOUBLE, True, Fraction(0), Fraction(100)), Fraction(1, 100)),
    "free": (Domain(DOUBLE), None),
    "paid": (Domain(decimal_type(10, 2)), None),
    "wide": (Domain(decimal_type(38, 2)), None),
    "n": (Domain(BIGINT), None),
    "huge": (Domain(HUGEINT), None),
    "t": (Domain(TEXT, length=9), None),
}


def scan(prefix: str = "") -> Scan:
    columns = tuple(
        ScanColumn(name, prefix + name, domain.type, domain, 9, False, grid=grid)
        for name, (domain, grid) in DOMAINS.items()
    )
    uid = ScanColumn("id", "id", BIGINT, Domain(BIGINT), 9, True)
    return Scan("v", EngineTable(("v",)), columns, UnitId(uid), False, frozenset())


def c(name: str) -> Column:
    return Column(name, DOMAINS[name][0].type, f"visits.{name}")


def rewritten(node: Rows) -> Rows:
    return make_unit_aggregates_exact(Aggregate(node, (), (CountRows(),))).input


def argument(function: str, arg: Expr, type_: Type = DOUBLE) -> Expr | None:
    node = rewritten(PerUnit(scan(), (), (UnitMeasure("m", function, arg, type_),)))
    assert isinstance(node, PerUnit)
    return node.measures[0].arg


def test_sums_of_doubles_are_of_integer_steps_within_their_bounds() -> None:
    fine = argument("sum", c("cost"))
    assert isinstance(fine, Quantise) and fine.lower == 0 and fine.upper * fine.grid <= 100
    assert fine.grid <= Fraction(100, 1 << 43)
    assert argument("mean", c("price")) == Quantise(c("price"), Fraction(1, 100), 0, 10_000)


def test_short_decimals_are_counted_exactly_without_declared_bounds() -> None:
    found = argument("sum", c("paid"), sum_type(decimal_type(10, 2)))
    assert found == Quantise(c("paid"), Fraction(1, 100), 1 - 10**10, 10**10 - 1)


def test_whole_numbers_stay_but_for_128_bits_which_could_overflow() -> None:
    assert argument("sum", c("n"), BIGINT) == c("n")
    assert argument("sum", c("huge"), BIGINT) == Cast(c("huge"), BIGINT)


@pytest.mark.parametrize("name", ["free", "wide"])
def test_sums_without_bounds_are_refused_with_the_column_and_a_clip(name: str) -> None:
    with pytest.raises(UnboundedValues) as raised:
        argument("sum", c(name))
    assert raised.value.hint is not None
    assert f"visits.{name}" in raised.value.hint and f"SUM(CLIP({name}, 0, 100))" in raised.value.hint


def test_equal_floats_have_one_spelling_where_one_of_them_is_picked() -> None:
    ratio = Arithmetic("/", c("cost"), c("price"), DOUBLE)
    for function in ("min", "max", "count_distinct"):
        assert argument(function, ratio) == Call("finite", (ratio,), DOUBLE)
    assert argument("min", c("t"), TEXT) == c("t")
    grouped = rewritten(PerUnit(scan(), (Named("k", ratio),), ()))
    assert isinstance(grouped, PerUnit) and grouped.keys[0].expr == Call("finite", (ratio,), DOUBLE)


def test_sides_of_a_set_operation_have_one_spelling_of_equal_floats() -> None:
    sides = [Project(scan(prefix), (Named(f"{prefix}x", Column(f"{prefix}cost", DOUBLE)),)) for prefix in ("a_", "b_")]
    union = rewritten(SetOperation(SetKind.UNION, *sides))
    assert isinstance(union, SetOperation) and isinstance(union.left, Project)
    assert union.left.columns[0].expr == Call("finite", (Column("a_x", DOUBLE),), DOUBLE)
    everything = SetOperation(SetKind.UNION_ALL, *sides)
    assert rewritten(everything) == everything


def window(function: str, arg: Expr, frame: str | None) -> UnitWindow:
    return UnitWindow(scan(), "w", function, (arg,), (), (), frame, DOUBLE)


def test_windows_sum_whole_steps_and_copy_values_as_they_are() -> None:
    summed = rewritten(window("sum", c("price"), None))
    assert isinstance(summed, UnitWindow) and isinstance(summed.args[0], Quantise)
    assert derive_domains(summed, assume=3)["w"].bounds == (0, 300)
    assert rewritten(window("lag", c("free"), None)) == window("lag", c("free"), None)


@pytest.mark.parametrize(
    ("frame", "refused"),
    [
        ("RANGE BETWEEN 1 PRECEDING AND CURRENT ROW", True),
        ("range between unbounded preceding and 3 following", True),
        ("RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", False),
        ("RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", False),
        ("ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", False),
    ],
)
def test_a_range_with_an_offset_is_refused_since_it_can_overflow(frame: str, refused: bool) -> None:
    asked = window("count", Literal(1, BIGINT), frame)
    if not refused:
        assert rewritten(asked) == asked
        return
    with pytest.raises(Unsupported, match="RANGE"):
        rewritten(asked)
