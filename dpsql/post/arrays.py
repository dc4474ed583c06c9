"""Tables of many rows as arrays: the sandbox scans them, where it copies lists of Python's values one by one.

A column is either places in a list of values, or numbers that its type is made of: days and microseconds since 1970 for
times, units of the last digit for decimals. What is masked is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsql.engines.duckdb import identifier, spelling
from dpsql.types import Kind, Type

MOST_SCALE = 18
"""Digits behind the point of a decimal that is made of numbers of 64 bits: times 10**-18 is exact in DECIMAL(38)."""


@dataclass(frozen=True, eq=False)
class Coded:
    """Places in `values`, from 0 on; None among these is NULL."""

    codes: np.ndarray[Any, Any]
    values: tuple[Any, ...]

    @property
    def scanned(self) -> np.ndarray[Any, Any]:
        return self.codes


@dataclass(frozen=True, eq=False)
class Numbered:
    """Numbers of 64 bits, with a mask."""

    numbers: np.ma.MaskedArray[Any, Any]

    @property
    def scanned(self) -> np.ndarray[Any, Any]:
        return self.numbers


@dataclass(frozen=True, eq=False)
class ArrayTable:
    """By the name under which the statement reads it."""

    name: str
    columns: tuple[tuple[str, Type], ...]
    arrays: tuple[Coded | Numbered, ...]

    def __post_init__(self) -> None:
        if len(self.arrays) != len(self.columns) or len({len(one.scanned) for one in self.arrays}) != 1:
            raise ValueError("a table of arrays has one value for each row and column, and a column")

    @property
    def view(self) -> str:
        """What a statement's cursor scans the arrays by."""
        return f"arrays of {self.name}"

    @property
    def scanned(self) -> Mapping[str, np.ndarray[Any, Any]]:
        return {f"a{place}": one.scanned for place, one in enumerate(self.arrays)}

    @property
    def parameters(self) -> list[Sequence[Any]]:
        return [one.values for one in self.arrays if isinstance(one, Coded)]

    def select(self, first: int) -> str:
        """Its columns in their types; parameters are counted from `first` on."""
        columns = []
        for place, ((name, type_), one) in enumerate(zip(self.columns, self.arrays, strict=True)):
            array = identifier(f"a{place}")
            if isinstance(one, Coded):
                columns.append(f"{coded(array, type_, first)} AS {identifier(name)}")
                first += 1
            else:
                columns.append(f"{numbered(array, type_)} AS {identifier(name)}")
        # With its place: no part of a statement has such a name for something else.
        return f"SELECT {', '.join(columns)} FROM temp.main.{identifier(self.view)}"


def coded(array: str, type_: Type, parameter: int) -> str:
    return f"(${parameter}::{list_of(type_)})[{array}::BIGINT + 1]"


def numbered(array: str, type_: Type) -> str:
    match type_.kind:
        case Kind.DATE:
            return f"(DATE '1970-01-01' + {array}::INTEGER)"
        case Kind.TIMESTAMP:
            return f"make_timestamp({array})"
        case Kind.TIMESTAMPTZ:
            return f"make_timestamptz({array})"
        case Kind.DECIMAL if type_.scale:
            digit = f"CAST('{'0.'.ljust(type_.scale + 1, '0')}1' AS DECIMAL({MOST_SCALE}, {type_.scale}))"
            return f"({array}::DECIMAL(19, 0) * {digit})::{spelling(type_)}"
        case _:
            return f"{array}::{spelling(type_)}"


def list_of(type_: Type | str) -> str:
    """The type of a parameter that has the values of a column; text spells a type of DuckDB's own."""
    if isinstance(type_, str):
        return f"{type_}[]"
    return "VARCHAR[]::INTERVAL[]" if type_.kind is Kind.INTERVAL else f"{spelling(type_)}[]"
