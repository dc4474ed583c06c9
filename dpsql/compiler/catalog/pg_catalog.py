"""pg_class, pg_attribute, pg_type and their sisters for the schema's own tables, views and keys, and for the catalogs.

Sizes and row estimates are constants, whatever the data holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from dpsql.base.pg_types import pg_type_of, type_modifier
from dpsql.compiler.catalog.builtin import CatalogRelation, load_column_names, load_relations, load_rows
from dpsql.compiler.catalog.objects import (
    NAMESPACE_OIDS,
    OWN_DATABASE_OID,
    OWNER_NAME,
    OWNER_OID,
    PUBLIC_OID,
    CatalogObjects,
    UniqueConstraint,
    column_comment,
    objects_of,
    table_comment,
)
from dpsql.schema.model import Schema, View

RowValues = Mapping[str, object]
"""The values of a row that are not what its columns have by default."""

CLASS_OID, TYPE_OID, NAMESPACE_OID, DATABASE_OID, CONSTRAINT_OID, PROC_OID = 1259, 1247, 2615, 1262, 2606, 1255
HEAP, BTREE, C_COLLATION = 2, 403, 950
_NO_ESTIMATE = -1.0


@cache
def load_types() -> dict[int, dict[str, str]]:
    """PostgreSQL's own, by their numbers: each row as text, "" for NULL."""
    named = load_column_names("pg_type")
    type_rows = [dict(zip(named, (cell or "" for cell in row), strict=True)) for row in load_rows("pg_type")]
    return {int(row["oid"]): row for row in type_rows}


@cache
def type_oids() -> dict[str, int]:
    """By the name of pg_type, and by what format_type says where that is something else."""
    oids = {row["typname"]: oid for oid, row in load_types().items()}
    aliases = {"boolean": "bool", "integer": "int4", "smallint": "int2", "bigint": "int8", "real": "float4",
               "double precision": "float8", "character varying": "varchar", '"char"': "char",
               "timestamp with time zone": "timestamptz"}  # fmt: skip
    return oids | {word: oids[name] for word, name in aliases.items()}


def type_oid_of(type_name: str) -> int:
    """The number of a type of a catalog's column, such as `text[]`."""
    oids = type_oids()
    element = type_name.removesuffix("[]").removeprefix("information_schema.")
    number = oids[element]
    return int(load_types()[number]["typarray"]) if type_name.endswith("[]") else number


# --- relations -------------------------------------------------------------------------------------------------------


def pg_class_rows(schema: Schema) -> Iterator[RowValues]:
    objects = objects_of(schema)
    for relation in objects.relations:
        table = relation.kind == "r"
        yield {
            "oid": relation.oid,
            "relname": relation.name,
            "relnamespace": PUBLIC_OID,
            "reltype": relation.row_type,
            "relowner": OWNER_OID,
            "relam": HEAP if table else 0,
            "relfilenode": relation.oid if table else 0,
            "reltuples": _NO_ESTIMATE,
            "relhasindex": bool(objects.keys_of(relation)),
            "relpersistence": "p",
            "relkind": relation.kind,
            "relnatts": len(relation.declared.columns),
            "relhasrules": not table,
            "relispopulated": True,
            "relhastriggers": any(key.table is relation or key.target is relation for key in objects.foreign),
            "relreplident": "d" if table else "n",
            "relacl": [f"{OWNER_NAME}=arwdDxt/{OWNER_NAME}", f"=r/{OWNER_NAME}"],  # all who log in may read
        }
    for key in objects.keys:
        yield {
            "oid": key.index, "relname": key.name, "relnamespace": PUBLIC_OID, "relowner": OWNER_OID, "relam": BTREE,
            "relfilenode": key.index, "relpages": 1, "relpersistence": "p", "relkind": "i",
            "relnatts": len(key.columns), "relispopulated": True, "relreplident": "n",
        }  # fmt: skip
    for catalog in load_relations().values():
        yield _catalog_class_row(catalog)


def _catalog_class_row(catalog: CatalogRelation) -> RowValues:
    table = catalog.kind == "r"
    return {
        "oid": catalog.oid,
        "relname": catalog.name,
        "relnamespace": NAMESPACE_OIDS[catalog.namespace],
        "relowner": OWNER_OID,
        "reltype": catalog.row_type,
        "relam": HEAP if table else 0,
        "reltuples": _NO_ESTIMATE,
        "relpersistence": "p",
        "relkind": catalog.kind,
        "relnatts": len(catalog.attributes),
        "relhasrules": not table,
        "relispopulated": True,
        "relreplident": "n",
    }


