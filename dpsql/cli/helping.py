"""`dpsql help`: what a command does; without one, which there are."""

from __future__ import annotations

import argparse

from dpsql.cli.arguments import below_of, build_parser
from dpsql.cli.route import is_schema, wrong_word
from dpsql.display.screen import Screen, Usage


def run(given: argparse.Namespace, screen: Screen) -> None:
    parser: argparse.ArgumentParser = build_parser()
    for word in given.words:
        below = below_of(parser)
        if below is None:
            raise Usage(f'"{word}" is no part of a command; write: {parser.prog} --help')
        if word not in below and not (is_schema(word) and "repl" in below):
            raise Usage(wrong_word(word, list(below)))
        parser = below.get(word, below.get("repl", parser))
    screen.print(parser.format_help().rstrip("\n"))
