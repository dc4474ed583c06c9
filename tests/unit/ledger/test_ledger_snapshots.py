"""What a statement reads is one snapshot, in one transaction; and figures that are remembered are those that stand."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from dpsql.errors import IntegrityError, InternalError
from dpsql.ledger.backend import Transaction
from dpsql.ledger.base import Account, Binding, ChargedStatement, ReleaseRequest
from dpsql.ledger.ledger import SqlLedger
from dpsql.privacy.loss import Loss
from tests.support.ledgers import Shelf

BINDING = Binding("patients.patient_id", "add_remove", 1)
DATASET = Account("dataset", Fraction(8), Fraction(1, 10**7))
ANA = Account("ana", Fraction(1), Fraction(1, 10**8))
LOSS = Loss(Fraction(1, 10), Fraction(1, 200), Fraction(0))
NOW = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def ledger(shelf: Shelf) -> SqlLedger:
    opened = shelf.open(BINDING, DATASET)
    opened.register_version("files", "facts")
    return opened


def charge(ledger: SqlLedger, plan: str) -> int:
    (claim,) = ledger.purchase(ANA, [ReleaseRequest(plan, 1, LOSS, (Fraction(10),))], ChargedStatement("SELECT"), NOW)
    return claim.release


class Counting:
    """The ledger's database, and how many transactions it began."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._inner, self.began = ledger.database, 0
        self.id = ledger.database.id
        self.identity = ledger.database.identity

    def read(self) -> AbstractContextManager[Transaction]:
        self.began += 1
        return self._inner.read()

    def write(self) -> AbstractContextManager[Transaction]:
        self.began += 1
        return self._inner.write()

    def close(self) -> None:
        pass


def counted(ledger: SqlLedger) -> tuple[SqlLedger, Counting]:
    counting = Counting(ledger)
    return SqlLedger(counting, ledger.binding, ledger.dataset, ledger.others), counting


def test_what_is_read_together_is_one_transaction(ledger: SqlLedger) -> None:
    release = charge(ledger, "p")
    ledger.store_body(release, b"rows")
    books, counting = counted(ledger)
    with books.read_snapshot():
        version, balance = books.current_version(), books.get_balance(ANA)
        served = books.find_entitlements(ANA, [ReleaseRequest("p", 1, LOSS, (Fraction(10),))], NOW)
    assert counting.began == 1
    assert version is not None and version.number == 1 and balance.charges == 1
    assert served is not None and served[0].body == b"rows"
    books.get_balance(ANA)
    assert counting.began == 2, "and behind it each is its own again"


def test_nothing_is_written_while_it_is_read(ledger: SqlLedger) -> None:
    release = charge(ledger, "p")
    with pytest.raises(InternalError, match="the ledger is read"), ledger.read_snapshot():
        ledger.store_body(release, b"rows")
    assert ledger.read_body(release) is None
    ledger.store_body(release, b"rows")
    assert ledger.read_body(release) == b"rows"


def test_a_thread_reads_its_own_snapshot(ledger: SqlLedger) -> None:
    books, counting = counted(ledger)
    with books.read_snapshot():
        other = threading.Thread(target=books.get_balance, args=(ANA,))
        other.start()
        other.join()
    assert counting.began == 2


def test_an_error_ends_the_snapshot(ledger: SqlLedger) -> None:
    with pytest.raises(ZeroDivisionError), ledger.read_snapshot():
        raise ZeroDivisionError
    charge(ledger, "p")
    assert ledger.get_balance(ANA).charges == 1


def test_figures_follow_the_charges_of_all_processes(shelf: Shelf, ledger: SqlLedger) -> None:
    other = shelf.open(BINDING, DATASET)
    assert ledger.get_balance(ANA).charges == 0
    for number in range(1, 4):
        charge(other, f"plan {number}")
        balance = ledger.get_balance(ANA)
        assert balance == ledger.get_balance(ANA) == shelf.open(BINDING, DATASET).get_balance(ANA)
        assert (balance.charges, balance.pure_epsilon) == (number, number * LOSS.epsilon if LOSS.epsilon else None)


def test_figures_are_those_of_the_requested_terms(ledger: SqlLedger) -> None:
    charge(ledger, "p")
    less = Account("ana", Fraction(1, 2), Fraction(1, 10**8))
    assert ledger.get_balance(ANA).epsilon == 1
    assert ledger.get_balance(less).epsilon == Fraction(1, 2)
    assert ledger.get_balance(ANA).epsilon == 1


@pytest.mark.parametrize(
    "edit", ["UPDATE account SET entries = entries - 1", "UPDATE entry SET content = replace(content, '1/10', '1/20')"]
)
def test_an_altered_end_is_seen_also_by_a_reader_of_before(shelf: Shelf, ledger: SqlLedger, edit: str) -> None:
    charge(ledger, "p")
    assert ledger.get_balance(ANA).charges == 1
    shelf.tamper(edit)
    with pytest.raises(IntegrityError, match="were altered"):
        ledger.get_balance(ANA)


def test_what_is_read_while_a_charge_is_made_is_read_in_its_transaction(ledger: SqlLedger) -> None:
    books, counting = counted(ledger)
    seen: list[int] = []

    def admit(claims: object) -> None:
        seen.append(books.get_balance(ANA).charges)

    books.purchase(ANA, [ReleaseRequest("p", 1, LOSS, (Fraction(10),))], ChargedStatement("SELECT"), NOW, admit)
    assert counting.began == 1 and seen == [1], "behind the charge, which is not yet made"


def test_what_was_read_within_a_charge_that_is_refused_is_forgotten(ledger: SqlLedger) -> None:
    books, _ = counted(ledger)

    def refuse(claims: object) -> None:
        assert books.get_balance(ANA).charges == 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        books.purchase(ANA, [ReleaseRequest("p", 1, LOSS, (Fraction(10),))], ChargedStatement("SELECT"), NOW, refuse)
    assert books.get_balance(ANA).charges == 0


def test_nothing_else_is_written_while_a_charge_is_made(ledger: SqlLedger) -> None:
    def write(claims: object) -> None:
        charge(ledger, "q")

    request = ReleaseRequest("p", 1, LOSS, (Fraction(10),))
    with pytest.raises(InternalError, match="would be written"):
        ledger.purchase(ANA, [request], ChargedStatement("SELECT"), NOW, write)
    assert ledger.get_balance(ANA).charges == 0
