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

from dpsql.compiler.functions.time_zones import read_interval_offset, zone_of_minutes
from dpsql.compiler.parse.create_commands import ArtifactCommand, read_artifact_command
from dpsql.compiler.parse.cursor_commands import (
    NAMED_STATEMENT_KEYWORDS,
    NamedStatementCommand,
    read_named_statement_command,
)
from dpsql.compiler.parse.mechanism_commands import MECHANISM_KINDS, ShowMechanismsCommand
from dpsql.compiler.parse.parameters import Parameter, bind_parameters
from dpsql.compiler.parse.parser import tokenize
from dpsql.errors import InvalidParameter, InvalidSyntax, Span, Unsupported


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


class TransactionStep(Enum):
    """What a command about transactions does."""

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

    step: TransactionStep
    savepoint: str | None = None
    modes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class TransactionModesCommand:
    """SET TRANSACTION …, or SET SESSION CHARACTERISTICS AS TRANSACTION …: modes of this one, or of all that follow."""

    modes: tuple[tuple[str, str], ...]
    session: bool


@dataclass(frozen=True)
class NoOpCommand:
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
    | TransactionModesCommand
    | NoOpCommand
    | DiscardCommand
    | NamedStatementCommand
    | ArtifactCommand
)

# Spaces and comments may stand before the first word.
# Possessive, so that a thousand comments are read once and not in every combination.
_BLANK = r"(?:\s++|--[^\n]*+\n|/\*(?:[^*]++|\*(?!/))*+\*/)*+"
_COMMAND_START = re.compile(
    _BLANK + r"(set|reset|show|explain|describe|desc|summarize|begin|start|commit|end|rollback|abort|savepoint|release"
    r"|discard|unlisten|prepare|execute|deallocate|declare|fetch|move|close|copy|create|drop|ask)\b",
    re.IGNORECASE,
)
_QUERY_START = re.compile(_BLANK + r"(?:\(|select\b|with\b|from\b|values\b)", re.IGNORECASE)
_EXPLAIN_OPTIONS = re.compile(
    _BLANK + r"(?:\((?!\s*(?:\(|select\b|with\b|from\b|values\b))([^()]*)\)|((?:analyze|verbose)\b))", re.IGNORECASE
)
_SUBMIT_START = re.compile(_BLANK + r"ask\b", re.IGNORECASE)
_FORECAST_OPTIONS = ("questions", "confidence")
_IGNORED_OPTIONS = frozenset({"verbose", "costs", "settings", "summary"})
_MODE_WORDS = frozenset(
    {"isolation", "level", "serializable", "repeatable", "read", "committed", "uncommitted", "only", "write", "not",
     "deferrable", ","}
)  # fmt: skip
JSON_SHOWS = ("budget", "tables", "functions", "settings")
"""What SHOW … (FORMAT JSON) tells programs."""
_SETTING_ALIASES = {
    "time zone": "timezone",
    "transaction isolation level": "transaction_isolation",
    "session authorization": "session_authorization",
    "authorization": "session_authorization",
    "databases": "schemas",
}


def read_command(sql: str, parameters: Sequence[Parameter] = ()) -> Command | None:
    """The command that the text is; None where it must be a query."""
    head = _COMMAND_START.match(sql)
    if head is None:
        return None
    first, end = head[1].lower(), head.end()
    if first == "explain":
        return _read_explain(sql, end)
    if first in ("describe", "desc") and _QUERY_START.match(sql, end):
        return DescribeQueryCommand(*_inner_statement(sql, end))
    if first in NAMED_STATEMENT_KEYWORDS:
        return read_named_statement_command(sql)
    create_command = read_artifact_command(sql, parameters) if first in ("create", "drop", "show") else None
    if create_command is not None or first in ("create", "drop"):  # others of these are refused as queries
        return create_command
    tokens = bind_parameters(_tokenize_rest(sql, end), parameters)
    match first:
        case "set":
            return _read_set(tokens, Span(head.start(1), end))
        case "reset":
            name = _read_setting_name(tokens)
            return ResetCommand(None if name == "all" else "role" if name == "session_authorization" else name)
        case "show":
            return _read_show(tokens)
        case "describe" | "desc":
            return DescribeCommand(_read_dotted_name(tokens))
        case "summarize":
            raise Unsupported(
                "SUMMARIZE is not answered: it would read every column of every row",
                hint="DESCRIBE shows what the schema declares; ask for the aggregates that you need.",
                span=Span(head.start(1), end),
            )
        case "discard" | "unlisten":
            return _read_discard(first, tokens)
        case _:
            return _read_transaction(first, tokens)


def _tokenize_rest(sql: str, end: int) -> list[Token]:
    """The words behind the first; it is left out because the tokenizer would swallow what follows some of them."""
    tokens = tokenize(" " * end + sql[end:])
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise InvalidSyntax(
                "one statement at a time", hint="Send each statement on its own.", span=_token_span(token)
            )
    return tokens


