"""A synthetic table's columns as arrays: in DuckDB they are what each cell is by the formula of its bin."""

from __future__ import annotations

import datetime as dt
import pickle
import time
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsql.compiler.plan.steps import Axis, Bins
from dpsql.errors import Error
from dpsql.session.artifacts.synthetic_table import (
    BinSampler,
    build_bin_sampler,
    is_null_code,
    sample_to_array,
    shrink_codes,
)
from dpsql.session.postprocess import sandbox, worker_pool
from dpsql.session.postprocess.release_tables import bin_to_value
from dpsql.session.postprocess.sandbox import ArrayTable, DictionaryColumn, NumericColumn
from dpsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Type,
    decimal_type,
)
from tests.support.shop import open_shop

DAY = 86_400_000_000


def axis_of(type_: Type, bounds: tuple[F, F], grid: F, null: bool = True) -> tuple[Axis, F]:
    """With bins as statements have them: of a grid, between bounds."""
    lower, upper = round(bounds[0] / grid), round(bounds[1] / grid)
    discrete = type_.is_integer or type_.is_time or not type_.is_float
    return Axis("x", type_, None, Bins(lower, upper, grid, type_, discrete), null), grid


def cells(axis: Axis, within: BinSampler, count: int = 3000) -> tuple[Any, Any]:
    draw = np.random.default_rng(7)
    codes = draw.integers(0, axis.size, count)
    offsets = draw.integers(0, np.array(within.widths, dtype=np.int64)[codes])
    ends = np.arange(axis.size)
    return np.concatenate([codes, ends, ends]), np.concatenate(
        [offsets, np.zeros_like(ends), np.array(within.widths, dtype=np.int64) - 1]
    )


def by_cell(axis: Axis, within: BinSampler, codes: Any, offsets: Any) -> list[Any]:
    """The formula, one cell at a time."""
    bins = axis.bins
    assert bins is not None
    own = replace(bins, grid=within.step)
    return [
        None if is_null_code(axis, code) else bin_to_value(within.firsts[code] + offset, own)
        for code, offset in zip(codes.tolist(), offsets.tolist(), strict=True)
    ]


def read(type_: Type, column: DictionaryColumn | NumericColumn) -> list[Any]:
    table = ArrayTable("s", (("x", type_),), (column,))
    return [row[0] for row in sandbox.run_in_process("SELECT x FROM s", [table], 30).rows]


def through_lists(type_: Type, values: list[Any]) -> list[Any]:
    table = sandbox.ReleasedTable("s", (("x", type_),), [values])
    return [row[0] for row in sandbox.run_in_process("SELECT x FROM s", [table], 30).rows]


@pytest.mark.parametrize("null", [True, False])
@pytest.mark.parametrize(
    ("type_", "bounds", "grid", "declared", "fast"),
    [
        (SMALLINT, (F(-300), F(300)), F(40), None, True),
        (INTEGER, (F(0), F(9999)), F(625), None, True),
        (INTEGER, (F(0), F(1000)), F(125, 2), F(5, 2), True),  # halves, which go to even numbers
        (BIGINT, (F(-(2**60)), F(2**60)), F(2**57), None, True),
        (BIGINT, (F(-(2**62)), F(2**62)), F(2**58), None, False),
        (HUGEINT, (F(0), F(2**100)), F(2**97), F(2**80), False),
        (DOUBLE, (F(0), F(1000)), F(125, 2), F(1, 100), True),
        (DOUBLE, (F(-1), F(1)), F(1, 7), None, True),
        (DOUBLE, (F(0), F(10**12)), F(10**12, 15), F(1, 10**6), False),
        (REAL, (F(0), F(10)), F(2, 3), None, True),
        (decimal_type(9, 2), (F(0), F(5000)), F(625, 2), None, True),
        (decimal_type(9, 2), (F(0), F(50)), F(25, 8), F(5, 1000), True),
        (decimal_type(38, 18), (F(-1), F(1)), F(1, 8), F(1, 10**15), True),
        (decimal_type(38, 25), (F(-1), F(1)), F(1, 8), F(1, 10**3), False),
        (decimal_type(30, 0), (F(0), F(10**6)), F(10**5), None, True),
        (DATE, (F(-40_000), F(20_000)), F(4000), None, True),
        (TIMESTAMP, (F(946_684_800_000_000), F(1_609_372_800_000_000)), F(90 * DAY), None, True),
        (TIMESTAMP, (F(-62_135_596_800_000_000), F(253_402_300_799_000_000)), F(10**16), F(10**6), True),
        (TIMESTAMPTZ, (F(0), F(400 * DAY)), F(29 * DAY + 1, 3), None, True),
    ],
)
def test_a_column_is_what_each_cell_is(
    type_: Type, bounds: tuple[F, F], grid: F, declared: F | None, fast: bool, null: bool
) -> None:
    axis, _ = axis_of(type_, bounds, grid, null)
    within = build_bin_sampler(axis, bounds, declared)
    assert within is not None
    codes, offsets = cells(axis, within)
    column = sample_to_array(axis, within, codes, offsets)
    assert isinstance(column, NumericColumn) is fast
    expected = through_lists(type_, by_cell(axis, within, codes, offsets))
    found = read(type_, column)
    assert found == expected and [type(one) for one in found] == [type(one) for one in expected]
    assert (None in found) is null


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (TEXT, ("a", "", "it's", "ü", None)),
        (BOOLEAN, (False, True, None)),
        (DATE, (dt.date(1900, 1, 1), dt.date(2020, 2, 29))),
        (decimal_type(4, 1), (Decimal("1.5"), None)),
        (TEXT, tuple(f"value {number}" for number in range(1000))),
    ],
)
def test_codes_are_positions_in_values(type_: Type, values: tuple[Any, ...]) -> None:
    codes = np.arange(5000) % len(values)
    assert read(type_, DictionaryColumn(shrink_codes(codes, len(values)), values)) == [
        values[code] for code in codes.tolist()
    ]


