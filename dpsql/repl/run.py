"""`dpsql SCHEMA`: a prompt on a terminal; elsewhere the statements of the standard input."""

from __future__ import annotations

import argparse
import sys
from functools import cache

from prompt_toolkit import PromptSession

from dpsql.about import VERSION
from dpsql.dbapi.opening import Opening, open_soon
from dpsql.display.screen import Screen
from dpsql.errors import Error
from dpsql.repl.beneath import Beneath, lefts
from dpsql.repl.commands import WORDS
from dpsql.repl.complete import names_of
from dpsql.repl.given import password_asker, read_statements, settings_of
from dpsql.repl.meta import Leave, read_threshold
from dpsql.repl.prompt import ask_line, interrupt, make_prompt, open_history, refresh
from dpsql.repl.shell import Shell
from dpsql.repl.view import View


def run(given: argparse.Namespace, screen: Screen) -> int:
    """0 if all went well, 1 if a statement failed where no one was there to see it."""
    view = View(
        format=given.format,
        expanded="on" if given.expanded else "auto",
        errors=given.format == "table" if given.errors is None else given.errors,
        digits=given.digits,
        timing=given.timing,
    )
    threshold = None if given.confirm is None else read_threshold(given.confirm)
    opening = open_soon(given.schema, given.user, password_asker(), **settings_of(given))
    shell = Shell(opening.connection, screen, view, quiet=given.quiet)
    if sys.stdin.isatty() and screen.out.isatty():
        shell.ask, shell.confirm = _ask, threshold
    try:
        if given.commands or given.file:
            _feed_all(shell, given)
        elif shell.ask is not None:
            return _converse(shell, opening, keep=given.history)
        else:
            shell.feed(sys.stdin.read())
            shell.finish()
    except Leave:
        return 0
    finally:
        shell.leave()
        opening.close()
    return 0


def _feed_all(shell: Shell, given: argparse.Namespace) -> None:
    for text in given.commands:
        shell.feed(text)
        shell.finish()
    if given.file:
        text = sys.stdin.read() if given.file == "-" else read_statements(given.file)
        shell.feed(text, None if given.file == "-" else given.file)
        shell.finish()


# --- on a terminal ---------------------------------------------------------------------------------------------------


def _converse(shell: Shell, opening: Opening, keep: bool) -> int:
    """Until the person leaves; 1 where the data could not be opened."""
    history = open_history(keep)
    ahead = opening.outlook
    left = None if ahead is None else lefts(ahead.balance)
    beneath = Beneath(opening.connection, left, lambda: refresh(session))
    names = cache(lambda: names_of(shell.connection))
    # Without waiting: until the data is open, a key is more than a completion.
    session = make_prompt(lambda: names() if opening.ended else None, beneath.text, beneath.typed, history)
    name = shell.connection.database if ahead is None else ahead.database
    shell.history = lambda: list(reversed(list(history.load_history_strings())))
    shell.note(f"dpsql {VERSION}: \\? for help, \\q to leave")
    opening.begin(lambda error: interrupt(session, error))
    beneath.start()
    try:
        while True:
            if _makes(_turn(shell, session, name)):
                names.cache_clear()
            beneath.asked()
    except (EOFError, Leave):
        return 0
    except _Shut:
        return 1
    finally:
        beneath.close()


class _Shut(Exception):
    """The data could not be opened."""


def _makes(text: str) -> bool:
    """Whether there may be other names now."""
    return any(word in text.lower() for word in ("create", "drop"))


def _turn(shell: Shell, session: PromptSession[str], name: str) -> str:
    """One entry, which is told. What goes wrong is shown, and the prompt comes back."""
    default, shell.typed = shell.typed, ""
    text = ""
    try:
        text = ask_line(session, name, default)
        shell.feed(WORDS.get(text.strip().rstrip(";").lower(), text))
        shell.finish()
    except KeyboardInterrupt:
        shell.pending = ""
    except (EOFError, Leave):
        raise
    except Exception as error:
        shell.pending = ""
        shell.screen.failed(error)
        _require_open(shell)
    return text


def _require_open(shell: Shell) -> None:
    try:
        _ = shell.connection
    except Error:
        raise _Shut from None


def _ask(question: str) -> bool:
    """Yes is said in full or by its first letter; all else is no."""
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        print()
        return False
