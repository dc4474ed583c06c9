"""Syntax errors in our words, with a hint for the slips that are made most."""

from __future__ import annotations

import re
from difflib import get_close_matches

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.compiler.parse.dialect import TOO_MANY_ARGUMENTS, WRONG_ARGUMENT_COUNT, span_of
from dpsql.errors import InvalidSyntax, Span

_KEYWORDS = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "JOIN", "UNION", "BETWEEN",
             "DISTINCT", "VALUES", "WITH", "INNER", "LEFT", "USING", "WINDOW", "PARTITION", "OVER")  # fmt: skip
_OPERAND_ENDS = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN)
_OPERAND_STARTS = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.CASE)
# The parser points at the last word also where one more is missing behind it.
_INCOMPLETE_MESSAGES = ("Required keyword", "Expecting", "Expected")


_INCOMPLETE_AFTER = {TokenType.COMMA, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.PARTITION_BY, TokenType.ALIAS,
         TokenType.USING, TokenType.BETWEEN, TokenType.AND, TokenType.FROM, TokenType.FOR}  # fmt: skip
"""Words behind which something must stand; the parser lets them end a clause."""
_CLAUSE_STARTS = {TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT,
            TokenType.OFFSET, TokenType.FETCH, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT,
            TokenType.QUALIFY, TokenType.R_PAREN, TokenType.SEMICOLON}  # fmt: skip


def check_statement_complete(tokens: list[Token], sql: str) -> None:
    """Raise, with the place, where a statement breaks off: what was meant to follow may change what it asks.

    DuckDB's comma before FROM may stand.
    """
    for index, token in enumerate(tokens):
        named = index and tokens[index - 1].token_type in (TokenType.DOT, TokenType.ALIAS)
        over = token.token_type is TokenType.OVER and index and tokens[index - 1].token_type is TokenType.R_PAREN
        if named or not (token.token_type in _INCOMPLETE_AFTER or over):
            continue
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if after is None or (after.token_type is TokenType.SEMICOLON and index + 2 == len(tokens)):
            raise InvalidSyntax("syntax error at the end of the statement", span=Span(len(sql), len(sql)))
        if after.token_type in _CLAUSE_STARTS:
            raise InvalidSyntax(
                f'syntax error at or near "{sql[after.start : after.end + 1]}"', span=_token_span(after)
            )


def syntax_error(error: ParseError, tokens: list[Token], sql: str) -> InvalidSyntax:
    details = error.errors[0] if error.errors else {}
    why = str(details.get("description") or "")
    words = [token for token in tokens if token.token_type is not TokenType.SEMICOLON]
    index = _error_index(details, words, sql)
    here = words[index] if index is not None else None
    span = Span(len(sql), len(sql)) if here is None else _token_span(here)
    if why.startswith((TOO_MANY_ARGUMENTS, WRONG_ARGUMENT_COUNT)):
        return _argument_count_error(_find_called_name(words, index), why.startswith(TOO_MANY_ARGUMENTS))
    duplicate = re.match(r"Found multiple '(.+)' clauses", why)
    if duplicate is not None:
        return InvalidSyntax(f"{duplicate[1]} stands twice in one SELECT", span=span)
    hint = _syntax_hint(words, index, why)
    if here is None or (index == len(words) - 1 and why.startswith(_INCOMPLETE_MESSAGES)):
        return InvalidSyntax("syntax error at the end of the statement", hint=hint, span=Span(len(sql), len(sql)))
    return InvalidSyntax(f'syntax error at or near "{sql[here.start : here.end + 1]}"', hint=hint, span=span)


def _error_index(details: dict[str, object], tokens: list[Token], sql: str) -> int | None:
    """The token that the parser stopped at; it tells line and last column of it."""
    if not details.get("highlight"):
        return None
    line, column = int(str(details.get("line") or 1)), int(str(details.get("col") or 1))
    offset = sum(len(text) + 1 for text in sql.split("\n")[: line - 1]) + column - 1
    return next((index for index, token in enumerate(tokens) if token.start <= offset <= token.end), None)


