"""What stands before a cursor within its query block, and what that asks for next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dpsql.lex import TokenKind, Token
from dpsql.repl.naming import CompletionNames, unquote_name
from dpsql.repl.scope import (
    CLAUSE_WORDS,
    TokenGroup,
    ScopeColumn,
    FromItem,
    items_before,
    select_branch,
    read_ctes,
    group_tokens,
    groups_around,
    read_from_items,
)
from dpsql.repl.words import RESERVED_WORDS

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
    known: dict[str, FromItem]

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
    tokens = _strip_explain([token for token in statement if token.kind not in (TokenKind.SPACE, TokenKind.COMMENT)], cursor)
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
