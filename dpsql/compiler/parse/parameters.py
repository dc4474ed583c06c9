"""Parameters: values in the place of ?, or of $1, $2, …

Privacy: a parameter becomes one literal, that of an interval with its type, before anything is parsed. Its text is
never read as SQL, and wherever a private row is concerned the statement is the same as if the analyst had written it.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from sqlglot.tokenizer_core import Token, TokenType

from dpsql.base.intervals import format_interval_words
from dpsql.errors import InvalidSyntax, ProgrammingError, Span, Unsupported

MAX_NUMBER_DIGITS = 1_000
"""Of a number: reading one takes time that grows with the square of its digits, minutes for a million."""
MAX_INTEGER_BITS = 3_000  # 903 digits: Python itself writes out 4,300


class ParameterLiteral(NamedTuple):
    """A parameter's value as a literal."""

    kind: TokenType
    text: str


Parameter = (
    None
    | bool
    | int
    | float
    | Decimal
    | str
    | dt.date
    | dt.datetime
    | dt.time
    | dt.timedelta
    | UUID
    | bytes
    | bytearray
    | memoryview
    | ParameterLiteral
)

_NAME_TOKENS = {TokenType.VAR, TokenType.NAME, TokenType.NUMBER}
_OPERAND_TOKENS = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN,
             TokenType.L_BRACKET, TokenType.R_BRACKET, TokenType.PLACEHOLDER}  # fmt: skip
"""After these, % is a remainder and : part of a slice or a struct."""
_TYPED_LITERALS = {TokenType.INTERVAL: "INTERVAL", TokenType.VARBINARY: "BYTEA"}
"""Types that a text is cast to, so that it is not taken for a text, or for what stands beside it."""


def bind_parameters(tokens: list[Token], parameters: Sequence[Parameter]) -> list[Token]:
    """The tokens with literals for placeholders: ? take the values in turn, $n takes the n-th wherever it stands."""
    marks = [index for index, token in enumerate(tokens) if token.token_type is TokenType.PLACEHOLDER]
    numbers = {
        index: number for index in range(len(tokens)) if (number := _placeholder_number(tokens, index)) is not None
    }
    if marks and numbers:
        later = max(marks[0], next(iter(numbers)))
        raise InvalidSyntax(
            "placeholders are written ? or $1, not both",
            hint="Write ? for each value in turn, or number all of them: $1, $2.",
            span=_placeholder_span(tokens, later),
        )
    _check_not_adjacent(tokens, [*marks, *numbers], numbers)
    _check_numbering(tokens, numbers)
    values = {index: ordinal for ordinal, index in enumerate(marks)} | {at: n - 1 for at, n in numbers.items()}
    _check_parameter_count(tokens, len(set(values.values())), len(parameters))
    bound: list[Token] = []
    for index, token in enumerate(tokens):
        if index in values:
            last = tokens[index + 1] if index in numbers else token
            read = to_literal(parameters[values[index]])
            behind = tokens[index + 1 + (index in numbers) :][:2]
            replacement = _typed_literals(read, behind) if read.kind in _TYPED_LITERALS else [read]
            bound += [Token(kind, text, last.line, last.col, token.start, last.end) for kind, text in replacement]
        elif index - 1 not in numbers:  # the number of a $n is in its literal
            bound.append(token)
    return bound


def inline_parameters(sql: str, tokens: list[Token], parameters: Sequence[Parameter]) -> str:
    """The text with the values that are bound, as literals, for who wrote it; `tokens` are those of the text."""
    parts, at = list[str](), 0
    marks = iter(parameters)
    for index, token in enumerate(tokens):
        number = _placeholder_number(tokens, index)
        if number is None and token.token_type is not TokenType.PLACEHOLDER:
            continue
        value = next(marks) if number is None else parameters[number - 1]
        parts += [sql[at : token.start], _literal_sql(to_literal(value), sql[: token.start])]
        at = (token if number is None else tokens[index + 1]).end + 1
    return "".join((*parts, sql[at:]))


def _literal_sql(read: ParameterLiteral, before: str) -> str:
    match read.kind:
        case TokenType.STRING:
            return _quote_text(read.text)
        case TokenType.INTERVAL:
            return f"INTERVAL {_quote_text(read.text)}"
        case TokenType.VARBINARY:
            return f"{_quote_text(read.text)}::bytea"
        case _:  # two minus signs would begin a comment
            return f" {read.text}" if before.endswith("-") and read.text.startswith("-") else read.text


