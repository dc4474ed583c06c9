"""Released rows as lines of text: an aligned table, or one line for each value.

A table that is wider than the terminal loses the ends of its texts first, never a digit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpsql.display.cells import Cell, is_number, write_cell
from dpsql.display.layout import Layout
from dpsql.display.screen import BOLD, DIM, Screen
from dpsql.display.text import cut, pad, shown, width_of
from dpsql.figures import CellError

Row = Sequence[Any]
Bars = Sequence[Sequence[CellError | None]]

NARROWEST = 8
"""Columns that a text keeps when a table is narrowed: enough to tell most keys apart."""


@dataclass(frozen=True)
class _Line:
    """The signs that a table is drawn with."""

    rule: str
    wall: str
    cross: str
    top: str
    give_or_take: str


_DRAWN = _Line("─", "│", "┼", "┬", "±")
_PLAIN = _Line("-", "|", "+", "+", "+/-")


def print_table(
    screen: Screen, names: Sequence[str], rows: Sequence[Row], bars: Bars | None = None, layout: Layout | None = None
) -> None:
    for line in table_lines(names, rows, bars, layout or screen.layout()):
        screen.print(line)


def table_lines(names: Sequence[str], rows: Sequence[Row], bars: Bars | None, layout: Layout) -> list[str]:
    """Numbers to the right, aligned at their points, each with its error bar where `bars` are given; text to the left.

    `bars` has one row for each row; a number shows only the digits that its bar leaves, unless `layout` says all.
    """
    if not names:
        return []
    heads = [shown(name, layout.plain) for name in names]
    written = [_written(row, bars[at] if bars else None, layout) for at, row in enumerate(rows)]
    if layout.expanded == "on":
        return _expanded(heads, written, layout)
    columns = [_column(head, [row[at] for row in rows], written, at, layout) for at, head in enumerate(heads)]
    widths = [column.width for column in columns]
    if layout.width is not None and _total(widths) > layout.width:
        narrowed = _narrowed(columns, layout.width)
        if narrowed is None and layout.expanded == "auto" and rows:
            return _expanded(heads, written, layout)
        widths = narrowed or widths
    return _drawn(columns, written, widths, layout)


def _written(row: Row, bars: Sequence[CellError | None] | None, layout: Layout) -> list[Cell]:
    at = bars or [None] * len(row)
    return [write_cell(value, bar, layout.digits, layout.plain) for value, bar in zip(row, at, strict=True)]


def _paint(text: str, code: str, layout: Layout) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if layout.colour and text.strip() else text


# --- a table ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """A head, and below it texts of one width, of which `value` columns are the value's and the rest its bar's."""

    head: str
    numbers: bool
    texts: list[str]
    value: int
    width: int
    least: int


def _column(head: str, values: list[Any], written: list[list[Cell]], at: int, layout: Layout) -> _Column:
    cells = [row[at] for row in written]
    known = [value for value in values if value is not None]
    if not known or not all(is_number(value) for value in known):
        texts = [_alone(cell, layout) for cell in cells]
        width = max(width_of(text) for text in (head, *texts))
        return _Column(head, False, texts, width, width, min(width, NARROWEST))
    aligned = _aligned([cell.text for cell in cells])
    value = width_of(aligned[0])
    if layout.errors and any(cell.bar for cell in cells):
        sign = (_PLAIN if layout.plain else _DRAWN).give_or_take
        bars = _aligned([cell.bar for cell in cells])
        aligned = [
            f"{text} {sign if cell.bar else ' ' * len(sign)} {bar}"
            for text, bar, cell in zip(aligned, bars, cells, strict=True)
        ]
    inside = width_of(aligned[0])
    width = max(inside, width_of(head))
    return _Column(head, True, aligned, value, width, max(inside, min(width_of(head), NARROWEST)))


def _aligned(texts: list[str]) -> list[str]:
    """Padded so that points stand below each other; what is no number ends before the point."""
    halves = [text.partition(".") if "e" not in text else (text, "", "") for text in texts]
    before = max(len(whole) for whole, _, _ in halves)
    after = max(len(point + rest) for _, point, rest in halves)
    return [f"{whole:>{before}}{point + rest:<{after}}" for whole, point, rest in halves]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 3 * (len(widths) - 1) + 2


def _narrowed(columns: list[_Column], width: int) -> list[int] | None:
    """The widest texts become as wide as the next ones, until all fits; None where it cannot."""

    def at_most(level: int) -> list[int]:
        return [max(column.least, min(column.width, level)) for column in columns]

    if _total(at_most(0)) > width:
        return None
    level = bisect_left(range(width + 1), True, key=lambda level: _total(at_most(level)) > width)
    return at_most(level - 1)


def _drawn(columns: list[_Column], written: list[list[Cell]], widths: list[int], layout: Layout) -> list[str]:
    line = _PLAIN if layout.plain else _DRAWN
    wall = f" {_paint(line.wall, DIM, layout)} "
    heads = [
        pad(cut(column.head, width, layout.plain), width, column.numbers)
        for column, width in zip(columns, widths, strict=True)
    ]
    rule = f"{line.rule}{line.cross}{line.rule}".join(line.rule * width for width in widths)
    lines = [" " + wall.join(_paint(head, BOLD, layout) for head in heads)]
    lines.append(_paint(line.rule + rule + line.rule, DIM, layout))
    for at, cells in enumerate(written):
        row = zip(columns, cells, widths, strict=True)
        lines.append(" " + wall.join(_cell(column, at, cell, width, layout) for column, cell, width in row))
    return [text.rstrip(" ") for text in lines]


def _cell(column: _Column, at: int, cell: Cell, width: int, layout: Layout) -> str:
    text = column.texts[at]
    if not column.numbers:
        return _paint_null(pad(cut(text, width, layout.plain), width), cell, layout)
    value, bar = text[: column.value], text[column.value :]
    return " " * (width - len(text)) + _paint_null(value, cell, layout) + _paint(bar, DIM, layout)


def _paint_null(text: str, cell: Cell, layout: Layout) -> str:
    return _paint(text, DIM, layout) if cell.is_null else text


# --- one line for each value -----------------------------------------------------------------------------------------


def _expanded(heads: list[str], written: list[list[Cell]], layout: Layout) -> list[str]:
    line = _PLAIN if layout.plain else _DRAWN
    titles = [f"[ RECORD {number} ]" for number in range(1, len(written) + 1)]
    left = max(width_of(text) for text in (*heads, *titles[-1:]))
    texts = [[_alone(cell, layout) for cell in row] for row in written]
    right = max((width_of(text) for row in texts for text in row), default=0)
    if layout.width is not None:
        right = max(1, min(right, layout.width - left - 5))
    wall = f" {_paint(line.wall, DIM, layout)} "
    names = [" " + _paint(pad(head, left), BOLD, layout) for head in heads]
    lines: list[str] = []
    for number, (title, row, cells) in enumerate(zip(titles, texts, written, strict=True)):
        joint = line.cross if number else line.top
        rule = f"{line.rule}{title}{line.rule * (left - len(title))}{line.rule}{joint}{line.rule * (right + 2)}"
        lines.append(_paint(rule, DIM, layout))
        for name, text, cell in zip(names, row, cells, strict=True):
            lines.append((name + wall + _paint_null(text, cell, layout)).rstrip(" "))
    return lines


def _alone(cell: Cell, layout: Layout) -> str:
    sign = (_PLAIN if layout.plain else _DRAWN).give_or_take
    return f"{cell.text} {sign} {cell.bar}" if cell.bar and layout.errors else cell.text
