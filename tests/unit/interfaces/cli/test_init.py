"""`dpsql init`: drafts that load and can be asked, from every kind of source, and no value of a row in any of them."""

import json
import os
import re
import stat
import subprocess
import sys

import duckdb
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsql.owner.draft.draft import DraftOptions
from dpsql.owner.draft.init import draft_schema, find_sources
from dpsql.schema.load import load_schema
from dpsql.schema.model import Contributions, ForeignUnit, OwnUnit, RowUnit
from tests.support.optional_dependencies import no_root, package

pytestmark = pytest.mark.slow

MARK = "zqMARKERqz"
"""In every value of the sources below that can hold text; numbers hold 918273645."""
NUMBER = "918273645"

TABLES = f"""
CREATE TABLE patients (patient_id BIGINT, sex VARCHAR, name VARCHAR, income DOUBLE, born DATE);
INSERT INTO patients SELECT {NUMBER}000::BIGINT + i, '{MARK}' || i % 3, '{MARK}' || i, {NUMBER} + i, DATE '1950-01-01'
                            + i::INTEGER FROM range(200) t(i);
CREATE TABLE visits (visit_id BIGINT, patient_id BIGINT, ward VARCHAR, cost DOUBLE, at_time TIMESTAMP, ok BOOLEAN);
INSERT INTO visits SELECT {NUMBER}000::BIGINT + i, {NUMBER}000::BIGINT + i % 200, '{MARK}' || i % 4, {NUMBER} + i / 7,
                          TIMESTAMP '2024-01-01' + INTERVAL 1 HOUR * i, i % 2 = 0 FROM range(1000) t(i);
CREATE TABLE tests (test_id BIGINT, visit_id BIGINT, result DECIMAL(12, 2));
INSERT INTO tests SELECT {NUMBER}000::BIGINT + i, {NUMBER}000::BIGINT + i, {NUMBER} + i FROM range(500) t(i);
CREATE TABLE wards (ward VARCHAR, floor INTEGER, beds INTEGER);
INSERT INTO wards SELECT '{MARK}' || i, {NUMBER}, {NUMBER} FROM range(4) t(i);
"""
NAMES = ("patients", "visits", "tests", "wards")


def database(folder):
    path = folder / "clinic.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute(TABLES)
    return [str(path)]


def files(ending, options):
    def make(folder):
        data = folder / "data"
        data.mkdir()
        with duckdb.connect() as db:
            db.execute(TABLES)
            for name in NAMES:
                db.execute(f"COPY {name} TO '{data / name}.{ending}' {options}")
        return [str(data)]

    return make


def partitioned(folder):
    """A folder of files for each table."""
    with duckdb.connect() as db:
        db.execute(TABLES)
        for name in NAMES:
            (folder / "parts" / name).mkdir(parents=True)
            for part in range(2):
                place = folder / "parts" / name / f"part-{part}.parquet"
                db.execute(f"COPY (SELECT * FROM {name} WHERE hash({name}) % 2 = {part}) TO '{place}' (FORMAT parquet)")
    return [str(folder / "parts")]


def globs(folder):
    partitioned(folder)
    return [str(folder / "parts" / name / "*.parquet") for name in NAMES]


SOURCES = {
    "duckdb": database,
    "parquet": files("parquet", "(FORMAT parquet)"),
    "csv": files("csv", "(HEADER)"),
    "csv with semicolons": files("csv", "(HEADER, DELIMITER ';')"),
    "folders": partitioned,
    "globs": globs,
}


@pytest.fixture(params=SOURCES.values(), ids=SOURCES)
def sources(request, tmp_path):
    return request.param(tmp_path)


def values_in(text):
    return re.findall(f"{MARK}|{NUMBER}|9182|1950|2024", text)


