"""How the tables of a FROM belong together: by declared keys, or by columns of one name that are unique on one side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpsql.quoting import quote_name
from dpsql.repl.scope import FromItem


def join_conditions(sources: Sequence[FromItem]) -> list[str]:
    """Conditions for ON that join the last table with those before it, the declared ones first."""
    if len(sources) < 2:
        return []
    *others, last = sources
    conditions = [text for other in others for text in _declared_conditions(last, other)]
    conditions += [text for other in others for text in _unique_key_conditions(last, other)]
    return list(dict.fromkeys(conditions))


def _declared_conditions(last: FromItem, other: FromItem) -> Iterator[str]:
    """A key of one that leads to the other; or of both, to the same table."""
    for referencing, referenced in ((last, other), (other, last)):
        for key in referencing.table.foreign if referencing.table else ():
            if referenced.table is not None and referenced.table.name.lower() == key.table.lower():
                yield _format_equality(last, other, (referencing, key.column), (referenced, key.key))
    for key in last.table.foreign if last.table else ():
        for other_key in other.table.foreign if other.table else ():
            if (key.table, key.key) == (other_key.table, other_key.key):
                yield _format_equality(last, other, (last, key.column), (other, other_key.column))


def _unique_key_conditions(last: FromItem, other: FromItem) -> Iterator[str]:
    for name in shared_columns([other, last]):
        tables = [source.table for source in (last, other) if source.table is not None]
        if any(key.columns == (name,) for table in tables for key in table.unique):
            yield _format_equality(last, other, (last, name), (other, name))


def _format_equality(last: FromItem, other: FromItem, first: tuple[FromItem, str], second: tuple[FromItem, str]) -> str:
    """The new table's side stands first."""
    sides = sorted((first, second), key=lambda side: side[0] is not last)
    return " = ".join(f"{quote_name(source.name)}.{quote_name(column)}" for source, column in sides)


def shared_columns(sources: Sequence[FromItem]) -> list[str]:
    """Names that the last table has in common with one before it."""
    if len(sources) < 2:
        return []
    *others, last = sources
    other_names = {column.name.lower() for other in others for column in other.columns}
    return [column.name for column in last.columns if column.name.lower() in other_names]
