"""How results are shown, as backslash commands and options set it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from dpsql.errors import InvalidParameter
from dpsql.interfaces.dbapi.dataframes import Frame, add_error_columns
from dpsql.interfaces.dbapi.result import PLAN_COLUMNS, Answer, format_row_count, has_error_bars
from dpsql.interfaces.display.export import make_names_unique, to_csv_lines, to_json_lines
from dpsql.interfaces.display.table import render_table
from dpsql.interfaces.display.terminal import Expanded, Layout, Screen, escape_lines

OUTPUT_FORMATS = ("table", "csv", "json")


@dataclass
class DisplayOptions:
    format: str = "table"
    expanded: str = "auto"
    errors: bool = True
    digits: bool = True
    pager: bool = True
    timing: bool = False


def parse_switch(name: str, text: str, now: bool) -> bool:
    """On, off, or the other one where nothing is said."""
    match text.lower():
        case "":
            return not now
        case "on" | "true" | "1":
            return True
        case "off" | "false" | "0":
            return False
        case _:
            raise InvalidParameter(f"\\{name} takes on or off, not {text}")


def parse_choice(name: str, text: str, choices: tuple[str, ...]) -> str:
    if text.lower() not in choices:
        raise InvalidParameter(f"\\{name} takes {', '.join(choices[:-1])} or {choices[-1]}, not {text}")
    return text.lower()


# An answer as lines, as the view has it.


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


def format_listing(
    names: Sequence[str], rows: Sequence[tuple[Any, ...]], view: DisplayOptions, screen: Screen | None
) -> list[str]:
    """A table that is no answer, as of \\d."""
    return render_table(names, rows, None, make_layout(view, screen, "auto"))
