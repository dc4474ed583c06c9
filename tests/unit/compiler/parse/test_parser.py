"""Reading a statement: limits before recursion, parameters as literals, errors that point at a place."""

import datetime as dt
import random
import time
from decimal import Decimal

import pytest
from sqlglot import exp

from dpsql.compiler.parse.commands import read_command
from dpsql.compiler.parse.parser import MAX_CHARACTERS, MAX_TOKENS, parse_query
from dpsql.compiler.split.split import split_query
from dpsql.errors import Error, InvalidSyntax, LimitExceeded, ProgrammingError, Unsupported
from dpsql.schema.model import Resolved

NOW = dt.datetime(2024, 1, 1)


def literal(value: object) -> exp.Expr:
    return parse_query("SELECT ?", [value]).expressions[0]  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (False, "FALSE"),
        (5, "5"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.10"), "0.10"),
        ("it's", "'it''s'"),
        ("' OR 1=1 --", "''' OR 1=1 --'"),
        (dt.date(2024, 1, 2), "'2024-01-02'"),
        (dt.datetime(2024, 1, 2, 3, 4), "'2024-01-02 03:04:00'"),
    ],
)
def test_parameters_are_bound_as_literals(value: object, sql: str) -> None:
    assert literal(value).sql() == sql


def test_a_negative_parameter_stays_behind_an_operator() -> None:
    tree = parse_query("SELECT 1 - ?", [-5]).expressions[0]
    assert tree.sql().replace(" ", "") in ("1--5", "1-(-5)") or isinstance(tree, exp.Sub)
    assert isinstance(tree, exp.Sub)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), "a\x00b", object(), [1]])
def test_parameters_that_are_no_literals_are_refused(value: object) -> None:
    with pytest.raises(ProgrammingError):
        literal(value)


@pytest.mark.parametrize("given", [0, 1, 3])
def test_parameters_and_placeholders_must_be_as_many(given: int) -> None:
    with pytest.raises(ProgrammingError, match="2 placeholders"):
        parse_query("SELECT ?, ?", [1] * given)


def test_a_question_mark_in_a_text_is_no_placeholder() -> None:
    assert parse_query("SELECT '?', ?", [1]).sql() == "SELECT '?', 1"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT " + "NOT " * 5000 + "TRUE",
        "SELECT " + "- " * 5000 + "1",
        "SELECT " + "CASE WHEN TRUE THEN " * 500 + "1" + " END" * 500,
        "SELECT " + "+".join(["1"] * 5000),
        "SELECT 1" + " UNION ALL SELECT 1" * 2000,
        "SELECT 1 FROM " + "(SELECT 1 FROM " * 300 + "t" + ") s" * 300,
        "SELECT 1" + " " * MAX_CHARACTERS,
        "SELECT " + "1," * MAX_TOKENS + "1",
    ],
    ids=["parentheses", "not", "minus", "case", "plus", "union", "sub-selects", "characters", "words"],
)
def test_statements_past_a_limit_are_refused_in_time(sql: str) -> None:
    start = time.process_time()
    with pytest.raises(LimitExceeded):
        parse_query(sql)
    assert time.process_time() - start < 5


def test_long_lists_and_conditions_are_fine() -> None:
    numbers = ", ".join(str(n) for n in range(2000))
    parse_query(f"SELECT COUNT(*) FROM t WHERE x IN ({numbers})")
    parse_query("SELECT COUNT(*) FROM t WHERE " + " OR ".join(f"x = {n}" for n in range(500)))
    parse_query("SELECT " + "(" * 40 + "1" + ")" * 40)


@pytest.mark.parametrize("sql", ["", " \n ", ";", "-- only a comment"])
def test_nothing_is_no_statement(sql: str) -> None:
    with pytest.raises(InvalidSyntax):
        parse_query(sql)


@pytest.mark.parametrize(
    "sql", ["INSERT INTO t VALUES (1)", "DROP TABLE t", "CREATE TABLE t AS SELECT 1", "ATTACH 'x'", "PRAGMA x"]
)
def test_only_queries_are_answered(sql: str) -> None:
    with pytest.raises((Unsupported, InvalidSyntax)):
        parse_query(sql)


def test_a_syntax_error_points_at_its_word_on_its_line() -> None:
    with pytest.raises(InvalidSyntax) as caught:
        parse_query("SELECT 1\nFROM t\nWHERE x = = 2")
    error = caught.value
    error.statement = "SELECT 1\nFROM t\nWHERE x = = 2"
    assert "LINE 3: WHERE x = = 2" in str(error)


