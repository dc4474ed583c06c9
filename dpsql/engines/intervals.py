"""Intervals as DuckDB has them, month for month: its driver gives each as days and seconds.

A statement whose columns hold intervals is asked again with their parts in their place, as numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpsql.exact import Row
from dpsql.intervals import interval

_INTERVALS = ("INTERVAL", "INTERVAL[]")


def holds_intervals(types: Sequence[str]) -> bool:
    return any(spelled in _INTERVALS for spelled in types)


def parts_asked(sql: str, types: Sequence[str]) -> str:
    """The statement with months, days and microseconds as a list in the place of each interval.

    Its rows stay in their order: DuckDB keeps that of a sub-select which is only projected, as
    `preserve_insertion_order` says.
    """
    columns = [f'"c{place}"' for place in range(len(types))]
    items = [_parts(column, spelled) for column, spelled in zip(columns, types, strict=True)]
    return f"SELECT {', '.join(items)} FROM ({sql}\n) AS asked({', '.join(columns)})"


def _parts(column: str, spelled: str) -> str:
    if spelled == "INTERVAL":
        return f"CASE WHEN {column} IS NOT NULL THEN {_list(column)} END"
    if spelled == "INTERVAL[]":
        return f"list_transform({column}, lambda x: CASE WHEN x IS NOT NULL THEN {_list('x')} END)"
    return column


def _list(value: str) -> str:
    months = f"date_part('year', {value}) * 12 + date_part('month', {value})"
    time = f"date_part('hour', {value}) * 3600000000 + date_part('minute', {value}) * 60000000"
    return f"[{months}, date_part('day', {value}), {time} + date_part('microsecond', {value})]"


def from_parts(rows: list[Row], types: Sequence[str]) -> list[Row]:
    """The rows that `parts_asked` gives, with intervals again."""
    read: list[Callable[[Any], Any] | None] = [_READ.get(spelled) for spelled in types]
    return [
        tuple(value if one is None or value is None else one(value) for one, value in zip(read, row, strict=True))
        for row in rows
    ]


_READ: dict[str, Callable[[Any], Any]] = {
    "INTERVAL": lambda parts: interval(*parts),
    "INTERVAL[]": lambda items: [None if parts is None else interval(*parts) for parts in items],
}
