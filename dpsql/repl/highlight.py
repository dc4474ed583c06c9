"""Colours of typed text. Law: the fragments joined are the text, whatever it is."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.lex import TokenKind, Token, split_tokens
from dpsql.repl.words import KEYWORDS, FUNCTION_KEYWORDS, TYPE_NAMES

HIGHLIGHT_STYLES = ("keyword", "function", "string", "number", "comment", "name", "parameter", "operator", "command", "")
"""All that `highlight_sql` gives; "" is plain."""

_STYLE_OF_KIND = {
    TokenKind.SPACE: "",
    TokenKind.QUOTED: "name",
    TokenKind.STRING: "string",
    TokenKind.NUMBER: "number",
    TokenKind.COMMENT: "comment",
    TokenKind.PARAMETER: "parameter",
    TokenKind.OPERATOR: "operator",
    TokenKind.MARK: "",
}


def highlight_sql(text: str) -> list[tuple[str, str]]:
    """
    >>> highlight_sql("SELECT count(*)")
    [('keyword', 'SELECT'), ('', ' '), ('function', 'count'), ('', '('), ('operator', '*'), ('', ')')]
    """
    all_tokens = split_tokens(text)
    significant = [index for index, token in enumerate(all_tokens) if token.kind not in (TokenKind.SPACE, TokenKind.COMMENT)]
    around = {index: (before, after) for before, index, after in zip([-1, *significant], significant, [*significant[1:], -1], strict=False)}
    fragments: list[tuple[str, str]] = []
    for index, token in enumerate(all_tokens):
        if token.kind is TokenKind.BACKSLASH:
            fragments += _highlight_command(token.text)
        elif token.kind is TokenKind.WORD:
            before, after = around[index]
            fragments.append((_style_word(token, _token_at(all_tokens, before), _token_at(all_tokens, after)), token.text))
        else:
            fragments.append((_STYLE_OF_KIND[token.kind], token.text))
    return fragments


def _token_at(all_tokens: Sequence[Token], index: int) -> Token | None:
    return all_tokens[index] if index >= 0 else None


def _style_word(token: Token, before: Token | None, after: Token | None) -> str:
    word = token.text.lower()
    if before is not None and before.text == ".":
        return ""
    if after is not None and after.text == "(" and (word not in KEYWORDS or word in FUNCTION_KEYWORDS):
        return "function"
    typed = before is not None and (before.text == "::" or before.text.lower() == "as")
    literal = after is not None and after.kind is TokenKind.STRING
    if word in KEYWORDS or (word in TYPE_NAMES and (literal or typed)):
        return "keyword"
    return ""


def _highlight_command(text: str) -> list[tuple[str, str]]:
    """The name, and the rest of the line plain."""
    name = text.split(maxsplit=1)[0]
    return [("command", name), ("", text[len(name) :])] if len(name) < len(text) else [("command", text)]
