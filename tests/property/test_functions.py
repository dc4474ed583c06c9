"""Every function, on the worst values of its arguments' types: it never raises, and keeps what its record claims.

A function that raises on some row tells, without noise, that the row is there; a claim that is too narrow loses rows,
    and
a wrong bound of a whole number could make 64-bit arithmetic overflow.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from random import Random

import duckdb
import pytest
from support.expressions import POOLS, bound, claimed, computed, load, parts, stored

from dpsql.analysis.image import image
from dpsql.errors import Error
from dpsql.functions import regex
from dpsql.functions.calendar import EXTRACTIONS, TIMES_OF_DAY, TRUNCATIONS
from dpsql.functions.formats import DIRECTIVES
from dpsql.functions.table import FUNCTIONS
from dpsql.plan.expr import Call, Expr
from dpsql.plan.walk import columns_of
from dpsql.schema.domain import Domain, to_number
from dpsql.types import BIGINT, TEXT

TOGETHER = 60
"""Expressions in one query: the engine's planning takes longer than its work."""

ONE_NUMBER = ("abs", "floor", "ceil", "round", "trunc", "sign", "sqrt", "cbrt", "exp", "ln", "log", "log10", "log2",
              "sin", "cos", "tan", "asin", "acos", "atan", "degrees", "radians", "-")  # fmt: skip
NUMBERS = ("i", "n", "s", "x", "w", "y", "z", "r", "c", "m", "x * 10", "w - w", "y - 5")
ONE_TEXT = ("lower", "upper", "initcap", "trim", "ltrim", "rtrim", "length", "octet_length", "reverse", "ascii")
TWO_TEXTS = ("strpos", "starts_with", "ends_with", "contains")
DATES = ("e", "f", "p", "q", "o", "p::date", "q + INTERVAL '1 month'")
FORMATS = ("YYYY-MM", "YYYY-MM-DD HH24:MI:SS", "Mon YYYY", "FMMonth", "Month", "DAY", "Dy", "D", "ID", "Q", "YYYY-Q",
           "IYYY-IW", "YYYY-IW", "MM IW", "WW W", "HH12:MI AM", "US", "MS", "DDD", "FMDD.FMMM.YY", "MM/DD",
           '"Q"Q "of" YYYY', "pm", "")  # fmt: skip
ZONES = ("Europe/Berlin", "America/New_York", "Pacific/Kiritimati", "Pacific/Apia", "Asia/Manila", "America/Juneau",
         "Asia/Kathmandu", "Africa/Monrovia", "Etc/GMT+12", "Antarctica/Troll", "Australia/Lord_Howe")  # fmt: skip
PATTERNS = ("a", "^a.b$", "[a-c]+", "(a|b)*", r"\d{2,4}-\d+", "[[:alpha:]]", "[^a]", r"\\", "a+?", r"\(", "x{12}",
    ".", "")

