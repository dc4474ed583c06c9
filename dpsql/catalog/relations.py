"""pg_class, pg_attribute, pg_type and their sisters for the schema's own tables, views and keys, and for the catalogs.

Sizes and row estimates are constants, whatever the data holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from dpsql.catalog.builtin import Relation, relations, rows, titles
from dpsql.catalog.describe import column_comment, table_comment
from dpsql.catalog.objects import DATABASE, OWNER, PUBLIC, SPACES, Key, Objects, objects_of
from dpsql.catalog.pg_types import pg_type, type_modifier
from dpsql.schema.model import Schema, View

Known = Mapping[str, object]
"""The values of a row that are not what its columns have by default."""

CLASS_OID, TYPE_OID, NAMESPACE_OID, DATABASE_OID, CONSTRAINT_OID, PROC_OID = 1259, 1247, 2615, 1262, 2606, 1255
HEAP, BTREE, C_COLLATION = 2, 403, 950
_NO_ESTIMATE = -1.0


@cache
def types() -> dict[int, dict[str, str]]:
    """PostgreSQL's own, by their numbers: each row as text, "" for NULL."""
    named = titles("pg_type")
    found = [dict(zip(named, (cell or "" for cell in row), strict=True)) for row in rows("pg_type")]
    return {int(row["oid"]): row for row in found}


@cache
def type_numbers() -> dict[str, int]:
    """By the name of pg_type, and by what format_type says where that is something else."""
    known = {row["typname"]: oid for oid, row in types().items()}
    spelled = {"boolean": "bool", "integer": "int4", "smallint": "int2", "bigint": "int8", "real": "float4",
               "double precision": "float8", "character varying": "varchar", '"char"': "char",
               "timestamp with time zone": "timestamptz"}  # fmt: skip
    return known | {word: known[name] for word, name in spelled.items()}


def number_of(spelled: str) -> int:
    """The number of a type of a catalog's column, such as `text[]`."""
    known = type_numbers()
    element = spelled.removesuffix("[]").removeprefix("information_schema.")
    number = known[element]
    return int(types()[number]["typarray"]) if spelled.endswith("[]") else number


# --- relations -------------------------------------------------------------------------------------------------------


def pg_class(schema: Schema) -> Iterator[Known]:
    objects = objects_of(schema)
    for one in objects.relations:
        table = one.kind == "r"
        yield {
            "oid": one.oid, "relname": one.name, "relnamespace": PUBLIC, "reltype": one.row_type, "relowner": OWNER,
            "relam": HEAP if table else 0, "relfilenode": one.oid if table else 0, "reltuples": _NO_ESTIMATE,
            "relhasindex": bool(objects.keys_of(one)), "relpersistence": "p", "relkind": one.kind,
            "relnatts": len(one.declared.columns), "relhasrules": not table, "relispopulated": True,
            "relhastriggers": any(key.table is one or key.target is one for key in objects.foreign),
            "relreplident": "d" if table else "n",
        }  # fmt: skip
    for key in objects.keys:
        yield {
            "oid": key.index, "relname": key.name, "relnamespace": PUBLIC, "relowner": OWNER, "relam": BTREE,
            "relfilenode": key.index, "relpages": 1, "relpersistence": "p", "relkind": "i",
            "relnatts": len(key.columns), "relispopulated": True, "relreplident": "n",
        }  # fmt: skip
    for catalog in relations().values():
        yield _catalog_class(catalog)


def _catalog_class(catalog: Relation) -> Known:
    table = catalog.kind == "r"
    return {
        "oid": catalog.oid, "relname": catalog.name, "relnamespace": SPACES[catalog.place], "relowner": OWNER,
        "reltype": catalog.row_type,
        "relam": HEAP if table else 0, "reltuples": _NO_ESTIMATE, "relpersistence": "p", "relkind": catalog.kind,
        "relnatts": len(catalog.attributes), "relhasrules": not table, "relispopulated": True, "relreplident": "n",
    }  # fmt: skip


def pg_attribute(schema: Schema) -> Iterator[Known]:
    objects = objects_of(schema)
    for one in objects.relations:
        for place, column in enumerate(one.declared.columns, 1):
            required = objects.not_null(one, column.name)
            number, modifier = pg_type(column.type).oid, type_modifier(column.type)
            yield _attribute(one.oid, column.name, number, place, modifier, required)
    for key in objects.keys:
        for place, name in enumerate(key.columns, 1):
            column = key.table.declared.columns[key.table.place(name) - 1]
            yield _attribute(key.index, name, pg_type(column.type).oid, place, type_modifier(column.type), False)
    for catalog in relations().values():
        for place, attribute in enumerate(catalog.attributes, 1):
            number = number_of(attribute.type)
            known = _attribute(catalog.oid, attribute.name, number, place, -1, attribute.required)
            yield {**known, "attcollation": C_COLLATION} if known["attcollation"] else known


