"""What functions of text cost for a character, in those of `lower`: the weights of `compiler/rewrite/limit_joins.py`.

    python -m benchmarks.functions

Each is worked out by DuckDB in the form that private rows get, on texts of 4,000 letters, digits and blanks.
"""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

import duckdb

from dpsql.compiler.compile import compile_query
from dpsql.compiler.functions.table import FUNCTIONS
from dpsql.compiler.rewrite.limit_joins import character_cost
from dpsql.compiler.settings import Settings
from dpsql.verify.audit import TEMPLATES

ROWS, LENGTH, RUNS = 1_000, 4_000, 3
CALLS = (
    "lower(note)", "upper(note)", "initcap(note)", "trim(note)", "reverse(note)", "replace(note, 'a', 'b')",
    "translate(note, 'ab', 'xy')", "repeat(note, 2)", "note || note", "substring(note, 2000, 9)", "left(note, 9)",
    "split_part(note, ' ', 90)", "lpad(note, 1000)", "CASE WHEN strpos(note, 'zz') > 0 THEN 'a' END",
    "CASE WHEN note LIKE '%zz%' THEN 'a' END", "CASE WHEN note LIKE '%a%b%c%d%zz' THEN 'a' END",
    "CASE WHEN note ILIKE '%a%b%zz' THEN 'a' END", "CASE WHEN note SIMILAR TO '%(a|b)+zz' THEN 'a' END",
    "CASE WHEN note ~ '(a+b*)+zz' THEN 'a' END", "regexp_replace(note, '[0-9]+', '#', 'g')",
    "regexp_substr(note, '[0-9]+zz')", "CAST(CAST(note AS date) AS text)", "CAST(CAST(note AS double) AS text)",
)  # fmt: skip


def main() -> None:
    database = duckdb.connect()
    database.execute("SET threads = 1")
    database.execute("CREATE TABLE visits (uid BIGINT, ward VARCHAR, note VARCHAR, x DOUBLE, n INTEGER)")
    pieces = "(['ab ', 'Zq9', 'b7 ', 'aaa', ' 12'][1 + (i * 7 + r) % 5])"
    text = f"(SELECT string_agg({pieces}, '') FROM range({LENGTH // 3}) t(i))"
    database.execute(f"INSERT INTO visits SELECT r, 'a', {text}, 1, 1 FROM range({ROWS}) s(r)")
    known = {name for name, function in FUNCTIONS.items() if function.example}
    print(f"{'call':<48}{'ns a character':>16}{'in lower':>10}{'weight':>8}")
    base = 0.0
    for call in CALLS:
        each = nanoseconds(database, call)
        base = base or each
        named = [name for name in known if f"{name}(" in call or f" {name.upper()} " in call]
        weight = max(map(character_cost, [*named, "regexp_like" if " ~ " in call else "lower"]))
        print(f"{call:<48}{each:>16.2f}{each / base:>10.1f}{weight:>8}")


def nanoseconds(database: duckdb.DuckDBPyConnection, call: str) -> float:
    """The least of some runs, less what counting the rows takes."""
    return max(1e-6, _least(database, call) - _least(database, "note")) * 1e9 / (ROWS * LENGTH)


def _least(database: duckdb.DuckDBPyConnection, call: str) -> float:
    resolved = TEMPLATES[0].resolved_schema
    people, visits = resolved.schema.tables
    columns = tuple(replace(c, max_length=LENGTH + 9) if c.name == "note" else c for c in visits.columns)
    schema = replace(resolved.schema, tables=(people, replace(visits, columns=columns)))
    asked = f"SELECT COUNT(*) FROM visits WHERE {call} IS NOT NULL"
    settings = Settings(Fraction(1), Fraction(0), 3, 3)
    (step,) = compile_query(asked, replace(resolved, schema=schema), settings).steps
    found = []
    for _ in range(RUNS):
        started = time.perf_counter()
        database.execute(step.sql).fetchall()
        found.append(time.perf_counter() - started)
    return min(found)


if __name__ == "__main__":
    main()
