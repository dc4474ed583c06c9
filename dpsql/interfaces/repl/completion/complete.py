"""What Tab offers: names, values and words that can stand where the cursor is. Pure: text in, candidates out.

Nothing is asked of the data: tables, columns, declared values and bounds are the schema's, and known to the analyst.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.base.lexer import Token, TokenKind, split_tokens
from dpsql.interfaces.repl.completion.candidates import CompletionCandidate, CompletionNames, read_names
from dpsql.interfaces.repl.completion.commands import CommandLike, complete_command
from dpsql.interfaces.repl.completion.sql import complete_sql

__all__ = ["CompletionCandidate", "CompletionNames", "complete", "read_names"]


def complete(
    text: str, cursor: int, names: CompletionNames, commands: Sequence[CommandLike] = ()
) -> list[CompletionCandidate]:
    """The candidates at the cursor, best first; none in comments, and in strings only declared values."""
    all_tokens = split_tokens(text)
    under = next((token for token in all_tokens if token.start < cursor <= token.end), None)
    if under is not None and under.kind is TokenKind.BACKSLASH:
        return complete_command(under, cursor, names, commands)
    if under is not None and not _is_completable(under, cursor):
        return []
    return complete_sql(_statement_tokens(all_tokens, cursor), under, text, cursor, names)


def _is_completable(under: Token, cursor: int) -> bool:
    """Whether typing at the cursor would go on with a name, or begin one."""
    inside = cursor < under.end or not under.ended
    match under.kind:
        case TokenKind.COMMENT:
            return not inside and not under.text.startswith("--")
        case TokenKind.STRING | TokenKind.QUOTED:
            return inside
        case TokenKind.NUMBER | TokenKind.PARAMETER:
            return False
        case _:
            return True


def _statement_tokens(all_tokens: list[Token], cursor: int) -> list[Token]:
    """The tokens between the semicolons or commands around the cursor."""
    ends = [token for token in all_tokens if token.text == ";" or token.kind is TokenKind.BACKSLASH]
    start = max((token.end for token in ends if token.end <= cursor), default=0)
    stop = min((token.start for token in ends if token.start >= cursor), default=None)
    return [token for token in all_tokens if token.start >= start and (stop is None or token.end <= stop)]
