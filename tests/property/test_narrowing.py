"""What a condition is said to leave of a column, it does leave, on the worst values: no row that it keeps is lost."""

from __future__ import annotations

import datetime as dt
from random import Random

import duckdb
import pytest

from dpsql.compiler.analysis.narrowing import narrow_where
from dpsql.compiler.functions.calendar import TRUNCATIONS
from dpsql.compiler.plan.expressions import Expr
from dpsql.compiler.plan.walk import columns_of
from tests.support.domain_membership import fits
from tests.support.expressions import ENVIRONMENT, bound, computed, load, stored

TIMES = ("e", "f", "p", "q", "o")
AROUND = [
    *(f"extract({part} FROM {x})" for part in ("year", "epoch", "month") for x in TIMES),
    *(f"{x}::{to}" for to in ("date", "timestamp", "timestamptz") for x in TIMES),
    *(f"date_trunc('{part}', {x})" for part in TRUNCATIONS for x in TIMES),
    *(f"({x} {op} INTERVAL '{span}')" for x in TIMES for op in "+-" for span in ("1 day", "25 hours", "1 month")),
    *(f"({x} + {days})" for x in ("e", "f") for days in (7, -400)),
    *(f"to_char({x}, '{text}')" for x in ("f", "q") for text in ("YYYY-MM", "MM", "IYYY-IW", "YYYY-IW", "YYYY-MM-DD")),
    *(f"date_trunc('month', {x})::date" for x in TIMES),
    *(f"extract(year FROM {x}::date + 3)" for x in TIMES),
    *(f"extract(epoch FROM date_trunc('week', {x}))" for x in TIMES),
    *("n", "m", "i", "y", "c", "k", "n::double precision", *TIMES),
]  # fmt: skip
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    load(connection)
    # DuckDB 2.0 optimises date_trunc('hour', DATE '1969-12-31') > '1969-12-31' into something that is true.
    connection.execute("PRAGMA disable_optimizer")
    return connection


def literal(value: object) -> str:
    match value:
        case dt.datetime() if value.tzinfo is not None:
            return f"TIMESTAMPTZ '{value.astimezone(dt.UTC).isoformat()}'"
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat()}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case str():
            return f"'{value}'"
        case float():
            return f"{value!r}::double precision"
    return str(value)


def compared_with(sql: str, connection: duckdb.DuckDBPyConnection, rng: Random) -> list[str]:
    """Values that the expression has, and some beside them."""
    found = {row[0] for row in computed([bound(sql)], connection) if row[0] is not None}
    some = rng.sample(sorted(found), min(3, len(found)))  # type: ignore[type-var]
    beside = [value + 1 for value in some if type(value) in (int, float)]
    beside += [value + dt.timedelta(days=1) for value in some if isinstance(value, dt.date) and 1 < value.year < 9999]
    return [literal(value) for value in (*some, *beside[:2])]


def conditions(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rng, made = Random(5), []
    for sql in AROUND:
        values = compared_with(sql, connection, rng)
        single = [f"{sql} {op} {value}" for value in values for op in OPERATORS]
        single += [f"{value} {op} {sql}" for value in values[:1] for op in OPERATORS]
        single += [f"{sql} IN ({', '.join(values[:2])})", f"{sql} BETWEEN {values[0]} AND {values[-1]}"]
        made += single
        made += [" OR ".join(rng.sample(single, 2)), f"({' AND '.join(rng.sample(single, 2))}) OR {rng.choice(single)}"]
        made += [f"{rng.choice(single)} OR {rng.choice(TIMES)} IS NULL", f"{rng.choice(made)} OR {rng.choice(made)}"]
    return made


def test_no_row_that_a_condition_keeps_is_outside_of_what_it_says(database: duckdb.DuckDBPyConnection) -> None:
    rows, narrowed = stored(database), 0
    sqls = conditions(database)
    for start in range(0, len(sqls), 60):
        exprs: list[Expr] = [bound(sql) for sql in sqls[start : start + 60]]
        truths = computed(exprs, database)
        for place, expr in enumerate(exprs):
            said = narrow_where(ENVIRONMENT, expr)
            narrowed += said != ENVIRONMENT
            for name in columns_of(expr):
                for row, truth in zip(rows, truths, strict=True):
                    if truth[place] is True:
                        assert fits(row[name], said[name]), (sqls[start + place], name, row[name], said[name])
    assert narrowed > len(sqls) / 2
