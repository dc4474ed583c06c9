"""Candidates for the privacy unit, and the path from each table to it: from names, types, keys and constraints.

Law: it only guesses, and says so. A way that is not there is not made up: the table is then left out of the draft.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpsql.owner.introspect.tables import IntrospectedColumn, IntrospectedTable
from dpsql.types import Kind

_ID_SUFFIXES = {"id", "ids", "uuid", "guid", "key", "no", "nr", "number", "num", "pk", "sk"}
_PERSON_WORDS = {
    "patient", "person", "people", "user", "customer", "client", "member", "employee", "student", "pupil", "subject",
    "participant", "respondent", "citizen", "resident", "passenger", "driver", "rider", "subscriber", "donor", "voter",
    "tenant", "beneficiary", "claimant", "insured", "visitor", "guest", "buyer", "seller", "borrower", "worker",
    "staff", "teacher", "contact", "player", "owner", "taxpayer", "holder", "ssn", "individual", "human",
}  # fmt: skip
_PERSON_LIKE_WORDS = {
    "household",
    "family",
    "account",
    "device",
    "card",
    "phone",
    "profile",
    "policy",
    "session",
    "vehicle",
}
_THING_WORDS = {
    "ward", "country", "city", "region", "state", "district", "product", "item", "category", "type", "status", "store",
    "shop", "department", "currency", "hospital", "clinic", "school", "warehouse", "supplier", "drug", "diagnosis",
    "station", "route", "airport", "branch", "channel", "campaign", "brand", "language", "genre", "calendar", "date",
}  # fmt: skip
_PREFIXES = {"tbl", "dim", "fact", "stg", "t"}
_PLURAL_ENDINGS = (("noses", "nosis"), ("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"))
_TIME_WORDS = {"year", "quarter", "month", "week", "day", "hour", "minute", "second", "date", "time", "at"}
_ID_ENDINGS = ("id", "num", "nr", "no", "key", "code", "uuid")
_ID_KINDS = {Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.HUGEINT, Kind.DECIMAL, Kind.TEXT, Kind.UUID}


@dataclass(frozen=True)
class KeyLink:
    """A column of `table` refers to `target.key`; `declared` by a constraint, or guessed from its name."""

    table: str
    column: str
    target: str
    key: str
    declared: bool


@dataclass(frozen=True)
class UnitCandidate:
    """A column that could be the privacy unit; `links_to_unit` lead each table that reaches it a step nearer."""

    table: str
    column: str
    links_to_unit: Mapping[str, KeyLink]
    why: str

    @property
    def name(self) -> str:
        return f"{self.table}.{self.column}"


def split_words(name: str) -> tuple[str, ...]:
    """
    >>> split_words("PatientID"), split_words("patient_id"), split_words("tbl_users")
    (('patient', 'id'), ('patient', 'id'), ('tbl', 'users'))
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return tuple(part.lower() for part in re.split(r"[^A-Za-z0-9]+", spaced) if part)


def to_singular(word: str) -> str:
    """
    >>> [to_singular(word) for word in ("patients", "diagnoses", "cities", "addresses", "people", "bus")]
    ['patient', 'diagnosis', 'city', 'address', 'person', 'bus']
    """
    if word == "people":
        return "person"
    for end, instead in _PLURAL_ENDINGS:
        if word.endswith(end):
            return word.removesuffix(end) + instead
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _entity_of_table(table: IntrospectedTable) -> tuple[str, ...]:
    """What a row of the table is, by its name."""
    parts = split_words(table.name)
    parts = parts[1:] if len(parts) > 1 and parts[0] in _PREFIXES else parts
    return (*parts[:-1], to_singular(parts[-1])) if parts else ()


def _subject_of_id(column: IntrospectedColumn) -> tuple[str, ...] | None:
    """Whose id the column is by its name: ("patient",) of patient_id, () of id; None if it is no id."""
    if column.type is None or column.type.kind not in _ID_KINDS or column.values:
        return None
    parts = split_words(column.name)
    if parts and parts[-1] in _ID_SUFFIXES:
        return tuple(to_singular(part) for part in parts[:-1])
    bare = len(parts) == 1 and to_singular(parts[0]) in _PERSON_WORDS
    return (to_singular(parts[0]),) if bare else None


