"""Unique keys are checked under the owner's SQL and used under the scan's: both must sanitise alike."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import combinations

import duckdb
import pytest

from dpsql.compiler.plan.relations import ScanColumn
from dpsql.compiler.render.expressions import render_literal, render_type_name
from dpsql.compiler.render.expressions import render_sanitized_column as scanned
from dpsql.engines.duckdb_admin import sanitized_sql as checked
from dpsql.schema.model import Column, Domain
from dpsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    HUGEINT,
    INTEGER,
    INTEGER_BITS,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    UUID,
    Kind,
    Type,
    decimal_type,
)

VALUES = {
    BIGINT: ["0", "-1", "7", "9223372036854775807", "-9223372036854775808", "NULL"],
    INTEGER: ["0", "5", "9", "10", "11", "-5", "2147483647", "NULL"],
    HUGEINT: ["0", "5", str(2**63 - 1), str(2**63), str(2**64 - 1), str(2**127 - 1), str(-(2**127)), "NULL"],
    SMALLINT: ["0", "5", "32767", "-32768", "NULL"],
    decimal_type(9, 2): ["0", "1.25", "9.99", "10", "10.01", "-5", "9999999.99", "NULL"],
    TEXT: ["''", "'a'", "'A'", "'a '", "'é'", "repeat('x', 8)", "repeat('x', 9)", "repeat('x', 10)", "'x\ny'", "NULL"],
    DATE: ["DATE '2020-01-01'", "DATE '0001-01-01'", "DATE '9999-12-31'", "'infinity'::DATE", "'-infinity'::DATE",
           "'10000-01-01'::DATE", "'0001-01-01 (BC)'::DATE", "NULL"],
    TIMESTAMP: ["TIMESTAMP '2020-01-01'", "TIMESTAMP '9999-12-31 23:59:59'", "'infinity'::TIMESTAMP",
                "'10000-01-01'::TIMESTAMP", "NULL"],
    BOOLEAN: ["TRUE", "FALSE", "NULL"],
    UUID: ["uuid()", "'00000000-0000-0000-0000-000000000000'::UUID", "NULL"],
}  # fmt: skip
BOUNDS = {INTEGER: (0, 10), HUGEINT: (0, 10), SMALLINT: (0, 10), decimal_type(9, 2): (0, 10)}


@pytest.mark.parametrize("is_id", [True, False], ids=["id", "value"])
@pytest.mark.parametrize("bounded", [True, False], ids=["bounded", "unbounded"])
@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_rows_that_the_scan_takes_for_one_key_are_one_for_the_owner(type_: Type, bounded: bool, is_id: bool) -> None:
    bounds = BOUNDS.get(type_) if bounded and not is_id else None  # ids have no bounds
    domain = Domain(type_, True, *(map(Fraction, bounds) if bounds else (None, None)))
    declared = Column("k", domain, max_length=9)
    column = ScanColumn("k", "k", type_, domain, 9, is_id)
    rows = " UNION ALL ".join(f"SELECT {number}, CAST({value} AS {render_type_name(type_)})"
                              for number, value in enumerate(VALUES[type_] * 2))  # fmt: skip
    found = duckdb.execute(
        f"WITH t(row, k) AS ({rows}) SELECT row, {scanned(column, 't')}, {checked(declared, is_id)} FROM t"
    ).fetchall()
    for _, key, owners in found:  # the owner may look at more keys than the scan uses, never at fewer
        assert key is None or owners is not None
    for _, key, owners in found:
        for _, other, others in found:
            assert key is None or key != other or owners == others


def extremes(type_: Type) -> list[Fraction]:
    """The ends of a type, and what lies beyond them, within them and around 0."""
    if type_.kind is Kind.DECIMAL:
        assert type_.precision is not None
        most, step = Fraction(10**type_.precision - 1, 10 ** (type_.scale or 0)), Fraction(1, 10 ** (type_.scale or 0))
    else:
        most, step = Fraction(2 ** (INTEGER_BITS[type_.kind] - 1) - 1), Fraction(1)
    return [-most * 10, -most - step, -most, -step, Fraction(0), step, most // 2, most, most + step, most * 10]


WIDE = [SMALLINT, INTEGER, BIGINT, HUGEINT] + [decimal_type(p, s) for p in (1, 9, 18, 30, 38) for s in range(p + 1)]


@pytest.mark.parametrize("type_", WIDE, ids=str)
def test_no_declared_bounds_make_a_scan_fail_on_some_rows(type_: Type) -> None:
    """A bound that the engine cannot read fails on the rows that are compared with it, and tells that there are any."""
    edges = extremes(type_)
    inside = [edge for edge in edges if abs(edge) <= edges[-3]]
    values = [render_literal(_number(one, type_), type_) for one in inside]
    rows = " UNION ALL ".join(f"SELECT CAST({value} AS {render_type_name(type_)})" for value in values)
    for lower, upper in combinations(edges, 2):
        domain = Domain(type_, True, lower, upper)
        column = ScanColumn("k", "k", type_, domain, 9, is_id=False)
        found = duckdb.execute(f"WITH t(k) AS ({rows}) SELECT k, {scanned(column, 't')} FROM t").fetchall()
        for raw, clipped in found:
            near = min(max(Fraction(raw), lower), upper)
            assert clipped is None or abs(Fraction(clipped) - near) <= Fraction(1, 10 ** (type_.scale or 0))
            assert clipped is not None or near not in inside


def _number(value: Fraction, type_: Type) -> Decimal | int:
    with localcontext(Context(prec=80)):
        return Decimal(value.numerator) / value.denominator if type_.kind is Kind.DECIMAL else int(value)
