"""Failed runs, counted against accounts.

Privacy: each failure may tell one analyst which query failed, outside of (epsilon, delta); the count bounds how often
(SOUNDNESS 10). Later successes do not lower it, or failures could be bought back; only the owner does.
"""

from __future__ import annotations

from dpsql.errors import AccountSuspended
from dpsql.ledger.database import Transaction, fetch_one


def add_failure(db: Transaction, names: set[str]) -> None:
    for name in names:
        db.execute("UPDATE account SET failures = failures + 1 WHERE name = ?", name)


def count_failures(db: Transaction, name: str) -> int:
    row = fetch_one(db, "SELECT failures FROM account WHERE name = ?", name)
    return 0 if row is None else int(row[0])


def reset_failures(db: Transaction, name: str) -> None:
    db.execute("UPDATE account SET failures = 0 WHERE name = ?", name)


def require_not_suspended(db: Transaction, name: str, max_failures: int, dataset: str, max_dataset_failures: int) -> None:
    """The dataset's own limit is for what its analysts do; where it is the one that asks, it is an account."""
    if count_failures(db, name) >= max_failures:
        raise AccountSuspended(
            f'the account "{name}" is suspended, because too many of its runs failed',
            hint="Ask the owner: dpsql account resume SCHEMA NAME.",
        )
    if count_failures(db, dataset) >= max_dataset_failures:
        raise AccountSuspended("the dataset is suspended", hint="Ask the owner: dpsql account resume SCHEMA dataset.")