def _argument_count_error(name: Token | None, more: bool) -> InvalidSyntax:
    what, span = ("a function", None) if name is None else (f'"{name.text}"', _token_span(name))
    if more:
        return InvalidSyntax(f"{what} has too many arguments", span=span, sqlstate="42883")
    return InvalidSyntax(f"{what} has a wrong number of arguments", span=span, sqlstate="42883")


def _find_called_name(words: list[Token], index: int | None) -> Token | None:
    """The name before the parenthesis in which a place is."""
    depth = 0
    for at in range((len(words) if index is None else index) - 1, 0, -1):
        depth += (words[at].token_type is TokenType.R_PAREN) - (words[at].token_type is TokenType.L_PAREN)
        if depth < 0:
            return words[at - 1]
    return None


def _syntax_hint(words: list[Token], index: int | None, why: str) -> str | None:
    here = words[index] if index is not None else None
    before = words[index - 1] if index else None
    balance = sum((t.token_type is TokenType.L_PAREN) - (t.token_type is TokenType.R_PAREN) for t in words)
    return (
        _missing_by_hint(before)
        or _select_top_hint(before, here)
        or misspelled_keyword_hint(before)
        or misspelled_keyword_hint(here)
        or _parentheses_hint(balance)
        or _expected_word_hint(why)
        or _backtick_hint(here)
        or _missing_comma_hint(before, here)
    )


def refuse_null_comparisons(tree: exp.Expr) -> None:
    """What can be read, but never means what was written."""
    for node in tree.find_all(exp.EQ, exp.NEQ):
        sides = (node.this, node.expression)
        if any(isinstance(side, exp.Null) for side in sides):
            other = next((side for side in sides if not isinstance(side, exp.Null)), node.this)
            word = "IS NULL" if isinstance(node, exp.EQ) else "IS NOT NULL"
            raise InvalidSyntax(
                "a comparison with NULL is never true",
                hint=f"Write {other.sql(dialect='postgres')} {word}.",
                span=span_of(node),
            )


def misspelled_keyword_hint(token: Token | None) -> str | None:
    if token is None or token.token_type is not TokenType.VAR or len(token.text) < 4:
        return None
    word = token.text.upper()
    if word in ("GROUPBY", "ORDERBY"):
        return f"Write {word[:5]} BY."
    close = get_close_matches(word, _KEYWORDS, n=1, cutoff=0.75)
    if not close or close[0] == word:
        return None
    return f"Perhaps you meant {close[0]} instead of {token.text}."


def _missing_by_hint(before: Token | None) -> str | None:
    if before is not None and before.token_type is TokenType.VAR and before.text.upper() in ("ORDER", "GROUP"):
        return f"Write {before.text.upper()} BY."
    return None


def _select_top_hint(before: Token | None, here: Token | None) -> str | None:
    """SELECT TOP 10 …, as SQL Server has it."""
    if before is None or here is None or before.text.upper() != "TOP" or here.token_type is not TokenType.NUMBER:
        return None
    return f"Write LIMIT {here.text} at the end of the statement."


def _parentheses_hint(balance: int) -> str | None:
    if balance > 0:
        return 'A ")" is missing.' if balance == 1 else f'{balance} ")" are missing.'
    if balance < 0:
        return 'There is a ")" too many.' if balance == -1 else f'There are {-balance} ")" too many.'
    return None


def _expected_word_hint(why: str) -> str | None:
    """The parser names a word or sign that must come: "Expecting (", "Expected END after CASE"."""
    after = re.fullmatch(r"Expected ([A-Za-z ]+) after ([A-Z]+)", why)
    if after is not None:
        return f"{after[1]} is expected after {after[2]}."
    sign = re.fullmatch(r"Expecting (\S+)", why)
    return f'"{sign[1]}" is expected here.' if sign is not None else None


def _backtick_hint(here: Token | None) -> str | None:
    return 'Names are quoted with double quotes: "name".' if here is not None and here.text == "`" else None


def _missing_comma_hint(before: Token | None, here: Token | None) -> str | None:
    if (
        before is None
        or here is None
        or before.token_type not in _OPERAND_ENDS
        or here.token_type not in _OPERAND_STARTS
    ):
        return None
    return f'Perhaps a comma or an operator is missing before "{here.text}".'


def _token_span(token: Token) -> Span:
    return Span(token.start, token.end + 1)
