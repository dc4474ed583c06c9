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
from dpsql.sql.dialect import DOLLAR_SIGN, AnalystDialect, span_of
from dpsql.sql.long_numbers import join_number_tokens
from dpsql.sql.options import Option, rewrite_googlesql_aggregates, extract_options
from dpsql.sql.parameters import MAX_NUMBER_DIGITS, Parameter, bind_parameters, find_foreign_placeholder, has_lone_surrogate, placeholder_style_error
from dpsql.sql.parentheses import remove_redundant_parentheses
from dpsql.sql.refused import refuse_statement
from dpsql.sql.slips import check_statement_complete, misspelled_keyword_hint, syntax_error

MAX_CHARACTERS = 1_000_000
MAX_TOKENS = 50_000
MAX_DEPTH = 200
"""sqlglot overflows the stack at some 300 parentheses."""

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_QUERY_STARTS = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.VALUES, TokenType.FROM}
_QUERY_ENDINGS = {TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH, TokenType.SEMICOLON}
_PREFIX_OPERATORS = {TokenType.NOT, TokenType.DASH, TokenType.TILDE, TokenType.PLUS}


@dataclass(frozen=True)
class ParsedQuery:
    """One query, and what GoogleSQL's OPTIONS asked for it."""

    query: exp.Query
    options: tuple[Option, ...]


def parse_query(sql: str, parameters: Sequence[Parameter] = ()) -> exp.Query:
    """The tree of one SELECT statement without options of its own."""
    parsed = parse_query_with_options(sql, parameters)
    if parsed.options:
        raise Unsupported("options cannot stand here", span=parsed.options[0].span)
    return parsed.query


def check_placeholder_style(sql: str) -> None:
    """Raise, with its place, if a placeholder is written as other drivers do."""
    foreign = find_foreign_placeholder(tokenize(sql))
    if foreign is not None:
        error = placeholder_style_error(foreign)
        error.statement = sql
        raise error


def parse_query_with_options(sql: str, parameters: Sequence[Parameter] = ()) -> ParsedQuery:
    tokens = bind_parameters(normalize_tokens(tokenize(sql)), parameters)
    check_token_depth(tokens)
    _check_query_start(tokens)
    check_statement_complete(tokens, sql)
    tokens, options = extract_options(rewrite_googlesql_aggregates(tokens))
    try:
        trees = AnalystDialect().parser().parse(tokens, sql)
    except ParseError as error:
        foreign = find_foreign_placeholder(tokens)
        raise (syntax_error(error, tokens, sql) if foreign is None else placeholder_style_error(foreign)) from None
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply") from None
    statements = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(statements) > 1:
        raise InvalidSyntax("one statement at a time", hint="Send each statement on its own.")
    tree = statements[0] if not isinstance(statements[0], exp.Values) else _select_values(statements[0])
    if not isinstance(tree, exp.Query):
        raise InvalidSyntax("only SELECT is a query", span=Span(tokens[0].start, tokens[0].end + 1))
    if options is not None and not isinstance(tree, exp.Select):
        raise Unsupported("WITH DIFFERENTIAL_PRIVACY cannot stand in a UNION, INTERSECT or EXCEPT",
                          hint="SELECT WITH DIFFERENTIAL_PRIVACY … FROM (SELECT … UNION …).")  # fmt: skip
    _check_tree_depth(tree)
    if tree.find(exp.Placeholder, exp.Parameter) is not None:
        raise placeholder_style_error(find_foreign_placeholder(tokens))
    return ParsedQuery(remove_redundant_parentheses(tree), options or ())


def _select_values(values: exp.Values) -> exp.Select:
    """VALUES as a statement of its own, with the names that PostgreSQL gives its columns."""
    width = max((len(row.expressions) for row in values.expressions if isinstance(row, exp.Tuple)), default=1)
    names = [exp.to_identifier(f"column{number}") for number in range(1, width + 1)]
    values.set("alias", exp.TableAlias(this=exp.to_identifier("values", quoted=True), columns=names))
    return exp.select("*").from_(values)


def tokenize(sql: str) -> list[Token]:
    if len(sql) > MAX_CHARACTERS:
        raise LimitExceeded(f"the statement has more than {MAX_CHARACTERS} characters")
    if "\x00" in sql:
        raise InvalidSyntax("the statement holds a zero byte")
    if has_lone_surrogate(sql):
        raise InvalidSyntax("the statement holds half of a character")
    signs = _find_dollar_signs(sql)
    try:
        tokens = join_number_tokens(list(AnalystDialect().tokenize(_mask_dollar_signs(sql, signs))), sql)
    except TokenError:
        raise InvalidSyntax("the statement ends within a quoted text, name or comment") from None
    if len(tokens) > MAX_TOKENS:
        raise LimitExceeded(f"the statement has more than {MAX_TOKENS} words")
    for token in tokens:
        _check_token(token, sql)
    return _unmask_dollar_signs(tokens, signs, sql) if signs else tokens


def _find_dollar_signs(sql: str) -> frozenset[int]:
    """Where a $ stands that is no part of a quoted text, name or comment: that of a $n, or one that is wrong."""
    if "$" not in sql:
        return frozenset()
    return frozenset(token.start for token in lex.split_tokens(sql) if token.text[0] == "$" and token.kind is not lex.TokenKind.STRING)


