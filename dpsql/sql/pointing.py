"""Where in a statement stands what post-processing does not know: it reads a text of ours, not the reader's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors import DataError, Error, ProgrammingError
from dpsql.span import Span
from dpsql.sql.parse import tokenize

_NAME_IN_MESSAGE = re.compile(
    r'(?:column|table|type) "(?P<name>.+)" (?:specified in USING clause )?does not exist'
    r'|function "?(?P<call>\w+)"?(?:\(.*\))? (?:does not exist|is not)'
    r"|operator does not exist: .*? ?(?P<operator>[-+*/%^|&<>=~!#@]+|(?:NOT )?I?LIKE) "
    r'|(?:invalid input syntax for type [^:]+: |date/time field value out of range: |value )"(?P<text>.*?)"',
    re.DOTALL,
)


@contextmanager
def locate_error(sql: str) -> Iterator[None]:
    """What is unknown, or no value of its type, gets the place of the only word of the statement that spells it so."""
    try:
        yield
    except (ProgrammingError, DataError) as error:
        if error.span is None:
            error.span = _find_error_span(error, sql)
        raise


def _find_error_span(error: Error, sql: str) -> Span | None:
    named = _NAME_IN_MESSAGE.match(error.message)
    if named is None:
        return None
    name = named["name"] or named["call"] or named["operator"]
    tokens = tokenize(sql)
    spans = [
        Span(_qualified_start(tokens, index), token.end + 1)
        for index, token in enumerate(tokens)
        if (token.text == named["text"] if name is None else token.text.lower() == name.lower())
        and (token.token_type is TokenType.STRING) == (name is None)
    ]
    return spans[0] if len(spans) == 1 else None


def _qualified_start(tokens: list[Token], index: int) -> int:
    """Of a name, with what qualifies it."""
    qualified = index > 1 and tokens[index - 1].token_type is TokenType.DOT
    return tokens[index - 2 if qualified else index].start
