"""Data versions: what is pinned, what is checked, and what is refused."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql import types as t
from dpsql.errors import OperationalError, StaleData
from dpsql.schema.locations import MEMORY_URL
from dpsql.schema.model import (
    Answers,
    Budget,
    Column,
    Domain,
    EngineTable,
    Files,
    ForeignUnit,
    Limits,
    Neighbors,
    OwnUnit,
    Privacy,
    Schema,
    Table,  # fmt: skip
    parse_snap,
)
from dpsql.session.dataset import versions
from dpsql.session.dataset.file_identity import check_unchanged, stale_data_error
from dpsql.session.dataset.versions import open_engine, register_data


@dataclass(frozen=True)
class Version:
    number: int
    identity: str
    facts: str
    at: datetime | None = None


@dataclass
class Memory:
    """The two calls of a ledger that versions need."""

    versions: list[Version] = field(default_factory=list)

    def register_version(self, identity, facts, *, after=None, at=None):
        if after in (None, len(self.versions)):
            self.versions.append(Version(len(self.versions) + 1, identity, facts, at))
        return self.versions[-1].number

    def current_version(self):
        return self.versions[-1] if self.versions else None


def column(name, type_=t.BIGINT, **domain):
    return Column(name, Domain(type_, **domain))


PATIENTS = Table(
    "patients", EngineTable(("patients",)), OwnUnit("id"), (("id",),), (column("id"), column("sex", t.TEXT))
)
TO_PATIENTS = ForeignUnit("patient", "patients", "id")
VISITS = Table("visits", EngineTable(("visits",)), TO_PATIENTS, (), (column("patient"), column("cost", t.DOUBLE)))


@pytest.fixture
def folder(tmp_path):
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as db:
        rows = "(1::BIGINT, 'f'), (2, 'm'), (NULL, 'x'), (NULL, 'x')"
        db.execute(f"CREATE TABLE patients AS FROM (VALUES {rows}) v(id, sex)")
        db.execute("CREATE TABLE visits AS FROM (VALUES (1::BIGINT, 1.5::DOUBLE), (1, 2.5)) v(patient, cost)")
        for name in ("patients", "visits"):
            db.execute(f"COPY {name} TO '{tmp_path / name}.parquet'")
            db.execute(f"COPY {name} TO '{tmp_path / name}.csv' (HEADER)")
    return tmp_path


def schema_of(folder, *tables, engine=None):
    budget = Budget(Fraction(1), Fraction(0))
    return Schema(
        folder / "clinic.yaml",
        engine or f"duckdb:///{folder / 'clinic.duckdb'}",
        f"sqlite:///{folder / 'clinic.ledger'}",
        Privacy(Neighbors.ADD_REMOVE, "patients.id", budget, budget),
        (),
        tables or (PATIENTS, VISITS),
    )


def in_files(folder, kind):
    def moved(table):
        return replace(table, source=Files((str(folder / f"{table.name}.{kind}"),), kind))

    return schema_of(folder, moved(PATIENTS), moved(VISITS), engine=MEMORY_URL)


def count(resolved, table):
    source = resolved.relations[table]
    engine = open_engine(resolved)
    try:
        where = f"'{source.patterns[0]}'" if isinstance(source, Files) else table
        return engine.execute_public(f"SELECT count(*) FROM {where}", {})[0][0]
    finally:
        engine.close()


def touch(path):
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


@pytest.mark.parametrize("kind", ["engine", "parquet", "csv"])
def test_opening_registers_version_1_once(folder, kind):
    schema = schema_of(folder) if kind == "engine" else in_files(folder, kind)
    ledger = Memory()
    first, second = register_data(schema, ledger), register_data(schema, ledger)
    assert first == second and first.version == 1 and len(ledger.versions) == 1
    assert first.physical["patients"] == {"id": t.BIGINT, "sex": t.TEXT}
    assert first.physical["visits"] == {"patient": t.BIGINT, "cost": t.DOUBLE}
    assert count(first, "visits") == 2
    check_unchanged(schema, ledger, 1)


@pytest.mark.parametrize(
    ("kind", "file"), [("engine", "clinic.duckdb"), ("parquet", "visits.parquet"), ("csv", "visits.csv")]
)
def test_changed_data_is_not_served_until_registered(folder, kind, file):
    schema = schema_of(folder) if kind == "engine" else in_files(folder, kind)
    ledger = Memory()
    register_data(schema, ledger)
    touch(folder / file)
    for ask in (register_data, lambda schema, ledger: check_unchanged(schema, ledger, 1)):
        with pytest.raises(StaleData, match="not the registered version") as caught:
            ask(schema, ledger)
        assert caught.value.hint == "The owner registers it with: dpsql data changed SCHEMA"
        assert f'"{file}" has another time or size' in str(caught.value.detail) and "cp -a" in str(caught.value.detail)
    assert register_data(schema, ledger, changed=True).version == 2
    assert register_data(schema, ledger).version == 2
    check_unchanged(schema, ledger, 2)


def test_of_many_files_no_names_are_reported_and_of_none_the_size():
    """A file may be named after whose rows it holds; its size tells how many they are."""
    one, two = ["jane.csv", 120, 5], ["joe.csv", 777, 5]

    def said(old, new):
        old, new = ({"database": [], "files": {"t": files}, "claims": {}} for files in (old, new))
        return str(stale_data_error(json.dumps(old), json.dumps(new)).detail)

    grown = ["joe.csv", 778, 6]
    for old, new in (([one], [one, two]), ([one, two], [one]), ([one], [two]), ([one, two], [one, grown])):
        assert not any(word in said(old, new) for word in ("jane", "joe", "777", "778", "120"))
    assert "jane.csv" in said([one], [["jane.csv", 121, 6]]) and "12" not in said([one], [["jane.csv", 121, 6]])


def test_a_dataset_of_an_older_version_must_be_opened_anew(folder):
    """Facts and releases are those of one version: an open dataset must not read the next one's files."""
    schema, ledger = in_files(folder, "parquet"), Memory()
    register_data(schema, ledger)
    touch(folder / "visits.parquet")
    register_data(schema, ledger, changed=True)
    with pytest.raises(StaleData, match="newer version") as caught:
        check_unchanged(schema, ledger, 1)
    assert caught.value.hint == "Connect again."


