"""An answer as lines, as the view has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from dpsql.dbapi.answer import PLAN_COLUMNS, Answer, format_row_count, has_error_bars
from dpsql.dbapi.frames import Frame, add_error_columns
from dpsql.display.formats import to_csv_lines, to_json_lines, make_names_unique
from dpsql.display.layout import Expanded, Layout
from dpsql.display.screen import Screen
from dpsql.display.table import render_table
from dpsql.display.text import escape_lines
from dpsql.repl.view import DisplayOptions


def format_answer(answer: Answer, view: DisplayOptions, screen: Screen | None, expanded: str) -> list[str]:
    """As the view has it; for a file where there is no `screen`."""
    if view.format != "table":
        frame = answer_to_frame(answer, view.errors)
        lines = list((to_csv_lines if view.format == "csv" else to_json_lines)(frame.names, frame.rows))
        to_person = screen is not None and screen.out.isatty()
        return [escape_lines(line) for line in lines] if to_person else lines
    if answer.columns == PLAN_COLUMNS:
        return [escape_lines(str(line)) for (line,) in answer.rows]
    lines = render_table(answer.columns, answer.rows, answer.errors, make_layout(view, screen, expanded))
    return [*lines, format_row_count(answer, "", view.errors and has_error_bars(answer))]


def answer_to_frame(answer: Answer, errors: bool) -> Frame:
    """For files, which hold no name twice; `errors` adds columns of the error bars."""
    frame = Frame(tuple(make_names_unique(answer.columns)), tuple(code.type for code in answer.types), answer.rows)
    return add_error_columns(frame, answer.errors) if errors else frame


def make_layout(view: DisplayOptions, screen: Screen | None, expanded: str) -> Layout:
    """As the screen can show it; a file takes all."""
    return replace(
        Layout() if screen is None else screen.make_layout(),
        expanded=cast(Expanded, expanded),
        digits="significant" if view.digits else "all",
        errors=view.errors,
    )


def format_listing(names: Sequence[str], rows: Sequence[tuple[Any, ...]], view: DisplayOptions, screen: Screen | None) -> list[str]:
    """A table that is no answer, as of \\d."""
    return render_table(names, rows, None, make_layout(view, screen, "auto"))
