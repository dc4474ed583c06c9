"""Statements besides SELECT, read from tokens: SET, RESET, SHOW, EXPLAIN, DESCRIBE."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors import InvalidSyntax
from dpsql.span import Span
from dpsql.sql.parse import tokenize


@dataclass(frozen=True)
class SetCommand:
    name: str
    value: str


@dataclass(frozen=True)
class ResetCommand:
    name: str | None  # None: all


@dataclass(frozen=True)
class ShowCommand:
    """A setting, or "budget", "tables", "all"."""

    name: str


@dataclass(frozen=True)
class ExplainCommand:
    sql: str
    offset: int  # where the explained statement starts, for positions


@dataclass(frozen=True)
class DescribeCommand:
    table: str


# Spaces and comments may stand before the first word.
# Possessive, so that a thousand comments are read once and not in every combination.
_HEAD = re.compile(
    r"(?:\s++|--[^\n]*+\n|/\*(?:[^*]++|\*(?!/))*+\*/)*+(set|reset|show|explain|describe|desc)\b", re.IGNORECASE
)

Command = SetCommand | ResetCommand | ShowCommand | ExplainCommand | DescribeCommand


def read_command(sql: str) -> Command | None:
    """The command that the text is; None where it must be a query."""
    head = _HEAD.match(sql)
    if head is None:
        return None
    first = head[1].lower()
    if first == "explain":
        return _explain(sql, head.end())
    tokens = tokenize(sql)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    words = tokens[1:]
    match first:
        case "set":
            return _set(words, tokens[0])
        case "reset":
            name = _dotted(words)
            return ResetCommand(None if name == "all" else name)
        case "show":
            return ShowCommand(_dotted(words))
        case _:
            return DescribeCommand(_dotted(words))


def _explain(sql: str, offset: int) -> ExplainCommand:
    inner = sql[offset:].rstrip().rstrip(";")
    if not inner.strip():
        raise InvalidSyntax("EXPLAIN takes a SELECT", hint="For example: EXPLAIN SELECT COUNT(*) FROM visits")
    return ExplainCommand(inner, offset)


def _set(words: list[Token], first: Token) -> SetCommand:
    """SET name = value, SET name TO value; SESSION and LOCAL are accepted and mean the same."""
    if words and words[0].text.lower() in ("session", "local"):
        words = words[1:]
    split = next((i for i, w in enumerate(words) if w.token_type is TokenType.EQ or w.text.lower() == "to"), None)
    if split is None or split == 0 or split == len(words) - 1:
        raise InvalidSyntax("SET takes a name and a value", hint="For example: SET epsilon = 0.5", span=_span(first))
    return SetCommand(_dotted(words[:split]), _value(words[split + 1 :]))


def _value(words: list[Token]) -> str:
    """One word, or a number with its sign: more would be read as one."""
    signed = len(words) == 2 and words[0].token_type is TokenType.DASH
    if len(words) != 1 and not signed:
        raise InvalidSyntax("SET takes one value", hint="For example: SET epsilon = 0.5", span=_span(words[1]))
    return "".join(word.text for word in words)


def _dotted(words: list[Token]) -> str:
    """A name, or names with dots between them."""
    if not words:
        raise InvalidSyntax("a name is missing", hint="For example: SHOW epsilon, SHOW BUDGET, SHOW TABLES.")
    text = "".join(word.text for word in words)
    names = sum(word.token_type is not TokenType.DOT for word in words)
    if len(words) != 2 * names - 1 and len(text.split()) == 1:
        raise InvalidSyntax("one name is expected here", span=_span(words[1]))
    if len(text.split()) != 1:
        raise InvalidSyntax("one name is expected here", span=_span(words[0]))
    return text.strip().lower()


def _span(token: Token) -> Span:
    return Span(token.start, token.end + 1)
