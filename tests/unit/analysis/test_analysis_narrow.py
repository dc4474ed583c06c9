"""Narrowing: what a condition says about the rows for which it is true."""

from decimal import Decimal
from fractions import Fraction

import pytest

from dpsql.analysis.narrow import narrow
from dpsql.plan.expr import And, Cast, Column, Compare, Expr, InList, IsNull, Literal, Not, Or
from dpsql.schema.domain import Domain
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, SMALLINT, TEXT, Type, decimal

A = Column("a", INTEGER)


def between(lower: int, upper: int, type_: Type = INTEGER, nullable: bool = False) -> Domain:
    return Domain(type_, nullable, Fraction(lower), Fraction(upper))


def narrowed(domain: Domain, condition: Expr) -> Domain:
    return narrow({"a": domain}, condition)["a"]


def test_comparisons_narrow_bounds_and_take_null_out() -> None:
    wide = between(0, 100, nullable=True)
    assert narrowed(wide, Compare(">=", A, Literal(10, BIGINT))) == between(10, 100)
    assert narrowed(wide, Compare(">", A, Literal(10, BIGINT))) == between(11, 100)
    assert narrowed(wide, Compare("<", Cast(A, DOUBLE), Literal(9.5, DOUBLE))) == between(0, 9)
    assert narrowed(wide, Compare(">", Literal(10, BIGINT), A)) == between(0, 9)


def test_strict_comparisons_of_doubles_keep_the_bound() -> None:
    column = Column("a", DOUBLE)
    result = narrow({"a": between(0, 100, DOUBLE)}, Compare(">", column, Literal(1.5, DOUBLE)))["a"]
    assert (result.lower, result.upper) == (Fraction(3, 2), 100)


def test_and_narrows_by_all_its_parts_and_or_by_none() -> None:
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
    result = narrow({"a": between(0, 100, DOUBLE)}, tenth)["a"]
    assert result.values == (0.1,)
    money = Column("a", decimal(10, 2))
    one = narrow({"a": Domain(decimal(10, 2))}, Compare("=", money, Literal(Decimal("1.05"), decimal(10, 2))))["a"]
    assert one.values == (Decimal("1.05"),)


@pytest.mark.parametrize("other", [decimal(2, 1), TEXT, DOUBLE, BOOLEAN])
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
    assert result.bounded and result.lower is not None and result.upper is not None and result.lower <= result.upper


def test_a_comparison_with_null_says_nothing() -> None:
    assert narrowed(between(0, 10, nullable=True), Compare("=", A, Literal(None, BIGINT))) == between(
        0, 10, nullable=True
    )
