"""Who may log in: names that nobody has are answered as others are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dpsql.base.scram import make_verifier_text
from dpsql.errors import SchemaError
from dpsql.schema.load import load_schema
from dpsql.schema.model import Schema
from dpsql.session.logins import load_logins

CLINIC = load_schema(Path(__file__).parents[3] / "schemas" / "clinic.yaml")
SALT = bytes(range(16))


def schema(**passwords: str | None) -> Schema:
    analysts = tuple(
        replace(one, password=passwords.get(one.name), password_env=None if one.name in passwords else one.password_env)
        for one in CLINIC.analysts
    )
    return replace(CLINIC, analysts=analysts)


def test_verifiers_come_from_the_schema_and_the_environment() -> None:
    logins = load_logins(schema(ana=make_verifier_text("pencil", SALT)), "id", {"DPSQL_BI_PASSWORD": "s3cret"})
    assert logins.verifiers.keys() == {"ana", "bi"} and logins.without == ()
    assert str(logins.verifiers["ana"]) == make_verifier_text("pencil", SALT)
    assert str(logins.verifiers["bi"]) == make_verifier_text("s3cret", logins.verifiers["bi"].salt)
    assert "s3cret" not in repr(logins) and "pencil" not in repr(logins)


def test_an_analyst_without_a_password_cannot_log_in_and_is_reported_to_the_owner() -> None:
    logins = load_logins(schema(ana=make_verifier_text("pencil", SALT)), "id", {})
    assert logins.verifiers.keys() == {"ana"}
    assert "DPSQL_BI_PASSWORD" in logins.without[0]
    assert not logins.find_verifier("bi")[1]


def test_a_schema_without_any_password_is_refused_with_a_hint() -> None:
    with pytest.raises(SchemaError, match="no analysts") as none:
        load_logins(replace(CLINIC, analysts=()), "id", {})
    assert "dpsql user add" in str(none.value.hint)
    with pytest.raises(SchemaError, match="has a password") as nobody:
        load_logins(schema(ana=None), "id", {"DPSQL_BI_PASSWORD": ""})
    assert "dpsql user add" in str(nobody.value.hint)


def test_a_verifier_that_no_client_could_use_is_refused() -> None:
    with pytest.raises(SchemaError, match="verifier"):
        load_logins(schema(ana="SCRAM-SHA-256$4096:eA==$eA==:eA=="), "id", {})


def test_an_unknown_name_gets_a_verifier_of_the_same_form() -> None:
    kept = make_verifier_text("pencil", bytes(20), 8192)
    logins = load_logins(schema(ana=kept), "id", {})
    made, known = logins.find_verifier("mallory")
    assert not known and (made.iterations, len(made.salt)) == (8192, 20)
    assert made.stored_key != made.server_key and len(made.stored_key) == len(made.server_key) == 32


def test_its_salt_lasts_over_starts_and_is_its_own() -> None:
    first, again = (load_logins(schema(ana=make_verifier_text("pencil", SALT)), "id", {}) for _ in range(2))
    assert first.find_verifier("mallory") == again.find_verifier("mallory") != first.find_verifier("malory")
    other = load_logins(schema(ana=make_verifier_text("pencil", SALT)), "another ledger", {})
    assert other.find_verifier("mallory")[0].salt != first.find_verifier("mallory")[0].salt


def test_a_new_password_of_another_changes_no_salt() -> None:
    first = load_logins(schema(ana=make_verifier_text("pencil", SALT)), "id", {"DPSQL_BI_PASSWORD": "a"})
    then = load_logins(schema(ana=make_verifier_text("pen", bytes(16))), "id", {"DPSQL_BI_PASSWORD": "b"})
    assert first.find_verifier("mallory")[0].salt == then.find_verifier("mallory")[0].salt
    assert first.find_verifier("bi")[0].salt == then.find_verifier("bi")[0].salt
