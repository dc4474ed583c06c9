"""GoogleSQL's differential privacy syntax, read from tokens, because the parser does not know it.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 3)
      SUM(x, contribution_bounds_per_row => (0, 10)) …

The options are taken out and become settings of the statement; bounds per row are CLIP of the argument. Bounds per
group clip what one unit adds to a group: they become a function of that name around the argument, for `group_bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors import InvalidSyntax, Unsupported
from dpsql.span import Span

CLAUSES = ("DIFFERENTIAL_PRIVACY", "ANONYMIZATION")
PER_ROW, PER_GROUP = "contribution_bounds_per_row", "contribution_bounds_per_group"
ANON = ("ANON_COUNT", "ANON_SUM", "ANON_AVG", "ANON_VAR_POP", "ANON_STDDEV_POP")

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_OF_ROWS = ("ANON_VAR_POP", "ANON_STDDEV_POP")
"""Aggregates whose CLAMPED BETWEEN is about rows, as in GoogleSQL."""


@dataclass(frozen=True)
class Option:
    """`place` is that of the parameter which its value was, from 0."""

    name: str
    value: str
    span: Span
    place: int | None = None


def take_options(tokens: list[Token]) -> tuple[list[Token], tuple[Option, ...] | None]:
    """The tokens without the clause, and its options; None where there is no such clause."""
    depth, selects, found = 0, 0, None
    for place, token in enumerate(tokens):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if token.token_type is not TokenType.SELECT:
            continue
        if _is_clause(tokens, place + 1):
            if depth or selects:
                raise Unsupported(
                    f"WITH {tokens[place + 2].text.upper()} stands in the outermost SELECT only",
                    hint="Its epsilon and delta are those of the whole statement.",
                    span=_span(tokens[place + 2]),
                )
            found = place + 1
        selects += depth == 0
    if found is None:
        return tokens, None
    options, end = _options(tokens, found + 2)
    return tokens[:found] + tokens[end:], options


def _is_clause(tokens: list[Token], place: int) -> bool:
    words = tokens[place : place + 2]
    return len(words) == 2 and words[0].token_type is TokenType.WITH and words[1].text.upper() in CLAUSES


def _options(tokens: list[Token], place: int) -> tuple[tuple[Option, ...], int]:
    if place >= len(tokens) or tokens[place].text.upper() != "OPTIONS":
        return (), place
    end = _closing(tokens, place + 1)
    inside = tokens[place + 2 : end]
    parts = _split(inside) if inside else []
    return tuple(_option(part, tokens[place]) for part in parts), end + 1


def _option(part: list[Token], clause: Token) -> Option:
    if len(part) < 3 or part[1].token_type is not TokenType.EQ:
        raise InvalidSyntax(
            "an option is a name, = and a value", hint="For example: OPTIONS (epsilon = 1, delta = 1e-6).",
            span=_span(part[0] if part else clause),
        )  # fmt: skip
    value = "".join(token.text for token in part[2:])
    return Option(part[0].text.lower(), value, Span(part[0].start, part[-1].end + 1))


def _closing(tokens: list[Token], place: int) -> int:
    """The place of the parenthesis that closes the one at `place`."""
    if place >= len(tokens) or tokens[place].token_type is not TokenType.L_PAREN:
        raise InvalidSyntax('"(" is expected here', span=_span(tokens[min(place, len(tokens) - 1)]))
    depth = 0
    for at in range(place, len(tokens)):
        depth += (tokens[at].token_type in _OPENING) - (tokens[at].token_type in _CLOSING)
        if depth == 0:
            return at
    raise InvalidSyntax('a ")" is missing', span=_span(tokens[place]))


def _split(tokens: list[Token]) -> list[list[Token]]:
    """At commas that stand in no parentheses."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if token.token_type is TokenType.COMMA and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


# --- aggregates ------------------------------------------------------------------------------------------------------


def plain_aggregates(tokens: list[Token]) -> list[Token]:
    """SUM(x, contribution_bounds_per_row => (0, 10)) as SUM(CLIP(x, 0, 10)); ANON_SUM(x) as SUM(x)."""
    if not any(token.text.upper() in ANON or token.text.lower() in (PER_ROW, PER_GROUP) for token in tokens):
        return tokens
    result = list(tokens)
    while (place := _anon(result)) is not None:
        result = _without_anon(result, place)
    while (place := _named_argument(result)) is not None:
        result = _clipped(result, place)
    return result


