"""Entries, their chain, and that tampering shows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.errors import IntegrityError, InternalError
from dpsql.ledger import chain
from dpsql.ledger.base import Account, Asked, Binding
from dpsql.ledger.chain import from_units, to_units
from dpsql.ledger.sqlite import SqliteLedger, open_ledger
from dpsql.privacy.loss import UNIT, Loss

BINDING = Binding("row", "change_one", 1)
DATASET = Account("dataset", Fraction(8), Fraction(1, 10**7))
ANA = Account("ana", Fraction(4), Fraction(1, 10**8))
BEN = Account("ben", Fraction(4), Fraction(1, 10**8))
NOW = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)


def loss(epsilon: str) -> Loss:
    return Loss(Fraction(epsilon), Fraction(epsilon) ** 2 / 2, Fraction(0))


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    """Four charges of ana, two of ben; one release is shared."""
    ledger = open_ledger(f"sqlite://{tmp_path}/a.ledger", BINDING, DATASET)
    ledger.register_version("files", "facts")
    for i in range(4):
        asked = [Asked(f"p{i}", 1, loss("1/10"), (Fraction(1),)), Asked(f"q{i}", 1, loss("1/5"), (Fraction(1),))]
        ledger.purchase(ANA, asked, f"SELECT {i}", NOW + timedelta(seconds=i))
    for plan in ("p0", "own"):
        ledger.purchase(BEN, [Asked(plan, 1, loss("1/10"), (Fraction(1),))], plan, NOW)
    return ledger


def tamper(ledger: SqliteLedger, *statements: str) -> None:
    with closing(sqlite3.connect(ledger.file.path, isolation_level=None)) as db:
        for trigger in ("entry_kept", "entry_stays", "payment_kept", "payment_stays"):
            db.execute(f"DROP TRIGGER {trigger}")
        for statement in statements:
            assert db.execute(statement).rowcount > 0, statement


def test_an_untouched_chain_is_whole(ledger: SqliteLedger) -> None:
    for account in (ANA, BEN, DATASET, Account("new", Fraction(1), Fraction(0))):
        ledger.verify_chain(account)


def test_entries_say_who_when_what_and_how_much(ledger: SqliteLedger) -> None:
    entries = ledger.entries(ANA)
    assert [entry.number for entry in entries] == [1, 2, 3, 4]
    assert [entry.statement for entry in entries] == [f"SELECT {i}" for i in range(4)]
    assert entries[2].at == NOW + timedelta(seconds=2)
    assert entries[2].losses == (loss("1/10"), loss("1/5"))
    assert all(len(entry.nonce) == 32 for entry in entries) and len({entry.nonce for entry in entries}) == 4
    assert [entry.previous for entry in entries[1:]] == [entry.hash for entry in entries[:-1]]
    assert entries[3].spent.epsilon == 4 * (loss("1/10") + loss("1/5")).epsilon  # type: ignore[operator]


def test_the_dataset_pays_for_each_release_once_and_knows_who_asked(ledger: SqliteLedger) -> None:
    entries = ledger.entries(DATASET)
    assert [(entry.by, entry.statement) for entry in entries] == [
        *(("ana", f"SELECT {i}") for i in range(4)),
        ("ben", "own"),
    ]
    assert [entry.statement for entry in ledger.entries(BEN)] == ["p0", "own"]


def test_times_are_kept_in_utc(ledger: SqliteLedger) -> None:
    there = NOW.astimezone(timezone(timedelta(hours=5)))
    ledger.purchase(ANA, [Asked("t", 1, loss("1/10"), (Fraction(1),))], "t", there)
    assert ledger.entries(ANA)[-1].at.isoformat() == "2025-01-02T03:04:05+00:00"


EDITS: dict[str, tuple[str, ...]] = {
    "statement": ("UPDATE entry SET statement = 'x' WHERE account = 'ana' AND number = 2",),
    "time": ("UPDATE entry SET at = '2024-01-02T03:04:05+00:00' WHERE account = 'ana' AND number = 2",),
    "budget": ("UPDATE entry SET budget_epsilon = '40' WHERE account = 'ana' AND number = 2",),
    "loss": ("UPDATE entry SET charges = replace(charges, '1', '0') WHERE account = 'ana' AND number = 2",),
    "sum": ("UPDATE entry SET spent_rho = '0' WHERE account = 'ana' AND number = 4",),
    "nonce": ("UPDATE entry SET nonce = hex(zeroblob(32)) WHERE account = 'ana' AND number = 2",),
    "not a number": ("UPDATE entry SET spent_rho = 'none' WHERE account = 'ana' AND number = 2",),
    "delete in the middle": ("DELETE FROM entry WHERE account = 'ana' AND number = 2",),
    "delete and close the gap": (
        "DELETE FROM entry WHERE account = 'ana' AND number = 2",
        "UPDATE entry SET number = 2 WHERE account = 'ana' AND number = 3",
        "UPDATE entry SET number = 3 WHERE account = 'ana' AND number = 4",
        "UPDATE account SET entries = 3 WHERE name = 'ana'",
    ),
    "reorder": (
        "UPDATE entry SET number = 99 WHERE account = 'ana' AND number = 2",
        "UPDATE entry SET number = 2 WHERE account = 'ana' AND number = 3",
        "UPDATE entry SET number = 3 WHERE account = 'ana' AND number = 99",
    ),
    "cut the tail": ("DELETE FROM entry WHERE account = 'ana' AND number = 4",),
    "cut the tail and lower the count": (
        "DELETE FROM entry WHERE account = 'ana' AND number = 4",
        "UPDATE account SET entries = 3 WHERE name = 'ana'",
    ),
    "cut the tail and move the head": (
        "DELETE FROM entry WHERE account = 'ana' AND number = 4",
        "UPDATE account SET entries = 3, head = (SELECT hash FROM entry WHERE account = 'ana' AND number = 3)"
        " WHERE name = 'ana'",
    ),
    "cut all": ("DELETE FROM entry WHERE account = 'ana'",),
    "forget the account's row": ("DELETE FROM account WHERE name = 'ana'",),
    "take another's entry": (
        "DELETE FROM entry WHERE account = 'ana' AND number = 1",
        "UPDATE entry SET account = 'ana' WHERE account = 'ben' AND number = 1",
    ),
    "a payment without an entry": ("INSERT INTO payment SELECT id, 'ana', 4 FROM release WHERE plan = 'own'",),
    "a payment of an entry that is not there": (
        "INSERT INTO payment SELECT id, 'ana', 5 FROM release WHERE plan = 'own'",
    ),
    "an entry without its payment": ("DELETE FROM payment WHERE account = 'ana' AND entry = 1",),
    "a cheaper release": ("UPDATE release SET rho = '1' WHERE plan = 'p1'",),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_tampering_shows(ledger: SqliteLedger, edit: tuple[str, ...]) -> None:
    tamper(ledger, *edit)
    with pytest.raises(IntegrityError, match='the entries of "ana" were altered'):
        ledger.verify_chain(ANA)


def test_an_account_removed_without_trace_shows_in_the_datasets_chain(ledger: SqliteLedger) -> None:
    tamper(
        ledger,
        "DELETE FROM entry WHERE account = 'ben'",
        "DELETE FROM payment WHERE account = 'ben'",
        "DELETE FROM account WHERE name = 'ben'",
    )
    ledger.verify_chain(BEN)
    with pytest.raises(IntegrityError):
        ledger.verify_chain(DATASET)


@pytest.mark.parametrize("use", [SqliteLedger.balance, SqliteLedger.verify_chain])
@pytest.mark.parametrize("edit", ["sum", "cut the tail", "cut all", "forget the account's row"])
def test_an_altered_end_stops_charging(
    ledger: SqliteLedger, edit: str, use: Callable[[SqliteLedger, Account], object]
) -> None:
    tamper(ledger, *EDITS[edit])
    with pytest.raises(IntegrityError):
        use(ledger, ANA)
    with pytest.raises(IntegrityError):
        ledger.purchase(ANA, [Asked("new", 1, loss("1/10"), (Fraction(1),))], "new", NOW)


def test_a_consistent_forgery_beyond_the_budget_shows(ledger: SqliteLedger) -> None:
    """Every hash fits, but the filter would have refused: verifying recomputes each admission."""
    small = Account("ana", Fraction(1, 1000), Fraction(0))
    forged = ledger.entries(ANA)[:1]
    assert forged[0].budget == ANA
    with ledger.file.write() as db:
        head = chain.read_head(db, ledger.file.id, "ana")
        charge = replace(forged[0].charges[0], plan="own")
        release = db.execute("SELECT id FROM release WHERE plan = 'own'").fetchone()[0]
        db.execute("INSERT INTO payment VALUES (?, 'ana', 5)", (release,))
        spent = replace(head.spent, rho=head.spent.rho + charge.loss.rho)
        chain.append(
            db, replace(forged[0], number=5, budget=small, charges=(charge,), spent=spent, previous=head.hash)
        )
    with pytest.raises(IntegrityError):
        ledger.verify_chain(ANA)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET statement = 'x'",
        "DELETE FROM entry",
        "UPDATE payment SET account = 'x'",
        "DELETE FROM payment",
    ],
)
def test_a_slip_of_the_hand_is_stopped_by_the_file_itself(ledger: SqliteLedger, statement: str) -> None:
    with (
        closing(sqlite3.connect(ledger.file.path, isolation_level=None)) as db,
        pytest.raises(sqlite3.IntegrityError, match="never"),
    ):
        db.execute(statement)


def test_losses_are_text_in_whole_units(ledger: SqliteLedger) -> None:
    with closing(sqlite3.connect(ledger.file.path)) as db:
        rows = db.execute(
            "SELECT typeof(rho), typeof(epsilon), typeof(delta), rho FROM release"
            " UNION ALL SELECT typeof(spent_rho), typeof(spent_epsilon), typeof(spent_delta), spent_rho FROM entry"
        ).fetchall()
    assert all(row[:3] == ("text", "text", "text") and int(row[3]) > 0 for row in rows)
    assert to_units(Fraction(3, UNIT)) == "3" and from_units("3") == Fraction(3, UNIT)
    with pytest.raises(InternalError):
        to_units(Fraction(1, 3))