def is_id_column(column: IntrospectedColumn) -> bool:
    """Whether a column looks like an id, of whatever: a number of it is no quantity."""
    return _subject_of_id(column) is not None


def key_column_of(table: IntrospectedTable) -> tuple[str, bool] | None:
    """The column that a row of the table is named by, and whether a constraint says so."""
    for key in table.unique:
        column = table.find_column(key[0]) if len(key) == 1 else None
        if column is not None and column.type is not None and column.type.kind in _ID_KINDS:
            return column.name, True
    entity = _entity_of_table(table)
    for column in table.columns:
        subject = _subject_of_id(column)
        if subject is not None and (subject == entity or (subject == () and column.name.lower() in ("id", "uuid"))):
            return column.name, False
    return None


def find_links(tables: Sequence[IntrospectedTable]) -> tuple[KeyLink, ...]:
    """Declared foreign keys of one column, then those that names tell."""
    types = {(table.name, column.name): column.type for table in tables for column in table.columns}
    links = {
        (link.table, link.column, link.target): link
        for link in _declared_links(tables)
        if types[link.table, link.column] == types[link.target, link.key]  # as a schema demands
        and getattr(types[link.target, link.key], "kind", None) in _ID_KINDS
    }
    linked = {(link.table, link.column) for link in links.values()}
    for link in _links_by_name(tables):
        if (link.table, link.column) not in linked:
            links.setdefault((link.table, link.column, link.target), link)
    return tuple(links.values())


def _declared_links(tables: Sequence[IntrospectedTable], within: bool = False) -> Iterator[KeyLink]:
    """From table to table, or `within` one."""
    for table in tables:
        for reference in table.references:
            if len(reference.columns) == 1 and (reference.table == table.name) is within:
                yield KeyLink(table.name, reference.columns[0], reference.table, reference.keys[0], True)


def _links_by_name(tables: Sequence[IntrospectedTable]) -> Iterator[KeyLink]:
    homes = [(table, key[0]) for table in tables if (key := key_column_of(table)) is not None]
    for table in tables:
        for column in table.columns:
            subject = _subject_of_id(column)
            for home, key_name in homes if subject else ():
                entity, key_column = _entity_of_table(home), home.find_column(key_name)
                assert subject is not None and key_column is not None
                is_same = subject == entity or subject[-len(entity) :] == entity  # also sender_user_id
                if home is not table and entity and is_same and key_column.type == column.type:
                    yield KeyLink(table.name, column.name, home.name, key_name, False)


def _ids_without_table(
    tables: Sequence[IntrospectedTable], links: Sequence[KeyLink]
) -> Iterator[tuple[str, str, tuple[KeyLink, ...]]]:
    """Ids that stand in tables without a table of their own: one of these is taken for it."""
    linked = {(link.table, link.column) for link in links}
    by_subject: dict[tuple[str, ...], list[tuple[IntrospectedTable, IntrospectedColumn]]] = {}
    for table in tables:
        key = key_column_of(table)
        for column in table.columns:
            is_own_key = key is not None and key[0] == column.name
            subject = _subject_of_id(column)
            if subject and not is_own_key and (table.name, column.name) not in linked:
                by_subject.setdefault(subject, []).append((table, column))
    for occurrences in by_subject.values():
        occurrences.sort(key=lambda occurrence: (occurrence[1].name,) not in occurrence[0].unique)
        (home, first), *others = occurrences
        yield (
            home.name,
            first.name,
            tuple(
                KeyLink(table.name, column.name, home.name, first.name, False)
                for table, column in others
                if table is not home and column.type == first.type
            ),
        )


