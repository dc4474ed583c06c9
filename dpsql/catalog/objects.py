"""The schema's tables, views and keys as PostgreSQL would number and name them.

Law: numbers, names and keys come from the schema alone, and from nothing that is in the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import count

from dpsql.catalog.builtin import rows
from dpsql.schema.model import ForeignUnit, OwnUnit, Schema, Table, View

OWNER, OWNER_NAME = 10, "owner"
"""Whose all objects are: the owner of the schema, by no other name."""
USER = 16384
"""The role of who asks."""
DATABASE = 5
PUBLIC = 2200
SPACES = {str(name): int(str(oid)) for oid, name, *_ in rows("pg_namespace")}
FIRST = 16385
MOST_BYTES = 63
"""Of a name that PostgreSQL makes up."""


@dataclass(frozen=True)
class Numbered:
    """A table or view; its row type and the type of arrays of it have numbers of their own."""

    oid: int
    row_type: int
    row_array: int
    declared: Table | View

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def kind(self) -> str:
        return "v" if isinstance(self.declared, View) else "r"

    def place(self, column: str) -> int:
        return next(place for place, known in enumerate(self.declared.columns, 1) if known.name == column)


@dataclass(frozen=True)
class Key:
    """A unique key: a constraint, and the index that holds it."""

    oid: int
    index: int
    name: str
    table: Numbered
    columns: tuple[str, ...]
    primary: bool

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(self.table.place(column) for column in self.columns)


@dataclass(frozen=True)
class ForeignKey:
    """`key` is the unique key that it leads to, where that one is declared unique."""

    oid: int
    name: str
    table: Numbered
    column: str
    target: Numbered
    target_column: str
    key: Key | None


@dataclass(frozen=True)
class Objects:
    relations: tuple[Numbered, ...]
    keys: tuple[Key, ...]
    foreign: tuple[ForeignKey, ...]

    def keys_of(self, table: Numbered) -> tuple[Key, ...]:
        return tuple(key for key in self.keys if key.table is table)

    def not_null(self, table: Numbered, column: str) -> bool:
        """A primary key has no NULL: rows without a unit are nobody's, and no statement sees them."""
        return any(key.primary and column in key.columns for key in self.keys_of(table))


@lru_cache(maxsize=64)
def objects_of(schema: Schema) -> Objects:
    numbers = count(FIRST)
    numbered = tuple(Numbered(next(numbers), next(numbers), next(numbers), one) for one in schema.relations)
    taken = {one.name for one in numbered}
    keys: list[Key] = []
    for table in numbered:
        for columns in table.declared.unique if isinstance(table.declared, Table) else ():
            primary = _is_primary(table.declared, columns)
            parts = (table.name, "pkey") if primary else (table.name, *columns, "key")
            name = _free("_".join(parts), taken)
            keys.append(Key(next(numbers), next(numbers), name, table, columns, primary))
    named = {one.name: one for one in numbered}
    foreign = tuple(
        _foreign(next(numbers), named, one.unit, one, tuple(keys))
        for one in schema.tables
        if isinstance(one.unit, ForeignUnit)
    )
    return Objects(numbered, tuple(keys), foreign)


def _is_primary(table: Table | View, columns: tuple[str, ...]) -> bool:
    """Where each unit has one row, its id is what the row is known by."""
    return isinstance(table, Table) and isinstance(table.unit, OwnUnit) and columns == (table.unit.column,)


def _foreign(
    oid: int, named: dict[str, Numbered], unit: ForeignUnit, table: Table, keys: tuple[Key, ...]
) -> ForeignKey:
    target = named[unit.table]
    key = next((key for key in keys if key.table is target and key.columns == (unit.key,)), None)
    name = f"{table.name}_{unit.column}_fkey"
    return ForeignKey(oid, name, named[table.name], unit.column, target, unit.key, key)


def _free(name: str, taken: set[str]) -> str:
    """The name, or the first with a number behind it that no relation has; cut as PostgreSQL would."""
    base = name.encode()[:MOST_BYTES].decode(errors="ignore")
    free = next(one for one in (base, *(f"{base[:58]}{n}" for n in range(1, 1000))) if one not in taken)
    taken.add(free)
    return free
