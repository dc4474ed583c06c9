"""Names of objects to their numbers and back, as PostgreSQL's regclass and its sisters read and print them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from dpsql.catalog import functions
from dpsql.catalog.builtin import relations, rows
from dpsql.catalog.objects import OWNER, OWNER_NAME, SPACES, objects_of
from dpsql.catalog.relations import (
    constraint_definitions,
    index_definition,
    quoted,
    type_numbers,
    types,
    view_text,
)
from dpsql.errors import ProgrammingError, UnknownFunction, UnknownTable
from dpsql.schema.model import Schema, View
from dpsql.span import Span

_STORED = {
    "oid": "UINTEGER", "xid": "UINTEGER", "cid": "UINTEGER", "boolean": "BOOLEAN", "bool": "BOOLEAN",
    "smallint": "SMALLINT", "int2": "SMALLINT", "integer": "INTEGER", "int4": "INTEGER", "bigint": "BIGINT",
    "int8": "BIGINT", "real": "REAL", "float4": "REAL", "double precision": "DOUBLE", "float8": "DOUBLE",
    "numeric": "DECIMAL(18, 3)", "int2vector": "SMALLINT[]", "oidvector": "UINTEGER[]",
    "timestamp with time zone": "TIMESTAMPTZ", "timestamptz": "TIMESTAMPTZ", "timestamp": "TIMESTAMP", "date": "DATE",
    "time": "TIME", "interval": "INTERVAL", "uuid": "UUID", "json": "JSON", "jsonb": "JSON",
    "cardinal_number": "INTEGER", "time_stamp": "TIMESTAMPTZ",
}  # fmt: skip


def storage(spelled: str) -> str:
    """The type of DuckDB in which values of a type of PostgreSQL stand; all that is no number is text.

    >>> storage("oid"), storage("name[]"), storage("regproc"), storage('"char"')
    ('UINTEGER', 'VARCHAR[]', 'UINTEGER', 'VARCHAR')
    """
    if spelled.endswith("[]"):
        return storage(spelled[:-2]) + "[]"
    word = spelled.removeprefix("information_schema.")
    return "UINTEGER" if word.startswith("reg") else _STORED.get(word, "VARCHAR")


# --- tables of the database, which its macros read --------------------------------------------------------------------


def relation_rows(schema: Schema) -> Iterator[tuple[int, str, str, bool, bool]]:
    """Number, name, how regclass prints it, whether it is found without its schema, whether it is a table of ours."""
    objects = objects_of(schema)
    for one in objects.relations:
        yield one.oid, one.name, quoted(one.name), True, one.kind == "r"
    for key in objects.keys:
        yield key.index, key.name, quoted(key.name), True, False
    for catalog in relations().values():
        visible = catalog.place == "pg_catalog"
        shown = quoted(catalog.name) if visible else f"{catalog.place}.{quoted(catalog.name)}"
        yield catalog.oid, catalog.name, shown, visible, False


def relation_names(schema: Schema) -> Iterator[tuple[str, int]]:
    """All ways to write each: with and without its schema, with and without quotes."""
    objects = objects_of(schema)
    own = [(one.oid, one.name) for one in objects.relations] + [(key.index, key.name) for key in objects.keys]
    for oid, name in own:
        yield from ((text, oid) for text in _written("public", name, True))
    for catalog in relations().values():
        plain = catalog.place == "pg_catalog"
        yield from ((text, catalog.oid) for text in _written(catalog.place, catalog.name, plain))


def _written(place: str, name: str, plain: bool) -> list[str]:
    always = '"' + name.replace('"', '""') + '"'
    names = dict.fromkeys((quoted(name), always))
    full = [f"{space}.{one}" for space in (place, f'"{place}"') for one in names]
    return [*full, *names] if plain else full


_BOTH = {"timestamp": ("timestamp", " without time zone"), "timestamptz": ("timestamp", " with time zone"),
         "time": ("time", " without time zone"), "timetz": ("time", " with time zone"),
         "varchar": ("character varying", ""), "bpchar": ("character", ""), "numeric": ("numeric", ""),
         "bit": ("bit", ""), "varbit": ("bit varying", ""), "interval": ("interval", "")}  # fmt: skip
_SPELLED = {"bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real",
            "float8": "double precision", "char": '"char"'}  # fmt: skip


def type_rows(schema: Schema) -> Iterator[tuple[int, str, bool, str | None, str, bool, bool]]:
    """Number, how it prints, visible, what stands before and after a modifier, whether numeric, whether a length."""
    for oid, row in types().items():
        name = row["typname"]
        array = row["typcategory"] == "A" and not name.endswith("vector")
        base = types()[int(row["typelem"])]["typname"] if array else name
        brackets = "[]" if array else ""
        before, after = _BOTH.get(base, (None, ""))
        visible = row["typnamespace"] == str(SPACES["pg_catalog"])
        told = _SPELLED.get(base, f"{before}{after}" if before else quoted(base))
        shown = told if visible else f"information_schema.{told}"
        length = base in ("varchar", "bpchar")
        yield oid, shown + brackets, visible, before, after + brackets, base == "numeric", length
    for one in objects_of(schema).relations:
        yield one.row_type, quoted(one.name), True, None, "", False, False
        yield one.row_array, quoted(one.name) + "[]", True, None, "", False, False


def type_names(schema: Schema) -> Iterator[tuple[str, int]]:
    """All ways to write each."""
    arrays = {oid: int(row["typarray"]) for oid, row in types().items()}
    known = type_numbers()
    others = {"int": "int4", "decimal": "numeric", "timestamp without time zone": "timestamp", "float": "float8",
              "time without time zone": "time", "character": "bpchar"}  # fmt: skip
    for name, oid in {**known, **{word: known[name] for word, name in others.items()}}.items():
        for prefix in ("", "pg_catalog."):
            yield f"{prefix}{name}", oid
            if arrays[oid]:
                yield f"{prefix}{name}[]", arrays[oid]
    for one in objects_of(schema).relations:
        for text in _written("public", one.name, True):
            yield text, one.row_type
            yield f"{text}[]", one.row_array


def comment_rows(schema: Schema, described: list[tuple[object, ...]]) -> Iterator[tuple[int, str, int, str]]:
    """Of pg_description's rows: object, the catalog that lists it, column, text."""
    named = {catalog.oid: catalog.name for catalog in relations().values()}
    for object_, class_, place, text in described:
        yield int(str(object_)), named[int(str(class_))], int(str(place)), str(text)


