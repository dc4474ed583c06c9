"""Every function, on the worst values of its arguments' types: it never raises, and keeps what its record claims.

A function that raises on some row tells, without noise, that the row is there; a claim that is too narrow loses rows,
    and
a wrong bound of a whole number could make 64-bit arithmetic overflow.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from random import Random

import duckdb
import pytest

from dpsql.compiler.analysis.key_values import evaluate_for_values
from dpsql.compiler.functions import regex
from dpsql.compiler.functions.table import FUNCTIONS
from dpsql.compiler.plan.expressions import Call, Expr
from dpsql.compiler.plan.walk import columns_of
from dpsql.errors import Error
from dpsql.schema.model import Domain, to_number
from dpsql.types import BIGINT, TEXT
from tests.support.expressions import POOLS, bound, claimed, computed, load, parts, stored
from tests.support.function_calls import EXPRESSIONS

pytestmark = pytest.mark.slow

TOGETHER = 60
"""Expressions in one query: the engine's planning takes longer than its work."""

UNWRITTEN = {f"{name}({column})": Call(name, (bound(column),), BIGINT)
             for name, columns in (("epoch_days", "ef"), ("epoch_us", "pqo")) for column in columns}  # fmt: skip
"""Functions that only rewrites make."""


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    load(connection)
    return connection


@pytest.fixture(scope="module")
def exprs() -> dict[str, Expr]:
    return {sql: bound(sql) for sql in EXPRESSIONS} | UNWRITTEN


def run(exprs: dict[str, Expr], connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, list[object]]]:
    """The values of each expression; many in one query, and one by one where a query fails, to name the culprit."""
    items = list(exprs.items())
    for start in range(0, len(items), TOGETHER):
        some = items[start : start + TOGETHER]
        try:
            rows = computed([expr for _, expr in some], connection)
        except duckdb.Error:
            for sql, expr in some:
                try:
                    computed([expr], connection)
                except duckdb.Error as error:
                    pytest.fail(f"{sql} raises: {error}")
            raise
        for place, (sql, _) in enumerate(some):
            yield sql, [row[place] for row in rows]


@pytest.fixture(scope="module")
def values_of(database: duckdb.DuckDBPyConnection, exprs: dict[str, Expr]) -> dict[str, list[object]]:
    """What the engine computes for each expression, in the order of the stored rows."""
    return dict(run(exprs, database))


def check_claims(
    exprs: dict[str, Expr], values_of: Mapping[str, list[object]], connection: duckdb.DuckDBPyConnection
) -> None:
    rows = stored(connection)
    for sql, values in values_of.items():
        domain = claimed(exprs[sql])
        wrong = [place for place, value in enumerate(values) if not fits(value, domain)]
        assert not wrong, (sql, domain, values[wrong[0]], rows[wrong[0]])


def test_no_expression_raises_and_all_keep_their_claims(
    database: duckdb.DuckDBPyConnection, exprs: dict[str, Expr], values_of: dict[str, list[object]]
) -> None:
    check_claims(exprs, values_of, database)


def test_nor_where_the_engine_does_not_optimise(database: duckdb.DuckDBPyConnection, exprs: dict[str, Expr]) -> None:
    database.execute("PRAGMA disable_optimizer")
    some = {sql: exprs[sql] for sql in EXPRESSIONS[::3]}
    check_claims(some, dict(run(some, database)), database)
    database.execute("PRAGMA enable_optimizer")


def test_every_function_is_tried(exprs: dict[str, Expr]) -> None:
    tried = {part.function for expr in exprs.values() for part in parts(expr) if isinstance(part, Call)}
    # What every expression of doubles is wrapped in when it is used, and the hash of a row, which nobody can write.
    assert set(FUNCTIONS) - tried == {"finite", "row_hash"}


