"""The catalog's database: what it answers, what it refuses, and that nothing of DuckDB or of others is in it."""

import datetime as dt
import time
from dataclasses import replace

import duckdb
import pytest

from dpsql.compiler.catalog.builtin import load_relations
from dpsql.compiler.catalog.functions import CATALOG_FUNCTIONS, TABLE_FUNCTIONS
from dpsql.compiler.catalog.oids import object_oids_of
from dpsql.compiler.catalog.pg_catalog import OWN_FUNCTIONS
from dpsql.compiler.catalog.query import CatalogQuery, read_catalog_query
from dpsql.compiler.catalog.session_rows import SESSION_ROWS
from dpsql.compiler.catalog.tables import rows_of_relation
from dpsql.compiler.catalog.variables import Identity, Variables
from dpsql.errors import Error, InternalError, LimitExceeded, OperationalError, UnknownFunction, UnknownTable
from dpsql.schema.model import Schema
from dpsql.session.postprocess import catalog_sandbox
from dpsql.session.sql_reference import named_functions
from tests.support.catalog_compare import shown

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
ANA = Identity("ana", "lab", "1.2", Variables().items())


@pytest.fixture(scope="module")
def lab() -> Schema:
    return shown("lab")


def ask(lab: Schema, sql: str, *parameters: str | int, who: Identity = ANA) -> list[tuple[object, ...]]:
    query = read_catalog_query(sql, parameters, lab, who, NOW)
    assert query is not None, "no statement about the catalog"
    return catalog_sandbox.run_catalog_query(lab, query, 20).rows


def types(lab: Schema, sql: str) -> list[str]:
    query = read_catalog_query(sql, (), lab, ANA, NOW)
    assert query is not None
    told = [column.spelling for column in catalog_sandbox.describe_catalog_query(lab, query)]
    assert told == [column.spelling for column in catalog_sandbox.run_catalog_query(lab, query, 20).columns]
    return told


# --- which statements ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    ["SELECT COUNT(*) FROM samples", "SELECT 1", "SELECT now()", "SELECT relname FROM pg_class JOIN samples ON true",
     "SET epsilon = 1", "SELECT * FROM public.pg_class", "SELECT (", "SELECT name FROM samples", "SELECT lower('A')",
     "INSERT INTO pg_class VALUES (1)", "DELETE FROM pg_class", "SELECT 1; SELECT version()", "SELECT 'pg_class'"],
)  # fmt: skip
def test_others_are_left_alone(lab: Schema, sql: str) -> None:
    assert read_catalog_query(sql, (), lab, ANA, NOW) is None


def test_a_table_of_the_schema_goes_first(lab: Schema) -> None:
    named = replace(lab, tables=(*lab.tables[:-1], replace(lab.tables[-1], name="pg_class")))
    assert read_catalog_query("SELECT COUNT(*) FROM pg_class", (), named, ANA, NOW) is None
    assert read_catalog_query("SELECT COUNT(*) FROM pg_catalog.pg_class", (), named, ANA, NOW) is not None


def test_parameters_are_values(lab: Schema) -> None:
    sql = "SELECT relname FROM pg_class WHERE relname = $1 AND relnatts > $2"
    assert ask(lab, sql, "samples", 1) == [("samples",)]
    assert ask(lab, sql, "x' OR true --", 1) == []
    listed = "SELECT relname FROM pg_class WHERE relname = ANY($1) ORDER BY 1"
    assert ask(lab, listed, '{samples,"Odd Names"}') == [("Odd Names",), ("samples",)]


# --- who asks --------------------------------------------------------------------------------------------------------


def test_a_user_never_sees_another(lab: Schema) -> None:
    for place, name in load_relations():
        told = repr(rows_of_relation(lab, ANA, place, name))
        assert "'bob'" not in told
        assert ("'ana'" in told) == ((place, name) in SESSION_ROWS and name != "pg_settings"), name
    assert ask(lab, "SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY 1") == [("ana",), ("owner",)]


def test_one_database_serves_all_users_and_shows_each_themselves(lab: Schema) -> None:
    bob = replace(ANA, user="bob", process=7)
    sql = "SELECT current_user, session_user, pg_backend_pid(), pg_get_userbyid(16384), pg_get_userbyid(10)"
    for who, process in ((ANA, 0), (bob, 7), (ANA, 0)):
        assert ask(lab, sql, who=who) == [(who.user, who.user, process, who.user, "owner")]
        assert ask(lab, "SELECT usename FROM pg_user", who=who) == [(who.user,)]
    acting = replace(ANA, login="service")
    assert ask(lab, "SELECT current_user, session_user", who=acting) == [("ana", "service")]


def test_settings_are_the_sessions(lab: Schema) -> None:
    who = replace(ANA, variables=(("search_path", "x"), ("application_name", "o'clock")))
    assert ask(lab, "SELECT current_setting('application_name')", who=who) == [("o'clock",)]
    listed = ask(lab, "SELECT name, setting, source FROM pg_settings ORDER BY 1", who=who)
    assert listed == [("application_name", "o'clock", "session"), ("search_path", "x", "session")]
    assert ask(lab, "SELECT current_setting(name) FROM pg_settings ORDER BY name", who=who) == [("o'clock",), ("x",)]


