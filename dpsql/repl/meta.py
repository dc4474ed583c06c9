"""What each backslash command does."""

from __future__ import annotations

import fnmatch
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dpsql.dbapi.answer import Answer
from dpsql.display.chart import NothingToDraw, chart_lines
from dpsql.display.layout import Layout
from dpsql.display.screen import Screen
from dpsql.display.text import shown_lines
from dpsql.errors import BudgetExceeded, InterfaceError, InvalidParameter, InvalidSyntax, UnknownTable
from dpsql.figures import short_up
from dpsql.repl.commands import help_lines, words_of
from dpsql.repl.copying import read_copy, write_copy
from dpsql.repl.given import read_statements
from dpsql.repl.listed import functions_listed, table_described, tables_listed
from dpsql.repl.show import frame_of, listing
from dpsql.repl.view import FORMATS, one_of, switch

if TYPE_CHECKING:
    from dpsql.repl.shell import Shell
    from dpsql.session import NamedTable

SECONDS = 2.0
"""Between two times that \\watch asks."""
DEEPEST = 16
"""Files that ask for the statements of files."""


class Leave(Exception):
    """The command \\q."""


# --- statements ------------------------------------------------------------------------------------------------------


def go(shell: Shell, argument: str) -> None:
    sql = shell.current()
    if not argument:
        shell.execute(sql)
        return
    before = shell.file
    shell.file = _open_to_write(argument, "\\g")
    try:
        shell.execute(sql)
    finally:
        shell.close()
        shell.file = before


def go_expanded(shell: Shell, argument: str) -> None:
    shell.execute(shell.current(), expanded=True)


