"""The backslash commands: their names, what they take, and a line of help for each."""

from __future__ import annotations

import difflib
import re
import shlex
from dataclasses import dataclass

from dpsql.errors import InvalidSyntax


@dataclass(frozen=True)
class MetaCommand:
    name: str
    arguments: str
    help: str
    group: str


META_COMMANDS = (
    MetaCommand("g", "[FILE]", "ask the typed statement, or the last one again; into FILE", "Statements"),
    MetaCommand("gx", "", "the same, expanded", "Statements"),
    MetaCommand(
        "e", "[FILE]", "edit the last statement, or a file, in $EDITOR; it comes back to the prompt", "Statements"
    ),
    MetaCommand("p", "", "print the last statement", "Statements"),
    MetaCommand("r", "", "forget what was typed", "Statements"),
    MetaCommand("i", "FILE", "ask the statements of a file", "Statements"),
    MetaCommand("watch", "[SECONDS]", "ask again and again, as long as it is free; 2 seconds", "Statements"),
    MetaCommand(
        "explain", "[SQL]", "what a statement, or the last one, would lose and how good it would be", "Statements"
    ),
    MetaCommand("o", "[FILE]", "write answers to a file; without one, to the screen again", "Answers"),
    MetaCommand(
        "copy",
        "[(SELECT …)] to FILE [FORMAT] [errors]",
        "the last answer, or that of a SELECT, as csv, json or parquet",
        "Answers",
    ),
    MetaCommand("chart", "[bars|lines]", "draw the last answer with its error bars", "Answers"),
    MetaCommand("receipts", "", "the receipts of the last answer", "Answers"),
    MetaCommand("x", "[on|off|auto]", "one line for each value", "Answers"),
    MetaCommand("format", "[table|csv|json]", "how answers are written", "Answers"),
    MetaCommand("errors", "[on|off]", "95 % error bars beside the values", "Answers"),
    MetaCommand("digits", "[on|off]", "only digits that the noise leaves meaning to", "Answers"),
    MetaCommand("pager", "[on|off]", "long answers page by page", "Answers"),
    MetaCommand("timing", "[on|off]", "how long a statement took", "Answers"),
    MetaCommand("d", "[TABLE]", "the tables; or the columns of one, with bounds and values", "Names"),
    MetaCommand("dt", "", "the tables", "Names"),
    MetaCommand("dv", "", "the views", "Names"),
    MetaCommand("df", "[PATTERN]", "the functions", "Names"),
    MetaCommand("l", "", "the dataset", "Names"),
    MetaCommand("conninfo", "", "who asks, and whom", "Names"),
    MetaCommand("budget", "", "what was lost, and what is left", "Budget"),
    MetaCommand("set", "[NAME [VALUE]]", "change a setting, as \\set epsilon 0.5; show it; show all", "Budget"),
    MetaCommand("unset", "NAME", "a setting as it was at first", "Budget"),
    MetaCommand("confirm", "[EPSILON|off]", "ask before a statement is charged more than this", "Budget"),
    MetaCommand("s", "[FILE]", "what was typed before; into FILE", "Others"),
    MetaCommand("?", "", "this help", "Others"),
    MetaCommand("q", "", "leave; Ctrl-D does it too", "Others"),
)
COMMANDS_BY_NAME = {command.name: command for command in META_COMMANDS}
BARE_WORD_COMMANDS = {"exit": "\\q", "quit": "\\q", "help": "\\?"}
"""What people type alone on a line, and mean a command."""
_ALIASES = {"h": "?", "help": "?", "quit": "q", "exit": "q", "include": "i", "out": "o", "edit": "e"}
"""Longer names, as in psql."""


@dataclass(frozen=True)
class MetaCommandCall:
    """A backslash command as it was typed; `argument` is the rest of its line."""

    command: MetaCommand
    argument: str


def parse_meta_command(text: str) -> MetaCommandCall:
    """
    >>> parse_meta_command("\\\\d+ visits;").argument
    'visits'
    """
    name, *rest = re.split(r"\s+", text.strip().removeprefix("\\"), maxsplit=1)
    argument = "".join(rest).strip()
    if not argument.startswith("("):
        argument = argument.rstrip(";").rstrip()
    command_name = name.rstrip(";")
    for spelled in (command_name, _ALIASES.get(command_name, command_name), command_name.rstrip("+")):
        if spelled in COMMANDS_BY_NAME:
            return MetaCommandCall(COMMANDS_BY_NAME[spelled], argument)
    matches = difflib.get_close_matches(command_name, COMMANDS_BY_NAME, n=1)
    hint = f"Did you mean \\{matches[0]}? \\? lists them." if matches else "\\? lists the commands."
    raise InvalidSyntax(f"there is no command \\{command_name}", hint=hint)


def split_shell_words(text: str, where: str) -> list[str]:
    """The words of a line, as a shell reads them."""
    try:
        return shlex.split(text)
    except ValueError:
        raise InvalidSyntax(f"a quote in {where} is not closed") from None


def format_help() -> list[str]:
    width = max(
        len(f"\\{command.name} {command.arguments}") for command in META_COMMANDS if len(command.arguments) < 20
    )
    lines: list[str] = []
    for group in dict.fromkeys(command.group for command in META_COMMANDS):
        lines += ["", group] if lines else [group]
        for command in (member for member in META_COMMANDS if member.group == group):
            head = f"\\{command.name} {command.arguments}".strip()
            lines += [f"  {head:<{width}}  {command.help}"] if len(head) <= width else [
                f"  {head}", f"  {'':<{width}}  {command.help}"
            ]  # fmt: skip
    keys = "Enter asks a statement that ends in ; and else begins a line. Esc Enter asks at once. Tab completes."
    return [*lines, "", keys, "Ctrl-C leaves a statement under way: its run goes on, and what is paid stays paid."]
