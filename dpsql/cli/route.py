"""From the words of a command line to a command: a schema alone means the prompt, and a word that is no command is told
what it is near to."""

from __future__ import annotations

import argparse
import difflib
import os
from collections.abc import Sequence

from dpsql.cli.arguments import below_of
from dpsql.dbapi.address import is_server

_OWN = ("-h", "--help", "--version")


def route(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> list[str]:
    """The arguments with their command: `help` where there are none, `repl` where they begin with a schema or with an
    option of its own."""
    words = list(arguments)
    if not words:
        return ["help"]
    commands = below_of(parser) or {}
    if words[0] in commands or words[0] in _OWN:
        _check_words(parser, words)
        return words
    if not words[0].startswith("-") and not is_schema(words[0]):
        parser.error(wrong_word(words[0], list(commands)))
    return ["repl", *words]


def is_schema(text: str) -> bool:
    """Or a server."""
    url = text.lower().startswith("dpsql:") or is_server(text)
    return url or text.lower().endswith((".yaml", ".yml")) or os.path.isfile(text)


def wrong_word(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    more = f'; did you mean "{near[0]}"?' if near else f"; there are {', '.join(known)}"
    return f'there is no command "{word}"{more}'


def _check_words(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """The second word of `answers list`, which argparse would only list the choices for."""
    below = below_of(parser)
    for word in words:
        if below is None or word.startswith("-"):
            return
        if word not in below:
            parser.error(wrong_word(word, list(below)))
        parser, below = below[word], below_of(below[word])
