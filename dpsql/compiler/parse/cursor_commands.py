"""Commands about prepared statements, cursors and mechanisms of a connection; and COPY."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sqlglot.tokenizer_core import TokenType

from dpsql.base.lexer import TokenKind, quote_name
from dpsql.compiler.parse.command_reader import CommandReader, string_value
from dpsql.compiler.parse.mechanism_commands import (
    DeclareMechanismCommand,
    MechanismCommand,
    read_declare_mechanism,
    read_submit_query,
)
from dpsql.compiler.parse.parameters import ParameterLiteral
from dpsql.errors import InvalidSyntax, Span, Unsupported
from dpsql.types import Type, parse_type

# COPY (query) TO STDOUT: what it asks, and in which format.


@dataclass(frozen=True)
class CopyCommand:
    """COPY (query) TO STDOUT, or of a table: `sql` selects from it then, and `offset` is such that the table's name
    stands where it was written. `force_quote`: columns whose values are quoted, ("*",) for all."""

    sql: str
    offset: int
    csv: bool = False
    header: bool = False
    delimiter: str = "\t"
    null: str = "\\N"
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] = ()


def read_copy(words: CommandReader) -> CopyCommand:
    start = words.next_token
    sql, offset = words.read_parenthesized() if start is not None and start.text == "(" else _read_copied_table(words)
    if not words.accept("to"):
        raise Unsupported("COPY takes a query in parentheses, or a public table, and writes it out",
                          hint="For example: COPY (SELECT ward, COUNT(*) FROM visits GROUP BY ward) TO STDOUT "
                          "WITH (FORMAT csv, HEADER).")  # fmt: skip
    if not words.accept("stdout"):
        raise Unsupported("COPY writes to STDOUT only: no file of the server can be reached")
    options: dict[str, object] = {}
    words.accept("with")
    if words.accept("("):
        _read_copy_option(words, options)
        while words.accept(","):
            _read_copy_option(words, options)
        words.expect(")")
    else:
        while words.next_token is not None:
            _read_copy_option(words, options)
    words.expect_end()
    return _build_copy_command(sql, offset, options)


def _read_copied_table(words: CommandReader) -> tuple[str, int]:
    """All rows of a table, or some of its columns, as a query; and where it would begin.

    >>> _read_copied_table(CommandReader('public.wards (ward, "Floor") TO STDOUT'))
    ('SELECT "ward", "Floor" FROM "public"."wards"', -28)
    """
    start = words.next_token
    names = [words.read_name()]
    while words.accept("."):
        names.append(words.read_name())
    columns = "*"
    if (following := words.next_token) is not None and following.text == "(":
        columns = ", ".join(quote_name(name, always=True) for name in _read_copy_names(words))
    select = f"SELECT {columns} FROM "
    table = ".".join(quote_name(name, always=True) for name in names)
    return f"{select}{table}", (0 if start is None else start.start) - len(select)


def _read_copy_option(words: CommandReader, options: dict[str, object]) -> None:
    """Both spellings: (FORMAT csv, HEADER true) and CSV HEADER DELIMITER AS ';'."""
    name = words.read_word()
    match name:
        case "format":
            options["csv"] = _read_copy_format(words)
        case "csv" | "text":
            options["csv"] = name == "csv"
        case "binary":
            raise Unsupported("COPY in the binary format is not available", hint="FORMAT csv and FORMAT text are.")
        case "header":
            options["header"] = not any(words.accept(word) for word in ("false", "off", "0"))
            any(words.accept(word) for word in ("true", "on", "1"))
        case "delimiter" | "delimiters" | "null" | "quote" | "escape" | "encoding":
            words.accept("as")
            options[name.removesuffix("s")] = words.read_string()
        case "force_quote":
            options["force_quote"] = ("*",) if words.accept("*") else _read_copy_names(words)
        case "force":
            words.expect("quote")
            options["force_quote"] = ("*",) if words.accept("*") else (words.read_name(),)
        case _:
            raise Unsupported(f'COPY has no option "{name}" here')


def _read_copy_format(words: CommandReader) -> bool:
    token = words.take_token()
    named = (string_value(token) if token.kind is TokenKind.STRING else token.text).lower()
    if named not in ("csv", "text"):
        raise Unsupported(f'COPY format "{named}" is not available', hint="FORMAT csv and FORMAT text are.")
    return named == "csv"


def _read_copy_names(words: CommandReader) -> tuple[str, ...]:
    words.expect("(")
    names = [words.read_name()]
    while words.accept(","):
        names.append(words.read_name())
    words.expect(")")
    return tuple(names)


def _build_copy_command(sql: str, offset: int, options: dict[str, object]) -> CopyCommand:
    encoding = str(options.pop("encoding", "UTF8")).lower().replace("-", "")
    if encoding not in ("utf8", "unicode"):
        raise Unsupported("COPY writes UTF8")
    csv = bool(options.get("csv"))
    for name in ("quote", "escape", "force_quote"):
        if name in options and not csv:
            raise Unsupported(f"COPY {name} is for CSV", hint="Write FORMAT csv.")
    quote = str(options.get("quote", '"'))
    defaults: dict[str, object] = {"delimiter": ",", "null": "", "escape": quote} if csv else {}
    merged = {**defaults, **options}
    for name in ("delimiter", "quote", "escape"):
        value = str(merged.get(name, "x"))
        if (
            len(value) != 1
            or not value.isascii()
            or value in "\r\n"
            or (name == "delimiter" and not csv and value == "\\")
        ):
            raise InvalidSyntax(f"COPY {name} must be a single one-byte character", sqlstate="22023")
    if any(character in str(merged.get("null", "")) for character in "\r\n"):
        raise InvalidSyntax("COPY null cannot use newline or carriage return", sqlstate="22023")
    return CopyCommand(sql, offset, **merged)  # type: ignore[arg-type]


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
NAMED_STATEMENT_KEYWORDS = frozenset(
    {"prepare", "execute", "deallocate", "declare", "fetch", "move", "close", "copy", "ask"}
)


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
    return tuple(
        None if type_text.strip().lower() == "unknown" else _parse_parameter_type(type_text.strip())
        for type_text in (*parts, listed[start:])
    )


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
        if not any(
            reader.accept(*keywords)
            for keywords in (("binary",), ("insensitive",), ("asensitive",), ("no", "scroll"), ("scroll",))
        ):
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
    for word, direction in (
        ("next", (FetchDirection.FORWARD, 1)),
        ("prior", (FetchDirection.BACKWARD, 1)),
        ("first", (FetchDirection.ABSOLUTE, 1)),
        ("last", (FetchDirection.ABSOLUTE, -1)),
        ("all", (FetchDirection.FORWARD, None)),
    ):
        if reader.accept(word):
            return direction
    for way in (FetchDirection.ABSOLUTE, FetchDirection.RELATIVE):
        if reader.accept(way.value):
            return way, reader.read_integer()
    for way in (FetchDirection.FORWARD, FetchDirection.BACKWARD):
        if reader.accept(way.value):
            return _normalize_direction(
                way, None if reader.accept("all") else reader.read_integer() if reader.is_integer_next() else 1
            )
    return _normalize_direction(FetchDirection.FORWARD, reader.read_integer() if reader.is_integer_next() else 1)


def _normalize_direction(way: FetchDirection, count: int | None) -> tuple[FetchDirection, int | None]:
    """Backward by -2 is forward by 2."""
    if count is None or count >= 0:
        return way, count
    return FetchDirection.BACKWARD if way is FetchDirection.FORWARD else FetchDirection.FORWARD, -count
