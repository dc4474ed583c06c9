"""What can be shown before the data is opened: the dataset's name, and what is left of the account.

Law: it reads the schema and the ledger, and looks at the names, sizes and times of files; it reads no row and writes
nothing. It imports no engine and no SQL, so that a prompt is there at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dpsql.errors import Error
from dpsql.ledger.base import Account, Balance
from dpsql.schema.load import load_schema
from dpsql.schema.model import Schema
from dpsql.session.dataset import file_identity
from dpsql.session.dataset.accounts import account_of, open_declared_ledger


@dataclass(frozen=True)
class StatusPreview:
    database: str
    balance: Balance


def preview_status(path: str | Path, user: str | None) -> StatusPreview | None:
    """None where opening has more to do than to open what was registered, or will refuse to: it tells the reason."""
    schema = load_schema(path)
    account = account_of(schema, user)  # who is no analyst is refused here, before anything is opened for them
    try:
        return _read_status(schema, account)
    except Error:
        return None


def _read_status(schema: Schema, account: Account) -> StatusPreview | None:
    ledger = open_declared_ledger(schema, make=False)
    try:
        current = ledger.current_version()
        if current is None:
            return None
        file_identity.check_unchanged(schema, ledger, current.number, datetime.now(UTC))
        return StatusPreview(schema.database, ledger.get_balance(account))
    finally:
        ledger.close()
