"""Tables that post-processing reads whole, under names of ours: public ones, those of the catalog, and made-up rows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.compiler.bind.outputs import Output
from dpsql.compiler.bind.sources import check_qualifier, require_table
from dpsql.compiler.catalog.tables import catalog_schema_of, catalog_table_names, find_catalog_table
from dpsql.compiler.catalog.variables import Identity
from dpsql.compiler.parse.dialect import span_of
from dpsql.compiler.plan.relations import Field
from dpsql.compiler.split.blocks import Block, Ownership, PublicRead, SplitState
from dpsql.compiler.split.row_queries import dummy_table_name
from dpsql.errors import UnknownTable
from dpsql.schema.model import CREATED_SCHEMA, Column, MadeTable, Schema

SCHEMA_NAMES = ("public", "main", "information_schema", "pg_catalog")


def read_public_source(source: exp.Table, state: SplitState, identity: Identity) -> Block:
    """A public table, or one of the catalog: read whole into the sandbox, under a name of ours.

    Of a preview also a private one: then made-up rows are read, under a `dummy_table_name`, and no row of the table.
    """
    catalog_schema = catalog_schema_of(state.schema, source.db, source.name) or ""
    synthetic = find_synthetic_table(state.schema, source)
    if synthetic is not None:
        catalog_schema, table = CREATED_SCHEMA, source.name
        columns = tuple(Field(c.name, c.type) for c in synthetic.columns)
    elif catalog_schema:
        catalog_table = find_catalog_table(state.schema, identity, catalog_schema, source.name.lower())
        if catalog_table is None:
            raise UnknownTable(f'table "{source.db}.{source.name}" does not exist',
                               hint=f"Known of it: {', '.join(catalog_table_names(catalog_schema))}.",
                               span=span_of(source))  # fmt: skip
        table, columns = source.name.lower(), tuple(Field(name, type_) for name, type_ in catalog_table.columns)
    else:
        check_qualifier(source)
        declared = require_table(state.schema, source)
        if not declared.public:
            return _read_under_name(dummy_table_name(declared, state), source, declared.columns)
        table, columns = declared.name, tuple(Field(c.name, c.type) for c in declared.columns)
    read = state.reads.setdefault(
        (catalog_schema, table), PublicRead(f"_p{len(state.reads) + 1}", catalog_schema, table, columns)
    )
    return _read_under_name(read.name, source, columns)


def find_synthetic_table(schema: Schema, source: exp.Table) -> MadeTable | None:
    """What the account itself has made, by its key; nobody else's is known here."""
    if source.db != CREATED_SCHEMA:
        return None
    return next((table for table in schema.made if table.key == source.name), None)


def strip_schema(source: exp.Table) -> None:
    """ "public"."v" is "v" after the split; what it is called stays."""
    source.set("db", None)
    source.set("catalog", None)


def strip_column_schemas(select: exp.Select) -> None:
    """ "public"."wards"."ward" is "wards"."ward" after the split, where tables have no schema."""
    for column in select.find_all(exp.Column):
        if column.db.lower() in SCHEMA_NAMES:
            column.set("db", None)
            column.set("catalog", None)


def _read_under_name(name: str, source: exp.Table, columns: Sequence[Field | Column]) -> Block:
    if source.args.get("alias") is None:
        source.set("alias", exp.TableAlias(this=exp.to_identifier(source.name, quoted=True)))
    source.meta["read"] = True
    source.set("this", exp.to_identifier(name))
    source.set("db", None)
    source.set("catalog", None)
    outputs = tuple(Output(column.name, column.type) for column in columns)
    return Block(Ownership.PUBLIC, exp.select("*").from_(source.copy()), (), outputs)
