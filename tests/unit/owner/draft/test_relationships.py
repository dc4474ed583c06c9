"""Who might be the unit, and the ways to it, read off names, types, keys and constraints."""

import pytest

from dpsql.owner.draft.relationships import find_candidates, key_column_of, make_candidate, second_unit_columns
from dpsql.owner.introspect.tables import ForeignKeyReference, IntrospectedColumn, IntrospectedTable
from dpsql.schema.model import EngineTable
from dpsql.types import BIGINT, DOUBLE, INTEGER, TEXT


def table(name, *columns, unique=(), references=(), type_=BIGINT):
    """Columns are names, or pairs of a name and a type; references are `column -> table.key`."""
    found = [one if isinstance(one, tuple) else (one, type_) for one in columns]
    split = [(column, *target.split(".")) for column, target in (one.split(" -> ") for one in references)]
    return IntrospectedTable(
        name,
        EngineTable((name,)),
        tuple(IntrospectedColumn(column, str(kind).upper(), kind) for column, kind in found),
        tuple((key,) if isinstance(key, str) else key for key in unique),
        tuple(ForeignKeyReference((column,), target, (key,)) for column, target, key in split),
    )


def links_to_unit(one):
    return {name: f"{link.column} -> {link.target}.{link.key}" for name, link in one.links_to_unit.items()}


HOSPITAL = [
    table("wards", "ward_id", ("floor", INTEGER)),
    table("patients", "patient_id", "ward_id", ("sex", TEXT)),
    table("visits", "visit_id", "patient_id", "ward_id", ("cost", DOUBLE)),
    table("lab_tests", "id", "visit_id", ("result", DOUBLE)),
    table("holidays", ("day", TEXT)),
]


def test_people_come_before_places_and_paths_have_two_steps():
    first, *others = find_candidates(HOSPITAL)
    assert first.name == "patients.patient_id"
    assert links_to_unit(first) == {
        "visits": "patient_id -> patients.patient_id",
        "lab_tests": "visit_id -> visits.visit_id",
    }
    assert "wards.ward_id" in {one.name for one in others} and "holidays" not in first.links_to_unit


def test_a_place_that_all_tables_reference_is_not_the_privacy_unit():
    """Wards are reached by more tables than patients are."""
    wards = make_candidate(HOSPITAL, "wards", "ward_id")
    patients = make_candidate(HOSPITAL, "patients", "patient_id")
    assert len(wards.links_to_unit) > len(patients.links_to_unit)


@pytest.mark.parametrize(
    ("name", "columns"),
    [("users", ["id"]), ("Users", ["ID"]), ("tbl_users", ["user_id"]), ("user", ["userId"]), ("people", ["person_id"])],
)
def test_spellings_of_one_key(name, columns):
    subject = "personId" if name == "people" else "UserID"
    (found, *_) = find_candidates([table(name, *columns), table("logins", subject)])
    assert found.table == name and set(found.links_to_unit) == {"logins"}


def test_an_id_without_a_table_of_its_own_has_a_home_in_one_of_its_tables():
    first = find_candidates([table("events", "user_id"), table("logins", "user_id"), table("days", ("day", TEXT))])[0]
    assert first.name == "events.user_id" and links_to_unit(first) == {"logins": "user_id -> events.user_id"}


def test_declared_keys_come_before_names():
    tables = [
        table("persons", "nr", unique=["nr"]),
        table("cases", "nr", "about", "person_id", unique=["nr"], references=["about -> persons.nr"]),
    ]
    first = find_candidates(tables)[0]
    assert first.name == "persons.nr" and links_to_unit(first) == {"cases": "about -> persons.nr"}
    assert first.links_to_unit["cases"].declared
    assert second_unit_columns(first, tables, "cases") == ("person_id",)


def test_types_that_differ_are_no_way():
    tables = [table("users", "user_id"), table("logins", ("user_id", TEXT))]
    assert links_to_unit(find_candidates(tables)[0]) == {}
    declared = [
        table("users", "user_id", unique=["user_id"]),
        table("logins", ("user_id", INTEGER), references=["user_id -> users.user_id"]),
    ]
    assert links_to_unit(find_candidates(declared)[0]) == {}


def test_floats_are_no_ids():
    assert find_candidates([table("patients", ("patient_id", DOUBLE))]) == ()


def test_a_second_person_is_seen():
    tables = [table("users", "id"), table("payments", "id", "sender_user_id", "receiver_user_id")]
    users = find_candidates(tables)[0]
    assert links_to_unit(users) == {"payments": "sender_user_id -> users.id"}
    assert second_unit_columns(users, tables, "payments") == ("receiver_user_id",)


def test_a_way_arrives_at_any_unique_key():
    tables = [
        table("users", "user_id", unique=["user_id"]),
        table("orders", "order_id", "code", "user_id", unique=["order_id", "code"]),
        table("parcels", "order_code", references=["order_code -> orders.code"]),
    ]
    assert links_to_unit(find_candidates(tables)[0])["parcels"] == "order_code -> orders.code"


def test_a_named_unit_is_reached_by_its_name():
    """No word of it says that it is an id."""
    tables = [table("a", ("tag", TEXT)), table("b", ("tag", TEXT)), table("c", ("tag", BIGINT))]
    assert links_to_unit(make_candidate(tables, "a", "tag")) == {"b": "tag -> a.tag"}


def test_a_shared_column_is_proposed_where_no_name_suggests_an_id():
    planes = table("planes", ("tailnum", TEXT), ("seats", BIGINT))
    flights = table("flights", ("year", BIGINT), ("carrier", TEXT), ("tailnum", TEXT))
    weather = table("weather", ("year", BIGINT), ("wind", BIGINT))
    carriers = table("airlines", ("carrier", TEXT))
    first, second = find_candidates([carriers, flights, planes, weather])
    assert (first.name, links_to_unit(first)) == ("planes.tailnum", {"flights": "tailnum -> planes.tailnum"})
    assert second.name == "airlines.carrier"  # years are shared too, and name nobody
    assert find_candidates([flights]) == () and find_candidates([weather, table("a", ("year", BIGINT))]) == ()
    by_name = find_candidates([planes, flights, table("crew", ("pilot_id", BIGINT))])
    assert [candidate.name for candidate in by_name] == ["crew.pilot_id"]


def test_a_key_is_a_constraint_or_else_a_name():
    assert key_column_of(table("visits", "a", "visit_id", unique=[("a", "visit_id")])) == ("visit_id", False)
    assert key_column_of(table("visits", "visit_id", "code", unique=["code"])) == ("code", True)
    assert key_column_of(table("visits", "patient_id")) is None


def test_circles_of_references_end():
    tables = [
        table("users", "user_id", "team_id", unique=["user_id"], references=["team_id -> teams.team_id"]),
        table("teams", "team_id", "user_id", unique=["team_id"], references=["user_id -> users.user_id"]),
    ]
    assert links_to_unit(find_candidates(tables)[0]) == {"teams": "user_id -> users.user_id"}
