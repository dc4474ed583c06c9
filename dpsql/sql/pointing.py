"""Where in a statement a name stands that post-processing does not know: it reads a text of ours, not the reader's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot.tokenizer_core import TokenType

from dpsql.errors import Error, UnknownColumn, UnknownFunction, UnknownTable
from dpsql.span import Span
from dpsql.sql.parse import tokenize

_NAMED = re.compile(r'(?:column|table|function) "(.+)" does not exist')


@contextmanager
def pointing_into(sql: str) -> Iterator[None]:
    """An unknown name without a place gets that of the only word of the statement that spells it so."""
    try:
        yield
    except (UnknownColumn, UnknownTable, UnknownFunction) as error:
        if error.span is None:
            error.span = _place(error, sql)
        raise


def _place(error: Error, sql: str) -> Span | None:
    named = _NAMED.fullmatch(error.message)
    if named is None:
        return None
    found = [
        Span(token.start, token.end + 1)
        for token in tokenize(sql)
        if token.text.lower() == named[1].lower() and token.token_type is not TokenType.STRING
    ]
    return found[0] if len(found) == 1 else None
