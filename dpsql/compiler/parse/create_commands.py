"""CREATE, DROP and SHOW of what an analyst makes of private rows: synthetic tables and models.

    CREATE SYNTHETIC TABLE visits_like AS SELECT sex, cost FROM visits WITH (epsilon = 1, method = 'mwem')
    CREATE MODEL m AS LOGISTIC REGRESSION ON readmitted USING age, cost FROM visits WITH (epsilon = 1)

The query within is given out with the places of the whole text, so that errors point into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from dpsql.base.lexer import Token, TokenKind
from dpsql.compiler.parse.command_reader import CommandReader, find_options, read_with_options
from dpsql.compiler.parse.googlesql import Option
from dpsql.compiler.parse.parameters import Parameter, bind_parameters, partial_placeholder_error, to_literal
from dpsql.compiler.parse.parser import tokenize
from dpsql.errors import InvalidSyntax, Span, UnknownTable

T = TypeVar("T")

TABLE, MODEL = "synthetic table", "model"
MODEL_FAMILIES = ("logistic", "linear")


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

    def query_parameters(self, parameters: Sequence[T]) -> Sequence[T]:
        """Those of the statement that are the query's."""
        return parameters if self.places is None else [parameters[index] for index in self.places]


@dataclass(frozen=True)
class DropCommand:
    kind: str
    name: str
    if_there: bool
    span: Span | None = None
    database: str | None = None


@dataclass(frozen=True)
class ShowArtifactsCommand:
    """All of a kind, or one by its name; as JSON for programs."""

    kind: str
    name: str | None
    json: bool = False
    span: Span | None = None
    database: str | None = None


ArtifactCommand = CreateCommand | DropCommand | ShowArtifactsCommand


def read_artifact_command(sql: str, parameters: Sequence[Parameter] | None = None) -> ArtifactCommand | None:
    """The command that the text is; None where it is none of these. Without parameters, options say ? or $1."""
    reader = CommandReader(sql)
    match reader.next_token.text.lower() if reader.next_token is not None else "":
        case "create":
            return _read_create(reader, sql, parameters)
        case "drop":
            return _read_drop(reader)
        case "show":
            return _read_show(reader)
        case _:
            return None


def _read_create(reader: CommandReader, sql: str, parameters: Sequence[Parameter] | None) -> CreateCommand | None:
    reader.take_token()
    instead = reader.accept("or", "replace")
    kind = _read_kind(reader)
    if kind is None:
        return None
    unless = reader.accept("if", "not", "exists")
    if instead and unless:
        raise InvalidSyntax("OR REPLACE and IF NOT EXISTS exclude each other")
    name, span, database = _read_qualified_name(reader)
    reader.expect("as")
    family = _read_model_family(reader) if kind == MODEL else None
    first = reader.next_token
    if first is None:
        raise InvalidSyntax("a query is expected behind AS", hint=_example_hint(kind))
    tokens = reader.take_remaining()
    at = find_options(tokens)
    options = () if at is None else read_with_options(tokens[at:])
    inner = tokens[:at]
    if not inner:
        raise InvalidSyntax("a query is expected before WITH", hint=_example_hint(kind), span=_token_span(tokens[0]))
    indexes = None
    if parameters is not None and at is not None and any(token.kind is TokenKind.PARAMETER for token in tokens[at:]):
        options, indexes = _bind_options(tokens, options, sql, parameters)
        sql = _renumber_parameters(sql, inner, indexes)
    query = _pad_query(sql, inner) if family is None else _build_model_query(sql, inner)
    return CreateCommand(kind, name, query, options, instead, unless, family, span, indexes, database)


def _read_kind(reader: CommandReader) -> str | None:
    if reader.accept("synthetic", "table"):
        return TABLE
    return MODEL if reader.accept("model") else None


def _read_drop(reader: CommandReader) -> DropCommand | None:
    reader.take_token()
    kind = _read_kind(reader)
    if kind is None:
        return None
    there = reader.accept("if", "exists")
    name, span, database = _read_qualified_name(reader)
    reader.expect_end()
    return DropCommand(kind, name, there, span, database)


def _read_show(reader: CommandReader) -> ShowArtifactsCommand | None:
    reader.take_token()
    name, span, database = None, None, None
    if reader.accept("synthetic", "tables"):
        kind = TABLE
    elif reader.accept("models"):
        kind = MODEL
    else:
        named_kind = _read_kind(reader)
        if named_kind is None:
            return None
        kind = named_kind
        name, span, database = _read_qualified_name(reader)
    json = reader.accept("(", "format", "json", ")")
    reader.expect_end()
    return ShowArtifactsCommand(kind, name, json, span, database)


def _read_qualified_name(reader: CommandReader) -> tuple[str, Span, str | None]:
    """A name; public. may stand before it, and the database's before that."""
    qualifiers: list[str] = []
    token = reader.next_token
    name = reader.read_name()
    assert token is not None
    first = token
    while len(qualifiers) < 2 and reader.accept("."):
        qualifiers.append(name)
        token = reader.next_token
        name = reader.read_name()
        assert token is not None
    if qualifiers and qualifiers[-1].lower() not in ("public", "main"):
        raise unknown_schema_error(qualifiers[-1], Span(first.start, token.end))
    if not name or name.startswith("_") or len(name) > 63:
        raise InvalidSyntax(
            f'"{name}" cannot be a name', hint="A name has 1 to 63 characters and does not begin with _.",
            span=_token_span(token), sqlstate="42602",
        )  # fmt: skip
    return name, Span(first.start, token.end), qualifiers[0] if len(qualifiers) == 2 else None


