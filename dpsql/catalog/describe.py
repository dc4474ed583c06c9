"""What a table or column is told to be: the comments that tools show beside names. The owner's own words first."""

from __future__ import annotations

from dpsql.catalog.shows import format_bounds, format_values
from dpsql.schema.model import Column, ForeignUnit, OwnUnit, RowUnit, Schema, Table, View
from dpsql.types import BOOLEAN


def table_comment(schema: Schema, table: Table | View) -> str:
    return " ".join((*_to_sentence(table.description), _describe_privacy(schema, table)))


def _to_sentence(description: str | None) -> tuple[str, ...]:
    if description is None:
        return ()
    return (description if description[-1] in ".!?…" else f"{description}.",)


def _describe_privacy(schema: Schema, table: Table | View) -> str:
    if isinstance(table, View):
        return "A view."
    match table.unit:
        case None:
            return "Public."
        case RowUnit():
            return "Private: each row is its own privacy unit."
        case OwnUnit(column):
            return f"Private: the privacy unit is {column}."
        case ForeignUnit(column, target, key):
            return f"Private: the privacy unit is {schema.privacy.unit}, by {column} = {target}.{key}."


def column_comment(table: Table | View, column: Column) -> str | None:
    parts: list[str] = []
    match table.unit if isinstance(table, Table) else None:
        case OwnUnit(unit) if unit == column.name:
            parts.append("The privacy unit.")
        case ForeignUnit(link, target, key) if link == column.name:
            parts.append(f"Leads to the privacy unit: {target}.{key}.")
        case _:
            pass
    if column.domain.values is not None and column.type != BOOLEAN:
        parts.append(f"Values: {format_values(column.domain)}.")
    elif column.domain.is_bounded:
        parts.append(f"Bounds: {format_bounds(column.domain)}.")
    if not parts:
        return column.description
    return " ".join((*_to_sentence(column.description), *parts))
