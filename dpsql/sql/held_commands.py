"""Commands about what a connection holds by name, prepared statements, cursors and mechanisms; and COPY."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sqlglot.tokenizer_core import TokenType

from dpsql.errors import Unsupported
from dpsql.lex import TokenKind
from dpsql.span import Span
from dpsql.sql.asked_commands import DeclareMechanismCommand, MechanismCommand, read_submit_query, read_declare_mechanism
from dpsql.sql.copy_command import CopyCommand, read_copy
from dpsql.sql.parameters import ParameterLiteral
from dpsql.sql.words import CommandReader, string_value
from dpsql.types import Type, parse_type


@dataclass(frozen=True)
class PrepareCommand:
    name: str
    types: tuple[Type | None, ...]
    sql: str
    offset: int  # where the statement starts, for positions


@dataclass(frozen=True)
class ExecuteCommand:
    name: str
    arguments: tuple[ParameterLiteral, ...]


@dataclass(frozen=True)
class DeallocateCommand:
    name: str | None  # None: all


@dataclass(frozen=True)
class DeclareCommand:
    """`hold`: it outlives the transaction."""

    name: str
    sql: str
    offset: int
    hold: bool = False


class FetchDirection(Enum):
    """How FETCH goes through a cursor's rows."""

    FORWARD = "forward"
    BACKWARD = "backward"
    ABSOLUTE = "absolute"
    RELATIVE = "relative"


@dataclass(frozen=True)
class FetchCommand:
    """`count` is None for all that are left; `move` goes the same way and gives no rows."""

    name: str
    way: FetchDirection = FetchDirection.FORWARD
    count: int | None = 1
    move: bool = False


@dataclass(frozen=True)
class CloseCommand:
    name: str | None  # None: all


NamedStatementCommand = (
    PrepareCommand
    | ExecuteCommand
    | DeallocateCommand
    | DeclareCommand
    | FetchCommand
    | CloseCommand
    | CopyCommand
    | MechanismCommand
)
NAMED_STATEMENT_KEYWORDS = frozenset({"prepare", "execute", "deallocate", "declare", "fetch", "move", "close", "copy", "ask"})


def read_named_statement_command(sql: str) -> NamedStatementCommand:
    """The command, whose first word is one of HEADS."""
    reader = CommandReader(sql)
    head = reader.read_word()
    match head:
        case "prepare":
            return _read_prepare(reader)
        case "execute":
            return _read_execute(reader)
        case "deallocate":
            reader.accept("prepare")
            return DeallocateCommand(_read_name_or_all(reader))
        case "declare":
            return _read_declare(reader)
        case "ask":
            return read_submit_query(reader)
        case "fetch" | "move":
            return _read_fetch(reader, head == "move")
        case "close":
            return CloseCommand(_read_name_or_all(reader))
        case _:
            return read_copy(reader)


def _read_name_or_all(reader: CommandReader) -> str | None:
    name = None if reader.accept("all") else reader.read_name()
    reader.expect_end()
    return name


# --- prepared statements ---------------------------------------------------------------------------------------------


def _read_prepare(reader: CommandReader) -> PrepareCommand:
    name, types = reader.read_name(), tuple[Type | None, ...]()
    if reader.next_token is not None and reader.next_token.text == "(":
        types = _read_parameter_types(reader)
    reader.expect("as")
    return PrepareCommand(name, types, *reader.read_rest())


def _read_parameter_types(reader: CommandReader) -> tuple[Type | None, ...]:
    """`unknown` is None: the context tells."""
    listed, _ = reader.read_parenthesized()
    parts, depth, start = [], 0, 0
    for at, character in enumerate(listed):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append(listed[start:at])
            start = at + 1
    return tuple(None if type_text.strip().lower() == "unknown" else _parse_parameter_type(type_text.strip()) for type_text in (*parts, listed[start:]))


