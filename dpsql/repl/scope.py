"""What stands around a cursor: the query block it is in, the clause, and the tables whose columns can be named there.

Read from tokens and their parentheses alone: what is typed is seldom a statement yet. What cannot be read is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dpsql.lex import TokenKind, Token
from dpsql.repl.naming import CompletionNames, unquote_name
from dpsql.repl.words import RESERVED_WORDS

if TYPE_CHECKING:
    from dpsql.session import NamedColumn, NamedTable

CLAUSE_WORDS = ("select", "from", "where", "group", "having", "order", "qualify", "window", "limit", "offset", "with")
CLAUSES_AFTER_FROM = frozenset(CLAUSE_WORDS) - {"from", "select", "with"}
SET_OPERATORS = frozenset({"union", "intersect", "except"})
MAX_DEPTH = 20
"""Sub-selects within sub-selects whose columns are read."""


@dataclass(frozen=True)
class ScopeColumn:
    """A column that can be named; `declared` where it is one of the schema."""

    name: str
    declared: NamedColumn | None = None


@dataclass(frozen=True)
class FromItem:
    """A table of FROM, or a sub-select, by the name that its columns can be qualified with."""

    name: str
    columns: tuple[ScopeColumn, ...]
    table: NamedTable | None = None


@dataclass
class TokenGroup:
    """What stands between two parentheses, or at the top: tokens and groups in order."""

    items: list[Token | TokenGroup] = field(default_factory=list)
    start: int = 0
    end: int | None = None

    def iter_words(self) -> Iterator[tuple[int, str]]:
        for index, item in enumerate(self.items):
            if isinstance(item, Token) and item.kind is TokenKind.WORD:
                yield index, item.text.lower()

    @property
    def is_query(self) -> bool:
        return any(word in ("select", "with") for _, word in self.iter_words())


def group_tokens(tokens: Sequence[Token]) -> TokenGroup:
    """Tokens without space and comments, as a tree of their parentheses.

    `SELECT count( FROM visits`: a parenthesis that is nowhere closed ends where a clause begins.
    """
    significant = [token for token in tokens if token.kind not in (TokenKind.SPACE, TokenKind.COMMENT)]
    closed = _closed_parentheses(significant)
    top = TokenGroup()
    path: list[tuple[TokenGroup, frozenset[str]]] = [(top, frozenset())]  # with the words that end it
    for index, token in enumerate(significant):
        while token.text.lower() in path[-1][1] and not path[-1][0].is_query:
            path.pop()[0].end = token.start
        if token.text == "(":
            inner = TokenGroup(start=token.end)
            path[-1][0].items.append(inner)
            opener = significant[index - 1].text.lower() if index else ""
            path.append((inner, frozenset() if index in closed else _CLAUSE_ENDS - _WORDS_IN_PARENTHESES.get(opener, frozenset())))
        elif token.text == ")" and len(path) > 1:
            path.pop()[0].end = token.start
        else:
            path[-1][0].items.append(token)
    return top


_CLAUSE_ENDS = frozenset({"from", "where", "having", "limit"})
_WORDS_IN_PARENTHESES = {"filter": frozenset({"where"}),
          **dict.fromkeys(("extract", "trim", "substring", "overlay", "from", "join", ","), _CLAUSE_ENDS)}  # fmt: skip
"""The words that belong into parentheses, by what stands before these."""


def _closed_parentheses(significant: Sequence[Token]) -> set[int]:
    """The places of parentheses that are closed."""
    opened: list[int] = []
    closed: set[int] = set()
    for index, token in enumerate(significant):
        if token.text == "(":
            opened.append(index)
        elif token.text == ")" and opened:
            closed.add(opened.pop())
    return closed


def groups_around(top: TokenGroup, cursor: int) -> list[TokenGroup]:
    """The groups around the cursor, from the top."""
    path = [top]
    while True:
        inner = next(
            (
                item
                for item in path[-1].items
                if isinstance(item, TokenGroup) and item.start <= cursor and (item.end is None or cursor <= item.end)
            ),
            None,
        )
        if inner is None:
            return path
        path.append(inner)


def items_before(group: TokenGroup, cursor: int) -> list[Token | TokenGroup]:
    """The items of a group that end before the cursor; a group that holds the cursor is the last."""
    return [item for item in group.items if (item.start if isinstance(item, TokenGroup) else item.end) <= cursor]


def select_branch(group: TokenGroup, cursor: int) -> TokenGroup:
    """Of UNION and its like, the SELECT that the cursor is in."""
    start, items = 0, []
    for index, word in group.iter_words():
        if word in SET_OPERATORS:
            item = group.items[index]
            assert isinstance(item, Token)
            if item.end > cursor:
                items = group.items[start:index]
                break
            start = index + 1
    else:
        items = group.items[start:]
    return replace(group, items=items)


# --- sources ---------------------------------------------------------------------------------------------------------


def read_from_items(query: TokenGroup, names: CompletionNames, ctes: dict[str, FromItem], depth: int = 0) -> list[FromItem]:
    """The tables of a block's FROM, wherever it stands; `known` are the CTEs."""
    sources: list[FromItem] = []
    index, listing = 0, False
    while index < len(query.items):
        item = query.items[index]
        word = _word_of(item)
        index += 1
        if word in ("from", "join") or (listing and _is_token(item, ",")):
            listing = True
            while index < len(query.items) and _word_of(query.items[index]) in ("lateral", "only"):
                index += 1
            index = _read_from_item(query, index, names, ctes, depth, sources)
        elif word in CLAUSES_AFTER_FROM or word == "select":
            listing = False
    return sources


