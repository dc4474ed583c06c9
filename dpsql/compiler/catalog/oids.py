"""Names of objects to their numbers and back, as PostgreSQL's regclass and its sisters read and print them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from dpsql.compiler.catalog.builtin import load_relations, load_rows
from dpsql.compiler.catalog.objects import NAMESPACE_OIDS, OWNER_NAME, OWNER_OID, objects_of
from dpsql.compiler.catalog.pg_catalog import (
    constraint_definitions,
    function_signatures,
    index_definition,
    load_types,
    quote_ident,
    type_oids,
    view_definition,
)
from dpsql.errors import ProgrammingError, Span, UnknownFunction, UnknownTable
from dpsql.schema.model import Schema, View

_DUCKDB_TYPES = {
    "oid": "UINTEGER", "xid": "UINTEGER", "cid": "UINTEGER", "boolean": "BOOLEAN", "bool": "BOOLEAN",
    "smallint": "SMALLINT", "int2": "SMALLINT", "integer": "INTEGER", "int4": "INTEGER", "bigint": "BIGINT",
    "int8": "BIGINT", "real": "REAL", "float4": "REAL", "double precision": "DOUBLE", "float8": "DOUBLE",
    "numeric": "DECIMAL(18, 3)", "int2vector": "SMALLINT[]", "oidvector": "UINTEGER[]",
    "timestamp with time zone": "TIMESTAMPTZ", "timestamptz": "TIMESTAMPTZ", "timestamp": "TIMESTAMP", "date": "DATE",
    "time": "TIME", "interval": "INTERVAL", "uuid": "UUID", "json": "JSON", "jsonb": "JSON",
    "cardinal_number": "INTEGER", "time_stamp": "TIMESTAMPTZ",
}  # fmt: skip


def duckdb_type_of(type_name: str) -> str:
    """The type of DuckDB in which values of a type of PostgreSQL stand; all that is no number is text.

    >>> duckdb_type_of("oid"), duckdb_type_of("name[]"), duckdb_type_of("regproc"), duckdb_type_of('"char"')
    ('UINTEGER', 'VARCHAR[]', 'UINTEGER', 'VARCHAR')
    """
    if type_name.endswith("[]"):
        return duckdb_type_of(type_name[:-2]) + "[]"
    word = type_name.removeprefix("information_schema.")
    return "UINTEGER" if word.startswith("reg") else _DUCKDB_TYPES.get(word, "VARCHAR")


# --- tables of the database, which its macros read --------------------------------------------------------------------


def relation_rows(schema: Schema) -> Iterator[tuple[int, str, str, bool, bool]]:
    """Number, name, how regclass prints it, whether it is found without its schema, whether it is a table of ours."""
    objects = objects_of(schema)
    for relation in objects.relations:
        yield relation.oid, relation.name, quote_ident(relation.name), True, relation.kind == "r"
    for key in objects.keys:
        yield key.index, key.name, quote_ident(key.name), True, False
    for catalog in load_relations().values():
        visible = catalog.namespace == "pg_catalog"
        printed = quote_ident(catalog.name) if visible else f"{catalog.namespace}.{quote_ident(catalog.name)}"
        yield catalog.oid, catalog.name, printed, visible, False


def relation_names(schema: Schema) -> Iterator[tuple[str, int]]:
    """All ways to write each: with and without its schema, with and without quotes."""
    objects = objects_of(schema)
    declared = [(relation.oid, relation.name) for relation in objects.relations] + [
        (key.index, key.name) for key in objects.keys
    ]
    for oid, name in declared:
        yield from ((text, oid) for text in _name_spellings("public", name, True))
    for catalog in load_relations().values():
        plain = catalog.namespace == "pg_catalog"
        yield from ((text, catalog.oid) for text in _name_spellings(catalog.namespace, catalog.name, plain))


def _name_spellings(namespace: str, name: str, plain: bool) -> list[str]:
    always = '"' + name.replace('"', '""') + '"'
    names = dict.fromkeys((quote_ident(name), always))
    full = [f"{space}.{spelling}" for space in (namespace, f'"{namespace}"') for spelling in names]
    return [*full, *names] if plain else full


_MODIFIER_AFFIXES = {"timestamp": ("timestamp", " without time zone"), "timestamptz": ("timestamp", " with time zone"),
         "time": ("time", " without time zone"), "timetz": ("time", " with time zone"),
         "varchar": ("character varying", ""), "bpchar": ("character", ""), "numeric": ("numeric", ""),
         "bit": ("bit", ""), "varbit": ("bit varying", ""), "interval": ("interval", "")}  # fmt: skip
_PRINTED_TYPES = {"bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real",
            "float8": "double precision", "char": '"char"'}  # fmt: skip


def type_rows(schema: Schema) -> Iterator[tuple[int, str, bool, str | None, str, bool, bool]]:
    """Number, how it prints, visible, what stands before and after a modifier, whether numeric, whether a length."""
    for oid, row in load_types().items():
        name = row["typname"]
        array = row["typcategory"] == "A" and not name.endswith("vector")
        base = load_types()[int(row["typelem"])]["typname"] if array else name
        brackets = "[]" if array else ""
        before, after = _MODIFIER_AFFIXES.get(base, (None, ""))
        visible = row["typnamespace"] == str(NAMESPACE_OIDS["pg_catalog"])
        type_name = _PRINTED_TYPES.get(base, f"{before}{after}" if before else quote_ident(base))
        printed = type_name if visible else f"information_schema.{type_name}"
        length = base in ("varchar", "bpchar")
        yield oid, printed + brackets, visible, before, after + brackets, base == "numeric", length
    for relation in objects_of(schema).relations:
        yield relation.row_type, quote_ident(relation.name), True, None, "", False, False
        yield relation.row_array, quote_ident(relation.name) + "[]", True, None, "", False, False


def type_names(schema: Schema) -> Iterator[tuple[str, int]]:
    """Every spelling of a type, with its number."""
    arrays = {oid: int(row["typarray"]) for oid, row in load_types().items()}
    oids = type_oids()
    others = {"int": "int4", "decimal": "numeric", "timestamp without time zone": "timestamp", "float": "float8",
              "time without time zone": "time", "character": "bpchar"}  # fmt: skip
    for name, oid in {**oids, **{word: oids[name] for word, name in others.items()}}.items():
        for prefix in ("", "pg_catalog."):
            yield f"{prefix}{name}", oid
            if arrays[oid]:
                yield f"{prefix}{name}[]", arrays[oid]
    for relation in objects_of(schema).relations:
        for text in _name_spellings("public", relation.name, True):
            yield text, relation.row_type
            yield f"{text}[]", relation.row_array


def comment_rows(schema: Schema, described: list[tuple[object, ...]]) -> Iterator[tuple[int, str, int, str]]:
    """Rows of pg_description: object, the catalog that lists it, column, text."""
    named = {catalog.oid: catalog.name for catalog in load_relations().values()}
    for object_, class_, position, text in described:
        yield int(str(object_)), named[int(str(class_))], int(str(position)), str(text)


def constraint_rows(schema: Schema) -> Iterator[tuple[int, str]]:
    return constraint_definitions(objects_of(schema))


def index_rows(schema: Schema) -> Iterator[tuple[int, int, str, str]]:
    """The whole definition at place 0, and its columns; each also as it is told in short."""
    for key in objects_of(schema).keys:
        yield key.index, 0, index_definition(key), index_definition(key, "")
        yield from (
            (key.index, position, quote_ident(name), quote_ident(name)) for position, name in enumerate(key.columns, 1)
        )


def view_rows(schema: Schema) -> Iterator[tuple[int, str]]:
    for relation in objects_of(schema).relations:
        if isinstance(relation.declared, View):
            yield relation.oid, view_definition(relation.declared)


def procedure_rows() -> Iterator[tuple[int, str, str, str, str | None, str]]:
    """Number, name, arguments, those that tell it from others, result, and name with arguments."""
    names = {row[0]: str(row[1]) for row in load_rows("pg_proc")}
    for oid, arguments, identity, result, signature in load_rows("procedures"):
        yield int(str(oid)), names[oid], str(arguments), str(identity), result, str(signature)
    for number, arguments_text, identity_text, result, signature in function_signatures():
        yield number, signature.split("(")[0], arguments_text, identity_text, result, signature


def role_rows() -> Iterator[tuple[int, str]]:
    """Those of every server, and the owner."""
    yield OWNER_OID, OWNER_NAME
    yield from ((int(str(oid)), str(name)) for oid, name, *_ in load_rows("pg_authid"))


def namespace_rows() -> Iterator[tuple[int, str]]:
    return ((oid, name) for name, oid in NAMESPACE_OIDS.items())


# --- of one statement ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ObjectOids:
    """What names in a statement mean as it is read."""

    relations: dict[str, int]
    types: dict[str, int]
    procedures: dict[str, int]
    roles: tuple[tuple[str, int], ...] = ()

    def find_oid(self, kind: str, text: str, span: Span | None) -> int:
        """'visits'::regclass: numbers and "-" are there for themselves."""
        word = _fold_case(text.strip())
        if word.isdigit():
            return int(word)
        if word == "-":
            return 0
        oid = self._oids_of_kind(kind).get(word)
        if oid is None:
            raise _unknown_object_error(kind, text, span)
        return oid

    def _oids_of_kind(self, kind: str) -> dict[str, int]:
        match kind:
            case "regclass":
                return self.relations
            case "regtype":
                return self.types
            case "regproc" | "regprocedure":
                return self.procedures
            case "regnamespace":
                return NAMESPACE_OIDS
            case "regrole":
                return {OWNER_NAME: OWNER_OID, **dict(self.roles)}
            case "regcollation":
                return {str(row[1]): int(str(row[0])) for row in load_rows("pg_collation")}
            case _:
                return {}


def _fold_case(text: str) -> str:
    """Lower case outside of quotes.

    >>> _fold_case('Public."Odd Names"'), _fold_case("VISITS")
    ('public."Odd Names"', 'visits')
    """
    return "".join(part if part.startswith('"') else part.lower() for part in re.split(r'("(?:[^"]|"")*")', text))


def _unknown_object_error(kind: str, text: str, span: Span | None) -> ProgrammingError:
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
def object_oids_of(schema: Schema) -> ObjectOids:
    procedures: dict[str, int] = {}
    for oid, name, _, _, _, signature in procedure_rows():
        for text in (name, f"pg_catalog.{name}", signature, f"pg_catalog.{signature}"):
            procedures.setdefault(text, oid)
    return ObjectOids(dict(relation_names(schema)), dict(type_names(schema)), procedures)
