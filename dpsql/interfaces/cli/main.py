"""One command from its arguments to its exit code: 0, 1 for an error, 2 for wrong usage."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from dpsql.base.private_files import open_private_file
from dpsql.errors import OperationalError
from dpsql.interfaces.cli.arguments import (
    build_parser,
    is_schema,
    route_arguments,
    subcommands_of,
    unknown_command_message,
)
from dpsql.interfaces.display.terminal import Screen, UsageError

# By name, so that `dpsql --help` need not import what opens data.
_COMMAND_MODULES = {
    "repl": "dpsql.interfaces.repl.main",
    "query": "dpsql.interfaces.cli.query",
    "explain": "dpsql.interfaces.cli.query",
    "serve": "dpsql.interfaces.cli.serve",
    "init": "dpsql.interfaces.cli.init",
    "check": "dpsql.interfaces.cli.check",
    "randomize": "dpsql.interfaces.cli.randomize",
    "budget": "dpsql.interfaces.cli.budget",
    "audit": "dpsql.interfaces.cli.audit",
    "answers": "dpsql.interfaces.cli.answers",
    "data": "dpsql.interfaces.cli.data",
    "account": "dpsql.interfaces.cli.account",
    "user": "dpsql.interfaces.cli.user",
    "verify": "dpsql.interfaces.cli.verify",
    "demo": "dpsql.interfaces.cli.demo",
    "completion": "dpsql.interfaces.cli.completion",
    "help": "dpsql.interfaces.cli.main",
}
_CHARGING_COMMANDS = ("repl", "query")
"""Commands that statements are charged in."""
_EXIT_INTERRUPTED = 130
_EXIT_PIPE_CLOSED = 141  # what a shell tells of a program that SIGPIPE ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code. Wrong usage raises SystemExit(2), as argparse does."""
    parser = build_parser()
    args = parse_arguments(parser, route_arguments(parser, sys.argv[1:] if arguments is None else arguments))
    screen = Screen(sys.stdout, sys.stderr)
    if path := os.environ.get("DPSQL_LOG"):  # the owner's: it may hold private values
        try:
            os.close(open_private_file(path, os.O_WRONLY | os.O_APPEND))
            logging.basicConfig(filename=path, format="%(asctime)s %(name)s %(levelname)s %(message)s")
        except OSError as error:
            screen.print_exception(OperationalError(f'the log "{path}" cannot be written', detail=f"{error.strerror}."))
            return 1
    try:
        code = _run_command(args, screen)
        sys.stdout.flush()
        return code
    except UsageError as usage:
        command_parser: argparse.ArgumentParser = getattr(args, "parser", parser)
        command_parser.error(str(usage))
    except BrokenPipeError:
        # Python flushes again when it ends; there is nobody to write to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _EXIT_PIPE_CLOSED
    except KeyboardInterrupt:
        paid = "; what was charged is paid for, and is not charged again" if args.command in _CHARGING_COMMANDS else ""
        screen.print_note(f"interrupted{paid}")
        return _EXIT_INTERRUPTED


def parse_arguments(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Before Python 3.13, argparse does not see a statement behind an option: `query SCHEMA --user ana SQL`."""
    args, unparsed = parser.parse_known_args(arguments)
    if len(unparsed) == 1 and getattr(args, "sql", "") is None and (unparsed[0] == "-" or not _is_option(unparsed[0])):
        args.sql = unparsed[0]
    elif unparsed:
        command_parser: argparse.ArgumentParser = getattr(args, "parser", parser)
        command_parser.error(f"unrecognized arguments: {' '.join(unparsed)}")
    return args


def _is_option(text: str) -> bool:
    """As argparse sees it: a comment that begins a statement is no option."""
    return text.startswith("-") and " " not in text


def _run_command(args: argparse.Namespace, screen: Screen) -> int:
    try:
        code: int | None = import_module(_COMMAND_MODULES[args.command]).run(args, screen)
    except (UsageError, BrokenPipeError):
        raise
    except Exception as error:
        screen.print_exception(error)
        return 1
    return code or 0


# `dpsql help`: what a command does; without one, which there are.


def run(args: argparse.Namespace, screen: Screen) -> None:
    parser: argparse.ArgumentParser = build_parser()
    for word in args.words:
        subcommands = subcommands_of(parser)
        if subcommands is None:
            raise UsageError(f'"{word}" is no part of a command; write: {parser.prog} --help')
        if word not in subcommands and not (is_schema(word) and "repl" in subcommands):
            raise UsageError(unknown_command_message(word, list(subcommands)))
        parser = subcommands.get(word, subcommands.get("repl", parser))
    screen.print(parser.format_help().rstrip("\n"))
