"""What planted bugs showed to be untested in drafts and checks, by figures that are worked out by hand."""

from __future__ import annotations

import math
import os
import re
import stat
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.interfaces.cli.main import main
from dpsql.owner.check.check import check_schema
from dpsql.owner.check.report import ColumnReport, SchemaFinding, Severity
from dpsql.owner.draft.draft import DraftOptions
from dpsql.owner.draft.init import draft_schema, find_sources
from dpsql.owner.draft.relationships import find_candidates, second_unit_columns
from dpsql.owner.introspect.tables import ForeignKeyReference, IntrospectedColumn, IntrospectedTable
from dpsql.schema.load import load_schema
from dpsql.schema.model import EngineTable
from dpsql.types import BIGINT


def table(name: str, *columns: str, references: tuple[ForeignKeyReference, ...] = ()) -> IntrospectedTable:
    found = tuple(IntrospectedColumn(column, "BIGINT", BIGINT) for column in columns)
    return IntrospectedTable(name, EngineTable((name,)), found, ((columns[0],),), references)


# --- who is the unit -------------------------------------------------------------------------------------------------


def test_a_thing_is_the_last_that_is_taken_for_a_unit() -> None:
    """Also after what nobody knows, though more tables lead to it."""
    tables = [
        table("wards", "ward_id"),
        table("samples", "sample_id", "ward_id"),
        table("readings", "reading_id", "sample_id", "ward_id"),
    ]
    found = find_candidates(tables)
    assert [(one.name, len(one.links_to_unit)) for one in found] == [
        ("samples.sample_id", 1), ("readings.reading_id", 0), ("wards.ward_id", 2),
    ]  # fmt: skip


def test_why_a_column_is_taken_counts_only_tables_that_there_are() -> None:
    (alone,) = find_candidates([table("visits", "visit_id")])
    assert alone.why == "a key of its table"
    found = find_candidates([table("patients", "patient_id"), table("visits", "visit_id", "patient_id")])
    assert {one.name: one.why for one in found} == {
        "patients.patient_id": "a key of its table, 1 other table leads to it, it names people",
        "visits.visit_id": "a key of its table, no other table leads to it",
    }


@pytest.mark.parametrize("text", ["", "\n\r\n"])
def test_a_file_without_a_line_is_called_empty(tmp_path: Path, text: str) -> None:
    (tmp_path / "visits.csv").write_text(text)
    with pytest.raises(dpsql.InterfaceError) as caught:
        draft_schema(find_sources([str(tmp_path / "visits.csv")]), str(tmp_path), DraftOptions())
    assert caught.value.message == '"visits.csv" is empty'


@pytest.mark.parametrize("home", [True, False], ids=["with a table of users", "without"])
@pytest.mark.parametrize(("first", "second"), [("user_id", "with_user_id"), ("from_user_id", "to_user_id")])
def test_a_draft_marks_a_second_person_as_a_decision(tmp_path: Path, home: bool, first: str, second: str) -> None:
    """Rows of the table protect the one whom the way leads to, and no one else."""
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as db:
        if home:
            db.execute("CREATE TABLE users (user_id BIGINT PRIMARY KEY)")
        db.execute(f"CREATE TABLE payments ({first} BIGINT, {second} BIGINT, payment_id BIGINT, amount DOUBLE)")
    draft = draft_schema(find_sources([str(path)]), str(tmp_path), DraftOptions()).draft
    (asked,) = [one for one in draft.decisions if "second person" in one.what]
    assert asked.where == "tables.payments.unit" and asked.what.startswith(f"{second} may name a second person")
    assert f"# decide: {asked.what}" in draft.text


def test_a_second_reference_to_people_beside_the_unit_is_a_second_person() -> None:
    by_name = [table("employees", "employee_id", "manager_employee_id")]
    boss = ForeignKeyReference(("boss",), "employees", ("employee_id",))
    declared = [table("employees", "employee_id", "boss", references=(boss,))]
    for tables, second in ((by_name, "manager_employee_id"), (declared, "boss")):
        unit = find_candidates(tables)[0]
        assert unit.name == "employees.employee_id" and not unit.links_to_unit
        assert second_unit_columns(unit, tables, "employees") == (second,)


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
@pytest.mark.parametrize("looked", [True, False])
def test_a_draft_of_rows_is_its_owners_alone_also_where_it_replaces_another_file(tmp_path: Path, looked: bool) -> None:
    """The file that it replaces could be read by everyone; it stays so where the draft holds nothing of rows."""
    with duckdb.connect(str(tmp_path / "d.duckdb")) as db:
        db.execute("CREATE TABLE users AS SELECT i AS user_id, i % 7 AS n FROM range(500) t(i)")
    target = tmp_path / "d.yaml"
    target.write_text("mine")
    target.chmod(0o644)
    asked = ["init", str(tmp_path / "d.duckdb"), "-o", str(target), "--force"]
    assert main([*asked, "--look-at-data"] if looked else asked) == 0
    assert load_schema(target).privacy.unit == "users.user_id"
    assert stat.S_IMODE(target.stat().st_mode) == (0o600 if looked else 0o644)


