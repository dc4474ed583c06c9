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

from dpsql.errors import InvalidSyntax, ProgrammingError, Unsupported
from dpsql.intervals import interval_words
from dpsql.span import Span

MOST_DIGITS = 1_000
"""Of a number: reading one takes time that grows with the square of its digits, minutes for a million."""
MOST_BITS = 3_000  # 903 digits: Python itself writes out 4,300


class Literal(NamedTuple):
    """A parameter that was read."""

    kind: TokenType
    text: str


Parameter = None | bool | int | float | Decimal | str | dt.date | dt.datetime | dt.time | dt.timedelta | UUID | Literal

_WORDS = {TokenType.VAR, TokenType.NAME, TokenType.NUMBER}
_OPERANDS = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN,
             TokenType.L_BRACKET, TokenType.R_BRACKET, TokenType.PLACEHOLDER}  # fmt: skip
"""After these, % is a remainder and : part of a slice or a struct."""
_TO_INTERVAL = ([TokenType.DCOLON, TokenType.INTERVAL], [TokenType.ALIAS, TokenType.INTERVAL])


def bind(tokens: list[Token], parameters: Sequence[Parameter]) -> list[Token]:
    """The tokens with literals for placeholders: ? take the values in turn, $n takes the n-th wherever it stands."""
    marks = [place for place, token in enumerate(tokens) if token.token_type is TokenType.PLACEHOLDER]
    numbers = {place: number for place in range(len(tokens)) if (number := _number(tokens, place)) is not None}
    if marks and numbers:
        later = max(marks[0], next(iter(numbers)))
        raise InvalidSyntax(
            "placeholders are written ? or $1, not both",
            hint="Write ? for each value in turn, or number all of them: $1, $2.",
            span=_span(tokens, later),
        )
    _check_alone(tokens, [*marks, *numbers], numbers)
    _check_gaps(tokens, numbers)
    values = {place: place_of for place_of, place in enumerate(marks)} | {at: n - 1 for at, n in numbers.items()}
    _check_count(tokens, len(set(values.values())), len(parameters))
    bound: list[Token] = []
    for place, token in enumerate(tokens):
        if place in values:
            last = tokens[place + 1] if place in numbers else token
            read = literal(parameters[values[place]])
            behind = tokens[place + 1 + (place in numbers) :][:2]
            made = [read] if read.kind is not TokenType.INTERVAL else _interval(read, behind)
            bound += [Token(kind, text, last.line, last.col, token.start, last.end) for kind, text in made]
        elif place - 1 not in numbers:  # the number of a $n is in its literal
            bound.append(token)
    return bound


def written_out(sql: str, tokens: list[Token], parameters: Sequence[Parameter]) -> str:
    """The text with the values that are bound, as literals, for who wrote it; `tokens` are those of the text."""
    parts, at = list[str](), 0
    marks = iter(parameters)
    for place, token in enumerate(tokens):
        number = _number(tokens, place)
        if number is None and token.token_type is not TokenType.PLACEHOLDER:
            continue
        value = next(marks) if number is None else parameters[number - 1]
        parts += [sql[at : token.start], _text(literal(value), sql[: token.start])]
        at = (token if number is None else tokens[place + 1]).end + 1
    return "".join((*parts, sql[at:]))


def _text(read: Literal, before: str) -> str:
    match read.kind:
        case TokenType.STRING:
            return _quoted(read.text)
        case TokenType.INTERVAL:
            return f"INTERVAL {_quoted(read.text)}"
        case _:  # two minus signs would begin a comment
            return f" {read.text}" if before.endswith("-") and read.text.startswith("-") else read.text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _interval(read: Literal, behind: list[Token]) -> list[Literal]:
    """A text beside a time would be taken for a time: an interval says that it is one, where no cast does already."""
    text = Literal(TokenType.STRING, read.text)
    if [token.token_type for token in behind] in _TO_INTERVAL:
        return [text]
    return [text, Literal(TokenType.DCOLON, "::"), Literal(TokenType.INTERVAL, "INTERVAL")]


