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

from dpsql.errors import InvalidSyntax
from dpsql.lex import Kind, Token
from dpsql.span import Span
from dpsql.sql.options import Option
from dpsql.sql.with_options import options_at, read_options
from dpsql.sql.words import Words, string_of

THRESHOLD, HOLDOUT = "threshold", "holdout"
KINDS = (THRESHOLD, HOLDOUT)
EXAMPLES = {
    THRESHOLD: "For example: DECLARE busy THRESHOLD 1000 WITH (epsilon = 1, answers = 3).",
    HOLDOUT: "For example: DECLARE h HOLDOUT WITH (n = 10000, threshold = 0.04, sigma = 0.02).",
}
AGAINST = "For example: ASK h SELECT SUM(CASE WHEN planned THEN 1 ELSE 0 END) FROM visits AGAINST 0.31."
MOST_PLACES = 65_535
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
class Part:
    """A statement within another, which starts there at `offset`; `places`, from 0, are those of its parameters."""

    sql: str
    offset: int
    places: tuple[int, ...] = ()

    def own(self, parameters: Sequence[T]) -> tuple[T, ...]:
        """Its parameters among those of the whole."""
        if max(self.places, default=-1) >= len(parameters):
            raise InvalidSyntax(f"there is no value for ${max(self.places) + 1}")
        return tuple(parameters[place] for place in self.places)


@dataclass(frozen=True)
class Against:
    """A number as `text`, one that is the parameter at `place`, or a `query` that gives it."""

    span: Span
    text: str | None = None
    place: int | None = None
    query: Part | None = None


@dataclass(frozen=True)
class AskCommand:
    """Without a question it is for EXPLAIN. `sensitivity` is the least that the first question is to fix; as JSON, for
    programs, the answer is exact."""

    name: str
    question: Part | None
    against: Against | None = None
    sensitivity: str | None = None
    json: bool = False


@dataclass(frozen=True)
class ShowMechanismsCommand:
    kind: str


MechanismCommand = DeclareMechanismCommand | AskCommand | ShowMechanismsCommand


# --- DECLARE ---------------------------------------------------------------------------------------------------------


def read_mechanism(words: Words, name: str, span: Span) -> DeclareMechanismCommand | None:
    """Behind DECLARE and a name; None where it is no mechanism."""
    kind = next((kind for kind in KINDS if words.accept(kind)), None)
    if kind is None:
        return None
    tokens = words.remaining()
    parameter = next((token for token in tokens if token.kind is Kind.PARAMETER), None)
    if parameter is not None:
        raise InvalidSyntax("DECLARE takes numbers, and no parameters", hint=EXAMPLES[kind], span=_span(parameter))
    at = options_at(tokens)
    options = () if at is None else read_options(tokens[at:])
    before = tokens[:at]
    if kind == THRESHOLD:
        text = _number(before)
        if text is None or any(option.name == THRESHOLD for option in options):
            raise InvalidSyntax("THRESHOLD takes one number", hint=EXAMPLES[kind], span=span)
        options = (Option(THRESHOLD, text, Span(before[0].start, before[-1].end)), *options)
    elif before:
        raise InvalidSyntax("HOLDOUT takes its numbers behind WITH", hint=EXAMPLES[kind], span=_span(before[0]))
    return DeclareMechanismCommand(kind, name, options, span)


def _number(tokens: Sequence[Token]) -> str | None:
    """A number with its sign, or a text that may be one: '1/3'."""
    match tokens:
        case [token] if token.kind is Kind.NUMBER:
            return token.text
        case [token] if token.kind is Kind.STRING and token.ended:
            return string_of(token)
        case [sign, token] if sign.text in ("-", "+") and token.kind is Kind.NUMBER:
            return sign.text + token.text
        case _:
            return None


# --- ASK -------------------------------------------------------------------------------------------------------------


def read_ask(words: Words) -> AskCommand:
    """Behind ASK."""
    json, sensitivity = _options(words)
    name, tokens = words.name(), words.remaining()
    at = _against_at(tokens)
    question = _part(words.sql, tokens[:at], 0)
    if at is None or question is None:
        return AskCommand(name, question, None, sensitivity, json)
    marks = sum(token.text == "?" for token in tokens[:at] if token.kind is Kind.PARAMETER)
    return AskCommand(name, question, _against(words.sql, tokens[at], tokens[at + 1 :], marks), sensitivity, json)


def _options(words: Words) -> tuple[bool, str | None]:
    """(FORMAT JSON, SENSITIVITY 120), both for programs."""
    json, sensitivity, more = False, None, words.accept("(")
    while more:
        if words.accept("format", "json"):
            json = True
        else:
            words.expect("sensitivity")
            sensitivity = _number([words.take()])
            if sensitivity is None:
                raise InvalidSyntax("SENSITIVITY takes a number", hint="ASK (SENSITIVITY 20) busy SELECT …")
        more = words.accept(",")
        if not more:
            words.expect(")")
    return json, sensitivity


def _against_at(tokens: Sequence[Token]) -> int | None:
    """Where the last AGAINST is that stands in no parentheses."""
    depth, found = 0, None
    for at, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and at and token.kind is Kind.WORD and token.text.lower() == "against":
            found = at
    return found


def _against(sql: str, word: Token, tokens: list[Token], marks: int) -> Against:
    span = Span(word.start, tokens[-1].end if tokens else word.end)
    text = _number(tokens)
    if text is not None:
        return Against(span, text)
    match tokens:
        case [token] if token.kind is Kind.PARAMETER:
            return Against(span, place=marks if token.text == "?" else _place(token))
        case [first, *inner, last] if first.text == "(" and last.text == ")" and inner and _is_closed(inner):
            return Against(span, query=_part(sql, inner, marks))
        case _:
            raise InvalidSyntax(
                "AGAINST takes a number, a parameter, or a query in parentheses", hint=AGAINST, span=_span(word)
            )


def _is_closed(tokens: Sequence[Token]) -> bool:
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth < 0:
            return False
    return depth == 0


def _part(sql: str, tokens: Sequence[Token], marks: int) -> Part | None:
    """The statement that the tokens are, behind so many ?; $3 and $5 are its $1 and $2, each in its place."""
    if not tokens:
        return None
    start, end = tokens[0].start, tokens[-1].end
    given = [token for token in tokens if token.kind is Kind.PARAMETER]
    numbered = {token: _place(token) for token in given if token.text != "?"}
    places = sorted(set(numbered.values()))
    number = {place: at + 1 for at, place in enumerate(places)}
    text, at = "", start
    for token, place in numbered.items():
        text += sql[at : token.start] + f"${number[place]}".ljust(len(token.text))
        at = token.end
    return Part(text + sql[at:end], start, tuple(places) or tuple(range(marks, marks + len(given))))


def _place(token: Token) -> int:
    digits = token.text[1:]
    if len(digits) > 5 or not 1 <= int(digits) <= MOST_PLACES:
        raise InvalidSyntax("parameters are counted from $1", hint="Number them $1, $2, … without gaps.",
                            span=_span(token))  # fmt: skip
    return int(digits) - 1


def _span(token: Token) -> Span:
    return Span(token.start, token.end)
