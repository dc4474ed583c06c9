"""Public rows beside private ones: what a unit's rows become, and how many public rows one may meet."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from dpsql.compiler.analysis.domains import derive_domains
from dpsql.compiler.analysis.public_rows import (
    max_join_matches,
    max_public_rows,
    max_row_multiplication,
    unique_keys_of,
)
from dpsql.compiler.analysis.units import derive_unit_facts, has_one_row_per_group
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import TRUE, And, Cast, Column, Compare, Expr
from dpsql.compiler.plan.measures import CountRows
from dpsql.compiler.plan.relations import (
    SET_COLUMN,
    Expand,
    Field,
    Filter,
    Join,
    JoinKind,
    Mark,
    Named,
    PerUnit,
    Project,
    PublicScan,
    Rows,
    RowsHole,
    Scan,
    ScanColumn,
    SetKind,
    SetOperation,
    UnitId,
    UnitMeasure,
    UnitWindow,
)
from dpsql.compiler.rewrite.limit_joins import MAX_MATCHED_ROWS, limit_public_joins
from dpsql.errors import LimitExceeded
from dpsql.schema.model import Domain, EngineTable
from dpsql.types import BIGINT, DOUBLE, SMALLINT, TEXT


def column(name: str, is_id: bool = False) -> ScanColumn:
    return ScanColumn(name, name, BIGINT, Domain(BIGINT), 100, is_id)


def c(name: str) -> Column:
    return Column(name, BIGINT)


def private(prefix: str = "v", unique: bool = False, row_unit: bool = False) -> Scan:
    unit = None if row_unit else UnitId(column(f"{prefix}_id", is_id=True))
    own = (column(f"{prefix}_id", is_id=True), column(f"{prefix}_x"))
    return Scan(prefix, EngineTable((prefix,)), own, unit, unique, frozenset({f"{prefix}_id"}))


def public(prefix: str = "w", rows: int = 50, unique: bool = True) -> PublicScan:
    keys = (frozenset({f"{prefix}_k"}),) if unique else ()
    return PublicScan(prefix, EngineTable((prefix,)), (column(f"{prefix}_k"), column(f"{prefix}_y")), rows, keys)


def joined(left: Rows, right: Rows, condition: Expr, kind: JoinKind = JoinKind.INNER) -> Join:
    return Join(left, right, kind, condition)


ON_KEY = Compare("=", c("v_x"), c("w_k"))
ON_OTHER = Compare("=", c("v_x"), c("w_y"))
LESS = Compare("<", c("v_x"), c("w_k"))


@pytest.mark.parametrize(
    ("condition", "unique", "most"),
    [
        (ON_KEY, True, 1),
        (And((LESS, ON_KEY)), True, 1),
        (Compare("=", c("w_k"), c("w_y")), True, 50),  # equated to a column of its own side
        (ON_KEY, False, 50),
        (ON_OTHER, True, 50),
        (LESS, True, 50),
        (TRUE, True, 50),
        (Compare("=", c("v_x"), Cast(c("w_k"), SMALLINT)), True, 1),  # whole numbers stay apart, or become NULL
        (Compare("=", c("v_x"), Cast(Column("w_k", DOUBLE), BIGINT)), True, 50),  # 1.2 and 1.4 are one
        (Compare("=", c("v_x"), Cast(Column("w_k", TEXT), BIGINT)), True, 50),  # so are '1' and '01'
        (Compare("=", c("v_x"), Cast(Cast(c("w_k"), DOUBLE), BIGINT)), True, 50),  # beyond 2^53
    ],
)
@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT])
def test_only_an_equality_with_a_unique_key_meets_one_row(
    condition: Expr, unique: bool, most: int, kind: JoinKind
) -> None:
    join = joined(private(unique=True), public(unique=unique), condition, kind)
    assert max_join_matches(join) == most
    assert derive_unit_facts(join).rows == most
    assert max_row_multiplication(join) == most


def test_unique_keys_survive_filters_and_renaming_and_joins_that_find_one_row() -> None:
    renamed = Project(Filter(public(), LESS_Y), (Named("k", c("w_k")), Named("y", c("w_y"))))
    assert unique_keys_of(renamed) == (frozenset({"k"}),)
    assert unique_keys_of(Project(public(), (Named("y", c("w_y")),))) == ()
    one = joined(public(), public("u", 7), Compare("=", c("w_y"), c("u_k")))
    assert unique_keys_of(one) == (frozenset({"w_k"}),) and max_public_rows(one) == 50
    many = joined(public(), public("u", 7), Compare("=", c("w_y"), c("u_y")))
    assert unique_keys_of(many) == (frozenset({"w_k", "u_k"}),) and max_public_rows(many) == 350


LESS_Y = Compare("<", c("w_k"), c("w_y"))


def test_public_columns_depend_on_the_unit_where_the_condition_does() -> None:
    by_unit = derive_unit_facts(joined(private(), public(), Compare("=", c("v_id"), c("w_k"))))
    assert by_unit.determined == {"v_id", "w_k", "w_y"}
    by_row = derive_unit_facts(joined(private(), public(), ON_KEY))
    assert by_row.determined == {"v_id"}
    several = derive_unit_facts(joined(private(), public(unique=False), Compare("=", c("v_id"), c("w_k"))))
    assert several.determined == {"v_id"}


def test_joins_with_public_rows_multiply_each_other() -> None:
    first = joined(private(), public(rows=40), LESS)
    second = joined(first, public("u", 30), Compare("<", c("v_x"), c("u_k")))
    assert max_row_multiplication(second) == 1200
    grouped = PerUnit(second, (), (UnitMeasure("n", "count_rows", None, BIGINT),))
    assert max_row_multiplication(grouped) == 1200  # the engine meets them all the same
    again = Join(private("z"), grouped, JoinKind.LEFT, TRUE, by_unit=True)
    assert max_row_multiplication(again) == 1200  # and no more of them: one row is left of each unit


def test_a_sub_select_over_public_rows_is_looked_up_or_tried() -> None:
    hole = RowsHole("h1", (Field("h_a", BIGINT),), (Domain(BIGINT),), 1000)
    assert max_row_multiplication(Mark(private(), hole, "m", TRUE, (c("v_x"), c("h_a")))) == 1
    assert max_row_multiplication(Mark(private(), hole, "m", Compare("=", c("v_x"), c("h_a")))) == 1
    assert max_row_multiplication(Mark(private(), hole, "m", Compare("<", c("v_x"), c("h_a")))) == 1000


def test_a_full_join_keeps_rows_of_both_sides() -> None:
    one = Join(private("p", unique=True), private("q", unique=True), JoinKind.FULL, TRUE, by_unit=True)
    assert derive_unit_facts(one).rows == 2 and derive_unit_facts(one).determined == frozenset()
    many = Join(private(), private("q", unique=True), JoinKind.FULL, TRUE, by_unit=True)
    assert derive_unit_facts(many).rows is None


def test_grouping_by_the_unit_leaves_one_row_and_more_keys_more() -> None:
    count = UnitMeasure("n", "count_rows", None, BIGINT)
    assert derive_unit_facts(PerUnit(private(), (), (count,))).rows == 1
    assert derive_unit_facts(PerUnit(private(), (Named("k", c("v_id")),), (count,))).rows == 1
    assert derive_unit_facts(PerUnit(private(), (Named("k", c("v_x")),), (count,))).rows is None
    assert derive_unit_facts(PerUnit(private(unique=True), (Named("k", c("v_x")),), (count,))).rows == 1


def test_set_operations_add_rows_up_or_keep_the_lefts() -> None:
    one, other = private("p", unique=True), private("q", unique=True)
    assert derive_unit_facts(SetOperation(SetKind.UNION_ALL, one, other)).rows == 2
    assert derive_unit_facts(SetOperation(SetKind.UNION, one, other)).determined == frozenset()
    assert derive_unit_facts(SetOperation(SetKind.EXCEPT, one, other)).rows == 1


@pytest.mark.parametrize("row_unit", [False, True])
def test_grouping_sets_repeat_each_row_once_in_every_set(row_unit: bool) -> None:
    expanded = Expand(private("p", unique=True, row_unit=row_unit), ("p_x",), (frozenset({"p_x"}), frozenset()))
    facts = derive_unit_facts(Filter(expanded, TRUE))
    assert facts.rows == 2 and "p_x" not in facts.determined
    assert has_one_row_per_group(Filter(expanded, TRUE), ("p_x", SET_COLUMN))
    assert not has_one_row_per_group(expanded, ("p_x",))
    assert not has_one_row_per_group(Expand(private(), ("v_x",), (frozenset(),)), ("v_x", SET_COLUMN))


def test_what_has_no_id_cannot_be_grouped_compared_or_numbered_by_unit() -> None:
    rows, again = private(row_unit=True), private("q", row_unit=True)
    with pytest.raises(ValueError, match="unit"):
        PerUnit(rows, (), ())
    with pytest.raises(ValueError, match="unit"):
        UnitWindow(rows, "n", "row_number", (), (), (), None, BIGINT)
    with pytest.raises(ValueError, match="unit"):
        Join(rows, again, JoinKind.INNER, TRUE, by_unit=True)
    with pytest.raises(ValueError, match="unit"):
        Mark(rows, again, "m", TRUE, by_unit=True)
    for kind in (SetKind.UNION, SetKind.INTERSECT, SetKind.EXCEPT):
        with pytest.raises(ValueError, match="two units"):
            SetOperation(kind, rows, again)
    assert derive_unit_facts(SetOperation(SetKind.UNION_ALL, rows, again)).rows == 2


def test_counts_and_sums_of_a_unit_have_no_bounds_unless_they_are_assumed() -> None:
    bounded = ScanColumn("x", "v_x", BIGINT, Domain(BIGINT, True, Fraction(-2), Fraction(5)), 100, False)
    scan = Scan("v", EngineTable(("v",)), (bounded,), UnitId(column("v_id", True)), False, frozenset())
    measures = (
        UnitMeasure("n", "count_rows", None, BIGINT),
        UnitMeasure("s", "sum", c("v_x"), BIGINT),
        UnitMeasure("m", "max", c("v_x"), BIGINT),
    )
    free, assumed = (derive_domains(PerUnit(scan, (), measures), assume) for assume in (None, 4))
    assert not free["n"].is_bounded and not free["s"].is_bounded and free["m"].bounds == (-2, 5)
    assert assumed["n"].bounds == (1, 4) and assumed["s"].bounds == (-8, 20) and assumed["m"].bounds == (-2, 5)


@pytest.mark.parametrize("joins", [joined, lambda left, right, condition: Mark(left, right, "m", condition)])
def test_a_row_that_could_meet_too_many_public_rows_is_refused(joins: Callable[[Rows, Rows, Expr], Rows]) -> None:
    """In a sub-select that is looked into, too, where no join is."""
    count = (CountRows(),)
    few = Aggregate(joins(private(), public(rows=MAX_MATCHED_ROWS), LESS), (), count)
    assert limit_public_joins(few) is few
    with pytest.raises(LimitExceeded, match=f"could meet {MAX_MATCHED_ROWS + 1} public rows"):
        limit_public_joins(Aggregate(joins(private(), public(rows=MAX_MATCHED_ROWS + 1), LESS), (), count))