def test_a_thousand_comments_before_a_query_are_read_once() -> None:
    start = time.monotonic()
    for text in ("/**/" * 2000, "/* a */ " * 2000, "--\n" * 2000, "/*" * 2000, "/* *" * 2000):
        read_command(text + "SELECT 1")
    assert time.monotonic() - start < 1


# A text, because a list would fill a page.
WORDS = """
    SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT COUNT SUM AVG ( ) * , . + - / // % = <> < > AND OR NOT NULL TRUE IN
    BETWEEN LIKE CASE WHEN THEN ELSE END CAST AS integer text visits patients lab_tests cost kind ward score at
    patient_id JOIN LEFT ON USING WITH t UNION ALL DISTINCT 'a' 1 2.5 ? $1 : [ ] { } || :: OVER PARTITION FILTER
    EXTRACT year date_trunc 'month' coalesce clip EXISTS VALUES
    unnest INTERVAL ARRAY ROW 1e400 '' "x" ; -- /* */ @ #
    IS OFFSET FETCH FIRST ROWS ONLY LATERAL TABLESAMPLE PIVOT QUALIFY WINDOW ESCAPE COLLATE ANY SOME
""".split()  # noqa: SIM905
SEEDS = (
    "SELECT kind, COUNT(*), SUM(cost) FROM visits WHERE score > 1 GROUP BY kind HAVING COUNT(*) > 5 ORDER BY 2 LIMIT 3",
    "WITH a AS (SELECT cost FROM visits) SELECT AVG(cost) FROM a JOIN patients p ON p.patient_id = a.patient_id",
    "SELECT CASE WHEN cost > 1 THEN 'a' END AS k, EXTRACT(year FROM at) FROM visits GROUP BY 1, 2",
    "SELECT * FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) s WHERE n > (SELECT COUNT(*) FROM patients)",
)


def test_whatever_is_written_ends_in_a_plan_or_in_an_error_of_ours(clinic: Resolved) -> None:
    chance = random.Random(7)
    for _ in range(1500):
        words = chance.choice(SEEDS).replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(words))
            match chance.randrange(3):
                case 0:
                    words[place] = chance.choice(WORDS)
                case 1:
                    words.insert(place, chance.choice(WORDS))
                case _:
                    del words[place : place + chance.randint(1, 3)]
                    words.append(chance.choice(WORDS))
        sql = " ".join(words)
        try:
            split_query(parse_query(sql), clinic.schema, NOW)
        except Error as error:
            assert error.message and not error.message.endswith("."), sql
        except Exception as crash:
            raise AssertionError(sql) from crash


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("x::FLOAT(53)", "CAST(x AS DOUBLE)"), ("CAST(x AS FLOAT(24))", "CAST(x AS REAL)"),
        ("x::float(1)", "CAST(x AS REAL)"), ("x::pg_catalog.float8", "CAST(x AS DOUBLE)"),
        ('x::"pg_catalog"."float8"', "CAST(x AS DOUBLE)"), ("x::pg_catalog.int4[]", "CAST(x AS INT[])"),
        ("CAST(x AS TIMESTAMP(6) WITHOUT TIME ZONE)", "CAST(x AS TIMESTAMP)"),
        ("x::timestamp(6) with time zone", "CAST(x AS TIMESTAMPTZ)"), ("x::TIMESTAMP(0)", "CAST(x AS TIMESTAMP(0))"),
        ("x::pg_catalog.regclass", "CAST(x AS pg_catalog.regclass)"), ("x::time(6)", "CAST(x AS TIME)"),
        ('"x" AS float', '"x" AS float'),
    ],
)  # fmt: skip
def test_types_of_casts_are_read_as_drivers_write_them(written: str, read: str) -> None:
    assert parse_query(f"SELECT {written} FROM t").selects[0].sql(dialect="duckdb") == read


@pytest.mark.parametrize(
    ("digits", "message"), [("0", "at least 1 bit"), ("54", "less than 54 bits"), ("99999999999", "less than 54 bits")]
)
def test_a_float_has_between_1_and_53_digits(digits: str, message: str) -> None:
    with pytest.raises(Error, match=f"precision for type float must be {message}") as caught:
        parse_query(f"SELECT x::FLOAT({digits}) FROM t")
    assert caught.value.sqlstate == "22023"