# --- EXPLAIN, DESCRIBE, SHOW -----------------------------------------------------------------------------------------


def _inner_statement(sql: str, offset: int) -> tuple[str, int]:
    return sql[offset:].rstrip().rstrip(";"), offset


def _read_explain(sql: str, offset: int) -> ExplainCommand:
    json, forecast_options = False, dict[str, str]()
    while (options := _EXPLAIN_OPTIONS.match(sql, offset)) is not None:
        for option in (options[1] or options[2]).split(","):
            word, value = _split_option(option.split())
            if word in _FORECAST_OPTIONS:
                forecast_options[word] = value
            else:
                json = _check_option(word, value) or json
        offset = options.end()
    inner, offset = _inner_statement(sql, offset)
    if forecast_options and not _SUBMIT_START.match(inner):
        _check_option(*next(iter(forecast_options.items())))
    if not inner.strip():
        raise InvalidSyntax("EXPLAIN takes a SELECT", hint="For example: EXPLAIN SELECT COUNT(*) FROM visits")
    return ExplainCommand(inner, offset, json, tuple(forecast_options.items()))


def _split_option(words: list[str]) -> tuple[str, str]:
    return (words[0].lower() if words else ""), " ".join(words[1:]).lower()


def _check_option(word: str, value: str) -> bool:
    """Refuse options of EXPLAIN that have no meaning here; whether this one asks for JSON."""
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
    if word not in (*_IGNORED_OPTIONS, "analyze", "format"):
        raise Unsupported(f'EXPLAIN has no option "{word}" here', hint="EXPLAIN SELECT … needs none.")
    return word == "format" and value == "json"


def _read_show(tokens: list[Token]) -> ShowCommand | DescribeCommand | ShowMechanismsCommand:
    texts = [token.text.lower() for token in tokens]
    for kind in MECHANISM_KINDS:
        if texts == [f"{kind}s"]:
            return ShowMechanismsCommand(kind)
    if texts[:1] == ["columns"] and len(texts) > 2 and texts[1] in ("from", "in"):
        return DescribeCommand(_read_dotted_name(tokens[2:]))
    if texts[1:] == ["(", "format", "json", ")"] and texts[0] in JSON_SHOWS:
        return ShowCommand(texts[0], json=True)
    return ShowCommand(_read_setting_name(tokens))


def _read_setting_name(tokens: list[Token]) -> str:
    joined = " ".join(token.text for token in tokens).lower()
    return _SETTING_ALIASES.get(joined) or _read_dotted_name(tokens)


# --- SET -------------------------------------------------------------------------------------------------------------


def _read_set(tokens: list[Token], first: Span) -> Command:
    """SET name = value, SET name TO value, and the forms that PostgreSQL has words for."""
    texts = [token.text.lower() for token in tokens]
    if texts[:1] == ["transaction"] and _are_modes(texts[1:]):
        return TransactionModesCommand(_modes_to_settings(texts[1:]), session=False)
    if texts[:4] == ["session", "characteristics", "as", "transaction"] and _are_modes(texts[4:]):
        return TransactionModesCommand(_modes_to_settings(texts[4:]), session=True)
    local = texts[:1] == ["local"]
    if local or texts[:1] == ["session"]:
        tokens, texts = tokens[1:], texts[1:]
    if texts[:1] == ["names"] and len(tokens) == 2:
        return SetCommand("client_encoding", tokens[1].text, local)
    if texts[:2] == ["time", "zone"] and len(tokens) > 2:
        return SetCommand("timezone", _read_zone(tokens[2:]), local)
    if texts[:1] in (["role"], ["authorization"]) and len(tokens) == 2:
        return SetCommand("role", _value_or_default(tokens[1:]), local)
    split = next((i for i, w in enumerate(tokens) if w.token_type is TokenType.EQ or w.text.lower() == "to"), None)
    if split is None or split == 0 or split == len(tokens) - 1:
        raise InvalidSyntax("SET takes a name and a value", hint="For example: SET epsilon = 0.5", span=first)
    return SetCommand(_read_dotted_name(tokens[:split]), _value_or_default(tokens[split + 1 :]), local)


def _read_zone(tokens: list[Token]) -> str | None:
    """What stands behind SET TIME ZONE; None: as the connection was opened. An interval counts hours to the east."""
    word = tokens[0].text.lower()
    if len(tokens) == 1 and word in ("local", "default") and tokens[0].token_type is not TokenType.STRING:
        return None
    if word != "interval" or tokens[0].token_type is TokenType.STRING:
        return _read_value(tokens)
    fields, example = [token.text.lower() for token in tokens[2:]], "SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE"
    if len(tokens) < 2 or fields not in ([], ["hour"], ["hour", "to", "minute"]):
        raise InvalidSyntax("the interval of a time zone is in hours and minutes",
                            hint=example, span=_token_span(tokens[0]))  # fmt: skip
    minutes = read_interval_offset(tokens[1].text)
    zone = None if minutes is None else zone_of_minutes(minutes)
    if zone is None:
        raise InvalidParameter(f'invalid value for parameter "TimeZone": "INTERVAL \'{tokens[1].text}\'"',
                               hint=example, span=_token_span(tokens[1]))  # fmt: skip
    return zone.shown


