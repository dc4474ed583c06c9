"""A bar of arithmetic is as wide whatever stands beside it: an extreme is chosen, and its step adds no noise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpsql.session.session import Session
from tests.support.shop import open_shop


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    session, reference = open_shop(tmp_path_factory.mktemp("shop"))
    yield session
    session.close()
    reference.close()


@pytest.mark.parametrize("beside", ["max(made)", "extract(hour FROM max(made))", "median(amount)"])
def test_it_has_a_width(beside: str, session: Session) -> None:
    answer = session.execute(f"SELECT sum(amount) * 2, {beside} FROM orders GROUP BY kind")
    for row in answer.errors:
        bar = row[0]
        assert bar is not None and bar.high - bar.low > 3.9 * bar.stderr > 0
