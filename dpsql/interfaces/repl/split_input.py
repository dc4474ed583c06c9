"""Typed text to statements and backslash commands."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.base.lexer import Token, TokenKind, split_tokens


@dataclass(frozen=True)
class StatementText:
    """`sql` is without its semicolon and the space around it, and begins at `start` of the text."""

    sql: str
    complete: bool
    start: int = 0


@dataclass(frozen=True)
class MetaCommandText:
    """A command from its backslash, which stands at `start` of the text, to the end of its line."""

    text: str
    start: int = 0


def split_input(text: str) -> list[StatementText | MetaCommandText]:
    """What the text says, in order; of nothing but comments and space, nothing.

    >>> split_input("SELECT 1; SELECT ';' \\\\g")
    [StatementText(sql='SELECT 1', complete=True, start=0), StatementText(sql="SELECT ';'", complete=False, start=10), \
MetaCommandText(text='\\\\g', start=21)]
    """
    pieces: list[StatementText | MetaCommandText] = []
    waiting: list[Token] = []
    for token in split_tokens(text):
        if token.kind is TokenKind.BACKSLASH:
            pieces += _make_statement(waiting, complete=False)
            pieces.append(MetaCommandText(token.text.rstrip(), token.start))
        elif token.text == ";":
            pieces += _make_statement(waiting, complete=True)
        else:
            waiting.append(token)
            continue
        waiting = []
    return pieces + _make_statement(waiting, complete=False)


def _make_statement(waiting: list[Token], complete: bool) -> list[StatementText]:
    if not complete and all(token.kind in (TokenKind.SPACE, TokenKind.COMMENT) and token.ended for token in waiting):
        return []
    sql = "".join(token.text for token in waiting)
    start = waiting[0].start + len(sql) - len(sql.lstrip()) if waiting else 0
    return [StatementText(sql.strip(), complete, start)]


def is_complete(text: str) -> bool:
    """Whether Enter asks: the last statement has its semicolon, or a command stands last, or nothing is there."""
    parts = split_input(text)
    return not parts or isinstance(parts[-1], MetaCommandText) or parts[-1].complete