def _quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _typed_literals(read: ParameterLiteral, behind: list[Token]) -> list[ParameterLiteral]:
    """A text beside a time would be taken for a time: a cast says what it is, where none does already."""
    text, kinds = ParameterLiteral(TokenType.STRING, read.text), [token.token_type for token in behind]
    if kinds in ([TokenType.DCOLON, read.kind], [TokenType.ALIAS, read.kind]):
        return [text]
    return [text, ParameterLiteral(TokenType.DCOLON, "::"), ParameterLiteral(read.kind, _TYPED_LITERALS[read.kind])]


def count_placeholders(tokens: list[Token]) -> int:
    """How many values a statement takes."""
    numbers = {number for index in range(len(tokens)) if (number := _placeholder_number(tokens, index)) is not None}
    return len(numbers) or sum(token.token_type is TokenType.PLACEHOLDER for token in tokens)


def _placeholder_number(tokens: list[Token], index: int) -> int | None:
    """The n of a $n that starts here."""
    token = tokens[index]
    if token.token_type is not TokenType.PARAMETER or token.text != "$" or not _touches_next(tokens, index):
        return None
    digits = tokens[index + 1].text
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else None


def _check_not_adjacent(tokens: list[Token], indexes: list[int], numbers: dict[int, int]) -> None:
    """A value is no part of a number: `$1.5` is not 7.5 for 7."""
    for index in indexes:
        last = index + 1 if index in numbers else index
        before = [tokens[index - 1]] if index and _touches_next(tokens, index - 1) else []
        after = [tokens[last + 1]] if _touches_next(tokens, last) else []
        if any(token.token_type in (TokenType.NUMBER, TokenType.DOT) for token in before + after):
            raise partial_placeholder_error(_placeholder_span(tokens, index))


def partial_placeholder_error(span: Span) -> InvalidSyntax:
    hint = "Leave a space beside it, or put the whole number into the value."
    return InvalidSyntax("a placeholder stands for a whole value", hint=hint, span=span)


def _check_numbering(tokens: list[Token], numbers: dict[int, int]) -> None:
    used = set(numbers.values())
    missing = next(number for number in range(1, len(used) + 2) if number not in used)
    for index, number in numbers.items():
        if number == 0 or number > missing:
            why = "parameters are counted from $1" if number == 0 else f"there is a ${number}, but no ${missing}"
            raise InvalidSyntax(why, hint="Number them $1, $2, … without gaps.", span=_placeholder_span(tokens, index))


def _check_parameter_count(tokens: list[Token], used: int, supplied: int) -> None:
    if used == supplied:
        return
    if not used and (foreign := find_foreign_placeholder(tokens)) is not None:
        raise placeholder_style_error(foreign)
    _refuse_jsonb_operator(tokens)
    raise ProgrammingError(
        f"the statement has {_count_phrase(used, 'placeholder')}, but {supplied} given",
        hint="A placeholder is written ? or $1, and each takes one value: IN (?, ?).",
        sqlstate="08P01",
    )


def _refuse_jsonb_operator(tokens: list[Token]) -> None:
    """PostgreSQL's `x ? 'a'` of a jsonb: behind a value no value can stand."""
    for index, token in enumerate(tokens[1:], start=1):
        before = tokens[index - 1].token_type
        if token.token_type is TokenType.PLACEHOLDER and before in _OPERAND_TOKENS | {TokenType.JSONB, TokenType.JSON}:
            raise Unsupported("? is a placeholder, not an operator of jsonb", hint="Write x -> 'a' IS NOT NULL.",
                              span=_placeholder_span(tokens, index))  # fmt: skip


def find_foreign_placeholder(tokens: list[Token]) -> Span | None:
    """Where the first placeholder is that is written as other drivers do: %s, %(name)s, :name, $name, @name."""
    for index, token in enumerate(tokens):
        if not _touches_next(tokens, index) or (index and tokens[index - 1].token_type in _OPERAND_TOKENS):
            continue
        after, fifth = tokens[index + 1], tokens[index + 4] if index + 4 < len(tokens) else None
        match token.token_type, after.token_type:
            case TokenType.MOD, TokenType.VAR:
                return Span(token.start, after.end + 1)
            case TokenType.MOD, TokenType.L_PAREN if fifth is not None and fifth.text == "s":
                return Span(token.start, fifth.end + 1)
            case ((TokenType.COLON | TokenType.PARAMETER), kind) if kind in _NAME_TOKENS:
                return Span(token.start, after.end + 1)
            case _:
                continue
    return None


def placeholder_style_error(span: Span | None) -> InvalidSyntax:
    hint = 'For example: execute("SELECT COUNT(*) FROM visits WHERE ward = ? AND cost > ?", ["surgery", 100]).'
    return InvalidSyntax("a placeholder is written ?, or $1", hint=hint, span=span)