def test_python_works_out_what_the_engine_does(
    database: duckdb.DuckDBPyConnection, exprs: dict[str, Expr], values_of: dict[str, list[object]]
) -> None:
    rows, worked = stored(database), set()
    of_one_column = {sql: expr for sql, expr in exprs.items() if len(columns_of(expr)) == 1}
    for sql, expr in of_one_column.items():
        (name,) = columns_of(expr)
        for row, value in zip(rows, values_of[sql], strict=True):
            stored_value = row[name]
            if not isinstance(stored_value, bool | int | float | str | dt.date | None):
                continue
            evaluated = evaluate_for_values(expr, name, (stored_value,))
            if evaluated is not None:
                worked |= {part.function for part in parts(expr) if isinstance(part, Call)}
                assert same(evaluated[0], value), (sql, stored_value, evaluated[0], value)
    assert {name for name, function in FUNCTIONS.items() if function.evaluate is not None} - worked == {"finite"}


def fits(value: object, domain: Domain) -> bool:
    if value is None:
        return domain.nullable
    if isinstance(value, float) and not math.isfinite(value):
        return domain.lower is None or domain.upper is None
    if isinstance(value, str) and domain.type == TEXT:
        if domain.length is not None and len(value) > domain.length:
            return False
        return domain.values is None or value in domain.values
    if domain.values is not None:
        return any(same(value, known) for known in domain.values)
    if domain.lower is None and domain.upper is None:
        return True
    number = to_number(value)  # type: ignore[arg-type]
    slack = abs(number) / 10**9 + Fraction(1, 10**300) if domain.type.is_float else Fraction(0)
    above = domain.lower is None or number >= domain.lower - slack
    return above and (domain.upper is None or number <= domain.upper + slack)


def same(one: object, other: object) -> bool:
    if one is None or other is None or isinstance(one, str) or isinstance(other, str):
        return one == other
    assert isinstance(one, bool | int | float | Decimal | dt.date)
    assert isinstance(other, bool | int | float | Decimal | dt.date)
    return to_number(one) == to_number(other)


# --- patterns --------------------------------------------------------------------------------------------------------

PIECES = ("a", "b", ".", "^", "$", "|", "(", ")", "(?:", "[", "]", "[^", "-", "*", "+", "?", "{2}", "{2,}", "{,3}", "{",
          "}", "\\", "\\d", "\\w", "\\b", "\\1", "[:alpha:]", "[[:digit:]]", "é", " ", ",", "1", "\n", "{1000}",
          "x{3,2}",
          "(?i)", "(?=", "\\pL", "\\Q", "\\z", "\\-", "\\]", "a-z", "z-a")  # fmt: skip


def test_a_pattern_that_passes_is_one_that_the_engine_takes(database: duckdb.DuckDBPyConnection) -> None:
    rng, passed = Random(11), 0
    for _ in range(4_000):
        pattern = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 7)))
        try:
            groups = regex.check_regex(pattern).groups
        except regex.MalformedRegex:
            continue
        passed += 1
        database.execute("SELECT regexp_matches('ab1-é', $1, 's'), regexp_full_match('ab', $1, 's')", [pattern])
        database.execute(f"SELECT regexp_extract('ab1-é', $1, {min(groups, 9)}, 's')", [pattern])
    assert passed > 300


def test_a_similar_pattern_that_passes_is_one_that_the_engine_takes(database: duckdb.DuckDBPyConnection) -> None:
    rng, passed = Random(12), 0
    for _ in range(3_000):
        pattern = "".join(rng.choice((*PIECES, "%", "_", "!", "!%")) for _ in range(rng.randint(1, 7)))
        try:
            expression = regex.similar_to_regex(pattern, "!")
            regex.check_regex(expression)
        except regex.MalformedRegex:
            continue
        passed += 1
        database.execute("SELECT regexp_full_match('ab1-é', $1, 's')", [expression])
    assert passed > 300


def test_a_replacement_that_passes_is_one_that_the_engine_takes(database: duckdb.DuckDBPyConnection) -> None:
    rng, passed = Random(13), 0
    for _ in range(2_000):
        written = "".join(rng.choice(("a", "\\", "\\1", "\\2", "\\3", "\\&", "\\\\", "$1", "é")) for _ in range(4))
        try:
            text, _ = regex.translate_replacement(written, 2)
        except regex.MalformedRegex:
            continue
        passed += 1
        database.execute("SELECT regexp_replace('xabab', '(a)(b)', $1, 'gs')", [text])
    assert passed > 100


