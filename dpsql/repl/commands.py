"""The backslash commands: their names, what they take, and a line of help for each."""

from __future__ import annotations

import difflib
import re
import shlex
from dataclasses import dataclass

from dpsql.errors import InvalidSyntax


@dataclass(frozen=True)
class Command:
    name: str
    arguments: str
    help: str
    group: str


COMMANDS = (
    Command("g", "[FILE]", "ask the typed statement, or the last one again; into FILE", "Statements"),
    Command("gx", "", "the same, expanded", "Statements"),
    Command("e", "[FILE]", "edit the last statement, or a file, in $EDITOR; it comes back to the prompt", "Statements"),
    Command("p", "", "print the last statement", "Statements"),
    Command("r", "", "forget what was typed", "Statements"),
    Command("i", "FILE", "ask the statements of a file", "Statements"),
    Command("watch", "[SECONDS]", "ask again and again, as long as it is free; 2 seconds", "Statements"),
    Command("explain", "[SQL]", "what a statement, or the last one, would lose and how good it would be", "Statements"),
    Command("o", "[FILE]", "write answers to a file; without one, to the screen again", "Answers"),
    Command("copy", "[(SELECT …)] to FILE [FORMAT] [errors]", "the last answer, or that of a SELECT, as csv, json or"
            " parquet", "Answers"),
    Command("chart", "[bars|lines]", "draw the last answer with its error bars", "Answers"),
    Command("receipts", "", "the receipts of the last answer", "Answers"),
    Command("x", "[on|off|auto]", "one line for each value", "Answers"),
    Command("format", "[table|csv|json]", "how answers are written", "Answers"),
    Command("errors", "[on|off]", "95 % error bars beside the values", "Answers"),
    Command("digits", "[on|off]", "only digits that the noise leaves meaning to", "Answers"),
    Command("pager", "[on|off]", "long answers page by page", "Answers"),
    Command("timing", "[on|off]", "how long a statement took", "Answers"),
    Command("d", "[TABLE]", "the tables; or the columns of one, with bounds and values", "Names"),
    Command("dt", "", "the tables", "Names"),
    Command("dv", "", "the views", "Names"),
    Command("df", "[PATTERN]", "the functions", "Names"),
    Command("l", "", "the dataset", "Names"),
    Command("conninfo", "", "who asks, and whom", "Names"),
    Command("budget", "", "what was lost, and what is left", "Budget"),
    Command("set", "[NAME [VALUE]]", "change a setting, as \\set epsilon 0.5; show it; show all", "Budget"),
    Command("unset", "NAME", "a setting as it was at first", "Budget"),
    Command("confirm", "[EPSILON|off]", "ask before a statement is charged more than this", "Budget"),
    Command("s", "[FILE]", "what was typed before; into FILE", "Others"),
    Command("?", "", "this help", "Others"),
    Command("q", "", "leave; Ctrl-D does it too", "Others"),
)  # fmt: skip
BY_NAME = {command.name: command for command in COMMANDS}
WORDS = {"exit": "\\q", "quit": "\\q", "help": "\\?"}
"""What people type alone on a line, and mean a command."""
_ALSO = {"h": "?", "help": "?", "quit": "q", "exit": "q", "include": "i", "out": "o", "edit": "e"}
"""Longer names, as in psql."""


@dataclass(frozen=True)
class Typed:
    """A backslash command as it was typed; `argument` is the rest of its line."""

    command: Command
    argument: str


def read_typed(text: str) -> Typed:
    """
    >>> read_typed("\\\\d+ visits;").argument
    'visits'
    """
    name, *rest = re.split(r"\s+", text.strip().removeprefix("\\"), maxsplit=1)
    argument = "".join(rest).strip()
    if not argument.startswith("("):
        argument = argument.rstrip(";").rstrip()
    known = name.rstrip(";")
    for spelled in (known, _ALSO.get(known, known), known.rstrip("+")):
        if spelled in BY_NAME:
            return Typed(BY_NAME[spelled], argument)
    near = difflib.get_close_matches(known, BY_NAME, n=1)
    hint = f"Did you mean \\{near[0]}? \\? lists them." if near else "\\? lists the commands."
    raise InvalidSyntax(f"there is no command \\{known}", hint=hint)


def words_of(text: str, where: str) -> list[str]:
    """The words of a line, as a shell reads them."""
    try:
        return shlex.split(text)
    except ValueError:
        raise InvalidSyntax(f"a quote in {where} is not closed") from None


def help_lines() -> list[str]:
    wide = max(len(f"\\{command.name} {command.arguments}") for command in COMMANDS if len(command.arguments) < 20)
    lines: list[str] = []
    for group in dict.fromkeys(command.group for command in COMMANDS):
        lines += ["", group] if lines else [group]
        for command in (one for one in COMMANDS if one.group == group):
            head = f"\\{command.name} {command.arguments}".strip()
            lines += [f"  {head:<{wide}}  {command.help}"] if len(head) <= wide else [
                f"  {head}", f"  {'':<{wide}}  {command.help}"
            ]  # fmt: skip
    keys = "Enter asks a statement that ends in ; and else begins a line. Esc Enter asks at once. Tab completes."
    return [*lines, "", keys, "Ctrl-C leaves a statement that is under way: its run goes on, and asking again is free."]
