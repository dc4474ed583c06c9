"""One battery for all clients: what a program does with a server, and what it sees.

Law: each part is a function of a connection alone. It is run on PostgreSQL, which says what is due, and on dpsql, which
must give the same: values, their types in the client's language, names and types of columns, SQLSTATE and positions.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.support.wire.adapters import Client

Part = Callable[[Client], Any]

ODD = 'O\'Brien "ä€😀" \\ ward'
SLOW = (
    "SELECT count(*) FROM generate_series(1, 100000) AS a(i), generate_series(1, 1000000) AS b(j) WHERE (i * j) % 7 = 3"
)
CODE = uuid.UUID("0d1f7d1c-5c6b-4f0e-9a53-6d1f4a1c2b3d")
UTC = dt.UTC


def literals(c: Client) -> Any:
    return [c.rows("SELECT 1, 'x', NULL, true, 1.50, 2.5::float8, 9007199254740993"), c.columns()]


def all_types(c: Client) -> Any:
    return [c.rows("SELECT * FROM wards ORDER BY ward"), c.columns()]


def lists(c: Client) -> Any:
    return [
        c.rows("SELECT ARRAY[1, 2, NULL], ARRAY['a', NULL, 'c d', '{', '\"', ''], ARRAY[true, false]"),
        c.columns(),
        c.rows("SELECT array_agg(ward ORDER BY ward), array_agg(fee ORDER BY ward), array_agg(opened ORDER BY ward),"
               " array_agg(share ORDER BY ward), array_agg(number ORDER BY ward) FROM wards"),
        c.columns(),
    ]  # fmt: skip


def computed(c: Client) -> Any:
    return c.rows("SELECT ward, length(ward), upper(ward), fee * 2, opened + 1, beds - 1, rating, open AND true,"
                  " coalesce(floor, 0), CASE WHEN beds > 100 THEN 'large' ELSE 'small' END"
                  " FROM wards ORDER BY ward LIMIT 2 OFFSET 1")  # fmt: skip


def no_rows(c: Client) -> Any:
    return [c.rows("SELECT * FROM wards WHERE false"), c.columns(), c.rows("SELECT ward AS w FROM wards LIMIT 0")]


def nothing_asked(c: Client) -> Any:
    return [c.rows(""), c.rows(";"), c.rows("-- nothing"), c.rows("SELECT 1")]


def names(c: Client) -> Any:
    c.rows('SELECT 1 AS "Größe", 2 AS "a b", 3 AS "x""y", count(*), max(beds) FROM wards')
    return [name for name, _ in c.columns()]


PARAMETERS: tuple[tuple[str, Any], ...] = (
    ("floor", 1), ("beds", 20), ("number", 9007199254740993), ("rating", 1.5), ("share", 0.1),
    ("fee", Decimal("1234.500")), ("opened", dt.date(1999, 12, 31)),
    ("inspected", dt.datetime(2001, 2, 3, 4, 5, 6, 789000)), ("changed", dt.datetime(2024, 6, 1, 12, tzinfo=UTC)),
    ("rounds", dt.time(7, 30)), ("code", CODE), ("open", True), ("ward", "cardiology"),
)  # fmt: skip


def parameters_of_every_type(c: Client) -> Any:
    one_by_one = [c.rows(f"SELECT ward FROM wards WHERE {name} = $1", value) for name, value in PARAMETERS]
    conditions = " AND ".join(f"{name} = ${number}" for number, (name, _) in enumerate(PARAMETERS, 1))
    together = c.rows(f"SELECT ward FROM wards WHERE {conditions}", *(value for _, value in PARAMETERS))
    return [one_by_one, together]


def parameters_of_text(c: Client) -> Any:
    values = (ODD, "", "%", "$1", "'; SELECT 1; --", "\\", "日本語 🏥", " ")
    return [c.rows("SELECT count(*) FROM wards WHERE ward = $1", value) for value in values]


def parameters_that_are_null(c: Client) -> Any:
    return [
        c.rows("SELECT count(*) FROM wards WHERE ward = $1", None),
        c.rows("SELECT count(*) FROM wards WHERE beds > $1", None),
        c.rows("SELECT $1::date, $2::text", None, None),
    ]


def parameters_by_context(c: Client) -> Any:
    return [
        c.rows("SELECT ward FROM wards ORDER BY ward LIMIT $1 OFFSET $2", 1, 1),
        c.rows("SELECT ward FROM wards WHERE ward IN ($1, $2) ORDER BY ward", "cardiology", "emergency"),
        c.rows("SELECT ward FROM wards WHERE beds BETWEEN $1 AND $2", 10, 30),
        c.rows("SELECT $1::int4 + 1, $2::numeric(6, 2) * 2, $3::text", 41, Decimal("1.25"), "x"),
        c.rows("SELECT ward FROM wards WHERE ward LIKE $1 ORDER BY 1", "%r%"),
        c.rows("SELECT coalesce(note, $1) FROM (SELECT NULL::text AS note) AS t", "none"),
    ]


def prepared_again(c: Client) -> Any:
    asked = ["cardiology", "emergency", ODD, "nothing"] * 3
    return [c.rows("SELECT beds, fee, changed FROM wards WHERE ward = $1", ward) for ward in asked]


def many_rows(c: Client) -> Any:
    found = c.rows("SELECT i, i * 0.5 AS half, 'row ' || i FROM generate_series(1, 100000) AS s(i)")
    return [len(found), found[0], found[-1], sum(row[0] for row in found)]


def errors(c: Client) -> Any:
    """Of those that PostgreSQL has too: state and position, which count characters."""
    wrong = (
        "SELECT count(*) FROM visits WHERE nothing = 1",
        "SELECT 'ä€😀', count(*)\nFROM visits WHERE nothing = 1",
        "SELECT count(*) FROM nothing",
        "SELEC 1",
        "SELECT count(* FROM visits",
        "SELECT v.ward, count(*) FROM visits AS v GROUP BY v.sex",
        "SELECT ward, count(*) FROM visits",
        "EXECUTE nothing",
    )
    return [(c.error(one).state, c.error(one).position) for one in wrong]


def after_an_error(c: Client) -> Any:
    state = c.error("SELECT nothing FROM wards").state
    return [state, c.rows("SELECT 1"), c.rows("SELECT beds FROM wards WHERE ward = $1", "cardiology")]


def settings(c: Client) -> Any:
    told = [c.rows("SHOW server_version"), c.rows("SHOW standard_conforming_strings"), c.rows("SHOW client_encoding")]
    c.rows("SET application_name = 'other'")
    told.append(c.rows("SHOW application_name"))
    c.rows("SET statement_timeout = 30000")
    told.append(c.rows("SHOW statement_timeout"))
    c.rows("RESET statement_timeout")
    told.append(c.rows("SHOW statement_timeout"))
    c.rows("SET statement_timeout TO '5min'")
    c.rows("RESET ALL")
    told.append(c.rows("SHOW statement_timeout"))
    c.rows("SET TimeZone = 'UTC'")
    told.append(c.rows("SHOW TimeZone"))
    c.rows("SET default_transaction_isolation = 'read committed'")
    told.append(c.rows("SHOW default_transaction_isolation"))
    told.append(c.error("SHOW nothing").state)
    told.append(c.error("SET nothing = 1").state)
    return told


def sessions(c: Client) -> Any:
    return [
        c.rows("SELECT current_user, session_user, current_database(), current_schema()"),
        c.rows("SELECT current_setting('server_version')"),
        c.rows("SELECT pg_backend_pid() > 0"),
        c.rows("SELECT version() LIKE 'PostgreSQL 16.2%'"),
    ]


def transactions(c: Client) -> Any:
    c.begin()
    c.rows("SET LOCAL statement_timeout = 12345")
    told = [c.rows("SHOW statement_timeout"), c.rows("SELECT 1")]
    c.commit()
    told.append(c.rows("SHOW statement_timeout"))
    c.begin()
    c.rows("SET statement_timeout = 23456")
    c.rollback()
    told.append(c.rows("SHOW statement_timeout"))
    c.begin()
    told.append(c.error("SELECT nothing FROM wards").state)
    told.append(c.error("SELECT 1").state)
    c.rollback()
    told.append(c.rows("SELECT 2"))
    c.begin()
    c.rows("SAVEPOINT here")
    told.append(c.error("SELECT nothing FROM wards").state)
    c.rows("ROLLBACK TO SAVEPOINT here")
    told.append(c.rows("SELECT 3"))
    c.commit()
    for statement in ("START TRANSACTION READ ONLY", "END", "BEGIN ISOLATION LEVEL REPEATABLE READ", "ABORT"):
        c.rows(statement)
    told.append(c.rows("SELECT 4"))
    return told


def pool_resets(c: Client) -> Any:
    c.rows("SET statement_timeout = 34567")
    c.rows("DISCARD ALL")
    told = [c.rows("SHOW statement_timeout")]
    for statement in ("CLOSE ALL", "UNLISTEN *", "RESET ALL", "DEALLOCATE ALL", "SET SESSION AUTHORIZATION DEFAULT"):
        c.rows(statement)
    c.rows("SELECT pg_advisory_unlock_all()")
    c.rows("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    told.append(c.rows("SELECT 1"))
    return told


def statements_of_sql(c: Client) -> Any:
    """PREPARE and cursors as statements, which psql, ODBC and poolers send."""
    c.rows("PREPARE ask AS SELECT ward FROM wards WHERE beds = $1")
    told = [c.rows("EXECUTE ask (20)"), c.rows("EXECUTE ask (21)")]
    c.rows("DEALLOCATE ask")
    told.append(c.error("EXECUTE ask (20)").state)
    c.begin()
    c.rows("DECLARE walk CURSOR FOR SELECT ward FROM wards ORDER BY ward")
    told += [c.rows("FETCH 1 FROM walk"), c.rows("FETCH FORWARD 5 FROM walk"), c.rows("FETCH NEXT FROM walk")]
    c.rows("CLOSE walk")
    c.commit()
    told.append(c.error("FETCH 1 FROM walk").state)
    return told


def in_parts(c: Client) -> Any:
    sizes = [len(part) for part in c.parts("SELECT i FROM generate_series(1, 2500) AS s(i)", 1000)]
    return [sizes, c.rows("SELECT 1")]


def several_at_once(c: Client) -> Any:
    c.rows("SET statement_timeout = 1111; SET application_name = 'two'; SELECT 1")
    told = [c.rows("SHOW statement_timeout"), c.rows("SHOW application_name")]
    told.append(c.error("SET statement_timeout = 2222; SELECT nothing FROM wards; SELECT 1").state)
    told.append(c.rows("SHOW statement_timeout"))  # they were one transaction, and it failed
    return told


def copies(c: Client) -> Any:
    return [
        c.copy("COPY (SELECT * FROM wards ORDER BY ward) TO STDOUT"),
        c.copy("COPY (SELECT * FROM wards ORDER BY ward) TO STDOUT WITH (FORMAT csv, HEADER)"),
        c.rows("SELECT 1"),
    ]


def canceling(c: Client) -> Any:
    told, seconds = c.canceled(SLOW, 0.3)
    assert seconds < 10, seconds
    return [told.state, told.message, c.rows("SELECT 1")]


def timing_out(c: Client) -> Any:
    c.rows("SET statement_timeout = 200")
    told = c.error(SLOW)
    return [told.state, told.message, c.rows("SELECT 1")]


PARTS: tuple[Part, ...] = (
    literals, all_types, lists, computed, no_rows, nothing_asked, names, parameters_of_every_type, parameters_of_text,
    parameters_that_are_null, parameters_by_context, prepared_again, many_rows, errors, after_an_error, settings,
    sessions, transactions, pool_resets, statements_of_sql, in_parts, several_at_once, copies, canceling, timing_out,
)  # fmt: skip
NEEDS = {
    nothing_asked: "nothing", parameters_that_are_null: "null", in_parts: "parts", several_at_once: "several",
    copies: "copy", canceling: "cancel",
}  # fmt: skip


def counts(c: Client) -> Any:
    return [
        c.rows("SELECT count(*) FROM visits"), c.columns(),
        c.rows("SELECT ward, count(*) FROM visits GROUP BY ward ORDER BY ward"), c.columns(),
        c.rows("SELECT sex, count(*) FROM patients GROUP BY sex ORDER BY sex"),
        c.rows("SELECT insured, count(*) FROM patients GROUP BY insured ORDER BY insured"),
        c.rows("SELECT date_trunc('month', at) AS month, count(*) FROM visits WHERE at < '2024-09-01'"
               " GROUP BY 1 ORDER BY 1"), c.columns(),
        c.rows("SELECT count(DISTINCT patient_id), count(cost) FROM visits"),
        c.rows("SELECT w.floor, count(*) FROM visits AS v JOIN wards AS w ON v.ward = w.ward WHERE w.floor IS NOT NULL"
               " GROUP BY w.floor ORDER BY 1"),
    ]  # fmt: skip


def sums(c: Client) -> Any:
    return [
        c.rows("SELECT sum(nights), sum(cost), sum(paid), avg(cost), max(nights) FROM visits"), c.columns(),
        c.rows("SELECT ward, sum(cost) AS total, sum(paid) FROM visits GROUP BY ward ORDER BY ward"), c.columns(),
        c.rows("SELECT min(born), max(born), sum(weight) FROM patients WHERE insured"), c.columns(),
        c.rows("SELECT min(at), max(at) FROM visits WHERE planned"), c.columns(),
        c.rows("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY nights), bool_or(planned), bool_and(planned)"
               " FROM visits"), c.columns(),
        c.rows("SELECT stddev_samp(cost), var_pop(cost), corr(cost, cost + 1) FROM visits WHERE cost > 1"), c.columns(),
    ]  # fmt: skip


def parameters_over_private_rows(c: Client) -> Any:
    asked = (
        "SELECT ward, count(*) FROM visits WHERE nights >= $1 AND at < $2 AND ward <> $3 GROUP BY ward ORDER BY ward"
    )
    return [
        c.rows(asked, nights, dt.datetime(2025, 1, 1), ward)
        for nights, ward in ((0, "surgery"), (3, "surgery"), (0, "surgery"), (0, ODD))
    ] + [
        c.rows("SELECT count(*) FROM patients WHERE born > $1 AND sex = $2", dt.date(1960, 1, 1), "f"),
        c.rows("SELECT count(*) FROM patients WHERE weight < $1", Decimal("100.25")),
        c.rows("SELECT count(*) FROM patients WHERE insured = $1", True),
    ]


PRIVATE: tuple[Part, ...] = (counts, sums, parameters_over_private_rows)
