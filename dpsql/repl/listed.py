"""\\d and its sisters: what there is to ask, from the schema alone."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from dpsql.display.screen import Screen, terminal_width
from dpsql.display.text import shown
from dpsql.repl.show import listing
from dpsql.repl.view import View

if TYPE_CHECKING:
    from dpsql.session import NamedColumn, NamedFunction, NamedTable


def tables_listed(tables: list[NamedTable], view: View, screen: Screen | None) -> list[str]:
    rows = [(one.name, one.kind, one.description or one.comment or "") for one in tables]
    return listing(("name", "kind", "comment"), rows, view, screen)


def table_described(table: NamedTable, view: View, screen: Screen | None) -> list[str]:
    """Its columns, and in full beneath them what a narrow table has no room for."""
    heads = ["column", "type", "bounds", "note"]
    rows = [(one.name, str(one.type), one.bounds or "", _note(table, one)) for one in table.columns]
    kept = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    cells = [tuple(row[place] for place in kept) for row in rows]
    width = 100 if screen is None else terminal_width(screen.out) or 100
    lines = [f"{'View' if table.kind == 'view' else f'{table.kind.capitalize()} table'} {shown(table.name)}"]
    lines += listing([heads[place] for place in kept], cells, view, screen)
    for column in table.columns:
        if column.values and str(column.type) != "boolean":
            lines += _wrapped(f"Values of {shown(column.name)}: {', '.join(map(shown, column.values))}", width)
    lines += [f"Unique: {', '.join(map(shown, key.columns))}" for key in table.unique]
    return lines + _wrapped(shown(table.comment or ""), width)


def _note(table: NamedTable, column: NamedColumn) -> str:
    key = next((one for one in table.foreign if one.column == column.name), None)
    unit = "the privacy unit" if column.is_unit else "" if key is None else f"{key.table}.{key.key}"
    return "; ".join(part for part in (column.description or "", unit) if part)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(20, width), subsequent_indent="  ")


def functions_listed(functions: list[NamedFunction], view: View, screen: Screen | None) -> list[str]:
    rows = [(one.name, one.kind, one.example) for one in sorted(functions, key=lambda one: one.name)]
    return listing(("function", "kind", "example"), rows, view, screen)
