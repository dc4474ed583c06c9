"""The owner's administration: data versions, grants, audits, and the state of all accounts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dpsql.errors import IntegrityError, InterfaceError
from dpsql.ledger.accountants import AccountantReport as AccountantReport
from dpsql.ledger.audit import Audit as Audit
from dpsql.ledger.audit import parse_receipt, run_audit
from dpsql.ledger.base import Account, Receipt
from dpsql.ledger.base import Ledger as Ledger
from dpsql.ledger.base import ListedRelease as ListedRelease
from dpsql.ledger.budget import MAX_COUNTED as MAX_COUNTED
from dpsql.ledger.loss_checker.checker import UnreadableRecord
from dpsql.ledger.summary import HISTORY_COLUMNS, history_rows, report_history, summarize_account
from dpsql.ledger.summary import AccountSummary as AccountSummary
from dpsql.schema.fingerprint import hash_schema
from dpsql.schema.load import load_schema
from dpsql.schema.model import Schema
from dpsql.session.dataset import versions
from dpsql.session.dataset.accounts import DATASET as DATASET
from dpsql.session.dataset.accounts import account_of as account_of
from dpsql.session.dataset.accounts import (
    dataset_account,
    declared_accounts,
    default_query_budget,
    open_declared_ledger,
)
from dpsql.session.dataset.accounts import find_account_by_name as find_account_by_name
from dpsql.session.dataset.dataset import now_utc


def register_data_version(path: str | Path) -> int:
    """The owner's act: the data as it is now becomes the next version. Returns its number."""
    with open_schema_ledger(path, make=True) as (schema, ledger):
        return versions.register_data(schema, ledger, changed=True, now=now_utc()).version


def grant_budget(path: str | Path, name: str) -> tuple[Account, Receipt | None]:
    """The owner's act: the ledger records the budget that the schema gives to an account. None: it stood there."""
    with open_schema_ledger(path) as (schema, ledger):
        account = find_account_by_name(schema, name)
        entry = ledger.grant_terms(account, now_utc(), hash_schema(schema))
        return account, None if entry is None else entry.receipt


def audit_ledger(path: str | Path, receipts: Sequence[str] = ()) -> Audit:
    """The owner's look at all that was ever charged, and at receipts that someone holds."""
    parsed = [_parse_receipt(text) for text in receipts]
    with open_schema_ledger(path) as (_, ledger):
        return run_audit(ledger, parsed)


def _parse_receipt(text: str) -> Receipt:
    receipt = parse_receipt(text)
    if receipt is None:
        raise InterfaceError(f'"{text}" is no receipt', hint="A receipt reads account/number/hash, as answers show it.")
    return receipt


def summarize_accounts(schema: Schema, ledger: Ledger, user: str | None) -> tuple[AccountSummary, ...]:
    """How an analyst's account stands, or for the owner all of the schema's: the dataset's first."""
    if user is not None:
        accounts: tuple[Account, ...] = (account_of(schema, user),)
    else:
        accounts = (dataset_account(schema), *declared_accounts(schema))
    summaries = []
    for account in accounts:
        query = default_query_budget(schema, account)
        above = bool(schema.analysts) and account.name == DATASET
        summaries.append(summarize_account(ledger, account, query.epsilon, query.delta, parent=above))
    return tuple(summaries)


def find_undeclared_accounts(schema: Schema, ledger: Ledger) -> list[str]:
    """The accounts that the ledger has and the schema has no more."""
    declared = {DATASET, *(account.name for account in declared_accounts(schema))}
    return [name for name in ledger.list_accounts() if name not in declared]


def compare_accountants(ledger: Ledger, account: Account) -> tuple[AccountantReport, ...]:
    """What each accountant would say of an account's history: a report, not the rule."""
    try:
        return report_history(ledger, account)
    except UnreadableRecord as error:
        raise IntegrityError(
            f'an entry of "{account.name}" names mechanisms that are not known here', detail=f"{error}."
        ) from error


def read_history(ledger: Ledger, user: str | None) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """The columns and rows of an account's entries, or for the owner of all that the ledger has."""
    names = ledger.list_accounts() if user is None else (user,)
    return HISTORY_COLUMNS, [row for name in names for row in history_rows(ledger.list_entries(name))]


@contextmanager
def open_schema_ledger(path: str | Path, *, make: bool = False) -> Iterator[tuple[Schema, Ledger]]:
    """The schema and its ledger, without the data: what the owner needs to look at accounts.

    A ledger that is not there is not made, but where `make` says so: an audit of a new one would find all well.
    """
    schema = load_schema(path)
    ledger = open_declared_ledger(schema, make)
    try:
        yield schema, ledger
    finally:
        ledger.close()
