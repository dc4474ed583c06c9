"""Backslash commands and what they take, told by the words of their help: TABLE, FILE, NAME, [on|off]…"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from dpsql.base.lexer import Token, split_tokens
from dpsql.interfaces.repl.completion.candidates import CandidateMenu, CompletionCandidate, CompletionNames
from dpsql.interfaces.repl.completion.sql import complete_sql


class CommandLike(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> str: ...
    @property
    def help(self) -> str: ...


def complete_command(
    token: Token, cursor: int, names: CompletionNames, commands: Sequence[CommandLike]
) -> list[CompletionCandidate]:
    typed = token.text[: cursor - token.start]
    name, space, rest = typed.partition(" ")
    if not space:
        menu = CandidateMenu(name.removeprefix("\\"), token.start)
        for command in commands:
            menu.add("command", command.name, f"\\{command.name}", command.help, loosely=False)
        return menu.list_candidates()
    matching = [command for command in commands if command.name == name.removeprefix("\\").rstrip("+")]
    return _complete_argument(matching[0], rest, cursor, names) if matching else []


def _complete_argument(
    command: CommandLike, rest: str, cursor: int, names: CompletionNames
) -> list[CompletionCandidate]:
    """`rest` is what stands between the command and the cursor."""
    takes = command.arguments
    if "SQL" in takes or ("(SELECT" in takes and rest.lstrip().startswith("(") and not _is_closed(rest)):
        return _complete_statement(rest, cursor, names)
    words = rest.split()
    typed = words.pop() if words and not rest[-1:].isspace() else ""
    menu = CandidateMenu(typed, cursor - len(typed))
    if "(SELECT" in takes:
        return _complete_copy(rest, typed, menu, names)
    if "TABLE" in takes and not words:
        for table in names.tables:
            menu.add_name("table", table.name, table.kind)
    elif "FILE" in takes and not words:
        _add_paths(menu, names)
    elif "NAME" in takes:
        _complete_setting(words, menu, names)
    elif "PATTERN" in takes and not words:
        for function in names.functions:
            menu.add("function", function.name, function.name, function.example)
    for choice in re.findall(r"[a-z]+", takes) if "|" in takes and not words else ():
        menu.add("keyword", choice, choice)
    return menu.list_candidates()


def _complete_statement(rest: str, cursor: int, names: CompletionNames) -> list[CompletionCandidate]:
    """A statement within a command: as if it stood alone, in the same places."""
    text = " " * (cursor - len(rest)) + rest
    all_tokens = split_tokens(text)
    under = next((token for token in all_tokens if token.start < cursor <= token.end), None)
    return complete_sql(all_tokens, under, text, cursor, names)


def _is_closed(rest: str) -> bool:
    depth = 0
    for token in split_tokens(rest):
        depth += (token.text == "(") - (token.text == ")")
    return depth <= 0


def _complete_copy(rest: str, typed: str, menu: CandidateMenu, names: CompletionNames) -> list[CompletionCandidate]:
    """[(SELECT …)] to FILE [FORMAT] [errors]"""
    after = re.split(r"\bto\s+", rest, maxsplit=1, flags=re.IGNORECASE)
    if len(after) == 1:
        menu.add("keyword", "to", "to")
        return menu.list_candidates()
    if not after[1].split() or (len(after[1].split()) == 1 and typed):
        _add_paths(menu, names)
    else:
        for word in ("csv", "json", "parquet", "errors"):
            menu.add("keyword", word, word)
    return menu.list_candidates()


def _add_paths(menu: CandidateMenu, names: CompletionNames) -> None:
    for path in names.paths(menu.typed):
        menu.add("path", path, path, display=path.rstrip("/").rsplit("/", 1)[-1] + "/" * path.endswith("/"))


def _complete_setting(words: list[str], menu: CandidateMenu, names: CompletionNames) -> None:
    if not words:
        for setting in names.settings:
            menu.add("setting", setting.name, setting.name, ", ".join(setting.choices))
        return
    for choice in setting_choices(words[0], names) if len(words) == 1 else ():
        menu.add("value", choice, choice)


def setting_choices(setting: str, names: CompletionNames) -> tuple[str, ...]:
    return next((candidate.choices for candidate in names.settings if candidate.name.lower() == setting.lower()), ())
