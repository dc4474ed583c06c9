"""CREATE, DROP and SHOW of what an analyst makes of private rows: synthetic tables and models.

    CREATE SYNTHETIC TABLE visits_like AS SELECT sex, cost FROM visits WITH (epsilon = 1, method = 'mwem')
    CREATE MODEL m AS LOGISTIC REGRESSION ON readmitted USING age, cost FROM visits WITH (epsilon = 1)

The query within is given out with the places of the whole text, so that errors point into it.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.errors import InvalidSyntax
from dpsql.lex import Kind, Token
from dpsql.span import Span
from dpsql.sql.options import Option
from dpsql.sql.with_options import options_at, read_options
from dpsql.sql.words import Words

TABLE, MODEL = "synthetic table", "model"
FAMILIES = ("logistic", "linear")


@dataclass(frozen=True)
class CreateCommand:
    """`query` gives the rows: of a model the label first, then the features. `family` is a model's kind."""

    kind: str
    name: str
    query: str
    options: tuple[Option, ...]
    instead: bool = False  # OR REPLACE
    unless_there: bool = False  # IF NOT EXISTS
    family: str | None = None
    span: Span | None = None  # of the name


@dataclass(frozen=True)
class DropCommand:
    kind: str
    name: str
    if_there: bool
    span: Span | None = None


@dataclass(frozen=True)
class ShowMadeCommand:
    """All of a kind, or one by its name; as JSON for programs."""

    kind: str
    name: str | None
    json: bool = False
    span: Span | None = None


MadeCommand = CreateCommand | DropCommand | ShowMadeCommand


def read_made_command(sql: str) -> MadeCommand | None:
    """The command that the text is; None where it is none of these."""
    words = Words(sql)
    match words.next.text.lower() if words.next is not None else "":
        case "create":
            return _create(words, sql)
        case "drop":
            return _drop(words)
        case "show":
            return _show(words)
        case _:
            return None


def _create(words: Words, sql: str) -> CreateCommand | None:
    words.take()
    instead = words.accept("or", "replace")
    kind = _kind(words)
    if kind is None:
        return None
    unless = words.accept("if", "not", "exists")
    if instead and unless:
        raise InvalidSyntax("OR REPLACE and IF NOT EXISTS exclude each other")
    name, span = _name(words)
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
    query = _padded(sql, inner) if family is None else _model_query(sql, inner)
    return CreateCommand(kind, name, query, options, instead, unless, family, span)


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
    name, span = _name(words)
    words.end()
    return DropCommand(kind, name, there, span)


def _show(words: Words) -> ShowMadeCommand | None:
    words.take()
    name, span = None, None
    if words.accept("synthetic", "tables"):
        kind = TABLE
    elif words.accept("models"):
        kind = MODEL
    else:
        one = _kind(words)
        if one is None:
            return None
        kind = one
        name, span = _name(words)
    json = words.accept("(", "format", "json", ")")
    words.end()
    return ShowMadeCommand(kind, name, json, span)


def _name(words: Words) -> tuple[str, Span]:
    token = words.next
    name = words.name()
    assert token is not None
    if not name or name.startswith("_") or len(name) > 63:
        raise InvalidSyntax(
            f'"{name}" cannot be a name', hint="A name has 1 to 63 characters and does not begin with _.",
            span=_span(token), sqlstate="42602",
        )  # fmt: skip
    return name, _span(token)


def _family(words: Words) -> str:
    token = words.next
    word = words.word()
    if word not in FAMILIES:
        raise InvalidSyntax(f'there is no model of the kind "{word}"', hint=_example(MODEL),
                            span=None if token is None else _span(token))  # fmt: skip
    words.expect("regression")
    words.expect("on")
    return word


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
