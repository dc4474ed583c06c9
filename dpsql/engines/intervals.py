"""Intervals as DuckDB has them, month for month: its driver gives each as days and seconds.

A statement whose columns hold intervals is asked again with their parts in their place, as numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpsql.exact import Row
from dpsql.intervals import make_interval

_INTERVAL_TYPES = ("INTERVAL", "INTERVAL[]")


def has_intervals(types: Sequence[str]) -> bool:
    return any(spelled in _INTERVAL_TYPES for spelled in types)


def select_interval_parts(sql: str, types: Sequence[str]) -> str:
    """The statement with months, days and microseconds as a list in the place of each interval.

    Its rows stay in their order: DuckDB keeps that of a sub-select which is only projected, as
    `preserve_insertion_order` says.
    """
    columns = [f'"c{index}"' for index in range(len(types))]
    items = [_interval_parts_sql(column, spelled) for column, spelled in zip(columns, types, strict=True)]
    return f"SELECT {', '.join(items)} FROM ({sql}\n) AS asked({', '.join(columns)})"


def _interval_parts_sql(column: str, spelled: str) -> str:
    if spelled == "INTERVAL":
        return f"CASE WHEN {column} IS NOT NULL THEN {_parts_list_sql(column)} END"
    if spelled == "INTERVAL[]":
        return f"list_transform({column}, lambda x: CASE WHEN x IS NOT NULL THEN {_parts_list_sql('x')} END)"
    return column


def _parts_list_sql(value: str) -> str:
    months = f"date_part('year', {value}) * 12 + date_part('month', {value})"
    time = f"date_part('hour', {value}) * 3600000000 + date_part('minute', {value}) * 60000000"
    return f"[{months}, date_part('day', {value}), {time} + date_part('microsecond', {value})]"


def intervals_from_parts(rows: list[Row], types: Sequence[str]) -> list[Row]:
    """The rows that `select_interval_parts` gives, with intervals again."""
    readers: list[Callable[[Any], Any] | None] = [_INTERVAL_READERS.get(spelled) for spelled in types]
    return [
        tuple(value if reader is None or value is None else reader(value) for reader, value in zip(readers, row, strict=True))
        for row in rows
    ]


_INTERVAL_READERS: dict[str, Callable[[Any], Any]] = {
    "INTERVAL": lambda parts: make_interval(*parts),
    "INTERVAL[]": lambda items: [None if parts is None else make_interval(*parts) for parts in items],
}