def pg_attribute_rows(schema: Schema) -> Iterator[RowValues]:
    objects = objects_of(schema)
    for relation in objects.relations:
        for position, column in enumerate(relation.declared.columns, 1):
            required = objects.is_not_null(relation, column.name)
            number, modifier = pg_type_of(column.type).oid, type_modifier(column.type)
            yield _attribute_row(relation.oid, column.name, number, position, modifier, required)
    for key in objects.keys:
        for position, name in enumerate(key.columns, 1):
            column = key.table.declared.columns[key.table.position_of(name) - 1]
            yield _attribute_row(
                key.index, name, pg_type_of(column.type).oid, position, type_modifier(column.type), False
            )
    for catalog in load_relations().values():
        for position, attribute in enumerate(catalog.attributes, 1):
            number = type_oid_of(attribute.type)
            values = _attribute_row(catalog.oid, attribute.name, number, position, -1, attribute.required)
            yield {**values, "attcollation": C_COLLATION} if values["attcollation"] else values


def _attribute_row(relation: int, name: str, type_: int, position: int, modifier: int, required: bool) -> RowValues:
    type_row = load_types()[type_]
    return {
        "attrelid": relation,
        "attname": name,
        "atttypid": type_,
        "attlen": int(type_row["typlen"]),
        "attnum": position,
        "attcacheoff": -1,
        "atttypmod": modifier,
        "attbyval": type_row["typbyval"] == "t",
        "attalign": type_row["typalign"],
        "attstorage": type_row["typstorage"],
        "attnotnull": required,
        "attislocal": True,
        "attstattarget": -1,
        "attcollation": int(type_row["typcollation"]),
    }


def pg_type_rows(schema: Schema) -> Iterator[RowValues]:
    """The row types of the schema's tables, and of arrays of them."""
    for relation in objects_of(schema).relations:
        common = {
            "typnamespace": PUBLIC_OID,
            "typowner": OWNER_OID,
            "typlen": -1,
            "typisdefined": True,
            "typdelim": ",",
            "typalign": "d",
            "typstorage": "x",
            "typtypmod": -1,
        }
        yield {
            **common, "oid": relation.row_type, "typname": relation.name, "typtype": "c", "typcategory": "C",
            "typrelid": relation.oid, "typarray": relation.row_array, **_io_functions("record_"),
        }  # fmt: skip
        yield {
            **common, "oid": relation.row_array, "typname": f"_{relation.name}", "typtype": "b", "typcategory": "A",
            "typelem": relation.row_type, **_io_functions("array_"),
        }  # fmt: skip


@cache
def _io_functions(prefix: str) -> dict[str, int]:
    """The functions that read and write values of a type, as pg_type refers to them."""
    named = {word: f"{prefix}{word[3:].replace('receive', 'recv').replace('input', 'in').replace('output', 'out')}"
             for word in ("typinput", "typoutput", "typreceive", "typsend")}  # fmt: skip
    numbers = {str(row[1]): int(str(row[0])) for row in load_rows("pg_proc")}
    return {word: numbers[name] for word, name in named.items()}


# --- keys ------------------------------------------------------------------------------------------------------------


def pg_constraint_rows(schema: Schema) -> Iterator[RowValues]:
    objects = objects_of(schema)
    always = {"connamespace": PUBLIC_OID, "convalidated": True, "conislocal": True, "connoinherit": True}
    for key in objects.keys:
        yield {
            **always, "oid": key.oid, "conname": key.name, "contype": "p" if key.primary else "u",
            "conrelid": key.table.oid, "conindid": key.index, "conkey": list(key.positions), "confupdtype": " ",
            "confdeltype": " ", "confmatchtype": " ",
        }  # fmt: skip
    for foreign in objects.foreign:
        positions = [foreign.table.position_of(column) for column in foreign.columns]
        equal = [_equality_operator(foreign.table.declared.columns[position - 1].type) for position in positions]
        yield {
            **always,
            "oid": foreign.oid,
            "conname": foreign.name,
            "contype": "f",
            "conrelid": foreign.table.oid,
            "conindid": foreign.key.index if foreign.key else 0,
            "confrelid": foreign.target.oid,
            "confupdtype": "a",
            "confdeltype": "a",
            "confmatchtype": "s",
            "conkey": positions,
            "confkey": [foreign.target.position_of(column) for column in foreign.target_columns],
            "conpfeqop": equal,
            "conppeqop": equal,
            "conffeqop": equal,
        }


