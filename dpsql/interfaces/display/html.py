"""Released rows as HTML, for notebooks.

Law: whatever a value or a name holds is shown as text. Nothing of it is markup, script, style or mathematics, and marks
that turn the direction of writing are written as escapes, as on terminals.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from dpsql.amounts import CellError
from dpsql.interfaces.display.cells import DisplayCell, describe_error, format_cell, is_number
from dpsql.interfaces.display.terminal import escape_text

# Notebooks typeset $…$ in what they show, unless these classes say no.
_CLASSES = "dpsql tex2jax_ignore mathjax_ignore"
_MUTED_STYLE = "opacity:0.6"
_NUMBER_STYLE = "text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
_TEXT_STYLE = "text-align:left;white-space:pre-wrap"


def render_html_table(
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    bars: Sequence[Sequence[CellError | None]],
    footer_lines: Sequence[str] = (),
) -> str:
    """A table, each noisy number with its error bar, and lines of text below it."""
    parts = [f'<div class="{_CLASSES}">']
    if names:
        numbers = [_is_numeric_column([row[index] for row in rows]) for index in range(len(names))]
        parts += ["<table>", "<thead><tr>"]
        parts += [_render_tag("th", _escape_text(name), number) for name, number in zip(names, numbers, strict=True)]
        parts += ["</tr></thead>", "<tbody>"]
        parts += [_render_row(row, errors, numbers) for row, errors in zip(rows, bars, strict=True)]
        parts += ["</tbody>", "</table>"]
    if footer_lines:
        lines = "\n".join(_escape_text(line) for line in footer_lines)
        parts.append(f'<pre style="{_MUTED_STYLE if names else ""}">{lines}</pre>')
    return "\n".join([*parts, "</div>"])


def _render_row(row: Sequence[Any], errors: Sequence[CellError | None], numbers: Sequence[bool]) -> str:
    cells = [format_cell(value, bar) for value, bar in zip(row, errors, strict=True)]
    tags = (
        _render_tag("td", _render_cell(cell, bar), number)
        for cell, bar, number in zip(cells, errors, numbers, strict=True)
    )
    return f"<tr>{''.join(tags)}</tr>"


def _render_cell(cell: DisplayCell, error: CellError | None) -> str:
    if cell.is_null:
        return f'<span style="{_MUTED_STYLE}">{escape(cell.text)}</span>'
    hint = f' title="{escape(describe_error(error))}"' if error is not None and error.clipped else ""
    bar = f' <span style="{_MUTED_STYLE}"{hint}>± {escape(cell.bar)}</span>' if cell.bar else ""
    return escape(cell.text) + bar


def _render_tag(tag: str, inside: str, number: bool) -> str:
    return f'<{tag} style="{_NUMBER_STYLE if number else _TEXT_STYLE}">{inside}</{tag}>'


def _escape_text(text: str) -> str:
    return escape(escape_text(text))


def _is_numeric_column(values: Sequence[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(is_number(value) for value in present)