def _shared_columns(tables: Sequence[IntrospectedTable]) -> Iterator[tuple[str, str, tuple[KeyLink, ...]]]:
    """Columns that several tables have, of which one begins with it or has each value once: ids of whatever they name,
    though none is called so, such as tailnum in planes and flights."""
    seen: set[tuple[str, str]] = set()
    for is_unique in (True, False):
        for home in tables:
            for index, column in enumerate(home.columns):
                is_key = (column.name,) in home.unique if is_unique else index == 0
                sharing = [
                    table
                    for table in tables
                    if table is not home and getattr(table.find_column(column.name), "type", None) == column.type
                ]
                named = (column.name, str(column.type))
                if is_key and sharing and _can_be_id(column) and named not in seen:
                    seen.add(named)
                    links = (KeyLink(table.name, column.name, home.name, column.name, False) for table in sharing)
                    yield home.name, column.name, tuple(links)


def _can_be_id(column: IntrospectedColumn) -> bool:
    kind = column.type.kind if column.type is not None else None
    return kind in _ID_KINDS - {Kind.DECIMAL} and not column.values and not _TIME_WORDS & set(split_words(column.name))


def find_candidates(tables: Sequence[IntrospectedTable]) -> tuple[UnitCandidate, ...]:
    """The columns that could be the unit, the likeliest first: ids by their names, else columns that tables share."""
    links = find_links(tables)
    candidates: dict[tuple[str, str], UnitCandidate] = {}
    for table in tables:
        for column in sorted(_id_columns_of(table, links)):
            candidates[table.name, column] = make_candidate(tables, table.name, column, links)
    for home, column, more in _ids_without_table(tables, links):
        candidates.setdefault((home, column), make_candidate(tables, home, column, (*links, *more)))
    if not candidates:
        for home, column, more in _shared_columns(tables):
            candidates[home, column] = make_candidate(tables, home, column, (*links, *more))
    order = {table.name: index for index, table in enumerate(tables)}
    return tuple(
        sorted(candidates.values(), key=lambda unit: (*_rank_candidate(tables, unit), order[unit.table], unit.column))
    )


def _id_columns_of(table: IntrospectedTable, links: Sequence[KeyLink]) -> set[str]:
    key = key_column_of(table)
    return {link.key for link in links if link.target == table.name} | ({key[0]} if key else set())


def make_candidate(
    tables: Sequence[IntrospectedTable], table: str, column: str, links: Sequence[KeyLink] | None = None
) -> UnitCandidate:
    """The column as the unit, with the ways that lead to it; `links` are found if they are not given."""
    if links is None:
        all_links = find_links(tables)
        homeless = [
            more for home, first, more in _ids_without_table(tables, all_links) if (home, first) == (table, column)
        ]
        links = (*all_links, *(link for more in homeless for link in more), *_links_by_same_name(tables, table, column))
    links_to_unit = find_unit_paths(tables, table, column, links)
    return UnitCandidate(table, column, links_to_unit, _explain_candidate(tables, table, column, links_to_unit))


def _links_by_same_name(tables: Sequence[IntrospectedTable], table: str, column: str) -> Iterator[KeyLink]:
    """The owner has named the unit: other columns of its name and type refer to it."""
    unit_column = next((unit_table.find_column(column) for unit_table in tables if unit_table.name == table), None)
    for other in tables:
        same_column = other.find_column(column)
        if (
            unit_column is not None
            and same_column is not None
            and other.name != table
            and same_column.type == unit_column.type
        ):
            yield KeyLink(other.name, column, table, column, False)


def find_unit_paths(
    tables: Sequence[IntrospectedTable], table: str, column: str, links: Sequence[KeyLink]
) -> dict[str, KeyLink]:
    """The step that each table takes to the unit, along the fewest steps; declared keys before guessed ones."""
    links_to_unit: dict[str, KeyLink] = {}
    nearer = {(table, column)}
    while nearer:
        step = [
            link
            for link in sorted(links, key=lambda link: not link.declared)
            if (link.target, link.key) in nearer and link.table != table and link.table not in links_to_unit
        ]
        fresh: dict[str, KeyLink] = {}
        for link in step:
            fresh.setdefault(link.table, link)
        links_to_unit |= fresh
        nearer = {(reached.name, key) for reached in tables if reached.name in fresh for key in _key_columns(reached)}
    return links_to_unit


