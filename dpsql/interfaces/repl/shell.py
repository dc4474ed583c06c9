"""Runs statements and backslash commands and shows their results: the prompt without its keys."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, TextIO

from dpsql.amounts import format_rounded_up
from dpsql.errors import Error, InterfaceError
from dpsql.interfaces.dbapi.result import Answer, format_charge_lines
from dpsql.interfaces.display.terminal import Screen
from dpsql.interfaces.repl import run_meta_command
from dpsql.interfaces.repl.display_options import DisplayOptions, format_answer
from dpsql.interfaces.repl.meta_commands import COMMANDS_BY_NAME, MetaCommandCall, parse_meta_command, split_shell_words
from dpsql.interfaces.repl.split_input import MetaCommandText, StatementText, split_input

if TYPE_CHECKING:
    from dpsql.interfaces.dbapi.connection import Connection
    from dpsql.session.session import Forecast

# Waiting for a statement: a line that tells for how long, and Ctrl-C that leaves it.

PROGRESS_DELAY = 0.6
"""Seconds before anything is drawn."""
_REDRAW_SECONDS = 0.1
_BAR_WIDTH = 24


def run_interruptible(work: Callable[[], object], connection: Connection, screen: Screen) -> None:
    """Do `work` on another thread. Ctrl-C cancels the statement, a second one leaves without waiting for that."""
    trouble: list[BaseException] = []
    ended = threading.Event()  # a join that Ctrl-C interrupts takes the thread for one that has ended

    def run() -> None:
        try:
            work()
        except BaseException as error:
            trouble.append(error)
        finally:
            ended.set()

    started, has_drawn = time.monotonic(), False
    threading.Thread(target=run, name="dpsql-statement", daemon=True).start()
    try:
        while not ended.is_set():
            try:
                ended.wait(_REDRAW_SECONDS)
                took = time.monotonic() - started
                if not ended.is_set() and took > PROGRESS_DELAY and screen.can_redraw:
                    has_drawn = True  # first: Ctrl-C may come while it is drawn
                    screen.redraw_line(format_progress(took, *connection.progress()))
            except KeyboardInterrupt:
                connection.cancel()
                ended.wait(1.0)
    except KeyboardInterrupt:
        screen.print_note(
            "left at once; what was charged is paid for, and is not charged again: \\budget tells what is left"
        )
        raise
    finally:
        if has_drawn:
            screen.redraw_line("")
    if trouble:
        raise trouble[0]


def format_progress(took: float, delivered: int, releases: int) -> str:
    """
    >>> format_progress(3.14, 1, 4)
    '██████░░░░░░░░░░░░░░░░░░ 1 of 4 releases, 3 s; Ctrl-C leaves; what is paid stays paid'
    """
    if releases <= 1:  # the engine's own progress is not told: it would be a clock of the rows
        position = int(took / _REDRAW_SECONDS / 2) % _BAR_WIDTH
        bar, what = "░" * position + "█" + "░" * (_BAR_WIDTH - position - 1), "asking"
    else:
        filled = _BAR_WIDTH * delivered // releases
        bar, what = "█" * filled + "░" * (_BAR_WIDTH - filled), f"{delivered} of {releases} releases"
    return f"{bar} {what}, {int(took)} s; Ctrl-C leaves; what is paid stays paid"


# Long answers page by page, in the reader's own pager.


def page_lines(lines: list[str], screen: Screen) -> None:
    """Through $DPSQL_PAGER or $PAGER, else less, where the answer is larger than the screen; else as it is."""
    command = _pager_command()
    size = shutil.get_terminal_size()
    if command is None or not screen.out.isatty() or len(lines) < size.lines - 1:
        for line in lines:
            screen.print(line)
        return
    screen.out.flush()
    text = "".join(f"{line}\n" for line in lines)
    environment = {"LESS": "-RFXS", "LESSCHARSET": "utf-8"} | dict(os.environ)
    try:
        subprocess.run(command, input=text, text=True, env=environment, check=False)
    except OSError:
        for line in lines:
            screen.print(line)
    except KeyboardInterrupt:
        return


def _pager_command() -> list[str] | None:
    configured = os.environ.get("DPSQL_PAGER", os.environ.get("PAGER"))
    if configured is not None:
        return split_shell_words(configured, "$PAGER") or None
    return ["less"] if shutil.which("less") else None


@dataclass
class Shell:
    """`connect` gives the open connection. `ask` puts a yes-or-no question to a person; None where there is no person.

    `typed` is what stands in the prompt next; `pending` a statement that was begun and not ended, `behind` whether a
    command came behind it, that did not ask it.
    """

    connect: Callable[[], Connection]
    screen: Screen
    view: DisplayOptions = field(default_factory=DisplayOptions)
    ask: Callable[[str], bool] | None = None
    confirm: Fraction | None = None
    quiet: bool = False
    history: Callable[[], list[str]] = list
    last_sql: str | None = None
    last: Answer | None = None
    file: TextIO | None = None
    typed: str = ""
    pending: str = ""
    behind: bool = False
    depth: int = 0

    @property
    def connection(self) -> Connection:
        return self.connect()

    def run_text(self, text: str, file: str | None = None) -> None:
        """Do all that the text says, in order; the first error ends it, and what comes after is not asked.

        An error in a `file` tells the line of it.
        """
        for piece in split_input(text):
            try:
                self._run_piece(piece)
            except Error as error:
                if file is not None and error.place is None:
                    at = piece.start + (0 if error.span is None else error.span.start)
                    error.place = f"{file}:{text.count(chr(10), 0, at) + 1}"
                raise

    def _run_piece(self, piece: StatementText | MetaCommandText) -> None:
        self.behind = isinstance(piece, MetaCommandText)
        if isinstance(piece, MetaCommandText):
            self._run_meta_command(parse_meta_command(piece.text))
        elif piece.complete:
            sql, self.pending = f"{self.pending}\n{piece.sql}".strip(), ""
            if sql:
                self.execute(sql)
        else:
            self.pending = f"{self.pending}\n{piece.sql}".strip()

    def run_pending(self) -> None:
        """A last statement need not end in a semicolon. One with a command behind it was not meant to be asked yet."""
        sql = self._take_pending()
        if sql and not self.behind:
            self.execute(sql)
        elif sql and self.ask is not None:
            self.typed = sql
        elif sql:
            self.print_note("not asked, since the statement before the command has no end")

    def current_statement(self) -> str:
        """The statement that is typed, or else the last one."""
        sql = self._take_pending() or self.last_sql
        if sql is None:
            raise InterfaceError("no statement was asked yet")
        return sql

    def _take_pending(self) -> str:
        sql, self.pending = self.pending, ""
        return sql

    def _run_meta_command(self, typed: MetaCommandCall) -> None:
        run_meta_command.META_COMMAND_ACTIONS[typed.command.name](self, typed.argument)

    # --- statements --------------------------------------------------------------------------------------------------

    def execute(self, sql: str, *, expanded: bool = False, free: bool = False) -> None:
        """With `free`, it is asked only if that is charged nothing; else BudgetExceeded."""
        self.last_sql = sql
        started = time.monotonic()
        answer = self.fetch_answer(sql, free)
        took = time.monotonic() - started
        if answer is None:
            return
        self.show_answer(answer, "on" if expanded else self.view.expanded)
        if self.view.timing:
            self.print_note(f"Time: {1000 * took:.1f} ms")

    def fetch_answer(self, sql: str, free: bool = False) -> Answer | None:
        """The answer to a statement; None where a person does not agree to its charge. She may leave it by Ctrl-C."""
        if not free and not self._confirm_charge(sql):
            self.print_note("not asked, and nothing was charged")
            return None
        with self.connection.cursor() as cursor:
            if self.ask is None:
                cursor.execute(sql, free=free)
            else:
                run_interruptible(lambda: cursor.execute(sql, free=free), self.connection, self.screen)
            answer = cursor.answer()
        if answer.command == "SELECT":
            self.last = answer
        return answer

    def show_answer(self, answer: Answer, expanded: str) -> None:
        for notice in answer.notices:
            self.print_note(f"NOTICE:  {notice}")
        if not answer.columns:
            self.print_note(answer.command)
            return
        to_table = self.view.format == "table"
        lines = format_answer(answer, self.view, self.screen if self.file is None else None, expanded)
        charges = [] if self.quiet else format_charge_lines(answer)
        charges_as_notes = not to_table or self.file is not None
        self.print_lines(lines + ([] if charges_as_notes else charges))
        if charges_as_notes:
            for line in charges:
                self.print_note(line)

    def _confirm_charge(self, sql: str) -> bool:
        """Whether a person agrees to the charge; what is not asked for its price is not charged either."""
        if self.ask is None or self.confirm is None:
            return True
        try:
            forecast = self.connection._get_forecast(sql)
            if forecast is not None:
                return self._confirm_forecast(forecast)
            explained = self.connection.explain(sql)
        except Error:  # no query; or asking will tell what is wrong with it, and charge nothing
            return True
        paid = bool(explained.paid) and all(explained.paid)
        epsilon = format_rounded_up(explained.epsilon)
        if explained.undecided:  # how much its pilot decides on is known only once the pilot is paid for
            pilot = "It has a pilot that is paid for" if paid else f"It asks a pilot first, charged epsilon {epsilon}"
            return self.ask(f"{pilot}, and then is charged what that decides. Ask it?")
        if explained.epsilon <= self.confirm or paid:
            return True
        return self.ask(f"It will be charged at most epsilon {epsilon}. Ask it?")

    def _confirm_forecast(self, forecast: Forecast) -> bool:
        """To a question, of which the first has all of them charged."""
        assert self.ask is not None and self.confirm is not None
        due = forecast.epsilon
        if forecast.paid or due is None or due <= self.confirm:
            return True
        return self.ask(f"It will be charged epsilon {format_rounded_up(due)}, for all of its questions. Ask it?")

    # --- where text goes ---------------------------------------------------------------------------------------------

    def print_lines(self, lines: list[str], *, to_file: bool = True) -> None:
        """Answers: to the file of \\o, through the pager, or to the screen."""
        if self.file is not None and to_file:
            self.file.writelines(f"{line}\n" for line in lines)
            self.file.flush()
        elif self.ask is not None and self.view.pager:
            page_lines(lines, self.screen)
        else:
            for line in lines:
                self.screen.print(line)

    def print_note(self, text: str) -> None:
        if not self.quiet:
            self.screen.print_note(text)

    def shut_down(self) -> None:
        """A run that was left goes on, and is waited for."""
        self.close_file()
        with suppress(Error):
            delivered, releases = self.connection.progress() if self.last_sql is not None else (0, 0)
            if delivered < releases:
                self.print_note("waiting for the run under way, which is paid for; Ctrl-C leaves at once")

    def close_file(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None


assert run_meta_command.META_COMMAND_ACTIONS.keys() == COMMANDS_BY_NAME.keys()
