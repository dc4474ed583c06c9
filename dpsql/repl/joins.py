"""How the tables of a FROM belong together: by declared keys, or by columns of one name that are unique on one side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpsql.quoting import quoted
from dpsql.repl.scope import Source


def equalities(sources: Sequence[Source]) -> list[str]:
    """Conditions for ON that join the last table with those before it, the declared ones first."""
    if len(sources) < 2:
        return []
    *others, last = sources
    found = [text for other in others for text in _declared(last, other)]
    found += [text for other in others for text in _unique(last, other)]
    return list(dict.fromkeys(found))


def _declared(last: Source, other: Source) -> Iterator[str]:
    """A key of one that leads to the other; or of both, to the same table."""
    for one, two in ((last, other), (other, last)):
        for key in one.table.foreign if one.table else ():
            if two.table is not None and two.table.name.lower() == key.table.lower():
                yield _equal(last, other, (one, key.column), (two, key.key))
    for key in last.table.foreign if last.table else ():
        for same in other.table.foreign if other.table else ():
            if (key.table, key.key) == (same.table, same.key):
                yield _equal(last, other, (last, key.column), (other, same.column))


def _unique(last: Source, other: Source) -> Iterator[str]:
    for name in shared_columns([other, last]):
        tables = [one.table for one in (last, other) if one.table is not None]
        if any(key.columns == (name,) for table in tables for key in table.unique):
            yield _equal(last, other, (last, name), (other, name))


def _equal(last: Source, other: Source, one: tuple[Source, str], two: tuple[Source, str]) -> str:
    """The new table's side stands first."""
    sides = sorted((one, two), key=lambda side: side[0] is not last)
    return " = ".join(f"{quoted(source.name)}.{quoted(column)}" for source, column in sides)


def shared_columns(sources: Sequence[Source]) -> list[str]:
    """Names that the last table has in common with one before it."""
    if len(sources) < 2:
        return []
    *others, last = sources
    known = {column.name.lower() for other in others for column in other.columns}
    return [column.name for column in last.columns if column.name.lower() in known]