def test_a_draft_loads_from_every_source(run, sources, tmp_path):
    target = tmp_path / "draft.yaml"
    ran = run("init", *sources, "-o", str(target))
    assert ran.code == 0, ran.err
    schema = load_schema(target)
    units = {table.name: table.unit for table in schema.tables}
    assert schema.privacy.unit == "patients.patient_id"
    assert units == {
        "patients": OwnUnit("patient_id"),
        "visits": ForeignUnit("patient_id", "patients", "patient_id"),
        "tests": ForeignUnit("visit_id", "visits", "visit_id"),
    }
    assert not any(table.public for table in schema.tables)
    text = target.read_text()
    assert re.search(r"^  # decide: wards has no way to the unit", text, re.MULTILINE) and "  # wards:" in text
    assert text.count("# decide:") == len(re.findall(r"^  \S+  ", ran.out, re.MULTILINE))
    assert f"{text.count('# decide:')} decisions left" in ran.out


def test_no_value_of_a_row_is_in_the_draft_or_in_what_is_said(run, sources, tmp_path):
    """Everything that comes out of every way to call it, but with --look-at-data."""
    target = str(tmp_path / "draft.yaml")
    said = [run("init", *sources, "-o", target), run("init", *sources, "-o", target)]  # the second finds the file there
    said += [run("init", *sources, "-o", "-"), run("init", *sources, "-o", "-", "--json")]
    said += [run("init", *sources, "-o", "-", "--unit", unit) for unit in ("row", "visits.visit_id", "x.y", "visits.y")]
    assert [ran.code for ran in said] == [0, 2, 0, 0, 0, 0, 1, 1]
    texts = [*(ran.out + ran.err for ran in said), (tmp_path / "draft.yaml").read_text()]
    assert [values_in(text) for text in texts] == [[]] * len(texts)


def test_errors_quote_no_rows(run, tmp_path):
    """Files that are not what they seem."""
    broken = {
        "a.parquet": f"{MARK} is no Parquet file",
        "b.csv": f'id,x\n1,"{MARK}\n2,"{MARK}" {MARK}"\n',
        "c.csv": f"{MARK},{NUMBER}\n{MARK},{NUMBER}\n",
        "d.csv": f"{MARK};{MARK}x\n{MARK}y;{MARK}z\n",
        "e.csv": f"1,2,3\n{MARK},{MARK}\n4\n",
        "f.csv": f"{MARK},N/A\n{MARK},1\n{MARK},2\n",
        "g.csv": f"{MARK},{MARK}\n1,2\n",
        "h.duckdb": f"{MARK} is no database",
        "i.csv": "",
        "j.csv": "\x00\x01\xff" + MARK,
        f"{MARK[:2]}.txt": MARK,
    }
    for name, text in broken.items():
        path = tmp_path / name
        path.write_bytes(text.encode("latin-1"))
        ran = run("init", str(path), "-o", "-")
        assert values_in(ran.out + ran.err) == [], (name, ran)
        assert "internal error" not in ran.err, name