def count_placeholders(tokens: list[Token]) -> int:
    """How many values a statement takes."""
    numbers = {number for place in range(len(tokens)) if (number := _number(tokens, place)) is not None}
    return len(numbers) or sum(token.token_type is TokenType.PLACEHOLDER for token in tokens)


def _number(tokens: list[Token], place: int) -> int | None:
    """The n of a $n that starts here."""
    token = tokens[place]
    if token.token_type is not TokenType.PARAMETER or token.text != "$" or not _touches(tokens, place):
        return None
    digits = tokens[place + 1].text
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else None


def _check_alone(tokens: list[Token], places: list[int], numbers: dict[int, int]) -> None:
    """A value is no part of a number: `$1.5` is not 7.5 for 7."""
    for place in places:
        last = place + 1 if place in numbers else place
        before = [tokens[place - 1]] if place and _touches(tokens, place - 1) else []
        after = [tokens[last + 1]] if _touches(tokens, last) else []
        if any(token.token_type in (TokenType.NUMBER, TokenType.DOT) for token in before + after):
            raise not_whole(_span(tokens, place))


def not_whole(span: Span) -> InvalidSyntax:
    hint = "Leave a space beside it, or put the whole number into the value."
    return InvalidSyntax("a placeholder stands for a whole value", hint=hint, span=span)


def _check_gaps(tokens: list[Token], numbers: dict[int, int]) -> None:
    used = set(numbers.values())
    missing = next(number for number in range(1, len(used) + 2) if number not in used)
    for place, number in numbers.items():
        if number == 0 or number > missing:
            why = "parameters are counted from $1" if number == 0 else f"there is a ${number}, but no ${missing}"
            raise InvalidSyntax(why, hint="Number them $1, $2, … without gaps.", span=_span(tokens, place))


def _check_count(tokens: list[Token], used: int, given: int) -> None:
    if used == given:
        return
    if not used and (foreign := foreign_placeholder(tokens)) is not None:
        raise not_ours(foreign)
    _refuse_operator(tokens)
    raise ProgrammingError(
        f"the statement has {_counted(used, 'placeholder')}, but {given} given",
        hint="A placeholder is written ? or $1, and each takes one value: IN (?, ?).",
        sqlstate="08P01",
    )


def _refuse_operator(tokens: list[Token]) -> None:
    """PostgreSQL's `x ? 'a'` of a jsonb: behind a value no value can stand."""
    for place, token in enumerate(tokens[1:], start=1):
        before = tokens[place - 1].token_type
        if token.token_type is TokenType.PLACEHOLDER and before in _OPERANDS | {TokenType.JSONB, TokenType.JSON}:
            raise Unsupported("? is a placeholder, not an operator of jsonb", hint="Write x -> 'a' IS NOT NULL.",
                              span=_span(tokens, place))  # fmt: skip


def foreign_placeholder(tokens: list[Token]) -> Span | None:
    """Where the first placeholder is that is written as other drivers do: %s, %(name)s, :name, $name, @name."""
    for place, token in enumerate(tokens):
        if not _touches(tokens, place) or (place and tokens[place - 1].token_type in _OPERANDS):
            continue
        after, fifth = tokens[place + 1], tokens[place + 4] if place + 4 < len(tokens) else None
        match token.token_type, after.token_type:
            case TokenType.MOD, TokenType.VAR:
                return Span(token.start, after.end + 1)
            case TokenType.MOD, TokenType.L_PAREN if fifth is not None and fifth.text == "s":
                return Span(token.start, fifth.end + 1)
            case (TokenType.COLON | TokenType.PARAMETER), kind if kind in _WORDS:
                return Span(token.start, after.end + 1)
            case _:
                continue
    return None


def not_ours(span: Span | None) -> InvalidSyntax:
    hint = 'For example: execute("SELECT COUNT(*) FROM visits WHERE ward = ? AND cost > ?", ["surgery", 100]).'
    return InvalidSyntax("a placeholder is written ?, or $1", hint=hint, span=span)


def _touches(tokens: list[Token], place: int) -> bool:
    """Whether the next token begins where this one ends."""
    return place + 1 < len(tokens) and tokens[place].end + 1 == tokens[place + 1].start


