"""Types of parameters that have no values yet, told by what stands around them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest

from dpsql.base.intervals import Interval
from dpsql.compiler.parse.parameters import Parameter
from dpsql.errors import Error
from dpsql.session.session import Session
from dpsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Type,
    decimal_type,
)
from tests.support.shop import open_shop

T = "orders"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    opened = open_shop(tmp_path_factory.mktemp("shop"))[0]
    yield opened
    opened.close()


def types(session: Session, sql: str, *given: Type | None) -> list[Type]:
    return list(session.prepare(sql, given).parameters)


def column(session: Session, table: str, name: str) -> Type:
    (found,) = [one for one in session.tables() if one.name == table]
    known = found.find_column(name)
    assert known is not None
    return known.type


CASES: list[tuple[str, list[object]]] = [
    ("SELECT COUNT(*) FROM orders WHERE amount > $1", ["amount"]),
    ("SELECT COUNT(*) FROM orders o WHERE $1 < o.amount", ["amount"]),
    ("SELECT COUNT(*) FROM orders WHERE (amount) BETWEEN $1 AND $2", ["amount", "amount"]),
    ("SELECT COUNT(*) FROM orders WHERE amount IN ($1, $2, 3)", ["amount", "amount"]),
    ("SELECT COUNT(*) FROM orders WHERE amount IN (VALUES ($1),($2))", ["amount", "amount"]),
    ("SELECT COUNT(*) FROM orders WHERE amount > $2 AND amount < $1", ["amount", "amount"]),
    ("SELECT COUNT(*) FROM orders WHERE amount > $1 * 2", [BIGINT]),
    ("SELECT COUNT(*) AS n FROM orders LIMIT $1 OFFSET $2", [BIGINT, BIGINT]),
    ("SELECT COUNT(*) FROM orders HAVING COUNT(*) > $1", [BIGINT]),
    ("SELECT $1::int + 1 AS x", [INTEGER]),
    ("SELECT CAST($1 AS date) AS d, $2::uuid AS u", [DATE, UUID]),
    ("SELECT $1::numeric(10,2) AS x", [decimal_type(10, 2)]),
    ("SELECT $1::TIMESTAMP(3) AS x, $2::time(3) AS y", [TIMESTAMP, TIME]),
    ("SELECT CAST($1 AS timestamp(0) with time zone) AS x, $2::timestamptz(2) AS y", [TIMESTAMPTZ, TIMESTAMPTZ]),
    ("SELECT $1::interval AS x, $2::interval(3) AS y, CAST($3 AS INTERVAL) AS z", [INTERVAL] * 3),
    ("SELECT DATE_BIN($1, made, $2), COUNT(*) FROM orders GROUP BY 1", [INTERVAL, TIMESTAMP]),
    ("SELECT $1 AS x", [TEXT]),
    ("SELECT x FROM (VALUES (1), (2)) AS t(x) WHERE $1", [BOOLEAN]),
    ("SELECT DATE_TRUNC($1, TIMESTAMP '2020-01-01') AS d", [TEXT]),
    ("SELECT TIMESTAMP '2020-01-01' + $1 AS d", [INTERVAL]),
    ("SELECT DATE '2020-01-01' + $1 AS d", [INTEGER]),
    ("SELECT COUNT(*) FROM orders WHERE amount > 1", []),
    ("SET epsilon = $1", [TEXT]),
    ("SHOW epsilon", []),
    ("EXPLAIN SELECT COUNT(*) FROM orders WHERE amount > $1", ["amount"]),
    (
        "CREATE SYNTHETIC TABLE o AS SELECT kind FROM orders WHERE amount > $3 WITH (epsilon = $1, method = "
        "$2, n = $4)",
        [DOUBLE, TEXT, "amount", BIGINT],
    ),
    (
        "EXPLAIN CREATE MODEL m AS LINEAR REGRESSION ON price USING qty FROM orders WHERE amount > ? WITH (bins = ?)",
        ["amount", BIGINT],
    ),
    ("CREATE MODEL m AS LINEAR REGRESSION ON price USING qty FROM orders WHERE amount > $1", ["amount"]),
    (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = $2, noise = $3) COUNT(*) FROM orders WHERE amount > $1",
        ["amount", DOUBLE, TEXT],
    ),
    ("COPY (SELECT COUNT(*) FROM orders WHERE amount > $1) TO STDOUT", ["amount"]),
]


@pytest.mark.parametrize(("sql", "expected"), CASES)
def test_the_context_gives_the_type(session: Session, sql: str, expected: list[object]) -> None:
    wanted = [column(session, T, one) if isinstance(one, str) else one for one in expected]
    assert types(session, sql) == wanted


def test_every_declared_column_gives_its_type(session: Session) -> None:
    for table in session.tables():
        for one in table.columns:
            sql = f'SELECT COUNT(*) FROM {table.name} WHERE "{one.name}" = $1'
            try:
                found = types(session, sql)
            except Error:  # what cannot be compared is refused as with a value
                continue
            assert found == [one.type], one.name


def test_what_the_client_says_holds(session: Session) -> None:
    assert types(session, "SELECT COUNT(*) FROM orders WHERE amount > $1", DOUBLE) == [DOUBLE]
    assert types(session, "SELECT $1 AS x, $2 AS y", None, TIMESTAMP) == [TEXT, TIMESTAMP]


def test_preparing_is_free_and_reads_no_ledger(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object) -> None:
        raise AssertionError("the engine was asked")

    monkeypatch.setattr(type(session.dataset.engine), "execute", never)
    before = len(session.dataset.ledger.list_entries(session._account.name))
    prepared = session.prepare("SELECT kind, COUNT(*) AS n, AVG(qty) AS a FROM orders WHERE qty > $1 GROUP BY 1")
    assert [column.name for column in prepared.columns] == ["kind", "n", "a"]
    assert [column.type for column in prepared.columns][1:] == [BIGINT, DOUBLE]
    assert len(session.dataset.ledger.list_entries(session._account.name)) == before


def test_a_mistake_is_reported_with_its_position(session: Session) -> None:
    with pytest.raises(Error) as caught:
        session.prepare("SELECT COUNT(*) FROM orders WHERE amonut > $1")
    assert caught.value.sqlstate == "42703" and caught.value.span is not None and caught.value.span.start == 34


TAKEN: list[tuple[str, list[Type], list[object]]] = [
    ("SELECT date_trunc($1, o.made) AS d, count(*) FROM orders o GROUP BY 1", [TEXT], ["month"]),
    ("SELECT date_trunc($1, o.made), count(*) FROM orders o GROUP BY date_trunc($1, o.made)", [TEXT], ["month"]),
    ("SELECT date_part($1, made) AS d, count(*) FROM orders GROUP BY 1", [TEXT], ["year"]),
    ("SELECT to_char(made, $1) AS d, count(*) FROM orders GROUP BY 1", [TEXT], ["YYYY-MM"]),
    ("SELECT width_bucket(amount, $1, $2, $3) AS d, count(*) FROM orders GROUP BY 1",
     [DOUBLE, DOUBLE, INTEGER], [0.0, 100.0, 5]),
    ("SELECT approx_top_k(kind, $1) AS k FROM orders", [INTEGER], [2]),
    ("SELECT percentile_cont($1) WITHIN GROUP (ORDER BY amount) AS p FROM orders", [DOUBLE], [0.9]),
    ("SELECT quantile_cont(amount, $1) AS p FROM orders", [DOUBLE], [0.9]),
    ("SELECT count(*) FROM orders WHERE made > now() - $1", [INTERVAL], [dt.timedelta(days=20000)]),
    ("SELECT count(*) FROM orders WHERE made > TIMESTAMP '2022-01-01' - $1::interval", [INTERVAL], [dt.timedelta(3)]),
    ("SELECT count(*) FROM orders WHERE substr(city, $1, $2) = $3", [INTEGER, INTEGER, TEXT], [1, 2, "Os"]),
    ("SELECT left(city, $1) AS c, count(*) FROM orders GROUP BY 1", [INTEGER], [2]),
    ("SELECT date_trunc($1::VARCHAR, made) AS d, count(*) FROM orders GROUP BY 1", [TEXT], ["month"]),
    ("SELECT date_part($1::VARCHAR, made) AS d, count(*) FROM orders GROUP BY 1", [TEXT], ["year"]),
    ("SELECT to_char(made, $1::VARCHAR) AS d, count(*) FROM orders GROUP BY 1", [TEXT], ["YYYY-MM"]),
    ("SELECT count(*) FROM orders WHERE to_date(city, $1::TEXT) > DATE '2020-01-01'", [TEXT], ["YYYY-MM-DD"]),
    ("SELECT date_trunc('year', made AT TIME ZONE $1::VARCHAR) AS d, count(*) FROM orders GROUP BY 1",
     [TEXT], ["Europe/Berlin"]),
    ("SELECT date_trunc('year', timezone($1::VARCHAR, made)) AS d, count(*) FROM orders GROUP BY 1",
     [TEXT], ["Europe/Berlin"]),
    ("SELECT percentile_cont($1::FLOAT) WITHIN GROUP (ORDER BY amount) AS p FROM orders", [DOUBLE], [0.9]),
    ("SELECT percentile_cont(CAST($1 AS FLOAT(53))) WITHIN GROUP (ORDER BY amount) AS p FROM orders", [DOUBLE], [0.9]),
    ("SELECT quantile_cont(amount, $1::DOUBLE PRECISION) AS p FROM orders", [DOUBLE], [0.9]),
    ("SELECT width_bucket(amount, $1::FLOAT, $2::FLOAT, $3::INTEGER) AS d, count(*) FROM orders GROUP BY 1",
     [DOUBLE, DOUBLE, INTEGER], [0.0, 100.0, 5]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "expected", "values"), TAKEN)
def test_the_argument_of_a_function_gives_the_type(
    session: Session, sql: str, expected: list[Type], values: list[Parameter]
) -> None:
    """Clients that bind every literal prepare such statements; with values the columns are the same."""
    prepared = session.prepare(sql)
    assert list(prepared.parameters) == expected and prepared.unknown is None
    assert prepared.columns == session.describe(sql, values)


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        ("SELECT to_char(made, 'YYYY'::varchar) AS d, count(*) FROM orders GROUP BY 1",
         "SELECT to_char(made, 'YYYY') AS d, count(*) FROM orders GROUP BY 1"),
        ("SELECT median(amount), quantile_cont(amount, 0.25::float::numeric) AS p FROM orders",
         "SELECT median(amount), quantile_cont(amount, 0.25) AS p FROM orders"),
    ],
)  # fmt: skip
def test_a_cast_literal_is_the_literal(session: Session, sql: str, plain: str) -> None:
    assert session.execute(sql).rows == session.execute(plain).rows, "the same release"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT quantile_cont(amount, 0.25::numeric(2, 1)) AS p FROM orders",
        "SELECT quantile_cont(amount, 0.25::integer) AS p FROM orders",
        "SELECT to_char(made, 'YYYY-MM'::varchar(4)) AS d, count(*) FROM orders GROUP BY 1",
        "SELECT to_char(made, 'YYYY'::date) AS d, count(*) FROM orders GROUP BY 1",
    ],
)
def test_a_cast_that_changes_a_literal_is_refused(session: Session, sql: str) -> None:
    with pytest.raises(Error, match="must be a literal"):
        session.describe(sql)


def test_an_interval_is_no_text_beside_a_time(session: Session) -> None:
    sql = "SELECT count(*) FROM orders WHERE made >= TIMESTAMP '2023-01-01' - {}"
    expected = session.execute(sql.format("INTERVAL '1 month 2 days'")).rows
    assert session.execute(sql.format("$1"), [Interval.of(1, 2, 0)]).rows == expected
    assert session.execute(sql.format("?::interval"), [Interval.of(1, 2, 0)]).rows == expected


def test_what_is_given_decides_the_kind_of_value(session: Session) -> None:
    sql = "SELECT sum(qty) / $1 AS x FROM orders"
    assert [session.prepare(sql, [one]).columns[0].type for one in (DOUBLE, BIGINT)] == [DOUBLE, BIGINT]
    (column,) = session.prepare("SELECT sum(qty) / $1 AS x FROM orders WHERE amount > $1", [INTEGER]).columns
    assert column.type == BIGINT, "where it is found beside a double first"


def test_columns_that_values_decide_are_not_known_before_them(session: Session) -> None:
    prepared = session.prepare("SELECT SUM(CLIP(amount, $1, $2)) FROM orders")
    assert prepared.columns == () and prepared.unknown is not None


@pytest.mark.parametrize(
    "sql",
    ["SELECT * FROM orders WHERE kind = $1", "SELECT count(*) FROM orders WHERE kind > $1::int",
     "SELECT to_char(made, $2 || $1) AS c, COUNT(*) FROM orders GROUP BY 1"],
)  # fmt: skip
def test_what_no_value_makes_right_is_refused_before_they_are_bound(session: Session, sql: str) -> None:
    with pytest.raises(Error) as refused:
        session.prepare(sql)
    with pytest.raises(Error) as executed:
        session.execute(sql, [1] if "int" in sql else ["a"] * (2 if "$2" in sql else 1))
    assert executed.value.message == refused.value.message


@pytest.mark.parametrize("cast", ("$1::regclass", "CAST($1 AS REGTYPE)", "$1::pg_catalog.regclass::pg_catalog.oid"))
@pytest.mark.parametrize("given", ((), (TEXT,)))
def test_names_of_objects_need_not_exist_before_they_are_bound(
    cast: str, given: tuple[Type, ...], session: Session
) -> None:
    """SQLAlchemy's inspector and pgcli prepare such statements."""
    assert types(session, f"SELECT relname FROM pg_catalog.pg_class WHERE oid = {cast}", *given) == [TEXT]


def test_names_of_settings_need_not_exist_before_they_are_bound(session: Session) -> None:
    assert types(session, "SELECT current_setting($1::VARCHAR)") == [TEXT]
    with pytest.raises(Error, match="does not exist"):
        types(session, "SELECT COUNT(*) FROM nothing WHERE a = $1")
