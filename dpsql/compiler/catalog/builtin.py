"""What PostgreSQL 16 has before anything is created in it: the columns of its catalogs, and their first rows.

`data/` was written by `tests/support/catalog_data.py` from a server, in the text that COPY writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

CATALOG_SCHEMAS = ("pg_catalog", "information_schema")


@dataclass(frozen=True)
class Attribute:
    """A column of a catalog's relation; `type` as PostgreSQL spells it: oid, text[], "char" with its quotes."""

    name: str
    type: str
    required: bool


@dataclass(frozen=True)
class CatalogRelation:
    namespace: str
    name: str
    oid: int
    row_type: int
    kind: str
    attributes: tuple[Attribute, ...]


def find_relation(namespace: str, name: str) -> CatalogRelation | None:
    return load_relations().get((namespace, name))


@cache
def load_relations() -> dict[tuple[str, str], CatalogRelation]:
    by_name = {}
    for namespace, name, oid, row_type, kind, columns in _read_lines("relations"):
        attributes = tuple(_parse_attribute(column) for column in str(columns).split(","))
        numbers = int(str(oid)), int(str(row_type))
        by_name[str(namespace), str(name)] = CatalogRelation(str(namespace), str(name), *numbers, str(kind), attributes)
    return by_name


def _parse_attribute(text: str) -> Attribute:
    name, null, type_ = re.fullmatch(r"(\S+) (not null|null) (.+)", text).groups()  # type: ignore[union-attr]
    return Attribute(name, type_, null == "not null")


@cache
def load_rows(name: str) -> tuple[tuple[str | None, ...], ...]:
    """The rows of a file, as text."""
    return tuple(_read_lines(name))


@cache
def load_column_names(name: str) -> tuple[str, ...]:
    return tuple(_read_data_file(name).split("\n", 1)[0].split("\t"))


def _read_lines(name: str) -> Iterator[tuple[str | None, ...]]:
    for line in _read_data_file(name).split("\n")[1:]:
        if line:
            yield tuple(None if cell == r"\N" else _unescape_cell(cell) for cell in line.split("\t"))


def _read_data_file(name: str) -> str:
    return (files("dpsql.compiler.catalog") / "data" / f"{name}.tsv").read_text(encoding="utf-8")


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}


def _unescape_cell(text: str) -> str:
    """As COPY reads it.

    >>> _unescape_cell(r"a\\nb\\\\c")
    'a\\nb\\\\c'
    """
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text) if "\\" in text else text


def parse_array_text(text: str) -> list[str | None]:
    """The elements of an array's text.

    >>> parse_array_text('{a,"b,\\\\"c",NULL}'), parse_array_text("{}")
    (['a', 'b,"c', None], [])
    """
    parts: list[str | None] = []
    for match in re.finditer(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,{}"]+?))\s*(?=[,}])', text[text.index("{") :]):
        quoted, plain = match.groups()
        if quoted is not None:
            parts.append(re.sub(r"\\(.)", r"\1", quoted))
        else:
            parts.append(None if plain.upper() == "NULL" else plain)
    return parts