def test_rights_name_roles_that_there_are(lab: Schema) -> None:
    roles = {str(name) for (name,) in ask(lab, "SELECT rolname FROM pg_roles")} | {""}
    rights = ask(lab, "SELECT unnest(nspacl)::text FROM pg_namespace")
    named = {name for (right,) in rights for name in (str(right).split("=")[0], str(right).split("/")[1])}
    assert "owner" in named and named <= roles


def test_sizes_and_estimates_are_constants(lab: Schema) -> None:
    sql = "SELECT DISTINCT reltuples, relpages FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200"
    assert ask(lab, sql) == [(-1.0, 0)]
    assert ask(lab, "SELECT pg_total_relation_size('samples'), pg_database_size('lab')") == [(0, 0)]


# --- types -----------------------------------------------------------------------------------------------------------


def test_types_are_those_of_postgres(lab: Schema) -> None:
    sql = "SELECT oid, relname, relkind, relnatts, relacl, oid::regclass, 1, 'x', NULL, now() FROM pg_class"
    told = ["oid", "name", "char", "int2", "aclitem[]", "regclass", "int4", "text", "text", "timestamptz"]
    assert types(lab, sql) == told
    assert types(lab, "SELECT indkey, indclass, indkey[0] FROM pg_index") == ["int2vector", "oidvector", "int2"]
    assert types(lab, "SELECT array_agg(attname), count(*), max(attnum) FROM pg_attribute") == [
        "name[]",
        "int8",
        "int2",
    ]
    assert types(lab, "SELECT * FROM (SELECT oid AS a FROM pg_class UNION SELECT 1) s") == ["oid"]
    assert types(lab, "WITH t AS (SELECT attname n FROM pg_attribute) SELECT n, (SELECT min(n) FROM t) FROM t") == [
        "name", "name"]  # fmt: skip


def test_numbers_of_objects_print_as_their_names(lab: Schema) -> None:
    assert ask(lab, "SELECT 'samples'::regclass, '\"Odd Names\"'::regclass, 'pg_type'::regclass, 0::regclass") == [
        ("samples", '"Odd Names"', "pg_type", "-")]  # fmt: skip
    assert ask(lab, "SELECT 'int4'::regtype, '_text'::regtype, 'now'::regproc, 'public'::regnamespace") == [
        ("integer", "text[]", "now", "public")]  # fmt: skip
    joined = "SELECT confrelid::regclass || '!' FROM pg_constraint WHERE conname = 'samples_person_id_fkey'"
    assert ask(lab, joined) == [("people!",)]
    with pytest.raises(UnknownTable, match='relation "nothing" does not exist'):
        ask(lab, "SELECT 'nothing'::regclass")


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    ["getenv('HOME')", "current_setting('memory_limit')", "pg_read_file('/etc/passwd')", "duckdb_secrets()",
     "query('SELECT 1')", "read_text('/etc/passwd')", "pg_sleep(1)", "lo_import('x')", "dblink('x')",
     "sql_auto_complete('x')",
     "pg_catalog.getenv('HOME')", "main.getenv('HOME')", "dp_regclass_of('samples')", "nextval('x')",
     "getvariable('x')",
     "in_search_path('a', 'b')", "current_query()", "pg_terminate_backend(1)", "txid_current()", "write_log('x')"],
)  # fmt: skip
def test_functions_that_are_not_listed_do_not_exist(lab: Schema, call: str) -> None:
    for sql in (f"SELECT {call} FROM pg_class", f"SELECT * FROM pg_class WHERE {call} IS NULL",
                f"SELECT * FROM pg_class, {call}"):  # fmt: skip
        with pytest.raises(Error) as raised:
            ask(lab, sql)
        assert raised.value.sqlstate in ("42883", "42704", "3F000"), sql


@pytest.mark.parametrize(
    "source",
    ["pg_catalog.duckdb_tables", "information_schema.duckdb_settings", "pg_catalog.sqlite_master",
     "pg_catalog.lookup__roles", "pg_catalog.pg_nothing", "information_schema.pg_class"],
)  # fmt: skip
def test_relations_that_are_not_postgres_do_not_exist(lab: Schema, source: str) -> None:
    with pytest.raises(UnknownTable, match="does not exist") as raised:
        ask(lab, f"SELECT * FROM {source}")
    assert raised.value.sqlstate == "42P01"


def test_tables_and_files_of_duckdb_are_out_of_reach(lab: Schema) -> None:
    for source in ("duckdb_settings()", "main.lookup__roles", "lookup__roles", "'/etc/passwd'", "sqlite_master"):
        sql = f"SELECT * FROM pg_class, {source}"
        try:
            query = read_catalog_query(sql, (), lab, ANA, NOW)
        except UnknownFunction:
            continue
        assert query is None, source


