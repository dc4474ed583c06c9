"""psql: statements, backslash commands, variables, cursors, COPY, and errors as it prints them."""

from __future__ import annotations

import re
from pathlib import Path

import pexpect
import pytest

from tests.support.wire import psql
from tests.support.wire.hospital import Place

STATEMENTS = r"""
SELECT * FROM wards ORDER BY ward;
SELECT 1 AS one, 'x' AS text, NULL AS nothing, true AS yes, 1.50 AS number \gx
SELECT ward, beds FROM wards WHERE ward = 'nothing';
SELECT ARRAY[1, 2, NULL], ARRAY['a b', 'c"d'];
SELECT ward, count(*) FROM visits GROUP BY ward ORDER BY ward;
"""
SCRIPTS = {
    "statements": STATEMENTS,
    "unaligned": "\\pset format unaligned\n" + STATEMENTS,
    "variables": r"""
\set ward cardiology
SELECT beds FROM wards WHERE ward = :'ward';
SELECT beds AS many FROM wards WHERE ward = 'cardiology' \gset
\echo :many :ROW_COUNT :SQLSTATE :ERROR
SELECT nothing;
\echo :LAST_ERROR_SQLSTATE :ERROR
SELECT $1::text, $2::int4 + 1 \bind 'it''s' 41 \g
\echo :SERVER_VERSION_NAME :SERVER_VERSION_NUM :USER :DBNAME :ENCODING
""",
    "described": r"""
SELECT ward, beds, fee, opened, changed, rest, code, open FROM wards \gdesc
SELECT ward, count(*), sum(cost), avg(cost), max(nights), min(at) FROM visits GROUP BY ward \gdesc
""",
    "fetched in parts": r"""
\set FETCH_COUNT 100
SELECT i FROM generate_series(1, 250) AS s(i);
SELECT 1;
""",
    "copies": r"""
COPY (SELECT * FROM wards ORDER BY ward) TO STDOUT;
COPY (SELECT * FROM wards ORDER BY ward) TO STDOUT WITH (FORMAT csv, HEADER, FORCE_QUOTE (ward));
COPY (SELECT ward, beds FROM wards ORDER BY ward) TO STDOUT WITH (FORMAT text, DELIMITER '|', NULL 'none');
\copy (SELECT ward, beds FROM wards ORDER BY ward) to stdout csv header
SELECT 1;
""",
    "transactions": r"""
BEGIN;
SET LOCAL statement_timeout = '2s';
SHOW statement_timeout;
SELECT nothing FROM wards;
SELECT 1;
COMMIT;
SHOW statement_timeout;
COMMIT;
BEGIN;
BEGIN;
ROLLBACK;
ROLLBACK;
\set AUTOCOMMIT off
SELECT 1;
SELECT 2;
ROLLBACK;
""",
    "errors": r"""
\set VERBOSITY verbose
SELECT count(*) FROM visits WHERE nothing = 1;
SELECT 'ä€😀', count(*)
FROM visits
WHERE  nothing = 1;
SELEC 1;
SELECT count(* FROM visits;
EXECUTE nothing;
SELECT 1;
""",
    "several at once": r"""
SELECT 1 \; SELECT 2 \; SELECT 3;
SELECT 1 \; SELECT nothing \; SELECT 3;
SELECT 4;
""",
    "prepared": r"""
PREPARE ask (text) AS SELECT beds FROM wards WHERE ward = $1;
EXECUTE ask ('cardiology');
EXECUTE ask ('emergency');
DEALLOCATE ask;
EXECUTE ask ('cardiology');
BEGIN;
DECLARE walk CURSOR FOR SELECT ward FROM wards ORDER BY ward;
FETCH 1 FROM walk;
MOVE 1 FROM walk;
FETCH ALL FROM walk;
CLOSE walk;
COMMIT;
""",
    "formats": "\n".join(
        f"\\pset format {name}\nSELECT ward, beds, open FROM wards ORDER BY ward;"
        for name in ("aligned", "wrapped", "html", "csv", "asciidoc", "latex", "troff-ms")
    ),
    "crosstab": "SELECT ward, open, beds FROM wards WHERE beds > 0 ORDER BY 1 \\crosstabview\n",
    "reconnecting": "SELECT 1;\n\\c - - - -\nSELECT 2;\n\\c -reuse-previous=on dbname=nothing\nSELECT 3;\n",
}
CATALOG = (r"\d", r"\dt", r"\dv", r"\dm", r"\ds", r"\di", r"\dn", r"\d wards", r"\d visits", r"\d patients",
           r"\d nothing", r"\dt public.*", r"\dt w*",
           r"\d planned_visits", r"\dy", r"\dE", r"\dD",
           r"\encoding", r"\dRp", r"\dFp no_parser", r"\det", r"\dO no_collation", r"\drds")  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts(name: str, reference: Place, served: Place) -> None:
    due = psql.without_places(psql.run(reference, SCRIPTS[name]))
    quiet = "SET client_min_messages = warning;\n"
    got = psql.without_places(psql.run(served, quiet + SCRIPTS[name])).removeprefix("SET\n")
    assert got.replace(str(served.port), "PORT") == due.replace(str(reference.port), "PORT")


