"""What can be named at the prompt: read once from the connection, found again by any spelling."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpsql.dbapi.connection import Connection
    from dpsql.session import NamedColumn, NamedFunction, NamedSetting, NamedTable

MAX_PATHS = 200


def _no_paths(typed: str) -> list[str]:
    return []


@dataclass(frozen=True)
class CompletionNames:
    """`paths` gives the files whose path begins as typed."""

    tables: tuple[NamedTable, ...] = ()
    functions: tuple[NamedFunction, ...] = ()
    settings: tuple[NamedSetting, ...] = ()
    paths: Callable[[str], list[str]] = field(default=_no_paths, compare=False)

    @cached_property
    def tables_by_name(self) -> dict[str, NamedTable]:
        return {table.name.lower(): table for table in self.tables}

    @cached_property
    def all_columns(self) -> list[tuple[str, NamedTable, NamedColumn]]:
        """Each column's name in lower case, once, with the first table that has it."""
        columns: dict[str, tuple[str, NamedTable, NamedColumn]] = {}
        for table in self.tables:
            for column in table.columns:
                columns.setdefault(column.name.lower(), (column.name.lower(), table, column))
        return list(columns.values())


def read_names(connection: Connection) -> CompletionNames:
    return CompletionNames(connection.tables(), connection.functions(), connection.settings(), list_paths)


def list_paths(typed: str) -> list[str]:
    """Files and folders, the latter with a slash; hidden ones only where a dot is typed."""
    folder, prefix = os.path.split(typed)
    try:
        with os.scandir(os.path.expanduser(folder) or ".") as entries:
            matches = [entry.name + (os.sep if entry.is_dir() else "") for entry in entries if entry.name.startswith(prefix)]
    except OSError:
        return []
    visible = sorted(name for name in matches if prefix or not name.startswith("."))
    return [os.path.join(folder, name) for name in visible[:MAX_PATHS]]


def unquote_name(text: str) -> str:
    """The name that is written so, perhaps with its last quote still missing."""
    if not text.startswith('"'):
        return text
    inside = text[1:]
    return (inside[:-1] if _has_closing_quote(inside) else inside).replace('""', '"')


def _has_closing_quote(inside: str) -> bool:
    return (len(inside) - len(inside.rstrip('"'))) % 2 == 1


def quote_literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