def _read_from_item(query: TokenGroup, index: int, names: CompletionNames, ctes: dict[str, FromItem], depth: int, sources: list[FromItem]) -> int:
    """Reads one table or sub-select with its alias; the place behind it."""
    if index >= len(query.items):
        return index
    item = query.items[index]
    if isinstance(item, TokenGroup):
        index += 1
        if not item.is_query:
            sources += _read_joined_items(item, names, ctes, depth)
            return index
        source = FromItem("", tuple(output_columns(item, names, ctes, depth + 1)))
    else:
        parts, index = _read_dotted_name(query, index)
        if not parts:
            return index
        name = unquote_name(parts[-1])
        table = names.tables_by_name.get(name.lower())
        source = FromItem(name, () if table is None else table_columns(table), table)
        if len(parts) == 1 and name.lower() in ctes:
            source = replace(ctes[name.lower()], name=name)
        if index < len(query.items) and isinstance(query.items[index], TokenGroup):
            index += 1  # a function of FROM
    alias, index = _read_alias(query, index)
    sources.append(replace(source, name=alias) if alias else source)
    return index


def _read_joined_items(group: TokenGroup, names: CompletionNames, ctes: dict[str, FromItem], depth: int) -> list[FromItem]:
    """Joins in parentheses."""
    if depth > MAX_DEPTH:
        return []
    word = Token(TokenKind.WORD, "from", group.start)
    return read_from_items(TokenGroup([word, *group.items], group.start, group.end), names, ctes, depth + 1)


def table_columns(table: NamedTable) -> tuple[ScopeColumn, ...]:
    return tuple(ScopeColumn(column.name, column) for column in table.columns)


def _read_dotted_name(query: TokenGroup, index: int) -> tuple[list[str], int]:
    parts: list[str] = []
    while index < len(query.items) and _is_name(query.items[index]):
        item = query.items[index]
        assert isinstance(item, Token)
        parts.append(item.text)
        index += 1
        if index < len(query.items) and _is_token(query.items[index], "."):
            index += 1
        else:
            break
    return parts, index


def _read_alias(query: TokenGroup, index: int) -> tuple[str, int]:
    if index < len(query.items) and _word_of(query.items[index]) == "as":
        index += 1
    if index < len(query.items) and _is_name(query.items[index]):
        item = query.items[index]
        assert isinstance(item, Token)
        return unquote_name(item.text), index + 1
    return "", index


def _is_name(item: Token | TokenGroup) -> bool:
    if isinstance(item, TokenGroup):
        return False
    return item.kind is TokenKind.QUOTED or (item.kind is TokenKind.WORD and item.text.lower() not in RESERVED_WORDS)


def _word_of(item: Token | TokenGroup) -> str:
    return item.text.lower() if isinstance(item, Token) and item.kind is TokenKind.WORD else ""


