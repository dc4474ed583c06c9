"""Released rows as HTML, for notebooks.

Law: whatever a value or a name holds is shown as text. Nothing of it is markup, script, style or mathematics, and marks
that turn the direction of writing are written as escapes, as on terminals.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from dpsql.display.cells import Cell, is_number, write_cell
from dpsql.display.text import shown
from dpsql.figures import CellError

# Notebooks typeset $…$ in what they show, unless these classes say no.
_CLASSES = "dpsql tex2jax_ignore mathjax_ignore"
_MUTED = "opacity:0.6"
_NUMBER = "text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
_TEXT = "text-align:left;white-space:pre-wrap"


def html_table(
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    bars: Sequence[Sequence[CellError | None]],
    beneath: Sequence[str] = (),
) -> str:
    """A table, each noisy number with its error bar, and lines of text beneath it."""
    parts = [f'<div class="{_CLASSES}">']
    if names:
        numbers = [_is_numbers([row[place] for row in rows]) for place in range(len(names))]
        parts += ["<table>", "<thead><tr>"]
        parts += [_tag("th", _text(name), number) for name, number in zip(names, numbers, strict=True)]
        parts += ["</tr></thead>", "<tbody>"]
        parts += [_row(row, errors, numbers) for row, errors in zip(rows, bars, strict=True)]
        parts += ["</tbody>", "</table>"]
    if beneath:
        lines = "\n".join(_text(line) for line in beneath)
        parts.append(f'<pre style="{_MUTED if names else ""}">{lines}</pre>')
    return "\n".join([*parts, "</div>"])


def _row(row: Sequence[Any], errors: Sequence[CellError | None], numbers: Sequence[bool]) -> str:
    cells = [write_cell(value, bar) for value, bar in zip(row, errors, strict=True)]
    return f"<tr>{''.join(_tag('td', _cell(cell), number) for cell, number in zip(cells, numbers, strict=True))}</tr>"


def _cell(cell: Cell) -> str:
    if cell.is_null:
        return f'<span style="{_MUTED}">{escape(cell.text)}</span>'
    bar = f' <span style="{_MUTED}">± {escape(cell.bar)}</span>' if cell.bar else ""
    return escape(cell.text) + bar


def _tag(tag: str, inside: str, number: bool) -> str:
    return f'<{tag} style="{_NUMBER if number else _TEXT}">{inside}</{tag}>'


def _text(text: str) -> str:
    return escape(shown(text))


def _is_numbers(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(is_number(value) for value in known)
