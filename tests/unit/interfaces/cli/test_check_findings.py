"""`dpsql check` says what would spoil answers without an error: fields that are no values, a key not declared."""

import pytest

from dpsql.owner.check.check import check_schema
from dpsql.owner.check.report import Severity

pytestmark = pytest.mark.slow

SCHEMA = """
dpsql: 1
privacy:
  unit: people.person_id
  budget: {epsilon: 4, delta: 1e-9}
  query: {epsilon: 1, delta: 1e-10}
  contributions: {rows: 20, groups: 10}
tables:
  people:
    source: people.csv
    unit: person_id
    columns:
      person_id: {type: bigint}
      cost: {type: double, bounds: [0, 500]}
      born: {type: date}
      children: {type: integer, bounds: [0, 10]}
"""


@pytest.fixture
def people(tmp_path):
    """Writes the file of so many rows, each as `row` makes it of its number, and the schema beside it."""

    def write(row, n=400, schema=SCHEMA):
        header = "person_id,cost,born,children\n"
        (tmp_path / "people.csv").write_text(header + "".join(f"{row(i)}\n" for i in range(n)))
        (tmp_path / "people.yaml").write_text(schema)
        return tmp_path / "people.yaml"

    return write


def column(report, name):
    return next(one for table in report.tables for one in table.columns if one.name == name)


def told(report, where):
    return [(one.level, one.what) for one in report.findings if one.where == where]


# --- fields that cannot be read --------------------------------------------------------------------------------------


def test_numbers_with_a_comma_are_to_mend(run, people):
    path = people(lambda i: f'{i},"{i},5",2020-01-01,1')
    report = check_schema(path)
    assert (column(report, "cost").unfit, column(report, "cost").null) == (1, 0)
    ((level, what),) = told(report, "tables.people.cost")
    assert level is Severity.MEND and "no double" in what and "comma" in what
    ran = run("check", str(path))
    assert ran.code == 3 and "All is well" not in ran.out


def test_dates_of_another_form_are_to_mend(people):
    report = check_schema(people(lambda i: f"{i},1.5,{1 + i % 28}.12.2023,1"))
    assert column(report, "born").unfit == 1
    ((level, what),) = told(report, "tables.people.born")
    assert level is Severity.MEND and "declare their format" in what


@pytest.mark.parametrize(("every", "level"), [(100, Severity.BETTER), (5, Severity.MEND)])
def test_words_among_numbers_are_reported_by_their_share(people, every, level):
    report = check_schema(people(lambda i: f"{i},1.5,2020-01-01,{'unknown' if i % every == 0 else 2}"))
    assert column(report, "children").unfit == pytest.approx(1 / every) and column(report, "children").null == 0
    assert [found for found, what in told(report, "tables.people.children") if "no integer" in what] == [level]


def test_most_of_the_few_values_that_there_are_may_be_unfit(people):
    """A share of the values, not of the rows."""
    report = check_schema(people(lambda i: f"{i},1.5,2020-01-01,{'n.a.' if i % 20 == 0 else ''}"))
    assert (column(report, "children").null, column(report, "children").unfit) == (0.95, 0.05)
    assert told(report, "tables.people.children")[0][0] is Severity.MEND


def test_empty_fields_are_null_and_no_fault(people):
    report = check_schema(people(lambda i: f"{i},{'  ' if i % 2 else 1.5},2020-01-01,{'' if i % 2 else 2}"))
    for name in ("cost", "children"):
        assert (column(report, name).null, column(report, name).unfit) == (0.5, 0)
        assert not any("hold no" in what for _, what in told(report, f"tables.people.{name}"))


def test_a_column_without_any_value_is_to_mend(people):
    report = check_schema(people(lambda i: f"{i},1.5,,2"))
    assert column(report, "born").null == 1
    ((level, what),) = told(report, "tables.people.born")
    assert level is Severity.MEND and "NULL in all rows" in what


def test_ids_that_are_not_as_they_print_are_reported(people):
    report = check_schema(people(lambda i: f"{i:04},1.5,2020-01-01,2"))
    assert column(report, "person_id").unfit == 1 and told(report, "tables.people.person_id")[0][0] is Severity.MEND


