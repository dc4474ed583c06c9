"""Narrowing: what a condition says about the rows for which it is true."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import pytest
import sqlglot

from dpsql.compiler.analysis.narrowing import EnforcedDomains, narrow_unless, narrow_where
from dpsql.compiler.bind.expressions import bind_expr
from dpsql.compiler.bind.scope import BoundColumn, Scope, SourceScope
from dpsql.compiler.functions.calendar import bound_to_datetime
from dpsql.compiler.parse.dialect import AnalystDialect
from dpsql.compiler.plan.expressions import And, Cast, Column, Compare, Expr, InList, IsNull, Literal, Not, Or
from dpsql.schema.model import Domain, to_number
from dpsql.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, SMALLINT, TEXT, TIMESTAMP, Type, decimal_type

A = Column("a", INTEGER)


def between(lower: int, upper: int, type_: Type = INTEGER, nullable: bool = False) -> Domain:
    return Domain(type_, nullable, Fraction(lower), Fraction(upper))


def narrowed(domain: Domain, condition: Expr) -> Domain:
    return narrow_where({"a": domain}, condition)["a"]


def test_comparisons_narrow_bounds_and_take_null_out() -> None:
    wide = between(0, 100, nullable=True)
    assert narrowed(wide, Compare(">=", A, Literal(10, BIGINT))) == between(10, 100)
    assert narrowed(wide, Compare(">", A, Literal(10, BIGINT))) == between(11, 100)
    assert narrowed(wide, Compare("<", Cast(A, DOUBLE), Literal(9.5, DOUBLE))) == between(0, 9)
    assert narrowed(wide, Compare(">", Literal(10, BIGINT), A)) == between(0, 9)


def test_strict_comparisons_of_doubles_keep_the_bound() -> None:
    column = Column("a", DOUBLE)
    result = narrow_where({"a": between(0, 100, DOUBLE)}, Compare(">", column, Literal(1.5, DOUBLE)))["a"]
    assert (result.lower, result.upper) == (Fraction(3, 2), 100)


def test_and_narrows_by_all_its_parts_and_or_by_what_they_share() -> None:
    low, high = Compare(">=", A, Literal(10, BIGINT)), Compare("<=", A, Literal(20, BIGINT))
    assert narrowed(between(0, 100), And((low, And((high, low))))) == between(10, 20)
    assert narrowed(between(0, 100), Or((low, high))) == between(0, 100)


def test_a_cast_to_a_wider_type_does_not_hide_the_column() -> None:
    wide = Compare(">=", Cast(A, BIGINT), Literal(10, BIGINT))
    assert narrowed(between(0, 100), wide) == between(10, 100)
    assert narrowed(between(0, 100), Compare(">=", Cast(A, SMALLINT), Literal(10, BIGINT))) == between(0, 100)


def test_equality_and_lists_give_values_of_the_columns_type() -> None:
    column = Column("a", DOUBLE)
    tenth = InList(column, (Literal(0.1, DOUBLE), Literal(0.1, DOUBLE), Literal(200.0, DOUBLE)))
    result = narrow_where({"a": between(0, 100, DOUBLE)}, tenth)["a"]
    assert result.values == (0.1,)
    money = Column("a", decimal_type(10, 2))
    one = narrow_where(
        {"a": Domain(decimal_type(10, 2))}, Compare("=", money, Literal(Decimal("1.05"), decimal_type(10, 2)))
    )["a"]
    assert one.values == (Decimal("1.05"),)


@pytest.mark.parametrize("other", [decimal_type(2, 1), TEXT, DOUBLE, BOOLEAN])
def test_other_types_cannot_be_compared(other: Type) -> None:
    """An engine's implicit cast raises on some values."""
    with pytest.raises(TypeError, match="compared"):
        Compare("=", A, Literal(None, other))
    with pytest.raises(TypeError, match="compared"):
        InList(A, (Literal(None, other),))


