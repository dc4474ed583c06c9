"""SQL text to tokens, and quoting of names. Law: the tokens joined are the text, whatever it is.

sqlglot's tokenizer refuses text that is not finished, and a prompt has little else. The rules are PostgreSQL's: doubled
quotes, E'' with backslashes, $tag$ quotes, comments within comments. A backslash outside of them begins a command,
which ends with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class TokenKind(Enum):
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

    kind: TokenKind
    text: str
    start: int
    ended: bool = True

    @property
    def end(self) -> int:
        return self.start + len(self.text)


_TOKEN_PATTERNS = (
    (TokenKind.SPACE, r"\s+"),
    (TokenKind.COMMENT, r"--[^\n]*"),
    (TokenKind.STRING, r"[eE]'(?:[^'\\]|\\.?|'')*+(?P<e>'?)"),
    (TokenKind.STRING, r"(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*+(?P<s>'?)"),
    (TokenKind.QUOTED, r'(?:[uU]&)?"(?:[^"]|"")*+(?P<q>"?)'),
    (TokenKind.NUMBER, r"0[xX][0-9a-fA-F]+|(?:[0-9][0-9_]*(?:\.(?!\.)[0-9_]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    (TokenKind.PARAMETER, r"\$[0-9]+|\?(?![|&?])"),
    (TokenKind.WORD, r"[^\W\d][\w$]*"),
    (TokenKind.BACKSLASH, r"\\[^\n]*"),
    (TokenKind.MARK, r"[()\[\],.;]"),
    (TokenKind.OPERATOR, r"::|:=|=>|->>|->|<=|>=|<>|!=|\|\||//|\*\*|."),
)
_TOKEN = re.compile("|".join(f"(?P<t{at}>{pattern})" for at, (_, pattern) in enumerate(_TOKEN_PATTERNS)), re.DOTALL)
_DOLLAR = re.compile(r"\$(?:[^\W\d]\w*)?\$")
_COMMENT = re.compile(r"/\*|\*/")


def split_tokens(text: str) -> list[Token]:
    return list(_iterate_tokens(text))


def _iterate_tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        token = _read_token(text, at)
        yield token
        at = token.end


def _read_token(text: str, at: int) -> Token:
    if text.startswith("/*", at):
        return _read_comment(text, at)
    dollar = _DOLLAR.match(text, at)
    if dollar is not None:
        close = text.find(dollar[0], dollar.end())
        end = len(text) if close < 0 else close + len(dollar[0])
        return Token(TokenKind.STRING, text[at:end], at, close >= 0)
    match = _TOKEN.match(text, at)
    assert match is not None and match.lastgroup is not None  # the last pattern takes any character; it closes last
    kind = _TOKEN_PATTERNS[int(match.lastgroup[1:])][0]
    return Token(kind, match[0], at, all(match[quote] != "" for quote in "esq"))


def _read_comment(text: str, at: int) -> Token:
    depth = 0
    for mark in _COMMENT.finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return Token(TokenKind.COMMENT, text[at : mark.end()], at)
    return Token(TokenKind.COMMENT, text[at:], at, ended=False)


# Names of tables and columns as they are written in a statement.
#
# Law: what `quote_name` gives means that name and nothing else. `current_user` without quotes is a function, and a
# question about the wrong thing would be charged.

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

RESERVED_WORDS = frozenset(
    {"all", "alter", "analyse", "analyze", "and", "anti", "any", "array", "as", "asc", "asof", "asymmetric",
     "authorization", "between", "both", "case", "cast", "check", "collate", "collation", "column",
     "concurrently", "connect_by_root", "constraint", "create", "cross", "cube", "current_catalog", "current_date",
     "current_role", "current_schema", "current_time", "current_timestamp", "current_user", "default", "deferrable",
     "desc", "describe", "distinct", "do", "drop", "else", "end", "except", "exists", "extract", "false", "fetch",
     "for", "foreign", "freeze", "from", "full", "glob", "grant", "group", "grouping", "having", "if", "ilike", "in",
     "initially", "inner", "insert", "intersect", "interval", "into", "is", "isnull", "join", "lambda", "lateral",
     "leading", "left", "like", "limit", "localtime", "localtimestamp", "lock", "natural", "not", "notnull", "null",
     "offset", "on", "only", "or", "order", "outer", "overlaps", "partition", "partitioned_by", "pivot",
     "pivot_longer", "pivot_wider", "placing", "positional", "primary", "qualify", "references", "regexp", "returning",
     "revoke", "right", "rlike", "rollback", "rollup", "select", "semi", "session_user", "set", "show", "similar",
     "some", "summarize", "symmetric", "system_user", "table", "tablesample", "then", "to", "trailing", "true",
     "uncache", "union", "unique", "unpack", "unpivot", "user", "using", "values", "variadic", "verbose", "when",
     "where", "window", "with", "within", "xor"}
)  # fmt: skip
"""Words that read as something else without quotes, here or in DuckDB; or badly as a name."""


def quote_name(name: str, always: bool = False) -> str:
    """The name as it is written in a statement.

    >>> print(quote_name("ward"), quote_name("number of visits"), quote_name("order"), quote_name('My "Ward"'))
    ward "number of visits" "order" "My ""Ward\"""
    """
    if not always and _PLAIN_NAME.fullmatch(name) and name.lower() not in RESERVED_WORDS:
        return name
    return '"' + name.replace('"', '""') + '"'
