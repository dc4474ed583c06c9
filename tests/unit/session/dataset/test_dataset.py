"""Opening a schema: what the owner asked for is done."""

from __future__ import annotations

from pathlib import Path

import duckdb

from dpsql.owner.administration import register_data_version
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from tests.support.shop import DATA, SCHEMA, Silence


def test_answers_past_their_retention_are_dropped_when_the_schema_is_opened(tmp_path: Path) -> None:
    """Those of data versions before the last: one that was charged long ago, and not one of today."""
    path = tmp_path / "shop.yaml"
    path.write_text(SCHEMA + "answers: {retention: 30 days}\n", encoding="utf-8")
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute(DATA)
    dataset = open_dataset(path)
    session = Session(dataset, sampler=Silence())
    long_ago = session.clock().replace(year=2001)
    session.execute("SELECT COUNT(*) FROM people")
    session.clock = lambda: long_ago
    session.execute("SELECT COUNT(*) FROM orders")
    assert [one.state for one in dataset.ledger.list_releases()] == ["stored", "stored"]
    dataset.close()
    assert register_data_version(path) == 2
    dataset = open_dataset(path)
    assert [one.state for one in dataset.ledger.list_releases()] == ["stored", "void"]
    dataset.close()
