"""Magics for IPython and Jupyter, after `%load_ext dpsql`:

    %dpsql clinic.yaml --user ana --epsilon 0.5     connect; %dpsql connection takes an open one
    %dpsql                                          what is left of the budget
    answer = %dpsql SELECT COUNT(*) FROM visits     one line of SQL

    %%dpsql answer << --epsilon 0.1                 a statement; the answer is kept in a variable, or shown
    SELECT ward, COUNT(*) FROM visits GROUP BY ward

`--explain` tells the statement's price, for free; `--params values` takes its parameters from a variable. An error is
shown with a caret below the statement and without a traceback. Where the answer is kept and not shown, one line tells
what it was charged. SQL is sent as it stands: IPython fills nothing in for
{x} and $x.
"""

from __future__ import annotations

import argparse
import atexit
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, NoReturn

from dpsql.errors import Error, InterfaceError, QueryCanceled
from dpsql.interfaces.dbapi.connection import Connection, connect
from dpsql.interfaces.dbapi.result import Answer
from dpsql.interfaces.display.terminal import escape_lines
from dpsql.session.session import Balance, Explanation

_USAGE = "Write for example: %dpsql clinic.yaml --user ana"
_ASSIGNMENT = re.compile(r"=\s*%dpsql\b")


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext dpsql` calls: it gives the shell %dpsql and %%dpsql."""
    magic = DpsqlMagic(shell)
    shell.events.register("pre_run_cell", magic.remember_cell)
    shell.register_magic_function(magic.run, magic_kind="line_cell", magic_name="dpsql")
    atexit.register(magic.close_connection)  # the shell outlives the driver, which complains about what it finds open


class _MagicParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        option_names = sorted(self._option_string_actions)
        words = [word.partition("=")[0] for word in message.split() if word.startswith("-")]
        close_names = [
            close_name
            for word in words
            if word not in option_names
            for close_name in get_close_matches(word, option_names, n=1)
        ]
        hint = f"Perhaps you meant {close_names[0]}. " if close_names else ""
        raise InterfaceError(message, hint=f"{hint}Options: {', '.join(option_names)}.")


def _make_parser() -> _MagicParser:
    parser = _MagicParser(prog="%dpsql", add_help=False, allow_abbrev=False)
    parser.add_argument("where", nargs="?")
    for name in ("--user", "--epsilon", "--delta", "--params"):
        parser.add_argument(name)
    parser.add_argument("--explain", action="store_true")
    return parser


class DpsqlMagic:
    """The connection of a notebook, and what is asked of it."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._connection: Connection | None = None
        self._own = False  # whether it was opened here
        self._text = ""  # of the cell that runs

    def remember_cell(self, info: Any) -> None:
        """What IPython calls before a cell."""
        self._text = info.raw_cell or ""

    def run(self, line: str, cell: str | None = None) -> Answer | Explanation | Balance | None:
        """Ask in SQL with differential privacy.

        %dpsql SCHEMA [--user NAME] [--epsilon E] [--delta D] connects, %dpsql alone tells what is left, and
        %%dpsql [VARIABLE <<] [--epsilon E] [--delta D] [--explain] [--params NAME] asks the statement in the cell.
        """
        try:
            if cell is not None:
                return self._run_cell(line, cell)
            return self._run_sql_line(line) if _is_sql(line) else self._run_line(line)
        except Error as error:
            charged = f"\ncharged: {error.charge}" if error.charge else ""
            lines = escape_lines(f"ERROR:  {error}{charged}").split("\n")
            setattr(error, "_render_traceback_", lambda: lines)  # noqa: B010  (IPython shows this in its place)
            raise

    def _run_line(self, line: str) -> Balance | None:
        arguments = _make_parser().parse_args(_split_words(line))
        if arguments.where is None:
            return self._require_connection().budget()
        if arguments.explain or arguments.params:
            raise InterfaceError("--explain and --params are for a statement", hint="Put it in a cell of %%dpsql.")
        if _option_settings(arguments) and isinstance(self._shell.user_ns.get(arguments.where), Connection):
            hint = "Set them: %dpsql SET epsilon = 0.5, or for one statement in its cell: %%dpsql --epsilon 0.5"
            raise InterfaceError("--epsilon and --delta are not for a connection that is open already", hint=hint)
        self._open_connection(arguments)
        user_text = f' as "{self._require_connection().user}"' if self._require_connection().user else ""
        remaining = self._require_connection()._remaining_budget_text()
        print(
            escape_lines(
                f'You ask "{self._require_connection().database}"{user_text}'
                + (f"; left of {remaining}" if remaining else "")
            )
        )
        return None

    def _run_sql_line(self, line: str) -> Answer:
        answer = _execute_statement(self._require_connection(), line.strip().rstrip(";"))
        if _ASSIGNMENT.search(self._text):
            self._print_charge(answer)
        return answer

    def _print_charge(self, answer: Answer) -> None:
        """What an answer was charged that is kept, and not shown."""
        if answer.left is not None:
            print(escape_lines(f"charged: {answer.loss}; left of {answer.left}"))

    def _run_cell(self, line: str, cell: str) -> Answer | Explanation | None:
        name, options = _split_assignment(line)
        arguments = _make_parser().parse_args(_split_words(options))
        if arguments.where is not None or arguments.user is not None:
            self._open_connection(arguments)
        parameters = self._get_parameters(arguments.params)
        statement = cell.strip().rstrip(";")
        connection, settings = self._require_connection(), _option_settings(arguments)
        ask = connection.explain if arguments.explain else partial(_execute_statement, connection)
        answer = ask(statement, parameters, settings=settings)
        if name is None:
            return answer
        self._shell.push({name: answer})
        if isinstance(answer, Answer):
            self._print_charge(answer)
        return None

    def _open_connection(self, arguments: argparse.Namespace) -> None:
        """To what a variable holds: a connection, a dict, a path; or else to a path or URL."""
        variable = self._shell.user_ns.get(arguments.where)
        if isinstance(variable, Connection):
            if arguments.user not in (None, variable.user):
                raise InterfaceError(f"the connection is open already, as {variable.user or 'nobody'}", hint=_USAGE)
            self._use_connection(variable, own=False)
            return
        if arguments.where is None:
            raise InterfaceError("--user is for a connection that is opened", hint=_USAGE)
        target = variable if isinstance(variable, dict | str | os.PathLike) else arguments.where
        self._use_connection(connect(target, arguments.user, **_option_settings(arguments)), own=True)

    def _use_connection(self, connection: Connection, own: bool) -> None:
        if self._own and self._connection is not None and self._connection is not connection:
            self._connection.close()
        self._connection, self._own = connection, own

    def close_connection(self) -> None:
        """Let go of the connection; one that was opened here is closed."""
        if self._own and self._connection is not None:
            self._connection.close()
        self._connection, self._own = None, False

    def _require_connection(self) -> Connection:
        if self._connection is None:
            raise InterfaceError("there is no connection", hint=_USAGE)
        return self._connection

    def _get_parameters(self, name: str | None) -> Sequence[Any]:
        if name is None:
            return ()
        if name not in self._shell.user_ns:
            raise InterfaceError(f'there is no variable "{name}"', hint="It holds a sequence, one value for each ?.")
        value: Sequence[Any] = self._shell.user_ns[name]
        return value


setattr(DpsqlMagic.run, "_ipython_magic_no_var_expand", True)  # noqa: B010  (how IPython's decorator says it)


def _option_settings(arguments: argparse.Namespace) -> dict[str, str]:
    return {name: getattr(arguments, name) for name in ("epsilon", "delta") if getattr(arguments, name) is not None}


def _execute_statement(
    connection: Connection, statement: str, parameters: Sequence[Any] = (), settings: Mapping[str, str] | None = None
) -> Answer:
    """Run a statement; interrupting the kernel cancels it, and shows what it was charged."""
    cursor = connection.cursor()
    try:
        return cursor.execute(statement, parameters, settings=settings).answer()
    except KeyboardInterrupt:
        hint = "The run goes on, and is not charged again." if cursor.loss else "Nothing was charged."
        canceled = QueryCanceled("the statement was interrupted", hint=hint)
        canceled.charge = cursor.loss
        raise canceled from None


def _is_sql(line: str) -> bool:
    """A word and more behind it that is no option: a path or a variable stands alone, or before options."""
    first, _, rest = line.strip().partition(" ")
    return first.isalpha() and bool(rest.strip()) and not rest.strip().startswith("--")


def _split_assignment(line: str) -> tuple[str | None, str]:
    """The variable before <<, and the options on either side of it."""
    if "<<" not in line:
        return None, line
    before, _, after = line.partition("<<")
    words = before.split()
    if not words or not words[-1].isidentifier():
        raise InterfaceError("the name of a variable stands before <<", hint="For example: %%dpsql answer <<")
    return words[-1], " ".join([*words[:-1], after])


def _split_words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        raise InterfaceError("a quote is not closed", hint=_USAGE) from None
