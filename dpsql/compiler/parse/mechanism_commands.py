"""Commands about mechanisms that a connection holds by name: threshold queries and the holdout.

    DECLARE busy THRESHOLD 1000 WITH (epsilon = 1, answers = 3)
    DECLARE h HOLDOUT WITH (n = 10000, threshold = 0.04, sigma = 0.02)
    ASK busy SELECT COUNT(*) FROM visits WHERE ward = 'surgery'
    ASK h SELECT SUM(CASE WHEN planned THEN 1 ELSE 0 END) FROM visits AGAINST 0.31
    SHOW THRESHOLDS

The question, and a query behind AGAINST, are statements of their own: each takes those of the parameters that stand in
it, under numbers of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from dpsql.base.lexer import Token, TokenKind
from dpsql.compiler.parse.command_reader import CommandReader, find_options, read_with_options, string_value
from dpsql.compiler.parse.googlesql import Option
from dpsql.errors import InvalidSyntax, Span

THRESHOLD, HOLDOUT = "threshold", "holdout"
MECHANISM_KINDS = (THRESHOLD, HOLDOUT)
DECLARE_EXAMPLES = {
    THRESHOLD: "For example: DECLARE busy THRESHOLD 1000 WITH (epsilon = 1, answers = 3).",
    HOLDOUT: "For example: DECLARE h HOLDOUT WITH (n = 10000, threshold = 0.04, sigma = 0.02).",
}
AGAINST_EXAMPLE = "For example: ASK h SELECT SUM(CASE WHEN planned THEN 1 ELSE 0 END) FROM visits AGAINST 0.31."
MAX_PARAMETERS = 65_535
"""Parameters that the wire has numbers for."""

T = TypeVar("T")


@dataclass(frozen=True)
class DeclareMechanismCommand:
    """The number behind THRESHOLD is its option of that name."""

    kind: str
    name: str
    options: tuple[Option, ...]
    span: Span  # of the name


@dataclass(frozen=True)
class NestedStatement:
    """A statement within another, which starts there at `offset`; `places`, from 0, are those of its parameters."""

    sql: str
    offset: int
    places: tuple[int, ...] = ()

    def select_parameters(self, parameters: Sequence[T]) -> tuple[T, ...]:
        """Its parameters among those of the whole."""
        if max(self.places, default=-1) >= len(parameters):
            raise InvalidSyntax(f"there is no value for ${max(self.places) + 1}")
        return tuple(parameters[index] for index in self.places)


@dataclass(frozen=True)
class AgainstValue:
    """A number as `text`, one that is the parameter at `place`, or a `query` that gives it."""

    span: Span
    text: str | None = None
    place: int | None = None
    query: NestedStatement | None = None


@dataclass(frozen=True)
class SubmitQuery:
    """Without a question it is for EXPLAIN. `sensitivity` is the least that the first question is to fix; as JSON, for
    programs, the answer is exact."""

    name: str
    question: NestedStatement | None
    against: AgainstValue | None = None
    sensitivity: str | None = None
    json: bool = False


@dataclass(frozen=True)
class ShowMechanismsCommand:
    kind: str


MechanismCommand = DeclareMechanismCommand | SubmitQuery | ShowMechanismsCommand


# --- DECLARE ---------------------------------------------------------------------------------------------------------


def read_declare_mechanism(words: CommandReader, name: str, span: Span) -> DeclareMechanismCommand | None:
    """Behind DECLARE and a name; None where it is no mechanism."""
    kind = next((kind for kind in MECHANISM_KINDS if words.accept(kind)), None)
    if kind is None:
        return None
    tokens = words.take_remaining()
    parameter = next((token for token in tokens if token.kind is TokenKind.PARAMETER), None)
    if parameter is not None:
        raise InvalidSyntax(
            "DECLARE takes numbers, and no parameters", hint=DECLARE_EXAMPLES[kind], span=_token_span(parameter)
        )
    options_index = find_options(tokens)
    options = () if options_index is None else read_with_options(tokens[options_index:])
    before = tokens[:options_index]
    if kind == THRESHOLD:
        text = _read_number(before)
        if text is None or any(option.name == THRESHOLD for option in options):
            raise InvalidSyntax("THRESHOLD takes one number", hint=DECLARE_EXAMPLES[kind], span=span)
        options = (Option(THRESHOLD, text, Span(before[0].start, before[-1].end)), *options)
    elif before:
        raise InvalidSyntax(
            "HOLDOUT takes its numbers behind WITH", hint=DECLARE_EXAMPLES[kind], span=_token_span(before[0])
        )
    return DeclareMechanismCommand(kind, name, options, span)


def _read_number(tokens: Sequence[Token]) -> str | None:
    """A number with its sign, or a text that may be one: '1/3'."""
    match tokens:
        case [token] if token.kind is TokenKind.NUMBER:
            return token.text
        case [token] if token.kind is TokenKind.STRING and token.ended:
            return string_value(token)
        case [sign, token] if sign.text in ("-", "+") and token.kind is TokenKind.NUMBER:
            return sign.text + token.text
        case _:
            return None


# --- ASK -------------------------------------------------------------------------------------------------------------


def read_submit_query(words: CommandReader) -> SubmitQuery:
    """Read what follows ASK."""
    json, sensitivity = _read_submit_options(words)
    name, tokens = words.read_name(), words.take_remaining()
    against_index = _find_against(tokens)
    question = _extract_nested_statement(words.sql, tokens[:against_index], 0)
    if against_index is None or question is None:
        return SubmitQuery(name, question, None, sensitivity, json)
    marks = sum(token.text == "?" for token in tokens[:against_index] if token.kind is TokenKind.PARAMETER)
    return SubmitQuery(
        name,
        question,
        _read_against(words.sql, tokens[against_index], tokens[against_index + 1 :], marks),
        sensitivity,
        json,
    )


def _read_submit_options(words: CommandReader) -> tuple[bool, str | None]:
    """(FORMAT JSON, SENSITIVITY 120), both for programs."""
    json, sensitivity, more = False, None, words.accept("(")
    while more:
        if words.accept("format", "json"):
            json = True
        else:
            words.expect("sensitivity")
            sensitivity = _read_number([words.take_token()])
            if sensitivity is None:
                raise InvalidSyntax("SENSITIVITY takes a number", hint="ASK (SENSITIVITY 20) busy SELECT …")
        more = words.accept(",")
        if not more:
            words.expect(")")
    return json, sensitivity


def _find_against(tokens: Sequence[Token]) -> int | None:
    """Where the last AGAINST is that stands in no parentheses."""
    depth, last_index = 0, None
    for index, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and index and token.kind is TokenKind.WORD and token.text.lower() == "against":
            last_index = index
    return last_index


def _read_against(sql: str, word: Token, tokens: list[Token], marks: int) -> AgainstValue:
    span = Span(word.start, tokens[-1].end if tokens else word.end)
    text = _read_number(tokens)
    if text is not None:
        return AgainstValue(span, text)
    match tokens:
        case [token] if token.kind is TokenKind.PARAMETER:
            return AgainstValue(span, place=marks if token.text == "?" else _parameter_index(token))
        case [first, *inner, last] if (
            first.text == "(" and last.text == ")" and inner and _has_balanced_parentheses(inner)
        ):
            return AgainstValue(span, query=_extract_nested_statement(sql, inner, marks))
        case _:
            raise InvalidSyntax(
                "AGAINST takes a number, a parameter, or a query in parentheses",
                hint=AGAINST_EXAMPLE,
                span=_token_span(word),
            )


def _has_balanced_parentheses(tokens: Sequence[Token]) -> bool:
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth < 0:
            return False
    return depth == 0


def _extract_nested_statement(sql: str, tokens: Sequence[Token], marks: int) -> NestedStatement | None:
    """The statement that the tokens are, behind so many ?; $3 and $5 are its $1 and $2, each in its place."""
    if not tokens:
        return None
    start, end = tokens[0].start, tokens[-1].end
    parameters = [token for token in tokens if token.kind is TokenKind.PARAMETER]
    numbered = {token: _parameter_index(token) for token in parameters if token.text != "?"}
    indexes = sorted(set(numbered.values()))
    number = {index: at + 1 for at, index in enumerate(indexes)}
    text, at = "", start
    for token, index in numbered.items():
        text += sql[at : token.start] + f"${number[index]}".ljust(len(token.text))
        at = token.end
    return NestedStatement(text + sql[at:end], start, tuple(indexes) or tuple(range(marks, marks + len(parameters))))


def _parameter_index(token: Token) -> int:
    digits = token.text[1:]
    if len(digits) > 5 or not 1 <= int(digits) <= MAX_PARAMETERS:
        raise InvalidSyntax("parameters are counted from $1", hint="Number them $1, $2, … without gaps.",
                            span=_token_span(token))  # fmt: skip
    return int(digits) - 1


def _token_span(token: Token) -> Span:
    return Span(token.start, token.end)
