"""The catalog tells what the schema says, in PostgreSQL's terms, and nothing else."""

from dataclasses import replace

import pytest

from dpsql.compiler.catalog.builtin import load_relations
from dpsql.compiler.catalog.objects import PUBLIC_OID
from dpsql.compiler.catalog.tables import CatalogTable, find_catalog_table, is_catalog_schema
from dpsql.compiler.catalog.variables import Identity
from dpsql.schema.model import Resolved
from dpsql.types import INTEGER, TEXT

WHO = Identity("ana", "clinic", "1.2.3", (("TimeZone", "UTC"),))


def rows(clinic: Resolved, space: str, name: str, *columns: str) -> list[tuple[object, ...]]:
    table = find_catalog_table(clinic.schema, WHO, space, name)
    assert table is not None
    places = [[known for known, _ in table.columns].index(column) for column in columns]
    return [tuple(row[place] for place in places) for row in table.rows]


def test_tables_are_those_of_the_schema(clinic: Resolved) -> None:
    names = [table.name for table in clinic.schema.tables]
    told = rows(clinic, "information_schema", "tables", "table_catalog", "table_schema", "table_name")
    assert [name for _, space, name in told if space == "public"] == names
    assert {space for _, space, _ in told} == {"public", "pg_catalog", "information_schema"}
    assert {database for database, _, _ in told} == {clinic.schema.database}
    listed = rows(clinic, "pg_catalog", "pg_tables", "schemaname", "tablename")
    assert [name for space, name in listed if space == "public"] == names
    classes = rows(clinic, "pg_catalog", "pg_class", "relnamespace", "relkind", "relname")
    assert [name for space, kind, name in classes if space == PUBLIC_OID and kind == "r"] == names


def test_columns_have_the_types_that_postgres_would_name(clinic: Resolved) -> None:
    known = rows(clinic, "information_schema", "columns", "table_name", "column_name", "data_type", "udt_name",
                 "numeric_precision", "numeric_scale", "datetime_precision", "ordinal_position",
                 "table_schema")  # fmt: skip
    known = [tuple(row) for *row, space in known if space == "public"]
    assert ("visits", "cost", "double precision", "float8", 53, None, None, 5) in known
    assert ("visits", "at", "timestamp without time zone", "timestamp", None, None, 6, 7) in known
    assert ("visits", "nights", "smallint", "int2", 16, 0, None, 8) in known
    assert ("visits", "paid", "numeric", "numeric", 10, 2, None, 6) in known
    assert ("patients", "sex", "text", "text", None, None, None, 3) in known
    assert len(known) == sum(len(table.columns) for table in clinic.schema.tables)


def test_keys_and_what_they_refer_to(clinic: Resolved) -> None:
    constraints = rows(clinic, "information_schema", "table_constraints", "constraint_name", "constraint_type")
    assert ("visits_visit_id_key", "UNIQUE") in constraints
    assert ("lab_tests_visit_id_fkey", "FOREIGN KEY") in constraints
    used = rows(clinic, "information_schema", "key_column_usage", "constraint_name", "table_name", "column_name")
    assert ("lab_tests_visit_id_fkey", "lab_tests", "visit_id") in used
    referred = rows(clinic, "information_schema", "constraint_column_usage", "constraint_name", "table_name",
                    "column_name")  # fmt: skip
    assert ("lab_tests_visit_id_fkey", "visits", "visit_id") in referred
    links = rows(clinic, "information_schema", "referential_constraints", "constraint_name", "unique_constraint_name")
    assert ("lab_tests_visit_id_fkey", "visits_visit_id_key") in links


def test_comments_have_bounds_and_the_unit(clinic: Resolved) -> None:
    oids = dict(rows(clinic, "pg_catalog", "pg_class", "relname", "oid"))
    told = {
        (oid, place): text for oid, place, text in rows(clinic, "pg_catalog", "pg_description", "objoid", "objsubid",
                                                        "description")
    }  # fmt: skip
    assert told[oids["visits"], 5] == "Bounds: [0, 5000]."
    assert told[oids["patients"], 1] == "The privacy unit."
    assert told[oids["patients"], 3] == "Values: f, m, x."
    assert told[oids["lab_tests"], 1] == "Leads to the privacy unit: visits.visit_id."
    assert told[oids["Wards"], 0] == "Public."
    assert "patients.patient_id" in told[oids["visits"], 0]  # type: ignore[operator]


def test_attributes_meet_their_types_and_tables(clinic: Resolved) -> None:
    types = {oid for (oid,) in rows(clinic, "pg_catalog", "pg_type", "oid")}
    relations = {oid for (oid,) in rows(clinic, "pg_catalog", "pg_class", "oid")}
    spaces = {oid for (oid,) in rows(clinic, "pg_catalog", "pg_namespace", "oid")}
    attributes = rows(clinic, "pg_catalog", "pg_attribute", "attrelid", "atttypid")
    assert attributes and all(relation in relations and type_ in types for relation, type_ in attributes)
    assert {space for (space,) in rows(clinic, "pg_catalog", "pg_class", "relnamespace")} <= spaces


def test_every_value_has_its_columns_type(clinic: Resolved) -> None:
    kinds = {"text": str, "integer": int, "bigint": int, "smallint": int, "boolean": bool, "real": float}
    tables = [find_catalog_table(clinic.schema, WHO, namespace, name) for namespace, name in load_relations()]
    for table in filter(None, tables):
        for (_, type_), values in zip(table.columns, table.column_values(), strict=True):
            assert all(value is None or type(value) is kinds[str(type_)] for value in values)


def test_names_fold_and_a_table_of_the_schema_goes_first(clinic: Resolved) -> None:
    assert find_catalog_table(clinic.schema, WHO, "INFORMATION_SCHEMA", "Tables") is not None
    assert find_catalog_table(clinic.schema, WHO, "", "pg_class") is not None
    assert find_catalog_table(clinic.schema, WHO, "", "tables") is None
    assert find_catalog_table(clinic.schema, WHO, "public", "pg_class") is None
    named = replace(clinic.schema, tables=(replace(clinic.schema.tables[0], name="pg_class"),))
    assert find_catalog_table(named, WHO, "", "pg_class") is None
    assert is_catalog_schema("Pg_Catalog") and not is_catalog_schema("public")


def test_a_row_that_is_too_short_is_found() -> None:
    with pytest.raises(ValueError, match="one value for each column"):
        CatalogTable((("a", TEXT), ("b", INTEGER)), (("x",),))
