"""The schema's tables, views and keys as PostgreSQL would number, name and describe them.

Law: numbers, names and keys come from the schema alone, and from nothing that is in the data.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count

from dpsql.compiler.catalog.builtin import load_rows
from dpsql.schema.model import EPOCH, Column, Domain, ForeignUnit, OwnUnit, RowUnit, Schema, Table, View
from dpsql.types import BOOLEAN, DATE

OWNER_OID, OWNER_NAME = 10, "owner"
"""Whose all objects are: the owner of the schema, by no other name."""
USER_OID = 16384
"""The role of who asks."""
OWN_DATABASE_OID = 5
PUBLIC_OID = 2200
NAMESPACE_OIDS = {str(name): int(str(oid)) for oid, name, *_ in load_rows("pg_namespace")}
FIRST_OBJECT_OID = 16385
MAX_NAME_BYTES = 63
"""Of a name that PostgreSQL makes up."""


@dataclass(frozen=True)
class NumberedRelation:
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

    def position_of(self, column: str) -> int:
        return next(position for position, declared in enumerate(self.declared.columns, 1) if declared.name == column)


@dataclass(frozen=True)
class UniqueConstraint:
    """A unique key: a constraint, and the index that holds it."""

    oid: int
    index: int
    name: str
    table: NumberedRelation
    columns: tuple[str, ...]
    primary: bool

    @property
    def positions(self) -> tuple[int, ...]:
        return tuple(self.table.position_of(column) for column in self.columns)


@dataclass(frozen=True)
class ForeignKeyConstraint:
    """`key` is the unique key that it leads to, where that one is declared unique."""

    oid: int
    name: str
    table: NumberedRelation
    columns: tuple[str, ...]
    target: NumberedRelation
    target_columns: tuple[str, ...]
    key: UniqueConstraint | None


@dataclass(frozen=True)
class CatalogObjects:
    relations: tuple[NumberedRelation, ...]
    keys: tuple[UniqueConstraint, ...]
    foreign: tuple[ForeignKeyConstraint, ...]

    def keys_of(self, table: NumberedRelation) -> tuple[UniqueConstraint, ...]:
        return tuple(key for key in self.keys if key.table is table)

    def is_not_null(self, table: NumberedRelation, column: str) -> bool:
        """A primary key has no NULL: rows without a unit are nobody's, and no statement sees them."""
        return any(key.primary and column in key.columns for key in self.keys_of(table))


@lru_cache(maxsize=64)
def objects_of(schema: Schema) -> CatalogObjects:
    numbers = count(FIRST_OBJECT_OID)
    numbered = tuple(
        NumberedRelation(next(numbers), next(numbers), next(numbers), relation) for relation in schema.relations
    )
    taken = {relation.name for relation in numbered}
    keys: list[UniqueConstraint] = []
    for table in numbered:
        for columns in table.declared.unique if isinstance(table.declared, Table) else ():
            primary = _is_primary_key(table.declared, columns)
            parts = (table.name, "pkey") if primary else (table.name, *columns, "key")
            name = _unique_name("_".join(parts), taken)
            keys.append(UniqueConstraint(next(numbers), next(numbers), name, table, columns, primary))
    named = {declared.name: declared for declared in numbered}
    foreign = tuple(
        _build_foreign_key(next(numbers), named, declared.unit, declared, tuple(keys))
        for declared in schema.tables
        if isinstance(declared.unit, ForeignUnit)
    )
    return CatalogObjects(numbered, tuple(keys), foreign)


def _is_primary_key(table: Table | View, columns: tuple[str, ...]) -> bool:
    """Where each unit has one row, its id is what the row is known by."""
    return isinstance(table, Table) and isinstance(table.unit, OwnUnit) and columns == (table.unit.column,)


def _build_foreign_key(
    oid: int, named: dict[str, NumberedRelation], unit: ForeignUnit, table: Table, keys: tuple[UniqueConstraint, ...]
) -> ForeignKeyConstraint:
    target = named[unit.table]
    key = next((key for key in keys if key.table is target and set(key.columns) == set(unit.keys)), None)
    name = "_".join((table.name, *unit.columns, "fkey"))
    return ForeignKeyConstraint(oid, name, named[table.name], unit.columns, target, unit.keys, key)


def _unique_name(name: str, taken: set[str]) -> str:
    """The name, or the first with a number behind it that no relation has; cut as PostgreSQL would."""
    base = name.encode()[:MAX_NAME_BYTES].decode(errors="ignore")
    free = next(
        candidate for candidate in (base, *(f"{base[:58]}{n}" for n in range(1, 1000))) if candidate not in taken
    )
    taken.add(free)
    return free


# What a table or column is told to be: the comments that tools show beside names. The owner's own words first.


def table_comment(schema: Schema, table: Table | View) -> str:
    return " ".join((*_to_sentence(table.description), _describe_privacy(schema, table)))


def _to_sentence(description: str | None) -> tuple[str, ...]:
    if description is None:
        return ()
    return (description if description[-1] in ".!?…" else f"{description}.",)


def _describe_privacy(schema: Schema, table: Table | View) -> str:
    if isinstance(table, View):
        return "A view."
    match table.unit:
        case None:
            return "Public."
        case RowUnit():
            return "Private: each row is its own privacy unit."
        case OwnUnit(column):
            return f"Private: the privacy unit is {column}."
        case ForeignUnit() as hop:
            by = " and ".join(f"{column} = {hop.table}.{key}" for column, key in hop.pairs)
            return f"Private: the privacy unit is {schema.privacy.unit}, by {by}."


def column_comment(table: Table | View, column: Column) -> str | None:
    parts: list[str] = []
    match table.unit if isinstance(table, Table) else None:
        case OwnUnit(unit) if unit == column.name:
            parts.append("The privacy unit.")
        case ForeignUnit() as hop if column.name in hop.columns:
            together = (
                "Leads" if not hop.also else f"With {', '.join(c for c in hop.columns if c != column.name)} leads"
            )
            parts.append(f"{together} to the privacy unit: {hop.table}.{dict(hop.pairs)[column.name]}.")
        case _:
            pass
    if column.domain.values is not None and column.type != BOOLEAN:
        parts.append(f"Values: {format_values(column.domain)}.")
    elif column.domain.is_bounded:
        parts.append(f"Bounds: {format_bounds(column.domain)}.")
    if not parts:
        return column.description
    return " ".join((*_to_sentence(column.description), *parts))


def format_bounds(domain: Domain) -> str:
    return (
        f"[{_format_bound(domain, domain.lower)}, {_format_bound(domain, domain.upper)}]" if domain.is_bounded else ""
    )


def format_values(domain: Domain) -> str:
    return "" if domain.values is None else ", ".join(str(value) for value in domain.values)


def _format_bound(domain: Domain, number: Fraction | None) -> str:
    if number is None:
        return ""
    if domain.type.is_number:
        return str(number.numerator) if number.denominator == 1 else repr(float(number))
    if domain.type == DATE:
        return str(EPOCH.date() + dt.timedelta(days=int(number)))
    return str(EPOCH + dt.timedelta(microseconds=int(number)))
