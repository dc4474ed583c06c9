"""Who might be the privacy unit, and the way from each table to it: read off names, types, keys and constraints.

Law: it only guesses, and says so. A way that is not there is not made up: the table is then left out of the draft.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpsql.engines.structure import FoundColumn, FoundTable
from dpsql.types import Kind

_ENDS = {"id", "ids", "uuid", "guid", "key", "no", "nr", "number", "num", "pk", "sk"}
_PEOPLE = {
    "patient", "person", "people", "user", "customer", "client", "member", "employee", "student", "pupil", "subject",
    "participant", "respondent", "citizen", "resident", "passenger", "driver", "rider", "subscriber", "donor", "voter",
    "tenant", "beneficiary", "claimant", "insured", "visitor", "guest", "buyer", "seller", "borrower", "worker",
    "staff", "teacher", "contact", "player", "owner", "taxpayer", "holder", "ssn", "individual", "human",
}  # fmt: skip
_NEARLY = {"household", "family", "account", "device", "card", "phone", "profile", "policy", "session", "vehicle"}
_THINGS = {
    "ward", "country", "city", "region", "state", "district", "product", "item", "category", "type", "status", "store",
    "shop", "department", "currency", "hospital", "clinic", "school", "warehouse", "supplier", "drug", "diagnosis",
    "station", "route", "airport", "branch", "channel", "campaign", "brand", "language", "genre", "calendar", "date",
}  # fmt: skip
_PREFIXES = {"tbl", "dim", "fact", "stg", "t"}
_PLURALS = (("noses", "nosis"), ("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"))
_ID_KINDS = {Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.HUGEINT, Kind.DECIMAL, Kind.TEXT, Kind.UUID}


@dataclass(frozen=True)
class Link:
    """A column of `table` refers to `target.key`; `declared` by a constraint, or guessed from its name."""

    table: str
    column: str
    target: str
    key: str
    declared: bool


@dataclass(frozen=True)
class Candidate:
    """A column that could be the privacy unit; `ways` lead each table that reaches it a step nearer."""

    table: str
    column: str
    ways: Mapping[str, Link]
    why: str

    @property
    def name(self) -> str:
        return f"{self.table}.{self.column}"


def words(name: str) -> tuple[str, ...]:
    """
    >>> words("PatientID"), words("patient_id"), words("tbl_users")
    (('patient', 'id'), ('patient', 'id'), ('tbl', 'users'))
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return tuple(part.lower() for part in re.split(r"[^A-Za-z0-9]+", spaced) if part)


def singular(word: str) -> str:
    """
    >>> [singular(word) for word in ("patients", "diagnoses", "cities", "addresses", "people", "bus")]
    ['patient', 'diagnosis', 'city', 'address', 'person', 'bus']
    """
    if word == "people":
        return "person"
    for end, instead in _PLURALS:
        if word.endswith(end):
            return word.removesuffix(end) + instead
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _kind_of_row(table: FoundTable) -> tuple[str, ...]:
    """What a row of the table is, by its name."""
    parts = words(table.name)
    parts = parts[1:] if len(parts) > 1 and parts[0] in _PREFIXES else parts
    return (*parts[:-1], singular(parts[-1])) if parts else ()


def _subject(column: FoundColumn) -> tuple[str, ...] | None:
    """Whose id the column is by its name: ("patient",) of patient_id, () of id; None if it is no id."""
    if column.type is None or column.type.kind not in _ID_KINDS or column.values:
        return None
    parts = words(column.name)
    if parts and parts[-1] in _ENDS:
        return tuple(singular(part) for part in parts[:-1])
    bare = len(parts) == 1 and singular(parts[0]) in _PEOPLE
    return (singular(parts[0]),) if bare else None


def names_rows(column: FoundColumn) -> bool:
    """Whether a column looks like an id, of whatever: a number of it is no quantity."""
    return _subject(column) is not None


