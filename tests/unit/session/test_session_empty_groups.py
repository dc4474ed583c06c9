"""A question that was paid for stays free, however empty groups are set when it is asked again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.privacy.sampling import Integers
from dpsql.session.postprocess.empty_groups import NOTHING_SELECTED
from dpsql.session.query import ALL_LISTED_NOTICE
from dpsql.session.session import Session
from tests.support.shop import Silence, open_shop
from tests.unit.session.postprocess.test_empty_groups import SHOPS, STATEMENTS, groups_of, open_sales

COUNTED = STATEMENTS[0]
SUMMED = "SELECT shop, SUM(gain) FROM sales GROUP BY shop ORDER BY shop"
MIDDLE = "SELECT shop, MEDIAN(price) FROM sales GROUP BY shop ORDER BY shop"
FILTERED = "SELECT SUM(price) FROM sales WHERE shop IN (SELECT shop FROM sales GROUP BY shop HAVING COUNT(*) < 99999)"


@pytest.fixture
def open_session(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    opened: list[Session] = []

    def open_next(sampler: Any = None, **settings: str) -> Session:
        opened.append(open_sales(tmp_path / str(len(opened)), sampler or Silence()))
        for name, value in settings.items():
            opened[-1].execute(f"SET {name.replace('__', '.')} = {value}")
        return opened[-1]

    yield open_next
    for session in opened:
        session.dataset.close()


@pytest.fixture(params=["auto", "gaussian", "laplace"])
def session(open_session: Callable[..., Session], request: pytest.FixtureRequest) -> Session:
    return open_session(noise=request.param)


def is_free(session: Session, sql: str) -> bool:
    """As EXPLAIN tells it."""
    return session.explain(sql).offers[0].paid


@pytest.mark.parametrize("sql", STATEMENTS)
def test_what_was_paid_for_while_all_groups_were_listed_is_free(session: Session, sql: str) -> None:
    session.execute("SET empty_groups = show")
    shown = session.execute(sql)
    assert shown.loss.rho and groups_of(shown) == list(SHOPS)
    session.execute("SET empty_groups = hide")
    has_count = "COUNT(*)" in sql
    assert is_free(session, sql) and (ALL_LISTED_NOTICE in session.explain(sql).notices) == (not has_count)
    again = session.execute(sql)
    assert not again.loss.rho and (ALL_LISTED_NOTICE in again.notices) == (not has_count)
    assert again.rows == [row for row in shown.rows if not has_count or row[0] != "c"]
    assert not has_count or not any("paid for" in notice for notice in again.notices)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_what_was_paid_for_with_counts_lists_all_groups_for_free(session: Session, sql: str) -> None:
    hidden = session.execute(sql)
    assert hidden.loss.rho and groups_of(hidden) == ["a", "b"]
    session.execute("SET empty_groups = show")
    assert is_free(session, sql) and not any("left out" in notice for notice in session.explain(sql).notices)
    shown = session.execute(sql)
    assert not shown.loss.rho and groups_of(shown) == list(SHOPS) and shown.rows[:2] == hidden.rows
    assert not any("left out" in notice for notice in shown.notices)
    session.execute("SET empty_groups = hide")
    assert session.execute(sql).rows == hidden.rows


def test_a_count_that_is_asked_for_as_well_leaves_groups_out(session: Session) -> None:
    session.execute("SET empty_groups = show")
    session.execute(MIDDLE)
    session.execute("SET empty_groups = hide")
    counted = session.execute("SELECT shop, MEDIAN(price), COUNT(*) FROM sales GROUP BY shop ORDER BY shop")
    assert counted.loss.rho and groups_of(counted) == ["a", "b"] and ALL_LISTED_NOTICE not in counted.notices


def test_what_is_paid_for_in_part_is_charged_as_it_is_set(session: Session) -> None:
    session.execute("SET empty_groups = show")
    session.execute(MIDDLE)
    session.execute("SET empty_groups = hide")
    both = MIDDLE.replace("MEDIAN(price)", "MEDIAN(price), MEDIAN(gain)")
    assert not is_free(session, both)
    answer = session.execute(both)
    assert answer.loss.rho and groups_of(answer) == ["a", "b"]


def test_a_filter_by_groups_that_were_left_is_no_filter_by_all(open_session: Callable[..., Session]) -> None:
    old, new = open_session(empty_groups="show"), open_session()
    assert old.execute(FILTERED).loss.rho and new.execute(FILTERED).loss.rho
    old.execute("SET empty_groups = hide")
    again = old.execute(FILTERED)
    assert not again.loss.rho and ALL_LISTED_NOTICE in again.notices and is_free(old, FILTERED)
    new.execute("SET empty_groups = show")
    assert not is_free(new, FILTERED) and new.execute(FILTERED).loss.rho


def test_what_an_account_asks_again_with_more_epsilon_is_asked_as_it_is_set(session: Session) -> None:
    session.execute("SET empty_groups = show")
    session.execute(SUMMED)
    session.execute("SET empty_groups = hide")
    session.execute("SET epsilon = 2")
    assert not is_free(session, SUMMED)
    answer = session.execute(SUMMED)
    assert answer.loss.rho and groups_of(answer) == ["a", "b"]


def test_a_pilot_is_asked_as_it_is_set(open_session: Callable[..., Session]) -> None:
    session = open_session(max_relative_error="0.2", empty_groups="show")
    sql = "SELECT shop, SUM(price) FROM sales WHERE shop IN ('a', 'b') GROUP BY shop ORDER BY shop"
    session.execute(sql)
    session.execute("SET empty_groups = hide")
    assert not is_free(session, sql) and session.execute(sql).loss.rho


class Failing(Silence):
    """Fails once: the release is paid for, and not stored."""

    def __init__(self) -> None:
        self.failures = 1

    def gaussian(self, n: int, sigma: Fraction) -> Integers:
        if self.failures:
            self.failures = 0
            raise MemoryError
        return super().gaussian(n, sigma)


@pytest.mark.parametrize(("first", "then", "free"), [("show", "hide", False), ("hide", "show", True)])
def test_what_was_paid_for_and_never_ran_costs_what_explain_says(
    open_session: Callable[..., Session], first: str, then: str, free: bool
) -> None:
    session = open_session(Failing(), noise="gaussian", empty_groups=first)
    with pytest.raises(dpsql.OperationalError):
        session.execute(SUMMED)
    session.execute(f"SET empty_groups = {then}")
    assert is_free(session, SUMMED) == free
    assert bool(session.execute(SUMMED).loss.rho) == (not free)
    session.execute(f"SET empty_groups = {first}")  # what was paid for is redeemed
    assert is_free(session, SUMMED) and not session.execute(SUMMED).loss.rho


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT note, COUNT(*) FROM orders WHERE qty < -4 AND qty > 19 GROUP BY note", []),
        (
            "SELECT COUNT(*) FROM (SELECT note, COUNT(*) FROM orders WHERE qty < -4 AND qty > 19 GROUP BY note) t",
            [(0,)],
        ),
    ],
)
def test_an_answer_says_that_no_group_was_selected(tmp_path: Path, sql: str, rows: list[tuple[object, ...]]) -> None:
    opened = open_shop(tmp_path)[0]
    for _ in range(2):  # again, from the store
        answer = opened.execute(sql)
        assert answer.rows == rows and NOTHING_SELECTED in answer.notices
    assert NOTHING_SELECTED not in opened.execute("SELECT city, COUNT(*) FROM orders GROUP BY city").notices
    opened.close()
