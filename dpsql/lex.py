"""Typed text to tokens: what is a string, a comment, a word. Law: the tokens joined are the text, whatever it is.

sqlglot's tokenizer refuses text that is not finished, and a prompt has little else. The rules are PostgreSQL's: doubled
quotes, E'' with backslashes, $tag$ quotes, comments within comments. A backslash outside of them begins a command,
which ends with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    SPACE = "space"
    WORD = "word"
    QUOTED = "quoted"  # a name in double quotes
    STRING = "string"
    NUMBER = "number"
    COMMENT = "comment"
    PARAMETER = "parameter"
    OPERATOR = "operator"
    MARK = "mark"  # one of ( ) [ ] , . ;
    BACKSLASH = "backslash"


@dataclass(frozen=True)
class Token:
    """`ended` is False where the text ends before the token does."""

    kind: Kind
    text: str
    start: int
    ended: bool = True

    @property
    def end(self) -> int:
        return self.start + len(self.text)


_PATTERNS = (
    (Kind.SPACE, r"\s+"),
    (Kind.COMMENT, r"--[^\n]*"),
    (Kind.STRING, r"[eE]'(?:[^'\\]|\\.?|'')*+(?P<e>'?)"),
    (Kind.STRING, r"(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*+(?P<s>'?)"),
    (Kind.QUOTED, r'(?:[uU]&)?"(?:[^"]|"")*+(?P<q>"?)'),
    (Kind.NUMBER, r"0[xX][0-9a-fA-F]+|(?:[0-9][0-9_]*(?:\.(?!\.)[0-9_]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    (Kind.PARAMETER, r"\$[0-9]+|\?(?![|&?])"),
    (Kind.WORD, r"[^\W\d][\w$]*"),
    (Kind.BACKSLASH, r"\\[^\n]*"),
    (Kind.MARK, r"[()\[\],.;]"),
    (Kind.OPERATOR, r"::|:=|=>|->>|->|<=|>=|<>|!=|\|\||//|\*\*|."),
)
_TOKEN = re.compile("|".join(f"(?P<t{at}>{pattern})" for at, (_, pattern) in enumerate(_PATTERNS)), re.DOTALL)
_DOLLAR = re.compile(r"\$(?:[^\W\d]\w*)?\$")
_COMMENT = re.compile(r"/\*|\*/")


def tokens(text: str) -> list[Token]:
    return list(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        token = _token(text, at)
        yield token
        at = token.end


def _token(text: str, at: int) -> Token:
    if text.startswith("/*", at):
        return _comment(text, at)
    dollar = _DOLLAR.match(text, at)
    if dollar is not None:
        close = text.find(dollar[0], dollar.end())
        end = len(text) if close < 0 else close + len(dollar[0])
        return Token(Kind.STRING, text[at:end], at, close >= 0)
    found = _TOKEN.match(text, at)
    assert found is not None and found.lastgroup is not None  # the last pattern takes any character; it closes last
    kind = _PATTERNS[int(found.lastgroup[1:])][0]
    return Token(kind, found[0], at, all(found[quote] != "" for quote in "esq"))


def _comment(text: str, at: int) -> Token:
    depth = 0
    for mark in _COMMENT.finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return Token(Kind.COMMENT, text[at : mark.end()], at)
    return Token(Kind.COMMENT, text[at:], at, ended=False)