def test_repetitions_of_repetitions_are_refused_before_the_engine_does() -> None:
    for pattern in ("(a{1000}){1000}", "((a{100}){100}){100}", "(a{999}b{999}){2}"):
        with pytest.raises(regex.MalformedRegex):
            regex.check_regex(pattern)


# --- refusals --------------------------------------------------------------------------------------------------------

REFUSED = (
    "left(t, n)", "lpad(t, 5, '')", "lpad(t, 100000)", "replace(t, '', 'x')", "replace(t, k, 'x')",
    "split_part(t, '-', 0)",
    "split_part(t, '', 1)", "repeat(t, -1)", "repeat(t, 100000)", "t LIKE k", r"t LIKE 'a\'", "t LIKE 'a' ESCAPE 'ab'",
    "t ~ '('", "t ~ k", "t ~ 'a{2000}'", r"t ~ '(a)\1'", "t SIMILAR TO '('", "regexp_replace(t, 'a', k)",
    "age(p, q)",
    r"regexp_replace(t, 'a', '\1')", "regexp_replace(t, 'a', 'b', 'x')", "regexp_substr(t, 'a', 1)",
    "to_char(p, 'nonsense')",
    "to_char(x, '999')", "to_char(p, k)", "strftime(p, '%Q')", "to_date(t, 'Q')", "extract(timezone FROM o)",
    "md5(t)", "chr(i)",
    "extract(year FROM h)", "date_trunc('eon', p)", "time_bucket(INTERVAL '0 days', p)",
    "time_bucket(INTERVAL '1 month 1 day', p)", "p + x * INTERVAL '1 day'", "p + n * INTERVAL '1 hour'",
    "date_bin('1 month', p, TIMESTAMP '2001-01-01')", "date_bin('1 hour', p, q)", "date_bin('1 hour', p)",
    "p + INTERVAL '20000 years'", "log(0.5, x)", "log(y, x)", "width_bucket(x, 1, 1, 5)",
    "width_bucket(x, 0, 1, 100000)", "round(x, 99)", "round(x, n)", "p AT TIME ZONE 'Europe/Pariss'",
    "p AT TIME ZONE t", "h AT TIME ZONE 'Europe/Paris'", "CAST(p AS int)",
    "CAST(x AS boolean)",
    "date_diff('day', t, p)", "(n, k) < (1, 'a')", "(n, k) = (1, 'a', 2)", "x << 1", "t COLLATE \"de\"",
    "random()", "e - f > INTERVAL '1 day'", "(p - q) * 2", "p - q > 3", "p - q > 'x'", "extract(year FROM p - q)",
    "nights * INTERVAL '1 day'", "p - q + INTERVAL '1 day'", "CAST(p - q AS text)", "concat(p - q, 'x')",
    "lower(n)", "sqrt(t)", "concat_ws(t, k)", "CAST(t AS char(3))",
    "p * 2", "n << 63", "n >> k", "~x", "string_split(t, '')[1]", "string_split(t, k)[1]", "string_split(t, '-')[n]",
    "string_split(t, '-')", "width_bucket(x, array[2, 1])", "width_bucket(x, array[n])", "(regexp_match(t, k))[1]",
    "cosh(cosh(cosh(cosh(cosh(cosh(cosh(cosh(cosh(cosh(cosh(x)))))))))))", "list_contains([k], t, 'a')",
)  # fmt: skip


def test_what_cannot_be_total_is_refused() -> None:
    answered = []
    for sql in REFUSED:
        try:
            bound(sql)
        except Error as error:
            assert error.message and not error.message.endswith("."), sql
        else:
            answered.append(sql)
    assert answered == []


def test_the_table_has_the_worst_values(database: duckdb.DuckDBPyConnection) -> None:
    for name, pool in POOLS.items():
        ((count,),) = database.execute(f'SELECT count(DISTINCT "{name}") FROM worst').fetchall()
        assert count >= len(pool.values) - 1
