"""What stands before a cursor within its query block, and what that asks for next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dpsql.lex import Kind, Token
from dpsql.repl.naming import Names, unquoted
from dpsql.repl.scope import (
    CLAUSES,
    Group,
    Offered,
    Source,
    before,
    branch,
    common_tables,
    grouped,
    path_to,
    sources_of,
)
from dpsql.repl.words import GRAMMAR

_VALUES = frozenset(
    {"null", "true", "false", "end", "current_date", "current_timestamp", "asc", "desc", "all", "unknown"}
)
_BEFORE_VALUES = (GRAMMAR | {"by", "recursive", "escape"}) - _VALUES
_COMPARES = frozenset({"=", "<>", "!=", "<", ">", "<=", ">=", "like", "ilike"})


@dataclass(frozen=True)
class Around:
    """`trail` are the tokens before the cursor, from the block's beginning; what stands in closed parentheses is a
    single `)`. `first` is the statement's first word; `nested` the places in `trail` of open parentheses."""

    trail: tuple[Token, ...]
    first: str
    query: Group
    is_query: bool
    nested: tuple[int, ...]
    sources: tuple[Source, ...]
    outer: tuple[Source, ...]
    known: dict[str, Source]

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
        found, in_from = "", False
        for place, word in enumerate(self.words):
            deep = any(opened < place for opened in self.nested)
            if word in CLAUSES and not deep:
                found, in_from = word, word == "from"
            elif word == "join" and (in_from or not deep):
                found = "from"
            elif word in ("on", "using") and in_from:
                found = word
            elif word == "," and found == "on" and not deep:
                found = "from"
        return found

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
        if last.kind is Kind.WORD:
            return last.text.lower() in _BEFORE_VALUES
        return last.kind in (Kind.OPERATOR, Kind.MARK) and last.text not in (")", "]")

    @property
    def qualifier(self) -> str:
        return self.trail[-2].text if len(self.trail) > 1 else ""

    @property
    def waits_for_on(self) -> bool:
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
    def compared(self) -> Offered | None:
        """The column that is compared with what comes next: after `ward =`, or in the list of `ward IN (`."""
        listed = self.nested and self.words[self.nested[-1] - 1 : self.nested[-1]] == ["in"]
        if self.last in _COMPARES:
            end = len(self.words) - 1
        elif listed and self.last in ("(", ","):
            end = self.nested[-1] - 1
        else:
            return None
        return self._column(end - 1 if end and self.words[end - 1] == "not" else end)

    def _column(self, end: int) -> Offered | None:
        """The column whose name ends before `end` of the trail."""
        if end < 1 or self.trail[end - 1].kind not in (Kind.WORD, Kind.QUOTED):
            return None
        name = unquoted(self.trail[end - 1].text).lower()
        qualified = end >= 3 and self.trail[end - 2].text == "."
        qualifier = unquoted(self.trail[end - 3].text).lower() if qualified else None
        for source in (*self.sources, *self.outer):
            if qualifier in (None, source.name.lower()):
                for column in source.columns:
                    if column.name.lower() == name and column.declared is not None:
                        return column
        return None


def look_around(statement: Sequence[Token], cursor: int, names: Names) -> Around:
    said = _asked([token for token in statement if token.kind not in (Kind.SPACE, Kind.COMMENT)], cursor)
    first = said[0].text.lower() if said and said[0].end <= cursor else ""
    path = path_to(grouped(said), cursor)
    queries = [place for place, group in enumerate(path) if group.is_query]
    at = queries[-1] if queries else 0
    known: dict[str, Source] = {}
    for place in queries:
        known |= common_tables(path[place], cursor, names, known)
    blocks = [branch(path[place], cursor) for place in queries]
    sources = [tuple(sources_of(_without_common(block), names, known)) for block in blocks]
    trail, nested = _trail([branch(path[at], cursor), *path[at + 1 :]], cursor)
    return Around(
        trail,
        first,
        blocks[-1] if blocks else path[0],
        bool(queries),
        nested,
        sources[-1] if sources else (),
        tuple(source for outer in reversed(sources[:-1]) for source in outer),
        known,
    )


def _asked(said: list[Token], cursor: int) -> list[Token]:
    """Without EXPLAIN or DESCRIBE before a query."""
    if not said or said[0].end > cursor:
        return said
    word, follows = said[0].text.lower(), said[1].text.lower() if len(said) > 1 else ""
    described = word in ("describe", "desc") and follows in ("select", "with", "(")
    return said[1:] if word == "explain" or described else said


def _without_common(block: Group) -> Group:
    """The block from its own SELECT on: what WITH defines is no source of it."""
    start = next((place for place, word in block.words() if word == "select"), 0)
    return replace(block, items=block.items[start:])


def _trail(path: Sequence[Group], cursor: int) -> tuple[tuple[Token, ...], tuple[int, ...]]:
    trail: list[Token] = []
    nested: list[int] = []
    for depth, group in enumerate(path):
        for item in before(group, cursor):
            if isinstance(item, Token):
                trail.append(item)
            elif depth + 1 < len(path) and item is path[depth + 1]:
                nested.append(len(trail))
                trail.append(Token(Kind.MARK, "(", item.start - 1))
            else:
                trail.append(Token(Kind.MARK, ")", item.end if item.end is not None else item.start))
    return tuple(trail), tuple(nested)