def test_the_message_names_the_table(folder):
    schema, ledger = in_files(folder, "parquet"), Memory()
    register_data(schema, ledger)
    touch(folder / "visits.parquet")
    with pytest.raises(StaleData, match='the data of "visits" is'):
        register_data(schema, ledger)


def test_globs_pin_the_set_of_files(folder):
    pattern = Files((str(folder / "visits*.parquet"),), "parquet")
    schema = schema_of(folder, PATIENTS, replace(VISITS, source=pattern))
    ledger = Memory()
    assert register_data(schema, ledger).relations["visits"] == Files((str(folder / "visits.parquet"),), "parquet")
    (folder / "visits2.parquet").write_bytes((folder / "visits.parquet").read_bytes())
    with pytest.raises(StaleData):
        register_data(schema, ledger)
    resolved = register_data(schema, ledger, changed=True)
    assert [Path(path).name for path in resolved.relations["visits"].patterns] == ["visits.parquet", "visits2.parquet"]


def test_paths_are_relative_so_a_dataset_can_move(folder, tmp_path_factory):
    ledger = Memory()
    register_data(in_files(folder, "csv"), ledger)
    moved = tmp_path_factory.mktemp("moved") / "data"
    os.rename(folder, moved)
    resolved = register_data(in_files(moved, "csv"), ledger)
    assert resolved.version == 1 and count(resolved, "visits") == 2


