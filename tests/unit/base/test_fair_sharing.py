"""Answers that clients hold are counted in bytes, as long as somebody has them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.base.fair_sharing import RESULT_QUOTA, UNCOUNTED_BYTES, MemoryQuota
from dpsql.errors import OperationalError
from dpsql.session.session import Session
from tests.support.shop import open_shop

MB = 1 << 20
WIDE = "SELECT repeat('x', 100000) || g AS x FROM generate_series(1, 20) s(g)"  # 2 MB


def rows(size: int) -> list[tuple[str]]:
    return [("x" * 10_000,)] * (size // 10_000)


def test_rows_are_counted_until_nobody_has_them() -> None:
    holding = MemoryQuota(8 * MB)
    small = rows(UNCOUNTED_BYTES // 2)
    assert holding.count_rows("ana", small) is small and holding.used_bytes == 0
    kept = holding.count_rows("ana", rows(2 * MB))
    assert kept == rows(2 * MB) and 2 * MB <= holding.used_bytes < 2.2 * MB
    del kept
    gc.collect()
    assert holding.used_bytes == 0 and not holding._used_by_account


def test_an_account_has_half_of_what_others_leave() -> None:
    holding = MemoryQuota(8 * MB)
    kept = [holding.count_rows("ana", rows(MB)) for _ in range(3)]
    with pytest.raises(OperationalError, match="not read to their end") as caught:
        holding.count_rows("ana", rows(MB))
    assert caught.value.sqlstate == "53200"
    others = [holding.count_rows("bob", rows(MB)) for _ in range(2)]
    with pytest.raises(OperationalError):
        holding.count_rows("bob", rows(MB))
    del kept[1:]
    assert holding.count_rows("ana", rows(MB)) and len(others) == 2


def test_without_a_limit_nothing_is_counted() -> None:
    holding, large = MemoryQuota(), rows(MB)
    assert holding.count_rows("ana", large) is large and holding.used_bytes == 0


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    opened = open_shop(tmp_path)[0]
    RESULT_QUOTA.max_bytes = 20 * MB
    yield opened
    RESULT_QUOTA.max_bytes = None
    opened.close()


def test_cursors_cannot_take_all_memory(session: Session) -> None:
    with pytest.raises(OperationalError) as caught:
        for number in range(20):
            session.execute(f"DECLARE c{number} CURSOR WITH HOLD FOR {WIDE}")
    assert caught.value.sqlstate == "53200" and 4 * MB < RESULT_QUOTA.used_bytes <= 10 * MB
    session.execute("CLOSE ALL")
    gc.collect()
    assert RESULT_QUOTA.used_bytes == 0
    assert len(session.execute(WIDE).rows) == 20


def test_what_is_remembered_is_small(session: Session) -> None:
    released = "(SELECT COUNT(*) AS n FROM orders) t, generate_series(1, 50) s(g)"
    counted = "SELECT t.n, repeat('x', {}) || g AS x FROM " + released
    for size, kept in ((100, 1), (100_000, 0)):
        session.cache.results._values.clear()
        session.execute(counted.format(size))
        session.execute(counted.format(size))
        assert len(session.cache.results) == kept