def test_columns_of_a_public_table_are_looked_at_too(people):
    public = SCHEMA + "  prices:\n    public: true\n    source: prices.csv\n    columns: {price: {type: double}}\n"
    path = people(lambda i: f"{i},1.5,2020-01-01,2", schema=public)
    (path.parent / "prices.csv").write_text('price\n"1,5"\n"2,5"\n')
    assert told(check_schema(path), "tables.prices.price")[0][0] is Severity.MEND


def test_files_without_a_header_and_files_of_json_are_looked_at(people):
    path = people(str, schema=SCHEMA.replace("people.csv", "{path: a.csv, header: false}"))
    (path.parent / "a.csv").write_text('1,"1,5",2020-01-01,2\n2,"1,5",,x\n')
    report = check_schema(path)
    assert [column(report, name).unfit for name in ("person_id", "cost", "born", "children")] == [0, 1, 0, 0.5]
    path.write_text(SCHEMA.replace("people.csv", "a.json"))
    rows = '[{"person_id": 1, "cost": "1,5", "born": null, "children": 2}, {"person_id": 2, "children": "x"}]'
    (path.parent / "a.json").write_text(rows)
    report = check_schema(path)
    assert [column(report, name).unfit for name in ("person_id", "cost", "born", "children")] == [0, 0.5, 0, 0.5]


# --- keys ------------------------------------------------------------------------------------------------------------


def count_noise(report):
    (asked,) = (one for table in report.tables for one in table.questions if one.sql == "SELECT COUNT(*) FROM people")
    return asked.noise


def test_a_unit_with_one_row_each_is_proposed_as_unique(run, people):
    path = people(lambda i: f"{i},1.5,2020-01-01,2")
    before = check_schema(path)
    (one,) = (one for one in before.findings if one.where == "tables.people.unique")
    assert (
        one.try_ == "unique: [person_id]" and one.from_data and one.level is Severity.BETTER and "20 times" in one.what
    )
    assert "checked at registration" in one.what
    assert "unique: [person_id]  (read from the data" in run("check", str(path)).out
    path.write_text(SCHEMA.replace("    unit: person_id\n", f"    unit: person_id\n    {one.try_}\n"))
    after = check_schema(path)
    assert count_noise(before) == pytest.approx(20 * count_noise(after))
    assert not told(after, "tables.people.unique")


def test_unique_is_not_proposed_where_one_unit_has_two_rows(people):
    assert not told(check_schema(people(lambda i: f"{max(i, 1)},1.5,2020-01-01,2")), "tables.people.unique")


VISITS = """
  visits:
    source: visits.csv
    unit: {person_id: people.person_id}
    unique: [visit_id]
    columns: {visit_id: {type: bigint}, person_id: {type: bigint}}
  tests:
    source: tests.csv
    unit: {visit_id: visits.visit_id}
    columns: {visit_id: {type: bigint}}
"""


def test_unique_is_proposed_along_a_way_beside_other_keys(people):
    path = people(lambda i: f"{i},1.5,2020-01-01,2", schema=SCHEMA + VISITS)
    (path.parent / "visits.csv").write_text("visit_id,person_id\n" + "".join(f"{i},{i}\n" for i in range(50)))
    (path.parent / "tests.csv").write_text("visit_id\n" + "".join(f"{i}\n" for i in range(50)))
    tried = {one.where: one.try_ for one in check_schema(path).findings}
    assert tried["tables.visits.unique"] == "unique: [visit_id, person_id]"
    assert "tables.tests.unique" not in tried  # no column of it is the unit's id: it would gain nothing


KEYS = [f"k{at}" for at in range(7)]


def with_keys(tmp_path):
    columns = ", ".join(f"{key}: {{type: text}}" for key in KEYS)
    (tmp_path / "d.yaml").write_text(f"""
dpsql: 1
privacy: {{unit: row, budget: {{epsilon: 4, delta: 1e-6}}}}
tables: {{t: {{source: t.csv, unit: row, columns: {{{columns}}}}}}}
""")
    rows = (",".join("" if i % 6 == 5 else f"v{i % 6}" for _ in KEYS) for i in range(6000))
    (tmp_path / "t.csv").write_text(",".join(KEYS) + "\n" + "\n".join(rows) + "\n")
    return tmp_path / "d.yaml"


