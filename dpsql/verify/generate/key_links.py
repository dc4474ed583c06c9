"""Columns by which rows of one unit find each other: unique keys, columns that determine the unit, and what refers to
either.

    sales (sale, line), returns (sale, line)    of a composite key, which only both columns together lead along
    orders.ref                                  declared to determine the unit: alone, in any two rows
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dpsql.schema.model import ForeignUnit, Schema, Table

Origin = tuple[str, str]
"""A table and its column."""


@dataclass(frozen=True)
class KeyLink:
    """`members` are columns of several tables in the same order: rows that agree in all of them are of one unit.

    `determining` says that it is so by an owner's word, not by a unique key.
    """

    members: tuple[tuple[Origin, ...], ...]
    determining: bool = False

    @property
    def width(self) -> int:
        return len(self.members[0])

    def is_equated(self, equated: Iterable[frozenset[Origin]]) -> bool:
        """Whether each part of the key is among pairs of columns that are equated."""
        pairs = set(equated)
        parts = [frozenset(member[part] for member in self.members) for part in range(self.width)]
        return all(any(pair <= part for pair in pairs) for part in parts)


def find_key_links(schema: Schema) -> tuple[KeyLink, ...]:
    """Of all private tables."""
    links = []
    for table in schema.tables:
        if table.unit is not None:
            links += [_link_of(schema, table, key, False) for key in table.unique]
            links += [_link_of(schema, table, (c.name,), True) for c in table.columns if c.determines_unit]
    return tuple(links)


def _link_of(schema: Schema, table: Table, key: Sequence[str], determining: bool) -> KeyLink:
    members = [tuple((table.name, column) for column in key)]
    for other in schema.tables:
        hop = other.unit
        if isinstance(hop, ForeignUnit) and hop.table == table.name and set(key) <= set(hop.keys):
            columns = {arrived: column for column, arrived in hop.pairs}
            members.append(tuple((other.name, columns[name]) for name in key))
    return KeyLink(tuple(members), determining)


def columns_along(link: KeyLink, columns: Iterable[tuple[str, Origin | None]]) -> list[tuple[str, ...]]:
    """The columns that stand for the link, those of one source together: `columns` are as a statement writes them, each
    with where it comes from."""
    by_source: dict[str, dict[Origin, str]] = defaultdict(dict)
    for sql, origin in columns:
        if origin is not None:
            by_source[sql.split(".")[0]].setdefault(origin, sql)
    return [
        tuple(written[origin] for origin in member)
        for written in by_source.values()
        for member in link.members
        if all(origin in written for origin in member)
    ]
