"""A folder that an earlier version wrote still works: ledger, stored releases, receipts, snapshots, artifacts.

`ledger_0_1.tar.gz` holds a small shop that version 0.1.0 opened and queried, before the package was split into
its ten packages: schema, DuckDB file, ledger, snapshots, and in `answers.json` what was answered then.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.ledger.audit import run_audit
from dpsql.session.dataset.dataset import open_dataset

ARCHIVE = Path(__file__).with_name("ledger_0_1.tar.gz")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    snapshots = tmp_path / "shop.ledger.snapshots"
    for path in (tmp_path / "shop.ledger", snapshots, *snapshots.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return tmp_path


MORE_EXACT_NOW = ("SELECT COUNT(DISTINCT product) FROM orders WHERE price > 10",)
"""What a later version answers with less noise than the stored release has, and charges: no unit is taken to bring more
products than there are. All else is free."""


def answers(shop: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((shop / "answers.json").read_text(encoding="utf-8"))
    return read


def as_texts(rows: list[Any]) -> list[list[str]]:
    return [[str(value) for value in row] for row in rows]


def test_stored_releases_are_served_with_their_receipts_and_nothing_is_charged(shop: Path) -> None:
    with dpsql.connect(shop / "shop.yaml") as connection:
        cursor = connection.cursor()
        statements = answers(shop)["statements"]
        assert {sql for sql, _, _ in statements}.issuperset(MORE_EXACT_NOW)
        for sql, rows, receipts in statements:
            if sql in MORE_EXACT_NOW:
                continue
            cursor.execute(sql)
            if sql.startswith("SHOW MODEL"):  # it has as many digits now as its errors leave
                shown = [(name, *map(float, figures)) for name, *figures in as_texts(cursor.fetchall())]
                assert shown == [(name, *(pytest.approx(float(one), rel=0.01) for one in rest)) for name, *rest in rows]
                continue
            assert as_texts(cursor.fetchall()) == rows, sql
            assert [str(receipt) for receipt in cursor.receipts] == receipts, sql
        cursor.execute("SHOW BUDGET")
        assert as_texts(cursor.fetchall()) == answers(shop)["budget"]


@pytest.mark.parametrize("sql", MORE_EXACT_NOW)
def test_an_answer_with_less_noise_than_the_stored_one_is_charged(shop: Path, sql: str) -> None:
    (stored,) = [rows for statement, rows, _ in answers(shop)["statements"] if statement == sql]
    with dpsql.connect(shop / "shop.yaml") as connection:
        cursor = connection.cursor()
        cursor.execute(sql)
        rows, errors = cursor.fetchall(), cursor.errors
        assert cursor.loss.rho and len(rows) == len(stored)
        cursor.execute(sql)
        assert cursor.fetchall() == rows and not cursor.loss.rho and cursor.errors == errors


def test_the_chains_are_intact_and_a_new_charge_extends_them(shop: Path) -> None:
    with dpsql.connect(shop / "shop.yaml") as connection:
        connection.cursor().execute("SELECT COUNT(*) FROM customers WHERE age > 40")
    dataset = open_dataset(shop / "shop.yaml")
    try:
        assert run_audit(dataset.ledger).is_clean
        assert dataset.ledger.verify_chains() == ()
    finally:
        dataset.close()


def test_a_model_and_a_synthetic_table_can_be_read(shop: Path) -> None:
    with dpsql.connect(shop / "shop.yaml") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT COUNT(*) FROM likeness")
        assert int(cursor.fetchone()[0]) > 0
        cursor.execute("SELECT PREDICT(m, 40, 'bern')")
        assert 0 <= float(cursor.fetchone()[0]) <= 1


def test_a_snapshot_of_a_text_file_is_read(shop: Path) -> None:
    with dpsql.connect(shop / "shop.yaml") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT canton FROM cities ORDER BY canton")
        assert as_texts(cursor.fetchall()) == [["BE"], ["BS"], ["GR"]]
