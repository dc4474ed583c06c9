"""What Tab offers: names, values and words that can stand where the cursor is. Pure: text in, candidates out.

Nothing is asked of the data: tables, columns, declared values and bounds are the schema's, and known to the analyst.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.lex import Kind, Token, tokens
from dpsql.repl.complete_command import CommandLike, complete_command
from dpsql.repl.complete_sql import complete_sql
from dpsql.repl.menu import Candidate
from dpsql.repl.naming import Names, names_of

__all__ = ["Candidate", "Names", "complete", "names_of"]


def complete(text: str, cursor: int, names: Names, commands: Sequence[CommandLike] = ()) -> list[Candidate]:
    """The candidates at the cursor, best first; none in comments, and in strings only declared values."""
    found = tokens(text)
    under = next((token for token in found if token.start < cursor <= token.end), None)
    if under is not None and under.kind is Kind.BACKSLASH:
        return complete_command(under, cursor, names, commands)
    if under is not None and not _can_grow(under, cursor):
        return []
    return complete_sql(_statement(found, cursor), under, text, cursor, names)


def _can_grow(under: Token, cursor: int) -> bool:
    """Whether typing at the cursor would go on with a name, or begin one."""
    inside = cursor < under.end or not under.ended
    match under.kind:
        case Kind.COMMENT:
            return not inside and not under.text.startswith("--")
        case Kind.STRING | Kind.QUOTED:
            return inside
        case Kind.NUMBER | Kind.PARAMETER:
            return False
        case _:
            return True


def _statement(found: list[Token], cursor: int) -> list[Token]:
    """The tokens between the semicolons or commands around the cursor."""
    ends = [token for token in found if token.text == ";" or token.kind is Kind.BACKSLASH]
    start = max((token.end for token in ends if token.end <= cursor), default=0)
    stop = min((token.start for token in ends if token.start >= cursor), default=None)
    return [token for token in found if token.start >= start and (stop is None or token.end <= stop)]
