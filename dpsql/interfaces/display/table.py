"""Released rows as lines of text: an aligned table, or one line for each value.

A table that is wider than the terminal loses the ends of its texts first, never a digit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpsql.amounts import CellError
from dpsql.interfaces.display.cells import DisplayCell, format_cell, is_number
from dpsql.interfaces.display.terminal import (
    BOLD,
    DIM,
    Layout,
    Screen,
    display_width,
    escape_text,
    pad_text,
    truncate_text,
)

Row = Sequence[Any]
ErrorBars = Sequence[Sequence[CellError | None]]

MIN_TEXT_WIDTH = 8
"""Columns that a text keeps when a table is narrowed: enough to tell most keys apart."""


@dataclass(frozen=True)
class _BoxStyle:
    """The signs that a table is drawn with."""

    rule: str
    wall: str
    cross: str
    top: str
    give_or_take: str


_UNICODE_STYLE = _BoxStyle("─", "│", "┼", "┬", "±")
_ASCII_STYLE = _BoxStyle("-", "|", "+", "+", "+/-")


def print_table(
    screen: Screen,
    names: Sequence[str],
    rows: Sequence[Row],
    bars: ErrorBars | None = None,
    layout: Layout | None = None,
) -> None:
    for line in render_table(names, rows, bars, layout or screen.make_layout()):
        screen.print(line)


def render_table(names: Sequence[str], rows: Sequence[Row], bars: ErrorBars | None, layout: Layout) -> list[str]:
    """Numbers to the right, aligned at their points, each with its error bar where `bars` are given; text to the left.

    `bars` has one row for each row; a number shows only the digits that its bar leaves, unless `layout` says all.
    """
    if not names:
        return []
    heads = [escape_text(name, layout.plain) for name in names]
    cell_rows = [_format_row(row, bars[at] if bars else None, layout) for at, row in enumerate(rows)]
    if layout.expanded == "on":
        return _render_expanded(heads, cell_rows, layout)
    columns = [_layout_column(head, [row[at] for row in rows], cell_rows, at, layout) for at, head in enumerate(heads)]
    widths = [column.width for column in columns]
    if layout.width is not None and _total_width(widths) > layout.width:
        narrowed = _narrow_columns(columns, layout.width)
        if narrowed is None and layout.expanded == "auto" and rows:
            return _render_expanded(heads, cell_rows, layout)
        widths = narrowed or widths
    return _render_aligned(columns, cell_rows, widths, layout)


def _format_row(row: Row, bars: Sequence[CellError | None] | None, layout: Layout) -> list[DisplayCell]:
    row_bars = bars or [None] * len(row)
    return [format_cell(value, bar, layout.digits, layout.plain) for value, bar in zip(row, row_bars, strict=True)]


def _apply_style(text: str, code: str, layout: Layout) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if layout.colour and text.strip() else text


# --- a table ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _TableColumn:
    """A head, and below it texts of one width, of which `value` columns are the value's and the rest its bar's."""

    head: str
    numbers: bool
    texts: list[str]
    value: int
    width: int
    least: int


def _layout_column(
    head: str, values: list[Any], cell_rows: list[list[DisplayCell]], at: int, layout: Layout
) -> _TableColumn:
    cells = [row[at] for row in cell_rows]
    present = [value for value in values if value is not None]
    if not present or not all(is_number(value) for value in present):
        texts = [_format_with_error(cell, layout) for cell in cells]
        width = max(display_width(text) for text in (head, *texts))
        return _TableColumn(head, False, texts, width, width, min(width, MIN_TEXT_WIDTH))
    aligned = _align_at_point([cell.text for cell in cells])
    value = display_width(aligned[0])
    if layout.errors and any(cell.bar for cell in cells):
        sign = (_ASCII_STYLE if layout.plain else _UNICODE_STYLE).give_or_take
        bars = _align_at_point([cell.bar for cell in cells])
        aligned = [
            f"{text} {sign if cell.bar else ' ' * len(sign)} {bar}"
            for text, bar, cell in zip(aligned, bars, cells, strict=True)
        ]
    inside = display_width(aligned[0])
    width = max(inside, display_width(head))
    return _TableColumn(head, True, aligned, value, width, max(inside, min(display_width(head), MIN_TEXT_WIDTH)))


def _align_at_point(texts: list[str]) -> list[str]:
    """Padded so that points stand below each other; what is no number ends before the point."""
    halves = [text.partition(".") if "e" not in text else (text, "", "") for text in texts]
    before = max(len(whole) for whole, _, _ in halves)
    after = max(len(point + rest) for _, point, rest in halves)
    return [f"{whole:>{before}}{point + rest:<{after}}" for whole, point, rest in halves]


def _total_width(widths: Sequence[int]) -> int:
    return sum(widths) + 3 * (len(widths) - 1) + 2


def _narrow_columns(columns: list[_TableColumn], width: int) -> list[int] | None:
    """The widest texts become as wide as the next ones, until all fits; None where it cannot."""

    def at_most(level: int) -> list[int]:
        return [max(column.least, min(column.width, level)) for column in columns]

    if _total_width(at_most(0)) > width:
        return None
    level = bisect_left(range(width + 1), True, key=lambda level: _total_width(at_most(level)) > width)
    return at_most(level - 1)


def _render_aligned(
    columns: list[_TableColumn], cell_rows: list[list[DisplayCell]], widths: list[int], layout: Layout
) -> list[str]:
    line = _ASCII_STYLE if layout.plain else _UNICODE_STYLE
    wall = f" {_apply_style(line.wall, DIM, layout)} "
    heads = [
        pad_text(truncate_text(column.head, width, layout.plain), width, column.numbers)
        for column, width in zip(columns, widths, strict=True)
    ]
    rule = f"{line.rule}{line.cross}{line.rule}".join(line.rule * width for width in widths)
    lines = [" " + wall.join(_apply_style(head, BOLD, layout) for head in heads)]
    lines.append(_apply_style(line.rule + rule + line.rule, DIM, layout))
    for at, cells in enumerate(cell_rows):
        row = zip(columns, cells, widths, strict=True)
        lines.append(" " + wall.join(_render_cell(column, at, cell, width, layout) for column, cell, width in row))
    return [text.rstrip(" ") for text in lines]


def _render_cell(column: _TableColumn, at: int, cell: DisplayCell, width: int, layout: Layout) -> str:
    text = column.texts[at]
    if not column.numbers:
        return _style_null(pad_text(truncate_text(text, width, layout.plain), width), cell, layout)
    value, bar = text[: column.value], text[column.value :]
    return " " * (width - len(text)) + _style_null(value, cell, layout) + _apply_style(bar, DIM, layout)


def _style_null(text: str, cell: DisplayCell, layout: Layout) -> str:
    return _apply_style(text, DIM, layout) if cell.is_null else text


# --- one line for each value -----------------------------------------------------------------------------------------


def _render_expanded(heads: list[str], cell_rows: list[list[DisplayCell]], layout: Layout) -> list[str]:
    line = _ASCII_STYLE if layout.plain else _UNICODE_STYLE
    titles = [f"[ RECORD {number} ]" for number in range(1, len(cell_rows) + 1)]
    left = max(display_width(text) for text in (*heads, *titles[-1:]))
    texts = [[_format_with_error(cell, layout) for cell in row] for row in cell_rows]
    right = max((display_width(text) for row in texts for text in row), default=0)
    if layout.width is not None:
        right = max(1, min(right, layout.width - left - 5))
    wall = f" {_apply_style(line.wall, DIM, layout)} "
    names = [" " + _apply_style(pad_text(head, left), BOLD, layout) for head in heads]
    lines: list[str] = []
    for number, (title, row, cells) in enumerate(zip(titles, texts, cell_rows, strict=True)):
        joint = line.cross if number else line.top
        rule = f"{line.rule}{title}{line.rule * (left - len(title))}{line.rule}{joint}{line.rule * (right + 2)}"
        lines.append(_apply_style(rule, DIM, layout))
        for name, text, cell in zip(names, row, cells, strict=True):
            lines.append((name + wall + _style_null(text, cell, layout)).rstrip(" "))
    return lines


def _format_with_error(cell: DisplayCell, layout: Layout) -> str:
    sign = (_ASCII_STYLE if layout.plain else _UNICODE_STYLE).give_or_take
    return f"{cell.text} {sign} {cell.bar}" if cell.bar and layout.errors else cell.text
