"""Several statements in one text, as clients send them: where each begins and ends."""

from __future__ import annotations

from dpsql.errors import LimitExceeded
from dpsql.lex import TokenKind, Token, split_tokens
from dpsql.sql.parse import MAX_CHARACTERS

MAX_STATEMENTS = 1_000


def split_statements(sql: str) -> tuple[tuple[str, int], ...]:
    """Each statement without its semicolon and the space around it, and where it begins; comments alone are none.

    >>> split_statements("SET epsilon = 1; ; SELECT ';' /* ; */ -- ;")
    (('SET epsilon = 1', 0), ("SELECT ';' /* ; */ -- ;", 19))
    """
    if len(sql) > MAX_CHARACTERS:
        raise LimitExceeded(f"the statement has more than {MAX_CHARACTERS} characters")
    if ";" not in sql and (only := sql.strip()) and only[0] not in "-/":  # one that begins with no comment
        return ((only, len(sql) - len(sql.lstrip())),)
    statements: list[tuple[str, int]] = []
    waiting: list[Token] = []
    for token in (*split_tokens(sql), None):
        if token is not None and token.text != ";":
            waiting.append(token)
            continue
        if any(part.kind not in (TokenKind.SPACE, TokenKind.COMMENT) or not part.ended for part in waiting):
            text = sql[waiting[0].start : waiting[-1].end]
            statements.append((text.strip(), waiting[0].start + len(text) - len(text.lstrip())))
        waiting = []
        if len(statements) > MAX_STATEMENTS:
            raise LimitExceeded(f"there are more than {MAX_STATEMENTS} statements in one text")
    return tuple(statements)