def test_a_table_without_rows() -> None:
    none = np.zeros(0, dtype=np.int64)
    columns = (DictionaryColumn(none, ("a",)), NumericColumn(np.ma.MaskedArray(none, mask=none == 0)))
    table = ArrayTable("s", (("a", TEXT), ("n", INTEGER)), columns)
    assert sandbox.run_in_process("SELECT COUNT(*), MAX(a), SUM(n) FROM s", [table], 30).rows == [(0, None, None)]
    assert sandbox.describe_in_process("SELECT * FROM s", [table])[1].spelling == "INTEGER"
    with pytest.raises(ValueError):
        ArrayTable("s", (), ())


def many() -> ArrayTable:
    codes = np.arange(100_000)
    columns = [("n", BIGINT), *((f"c{place}", TEXT) for place in range(7))]
    coded = [DictionaryColumn(shrink_codes(codes % 5, 5), ("a", "b", "c", "d", None)) for _ in range(7)]
    return ArrayTable("s", tuple(columns), (NumericColumn(np.ma.MaskedArray(codes)), *coded))


def test_arrays_stand_beside_lists_and_within_statements_with_their_own_with() -> None:
    other = sandbox.ReleasedTable("r1", (("c0", TEXT), ("k", BIGINT)), [["a", "b"], [1, 2]])
    sql = """WITH "arrays of s" AS (SELECT * FROM r1)
             SELECT k, COUNT(*), MIN(n) FROM s JOIN "arrays of s" USING (c0) GROUP BY k ORDER BY k"""
    for tables in ([many(), other], [other, many()]):
        assert sandbox.run_in_process(sql, tables, 30).rows == [(1, 20_000, 0), (2, 20_000, 1)]
    twice = "SELECT a.n FROM s AS a JOIN s AS b ON a.n = b.n WHERE b.c0 IS NULL ORDER BY 1 LIMIT 2"
    assert sandbox.run_in_process(twice, [many()], 30).rows == [(4,), (9,)]


def test_arrays_are_gone_with_their_statement() -> None:
    sandbox.run_in_process("SELECT 1 FROM s LIMIT 1", [many()], 30)
    for sql in ('SELECT * FROM temp.main."arrays of s"', 'SELECT * FROM "arrays of s"'):
        with pytest.raises(Error, match="does not exist"):
            sandbox.run_in_process(sql, [], 30)
    assert sandbox.run_in_process("SELECT COUNT(*) FROM duckdb_views() WHERE NOT internal", [], 30).rows == [(0,)]


def test_a_child_reads_arrays() -> None:
    children = worker_pool.WorkerPool(max_workers=1, max_idle=1)
    try:
        found = children.run_query("SELECT COUNT(*), COUNT(c3), MAX(n) FROM s", [many()], 30)
        assert found.rows == [(100_000, 80_000, 99_999)]
    finally:
        children.close()
    assert len(pickle.dumps(many(), pickle.HIGHEST_PROTOCOL)) < 3_000_000


def test_many_rows_are_read_quickly() -> None:
    """Five seconds for the columns and more than one for each statement, as lists."""
    bounds = (F(0), F(1_000_000))
    axis, _ = axis_of(DOUBLE, bounds, F(62_500))
    within = build_bin_sampler(axis, bounds, F(1, 100))
    assert within is not None
    codes, offsets = cells(axis, within, 100_000)
    start = time.process_time()
    column = sample_to_array(axis, within, codes, offsets)
    table = ArrayTable("s", tuple((f"c{place}", DOUBLE) for place in range(8)), (column,) * 8)
    for _ in range(5):
        sandbox.run_in_process("SELECT * FROM s LIMIT 3", [table], 30)
    assert time.process_time() - start < 1


def test_rows_of_a_session(tmp_path: Path) -> None:
    session = open_shop(tmp_path)[0]
    columns = "region, age, vip, joined, kind, amount, qty, price, paid, made"
    session.execute(f"CREATE SYNTHETIC TABLE s AS SELECT {columns} FROM people JOIN orders USING (uid)")
    rows = session.execute("SELECT * FROM s").rows
    kinds = [{type(row[place]) for row in rows} - {type(None)} for place in range(10)]
    assert kinds == [{str}, {int}, {bool}, {dt.date}, {str}, {float}, {int}, {Decimal}, {bool}, {dt.datetime}]
    assert None in {row[0] for row in rows} and None in {row[8] for row in rows}
    assert all(row[5] % 0.25 == 0 and -100 <= row[5] <= 1000 and dt.date(2020, 1, 1) <= row[3] for row in rows)