EXPRESSIONS = [
    *(f"{f}({x})" for f in ONE_NUMBER for x in NUMBERS),
    *(f"{f}({x}, {d})" for f in ("round", "trunc") for x in NUMBERS for d in (-15, -1, 1, 15)),
    *(f"power({x}, {y})" for x in NUMBERS for y in ("2", "3", "0.5", "-1", "0", "n", "x", "1000")),
    *(f"{f}({x}, {y})" for f in ("atan2", "mod", "div") for x in ("i", "n", "m") for y in ("i", "n", "3")),
    *(f"atan2({x}, {y})" for x in ("w", "x") for y in ("w", "x")),
    *(f"({x} {op} {y})" for op in ("&", "|", "#", "+", "-", "*", "/", "%") for x in ("i", "n", "m") for y in ("i",
    "7", "m")),
    *(f"width_bucket({x}, {lo}, {hi}, 7)" for x in NUMBERS for lo, hi in (("0", "10"), ("-0.1", "0.3"))),
    *(f"log(3, {x})" for x in NUMBERS),
    *(f"{f}({x}, 5)" for f in ("greatest", "least", "coalesce", "nullif") for x in NUMBERS),
    *(f"{f}({x})" for f in ONE_TEXT for x in ("t", "k", "t || k")),
    *(f"{f}({x}, {y})" for f in TWO_TEXTS for x in ("t", "k") for y in ("t", "k", "'a'", "''")),
    *(f"{f}({x}, {n})" for f in ("left", "right") for x in ("t", "k") for n in (0, 1, 3, -1, -3, 10000, -10000)),
    *(f"substring({x}, {n}{rest})" for x in ("t", "k") for n in (1, 2, 10000) for rest in ("", ", 1", ", 3")),
    *(f"{f}({x}, {n}, {c})" for f in ("lpad", "rpad") for x in ("t", "k") for n in (0, 2, 9) for c in ("'0'", "'é-'")),
    *(f"{f}({x}, 'ab')" for f in ("trim", "ltrim", "rtrim") for x in ("t", "k")),
    *(f"lpad({x}, 20)" for x in ("t", "k")),
    *(f"replace({x}, {a}, {b})" for x in ("t", "k") for a in ("'a'", "'aa'", "' '") for b in ("''", "'xyz'", "'é'")),
    *(f"translate({x}, 'ab-', 'é')" for x in ("t", "k")),
    *(f"repeat({x}, {n})" for x in ("t", "k") for n in (0, 1, 50)),
    *(f"split_part({x}, {d}, {n})" for x in ("t", "k") for d in ("'-'", "'a'", "'--'") for n in (1, 2, -1, 9)),
    *(f"concat({x}, {y})" for x in ("t", "k", "n", "b") for y in ("t", "'!'", "e", "y")),
    *(f"concat_ws('-', {x}, {y})" for x in ("t", "k") for y in ("t", "k", "'x'")),
    *(f"({x} {op} {p})" for x in ("t", "k") for op in ("LIKE", "ILIKE", "NOT LIKE", "SIMILAR TO")
      for p in ("'a%'", "'%_b'", r"'a\%b'", r"'\\'", "''", "'É'", "'a!%b' ESCAPE '!'", "'(a|b)%'")
      if not (op == "SIMILAR TO" and "ESCAPE" in p)),
    *(f"({x} {op} '{p}')" for x in ("t", "k") for op in ("~", "~*", "!~") for p in PATTERNS),
    *(f"regexp_replace({x}, '{p}', {r}{g})" for x in ("t", "k") for p in PATTERNS for r in ("''", "'<#>'", r"'\&\&'")
      for g in ("", ", 'g'", ", 'gi'")),
    r"regexp_replace(t, '(a)(b)', '\2\1\\', 'g')",
    *(f"regexp_substr({x}, '{p}')" for x in ("t", "k") for p in PATTERNS),
    "regexp_extract(t, '([a-z]+)-([a-z]+)', 2)", "substring(t FROM '[a-z]+')", "substring(t FROM '(.)-')",
    *(f"extract({part} FROM {x})" for part in EXTRACTIONS for x in DATES),
    *(f"extract({part} FROM h)" for part in TIMES_OF_DAY),
    *(f"date_trunc('{part}', {x})" for part in TRUNCATIONS for x in DATES),
    *(f"{f}({x})" for f in ("dayname", "monthname", "last_day", "year", "dayofweek", "epoch") for x in DATES),
    *(f"to_char({x}, '{f}')" for f in FORMATS for x in DATES),
    *(f"strftime({x}, '{d}')" for d in (*DIRECTIVES, "%Y-%m-%d", "100%% %B", "") for x in ("p", "f", "q")),
    *(f"{f}({x}, {fmt})" for x in ("t", "k") for f, fmt in (("to_date", "'YYYY-MM-DD'"), ("to_date", "'DD/MM/YYYY'"),
      ("to_timestamp", "'Mon YYYY'"), ("strptime", "'%Y-%m-%d'"), ("strptime", "'%H'"))),
    *(f"({x} {op} INTERVAL '{span}')" for x in DATES for op in "+-" for span in
      ("1 day", "1 month", "1 year 2 months 3 days", "9999 years", "25 hours", "0 days", "1 week", "00:00:00.000001")),
    *(f"({d} {op} {n})" for d in ("e", "f") for op in "+-" for n in ("i", "n", "1", "3652059", "9223372036854775807")),
    *(f"({a} - {b})" for a in ("e", "f") for b in ("e", "f", "'2020-06-01'")),
    *(f"{f}('{unit}', {a}, {b})" for f in ("date_diff", "date_sub") for unit in TRUNCATIONS
      for a, b in (("e", "f"), ("p", "q"), ("q", "q"), ("f", "q"), ("f", "f"), ("o", "p"))),
    *(f"extract({part} FROM {a} - {b})" for part in ("epoch", "day") for a, b in (("p", "q"), ("q", "q"), ("q", "p"))),
    *(f"extract({part} FROM {a} - {b})" for part in ("hour", "minute", "second")
      for a, b in (("p", "q"), ("q", "q"), ("q", "p"), ("o", "f"), ("e", "p"))),
    *(f"({a} - {b} {op} INTERVAL '{span}')" for a, b in (("p", "q"), ("q", "p"), ("o", "p"), ("e", "o"))
      for op in ("<", "=", ">=") for span in ("30 days", "1 month", "-2 hours", "9999 years", "0 days")),
    *(f"(age({a}, {b}) {op} INTERVAL '{span}')" for a, b in (("p", "q"), ("q", "p"), ("e", "f"), ("f", "o"))
      for op in ("<", ">=") for span in ("1 year", "18 years", "1 month 3 days", "-1 day")),
    "p - q BETWEEN INTERVAL '1 day' AND INTERVAL '1 week'", "q - p > '2 days'", "coalesce(q - p, INTERVAL '0 days')",
    "greatest(q - o, INTERVAL '1 hour')", "extract(epoch FROM CASE WHEN b THEN q - p END)", "p - q", "q - q",
    "extract(hour FROM coalesce(q - q, INTERVAL '1 day'))", "extract(day FROM coalesce(q - q, INTERVAL '1 day'))",
    "p - q IN (INTERVAL '1 day', INTERVAL '2 days')", "nullif(p - q, INTERVAL '1 day') IS NULL",
    *(f"extract({part} FROM age({a}, {b}))" for part in ("year", "month")
      for a, b in (("p", "q"), ("q", "p"), ("f", "q"), ("q", "f"), ("e", "p"))),
    *(f"time_bucket(INTERVAL '{w}', {x})" for x in DATES for w in
      ("15 minutes", "7 days", "1 month", "5 months", "100 years", "13 hours", "1 microsecond")),
    *(f"date_bin('{w}', {x}, TIMESTAMP '{origin}')" for x in DATES for w in ("6 hours", "3 days", "1 microsecond")
      for origin in ("2001-01-01", "9999-12-31 23:00", "0001-01-01 00:00:01", "2020-02-02 05:00")),
    *(f"({x} {op} {n} * INTERVAL '{w}')" for x in ("e", "p", "q", "o") for op in "+-" for n in ("i", "n", "m")
      for w in ("1 day", "2 weeks")),
    *(f"(date_trunc('day', {x}) - extract(dow FROM {x})::int * INTERVAL '1 day')" for x in ("p", "q", "f", "o")),
    *(f"({x} - extract(dow FROM {x}) * INTERVAL '1 day')" for x in ("p", "q", "f", "o")),
    "date_trunc('day', q) + (-extract(dow FROM q) * INTERVAL '1 day')", "time_bucket('6 hours', q, '2001-01-01')",
    *(f"make_date({y}, {m}, {d})" for y in ("i", "n", "2020") for m in ("i", "n", "2") for d in ("i", "n", "30")),
    *(f"to_timestamp({x})" for x in NUMBERS),
    *(f"CAST({x} AS {to})" for x, to in (("t", "int"), ("t", "double precision"), ("t", "date"), ("t", "timestamp"),
      ("t", "timestamptz"), ("t", "time"), ("t", "boolean"), ("t", "uuid"), ("t", "varchar(3)"), ("t", "numeric"),
      ("t", "numeric(6,2)"), ("x", "int"), ("w", "int"), ("x", "real"), ("x", "numeric(38,10)"), ("x", "text"), ("i",
      "boolean"),
      ("b", "int"), ("b", "text"), ("i", "smallint"), ("p", "date"), ("p", "time"), ("o", "time"), ("o", "date"),
      ("e", "timestamp"),
      ("e", "timestamptz"), ("o", "timestamp"), ("p", "text"), ("h", "text"), ("u", "text"), ("q", "timestamptz"),
      ("f", "timestamptz"))),
    "o AT TIME ZONE 'UTC'", "p AT TIME ZONE 'UTC'", "timezone('UTC', o)", "pi()",
    *(f"({x}) AT TIME ZONE '{zone}'" for x in DATES for zone in ZONES),
    *(f"date_trunc('day', q AT TIME ZONE 'UTC' AT TIME ZONE '{zone}')" for zone in ZONES),
    *(f"CAST(q AT TIME ZONE 'utc' AT TIME ZONE '{zone}' AS date)" for zone in ZONES),
    "extract(hour FROM o AT TIME ZONE 'Asia/Kathmandu')", "to_char(o AT TIME ZONE 'america/new_york', 'YYYY-MM')",
    "CASE WHEN x > 100 THEN 100 WHEN x < 0 THEN 0 ELSE x END",
    "CASE WHEN i IS NULL THEN 0 WHEN i > 9 THEN 9 WHEN i < 0 THEN 0 ELSE i END",
    "CASE WHEN x * 2 > 100 THEN 100 WHEN x * 2 < 0 OR x IS NULL THEN 0 ELSE x * 2 END", "greatest(least(x, 100), 0)",
    "CASE WHEN n IN (1, 2) THEN 5 ELSE n END", "CASE WHEN m = 3 THEN 0 WHEN NOT (m <> 2) THEN 1 ELSE m END",
    "if(b, n, 3)", "iff(b, 1, 2)", "nvl2(n, 1, 2)", "ifnull(n, 7)", "n IS DISTINCT FROM m", "n IS NOT DISTINCT FROM 3",
    "n BETWEEN SYMMETRIC 5 AND -1", "n IN (m, 3, NULL)", "(n, k) = (1, 'a')", "(n, k) IN ((1, 'a'), (2, ''))",
    "n = ANY(ARRAY[1, 2])",
    "n <> ALL(ARRAY[1, 2])", "t LIKE ANY(ARRAY['a%', 'b%'])", "b IS UNKNOWN", "b IS NOT TRUE", "h > '12:00'", "o > p",
    "o = e",
]  # fmt: skip

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


