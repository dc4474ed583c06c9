"""CREATE, DROP and SHOW of what an analyst makes of private rows: synthetic tables and models.

    CREATE SYNTHETIC TABLE visits_like AS SELECT sex, cost FROM visits WITH (epsilon = 1, method = 'mwem')
    CREATE MODEL m AS LOGISTIC REGRESSION ON readmitted USING age, cost FROM visits WITH (epsilon = 1)

The query within is given out with the places of the whole text, so that errors point into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from dpsql.errors import InvalidSyntax, UnknownTable
from dpsql.lex import Kind, Token
from dpsql.span import Span
from dpsql.sql.options import Option
from dpsql.sql.parameters import Parameter, bind, literal, not_whole
from dpsql.sql.parse import tokenize
from dpsql.sql.with_options import options_at, read_options
from dpsql.sql.words import Words

T = TypeVar("T")

TABLE, MODEL = "synthetic table", "model"
FAMILIES = ("logistic", "linear")


@dataclass(frozen=True)
class CreateCommand:
    """`query` gives the rows: of a model the label first, then the features. `family` is a model's kind.

    `places` are those of the statement's parameters that the query takes, from 0; None: all of them.
    """

    kind: str
    name: str
    query: str
    options: tuple[Option, ...]
    instead: bool = False  # OR REPLACE
    unless_there: bool = False  # IF NOT EXISTS
    family: str | None = None
    span: Span | None = None  # of the name
    places: tuple[int, ...] | None = None
    database: str | None = None  # as it stands before the name

    def of_query(self, parameters: Sequence[T]) -> Sequence[T]:
        """Those of the statement that are the query's."""
        return parameters if self.places is None else [parameters[place] for place in self.places]


@dataclass(frozen=True)
class DropCommand:
    kind: str
    name: str
    if_there: bool
    span: Span | None = None
    database: str | None = None


@dataclass(frozen=True)
class ShowMadeCommand:
    """All of a kind, or one by its name; as JSON for programs."""

    kind: str
    name: str | None
    json: bool = False
    span: Span | None = None
    database: str | None = None


MadeCommand = CreateCommand | DropCommand | ShowMadeCommand


def read_made_command(sql: str, parameters: Sequence[Parameter] | None = None) -> MadeCommand | None:
    """The command that the text is; None where it is none of these. Without parameters, options say ? or $1."""
    words = Words(sql)
    match words.next.text.lower() if words.next is not None else "":
        case "create":
            return _create(words, sql, parameters)
        case "drop":
            return _drop(words)
        case "show":
            return _show(words)
        case _:
            return None


def _create(words: Words, sql: str, parameters: Sequence[Parameter] | None) -> CreateCommand | None:
    words.take()
    instead = words.accept("or", "replace")
    kind = _kind(words)
    if kind is None:
        return None
    unless = words.accept("if", "not", "exists")
    if instead and unless:
        raise InvalidSyntax("OR REPLACE and IF NOT EXISTS exclude each other")
    name, span, database = _name(words)
    words.expect("as")
    family = _family(words) if kind == MODEL else None
    first = words.next
    if first is None:
        raise InvalidSyntax("a query is expected behind AS", hint=_example(kind))
    tokens = words.remaining()
    at = options_at(tokens)
    options = () if at is None else read_options(tokens[at:])
    inner = tokens[:at]
    if not inner:
        raise InvalidSyntax("a query is expected before WITH", hint=_example(kind), span=_span(tokens[0]))
    places = None
    if parameters is not None and at is not None and any(one.kind is Kind.PARAMETER for one in tokens[at:]):
        options, places = _bound(tokens, options, sql, parameters)
        sql = _renumbered(sql, inner, places)
    query = _padded(sql, inner) if family is None else _model_query(sql, inner)
    return CreateCommand(kind, name, query, options, instead, unless, family, span, places, database)


def _kind(words: Words) -> str | None:
    if words.accept("synthetic", "table"):
        return TABLE
    return MODEL if words.accept("model") else None


def _drop(words: Words) -> DropCommand | None:
    words.take()
    kind = _kind(words)
    if kind is None:
        return None
    there = words.accept("if", "exists")
    name, span, database = _name(words)
    words.end()
    return DropCommand(kind, name, there, span, database)


def _show(words: Words) -> ShowMadeCommand | None:
    words.take()
    name, span, database = None, None, None
    if words.accept("synthetic", "tables"):
        kind = TABLE
    elif words.accept("models"):
        kind = MODEL
    else:
        one = _kind(words)
        if one is None:
            return None
        kind = one
        name, span, database = _name(words)
    json = words.accept("(", "format", "json", ")")
    words.end()
    return ShowMadeCommand(kind, name, json, span, database)


def _name(words: Words) -> tuple[str, Span, str | None]:
    """A name; public. may stand before it, and the database's before that."""
    qualifiers: list[str] = []
    token = words.next
    name = words.name()
    assert token is not None
    first = token
    while len(qualifiers) < 2 and words.accept("."):
        qualifiers.append(name)
        token = words.next
        name = words.name()
        assert token is not None
    if qualifiers and qualifiers[-1].lower() not in ("public", "main"):
        raise no_schema(qualifiers[-1], Span(first.start, token.end))
    if not name or name.startswith("_") or len(name) > 63:
        raise InvalidSyntax(
            f'"{name}" cannot be a name', hint="A name has 1 to 63 characters and does not begin with _.",
            span=_span(token), sqlstate="42602",
        )  # fmt: skip
    return name, Span(first.start, token.end), qualifiers[0] if len(qualifiers) == 2 else None


