"""Colours of typed text. Law: the fragments joined are the text, whatever it is."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.lex import Kind, Token, tokens
from dpsql.repl.words import KEYWORDS, LIKE_FUNCTIONS, TYPES

STYLES = ("keyword", "function", "string", "number", "comment", "name", "parameter", "operator", "command", "")
"""All that `highlight` gives; "" is plain."""

_OF_KIND = {
    Kind.SPACE: "",
    Kind.QUOTED: "name",
    Kind.STRING: "string",
    Kind.NUMBER: "number",
    Kind.COMMENT: "comment",
    Kind.PARAMETER: "parameter",
    Kind.OPERATOR: "operator",
    Kind.MARK: "",
}


def highlight(text: str) -> list[tuple[str, str]]:
    """
    >>> highlight("SELECT count(*)")
    [('keyword', 'SELECT'), ('', ' '), ('function', 'count'), ('', '('), ('operator', '*'), ('', ')')]
    """
    found = tokens(text)
    said = [place for place, token in enumerate(found) if token.kind not in (Kind.SPACE, Kind.COMMENT)]
    around = {place: (before, after) for before, place, after in zip([-1, *said], said, [*said[1:], -1], strict=False)}
    fragments: list[tuple[str, str]] = []
    for place, token in enumerate(found):
        if token.kind is Kind.BACKSLASH:
            fragments += _command(token.text)
        elif token.kind is Kind.WORD:
            before, after = around[place]
            fragments.append((_word(token, _at(found, before), _at(found, after)), token.text))
        else:
            fragments.append((_OF_KIND[token.kind], token.text))
    return fragments


def _at(found: Sequence[Token], place: int) -> Token | None:
    return found[place] if place >= 0 else None


def _word(token: Token, before: Token | None, after: Token | None) -> str:
    word = token.text.lower()
    if before is not None and before.text == ".":
        return ""
    if after is not None and after.text == "(" and (word not in KEYWORDS or word in LIKE_FUNCTIONS):
        return "function"
    typed = before is not None and (before.text == "::" or before.text.lower() == "as")
    literal = after is not None and after.kind is Kind.STRING
    if word in KEYWORDS or (word in TYPES and (literal or typed)):
        return "keyword"
    return ""


def _command(text: str) -> list[tuple[str, str]]:
    """The name, and the rest of the line plain."""
    name = text.split(maxsplit=1)[0]
    return [("command", name), ("", text[len(name) :])] if len(name) < len(text) else [("command", text)]