@pytest.mark.parametrize(
    ("visits", "message"),
    [
        (replace(VISITS, columns=(*VISITS.columns, column("ward", t.TEXT))), 'no column "ward"'),
        (replace(VISITS, unique=(("patient",),)), r'\(patient\) of "visits" is declared unique'),
        (replace(VISITS, columns=(column("patient", t.TEXT), VISITS.columns[1])), "is BIGINT in the data and text"),
        (replace(VISITS, source=EngineTable(("none",))), "cannot read a source"),
        (replace(VISITS, source=Files(("/nowhere/*.parquet",), "parquet")), '"visits" matches no file'),
    ],
)
def test_a_failed_check_registers_nothing(folder, visits, message):
    ledger = Memory()
    with pytest.raises(OperationalError, match=message):
        register_data(schema_of(folder, PATIENTS, visits), ledger)
    assert ledger.versions == []


def test_an_id_has_the_physical_type_at_both_ends_of_a_reference(folder):
    with duckdb.connect(str(folder / "clinic.duckdb")) as db:
        db.execute("ALTER TABLE patients ALTER id TYPE INTEGER")
    with pytest.raises(OperationalError, match='the id "id" of "patients" is INTEGER'):
        register_data(schema_of(folder), Memory())


def test_unique_counts_after_sanitising(folder):
    sex = Column("sex", Domain(t.TEXT, values=("f", "m")))  # both "x" become NULL
    columns = (PATIENTS.columns[0], sex)
    assert (
        register_data(schema_of(folder, replace(PATIENTS, columns=columns, unique=(("sex",),))), Memory()).version == 1
    )
    with pytest.raises(OperationalError, match="declared unique"):
        register_data(schema_of(folder, replace(PATIENTS, unique=(("sex",),))), Memory())


def test_a_new_claim_has_to_be_checked(folder):
    ledger = Memory()
    register_data(schema_of(folder), ledger)
    with pytest.raises(StaleData, match='the schema of "visits" is not the one that was checked'):
        register_data(schema_of(folder, PATIENTS, replace(VISITS, unique=(("patient",),))), ledger)
    cost = column("cost", t.DOUBLE, lower=Fraction(0), upper=Fraction(9))
    bounded = replace(VISITS, columns=(VISITS.columns[0], cost))
    assert (
        register_data(schema_of(folder, PATIENTS, bounded), ledger).version == 1
    )  # bounds of other columns are no claim


def test_bounds_of_a_key_are_a_claim(folder):
    ledger = Memory()
    register_data(schema_of(folder), ledger)
    bounded = replace(PATIENTS, columns=(column("id", lower=Fraction(0), upper=Fraction(1)), PATIENTS.columns[1]))
    with pytest.raises(StaleData, match="checked"):
        register_data(schema_of(folder, bounded, VISITS), ledger)


def test_a_collation_is_refused(folder):
    with duckdb.connect(str(folder / "clinic.duckdb")) as db:
        db.execute("CREATE OR REPLACE TABLE patients (id BIGINT, sex TEXT COLLATE NOCASE)")
    with pytest.raises(OperationalError, match='"sex" of "patients" has a collation'):
        register_data(schema_of(folder), Memory())


def test_files_of_a_source_have_one_shape(folder):
    with duckdb.connect() as db:
        db.execute(f"COPY (SELECT 1::BIGINT AS patient, '7' AS cost) TO '{folder / 'visits2.parquet'}'")
    source = Files((str(folder / "visits*.parquet"),), "parquet")
    with pytest.raises(OperationalError, match="differ in their types"):
        register_data(schema_of(folder, PATIENTS, replace(VISITS, source=source)), Memory())


def test_text_files_are_served_from_a_typed_snapshot_beside_the_ledger(folder):
    schema, ledger = in_files(folder, "csv"), Memory()
    resolved = register_data(schema, ledger)
    (path,) = resolved.relations["visits"].patterns
    assert Path(path).is_relative_to(folder / "clinic.ledger.snapshots")
    Path(path).unlink()  # it can be made again from the pinned file
    assert count(register_data(schema, ledger), "visits") == 2


def test_a_failed_snapshot_leaves_nothing_to_serve(folder):
    with open(folder / "visits.csv", "a") as stream:
        stream.write("1,2,3\n")
    ledger = Memory()
    with pytest.raises(OperationalError, match=r'"visits\.csv", line 4'):
        register_data(in_files(folder, "csv"), ledger)
    assert ledger.versions == [] and not list(folder.glob("clinic.ledger.snapshots/*/*visits*"))


