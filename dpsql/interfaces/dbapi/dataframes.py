"""Released rows as tables of other libraries, with exact types: Arrow, pandas, polars, where they are installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpsql.amounts import CellError
from dpsql.errors import DataError, InterfaceError
from dpsql.interfaces.display.export import make_names_unique
from dpsql.types import DOUBLE, Kind, Type

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


ERROR_FIELDS = ("stderr", "low", "high", "clipped")
"""The columns of a cell's error, behind that of its value."""


@dataclass(frozen=True)
class Frame:
    """Rows with their columns' names and types; a type is None where dpsql has no such type, as for lists."""

    names: tuple[str, ...]
    types: tuple[Type | None, ...]
    rows: list[tuple[Any, ...]]

    def column_values(self, index: int) -> list[Any]:
        return [row[index] for row in self.rows]


def add_error_columns(frame: Frame, errors: Sequence[tuple[CellError | None, ...]]) -> Frame:
    """Each column x that has error bars is followed by x_stderr, x_low, x_high and x_clipped."""
    noisy = [any(bars[index] is not None for bars in errors) for index in range(len(frame.names))]
    names: list[str] = []
    types: list[Type | None] = []
    for name, type_, is_noisy in zip(frame.names, frame.types, noisy, strict=True):
        names += [name, *(f"{name}_{field}" for field in ERROR_FIELDS)] if is_noisy else [name]
        types += [type_, *(DOUBLE for _ in ERROR_FIELDS)] if is_noisy else [type_]
    rows = [_widen_row(row, bars, noisy) for row, bars in zip(frame.rows, errors, strict=True)]
    return Frame(tuple(names), tuple(types), rows)


def _widen_row(row: tuple[Any, ...], bars: tuple[CellError | None, ...], noisy: Sequence[bool]) -> tuple[Any, ...]:
    cells: list[Any] = []
    for value, bar, is_noisy in zip(row, bars, noisy, strict=True):
        cells.append(value)
        if is_noisy:
            cells += [None if bar is None else getattr(bar, field) for field in ERROR_FIELDS]
    return tuple(cells)


def _import_package(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise InterfaceError(f"{module} is not installed", hint=f'Install it: pip install "dpsql[{extra}]"') from None


# --- Arrow -----------------------------------------------------------------------------------------------------------


def to_arrow(frame: Frame) -> pyarrow.Table:
    arrow = _import_package("pyarrow", "arrow")
    arrays = [_to_arrow_array(arrow, type_, frame.column_values(index)) for index, type_ in enumerate(frame.types)]
    return arrow.Table.from_arrays(arrays, names=list(frame.names))


def _to_arrow_array(arrow: Any, type_: Type | None, values: list[Any]) -> Any:
    if type_ is None:  # lists, structs and the untyped NULL: what Arrow makes of the Python values
        return arrow.array(values)
    if type_.kind is Kind.UUID:
        values = [None if value is None else str(value) for value in values]
    try:
        return arrow.array(values, _to_arrow_type(arrow, type_))
    except arrow.ArrowInvalid:
        raise DataError(f"a value does not fit in Arrow's type for {type_}", sqlstate="22003") from None


def _to_arrow_type(arrow: Any, type_: Type) -> Any:
    match type_.kind:
        case Kind.DECIMAL:
            return arrow.decimal128(type_.precision, type_.scale)
        case Kind.HUGEINT:
            return arrow.decimal128(38, 0)  # Arrow has no integer of 128 bits
        case Kind.TIMESTAMP:
            return arrow.timestamp("us")
        case Kind.TIMESTAMPTZ:
            return arrow.timestamp("us", tz="UTC")
        case Kind.TIME:
            return arrow.time64("us")
        case Kind.INTERVAL:
            return arrow.duration("us")
        case kind:
            return getattr(arrow, _ARROW_TYPES[kind])()


_ARROW_TYPES = {
    Kind.BOOLEAN: "bool_", Kind.SMALLINT: "int16", Kind.INTEGER: "int32", Kind.BIGINT: "int64", Kind.REAL: "float32",
    Kind.DOUBLE: "float64", Kind.TEXT: "string", Kind.UUID: "string", Kind.DATE: "date32",
}  # fmt: skip


# --- pandas ----------------------------------------------------------------------------------------------------------


def to_pandas(frame: Frame) -> pandas.DataFrame:
    pandas = _import_package("pandas", "pandas")
    series = []
    for index, type_ in enumerate(frame.types):
        values = frame.column_values(index)
        series.append(pandas.Series(values, dtype=_pandas_dtype(type_, values)))
    table = pandas.concat(series, axis=1)
    table.columns = list(frame.names)
    return table


def _pandas_dtype(type_: Type | None, values: list[Any]) -> str | None:
    """numpy's type where there is no NULL or it has one; else pandas' own, never a float for an integer."""
    if type_ is None:
        return "object"
    missing = any(value is None for value in values)
    match type_.kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return _NULLABLE_DTYPES[type_.kind] if missing else _NULLABLE_DTYPES[type_.kind].lower()
        case Kind.BOOLEAN:
            return "boolean" if missing else "bool"
        case Kind.REAL:
            return "float32"
        case Kind.DOUBLE:
            return "float64"
        case Kind.TIMESTAMP:
            return "datetime64[us]"
        case Kind.TIMESTAMPTZ:
            return "datetime64[us, UTC]"
        case Kind.INTERVAL:
            return "timedelta64[us]"
        case Kind.TEXT:
            return None  # pandas decides: `object` up to version 2, `str` from 3 on
        case _:
            return "object"


_NULLABLE_DTYPES = {Kind.SMALLINT: "Int16", Kind.INTEGER: "Int32", Kind.BIGINT: "Int64"}


# --- polars ----------------------------------------------------------------------------------------------------------


def to_polars(frame: Frame) -> polars.DataFrame:
    """A name that is there twice gets a number, since polars holds each once."""
    library = _import_package("polars", "polars")
    names = make_names_unique(frame.names)
    columns = enumerate(frame.types)
    table: polars.DataFrame = library.DataFrame(
        [_to_polars_series(library, names[index], type_, frame.column_values(index)) for index, type_ in columns]
    )
    return table


def _to_polars_series(polars: Any, name: str, type_: Type | None, values: list[Any]) -> Any:
    if type_ is None:
        return polars.Series(name, values)
    if type_.kind is Kind.UUID:
        values = [None if value is None else str(value) for value in values]
    return polars.Series(name, values, dtype=_to_polars_type(polars, type_))


def _to_polars_type(polars: Any, type_: Type) -> Any:
    match type_.kind:
        case Kind.DECIMAL:
            return polars.Decimal(type_.precision, type_.scale)
        case Kind.TIMESTAMP:
            return polars.Datetime("us")
        case Kind.TIMESTAMPTZ:
            return polars.Datetime("us", "UTC")
        case Kind.INTERVAL:
            return polars.Duration("us")
        case kind:
            return getattr(polars, _POLARS_TYPES[kind])


_POLARS_TYPES = {
    Kind.BOOLEAN: "Boolean", Kind.SMALLINT: "Int16", Kind.INTEGER: "Int32", Kind.BIGINT: "Int64",
    Kind.HUGEINT: "Int128", Kind.REAL: "Float32", Kind.DOUBLE: "Float64", Kind.TEXT: "String", Kind.UUID: "String",
    Kind.DATE: "Date", Kind.TIME: "Time",
}  # fmt: skip
