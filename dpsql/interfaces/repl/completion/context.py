"""The text before the cursor within its query block: what is in scope, and what can come next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from dpsql.base.lexer import Token, TokenKind
from dpsql.interfaces.repl.completion.candidates import CompletionNames, unquote_name
from dpsql.interfaces.repl.completion.keywords import RESERVED_WORDS

if TYPE_CHECKING:
    from dpsql.session.session import NamedColumn, NamedTable

# What stands around a cursor: the query block it is in, the clause, and the tables whose columns can be named there.
#
# Read from tokens and their parentheses alone: what is typed is seldom a statement yet. What cannot be read is left
# out.

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
            path.append(
                (
                    inner,
                    frozenset() if index in closed else _CLAUSE_ENDS - _WORDS_IN_PARENTHESES.get(opener, frozenset()),
                )
            )
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
    """The SELECT that the cursor is in, of those that UNION and its like combine."""
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


def read_from_items(
    query: TokenGroup, names: CompletionNames, ctes: dict[str, FromItem], depth: int = 0
) -> list[FromItem]:
    """The tables of a block's FROM, wherever it stands."""
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


def _read_from_item(
    query: TokenGroup,
    index: int,
    names: CompletionNames,
    ctes: dict[str, FromItem],
    depth: int,
    sources: list[FromItem],
) -> int:
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


def _read_joined_items(
    group: TokenGroup, names: CompletionNames, ctes: dict[str, FromItem], depth: int
) -> list[FromItem]:
    """Read joins in parentheses."""
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


def output_columns(
    query: TokenGroup, names: CompletionNames, ctes: dict[str, FromItem], depth: int = 0
) -> list[ScopeColumn]:
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
    matching = [
        column.declared for source in sources for column in source.columns if column.name.lower() == name.lower()
    ]
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


_VALUE_KEYWORDS = frozenset(
    {"null", "true", "false", "end", "current_date", "current_timestamp", "asc", "desc", "all", "unknown"}
)
_KEYWORDS_BEFORE_VALUE = (RESERVED_WORDS | {"by", "recursive", "escape"}) - _VALUE_KEYWORDS
_COMPARISON_WORDS = frozenset({"=", "<>", "!=", "<", ">", "<=", ">=", "like", "ilike"})


@dataclass(frozen=True)
class CursorContext:
    """`trail` are the tokens before the cursor, from the block's beginning; what stands in closed parentheses is a
    single `)`. `first` is the statement's first word; `nested` the places in `trail` of open parentheses."""

    trail: tuple[Token, ...]
    first: str
    query: TokenGroup
    is_query: bool
    nested: tuple[int, ...]
    sources: tuple[FromItem, ...]
    outer: tuple[FromItem, ...]
    ctes: dict[str, FromItem]

    @cached_property
    def words(self) -> list[str]:
        return [token.text.lower() for token in self.trail]

    @property
    def last(self) -> str:
        return self.words[-1] if self.words else ""

    @property
    def before_last(self) -> str:
        return self.words[-2] if len(self.words) > 1 else ""

    @cached_property
    def clause(self) -> str:
        """The last clause that has begun; within parentheses, that around them."""
        current, in_from = "", False
        for index, word in enumerate(self.words):
            inside = any(opened < index for opened in self.nested)
            if word in CLAUSE_WORDS and not inside:
                current, in_from = word, word == "from"
            elif word == "join" and (in_from or not inside):
                current = "from"
            elif word in ("on", "using") and in_from:
                current = word
            elif word == "," and current == "on" and not inside:
                current = "from"
        return current

    @property
    def opener(self) -> str:
        """The word before the innermost parenthesis that is open."""
        return self.words[self.nested[-1] - 1] if self.nested and self.nested[-1] > 0 else ""

    @property
    def in_blockwise(self) -> bool:
        return any(opened and self.words[opened - 1] == "blockwise" for opened in self.nested)

    @property
    def is_nested(self) -> bool:
        return bool(self.nested) and self.clause != "from"

    @property
    def expects_table(self) -> bool:
        if self.clause != "from":
            return False
        return self.last in ("from", "join", ",", "lateral") or (self.last == "(" and self.before_last != ")")

    @property
    def expects_operand(self) -> bool:
        """Whether a value comes next, or else a word that goes on with one."""
        if not self.trail:
            return True
        last = self.trail[-1]
        if last.text == "*":
            return self.before_last not in ("select", "(", ",", ".", "distinct")
        if last.kind is TokenKind.WORD:
            return last.text.lower() in _KEYWORDS_BEFORE_VALUE
        return last.kind in (TokenKind.OPERATOR, TokenKind.MARK) and last.text not in (")", "]")

    @property
    def qualifier(self) -> str:
        return self.trail[-2].text if len(self.trail) > 1 else ""

    @property
    def needs_join_condition(self) -> bool:
        """Whether the last join has no condition yet."""
        backwards = self.words[::-1]
        since = backwards[: backwards.index("join")] if "join" in backwards else ["on"]
        return "on" not in since and "using" not in since

    @property
    def in_case(self) -> bool:
        return self.words.count("case") > self.words.count("end")

    @property
    def in_window(self) -> bool:
        return bool(self.nested) and self.nested[-1] > 0 and self.words[self.nested[-1] - 1] in ("over", "group")

    @cached_property
    def compared_column(self) -> ScopeColumn | None:
        """The column that is compared with what comes next: after `ward =`, or in the list of `ward IN (`."""
        in_list = self.nested and self.words[self.nested[-1] - 1 : self.nested[-1]] == ["in"]
        if self.last in _COMPARISON_WORDS:
            end = len(self.words) - 1
        elif in_list and self.last in ("(", ","):
            end = self.nested[-1] - 1
        else:
            return None
        return self._find_column(end - 1 if end and self.words[end - 1] == "not" else end)

    def _find_column(self, end: int) -> ScopeColumn | None:
        """The column whose name ends before `end` of the trail."""
        if end < 1 or self.trail[end - 1].kind not in (TokenKind.WORD, TokenKind.QUOTED):
            return None
        name = unquote_name(self.trail[end - 1].text).lower()
        qualified = end >= 3 and self.trail[end - 2].text == "."
        qualifier = unquote_name(self.trail[end - 3].text).lower() if qualified else None
        for source in (*self.sources, *self.outer):
            if qualifier in (None, source.name.lower()):
                for column in source.columns:
                    if column.name.lower() == name and column.declared is not None:
                        return column
        return None


