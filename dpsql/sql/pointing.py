"""Where in a statement stands what post-processing does not know: it reads a text of ours, not the reader's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors import DataError, Error, ProgrammingError
from dpsql.span import Span
from dpsql.sql.parse import tokenize

_NAMED = re.compile(
    r'(?:column|table|type) "(?P<name>.+)" (?:specified in USING clause )?does not exist'
    r'|function "?(?P<call>\w+)"?(?:\(.*\))? (?:does not exist|is not)'
    r"|operator does not exist: .*? ?(?P<operator>[-+*/%^|&<>=~!#@]+|(?:NOT )?I?LIKE) "
    r'|(?:invalid input syntax for type [^:]+: |date/time field value out of range: |value )"(?P<text>.*?)"',
    re.DOTALL,
)


@contextmanager
def pointing_into(sql: str) -> Iterator[None]:
    """What is unknown, or no value of its type, gets the place of the only word of the statement that spells it so."""
    try:
        yield
    except (ProgrammingError, DataError) as error:
        if error.span is None:
            error.span = _place(error, sql)
        raise


def _place(error: Error, sql: str) -> Span | None:
    named = _NAMED.match(error.message)
    if named is None:
        return None
    name = named["name"] or named["call"] or named["operator"]
    tokens = tokenize(sql)
    found = [
        Span(_start(tokens, place), token.end + 1)
        for place, token in enumerate(tokens)
        if (token.text == named["text"] if name is None else token.text.lower() == name.lower())
        and (token.token_type is TokenType.STRING) == (name is None)
    ]
    return found[0] if len(found) == 1 else None


def _start(tokens: list[Token], place: int) -> int:
    """Of a name, with what qualifies it."""
    qualified = place > 1 and tokens[place - 1].token_type is TokenType.DOT
    return tokens[place - 2 if qualified else place].start
