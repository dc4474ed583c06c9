"""WITH (epsilon = 1, method = 'mwem') behind a command."""

from __future__ import annotations

from dpsql.errors import InvalidSyntax
from dpsql.lex import TokenKind, Token
from dpsql.span import Span
from dpsql.sql.options import Option
from dpsql.sql.words import string_value


def find_options(tokens: list[Token]) -> int | None:
    """Where WITH ( … ) begins, if the statement ends with it."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        behind = tokens[at + 1 : at + 2]
        if depth == 0 and token.kind is TokenKind.WORD and token.text.lower() == "with" and behind and behind[0].text == "(":
            return at
    return None


def read_with_options(tokens: list[Token]) -> tuple[Option, ...]:
    """Of tokens that begin with WITH (."""
    if tokens[-1].text != ")":
        raise InvalidSyntax('a ")" is missing behind the options', span=_token_span(tokens[-1]))
    parts: list[list[Token]] = [[]]
    for token in tokens[2:-1]:
        if token.text == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    options = tuple(_read_option(part, tokens[0]) for part in parts) if parts != [[]] else ()
    names = [option.name for option in options]
    for option in options:
        if names.count(option.name) > 1:
            raise InvalidSyntax(f'the option "{option.name}" is given twice', span=option.span)
    return options


def _read_option(part: list[Token], clause: Token) -> Option:
    if len(part) < 3 or part[1].text != "=" or part[0].kind is not TokenKind.WORD:
        raise InvalidSyntax("an option is a name, = and a value", hint="For example: WITH (epsilon = 1).",
                            span=_token_span(part[0] if part else clause))  # fmt: skip
    text = string_value(part[2]) if part[2].kind is TokenKind.STRING else "".join(token.text for token in part[2:])
    return Option(part[0].text.lower(), text, Span(part[0].start, part[-1].end))


def _token_span(token: Token) -> Span:
    return Span(token.start, token.end)
