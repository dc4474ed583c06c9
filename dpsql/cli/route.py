"""From the words of a command line to a command: a schema alone means the prompt, and a word that is no command is told
what it is near to."""

from __future__ import annotations

import argparse
import difflib
import os
from collections.abc import Sequence

from dpsql.cli.arguments import subcommands_of
from dpsql.dbapi.address import is_server_url

_PARSER_OPTIONS = ("-h", "--help", "--version")


def route_arguments(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> list[str]:
    """The arguments with their command: `help` where there are none, `repl` where they begin with a schema or with an
    option of its own."""
    words = list(arguments)
    if not words:
        return ["help"]
    commands = subcommands_of(parser) or {}
    if words[0] in commands or words[0] in _PARSER_OPTIONS:
        _check_subcommands(parser, words)
        return words
    if not words[0].startswith("-") and not is_schema(words[0]):
        parser.error(unknown_command_message(words[0], list(commands)))
    return ["repl", *words]


def is_schema(text: str) -> bool:
    """Or a server."""
    url = text.lower().startswith("dpsql:") or is_server_url(text)
    return url or text.lower().endswith((".yaml", ".yml")) or os.path.isfile(text)


def unknown_command_message(word: str, command_names: Sequence[str]) -> str:
    matches = difflib.get_close_matches(word, command_names, 1)
    more = f'; did you mean "{matches[0]}"?' if matches else f"; there are {', '.join(command_names)}"
    return f'there is no command "{word}"{more}'


def _check_subcommands(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """The second word of `answers list`, which argparse would only list the choices for."""
    subcommands = subcommands_of(parser)
    for word in words:
        if subcommands is None or word.startswith("-"):
            return
        if word not in subcommands:
            parser.error(unknown_command_message(word, list(subcommands)))
        parser, subcommands = subcommands[word], subcommands_of(subcommands[word])
