"""Tables of many rows as arrays: the sandbox scans them, where it copies lists of Python's values one by one.

A column is either places in a list of values, or numbers that its type is made of: days and microseconds since 1970 for
times, units of the last digit for decimals. What is masked is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsql.engines.duckdb import duckdb_type_name, quote_identifier
from dpsql.types import Kind, Type

MAX_DECIMAL_SCALE = 18
"""Digits behind the point of a decimal that is made of numbers of 64 bits: times 10**-18 is exact in DECIMAL(38)."""


@dataclass(frozen=True, eq=False)
class DictionaryColumn:
    """Places in `values`, from 0 on; None among these is NULL."""

    codes: np.ndarray[Any, Any]
    values: tuple[Any, ...]

    @property
    def raw_array(self) -> np.ndarray[Any, Any]:
        return self.codes


@dataclass(frozen=True, eq=False)
class NumericColumn:
    """Numbers of 64 bits, with a mask."""

    numbers: np.ma.MaskedArray[Any, Any]

    @property
    def raw_array(self) -> np.ndarray[Any, Any]:
        return self.numbers


@dataclass(frozen=True, eq=False)
class ArrayTable:
    """By the name under which the statement reads it."""

    name: str
    columns: tuple[tuple[str, Type], ...]
    arrays: tuple[DictionaryColumn | NumericColumn, ...]

    def __post_init__(self) -> None:
        if len(self.arrays) != len(self.columns) or len({len(array.raw_array) for array in self.arrays}) != 1:
            raise ValueError("a table of arrays has one value for each row and column, and a column")

    @property
    def view_name(self) -> str:
        """What a statement's cursor scans the arrays by."""
        return f"arrays of {self.name}"

    @property
    def raw_arrays(self) -> Mapping[str, np.ndarray[Any, Any]]:
        return {f"a{index}": array.raw_array for index, array in enumerate(self.arrays)}

    @property
    def parameters(self) -> list[Sequence[Any]]:
        return [array.values for array in self.arrays if isinstance(array, DictionaryColumn)]

    def render_select(self, first: int) -> str:
        """Its columns in their types; parameters are counted from `first` on."""
        columns = []
        for index, ((name, type_), column) in enumerate(zip(self.columns, self.arrays, strict=True)):
            array = quote_identifier(f"a{index}")
            if isinstance(column, DictionaryColumn):
                columns.append(f"{render_dictionary_lookup(array, type_, first)} AS {quote_identifier(name)}")
                first += 1
            else:
                columns.append(f"{render_numeric(array, type_)} AS {quote_identifier(name)}")
        # With its place: no part of a statement has such a name for something else.
        return f"SELECT {', '.join(columns)} FROM temp.main.{quote_identifier(self.view_name)}"


def render_dictionary_lookup(array: str, type_: Type, parameter: int) -> str:
    return f"(${parameter}::{list_type_of(type_)})[{array}::BIGINT + 1]"


def render_numeric(array: str, type_: Type) -> str:
    match type_.kind:
        case Kind.DATE:
            return f"(DATE '1970-01-01' + {array}::INTEGER)"
        case Kind.TIMESTAMP:
            return f"make_timestamp({array})"
        case Kind.TIMESTAMPTZ:
            return f"make_timestamptz({array})"
        case Kind.DECIMAL if type_.scale:
            digit = f"CAST('{'0.'.ljust(type_.scale + 1, '0')}1' AS DECIMAL({MAX_DECIMAL_SCALE}, {type_.scale}))"
            return f"({array}::DECIMAL(19, 0) * {digit})::{duckdb_type_name(type_)}"
        case _:
            return f"{array}::{duckdb_type_name(type_)}"


def list_type_of(type_: Type | str) -> str:
    """The type of a parameter that has the values of a column; text spells a type of DuckDB's own."""
    if isinstance(type_, str):
        return f"{type_}[]"
    return "VARCHAR[]::INTERVAL[]" if type_.kind is Kind.INTERVAL else f"{duckdb_type_name(type_)}[]"