@pytest.mark.parametrize("odd", ["007", "-07", "+07", '"007"'])
def test_one_number_with_a_zero_before_it_makes_its_column_text(tmp_path: Path, odd: str) -> None:
    """In the last row too; a zero alone, and one after a point, are numbers."""
    path = tmp_path / "users.csv"
    rows = [f"{i},{i % 3},0.{i}" for i in range(1, 3000)]
    path.write_text("\n".join(["user_id,n,share", *rows, f"{odd},0,0.5"]) + "\n")
    (found,) = find_sources([str(path)]).tables
    assert [str(column.type) for column in found.columns] == ["text", "bigint", "double"]


# --- figures of a check ----------------------------------------------------------------------------------------------

SCHEMA = """
dpsql: 1
engine: duckdb:///d.duckdb
privacy:
  unit: people.id
  budget: {epsilon: 8, delta: DELTA}
  query: {epsilon: 0.5, delta: DELTA}
tables:
  people:
    unit: id
    unique: [id]
    columns:
      id: {type: bigint}
      cost: {type: double, bounds: [0, 10]}
      age: {type: integer, bounds: [0, 100]}
      sex: {type: text, values: [f, m], max_length: 3}
"""
# Of 200 rows, by their number: 20 hold NULL, 10 no value of the type, 30 are below, 16 above, 124 within the bounds. Of
# sex, 20 are NULL, 10 too long, 30 not listed and 140 listed.
ROWS = """
CREATE TABLE people AS SELECT i AS id,
    CASE WHEN i < 20 THEN NULL WHEN i < 30 THEN 'NaN' WHEN i < 60 THEN -1 WHEN i < 76 THEN 11 ELSE 5e0 END AS cost,
    CASE WHEN i < 20 THEN NULL WHEN i < 30 THEN 'old' WHEN i < 60 THEN '-1' WHEN i < 76 THEN '101' ELSE '50' END AS age,
    CASE WHEN i < 20 THEN NULL WHEN i < 30 THEN 'long' WHEN i < 60 THEN 'x' ELSE 'f' END AS sex
FROM range(200) t(i)
"""


def people(folder: Path, delta: str = "1e-9") -> Path:
    with duckdb.connect(str(folder / "d.duckdb")) as db:
        db.execute(ROWS)
    path = folder / "d.yaml"
    path.write_text(SCHEMA.replace("DELTA", delta))
    return path


def shares(column: ColumnReport) -> dict[str, float]:
    names = ("null", "unfit", "below", "above", "unlisted", "too_long")
    return {name: getattr(column, name) for name in names if getattr(column, name)}


def test_each_row_is_in_one_share_and_shares_are_of_all_rows(tmp_path: Path) -> None:
    (report,) = check_schema(people(tmp_path)).tables
    columns = {column.name: shares(column) for column in report.columns}
    assert columns == {
        "id": {},
        "cost": {"null": 0.1, "unfit": 0.05, "below": 0.15, "above": 0.08},
        "age": {"null": 0.1, "unfit": 0.05, "below": 0.15, "above": 0.08},
        "sex": {"null": 0.1, "too_long": 0.05, "unlisted": 0.15},
    }


def test_findings_name_what_they_are_shares_of(tmp_path: Path) -> None:
    """Bounds clip values, 46 of the 170 that there are; rows hold what is no value, 10 of 200."""
    findings: tuple[SchemaFinding, ...] = check_schema(people(tmp_path)).findings
    said = {(one.where.removeprefix("tables.people."), one.what) for one in findings}
    for column in ("cost", "age"):
        assert (column, "the bounds clip 27.1 % of the values") in said
    assert ("cost", "5 % of the rows hold no double") in said
    assert ("age", "5 % of the rows hold no integer") in said
    assert ("sex", "15 % of the rows hold values that are not declared; they count as NULL") in said
    assert ("sex", "30 % of the rows are NULL here, and in no group") in said  # 20, and 10 + 30 that count as such