def key_of(table: FoundTable) -> tuple[str, bool] | None:
    """The column that a row of the table is named by, and whether a constraint says so."""
    for key in table.unique:
        column = table.column(key[0]) if len(key) == 1 else None
        if column is not None and column.type is not None and column.type.kind in _ID_KINDS:
            return column.name, True
    entity = _kind_of_row(table)
    for column in table.columns:
        subject = _subject(column)
        if subject is not None and (subject == entity or (subject == () and column.name.lower() in ("id", "uuid"))):
            return column.name, False
    return None


def find_links(tables: Sequence[FoundTable]) -> tuple[Link, ...]:
    """Declared foreign keys of one column, then those that names tell."""
    known = {(table.name, column.name): column.type for table in tables for column in table.columns}
    found = {
        (link.table, link.column, link.target): link
        for link in _declared(tables)
        if known[link.table, link.column] == known[link.target, link.key]  # as a schema demands
        and getattr(known[link.target, link.key], "kind", None) in _ID_KINDS
    }
    taken = {(link.table, link.column) for link in found.values()}
    for link in _by_name(tables):
        if (link.table, link.column) not in taken:
            found.setdefault((link.table, link.column, link.target), link)
    return tuple(found.values())


def _declared(tables: Sequence[FoundTable], within: bool = False) -> Iterator[Link]:
    """From table to table, or `within` one."""
    for table in tables:
        for one in table.references:
            if len(one.columns) == 1 and (one.table == table.name) is within:
                yield Link(table.name, one.columns[0], one.table, one.keys[0], True)


def _by_name(tables: Sequence[FoundTable]) -> Iterator[Link]:
    homes = [(table, key[0]) for table in tables if (key := key_of(table)) is not None]
    for table in tables:
        for column in table.columns:
            subject = _subject(column)
            for home, named in homes if subject else ():
                entity, known = _kind_of_row(home), home.column(named)
                assert subject is not None and known is not None
                same = subject == entity or subject[-len(entity) :] == entity  # also sender_user_id
                if home is not table and entity and same and known.type == column.type:
                    yield Link(table.name, column.name, home.name, named, False)


def _homeless(tables: Sequence[FoundTable], links: Sequence[Link]) -> Iterator[tuple[str, str, tuple[Link, ...]]]:
    """Ids that stand in tables without a table of their own: one of these is taken for it."""
    linked = {(link.table, link.column) for link in links}
    named: dict[tuple[str, ...], list[tuple[FoundTable, FoundColumn]]] = {}
    for table in tables:
        key = key_of(table)
        for column in table.columns:
            own = key is not None and key[0] == column.name
            subject = _subject(column)
            if subject and not own and (table.name, column.name) not in linked:
                named.setdefault(subject, []).append((table, column))
    for places in named.values():
        places.sort(key=lambda place: (place[1].name,) not in place[0].unique)
        (home, first), *others = places
        yield home.name, first.name, tuple(
            Link(table.name, column.name, home.name, first.name, False)
            for table, column in others
            if table is not home and column.type == first.type
        )


def find_candidates(tables: Sequence[FoundTable]) -> tuple[Candidate, ...]:
    """The columns that could be the unit, the likeliest first."""
    links = find_links(tables)
    found: dict[tuple[str, str], Candidate] = {}
    for table in tables:
        for column in sorted(_named_by(table, links)):
            found[table.name, column] = candidate(tables, table.name, column, links)
    for home, column, more in _homeless(tables, links):
        found.setdefault((home, column), candidate(tables, home, column, (*links, *more)))
    order = {table.name: place for place, table in enumerate(tables)}
    return tuple(sorted(found.values(), key=lambda one: (*_rank(tables, one), order[one.table], one.column)))


def _named_by(table: FoundTable, links: Sequence[Link]) -> set[str]:
    key = key_of(table)
    return {link.key for link in links if link.target == table.name} | ({key[0]} if key else set())


