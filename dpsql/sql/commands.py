"""Statements besides SELECT, read from tokens: SET, RESET, SHOW, EXPLAIN, DESCRIBE, transactions, what a connection
holds, and what an analyst makes.

Transactions keep and drop settings only: charges are durable when they are made, and data is never written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors import InvalidSyntax, Unsupported
from dpsql.span import Span
from dpsql.sql.asked_commands import KINDS, ShowMechanismsCommand
from dpsql.sql.held_commands import HEADS, HeldCommand, read_held_command
from dpsql.sql.made_commands import MadeCommand, read_made_command
from dpsql.sql.parameters import Parameter, bind
from dpsql.sql.parse import tokenize


@dataclass(frozen=True)
class SetCommand:
    """`value` is None for DEFAULT; lists of names are joined by commas."""

    name: str
    value: str | None
    local: bool = False  # until the transaction ends


@dataclass(frozen=True)
class ResetCommand:
    name: str | None  # None: all


@dataclass(frozen=True)
class ShowCommand:
    """A setting, or "budget", "tables", "schemas", "all". As JSON, for programs, those of JSON_SHOWS."""

    name: str
    json: bool = False


@dataclass(frozen=True)
class ExplainCommand:
    """`given` are options about what is explained: how many questions a mechanism's forecast is for, and how sure."""

    sql: str
    offset: int  # where the explained statement starts, for positions
    json: bool = False
    given: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class DescribeCommand:
    table: str


@dataclass(frozen=True)
class DescribeQueryCommand:
    sql: str
    offset: int


class Step(Enum):
    """What a transaction's command does."""

    BEGIN = "BEGIN"
    START = "START TRANSACTION"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    SAVEPOINT = "SAVEPOINT"
    RELEASE = "RELEASE"
    ROLLBACK_TO = "ROLLBACK TO"


@dataclass(frozen=True)
class TransactionCommand:
    """`modes` are settings that hold until the transaction ends."""

    step: Step
    savepoint: str | None = None
    modes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ModesCommand:
    """SET TRANSACTION …, or SET SESSION CHARACTERISTICS AS TRANSACTION …: modes of this one, or of all that follow."""

    modes: tuple[tuple[str, str], ...]
    session: bool


@dataclass(frozen=True)
class NothingCommand:
    """Accepted because there is nothing to do: plans, cursors and channels that never were."""

    tag: str


@dataclass(frozen=True)
class DiscardCommand:
    """DISCARD ALL: as if newly connected."""


Command = (
    SetCommand
    | ResetCommand
    | ShowCommand
    | ExplainCommand
    | DescribeCommand
    | DescribeQueryCommand
    | TransactionCommand
    | ModesCommand
    | NothingCommand
    | DiscardCommand
    | HeldCommand
    | MadeCommand
)

# Spaces and comments may stand before the first word.
# Possessive, so that a thousand comments are read once and not in every combination.
_BLANK = r"(?:\s++|--[^\n]*+\n|/\*(?:[^*]++|\*(?!/))*+\*/)*+"
_HEAD = re.compile(
    _BLANK + r"(set|reset|show|explain|describe|desc|summarize|begin|start|commit|end|rollback|abort|savepoint|release"
    r"|discard|unlisten|prepare|execute|deallocate|declare|fetch|move|close|copy|create|drop|ask)\b",
    re.IGNORECASE,
)
_QUERY = re.compile(_BLANK + r"(?:\(|select\b|with\b|from\b|values\b)", re.IGNORECASE)
_OPTIONS = re.compile(_BLANK + r"(?:\((?!\s*(?:\(|select\b|with\b|from\b|values\b))([^()]*)\)|((?:analyze|verbose)\b))",
                      re.IGNORECASE)  # fmt: skip
_ASK = re.compile(_BLANK + r"ask\b", re.IGNORECASE)
_OF_ASK = ("questions", "confidence")
_HARMLESS = frozenset({"verbose", "costs", "settings", "summary"})
_MODES = frozenset(
    {"isolation", "level", "serializable", "repeatable", "read", "committed", "uncommitted", "only", "write", "not",
     "deferrable", ","}
)  # fmt: skip
JSON_SHOWS = ("budget", "tables", "functions", "settings")
"""What SHOW … (FORMAT JSON) tells programs."""
_TWO_WORDS = {
    "time zone": "timezone",
    "transaction isolation level": "transaction_isolation",
    "session authorization": "session_authorization",
    "authorization": "session_authorization",
    "databases": "schemas",
}


