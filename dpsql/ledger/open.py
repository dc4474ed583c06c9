"""Opening a ledger by its URL."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from fractions import Fraction

from dpsql.errors import OperationalError, SchemaError
from dpsql.ledger.backend import POSTGRES_SCHEMES, LedgerDatabase
from dpsql.ledger.base import Account, Binding
from dpsql.ledger.ledger import DATASET_FAILURE_FACTOR, MAX_FAILURES, SqlLedger
from dpsql.ledger.sqlite import BUSY_SECONDS, open_sqlite, path_from_url


def open_ledger(
    url: str,
    binding: Binding,
    dataset: Account,
    *,
    others: Sequence[Account] = (),
    failures: int = MAX_FAILURES,
    dataset_failures: int = MAX_FAILURES * DATASET_FAILURE_FACTOR,
    busy_seconds: float = BUSY_SECONDS,
    entropy: Callable[[int], bytes] = os.urandom,
    min_latency: Fraction = Fraction(0),
    make: bool = True,
) -> SqlLedger:
    """Open `sqlite:///path` or `postgresql://host/database`, or with `make` make it where there is nothing.

    It must be bound to `binding`.
    """
    database = _open_database(url, binding, busy_seconds, make)
    named = {account.name: account for account in others}
    grid = math.ceil(min_latency * 10**6)
    return SqlLedger(database, binding, dataset, named, failures, dataset_failures, entropy, grid)


def _open_database(url: str, binding: Binding, busy_seconds: float, make: bool) -> LedgerDatabase:
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        return open_sqlite(path_from_url(url), binding, busy_seconds, make=make)
    if scheme in POSTGRES_SCHEMES:
        return _open_in_postgres(url, binding, busy_seconds, make)
    # Not quoted: it may hold a password.
    raise SchemaError(
        "the ledger is neither a sqlite nor a postgresql url",
        hint="Write sqlite:///path/of/the.ledger or postgresql://host/database.",
    )


def _open_in_postgres(url: str, binding: Binding, busy_seconds: float, make: bool) -> LedgerDatabase:
    try:
        from dpsql.ledger.postgres import open_postgres
    except ImportError as error:
        raise OperationalError(
            "a ledger in PostgreSQL needs the package psycopg", hint="Write: pip install 'dpsql[postgres]'"
        ) from error
    return open_postgres(url, binding, busy_seconds, make=make)