def _attribute(relation: int, name: str, type_: int, place: int, modifier: int, required: bool) -> Known:
    known = types()[type_]
    return {
        "attrelid": relation, "attname": name, "atttypid": type_, "attlen": int(known["typlen"]), "attnum": place,
        "attcacheoff": -1, "atttypmod": modifier, "attbyval": known["typbyval"] == "t", "attalign": known["typalign"],
        "attstorage": known["typstorage"], "attnotnull": required, "attislocal": True, "attstattarget": -1,
        "attcollation": int(known["typcollation"]),
    }  # fmt: skip


def pg_types_of(schema: Schema) -> Iterator[Known]:
    """The row types of the schema's tables, and of arrays of them."""
    for one in objects_of(schema).relations:
        common = {"typnamespace": PUBLIC, "typowner": OWNER, "typlen": -1, "typisdefined": True, "typdelim": ",",
                  "typalign": "d", "typstorage": "x", "typtypmod": -1}  # fmt: skip
        yield {
            **common, "oid": one.row_type, "typname": one.name, "typtype": "c", "typcategory": "C",
            "typrelid": one.oid, "typarray": one.row_array, **_functions("record_"),
        }  # fmt: skip
        yield {
            **common, "oid": one.row_array, "typname": f"_{one.name}", "typtype": "b", "typcategory": "A",
            "typelem": one.row_type, **_functions("array_"),
        }  # fmt: skip


@cache
def _functions(prefix: str) -> dict[str, int]:
    """The functions that read and write values of a type, as pg_type refers to them."""
    named = {word: f"{prefix}{word[3:].replace('receive', 'recv').replace('input', 'in').replace('output', 'out')}"
             for word in ("typinput", "typoutput", "typreceive", "typsend")}  # fmt: skip
    numbers = {str(row[1]): int(str(row[0])) for row in rows("pg_proc")}
    return {word: numbers[name] for word, name in named.items()}


# --- keys ------------------------------------------------------------------------------------------------------------


def pg_constraint(schema: Schema) -> Iterator[Known]:
    objects = objects_of(schema)
    always = {"connamespace": PUBLIC, "convalidated": True, "conislocal": True, "connoinherit": True}
    for key in objects.keys:
        yield {
            **always, "oid": key.oid, "conname": key.name, "contype": "p" if key.primary else "u",
            "conrelid": key.table.oid, "conindid": key.index, "conkey": list(key.places), "confupdtype": " ",
            "confdeltype": " ", "confmatchtype": " ",
        }  # fmt: skip
    for foreign in objects.foreign:
        equal = [_equality(foreign.table.declared.columns[foreign.table.place(foreign.column) - 1].type)]
        yield {
            **always, "oid": foreign.oid, "conname": foreign.name, "contype": "f", "conrelid": foreign.table.oid,
            "conindid": foreign.key.index if foreign.key else 0, "confrelid": foreign.target.oid,
            "confupdtype": "a", "confdeltype": "a", "confmatchtype": "s",
            "conkey": [foreign.table.place(foreign.column)], "confkey": [foreign.target.place(foreign.target_column)],
            "conpfeqop": equal, "conppeqop": equal, "conffeqop": equal,
        }  # fmt: skip


_EQUALITIES = {"bool": 91, "int2": 94, "int4": 96, "int8": 410, "numeric": 1752, "float4": 620, "float8": 670,
               "text": 98, "date": 1093, "timestamp": 2060, "timestamptz": 1320, "time": 1108, "interval": 1330,
               "uuid": 2972}  # fmt: skip
"""The operator = of each type, as pg_operator numbers it."""


def _equality(type_: object) -> int:
    return _EQUALITIES[pg_type(type_).name]  # type: ignore[arg-type]


def pg_index(schema: Schema) -> Iterator[Known]:
    for key in objects_of(schema).keys:
        columns = [key.table.declared.columns[place - 1] for place in key.places]
        numbers = [pg_type(column.type).oid for column in columns]
        yield {
            "indexrelid": key.index, "indrelid": key.table.oid, "indnatts": len(columns), "indnkeyatts": len(columns),
            "indisunique": True, "indisprimary": key.primary, "indimmediate": True, "indisvalid": True,
            "indisready": True, "indislive": True, "indkey": list(key.places), "indoption": [0] * len(columns),
            "indcollation": [int(types()[number]["typcollation"]) for number in numbers],
            "indclass": [_classes().get(number, 0) for number in numbers],
        }  # fmt: skip


@cache
def _classes() -> dict[int, int]:
    """B-tree's operator class of each type."""
    named = titles("pg_opclass")
    found = [dict(zip(named, (str(cell) for cell in row), strict=True)) for row in rows("pg_opclass")]
    default = [row for row in found if row["opcmethod"] == str(BTREE) and row["opcdefault"] == "t"]
    return {int(row["opcintype"]): int(row["oid"]) for row in default}