def _mask_dollar_signs(sql: str, signs: Collection[int]) -> str:
    """Each of them as one token, of the same length."""
    return "".join(DOLLAR_SIGN if at in signs else character for at, character in enumerate(sql)) if signs else sql


def _unmask_dollar_signs(tokens: list[Token], signs: Collection[int], sql: str) -> list[Token]:
    """Each is a $ again, also in the rest of a command, which the tokenizer takes for one text."""
    if DOLLAR_SIGN in sql and sum(token.text == DOLLAR_SIGN for token in tokens) < len(signs):
        raise InvalidSyntax("a $ stands where no placeholder can")
    unchanged = [token.start not in signs and (DOLLAR_SIGN in sql or DOLLAR_SIGN not in token.text) for token in tokens]
    pairs = zip(tokens, unchanged, strict=True)
    return [masked if is_unchanged else _retype_token(masked, masked.token_type, masked.text.replace(DOLLAR_SIGN, "$")) for masked, is_unchanged in pairs]


def _check_token(token: Token, sql: str) -> None:
    span = Span(token.start, token.end + 1)
    if token.token_type is TokenType.NUMBER and len(token.text) > MAX_NUMBER_DIGITS:
        raise LimitExceeded(f"a number is too large: it has more than {MAX_NUMBER_DIGITS} digits", span=span)
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


_TEXT_TOKENS = {TokenType.BYTE_STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING}
"""E'…' and $$…$$: texts, whose escapes the tokenizer has resolved."""


def normalize_tokens(tokens: list[Token]) -> list[Token]:
    """Texts of all spellings are texts; TABLE t is SELECT * FROM t, and PIVOT … is SELECT * FROM (PIVOT …)."""
    plain = [_retype_token(token, TokenType.STRING) if token.token_type in _TEXT_TOKENS else token for token in tokens]
    if len(plain) > 1 and plain[0].token_type is TokenType.TABLE:
        return [*_select_star_tokens(plain[0]), *plain[1:]]
    start, end = _find_pivot_statement(plain)
    if start is None:
        return plain
    opening = _retype_token(plain[start], TokenType.L_PAREN, "(")
    closing = _retype_token(plain[end - 1], TokenType.R_PAREN, ")")
    return [*plain[:start], *_select_star_tokens(plain[start]), opening, *plain[start:end], closing, *plain[end:]]


def _select_star_tokens(token: Token) -> list[Token]:
    words = ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"))
    return [_retype_token(token, kind, text) for kind, text in words]


def _find_pivot_statement(tokens: list[Token]) -> tuple[int | None, int]:
    """Where PIVOT or UNPIVOT is the statement itself, perhaps behind WITH, and where ORDER BY or the end follows."""
    depth, start = 0, None
    for at, token in enumerate(tokens):
        kind = token.token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth or kind in _CLOSING:
            continue
        if start is not None and kind in _QUERY_ENDINGS:
            return start, at
        if start is None and kind in (TokenType.SELECT, TokenType.FROM, TokenType.VALUES):
            return None, 0
        if start is None and kind in (TokenType.PIVOT, TokenType.UNPIVOT):
            start = at
    return start, len(tokens)


def _retype_token(token: Token, kind: TokenType, text: str | None = None) -> Token:
    return Token(kind, token.text if text is None else text, token.line, token.col, token.start, token.end)


def check_token_depth(tokens: list[Token]) -> None:
    depth = prefixes = 0
    for token in tokens:
        prefixes = prefixes + 1 if token.token_type in _PREFIX_OPERATORS else 0
        if token.token_type in _OPENING:
            depth += 1
        elif token.token_type in _CLOSING:
            depth -= 1
        if depth > MAX_DEPTH or prefixes > MAX_DEPTH:
            raise LimitExceeded(
                f"the statement is nested more than {MAX_DEPTH} deep", span=Span(token.start, token.end + 1)
            )


def _check_query_start(tokens: list[Token]) -> None:
    """Only queries go to the parser, which would take some other statements for commands and pass them on."""
    words = [token for token in tokens if token.token_type is not TokenType.SEMICOLON]
    if not words:
        raise InvalidSyntax("the statement is empty", hint="Write a SELECT, for example: SELECT COUNT(*) FROM visits")
    first = words[0]
    if first.token_type in _QUERY_STARTS:
        return
    span = Span(first.start, first.end + 1)
    refuse_statement("".join(first.text.split()[:1]), span)
    hint = "A query starts with SELECT." if len(words) == 1 else misspelled_keyword_hint(first)
    raise InvalidSyntax(f'syntax error at or near "{first.text}"', hint=hint, span=span)


def _check_tree_depth(tree: exp.Expr) -> None:
    """Chains such as a + a + a … are deep without parentheses; AND and OR are flattened and may be long."""
    stack = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, exp.Select) and not node.expressions:
            raise InvalidSyntax("SELECT needs at least one column", hint="For example: SELECT COUNT(*) FROM visits")
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Identifier | exp.Star):
            raise InvalidSyntax("a column's name is expected after the point", span=span_of(node))
        if depth > 2 * MAX_DEPTH:
            raise LimitExceeded(f"the statement is nested more than {MAX_DEPTH} deep")
        for child in node.iter_expressions():
            chained = isinstance(child, exp.Connector) and type(child) is type(node)
            stack.append((child, depth if chained else depth + 1))