def no_schema(name: str, span: Span | None) -> UnknownTable:
    return UnknownTable(f'there is no schema "{name}"', hint="Write the table's name alone.", span=span)


def _family(words: Words) -> str:
    token = words.next
    word = words.word()
    if word not in FAMILIES:
        raise InvalidSyntax(f'there is no model of the kind "{word}"', hint=_example(MODEL),
                            span=None if token is None else _span(token))  # fmt: skip
    words.expect("regression")
    words.expect("on")
    return word


# --- options ---------------------------------------------------------------------------------------------------------


def _bound(
    tokens: list[Token], options: tuple[Option, ...], sql: str, parameters: Sequence[Parameter]
) -> tuple[tuple[Option, ...], tuple[int, ...]]:
    """The options with their values, and the places of the query's: the first of all are its."""
    bind(tokenize(sql), parameters)  # they are counted, and numbered, over the whole statement
    marks = [token for token in tokens if token.kind is Kind.PARAMETER]
    at = {mark.start: place if mark.text == "?" else int(mark.text[1:]) - 1 for place, mark in enumerate(marks)}
    taken: list[Option] = []
    for option in options:
        inside = [mark for mark in marks if option.span.start <= mark.start < option.span.end]
        if inside and option.value != inside[0].text:
            raise not_whole(_span(inside[0]))
        place = at[inside[0].start] if inside else None
        value = option.value if place is None else literal(parameters[place]).text
        taken.append(replace(option, value=value, place=place))
    first = min((option.span.start for option in options), default=0)
    return tuple(taken), tuple(sorted({place for start, place in at.items() if start < first}))


def _renumbered(sql: str, tokens: list[Token], places: tuple[int, ...]) -> str:
    """The text with $1, $2, … for the query's own parameters; no number becomes longer, so all stays in its place."""
    for token in tokens:
        if token.kind is Kind.PARAMETER and token.text != "?":
            number = places.index(int(token.text[1:]) - 1) + 1
            sql = sql[: token.start] + f"${number}".ljust(len(token.text)) + sql[token.end :]
    return sql


# --- the query within ------------------------------------------------------------------------------------------------


def _padded(sql: str, tokens: list[Token]) -> str:
    """The query in its place, with spaces before it."""
    return " " * tokens[0].start + sql[tokens[0].start : tokens[-1].end]


def _model_query(sql: str, tokens: list[Token]) -> str:
    """label USING a, b FROM … as SELECT label, a, b FROM …, each word in its place."""
    at = _word_at(tokens, "using", 0)
    from_ = None if at is None else _word_at(tokens, "from", at)
    if at is None or from_ is None or at == 0 or from_ == at + 1:
        raise InvalidSyntax("a model has a label, features and rows", hint=_example(MODEL), span=_span(tokens[0]))
    label, using = tokens[0].start, tokens[at]
    select = "SELECT"  # stands where REGRESSION ON stood
    text = " " * (label - len(select) - 1) + select + " " + sql[label : using.start]
    return text + ",".ljust(len(using.text)) + sql[using.end : tokens[-1].end]


def written_columns(statement: str) -> tuple[str, ...]:
    """The label and the features of CREATE MODEL, each without its alias.

    >>> written_columns("CREATE MODEL m AS LOGISTIC REGRESSION ON (cost > 9) AS dear USING age, f(a, b) AS c FROM t")
    ('(cost > 9)', 'age', 'f(a, b)')
    """
    tokens = Words(statement).remaining()
    on = _word_at(tokens, "on", 0)
    using = None if on is None else _word_at(tokens, "using", on)
    from_ = None if using is None else _word_at(tokens, "from", using)
    if on is None or using is None or from_ is None:
        return ()
    parts = (tokens[on + 1 : using], *_parts(tokens[using + 1 : from_]))
    return tuple(_without_alias(statement, part) for part in parts)


def _parts(tokens: list[Token]) -> list[list[Token]]:
    """At commas that stand in no parentheses."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _without_alias(sql: str, tokens: list[Token]) -> str:
    named = len(tokens) > 2 and tokens[-2].text.lower() == "as"
    kept = tokens[:-2] if named else tokens
    return " ".join(sql[kept[0].start : kept[-1].end].split()) if kept else ""


def _word_at(tokens: list[Token], word: str, start: int) -> int | None:
    depth = 0
    for at, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if at >= start and depth == 0 and token.kind is Kind.WORD and token.text.lower() == word:
            return at
    return None


def _span(token: Token) -> Span:
    return Span(token.start, token.end)


def _example(kind: str) -> str:
    if kind == TABLE:
        return "For example: CREATE SYNTHETIC TABLE visits_like AS SELECT sex, cost FROM visits WITH (epsilon = 1)."
    return ("For example: CREATE MODEL m AS LOGISTIC REGRESSION ON readmitted USING age, cost FROM visits "
            "WITH (epsilon = 1).")  # fmt: skip
