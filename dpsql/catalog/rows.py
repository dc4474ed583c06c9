"""Rows about the schema, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.types import Type

CatalogRow = tuple[object, ...]


@dataclass(frozen=True)
class CatalogTable:
    columns: tuple[tuple[str, Type], ...]
    rows: tuple[CatalogRow, ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("a catalog's row has one value for each column")

    def column_values(self) -> list[list[object]]:
        """The same, one list for each column."""
        return [[row[index] for row in self.rows] for index in range(len(self.columns))]
