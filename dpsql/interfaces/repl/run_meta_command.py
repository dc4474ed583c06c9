"""Runs backslash commands."""

from __future__ import annotations

import fnmatch
import os
import re
import subprocess
import tempfile
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dpsql.amounts import format_rounded_up
from dpsql.errors import BudgetExceeded, InterfaceError, InvalidParameter, InvalidSyntax, UnknownTable
from dpsql.interfaces.dbapi.dataframes import Frame, to_arrow
from dpsql.interfaces.dbapi.result import Answer
from dpsql.interfaces.display.export import to_csv_lines, to_json_lines
from dpsql.interfaces.display.terminal import Layout, Screen, escape_lines, escape_text, terminal_width
from dpsql.interfaces.display.terminal_chart import NothingToDraw, render_chart
from dpsql.interfaces.repl.cli_input import read_statements
from dpsql.interfaces.repl.display_options import (
    OUTPUT_FORMATS,
    DisplayOptions,
    answer_to_frame,
    format_listing,
    parse_choice,
    parse_switch,
)
from dpsql.interfaces.repl.meta_commands import format_help, split_shell_words

if TYPE_CHECKING:
    from dpsql.interfaces.repl.shell import Shell
    from dpsql.session.session import NamedColumn, NamedFunction, NamedTable

# \d and its sisters: what there is to ask, from the schema alone.


def format_table_list(tables: list[NamedTable], view: DisplayOptions, screen: Screen | None) -> list[str]:
    rows = [(table.name, table.kind, table.description or table.comment or "") for table in tables]
    return format_listing(("name", "kind", "comment"), rows, view, screen)


def format_table_description(table: NamedTable, view: DisplayOptions, screen: Screen | None) -> list[str]:
    """Its columns, and in full below them what a narrow table has no room for."""
    heads = ["column", "type", "bounds", "note"]
    rows = [
        (declared.name, str(declared.type), declared.bounds or "", _column_note(table, declared))
        for declared in table.columns
    ]
    used = [index for index in range(len(heads)) if any(row[index] for row in rows)]
    cells = [tuple(row[index] for index in used) for row in rows]
    width = 100 if screen is None else terminal_width(screen.out) or 100
    lines = [f"{'View' if table.kind == 'view' else f'{table.kind.capitalize()} table'} {escape_text(table.name)}"]
    lines += format_listing([heads[index] for index in used], cells, view, screen)
    for column in table.columns:
        if column.values and str(column.type) != "boolean":
            lines += _wrap_text(
                f"Values of {escape_text(column.name)}: {', '.join(map(escape_text, column.values))}", width
            )
    lines += [f"Unique: {', '.join(map(escape_text, key.columns))}" for key in table.unique]
    return lines + _wrap_text(escape_text(table.comment or ""), width)


def _column_note(table: NamedTable, column: NamedColumn) -> str:
    targets = {name: f"{key.table}.{target}" for key in table.foreign for name, target in key.pairs}
    unit = "the privacy unit" if column.is_unit else targets.get(column.name, "")
    return "; ".join(part for part in (column.description or "", unit) if part)


def _wrap_text(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(20, width), subsequent_indent="  ")


def format_function_list(functions: list[NamedFunction], view: DisplayOptions, screen: Screen | None) -> list[str]:
    rows = [
        (function.name, function.kind, function.example)
        for function in sorted(functions, key=lambda function: function.name)
    ]
    return format_listing(("function", "kind", "example"), rows, view, screen)


# \copy: releases to files, as CSV, JSON or Parquet.

COPY_FORMATS = ("csv", "json", "parquet")
_COPY_USAGE = "Write \\copy to FILE, or \\copy (SELECT …) to FILE; FORMAT is csv, json or parquet."


@dataclass(frozen=True)
class CopyRequest:
    """`sql` is None for the last answer."""

    sql: str | None
    path: Path
    format: str
    errors: bool


def parse_copy(argument: str) -> CopyRequest:
    """
    >>> parse_copy("(SELECT 1) to 'a b.csv' errors")
    CopyRequest(sql='SELECT 1', path=PosixPath('a b.csv'), format='csv', errors=True)
    """
    parsed = re.fullmatch(r"(?:\((?P<sql>.*)\)\s*)?to\s+(?P<rest>.+)", argument.strip(), re.DOTALL | re.IGNORECASE)
    if parsed is None:
        raise InvalidSyntax("\\copy needs the name of a file", hint=_COPY_USAGE)
    name, *words = split_shell_words(parsed["rest"].rstrip("; "), "\\copy")
    format_words = [word.lower() for word in words if word.lower() not in ("with", "header", "errors")]
    path = Path(name).expanduser()
    format_ = format_words[0] if format_words else path.suffix.removeprefix(".").lower()
    if len(format_words) > 1 or format_ not in COPY_FORMATS:
        what = f'"{format_words[-1]}" is' if format_words else "the file's name tells"
        raise InvalidSyntax(f"{what} no format", hint=_COPY_USAGE)
    return CopyRequest(parsed["sql"], path, format_, "errors" in (word.lower() for word in words))


