"""Rows as tables of other libraries: types and values, straight from a frame."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from dpsql import DataError
from dpsql.amounts import CellError
from dpsql.interfaces.dbapi.dataframes import Frame, add_error_columns, to_arrow, to_pandas, to_polars
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT, Kind, Type
from tests.support.optional_dependencies import package

NINES = Decimal("9" * 34 + ".9999")


def column(type_: Type | None, *values: Any) -> Frame:
    return Frame(("x",), (type_,), [(value,) for value in values])


@pytest.mark.parametrize(
    ("precision", "scale", "value"),
    [(38, 4, NINES), (38, 0, Decimal(10**38 - 1)), (38, 38, Decimal("0." + "7" * 38)), (9, 2, Decimal("1.50")),
     (38, 4, NINES.copy_negate())],
)  # fmt: skip
def test_decimals_are_exact_everywhere(precision: int, scale: int, value: Decimal) -> None:
    """38 digits are more than a double has, and the scale is the type's own, not that of the values."""
    polars, arrow = package("polars"), package("pyarrow")
    frame = column(Type(Kind.DECIMAL, precision, scale), value, None)
    table = to_polars(frame)
    assert table.schema == {"x": polars.Decimal(precision, scale)} and table["x"].to_list() == [value, None]
    assert table["x"].dtype.precision == precision and table["x"].dtype.scale == scale
    sent = to_arrow(frame)
    assert sent.schema.types == [arrow.decimal128(precision, scale)] and sent["x"].to_pylist() == [value, None]
    package("pandas")
    assert to_pandas(frame)["x"].tolist() == [value, None]


def test_integers_beyond_doubles_and_beyond_64_bits() -> None:
    polars = package("polars")
    package("pandas"), package("pyarrow")
    big, huge = column(BIGINT, 2**53 + 1, None), column(Type(Kind.HUGEINT), 2**100 + 1, None)
    assert to_pandas(big)["x"].dtype == "Int64" and to_pandas(big)["x"][0] == 2**53 + 1
    assert to_pandas(column(BIGINT, 2**53 + 1))["x"].dtype == "int64"
    assert to_polars(huge).schema == {"x": polars.Int128} and to_polars(huge)["x"].to_list() == [2**100 + 1, None]
    assert to_arrow(huge)["x"].to_pylist() == [Decimal(2**100 + 1), None]
    assert to_pandas(huge)["x"].tolist() == [2**100 + 1, None]


def test_what_arrow_cannot_hold_is_reported() -> None:
    package("pyarrow")
    with pytest.raises(DataError, match="does not fit"):
        to_arrow(column(Type(Kind.HUGEINT), 2**127 - 1))


def test_timestamps_have_zones() -> None:
    package("polars"), package("pandas"), package("pyarrow")
    at = dt.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=dt.UTC)
    frame = column(Type(Kind.TIMESTAMPTZ), at, None)
    assert to_polars(frame)["x"].to_list() == to_arrow(frame)["x"].to_pylist() == [at, None]
    assert to_pandas(frame)["x"].dtype == "datetime64[us, UTC]" and to_pandas(frame)["x"][0] == at


def test_no_rows_keep_their_types() -> None:
    polars = package("polars")
    package("pandas"), package("pyarrow")
    frame = Frame(("n", "t", "b"), (INTEGER, TEXT, BOOLEAN), [])
    assert list(to_polars(frame).schema.values()) == [polars.Int32, polars.String, polars.Boolean]
    assert [str(type_) for type_ in to_arrow(frame).schema.types] == ["int32", "string", "bool"]
    assert to_pandas(frame)["n"].dtype == "int32" and len(to_pandas(frame)) == 0


def test_uuids_are_texts_where_there_is_no_such_type() -> None:
    package("polars"), package("pandas"), package("pyarrow")
    frame = column(Type(Kind.UUID), UUID(int=5), None)
    assert to_polars(frame)["x"].to_list() == to_arrow(frame)["x"].to_pylist() == [str(UUID(int=5)), None]
    assert to_pandas(frame)["x"][0] == UUID(int=5)


def test_errors_stand_behind_their_column_and_only_there() -> None:
    frame = Frame(("k", "n", "m"), (TEXT, BIGINT, DOUBLE), [("a", 5, 0.5), ("b", None, 1.5)])
    wide = add_error_columns(frame, [(None, CellError(1.0, 3.0, 8.0, 0.5), None), (None, None, None)])
    assert wide.names == ("k", "n", "n_stderr", "n_low", "n_high", "n_clipped", "m")
    assert wide.types == (TEXT, BIGINT, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE)
    assert wide.rows == [("a", 5, 1.0, 3.0, 8.0, 0.5, 0.5), ("b", None, None, None, None, None, 1.5)]
    assert add_error_columns(frame, [(None,) * 3] * 2) == frame
