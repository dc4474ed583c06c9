"""Typed text to statements and backslash commands."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.lex import Kind, Token, tokens


@dataclass(frozen=True)
class Statement:
    """`sql` is without its semicolon and the space around it, and begins at `start` of the text."""

    sql: str
    complete: bool
    start: int = 0


@dataclass(frozen=True)
class Backslash:
    """A command from its backslash, which stands at `start` of the text, to the end of its line."""

    text: str
    start: int = 0


def pieces(text: str) -> list[Statement | Backslash]:
    """What the text says, in order; of nothing but comments and space, nothing.

    >>> pieces("SELECT 1; SELECT ';' \\\\g")
    [Statement(sql='SELECT 1', complete=True, start=0), Statement(sql="SELECT ';'", complete=False, start=10), \
Backslash(text='\\\\g', start=21)]
    """
    found: list[Statement | Backslash] = []
    waiting: list[Token] = []
    for token in tokens(text):
        if token.kind is Kind.BACKSLASH:
            found += _statement(waiting, complete=False)
            found.append(Backslash(token.text.rstrip(), token.start))
        elif token.text == ";":
            found += _statement(waiting, complete=True)
        else:
            waiting.append(token)
            continue
        waiting = []
    return found + _statement(waiting, complete=False)


def _statement(waiting: list[Token], complete: bool) -> list[Statement]:
    if not complete and all(token.kind in (Kind.SPACE, Kind.COMMENT) and token.ended for token in waiting):
        return []
    sql = "".join(token.text for token in waiting)
    start = waiting[0].start + len(sql) - len(sql.lstrip()) if waiting else 0
    return [Statement(sql.strip(), complete, start)]


def is_complete(text: str) -> bool:
    """Whether Enter asks: the last statement has its semicolon, or a command stands last, or nothing is there."""
    found = pieces(text)
    return not found or isinstance(found[-1], Backslash) or found[-1].complete
