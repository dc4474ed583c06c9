"""An account's models and synthetic tables, as last read from the ledger: again when a name is unknown, or is used.

Most statements name nothing that was made, and read nothing of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from dpsql.base.lru_cache import LruCache
from dpsql.compiler.parse.create_commands import MODEL, TABLE
from dpsql.errors import StaleData, UnknownFunction, UnknownTable
from dpsql.ledger.base import CreatedObject, Ledger
from dpsql.schema.model import MadeModel, MadeTable, Resolved
from dpsql.session.artifacts.model import load_model
from dpsql.session.artifacts.synthetic_table import TableArrays, build_arrays, build_catalog_table

MAX_CACHED_ACCOUNTS = 64
"""Accounts whose objects are remembered, and schemas with their tables."""
MAX_CACHED_TABLES = 4
"""Synthetic tables whose rows are."""

T = TypeVar("T")


@dataclass(frozen=True)
class NamespaceCache:
    """The objects of accounts, shared by all sessions on one dataset in this process."""

    objects: LruCache[tuple[CreatedObject, ...]] = field(default_factory=lambda: LruCache(MAX_CACHED_ACCOUNTS))
    schemas: LruCache[Resolved] = field(default_factory=lambda: LruCache(MAX_CACHED_ACCOUNTS))
    arrays: LruCache[TableArrays] = field(default_factory=lambda: LruCache(MAX_CACHED_TABLES))  # by key
    models: LruCache[MadeModel] = field(default_factory=lambda: LruCache(MAX_CACHED_ACCOUNTS))  # by release and name


@dataclass(frozen=True)
class ObjectNamespace:
    """The models and synthetic tables of one account."""

    ledger: Ledger
    account: str
    resolved: Resolved
    seen: NamespaceCache

    @property
    def all_objects(self) -> tuple[CreatedObject, ...]:
        return self.seen.objects.get(self.account) or ()

    @property
    def tables(self) -> tuple[MadeTable, ...]:
        return tuple(
            build_catalog_table(stored, self.key_of(stored)) for stored in self.all_objects if stored.kind == TABLE
        )

    def key_of(self, stored: CreatedObject) -> str:
        """What stands for a release in this account's SQL: one for each, and no number.

        Privacy: the ledger's id is told to nobody, so that a key tells neither how many releases others have bought
        nor whether this one was theirs before.
        """
        return hashlib.sha256(f"{self.ledger.id} {self.account} {stored.release}".encode()).hexdigest()[:24]

    @property
    def models(self) -> tuple[MadeModel, ...]:
        """Those of which the release is still kept."""
        loaded = (self._load_model(stored) for stored in self.all_objects if stored.kind == MODEL)
        return tuple(model for model in loaded if model is not None)

    def _load_model(self, stored: CreatedObject) -> MadeModel | None:
        key = (stored.release, stored.name, stored.definition)
        cached = self.seen.models.get(key)
        if cached is not None:
            return cached
        body = self.ledger.read_body(stored.release)
        return None if body is None else self.seen.models.put(key, load_model(stored, body))

    def refresh(self) -> bool:
        """Read the objects from the ledger; whether they differ from those that were read before."""
        before, now = self.all_objects, self.ledger.objects.list_objects(self.account)
        self.seen.objects.put(self.account, now)
        return now != before

    def with_refresh(self, work: Callable[[], T]) -> T:
        """The result of `work`. If a name is unknown, objects are read again; if they differ, it is called again."""
        try:
            return work()
        except (UnknownTable, UnknownFunction):
            if not self.refresh():
                raise
            return work()

    def load_arrays(self, key: str) -> TableArrays:
        """The columns of a synthetic table, as long as it is there."""
        self.refresh()
        stored = next(
            (candidate for candidate in self.all_objects if candidate.kind == TABLE and self.key_of(candidate) == key),
            None,
        )
        if stored is None:
            raise UnknownTable("the synthetic table was dropped or replaced meanwhile", hint="Ask again.")
        return self.seen.arrays.get(key) or self.seen.arrays.put(key, build_arrays(stored, self.release_body(stored)))

    def release_body(self, stored: CreatedObject) -> bytes:
        body = self.ledger.read_body(stored.release)
        if body is None:
            raise StaleData(
                f'the release of {stored.kind} "{stored.name}" is no longer kept',
                hint="The owner's retention is over; it can be made again.",
            )
        return body

    def find_object(self, kind: str, name: str) -> CreatedObject | None:
        """By its name, as it is now."""
        self.refresh()
        return next(
            (stored for stored in self.all_objects if stored.kind == kind and stored.name.lower() == name.lower()), None
        )

    @property
    def cache_key(self) -> Hashable:
        """All that compiling depends on: the schema, the data's version, and the account's objects."""
        objects = tuple((stored.kind, stored.name, stored.release, stored.definition) for stored in self.all_objects)
        return self.resolved.hash, self.resolved.version, objects

    @property
    def schema(self) -> Resolved:
        """The schema with the account's tables and models."""
        if not self.all_objects:
            return self.resolved
        key = (self.account, self.cache_key)
        cached = self.seen.schemas.get(key)
        if cached is not None:
            return cached
        return self.seen.schemas.put(key, self._schema_with_objects())

    def _schema_with_objects(self) -> Resolved:
        return replace(self.resolved, schema=self.resolved.schema.with_created(self.tables, self.models))