def test_unequal_takes_a_listed_value_out() -> None:
    texts = Domain(TEXT, True, values=("a", "b", "c"))
    column = Column("a", TEXT)
    assert narrowed(texts, Compare("<>", column, Literal("a", TEXT))).values == ("b", "c")
    without = narrowed(texts, Not(InList(column, (Literal("a", TEXT), Literal("c", TEXT)))))
    assert (without.values, without.nullable) == (("b",), False)


def test_is_not_null_takes_null_out() -> None:
    assert not narrowed(between(0, 1, nullable=True), Not(IsNull(A))).nullable
    assert narrowed(between(0, 1, nullable=True), IsNull(A)).nullable


def test_a_boolean_column_as_a_condition_has_one_value() -> None:
    column = Column("a", BOOLEAN)
    either = Domain(BOOLEAN, True, values=(False, True))
    assert narrowed(either, column).values == (True,)
    assert narrowed(either, Not(column)).values == (False,)


def test_a_condition_that_no_row_meets_leaves_some_bounds() -> None:
    result = narrowed(between(0, 10), Compare(">", A, Literal(50, BIGINT)))
    assert result.is_bounded and result.lower is not None and result.upper is not None and result.lower <= result.upper


def test_a_comparison_with_null_says_nothing() -> None:
    assert narrowed(between(0, 10, nullable=True), Compare("=", A, Literal(None, BIGINT))) == between(
        0, 10, nullable=True
    )


def moments(sql: str, domain: Domain) -> tuple[object, object] | None:
    """The first and last moment that a condition on `a` leaves; None where it leaves none."""
    column = BoundColumn("a", Column("a", domain.type))
    node = sqlglot.parse_one(f"SELECT {sql}", dialect=AnalystDialect).expressions[0]
    left = narrow_where({"a": domain}, bind_expr(node, Scope((SourceScope("t", (column,)),))))["a"]
    assert not left.nullable and left.is_bounded
    return None if left.values == () else tuple(bound_to_datetime(bound, domain.type.kind) for bound in left.bounds)  # type: ignore[return-value]