def _touches_next(tokens: list[Token], index: int) -> bool:
    """Whether the next token begins where this one ends."""
    return index + 1 < len(tokens) and tokens[index].end + 1 == tokens[index + 1].start


def _placeholder_span(tokens: list[Token], index: int) -> Span:
    last = index if tokens[index].token_type is TokenType.PLACEHOLDER else index + 1
    return Span(tokens[index].start, tokens[last].end + 1)


def _count_phrase(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def has_lone_surrogate(text: str) -> bool:
    """A lone surrogate, which no engine can store: it would fail after the charge."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def to_literals(parameters: Sequence[Parameter]) -> tuple[ParameterLiteral, ...]:
    """All of them, read once: an object that says another value when it is asked again cannot be two parameters."""
    return tuple(to_literal(parameter) for parameter in parameters)


def is_null_parameter(parameter: Parameter) -> bool:
    return to_literal(parameter).kind is TokenType.NULL


def to_literal(parameter: Parameter) -> ParameterLiteral:
    """A parameter as a token. Its text is the built-in type's own: numpy's float64 and others say something else."""
    match parameter:
        case ParameterLiteral():
            return parameter
        case None:
            return ParameterLiteral(TokenType.NULL, "NULL")
        case bool():
            return ParameterLiteral(TokenType.TRUE, "TRUE") if parameter else ParameterLiteral(TokenType.FALSE, "FALSE")
        case int():
            if int.bit_length(parameter) > MAX_INTEGER_BITS:
                raise ProgrammingError("a parameter is too large a number", sqlstate="22003")
            return ParameterLiteral(TokenType.NUMBER, int.__repr__(parameter))
        case float():
            if not math.isfinite(parameter):
                raise _not_finite_error()
            return ParameterLiteral(TokenType.NUMBER, float.__repr__(parameter))
        case Decimal():
            if not Decimal.is_finite(parameter):
                raise _not_finite_error()
            if (
                abs(Decimal.adjusted(parameter)) > MAX_NUMBER_DIGITS
                or len(Decimal.as_tuple(parameter).digits) > MAX_NUMBER_DIGITS
            ):
                raise ProgrammingError("a parameter is too large a number", sqlstate="22003")
            return ParameterLiteral(TokenType.NUMBER, Decimal.__format__(parameter, "f"))
        case str():
            text = str.__str__(parameter)
            if "\x00" in text:
                raise ProgrammingError("a parameter holds a zero byte", sqlstate="22021")
            if has_lone_surrogate(text):
                raise ProgrammingError("a parameter holds half of a character", sqlstate="22021")
            return ParameterLiteral(TokenType.STRING, text)
        case dt.datetime():
            if parameter != parameter:  # pandas' NaT is a datetime, of the year 1
                return ParameterLiteral(TokenType.NULL, "NULL")
            return ParameterLiteral(TokenType.STRING, dt.datetime.isoformat(parameter, " "))
        case dt.date():
            return ParameterLiteral(TokenType.STRING, dt.date.isoformat(parameter))
        case dt.timedelta():
            return ParameterLiteral(TokenType.INTERVAL, format_interval_words(parameter))
        case dt.time():
            return ParameterLiteral(TokenType.STRING, dt.time.isoformat(parameter))
        case bytes() | bytearray() | memoryview():
            return ParameterLiteral(TokenType.VARBINARY, "\\x" + bytes(parameter).hex())
        case UUID():
            return ParameterLiteral(TokenType.STRING, UUID.__str__(parameter))
    item = getattr(parameter, "item", None)  # a scalar of numpy's knows its Python value
    if callable(item) and getattr(parameter, "ndim", None) == 0 and not hasattr(value := item(), "item"):
        is_timestamp = getattr(getattr(parameter, "dtype", None), "kind", "") in ("M", "m")
        if not (is_timestamp and isinstance(value, int)):  # nanoseconds, of which Python's own times have none
            return to_literal(value)
    raise _unbindable_error(parameter)


def _not_finite_error() -> ProgrammingError:
    return ProgrammingError(
        "a parameter is not a finite number",
        hint="For a value that is missing, give None: it is NULL.",
        sqlstate="22023",
    )


def _unbindable_error(parameter: object) -> ProgrammingError:
    many = isinstance(parameter, Collection) or bool(getattr(parameter, "ndim", False))  # numpy's arrays have it
    if many:
        hint = "Each placeholder takes one value: IN (?, ?) with two of them."
    else:
        hint = "Values are None, bool, int, float, Decimal, str, date, datetime, time, timedelta, bytes or UUID."
    return ProgrammingError(
        f"a parameter of type {type(parameter).__name__} cannot be bound", hint=hint, sqlstate="22023"
    )
