"""\\d and its sisters: what there is to ask, from the schema alone."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from dpsql.display.screen import Screen, terminal_width
from dpsql.display.text import escape_text
from dpsql.repl.show import format_listing
from dpsql.repl.view import DisplayOptions

if TYPE_CHECKING:
    from dpsql.session import NamedColumn, NamedFunction, NamedTable


def format_table_list(tables: list[NamedTable], view: DisplayOptions, screen: Screen | None) -> list[str]:
    rows = [(table.name, table.kind, table.description or table.comment or "") for table in tables]
    return format_listing(("name", "kind", "comment"), rows, view, screen)


def format_table_description(table: NamedTable, view: DisplayOptions, screen: Screen | None) -> list[str]:
    """Its columns, and in full beneath them what a narrow table has no room for."""
    heads = ["column", "type", "bounds", "note"]
    rows = [(declared.name, str(declared.type), declared.bounds or "", _column_note(table, declared)) for declared in table.columns]
    used = [index for index in range(len(heads)) if any(row[index] for row in rows)]
    cells = [tuple(row[index] for index in used) for row in rows]
    width = 100 if screen is None else terminal_width(screen.out) or 100
    lines = [f"{'View' if table.kind == 'view' else f'{table.kind.capitalize()} table'} {escape_text(table.name)}"]
    lines += format_listing([heads[index] for index in used], cells, view, screen)
    for column in table.columns:
        if column.values and str(column.type) != "boolean":
            lines += _wrap_text(f"Values of {escape_text(column.name)}: {', '.join(map(escape_text, column.values))}", width)
    lines += [f"Unique: {', '.join(map(escape_text, key.columns))}" for key in table.unique]
    return lines + _wrap_text(escape_text(table.comment or ""), width)


def _column_note(table: NamedTable, column: NamedColumn) -> str:
    key = next((reference for reference in table.foreign if reference.column == column.name), None)
    unit = "the privacy unit" if column.is_unit else "" if key is None else f"{key.table}.{key.key}"
    return "; ".join(part for part in (column.description or "", unit) if part)


def _wrap_text(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(20, width), subsequent_indent="  ")


def format_function_list(functions: list[NamedFunction], view: DisplayOptions, screen: Screen | None) -> list[str]:
    rows = [(function.name, function.kind, function.example) for function in sorted(functions, key=lambda function: function.name)]
    return format_listing(("function", "kind", "example"), rows, view, screen)
