"""Unique keys are checked under the owner's SQL and used under the scan's: both must sanitise alike."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest

from dpsql.engines.owner import sanitised as checked
from dpsql.plan.relations import ScanColumn
from dpsql.schema.domain import Domain
from dpsql.schema.model import Column
from dpsql.sql.literals import type_name
from dpsql.sql.render_expr import sanitised as scanned
from dpsql.types import BIGINT, BOOLEAN, DATE, INTEGER, SMALLINT, TEXT, TIMESTAMP, UUID, Type, decimal

VALUES = {
    BIGINT: ["0", "-1", "7", "9223372036854775807", "-9223372036854775808", "NULL"],
    INTEGER: ["0", "5", "9", "10", "11", "-5", "2147483647", "NULL"],
    SMALLINT: ["0", "5", "32767", "-32768", "NULL"],
    decimal(9, 2): ["0", "1.25", "9.99", "10", "10.01", "-5", "9999999.99", "NULL"],
    TEXT: ["''", "'a'", "'A'", "'a '", "'é'", "repeat('x', 8)", "repeat('x', 9)", "repeat('x', 10)", "'x\ny'", "NULL"],
    DATE: ["DATE '2020-01-01'", "DATE '0001-01-01'", "DATE '9999-12-31'", "'infinity'::DATE", "'-infinity'::DATE",
           "'10000-01-01'::DATE", "'0001-01-01 (BC)'::DATE", "NULL"],
    TIMESTAMP: ["TIMESTAMP '2020-01-01'", "TIMESTAMP '9999-12-31 23:59:59'", "'infinity'::TIMESTAMP",
                "'10000-01-01'::TIMESTAMP", "NULL"],
    BOOLEAN: ["TRUE", "FALSE", "NULL"],
    UUID: ["uuid()", "'00000000-0000-0000-0000-000000000000'::UUID", "NULL"],
}  # fmt: skip
BOUNDS = {INTEGER: (0, 10), SMALLINT: (0, 10), decimal(9, 2): (0, 10)}


@pytest.mark.parametrize("is_id", [True, False], ids=["id", "value"])
@pytest.mark.parametrize("bounded", [True, False], ids=["bounded", "unbounded"])
@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_rows_that_the_scan_takes_for_one_key_are_one_for_the_owner(type_: Type, bounded: bool, is_id: bool) -> None:
    bounds = BOUNDS.get(type_) if bounded and not is_id else None  # ids have no bounds
    domain = Domain(type_, True, *(map(Fraction, bounds) if bounds else (None, None)))
    declared = Column("k", domain, max_length=9)
    column = ScanColumn("k", "k", type_, domain, 9, is_id)
    rows = " UNION ALL ".join(f"SELECT {number}, CAST({value} AS {type_name(type_)})"
                              for number, value in enumerate(VALUES[type_] * 2))  # fmt: skip
    found = duckdb.execute(
        f"WITH t(row, k) AS ({rows}) SELECT row, {scanned(column, 't')}, {checked(declared, is_id)} FROM t"
    ).fetchall()
    for _, key, owners in found:  # the owner may look at more keys than the scan uses, never at fewer
        assert key is None or owners is not None
    for _, key, owners in found:
        for _, other, others in found:
            assert key is None or key != other or owners == others
