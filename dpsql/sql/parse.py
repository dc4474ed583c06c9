"""SQL text to one syntax tree, with limits checked on tokens before any recursion."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from dpsql import lex
from dpsql.errors import InvalidSyntax, LimitExceeded, Unsupported
from dpsql.span import Span
from dpsql.sql.dialect import SIGN, Reader, span_of
from dpsql.sql.long_numbers import with_long_numbers
from dpsql.sql.options import Option, plain_aggregates, take_options
from dpsql.sql.parameters import MOST_DIGITS, Parameter, bind, foreign_placeholder, holds_half, not_ours
from dpsql.sql.parentheses import without_parentheses
from dpsql.sql.refused import refuse
from dpsql.sql.slips import check_ended, misspelt, syntax_error

MOST_CHARACTERS = 1_000_000
MOST_TOKENS = 50_000
MOST_DEPTH = 200
"""sqlglot overflows the stack at some 300 parentheses."""

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_STARTS = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.VALUES, TokenType.FROM}
_ENDINGS = {TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH, TokenType.SEMICOLON}
_PREFIXES = {TokenType.NOT, TokenType.DASH, TokenType.TILDE, TokenType.PLUS}


@dataclass(frozen=True)
class Parsed:
    """One query, and what GoogleSQL's OPTIONS asked for it."""

    query: exp.Query
    options: tuple[Option, ...]


def parse(sql: str, parameters: Sequence[Parameter] = ()) -> exp.Query:
    """The tree of one SELECT statement without options of its own."""
    parsed = read_query(sql, parameters)
    if parsed.options:
        raise Unsupported("options cannot stand here", span=parsed.options[0].span)
    return parsed.query


def check_marks(sql: str) -> None:
    """Raise, with its place, if a placeholder is written as other drivers do."""
    foreign = foreign_placeholder(tokenize(sql))
    if foreign is not None:
        error = not_ours(foreign)
        error.statement = sql
        raise error


def read_query(sql: str, parameters: Sequence[Parameter] = ()) -> Parsed:
    tokens = bind(plain_spellings(tokenize(sql)), parameters)
    check_depth(tokens)
    _check_start(tokens)
    check_ended(tokens, sql)
    tokens, options = take_options(plain_aggregates(tokens))
    try:
        trees = Reader().parser().parse(tokens, sql)
    except ParseError as error:
        foreign = foreign_placeholder(tokens)
        raise (syntax_error(error, tokens, sql) if foreign is None else not_ours(foreign)) from None
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply") from None
    statements = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(statements) > 1:
        raise InvalidSyntax("one statement at a time", hint="Send each statement on its own.")
    tree = statements[0] if not isinstance(statements[0], exp.Values) else _selected(statements[0])
    if not isinstance(tree, exp.Query):
        raise InvalidSyntax("only SELECT is a query", span=Span(tokens[0].start, tokens[0].end + 1))
    if options is not None and not isinstance(tree, exp.Select):
        raise Unsupported("WITH DIFFERENTIAL_PRIVACY cannot stand in a UNION, INTERSECT or EXCEPT",
                          hint="SELECT WITH DIFFERENTIAL_PRIVACY … FROM (SELECT … UNION …).")  # fmt: skip
    _check_tree(tree)
    if tree.find(exp.Placeholder, exp.Parameter) is not None:
        raise not_ours(foreign_placeholder(tokens))
    return Parsed(without_parentheses(tree), options or ())


def _selected(values: exp.Values) -> exp.Select:
    """VALUES as a statement of its own, with the names that PostgreSQL gives its columns."""
    width = max((len(row.expressions) for row in values.expressions if isinstance(row, exp.Tuple)), default=1)
    names = [exp.to_identifier(f"column{number}") for number in range(1, width + 1)]
    values.set("alias", exp.TableAlias(this=exp.to_identifier("values", quoted=True), columns=names))
    return exp.select("*").from_(values)


def tokenize(sql: str) -> list[Token]:
    if len(sql) > MOST_CHARACTERS:
        raise LimitExceeded(f"the statement has more than {MOST_CHARACTERS} characters")
    if "\x00" in sql:
        raise InvalidSyntax("the statement holds a zero byte")
    if holds_half(sql):
        raise InvalidSyntax("the statement holds half of a character")
    signs = _signs(sql)
    try:
        tokens = with_long_numbers(list(Reader().tokenize(_with_signs(sql, signs))), sql)
    except TokenError:
        raise InvalidSyntax("the statement ends within a quoted text, name or comment") from None
    if len(tokens) > MOST_TOKENS:
        raise LimitExceeded(f"the statement has more than {MOST_TOKENS} words")
    for token in tokens:
        _check_token(token, sql)
    return _without_signs(tokens, signs, sql) if signs else tokens


def _signs(sql: str) -> frozenset[int]:
    """Where a $ stands that is no part of a quoted text, name or comment: that of a $n, or one that is wrong."""
    if "$" not in sql:
        return frozenset()
    return frozenset(one.start for one in lex.tokens(sql) if one.text[0] == "$" and one.kind is not lex.Kind.STRING)


def _with_signs(sql: str, signs: Collection[int]) -> str:
    """Each of them as one token, of the same length."""
    return "".join(SIGN if at in signs else character for at, character in enumerate(sql)) if signs else sql


