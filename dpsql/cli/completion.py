"""`dpsql completion`: what can follow on a command line, read off the parser, as a script for a shell."""

from __future__ import annotations

import argparse

from dpsql.cli.arguments import below_of, build_parser
from dpsql.cli.shells import bash, fish, zsh
from dpsql.cli.words import Place, Taken, Takes
from dpsql.display.screen import Screen

_SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
_BY_METAVAR = {"FILE": Takes.FILE, "DIR": Takes.FOLDER, "SCHEMA": Takes.SCHEMA, "COMMAND": Takes.COMMAND}


def run(given: argparse.Namespace, screen: Screen) -> None:
    screen.print(_SCRIPTS[given.shell](places(build_parser())).rstrip("\n"))


def places(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> list[Place]:
    """Every command and group of commands, with what may follow it."""
    below = below_of(parser)
    own = Place(
        words,
        {word: (inner.description or "").partition("\n")[0].rstrip(".") for word, inner in (below or {}).items()},
        tuple(_taken(action) for action in parser._actions if action.option_strings),
        tuple(_taken(action) for action in parser._actions if not action.option_strings and below is None),
    )
    return [own, *(place for word, inner in (below or {}).items() for place in places(inner, (*words, word)))]


def _taken(action: argparse.Action) -> Taken:
    what = (action.help or "").replace("%%", "%").partition(";")[0]
    choices = tuple(str(choice) for choice in action.choices or ())
    return Taken(tuple(action.option_strings), Takes.NOTHING if action.nargs == 0 else _takes(action), choices, what)


def _takes(action: argparse.Action) -> Takes:
    if action.choices:
        return Takes.CHOICE
    if action.dest in ("user", "name"):
        return Takes.USER
    return _BY_METAVAR.get(str(action.metavar), Takes.TEXT)
