"""Expressions over one table whose columns hold the worst values of every type, as bound and run for a release."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

import duckdb
import sqlglot

from dpsql.compiler.analysis.domains import domain_of
from dpsql.compiler.analysis.narrowing import EnforcedDomains
from dpsql.compiler.bind.expressions import bind_expr
from dpsql.compiler.bind.scope import BoundColumn, Scope, SourceScope
from dpsql.compiler.parse.dialect import AnalystDialect
from dpsql.compiler.plan.expressions import Column, Expr
from dpsql.compiler.plan.walk import map_expr
from dpsql.compiler.render.expressions import render_expr, render_type_name
from dpsql.compiler.rewrite.make_total import _make_expr_total as total
from dpsql.schema.model import Domain, boolean_domain, to_number
from dpsql.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    decimal_type,
)

LONGEST = 12


@dataclass(frozen=True)
class Pool:
    """A column as the scan leaves it, and values that it may then hold, as SQL."""

    domain: Domain
    values: tuple[str, ...]


def _bounded(type_: object, lower: object, upper: object) -> Domain:
    return Domain(type_, True, Fraction(str(lower)), Fraction(str(upper)))  # type: ignore[arg-type]


def _dates(*texts: str) -> tuple[str, ...]:
    return tuple(f"DATE '{text}'" for text in texts)


def _moments(*texts: str) -> tuple[str, ...]:
    return tuple(f"TIMESTAMP '{text}'" for text in texts)


EDGES = ("0001-01-01", "0001-01-03", "0009-12-31", "0010-01-01", "0044-03-15", "1969-12-31", "1970-01-01",
         "2000-02-29", "2020-02-29", "2021-01-03", "2021-12-31", "2024-12-30", "9999-12-31", "9999-01-01")  # fmt: skip
TIMES = ("00:00:00", "23:59:59.999999", "12:30:15.5", "00:59:59.000001")
TEXTS = ("", " ", "  a ", "a", "A", "b", "É", "ß", "İ", "ŉ", "e\u0301", "🇮🇹", "a%b", "a_b", "\\", "a\\", "it''s", "(",
         "[a", "a-b-c", "--", "2020-02-30", "2020-01-31", "20000-01-01", "0000-01-01", "31/01/2020", "12", "-0.0",
         "nan",
         "1e400", "true", "24:00:00", "23:59", "hello world", "o''neil-x y", "x" * LONGEST, "aaaaaaaaaaaa",
         "Jan 2020", "ß" * LONGEST, "🇮🇹" * 6)  # fmt: skip

POOLS: dict[str, Pool] = {
    "i": Pool(Domain(BIGINT), tuple(f"CAST('{v}' AS BIGINT)" for v in (0, 1, -1, 2, 7, 12, 31, 2020, 2**31, 2**53 + 1,
              2**62, 2**63 - 1, -(2**63), -(2**63) + 1))),
    "n": Pool(_bounded(INTEGER, -5, 20), tuple(map(str, (-5, -1, 0, 1, 2, 9, 20)))),
    "s": Pool(Domain(SMALLINT), ("32767", "-32768", "0", "3")),
    "x": Pool(Domain(DOUBLE), tuple(f"CAST('{v!r}' AS DOUBLE)" for v in (0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 9.99, 100.0,
              709.78, 709.79, -745.2, 1e-300, 5e-324, -5e-324, 1e15, 1e16, 1e308, -1e308, 1.7976931348623157e308,
              -1.7976931348623157e308, 9.3e18, -9.3e18, 1577836800.5, 253402300799.0, 253402300800.0))),
    "w": Pool(Domain(DOUBLE), tuple(f"CAST('{v}' AS DOUBLE)" for v in ("nan", "inf", "-inf", "-0.0", "1.5"))),
    "y": Pool(_bounded(DOUBLE, 0, 10), tuple(f"CAST('{v}' AS DOUBLE)" for v in (0, 10, 0.1, 3.5, 9.999999999))),
    "z": Pool(_bounded(DOUBLE, -2, "0.5"), tuple(f"CAST('{v}' AS DOUBLE)" for v in (-2, 0.5, 0, -0.25, -1.999))),
    "r": Pool(Domain(REAL), tuple(f"CAST('{v}' AS REAL)" for v in (0, 1.5, -2.25, 3.4e38, 1e-45))),
    "c": Pool(_bounded(decimal_type(10, 2), "-3.25", "100.50"), tuple(f"CAST({v} AS DECIMAL(10,2))" for v in
              ("-3.25", "100.50", "0", "7.77"))),
    "t": Pool(Domain(TEXT, length=LONGEST), (*(f"'{v}'" for v in TEXTS), "chr(0) || 'a'", "'a' || chr(13) || chr(10)",
              "chr(9) || 'a'", "'a' || chr(10) || 'b'", "chr(160) || 'a'")),
    "k": Pool(Domain(TEXT, values=("a", "Ab c", "", "x-1"), length=4), ("'a'", "'Ab c'", "''", "'x-1'")),
    "m": Pool(Domain(INTEGER, True, Fraction(-3), Fraction(3), (-3, 0, 2, 3)), ("-3", "0", "2", "3")),
    "b": Pool(boolean_domain(True), ("TRUE", "FALSE")),
    "e": Pool(Domain(DATE), _dates(*EDGES)),
    "f": Pool(Domain(DATE, True, *(to_number(dt.date(*day)) for day in ((2019, 12, 25), (2021, 3, 4)))),
              _dates("2019-12-25", "2020-02-29", "2020-12-31", "2021-01-01", "2021-03-04", "2020-07-15")),
    "p": Pool(Domain(TIMESTAMP), _moments(*(f"{day} {time}" for day in EDGES for time in TIMES))),
    "q": Pool(Domain(TIMESTAMP, True, *(to_number(dt.datetime(*day)) for day in ((2020, 1, 30, 23), (2020, 4, 1, 1)))),
              _moments("2020-01-30 23:00:00", "2020-01-31 01:00:00", "2020-02-29 23:59:59.999999",
              "2020-03-31 12:34:56",
                       "2020-04-01 01:00:00", "2020-03-01 00:00:00")),
    "o": Pool(Domain(TIMESTAMPTZ), tuple(f"TIMESTAMPTZ '{day} {time}+00:00'" for day in EDGES for time in TIMES)),
    "h": Pool(Domain(TIME), tuple(f"TIME '{time}'" for time in TIMES)),
    "u": Pool(Domain(UUID), ("CAST('00000000-0000-0000-0000-000000000000' AS UUID)",)),
}  # fmt: skip


def load(connection: duckdb.DuckDBPyConnection, rows: int = 300) -> None:
    """Every value of every column, in random company; every tenth is NULL."""
    rng = Random(7)
    columns = ", ".join(f'"{name}" {render_type_name(pool.domain.type)}' for name, pool in POOLS.items())
    connection.execute(f"CREATE OR REPLACE TABLE worst ({columns})")
    shuffled = {name: _shuffled(pool, rows, rng) for name, pool in POOLS.items()}
    lines = [f"({', '.join(shuffled[name][row] for name in POOLS)})" for row in range(rows)]
    connection.execute(f"INSERT INTO worst VALUES {', '.join(lines)}")


def _shuffled(pool: Pool, rows: int, rng: Random) -> list[str]:
    every = list(pool.values) + ["NULL"] * max(1, len(pool.values) // 9)
    chosen = every + [rng.choice(every) for _ in range(rows - len(every))]
    rng.shuffle(chosen)
    return chosen


COLUMNS = tuple(BoundColumn(name, Column(name, pool.domain.type)) for name, pool in POOLS.items())
ENVIRONMENT = {name: pool.domain for name, pool in POOLS.items()}


def bound(sql: str) -> Expr:
    """The expression as it would be rendered for an engine."""
    node = sqlglot.parse_one(f"SELECT {sql}", dialect=AnalystDialect).expressions[0]
    return total(bind_expr(node, Scope((SourceScope("worst", COLUMNS),))), EnforcedDomains(ENVIRONMENT))


def claimed(expr: Expr) -> Domain:
    return domain_of(expr, ENVIRONMENT)


def computed(exprs: Sequence[Expr], connection: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """The expressions' values in every row, in the rows' order."""
    columns = ", ".join(f"{render_expr(expr)} AS v{place}" for place, expr in enumerate(exprs))
    return connection.execute(f"SELECT {columns} FROM worst ORDER BY rowid").fetchall()


def stored(connection: duckdb.DuckDBPyConnection) -> list[dict[str, object]]:
    """The rows themselves, in the same order."""
    rows = connection.execute("SELECT * FROM worst ORDER BY rowid").fetchall()
    return [dict(zip(POOLS, row, strict=True)) for row in rows]


def parts(expr: Expr) -> Iterator[Expr]:
    found: list[Expr] = []
    map_expr(expr, lambda part: found.append(part) or part)  # type: ignore[func-returns-value]
    yield from found
