"""Dummy rows, made up from what the schema declares.

Law: a function of the declaration alone, and the same each time. It is given no data, and nothing here could read any.

Values are declared ones, or lie between the bounds and on the grid; where NULL is a declared group, it is there too.
Ids are numbered from 1, so that tables which refer to each other join.
"""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from dpsql.schema.model import EPOCH, Column, Schema, Table
from dpsql.types import Kind

MAX_ROWS = 1_000
"""Rows of a table; also what a preview gives out at most."""

MAX_UNITS = 100
"""So many ids are named by the rows of tables that refer to others."""

_ROW_STEP = 617  # has no divisor in common with MOST: each place comes once
_COLUMN_STEP = 101  # columns are told apart by so many places
_NULL_INTERVAL = 7  # one row in so many
_DISTINCT_VALUES = 10
_BASE_TIME = dt.datetime(2024, 1, 1)


def make_dummy_rows(schema: Schema, table: Table) -> tuple[tuple[object, ...], ...]:
    return _make_table_rows(table, schema.find_id_columns(table))


@lru_cache(maxsize=256)
def _make_table_rows(table: Table, ids: frozenset[str]) -> tuple[tuple[object, ...], ...]:
    columns = [[_make_cell(table, column, column_index, row, ids) for row in range(MAX_ROWS)]
               for column_index, column in enumerate(table.columns)]  # fmt: skip
    return tuple(zip(*columns, strict=True))


def _make_cell(table: Table, column: Column, column_index: int, row: int, ids: frozenset[str]) -> object:
    has_domain = column.domain.values is not None or column.domain.is_bounded
    if not has_domain and (column.name in ids or table.is_unique(column.name)):
        return _numbered_value(column, _id_number(table, column, row))
    if column.null_group and (row + column_index) % _NULL_INTERVAL == _NULL_INTERVAL - 1:
        return None
    step_index = (row * _ROW_STEP + column_index * _COLUMN_STEP) % MAX_ROWS
    if column.domain.values is not None:
        return column.domain.values[step_index % len(column.domain.values)]
    return _bounded_value(column, step_index) if column.domain.is_bounded else _unbounded_value(column, step_index)


def _id_number(table: Table, column: Column, row: int) -> int:
    """An id: a new one in each row if the column is unique, else one that several rows share."""
    return row + 1 if table.is_unique(column.name) else row % MAX_UNITS + 1


def _bounded_value(column: Column, step_index: int) -> object:
    """Steps of the grid, or of the type, from the lower bound on."""
    low, high = column.domain.bounds
    step = column.grid or _smallest_step(column)
    steps = int((high - low) / step)
    number = low + step * (step_index % (steps + 1) if steps < MAX_ROWS else step_index * (steps // (MAX_ROWS - 1)))
    return _number_to_value(column, number)


def _smallest_step(column: Column) -> Fraction:
    low, high = column.domain.bounds
    if column.type.is_float:
        return Fraction(high - low) / (MAX_ROWS - 1) or Fraction(1)
    return Fraction(1, 10 ** (column.type.scale or 0))


def _number_to_value(column: Column, number: Fraction) -> object:
    match column.type.kind:
        case Kind.DATE:
            return EPOCH.date() + dt.timedelta(days=int(number))
        case Kind.TIMESTAMP:
            return EPOCH + dt.timedelta(microseconds=int(number))
        case Kind.TIMESTAMPTZ:
            return (EPOCH + dt.timedelta(microseconds=int(number))).replace(tzinfo=dt.UTC)
        case Kind.DECIMAL:
            scale = column.type.scale or 0
            return Decimal(int(number * 10**scale)).scaleb(-scale)
        case _:
            return float(number) if column.type.is_float else int(number)


def _unbounded_value(column: Column, step_index: int) -> object:
    """Where nothing tells what the values are."""
    match column.type.kind:
        case Kind.BOOLEAN:
            return step_index % 2 == 0
        case Kind.DATE:
            return _BASE_TIME.date() + dt.timedelta(days=step_index % 366)
        case Kind.TIMESTAMP:
            return _BASE_TIME + dt.timedelta(hours=step_index)
        case Kind.TIMESTAMPTZ:
            return (_BASE_TIME + dt.timedelta(hours=step_index)).replace(tzinfo=dt.UTC)
        case Kind.TIME:
            return (_BASE_TIME + dt.timedelta(minutes=step_index)).time()
        case Kind.INTERVAL:
            return dt.timedelta(hours=step_index)
        case _:
            return _numbered_value(column, step_index % _DISTINCT_VALUES + 1)


def _numbered_value(column: Column, number: int) -> object:
    """The value with this number: ward-1, 1, 1.0 or an id that ends in it."""
    match column.type.kind:
        case Kind.TEXT:
            max_prefix = column.max_length - len(str(number)) - 1
            return f"{column.name[:max_prefix]}-{number}" if max_prefix > 0 else str(number)[-column.max_length :]
        case Kind.UUID:
            return uuid.UUID(int=number)
        case Kind.DECIMAL:
            integer = number % 10 ** ((column.type.precision or 18) - (column.type.scale or 0))
            return Decimal(integer).quantize(Decimal(1).scaleb(-(column.type.scale or 0)))
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.TIME | Kind.INTERVAL | Kind.BOOLEAN:
            return _unbounded_value(column, number)
        case _:
            return float(number) if column.type.is_float else number
