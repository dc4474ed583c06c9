"""What stands around a cursor: the query block it is in, the clause, and the tables whose columns can be named there.

Read from tokens and their parentheses alone: what is typed is seldom a statement yet. What cannot be read is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dpsql.lex import Kind, Token
from dpsql.repl.naming import Names, unquoted
from dpsql.repl.words import GRAMMAR

if TYPE_CHECKING:
    from dpsql.session import NamedColumn, NamedTable

CLAUSES = ("select", "from", "where", "group", "having", "order", "qualify", "window", "limit", "offset", "with")
AFTER_FROM = frozenset(CLAUSES) - {"from", "select", "with"}
SETS = frozenset({"union", "intersect", "except"})
DEEPEST = 20
"""Sub-selects within sub-selects whose columns are read."""


@dataclass(frozen=True)
class Offered:
    """A column that can be named; `declared` where it is one of the schema."""

    name: str
    declared: NamedColumn | None = None


@dataclass(frozen=True)
class Source:
    """A table of FROM, or a sub-select, by the name that its columns can be qualified with."""

    name: str
    columns: tuple[Offered, ...]
    table: NamedTable | None = None


@dataclass
class Group:
    """What stands between two parentheses, or at the top: tokens and groups in order."""

    items: list[Token | Group] = field(default_factory=list)
    start: int = 0
    end: int | None = None

    def words(self) -> Iterator[tuple[int, str]]:
        for place, item in enumerate(self.items):
            if isinstance(item, Token) and item.kind is Kind.WORD:
                yield place, item.text.lower()

    @property
    def is_query(self) -> bool:
        return any(word in ("select", "with") for _, word in self.words())


def grouped(tokens: Sequence[Token]) -> Group:
    """Tokens without space and comments, as a tree of their parentheses.

    `SELECT count( FROM visits`: a parenthesis that is nowhere closed ends where a clause begins.
    """
    said = [token for token in tokens if token.kind not in (Kind.SPACE, Kind.COMMENT)]
    closed = _closed(said)
    top = Group()
    path: list[tuple[Group, frozenset[str]]] = [(top, frozenset())]  # with the words that end it
    for place, token in enumerate(said):
        while token.text.lower() in path[-1][1] and not path[-1][0].is_query:
            path.pop()[0].end = token.start
        if token.text == "(":
            inner = Group(start=token.end)
            path[-1][0].items.append(inner)
            opener = said[place - 1].text.lower() if place else ""
            path.append((inner, frozenset() if place in closed else _ENDS - _TAKES.get(opener, frozenset())))
        elif token.text == ")" and len(path) > 1:
            path.pop()[0].end = token.start
        else:
            path[-1][0].items.append(token)
    return top


_ENDS = frozenset({"from", "where", "having", "limit"})
_TAKES = {"filter": frozenset({"where"}),
          **dict.fromkeys(("extract", "trim", "substring", "overlay", "from", "join", ","), _ENDS)}  # fmt: skip
"""The words that belong into parentheses, by what stands before these."""


def _closed(said: Sequence[Token]) -> set[int]:
    """The places of parentheses that are closed."""
    opened: list[int] = []
    found: set[int] = set()
    for place, token in enumerate(said):
        if token.text == "(":
            opened.append(place)
        elif token.text == ")" and opened:
            found.add(opened.pop())
    return found


def path_to(top: Group, cursor: int) -> list[Group]:
    """The groups around the cursor, from the top."""
    path = [top]
    while True:
        inner = next(
            (
                item
                for item in path[-1].items
                if isinstance(item, Group) and item.start <= cursor and (item.end is None or cursor <= item.end)
            ),
            None,
        )
        if inner is None:
            return path
        path.append(inner)


def before(group: Group, cursor: int) -> list[Token | Group]:
    """The items of a group that end before the cursor; a group that holds the cursor is the last."""
    return [item for item in group.items if (item.start if isinstance(item, Group) else item.end) <= cursor]


def branch(group: Group, cursor: int) -> Group:
    """Of UNION and its like, the SELECT that the cursor is in."""
    start, found = 0, []
    for place, word in group.words():
        if word in SETS:
            item = group.items[place]
            assert isinstance(item, Token)
            if item.end > cursor:
                found = group.items[start:place]
                break
            start = place + 1
    else:
        found = group.items[start:]
    return replace(group, items=found)


# --- sources ---------------------------------------------------------------------------------------------------------


def sources_of(query: Group, names: Names, known: dict[str, Source], depth: int = 0) -> list[Source]:
    """The tables of a block's FROM, wherever it stands; `known` are the CTEs."""
    found: list[Source] = []
    place, listing = 0, False
    while place < len(query.items):
        item = query.items[place]
        word = _word(item)
        place += 1
        if word in ("from", "join") or (listing and _is(item, ",")):
            listing = True
            while place < len(query.items) and _word(query.items[place]) in ("lateral", "only"):
                place += 1
            place = _source(query, place, names, known, depth, found)
        elif word in AFTER_FROM or word == "select":
            listing = False
    return found


def _source(query: Group, place: int, names: Names, known: dict[str, Source], depth: int, found: list[Source]) -> int:
    """Reads one table or sub-select with its alias; the place behind it."""
    if place >= len(query.items):
        return place
    item = query.items[place]
    if isinstance(item, Group):
        place += 1
        if not item.is_query:
            found += _joined(item, names, known, depth)
            return place
        source = Source("", tuple(columns_of(item, names, known, depth + 1)))
    else:
        written, place = _dotted(query, place)
        if not written:
            return place
        named = unquoted(written[-1])
        table = names.by_name.get(named.lower())
        source = Source(named, () if table is None else table_columns(table), table)
        if len(written) == 1 and named.lower() in known:
            source = replace(known[named.lower()], name=named)
        if place < len(query.items) and isinstance(query.items[place], Group):
            place += 1  # a function of FROM
    alias, place = _alias(query, place)
    found.append(replace(source, name=alias) if alias else source)
    return place


