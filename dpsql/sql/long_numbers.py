"""Numbers as PostgreSQL writes them since version 16: digits in groups, and those of other bases.

    1_000_000 → 1000000        0o17 → 15        0x_FF → 255

sqlglot reads `1_000` as 1 with the alias _000: another number. So they are put together before it reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors import InvalidSyntax, LimitExceeded
from dpsql.span import Span
from dpsql.sql.parameters import MAX_NUMBER_DIGITS

_DECIMAL = re.compile(r"\d+(_\d+)*(\.(\d+(_\d+)*)?)?(e[+-]?\d+(_\d+)*)?", re.IGNORECASE | re.ASCII)
_BASES = {"x": (16, r"(_?[\da-f])+"), "o": (8, r"(_?[0-7])+"), "b": (2, r"(_?[01])+")}
_GROUPED = re.compile(r"[\d_.]+(e[+-]?[\d_]*)?", re.IGNORECASE | re.ASCII)
_BASED = re.compile(r"0[xob]\w*", re.IGNORECASE | re.ASCII)


def join_number_tokens(tokens: list[Token], sql: str) -> list[Token]:
    """Each such number as one token."""
    return list(_join_numbers(tokens, sql)) if "_" in sql or _BASED.search(sql) else tokens


def _join_numbers(tokens: list[Token], sql: str) -> Iterator[Token]:
    end = -1  # of the number that was joined last
    for token in tokens:
        if token.start <= end:
            continue
        text = _number_text(token, sql)
        if text is None:
            yield token
            continue
        end = token.start + len(text) - 1
        yield Token(TokenType.NUMBER, _plain_number(text, Span(token.start, end + 1)), token.line, token.col,
                    token.start, end)  # fmt: skip


def _number_text(token: Token, sql: str) -> str | None:
    """All that is written as one number, where sqlglot has read a part of it."""
    if token.token_type not in (TokenType.NUMBER, TokenType.HEX_STRING, TokenType.BIT_STRING):
        return None
    matched = _BASED.match(sql, token.start) or _GROUPED.match(sql, token.start)
    return matched[0] if matched and (matched.re is _BASED or "_" in matched[0]) else None


def _plain_number(text: str, span: Span) -> str:
    if len(text) > MAX_NUMBER_DIGITS:
        raise LimitExceeded(f"a number is too large: it has more than {MAX_NUMBER_DIGITS} digits", span=span)
    base, digits = _BASES.get(text[1:2].lower(), (10, ""))
    whole = re.fullmatch(digits, text[2:], re.IGNORECASE) if digits else _DECIMAL.fullmatch(text)
    if whole is None:
        raise InvalidSyntax(f'trailing junk after numeric literal at or near "{text}"', span=span)
    plain = text.replace("_", "")
    return str(int(plain[2:], base)) if digits else plain