def _span(tokens: list[Token], place: int) -> Span:
    last = place if tokens[place].token_type is TokenType.PLACEHOLDER else place + 1
    return Span(tokens[place].start, tokens[last].end + 1)


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def holds_half(text: str) -> bool:
    """A lone surrogate, which no engine can store: it would fail after the charge."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def literals(parameters: Sequence[Parameter]) -> tuple[Literal, ...]:
    """All of them, read once: an object that says another value when it is asked again cannot be two parameters."""
    return tuple(literal(parameter) for parameter in parameters)


def is_null(parameter: Parameter) -> bool:
    return literal(parameter).kind is TokenType.NULL


def literal(parameter: Parameter) -> Literal:
    """A parameter as a token. Its text is the built-in type's own: numpy's float64 and others say something else."""
    match parameter:
        case Literal():
            return parameter
        case None:
            return Literal(TokenType.NULL, "NULL")
        case bool():
            return Literal(TokenType.TRUE, "TRUE") if parameter else Literal(TokenType.FALSE, "FALSE")
        case int():
            if int.bit_length(parameter) > MOST_BITS:
                raise ProgrammingError("a parameter is too large a number", sqlstate="22003")
            return Literal(TokenType.NUMBER, int.__repr__(parameter))
        case float():
            if not math.isfinite(parameter):
                raise _not_finite()
            return Literal(TokenType.NUMBER, float.__repr__(parameter))
        case Decimal():
            if not Decimal.is_finite(parameter):
                raise _not_finite()
            if abs(Decimal.adjusted(parameter)) > MOST_DIGITS or len(Decimal.as_tuple(parameter).digits) > MOST_DIGITS:
                raise ProgrammingError("a parameter is too large a number", sqlstate="22003")
            return Literal(TokenType.NUMBER, Decimal.__format__(parameter, "f"))
        case str():
            text = str.__str__(parameter)
            if "\x00" in text:
                raise ProgrammingError("a parameter holds a zero byte", sqlstate="22021")
            if holds_half(text):
                raise ProgrammingError("a parameter holds half of a character", sqlstate="22021")
            return Literal(TokenType.STRING, text)
        case dt.datetime():
            if parameter != parameter:  # pandas' NaT is a datetime, of the year 1
                return Literal(TokenType.NULL, "NULL")
            return Literal(TokenType.STRING, dt.datetime.isoformat(parameter, " "))
        case dt.date():
            return Literal(TokenType.STRING, dt.date.isoformat(parameter))
        case dt.timedelta():
            return Literal(TokenType.INTERVAL, interval_words(parameter))
        case dt.time():
            return Literal(TokenType.STRING, dt.time.isoformat(parameter))
        case UUID():
            return Literal(TokenType.STRING, UUID.__str__(parameter))
    item = getattr(parameter, "item", None)  # a scalar of numpy's knows its Python value
    if callable(item) and getattr(parameter, "ndim", None) == 0 and not hasattr(value := item(), "item"):
        moment = getattr(getattr(parameter, "dtype", None), "kind", "") in ("M", "m")
        if not (moment and isinstance(value, int)):  # nanoseconds, of which Python's own times have none
            return literal(value)
    raise _not_bound(parameter)


def _not_finite() -> ProgrammingError:
    return ProgrammingError(
        "a parameter is not a finite number",
        hint="For a value that is missing, give None: it is NULL.",
        sqlstate="22023",
    )


def _not_bound(parameter: object) -> ProgrammingError:
    many = isinstance(parameter, Collection) or bool(getattr(parameter, "ndim", False))  # numpy's arrays have it
    if isinstance(parameter, bytes | bytearray | memoryview):
        hint = 'No column holds bytes. For text, give text: value.decode("utf-8").'
    elif many:
        hint = "Each placeholder takes one value: IN (?, ?) with two of them."
    else:
        hint = "Values are None, bool, int, float, Decimal, str, date, datetime, time, timedelta or UUID."
    return ProgrammingError(
        f"a parameter of type {type(parameter).__name__} cannot be bound", hint=hint, sqlstate="22023"
    )