def test_rows_without_a_header_do_not_become_names(run, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(f"{MARK}1,berlin\n{MARK}2,paris\n")
    ran = run("init", str(path), "-o", "-")
    assert ran.code == 1 and "--no-header" in ran.err and "berlin" not in ran.out + ran.err
    ran = run("init", str(path), "-o", "-", "--no-header")
    assert ran.code == 0 and "header: false" in ran.out and "column1: {type: text}" in ran.out
    assert "berlin" not in ran.out and MARK not in ran.out
    path.write_text("1,2\n3,4\n")  # no text at all: surely no header
    ran = run("init", str(path), "-o", "-")
    assert ran.code == 0 and "header: false" in ran.out


def test_numbers_that_begin_with_zeros_are_text(run, tmp_path):
    """As numbers, 007 and 7 would be one person."""
    path = tmp_path / "users.csv"
    path.write_text("user_id;zip;n\n" + "".join(f"{i:03d};{i * 90:05d};{i}\n" for i in range(500)))
    ran = run("init", str(path), "-o", str(tmp_path / "d.yaml"))
    assert ran.code == 0, ran.err
    types = [str(column.type) for column in load_schema(tmp_path / "d.yaml").table("users").columns]
    assert types == ["text", "text", "bigint"]
    told = json.loads(run("check", str(tmp_path / "d.yaml"), "--json").out)
    assert (told["tables"][0]["units"], told["tables"][0]["without_unit"]) == (500, 0)


def test_a_guessed_key_is_unique_only_where_a_way_needs_it(run, tmp_path):
    """A guess that is wrong would keep the data from being served."""
    run("init", *database(tmp_path), "-o", str(tmp_path / "d.yaml"))
    unique = {table.name: table.unique for table in load_schema(tmp_path / "d.yaml").tables}
    assert unique == {"patients": (("patient_id",),), "visits": (("visit_id",),), "tests": ()}


def test_looking_at_data_warns_and_says_so(run, sources, tmp_path):
    target = tmp_path / "draft.yaml"
    ran = run("init", *sources, "-o", str(target), "--look-at-data")
    assert ran.code == 0 and ran.err.startswith("WARNING:") and "not private" in ran.err
    text = target.read_text()
    assert "were read from the data, so they are not private" in text
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    schema = load_schema(target)
    visits, patients = schema.table("visits"), schema.table("patients")
    assert visits.column("ward").domain.values == tuple(f"{MARK}{i}" for i in range(4))
    assert patients.column("sex").domain.values == tuple(f"{MARK}{i}" for i in range(3))
    assert patients.column("name").domain.values is None  # its name says that it is someone's own
    low, high = visits.column("cost").domain.bounds
    assert low <= int(NUMBER) and int(NUMBER) + 140 <= high
    assert schema.privacy.contributions == Contributions()  # no norm is read from the data
    assert "contributions: auto" in text and "# units: 100000" in text and schema.privacy.units is None
    marked = [line for line in text.splitlines() if "bounds: [" in line or "values: [" in line]
    assert marked and all("read from the data" in line for line in marked)


@pytest.mark.parametrize("who", ["i", "least(i, 30)"], ids=["few rows", "many rows of one unit"])
def test_rare_values_are_not_proposed(run, tmp_path, who):
    path = tmp_path / "d.parquet"
    with duckdb.connect() as db:
        db.execute(f"""COPY (SELECT {who} AS user_id, CASE WHEN {who} < 5 OR {who} = 30 AND i > 30 THEN 'rare'
                       ELSE 'often' END AS kind FROM range(100) t(i)) TO '{path}' (FORMAT parquet)""")
    ran = run("init", str(path), "-o", "-", "--look-at-data")
    assert "values: [often]" in ran.out and "1 rare ones left out" in ran.out and " rare," not in ran.out


def test_an_empty_table_is_looked_at_too(run, tmp_path):
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute("CREATE TABLE users (user_id BIGINT PRIMARY KEY, age INTEGER, kind VARCHAR, d DATE)")
    ran = run("init", str(path), "-o", "-", "--look-at-data")
    assert ran.code == 0 and "bounds: [0, 120]" in ran.out  # asked, since nothing was found


# --- what constraints say --------------------------------------------------------------------------------------------

DECLARED = """
CREATE TYPE mood AS ENUM ('fine', 'it''s bad', 'no');
CREATE TABLE persons (id INTEGER PRIMARY KEY, mood mood, age INTEGER CHECK (age BETWEEN 0 AND 120),
                      sex VARCHAR CHECK (sex IN ('f', 'm')), tags INTEGER[], UNIQUE (mood, age));
CREATE TABLE trips (nr INTEGER UNIQUE, who INTEGER REFERENCES persons (id), boss INTEGER REFERENCES persons (id));
CREATE TABLE stops (trip INTEGER REFERENCES trips (nr), price DECIMAL(8, 2));
CREATE VIEW seen AS SELECT * FROM persons;
COMMENT ON TABLE trips IS 'one # trip: a line';
COMMENT ON COLUMN trips.nr IS 'a "number"';
"""


def test_constraints_of_duckdb_are_read(run, tmp_path):
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute(DECLARED)
    ran = run("init", str(path), "-o", str(tmp_path / "d.yaml"))
    assert ran.code == 0 and 'left out: the view "seen"' in ran.out
    schema = load_schema(tmp_path / "d.yaml")
    persons, trips, stops = (schema.table(name) for name in ("persons", "trips", "stops"))
    assert schema.engine.endswith("/d.duckdb") and schema.privacy.unit == "persons.id"
    assert persons.unique == (("id",), ("mood", "age")) and trips.unique == (("nr",),)
    assert persons.column("mood").domain.values is None  # labels may be made of rows
    assert persons.column("sex").domain.values == ("f", "m")
    assert persons.column("age").domain.bounds == (0, 120)
    assert persons.column("tags") is None and "INTEGER[] is no type" in (tmp_path / "d.yaml").read_text()
    assert trips.unit == ForeignUnit("who", "persons", "id") and stops.unit == ForeignUnit("trip", "trips", "nr")
    assert (trips.description, trips.column("nr").description) == ("one # trip: a line", 'a "number"')
    assert "boss may name a second person" in ran.out


def test_a_database_with_tables_in_several_schemas(run, tmp_path):
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute(
            "CREATE TABLE users (user_id BIGINT PRIMARY KEY); CREATE SCHEMA s;"
            "CREATE TABLE s.users (user_id BIGINT); CREATE TABLE s.logins (user_id BIGINT, ip VARCHAR)"
        )
    assert run("init", str(path), "-o", str(tmp_path / "d.yaml")).code == 0
    sources = {table.name: table.source.name for table in load_schema(tmp_path / "d.yaml").tables}
    assert sources == {"users": ("users",), "s_users": ("s", "users"), "s_logins": ("s", "logins")}


@pytest.fixture(scope="module")
def books(postgres):
    url = postgres.new_database()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("""
            CREATE TYPE mood AS ENUM ('fine', 'bad');
            CREATE DOMAIN money2 AS numeric(10, 2);
            CREATE TABLE persons (id integer PRIMARY KEY, mood mood, age integer CHECK (age >= 0 AND age <= 120),
                                  code varchar(8) UNIQUE, born timestamp(3) with time zone, j jsonb);
            CREATE TABLE "Trips" (nr bigint PRIMARY KEY, who integer REFERENCES persons, "Cost" money2, free numeric,
                                  kind text CHECK (kind IN ('a', 'b')));
            CREATE TABLE wards (ward text);
            CREATE SCHEMA s;
            CREATE TABLE s.trips (who integer, "Who" text);
            CREATE VIEW seen AS SELECT * FROM persons;
            COMMENT ON COLUMN persons.code IS 'of the register';
        """)
        db.execute(f"INSERT INTO wards VALUES ('{MARK}')")
        rows = f"SELECT i, 'fine', i % 90, '{MARK[:3]}' || i, now() FROM generate_series(1, 300) i"
        db.execute(f"INSERT INTO persons {rows}")
        db.execute("""INSERT INTO "Trips" SELECT i, 1 + i % 300, i / 7.0, i, 'a' FROM generate_series(1, 900) i""")
    return url


def test_postgresql_is_read_by_its_catalogs(run, books, tmp_path):
    target = tmp_path / "books.yaml"
    ran = run("init", books, "-o", str(target))
    assert ran.code == 0, ran.err
    assert values_in(ran.out + ran.err + target.read_text()) == []
    schema = load_schema(target)
    persons, trips = schema.table("persons"), schema.table("Trips")
    assert schema.privacy.unit == "persons.id" and trips.unit == ForeignUnit("who", "persons", "id")
    assert persons.unique == (("id",), ("code",)) and trips.unique == (("nr",),)
    assert [str(column.type) for column in persons.columns] == ["integer", "text", "integer", "text", "timestamptz"]
    assert [str(column.type) for column in trips.columns] == ["bigint", "integer", "decimal(10,2)", "double", "text"]
    assert persons.column("mood").domain.values == ("fine", "bad") and persons.column("age").domain.bounds == (0, 120)
    assert re.search("mood: .*values: .fine, bad.*# decide: all values by the type", target.read_text())
    assert persons.column("code").max_length == 8 and persons.column("code").description == "of the register"
    assert trips.column("kind").domain.values == ("a", "b")
    assert schema.table("wards") is None and 'left out: the view "seen"' in ran.out
    assert 'left out: the column "Who" of "s_trips"' in ran.out


def test_tables_of_postgresql_are_exported_checked_and_queried(run, books, tmp_path, silent):
    """As the draft says, but for psql: the same COPY by psycopg."""
    target = tmp_path / "books.yaml"
    assert run("init", books, "-o", str(target)).code == 0
    commands = re.findall(r"-c '\\copy \((.*)\) TO (\S+) CSV HEADER'$", target.read_text(), re.MULTILINE)
    assert [name for _, name in commands] == ["persons.csv", "Trips.csv", "wards.csv", "s_trips.csv"]
    with psycopg.connect(books) as db, db.cursor() as cursor:
        for select, name in commands:
            with cursor.copy(f"COPY ({select}) TO STDOUT (FORMAT csv, HEADER)") as copy:
                (tmp_path / name).write_bytes(b"".join(bytes(part) for part in copy))
    assert run("check", str(target)).code == 0
    ran = run("query", str(target), 'SELECT kind, COUNT(*) AS n FROM "Trips" GROUP BY kind', "--csv")
    assert ran.out.splitlines() == ["kind,n", "a,900"]


@pytest.mark.parametrize(
    "url",
    ["postgresql://u:s3cret@127.0.0.1:1/x", "postgresql://u:s3cr@et@nowhere.invalid/x", "postgresql://%zz:s3cret@/"],
)
def test_a_password_is_never_shown(run, url):
    ran = run("init", url, "-o", "-")
    assert ran.code == 1 and "s3cr" not in ran.out + ran.err and "internal" not in ran.err


# --- names -----------------------------------------------------------------------------------------------------------

ODD = [
    "a: b", "# x", "no", "null", "~", "yes", "1", "1e5", "-", "- a", "[x]", "{a: b}", "a, b", "*x", "&x", "!x",
    "%x", "@x", "`x`", "'", "x'", "|", ">", "?", "? x", ":", "a:", "a #b", "ü", "日本", "order", "select", "user",
    "type", "unit", "dpsql", "a  b", "\\", "\\n", "true", "0x10", "2024-01-01", "<<", "=", ".5", "a.b",
    "decide:", "x" * 200,
]  # fmt: skip


def test_odd_names_come_back_as_they_are(run, tmp_path):
    path = tmp_path / "odd.duckdb"
    with duckdb.connect(str(path)) as db:
        columns = ", ".join(f'"{name}" INTEGER' for name in ODD)
        db.execute(f"CREATE TABLE users (user_id BIGINT PRIMARY KEY, {columns})")
        for name in ODD:
            if "." not in name:
                db.execute(f'CREATE TABLE "{name}" (user_id BIGINT, "{name}" VARCHAR)')
    ran = run("init", str(path), "-o", str(tmp_path / "odd.yaml"))
    assert ran.code == 0, ran.err
    schema = load_schema(tmp_path / "odd.yaml")
    assert [column.name for column in schema.table("users").columns] == ["user_id", *ODD]
    assert {table.name for table in schema.tables} == {"users", *(name for name in ODD if "." not in name)}


def test_names_that_a_schema_cannot_hold_are_left_out_and_named(run, tmp_path):
    path = tmp_path / "odd.duckdb"
    bad = ["two\nlines", 'q"uote', " lead", "trail ", "tab\t", "\x1b[31m"]
    with duckdb.connect(str(path)) as db:
        columns = ", ".join('"' + name.replace('"', '""') + '" INTEGER' for name in bad)
        db.execute(f"CREATE TABLE users (user_id BIGINT PRIMARY KEY, {columns})")
        db.execute('CREATE TABLE "a.b" (user_id BIGINT)')
        db.execute('CREATE TABLE "x\n  evil: true" (user_id BIGINT)')
    ran = run("init", str(path), "-o", str(tmp_path / "odd.yaml"))
    assert ran.code == 0 and ran.out.count("left out:") == len(bad) + 2 and "\x1b" not in ran.out
    schema = load_schema(tmp_path / "odd.yaml")
    assert [(t.name, [c.name for c in t.columns]) for t in schema.tables] == [("users", ["user_id"])]


NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(lambda n: "\x00" not in n)


@given(st.lists(NAME, min_size=1, max_size=4, unique_by=str.casefold), NAME)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_name_breaks_out_of_the_draft(tmp_path, names, table):
    """Whatever they are called, columns come back as they are or not at all, and nothing else comes with them."""
    path = tmp_path / "any.duckdb"
    path.unlink(missing_ok=True)

    def quoted(name):
        return '"' + name.replace('"', '""') + '"'

    with duckdb.connect(str(path)) as db:
        try:
            columns = ", ".join(f"{quoted(name)} VARCHAR" for name in names)
            db.execute(f"CREATE TABLE {quoted(table)} (the_user_id BIGINT, {columns})")
            db.execute("CREATE TABLE users (user_id BIGINT PRIMARY KEY)")
            db.execute(f"COMMENT ON TABLE users IS '{names[0].replace(chr(39), chr(39) * 2)}'")
        except duckdb.Error:
            return  # no name for DuckDB either
    drafted = draft_schema(find_sources([str(path)]), str(tmp_path), DraftOptions())
    (tmp_path / "any.yaml").write_text(drafted.draft.text, encoding="utf-8")
    schema = load_schema(tmp_path / "any.yaml")
    assert {found.name for found in schema.tables} <= {"users", table}
    for found in schema.tables:
        known = ["user_id"] if found.name == "users" else ["the_user_id", *names]
        assert [column.name for column in found.columns] == [n for n in known if n in {c.name for c in found.columns}]
        assert isinstance(found.unit, OwnUnit | ForeignUnit)


def test_hundreds_of_columns_and_a_large_draft(run, tmp_path):
    path = tmp_path / "wide.duckdb"
    with duckdb.connect(str(path)) as db:
        columns = ", ".join(f"c{i} DOUBLE" for i in range(900))
        db.execute(f"CREATE TABLE users (user_id BIGINT PRIMARY KEY, {columns})")
        db.execute(f"INSERT INTO users SELECT i, {', '.join('random()' for _ in range(900))} FROM range(50) t(i)")
    ran = run("init", str(path), "-o", str(tmp_path / "wide.yaml"), "--look-at-data")
    users = load_schema(tmp_path / "wide.yaml").table("users")
    assert ran.code == 0 and "… and 882 more" in ran.out and len(users.columns) == 901
    assert all(column.domain.is_bounded for column in users.columns[1:])


# --- usage -----------------------------------------------------------------------------------------------------------


def test_wishes_stand_in_the_draft(run, tmp_path):
    target = tmp_path / "d.yaml"
    ran = run("init", *database(tmp_path), "-o", str(target), "--epsilon", "3", "--delta", "1e-5", "--neighbors",
              "change_one", "--analyst", "ana", "--analyst", "bi", "--unit", "visits.visit_id")  # fmt: skip
    assert ran.code == 0
    schema = load_schema(target)
    assert (float(schema.privacy.budget.epsilon), float(schema.privacy.budget.delta)) == (3, 1e-5)
    assert schema.privacy.neighbors.value == "change_one" and schema.privacy.unit == "visits.visit_id"
    assert [(a.name, float(a.budget.epsilon)) for a in schema.analysts] == [("ana", 1.5), ("bi", 1.5)]
    assert [table.name for table in schema.tables] == ["visits", "tests"]  # patients have no way to a visit


@pytest.mark.parametrize(
    "wrong",
    [("--epsilon", "0"), ("--epsilon", "nan"), ("--epsilon", "x"), ("--delta", "1"), ("--delta", "-1"),
     ("--analyst", "a b"), ("--analyst", "a: {budget"), ("--analyst", "a", "--analyst", "a"), ("--neighbors", "x")],
)  # fmt: skip
def test_wrong_wishes_are_wrong_usage(run, tmp_path, wrong):
    assert run("init", *database(tmp_path), "-o", "-", *wrong).code == 2


def test_a_file_is_replaced_only_by_force(run, tmp_path):
    target = tmp_path / "d.yaml"
    target.write_text("mine")
    (tmp_path / "d").mkdir()
    source = database(tmp_path / "d")
    assert run("init", *source, "-o", str(target)).code == 2 and target.read_text() == "mine"
    assert run("init", *source, "-o", str(target), "--force").code == 0 and "dpsql: 1" in target.read_text()


def test_the_file_is_named_after_the_source(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    database(tmp_path)
    assert run("init", "clinic.duckdb").code == 0
    assert load_schema(tmp_path / "clinic.yaml").engine == f"duckdb:///{tmp_path}/clinic.duckdb"


def test_the_ledger_is_named_after_the_schema(run, tmp_path):
    """Two drafts of one source are two datasets: they must not come to share a budget by accident."""
    source = database(tmp_path)
    for name in ("one", "two"):
        assert run("init", *source, "-o", str(tmp_path / f"{name}.yaml")).code == 0
        assert load_schema(tmp_path / f"{name}.yaml").ledger == f"sqlite:///{tmp_path}/{name}.ledger"


@pytest.mark.parametrize(
    ("name", "said"),
    [("nothing", "there is no file or folder"), ("empty", "holds no .parquet or .csv files"),
     ("*.parquet", "no file matches"), ("x.txt", "is no source"), ("empty.duckdb", "there is no table")],
)  # fmt: skip
def test_sources_that_are_none(run, tmp_path, monkeypatch, name, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.txt").write_text("x")
    duckdb.connect("empty.duckdb").close()
    ran = run("init", name)
    assert ran.code == 1 and said in ran.err and not list(tmp_path.glob("*.yaml"))


def test_a_file_that_cannot_be_read(run):
    with no_root() as folder:
        (source,) = database(folder)
        assert run("init", source, "-o", "-").code == 0
        os.chmod(source, 0)
        ran = run("init", source, "-o", "-")
    assert ran.code == 1 and "cannot be opened" in ran.err


def test_rows_alone_are_the_last_resort(run, tmp_path):
    path = tmp_path / "d.parquet"
    with duckdb.connect() as db:
        db.execute(f"COPY (SELECT 1.5 AS x, 'a' AS kind) TO '{path}' (FORMAT parquet)")
    ran = run("init", str(path), "-o", str(tmp_path / "d.yaml"))
    assert ran.code == 0 and "unit row, since no column names anyone" in ran.out
    schema = load_schema(tmp_path / "d.yaml")
    assert schema.privacy.unit == "row" and schema.table("d").unit == RowUnit()
    assert "no two rows are about one person" in ran.out


def test_json_has_all(run, tmp_path):
    ran = run("init", *database(tmp_path), "-o", "-", "--json")
    told = json.loads(ran.out)
    assert told["unit"] == "patients.patient_id" and told["chosen"] == "picked" and told["file"] is None
    assert told["schema"].count("# decide:") == len(told["decisions"])
    assert {"where", "what"} == set(told["decisions"][0]) and told["candidates"][0]["unit"] == told["unit"]


# --- on a terminal ---------------------------------------------------------------------------------------------------


def test_it_prompts_on_a_terminal_only(tmp_path):
    pexpect = package("pexpect")
    database(tmp_path)
    command = f"-m dpsql init {tmp_path}/clinic.duckdb -o {tmp_path}/d.yaml"
    child = pexpect.spawn(sys.executable, command.split(), env={**os.environ, "NO_COLOR": "1"}, timeout=30)
    child.expect(r"1  patients\.patient_id")
    child.expect(r"\d  visits\.visit_id")
    number = child.match.group(0).decode()[0]
    child.expect("or Enter for 1: ")
    child.sendline("99")
    child.expect("or Enter for 1: ")
    child.sendline(number)
    child.expect(pexpect.EOF)
    assert load_schema(tmp_path / "d.yaml").privacy.unit == "visits.visit_id"
    piped = subprocess.run([sys.executable, "-m", "dpsql", "init", f"{tmp_path}/clinic.duckdb", "-o", "-"],
                           capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)  # fmt: skip
    assert "unit: patients.patient_id" in piped.stdout and "Enter" not in piped.stdout