def unknown_schema_error(name: str, span: Span | None) -> UnknownTable:
    return UnknownTable(f'there is no schema "{name}"', hint="Write the table's name alone.", span=span)


def _read_model_family(reader: CommandReader) -> str:
    token = reader.next_token
    word = reader.read_word()
    if word not in MODEL_FAMILIES:
        raise InvalidSyntax(f'there is no model of the kind "{word}"', hint=_example_hint(MODEL),
                            span=None if token is None else _token_span(token))  # fmt: skip
    reader.expect("regression")
    reader.expect("on")
    return word


# --- options ---------------------------------------------------------------------------------------------------------


def _bind_options(
    tokens: list[Token], options: tuple[Option, ...], sql: str, parameters: Sequence[Parameter]
) -> tuple[tuple[Option, ...], tuple[int, ...]]:
    """The options with their values, and the places of the query's: the first of all are its."""
    bind_parameters(tokenize(sql), parameters)  # they are counted, and numbered, over the whole statement
    marks = [token for token in tokens if token.kind is TokenKind.PARAMETER]
    indexes = {mark.start: index if mark.text == "?" else int(mark.text[1:]) - 1 for index, mark in enumerate(marks)}
    bound_options: list[Option] = []
    for option in options:
        inside = [mark for mark in marks if option.span.start <= mark.start < option.span.end]
        if inside and option.value != inside[0].text:
            raise partial_placeholder_error(_token_span(inside[0]))
        index = indexes[inside[0].start] if inside else None
        value = option.value if index is None else to_literal(parameters[index]).text
        bound_options.append(replace(option, value=value, place=index))
    first = min((option.span.start for option in options), default=0)
    return tuple(bound_options), tuple(sorted({index for start, index in indexes.items() if start < first}))


def _renumber_parameters(sql: str, tokens: list[Token], indexes: tuple[int, ...]) -> str:
    """The text with $1, $2, … for the query's own parameters; no number becomes longer, so all stays in its place."""
    for token in tokens:
        if token.kind is TokenKind.PARAMETER and token.text != "?":
            number = indexes.index(int(token.text[1:]) - 1) + 1
            sql = sql[: token.start] + f"${number}".ljust(len(token.text)) + sql[token.end :]
    return sql


# --- the query within ------------------------------------------------------------------------------------------------


def _pad_query(sql: str, tokens: list[Token]) -> str:
    """The query in its place, with spaces before it."""
    return " " * tokens[0].start + sql[tokens[0].start : tokens[-1].end]


def _build_model_query(sql: str, tokens: list[Token]) -> str:
    """label USING a, b FROM … as SELECT label, a, b FROM …, each word in its place."""
    at = _find_word(tokens, "using", 0)
    from_ = None if at is None else _find_word(tokens, "from", at)
    if at is None or from_ is None or at == 0 or from_ == at + 1:
        raise InvalidSyntax(
            "a model has a label, features and rows", hint=_example_hint(MODEL), span=_token_span(tokens[0])
        )
    label, using = tokens[0].start, tokens[at]
    select = "SELECT"  # stands where REGRESSION ON stood
    text = " " * (label - len(select) - 1) + select + " " + sql[label : using.start]
    return text + ",".ljust(len(using.text)) + sql[using.end : tokens[-1].end]


def model_column_texts(statement: str) -> tuple[str, ...]:
    """The label and the features of CREATE MODEL, each without its alias.

    >>> model_column_texts("CREATE MODEL m AS LOGISTIC REGRESSION ON (cost > 9) AS dear USING age, f(a, b) AS c FROM t")
    ('(cost > 9)', 'age', 'f(a, b)')
    """
    tokens = CommandReader(statement).take_remaining()
    on = _find_word(tokens, "on", 0)
    using = None if on is None else _find_word(tokens, "using", on)
    from_ = None if using is None else _find_word(tokens, "from", using)
    if on is None or using is None or from_ is None:
        return ()
    parts = (tokens[on + 1 : using], *_split_at_commas(tokens[using + 1 : from_]))
    return tuple(_strip_alias(statement, part) for part in parts)


def _split_at_commas(tokens: list[Token]) -> list[list[Token]]:
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


def _strip_alias(sql: str, tokens: list[Token]) -> str:
    named = len(tokens) > 2 and tokens[-2].text.lower() == "as"
    expression = tokens[:-2] if named else tokens
    return " ".join(sql[expression[0].start : expression[-1].end].split()) if expression else ""


def _find_word(tokens: list[Token], word: str, start: int) -> int | None:
    depth = 0
    for at, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if at >= start and depth == 0 and token.kind is TokenKind.WORD and token.text.lower() == word:
            return at
    return None


def _token_span(token: Token) -> Span:
    return Span(token.start, token.end)


def _example_hint(kind: str) -> str:
    if kind == TABLE:
        return "For example: CREATE SYNTHETIC TABLE visits_like AS SELECT sex, cost FROM visits WITH (epsilon = 1)."
    return ("For example: CREATE MODEL m AS LOGISTIC REGRESSION ON readmitted USING age, cost FROM visits "
            "WITH (epsilon = 1).")  # fmt: skip