def read_cursor_context(statement: Sequence[Token], cursor: int, names: CompletionNames) -> CursorContext:
    tokens = _strip_explain(
        [token for token in statement if token.kind not in (TokenKind.SPACE, TokenKind.COMMENT)], cursor
    )
    first = tokens[0].text.lower() if tokens and tokens[0].end <= cursor else ""
    path = groups_around(group_tokens(tokens), cursor)
    queries = [index for index, group in enumerate(path) if group.is_query]
    at = queries[-1] if queries else 0
    ctes: dict[str, FromItem] = {}
    for index in queries:
        ctes |= read_ctes(path[index], cursor, names, ctes)
    blocks = [select_branch(path[index], cursor) for index in queries]
    sources = [tuple(read_from_items(_without_ctes(block), names, ctes)) for block in blocks]
    trail, nested = _tokens_before_cursor([select_branch(path[at], cursor), *path[at + 1 :]], cursor)
    return CursorContext(
        trail,
        first,
        blocks[-1] if blocks else path[0],
        bool(queries),
        nested,
        sources[-1] if sources else (),
        tuple(source for outer in reversed(sources[:-1]) for source in outer),
        ctes,
    )


def _strip_explain(tokens: list[Token], cursor: int) -> list[Token]:
    """Without EXPLAIN or DESCRIBE before a query."""
    if not tokens or tokens[0].end > cursor:
        return tokens
    word, follows = tokens[0].text.lower(), tokens[1].text.lower() if len(tokens) > 1 else ""
    described = word in ("describe", "desc") and follows in ("select", "with", "(")
    return tokens[1:] if word == "explain" or described else tokens


def _without_ctes(block: TokenGroup) -> TokenGroup:
    """The block from its own SELECT on: what WITH defines is no source of it."""
    start = next((index for index, word in block.iter_words() if word == "select"), 0)
    return replace(block, items=block.items[start:])


def _tokens_before_cursor(path: Sequence[TokenGroup], cursor: int) -> tuple[tuple[Token, ...], tuple[int, ...]]:
    trail: list[Token] = []
    nested: list[int] = []
    for depth, group in enumerate(path):
        for item in items_before(group, cursor):
            if isinstance(item, Token):
                trail.append(item)
            elif depth + 1 < len(path) and item is path[depth + 1]:
                nested.append(len(trail))
                trail.append(Token(TokenKind.MARK, "(", item.start - 1))
            else:
                trail.append(Token(TokenKind.MARK, ")", item.end if item.end is not None else item.start))
    return tuple(trail), tuple(nested)
