"""Looking into a ledger."""

from __future__ import annotations

from dpsql.ledger.base import Account, Entry, Kind, Ledger


def charges(ledger: Ledger, account: Account) -> tuple[Entry, ...]:
    """The entries of an account that are charges."""
    return tuple(entry for entry in ledger.entries(account.name) if entry.kind is Kind.CHARGE)
