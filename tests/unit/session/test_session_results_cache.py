"""Which answers a session remembers, to make them once of the same releases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.session import query
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.postprocess import sandbox
from dpsql.session.session import Balance, Session
from tests.support.shop import open_shop

BY_REGION = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"


@pytest.fixture()
def shop(tmp_path: Path) -> Iterator[Session]:
    session, reference = open_shop(tmp_path)
    yield session
    session.dataset.close()
    reference.close()


@pytest.mark.parametrize(("most", "times"), [(3, 4), (4, 1)])
def test_no_answer_of_more_rows_is_remembered(
    most: int, times: int, shop: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    run = sandbox.run_query
    monkeypatch.setattr(query.sandbox, "run_query", lambda sql, *more: (made.append(sql), run(sql, *more))[1])
    monkeypatch.setattr(query, "MAX_CACHED_ROWS", most)
    assert [len(shop.execute(BY_REGION).rows) for _ in range(4)] == [4] * 4
    assert len(made) == times, "once, when it is bought"


def test_what_is_left_is_reported_as_the_statement_leaves_it(shop: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a pilot was paid for before, and only what follows it is charged."""
    monkeypatch.setattr(Balance, "left_text", property(lambda balance: f"{balance.charges} charges"))
    for setting in ("epsilon = 0.1", "max_relative_error = 0.5", "max_relative_error = 0.1"):
        shop.execute(f"SET {setting}")
        charges = shop.budget().charges
        for _ in range(2):
            shop.execute(BY_REGION)
            assert shop.left_text() == shop.budget().left_text
        assert shop.budget().charges > charges


def test_what_a_catalog_says_beside_a_release_is_read_each_time(shop: Session) -> None:
    sql = "SELECT setting, (SELECT COUNT(*) FROM people) AS n FROM pg_settings WHERE name = 'application_name'"
    for name in ("psql", "psql", "psql", "another"):
        shop.execute(f"SET application_name = '{name}'")
        assert shop.execute(sql).rows == [(name, 240)]
    assert shop.budget().charges == 1


def test_two_public_tables_of_one_alias_are_not_taken_for_each_other(tmp_path: Path) -> None:
    """The text after the split is the same for both; their columns have other types."""
    one, other = "SELECT t.x FROM numbers t", "SELECT t.x FROM words t"
    session = _with_public_tables(tmp_path)
    described = [str(session.describe(sql)[0].type) for sql in (one, other)]
    session.dataset.close()
    assert described == ["integer", "text"]


def _with_public_tables(folder: Path) -> Session:
    with duckdb.connect(str(folder / "d.duckdb")) as connection:
        connection.execute("CREATE TABLE numbers AS SELECT 1 AS x; CREATE TABLE words AS SELECT 'a' AS x")
        connection.execute("CREATE TABLE people AS SELECT 1::BIGINT AS uid")
    (folder / "d.yaml").write_text(
        "dpsql: 1\nengine: duckdb:///d.duckdb\nprivacy: {unit: people.uid, budget: {epsilon: 1, delta: 0}}\n"
        "tables:\n"
        "  people: {unit: uid, columns: {uid: {type: bigint}}}\n"
        "  numbers: {public: true, columns: {x: {type: integer}}}\n"
        "  words: {public: true, columns: {x: {type: text}}}\n"
    )
    return Session(open_dataset(folder / "d.yaml"))
