"""What an inspector, reflection and automap make of a schema. None of it costs anything."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, Table, exc, func, inspect, select, types
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.automap import automap_base
from sqlalchemy.orm import Session

from dpsql.interfaces.sqlalchemy.types import to_sqlalchemy_type
from dpsql.types import Kind, Type, decimal_type


def test_names(engine: Engine) -> None:
    inspector = inspect(engine)
    assert inspector.get_table_names() == ["patients", "visits", "lab_tests", "wards"]
    assert inspector.get_view_names() == ["long_stays", "by_sex"]
    assert inspector.get_schema_names() == ["public"] and inspector.default_schema_name == "public"
    assert inspector.get_table_names("public") == inspector.get_table_names() and inspector.get_table_names("x") == []
    assert inspector.get_sequence_names() == inspector.get_temp_table_names() == inspector.get_temp_view_names() == []
    assert inspector.has_table("visits") and inspector.has_table("by_sex", schema="public")
    assert not inspector.has_table("nothing") and not inspector.has_table("visits", schema="x")
    assert not inspector.has_sequence("visits") and not inspector.has_index("visits", "visits_visit_id_key")


def test_columns_have_types_and_comments(engine: Engine) -> None:
    columns = {column["name"]: column for column in inspect(engine).get_columns("visits")}
    assert list(columns) == ["visit_id", "patient_id", "ward", "cost", "at", "nights"]
    assert [type(column["type"]) for column in columns.values()] == [
        types.BIGINT, types.BIGINT, types.TEXT, types.DOUBLE_PRECISION, types.TIMESTAMP, types.SMALLINT,
    ]  # fmt: skip
    assert columns["cost"]["comment"] == "In euros. Bounds: [0, 5000]."
    assert columns["patient_id"]["comment"] == "Leads to the privacy unit: patients.patient_id."
    assert all(column["nullable"] and column["default"] is None for column in columns.values())
    assert [column["name"] for column in inspect(engine).get_columns("by_sex")] == ["sex", "patients"]


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.DECIMAL])
def test_every_type_has_one_of_sqlalchemy(kind: Kind) -> None:
    assert isinstance(to_sqlalchemy_type(Type(kind)), types.TypeEngine)


def test_types_keep_precision_and_zones() -> None:
    numeric = to_sqlalchemy_type(decimal_type(10, 2))
    assert isinstance(numeric, types.NUMERIC) and (numeric.precision, numeric.scale) == (10, 2)
    zoned, plain = to_sqlalchemy_type(Type(Kind.TIMESTAMPTZ)), to_sqlalchemy_type(Type(Kind.TIMESTAMP))
    assert isinstance(zoned, types.TIMESTAMP) and zoned.timezone
    assert isinstance(plain, types.TIMESTAMP) and not plain.timezone
    assert isinstance(to_sqlalchemy_type(Type(Kind.INTERVAL)), postgresql.INTERVAL)


def test_the_first_unique_key_is_the_primary_one(engine: Engine) -> None:
    inspector = inspect(engine)
    key = inspector.get_pk_constraint("visits")
    assert (key["constrained_columns"], key["name"]) == (["visit_id"], "visits_visit_id_key")
    assert inspector.get_pk_constraint("lab_tests")["constrained_columns"] == []
    assert inspector.get_unique_constraints("visits") == [] and inspector.get_indexes("visits") == []
    assert inspector.get_check_constraints("visits") == []


def test_the_way_to_the_unit_is_a_foreign_key(engine: Engine) -> None:
    (key,) = inspect(engine).get_foreign_keys("lab_tests")
    assert (key["constrained_columns"], key["referred_table"], key["referred_columns"]) == (
        ["visit_id"], "visits", ["visit_id"],
    )  # fmt: skip
    assert key["name"] == "lab_tests_visit_id_fkey" and key["referred_schema"] is None
    assert inspect(engine).get_foreign_keys("lab_tests", schema="public")[0]["referred_schema"] == "public"
    assert inspect(engine).get_foreign_keys("patients") == []


def test_comments_and_definitions(engine: Engine) -> None:
    inspector = inspect(engine)
    assert inspector.get_table_comment("visits")["text"] == (
        "Stays, one row each. Private: the privacy unit is patients.patient_id, by patient_id = patients.patient_id."
    )
    assert inspector.get_table_comment("long_stays")["text"] == "A week or more. A view."
    assert inspector.get_view_definition("long_stays") == "SELECT * FROM visits WHERE nights >= 7"


@pytest.mark.parametrize("ask", ["get_columns", "get_pk_constraint", "get_foreign_keys", "get_indexes",
                                 "get_unique_constraints", "get_table_comment", "get_view_definition",
                                 "get_check_constraints"])  # fmt: skip
def test_what_is_not_there(engine: Engine, ask: str) -> None:
    with pytest.raises(exc.NoSuchTableError):
        getattr(inspect(engine), ask)("nothing")
    with pytest.raises(exc.NoSuchTableError):
        getattr(inspect(engine), ask)("visits", schema="elsewhere")


def test_a_table_has_no_definition(engine: Engine) -> None:
    with pytest.raises(exc.NoSuchTableError):
        inspect(engine).get_view_definition("visits")


def test_reflected_tables_join_along_the_unit(tables: Any) -> None:
    joined = tables["visits"].join(tables["patients"])
    assert str(joined.onclause) == "patients.patient_id = visits.patient_id"
    assert tables["visits"].comment and tables["visits"].c.cost.comment == "In euros. Bounds: [0, 5000]."


def test_one_table_is_reflected_alone(engine: Engine) -> None:
    wards = Table("wards", MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(wards)).scalar() == 8


def test_automap_has_relationships_and_answers(engine: Engine) -> None:
    base = automap_base()
    base.prepare(autoload_with=engine)
    patients, visits = base.classes.patients, base.classes.visits
    assert "lab_tests" not in base.classes  # it declares no unique key
    with Session(engine) as session:
        rows = session.execute(
            select(patients.sex, func.count(visits.visit_id)).join(visits.patients).group_by(patients.sex)
        ).all()
    sexes = {sex for sex, _ in rows}  # few or no patients are of the others
    assert {"f", "m"} <= sexes <= {"f", "m", "x", None}


def test_reflection_is_free(engine: Engine, tables: Any) -> None:
    inspector = inspect(engine)
    for name in tables:
        inspector.get_columns(name)
    with engine.connect() as connection:
        balance = connection.connection.driver_connection.budget()  # type: ignore[union-attr]
    assert not balance.spent.rho and not balance.spent.delta