def write_copy(copy: CopyRequest, frame: Frame) -> None:
    try:
        if copy.format == "parquet":
            table = to_arrow(frame)
            import_module("pyarrow.parquet").write_table(table, copy.path)
            return
        lines = (to_csv_lines if copy.format == "csv" else to_json_lines)(frame.names, frame.rows)
        copy.path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise InterfaceError(f'the file "{copy.path}" cannot be written: {error.strerror or "it failed"}') from None


WATCH_SECONDS = 2.0
"""Between two times that \\watch asks."""
MAX_INCLUDE_DEPTH = 16
"""Files that ask for the statements of files."""


class ShellExit(Exception):
    """The command \\q."""


# --- statements ------------------------------------------------------------------------------------------------------


def run_statement(shell: Shell, argument: str) -> None:
    sql = shell.current_statement()
    if not argument:
        shell.execute(sql)
        return
    before = shell.file
    shell.file = _open_to_write(argument, "\\g")
    try:
        shell.execute(sql)
    finally:
        shell.close_file()
        shell.file = before


def run_expanded(shell: Shell, argument: str) -> None:
    shell.execute(shell.current_statement(), expanded=True)


def edit_statement(shell: Shell, argument: str) -> None:
    """What was written stands in the prompt, and is asked when it is sent."""
    if shell.ask is None:
        raise InterfaceError("\\e is for a terminal")
    editor = split_shell_words(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi", "$EDITOR")
    if argument:
        _run_editor(editor, argument)
        shell.typed = read_statements(argument).strip()
        return
    with tempfile.TemporaryDirectory(prefix="dpsql-") as folder:  # a folder that only its owner can enter
        path = Path(folder) / "statement.sql"
        path.write_text((shell.pending or shell.last_sql or "") + "\n", encoding="utf-8")
        _run_editor(editor, str(path))
        shell.pending, shell.typed = "", read_statements(str(path)).strip()


def _run_editor(editor: list[str], path: str) -> None:
    try:
        subprocess.run([*editor, path], check=False)
    except OSError as error:
        hint = "Set EDITOR to the name of one."
        raise InterfaceError(f'the editor "{editor[0]}" cannot be started: {error.strerror}', hint=hint) from None


def print_statement(shell: Shell, argument: str) -> None:
    shell.print_lines(escape_lines(shell.pending or shell.last_sql or "").split("\n"))


def clear_pending(shell: Shell, argument: str) -> None:
    shell.pending = ""


def include_file(shell: Shell, argument: str) -> None:
    text = read_statements(_parse_file_name(argument, "\\i"))
    if shell.depth >= MAX_INCLUDE_DEPTH:
        raise InterfaceError("files ask for the statements of files, too deep")
    shell.depth += 1
    try:
        shell.run_text(text, argument)
        shell.run_pending()
    finally:
        shell.depth -= 1


def watch_statement(shell: Shell, argument: str) -> None:
    """The first time is charged like any statement; it ends rather than be charged again."""
    try:
        seconds = float(argument or WATCH_SECONDS)
    except ValueError:
        raise InvalidParameter(f"\\watch takes seconds, not {argument}") from None
    if not 0.1 <= seconds <= 86400:
        raise InvalidParameter("\\watch takes between 0.1 and 86400 seconds")
    sql = shell.current_statement()
    shell.execute(sql)
    try:
        while True:
            time.sleep(seconds)
            shell.print_note(time.strftime("%F %T"))
            shell.execute(sql, free=True)
    except BudgetExceeded:
        shell.print_note("\\watch ends: asking again would be charged, since the statement or the data has changed")
    except KeyboardInterrupt:
        shell.print_note("")


def explain_statement(shell: Shell, argument: str) -> None:
    sql = argument or shell.current_statement()
    explanation = shell.connection._get_forecast(sql) or shell.connection.explain(sql.rstrip("; "))
    shell.print_lines(escape_lines(str(explanation)).split("\n"))


# --- answers ---------------------------------------------------------------------------------------------------------


def redirect_output(shell: Shell, argument: str) -> None:
    opened = _open_to_write(argument, "\\o") if argument else None
    shell.close_file()
    shell.file = opened


def copy_answer(shell: Shell, argument: str) -> None:
    request = parse_copy(argument)
    answer = _last_answer(shell) if request.sql is None else shell.fetch_answer(request.sql)
    if answer is None:
        return
    if not answer.columns:
        raise InterfaceError("the statement has no rows to copy")
    write_copy(request, answer_to_frame(answer, request.errors))
    shell.print_note(f"COPY {len(answer)}")


def chart_answer(shell: Shell, argument: str) -> None:
    kind = parse_choice("chart", argument or "auto", ("bars", "lines", "auto"))
    answer = _last_answer(shell)
    how = Layout() if shell.file is not None else shell.screen.make_layout()
    try:
        lines = render_chart(
            answer.columns, answer.rows, answer.errors, how.width or 80, 20, kind, plain=how.plain, colour=how.colour
        )
    except NothingToDraw as nothing:
        raise InterfaceError(f"there is nothing to draw: {nothing}") from None
    shell.print_lines(lines)


def print_receipts(shell: Shell, argument: str) -> None:
    lines = [str(receipt) for receipt in _last_answer(shell).receipts]
    shell.print_lines(lines or ["It read no private rows, so nothing was paid for."])


def set_expanded(shell: Shell, argument: str) -> None:
    now = shell.view.expanded
    value = argument or ("off" if now == "on" else "on")
    shell.view.expanded = parse_choice("x", value, ("on", "off", "auto"))
    shell.print_note(f"Expanded display is {shell.view.expanded}.")


def set_format(shell: Shell, argument: str) -> None:
    if argument:
        shell.view.format = parse_choice("format", argument, OUTPUT_FORMATS)
    shell.print_note(f"Answers are written as {shell.view.format}.")


def _make_switch(name: str, label: str) -> Callable[[Shell, str], None]:
    def toggle_option(shell: Shell, argument: str) -> None:
        setattr(shell.view, name, parse_switch(name, argument, getattr(shell.view, name)))
        shell.print_note(f"{label} {'on' if getattr(shell.view, name) else 'off'}.")

    return toggle_option


# --- names -----------------------------------------------------------------------------------------------------------


def describe_table(shell: Shell, argument: str) -> None:
    if not argument:
        _print_tables(shell, lambda table: True)
        return
    table_name = argument.removeprefix("public.").strip('"').lower()
    matches = [table for table in shell.connection.tables() if table.name.lower() == table_name]
    if not matches:
        raise UnknownTable(f'there is no table "{argument}"', hint="\\d lists them.")
    for table in matches:
        shell.print_lines(format_table_description(table, shell.view, _answer_screen(shell)))
        if table.kind != "public":
            _print_caps(shell, table)


def _print_caps(shell: Shell, table: NamedTable) -> None:
    """How much a unit may contribute, as the session has it."""
    quoted = table.name.replace('"', '""')
    with shell.connection.cursor() as cursor:
        cursor.execute(f'DESCRIBE "{quoted}"')
        shell.print_lines([f"  {notice}" for notice in cursor.notices])


def list_tables(shell: Shell, argument: str) -> None:
    _print_tables(shell, lambda table: not table.is_view)


def list_views(shell: Shell, argument: str) -> None:
    _print_tables(shell, lambda table: table.is_view)


def _print_tables(shell: Shell, keep: Callable[[NamedTable], bool]) -> None:
    tables = [table for table in shell.connection.tables() if keep(table)]
    if not tables:
        shell.print_note("There are none.")
        return
    shell.print_lines(format_table_list(tables, shell.view, _answer_screen(shell)))


def list_functions(shell: Shell, argument: str) -> None:
    pattern = (argument or "*").lower().replace("%", "*")
    matches = [function for function in shell.connection.functions() if fnmatch.fnmatchcase(function.name, pattern)]
    if not matches:
        within = "" if "*" in pattern else f" \\df *{escape_text(argument)}* looks within names."
        shell.print_note(f"No function matches {escape_text(argument)}.{within}")
        return
    shell.print_lines(format_function_list(matches, shell.view, _answer_screen(shell)))


def show_dataset(shell: Shell, argument: str) -> None:
    count = len(shell.connection.tables())
    row = (shell.connection.database, shell.connection.user or "", count)
    shell.print_lines(format_listing(("dataset", "user", "tables"), [row], shell.view, _answer_screen(shell)))


def show_connection(shell: Shell, argument: str) -> None:
    user_text = f' as "{shell.connection.user}"' if shell.connection.user else ""
    server = shell.connection.server
    where = "" if server is None else f", on the server {server}"
    line = f'You ask the dataset "{shell.connection.database}"{user_text}{where}.'
    shell.print_lines([line, f"Left of {shell.connection.budget().left_text}"])


# --- budget and settings ---------------------------------------------------------------------------------------------


def show_budget(shell: Shell, argument: str) -> None:
    shell.print_lines(str(shell.connection.budget()).splitlines())


def set_setting(shell: Shell, argument: str) -> None:
    """Through SQL's SET, so that both know the same names and values."""
    name, _, value = argument.replace("=", " ", 1).partition(" ")
    _run_setting_command(shell, f"SET {name} = {value.strip()}" if value.strip() else f"SHOW {name or 'ALL'}")


def reset_setting(shell: Shell, argument: str) -> None:
    if not argument:
        raise InvalidSyntax("\\unset needs the name of a setting", hint="\\set lists them.")
    _run_setting_command(shell, f"RESET {argument}")


def _run_setting_command(shell: Shell, sql: str) -> None:
    answer = shell.fetch_answer(sql)
    if answer is not None:
        shell.show_answer(answer, "off")


def set_confirm_threshold(shell: Shell, argument: str) -> None:
    if argument:
        shell.confirm = parse_threshold(argument)
    what = (
        "Nothing is asked before a charge."
        if shell.confirm is None
        else (f"A charge above epsilon {format_rounded_up(shell.confirm)} is asked about first.")
    )
    shell.print_note(what)


def parse_threshold(text: str) -> Fraction | None:
    if text.lower() == "off":
        return None
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InvalidParameter(f"a threshold is an epsilon, such as 0.5, not {text}") from None
    if value < 0:
        raise InvalidParameter("a threshold is not below 0")
    return value


# --- others ----------------------------------------------------------------------------------------------------------


def print_history(shell: Shell, argument: str) -> None:
    lines = [line for entry in shell.history() for line in entry.splitlines()]
    if not argument:
        shell.print_lines([escape_lines(line) for line in lines])
        return
    with _open_to_write(argument, "\\s") as file:
        file.writelines(f"{line}\n" for line in lines)


def print_help(shell: Shell, argument: str) -> None:
    shell.print_lines(format_help(), to_file=False)


def leave_shell(shell: Shell, argument: str) -> None:
    raise ShellExit


# --- inside ----------------------------------------------------------------------------------------------------------


def _last_answer(shell: Shell) -> Answer:
    if shell.last is None:
        raise InterfaceError("there is no answer yet", hint="Ask a statement first.")
    return shell.last


def _answer_screen(shell: Shell) -> Screen | None:
    return shell.screen if shell.file is None else None


def _parse_file_name(argument: str, command: str) -> str:
    names = split_shell_words(argument, command)
    if argument.startswith("|"):
        raise InvalidSyntax(f"{command} writes to a file, not to a program", hint="Write a pipe behind dpsql -c.")
    if len(names) != 1:
        raise InvalidSyntax(f"{command} takes the name of a file")
    return names[0]


def _open_to_write(argument: str, command: str) -> TextIO:
    name = _parse_file_name(argument, command)
    try:
        return Path(name).expanduser().open("w", encoding="utf-8")
    except OSError as error:
        raise InterfaceError(f'the file "{name}" cannot be written: {error.strerror}') from None


META_COMMAND_ACTIONS: dict[str, Callable[[Shell, str], None]] = {
    "g": run_statement,
    "gx": run_expanded,
    "e": edit_statement,
    "p": print_statement,
    "r": clear_pending,
    "i": include_file,
    "watch": watch_statement,
    "explain": explain_statement,
    "o": redirect_output,
    "copy": copy_answer,
    "chart": chart_answer,
    "receipts": print_receipts,
    "x": set_expanded,
    "format": set_format,
    "errors": _make_switch("errors", "Error bars are"),
    "digits": _make_switch("digits", "Only digits that mean something:"),
    "pager": _make_switch("pager", "Paging is"),
    "timing": _make_switch("timing", "Timing is"),
    "d": describe_table,
    "dt": list_tables,
    "dv": list_views,
    "df": list_functions,
    "l": show_dataset,
    "conninfo": show_connection,
    "budget": show_budget,
    "set": set_setting,
    "unset": reset_setting,
    "confirm": set_confirm_threshold,
    "s": print_history,
    "?": print_help,
    "q": leave_shell,
}