def test_the_engine_reads_the_registered_files_only(folder):
    engine = open_engine(register_data(in_files(folder, "parquet"), Memory()))
    with pytest.raises(duckdb.Error, match="disabled by configuration"):
        engine._open_cursor().execute(f"SELECT * FROM '{folder / 'visits.csv'}'")
    engine.close()


def test_data_that_changes_during_the_check_is_not_registered(folder, monkeypatch):
    schema, ledger, check = in_files(folder, "parquet"), Memory(), versions._check_tables

    def and_touch(*args):
        touch(folder / "visits.parquet")
        return check(*args)

    monkeypatch.setattr(versions, "_check_tables", and_touch)
    with pytest.raises(StaleData, match="changed while"):
        register_data(schema, ledger)
    assert ledger.versions == []


def test_a_race_for_version_1_ends_with_one_version(folder):
    """Whoever comes second serves what the first registered, or nothing."""
    schema = in_files(folder, "parquet")

    class Slow(Memory):
        def current_version(self):
            found = super().current_version()
            if not self.versions:  # the other process registers after we looked
                self.versions.append(self.others)
            return found

    honest = Memory()
    register_data(schema, honest)
    ledger = Slow()
    ledger.others = honest.versions[0]
    assert register_data(schema, ledger).version == 1 and len(ledger.versions) == 1
    ledger = Slow()
    ledger.others = replace(honest.versions[0], identity=json.dumps({"files": {}, "database": [], "claims": {}}))
    with pytest.raises(StaleData):
        register_data(schema, ledger)


def test_processes_that_open_at_once_all_succeed(folder):
    (folder / "clinic.yaml").write_text(
        "dpsql: 1\n"
        "privacy: {neighbors: add_remove, unit: patients.id, budget: {epsilon: 1, delta: 1e-6}, query: {epsilon: 1}}\n"
        "tables:\n"
        "  patients: {source: patients.csv, unit: id, unique: [id],"
        " columns: {id: {type: bigint}, sex: {type: text}}}\n"
        "  visits: {source: visits.csv, unit: {patient: patients.id},"
        " columns: {patient: {type: bigint}, cost: {type: double, bounds: [0, 10]}}}\n"
    )
    program = (
        "import sys\n"
        "from dpsql.ledger.base import Account, Binding\n"
        "from dpsql.ledger.open import open_ledger\n"
        "from dpsql.schema.load import load_schema\n"
        "from dpsql.session.dataset.versions import register_data\n"
        "schema = load_schema(sys.argv[1])\n"
        "ledger = open_ledger(schema.ledger, Binding('patients.id', 'add_remove', 1), Account('dataset', 1, 0))\n"
        "print(register_data(schema, ledger).version)\n"
    )
    command = [sys.executable, "-c", program, str(folder / "clinic.yaml")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate() for process in running] == [("1\n", "")] * 4


