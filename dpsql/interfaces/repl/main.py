"""`dpsql SCHEMA`: a prompt on a terminal; elsewhere the statements of the standard input."""

from __future__ import annotations

import argparse
import sys
from functools import cache

from prompt_toolkit import PromptSession

from dpsql.errors import Error
from dpsql.interfaces.dbapi.background_open import BackgroundConnection, open_in_background
from dpsql.interfaces.display.terminal import Screen
from dpsql.interfaces.repl.cli_input import find_password_prompt, read_statements, settings_from_args
from dpsql.interfaces.repl.completion.complete import read_names
from dpsql.interfaces.repl.display_options import DisplayOptions
from dpsql.interfaces.repl.meta_commands import BARE_WORD_COMMANDS
from dpsql.interfaces.repl.prompt import interrupt_prompt, make_prompt, open_history, read_entry, redraw_prompt
from dpsql.interfaces.repl.run_meta_command import ShellExit, parse_threshold
from dpsql.interfaces.repl.shell import Shell
from dpsql.interfaces.repl.status_line import StatusLine, format_balance
from dpsql.version import VERSION


def run(args: argparse.Namespace, screen: Screen) -> int:
    """0 if all went well, 1 if a statement failed where no one was there to see it."""
    view = DisplayOptions(
        format=args.format,
        expanded="on" if args.expanded else "auto",
        errors=args.format == "table" if args.errors is None else args.errors,
        digits=args.digits,
        timing=args.timing,
    )
    threshold = None if args.confirm is None else parse_threshold(args.confirm)
    opening = open_in_background(args.schema, args.user, find_password_prompt(), **settings_from_args(args))
    shell = Shell(opening.wait_for_connection, screen, view, quiet=args.quiet)
    if sys.stdin.isatty() and screen.out.isatty():
        shell.ask, shell.confirm = _ask_yes_no, threshold
    try:
        if args.commands or args.file:
            _run_inputs(shell, args)
        elif shell.ask is not None:
            return _run_prompt_loop(shell, opening, keep=args.history)
        else:
            shell.run_text(sys.stdin.read())
            shell.run_pending()
    except ShellExit:
        return 0
    finally:
        shell.shut_down()
        opening.close()
    return 0


def _run_inputs(shell: Shell, args: argparse.Namespace) -> None:
    for text in args.commands:
        shell.run_text(text)
        shell.run_pending()
    if args.file:
        text = sys.stdin.read() if args.file == "-" else read_statements(args.file)
        shell.run_text(text, None if args.file == "-" else args.file)
        shell.run_pending()


# --- on a terminal ---------------------------------------------------------------------------------------------------


def _run_prompt_loop(shell: Shell, opening: BackgroundConnection, keep: bool) -> int:
    """Until the person leaves; 1 where the data could not be opened."""
    history = open_history(keep)
    preview = opening.status_preview
    balance_text = None if preview is None else format_balance(preview.balance)
    status_line = StatusLine(opening.wait_for_connection, balance_text, lambda: redraw_prompt(session))
    names = cache(lambda: read_names(shell.connection))
    # Without waiting: until the data is open, a key is more than a completion.
    session = make_prompt(
        lambda: names() if opening.is_done else None, status_line.render, status_line.update_text, history
    )
    name = shell.connection.database if preview is None else preview.database
    shell.history = lambda: list(reversed(list(history.load_history_strings())))
    shell.print_note(f"dpsql {VERSION}: \\? for help, \\q to leave")
    opening.start_opening(lambda error: interrupt_prompt(session, error))
    status_line.start()
    try:
        while True:
            if _can_change_names(_run_entry(shell, session, name)):
                names.cache_clear()
            status_line.refresh_balance()
    except (EOFError, ShellExit):
        return 0
    except _OpenFailed:
        return 1
    finally:
        status_line.close()


class _OpenFailed(Exception):
    """The data could not be opened."""


def _can_change_names(text: str) -> bool:
    """Whether there may be other names now."""
    return any(word in text.lower() for word in ("create", "drop"))


def _run_entry(shell: Shell, session: PromptSession[str], name: str) -> str:
    """One entry, which is told. What goes wrong is shown, and the prompt comes back."""
    default, shell.typed = shell.typed, ""
    text = ""
    try:
        text = read_entry(session, name, default)
        shell.run_text(BARE_WORD_COMMANDS.get(text.strip().rstrip(";").lower(), text))
        shell.run_pending()
    except KeyboardInterrupt:
        shell.pending = ""
    except (EOFError, ShellExit):
        raise
    except Exception as error:
        shell.pending = ""
        shell.screen.print_exception(error)
        _require_open(shell)
    return text


def _require_open(shell: Shell) -> None:
    try:
        _ = shell.connection
    except Error:
        raise _OpenFailed from None


def _ask_yes_no(question: str) -> bool:
    """Yes is said in full or by its first letter; all else is no."""
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        print()
        return False