@pytest.mark.parametrize(("delta", "factor"), [("1e-9", 1.959964), ("0", math.log(20) / math.sqrt(2))])
def test_noise_is_the_interval_that_analysts_see(tmp_path: Path, delta: str, factor: float) -> None:
    """Pure differential privacy has Laplace's noise, whose tails are heavier than a normal distribution's."""
    path = people(tmp_path, delta)
    (report,) = check_schema(path).tables
    by_sql = {one.sql: one for one in report.questions}
    for sql in ("SELECT COUNT(*) FROM people", "SELECT SUM(age) FROM people"):
        asked = by_sql[sql]
        assert asked.noise is not None and asked.exact is not None and asked.epsilon is not None
        half = asked.noise * abs(asked.exact)
        with dpsql.connect(path) as connection:
            ((bar,),) = connection.cursor().execute(sql).errors
        assert bar is not None
        assert half == pytest.approx((bar.high - bar.low) / 2) == pytest.approx(factor * bar.stderr, rel=0.02)
        again = tmp_path / "again.yaml"
        again.write_text(path.read_text().replace("query: {epsilon: 0.5", f"query: {{epsilon: {asked.epsilon:.9g}"))
        noise = next(one.noise for one in check_schema(again).tables[0].questions if one.sql == sql)
        assert noise == pytest.approx(0.05, rel=0.05), "at the epsilon for 5 %"


def test_noise_is_not_made_smaller_by_bounds(tmp_path: Path) -> None:
    """An average's interval ends at the bounds; the epsilon for 5 % follows from the noise itself."""
    path = people(tmp_path, "0")
    path.write_text(path.read_text().replace("query: {epsilon: 0.5", "query: {epsilon: 0.001"))
    (report,) = check_schema(path).tables
    asked = next(one for one in report.questions if one.sql == "SELECT AVG(age) FROM people")
    assert asked.noise is not None and asked.exact is not None
    assert asked.noise * asked.exact > 100, "wider than the bounds"


# --- keys with the unit in them --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("look", "expected"), [(["--look-at-data"], True), ([], False)])
def test_a_year_that_no_person_has_twice_is_proposed_as_a_key(
    look: list[str], expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where units have several rows, and the owner has the rows looked at; visits is one that some have twice."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{person},{year % 2},{year}" for person in range(50) for year in range(2015, 2020)]
    Path("panel.csv").write_text("person_id,visits,year\n" + "\n".join(rows) + "\n")
    assert main(["init", "panel.csv", "--unit", "panel.person_id", "-o", "panel.yaml", *look]) == 0
    assert ("unique: [[person_id, year]]" in Path("panel.yaml").read_text()) is expected


def test_check_proposes_a_key_of_few_declared_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    test_a_year_that_no_person_has_twice_is_proposed_as_a_key(["--look-at-data"], True, tmp_path, monkeypatch)
    text = Path("panel.yaml").read_text()
    line = next(line for line in text.splitlines() if "unique:" in line)
    Path("panel.yaml").write_text(text.replace(line + "\n", ""))
    found = check_schema(Path("panel.yaml")).findings
    assert [f.try_ for f in found if f.where == "tables.panel.unique"] == ["unique: [[person_id, year]]"]


# --- looking at data -------------------------------------------------------------------------------------------------


def look_at(tmp_path: Path, sql: str, *more: str) -> str:
    """The draft, with its file looked at; it is checked and asked as it is."""
    with duckdb.connect() as db:
        db.execute(f"COPY ({sql}) TO '{tmp_path / 'rows.parquet'}'")
    draft = tmp_path / "rows.yaml"
    assert main(["init", str(tmp_path / "rows.parquet"), "--look-at-data", "--force", "-o", str(draft), *more]) == 0
    assert [found for found in check_schema(draft).findings if found.level is Severity.BROKEN] == []
    return draft.read_text()


def test_few_whole_numbers_are_values_and_many_have_bounds(tmp_path: Path) -> None:
    text = look_at(tmp_path, "SELECT i % 2 AS flag, i % 4 * 50 AS seats, i % 9 AS nights, i % 3 + 5 AS month"
                             " FROM range(600) t(i)")  # fmt: skip
    assert "flag: {type: bigint, values: [0, 1]}" in text and "seats: {type: bigint, values: [0, 50, 100, 150]}" in text
    assert "nights: {type: bigint, bounds: [0, 8]}" in text and "month: {type: bigint, bounds: [1, 12]}" in text


