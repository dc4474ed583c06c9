"""Rows that are made up from what the schema declares, for who may not see real ones.

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

from dpsql.schema.domain import EPOCH
from dpsql.schema.model import Column, Schema, Table
from dpsql.types import Kind

MOST = 1_000
"""Rows of a table; also what a preview gives out at most."""

UNITS = 100
"""So many ids are named by the rows of tables that refer to others."""

_STEP = 617  # has no divisor in common with MOST: each place comes once
_SPREAD = 101  # columns are told apart by so many places
_NULL = 7  # one row in so many
_WORDS = 10
_NOON = dt.datetime(2024, 1, 1)


def made_up_rows(schema: Schema, table: Table) -> tuple[tuple[object, ...], ...]:
    return _rows(table, schema.id_columns(table))


@lru_cache(maxsize=256)
def _rows(table: Table, ids: frozenset[str]) -> tuple[tuple[object, ...], ...]:
    columns = [[_cell(table, column, place, row, ids) for row in range(MOST)]
               for place, column in enumerate(table.columns)]  # fmt: skip
    return tuple(zip(*columns, strict=True))


def _cell(table: Table, column: Column, place: int, row: int, ids: frozenset[str]) -> object:
    known = column.domain.values is not None or column.domain.bounded
    if not known and (column.name in ids or table.is_unique(column.name)):
        return _named(column, _number(table, column, row))
    if column.null_group and (row + place) % _NULL == _NULL - 1:
        return None
    at = (row * _STEP + place * _SPREAD) % MOST
    if column.domain.values is not None:
        return column.domain.values[at % len(column.domain.values)]
    return _between(column, at) if column.domain.bounded else _free(column, at)


def _number(table: Table, column: Column, row: int) -> int:
    """What is unique is another in each row; of any other id there are several rows."""
    return row + 1 if table.is_unique(column.name) else row % UNITS + 1


def _between(column: Column, at: int) -> object:
    """Steps of the grid, or of the type, from the lower bound on."""
    low, high = column.domain.bounds
    step = column.grid or _least_step(column)
    steps = int((high - low) / step)
    number = low + step * (at % (steps + 1) if steps < MOST else at * (steps // (MOST - 1)))
    return _value(column, number)


def _least_step(column: Column) -> Fraction:
    low, high = column.domain.bounds
    if column.type.is_float:
        return Fraction(high - low) / (MOST - 1) or Fraction(1)
    return Fraction(1, 10 ** (column.type.scale or 0))


def _value(column: Column, number: Fraction) -> object:
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


def _free(column: Column, at: int) -> object:
    """Where nothing tells what the values are."""
    match column.type.kind:
        case Kind.BOOLEAN:
            return at % 2 == 0
        case Kind.DATE:
            return _NOON.date() + dt.timedelta(days=at % 366)
        case Kind.TIMESTAMP:
            return _NOON + dt.timedelta(hours=at)
        case Kind.TIMESTAMPTZ:
            return (_NOON + dt.timedelta(hours=at)).replace(tzinfo=dt.UTC)
        case Kind.TIME:
            return (_NOON + dt.timedelta(minutes=at)).time()
        case Kind.INTERVAL:
            return dt.timedelta(hours=at)
        case _:
            return _named(column, at % _WORDS + 1)


def _named(column: Column, number: int) -> object:
    """The value with this number: ward-1, 1, 1.0 or an id that ends in it."""
    match column.type.kind:
        case Kind.TEXT:
            room = column.max_length - len(str(number)) - 1
            return f"{column.name[:room]}-{number}" if room > 0 else str(number)[-column.max_length :]
        case Kind.UUID:
            return uuid.UUID(int=number)
        case Kind.DECIMAL:
            whole = number % 10 ** ((column.type.precision or 18) - (column.type.scale or 0))
            return Decimal(whole).quantize(Decimal(1).scaleb(-(column.type.scale or 0)))
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.TIME | Kind.INTERVAL | Kind.BOOLEAN:
            return _free(column, number)
        case _:
            return float(number) if column.type.is_float else number
