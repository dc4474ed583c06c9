"""`dpsql completion`: what can follow on a command line, read off the parser, as a script for a shell."""

from __future__ import annotations

import argparse

from dpsql.cli.arguments import below_of, build_parser
from dpsql.cli.shells import bash, fish, zsh
from dpsql.cli.words import Place, Taken, Takes
from dpsql.display.screen import Screen

_SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
_BY_METAVAR = {
    "FILE": Takes.FILE,
    "SOURCE": Takes.FILE,
    "DIR": Takes.FOLDER,
    "SCHEMA": Takes.SCHEMA,
    "NAME=VALUE": Takes.SETTING,
}


def run(given: argparse.Namespace, screen: Screen) -> None:
    screen.print(_SCRIPTS[given.shell](_with_help(places(build_parser()))).rstrip("\n"))


def _with_help(found: list[Place]) -> list[Place]:
    """The words after `help` are those of all commands."""
    own = next(place for place in found if place.words == ("help",))
    told = [Place(("help", *place.words), place.below, own.options, ()) for place in found if place.below]
    return [place for place in found if place is not own] + told


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
    takes = Takes.NOTHING if action.nargs == 0 else _takes(action)
    return Taken(tuple(action.option_strings), takes, choices, what, action.nargs in ("+", "*"))


def _takes(action: argparse.Action) -> Takes:
    if action.choices:
        return Takes.CHOICE
    if action.dest in ("user", "name"):
        return Takes.USER
    if action.dest == "tables":
        return Takes.TABLE
    return _BY_METAVAR.get(str(action.metavar), Takes.TEXT)
