"""The loader reads what the owner wrote, exactly, and resolves it."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.errors import SchemaError
from dpsql.schema.fingerprint import hash_schema
from dpsql.schema.load import load_schema
from dpsql.schema.locations import MEMORY_URL, database_path
from dpsql.schema.model import (
    Budget,
    Contributions,
    EngineTable,
    Files,
    ForeignUnit,
    Limits,
    Neighbors,
    OwnUnit,
    Resolved,
    RowUnit,
    Schema,
    Snap,
    to_number,
)

SMALL = """\
dpsql: 1
{head}
privacy: {{unit: row, budget: {{epsilon: 1, delta: 1e-6}}{privacy}}}
tables:
  t:
    source: {source}
    unit: row
    columns:
      c: {column}
"""


def load(tmp_path: Path, text: str, env: dict[str, str] | None = None) -> Schema:
    path = tmp_path / "some.yaml"
    path.write_text(text, encoding="utf-8")
    return load_schema(path, env or {})


def small(tmp_path: Path, *, head: str = "", privacy: str = "", source: str = "t.parquet",
          column: str = "{type: bigint}", env: dict[str, str] | None = None) -> Schema:  # fmt: skip
    return load(tmp_path, SMALL.format(head=head, privacy=privacy, source=source, column=column), env)


def column_of(tmp_path: Path, column: str):
    return small(tmp_path, column=column).tables[0].columns[0]


# Numbers


@pytest.mark.parametrize(
    ("written", "meant"),
    [("0.1", Fraction(1, 10)), ("1e-1", Fraction(1, 10)), ("3", Fraction(3)), (".5", Fraction(1, 2)),
     ("5.", Fraction(5)), ("1_000", Fraction(1000)), ("'0.1'", Fraction(1, 10)), ("+2E+2", Fraction(200)),
     ("0.30000000000000000001", Fraction(30000000000000000001, 10**20))],
)  # fmt: skip
def test_epsilon_is_exactly_what_is_written(tmp_path: Path, written: str, meant: Fraction) -> None:
    text = SMALL.format(head="", privacy="", source="t.parquet", column="{type: bigint}")
    schema = load(tmp_path, text.replace("epsilon: 1", f"epsilon: {written}"))
    assert schema.privacy.budget.epsilon == meant


def test_delta_in_scientific_notation_is_a_number(tmp_path: Path) -> None:
    assert small(tmp_path).privacy.budget == Budget(Fraction(1), Fraction(1, 10**6))


def test_query_defaults_are_shares_of_the_budget(tmp_path: Path) -> None:
    assert small(tmp_path).privacy.query == Budget(Fraction(1, 20), Fraction(1, 10**8))
    query = small(tmp_path, privacy=", query: {epsilon: 0.3}").privacy.query
    assert query == Budget(Fraction(3, 10), Fraction(1, 10**8))


def test_defaults(tmp_path: Path) -> None:
    schema = small(tmp_path)
    assert schema.privacy.neighbors is Neighbors.ADD_REMOVE
    assert schema.privacy.contributions == Contributions(None, None)
    assert schema.privacy.group_size == 1
    assert schema.analysts == ()
    assert schema.engine == MEMORY_URL
    assert schema.ledger == f"sqlite:///{tmp_path}/some.ledger"
    assert schema.path == tmp_path / "some.yaml"


@pytest.mark.parametrize(
    ("written", "meant"),
    [("auto", Contributions()), ("'auto'", Contributions()), ("{groups: 4}", Contributions(None, 4)),
     ("{rows: 20}", Contributions(20, None)), ("{rows: 20, groups: 50}", Contributions(20, 50))],
)  # fmt: skip
def test_what_contributions_leave_out_is_automatic(tmp_path: Path, written: str, meant: Contributions) -> None:
    assert small(tmp_path, privacy=f", contributions: {written}").privacy.contributions == meant


@pytest.mark.parametrize("written", ["100000", "100_000", "1e5"])
def test_units_are_about_how_many_there_are(tmp_path: Path, written: str) -> None:
    assert small(tmp_path).privacy.units is None
    assert small(tmp_path, privacy=f", units: {written}").privacy.units == 100_000


# Columns


def test_bounds_are_exact(tmp_path: Path) -> None:
    column = column_of(tmp_path, "{type: double, bounds: [-0.1, 1e3], grid: 0.01}")
    assert column.domain.bounds == (Fraction(-1, 10), Fraction(1000))
    assert column.grid == Fraction(1, 100)


def test_bounds_of_times_are_on_the_scale_of_domains(tmp_path: Path) -> None:
    date = column_of(tmp_path, "{type: date, bounds: [2020-01-01, '2020-01-31']}")
    assert date.domain.bounds == (to_number(dt.date(2020, 1, 1)), to_number(dt.date(2020, 1, 31)))
    stamp = column_of(tmp_path, "{type: timestamp, bounds: [2020-01-01, 2020-01-01 10:00:00.5]}")
    assert stamp.domain.bounds == (
        to_number(dt.datetime(2020, 1, 1)), to_number(dt.datetime(2020, 1, 1, 10, 0, 0, 500000)),
    )  # fmt: skip
    zoned = column_of(tmp_path, "{type: timestamptz, bounds: [2020-01-01T02:00:00+02:00, 2020-01-01T01:00:00Z]}")
    assert zoned.domain.bounds == (to_number(dt.datetime(2020, 1, 1)), to_number(dt.datetime(2020, 1, 1, 1)))


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("{type: text, values: [no, 1, 'null', 2020-01-01, NO]}", ("no", "1", "null", "2020-01-01", "NO")),
        ("{type: bigint, values: [3, 1, '2']}", (3, 1, 2)),
        ("{type: 'decimal(5,2)', values: [1, 2.50]}", (Decimal("1.00"), Decimal("2.50"))),
        ("{type: double, values: [0.1, -0.0]}", (0.1, 0.0)),
        ("{type: real, values: [0.1]}", (0.10000000149011612,)),
        ("{type: date, values: [2020-02-29]}", (dt.date(2020, 2, 29),)),
        ("{type: timestamptz, values: ['2020-02-29 00:00']}", (dt.datetime(2020, 2, 29, tzinfo=dt.UTC),)),
        ("{type: boolean, values: [true]}", (True,)),
        ("{type: boolean}", (False, True)),
        ("{type: bigint}", None),
    ],
)  # fmt: skip
def test_values_have_the_type_of_the_column(tmp_path: Path, column: str, values: tuple | None) -> None:
    found = column_of(tmp_path, column).domain.values
    assert found == values
    assert [type(value) for value in found or ()] == [type(value) for value in values or ()]
    assert [str(value) for value in found or ()] == [str(value) for value in values or ()]


def test_values_of_numbers_are_bounds_too(tmp_path: Path) -> None:
    assert column_of(tmp_path, "{type: smallint, values: [3, 1, 5]}").domain.bounds == (1, 5)
    assert column_of(tmp_path, "{type: smallint, values: [3, 1, 5], bounds: [0, 9]}").domain.bounds == (1, 5)
    assert not column_of(tmp_path, "{type: text, values: ['3', '1']}").domain.is_bounded


@pytest.mark.parametrize("column", ["{type: bigint}", "{type: bigint, nullable: false}", "{type: boolean}",
                                    "{type: text, values: [a]}", "{type: bigint, nullable: true}"])  # fmt: skip
def test_a_declaration_never_makes_a_column_not_null(tmp_path: Path, column: str) -> None:
    found = column_of(tmp_path, column)
    assert found.domain.nullable
    assert found.null_group is ("nullable: true" in column)


def test_max_length(tmp_path: Path) -> None:
    assert column_of(tmp_path, "{type: text}").max_length == 1024
    assert column_of(tmp_path, "{type: varchar(9), max_length: 7}").max_length == 7


def test_snap(tmp_path: Path) -> None:
    assert column_of(tmp_path, "{type: timestamp}").snap is None
    assert column_of(tmp_path, "{type: timestamp, snap: 15 minutes}").snap == Snap(15, "minute")
    assert str(column_of(tmp_path, "{type: date, snap: 1 week}").snap) == "1 week"
    public = SMALL.format(head="", privacy="", source="t.parquet", column="{type: bigint}")
    public += "  days: {source: d.parquet, public: true, columns: {day: {type: date, snap: 1 day}}}\n"
    with pytest.raises(SchemaError, match="snap must not stand in a public table"):
        load(tmp_path, public)


def test_names_are_what_is_written_not_what_yaml_makes_of_them(tmp_path: Path) -> None:
    text = SMALL.format(head="", privacy="", source="t.parquet", column="{type: bigint}")
    schema = load(tmp_path, text + "      on: {type: date}\n      010: {type: date}\n      Two Words: {type: date}\n")
    assert [column.name for column in schema.tables[0].columns] == ["c", "on", "010", "Two Words"]


# Places


def test_relative_paths_are_relative_to_the_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "s.yaml").write_text(
        SMALL.format(head="engine: duckdb:///../db/x.duckdb\nledger: sqlite:///y.ledger", privacy="",
                     source="data/*.parquet", column="{type: bigint}")
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    schema = load_schema("below/s.yaml", {})
    assert schema.engine == f"duckdb:///{tmp_path}/db/x.duckdb"
    assert schema.ledger == f"sqlite:///{tmp_path}/below/y.ledger"
    assert schema.tables[0].source == Files((f"{tmp_path}/below/data/*.parquet",), "parquet")
    assert schema.path == tmp_path / "below" / "s.yaml"
    assert database_path(schema.engine) == tmp_path / "db" / "x.duckdb"


def test_absolute_paths_stay(tmp_path: Path) -> None:
    schema = small(tmp_path, head="engine: duckdb:////srv/x.duckdb", source="/srv/data/v.json")
    assert schema.engine == "duckdb:////srv/x.duckdb"
    assert schema.tables[0].source == Files(("/srv/data/v.json",), "json")


def test_wildcards_in_the_folder_of_the_schema_stay_literal(tmp_path: Path) -> None:
    folder = tmp_path / "a[1]"
    folder.mkdir()
    assert small(folder).tables[0].source == Files((f"{tmp_path}/a[[]1]/t.parquet",), "parquet")


@pytest.mark.parametrize("engine", ["duckdb://", "duckdb:///:memory:"])
def test_engine_in_memory(tmp_path: Path, engine: str) -> None:
    schema = small(tmp_path, head=f"engine: '{engine}'")
    assert schema.engine == MEMORY_URL
    assert database_path(schema.engine) is None


def test_engine_tables(tmp_path: Path) -> None:
    assert small(tmp_path, head="engine: duckdb:///x.db", source="raw.Visits").tables[0].source == EngineTable(
        ("raw", "Visits")
    )
    text = SMALL.format(head="engine: duckdb:///x.db", privacy="", source="gone", column="{type: bigint}")
    assert load(tmp_path, text.replace("    source: gone\n", "")).tables[0].source == EngineTable(("t",))


def test_csv_dialect(tmp_path: Path) -> None:
    dialect = """{path: v.csv, header: false, delimiter: "\\t", quote: "'", null: NA}"""
    files = Files((f"{tmp_path}/v.csv",), "csv", header=False, delimiter="\t", quote="'", null="NA")
    assert small(tmp_path, source=dialect).tables[0].source == files
    assert small(tmp_path, source="v.csv").tables[0].source == Files((f"{tmp_path}/v.csv",), "csv")


def test_variables_are_expanded(tmp_path: Path) -> None:
    env = {"A": "one", "B": "two.ledger", "C": "three"}
    schema = small(tmp_path, head="engine: duckdb:///${A}.duckdb\nledger: sqlite:///${B}", source="${C}/${A}.parquet",
                   env=env)  # fmt: skip
    assert schema.engine == f"duckdb:///{tmp_path}/one.duckdb"
    assert schema.ledger == f"sqlite:///{tmp_path}/two.ledger"
    assert schema.tables[0].source == Files((f"{tmp_path}/three/one.parquet",), "parquet")


def test_a_ledger_on_a_server_keeps_its_url_and_does_not_show_it(tmp_path: Path) -> None:
    url = "postgresql://proxy:secret@db.example:5433/books?schema=clinic&sslmode=require"
    schema = small(tmp_path, head="ledger: postgresql://proxy:${WORD}@db.example:5433/books?schema=clinic&sslmode=require",
                   env={"WORD": "secret"})  # fmt: skip
    assert schema.ledger == url and "secret" not in repr(schema)
    assert database_path(url) is None and database_path("postgresql:///books") is None


def test_an_error_does_not_show_what_a_variable_holds(tmp_path: Path) -> None:
    for head in ("engine: ${SECRET}", "ledger: ${SECRET}"):
        with pytest.raises(SchemaError) as caught:
            small(tmp_path, head=head, env={"SECRET": "mysql://me:hunter2@host/db"})
        assert "hunter2" not in str(caught.value)
    for source in ("${SECRET}", "{path: '${SECRET}'}"):
        with pytest.raises(SchemaError) as caught:
            small(tmp_path, source=source, env={"SECRET": "s3://hunter2.parquet"})
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "analyst",
    ["password: hunter2", "password: *hunter2", "password: &hunter2 x", "password: !hunter2 x", "password: !!hunter2 x",
     "password: !hunter2!x y", "password: [hunter2]", "password: {hunter2: x}", 'password: "SCRAM-SHA-256$hunter2"',
     "password_env: 'hunter2 '", "password: 'hunter2", "password: hunter2: x"],
)  # fmt: skip
def test_a_password_is_not_shown(tmp_path: Path, analyst: str) -> None:
    with pytest.raises(SchemaError) as caught:
        small(tmp_path, head=f"analysts: {{ana: {{budget: {{epsilon: 1, delta: 0}}, {analyst}}}}}")
    assert "hunter2" not in str(caught.value)


def test_what_stands_instead_of_an_analyst_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="ana must be a mapping") as caught:
        small(tmp_path, head="analysts: {ana: hunter2}")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["engine", "ledger"])
@pytest.mark.parametrize("url", ["postgresql:ana:hunter2@host/db", "mysql://ana:hunter2@host/db", "x://a:hun@ter2@h",
                                 "x://h/db?user=a&password=hunter2", "duckdb:///x?password=hunter2",
                                 "mysql://ana:" + "x" * 60 + "hunter2@host/db"])  # fmt: skip
def test_the_credentials_of_a_url_are_not_shown(tmp_path: Path, key: str, url: str) -> None:
    for head, env in ((f"{key}: {url}", {}), (f"{key}: ${{URL}}", {"URL": url})):
        with pytest.raises(SchemaError) as caught:
            small(tmp_path, head=head, env=env)
        assert "ter2" not in str(caught.value) and "xxxx" not in str(caught.value)


def test_a_server_taken_for_a_path_does_not_show_its_password() -> None:
    with pytest.raises(SchemaError) as caught:
        load_schema(Path("postgresql://ana:hunter2@host/db"), {})
    assert "hunter2" not in str(caught.value) and "host/db" in str(caught.value)


def test_repr_shows_no_secrets(tmp_path: Path) -> None:
    verifier = "SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy"
    schema = small(tmp_path, head=f"analysts: {{ana: {{budget: {{epsilon: 1, delta: 0}}, password: {verifier}}}}}")
    schema = replace(schema, engine="postgresql://ana:hunter2@host/db", ledger="postgresql://ana:hunter2@host/db")
    for shown in (schema, schema.analysts, Resolved(schema, 1, {}, {}, "")):
        assert "SCRAM" not in repr(shown) and "hunter2" not in f"{shown} {shown!r}"
    assert repr(schema.tables[0]) in repr(schema)  # hashed by `compile`: nothing is left out of it


# Limits


def test_limits(tmp_path: Path) -> None:
    assert small(tmp_path).limits == Limits(None, None, 600, 3, Fraction(0))
    head = "limits: {memory: 512 MiB, threads: 2, seconds: 1_000, failures: 5, min_latency: 0.1}"
    assert small(tmp_path, head=head).limits == Limits("512 MiB", 2, 1000, 5, Fraction(1, 10))
    assert small(tmp_path, head="limits: {min_latency: 1e-1}").limits == Limits(min_latency=Fraction(1, 10))


def test_analysts(tmp_path: Path) -> None:
    verifier = "SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy"
    schema = small(
        tmp_path,
        head=f"analysts: {{ana: {{budget: {{epsilon: 0.2, delta: 0}}, password: {verifier}}}, "
        "b.i: {budget: {epsilon: 2, delta: 0}, password_env: BI}}",
    )
    ana, bi = schema.analysts
    assert (ana.name, ana.budget, ana.password, ana.password_env) == (
        "ana", Budget(Fraction(1, 5), Fraction(0)), verifier, None,
    )  # fmt: skip
    assert (bi.name, bi.password, bi.password_env) == ("b.i", None, "BI")
    assert schema.analyst("b.i") is bi


# Units

PATHS = """\
dpsql: 1
engine: duckdb:///x.duckdb
privacy: {unit: people.id, budget: {epsilon: 1, delta: 1e-6}}
tables:
  people: {unit: id, columns: {id: {type: bigint}}}
  visits: {unit: {person: people.id}, unique: [visit], columns: {person: {type: bigint}, visit: {type: text}}}
  tests: {unit: {visit: visits.visit}, unique: [[visit, n]], columns: {visit: {type: text}, n: {type: date}}}
  days: {public: true, unique: [day], columns: {day: {type: date}}}
