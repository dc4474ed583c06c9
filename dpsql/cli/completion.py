"""`dpsql completion`: what can follow on a command line, read off the parser, as a script for a shell."""

from __future__ import annotations

import argparse

from dpsql.cli.arguments import subcommands_of, build_parser
from dpsql.cli.shells import render_bash_script, render_fish_script, render_zsh_script
from dpsql.cli.words import CommandNode, ArgumentSpec, ValueKind
from dpsql.display.screen import Screen

_SCRIPTS = {"bash": render_bash_script, "zsh": render_zsh_script, "fish": render_fish_script}
_KIND_BY_METAVAR = {
    "FILE": ValueKind.FILE,
    "SOURCE": ValueKind.FILE,
    "DIR": ValueKind.FOLDER,
    "SCHEMA": ValueKind.SCHEMA,
    "NAME=VALUE": ValueKind.SETTING,
}


def run(args: argparse.Namespace, screen: Screen) -> None:
    screen.print(_SCRIPTS[args.shell](_add_help_nodes(list_command_nodes(build_parser()))).rstrip("\n"))


def _add_help_nodes(nodes: list[CommandNode]) -> list[CommandNode]:
    """The words after `help` are those of all commands."""
    help_node = next(node for node in nodes if node.words == ("help",))
    help_nodes = [CommandNode(("help", *node.words), node.below, help_node.options, ()) for node in nodes if node.below]
    return [node for node in nodes if node is not help_node] + help_nodes


def list_command_nodes(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> list[CommandNode]:
    """Every command and group of commands, with what may follow it."""
    subcommands = subcommands_of(parser)
    own_node = CommandNode(
        words,
        {word: (inner.description or "").partition("\n")[0].rstrip(".") for word, inner in (subcommands or {}).items()},
        tuple(_argument_spec(action) for action in parser._actions if action.option_strings),
        tuple(_argument_spec(action) for action in parser._actions if not action.option_strings and subcommands is None),
    )
    return [own_node, *(node for word, inner in (subcommands or {}).items() for node in list_command_nodes(inner, (*words, word)))]


def _argument_spec(action: argparse.Action) -> ArgumentSpec:
    what = (action.help or "").replace("%%", "%").partition(";")[0]
    choices = tuple(str(choice) for choice in action.choices or ())
    takes = ValueKind.NOTHING if action.nargs == 0 else _value_kind(action)
    return ArgumentSpec(tuple(action.option_strings), takes, choices, what, action.nargs in ("+", "*"))


def _value_kind(action: argparse.Action) -> ValueKind:
    if action.choices:
        return ValueKind.CHOICE
    if action.dest in ("user", "name"):
        return ValueKind.USER
    if action.dest == "tables":
        return ValueKind.TABLE
    return _KIND_BY_METAVAR.get(str(action.metavar), ValueKind.TEXT)
