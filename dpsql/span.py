"""Where in the SQL text something stands, for errors that point at it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """Characters `start` to `end` (exclusive) of the statement, counted from 0."""

    start: int
    end: int

    def union(self, other: Span | None) -> Span:
        if other is None:
            return self
        return Span(min(self.start, other.start), max(self.end, other.end))


def caret(text: str, span: Span) -> str:
    """The line that holds the span's start, with a caret below, as psql prints it."""
    start = min(span.start, len(text))
    line_number = text.count("\n", 0, start) + 1
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line = text[line_start : line_end if line_end >= 0 else len(text)].replace("\t", " ")
    prefix = f"LINE {line_number}: "
    return f"{prefix}{line}\n{' ' * (len(prefix) + start - line_start)}^"
