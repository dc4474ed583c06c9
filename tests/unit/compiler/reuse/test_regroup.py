"""Which groups make up others: parts of time that lie within one another."""

from __future__ import annotations

from itertools import product

import duckdb
import pytest

from dpsql.compiler.reuse.regroup import FINER_UNITS

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
MOMENTS = "SELECT TIMESTAMP '1999-12-30' + to_microseconds(i * 104729000003) AS x FROM range(30000) AS t(i)"


@pytest.mark.parametrize(("unit", "finer"), [pair for pair in product(UNITS, UNITS) if pair[0] != pair[1]])
def test_a_part_of_time_is_derived_from_finer_ones_alone(unit: str, finer: str) -> None:
    """As the engine has it, over a hundred years: exactly the pairs that are listed, and no other."""
    apart = f"date_trunc('{unit}', x) IS DISTINCT FROM date_trunc('{unit}', date_trunc('{finer}', x))"
    found = duckdb.sql(f"SELECT COUNT(*) FROM ({MOMENTS}) WHERE {apart}").fetchall()
    assert (found == [(0,)]) == (finer in FINER_UNITS.get(unit, ()))