def check_claims(exprs: dict[str, Expr], connection: duckdb.DuckDBPyConnection) -> None:
    rows = stored(connection)
    for sql, values in run(exprs, connection):
        domain = claimed(exprs[sql])
        wrong = [place for place, value in enumerate(values) if not fits(value, domain)]
        assert not wrong, (sql, domain, values[wrong[0]], rows[wrong[0]])


def test_no_expression_raises_and_all_keep_their_claims(
    database: duckdb.DuckDBPyConnection, exprs: dict[str, Expr]
) -> None:
    check_claims(exprs, database)


def test_nor_where_the_engine_does_not_optimise(database: duckdb.DuckDBPyConnection, exprs: dict[str, Expr]) -> None:
    database.execute("PRAGMA disable_optimizer")
    check_claims({sql: exprs[sql] for sql in EXPRESSIONS[::3]}, database)
    database.execute("PRAGMA enable_optimizer")


def test_every_function_is_tried(exprs: dict[str, Expr]) -> None:
    tried = {part.function for expr in exprs.values() for part in parts(expr) if isinstance(part, Call)}
    assert set(FUNCTIONS) - tried == {"finite"}  # which every expression of doubles is wrapped in when it is used


def test_python_works_out_what_the_engine_does(database: duckdb.DuckDBPyConnection, exprs: dict[str, Expr]) -> None:
    rows, worked = stored(database), set()
    one = {sql: expr for sql, expr in exprs.items() if len(columns_of(expr)) == 1}
    for sql, values in run(one, database):
        (name,) = columns_of(one[sql])
        for row, value in zip(rows, values, strict=True):
            below = row[name]
            if not isinstance(below, bool | int | float | str | dt.date | None):
                continue
            found = image(one[sql], name, (below,))
            if found is not None:
                worked |= {part.function for part in parts(one[sql]) if isinstance(part, Call)}
                assert same(found[0], value), (sql, below, found[0], value)
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
            groups = regex.check(pattern).groups
        except regex.Malformed:
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
            expression = regex.similar(pattern, "!")
            regex.check(expression)
        except regex.Malformed:
            continue
        passed += 1
        database.execute("SELECT regexp_full_match('ab1-é', $1, 's')", [expression])
    assert passed > 300