def constraint_rows(schema: Schema) -> Iterator[tuple[int, str]]:
    return constraint_definitions(objects_of(schema))


def index_rows(schema: Schema) -> Iterator[tuple[int, int, str, str]]:
    """The whole definition at place 0, and its columns; each also as it is told in short."""
    for key in objects_of(schema).keys:
        yield key.index, 0, index_definition(key), index_definition(key, "")
        yield from ((key.index, place, quoted(name), quoted(name)) for place, name in enumerate(key.columns, 1))


def view_rows(schema: Schema) -> Iterator[tuple[int, str]]:
    for one in objects_of(schema).relations:
        if isinstance(one.declared, View):
            yield one.oid, view_text(one.declared)


def procedure_rows() -> Iterator[tuple[int, str, str, str, str | None, str]]:
    """Number, name, arguments, those that tell it from others, result, and name with arguments."""
    names = {row[0]: str(row[1]) for row in rows("pg_proc")}
    for oid, arguments, identity, result, signature in rows("procedures"):
        yield int(str(oid)), names[oid], str(arguments), str(identity), result, str(signature)
    for number, given, same, result, signature in functions.texts():
        yield number, signature.split("(")[0], given, same, result, signature


def role_rows() -> Iterator[tuple[int, str]]:
    """Those of every server, and the owner."""
    yield OWNER, OWNER_NAME
    yield from ((int(str(oid)), str(name)) for oid, name, *_ in rows("pg_authid"))


def space_rows() -> Iterator[tuple[int, str]]:
    return ((oid, name) for name, oid in SPACES.items())


# --- of one statement ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Names:
    """What names in a statement mean as it is read."""

    relations: dict[str, int]
    types: dict[str, int]
    procedures: dict[str, int]
    roles: tuple[tuple[str, int], ...] = ()

    def number(self, kind: str, text: str, span: Span | None) -> int:
        """'visits'::regclass: numbers and "-" are there for themselves."""
        word = _folded(text.strip())
        if word.isdigit():
            return int(word)
        if word == "-":
            return 0
        found = self._table(kind).get(word)
        if found is None:
            raise _unknown(kind, text, span)
        return found

    def _table(self, kind: str) -> dict[str, int]:
        match kind:
            case "regclass":
                return self.relations
            case "regtype":
                return self.types
            case "regproc" | "regprocedure":
                return self.procedures
            case "regnamespace":
                return SPACES
            case "regrole":
                return {OWNER_NAME: OWNER, **dict(self.roles)}
            case "regcollation":
                return {str(row[1]): int(str(row[0])) for row in rows("pg_collation")}
            case _:
                return {}


def _folded(text: str) -> str:
    """Lower case outside of quotes.

    >>> _folded('Public."Odd Names"'), _folded("VISITS")
    ('public."Odd Names"', 'visits')
    """
    return "".join(part if part.startswith('"') else part.lower() for part in re.split(r'("(?:[^"]|"")*")', text))


def _unknown(kind: str, text: str, span: Span | None) -> ProgrammingError:
    match kind:
        case "regclass":
            return UnknownTable(f'relation "{text}" does not exist', span=span)
        case "regproc" | "regprocedure":
            return UnknownFunction(f'function "{text}" does not exist', span=span)
        case "regnamespace":
            return ProgrammingError(f'schema "{text}" does not exist', span=span, sqlstate="3F000")
        case _:
            return ProgrammingError(f'{kind[3:]} "{text}" does not exist', span=span, sqlstate="42704")


@lru_cache(maxsize=16)
def names_of(schema: Schema) -> Names:
    procedures: dict[str, int] = {}
    for oid, name, _, _, _, signature in procedure_rows():
        for text in (name, f"pg_catalog.{name}", signature, f"pg_catalog.{signature}"):
            procedures.setdefault(text, oid)
    return Names(dict(relation_names(schema)), dict(type_names(schema)), procedures)