def test_null_is_no_group_of_a_key_shown_or_not(tmp_path):
    (table,) = check_schema(with_keys(tmp_path)).tables
    assert [(key.groups, key.shown) for key in table.keys] == [(5, 5)] * 4


def test_keys_that_were_not_looked_at_are_counted(run, tmp_path):
    path = with_keys(tmp_path)
    assert "… and 3 more, which were not looked at" in run("check", str(path)).out
    assert check_schema(path).tables[0].keys_left == 3


# --- the report ------------------------------------------------------------------------------------------------------


def wide(tmp_path, columns):
    listed = "".join(f"      {name}: {{type: {type_}}}\n" for name, type_ in columns.items())
    (tmp_path / "d.yaml").write_text(f"""
dpsql: 1
privacy: {{unit: row, budget: {{epsilon: 4, delta: 1e-6}}}}
tables:
  t:
    source: t.csv
    unit: row
    columns:
{listed}""")
    rows = "".join(",".join("2024-01-01" if columns[name] == "timestamp" else str(i) for name in columns) + "\n"
                   for i in range(100))  # fmt: skip
    (tmp_path / "t.csv").write_text(",".join(columns) + "\n" + rows)
    return tmp_path / "d.yaml"


def test_many_findings_of_one_kind_are_reported_together(run, tmp_path):
    path = wide(tmp_path, {f"x{at}": "integer" for at in range(60)})
    out = run("check", str(path)).out
    assert out.count("has no bounds") == 1 and "- 60 places: has no bounds" in out and "… and 55 more" in out
    assert "tables.t.x0: bounds: [0, 100]  (read from the data" in out
    assert sum(one.what.startswith("has no bounds") for one in check_schema(path).findings) == 60


def test_ids_need_no_bounds_and_times_are_named_by_their_position(tmp_path):
    report = check_schema(wide(tmp_path, {"doctor_id": "integer", "cost": "integer", "seen": "timestamp"}))
    assert told(report, "tables.t.doctor_id") == [] and told(report, "tables.t.cost")
    assert ("tables.t.seen", "snap: 1 hour") in {(one.where, one.try_) for one in report.findings}


def test_a_draft_says_why_numbers_are_text(run, tmp_path):
    rows = "".join(f'{i},"{i},500",{"unknown" if i % 9 == 0 else i},{"abc"[i % 3]},{i:03}\n' for i in range(200))
    (tmp_path / "people.csv").write_text("person_id,cost,age,kind,zip\n" + rows)
    ran = run("init", str(tmp_path / "people.csv"), "-o", str(tmp_path / "d.yaml"))
    lines = {line.split(":")[0].strip(): line for line in (tmp_path / "d.yaml").read_text().splitlines()}
    assert ran.code == 0 and "numbers have commas" in lines["cost"] and "most of it are numbers" in lines["age"]
    assert "numbers" not in lines["kind"] + lines["zip"] and "unknown" not in lines["age"]


def test_names_in_other_languages_are_personal_too(run, tmp_path):
    rows = "".join(f"{i},Nom {i},{20 + i}\n" for i in range(60))
    (tmp_path / "people.csv").write_text("person_id,Nom complet,age\n" + rows)
    assert run("init", str(tmp_path / "people.csv"), "-o", str(tmp_path / "d.yaml")).code == 0
    lines = (tmp_path / "d.yaml").read_text().splitlines()
    (line,) = (line for line in lines if "Nom complet" in line and "type" in line)
    assert "may name people" in line and "values" not in line


# --- units -----------------------------------------------------------------------------------------------------------

PLANES = """
dpsql: 1
privacy:
  unit: {unit}
  budget: {{epsilon: 40, delta: 1e-6}}
tables:
  planes:
    source: planes.csv
    unit: {of_planes}
    columns:
      tailnum: {{type: text}}
  flights:
    source: flights.csv
    unit: {of_flights}
    columns:
      tailnum: {{type: text}}
      s: {{type: integer}}
      delay: {{type: integer, bounds: [0, 99]}}
"""


