"""How joins multiply a unit's rows: by the power of their number that the largest step has."""

import pytest

from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import TRUE, And, Column, Compare, Expr, Literal
from dpsql.compiler.plan.measures import CountRows
from dpsql.compiler.plan.relations import (
    Filter,
    Join,
    JoinKind,
    Mark,
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
)
from dpsql.compiler.rewrite.limit_joins import limit_joins
from dpsql.errors import LimitExceeded
from dpsql.schema.model import Domain, EngineTable
from dpsql.types import BIGINT


def c(name: str) -> Column:
    return Column(name, BIGINT)


def equal(name: str, other: Expr) -> Compare:
    return Compare("=", c(name), other)


def number(value: int) -> Literal:
    return Literal(value, BIGINT)


def scan(name: str, unique: bool = False) -> Scan:
    def column(of: str, is_id: bool = False) -> ScanColumn:
        return ScanColumn(of, of, BIGINT, Domain(BIGINT), 100, is_id)

    own = (column(f"{name}_id", True), column(f"{name}_x"), column(f"{name}_y"))
    return Scan(name, EngineTable((name,)), own, UnitId(column(f"{name}_id", True)), unique, frozenset({f"{name}_id"}))


def by_year(name: str, *keys: str) -> PerUnit:
    """One row for each unit and value of the keys."""
    named = tuple(Named(f"{name}_{key}_key", c(f"{name}_{key}")) for key in keys)
    return PerUnit(scan(name), named, (UnitMeasure(f"{name}_n", "count_rows", None, BIGINT),))


def by_unit(*nodes: Rows) -> Rows:
    first, *others = nodes
    for other in others:
        first = Join(first, other, JoinKind.INNER, TRUE, by_unit=True)
    return first


def marked(left: Rows, right: Rows, condition: Expr, test: tuple[Expr, Expr] | None = None) -> Mark:
    return Mark(left, right, "met", condition, test, by_unit=True)


def is_refused(rows: Rows) -> bool:
    try:
        limit_joins(Aggregate(rows, (), (CountRows(),)))
    except LimitExceeded:
        return True
    return False


def power(rows: Rows) -> int:
    """What the rows are multiplied to, found by joining them with as many tables as they may still meet."""
    for tables in range(5):
        if is_refused(by_unit(rows, *(scan(f"more{index}") for index in range(tables)))):
            return 4 - tables
    raise AssertionError("nothing is refused")


def test_tables_that_meet_on_the_unit_multiply_its_rows() -> None:
    assert [power(by_unit(*map(scan, "abc"[:tables]))) for tables in (1, 2, 3)] == [1, 2, 3]
    assert is_refused(by_unit(*map(scan, "abcd")))
    assert power(scan("a", unique=True)) == 0


def test_a_grouping_has_one_row_where_its_keys_have_one_value() -> None:
    year = equal("a_x_key", number(2024))
    assert power(by_year("a", "x")) == 1
    assert power(by_year("a")) == power(by_year("a", "id")) == 0
    assert power(Filter(by_year("a", "x"), year)) == 0
    assert power(Filter(by_year("a", "id", "x"), And((year, Compare("<", c("a_n"), number(3)))))) == 0
    assert power(Filter(by_year("a", "x", "y"), year)) == 1
    renamed = Project(by_year("a", "x"), (Named("year", c("a_x_key")), Named("n", c("a_n"))))
    assert power(Filter(renamed, equal("year", number(2024)))) == 0
    assert power(Filter(renamed, equal("n", number(2024)))) == 1


@pytest.mark.parametrize("condition", [
    Compare("<", c("a_x_key"), number(2024)), equal("a_x_key", c("a_n")), Compare("<>", c("a_x_key"), number(2024)),
])  # fmt: skip
def test_other_conditions_leave_many_rows(condition: Expr) -> None:
    assert power(Filter(by_year("a", "x"), condition)) == 1


def test_a_filter_counts_for_both_sides_of_a_union_and_for_neither_of_a_join() -> None:
    def renamed(name: str, *keys: str) -> Project:
        return Project(
            by_year(name, *keys), (Named(f"{name}_year", c(f"{name}_x_key")), Named(f"{name}_m", c(f"{name}_n")))
        )

    def of_year(*keys: str) -> Rows:
        union = SetOperation(SetKind.UNION_ALL, renamed("a", "x"), renamed("b", *keys))
        return Filter(union, equal("a_year", number(2024)))

    assert power(of_year("x")) == 0
    assert power(of_year("x", "y")) == 1
    # The engine has joined them before it looks at the condition, unless it finds that for itself.
    assert power(Filter(by_unit(by_year("a", "x"), scan("b")), equal("a_x_key", number(2024)))) == 2


def test_a_sub_select_is_looked_up_by_equalities_and_tried_row_by_row_on_other_conditions() -> None:
    two, three = by_unit(scan("b"), scan("c")), by_unit(scan("b"), scan("c"), scan("d"))
    assert not is_refused(marked(scan("a"), three, equal("a_x", c("b_x"))))
    assert is_refused(marked(scan("a"), three, TRUE, (c("a_x"), c("b_x"))))  # IN, of which NULLs are tried in pairs
    assert is_refused(marked(scan("a"), three, And((equal("a_x", c("b_x")), Compare(">", c("a_y"), number(3))))))
    assert not is_refused(marked(scan("a"), two, Compare("<", c("a_x"), c("b_x"))))
    assert is_refused(marked(scan("a"), three, Compare("<", c("a_x"), c("b_x"))))
    assert is_refused(marked(scan("a"), three, And((equal("a_x", c("b_x")), Compare("<", c("a_y"), c("c_y"))))))
    assert is_refused(marked(scan("a"), three, TRUE, (c("a_x"), Compare("<", c("a_y"), c("b_x")))))
    assert is_refused(marked(scan("a"), by_unit(*map(scan, "bcde")), equal("a_x", c("b_x"))))