def _anon(tokens: list[Token]) -> int | None:
    for place, token in enumerate(tokens[:-1]):
        if token.text.upper() in ANON and tokens[place + 1].token_type is TokenType.L_PAREN:
            return place
    return None


def _without_anon(tokens: list[Token], place: int) -> list[Token]:
    """ANON_SUM(x CLAMPED BETWEEN 0 AND 10) as SUM(x, contribution_bounds_per_group => (0, 10))."""
    end = _closing(tokens, place + 1)
    name = _named(tokens[place], tokens[place].text[len("ANON_") :])
    clamped = next((at for at in range(place + 2, end) if tokens[at].text.upper() == "CLAMPED"), None)
    if clamped is None:
        return [*tokens[:place], name, *tokens[place + 1 :]]
    here, of_rows = tokens[clamped], tokens[place].text.upper() in _OF_ROWS
    joined = next((at for at in range(clamped, end) if tokens[at].token_type is TokenType.AND), None)
    if tokens[clamped + 1].token_type is not TokenType.BETWEEN or joined is None:
        raise InvalidSyntax(
            "CLAMPED takes BETWEEN and two bounds",
            hint="For example: ANON_SUM(x CLAMPED BETWEEN 0 AND 10).",
            span=_span(here),
        )
    comma = _token(here, TokenType.COMMA, ",")
    bounds = [
        comma, _named(here, PER_ROW if of_rows else PER_GROUP), _token(here, TokenType.FARROW, "=>"),
        _token(here, TokenType.L_PAREN, "("), *tokens[clamped + 2 : joined], comma, *tokens[joined + 1 : end],
        _token(here, TokenType.R_PAREN, ")"),
    ]  # fmt: skip
    return [*tokens[:place], name, *tokens[place + 1 : clamped], *bounds, *tokens[end:]]


def _named_argument(tokens: list[Token]) -> int | None:
    for place, token in enumerate(tokens[:-1]):
        if tokens[place + 1].token_type is TokenType.FARROW and token.text.lower() in (PER_ROW, PER_GROUP):
            return place
    return None


def _clipped(tokens: list[Token], place: int) -> list[Token]:
    opened = _call(tokens, place)
    end = _closing(tokens, place + 2)
    bounds = _split(tokens[place + 3 : end])
    argument, *others = _split(tokens[opened + 1 : place - 1])
    what = tokens[place].text.lower()
    if len(bounds) != 2 or not argument or tokens[place - 1].token_type is not TokenType.COMMA:
        raise InvalidSyntax(
            f"{what} takes two bounds, behind the argument",
            hint=f"For example: SUM(x, {what} => (0, 10)).",
            span=_span(tokens[place]),
        )
    distinct = argument[:1] if argument[0].token_type is TokenType.DISTINCT else []
    here, comma = tokens[place], tokens[place - 1]
    clip = [_named(here, "CLIP" if what == PER_ROW else PER_GROUP), _token(here, TokenType.L_PAREN, "(")]
    clip += [*argument[len(distinct) :], comma, *bounds[0], comma, *bounds[1], _token(here, TokenType.R_PAREN, ")")]
    rest = [token for other in others for token in (comma, *other)]
    before = _fractions_behind(tokens[:opened], len(others))
    return [*before, tokens[opened], *distinct, *clip, *rest, *tokens[end + 1 :]]


def _fractions_behind(before: list[Token], others: int) -> list[Token]:
    """GoogleSQL's PERCENTILE_CONT(x, 0.5, …) is QUANTILE_CONT(x, 0.5) here."""
    called = before[-1] if before else None
    if others != 1 or called is None or not called.text.upper().startswith("PERCENTILE_"):
        return before
    return [*before[:-1], _named(called, called.text.upper().replace("PERCENTILE", "QUANTILE"))]


def _call(tokens: list[Token], place: int) -> int:
    """The parenthesis in which the token at `place` stands."""
    depth = 0
    for at in range(place - 1, -1, -1):
        depth += (tokens[at].token_type in _CLOSING) - (tokens[at].token_type in _OPENING)
        if depth < 0:
            return at
    raise InvalidSyntax(f"{tokens[place].text} stands within an aggregate", span=_span(tokens[place]))


def _named(token: Token, text: str) -> Token:
    return _token(token, TokenType.VAR, text)


def _token(place: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, place.line, place.col, place.start, place.end)


def _span(token: Token) -> Span:
    return Span(token.start, token.end + 1)
