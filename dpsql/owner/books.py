"""The owner's books: data versions, grants, audits, and how all accounts stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dpsql import versions
from dpsql.dataset import now_utc
from dpsql.errors import IntegrityError, InterfaceError
from dpsql.ledger.accountants import Verdict as Verdict
from dpsql.ledger.audit import Audit as Audit
from dpsql.ledger.audit import audit, read_receipt
from dpsql.ledger.base import Account, Receipt
from dpsql.ledger.base import Ledger as Ledger
from dpsql.ledger.base import Stored as Stored
from dpsql.ledger.checker import Unreadable
from dpsql.ledger.how_many import MANY as MANY
from dpsql.ledger.standing import HISTORY, history_rows, standing, verdicts
from dpsql.ledger.standing import Standing as Standing
from dpsql.payers import DATASET as DATASET
from dpsql.payers import account_named as account_named
from dpsql.payers import account_of as account_of
from dpsql.payers import accounts_below, dataset_account, ledger_of, usual_query
from dpsql.schema.fingerprint import schema_hash
from dpsql.schema.load import load_schema
from dpsql.schema.model import Schema


def register_changed(path: str | Path) -> int:
    """The owner's act: the data as it is now becomes the next version. Returns its number."""
    with open_books(path, make=True) as (schema, ledger):
        return versions.register(schema, ledger, changed=True, now=now_utc()).version


def grant(path: str | Path, name: str) -> tuple[Account, Receipt | None]:
    """The owner's act: the ledger records the budget that the schema gives to an account. None: it stood there."""
    with open_books(path) as (schema, ledger):
        account = account_named(schema, name)
        entry = ledger.grant(account, now_utc(), schema_hash(schema))
        return account, None if entry is None else entry.receipt


def audit_books(path: str | Path, receipts: Sequence[str] = ()) -> Audit:
    """The owner's look at all that was ever charged, and at receipts that someone holds."""
    held = [_receipt(text) for text in receipts]
    with open_books(path) as (_, ledger):
        return audit(ledger, held)


def _receipt(text: str) -> Receipt:
    receipt = read_receipt(text)
    if receipt is None:
        raise InterfaceError(f'"{text}" is no receipt', hint="A receipt reads account/number/hash, as answers show it.")
    return receipt


def standings(schema: Schema, ledger: Ledger, user: str | None) -> tuple[Standing, ...]:
    """How an analyst's account stands, or for the owner all of the schema's: the dataset's first."""
    if user is not None:
        accounts: tuple[Account, ...] = (account_of(schema, user),)
    else:
        accounts = (dataset_account(schema), *accounts_below(schema))
    found = []
    for account in accounts:
        query = usual_query(schema, account)
        above = bool(schema.analysts) and account.name == DATASET
        found.append(standing(ledger, account, query.epsilon, query.delta, parent=above))
    return tuple(found)


def left_the_schema(schema: Schema, ledger: Ledger) -> list[str]:
    """The accounts that the ledger has and the schema has no more."""
    declared = {DATASET, *(account.name for account in accounts_below(schema))}
    return [name for name in ledger.accounts() if name not in declared]


def report_on(ledger: Ledger, account: Account) -> tuple[Verdict, ...]:
    """What each accountant would say of an account's history: a report, not the rule."""
    try:
        return verdicts(ledger, account)
    except Unreadable as error:
        raise IntegrityError(
            f'an entry of "{account.name}" names mechanisms that are not known here', detail=f"{error}."
        ) from error


def history(ledger: Ledger, user: str | None) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """The columns and rows of an account's entries, or for the owner of all that the ledger has."""
    names = ledger.accounts() if user is None else (user,)
    return HISTORY, [row for name in names for row in history_rows(ledger.entries(name))]


@contextmanager
def open_books(path: str | Path, *, make: bool = False) -> Iterator[tuple[Schema, Ledger]]:
    """The schema and its ledger, without the data: what the owner needs to look at accounts.

    A ledger that is not there is not made, but where `make` says so: an audit of a new one would find all well.
    """
    schema = load_schema(path)
    ledger = ledger_of(schema, make)
    try:
        yield schema, ledger
    finally:
        ledger.close()