def candidate(
    tables: Sequence[FoundTable], table: str, column: str, links: Sequence[Link] | None = None
) -> Candidate:
    """The column as the unit, with the ways that lead to it; `links` are found if they are not given."""
    if links is None:
        known = find_links(tables)
        homeless = [more for home, first, more in _homeless(tables, known) if (home, first) == (table, column)]
        links = (*known, *(link for more in homeless for link in more), *_same_name(tables, table, column))
    ways = find_ways(tables, table, column, links)
    return Candidate(table, column, ways, _why(tables, table, column, ways))


def _same_name(tables: Sequence[FoundTable], table: str, column: str) -> Iterator[Link]:
    """The owner has named the unit: other columns of its name and type refer to it."""
    known = next((found.column(column) for found in tables if found.name == table), None)
    for other in tables:
        same = other.column(column)
        if known is not None and same is not None and other.name != table and same.type == known.type:
            yield Link(other.name, column, table, column, False)


def find_ways(tables: Sequence[FoundTable], table: str, column: str, links: Sequence[Link]) -> dict[str, Link]:
    """The step that each table takes to the unit, along the fewest steps; declared keys before guessed ones."""
    ways: dict[str, Link] = {}
    nearer = {(table, column)}
    while nearer:
        step = [
            link
            for link in sorted(links, key=lambda link: not link.declared)
            if (link.target, link.key) in nearer and link.table != table and link.table not in ways
        ]
        fresh: dict[str, Link] = {}
        for link in step:
            fresh.setdefault(link.table, link)
        ways |= fresh
        nearer = {(found.name, key) for found in tables if found.name in fresh for key in _keys(found)}
    return ways


def _keys(table: FoundTable) -> set[str]:
    """The columns by which another table may name a row of this one."""
    key = key_of(table)
    return {key[0] for key in table.unique if len(key) == 1} | ({key[0]} if key else set())


def second_ways(unit: Candidate, tables: Sequence[FoundTable], table: str) -> tuple[str, ...]:
    """Other columns of the table that name a unit: whom they name is not protected by its rows."""
    found = next(one for one in tables if one.name == table)
    way = unit.ways.get(table)
    own = unit.column if table == unit.table else way.column if way else None
    links = (*find_links(tables), *_declared((found,), within=True))
    to_unit = [link for link in links if (link.table, link.target, link.key) == (table, unit.table, unit.column)]
    named = [link.column for link in to_unit]
    return tuple(dict.fromkeys(column for column in (*named, *_named_alike(unit, tables, found)) if column != own))


def _named_alike(unit: Candidate, tables: Sequence[FoundTable], table: FoundTable) -> Iterator[str]:
    """Ids of the unit's type, of the same by their names: manager_employee_id beside employee_id."""
    home = next(one for one in tables if one.name == unit.table)
    known = home.column(unit.column)
    assert known is not None
    subject = _subject(known)
    ending = _kind_of_row(home) if subject == () else subject
    for column in table.columns if ending else ():
        whose = _subject(column)
        if whose and ending and whose[-1] == ending[-1] and column.type == known.type:
            yield column.name


def _level(names: Sequence[str]) -> int:
    known = {singular(name) for name in names}
    return 0 if known & _PEOPLE else 1 if known & _NEARLY else 3 if known & _THINGS else 2


def _rank(tables: Sequence[FoundTable], one: Candidate) -> tuple[int, int, int]:
    table = next(table for table in tables if table.name == one.table)
    key = key_of(table)
    level = min(_level(words(one.column)), _level(_kind_of_row(table)) if key and key[0] == one.column else 3)
    return level, -len(one.ways), 0 if key and key[0] == one.column else 1


def _why(tables: Sequence[FoundTable], table: str, column: str, ways: Mapping[str, Link]) -> str:
    found = next(found for found in tables if found.name == table)
    key = key_of(found)
    reasons = []
    if key is not None and key[0] == column:
        reasons.append("a key of its table" if key[1] else "the key of its table by its name")
    reached = len(ways)
    reasons.append(f"{reached} other table{'' if reached == 1 else 's'} lead{'s' if reached == 1 else ''} to it")
    if _level((*words(column), *_kind_of_row(found))) == 0:
        reasons.append("it names people")
    return ", ".join(reasons)
