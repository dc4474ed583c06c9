"""Functions that are written with others, and their limits: what is beyond them is refused before any row is read."""

import duckdb
import pytest

from dpsql.compiler.bind.composed_calls import MAX_SHIFT
from dpsql.errors import Unsupported
from tests.support.expressions import POOLS, bound, computed, load


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    load(connection)
    return connection


def values(sql: str, database: duckdb.DuckDBPyConnection) -> list[object]:
    return [value for (value,) in computed([bound(sql)], database)]


@pytest.mark.parametrize("column", ["n", "m", "s", "i"])
@pytest.mark.parametrize("bits", [0, 1, 5, MAX_SHIFT])
def test_shifts_are_those_of_whole_numbers(column: str, bits: int, database: duckdb.DuckDBPyConnection) -> None:
    """To the right they round down; what does not fit to the left is NULL, in its own row alone."""
    numbers = [value for (value,) in database.execute(f"SELECT {column} FROM worst ORDER BY rowid").fetchall()]
    right = [None if number is None else number >> bits for number in numbers]
    left = [None if number is None else number << bits for number in numbers]
    fits = [number if number is not None and -(2**63) <= number < 2**63 else None for number in left]
    assert values(f"{column} >> {bits}", database) == right
    assert values(f"{column} << {bits}", database) == fits
    assert values(f"~{column}", database) == [None if number is None else ~number for number in numbers]


@pytest.mark.parametrize("sql", [f"n << {MAX_SHIFT + 1}", f"n >> {MAX_SHIFT + 1}", "n << m", "n >> -1", "x << 1", "~x"])
def test_other_shifts_are_refused(sql: str) -> None:
    """A power of two that 64 bits do not hold would fail, after the charge."""
    assert {"n", "m", "x"} <= POOLS.keys()
    with pytest.raises(Unsupported):
        bound(sql)