def read_command(sql: str, parameters: Sequence[Parameter] = ()) -> Command | None:
    """The command that the text is; None where it must be a query."""
    head = _HEAD.match(sql)
    if head is None:
        return None
    first, end = head[1].lower(), head.end()
    if first == "explain":
        return _explain(sql, end)
    if first in ("describe", "desc") and _QUERY.match(sql, end):
        return DescribeQueryCommand(*_inner(sql, end))
    if first in HEADS:
        return read_held_command(sql)
    made = read_made_command(sql, parameters) if first in ("create", "drop", "show") else None
    if made is not None or first in ("create", "drop"):  # others of these are refused as queries
        return made
    words = bind(_words(sql, end), parameters)
    match first:
        case "set":
            return _set(words, Span(head.start(1), end))
        case "reset":
            name = _name(words)
            return ResetCommand(None if name == "all" else "role" if name == "session_authorization" else name)
        case "show":
            return _show(words)
        case "describe" | "desc":
            return DescribeCommand(_dotted(words))
        case "summarize":
            raise Unsupported(
                "SUMMARIZE is not answered: it would read every column of every row",
                hint="DESCRIBE shows what the schema declares; ask for the aggregates that you need.",
                span=Span(head.start(1), end),
            )
        case "discard" | "unlisten":
            return _discard(first, words)
        case _:
            return _transaction(first, words)


def _words(sql: str, end: int) -> list[Token]:
    """The words behind the first; it is left out because the tokenizer would swallow what follows some of them."""
    tokens = tokenize(" " * end + sql[end:])
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise InvalidSyntax("one statement at a time", hint="Send each statement on its own.", span=_span(token))
    return tokens


# --- EXPLAIN, DESCRIBE, SHOW -----------------------------------------------------------------------------------------


def _inner(sql: str, offset: int) -> tuple[str, int]:
    return sql[offset:].rstrip().rstrip(";"), offset


def _explain(sql: str, offset: int) -> ExplainCommand:
    json, given = False, dict[str, str]()
    while (options := _OPTIONS.match(sql, offset)) is not None:
        for option in (options[1] or options[2]).split(","):
            word, value = _option(option.split())
            if word in _OF_ASK:
                given[word] = value
            else:
                json = _check_option(word, value) or json
        offset = options.end()
    inner, offset = _inner(sql, offset)
    if given and not _ASK.match(inner):
        _check_option(*next(iter(given.items())))
    if not inner.strip():
        raise InvalidSyntax("EXPLAIN takes a SELECT", hint="For example: EXPLAIN SELECT COUNT(*) FROM visits")
    return ExplainCommand(inner, offset, json, tuple(given.items()))


def _option(words: list[str]) -> tuple[str, str]:
    return (words[0].lower() if words else ""), " ".join(words[1:]).lower()


def _check_option(word: str, value: str) -> bool:
    """Whether it asks for JSON."""
    off = value in ("off", "false", "0")
    if word == "analyze" and not off:
        raise Unsupported(
            "EXPLAIN ANALYZE is not answered: it would run the query and tell how many rows were read",
            hint="EXPLAIN alone is free and shows cost, noise and the SQL that would run.",
        )
    if word == "format" and value not in ("text", "json"):
        raise Unsupported(
            f"EXPLAIN (FORMAT {value.upper()}) is not available", hint="EXPLAIN SELECT … gives text, one line a row."
        )
    if word not in (*_HARMLESS, "analyze", "format"):
        raise Unsupported(f'EXPLAIN has no option "{word}" here', hint="EXPLAIN SELECT … needs none.")
    return word == "format" and value == "json"


def _show(words: list[Token]) -> ShowCommand | DescribeCommand | ShowMechanismsCommand:
    texts = [word.text.lower() for word in words]
    for kind in KINDS:
        if texts == [f"{kind}s"]:
            return ShowMechanismsCommand(kind)
    if texts[:1] == ["columns"] and len(texts) > 2 and texts[1] in ("from", "in"):
        return DescribeCommand(_dotted(words[2:]))
    if texts[1:] == ["(", "format", "json", ")"] and texts[0] in JSON_SHOWS:
        return ShowCommand(texts[0], json=True)
    return ShowCommand(_name(words))


def _name(words: list[Token]) -> str:
    joined = " ".join(word.text for word in words).lower()
    return _TWO_WORDS.get(joined) or _dotted(words)


# --- SET -------------------------------------------------------------------------------------------------------------


def _set(words: list[Token], first: Span) -> Command:
    """SET name = value, SET name TO value, and the forms that PostgreSQL has words for."""
    texts = [word.text.lower() for word in words]
    if texts[:1] == ["transaction"] and _are_modes(texts[1:]):
        return ModesCommand(_modes(texts[1:]), session=False)
    if texts[:4] == ["session", "characteristics", "as", "transaction"] and _are_modes(texts[4:]):
        return ModesCommand(_modes(texts[4:]), session=True)
    local = texts[:1] == ["local"]
    if local or texts[:1] == ["session"]:
        words, texts = words[1:], texts[1:]
    if texts[:1] == ["names"] and len(words) == 2:
        return SetCommand("client_encoding", words[1].text, local)
    if texts[:2] == ["time", "zone"] and len(words) == 3:
        return SetCommand("timezone", _or_default(words[2:], "UTC" if texts[2] == "local" else None), local)
    if texts[:1] in (["role"], ["authorization"]) and len(words) == 2:
        return SetCommand("role", _or_default(words[1:]), local)
    split = next((i for i, w in enumerate(words) if w.token_type is TokenType.EQ or w.text.lower() == "to"), None)
    if split is None or split == 0 or split == len(words) - 1:
        raise InvalidSyntax("SET takes a name and a value", hint="For example: SET epsilon = 0.5", span=first)
    return SetCommand(_dotted(words[:split]), _or_default(words[split + 1 :]), local)