FIRST, LAST = dt.datetime(2023, 1, 1), dt.datetime(2024, 12, 31, 23, 59, 59)
AT = Domain(TIMESTAMP, True, to_number(FIRST), to_number(LAST))
DAY = Domain(DATE, True, to_number(FIRST.date()), to_number(LAST.date()))
TICK = dt.timedelta(microseconds=1)
MARCH, APRIL = dt.datetime(2024, 3, 1), dt.datetime(2024, 4, 1)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("extract(year FROM a) = 2024", (dt.datetime(2024, 1, 1), LAST)),
        ("year(a) < 2024", (FIRST, dt.datetime(2024, 1, 1) - TICK)),
        ("date_part('year', a) BETWEEN 1900 AND 2023", (FIRST, dt.datetime(2024, 1, 1) - TICK)),
        ("2024 <= extract(year FROM a)", (dt.datetime(2024, 1, 1), LAST)),
        ("extract(year FROM a) = 2025", None),
        ("CAST(a AS date) = '2024-03-01'", (MARCH, dt.datetime(2024, 3, 2) - TICK)),
        ("a::date IN ('2024-03-01', '2024-03-31')", (MARCH, APRIL - TICK)),
        ("DATE(a) > '2024-03-31'", (APRIL, LAST)),
        ("date_trunc('month', a) = '2024-03-01'", (MARCH, APRIL - TICK)),
        ("date_trunc('month', a) = '2024-03-02'", None),
        ("date_trunc('month', a) > '2024-03-01'", (APRIL, LAST)),
        ("date_trunc('month', a) >= '2024-03-02'", (APRIL, LAST)),
        ("date_trunc('month', a) < '2024-03-02'", (FIRST, APRIL - TICK)),
        ("date_trunc('month', a)::date <= '2024-03-15'", (FIRST, APRIL - TICK)),
        ("extract(epoch FROM a) >= 1709251200 AND extract(epoch FROM a) < 1711929600", (MARCH, APRIL)),
        ("extract(epoch FROM a) BETWEEN 1709251200 AND 1711929599", (MARCH, APRIL - 1_000_000 * TICK)),
        ("a + INTERVAL '1 day' >= '2024-03-02'", (MARCH, LAST)),
        ("to_char(a, 'YYYY-MM') = '2024-03'", (MARCH, APRIL - TICK)),
        ("to_char(a, 'YYYY-MM') >= '2024-03'", (MARCH, LAST)),
        ("to_char(a, 'YYYY') IN ('2022', '2021')", None),
        ("a < '2023-02-01' OR year(a) = 1999 OR a < '2023-01-05'", (FIRST, dt.datetime(2023, 2, 1) - TICK)),
    ],
)
def test_functions_that_never_decrease_do_not_hide_the_column(
    sql: str, expected: tuple[dt.datetime, dt.datetime] | None
) -> None:
    assert moments(sql, AT) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("extract(year FROM a) = 2024", (dt.datetime(2024, 1, 1), dt.datetime(2024, 12, 31))),
        ("a::timestamp > '2024-03-01 12:00'", (dt.datetime(2024, 3, 2), dt.datetime(2024, 12, 31))),
        ("a::timestamp <= '2024-03-01 12:00'", (dt.datetime(2023, 1, 1), MARCH)),
        ("date_trunc('month', a) = '2024-03-01'", (MARCH, dt.datetime(2024, 3, 31))),
        ("a + 7 > '2024-03-07'", (MARCH, dt.datetime(2024, 12, 31))),
        ("to_char(a, 'YYYY-MM') = '2024-03'", (MARCH, dt.datetime(2024, 3, 31))),
    ],
)
def test_nor_do_they_hide_days(sql: str, expected: tuple[dt.datetime, dt.datetime]) -> None:
    assert moments(sql, DAY) == expected


def test_or_keeps_what_one_of_its_parts_keeps() -> None:
    one, four = Compare("=", A, Literal(1, BIGINT)), Compare(">=", A, Literal(4, BIGINT))
    assert narrowed(between(1, 5), Or((one, four))).values == (1, 4, 5)
    wide = narrowed(between(1, 10**6), Or((one, Compare(">=", A, Literal(1000, BIGINT)))))
    assert (wide.values, wide.bounds) == (None, (1, 10**6))
    missing = narrowed(between(1, 5, nullable=True), Or((IsNull(A), four)))
    assert missing == between(4, 5, nullable=True)
    never = And((four, Compare("<", A, Literal(2, BIGINT))))
    assert narrowed(between(1, 5), Or((never, one))).values == (1,)
    assert narrowed(between(1, 5), Or((never, Literal(None, BOOLEAN)))).values == ()


def test_or_says_nothing_of_a_column_that_a_part_leaves_alone() -> None:
    b = Column("b", INTEGER)
    env = {"a": between(0, 9), "b": between(0, 9)}
    either = Or((Compare("=", A, Literal(1, BIGINT)), Compare("=", b, Literal(2, BIGINT))))
    assert narrow_where(env, either) == env


def test_a_function_says_nothing_of_rows_for_which_a_condition_is_not_true() -> None:
    """It may be NULL there though its column is not."""
    after = Compare(">=", Cast(Column("a", TIMESTAMP), DATE), Literal(dt.date(2024, 3, 1), DATE))
    assert narrow_unless({"a": AT}, after) == {"a": AT}


def test_nothing_narrows_what_an_engine_may_read() -> None:
    env = EnforcedDomains({"a": AT})
    assert (
        narrow_where(env, Compare("=", Cast(Column("a", TIMESTAMP), DATE), Literal(dt.date(2024, 3, 1), DATE))) == env
    )