_EQUALITY_OPERATORS = {"bool": 91, "int2": 94, "int4": 96, "int8": 410, "numeric": 1752, "float4": 620, "float8": 670,
               "text": 98, "date": 1093, "timestamp": 2060, "timestamptz": 1320, "time": 1108, "interval": 1330,
               "uuid": 2972}  # fmt: skip
"""The operator = of each type, as pg_operator numbers it."""


def _equality_operator(type_: object) -> int:
    return _EQUALITY_OPERATORS[pg_type_of(type_).name]  # type: ignore[arg-type]


def pg_index_rows(schema: Schema) -> Iterator[RowValues]:
    for key in objects_of(schema).keys:
        columns = [key.table.declared.columns[position - 1] for position in key.positions]
        numbers = [pg_type_of(column.type).oid for column in columns]
        yield {
            "indexrelid": key.index, "indrelid": key.table.oid, "indnatts": len(columns), "indnkeyatts": len(columns),
            "indisunique": True, "indisprimary": key.primary, "indimmediate": True, "indisvalid": True,
            "indisready": True, "indislive": True, "indkey": list(key.positions), "indoption": [0] * len(columns),
            "indcollation": [int(load_types()[number]["typcollation"]) for number in numbers],
            "indclass": [_btree_operator_classes().get(number, 0) for number in numbers],
        }  # fmt: skip


@cache
def _btree_operator_classes() -> dict[int, int]:
    """B-tree's operator class of each type."""
    named = load_column_names("pg_opclass")
    class_rows = [dict(zip(named, (str(cell) for cell in row), strict=True)) for row in load_rows("pg_opclass")]
    default = [row for row in class_rows if row["opcmethod"] == str(BTREE) and row["opcdefault"] == "t"]
    return {int(row["opcintype"]): int(row["oid"]) for row in default}


def index_definition(key: UniqueConstraint, prefix: str = "public.") -> str:
    columns = ", ".join(quote_ident(column) for column in key.columns)
    return (
        f"CREATE UNIQUE INDEX {quote_ident(key.name)} ON {prefix}{quote_ident(key.table.name)} USING btree ({columns})"
    )


def constraint_definitions(objects: CatalogObjects) -> Iterator[tuple[int, str]]:
    for key in objects.keys:
        columns = ", ".join(quote_ident(column) for column in key.columns)
        yield key.oid, f"{'PRIMARY KEY' if key.primary else 'UNIQUE'} ({columns})"
    for foreign in objects.foreign:
        columns, keys = (", ".join(map(quote_ident, side)) for side in (foreign.columns, foreign.target_columns))
        yield foreign.oid, f"FOREIGN KEY ({columns}) REFERENCES {quote_ident(foreign.target.name)}({keys})"


# --- what else the schema says ---------------------------------------------------------------------------------------


def pg_rewrite_rows(schema: Schema) -> Iterator[RowValues]:
    """Rows of pg_rewrite: to PostgreSQL, a view is a rule."""
    for index, relation in enumerate(relation for relation in objects_of(schema).relations if relation.kind == "v"):
        yield {"oid": 15000 + index, "rulename": "_RETURN", "ev_class": relation.oid, "ev_type": "1", "ev_enabled": "O",
               "is_instead": True, "ev_qual": "<>", "ev_action": "<>"}  # fmt: skip


def pg_description_rows(schema: Schema) -> Iterator[RowValues]:
    if schema.description is not None:
        yield {"objoid": PUBLIC_OID, "classoid": NAMESPACE_OID, "description": schema.description}
    for relation in objects_of(schema).relations:
        yield {"objoid": relation.oid, "classoid": CLASS_OID, "description": table_comment(schema, relation.declared)}
        for position, column in enumerate(relation.declared.columns, 1):
            comment = column_comment(relation.declared, column)
            if comment is not None:
                yield {"objoid": relation.oid, "classoid": CLASS_OID, "objsubid": position, "description": comment}