def test_no_rare_number_is_among_values(tmp_path: Path) -> None:
    """Nor is it left out, as a rare text is: it would count as NULL."""
    text = look_at(tmp_path, "SELECT CASE WHEN i < 3 THEN 7 ELSE i % 2 END AS flag FROM range(600) t(i)")
    assert "values" not in text.partition("tables:")[2] and "bounds: [0, " in text


def test_times_in_texts_become_times(tmp_path: Path) -> None:
    text = look_at(tmp_path, "SELECT (DATE '2020-01-01' + i::INTEGER)::VARCHAR AS day,"
                             " (TIMESTAMP '2020-01-01 10:00:00' + to_days(i::INTEGER))::VARCHAR AS at,"
                             " (DATE '2020-01-01' + i::INTEGER)::VARCHAR || 'T10:00:00Z' AS zoned,"
                             " '2020-13-' || (10 + i % 20) AS wrong,"
                             " CASE WHEN i = 77 THEN 'unknown' ELSE '2020-01-01' END AS mixed"
                             " FROM range(600) t(i)")  # fmt: skip
    types = {line.split(":")[0].strip(): line.split("type: ")[1] for line in text.splitlines() if "type: " in line}
    assert types["day"].startswith("date, bounds: [2020-01-01, 2021-0") and "the source holds texts" in types["day"]
    assert types["at"].startswith("timestamp,") and types["zoned"].startswith("timestamptz,")
    assert types["wrong"].startswith("text") and types["mixed"].startswith("text")
    with dpsql.connect(tmp_path / "rows.yaml") as connection:
        cursor = connection.cursor().execute("SELECT EXTRACT(YEAR FROM day) AS y, COUNT(*) FROM rows GROUP BY y")
        assert {row[0] for row in cursor} <= {2020, 2021}


def test_columns_that_may_be_the_unit_are_asked_about(tmp_path: Path) -> None:
    """Texts before numbers, and no quantities that are declared, no parts of dates and nothing below 0."""
    text = look_at(tmp_path, "SELECT i // 5 AS s, i // 7 AS x, i // 9 - 3 AS delay, i % 30 + 1 AS day, 'N' || (i // 10)"
                             " AS tail, i % 2 AS flag FROM range(3000) t(i)")  # fmt: skip
    line = next(line for line in text.splitlines() if line.strip().startswith("unit: row"))
    asked = re.findall(r"--unit rows\.(\w+)", line)
    assert asked == ["tail", "s", "x"] and "in about 3,000 rows" in line
    (finding,) = (found for found in check_schema(tmp_path / "rows.yaml").findings if found.is_promise)
    assert finding.where == "tables.rows.unit" and "values of tail stand in 3,000 rows" in finding.what


@pytest.mark.parametrize("repeats", [False, True])
def test_a_key_that_the_rows_refute_is_not_drafted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeats: bool
) -> None:
    """A name says that a person has one row. Where two have one id, the draft could not be served."""
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(
        "person_id,age\n" + "".join(f"{i // 2 if repeats else i},{i % 80}\n" for i in range(90))
    )
    assert main(["init", "people.csv", "--look-at-data", "-o", "p.yaml"]) == 0
    assert ("unique: [person_id]" in Path("p.yaml").read_text()) is not repeats
    with dpsql.connect("p.yaml") as connection:
        assert connection.cursor().execute("SELECT COUNT(DISTINCT person_id) FROM people").fetchall()


def test_a_public_table_is_drafted_with_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("airports.csv").write_text("faa,city,lat\n" + "".join(f"A{i},New York,{i}.5\n" for i in range(30)))
    Path("cities.csv").write_text("city,lat\n" + "".join(f"York,{i}.5\n" for i in range(30)))
    Path("people.csv").write_text("person_id,faa\n" + "".join(f"{i},A{i % 30}\n" for i in range(90)))
    names = ["airports.csv", "cities.csv", "people.csv"]
    assert main(["init", *names, "--look-at-data", "-o", "p.yaml"]) == 0
    text = Path("p.yaml").read_text()
    assert text.count("unique: [faa]") == 1 and text.count("unique: [city]") == 0
    before, drafted = text.split("  # decide: airports")
    lines = drafted.partition("  # decide: cities")[0].splitlines()[1:]
    Path("p.yaml").write_text(before + "\n".join(line.replace("  # ", "  ", 1) for line in lines) + "\n")
    assert dpsql.connect("p.yaml").cursor().execute("SELECT COUNT(*) FROM airports").fetchone() == (30,)