def _without_signs(tokens: list[Token], signs: Collection[int], sql: str) -> list[Token]:
    """Each is a $ again, also in the rest of a command, which the tokenizer takes for one text."""
    if SIGN in sql and sum(token.text == SIGN for token in tokens) < len(signs):
        raise InvalidSyntax("a $ stands where no placeholder can")
    kept = [token.start not in signs and (SIGN in sql or SIGN not in token.text) for token in tokens]
    pairs = zip(tokens, kept, strict=True)
    return [one if same else _retyped(one, one.token_type, one.text.replace(SIGN, "$")) for one, same in pairs]


def _check_token(token: Token, sql: str) -> None:
    span = Span(token.start, token.end + 1)
    if token.token_type is TokenType.NUMBER and len(token.text) > MOST_DIGITS:
        raise LimitExceeded(f"a number is too large: it has more than {MOST_DIGITS} digits", span=span)
    if token.token_type is TokenType.BYTE_STRING:
        if "\x00" in token.text:
            raise InvalidSyntax("the text holds a zero byte", span=span, sqlstate="22021")
        if "\\" in _ESCAPES.sub("", sql[span.start : span.end]):
            hint = "Write \\u and four, or \\U and eight hexadecimal digits of a character."
            raise InvalidSyntax("an escape is no character", hint=hint, span=span, sqlstate="22025")


_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u(?![dD][89a-fA-F])[\da-fA-F]{4}"
    r"|U(?!0000[dD][89a-fA-F])00(?:0[\da-fA-F]|10)[\da-fA-F]{4}|[^uU])",
    re.DOTALL,
)
"""Those of E'…' that are characters: no half of a pair alone, none past Unicode's last. sqlglot drops other's \\."""


_TEXTS = {TokenType.BYTE_STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING}
"""E'…' and $$…$$: texts, whose escapes the tokenizer has resolved."""


def plain_spellings(tokens: list[Token]) -> list[Token]:
    """Texts of all spellings are texts; TABLE t is SELECT * FROM t, and PIVOT … is SELECT * FROM (PIVOT …)."""
    plain = [_retyped(token, TokenType.STRING) if token.token_type in _TEXTS else token for token in tokens]
    if len(plain) > 1 and plain[0].token_type is TokenType.TABLE:
        return [*_all_of(plain[0]), *plain[1:]]
    place, end = _pivot_statement(plain)
    if place is None:
        return plain
    opening = _retyped(plain[place], TokenType.L_PAREN, "(")
    closing = _retyped(plain[end - 1], TokenType.R_PAREN, ")")
    return [*plain[:place], *_all_of(plain[place]), opening, *plain[place:end], closing, *plain[end:]]


def _all_of(token: Token) -> list[Token]:
    words = ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"))
    return [_retyped(token, kind, text) for kind, text in words]


def _pivot_statement(tokens: list[Token]) -> tuple[int | None, int]:
    """Where PIVOT or UNPIVOT is the statement itself, perhaps behind WITH, and where ORDER BY or the end follows."""
    depth, place = 0, None
    for at, token in enumerate(tokens):
        kind = token.token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth or kind in _CLOSING:
            continue
        if place is not None and kind in _ENDINGS:
            return place, at
        if place is None and kind in (TokenType.SELECT, TokenType.FROM, TokenType.VALUES):
            return None, 0
        if place is None and kind in (TokenType.PIVOT, TokenType.UNPIVOT):
            place = at
    return place, len(tokens)


def _retyped(token: Token, kind: TokenType, text: str | None = None) -> Token:
    return Token(kind, token.text if text is None else text, token.line, token.col, token.start, token.end)


def check_depth(tokens: list[Token]) -> None:
    depth = prefixes = 0
    for token in tokens:
        prefixes = prefixes + 1 if token.token_type in _PREFIXES else 0
        if token.token_type in _OPENING:
            depth += 1
        elif token.token_type in _CLOSING:
            depth -= 1
        if depth > MOST_DEPTH or prefixes > MOST_DEPTH:
            raise LimitExceeded(
                f"the statement is nested more than {MOST_DEPTH} deep", span=Span(token.start, token.end + 1)
            )


def _check_start(tokens: list[Token]) -> None:
    """Only queries go to the parser, which would take some other statements for commands and pass them on."""
    words = [token for token in tokens if token.token_type is not TokenType.SEMICOLON]
    if not words:
        raise InvalidSyntax("the statement is empty", hint="Write a SELECT, for example: SELECT COUNT(*) FROM visits")
    first = words[0]
    if first.token_type in _STARTS:
        return
    span = Span(first.start, first.end + 1)
    refuse("".join(first.text.split()[:1]), span)
    hint = "A query starts with SELECT." if len(words) == 1 else misspelt(first)
    raise InvalidSyntax(f'syntax error at or near "{first.text}"', hint=hint, span=span)


def _check_tree(tree: exp.Expr) -> None:
    """Chains such as a + a + a … are deep without parentheses; AND and OR are flattened and may be long."""
    stack = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, exp.Select) and not node.expressions:
            raise InvalidSyntax("SELECT needs at least one column", hint="For example: SELECT COUNT(*) FROM visits")
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Identifier | exp.Star):
            raise InvalidSyntax("a column's name is expected after the point", span=span_of(node))
        if depth > 2 * MOST_DEPTH:
            raise LimitExceeded(f"the statement is nested more than {MOST_DEPTH} deep")
        for child in node.iter_expressions():
            chained = isinstance(child, exp.Connector) and type(child) is type(node)
            stack.append((child, depth if chained else depth + 1))
