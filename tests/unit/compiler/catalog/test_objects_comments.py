"""What the owner says of tables and columns is shown as comments, and is no part of what the schema means."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.compiler.catalog.tables import find_catalog_table
from dpsql.compiler.catalog.variables import Identity
from dpsql.errors import SchemaError
from dpsql.schema.load import load_schema
from dpsql.session.reflection import reflect_tables

TEXT = """\
dpsql: 1
description: A shop
engine: duckdb:///shop.duckdb
privacy: {unit: people.id, budget: {epsilon: 9, delta: 1e-6}, contributions: {rows: 3}}
tables:
  people:
    unit: id
    description: |
      Customers,
      one row each!
    columns:
      id: {type: bigint}
      age: {type: integer, bounds: [0, 99], description: In years}
      city: {type: text, values: [Oslo, Rome]}
  cities:
    public: true
    unique: [city]
    description: Where they live
    columns: {city: {type: text, description: A name}, size: {type: integer}}
views:
  old: {sql: SELECT * FROM people WHERE age > 70, description: The old ones}
  young: SELECT * FROM people WHERE age < 20
"""
EDITS = [(r"description: A shop\n", ""), ("Customers", "Patrons"), ("In years", "Years"), ("A name", "Any name"),
         ("Where they live", "Towns"), ("The old ones", "Elders")]  # fmt: skip
WHO = Identity("dataset", "s", "1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        rows = "SELECT i::BIGINT AS id, i % 90 AS age, 'Oslo' AS city FROM range(90) t(i)"
        connection.execute(f"CREATE TABLE people AS {rows}")
        connection.execute("CREATE TABLE cities AS SELECT 'Oslo' AS city, 7 AS size")
    (tmp_path / "s.yaml").write_text(TEXT)
    return tmp_path / "s.yaml"


def test_they_stand_on_one_line_before_what_the_declarations_say(path: Path) -> None:
    tables = {table.name: table for table in reflect_tables(load_schema(path))}
    assert tables["people"].description == "Customers, one row each!"
    assert tables["people"].comment == "Customers, one row each! Private: the privacy unit is id."
    assert tables["cities"].comment == "Where they live. Public." and tables["old"].comment == "The old ones. A view."
    assert tables["young"].comment == "A view." and tables["young"].description is None
    age = tables["people"].find_column("age")
    assert age is not None and (age.description, age.comment) == ("In years", "In years. Bounds: [0, 99].")


def test_postgres_reads_them_as_comments(path: Path) -> None:
    described = find_catalog_table(load_schema(path), WHO, "pg_catalog", "pg_description")
    assert described is not None
    assert (2200, 2615, 0, "A shop") in described.rows  # of the schema "public"
    texts = [row[3] for row in described.rows]
    assert "The old ones. A view." in texts and "In years. Bounds: [0, 99]." in texts and "A name" in texts


def test_describe_shows_them(path: Path) -> None:
    with dpsql.connect(path) as connection:
        rows = connection.cursor().execute("DESCRIBE people").fetchall()
    assert rows == [("id", "bigint", "", "", ""), ("age", "integer", "[0, 99]", "", "In years"),
                    ("city", "text", "", "Oslo, Rome", "")]  # fmt: skip


def test_an_edit_causes_no_new_charge(path: Path) -> None:
    """Private and public tables, views, and a sub-select over public rows that is put into the release."""
    statements = [
        "SELECT city, COUNT(*) FROM people GROUP BY city",
        "SELECT COUNT(*) FROM old JOIN cities USING (city)",
        "SELECT SUM(age) FROM people WHERE age < (SELECT MAX(size) FROM cities)",
    ]
    with dpsql.connect(path) as connection:
        before = [connection.cursor().execute(sql) for sql in statements]
        rows = [cursor.fetchall() for cursor in before]
        assert all(cursor.loss for cursor in before)
    text = TEXT
    for old, new in EDITS:
        text, count = re.subn(old, new, text)
        assert count == 1
    path.write_text(text)
    with dpsql.connect(path) as connection:
        after = [connection.cursor().execute(sql) for sql in statements]
        assert not any(cursor.loss for cursor in after)
        assert [cursor.fetchall() for cursor in after] == rows


@pytest.mark.parametrize("text", ["[a]", "{a: b}", '""', '"\\x1b[31m"', "x" * 2001])
def test_they_are_printable_text(path: Path, text: str) -> None:
    path.write_text(TEXT.replace("A shop", text))
    with pytest.raises(SchemaError, match=r"s\.yaml:2: description must be a sentence or two"):
        load_schema(path)


def test_a_view_that_is_a_mapping_has_its_sql(path: Path) -> None:
    path.write_text(TEXT.replace("sql: SELECT * FROM people WHERE age > 70, ", ""))
    with pytest.raises(SchemaError, match=r"views\.old\.sql is missing"):
        load_schema(path)
