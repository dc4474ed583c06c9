"""`dpsql help`: what a command does; without one, which there are."""

from __future__ import annotations

import argparse

from dpsql.cli.arguments import subcommands_of, build_parser
from dpsql.cli.route import is_schema, unknown_command_message
from dpsql.display.screen import Screen, UsageError


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