def _key_columns(table: IntrospectedTable) -> set[str]:
    """The columns by which another table may name a row of this one."""
    key = key_column_of(table)
    return {key[0] for key in table.unique if len(key) == 1} | ({key[0]} if key else set())


def second_unit_columns(unit: UnitCandidate, tables: Sequence[IntrospectedTable], table: str) -> tuple[str, ...]:
    """Other columns of the table that name a unit: whom they name is not protected by its rows."""
    own_table = next(item for item in tables if item.name == table)
    link = unit.links_to_unit.get(table)
    own_column = unit.column if table == unit.table else link.column if link else None
    links = (*find_links(tables), *_declared_links((own_table,), within=True))
    to_unit = [link for link in links if (link.table, link.target, link.key) == (table, unit.table, unit.column)]
    linked = [link.column for link in to_unit]
    return tuple(
        dict.fromkeys(
            column for column in (*linked, *_similar_unit_columns(unit, tables, own_table)) if column != own_column
        )
    )


def _similar_unit_columns(
    unit: UnitCandidate, tables: Sequence[IntrospectedTable], table: IntrospectedTable
) -> Iterator[str]:
    """Ids of the unit's type, of the same by their names: manager_employee_id beside employee_id."""
    home = next(item for item in tables if item.name == unit.table)
    unit_column = home.find_column(unit.column)
    assert unit_column is not None
    subject = _subject_of_id(unit_column)
    ending = _entity_of_table(home) if subject == () else subject
    for column in table.columns if ending else ():
        whose = _subject_of_id(column)
        if whose and ending and whose[-1] == ending[-1] and column.type == unit_column.type:
            yield column.name


def names_people(table: str, column: str) -> bool:
    """Whether an id is one of people, by its name or by that of the table whose rows it names.

    >>> names_people("visits", "patient_id"), names_people("users", "id"), names_people("pid", "id")
    (True, True, False)
    """
    return _name_rank((*split_words(column), *split_words(table))) == 0


def _name_rank(names: Sequence[str]) -> int:
    singulars = {to_singular(name) for name in names}
    return (
        0
        if singulars & _PERSON_WORDS
        else 1
        if singulars & _PERSON_LIKE_WORDS
        else 3
        if singulars & _THING_WORDS
        else 2
    )


def _rank_candidate(tables: Sequence[IntrospectedTable], unit: UnitCandidate) -> tuple[int, int, int, int]:
    table = next(table for table in tables if table.name == unit.table)
    key = key_column_of(table)
    level = min(
        _name_rank(split_words(unit.column)),
        _name_rank(_entity_of_table(table)) if key and key[0] == unit.column else 3,
    )
    is_key, ends_as_id = key is not None and key[0] == unit.column, unit.column.lower().endswith(_ID_ENDINGS)
    return level, -len(unit.links_to_unit), 0 if is_key else 1, 0 if ends_as_id else 1


def _explain_candidate(
    tables: Sequence[IntrospectedTable], table: str, column: str, links_to_unit: Mapping[str, KeyLink]
) -> str:
    unit_table = next(unit_table for unit_table in tables if unit_table.name == table)
    key = key_column_of(unit_table)
    reasons = []
    if key is not None and key[0] == column:
        reasons.append("a key of its table" if key[1] else "the key of its table by its name")
    reached = len(links_to_unit)
    if reached:
        reasons.append(f"{reached} other table{'' if reached == 1 else 's'} lead{'s' if reached == 1 else ''} to it")
    elif len(tables) > 1:
        reasons.append("no other table leads to it")
    if _name_rank((*split_words(column), *_entity_of_table(unit_table))) == 0:
        reasons.append("it names people")
    return ", ".join(reasons) or "by its name"