def _are_modes(texts: list[str]) -> bool:
    return bool(texts) and all(text in _MODE_WORDS for text in texts)


def _modes_to_settings(texts: list[str]) -> tuple[tuple[str, str], ...]:
    """The settings that they are.

    >>> _modes_to_settings("isolation level repeatable read , read only".split())
    (('transaction_isolation', 'repeatable read'), ('transaction_read_only', 'on'))
    """
    written = " ".join(texts)
    level = re.search(r"isolation level (serializable|repeatable read|read (?:un)?committed)", written)
    access = re.search(r"(?<!repeatable )\bread (only|write)", written)
    levels = (("transaction_isolation", level[1]),) if level else ()
    return levels + ((("transaction_read_only", "on" if access[1] == "only" else "off"),) if access else ())


def _value_or_default(tokens: list[Token], value: str | None = None) -> str | None:
    if len(tokens) == 1 and tokens[0].token_type is TokenType.DEFAULT:
        return None
    return value if value is not None else _read_value(tokens)


def _read_value(tokens: list[Token]) -> str:
    """A word, a number with its sign, or a list of words: anything else would be read as one value."""
    if len(tokens) == 2 and tokens[0].token_type in (TokenType.DASH, TokenType.PLUS):
        return "".join(token.text for token in tokens)
    values, commas = tokens[::2], tokens[1::2]
    if len(tokens) % 2 == 0 or any(token.token_type is not TokenType.COMMA for token in commas):
        raise InvalidSyntax("SET takes one value", hint="For example: SET epsilon = 0.5", span=_token_span(tokens[1]))
    return ", ".join(token.text for token in values)


# --- transactions ----------------------------------------------------------------------------------------------------


def _read_transaction(first: str, tokens: list[Token]) -> Command:
    texts = [token.text.lower() for token in tokens]
    if texts[:1] in (["work"], ["transaction"]):
        texts, tokens = texts[1:], tokens[1:]
    elif first == "start":
        raise InvalidSyntax("START takes TRANSACTION", hint="For example: START TRANSACTION or BEGIN.")
    if first in ("begin", "start") and (not texts or _are_modes(texts)):
        return TransactionCommand(
            TransactionStep.BEGIN if first == "begin" else TransactionStep.START, None, _modes_to_settings(texts)
        )
    if first in ("savepoint", "release"):
        named = tokens[1:] if texts[:1] == ["savepoint"] and first == "release" else tokens
        return TransactionCommand(
            TransactionStep.SAVEPOINT if first == "savepoint" else TransactionStep.RELEASE, _read_dotted_name(named)
        )
    if first == "rollback" and texts[:1] == ["to"]:
        return TransactionCommand(
            TransactionStep.ROLLBACK_TO, _read_dotted_name(tokens[2:] if texts[1:2] == ["savepoint"] else tokens[1:])
        )
    if first in ("commit", "end", "rollback", "abort") and texts in ([], ["and", "no", "chain"]):
        return TransactionCommand(TransactionStep.COMMIT if first in ("commit", "end") else TransactionStep.ROLLBACK)
    raise InvalidSyntax(f'syntax error at or near "{tokens[0].text}"', span=_token_span(tokens[0]))


def _read_discard(first: str, tokens: list[Token]) -> Command:
    what = " ".join(token.text for token in tokens).lower()
    if first == "discard" and what == "all":
        return DiscardCommand()
    if first == "discard" and what not in ("plans", "sequences", "temp", "temporary"):
        raise InvalidSyntax("DISCARD takes ALL, PLANS, SEQUENCES or TEMP")
    if first == "unlisten" and what != "*":
        raise Unsupported("UNLISTEN takes *: there are no channels here")
    return NoOpCommand(f"{first.upper()} {what.upper()}" if first == "discard" else first.upper())


# --- names -----------------------------------------------------------------------------------------------------------


def _read_dotted_name(tokens: list[Token]) -> str:
    """A name, or names with dots between them."""
    if not tokens:
        raise InvalidSyntax("a name is missing", hint="For example: SHOW epsilon, SHOW BUDGET, SHOW TABLES.")
    names, dots = tokens[::2], tokens[1::2]
    alone = all(token.token_type is TokenType.DOT for token in dots) and len(tokens) % 2 == 1
    if not alone or any(not token.text.strip() or " " in token.text for token in names):
        raise InvalidSyntax("one name is expected here", span=_token_span(tokens[min(1, len(tokens) - 1)]))
    return ".".join(token.text for token in names).lower()


def _token_span(token: Token) -> Span:
    return Span(token.start, token.end + 1)