@pytest.mark.parametrize(
    "sql",
    ["SELECT relname FROM pg_class FOR UPDATE", "SELECT relname FROM pg_class TABLESAMPLE SYSTEM (10)",
     "SELECT list_transform(reloptions, x -> getenv(x)) FROM pg_class", "SELECT relname INTO x FROM pg_class",
     "SELECT x.a FROM pg_class, XMLTABLE('/a' PASSING '<a/>' COLUMNS a text) x"],
)  # fmt: skip
def test_syntax_that_is_not_listed_is_refused(lab: Schema, sql: str) -> None:
    try:
        query = read_catalog_query(sql, (), lab, ANA, NOW)
    except Error as error:
        assert error.sqlstate in ("0A000", "42883")
    else:
        assert query is None


def test_the_database_is_locked_and_unchanging(lab: Schema) -> None:
    ask(lab, "SELECT 1 FROM pg_class LIMIT 1")
    for sql in ("CREATE TABLE main.x (a INTEGER)", "DELETE FROM main.pg_class", "SELECT 1; SELECT 2", "PRAGMA version",
                "SET threads = 4", "ATTACH ':memory:' AS x", "COPY main.pg_class TO '/tmp/x.csv'"):  # fmt: skip
        with pytest.raises(InternalError, match="one SELECT"):
            catalog_sandbox.run_catalog_query(lab, CatalogQuery(sql, ()), 1)
    connection = catalog_sandbox._DATABASES.get_instance(lab)
    for sql in (
        "SET threads = 4",
        "SELECT * FROM read_text('/etc/hostname')",
        "ATTACH '/tmp/x.duckdb' AS x",
        "INSTALL httpfs",
    ):
        with pytest.raises(duckdb.Error):
            connection.cursor().execute(sql)


def test_time_rows_and_depth_are_limited(lab: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    started = time.monotonic()
    four = ", ".join(f"pg_attribute a{n}" for n in range(4))
    with pytest.raises(OperationalError) as raised:
        query = read_catalog_query(
            f"SELECT count(*) FROM {four} WHERE a0.attname || a3.attname = 'x'", (), lab, ANA, NOW
        )
        assert query is not None
        catalog_sandbox.run_catalog_query(lab, query, 0.2)
    assert raised.value.sqlstate == "57014" and time.monotonic() - started < 12
    monkeypatch.setattr(catalog_sandbox, "MAX_ROWS", 10)
    with pytest.raises(LimitExceeded):
        ask(lab, "SELECT * FROM pg_attribute")
    with pytest.raises(LimitExceeded):
        ask(lab, f"SELECT {'(' * 300}version(){')' * 300}")


def test_errors_are_postgres_words(lab: Schema) -> None:
    for sql, state, words in (
        ("SELECT nosuch FROM pg_class", "42703", 'column "nosuch" does not exist'),
        ("SELECT x.oid FROM pg_class", "42P01", 'missing FROM-clause entry for table "x"'),
        ("SELECT 1 / 0 FROM pg_class", "22012", "division by zero"),
        ("SELECT relname::oid FROM pg_class", "22P02", 'invalid input syntax for type oid: "'),
        ("SELECT 'x'::oid FROM pg_class", "22P02", 'invalid input syntax for type oid: "x"'),
        ("SELECT * FROM other.pg_catalog.pg_class", "0A000", "cross-database references"),
    ):
        with pytest.raises(Error, match=words) as raised:
            ask(lab, sql)
        assert raised.value.sqlstate == state


# --- the lists -------------------------------------------------------------------------------------------------------


def test_functions_that_can_be_named_are_in_pg_proc(lab: Schema) -> None:
    """Those of the vocabulary and of the catalog, but for what is no function to PostgreSQL."""
    named = {str(name) for (name,) in ask(lab, "SELECT DISTINCT proname FROM pg_proc")}
    syntax = {"cast", "coalesce", "extract", "greatest", "least", "nullif", "trim"}
    assert {one.name for one in named_functions()} - syntax <= named
    own = {str(name) for (name,) in ask(lab, "SELECT proname FROM pg_proc WHERE pronamespace = 2200")}
    assert own == {one.name for one in OWN_FUNCTIONS} <= {one.name for one in named_functions()}


def test_every_listed_function_is_there(lab: Schema) -> None:
    """Each target is a macro, or a function of DuckDB."""
    connection = catalog_sandbox._DATABASES.get_instance(lab)
    sql = "SELECT DISTINCT function_name FROM duckdb_functions()"
    known = {str(name) for (name,) in connection.cursor().execute(sql).fetchall()}
    special = {"coalesce", "unnest"}
    assert {one.target for one in CATALOG_FUNCTIONS.values()} - known - special == set()
    tables = {name for (name,) in connection.cursor().execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    assert {table for table, _ in TABLE_FUNCTIONS.values()} <= tables


def test_names_mean_one_object_each(lab: Schema) -> None:
    names = object_oids_of(lab)
    assert names.find_oid("regclass", "Samples", None) == names.find_oid("regclass", 'public."samples"', None)
    assert len({names.find_oid("regclass", quoted, None) for quoted in ("samples", "people", "pg_class")}) == 3
