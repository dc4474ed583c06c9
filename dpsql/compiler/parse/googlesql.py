"""GoogleSQL's differential privacy syntax, read from tokens, because the parser does not know it.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 3)
      SUM(x, contribution_bounds_per_row => (0, 10)) …

The options are taken out and become settings of the statement; bounds per row are CLIP of the argument. Bounds per
group clip what one unit adds to a group: they become a function of that name around the argument, which
`split/release_block.py` reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors import InvalidSyntax, Span, Unsupported

PRIVACY_CLAUSES = ("DIFFERENTIAL_PRIVACY", "ANONYMIZATION")
PER_ROW, PER_GROUP = "contribution_bounds_per_row", "contribution_bounds_per_group"
ANON_FUNCTIONS = ("ANON_COUNT", "ANON_SUM", "ANON_AVG", "ANON_VAR_POP", "ANON_STDDEV_POP")

GOOGLESQL_WORDS = frozenset({*PRIVACY_CLAUSES, *ANON_FUNCTIONS, PER_ROW.upper(), PER_GROUP.upper()})
"""One of these stands in every statement with this syntax."""

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_CLAMPED_PER_ROW = ("ANON_VAR_POP", "ANON_STDDEV_POP")
"""Aggregates whose CLAMPED BETWEEN is about rows, as in GoogleSQL."""


@dataclass(frozen=True)
class Option:
    """`place` is that of the parameter which its value was, from 0."""

    name: str
    value: str
    span: Span
    place: int | None = None


def extract_options(tokens: list[Token]) -> tuple[list[Token], tuple[Option, ...] | None]:
    """The tokens without the clause, and its options; None where there is no such clause."""
    depth, selects, clause_index = 0, 0, None
    for index, token in enumerate(tokens):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if token.token_type is not TokenType.SELECT:
            continue
        if _is_privacy_clause(tokens, index + 1):
            if depth or selects:
                raise Unsupported(
                    f"WITH {tokens[index + 2].text.upper()} stands in the outermost SELECT only",
                    hint="Its epsilon and delta are those of the whole statement.",
                    span=_token_span(tokens[index + 2]),
                )
            clause_index = index + 1
        selects += depth == 0
    if clause_index is None:
        return tokens, None
    options, end = _read_options(tokens, clause_index + 2)
    return tokens[:clause_index] + tokens[end:], options


def _is_privacy_clause(tokens: list[Token], index: int) -> bool:
    words = tokens[index : index + 2]
    return len(words) == 2 and words[0].token_type is TokenType.WITH and words[1].text.upper() in PRIVACY_CLAUSES


def _read_options(tokens: list[Token], index: int) -> tuple[tuple[Option, ...], int]:
    if index >= len(tokens) or tokens[index].text.upper() != "OPTIONS":
        return (), index
    end = _find_closing(tokens, index + 1)
    inside = tokens[index + 2 : end]
    parts = _split_at_commas(inside) if inside else []
    return tuple(_read_option(part, tokens[index]) for part in parts), end + 1


def _read_option(part: list[Token], clause: Token) -> Option:
    if len(part) < 3 or part[1].token_type is not TokenType.EQ:
        raise InvalidSyntax(
            "an option is a name, = and a value", hint="For example: OPTIONS (epsilon = 1, delta = 1e-6).",
            span=_token_span(part[0] if part else clause),
        )  # fmt: skip
    value = "".join(token.text for token in part[2:])
    return Option(part[0].text.lower(), value, Span(part[0].start, part[-1].end + 1))


def _find_closing(tokens: list[Token], index: int) -> int:
    """The place of the parenthesis that closes the one at `place`."""
    if index >= len(tokens) or tokens[index].token_type is not TokenType.L_PAREN:
        raise InvalidSyntax('"(" is expected here', span=_token_span(tokens[min(index, len(tokens) - 1)]))
    depth = 0
    for at in range(index, len(tokens)):
        depth += (tokens[at].token_type in _OPENING) - (tokens[at].token_type in _CLOSING)
        if depth == 0:
            return at
    raise InvalidSyntax('a ")" is missing', span=_token_span(tokens[index]))


def _split_at_commas(tokens: list[Token]) -> list[list[Token]]:
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


def rewrite_googlesql_aggregates(tokens: list[Token]) -> list[Token]:
    """SUM(x, contribution_bounds_per_row => (0, 10)) as SUM(CLIP(x, 0, 10)); ANON_SUM(x) as SUM(x)."""
    result = list(tokens)
    while (index := _find_anon_call(result)) is not None:
        result = _rewrite_anon_call(result, index)
    while (index := _find_bounds_argument(result)) is not None:
        result = _clip_argument(result, index)
    return result


def _find_anon_call(tokens: list[Token]) -> int | None:
    for index, token in enumerate(tokens[:-1]):
        if token.text.upper() in ANON_FUNCTIONS and tokens[index + 1].token_type is TokenType.L_PAREN:
            return index
    return None


def _rewrite_anon_call(tokens: list[Token], index: int) -> list[Token]:
    """ANON_SUM(x CLAMPED BETWEEN 0 AND 10) as SUM(x, contribution_bounds_per_group => (0, 10))."""
    end = _find_closing(tokens, index + 1)
    name = _make_name(tokens[index], tokens[index].text[len("ANON_") :])
    clamped = next((at for at in range(index + 2, end) if tokens[at].text.upper() == "CLAMPED"), None)
    if clamped is None:
        return [*tokens[:index], name, *tokens[index + 1 :]]
    here, of_rows = tokens[clamped], tokens[index].text.upper() in _CLAMPED_PER_ROW
    joined = next((at for at in range(clamped, end) if tokens[at].token_type is TokenType.AND), None)
    if tokens[clamped + 1].token_type is not TokenType.BETWEEN or joined is None:
        raise InvalidSyntax(
            "CLAMPED takes BETWEEN and two bounds",
            hint="For example: ANON_SUM(x CLAMPED BETWEEN 0 AND 10).",
            span=_token_span(here),
        )
    comma = _make_token(here, TokenType.COMMA, ",")
    bounds = [
        comma, _make_name(here, PER_ROW if of_rows else PER_GROUP), _make_token(here, TokenType.FARROW, "=>"),
        _make_token(here, TokenType.L_PAREN, "("), *tokens[clamped + 2 : joined], comma, *tokens[joined + 1 : end],
        _make_token(here, TokenType.R_PAREN, ")"),
    ]  # fmt: skip
    return [*tokens[:index], name, *tokens[index + 1 : clamped], *bounds, *tokens[end:]]


def _find_bounds_argument(tokens: list[Token]) -> int | None:
    for index, token in enumerate(tokens[:-1]):
        if tokens[index + 1].token_type is TokenType.FARROW and token.text.lower() in (PER_ROW, PER_GROUP):
            return index
    return None


def _clip_argument(tokens: list[Token], index: int) -> list[Token]:
    opened = _find_enclosing_call(tokens, index)
    end = _find_closing(tokens, index + 2)
    bounds = _split_at_commas(tokens[index + 3 : end])
    argument, *others = _split_at_commas(tokens[opened + 1 : index - 1])
    what = tokens[index].text.lower()
    if len(bounds) != 2 or not argument or tokens[index - 1].token_type is not TokenType.COMMA:
        raise InvalidSyntax(
            f"{what} takes two bounds, behind the argument",
            hint=f"For example: SUM(x, {what} => (0, 10)).",
            span=_token_span(tokens[index]),
        )
    distinct = argument[:1] if argument[0].token_type is TokenType.DISTINCT else []
    here, comma = tokens[index], tokens[index - 1]
    clip = [_make_name(here, "CLIP" if what == PER_ROW else PER_GROUP), _make_token(here, TokenType.L_PAREN, "(")]
    clip += [
        *argument[len(distinct) :],
        comma,
        *bounds[0],
        comma,
        *bounds[1],
        _make_token(here, TokenType.R_PAREN, ")"),
    ]
    rest = [token for other in others for token in (comma, *other)]
    before = _rename_percentile(tokens[:opened], len(others))
    return [*before, tokens[opened], *distinct, *clip, *rest, *tokens[end + 1 :]]


def _rename_percentile(before: list[Token], others: int) -> list[Token]:
    """GoogleSQL's PERCENTILE_CONT(x, 0.5, …) is QUANTILE_CONT(x, 0.5) here."""
    called = before[-1] if before else None
    if others != 1 or called is None or not called.text.upper().startswith("PERCENTILE_"):
        return before
    return [*before[:-1], _make_name(called, called.text.upper().replace("PERCENTILE", "QUANTILE"))]


def _find_enclosing_call(tokens: list[Token], index: int) -> int:
    """The parenthesis in which the token at `place` stands."""
    depth = 0
    for at in range(index - 1, -1, -1):
        depth += (tokens[at].token_type in _CLOSING) - (tokens[at].token_type in _OPENING)
        if depth < 0:
            return at
    raise InvalidSyntax(f"{tokens[index].text} stands within an aggregate", span=_token_span(tokens[index]))


def _make_name(token: Token, text: str) -> Token:
    return _make_token(token, TokenType.VAR, text)


def _make_token(origin: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, origin.line, origin.col, origin.start, origin.end)


def _token_span(token: Token) -> Span:
    return Span(token.start, token.end + 1)
