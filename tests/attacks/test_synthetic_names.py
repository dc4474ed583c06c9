"""Synthetic tables as a way around: another's table, one that was dropped, names that stand for private rows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpsql
from dpsql.errors import Error, NotPrivate, UnknownTable
from dpsql.interfaces.dbapi.connection import Connection

pytestmark = pytest.mark.slow

SCHEMAS = Path(__file__).parents[2] / "schemas"
MAKE = "CREATE SYNTHETIC TABLE {} AS SELECT sex, birth_year FROM patients WITH (epsilon = 0.2)"


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names") / "schemas"
    shutil.copytree(SCHEMAS, folder, ignore=shutil.ignore_patterns("*.ledger*"))
    return folder / "clinic.yaml"


@pytest.fixture
def ana(schema: Path) -> Iterator[Connection]:
    with dpsql.connect(schema, user="ana") as connection:
        yield connection


@pytest.fixture
def bi(schema: Path) -> Iterator[Connection]:
    with dpsql.connect(schema, user="bi") as connection:
        yield connection


def ask(connection: Connection, sql: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []


def release_of(connection: Connection) -> int:
    return next(made.release for made in connection._session.dataset.ledger.objects.list_objects("ana"))  # type: ignore[union-attr]


def test_another_account_has_no_part_in_it(ana: Connection, bi: Connection) -> None:
    ask(ana, MAKE.format("mine"))
    number = release_of(ana)
    for sql in ("SELECT * FROM mine", "SELECT * FROM public.mine", f'SELECT * FROM "dpsql_made"."{number}"',
                f"SELECT * FROM dpsql_made.mine WHERE {number} = {number}", "DROP SYNTHETIC TABLE mine",
                "TABLE mine", "SELECT (SELECT COUNT(*) FROM mine)"):  # fmt: skip
        with pytest.raises(Error):
            ask(bi, sql)
    assert ask(bi, "SHOW SYNTHETIC TABLES") == [] and ("mine", "synthetic") not in ask(bi, "SHOW TABLES")
    assert ask(bi, "SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 'mine'") == [(0,)]
    assert len(ask(ana, "SELECT * FROM mine LIMIT 3")) == 3
    before = bi.budget().charges
    ask(bi, MAKE.format("mine"))  # her own, at her own price, though the release is stored
    assert bi.budget().charges == before + 1
    ask(bi, "DROP SYNTHETIC TABLE mine")
    assert len(ask(ana, "SELECT * FROM mine LIMIT 3")) == 3
    ask(ana, "DROP SYNTHETIC TABLE mine")


def test_what_is_dropped_is_gone_for_every_session(schema: Path, ana: Connection) -> None:
    ask(ana, MAKE.format("gone"))
    number = release_of(ana)
    with dpsql.connect(schema, user="ana") as other:
        assert len(ask(other, "SELECT * FROM gone LIMIT 3")) == 3
        ask(ana, "DROP SYNTHETIC TABLE gone")
        for sql in (
            "SELECT * FROM gone LIMIT 3",
            "SELECT COUNT(*) FROM gone",
            f'SELECT * FROM "dpsql_made"."{number}"',
        ):
            with pytest.raises(UnknownTable):
                ask(other, sql)
            with pytest.raises(UnknownTable):
                ask(ana, sql)


@pytest.mark.parametrize("name", ['"visits"', "Visits", '"VISITS"', "wards", "pg_tables", "pg_class"])
def test_no_name_is_taken_from_the_owner(ana: Connection, name: str) -> None:
    before = ana.budget().charges
    with pytest.raises(Error, match="taken"):
        ask(ana, MAKE.format(name))
    assert ana.budget().charges == before


def test_a_name_does_not_make_private_rows_public(ana: Connection) -> None:
    ask(ana, MAKE.format("people"))
    for sql in (
        "WITH people AS (SELECT * FROM patients) SELECT * FROM people",
        "SELECT * FROM people JOIN patients USING (birth_year)",
        "SELECT p.sex, (SELECT MAX(birth_year) FROM patients WHERE sex = p.sex) FROM people p UNION ALL "
        "SELECT sex, birth_year FROM patients",
        "SELECT * FROM (SELECT * FROM patients) AS people",
    ):
        with pytest.raises(Error) as caught:
            ask(ana, sql)
        assert isinstance(caught.value, NotPrivate) or caught.value.sqlstate in ("0A000", "42000"), sql
    assert ask(ana, "WITH people AS (SELECT 1 AS x) SELECT * FROM people") == [(1,)]
    before = ana.budget().charges
    ask(ana, "SELECT COUNT(*) FROM patients WHERE birth_year IN (SELECT DISTINCT birth_year FROM people)")
    assert ana.budget().charges == before + 1
    ask(ana, "DROP SYNTHETIC TABLE people")
