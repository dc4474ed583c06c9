"""Domains: every value that an expression can have lies within, NULL included."""

import datetime as dt
from fractions import Fraction

import pytest

from dpsql.compiler.analysis.domains import domain_of
from dpsql.compiler.functions.function import MAX_VALUES, hull_of_domains, merge_values
from dpsql.compiler.plan.expressions import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Clip,
    Column,
    Compare,
    Expr,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    Quantise,
)
from dpsql.schema.model import Domain
from dpsql.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, SMALLINT, TEXT, TIMESTAMP, Type


def between(lower: object, upper: object, type_: Type = INTEGER, nullable: bool = False) -> Domain:
    return Domain(type_, nullable, Fraction(str(lower)), Fraction(str(upper)))


A, B = Column("a", INTEGER), Column("b", INTEGER)


def arithmetic(op: str, a: Domain, b: Domain, type_: Type = BIGINT) -> Domain:
    return domain_of(Arithmetic(op, A, B, type_), {"a": a, "b": b})


def call(function: str, *args: tuple[Expr, Domain] | Literal, type_: Type = DOUBLE) -> Domain:
    exprs = [arg if isinstance(arg, Literal) else arg[0] for arg in args]
    env = {arg[0].name: arg[1] for arg in args if isinstance(arg, tuple) and isinstance(arg[0], Column)}
    return domain_of(Call(function, tuple(exprs), type_), env)


# --- arithmetic ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "expected"),
    [("+", (-7, 14)), ("-", (-15, 6)), ("*", (-50, 40))],
)
def test_arithmetic_is_bounded_by_its_corners(op: str, expected: tuple[int, int]) -> None:
    result = arithmetic(op, between(-5, 4), between(-2, 10))
    assert (result.lower, result.upper) == expected


def test_division_by_an_interval_without_zero_is_bounded_and_never_null() -> None:
    result = arithmetic("//", between(-7, 7), between(2, 3))
    assert (result.lower, result.upper, result.nullable) == (-3, 3, False)  # toward zero
    result = arithmetic("/", between(1, 8, DOUBLE), between(-4, -2, DOUBLE), DOUBLE)
    assert (result.lower, result.upper, result.nullable) == (-4, Fraction(-1, 4), False)


@pytest.mark.parametrize("op", ["/", "//"])
def test_division_by_an_interval_with_zero_has_no_bounds_and_may_be_null(op: str) -> None:
    result = arithmetic(op, between(1, 2), between(0, 3))
    assert (result.is_bounded, result.nullable) == (False, True)


def test_a_remainder_is_smaller_than_its_divisor_and_not_past_its_dividend() -> None:
    assert arithmetic("%", between(0, 14), between(3, 3)) == between(0, 2, BIGINT)
    assert arithmetic("%", between(0, 1), between(3, 3)) == between(0, 1, BIGINT)
    signed = arithmetic("%", between(-9, 4), between(-5, 5))
    assert (signed.lower, signed.upper, signed.nullable) == (-4, 4, True)  # a divisor of 0 gives NULL


def test_integers_that_may_overflow_have_no_bounds_and_may_be_null() -> None:
    result = arithmetic("*", between(0, 2**40), between(0, 2**40))
    assert (result.is_bounded, result.nullable) == (False, True)


def test_doubles_past_the_largest_double_have_no_bounds() -> None:
    huge = Domain(DOUBLE, False, Fraction(0), Fraction(2) ** 600)
    assert not arithmetic("*", huge, huge, DOUBLE).is_bounded


def test_null_of_an_operand_is_null_of_the_result() -> None:
    assert arithmetic("+", between(0, 1, nullable=True), between(0, 1)).nullable
    assert not arithmetic("+", between(0, 1), between(0, 1)).nullable


def test_one_missing_bound_is_no_bound() -> None:
    assert not arithmetic("+", Domain(INTEGER, False, Fraction(0)), between(0, 1)).is_bounded


# --- one of several --------------------------------------------------------------------------------------------------


def test_a_hull_holds_all_bounds_and_values() -> None:
    one, other = between(0, 5), between(3, 9, nullable=True)
    assert hull_of_domains((one, other), INTEGER) == between(0, 9, nullable=True)
    texts = (Domain(TEXT, False, values=("a", "b")), Domain(TEXT, False, values=("b", "c")))
    assert hull_of_domains(texts, TEXT).values == ("a", "b", "c")


