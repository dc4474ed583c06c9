"""Backslash commands and what they take, told by the words of their help: TABLE, FILE, NAME, [on|off]…"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from dpsql.lex import Token, tokens
from dpsql.repl.complete_sql import complete_sql
from dpsql.repl.menu import Candidate, Menu
from dpsql.repl.naming import Names


class CommandLike(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> str: ...
    @property
    def help(self) -> str: ...


def complete_command(token: Token, cursor: int, names: Names, commands: Sequence[CommandLike]) -> list[Candidate]:
    typed = token.text[: cursor - token.start]
    name, space, rest = typed.partition(" ")
    if not space:
        menu = Menu(name.removeprefix("\\"), token.start)
        for command in commands:
            menu.add("command", command.name, f"\\{command.name}", command.help, loosely=False)
        return menu.candidates()
    known = [command for command in commands if command.name == name.removeprefix("\\").rstrip("+")]
    return _argument(known[0], rest, cursor, names) if known else []


def _argument(command: CommandLike, rest: str, cursor: int, names: Names) -> list[Candidate]:
    """`rest` is what stands between the command and the cursor."""
    takes = command.arguments
    if "SQL" in takes or ("(SELECT" in takes and rest.lstrip().startswith("(") and not _is_closed(rest)):
        return _statement(rest, cursor, names)
    words = rest.split()
    typed = words.pop() if words and not rest[-1:].isspace() else ""
    menu = Menu(typed, cursor - len(typed))
    if "(SELECT" in takes:
        return _copy(rest, typed, menu, names)
    if "TABLE" in takes and not words:
        for table in names.tables:
            menu.name("table", table.name, table.kind)
    elif "FILE" in takes and not words:
        _paths(menu, names)
    elif "NAME" in takes:
        _settings(words, menu, names)
    elif "PATTERN" in takes and not words:
        for function in names.functions:
            menu.add("function", function.name, function.name, function.example)
    for choice in re.findall(r"[a-z]+", takes) if "|" in takes and not words else ():
        menu.add("keyword", choice, choice)
    return menu.candidates()


def _statement(rest: str, cursor: int, names: Names) -> list[Candidate]:
    """A statement within a command: as if it stood alone, in the same places."""
    text = " " * (cursor - len(rest)) + rest
    found = tokens(text)
    under = next((token for token in found if token.start < cursor <= token.end), None)
    return complete_sql(found, under, text, cursor, names)


def _is_closed(rest: str) -> bool:
    depth = 0
    for token in tokens(rest):
        depth += (token.text == "(") - (token.text == ")")
    return depth <= 0


def _copy(rest: str, typed: str, menu: Menu, names: Names) -> list[Candidate]:
    """[(SELECT …)] to FILE [FORMAT] [errors]"""
    after = re.split(r"\bto\s+", rest, maxsplit=1, flags=re.IGNORECASE)
    if len(after) == 1:
        menu.add("keyword", "to", "to")
        return menu.candidates()
    if not after[1].split() or (len(after[1].split()) == 1 and typed):
        _paths(menu, names)
    else:
        for word in ("csv", "json", "parquet", "errors"):
            menu.add("keyword", word, word)
    return menu.candidates()


def _paths(menu: Menu, names: Names) -> None:
    for path in names.paths(menu.typed):
        menu.add("path", path, path, display=path.rstrip("/").rsplit("/", 1)[-1] + "/" * path.endswith("/"))


def _settings(words: list[str], menu: Menu, names: Names) -> None:
    if not words:
        for setting in names.settings:
            menu.add("setting", setting.name, setting.name, ", ".join(setting.choices))
        return
    for choice in choices_of(words[0], names) if len(words) == 1 else ():
        menu.add("value", choice, choice)


def choices_of(setting: str, names: Names) -> tuple[str, ...]:
    return next((one.choices for one in names.settings if one.name.lower() == setting.lower()), ())