@pytest.fixture
def planes(tmp_path):
    """500 planes, of which the table has 400; each has 10 flights, and s occurs 25 times."""

    def write(**units):
        (tmp_path / "planes.csv").write_text("tailnum\n" + "".join(f"N{i}\n" for i in range(400)))
        flights = (f"N{i % 500},{i % 200},{i % 100}\n" for i in range(5000))
        (tmp_path / "flights.csv").write_text("tailnum,s,delay\n" + "".join(flights))
        (tmp_path / "planes.yaml").write_text(PLANES.format(**units))
        return tmp_path / "planes.yaml"

    return write


def test_an_id_that_another_table_has_too_is_a_fault_beside_rows_as_units(run, planes):
    path = planes(unit="row", of_planes="row", of_flights="row")
    unclear, shared = told(check_schema(path), "tables.flights.unit")
    assert shared[0] is Severity.MEND and "values of tailnum stand in 5,000 rows" in shared[1]
    assert 'the table "planes" has the column, too' in shared[1]
    assert unclear[0] is Severity.MEND and "values of s stand in 5,000 rows" in unclear[1]
    assert "delay" not in unclear[1]  # what has bounds is a quantity
    ran = run("check", str(path))
    assert ran.code == 3 and "All is well" not in ran.out


@pytest.mark.parametrize("column", ["s", "account", "tailnum"])
def test_a_column_that_repeats_beside_rows_as_units_is_to_mend(run, tmp_path, column):
    """Only the owner knows whether it names people: the question is loud."""
    (tmp_path / "t.csv").write_text(f"{column},x\n" + "".join(f"N{i % 200},{i}.5\n" for i in range(2000)))
    assert run("init", str(tmp_path / "t.csv"), "--header", "--unit", "row", "-o", str(tmp_path / "t.yaml")).code == 0
    ran = run("check", str(tmp_path / "t.yaml"))
    assert ran.code == 3
    mend = ran.out[ran.out.index("To mend") :]
    assert f"values of {column} stand in 2,000 rows" in mend and "declare their values or bounds" in mend


def test_units_of_one_row_beside_a_column_that_repeats_are_a_question(run, tmp_path):
    """pid.id is unique: what repeats, pid, may be whom to protect."""
    (tmp_path / "pid.csv").write_text("id,pid,x\n" + "".join(f"{i},{i // 3},{i}.5\n" for i in range(900)))
    ran = run("init", str(tmp_path / "pid.csv"), "-o", str(tmp_path / "p.yaml"))
    assert ran.code == 0 and "unit pid.id" in ran.out
    ran = run("check", str(tmp_path / "p.yaml"))
    assert "values of pid stand in 900 rows" in ran.out
    assert "Nothing has to be mended." not in ran.out


def test_people_of_one_row_each_are_no_question(run, tmp_path):
    (tmp_path / "people.csv").write_text(
        "person_id,town,age\n" + "".join(f"{i},t{i % 300},{i % 80}\n" for i in range(900))
    )
    run("init", str(tmp_path / "people.csv"), "-o", str(tmp_path / "p.yaml"))
    assert not [found for found in check_schema(tmp_path / "p.yaml").findings if found.is_promise]


def test_rows_that_name_a_missing_unit_say_what_follows_for_answers(planes):
    path = planes(unit="planes.tailnum", of_planes="tailnum", of_flights="{tailnum: planes.tailnum}")
    report = check_schema(path)
    ((level, what),) = told(report, "tables.flights.unit")
    assert level is Severity.MEND and what.startswith('1,000 rows (20 %) name a row of "planes" that is not there')
    assert "questions about this table alone count them" in what and 'a join with "planes" leaves them out' in what
    counted = next(query for table in report.tables for query in table.questions if "FROM flights" in query.sql)
    assert counted.exact == 5000 and counted.lost == pytest.approx(0, abs=0.1)


def test_all_is_well_never_follows_a_finding(run, people):
    """What could be better is no fault, and is a finding."""
    ran = run("check", str(people(lambda i: f"{i},1.5,2020-01-01,2")))
    assert "Could be better" in ran.out
    assert "All is well" not in ran.out and ("Nothing has to be mended." in ran.out) == (ran.code == 0)