def _is_token(item: Token | TokenGroup, text: str) -> bool:
    return isinstance(item, Token) and item.text == text


# --- outputs ---------------------------------------------------------------------------------------------------------


def output_columns(query: TokenGroup, names: CompletionNames, ctes: dict[str, FromItem], depth: int = 0) -> list[ScopeColumn]:
    """The output columns of a SELECT that can be told by their text."""
    if depth > MAX_DEPTH:
        return []
    ctes = {**ctes, **read_ctes(query, None, names, ctes, depth)}
    first = select_branch(query, query.start)
    start = next((index + 1 for index, word in first.iter_words() if word == "select"), None)
    if start is None:
        return []
    end = next((index for index, word in first.iter_words() if index >= start and word == "from"), len(first.items))
    sources = read_from_items(first, names, ctes, depth + 1)
    columns: list[ScopeColumn] = []
    for item in _split_at_commas(first.items[start:end]):
        columns += _read_output(item, sources)
    return columns


def _split_at_commas(items: Sequence[Token | TokenGroup]) -> Iterator[list[Token | TokenGroup]]:
    part: list[Token | TokenGroup] = []
    for item in items:
        if _is_token(item, ","):
            yield part
            part = []
        else:
            part.append(item)
    yield part


def _read_output(item: list[Token | TokenGroup], sources: list[FromItem]) -> list[ScopeColumn]:
    while item and _word_of(item[0]) in ("distinct", "all"):
        item = item[1:]
    if not item:
        return []
    if _is_token(item[-1], "*"):
        qualifier = unquote_name(item[0].text).lower() if len(item) == 3 and isinstance(item[0], Token) else None
        return [column for source in sources if qualifier in (None, source.name.lower()) for column in source.columns]
    last = item[-1]
    if isinstance(last, Token) and (_is_name(last) or (len(item) > 1 and _word_of(item[-2]) == "as")):
        name = unquote_name(last.text)
        alone = len(item) == 1 or (len(item) == 3 and _is_token(item[1], "."))
        return [ScopeColumn(name, _find_declared_column(name, sources) if alone else None)]
    if isinstance(last, TokenGroup) and len(item) == 2 and isinstance(item[0], Token):
        return [ScopeColumn(item[0].text.lower())]  # PostgreSQL names a call by its function
    return []


def _find_declared_column(name: str, sources: list[FromItem]) -> NamedColumn | None:
    matching = [column.declared for source in sources for column in source.columns if column.name.lower() == name.lower()]
    return matching[0] if matching else None


def read_ctes(
    query: TokenGroup, cursor: int | None, names: CompletionNames, outer_ctes: dict[str, FromItem], depth: int = 0
) -> dict[str, FromItem]:
    """The names that WITH defines, before the cursor where there is one; each may use those before it."""
    if not query.items or _word_of(query.items[0]) != "with":
        return {}
    ctes: dict[str, FromItem] = {}
    index = 2 if _word_of(query.items[1] if len(query.items) > 1 else query.items[0]) == "recursive" else 1
    while index < len(query.items):
        if _is_token(query.items[index], ","):
            index += 1
            continue
        if not _is_name(query.items[index]):
            break
        item = query.items[index]
        assert isinstance(item, Token)
        name, column_list, index = unquote_name(item.text), [], index + 1
        if index < len(query.items) and isinstance(query.items[index], TokenGroup):
            column_list, index = _read_column_list(query.items[index]), index + 1
        while index < len(query.items) and _word_of(query.items[index]) in ("as", "not", "materialized"):
            index += 1
        body = query.items[index] if index < len(query.items) else None
        if not isinstance(body, TokenGroup) or (cursor is not None and (body.end is None or cursor <= body.end)):
            break
        columns = column_list or output_columns(body, names, {**outer_ctes, **ctes}, depth + 1)
        ctes[name.lower()] = FromItem(name, tuple(columns))
        index += 1
    return ctes


def _read_column_list(group: Token | TokenGroup) -> list[ScopeColumn]:
    items = group.items if isinstance(group, TokenGroup) else []
    return [ScopeColumn(unquote_name(item.text)) for item in items if isinstance(item, Token) and _is_name(item)]