@pytest.mark.parametrize("command", CATALOG)
def test_commands(command: str, reference: Place, served: Place) -> None:
    assert psql.run(served, command) == psql.run(reference, command)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (r"\l", "hospital"),
        (r"\du", "ana"),
        (r"\dg", "ana"),
        (r"\df", "List of functions"),
        (r"\df count", "count"),
        (r"\dT", "List of data types"),
        (r"\da count", "count"),
        (r"\dp visits", "Access privileges"),
        (r"\z", "visits"),
        (r"\d+", "patients"),
        (r"\d+ visits", "Indexes:"),
        (r"\dt+", "One row each"),
        (r"\dn+", "public"),
        (r"\l+", "hospital"),
        (r"\dd", "Object descriptions"),
        (r"\dS pg_class", "relname"),
        (r"\dtS pg_class", "pg_class"),
        (r"\db", "pg_default"),
        (r"\dconfig server_version", "16.2"),
        (r"\dL", "List of languages"),
        (r"\dC", "List of casts"),
        (r"\dA", "heap"),
        (r"\conninfo", "You are connected"),
        (r"\sv planned_visits", "FROM visits WHERE planned"),
        (r"\dx", "List of installed extensions"),
        (r"\timing", "Timing is on"),
    ],
)
def test_commands_about_the_server_itself(command: str, shown: str, served: Place) -> None:
    told = psql.run(served, command)
    assert shown in told
    assert "ERROR" not in told


def test_notices_report_the_loss_and_can_be_switched_off(served: Place) -> None:
    asked = "SELECT count(*) FROM visits WHERE nights > 2;\n"
    told = psql.run(served, asked)
    assert "NOTICE:  charged" in told and "left" in told
    assert "NOTICE" not in psql.run(served, "SET client_min_messages = warning;\n" + asked)


def test_a_refusal_has_position_and_hint(served: Place) -> None:
    told = psql.run(served, "SELECT * FROM visits;\n")
    assert "ERROR:  this would return single private rows\nLINE 1: SELECT * FROM visits;\n" in told
    assert "\n               ^\nHINT:" in told


def test_options_of_the_environment_and_the_address(served: Place) -> None:
    assert "0.25" in psql.run(served, "SHOW epsilon;", None, PGOPTIONS="-c epsilon=0.25")
    address = served.url(options="-c epsilon=0.125")
    assert "0.125" in psql.run(served, "SHOW epsilon;", None, address)
    assert "matrix" in psql.run(served, "SHOW application_name;")


ENCODED = r"""
\encoding
SELECT 'größe ß' AS "größe", length('größe'), 'naïve' = 'na' || chr(239) || 've' AS same;
SELECT * FROM "größe";
\echo :LAST_ERROR_SQLSTATE
SELECT $1::text AS bound \bind 'größe' \g
COPY (SELECT 'größe') TO STDOUT;
SELECT pg_client_encoding();
SELECT chr(8364);
\echo :LAST_ERROR_SQLSTATE
SET client_encoding = 'UTF8';
\encoding
"""


@pytest.mark.parametrize(
    ("name", "codec"),
    [("LATIN1", "latin-1"), ("WIN1252", "cp1252"), ("SQL_ASCII", "utf-8"), ("LATIN9", "iso8859-15"),
     ("iso-8859-1", "latin-1"), ("KLINGON", "utf-8")],
)  # fmt: skip
def test_text_in_the_encoding_of_the_client(name: str, codec: str, reference: Place, served: Place) -> None:
    def run(place: Place, script: str) -> str:
        return psql.without_places(psql.run(place, script, encoding=codec, PGCLIENTENCODING=name))

    due = run(reference, ENCODED)
    got = run(served, "SET client_min_messages = warning;\n" + ENCODED).removeprefix("SET\n")
    assert got.replace(str(served.port), "PORT") == due.replace(str(reference.port), "PORT")


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_an_interactive_psql_in_a_locale_without_utf8(locale: str, served: Place) -> None:
    """On a terminal psql asks for the encoding of its locale, which is SQL_ASCII there."""
    environment = {**served.environment(), "LC_ALL": locale, "TERM": "dumb", "PSQL_HISTORY": "/dev/null"}
    del environment["PGCLIENTENCODING"]
    child = pexpect.spawn(str(psql.bundled()), ["-X", "-n"], env=environment, encoding="utf-8", timeout=30)
    child.expect("=> ")
    child.sendline("SHOW client_encoding;")
    child.expect("SQL_ASCII")
    child.sendline("SELECT 'gr\u00f6\u00dfe';")
    child.expect("größe\r\n\\(1 row\\)")
    child.sendline("\\q")
    child.expect(pexpect.EOF)


README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
ADDRESSES = re.findall(r'^\$ psql "(postgresql://[^"]+)"', README, re.MULTILINE)


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_addresses_of_the_readme(address: str, served: Place) -> None:
    """As they stand there, but for where the server is."""
    here = address.replace("127.0.0.1:5433", f"{served.host}:{served.port}")
    wanted = dict(re.findall(r"-c%20(\w+)%3D([\d.]+)", address))
    told = psql.run(served, "SHOW epsilon;", None, here, "-At")
    assert told.splitlines()[-1] == wanted["epsilon"]


def test_the_readme_has_an_address_with_a_setting() -> None:
    assert any("options=" in address for address in ADDRESSES)


def test_exit_codes(served: Place) -> None:
    assert 'password authentication failed for user "ana"' in psql.run(served, "SELECT 1;", None, PGPASSWORD="wrong")
    assert 'database "nothing" does not exist' in psql.run(served, "SELECT 1;", None, PGDATABASE="nothing")


def test_tables_of_tables(served: Place) -> None:
    """`-l` and `-c` as scripts of people use them."""
    assert "hospital" in psql.run(served, "", None, "-l")
    assert psql.run(served, "", None, "-Atc", "SELECT beds FROM wards ORDER BY ward") == "<null>\n20\n2147483647\n"
