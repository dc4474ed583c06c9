"""A schema that is a dict is read as the file is, and its errors name the key."""

from __future__ import annotations

import copy
import datetime as dt
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

import dpsql
from dpsql.errors import SchemaError
from dpsql.schema.fingerprint import hash_schema
from dpsql.schema.load import load_schema, schema_from_dict

WORKED = sorted((Path(__file__).parents[3] / "schemas").glob("*.yaml"))
SMALL: dict[str, Any] = {
    "dpsql": 1,
    "ledger": "sqlite:///small.ledger",
    "privacy": {"unit": "people.id", "budget": {"epsilon": 8, "delta": 1e-7}, "contributions": {"rows": 4}},
    "tables": {
        "people": {
            "source": "people.csv",
            "unit": "id",
            "unique": ["id"],
            "columns": {
                "id": {"type": "integer"},
                "sex": {"type": "text", "values": ["f", "m"]},
                "cost": {"type": "double", "bounds": [0, Decimal("99.5")]},
                "born": {"type": "date", "bounds": [dt.date(1930, 1, 1), "2020-12-31"]},
            },
        }
    },
}


def changed(value: Any, *path: str) -> dict[str, Any]:
    document = copy.deepcopy(SMALL)
    at: Any = document
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return document


@pytest.mark.parametrize("path", WORKED, ids=lambda path: path.name)
def test_it_is_read_as_the_file_is(path: Path) -> None:
    """With values as YAML makes them of the text, and as text."""
    schema = load_schema(path)
    for loader in (yaml.SafeLoader, yaml.BaseLoader):
        document = yaml.load(path.read_text(), loader)
        document.setdefault("ledger", f"sqlite:///{path.stem}.ledger")
        read = schema_from_dict(document, path.parent)
        assert replace(read, path=schema.path) == schema and hash_schema(read) == hash_schema(schema)


def test_numbers_are_exact() -> None:
    schema = schema_from_dict(changed(0.1, "privacy", "budget", "epsilon"), ".")
    assert schema.privacy.budget.epsilon == Fraction(1, 10) and schema.privacy.budget.delta == Fraction(1, 10**7)


def test_paths_are_relative_to_the_folder(tmp_path: Path) -> None:
    schema = schema_from_dict(SMALL, tmp_path)
    assert schema.ledger == f"sqlite:///{tmp_path}/small.ledger" and schema.database == "small"
    assert str(tmp_path) in str(schema.tables[0].source)
    assert schema_from_dict(changed(tmp_path / "x.csv", "tables", "people", "source"), ".").tables[0].source != (
        schema.tables[0].source
    )


def test_two_dicts_share_no_ledger_by_accident() -> None:
    document = copy.deepcopy(SMALL)
    del document["ledger"]
    with pytest.raises(SchemaError, match="ledger is missing") as caught:
        schema_from_dict(document, ".")
    assert "sqlite:///" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "dpsql"),
        (changed(0, "privacy", "budget", "epsilon"), "privacy.budget.epsilon must be a number above 0"),
        (changed(float("nan"), "privacy", "budget", "epsilon"), "privacy.budget.epsilon"),
        (changed(float("inf"), "privacy", "budget", "epsilon"), "privacy.budget.epsilon"),
        (changed(True, "privacy", "budget", "epsilon"), "privacy.budget.epsilon"),
        (changed(Fraction(1, 3), "privacy", "budget", "epsilon"), "privacy.budget.epsilon cannot be a Fraction"),
        (changed(b"f", "tables", "people", "source"), "tables.people.source cannot be a bytes"),
        (changed({"x"}, "tables", "people", "unique"), "tables.people.unique cannot be a set"),
        (changed([1, object()], "tables", "people", "unique"), r"tables.people.unique\[1\] cannot be a object"),
        (changed({1: "x"}, "tables", "people", "columns"), "tables.people.columns has a key that is no text"),
        (changed(None, "privacy", "unit"), "privacy.unit"),
        (changed("a\0b", "privacy", "unit"), "privacy.unit holds a character"),
        (changed("\ud800", "privacy", "unit"), "privacy.unit holds a character"),
        (changed(1, "privcy"), "privcy"),
        (changed(2, "dpsql"), "dpsql"),
    ],
)
def test_errors_name_the_key_and_no_line(document: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        schema_from_dict(document, ".")
    assert caught.value.message.startswith("the schema: ") and caught.value.hint


def test_a_dict_that_holds_itself() -> None:
    document = copy.deepcopy(SMALL)
    document["tables"]["people"]["columns"]["id"] = document
    with pytest.raises(SchemaError, match="nested deeper"):
        schema_from_dict(document, ".")


def test_secrets_are_not_shown() -> None:
    with pytest.raises(SchemaError) as caught:
        schema_from_dict(changed("postgresql+x://ana:s3cret@host/db", "ledger"), ".")
    assert "s3cret" not in str(caught.value)


# --- connect ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{n},{'fm'[n % 2]},{n % 50},1980-01-01" for n in range(2000)]
    (tmp_path / "people.csv").write_text("\n".join(["id,sex,cost,born", *rows]))
    return tmp_path


def test_connect(folder: Path) -> None:
    with dpsql.connect(SMALL, folder=folder, epsilon=1) as connection:
        answer = connection.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex")
        assert len(answer) == 2 and answer.loss.epsilon == 1 and connection.database == "small"
    with dpsql.connect(SMALL, folder=str(folder)) as connection:  # the ledger remembers
        assert connection.budget().charges == 1


def test_connect_from_the_working_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with dpsql.connect(SMALL) as connection:
        assert [table.name for table in connection.tables()] == ["people"]
    assert (folder / "small.ledger").exists()


def test_connect_as_a_user(folder: Path) -> None:
    document = changed({"ana": {"budget": {"epsilon": 2, "delta": 1e-8}}}, "analysts")
    with pytest.raises(dpsql.OperationalError):
        dpsql.connect(document, folder=folder)
    with dpsql.connect(document, "ana", folder=folder) as connection:
        assert connection.user == "ana"


def test_a_folder_is_for_dicts_alone(folder: Path) -> None:
    with pytest.raises(dpsql.InterfaceError, match="folder"):
        dpsql.connect("x.yaml", folder=folder)
