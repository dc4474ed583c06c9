"""Transactions of one thread over a ledger's database: it reads one snapshot, or writes, never both at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from dpsql.errors import InternalError
from dpsql.ledger.database import LedgerDatabase, Transaction


@dataclass(frozen=True)
class ThreadTransactions:
    database: LedgerDatabase
    _reading: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    @contextmanager
    def read_snapshot(self) -> Iterator[None]:
        """What this thread reads within is one snapshot, in one transaction. Nothing can be written meanwhile."""
        with self.database.read() as db:
            self._reading.db = db
            try:
                yield
            finally:
                self._reading.db = None

    def read(self) -> AbstractContextManager[Transaction]:
        db: Transaction | None = getattr(self._reading, "db", None)
        return self.database.read() if db is None else nullcontext(db)

    def write(self) -> AbstractContextManager[Transaction]:
        if getattr(self._reading, "db", None) is not None:
            raise InternalError("the ledger is read, and would be written")
        return self.database.write()
