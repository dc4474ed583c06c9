"""What an account has made, as this process last saw it: read from the ledger when a name is not known, or is used.

Most statements name nothing that was made, and read nothing of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from dpsql.errors import StaleData, UnknownFunction, UnknownTable
from dpsql.ledger.base import Ledger, Made
from dpsql.objects.models import model_of
from dpsql.objects.tables import Arrays, arrays_of, table_of
from dpsql.recent import Recent
from dpsql.schema.made_models import MadeModel
from dpsql.schema.model import MadeTable, Resolved
from dpsql.sql.made_commands import MODEL, TABLE

KEPT = 64
"""Accounts whose objects are remembered, and schemas with their tables."""
KEPT_ROWS = 4
"""Synthetic tables whose rows are."""

T = TypeVar("T")


@dataclass(frozen=True)
class Seen:
    """Of all sessions on one dataset in this process."""

    objects: Recent[tuple[Made, ...]] = field(default_factory=lambda: Recent(KEPT))
    schemas: Recent[Resolved] = field(default_factory=lambda: Recent(KEPT))
    arrays: Recent[Arrays] = field(default_factory=lambda: Recent(KEPT_ROWS))  # by key
    models: Recent[MadeModel] = field(default_factory=lambda: Recent(KEPT))  # by release and name


@dataclass(frozen=True)
class Belongings:
    """One account's."""

    ledger: Ledger
    account: str
    resolved: Resolved
    seen: Seen

    @property
    def all(self) -> tuple[Made, ...]:
        return self.seen.objects.get(self.account) or ()

    @property
    def tables(self) -> tuple[MadeTable, ...]:
        return tuple(table_of(made, self.key_of(made)) for made in self.all if made.kind == TABLE)

    def key_of(self, made: Made) -> str:
        """What stands for a release in this account's SQL: one for each, and no number.

        Privacy: the ledger's id is told to nobody, so that a key tells neither how many releases others have bought
        nor whether this one was theirs before.
        """
        return hashlib.sha256(f"{self.ledger.id} {self.account} {made.release}".encode()).hexdigest()[:24]

    @property
    def models(self) -> tuple[MadeModel, ...]:
        """Those of which the release is still kept."""
        found = (self._model(made) for made in self.all if made.kind == MODEL)
        return tuple(model for model in found if model is not None)

    def _model(self, made: Made) -> MadeModel | None:
        key = (made.release, made.name, made.definition)
        known = self.seen.models.get(key)
        if known is not None:
            return known
        body = self.ledger.stored(made.release)
        return None if body is None else self.seen.models.put(key, model_of(made, body))

    def again(self) -> bool:
        """Read them; whether they differ from what was seen before."""
        before, now = self.all, self.ledger.objects.of(self.account)
        self.seen.objects.put(self.account, now)
        return now != before

    def knowing(self, work: Callable[[], T]) -> T:
        """What the work comes to. Where it misses a name, those that there are now are read, and it is done again."""
        try:
            return work()
        except (UnknownTable, UnknownFunction):
            if not self.again():
                raise
            return work()

    def arrays(self, key: str) -> Arrays:
        """The columns of a synthetic table, as long as it is there."""
        self.again()
        made = next((one for one in self.all if one.kind == TABLE and self.key_of(one) == key), None)
        if made is None:
            raise UnknownTable("the synthetic table was dropped or replaced meanwhile", hint="Ask again.")
        return self.seen.arrays.get(key) or self.seen.arrays.put(key, arrays_of(made, self.body(made)))

    def body(self, made: Made) -> bytes:
        body = self.ledger.stored(made.release)
        if body is None:
            raise StaleData(
                f'the release of {made.kind} "{made.name}" is no longer kept',
                hint="The owner's retention is over; it can be made again.",
            )
        return body

    def find(self, kind: str, name: str) -> Made | None:
        """By its name, as it is now."""
        self.again()
        return next((one for one in self.all if one.kind == kind and one.name.lower() == name.lower()), None)

    @property
    def key(self) -> Hashable:
        """What a statement that may name them is compiled with."""
        return tuple((one.kind, one.name, one.release) for one in self.all)

    @property
    def schema(self) -> Resolved:
        """The schema with the account's tables and models."""
        if not self.all:
            return self.resolved
        key = (self.resolved.hash, self.resolved.version, self.account, self.key)
        known = self.seen.schemas.get(key)
        if known is not None:
            return known
        return self.seen.schemas.put(key, self._with_made())

    def _with_made(self) -> Resolved:
        return replace(self.resolved, schema=self.resolved.schema.with_made(self.tables, self.models))
