"""Who runs a release, among all processes: in SQLite and in PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from dpsql.ledger.base import Account, Binding, ChargedStatement, ReleaseRequest, RunLease
from dpsql.ledger.ledger import SqlLedger
from dpsql.privacy.loss import Loss
from tests.support.ledgers import Shelf

DATASET = Account("dataset", Fraction(8), Fraction(0))
NOW = datetime(2025, 1, 2, tzinfo=UTC)


@pytest.fixture
def ledger(shelf: Shelf) -> Iterator[SqlLedger]:
    """With one release that was paid for, whose number is 1."""
    ledger = shelf.open(Binding("row", "add_remove", 1), DATASET)
    ledger.register_version("files", "facts")
    loss = Loss(Fraction(1), Fraction(1, 2), Fraction(0))
    (claim,) = ledger.purchase(DATASET, [ReleaseRequest("p", 1, loss, (Fraction(1),))], ChargedStatement("SELECT"), NOW)
    assert claim.release == 1
    yield ledger


def running(ledger: SqlLedger) -> RunLease:
    found = ledger.find_run(1)
    assert found is not None
    return found


def test_the_first_run_has_the_lease_and_the_others_see_it(ledger: SqlLedger) -> None:
    assert ledger.find_run(1) is None
    first = ledger.begin_run(1, "ana", 60)
    assert (first.holder, first.elapsed, first.ended, first.is_over) == ("ana", 0, None, False)
    other = ledger.begin_run(1, "ben", 60)
    assert other.holder == "ana" and 0 <= other.elapsed < 60 * 10**6 and 0 < other.left <= 60 * 10**6


def test_of_many_at_once_one_has_it(ledger: SqlLedger) -> None:
    with ThreadPoolExecutor(8) as pool:
        holders = {run.holder for run in pool.map(lambda i: ledger.begin_run(1, f"process {i}", 60), range(16))}
    assert len(holders) == 1


def test_what_is_not_kept_is_taken_over(ledger: SqlLedger) -> None:
    ledger.begin_run(1, "ana", 0.02)
    time.sleep(0.05)
    assert running(ledger).is_over
    assert ledger.begin_run(1, "ben", 60).holder == "ben"
    ledger.renew_run(1, "ana", 3600)
    ledger.end_run(1, "ana")
    assert (running(ledger).holder, running(ledger).ended) == ("ben", None), "ana's is gone"
    assert running(ledger).left < 61 * 10**6


def test_what_is_kept_is_not(ledger: SqlLedger) -> None:
    ledger.begin_run(1, "ana", 0.02)
    ledger.renew_run(1, "ana", 60)
    time.sleep(0.05)
    assert ledger.begin_run(1, "ben", 60).holder == "ana"


def test_a_failed_run_is_followed_by_another(ledger: SqlLedger) -> None:
    ledger.begin_run(1, "ana", 60)
    ledger.end_run(1, "ana")
    assert running(ledger).is_over and (running(ledger).ended or -1) >= 0
    again = ledger.begin_run(1, "ben", 60)
    assert (again.holder, again.ended) == ("ben", None)


def test_what_is_stored_is_not_run(ledger: SqlLedger) -> None:
    ledger.begin_run(1, "ana", 60)
    time.sleep(0.01)
    ledger.store_body(1, b"rows")
    ended = running(ledger).ended
    assert ended is not None and ended >= 10_000, "a run ends where its release is stored, in one transaction"
    for holder in ("ana", "ben"):
        told = ledger.begin_run(1, holder, 60)
        assert (told.holder, told.ended) == ("ana", ended)
    time.sleep(0.01)
    ledger.store_body(1, b"later")
    ledger.end_run(1, "ana")
    assert running(ledger).ended == ended, "it ends once"


def test_what_was_stored_without_a_run_is_not_run(ledger: SqlLedger) -> None:
    ledger.store_body(1, b"rows")
    assert ledger.begin_run(1, "ana", 60).holder != "ana" and ledger.find_run(1) is None


def test_a_clock_that_is_turned_back_blocks_no_run(shelf: Shelf, ledger: SqlLedger) -> None:
    ledger.begin_run(1, "ana", 60)
    shelf.alter("UPDATE run SET started = started + 7200000000, until = until + 7200000000")
    assert ledger.begin_run(1, "ben", 60).holder == "ben"
