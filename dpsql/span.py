"""Where in the SQL text something stands, for errors that point at it."""

from __future__ import annotations

from dataclasses import dataclass

_MIN_COLUMNS = 20
"""Columns of a line that are shown, however narrow the screen."""


@dataclass(frozen=True)
class Span:
    """Characters `start` to `end` (exclusive) of the statement, counted from 0."""

    start: int
    end: int

    def union(self, other: Span | None) -> Span:
        if other is None:
            return self
        return Span(min(self.start, other.start), max(self.end, other.end))


def format_caret(text: str, span: Span, width: int | None = None) -> str:
    """The line that holds the span's start, with a caret below, as psql prints it; cut to a width around the caret."""
    start = min(span.start, len(text))
    line_number = text.count("\n", 0, start) + 1
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line = text[line_start : line_end if line_end >= 0 else len(text)].replace("\t", " ")
    prefix, at = f"LINE {line_number}: ", start - line_start
    max_width = None if width is None else max(_MIN_COLUMNS, width - len(prefix) - 1)
    if max_width is not None and len(line) > max_width:
        line, at = _cut_line(line, at, max_width)
    return f"{prefix}{line}\n{' ' * (len(prefix) + at)}^"


def _cut_line(line: str, at: int, max_width: int) -> tuple[str, int]:
    """As much of the line as there is room for, with dots where it goes on; and where `at` stands in it.

    >>> _cut_line("SELECT a, b, c, d FROM somewhere", 13, 20)
    ('... a, b, c, d FR...', 10)
    """
    begin = max(0, min(at - max_width // 2, len(line) - max_width))
    shown = list(line[begin : begin + max_width])
    if begin > 0:
        shown[:3] = "..."
    if begin + max_width < len(line):
        shown[-3:] = "..."
    return "".join(shown), at - begin
