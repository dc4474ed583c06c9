"""Injection: by literals, names, comments, parameters, settings, URLs, YAML and look-alike characters.

What an analyst writes as a literal reaches an engine as that literal and as nothing else; what is not in the schema
does not exist.
"""

from __future__ import annotations

import datetime as dt
import enum
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import dpsql
from dpsql.errors import Error, ProgrammingError, SchemaError
from dpsql.session.session import Session
from tests.support.attack_hospital import (
    DATA,
    Pair,
    build,
    build_pair,
    for_free,
    outcome,
    same_outcome,
    schema_text,
    told_apart,
)
from tests.support.shop import Silence

pytestmark = pytest.mark.slow

EVIL = [
    "' OR '1'='1", "'; DROP TABLE visits; --", "w1' UNION SELECT city FROM people --", "\\' OR 1=1 --", "''", '"',
    "/*", "*/", "$1", "$h1", "${HOME}", "a\nb", "\u202ew1", "w\u200b1", "\uff07", "e\u0301", "$$x$$",
    "\\x27", "%", "\U0001f600", "\x01\x1f\x7f", "::int", ";",
]  # fmt: skip


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = build_pair(tmp_path_factory.mktemp("injection"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Without noise: what is answered is what was asked."""
    return build(tmp_path_factory.mktemp("quiet"), "quiet", schema_text("quiet"), DATA, sampler=Silence())


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# --- literals and parameters -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", EVIL, ids=range(len(EVIL)))
def test_a_text_is_itself_and_nothing_else(quiet: Session, text: str) -> None:
    """Written, or given as a parameter, in WHERE, in a key, in a list and after the noise."""
    for sql in ("SELECT COUNT(*) FROM visits WHERE ward = {}",
        "SELECT COUNT(*) FROM visits WHERE ward IN ('w1', {}) AND ward <> 'w1'",
                "SELECT COUNT(*) FROM visits WHERE CASE WHEN ward = {} THEN TRUE ELSE FALSE END"):  # fmt: skip
        written, bound = quiet.execute(sql.format(quoted(text))), quiet.execute(sql.format("?"), [text])
        assert written.rows == bound.rows == [(0,)], "nobody has such a ward"
        (release,) = quiet.explain(sql.format("?"), [text]).releases
        statements = duckdb.extract_statements(release.sql)
        assert len(statements) == 1 and quoted(text) in release.sql
    for form, given in ((quoted(text), ()), ("?", (text,))):
        answer = quiet.execute(f"SELECT {form} AS a, COUNT(*) FROM visits WHERE n > 5 GROUP BY 1", given)
        assert [row[0] for row in answer.rows] == [text]
        assert quiet.execute(f"SELECT {form}, COUNT(*) > -1 FROM visits", given).rows == [(text, True)]
    likes = "SELECT COUNT(*) FROM visits WHERE ward LIKE ? ESCAPE '!'"
    assert outcome(quiet, likes, [text]).startswith(("answered", "Unsupported", "InvalidSyntax"))


class Number(int):
    def __str__(self) -> str:
        return "0 OR 1=1"

    __repr__ = __format__ = __str__  # type: ignore[assignment]


class Real(float):
    def __str__(self) -> str:
        return "0 OR 1=1"

    __repr__ = __str__


class Exact(Decimal):
    def __format__(self, *_: Any) -> str:
        return "0 OR 1=1"

    __str__ = __repr__ = __format__  # type: ignore[assignment]


class Words(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "w2"

    def __contains__(self, _: object) -> bool:
        return False

    def __iter__(self) -> Iterator[str]:
        return iter("")

    __repr__ = __str__


class Day(dt.date):
    def isoformat(self) -> str:
        return "2024-01-01' OR 1=1 --"

    __str__ = __repr__ = isoformat


class Kind(enum.IntEnum):
    FIVE = 5


class Odd(int, enum.Enum):
    FIVE = 5


@pytest.mark.parametrize("value, plain", [(Number(5), 5), (Real(5.0), 5.0), (Exact(5), Decimal(5)), (Kind.FIVE, 5),
    (Odd.FIVE, 5),
                                          (np.float64(5), 5.0), (np.int64(5), 5), (np.float32(5), 5.0),
                                          (True, True)])  # fmt: skip
def test_a_number_is_read_as_its_value(quiet: Session, value: Any, plain: Any) -> None:
    """What a subclass prints was once put into the statement after the noise, and read there as SQL."""
    sql = "SELECT COUNT(*) FROM visits WHERE {} > ?".format("n" if plain is not True else "(n > 1)")
    if plain is not True:
        assert quiet.execute(sql, [value]).rows == quiet.execute(sql, [plain]).rows
        assert quiet.execute("SELECT COUNT(*) + ? FROM visits", [value]).rows == quiet.execute(
            "SELECT COUNT(*) + ? FROM visits", [plain]).rows  # fmt: skip


def test_a_text_is_read_as_its_value(quiet: Session) -> None:
    sql = "SELECT COUNT(*) FROM visits WHERE ward = ?"
    assert (
        quiet.execute(sql, [Words("w1")]).rows == quiet.execute(sql, ["w1"]).rows != quiet.execute(sql, ["none"]).rows
    )
    with pytest.raises(ProgrammingError, match="zero byte"):
        quiet.execute(sql, [Words("w\x001")])
    with pytest.raises(ProgrammingError, match="half of a character"):
        quiet.execute(sql, [Words("\ud800")])
    days = "SELECT COUNT(*) FROM visits WHERE day = ?"
    assert quiet.execute(days, [Day(2024, 2, 3)]).rows == quiet.execute(days, [dt.date(2024, 2, 3)]).rows


class Endless:
    ndim = 0

    def item(self) -> Endless:
        return self


NO_LITERALS: list[Any] = [float("nan"), float("inf"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), b"x",
    bytearray(b"x"),
                                   [1], (1,), {1}, {"a": 1}, object(), Endless(), 10**5000, -(10**5000),
                                   Decimal("1E+1000000"),
                                   Decimal("1E-1000000"), 1j, "a\x00", "\ud800", type,
                                   np.array([1, 2])]  # fmt: skip


@pytest.mark.parametrize("value", NO_LITERALS, ids=range(len(NO_LITERALS)))
def test_what_is_no_literal_is_refused_at_once_and_for_free(pair: Pair, value: Any) -> None:
    started = time.process_time()
    with for_free(pair.with_):
        for sql in ("SELECT COUNT(*) FROM visits WHERE n > ?", "SELECT COUNT(*) + ? FROM visits"):
            assert outcome(pair.with_, sql, [value]).startswith(("ProgrammingError", "Unsupported", "UnknownFunction"))
    assert time.process_time() - started < 2


def test_parameters_are_as_many_as_their_positions(pair: Pair) -> None:
    with for_free(pair.with_):
        for sql, given in (("SELECT COUNT(*) FROM visits WHERE n > ?", ()), ("SELECT COUNT(*) FROM visits", (1,)),
                           ("SELECT COUNT(*) FROM visits WHERE ward = '?'", (1,)),
                           ("SELECT COUNT(*) /* ? */ FROM visits", (1,))):  # fmt: skip
            assert outcome(pair.with_, sql, given).startswith("ProgrammingError")


# --- names -----------------------------------------------------------------------------------------------------------

NAMES = ["_uid", "_weight", "_order", "r1", "h1", "weights", "rows", "selection_units", "r", "c1_above", "pid",
         "visits", "select", "order", "a\"b", "a.b", "--", "x\ny", "$1", "\u202e", "\uff53elect", "'",
         "x" * 200, "read_csv"]  # fmt: skip


def ident(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_name_that_is_one_of_ours_changes_nothing(pair: Pair, quiet: Session, name: str) -> None:
    """Aliases of columns, tables and CTEs: refused for their name, or what they mean."""
    called = ident(name)
    for sql, plain in (
        (f"SELECT SUM({called}) AS s FROM (SELECT pid, n AS {called} FROM visits) t", "SELECT SUM(n) FROM visits"),
        (f"SELECT COUNT(*) FROM visits AS {called} WHERE {called}.n > 50", "SELECT COUNT(*) FROM visits WHERE n > 50"),
        (f"WITH {called} AS (SELECT * FROM visits WHERE n > 50) SELECT COUNT(*) FROM {called}",
            "SELECT COUNT(*) FROM visits WHERE n > 50"),
        (f"SELECT COUNT(*) FROM (SELECT pid, 5 AS {called} FROM visits) t WHERE {called} = 5",
            "SELECT COUNT(*) FROM visits"),
        (f"WITH {called} AS (SELECT COUNT(*) AS c FROM visits) SELECT c FROM {called}", "SELECT COUNT(*) FROM visits"),
        (f"SELECT MAX(t.s) FROM (SELECT kind AS {called}, SUM(n) AS s FROM visits GROUP BY kind) t WHERE t.{called} "
            f"= 'a'",
         "SELECT SUM(n) FROM visits WHERE kind = 'a'"),
    ):  # fmt: skip
        said = same_outcome(pair, sql)
        if said == "answered":
            assert told_apart(pair, sql) == [], sql
            assert quiet.execute(sql).rows == quiet.execute(plain).rows, sql
        else:
            assert said.split(":")[0] in (
                "Unsupported",
                "InvalidSyntax",
                "AmbiguousColumn",
                "GroupingError",
                "NotPrivate",
            ), said


SCHEMA_NAMES = """
tables:
  {people}:
    unit: {pid}
    unique: [{pid}]
    columns: {{{pid}: {{type: bigint}}, {value}: {{type: integer, bounds: [0, 9]}}, {word}: {{type: text}}}}
"""


@pytest.mark.parametrize("people, pid, value, word", [
    ("select", "from", "where", "group"), ("order", "table", "null", "true"), ("_t", "_uid", "_weight", "_order"),
    ("weights", "uid", "n", "keys"), ("r1", "r2", "h1", "selection_units"), ("a b", "c d", "e\"f", "g'h"),
    ("visits; DROP", "--", "/*", "x.y"),
    ("main", "rowid", "count", "sum"), ("é", "ß", "ı", "ﬁ"),
])  # fmt: skip
def test_a_schema_may_use_any_names(tmp_path: Path, people: str, pid: str, value: str, word: str) -> None:
    names = {"people": people, "pid": pid, "value": value, "word": word}
    tables = SCHEMA_NAMES.format(**{key: quoted(name) for key, name in names.items()})
    schema = schema_text("h", tables).replace("people.pid", quoted(f"{people}.{pid}"))
    data = (f"CREATE TABLE {ident(people)} AS SELECT i::BIGINT AS {ident(pid)}, (i % 9)::INTEGER AS {ident(value)}, "
        f"'w' || i % 2 AS {ident(word)}"
            " FROM range(300) r(i);")  # fmt: skip
    try:
        session = build(tmp_path, "h", schema, data, sampler=Silence())
    except SchemaError:
        return  # a name that is not taken is no way in
    table, unit, number, text = map(ident, (people, pid, value, word))
    assert session.execute(f"SELECT COUNT(*) FROM {table}").rows == [(300,)]
    assert session.execute(f"SELECT SUM({number}) FROM {table} WHERE {unit} < 9").rows == [(36,)]
    per_unit = f"SELECT {unit}, COUNT(*) AS c FROM {table} GROUP BY {unit}"
    assert session.execute(f"SELECT COUNT(*) FROM ({per_unit}) t").rows == [(300,)]
    assert outcome(session, f"SELECT {text}, COUNT(*) FROM {table} GROUP BY 1") == "answered"


# --- statements ------------------------------------------------------------------------------------------------------

ESCAPES = """\
COPY (SELECT * FROM visits) TO '/tmp/x.csv'
COPY visits FROM '/etc/passwd'
ATTACH '/tmp/x.db'
INSTALL httpfs
LOAD httpfs
PRAGMA database_list
CALL pragma_version()
CREATE MACRO f(x) AS x
CREATE TABLE t AS SELECT * FROM visits
INSERT INTO visits VALUES (1)
EXPORT DATABASE 'x'
IMPORT DATABASE 'x'
USE main
PREPARE p AS SELECT * FROM visits
EXECUTE p
SET VARIABLE x = 5
SELECT * INTO t FROM visits
WITH x AS (DELETE FROM visits RETURNING *) SELECT * FROM x
WITH x AS (INSERT INTO visits VALUES (1) RETURNING *) SELECT * FROM x
SELECT COUNT(*) FROM visits; DROP TABLE visits
SELECT COUNT(*) FROM visits; ; SELECT 1
SELECT getenv('HOME'), COUNT(*) FROM visits
SELECT COUNT(*), (SELECT content FROM read_text('/etc/passwd')) FROM visits
SELECT COUNT(*) FROM read_csv('/etc/passwd')
SELECT COUNT(*) FROM '/etc/passwd'
SELECT COUNT(*) FROM "/etc/passwd"
SELECT COUNT(*) FROM '*.duckdb'
SELECT COUNT(*), (SELECT COUNT(*) FROM 'x.parquet') FROM visits
SELECT * FROM glob('*')
SELECT * FROM duckdb_settings()
SELECT * FROM duckdb_secrets()
SELECT * FROM duckdb_tables()
SELECT * FROM pragma_table_info('visits')
SELECT COUNT(*), current_setting('temp_directory') FROM visits
SELECT COUNT(*), query('SELECT 1') FROM visits
SELECT * FROM query('SELECT * FROM visits')
SELECT * FROM query_table('visits')
SELECT * FROM sqlite_master
SELECT COUNT(*) FROM memory.main.visits
SELECT COUNT(*) FROM hospital_2.main.visits
SELECT COUNT(*), random() FROM visits
SELECT COUNT(*), nextval('s') FROM visits
SELECT COUNT(*), getvariable('x') FROM visits
SELECT COUNT(*), set_config('epsilon', '9', false) FROM visits
SELECT COUNT(*), which_secret('a', 'b') FROM visits
SELECT COUNT(*), json_execute_serialized_sql('x') FROM visits
SELECT COUNT(*) FROM visits WHERE getenv('HOME') = 'x'
SELECT COUNT(*), pg_read_file('/etc/passwd') FROM visits
SELECT COUNT(*), lo_import('/etc/passwd') FROM visits
SELECT COUNT(*) FROM dblink('x', 'y')
SELECT COUNT(*) FROM visits WHERE n > $1
SELECT COUNT(*) FROM visits WHERE n > @x
SELECT COUNT(*) FROM visits WHERE n > :x
SELECT $h1, COUNT(*) FROM visits
SELECT COUNT(*) FROM visits FOR UPDATE
SELECT COUNT(*) FROM ONLY visits
SELECT COUNT(*) FROM visits AT (VERSION => 1)""".splitlines()


@pytest.mark.parametrize("sql", ESCAPES)
def test_nothing_but_the_schema_is_reached(pair: Pair, sql: str) -> None:
    allowed = ("hospital_2.main", "ONLY")  # the database's own name may stand before a table's
    with for_free(pair.with_) if not any(word in sql for word in allowed) else for_free():
        said = [outcome(session, sql) for session in pair]
    assert said[1] != "answered" or any(word in sql for word in allowed)
    for forbidden in ("root:", "/root", "duckdb_", "InternalError", "EngineFailed"):
        assert forbidden not in said[1].replace(sql, "").replace(sql.split("FROM")[-1], "") or "HINT" in said[1]


LOOKALIKES = [
    "SELECT COUNT(*) FROM visits WHERE ward = \u2019w1\u2019",
    "SELECT COUNT(*) FROM visits WHERE ward = \uff07w1\uff07",
    "SELECT COUNT(*) FROM visits WHERE w\u0430rd = 'w1'", "SELECT COUNT(*) FROM visits WHERE ward\u200b = 'w1'",
    "SEL\u200bECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits\uff1b DROP TABLE visits",
    "\uff33ELECT COUNT(*) FROM visits",
    "SELECT COUNT(*) FROM vis\u0131ts", "SELECT COUNT(*) FROM VI\u017fITS",
    "SELECT COUNT(*) FROM visits WHERE n > \u0661",
    "SELECT COUNT(*) FROM visits WHERE n \uff1e 1", "SELECT COUNT(*) FROM visits \u2028; DROP TABLE x",
    "SELECT COUNT(*) FROM visits\x00",
    "SELECT COUNT(*) FROM visits WHERE ward = '\ud800'", "\ufeffSELECT * FROM visits",
    "SELECT COUNT(*) FROM visits --\u2028 WHERE",
    "SELECT COUNT(*) FROM visits /* \u202e */ WHERE pid = 7 -- \u2066", "SELECT\u00a0COUNT(*)\u3000FROM visits",
    "SELECT COUNT(*) FROM visits\x0bWHERE n > 1",
]  # fmt: skip


@pytest.mark.parametrize("sql", LOOKALIKES, ids=range(len(LOOKALIKES)))
def test_characters_that_look_alike_are_not_alike(pair: Pair, sql: str) -> None:
    said = same_outcome(pair, sql)
    assert said == "answered" or said.split(":")[0] in ("InvalidSyntax", "UnknownColumn", "UnknownTable",
        "Unsupported", "NotPrivate",
                                                        "TypeMismatch"), said  # fmt: skip
    if said == "answered":
        assert told_apart(pair, sql) == []


@pytest.mark.parametrize(
    "comment",
    [
        "/* a */",
        "-- a\n",
        "/* /* nested */ */",
        "/*+ hint */",
        "/*! 50000 x */",
        "--\u2028\n",
        "/* ' */",
        '-- "\n',
        "/**/",
    ],
)
def test_a_comment_is_nothing(quiet: Session, comment: str) -> None:
    words = ("", "SELECT", "COUNT(*)", "FROM visits", "WHERE ward", "=", "'w1'", "")
    sql = f" {comment} ".join(words)
    said = outcome(quiet, sql)
    assert (
        said.startswith("InvalidSyntax")
        or quiet.execute(sql).rows == quiet.execute("SELECT COUNT(*) FROM visits WHERE ward = 'w1'").rows
    )


# --- settings and URLs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [
    {"epsilon": "1; DROP"}, {"epsilon": "(SELECT 1)"}, {"epsilon": "9" * 5000 + "/1"}, {"epsilon": "1/0"},
    {"epsilon": "0x10"},
    {"contributions_rows": 10**9}, {"contributions_rows": "21"}, {"noise": "none"}, {"nosuch": 1}, {"budget": 9},
    {"user_": "x"},
    {"epsilon": [1]}, {"epsilon": None}, {"epsilon": b"1"}, {"delta": "1"}, {"epsilon": float("nan")},
    {"privacy.budget.epsilon": "9"},
])  # fmt: skip
def test_a_setting_of_a_connection_is_checked_like_any_other(quiet: Session, settings: dict[str, Any]) -> None:
    with pytest.raises(Error):
        dpsql.connect(quiet.dataset.schema.path, **settings)


@pytest.mark.parametrize("tail", ["?user=ana", "?epsilon=1&epsilon=9", "?epsilon=", "?x", "#frag", "?epsilon=1%3BDROP",
    "?contributions.rows=99",
                                  "?user=dataset%00", "/../h.yaml/x", "?nosuch=1", "%00"])  # fmt: skip
def test_a_url_is_no_way_around(quiet: Session, tail: str) -> None:
    with pytest.raises((Error, ValueError, OSError)) as caught:
        dpsql.connect(f"dpsql:///{quiet.dataset.schema.path}{tail}")
    assert isinstance(caught.value, Error), "an error of ours"
