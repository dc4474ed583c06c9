"""What PostgreSQL 16 has before anything is created in it: the columns of its catalogs, and their first rows.

`data/` was written by `tests/support/catalog_data.py` from a server, in the text that COPY writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

PLACES = ("pg_catalog", "information_schema")


@dataclass(frozen=True)
class Attribute:
    """A column of a catalog's relation; `type` as PostgreSQL spells it: oid, text[], "char" with its quotes."""

    name: str
    type: str
    required: bool


@dataclass(frozen=True)
class Relation:
    place: str
    name: str
    oid: int
    row_type: int
    kind: str
    attributes: tuple[Attribute, ...]

    def attribute(self, name: str) -> Attribute | None:
        return next((known for known in self.attributes if known.name == name), None)


def relation(place: str, name: str) -> Relation | None:
    return relations().get((place, name))


@cache
def relations() -> dict[tuple[str, str], Relation]:
    found = {}
    for place, name, oid, row_type, kind, columns in _lines("relations"):
        attributes = tuple(_attribute(column) for column in str(columns).split(","))
        numbers = int(str(oid)), int(str(row_type))
        found[str(place), str(name)] = Relation(str(place), str(name), *numbers, str(kind), attributes)
    return found


def _attribute(text: str) -> Attribute:
    name, null, type_ = re.fullmatch(r"(\S+) (not null|null) (.+)", text).groups()  # type: ignore[union-attr]
    return Attribute(name, type_, null == "not null")


@cache
def rows(name: str) -> tuple[tuple[str | None, ...], ...]:
    """The rows of a file, as text."""
    return tuple(_lines(name))


@cache
def titles(name: str) -> tuple[str, ...]:
    return tuple(_text(name).split("\n", 1)[0].split("\t"))


def _lines(name: str) -> Iterator[tuple[str | None, ...]]:
    for line in _text(name).split("\n")[1:]:
        if line:
            yield tuple(None if cell == r"\N" else _cell(cell) for cell in line.split("\t"))


def _text(name: str) -> str:
    return (files("dpsql.catalog") / "data" / f"{name}.tsv").read_text(encoding="utf-8")


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}


def _cell(text: str) -> str:
    """As COPY reads it.

    >>> _cell(r"a\\nb\\\\c")
    'a\\nb\\\\c'
    """
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text) if "\\" in text else text


def elements(text: str) -> list[str | None]:
    """The elements of an array's text.

    >>> elements('{a,"b,\\\\"c",NULL}'), elements("{}")
    (['a', 'b,"c', None], [])
    """
    found: list[str | None] = []
    for match in re.finditer(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,{}"]+?))\s*(?=[,}])', text[text.index("{") :]):
        quoted, plain = match.groups()
        if quoted is not None:
            found.append(re.sub(r"\\(.)", r"\1", quoted))
        else:
            found.append(None if plain.upper() == "NULL" else plain)
    return found