def test_a_hull_with_something_unbounded_is_unbounded() -> None:
    assert not hull_of_domains((between(0, 5), Domain(INTEGER, False)), INTEGER).is_bounded
    assert hull_of_domains((Domain(TEXT, False, values=("a",)), Domain(TEXT, False)), TEXT).values is None


def test_a_null_literal_adds_null_and_no_value() -> None:
    null = domain_of(Literal(None, INTEGER), {})
    assert hull_of_domains((between(0, 5), null), INTEGER) == between(0, 5, nullable=True)


def test_long_lists_of_values_are_given_up() -> None:
    assert merge_values(tuple(range(MAX_VALUES)), (0,)) == tuple(range(MAX_VALUES))
    assert merge_values(tuple(range(MAX_VALUES)), (-1,)) is None


def test_a_case_branch_is_narrowed_by_its_own_condition() -> None:
    case = Case(((Compare(">", A, Literal(10, BIGINT)), A),), Literal(0, BIGINT), INTEGER)
    assert domain_of(case, {"a": between(-100, 100)}) == Domain(INTEGER, False, Fraction(0), Fraction(100))


def test_a_case_without_else_may_be_null() -> None:
    case = Case(((Compare(">", A, Literal(10, BIGINT)), Literal("x", TEXT)),), Literal(None, TEXT), TEXT)
    result = domain_of(case, {"a": between(0, 100)})
    assert (result.values, result.nullable) == (("x",), True)


# --- casts -----------------------------------------------------------------------------------------------------------


def cast(domain: Domain, type_: Type) -> Domain:
    return domain_of(Cast(Column("a", domain.type), type_), {"a": domain})


def test_a_cast_that_may_fail_may_be_null() -> None:
    assert cast(between(0, 40_000), SMALLINT).nullable
    assert not cast(between(0, 30_000), SMALLINT).nullable
    assert not cast(between(0, 30_000), BIGINT).nullable
    assert cast(Domain(TEXT, False), INTEGER).nullable
    assert not cast(between(0, 5), TEXT).nullable


def test_a_cast_to_integers_rounds_to_a_neighbor() -> None:
    result = cast(between("0.4", "2.5", DOUBLE), INTEGER)
    assert (result.lower, result.upper) == (0, 3)


def test_dates_and_timestamps_scale_between_days_and_microseconds() -> None:
    days = cast(between(10, 11, DATE), TIMESTAMP)
    assert (days.lower, days.upper) == (10 * 86_400_000_000, 11 * 86_400_000_000)
    assert cast(days, DATE) == between(10, 11, DATE)
    assert cast(between(-1, 86_400_000_000, TIMESTAMP), DATE) == between(-1, 1, DATE)  # down, before 1970 too


def test_a_boolean_as_a_number_is_0_or_1() -> None:
    result = cast(Domain(BOOLEAN, True, values=(False, True)), INTEGER)
    assert (result.values, result.lower, result.upper, result.nullable) == ((0, 1), 0, 1, True)


def test_text_as_a_number_has_no_bounds() -> None:
    assert not cast(Domain(TEXT, False), DOUBLE).is_bounded


# --- functions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lower", "upper", "expected"), [(-5, 3, (0, 5)), (2, 3, (2, 3)), (-3, -2, (2, 3))])
def test_abs(lower: int, upper: int, expected: tuple[int, int]) -> None:
    result = call("abs", (A, between(lower, upper)), type_=BIGINT)
    assert (result.lower, result.upper) == expected


def test_greatest_is_at_least_what_is_never_null() -> None:
    sure, unsure = between(0, 5), between(3, 9, nullable=True)
    result = call("greatest", (A, sure), (B, unsure), type_=INTEGER)
    assert (result.lower, result.upper, result.nullable) == (0, 9, False)
    both = call("greatest", (A, sure), (B, between(3, 9)), type_=INTEGER)
    assert (both.lower, both.upper) == (3, 9)


def test_least_is_at_most_what_is_never_null() -> None:
    result = call("least", (A, between(0, 5)), (B, Domain(INTEGER, True)), type_=INTEGER)
    assert (result.lower, result.upper, result.nullable) == (None, 5, False)
    unsure = call("least", (A, between(0, 5, nullable=True)), (B, between(3, 9, nullable=True)), type_=INTEGER)
    assert (unsure.lower, unsure.upper, unsure.nullable) == (0, 9, True)


def test_coalesce_is_null_only_if_all_are() -> None:
    one = call("coalesce", (A, between(0, 5, nullable=True)), Literal(9, BIGINT), type_=BIGINT)
    assert (one.lower, one.upper, one.nullable) == (0, 9, False)
    assert call("coalesce", (A, between(0, 5, nullable=True)), type_=INTEGER).nullable


