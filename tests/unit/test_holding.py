"""Answers that clients hold are counted in bytes, as long as somebody has them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.errors import OperationalError
from dpsql.holding import HOLDING, SMALL, Holding
from dpsql.session import Session
from tests.support.shop import open_shop

MB = 1 << 20
WIDE = "SELECT repeat('x', 100000) || g AS x FROM generate_series(1, 20) s(g)"  # 2 MB


def rows(size: int) -> list[tuple[str]]:
    return [("x" * 10_000,)] * (size // 10_000)


def test_rows_are_counted_until_nobody_has_them() -> None:
    holding = Holding(8 * MB)
    small = rows(SMALL // 2)
    assert holding.counted("ana", small) is small and holding.held == 0
    kept = holding.counted("ana", rows(2 * MB))
    assert kept == rows(2 * MB) and 2 * MB <= holding.held < 2.2 * MB
    del kept
    gc.collect()
    assert holding.held == 0 and not holding._held


def test_an_account_has_half_of_what_others_leave() -> None:
    holding = Holding(8 * MB)
    kept = [holding.counted("ana", rows(MB)) for _ in range(3)]
    with pytest.raises(OperationalError, match="not read to their end") as caught:
        holding.counted("ana", rows(MB))
    assert caught.value.sqlstate == "53200"
    others = [holding.counted("bob", rows(MB)) for _ in range(2)]
    with pytest.raises(OperationalError):
        holding.counted("bob", rows(MB))
    del kept[1:]
    assert holding.counted("ana", rows(MB)) and len(others) == 2


def test_without_a_limit_nothing_is_counted() -> None:
    holding, large = Holding(), rows(MB)
    assert holding.counted("ana", large) is large and holding.held == 0


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    opened = open_shop(tmp_path)[0]
    HOLDING.most = 20 * MB
    yield opened
    HOLDING.most = None
    opened.close()


def test_cursors_cannot_take_all_memory(session: Session) -> None:
    with pytest.raises(OperationalError) as caught:
        for number in range(20):
            session.execute(f"DECLARE c{number} CURSOR WITH HOLD FOR {WIDE}")
    assert caught.value.sqlstate == "53200" and 4 * MB < HOLDING.held <= 10 * MB
    session.execute("CLOSE ALL")
    gc.collect()
    assert HOLDING.held == 0
    assert len(session.execute(WIDE).rows) == 20


def test_what_is_remembered_is_small(session: Session) -> None:
    released = "(SELECT COUNT(*) AS n FROM orders) t, generate_series(1, 50) s(g)"
    counted = "SELECT t.n, repeat('x', {}) || g AS x FROM " + released
    for size, kept in ((100, 1), (100_000, 0)):
        session.memory.answered._values.clear()
        session.execute(counted.format(size))
        session.execute(counted.format(size))
        assert len(session.memory.answered) == kept