def index_definition(key: Key, place: str = "public.") -> str:
    columns = ", ".join(quoted(column) for column in key.columns)
    return f"CREATE UNIQUE INDEX {quoted(key.name)} ON {place}{quoted(key.table.name)} USING btree ({columns})"


def constraint_definitions(objects: Objects) -> Iterator[tuple[int, str]]:
    for key in objects.keys:
        columns = ", ".join(quoted(column) for column in key.columns)
        yield key.oid, f"{'PRIMARY KEY' if key.primary else 'UNIQUE'} ({columns})"
    for one in objects.foreign:
        target = f"{quoted(one.target.name)}({quoted(one.target_column)})"
        yield one.oid, f"FOREIGN KEY ({quoted(one.column)}) REFERENCES {target}"


# --- what else the schema says ---------------------------------------------------------------------------------------


def pg_rewrite(schema: Schema) -> Iterator[Known]:
    """Views are rules, to PostgreSQL."""
    for place, one in enumerate(one for one in objects_of(schema).relations if one.kind == "v"):
        yield {"oid": 15000 + place, "rulename": "_RETURN", "ev_class": one.oid, "ev_type": "1", "ev_enabled": "O",
               "is_instead": True, "ev_qual": "<>", "ev_action": "<>"}  # fmt: skip


def pg_description(schema: Schema) -> Iterator[Known]:
    if schema.description is not None:
        yield {"objoid": PUBLIC, "classoid": NAMESPACE_OID, "description": schema.description}
    for one in objects_of(schema).relations:
        yield {"objoid": one.oid, "classoid": CLASS_OID, "description": table_comment(schema, one.declared)}
        for place, column in enumerate(one.declared.columns, 1):
            comment = column_comment(one.declared, column)
            if comment is not None:
                yield {"objoid": one.oid, "classoid": CLASS_OID, "objsubid": place, "description": comment}


def pg_database(schema: Schema) -> Iterator[Known]:
    yield {
        "oid": DATABASE, "datname": schema.database, "datdba": OWNER, "encoding": 6, "datlocprovider": "c",
        "datallowconn": True, "datconnlimit": -1, "dattablespace": 1663, "datcollate": "C", "datctype": "C",
    }  # fmt: skip


def pg_tables(schema: Schema) -> Iterator[Known]:
    objects = objects_of(schema)
    for one in objects.relations:
        if one.kind == "r":
            yield {"schemaname": "public", "tablename": one.name, "tableowner": "owner",
                   "hasindexes": bool(objects.keys_of(one)), "hasrules": False, "rowsecurity": False,
                   "hastriggers": any(key.table is one or key.target is one for key in objects.foreign)}  # fmt: skip
    for catalog in relations().values():
        if catalog.kind == "r":
            yield {"schemaname": catalog.place, "tablename": catalog.name, "tableowner": "owner", "hasindexes": False,
                   "hasrules": False, "hastriggers": False, "rowsecurity": False}  # fmt: skip


def pg_views(schema: Schema) -> Iterator[Known]:
    for view in schema.views:
        yield {"schemaname": "public", "viewname": view.name, "viewowner": "owner", "definition": view_text(view)}
    for catalog in relations().values():
        if catalog.kind == "v":
            yield {"schemaname": catalog.place, "viewname": catalog.name, "viewowner": "owner"}


def view_text(view: View) -> str:
    """The definition as the owner wrote it."""
    return view.sql.strip().rstrip(";") + ";"


def pg_indexes(schema: Schema) -> Iterator[Known]:
    for key in objects_of(schema).keys:
        yield {"schemaname": "public", "tablename": key.table.name, "indexname": key.name,
               "indexdef": index_definition(key)}  # fmt: skip


def quoted(name: str) -> str:
    """As PostgreSQL's quote_ident."""
    plain = name.isascii() and name.isidentifier() and name == name.lower()
    return name if plain and name not in _keywords() else '"' + name.replace('"', '""') + '"'


@cache
def _keywords() -> frozenset[str]:
    return frozenset(str(word) for word, code, *_ in rows("keywords") if code != "U")


SCHEMA_ROWS: Mapping[str, Callable[[Schema], Iterator[Known]]] = {
    "pg_attribute": pg_attribute,
    "pg_class": pg_class,
    "pg_constraint": pg_constraint,
    "pg_database": pg_database,
    "pg_description": pg_description,
    "pg_index": pg_index,
    "pg_indexes": pg_indexes,
    "pg_rewrite": pg_rewrite,
    "pg_tables": pg_tables,
    "pg_type": pg_types_of,
    "pg_views": pg_views,
}
