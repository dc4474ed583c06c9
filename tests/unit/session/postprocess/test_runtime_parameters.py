"""What is put into a hole lies within the bounds that were promised when the statement was compiled."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpsql.compiler.plan.relations import Field
from dpsql.compiler.plan.steps import Hole, Shape
from dpsql.schema.model import Domain
from dpsql.session.postprocess.runtime_parameters import bind_runtime_parameters
from dpsql.types import BIGINT, DOUBLE, REAL, Type, decimal_type


def filled(sql: str, type_: Type, lower: str | None, upper: str | None, shape: Shape = Shape.VALUE) -> object:
    ends = [None if end is None else Fraction(end) for end in (lower, upper)]
    hole = Hole("h1", shape, (Field("value", type_),), 10, sql, (Domain(type_, True, *ends),))
    return bind_runtime_parameters([hole], [], 10)["h1"]


@pytest.mark.parametrize(
    ("sql", "type_", "lower", "upper", "value"),
    [
        ("SELECT 7.5::DOUBLE", DOUBLE, "0", "5", 5.0), ("SELECT -7.5::DOUBLE", DOUBLE, "0.5", "5", 0.5),
        ("SELECT 3.5::DOUBLE", DOUBLE, "0", "5", 3.5), ("SELECT 'inf'::DOUBLE", DOUBLE, "0", "5", None),
        ("SELECT 'nan'::DOUBLE", DOUBLE, "0", "5", None), ("SELECT NULL::DOUBLE", DOUBLE, "0", "5", None),
        ("SELECT 9::BIGINT", BIGINT, "0.5", "7.5", 7), ("SELECT -9::BIGINT", BIGINT, "0.5", "7.5", 1),
        ("SELECT 9.25::DECIMAL(9,2)", decimal_type(9, 2), "0", "7.5", Decimal("7.5")),
        ("SELECT 9.25::DECIMAL(9,2)", decimal_type(9, 2), "0", "1/3", Decimal("0.33")),
        ("SELECT -9.25::DECIMAL(9,2)", decimal_type(9, 2), "1/3", "1", Decimal("0.34")),
        ("SELECT 9::BIGINT", BIGINT, None, None, 9), ("SELECT 1e300::DOUBLE", DOUBLE, "0", None, 1e300),
    ],
)  # fmt: skip
def test_numbers_are_moved_into_their_bounds(
    sql: str, type_: Type, lower: str | None, upper: str | None, value: object
) -> None:
    assert filled(sql, type_, lower, upper) == value
    assert filled(sql, type_, lower, upper, Shape.LIST) == [value]
    assert filled(sql, type_, lower, upper, Shape.ROWS) == [{"value": value}]


@pytest.mark.parametrize("bound", ["1/3", "2/3", "1/10", "7/10"])
def test_a_bound_that_no_double_holds_is_met_from_within(bound: str) -> None:
    assert Fraction(filled("SELECT 9::DOUBLE", DOUBLE, "0", bound)) <= Fraction(bound)  # type: ignore[arg-type]
    assert Fraction(filled("SELECT 0::DOUBLE", DOUBLE, bound, "1")) >= Fraction(bound)  # type: ignore[arg-type]


def test_of_rows_with_one_key_one_is_bound() -> None:
    fields = (Field("v", BIGINT), Field("k", DOUBLE))
    sql = "SELECT * FROM (VALUES (1, 0.5::DOUBLE), (2, 0.5), (3, 7.0), (4, 9.0), (5, NULL)) t(v, k)"
    domains = (Domain(BIGINT, True), Domain(DOUBLE, True, Fraction(0), Fraction(5)))
    hole = Hole("h1", Shape.ROWS, fields, 10, sql, domains, frozenset({"k"}))
    bound = bind_runtime_parameters([hole], [], 10)["h1"]
    assert [(row["v"], row["k"]) for row in bound] == [(1, 0.5), (3, 5.0), (5, None)]


def test_keys_that_the_engine_cannot_tell_apart_are_one() -> None:
    """A row that met both would count twice, and its noise is for once."""
    fields = (Field("v", BIGINT), Field("k", REAL))
    rows = "(1, 0.1::DOUBLE), (2, 0.1 + 1e-12), (3, 0.05), (4, 0.2), (5, 1e300), (6, NULL)"
    for bounds, found in ((None, [1, 3, 4, 5]), (("0.1", "5"), [1, 4, 5])):
        ends = (None, None) if bounds is None else tuple(map(Fraction, bounds))
        domains = (Domain(BIGINT, True), Domain(REAL, True, *ends))
        hole = Hole("h1", Shape.ROWS, fields, 10, f"SELECT * FROM (VALUES {rows}) t(v, k)", domains, frozenset({"k"}))
        bound = bind_runtime_parameters([hole], [], 10)["h1"]
        assert [row["v"] for row in bound] == found
        assert len({np.float32(row["k"]) for row in bound if row["k"] is not None}) == len(found) - 1
