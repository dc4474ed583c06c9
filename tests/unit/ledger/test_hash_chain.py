"""Entries, their chain, and that tampering shows, in SQLite and in PostgreSQL."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import psycopg
import pytest

from dpsql.errors import IntegrityError, InternalError
from dpsql.ledger import hash_chain
from dpsql.ledger.base import (
    Account,
    AccountTerms,
    Binding,
    ChargedStatement,
    EntryKind,
    LedgerEntry,
    LedgerFinding,
    ReleaseRequest,
)
from dpsql.ledger.hash_chain import from_units, to_units
from dpsql.ledger.ledger import SqlLedger
from dpsql.privacy.filters import add_cost, cost_of
from dpsql.privacy.loss import LOSS_DENOMINATOR, Loss
from tests.support.ledgers import Shelf, charges

BINDING = Binding("row", "change_one", 1)
DATASET = Account("dataset", Fraction(8), Fraction(1, 10**7))
ANA = Account("ana", Fraction(4), Fraction(1, 10**8))
BEN = Account("ben", Fraction(4), Fraction(1, 10**8))
NOW = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)


def loss(epsilon: str) -> Loss:
    return Loss(Fraction(epsilon), Fraction(epsilon) ** 2 / 2, Fraction(0))


@pytest.fixture
def ledger(shelf: Shelf) -> SqlLedger:
    """Four charges of ana, two of ben; one release is shared."""
    ledger = shelf.open(BINDING, DATASET)
    ledger.register_version("files", "facts")
    for i in range(4):
        asked = [
            ReleaseRequest(f"p{i}", 1, loss("1/10"), (Fraction(1),)),
            ReleaseRequest(f"q{i}", 1, loss("1/5"), (Fraction(1),)),
        ]
        ledger.purchase(ANA, asked, ChargedStatement(f"SELECT {i}"), NOW + timedelta(seconds=i))
    for plan in ("p0", "own"):
        ledger.purchase(BEN, [ReleaseRequest(plan, 1, loss("1/10"), (Fraction(1),))], ChargedStatement(plan), NOW)
    return ledger


def test_an_untouched_chain_is_intact(ledger: SqlLedger) -> None:
    assert ledger.verify_chains() == () and ledger.list_accounts() == ("ana", "ben", "dataset")


def test_entries_hold_account_time_statement_and_losses(ledger: SqlLedger) -> None:
    entries = charges(ledger, ANA)
    assert [entry.number for entry in entries] == [2, 3, 4, 5]
    assert [entry.statement.text for entry in entries] == [f"SELECT {i}" for i in range(4)]
    assert entries[2].at == NOW + timedelta(seconds=2)
    assert entries[2].losses == (loss("1/10"), loss("1/5"))
    assert all(len(entry.nonce) == 32 for entry in entries) and len({entry.nonce for entry in entries}) == 4
    assert [entry.previous for entry in entries[1:]] == [entry.hash for entry in entries[:-1]]
    assert entries[3].spent.epsilon == 4 * (loss("1/10") + loss("1/5")).epsilon  # type: ignore[operator]


def test_the_dataset_pays_for_each_release_once_and_records_the_account(ledger: SqlLedger) -> None:
    entries = charges(ledger, DATASET)
    assert [(entry.by, entry.statement.text) for entry in entries] == [
        *(("ana", f"SELECT {i}") for i in range(4)),
        ("ben", "own"),
    ]
    assert [entry.statement.text for entry in charges(ledger, BEN)] == ["p0", "own"]


def test_times_are_kept_in_utc(ledger: SqlLedger) -> None:
    there = NOW.astimezone(timezone(timedelta(hours=5)))
    ledger.purchase(ANA, [ReleaseRequest("t", 1, loss("1/10"), (Fraction(1),))], ChargedStatement("t"), there)
    assert charges(ledger, ANA)[-1].at.isoformat() == "2025-01-02T03:04:05+00:00"


def edited(number: int, old: str, new: str, account: str = "ana") -> str:
    return (
        f"UPDATE entry SET content = replace(content, '{old}', '{new}')"
        f" WHERE account = '{account}' AND number = {number} AND content LIKE '%{old}%'"
    )


EDITS: dict[str, tuple[str, ...]] = {
    "statement": (edited(3, "SELECT 1", "SELECT 9"),),
    "time": (edited(3, "2025-01-02", "2024-01-02"),),
    "budget": (edited(3, '"terms":["4"', '"terms":["40"'),),
    "loss": (edited(3, '"charges":[["p1",1,"1', '"charges":[["p1",1,"'),),
    "sum": ('UPDATE entry SET content = replace(content, \'"spent":["\', \'"spent":["1\') WHERE number = 5',),
    "nonce": (edited(3, '"nonce":"', '"nonce":"00'),),
    "not a number": (edited(3, '"spent":["', '"spent":["none'),),
    "not JSON": ("UPDATE entry SET content = 'x' WHERE account = 'ana' AND number = 3",),
    "kind": ("UPDATE entry SET kind = 'changed' WHERE account = 'ana' AND number = 3",),
    "delete in the middle": ("DELETE FROM entry WHERE account = 'ana' AND number = 3",),
    "delete and close the gap": (
        "DELETE FROM entry WHERE account = 'ana' AND number = 3",
        "UPDATE entry SET number = 3 WHERE account = 'ana' AND number = 4",
        "UPDATE entry SET number = 4 WHERE account = 'ana' AND number = 5",
        "UPDATE account SET entries = 4 WHERE name = 'ana'",
    ),
    "reorder": (
        "UPDATE entry SET number = 99 WHERE account = 'ana' AND number = 3",
        "UPDATE entry SET number = 3 WHERE account = 'ana' AND number = 4",
        "UPDATE entry SET number = 4 WHERE account = 'ana' AND number = 99",
    ),
    "cut the tail": ("DELETE FROM entry WHERE account = 'ana' AND number = 5",),
    "cut the tail and lower the count": (
        "DELETE FROM entry WHERE account = 'ana' AND number = 5",
        "UPDATE account SET entries = 4 WHERE name = 'ana'",
    ),
    "cut the tail and move the head": (
        "DELETE FROM entry WHERE account = 'ana' AND number = 5",
        "UPDATE account SET entries = 4, head = (SELECT hash FROM entry WHERE account = 'ana' AND number = 4)"
        " WHERE name = 'ana'",
    ),
    "cut all": ("DELETE FROM entry WHERE account = 'ana'",),
    "forget the account's row": ("DELETE FROM account WHERE name = 'ana'",),
    "take another's entry": (
        "DELETE FROM entry WHERE account = 'ana' AND number = 2",
        "UPDATE entry SET account = 'ana' WHERE account = 'ben' AND number = 2",
    ),
    "a payment without an entry": ("INSERT INTO payment SELECT id, 'ana', 5 FROM release WHERE plan = 'own'",),
    "a payment of an entry that is not there": (
        "INSERT INTO payment SELECT id, 'ana', 6 FROM release WHERE plan = 'own'",
    ),
    "an entry without its payment": ("DELETE FROM payment WHERE account = 'ana' AND entry = 2",),
    "a cheaper release": ("UPDATE release SET rho = '1' WHERE plan = 'p1'",),
    "other mechanisms": ("UPDATE release SET mechanisms = '[1]' WHERE plan = 'p1'",),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_tampering_shows(shelf: Shelf, ledger: SqlLedger, edit: tuple[str, ...]) -> None:
    shelf.tamper(*edit)
    assert "ana" in {finding.account for finding in ledger.verify_chains()}


def test_a_finding_names_the_entry(shelf: Shelf, ledger: SqlLedger) -> None:
    shelf.tamper(*EDITS["statement"])
    assert str(ledger.verify_chains()[0]) == '"ana" 3: its content was changed'


def test_an_account_removed_without_trace_shows_in_the_owners_chain(shelf: Shelf, ledger: SqlLedger) -> None:
    shelf.tamper(
        "DELETE FROM entry WHERE account = 'ben'",
        "DELETE FROM payment WHERE account = 'ben'",
        "DELETE FROM account WHERE name = 'ben'",
    )
    assert {finding.account for finding in ledger.verify_chains()} == {"ben", "dataset"}


@pytest.mark.parametrize(
    "edit",
    [
        ("UPDATE journal SET hash = 'x' WHERE account = 'ana' AND number = 3",),
        ("DELETE FROM journal WHERE account = 'ana' AND number = 3",),
        ("DELETE FROM journal WHERE account = 'ben' AND number = 3",),
        ("UPDATE journal SET place = 99 WHERE account = 'ana' AND number = 3",),
    ],
)
def test_an_altered_journal_shows(shelf: Shelf, ledger: SqlLedger, edit: tuple[str, ...]) -> None:
    shelf.tamper(*edit)
    assert ledger.verify_chains() != ()


@pytest.mark.parametrize("edit", ["sum", "cut the tail", "cut all", "forget the account's row"])
def test_an_altered_end_stops_charging(shelf: Shelf, ledger: SqlLedger, edit: str) -> None:
    shelf.tamper(*EDITS[edit])
    with pytest.raises(IntegrityError):
        ledger.get_balance(ANA)
    with pytest.raises(IntegrityError):
        ledger.purchase(ANA, [ReleaseRequest("new", 1, loss("1/10"), (Fraction(1),))], ChargedStatement("new"), NOW)


def forge(ledger: SqlLedger, **changes: object) -> None:
    """Append a charge of which every hash fits."""
    with ledger.database.write() as db:
        head = hash_chain.read_head(db, ledger.database.id, "ana")
        last = charges(ledger, ANA)[-1]
        charge = replace(last.charges[0], plan="own")
        ((release,),) = db.execute("SELECT id FROM release WHERE plan = 'own'")
        db.execute("INSERT INTO payment VALUES (?, 'ana', 6)", release)
        cost = cost_of(charge.loss)
        entry = replace(
            last,
            number=6,
            charges=(charge,),
            cost=cost,
            spent=add_cost(head.spent, cost),
            previous=head.hash,
            **changes,
        )
        hash_chain.append_entry(db, entry)


def test_a_forgery_that_nothing_contradicts_passes(ledger: SqlLedger) -> None:
    """Only receipts show it; and the tests below fail for the reason that they name."""
    forge(ledger)
    assert ledger.verify_chains() == ()


def test_a_consistent_forgery_of_terms_or_of_a_kind_shows(shelf: Shelf, ledger: SqlLedger) -> None:
    """Every hash fits; but terms change by an entry that says so, which costs nothing, and an account opens once."""
    small = AccountTerms(Fraction(1, 1000), Fraction(0))
    forge(ledger, terms=small)
    assert "terms differ" in str(ledger.verify_chains()[0])
    for kind, what in ((EntryKind.CHANGED, "its cost"), (EntryKind.OPENED, "opened once")):
        forged = replace(charges(ledger, ANA)[-1], kind=kind, number=7)
        assert what in str(_appended(shelf, ledger, forged))


def _appended(shelf: Shelf, ledger: SqlLedger, entry: LedgerEntry) -> LedgerFinding:
    """What is found of an entry in the place of the last one."""
    shelf.tamper(*(f"DELETE FROM {table} WHERE account = 'ana' AND number >= 6" for table in ("entry", "journal")))
    with ledger.database.write() as db:
        previous = charges(ledger, ANA)[-1]
        hash_chain.append_entry(db, replace(entry, number=6, terms=previous.terms, previous=previous.hash))
    return ledger.verify_chains()[0]


def test_a_budget_that_was_passed_shows(ledger: SqlLedger) -> None:
    """The terms are lowered below what was spent, and a charge comes after: every hash and sum fits."""
    ledger.adopt_terms(NOW, "")
    lowered = replace(ANA, epsilon=Fraction(1, 100))
    ledger.grant_terms(lowered, NOW, "")
    head = ledger.list_entries("ana")[-1]
    with ledger.database.write() as db:
        last = charges(ledger, ANA)[-1]
        charge = replace(last.charges[0], plan="own")
        ((release,),) = db.execute("SELECT id FROM release WHERE plan = 'own'")
        db.execute("INSERT INTO payment VALUES (?, 'ana', 7)", release)
        cost = cost_of(charge.loss)
        entry = replace(
            last, number=7, charges=(charge,), cost=cost, spent=add_cost(head.spent, cost), terms=head.terms
        )
        hash_chain.append_entry(db, replace(entry, previous=head.hash))
    assert [str(finding) for finding in ledger.verify_chains()] == ['"ana" 7: it passes the budget']


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET content = 'x'",
        "DELETE FROM entry",
        "UPDATE payment SET account = 'x'",
        "DELETE FROM payment",
    ],
)
def test_an_accidental_update_is_stopped_by_the_database(shelf: Shelf, ledger: SqlLedger, statement: str) -> None:
    with pytest.raises((sqlite3.IntegrityError, psycopg.errors.RaiseException), match="never"):
        shelf.alter(statement)


def test_losses_are_text_of_integer_units(ledger: SqlLedger) -> None:
    with ledger.database.read() as db:
        rows = db.execute("SELECT epsilon, delta, rho FROM release")
    assert all(isinstance(figure, str) and int(figure) >= 0 for row in rows for figure in row)
    assert to_units(Fraction(3, LOSS_DENOMINATOR)) == "3" and from_units("3") == Fraction(3, LOSS_DENOMINATOR)
    with pytest.raises(InternalError):
        to_units(Fraction(1, 3))