def test_nullif_may_be_null() -> None:
    assert call("nullif", (A, between(0, 5)), Literal(1, BIGINT), type_=INTEGER).nullable


def test_round_moves_outward_to_its_digits() -> None:
    result = call("round", (A, between("0.14", "2.51", DOUBLE)), Literal(1, BIGINT))
    assert (result.lower, result.upper) == (Fraction(1, 10), Fraction(26, 10))
    assert call("round", (A, between("0.14", "2.51", DOUBLE))) == between(0, 3, DOUBLE)


def test_floor_and_ceil() -> None:
    assert call("floor", (A, between("-0.5", "2.5", DOUBLE))) == between(-1, 2, DOUBLE)
    assert call("ceil", (A, between("-0.5", "2.5", DOUBLE))) == between(0, 3, DOUBLE)


def test_letters_of_listed_ascii_text_have_values_and_others_do_not() -> None:
    values = Domain(TEXT, False, values=("a", "A", " b "))
    assert call("upper", (A, values), type_=TEXT).values == ("A", " B ")
    assert call("trim", (A, values), type_=TEXT).values == ("a", "A", "b")
    assert call("upper", (A, Domain(TEXT, False, values=("straße",))), type_=TEXT).values is None


def test_extract_knows_its_cycles_and_the_years_within_bounds() -> None:
    at = Domain(DATE, True, Fraction(19_000), Fraction(19_400))  # 2022-01-08 to 2023-02-12
    month = call("extract", Literal("month", TEXT), (A, at), type_=BIGINT)
    assert (month.lower, month.upper, month.nullable) == (1, 12, True)
    year = call("extract", Literal("year", TEXT), (A, at), type_=BIGINT)
    assert (year.lower, year.upper) == (2022, 2023)
    assert not call("extract", Literal("year", TEXT), (A, Domain(DATE)), type_=BIGINT).is_bounded


def test_date_trunc_lists_every_period_within_bounds() -> None:
    start, end = dt.date(2023, 11, 15), dt.date(2024, 2, 1)
    epoch = dt.date(1970, 1, 1)
    at = Domain(DATE, False, Fraction((start - epoch).days), Fraction((end - epoch).days))
    months = call("date_trunc", Literal("month", TEXT), (A, at), type_=TIMESTAMP)
    assert months.values == tuple(dt.datetime(y, m, 1) for y, m in ((2023, 11), (2023, 12), (2024, 1), (2024, 2)))
    weeks = call("date_trunc", Literal("week", TEXT), (A, at), type_=TIMESTAMP).values
    assert weeks is not None and weeks[0] == dt.datetime(2023, 11, 13) and weeks[-1] == dt.datetime(2024, 1, 29)


def test_date_trunc_of_too_many_periods_lists_none() -> None:
    at = Domain(TIMESTAMP, False, Fraction(0), Fraction(86_400_000_000 * 3650))
    assert call("date_trunc", Literal("hour", TEXT), (A, at), type_=TIMESTAMP).values is None


def test_a_clip_moves_bounds_inward_and_may_be_null() -> None:
    result = domain_of(Clip(A, Fraction(0), Fraction(10)), {"a": between(-5, 5)})
    assert (result.lower, result.upper, result.nullable) == (0, 5, True)
    beyond = domain_of(Clip(A, Fraction(0), Fraction(10)), {"a": between(20, 30)})
    assert (beyond.lower, beyond.upper) == (10, 10)
    free = domain_of(Clip(A, Fraction(0), Fraction(10)), {"a": Domain(INTEGER)})
    assert (free.lower, free.upper) == (0, 10)


def test_conditions_are_booleans_that_are_null_with_their_parts() -> None:
    null, sure = {"a": between(0, 1, nullable=True)}, {"a": between(0, 1)}
    compare = Compare("<", A, Literal(1, BIGINT))
    for condition in (compare, And((compare, compare)), Or((compare, compare)), Not(compare),
                      InList(A, (Literal(1, BIGINT),))):  # fmt: skip
        assert domain_of(condition, null).nullable and not domain_of(condition, sure).nullable
    assert not domain_of(IsNull(A), null).nullable


def test_quantised_values_are_integer_steps_within_their_limits() -> None:
    result = domain_of(Quantise(A, Fraction(1, 2), -3, 7), {"a": Domain(INTEGER)})
    assert (result.type, result.lower, result.upper) == (BIGINT, -3, 7)
