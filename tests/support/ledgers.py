"""Ledgers for tests, in SQLite or PostgreSQL, and looking into them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from dpsql.ledger.backend import APPEND_ONLY_TABLES
from dpsql.ledger.base import Account, Binding, EntryKind, Ledger, LedgerEntry
from dpsql.ledger.ledger import SqlLedger
from dpsql.ledger.open import open_ledger
from dpsql.ledger.postgres import parse_ledger_url
from dpsql.ledger.sqlite import path_from_url
from tests.support.postgres import Server


def charges(ledger: Ledger, account: Account) -> tuple[LedgerEntry, ...]:
    """The entries of an account that are charges."""
    return tuple(entry for entry in ledger.list_entries(account.name) if entry.kind is EntryKind.CHARGE)


@dataclass
class Shelf:
    """Where one test's ledgers stand: in files of its folder, or in schemas of a server."""

    folder: Path
    server: Server | None = None
    urls: dict[str, str] = field(default_factory=dict)
    opened: list[SqlLedger] = field(default_factory=list)

    def url(self, name: str = "a") -> str:
        if name not in self.urls:
            file = f"sqlite:///{self.folder}/{name}.ledger"
            self.urls[name] = file if self.server is None else self.server.new_schema()
        return self.urls[name]

    def open(self, binding: Binding, dataset: Account, name: str = "a", **settings: Any) -> SqlLedger:
        """Closed at the end of the test."""
        self.opened.append(open_ledger(self.url(name), binding, dataset, **settings))
        return self.opened[-1]

    def close(self) -> None:
        for ledger in self.opened:
            ledger.close()

    def alter(self, *statements: str, name: str = "a") -> list[int]:
        """Run SQL past the ledger; how many rows each statement touched."""
        with raw(self.url(name)) as db:
            return [db.execute(statement).rowcount for statement in statements]

    def tamper(self, *statements: str, name: str = "a") -> None:
        """As someone who knows the tables: first away with what stops a slip of the hand."""
        triggers = [(table, f"{table}_{event}") for table in APPEND_ONLY_TABLES for event in ("UPDATE", "DELETE")]
        for table, trigger in triggers:
            self.alter(f"DROP TRIGGER IF EXISTS {trigger}{'' if self.server is None else f' ON {table}'}", name=name)
        for statement, touched in zip(statements, self.alter(*statements, name=name), strict=True):
            assert touched > 0, statement


@contextmanager
def raw(url: str) -> Iterator[Any]:
    """The database itself: a sqlite3 or a psycopg connection, which commits at each statement."""
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(path_from_url(url), isolation_level=None)) as db:
            yield db
        return
    place = parse_ledger_url(url)
    with psycopg.connect(place.conninfo, autocommit=True) as session:
        session.execute(f"SET search_path = {place.schema}".encode())
        yield session


def bodies(url: str) -> list[tuple[int, bytes | None]]:
    """What a ledger holds for sale: releases and their bodies."""
    with raw(url) as db:
        return list(db.execute("SELECT id, body FROM release ORDER BY id").fetchall())


def in_schema(text: str, url: str) -> str:
    """The text of a schema with another ledger."""
    return re.sub(r"(?m)^ledger: .*$", lambda _: f"ledger: {url}", text)