def test_snapshots_are_the_owners_alone(folder):
    schema, ledger = in_files(folder, "csv"), Memory()
    resolved = register_data(schema, ledger)
    (file,) = (Path(path) for path in resolved.relations["visits"].patterns)
    modes = [path.stat().st_mode & 0o777 for path in (file, file.parent, file.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]
    for path, mode in ((file, 0o640), (file.parent, 0o755), (file.parent.parent, 0o701)):
        kept = path.stat().st_mode
        path.chmod(mode)
        with pytest.raises(OperationalError, match="open to others"):
            register_data(schema, ledger)
        path.chmod(kept)
    register_data(schema, ledger)


def test_the_engine_has_the_owners_limits(folder):
    schema = replace(schema_of(folder), limits=Limits(memory="123MiB", threads=1, seconds=7))
    engine = open_engine(register_data(schema, Memory()))
    asked = engine.execute_public("SELECT current_setting('memory_limit'), current_setting('threads')", {})
    assert asked == [("123.0 MiB", 1)] and engine._seconds == 7
    engine.close()


NOON = datetime(2025, 3, 4, 12, 0, tzinfo=UTC)


class TestSchedule:
    """`answers.refresh`: a new version by the clock alone."""

    def at(self, schema, grid="1 day"):
        return replace(schema, answers=Answers(refresh=parse_snap(grid)))

    def test_the_next_version_is_due_on_the_grid_whether_or_not_the_data_changed(self, folder):
        schema, ledger = self.at(schema_of(folder)), Memory()
        assert register_data(schema, ledger, now=NOON).version == 1
        assert register_data(schema, ledger, now=NOON + timedelta(hours=11)).version == 1
        assert register_data(schema, ledger, now=NOON + timedelta(hours=12)).version == 2
        assert register_data(schema, ledger, now=NOON + timedelta(hours=13)).version == 2

    def test_without_a_schedule_it_never_is(self, folder):
        schema, ledger = schema_of(folder), Memory()
        register_data(schema, ledger, now=NOON)
        assert register_data(schema, ledger, now=NOON + timedelta(days=9)).version == 1

    def test_a_version_of_an_unknown_time_is_before_any_schedule(self, folder):
        """As one that a ledger has from before it kept times."""
        schema, ledger = schema_of(folder), Memory()
        assert register_data(schema, ledger).version == 1 and ledger.current_version().at is None
        with pytest.raises(StaleData, match="by its schedule"):
            check_unchanged(self.at(schema), ledger, 1, NOON)
        assert register_data(self.at(schema), ledger, now=NOON).version == 2
        assert register_data(self.at(schema), ledger, now=NOON).version == 2

    def test_changed_data_is_served_from_the_next_time_on_and_not_before(self, folder):
        schema, ledger = self.at(schema_of(folder)), Memory()
        register_data(schema, ledger, now=NOON)
        with duckdb.connect(str(folder / "clinic.duckdb")) as db:
            db.execute("CREATE TABLE more AS SELECT range AS x FROM range(100000)")
        with pytest.raises(StaleData):
            register_data(schema, ledger, now=NOON + timedelta(hours=1))
        assert register_data(schema, ledger, now=NOON + timedelta(days=1)).version == 2

    def test_connections_to_a_version_that_is_due_must_connect_again(self, folder):
        schema, ledger = self.at(schema_of(folder)), Memory()
        register_data(schema, ledger, now=NOON)
        check_unchanged(schema, ledger, 1, NOON + timedelta(hours=11))
        with pytest.raises(StaleData, match="by its schedule"):
            check_unchanged(schema, ledger, 1, NOON + timedelta(hours=12))

    def test_two_processes_make_one_version(self, folder):
        schema, ledger = self.at(schema_of(folder)), Memory()
        register_data(schema, ledger, now=NOON)

        class Late(Memory):
            """Another process registers while this one checks."""

            def register_version(self, identity, facts, *, after=None, at=None):
                if len(self.versions) == 1:
                    super().register_version(identity, facts, after=after, at=at)
                return super().register_version(identity, facts, after=after, at=at)

        late = Late(ledger.versions)
        assert register_data(schema, late, now=NOON + timedelta(days=1)).version == 2 and len(late.versions) == 2


SALES = Table(
    "sales", EngineTable(("sales",)), TO_PATIENTS, (("ticket", "item"),),
    (column("patient"), column("ticket"), column("item")),
)  # fmt: skip
RETURNS = Table(
    "returns", EngineTable(("returns",)), ForeignUnit("item", "sales", "item", (("ticket", "ticket"),)), (),
    (column("ticket"), column("item")),
)  # fmt: skip


def make_sales(folder, sales, ticket="BIGINT"):
    with duckdb.connect(str(folder / "clinic.duckdb")) as db:
        db.execute(f"CREATE TABLE sales AS FROM (VALUES {sales}) v(patient, ticket, item)")
        db.execute(f"CREATE TABLE returns AS SELECT 5::{ticket} AS ticket, 6::BIGINT AS item")
    return schema_of(folder, PATIENTS, SALES, RETURNS)


def test_a_composite_key_that_is_referred_to_is_unique_where_no_part_is_null(folder):
    sales = "(1::BIGINT, 5::BIGINT, 6::BIGINT), (2, 5, 7), (1, NULL, 6), (2, NULL, 6), (2, 4, NULL), (1, 4, NULL)"
    resolved = register_data(make_sales(folder, sales), Memory())
    assert resolved.version == 1


def test_a_sale_whose_key_is_there_twice_is_not_served(folder):
    schema = make_sales(folder, "(1::BIGINT, 5::BIGINT, 6::BIGINT), (2, 5, 6)")
    with pytest.raises(OperationalError, match=r"the key \(ticket, item\)"):
        register_data(schema, Memory())


def test_each_part_of_a_composite_reference_has_the_declared_type(folder):
    schema = make_sales(folder, "(1::BIGINT, 5::BIGINT, 6::BIGINT)", ticket="INTEGER")
    with pytest.raises(OperationalError, match='the id "ticket" of "returns" is INTEGER'):
        register_data(schema, Memory())


ORDERS = replace(
    SALES, unique=(), columns=(column("patient"), replace(column("ticket"), determines_unit=True), column("item"))
)
LINES = replace(
    RETURNS,
    unit=ForeignUnit("item", "sales", "item"),
    columns=(replace(column("ticket"), determines_unit=True), column("item")),
)


@pytest.mark.parametrize(
    ("rows", "holds"),
    [
        ("(1::BIGINT, 5::BIGINT, 6::BIGINT), (1, 5, 7), (2, 4, 6), (2, NULL, 8), (1, NULL, 8), (NULL, 5, 9)", True),
        ("(1::BIGINT, 5::BIGINT, 6::BIGINT), (2, 5, 7)", False),
    ],
)
def test_a_column_that_is_said_to_determine_the_unit_does(folder, rows, holds):
    schema = replace(make_sales(folder, rows), tables=(PATIENTS, ORDERS))
    if holds:
        assert register_data(schema, Memory()).version == 1
    else:
        with pytest.raises(
            OperationalError, match='"ticket" of "sales" is declared to determine the unit but does not'
        ):
            register_data(schema, Memory())


def test_it_is_checked_along_the_path_to_the_unit(folder):
    schema = make_sales(folder, "(1::BIGINT, 5::BIGINT, 6::BIGINT), (2, 5, 7)")
    with duckdb.connect(str(folder / "clinic.duckdb")) as db:
        db.execute("INSERT INTO returns VALUES (5, 7)")
    keyed = replace(SALES, unique=(("item",),))
    with pytest.raises(OperationalError, match='"ticket" of "returns" is declared to determine'):
        register_data(replace(schema, tables=(PATIENTS, keyed, LINES)), Memory())


def test_data_that_was_registered_without_the_claim_is_to_be_checked(folder):
    schema = replace(make_sales(folder, "(1::BIGINT, 5::BIGINT, 6::BIGINT), (2, 5, 7)"), tables=(PATIENTS, SALES))
    ledger = Memory()
    register_data(schema, ledger)
    with pytest.raises(StaleData, match='the schema of "sales" is not the one that was checked'):
        register_data(replace(schema, tables=(PATIENTS, replace(ORDERS, unique=SALES.unique))), ledger)


def test_keys_of_public_tables_are_found(folder):
    with duckdb.connect(str(folder / "clinic.duckdb")) as db:
        rows = "(1, 1, 'x', 0.5), (1, 2, 'y', 0.5), (2, 1, 'y', 0.7), (NULL, 1, 'y', 0.7), (NULL, 1, 'y', 0.7)"
        db.execute(f"CREATE TABLE stock AS FROM (VALUES {rows}) v(item, place, note, price)")
    columns = (column("item", t.INTEGER), column("place", t.INTEGER), column("note", t.TEXT), column("price", t.DOUBLE))
    stock = Table("stock", EngineTable(("stock",)), None, (), columns)
    ledger = Memory()
    first = register_data(schema_of(folder, PATIENTS, stock), ledger)
    assert first.public["stock"].unique == (("item", "place"), ("item", "note"))
    assert register_data(schema_of(folder, PATIENTS, stock), ledger).public == first.public