def pg_database_rows(schema: Schema) -> Iterator[RowValues]:
    yield {
        "oid": OWN_DATABASE_OID, "datname": schema.database, "datdba": OWNER_OID, "encoding": 6, "datlocprovider": "c",
        "datallowconn": True, "datconnlimit": -1, "dattablespace": 1663, "datcollate": "C", "datctype": "C",
    }  # fmt: skip


def pg_tables_rows(schema: Schema) -> Iterator[RowValues]:
    objects = objects_of(schema)
    for relation in objects.relations:
        if relation.kind == "r":
            yield {
                "schemaname": "public",
                "tablename": relation.name,
                "tableowner": "owner",
                "hasindexes": bool(objects.keys_of(relation)),
                "hasrules": False,
                "rowsecurity": False,
                "hastriggers": any(key.table is relation or key.target is relation for key in objects.foreign),
            }
    for catalog in load_relations().values():
        if catalog.kind == "r":
            yield {"schemaname": catalog.namespace, "tablename": catalog.name, "tableowner": "owner",
                   "hasindexes": False, "hasrules": False, "hastriggers": False, "rowsecurity": False}  # fmt: skip


def pg_views_rows(schema: Schema) -> Iterator[RowValues]:
    for view in schema.views:
        yield {"schemaname": "public", "viewname": view.name, "viewowner": "owner", "definition": view_definition(view)}
    for catalog in load_relations().values():
        if catalog.kind == "v":
            yield {"schemaname": catalog.namespace, "viewname": catalog.name, "viewowner": "owner"}


def view_definition(view: View) -> str:
    """The definition as the owner wrote it."""
    return view.sql.strip().rstrip(";") + ";"


def pg_indexes_rows(schema: Schema) -> Iterator[RowValues]:
    for key in objects_of(schema).keys:
        yield {"schemaname": "public", "tablename": key.table.name, "indexname": key.name,
               "indexdef": index_definition(key)}  # fmt: skip


def quote_ident(name: str) -> str:
    """As PostgreSQL's quote_ident."""
    plain = name.isascii() and name.isidentifier() and name == name.lower()
    return name if plain and name not in _reserved_words() else '"' + name.replace('"', '""') + '"'


@cache
def _reserved_words() -> frozenset[str]:
    return frozenset(str(word) for word, code, *_ in load_rows("keywords") if code != "U")


SCHEMA_ROWS: Mapping[str, Callable[[Schema], Iterator[RowValues]]] = {
    "pg_attribute": pg_attribute_rows,
    "pg_class": pg_class_rows,
    "pg_constraint": pg_constraint_rows,
    "pg_database": pg_database_rows,
    "pg_description": pg_description_rows,
    "pg_index": pg_index_rows,
    "pg_indexes": pg_indexes_rows,
    "pg_rewrite": pg_rewrite_rows,
    "pg_tables": pg_tables_rows,
    "pg_type": pg_type_rows,
    "pg_views": pg_views_rows,
}

# pg_proc: the functions that dpsql has beside PostgreSQL's own, so that `\df` lists them.

FIRST_FUNCTION_OID = 14000
_INTERNAL_LANGUAGE = 12  # the language


@dataclass(frozen=True)
class OwnFunction:
    """`kind` is pg_proc's: "a" for an aggregate, "f" for a function."""

    name: str
    arguments: tuple[str, ...]
    result: str
    kind: str = "f"


