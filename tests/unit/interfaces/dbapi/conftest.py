"""A copy of the worked schemas in a folder of its own: opening one makes a ledger beside it."""

import shutil
from pathlib import Path

import pytest

import dpsql

SCHEMAS = Path(__file__).parents[4] / "schemas"


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(SCHEMAS, tmp_path / "schemas", ignore=shutil.ignore_patterns("*.ledger*"))
    return tmp_path / "schemas"


@pytest.fixture
def connection(folder):
    with dpsql.connect(folder / "clinic.yaml", user="ana") as connection:
        yield connection


@pytest.fixture
def cursor(connection):
    with connection.cursor() as cursor:
        yield cursor