def edit(shell: Shell, argument: str) -> None:
    """What was written stands in the prompt, and is asked when it is sent."""
    if shell.ask is None:
        raise InterfaceError("\\e is for a terminal")
    editor = words_of(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi", "$EDITOR")
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


def print_it(shell: Shell, argument: str) -> None:
    shell.print_lines(shown_lines(shell.pending or shell.last_sql or "").split("\n"))


def reset(shell: Shell, argument: str) -> None:
    shell.pending = ""


def include(shell: Shell, argument: str) -> None:
    text = read_statements(_file(argument, "\\i"))
    if shell.depth >= DEEPEST:
        raise InterfaceError("files ask for the statements of files, too deep")
    shell.depth += 1
    try:
        shell.feed(text, argument)
        shell.finish()
    finally:
        shell.depth -= 1


def watch(shell: Shell, argument: str) -> None:
    """The first time is charged like any statement; it ends rather than be charged again."""
    try:
        seconds = float(argument or SECONDS)
    except ValueError:
        raise InvalidParameter(f"\\watch takes seconds, not {argument}") from None
    if not 0.1 <= seconds <= 86400:
        raise InvalidParameter("\\watch takes between 0.1 and 86400 seconds")
    sql = shell.current()
    shell.execute(sql)
    try:
        while True:
            time.sleep(seconds)
            shell.note(time.strftime("%F %T"))
            shell.execute(sql, free=True)
    except BudgetExceeded:
        shell.note("\\watch ends: asking again would be charged, since the statement or the data has changed")
    except KeyboardInterrupt:
        shell.note("")


def explain(shell: Shell, argument: str) -> None:
    sql = argument or shell.current()
    told = shell.connection._forecast_of(sql) or shell.connection.explain(sql.rstrip("; "))
    shell.print_lines(shown_lines(str(told)).split("\n"))


# --- answers ---------------------------------------------------------------------------------------------------------


def out(shell: Shell, argument: str) -> None:
    opened = _open_to_write(argument, "\\o") if argument else None
    shell.close()
    shell.file = opened


def copy(shell: Shell, argument: str) -> None:
    asked = read_copy(argument)
    answer = _last(shell) if asked.sql is None else shell.get(asked.sql)
    if answer is None:
        return
    if not answer.columns:
        raise InterfaceError("the statement has no rows to copy")
    write_copy(asked, frame_of(answer, asked.errors))
    shell.note(f"COPY {len(answer)}")


def chart(shell: Shell, argument: str) -> None:
    kind = one_of("chart", argument or "auto", ("bars", "lines", "auto"))
    answer = _last(shell)
    how = Layout() if shell.file is not None else shell.screen.layout()
    try:
        lines = chart_lines(
            answer.columns, answer.rows, answer.errors, how.width or 80, 20, kind, plain=how.plain, colour=how.colour
        )
    except NothingToDraw as nothing:
        raise InterfaceError(f"there is nothing to draw: {nothing}") from None
    shell.print_lines(lines)


def receipts(shell: Shell, argument: str) -> None:
    held = [str(receipt) for receipt in _last(shell).receipts]
    shell.print_lines(held or ["It read no private rows, so nothing was paid for."])


def expanded(shell: Shell, argument: str) -> None:
    now = shell.view.expanded
    said = argument or ("off" if now == "on" else "on")
    shell.view.expanded = one_of("x", said, ("on", "off", "auto"))
    shell.note(f"Expanded display is {shell.view.expanded}.")


def format_(shell: Shell, argument: str) -> None:
    if argument:
        shell.view.format = one_of("format", argument, FORMATS)
    shell.note(f"Answers are written as {shell.view.format}.")


def _switch(name: str, told: str) -> Callable[[Shell, str], None]:
    def do(shell: Shell, argument: str) -> None:
        setattr(shell.view, name, switch(name, argument, getattr(shell.view, name)))
        shell.note(f"{told} {'on' if getattr(shell.view, name) else 'off'}.")

    return do


# --- names -----------------------------------------------------------------------------------------------------------


def describe(shell: Shell, argument: str) -> None:
    if not argument:
        _list(shell, lambda table: True)
        return
    wanted = argument.removeprefix("public.").strip('"').lower()
    found = [table for table in shell.connection.tables() if table.name.lower() == wanted]
    if not found:
        raise UnknownTable(f'there is no table "{argument}"', hint="\\d lists them.")
    for table in found:
        shell.print_lines(table_described(table, shell.view, _screen(shell)))


def tables(shell: Shell, argument: str) -> None:
    _list(shell, lambda table: not table.is_view)


def views(shell: Shell, argument: str) -> None:
    _list(shell, lambda table: table.is_view)


def _list(shell: Shell, keep: Callable[[NamedTable], bool]) -> None:
    found = [one for one in shell.connection.tables() if keep(one)]
    if not found:
        shell.note("There are none.")
        return
    shell.print_lines(tables_listed(found, shell.view, _screen(shell)))


def functions(shell: Shell, argument: str) -> None:
    pattern = (argument or "*").lower().replace("%", "*")
    found = [one for one in shell.connection.functions() if fnmatch.fnmatchcase(one.name, pattern)]
    shell.print_lines(functions_listed(found, shell.view, _screen(shell)))


def dataset(shell: Shell, argument: str) -> None:
    count = len(shell.connection.tables())
    row = (shell.connection.database, shell.connection.user or "", count)
    shell.print_lines(listing(("dataset", "user", "tables"), [row], shell.view, _screen(shell)))


def connection_info(shell: Shell, argument: str) -> None:
    who = f' as "{shell.connection.user}"' if shell.connection.user else ""
    server = shell.connection.server
    where = "" if server is None else f", on the server {server}"
    asked = f'You ask the dataset "{shell.connection.database}"{who}{where}.'
    shell.print_lines([asked, f"Left of {shell.connection.budget().left_text}"])


# --- budget and settings ---------------------------------------------------------------------------------------------


def budget(shell: Shell, argument: str) -> None:
    shell.print_lines(str(shell.connection.budget()).splitlines())


def set_(shell: Shell, argument: str) -> None:
    """Through SQL's SET, so that both know the same names and values."""
    name, _, value = argument.replace("=", " ", 1).partition(" ")
    _command(shell, f"SET {name} = {value.strip()}" if value.strip() else f"SHOW {name or 'ALL'}")


def unset(shell: Shell, argument: str) -> None:
    if not argument:
        raise InvalidSyntax("\\unset needs the name of a setting", hint="\\set lists them.")
    _command(shell, f"RESET {argument}")


def _command(shell: Shell, sql: str) -> None:
    answer = shell.get(sql)
    if answer is not None:
        shell.show(answer, "off")


def confirm(shell: Shell, argument: str) -> None:
    if argument:
        shell.confirm = read_threshold(argument)
    what = "Nothing is asked before a charge." if shell.confirm is None else (
        f"A charge above epsilon {short_up(shell.confirm)} is asked about first."
    )
    shell.note(what)


def read_threshold(text: str) -> Fraction | None:
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


def history(shell: Shell, argument: str) -> None:
    lines = [line for entry in shell.history() for line in entry.splitlines()]
    if not argument:
        shell.print_lines([shown_lines(line) for line in lines])
        return
    with _open_to_write(argument, "\\s") as file:
        file.writelines(f"{line}\n" for line in lines)


def help_(shell: Shell, argument: str) -> None:
    shell.print_lines(help_lines(), to_file=False)


def leave(shell: Shell, argument: str) -> None:
    raise Leave


# --- inside ----------------------------------------------------------------------------------------------------------


def _last(shell: Shell) -> Answer:
    if shell.last is None:
        raise InterfaceError("there is no answer yet", hint="Ask a statement first.")
    return shell.last


def _screen(shell: Shell) -> Screen | None:
    return shell.screen if shell.file is None else None


def _file(argument: str, command: str) -> str:
    names = words_of(argument, command)
    if argument.startswith("|"):
        raise InvalidSyntax(f"{command} writes to a file, not to a program", hint="Write a pipe behind dpsql -c.")
    if len(names) != 1:
        raise InvalidSyntax(f"{command} takes the name of a file")
    return names[0]


def _open_to_write(argument: str, command: str) -> TextIO:
    name = _file(argument, command)
    try:
        return Path(name).expanduser().open("w", encoding="utf-8")
    except OSError as error:
        raise InterfaceError(f'the file "{name}" cannot be written: {error.strerror}') from None


DO: dict[str, Callable[[Shell, str], None]] = {
    "g": go, "gx": go_expanded, "e": edit, "p": print_it, "r": reset, "i": include, "watch": watch, "explain": explain,
    "o": out, "copy": copy, "chart": chart, "receipts": receipts, "x": expanded, "format": format_,
    "errors": _switch("errors", "Error bars are"), "digits": _switch("digits", "Only digits that mean something:"),
    "pager": _switch("pager", "Paging is"), "timing": _switch("timing", "Timing is"),
    "d": describe, "dt": tables, "dv": views, "df": functions, "l": dataset, "conninfo": connection_info,
    "budget": budget, "set": set_, "unset": unset, "confirm": confirm, "s": history, "?": help_, "q": leave,
}  # fmt: skip