_ANY_TYPE, _TIMESTAMP_TYPE = "anyelement", "timestamp without time zone"
_DOUBLE_TYPE = "double precision"
_POSTERIORS = tuple(
    OwnFunction(f"{name}_posterior{part}", (_ANY_TYPE,), _DOUBLE_TYPE if name != "dirichlet" else "anyarray", "a")
    for name, parts in (("beta", ("", "_mean", "_low", "_high")), ("normal", ("", "_mean", "_low", "_high")),
                        ("dirichlet", ("", "_mean")))
    for part in parts
)  # fmt: skip
OWN_FUNCTIONS = (
    OwnFunction("accuracy", (_ANY_TYPE,), _DOUBLE_TYPE, "a"),
    OwnFunction("blockwise", (_ANY_TYPE, _DOUBLE_TYPE, _DOUBLE_TYPE), _DOUBLE_TYPE, "a"),
    OwnFunction("predict", (_ANY_TYPE,), _DOUBLE_TYPE),
    *_POSTERIORS,
    OwnFunction("approx_count_distinct", (_ANY_TYPE,), "bigint", "a"),
    OwnFunction("approx_quantile", (_ANY_TYPE, "double precision"), _ANY_TYPE, "a"),
    OwnFunction("approx_top_k", (_ANY_TYPE, "integer"), "anyarray", "a"),
    OwnFunction("clip", (_ANY_TYPE, _ANY_TYPE, _ANY_TYPE), _ANY_TYPE),
    OwnFunction("contains", ("text", "text"), "boolean"),
    OwnFunction("count_if", ("boolean",), "bigint", "a"),
    OwnFunction("date_diff", ("text", _TIMESTAMP_TYPE, _TIMESTAMP_TYPE), "bigint"),
    OwnFunction("date_sub", ("text", _TIMESTAMP_TYPE, _TIMESTAMP_TYPE), "bigint"),
    OwnFunction("day", (_TIMESTAMP_TYPE,), "bigint"),
    OwnFunction("dayname", (_TIMESTAMP_TYPE,), "text"),
    OwnFunction("dp_high", (_ANY_TYPE,), "double precision"),
    OwnFunction("dp_low", (_ANY_TYPE,), "double precision"),
    OwnFunction("dp_stderr", (_ANY_TYPE,), "double precision"),
    OwnFunction("ends_with", ("text", "text"), "boolean"),
    OwnFunction("histogram", (_ANY_TYPE,), "anyarray", "a"),
    OwnFunction("hour", (_TIMESTAMP_TYPE,), "bigint"),
    OwnFunction("last_day", (_TIMESTAMP_TYPE,), "date"),
    OwnFunction("log2", ("double precision",), "double precision"),
    OwnFunction("median", (_ANY_TYPE,), "double precision", "a"),
    OwnFunction("month", (_TIMESTAMP_TYPE,), "bigint"),
    OwnFunction("monthname", (_TIMESTAMP_TYPE,), "text"),
    OwnFunction("posterior_sample", (_ANY_TYPE,), "double precision", "a"),
    OwnFunction("private_argmax", (_ANY_TYPE, _ANY_TYPE), _ANY_TYPE, "a"),
    OwnFunction("private_top_k", (_ANY_TYPE, _ANY_TYPE, "integer"), "anyarray", "a"),
    OwnFunction("quantile_cont", (_ANY_TYPE, "double precision"), "double precision", "a"),
    OwnFunction("quantile_disc", (_ANY_TYPE, "double precision"), _ANY_TYPE, "a"),
    OwnFunction("quarter", (_TIMESTAMP_TYPE,), "bigint"),
    OwnFunction("randomized", (_ANY_TYPE, "double precision"), _ANY_TYPE, "a"),
    OwnFunction("strftime", (_TIMESTAMP_TYPE, "text"), "text"),
    OwnFunction("strptime", ("text", "text"), _TIMESTAMP_TYPE),
    OwnFunction("time_bucket", ("interval", _TIMESTAMP_TYPE), _TIMESTAMP_TYPE),
    OwnFunction("year", (_TIMESTAMP_TYPE,), "bigint"),
)


def pg_proc_rows() -> Iterator[RowValues]:
    for oid, function in enumerate(OWN_FUNCTIONS, FIRST_FUNCTION_OID):
        yield {
            "oid": oid,
            "proname": function.name,
            "pronamespace": PUBLIC_OID,
            "proowner": OWNER_OID,
            "prolang": _INTERNAL_LANGUAGE,
            "procost": 1.0,
            "prokind": function.kind,
            "provolatile": "i",
            "proparallel": "s",
            "pronargs": len(function.arguments),
            "prorettype": _type_oid(function.result),
            "prosrc": function.name,
            "proargtypes": [_type_oid(argument) for argument in function.arguments],
        }


def function_signatures() -> Iterator[tuple[int, str, str, str, str]]:
    """Number, arguments, arguments that tell it from others, result, and how regprocedure prints it."""
    for oid, function in enumerate(OWN_FUNCTIONS, FIRST_FUNCTION_OID):
        arguments = ", ".join(function.arguments)
        yield oid, arguments, arguments, function.result, f"{function.name}({','.join(function.arguments)})"


def _type_oid(type_name: str) -> int:
    return type_oid_of("timestamp" if type_name == _TIMESTAMP_TYPE else type_name)