def _joined(group: Group, names: Names, known: dict[str, Source], depth: int) -> list[Source]:
    """Joins in parentheses."""
    if depth > DEEPEST:
        return []
    word = Token(Kind.WORD, "from", group.start)
    return sources_of(Group([word, *group.items], group.start, group.end), names, known, depth + 1)


def table_columns(table: NamedTable) -> tuple[Offered, ...]:
    return tuple(Offered(column.name, column) for column in table.columns)


def _dotted(query: Group, place: int) -> tuple[list[str], int]:
    written: list[str] = []
    while place < len(query.items) and _is_name(query.items[place]):
        item = query.items[place]
        assert isinstance(item, Token)
        written.append(item.text)
        place += 1
        if place < len(query.items) and _is(query.items[place], "."):
            place += 1
        else:
            break
    return written, place


def _alias(query: Group, place: int) -> tuple[str, int]:
    if place < len(query.items) and _word(query.items[place]) == "as":
        place += 1
    if place < len(query.items) and _is_name(query.items[place]):
        item = query.items[place]
        assert isinstance(item, Token)
        return unquoted(item.text), place + 1
    return "", place


def _is_name(item: Token | Group) -> bool:
    if isinstance(item, Group):
        return False
    return item.kind is Kind.QUOTED or (item.kind is Kind.WORD and item.text.lower() not in GRAMMAR)


def _word(item: Token | Group) -> str:
    return item.text.lower() if isinstance(item, Token) and item.kind is Kind.WORD else ""


def _is(item: Token | Group, text: str) -> bool:
    return isinstance(item, Token) and item.text == text


# --- outputs ---------------------------------------------------------------------------------------------------------


def columns_of(query: Group, names: Names, known: dict[str, Source], depth: int = 0) -> list[Offered]:
    """The output columns of a SELECT that can be told by their text."""
    if depth > DEEPEST:
        return []
    known = {**known, **common_tables(query, None, names, known, depth)}
    first = branch(query, query.start)
    start = next((place + 1 for place, word in first.words() if word == "select"), None)
    if start is None:
        return []
    end = next((place for place, word in first.words() if place >= start and word == "from"), len(first.items))
    sources = sources_of(first, names, known, depth + 1)
    found: list[Offered] = []
    for item in _split(first.items[start:end]):
        found += _outputs(item, sources)
    return found


def _split(items: Sequence[Token | Group]) -> Iterator[list[Token | Group]]:
    part: list[Token | Group] = []
    for item in items:
        if _is(item, ","):
            yield part
            part = []
        else:
            part.append(item)
    yield part


def _outputs(item: list[Token | Group], sources: list[Source]) -> list[Offered]:
    while item and _word(item[0]) in ("distinct", "all"):
        item = item[1:]
    if not item:
        return []
    if _is(item[-1], "*"):
        wanted = unquoted(item[0].text).lower() if len(item) == 3 and isinstance(item[0], Token) else None
        return [column for one in sources if wanted in (None, one.name.lower()) for column in one.columns]
    last = item[-1]
    if isinstance(last, Token) and (_is_name(last) or (len(item) > 1 and _word(item[-2]) == "as")):
        name = unquoted(last.text)
        alone = len(item) == 1 or (len(item) == 3 and _is(item[1], "."))
        return [Offered(name, _declared(name, sources) if alone else None)]
    if isinstance(last, Group) and len(item) == 2 and isinstance(item[0], Token):
        return [Offered(item[0].text.lower())]  # PostgreSQL names a call by its function
    return []


def _declared(name: str, sources: list[Source]) -> NamedColumn | None:
    matching = [one.declared for source in sources for one in source.columns if one.name.lower() == name.lower()]
    return matching[0] if matching else None


def common_tables(
    query: Group, cursor: int | None, names: Names, known: dict[str, Source], depth: int = 0
) -> dict[str, Source]:
    """The names that WITH defines, before the cursor where there is one; each may use those before it."""
    if not query.items or _word(query.items[0]) != "with":
        return {}
    found: dict[str, Source] = {}
    place = 2 if _word(query.items[1] if len(query.items) > 1 else query.items[0]) == "recursive" else 1
    while place < len(query.items):
        if _is(query.items[place], ","):
            place += 1
            continue
        if not _is_name(query.items[place]):
            break
        item = query.items[place]
        assert isinstance(item, Token)
        name, named, place = unquoted(item.text), [], place + 1
        if place < len(query.items) and isinstance(query.items[place], Group):
            named, place = _listed(query.items[place]), place + 1
        while place < len(query.items) and _word(query.items[place]) in ("as", "not", "materialized"):
            place += 1
        body = query.items[place] if place < len(query.items) else None
        if not isinstance(body, Group) or (cursor is not None and (body.end is None or cursor <= body.end)):
            break
        columns = named or columns_of(body, names, {**known, **found}, depth + 1)
        found[name.lower()] = Source(name, tuple(columns))
        place += 1
    return found


def _listed(group: Token | Group) -> list[Offered]:
    items = group.items if isinstance(group, Group) else []
    return [Offered(unquoted(item.text)) for item in items if isinstance(item, Token) and _is_name(item)]
