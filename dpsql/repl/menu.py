"""Candidates, gathered and put in order: best matches first, then by kind, then as the schema has them."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsql.quoting import quote_name
from dpsql.repl.matching import rank_match

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
    found: dict[tuple[str, str], tuple[tuple[int, int, int, int], CompletionCandidate]] = field(default_factory=dict)

    def add(self, kind: str, sought: str, text: str, meta: str = "", display: str = "", loosely: bool = True) -> None:
        """`sought` is what the typed letters are held against, `text` what is inserted."""
        matched = rank_match(self.typed, sought, loosely)
        if matched is not None and (kind, text) not in self.found:
            order = (matched, CANDIDATE_KINDS.index(kind), len(sought) != len(self.typed), len(self.found))
            self.found[kind, text] = (order, CompletionCandidate(text, self.start, display or text, kind, meta))

    def add_name(self, kind: str, name: str, meta: str = "", before: str = "") -> None:
        """A table or column, quoted where it must be; `before` is its qualifier with a dot."""
        self.add(kind, name, before + quote_name(name, self.quotes), meta)

    def add_keywords(self, *phrases: str) -> None:
        """Keywords, in the case of what is typed."""
        for phrase in phrases if not self.quotes else ():
            self.add("keyword", phrase, phrase.upper() if self.upper else phrase.lower(), loosely=False)

    def list_candidates(self) -> list[CompletionCandidate]:
        return [candidate for _, candidate in sorted(self.found.values(), key=lambda entry: entry[0])][:MAX_CANDIDATES]