def _parse_parameter_type(spelled: str) -> Type:
    type_ = parse_type(spelled)
    if type_ is None:
        raise Unsupported(f'type "{spelled}" does not exist', sqlstate="42704")
    return type_


def _read_execute(reader: CommandReader) -> ExecuteCommand:
    name, arguments = reader.read_name(), []
    if reader.accept("("):
        arguments.append(_read_execute_argument(reader))
        while reader.accept(","):
            arguments.append(_read_execute_argument(reader))
        reader.expect(")")
    reader.expect_end()
    return ExecuteCommand(name, tuple(arguments))


def _read_execute_argument(reader: CommandReader) -> ParameterLiteral:
    """A constant, with or without its type: the statement says what it is compared with."""
    sign = "-" if reader.accept("-") else ""
    token = reader.take_token()
    match token.kind:
        case TokenKind.NUMBER:
            literal = ParameterLiteral(TokenType.NUMBER, sign + token.text)
        case TokenKind.STRING if token.ended and not sign:
            literal = ParameterLiteral(TokenType.STRING, string_value(token))
        case TokenKind.WORD if token.text.lower() in ("null", "true", "false") and not sign:
            literal = ParameterLiteral(TokenType[token.text.upper()], token.text.upper())
        case _:
            raise Unsupported("EXECUTE takes constants", hint="For example: EXECUTE s ('surgery', 100).",
                              span=Span(token.start, token.end))  # fmt: skip
    while reader.accept("::"):
        reader.read_name()
    return literal


# --- cursors ---------------------------------------------------------------------------------------------------------


def _read_declare(reader: CommandReader) -> DeclareCommand | DeclareMechanismCommand:
    first, name, hold = reader.next_token, reader.read_name(), False
    assert first is not None
    mechanism = read_declare_mechanism(reader, name, Span(first.start, first.end))
    if mechanism is not None:
        return mechanism
    while not reader.accept("cursor"):
        if not any(reader.accept(*keywords) for keywords in (("binary",), ("insensitive",), ("asensitive",), ("no", "scroll"),
                                                   ("scroll",))):  # fmt: skip
            raise reader.syntax_error()
    if reader.accept("with", "hold"):
        hold = True
    else:
        reader.accept("without", "hold")
    reader.expect("for")
    return DeclareCommand(name, *reader.read_rest(), hold)


def _read_fetch(reader: CommandReader, move: bool) -> FetchCommand:
    way, count = _read_fetch_direction(reader)
    if not reader.accept("from"):
        reader.accept("in")
    name = reader.read_name()
    reader.expect_end()
    return FetchCommand(name, way, count, move)


def _read_fetch_direction(reader: CommandReader) -> tuple[FetchDirection, int | None]:
    for word, direction in (("next", (FetchDirection.FORWARD, 1)), ("prior", (FetchDirection.BACKWARD, 1)), ("first", (FetchDirection.ABSOLUTE, 1)),
                            ("last", (FetchDirection.ABSOLUTE, -1)), ("all", (FetchDirection.FORWARD, None))):  # fmt: skip
        if reader.accept(word):
            return direction
    for way in (FetchDirection.ABSOLUTE, FetchDirection.RELATIVE):
        if reader.accept(way.value):
            return way, reader.read_integer()
    for way in (FetchDirection.FORWARD, FetchDirection.BACKWARD):
        if reader.accept(way.value):
            return _normalize_direction(way, None if reader.accept("all") else reader.read_integer() if reader.is_integer_next() else 1)
    return _normalize_direction(FetchDirection.FORWARD, reader.read_integer() if reader.is_integer_next() else 1)


def _normalize_direction(way: FetchDirection, count: int | None) -> tuple[FetchDirection, int | None]:
    """Backward by -2 is forward by 2."""
    if count is None or count >= 0:
        return way, count
    return FetchDirection.BACKWARD if way is FetchDirection.FORWARD else FetchDirection.FORWARD, -count