"""


COMPOSITE = """\
dpsql: 1
engine: duckdb:///x.duckdb
privacy: {unit: people.id, budget: {epsilon: 1, delta: 1e-6}}
tables:
  people: {unit: id, columns: {id: {type: bigint}}}
  sales:
    unit: {person: people.id}
    unique: [[ticket, item]]
    columns: {person: {type: bigint}, ticket: {type: bigint}, item: {type: text}}
  returns: {unit: UNIT, columns: {t: {type: bigint}, ticket: {type: bigint}, item: {type: text}}}
"""


@pytest.mark.parametrize(
    ("written", "pairs"),
    [
        ("{ticket: sales.ticket, item: sales.item}", (("ticket", "ticket"), ("item", "item"))),
        ("{[ticket, item]: sales}", (("ticket", "ticket"), ("item", "item"))),
        ("{[item, t]: [sales.item, sales.ticket]}", (("item", "item"), ("t", "ticket"))),
    ],
)
def test_a_unit_path_by_a_composite_key(tmp_path: Path, written: str, pairs: tuple[tuple[str, str], ...]) -> None:
    schema = load(tmp_path, COMPOSITE.replace("UNIT", written))
    returns = schema.table("returns")
    assert returns is not None and isinstance(returns.unit, ForeignUnit)
    assert returns.unit.pairs == pairs and returns.unit.table == "sales"
    assert schema.find_id_columns(returns) == {column for column, _ in pairs}
    sales = schema.table("sales")
    assert sales is not None and schema.find_id_columns(sales) == {"person", "ticket", "item"}
    assert [hop.table for hop in schema.find_unit_path(returns)] == ["sales", "people"]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{ticket: sales.ticket}", 'refers to "sales.ticket", which is not declared unique'),
        ("{[ticket, t]: [sales.ticket, sales.person]}", r'refers to \(ticket, person\) of "sales", which is not'),
        ("{ticket: sales.ticket, item: people.id}", "must refer to different columns of one table"),
        ("{ticket: sales.ticket, t: sales.ticket}", "must refer to different columns of one table"),
        ("{item: sales.ticket, ticket: sales.item}", "of type text with"),
        ("{[ticket, item]: [sales.ticket]}", "a list of columns must lead to a list of as many"),
        ("{[ticket, item]: {sales: x}}", "a list of columns must lead to a list of as many"),
        ("{[[ticket], item]: sales}", "a key must be text"),
        ("{[ticket, nothing]: sales}", 'names "nothing", which is not among the columns'),
    ],
)
def test_a_composite_key_that_does_not_lead_to_one_row_is_refused(tmp_path: Path, written: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        load(tmp_path, COMPOSITE.replace("UNIT", written))


def test_a_composite_key_changes_what_a_schema_means_and_single_ones_keep_their_text(tmp_path: Path) -> None:
    both = [load(tmp_path, COMPOSITE.replace("UNIT", unit)) for unit in ("{[ticket, item]: sales}", "{t: people.id}")]
    assert hash_schema(both[0]) != hash_schema(both[1])
    assert repr(ForeignUnit("a", "b", "c")) == "ForeignUnit(column='a', table='b', key='c')"
    assert "also" in repr(ForeignUnit("a", "b", "c", (("d", "e"),)))


def test_unit_paths(tmp_path: Path) -> None:
    schema = load(tmp_path, PATHS)
    people, visits, tests, days = schema.tables
    assert people.unit == OwnUnit("id")
    assert schema.find_unit_path(people) == ()
    assert schema.find_unit_path(visits) == (ForeignUnit("person", "people", "id"),)
    assert schema.find_unit_path(tests) == (
        ForeignUnit("visit", "visits", "visit"),
        ForeignUnit("person", "people", "id"),
    )
    assert days.public and days.is_unique("day")
    assert tests.unique == (("visit", "n"),)


def test_rows_as_units(tmp_path: Path) -> None:
    assert small(tmp_path).tables[0].unit == RowUnit()


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    text = SMALL.format(head="", privacy="", source="t.parquet", column="{type: bigint}")
    assert load(tmp_path, "\ufeff" + text).tables[0].name == "t"
