"""Each word that some SQL knows, as the name of a column and of a table: what is written for it must mean it."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest

from dpsql.base.lexer import quote_name
from dpsql.compiler.compile import Compiled, compile_query
from dpsql.compiler.settings import default_settings
from dpsql.interfaces.repl.completion.complete import CompletionNames, complete
from dpsql.interfaces.repl.meta_commands import META_COMMANDS
from dpsql.schema.load import schema_from_text
from dpsql.schema.model import Resolved
from dpsql.session.reflection import reflect_tables
from tests.support.effort import draw_some

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

SCHEMA = """
dpsql: 1
ledger: sqlite:///x.ledger
privacy: {unit: TABLE.id, budget: {epsilon: 100, delta: 1e-4}, query: {epsilon: 1, delta: 1e-6}}
tables:
  TABLE:
    {source: t.parquet, unit: id, unique: [id], columns: {id: {type: bigint}, COLUMN: {type: text, values: [a, b]}}}
"""
NOW = dt.datetime(2024, 5, 6, tzinfo=dt.UTC)
NILADIC = ["current_catalog", "current_date", "current_role", "current_schema", "current_time", "current_timestamp",
           "current_user", "localtime", "localtimestamp", "session_user", "system_user", "today", "user"]  # fmt: skip
OTHERS = ["connect_by_root", "partitioned_by", "regexp", "rlike", "uncache", "xor", "Current_User", "Ward", "a$b"]
"""Of other dialects, which the parser knows."""
COLUMNS = [
    "SELECT COUNT(*), SUM(CASE {0} WHEN 'a' THEN 1 ELSE 0 END) FILTER (WHERE {0} || 'x' <> 'zx') FROM t"
    " WHERE {0} = 'a' OR NOT {0} IN ('c') OR 'b' < {0}",
    "SELECT q.{0}, upper({0}) FROM (SELECT {0}, COUNT({0}) AS n FROM t WHERE t.{0} LIKE 'a%' GROUP BY {0}) AS q"
    " WHERE NOT {0} IN ('z') AND CASE {0} WHEN 'a' THEN true ELSE {0} = 'b' END ORDER BY {0} DESC",
    "SELECT {0}, COUNT(DISTINCT {0}) FROM t AS x JOIN t AS y USING (id, {0}) GROUP BY {0} ORDER BY {0}",
]
TABLES = ["SELECT COUNT({0}.v) FROM {0} JOIN {0} AS b ON {0}.id = b.id WHERE {0}.v = 'a'"]


def words() -> list[str]:
    with duckdb.connect() as connection:
        known = connection.execute("SELECT DISTINCT keyword_name FROM duckdb_keywords()").fetchall()
    return sorted({*(word for (word,) in known), *NILADIC, *OTHERS})


def resolved(table: str, column: str) -> Resolved:
    schema = schema_from_text(SCHEMA.replace("TABLE.id", f"'{table}.id'").replace("TABLE", f"'{table}'")
                       .replace("COLUMN", f"'{column}'"), "x.yaml")  # fmt: skip
    types = {one.name: {column.name: column.type for column in one.columns} for one in schema.tables}
    return Resolved(schema, 1, {one.name: one.source for one in schema.tables}, types, "x", {})


@pytest.fixture(scope="module")
def sandbox() -> duckdb.DuckDBPyConnection:
    """The releases of the statements above, as their last step sees them."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE _r1 AS SELECT k1, 1 AS m1, 1 AS m2, 1.5 AS m1_stderr, 0 AS m1_low, 2 AS m1_high,"
                       " 1.5 AS m2_stderr, 0 AS m2_low, 2 AS m2_high, 0 AS m1_clipped, 0 AS m2_clipped"
                       " FROM (VALUES ('a'), ('b')) AS t(k1)")  # fmt: skip
    return connection


def same(one: Compiled, other: Compiled) -> bool:
    return (one.reads, one.steps, one.tables, one.errors) == (other.reads, other.steps, other.tables, other.errors)


def test_a_word_that_is_offered_as_a_name_means_it(sandbox: duckdb.DuckDBPyConnection) -> None:
    unquoted = [word for word in words() if quote_name(word) != quote_name(word, always=True)]
    assert len(unquoted) > 50
    special = [word for word in unquoted if word in (*NILADIC, *OTHERS)]
    for word in dict.fromkeys((*special, *draw_some(unquoted))):
        check_means_itself(word, sandbox)


def check_means_itself(word: str, sandbox: duckdb.DuckDBPyConnection) -> None:
    always = quote_name(word, always=True)
    for forms, data in ((COLUMNS, resolved("t", word)), (TABLES, resolved(word, "v"))):
        settings = default_settings(data.schema.privacy).statement
        for form in forms:
            plain, sure = (compile_query(form.format(w), data, settings, (), NOW) for w in (quote_name(word), always))
            assert same(plain, sure), (word, form)
            if word in plain.post_sql:
                answers = [sandbox.execute(one.post_sql).fetchall() for one in (plain, sure)]
                assert answers[0] == answers[1], (word, form)


def test_tab_offers_what_means_the_column() -> None:
    names = CompletionNames(reflect_tables(resolved("t", "current_user").schema))
    text = "SELECT COUNT(*) FROM t WHERE curr"
    assert '"current_user"' in [
        one.text for one in complete(text, len(text), names, META_COMMANDS) if one.kind == "column"
    ]


def test_plain_names_stay_plain() -> None:
    for name in ("ward", "at", "date", "day", "first", "name", "rows", "time", "type", "value", "year", "Ward"):
        assert quote_name(name) == name