def test_a_replacement_that_passes_is_one_that_the_engine_takes(database: duckdb.DuckDBPyConnection) -> None:
    rng, passed = Random(13), 0
    for _ in range(2_000):
        written = "".join(rng.choice(("a", "\\", "\\1", "\\2", "\\3", "\\&", "\\\\", "$1", "é")) for _ in range(4))
        try:
            text, _ = regex.replacement(written, 2)
        except regex.Malformed:
            continue
        passed += 1
        database.execute("SELECT regexp_replace('xabab', '(a)(b)', $1, 'gs')", [text])
    assert passed > 100


def test_repetitions_of_repetitions_are_refused_before_the_engine_does() -> None:
    for pattern in ("(a{1000}){1000}", "((a{100}){100}){100}", "(a{999}b{999}){2}"):
        with pytest.raises(regex.Malformed):
            regex.check(pattern)


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
    "p + INTERVAL '20000 years'", "p + INTERVAL '1.5 months'", "log(0.5, x)", "log(y, x)", "width_bucket(x, 1, 1, 5)",
    "width_bucket(x, 0, 1, 100000)", "round(x, 99)", "round(x, n)", "p AT TIME ZONE 'Europe/Pariss'",
    "p AT TIME ZONE t", "h AT TIME ZONE 'Europe/Paris'", "CAST(p AS int)",
    "CAST(x AS boolean)",
    "date_diff('day', t, p)", "(n, k) < (1, 'a')", "(n, k) = (1, 'a', 2)", "x << 1", "t COLLATE \"de\"",
    "random()", "e - f > INTERVAL '1 day'", "(p - q) * 2", "p - q > 3", "p - q > 'x'", "extract(year FROM p - q)",
    "nights * INTERVAL '1 day'", "p - q + INTERVAL '1 day'", "CAST(p - q AS text)", "concat(p - q, 'x')",
    "lower(n)", "sqrt(t)", "concat_ws(t, k)", "CAST(t AS char(3))",
    "p * 2",
)  # fmt: skip


@pytest.mark.parametrize("sql", REFUSED)
def test_what_cannot_be_total_is_refused(sql: str) -> None:
    with pytest.raises(Error) as caught:
        bound(sql)
    assert caught.value.message and not caught.value.message.endswith(".")


def test_the_table_has_the_worst_values(database: duckdb.DuckDBPyConnection) -> None:
    for name, pool in POOLS.items():
        ((count,),) = database.execute(f'SELECT count(DISTINCT "{name}") FROM worst').fetchall()
        assert count >= len(pool.values) - 1