def _are_modes(texts: list[str]) -> bool:
    return bool(texts) and all(text in _MODES for text in texts)


def _modes(texts: list[str]) -> tuple[tuple[str, str], ...]:
    """The settings that they are.

    >>> _modes("isolation level repeatable read , read only".split())
    (('transaction_isolation', 'repeatable read'), ('transaction_read_only', 'on'))
    """
    written = " ".join(texts)
    level = re.search(r"isolation level (serializable|repeatable read|read (?:un)?committed)", written)
    access = re.search(r"(?<!repeatable )\bread (only|write)", written)
    levels = (("transaction_isolation", level[1]),) if level else ()
    return levels + ((("transaction_read_only", "on" if access[1] == "only" else "off"),) if access else ())


def _or_default(words: list[Token], value: str | None = None) -> str | None:
    if len(words) == 1 and words[0].token_type is TokenType.DEFAULT:
        return None
    return value if value is not None else _value(words)


def _value(words: list[Token]) -> str:
    """A word, a number with its sign, or a list of words: anything else would be read as one value."""
    if len(words) == 2 and words[0].token_type in (TokenType.DASH, TokenType.PLUS):
        return "".join(word.text for word in words)
    values, commas = words[::2], words[1::2]
    if len(words) % 2 == 0 or any(word.token_type is not TokenType.COMMA for word in commas):
        raise InvalidSyntax("SET takes one value", hint="For example: SET epsilon = 0.5", span=_span(words[1]))
    return ", ".join(word.text for word in values)


# --- transactions ----------------------------------------------------------------------------------------------------


def _transaction(first: str, words: list[Token]) -> Command:
    texts = [word.text.lower() for word in words]
    if texts[:1] in (["work"], ["transaction"]):
        texts, words = texts[1:], words[1:]
    elif first == "start":
        raise InvalidSyntax("START takes TRANSACTION", hint="For example: START TRANSACTION or BEGIN.")
    if first in ("begin", "start") and (not texts or _are_modes(texts)):
        return TransactionCommand(Step.BEGIN if first == "begin" else Step.START, None, _modes(texts))
    if first in ("savepoint", "release"):
        named = words[1:] if texts[:1] == ["savepoint"] and first == "release" else words
        return TransactionCommand(Step.SAVEPOINT if first == "savepoint" else Step.RELEASE, _dotted(named))
    if first == "rollback" and texts[:1] == ["to"]:
        return TransactionCommand(Step.ROLLBACK_TO, _dotted(words[2:] if texts[1:2] == ["savepoint"] else words[1:]))
    if first in ("commit", "end", "rollback", "abort") and texts in ([], ["and", "no", "chain"]):
        return TransactionCommand(Step.COMMIT if first in ("commit", "end") else Step.ROLLBACK)
    raise InvalidSyntax(f'syntax error at or near "{words[0].text}"', span=_span(words[0]))


def _discard(first: str, words: list[Token]) -> Command:
    what = " ".join(word.text for word in words).lower()
    if first == "discard" and what == "all":
        return DiscardCommand()
    if first == "discard" and what not in ("plans", "sequences", "temp", "temporary"):
        raise InvalidSyntax("DISCARD takes ALL, PLANS, SEQUENCES or TEMP")
    if first == "unlisten" and what != "*":
        raise Unsupported("UNLISTEN takes *: there are no channels here")
    return NothingCommand(f"{first.upper()} {what.upper()}" if first == "discard" else first.upper())


# --- names -----------------------------------------------------------------------------------------------------------


def _dotted(words: list[Token]) -> str:
    """A name, or names with dots between them."""
    if not words:
        raise InvalidSyntax("a name is missing", hint="For example: SHOW epsilon, SHOW BUDGET, SHOW TABLES.")
    names, dots = words[::2], words[1::2]
    alone = all(word.token_type is TokenType.DOT for word in dots) and len(words) % 2 == 1
    if not alone or any(not word.text.strip() or " " in word.text for word in names):
        raise InvalidSyntax("one name is expected here", span=_span(words[min(1, len(words) - 1)]))
    return ".".join(word.text for word in names).lower()


def _span(token: Token) -> Span:
    return Span(token.start, token.end + 1)
