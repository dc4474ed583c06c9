"""Killed in the middle of a charge, or forked: in SQLite and in PostgreSQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from dpsql.ledger.base import Account, Binding, ChargedStatement, ReleaseRequest
from dpsql.ledger.ledger import SqlLedger
from dpsql.privacy.loss import Loss
from tests.support.ledgers import Shelf, charges

pytestmark = pytest.mark.slow

BINDING = Binding("row", "add_remove", 1)
DATASET = Account("dataset", Fraction(10**6), Fraction(0))
ANA = Account("ana", Fraction(10**6), Fraction(0))
NOW = datetime(2025, 1, 2, tzinfo=UTC)


def ask(plan: str) -> ReleaseRequest:
    return ReleaseRequest(plan, 1, Loss(Fraction(1), Fraction(1, 2), Fraction(0)), (Fraction(1),))


@pytest.fixture
def ledger(shelf: Shelf) -> SqlLedger:
    """With one charge."""
    ledger = shelf.open(BINDING, DATASET)
    ledger.register_version("files", "facts")
    ledger.purchase(ANA, [ask("p")], ChargedStatement("SELECT 1"), NOW)
    return ledger


def test_a_forked_process_may_use_its_parents_ledger(ledger: SqlLedger) -> None:
    child = os.fork()
    if child == 0:
        try:
            ledger.purchase(ANA, [ask("child")], ChargedStatement("SELECT 2"), NOW)
        finally:
            os._exit(0)
    ledger.purchase(ANA, [ask("parent")], ChargedStatement("SELECT 3"), NOW)
    os.waitpid(child, 0)
    assert ledger.get_balance(ANA).charges == 3
    assert ledger.verify_chains() == ()


CHARGING = """
import os, signal, sys
from datetime import UTC, datetime
from fractions import Fraction
from dpsql.ledger.base import Account, Binding, ChargedStatement, ReleaseRequest
from dpsql.ledger.open import open_ledger
from dpsql.privacy.loss import Loss

url, kill_at = sys.argv[1], int(sys.argv[2])
calls = 0
def entropy(size):
    global calls
    calls += 1
    if calls == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return os.urandom(size)

dataset = Account("dataset", Fraction(10**6), Fraction(0))
ana = Account("ana", Fraction(10**6), Fraction(0))
ledger = open_ledger(url, Binding("row", "add_remove", 1), dataset, entropy=entropy)
loss = Loss(Fraction(1), Fraction(1, 2), Fraction(0))
for i in range(10**6):
    requests = [ReleaseRequest(f"{os.getpid()} {i} {step}", 1, loss, (Fraction(1),)) for step in range(3)]
    ledger.purchase(ana, requests, ChargedStatement(f"SELECT {i}"), datetime.now(UTC))
    print(i, flush=True)
"""


def run_and_kill(url: str, *, kill_at: int = 0, after: float | None = None) -> int:
    """Charge in another process until it is killed; how many charges it was told were made."""
    command = [sys.executable, "-c", CHARGING, url, str(kill_at)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = 0
        if after is not None:
            assert process.stdout.readline()  # it is at work
            told = 1
            time.sleep(after)
            process.send_signal(signal.SIGKILL)
        told += len(process.stdout.read().splitlines())
    assert process.returncode == -signal.SIGKILL
    return told


def whole_charges(ledger: SqlLedger) -> int:
    assert ledger.verify_chains() == ()
    own, parent = charges(ledger, ANA)[1:], charges(ledger, DATASET)[1:]
    assert [entry.charges for entry in own] == [entry.charges for entry in parent]
    assert all(len(entry.charges) == 3 for entry in own)
    with ledger.database.read() as db:
        releases = db.execute("SELECT count(*) FROM release")[0]
        payments = db.execute("SELECT count(*) FROM payment")[0]
    assert releases == (3 * len(own) + 1,) and payments == (6 * len(own) + 2,)
    return len(own)


@pytest.mark.parametrize(("kill_at", "made"), [(1, 0), (2, 0), (3, 1), (4, 1)])
def test_killed_between_the_two_entries_of_a_charge_it_was_not_made(
    shelf: Shelf, ledger: SqlLedger, kill_at: int, made: int
) -> None:
    """Each charge draws a nonce for the analyst's entry and then one for the dataset's."""
    assert run_and_kill(shelf.url(), kill_at=kill_at) == made
    assert whole_charges(ledger) == made


def test_killed_at_any_time_every_charge_is_complete_and_none_that_was_reported_is_lost(
    shelf: Shelf, ledger: SqlLedger
) -> None:
    told = made = 0
    for i in range(8):
        told += run_and_kill(shelf.url(), after=0.013 * i)
        before, made = made, whole_charges(ledger)
        assert told <= made <= told + i + 1  # at most the last one of each run was made and not told
        assert made > before
