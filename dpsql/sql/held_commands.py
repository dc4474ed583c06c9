"""Commands about what a connection holds by name, prepared statements, cursors and mechanisms; and COPY."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sqlglot.tokenizer_core import TokenType

from dpsql.errors import Unsupported
from dpsql.lex import Kind
from dpsql.span import Span
from dpsql.sql.asked_commands import DeclareMechanismCommand, MechanismCommand, read_ask, read_mechanism
from dpsql.sql.copy_command import CopyCommand, read_copy
from dpsql.sql.parameters import Literal
from dpsql.sql.words import Words, string_of
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
    arguments: tuple[Literal, ...]


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


class Way(Enum):
    """How FETCH goes through a cursor's rows."""

    FORWARD = "forward"
    BACKWARD = "backward"
    ABSOLUTE = "absolute"
    RELATIVE = "relative"


@dataclass(frozen=True)
class FetchCommand:
    """`count` is None for all that are left; `move` goes the same way and gives no rows."""

    name: str
    way: Way = Way.FORWARD
    count: int | None = 1
    move: bool = False


@dataclass(frozen=True)
class CloseCommand:
    name: str | None  # None: all


HeldCommand = (
    PrepareCommand
    | ExecuteCommand
    | DeallocateCommand
    | DeclareCommand
    | FetchCommand
    | CloseCommand
    | CopyCommand
    | MechanismCommand
)
HEADS = frozenset({"prepare", "execute", "deallocate", "declare", "fetch", "move", "close", "copy", "ask"})


def read_held_command(sql: str) -> HeldCommand:
    """The command, whose first word is one of HEADS."""
    words = Words(sql)
    head = words.word()
    match head:
        case "prepare":
            return _prepare(words)
        case "execute":
            return _execute(words)
        case "deallocate":
            words.accept("prepare")
            return DeallocateCommand(_name_or_all(words))
        case "declare":
            return _declare(words)
        case "ask":
            return read_ask(words)
        case "fetch" | "move":
            return _fetch(words, head == "move")
        case "close":
            return CloseCommand(_name_or_all(words))
        case _:
            return read_copy(words)


def _name_or_all(words: Words) -> str | None:
    name = None if words.accept("all") else words.name()
    words.end()
    return name


# --- prepared statements ---------------------------------------------------------------------------------------------


def _prepare(words: Words) -> PrepareCommand:
    name, types = words.name(), tuple[Type | None, ...]()
    if words.next is not None and words.next.text == "(":
        types = _types(words)
    words.expect("as")
    return PrepareCommand(name, types, *words.rest())


def _types(words: Words) -> tuple[Type | None, ...]:
    """`unknown` is None: the context tells."""
    listed, _ = words.in_parentheses()
    parts, depth, start = [], 0, 0
    for at, character in enumerate(listed):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append(listed[start:at])
            start = at + 1
    return tuple(None if one.strip().lower() == "unknown" else _type(one.strip()) for one in (*parts, listed[start:]))


def _type(spelled: str) -> Type:
    found = parse_type(spelled)
    if found is None:
        raise Unsupported(f'type "{spelled}" does not exist', sqlstate="42704")
    return found


def _execute(words: Words) -> ExecuteCommand:
    name, arguments = words.name(), []
    if words.accept("("):
        arguments.append(_argument(words))
        while words.accept(","):
            arguments.append(_argument(words))
        words.expect(")")
    words.end()
    return ExecuteCommand(name, tuple(arguments))


def _argument(words: Words) -> Literal:
    """A constant, with or without its type: the statement says what it is compared with."""
    sign = "-" if words.accept("-") else ""
    token = words.take()
    match token.kind:
        case Kind.NUMBER:
            found = Literal(TokenType.NUMBER, sign + token.text)
        case Kind.STRING if token.ended and not sign:
            found = Literal(TokenType.STRING, string_of(token))
        case Kind.WORD if token.text.lower() in ("null", "true", "false") and not sign:
            found = Literal(TokenType[token.text.upper()], token.text.upper())
        case _:
            raise Unsupported("EXECUTE takes constants", hint="For example: EXECUTE s ('surgery', 100).",
                              span=Span(token.start, token.end))  # fmt: skip
    while words.accept("::"):
        words.name()
    return found


# --- cursors ---------------------------------------------------------------------------------------------------------


def _declare(words: Words) -> DeclareCommand | DeclareMechanismCommand:
    first, name, hold = words.next, words.name(), False
    assert first is not None
    mechanism = read_mechanism(words, name, Span(first.start, first.end))
    if mechanism is not None:
        return mechanism
    while not words.accept("cursor"):
        if not any(words.accept(*one) for one in (("binary",), ("insensitive",), ("asensitive",), ("no", "scroll"),
                                                   ("scroll",))):  # fmt: skip
            raise words.wrong()
    if words.accept("with", "hold"):
        hold = True
    else:
        words.accept("without", "hold")
    words.expect("for")
    return DeclareCommand(name, *words.rest(), hold)


def _fetch(words: Words, move: bool) -> FetchCommand:
    way, count = _direction(words)
    if not words.accept("from"):
        words.accept("in")
    name = words.name()
    words.end()
    return FetchCommand(name, way, count, move)


def _direction(words: Words) -> tuple[Way, int | None]:
    for word, direction in (("next", (Way.FORWARD, 1)), ("prior", (Way.BACKWARD, 1)), ("first", (Way.ABSOLUTE, 1)),
                            ("last", (Way.ABSOLUTE, -1)), ("all", (Way.FORWARD, None))):  # fmt: skip
        if words.accept(word):
            return direction
    for way in (Way.ABSOLUTE, Way.RELATIVE):
        if words.accept(way.value):
            return way, words.whole()
    for way in (Way.FORWARD, Way.BACKWARD):
        if words.accept(way.value):
            return _signed(way, None if words.accept("all") else words.whole() if words.is_whole() else 1)
    return _signed(Way.FORWARD, words.whole() if words.is_whole() else 1)


def _signed(way: Way, count: int | None) -> tuple[Way, int | None]:
    """Backward by -2 is forward by 2."""
    if count is None or count >= 0:
        return way, count
    return Way.BACKWARD if way is Way.FORWARD else Way.FORWARD, -count
