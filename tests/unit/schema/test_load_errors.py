"""Each mistake is refused with file, line, key, and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.errors import SchemaError
from dpsql.schema.load import MAX_BYTES, load_schema

VALID = """\
dpsql: 1
engine: duckdb:///x.duckdb
ledger: sqlite:///x.ledger
privacy:
  neighbors: add_remove
  unit: people.id
  budget: {epsilon: 8, delta: 1e-7}
  query: {epsilon: 1, delta: 1e-8}
  contributions: {rows: 20, groups: 50}
  group_size: 1
analysts:
  ana: {budget: {epsilon: 2, delta: 1e-8}}
tables:
  people:
    unit: id
    unique: [id]
    columns:
      id: {type: bigint}
      born: {type: date, bounds: [1900-01-01, 2030-01-01]}
      sex: {type: text, values: [f, m]}
  visits:
    unit: {person: people.id}
    unique: [visit]
    columns:
      person: {type: bigint}
      visit: {type: integer}
      cost: {type: double, bounds: [0, 5000], grid: 0.01}
  tests:
    unit: {visit: visits.visit}
    columns:
      visit: {type: integer}
      value: {type: integer, bounds: [0, 9]}
  days:
    public: true
    columns: {day: {type: date}}
"""

# (what to replace, with what, the line of the error, part of the message, part of the hint)
CASES = [
    # keys
    ("group_size: 1", "groupsize: 1", 10, 'privacy has no key "groupsize"', '"group_size"'),
    ("engine: duckdb", "engin: duckdb", 2, 'there is no key "engin"', '"engine"'),
    ("dpsql: 1\n", "", 1, "dpsql is missing", "dpsql: 1"),
    ("dpsql: 1", "dpsql: 2", 1, 'dpsql must be 1, not "2"', "1"),
    ("  unit: people.id\n", "", 4, "privacy.unit is missing", "unit: patients.patient_id"),
    ("  budget: {epsilon: 8, delta: 1e-7}\n", "", 4, "privacy.budget is missing", "epsilon: 8"),
    ("{epsilon: 8, delta: 1e-7}", "{epsilon: 8}", 7, "privacy.budget.delta is missing", "delta: 0"),
    ("{epsilon: 8, delta: 1e-7}", "8", 7, 'privacy.budget must be a mapping, not "8"', "epsilon: 8"),
    ("{epsilon: 8, delta: 1e-7}", "", 7, "privacy.budget must be a mapping, not empty", "epsilon: 8"),
    ("{epsilon: 8, delta", "{epsilon: 8, epsilon: 9, delta", 7, 'the key "epsilon" is repeated', "Remove"),
    ("      born:", "      id:", 19, 'the key "id" is repeated; it stands already in line 18', "Remove"),
    ("group_size: 1", "<<: {group_size: 1}", 10, 'privacy has no key "<<"', "keys"),
    ("{visit: visits.visit}", "{? {a: b} : b}", 29, "a key must be text", "brackets"),
    # privacy
    ("neighbors: add_remove", "neighbors: add_remov",
     5, "privacy.neighbors must be add_remove or change_one", '"add_remove"'),
    ("epsilon: 8", "epsilon: -1", 7, 'privacy.budget.epsilon must be a number above 0, not "-1"', "epsilon"),
    ("epsilon: 8", "epsilon: 0", 7, "must be a number above 0", None),
    ("epsilon: 8", "epsilon: 0e5", 7, "must be a number above 0", None),
    ("epsilon: 8", "epsilon: .nan", 7, "must be a number above 0", None),
    ("epsilon: 8", "epsilon: .inf", 7, "must be a number above 0", None),
    ("epsilon: 8", "epsilon: Infinity", 7, "must be a number above 0", None),
    ("epsilon: 8", "epsilon: true", 7, 'must be a number above 0, not "true"', None),
    ("epsilon: 8", "epsilon: eight", 7, "must be a number above 0", None),
    ("epsilon: 8", "epsilon: 0x10", 7, "must be a number above 0", None),
    ("epsilon: 8", "epsilon: 010", 7, "must be a number above 0", None),
    ("epsilon: 8", "epsilon: 1:30", 7, "must be a number above 0", None),
    ("epsilon: 8", "epsilon: '8,5'", 7, "must be a number above 0", "8.5"),
    ("epsilon: 8", "epsilon: [8]", 7, "must be a number above 0, not a list", None),
    ("epsilon: 8", "epsilon: ~", 7, "must be a number above 0, not empty", None),
    ("epsilon: 8", "epsilon: 1000001", 7, "must be at most 1000000", None),
    ("epsilon: 8", "epsilon: 1e999999999", 7, "must be a number above 0", None),
    ("delta: 1e-7", "delta: 1", 7, 'privacy.budget.delta must be a number from 0 to below 1, not "1"', None),
    ("delta: 1e-7", "delta: -1e-7", 7, "must be a number from 0 to below 1", None),
    ("{epsilon: 1, delta: 1e-8}", "{epsilon: 9}",
     8, 'privacy.query.epsilon must be at most the budget\'s 8, not "9"', "budget"),
    ("{epsilon: 1, delta: 1e-8}", "{delta: 1e-6}",
     8, "privacy.query.delta must be at most the budget's 1e-07", "budget"),
    ("rows: 20", "rows: 0", 9, 'privacy.contributions.rows must be a whole number from 1 to 1048576, not "0"', None),
    ("rows: 20", "rows: 2.5", 9, "must be a whole number", None),
    ("rows: 20", "rows: true", 9, "must be a whole number", None),
    ("groups: 50", "groups: 1048577", 9, "must be a whole number from 1 to 1048576", None),
    ("{rows: 20, groups: 50}", "automatic",
     9, 'privacy.contributions must be auto or a mapping, not "automatic"', "contributions: auto, or {rows: 20, gr"),
    ("{rows: 20, groups: 50}", "20", 9, 'privacy.contributions must be auto or a mapping, not "20"', "{rows: 20"),
    ("{rows: 20, groups: 50}", "[auto]", 9, "privacy.contributions must be auto or a mapping, not a list", "auto"),
    ("{rows: 20, groups: 50}", "", 9, "privacy.contributions must be auto or a mapping, not empty", "auto"),
    ("rows: 20", "row: 20", 9, 'privacy.contributions has no key "row"', '"rows"'),
    ("rows: 20", "rows: auto", 9, 'privacy.contributions.rows must be a whole number from 1 to 1048576, not "auto"',
     None),
    ("group_size: 1", "units: 0", 10, 'privacy.units must be a whole number from 1 to 1000000000000, not "0"', None),
    ("group_size: 1", "units: many", 10, 'must be a whole number from 1 to 1000000000000, not "many"', None),
    ("group_size: 1", "units: [100]", 10, "must be a whole number from 1 to 1000000000000, not a list", None),
    ("group_size: 1", "unit_count: 9", 10, 'privacy has no key "unit_count"', None),
    ("group_size: 1", "group_size: 0", 10, "privacy.group_size must be a whole number from 1 to 1000", None),
    ("group_size: 1", "group_size: 1001", 10, "must be a whole number from 1 to 1000", None),
    # places
    ("duckdb:///x.duckdb", "postgresql://h/db",
     2, "engine names a PostgreSQL engine, which is not yet served", "duckdb:///"),
    ("duckdb:///x.duckdb", "spark://h", 2, "engine names a Spark engine, which is not yet served", None),
    ("duckdb:///x.duckdb", "duckbd:///x", 2, "engine must be a URL like duckdb:///path", 'Did you mean "duckdb"'),
    ("duckdb:///x.duckdb", "x.duckdb", 2, 'engine must be a URL like duckdb:///path, not "x.duckdb"', "duckdb:///file"),
    ("duckdb:///x.duckdb", "duckdb:///x?a=b", 2, "there are no options", None),
    ("duckdb:///x.duckdb", "duckdb:///${NOT_SET}",
     2, 'engine needs the environment variable "NOT_SET"', "export NOT_SET"),
    ("duckdb:///x.duckdb", "duckdb:///${}", 2, "names no environment variable", "${NAME}"),
    ("sqlite:///x.ledger", "sqlite:///${NOT_SET}", 3, 'ledger needs the environment variable "NOT_SET"', None),
    ("sqlite:///x.ledger", "postgresql://", 3, "ledger must be a URL like postgresql://user@host/database", None),
    ("sqlite:///x.ledger", "PostgreSQL://h/db", 3, "ledger must be a URL like postgresql://user@host/database", None),
    ("sqlite:///x.ledger", "mysql://h/db", 3, "ledger must be a URL like sqlite:///path", None),
    ("sqlite:///x.ledger", "'sqlite:///:memory:'", 3, "ledger must be a file", "sqlite:///file"),
    ("sqlite:///x.ledger", "sqlite://", 3, "ledger must be a file", None),
    ("duckdb:///x.duckdb", "duckdb://", 14, "tables.people needs a source", "data/file.parquet"),
    ("    unit: id\n", "    unit: id\n    source: data/people.parket\n",
     16, "tables.people.source must be a path that ends in", '"parquet"'),
    ("    unit: id\n", "    unit: id\n    source: data/people\n", 16, "must be a path that ends in", "extension"),
    ("    unit: id\n", "    unit: id\n    source: s3://b/x.parquet\n", 16, "must be a local path", None),
    ("    unit: id\n", "    unit: id\n    source: ${NOT_SET}.csv\n",
     16, 'needs the environment variable "NOT_SET"', None),
    ("    unit: id\n", "    unit: id\n    source: *.csv\n", 16, "is not YAML", "text that begins with *"),
    ("    unit: id\n", "    unit: id\n    source: [a.csv]\n", 16, "source must be text or a mapping, not a list", None),
    ("    unit: id\n", "    unit: id\n    source: {path: a.parquet}\n",
     16, "source.path must be a path that ends in .csv", "source: a.parquet"),
    ("    unit: id\n", "    unit: id\n    source: {header: true}\n", 16, "source.path is missing", "path:"),
    ("    unit: id\n", "    unit: id\n    source: {path: a.csv, header: yes}\n",
     16, "header must be true or false", None),
    ("    unit: id\n", "    unit: id\n    source: {path: a.csv, delimiter: ', '}\n",
     16, "delimiter must be one character", None),
    ("    unit: id\n", "    unit: id\n    source: {path: a.csv, delimiter: '\"'}\n",
     16, "must differ from the delimiter", None),
    ("    unit: id\n", "    unit: id\n    source: {path: a.csv, null: 'a,b'}\n",
     16, "must not hold the delimiter", None),
    ("    unit: id\n", "    unit: id\n    source: {path: a.csv, null: null}\n",
     16, "source.null must be text", "quotes"),
    ("    unit: id\n", "    unit: id\n    source: {path: a.csv, delim: ','}\n",
     16, 'has no key "delim"', '"delimiter"'),
    # analysts
    ("  ana: {", "  'an a': {", 12, "is not an analyst's name", None),
    ("  ana: {", "  null: {budget: 1}\n  ana: {", 12, "is not an analyst's name", None),
    ("  ana: {", "  Ana: {budget: {epsilon: 1, delta: 0}}\n  ana: {", 13, 'differ by case only, "Ana" and "ana"', None),
    ("  ana: {budget: {epsilon: 2, delta: 1e-8}}", "  ana: {}", 12, "analysts.ana.budget is missing", "budget:"),
    ("delta: 1e-8}}\ntables", "delta: 1e-8}, password: abc}\ntables",
     12, "analysts.ana.password must be a SCRAM", "dpsql user add"),
    ("delta: 1e-8}}\ntables", "delta: 1e-8}, password_env: 'A B'}\ntables",
     12, "password_env must be the name of", None),
    ("delta: 1e-8}}\ntables", "delta: 1e-8}, password: scram-sha-256$1:YQ==$YQ==:YQ==, password_env: A}\ntables",
     12, "must not stand beside password", "one of the two"),
    # tables
    ("  days:\n", "  Visits:\n    public: true\n    columns: {d: {type: date}}\n  days:\n",
     33, 'differ by case only, "visits" and "Visits"', None),
    ("  days:\n", "  a.b:\n    public: true\n    columns: {d: {type: date}}\n  days:\n",
     33, "is not a table name", None),
    ("      born:", "      ID: {type: date}\n      born:", 19, 'differ by case only, "id" and "ID"', None),
    ("      born:", "      '': {type: date}\n      born:", 19, "is not a column name", None),
    ("      born:", "      'a\"b': {type: date}\n      born:", 19, "is not a column name", None),
    ("    public: true\n    columns: {day: {type: date}}", "    public: true",
     33, "tables.days.columns is missing", None),
    ("columns: {day: {type: date}}", "columns: {}", 35, "tables.days.columns must name at least one column", None),
    ("    public: true\n", "", 33, "tables.days must have a unit, or public: true", "public: true"),
    ("    public: true\n", "    public: false\n", 33, "tables.days must have a unit, or public: true", None),
    ("    public: true\n", "    public: true\n    unit: day\n",
     35, "tables.days.unit must not stand in a public table", None),
    ("    public: true\n", "    public: 1\n", 34, 'tables.days.public must be true or false, not "1"', None),
    ("unique: [id]", "unique: id", 16, "tables.people.unique must be a list", "[visit_id]"),
    ("unique: [id]", "unique: []", 16, "must not be an empty list", None),
    ("unique: [id]", "unique: [idd]", 16, 'unique[0] names "idd", which is not among the columns', '"id"'),
    ("unique: [id]", "unique: [[id, id]]", 16, "names a column twice", None),
    ("unique: [id]", "unique: [id, [id]]", 16, "repeats a key", None),
    ("unique: [id]", "unique: [[id, sex], [sex, id]]", 16, "unique[1] repeats a key", None),
    # units
    ("unit: people.id", "unit: people", 6, "privacy.unit must be a column written table.column, or row", None),
    ("unit: people.id", "unit: poeple.id",
     6, 'privacy.unit names the table "poeple", which does not exist', '"people"'),
    ("unit: people.id", "unit: people.idd", 6, 'names the column "people.idd", which does not exist', '"id"'),
    ("unit: people.id", "unit: days.day", 6, 'names the table "days", which is public', None),
    ("unit: people.id", "unit: people.sex",
     6, 'privacy.unit is "people.sex", but that table has another unit', "unit: sex"),
    ("unit: people.id", "unit: visits.person", 6, "another unit", None),
    ("unit: people.id", "unit: row", 15, 'tables.people.unit must be row, since privacy.unit is "row"', "unit: row"),
    ("    unit: id\n", "    unit: idd\n", 15, 'tables.people.unit names "idd"', '"id"'),
    ("    unit: {person: people.id}", "    unit: row", 22, 'tables.visits.unit must lead to "people.id"', "people.id"),
    ("    unit: {person: people.id}", "    unit: person", 22, 'must lead to "people.id"', "unit: {person: people.id}"),
    ("    unit: {person: people.id}", "    unit: {persn: people.id}", 22, 'names "persn"', '"person"'),
    ("    unit: {person: people.id}", "    unit: {person: people}",
     22, "unit.person must be a key written table.column", None),
    ("    unit: {person: people.id}", "    unit: {person: peple.id}", 22, 'names the table "peple"', '"people"'),
    ("    unit: {person: people.id}", "    unit: {person: people.idd}", 22, 'names the column "people.idd"', '"id"'),
    ("    unit: {person: people.id}", "    unit: {person: people.id, visit: people.id}",
     22, "must refer to different columns of one table", None),
    ("    unit: {person: people.id}", "    unit: {}", 22, "must name at least one column", None),
    ("    unit: {person: people.id}", "    unit: [person]", 22, "must be text or a mapping, not a list", None),
    ("    unit: {person: people.id}", "    unit: {person: days.day}", 22, 'the table "days", which is public', None),
    ("    unit: {person: people.id}", "    unit: {person: people.born}",
     22, 'of type bigint with "people.born" of type date', "type"),
    ("    unit: {person: people.id}", "    unit: {visit: tests.visit}", 22, "tables.visits.unit.visit", None),
    ("    unit: {person: people.id}", "    unit: {visit: visits.visit}",
     22, 'goes in a circle: "visits" to "visits"', "people.id"),
    ("    unique: [visit]\n", "",
     28, 'tables.tests.unit.visit refers to "visits.visit", which is not declared unique', "unique: [visit]"),
    ("    unique: [visit]\n", "    unique: [[visit, person]]\n", 29, "not declared unique", None),
    ("id: {type: bigint}\n      born", "id: {type: double}\n      born",
     18, "columns.id.type must not be double", "bigint"),
    ("id: {type: bigint}\n      born", "id: {type: interval}\n      born",
     18, "columns.id.type must not be interval", None),
    ("id: {type: bigint}\n      born", "id: {type: bigint, bounds: [0, 9]}\n      born",
     18, "columns.id.bounds must not stand on a column that identifies", None),
    ("visit: {type: integer}\n      cost", "visit: {type: integer, grid: 10}\n      cost",
     26, "columns.visit.grid must not stand", None),
    # columns
    ("day: {type: date}", "day: {}", 35, "tables.days.columns.day.type is missing", "type: bigint"),
    ("day: {type: date}", "day: date", 35, 'tables.days.columns.day must be a mapping, not "date"', "{type: date}"),
    ("day: {type: date}", "day: {type: dat}", 35, 'there is no type "dat"', '"date"'),
    ("day: {type: date}", "day: {type: bigit}", 35, 'there is no type "bigit"', '"bigint"'),
    ("day: {type: date}", "day: {type: 'decimal(3,4)'}", 35, "there is no type", "decimal(p,s)"),
    ("day: {type: date}", "day: {type: blob9}", 35, "there is no type", None),
    ("day: {type: date}", "day: {typ: date}", 35, 'has no key "typ"', '"type"'),
    ("bounds: [0, 5000]", "bounds: [5000, 0]", 27, "cost.bounds are reversed: 5000 is above 0", "[0, 5000]"),
    ("bounds: [0, 5000]", "bounds: [0]", 27, "cost.bounds must have 2 entries, not 1", "[0, 5000]"),
    ("bounds: [0, 5000]", "bounds: [0, 1, 2]", 27, "must have 2 entries, not 3", None),
    ("bounds: [0, 5000]", "bounds: 5000", 27, 'cost.bounds must be a list, not "5000"', "[0, 5000]"),
    ("bounds: [0, 5000]", "bounds: [0, many]",
     27, 'cost.bounds[1] must be a number that a double holds, not "many"', None),
    ("bounds: [0, 5000]", "bounds: [0, .inf]", 27, "must be a number that a double holds", None),
    ("bounds: [0, 5000]", "bounds: [0, 1e309]", 27, "must be a number that a double holds", None),
    ("bounds: [0, 5000]", "bounds: [0, true]", 27, "must be a number that a double holds", None),
    ("bounds: [0, 5000]", "bounds: [0, ]", 27, "must have 2 entries, not 1", None),
    ("bounds: [0, 9]", "bounds: [0, 9.5]", 32, "bounds[1] must be a whole number from -2147483648", None),
    ("bounds: [0, 9]", "bounds: [0, 2147483648]", 32, "must be a whole number from", None),
    ("bounds: [1900-01-01, 2030-01-01]", "bounds: [1900-01-01, 2030-02-30]",
     19, "must be a date like 2024-01-31", None),
    ("bounds: [1900-01-01, 2030-01-01]", "bounds: [1900, 2030]", 19, "must be a date like 2024-01-31", None),
    ("type: date, bounds: [1900-01-01, 2030-01-01]", "type: timestamp, bounds: [1900-01-01, 2030-01-01T00:00:00Z]",
     19, "without a zone", None),
    ("type: date, bounds: [1900-01-01, 2030-01-01]",
     "type: timestamptz, bounds: ['0001-01-01T00:00+14:00', 2030-01-01]",
     19, "must be a timestamp like", None),
    ("values: [f, m]", "bounds: [0, 1]",
     20, "sex.bounds are for numbers, dates and timestamps, and this is text", "values"),
    ("values: [f, m]", "values: [f, f]", 20, 'sex.values[1] repeats the value "f"', None),
    ("values: [f, m]", "values: [f, null]",
     20, "sex.values[1] must be a value of the column's type, not empty", "nullable: true"),
    ("values: [f, m]", "values: [f, ~]", 20, "not empty", "nullable: true"),
    ("values: [f, m]", "values: []", 20, "must not be an empty list", None),
    ("values: [f, m]", "values: f", 20, "must be a list", "values: [f, m, x]"),
    ("values: [f, m]", "values: [[f]]", 20, "not a list", None),
    ("values: [f, m]", "values: [female], max_length: 3", 20, "is longer than max_length, 3 characters", "6"),
    ("bounds: [0, 9]", "values: [1, a]", 32, "must be a whole number from", None),
    ("bounds: [0, 9]", "values: [1, 1.0]", 32, 'repeats a value: "1" and "1.0" are the same integer', None),
    ("bounds: [0, 9]", "values: [1, 10], bounds: [0, 9]", 32, 'values[1] is "10", which the bounds exclude', None),
    ("type: date}", "type: time, values: ['10:00']}", 35, "values cannot be listed for time", None),
    ("type: date}", "type: date, nullable: maybe}", 35, "nullable must be true or false", None),
    ("type: date}", "type: date, grid: 1}", 35, "grid is for numbers, and this is date", None),
    ("type: date}", "type: date, max_length: 1}", 35, "max_length is for text columns, and this is date", None),
    ("type: date}", "type: date, snap: 1 hour}", 35, "snap must be days or weeks, since this is a date", "1 day"),
    ("type: date}", "type: date, snap: 7 hours}", 35, "snap must be minutes or hours that divide a day", "1 hour"),
    ("type: date}", "type: date, snap: 0 days}", 35, "snap must be minutes or hours that divide a day", "1 hour"),
    ("type: date}", "type: date, snap: 1 month}", 35, "snap must be minutes or hours that divide a day", "1 hour"),
    ("values: [f, m]", "snap: 1 day", 20, "snap is for dates and timestamps, and this is text", "Remove"),
    ("values: [f, m]", "randomized: {epsilon: 1, values: [f]}", 20, "values must have 2 entries or more", "[yes, no]"),
    ("values: [f, m]", "randomized: {epsilon: 1, values: [f, f]}", 20, 'repeats the value "f"', "Remove one"),
    ("values: [f, m]", "randomized: {epsilon: 0, values: [f, m]}", 20, "epsilon must be a number above 0", "1.0986"),
    ("values: [f, m]", "randomized: {values: [f, m]}", 20, "randomized.epsilon is missing", "1.0986"),
    ("values: [f, m]", "values: [f, m], randomized: {epsilon: 1, values: [f, m]}", 20,
     "must not stand beside randomized", "Remove values"),
    ("grid: 0.01", "grid: 0", 27, 'cost.grid must be a number above 0, not "0"', None),
    ("grid: 0.01", "grid: -1", 27, "must be a number above 0", None),
    ("grid: 0.01", "grid: 5001", 27, "grid must be at most 5000, the width of the bounds", None),
    ("grid: 0.01", "grid: 1e-20", 27, "grid is too fine", None),
    ("bounds: [0, 9]", "bounds: [0, 9], grid: 0.5", 32, "grid must be a multiple of 1, the step of integer", None),
    ("type: text, values: [f, m]", "type: text, max_length: 0", 20, "max_length must be a whole number", None),
    # YAML
    ("duckdb:///x.duckdb", "duckdb:///:memory:", 2, "is not YAML", "text that ends in a colon"),
    ("group_size: 1", "group_size: !!int 1", 10, "holds a YAML tag", "tag"),
    ("group_size: 1", "group_size: !!python/object:os.system 1", 10, "holds a YAML tag", None),
    ("group_size: 1", "group_size: &a 1", 10, "holds a YAML anchor", None),
    ("group_size: 1", "group_size: *a", 10, "holds a YAML alias", None),
    ("group_size: 1", "group_size: " + "[" * 3000, 10, "is nested deeper than", "brackets"),
    ("group_size: 1", "group_size: 1\n---\ndpsql: 1", 11, "more than one YAML document", None),
    ("  group_size: 1", "\tgroup_size: 1", 10, "is not YAML", "spaces, not tabs"),
    ("group_size: 1", "group_size: [1", 11, "is not YAML", "brackets"),
    ("group_size: 1", "group_size: \x07", 10, "a character that YAML does not allow", None),
    ("values: [f, m]", 'values: ["\\uD800"]', 20, "a character that no database stores", None),
    ("values: [f, m]", 'values: ["\\0"]', 20, "a character that no database stores", None),
]  # fmt: skip


def refusal(path: Path) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        load_schema(path, {})
    error = caught.value
    assert "\n" not in error.message
    assert not error.message.endswith(".")
    assert error.hint is None or error.hint.endswith((".", "?", "…"))
    return error


def test_the_valid_one_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(VALID)
    load_schema(path, {})


@pytest.mark.parametrize(("old", "new", "line", "message", "hint"), CASES)
def test_refusals(tmp_path: Path, old: str, new: str, line: int, message: str, hint: str | None) -> None:
    assert old in VALID
    path = tmp_path / "s.yaml"
    path.write_text(VALID.replace(old, new, 1), encoding="utf-8")
    error = refusal(path)
    assert message in error.message
    assert error.message.startswith(f"{path}:{line}: ")
    assert hint is None or (error.hint is not None and hint in error.hint)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the schema is empty"),
        (b"# only a comment\n", "the schema is empty"),
        (b"- a\n- b\n", "must be a mapping, not a list"),
        (b"hello", "must be a mapping"),
        (b"dpsql: 1\nx: \xff\n", ":2: is not UTF-8 text"),
        (b"#" * (MAX_BYTES + 1), "is larger than 1 MiB"),
        (b'dpsql: "\\UFFFFFFFF"', "no character"),
    ],
)
def test_files_that_are_no_schema(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(data)
    assert message in refusal(path).message


def test_an_alias_bomb_costs_nothing(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)]
    path = tmp_path / "s.yaml"
    path.write_text("\n".join(lines))
    assert "anchor" in refusal(path).message


def test_lines_may_end_in_other_ways(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(VALID.replace("epsilon: 8", "epsilon: 0").replace("\n", "\r\n").encode())
    assert f"{path}:7: " in refusal(path).message
    path.write_bytes((VALID + "0\x85").encode())
    assert "is not YAML" in refusal(path).message


def test_a_missing_file_suggests_its_neighbor(tmp_path: Path) -> None:
    (tmp_path / "clinic.yaml").write_text(VALID)
    error = refusal(tmp_path / "clinik.yaml")
    assert "there is no such file" in error.message
    assert "clinic.yaml" in (error.hint or "")
    error = refusal(tmp_path)
    assert "is a folder" in error.message and "clinic.yaml" in (error.hint or "")
    assert "there is no such file" in refusal(tmp_path / "none" / "x.yaml").message


@pytest.mark.parametrize(
    ("name", "content"),
    [("visits.csv", b"a,b\n"), ("visits", b"PAR1\x00"), ("h.duckdb", b""), ("x", b"\0" * 8 + b"DUCK\0")],
)
def test_data_in_the_place_of_a_schema(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    error = refusal(tmp_path / name)
    assert "holds data" in error.message and f"dpsql init {tmp_path / name}" in (error.hint or "")


def test_a_ledger_instead_of_a_schema(tmp_path: Path) -> None:
    (tmp_path / "clinic.ledger").write_bytes(b"SQLite format 3\x00")
    assert "perhaps a ledger" in refusal(tmp_path / "clinic.ledger").message


def test_a_longer_circle_is_found(tmp_path: Path) -> None:
    text = VALID.replace("unit: {person: people.id}", "unit: {visit: tests.visit}").replace(
        "    unit: {visit: visits.visit}\n", "    unit: {visit: visits.visit}\n    unique: [visit]\n"
    )
    path = tmp_path / "s.yaml"
    path.write_text(text)
    assert 'goes in a circle: "visits" to "tests" to "visits"' in refusal(path).message


def test_a_message_is_one_line_whatever_the_value(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(VALID.replace("epsilon: 8", 'epsilon: "a\\nb' + "c" * 500 + '"'))
    error = refusal(path)
    assert len(error.message) < 300


def test_the_example_of_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "clinic.yaml").write_text(VALID.replace("epsilon: 8", "epsilon: -1"))
    monkeypatch.chdir(tmp_path)
    assert refusal(Path("clinic.yaml")).message == (
        'clinic.yaml:7: privacy.budget.epsilon must be a number above 0, not "-1"'
    )
