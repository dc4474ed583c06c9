"""An answer as lines, as the view has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from dpsql.dbapi.answer import PLAN, Answer, count_line, has_bars
from dpsql.dbapi.frames import Frame, with_errors
from dpsql.display.formats import csv_lines, json_lines, unique_names
from dpsql.display.layout import Expanded, Layout
from dpsql.display.screen import Screen
from dpsql.display.table import table_lines
from dpsql.display.text import shown_lines
from dpsql.repl.view import View


def answer_lines(answer: Answer, view: View, screen: Screen | None, expanded: str) -> list[str]:
    """As the view has it; for a file where there is no `screen`."""
    if view.format != "table":
        frame = frame_of(answer, view.errors)
        lines = list((csv_lines if view.format == "csv" else json_lines)(frame.names, frame.rows))
        to_person = screen is not None and screen.out.isatty()
        return [shown_lines(line) for line in lines] if to_person else lines
    if answer.columns == PLAN:
        return [shown_lines(str(line)) for (line,) in answer.rows]
    lines = table_lines(answer.columns, answer.rows, answer.errors, layout_for(view, screen, expanded))
    return [*lines, count_line(answer, "", view.errors and has_bars(answer))]


def frame_of(answer: Answer, errors: bool) -> Frame:
    """For files, which hold no name twice; `errors` adds columns of the error bars."""
    frame = Frame(tuple(unique_names(answer.columns)), tuple(code.type for code in answer.types), answer.rows)
    return with_errors(frame, answer.errors) if errors else frame


def layout_for(view: View, screen: Screen | None, expanded: str) -> Layout:
    """As the screen can show it; a file takes all."""
    return replace(
        Layout() if screen is None else screen.layout(),
        expanded=cast(Expanded, expanded),
        digits="significant" if view.digits else "all",
        errors=view.errors,
    )


def listing(names: Sequence[str], rows: Sequence[tuple[Any, ...]], view: View, screen: Screen | None) -> list[str]:
    """A table that is no answer, as of \\d."""
    return table_lines(names, rows, None, layout_for(view, screen, "auto"))
