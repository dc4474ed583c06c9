"""Candidates, gathered and put in order: best matches first, then by kind, then as the schema has them."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsql.quoting import quoted
from dpsql.repl.matching import rank

MOST = 200
KINDS = ("join", "value", "column", "alias", "table", "setting", "command", "path", "function", "keyword")
"""Of candidates, the likelier ones first."""


@dataclass(frozen=True)
class Candidate:
    """`text` takes the place of what was typed from `start` to the cursor; `meta` is a word about it."""

    text: str
    start: int
    display: str
    kind: str
    meta: str = ""


@dataclass
class Menu:
    """What answers to `typed`, which begins at `start`; `quotes`: a double quote was typed, so names are quoted."""

    typed: str
    start: int
    quotes: bool = False
    upper: bool = True
    found: dict[tuple[str, str], tuple[tuple[int, int, int, int], Candidate]] = field(default_factory=dict)

    def add(self, kind: str, sought: str, text: str, meta: str = "", display: str = "", loosely: bool = True) -> None:
        """`sought` is what the typed letters are held against, `text` what is inserted."""
        matched = rank(self.typed, sought, loosely)
        if matched is not None and (kind, text) not in self.found:
            order = (matched, KINDS.index(kind), len(sought) != len(self.typed), len(self.found))
            self.found[kind, text] = (order, Candidate(text, self.start, display or text, kind, meta))

    def name(self, kind: str, name: str, meta: str = "", before: str = "") -> None:
        """A table or column, quoted where it must be; `before` is its qualifier with a dot."""
        self.add(kind, name, before + quoted(name, self.quotes), meta)

    def words(self, *phrases: str) -> None:
        """Keywords, in the case of what is typed."""
        for phrase in phrases if not self.quotes else ():
            self.add("keyword", phrase, phrase.upper() if self.upper else phrase.lower(), loosely=False)

    def candidates(self) -> list[Candidate]:
        return [candidate for _, candidate in sorted(self.found.values(), key=lambda one: one[0])][:MOST]
