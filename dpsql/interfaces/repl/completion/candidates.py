"""Candidates, gathered and put in order: best matches first, then by kind, then as the schema has them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from dpsql.base.lexer import quote_name

if TYPE_CHECKING:
    from dpsql.interfaces.dbapi.connection import Connection
    from dpsql.session.session import NamedColumn, NamedFunction, NamedSetting, NamedTable

# How well a name answers to what was typed: from its beginning, from a word within it, or by its letters in order.

MATCH_PREFIX, MATCH_WORD, MATCH_SUBSTRING, MATCH_LETTERS = range(4)

_WORD_SEPARATOR = re.compile(r"[^a-z0-9]+")


def rank_match(typed: str, name: str, loosely: bool = True) -> int | None:
    """The smaller the better; None: not at all. Both in any case.

    >>> [rank_match(typed, "patient_id") for typed in ("pat", "id", "tien", "ptd", "xyz")]
    [0, 1, 2, 3, None]
    """
    typed_lower, lower = typed.lower(), name.lower()
    if lower.startswith(typed_lower):
        return MATCH_PREFIX
    if not loosely:
        return None
    if any(word.startswith(typed_lower) for word in _WORD_SEPARATOR.split(lower)[1:]):
        return MATCH_WORD
    if typed_lower in lower:
        return MATCH_SUBSTRING if len(typed_lower) > 1 else None
    return (
        MATCH_LETTERS
        if len(typed_lower) > 1 and lower[0] == typed_lower[0] and _has_letters_in_order(typed_lower, lower)
        else None
    )


def _has_letters_in_order(letters: str, name: str) -> bool:
    at = 0
    for letter in letters:
        at = name.find(letter, at) + 1
        if not at:
            return False
    return True


MAX_CANDIDATES = 200
CANDIDATE_KINDS = ("join", "value", "column", "alias", "table", "setting", "command", "path", "function", "keyword")
"""Of candidates, the likelier ones first."""


@dataclass(frozen=True)
class CompletionCandidate:
    """`text` takes the place of what was typed from `start` to the cursor; `meta` is a word about it."""

    text: str
    start: int
    display: str
    kind: str
    meta: str = ""


@dataclass
class CandidateMenu:
    """What answers to `typed`, which begins at `start`; `quotes`: a double quote was typed, so names are quoted."""

    typed: str
    start: int
    quotes: bool = False
    upper: bool = True
    matches: dict[tuple[str, str], tuple[tuple[int, int, int, int], CompletionCandidate]] = field(default_factory=dict)

    def add(self, kind: str, name: str, text: str, meta: str = "", display: str = "", loosely: bool = True) -> None:
        """`name` is compared with the typed letters, `text` is what is inserted."""
        matched = rank_match(self.typed, name, loosely)
        if matched is not None and (kind, text) not in self.matches:
            order = (matched, CANDIDATE_KINDS.index(kind), len(name) != len(self.typed), len(self.matches))
            self.matches[kind, text] = (order, CompletionCandidate(text, self.start, display or text, kind, meta))

    def add_name(self, kind: str, name: str, meta: str = "", before: str = "") -> None:
        """A table or column, quoted where it must be; `before` is its qualifier with a dot."""
        self.add(kind, name, before + quote_name(name, self.quotes), meta)

    def add_keywords(self, *phrases: str) -> None:
        """Keywords, in the case of what is typed."""
        for phrase in phrases if not self.quotes else ():
            self.add("keyword", phrase, phrase.upper() if self.upper else phrase.lower(), loosely=False)

    def list_candidates(self) -> list[CompletionCandidate]:
        return [candidate for _, candidate in sorted(self.matches.values(), key=lambda entry: entry[0])][
            :MAX_CANDIDATES
        ]


# What can be named at the prompt: read once from the connection, found again by any spelling.

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
            matches = [
                entry.name + (os.sep if entry.is_dir() else "") for entry in entries if entry.name.startswith(prefix)
            ]
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
