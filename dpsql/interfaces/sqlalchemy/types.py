"""dpsql's types as SQLAlchemy's, and values as dpsql binds them.

A time, an interval or a UUID is bound as text with a cast (`?::DATE`), so that it has its type also where nothing
beside it tells. A cast of a literal is worked out when the statement is compiled: it asks the same question as the bare
text.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import types
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine.interfaces import Dialect

from dpsql.types import Kind, Type

_TYPES_BY_KIND: dict[Kind, Callable[[], types.TypeEngine[Any]]] = {
    Kind.BOOLEAN: types.BOOLEAN,
    Kind.SMALLINT: types.SMALLINT,
    Kind.INTEGER: types.INTEGER,
    Kind.BIGINT: types.BIGINT,
    Kind.HUGEINT: lambda: types.NUMERIC(39, 0),
    Kind.REAL: types.REAL,
    Kind.DOUBLE: types.DOUBLE_PRECISION,
    Kind.TEXT: types.TEXT,
    Kind.DATE: types.DATE,
    Kind.TIMESTAMP: types.TIMESTAMP,
    Kind.TIMESTAMPTZ: lambda: types.TIMESTAMP(timezone=True),
    Kind.TIME: types.TIME,
    Kind.INTERVAL: postgresql.INTERVAL,
    Kind.UUID: types.UUID,
}


def to_sqlalchemy_type(type_: Type) -> types.TypeEngine[Any]:
    if type_.kind is Kind.DECIMAL:
        return types.NUMERIC(type_.precision, type_.scale)
    return _TYPES_BY_KIND[type_.kind]()


class BoundNumeric(types.Numeric[Any]):
    """A Decimal also where the answer was worked out in doubles, as divisions are."""

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        if not self.asdecimal:
            return lambda value: None if value is None else float(value)
        return lambda value: value if value is None or isinstance(value, Decimal) else Decimal(str(value))


class BoundDate(types.Date):
    render_bind_cast = True

    def literal_processor(self, dialect: Dialect) -> Callable[[dt.date], str]:
        return lambda value: f"'{value.isoformat()}'::DATE"


class BoundDateTime(types.DateTime):
    render_bind_cast = True

    def literal_processor(self, dialect: Dialect) -> Callable[[dt.datetime], str]:
        zone = "TIMESTAMP WITH TIME ZONE" if self.timezone else "TIMESTAMP"
        return lambda value: f"'{value.isoformat(' ')}'::{zone}"


class BoundTime(types.Time):
    render_bind_cast = True

    def literal_processor(self, dialect: Dialect) -> Callable[[dt.time], str]:
        return lambda value: f"'{value.isoformat()}'::TIME"


class BoundUuid(types.Uuid[Any]):
    render_bind_cast = True

    def literal_processor(self, dialect: Dialect) -> Callable[[Any], str]:
        return lambda value: f"'{UUID(str(value))}'::UUID"


class BoundInterval(postgresql.INTERVAL):
    """INTERVAL; values come back as timedeltas."""

    render_bind_cast = True

    # SQLAlchemy's own dialects narrow it in the same way: it is only called with an Interval.
    @classmethod
    def adapt_emulated_to_native(cls, interval: types.Interval, **kw: Any) -> BoundInterval:  # type: ignore[override]
        return cls(precision=interval.second_precision)

    def bind_processor(self, dialect: Dialect) -> Callable[[dt.timedelta | None], str | None]:
        return lambda value: None if value is None else format_interval(value)

    def literal_processor(self, dialect: Dialect) -> Callable[[dt.timedelta], str]:
        return lambda value: f"'{format_interval(value)}'::INTERVAL"


def format_interval(value: dt.timedelta) -> str:
    """Exact: a timedelta has days, seconds and microseconds, of which only the days may be negative."""
    return f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"


COLSPECS: dict[type[types.TypeEngine[Any]], type[types.TypeEngine[Any]]] = {
    types.Numeric: BoundNumeric,
    types.Float: types.Float,
    types.Date: BoundDate,
    types.DateTime: BoundDateTime,
    types.Time: BoundTime,
    types.Uuid: BoundUuid,
    types.Interval: BoundInterval,
    postgresql.INTERVAL: BoundInterval,
}
