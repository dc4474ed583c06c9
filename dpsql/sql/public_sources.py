"""Tables that post-processing reads whole, under names of ours: public ones, those of the catalog, and made-up rows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.catalog.find import find as find_catalog
from dpsql.catalog.find import names as catalog_names
from dpsql.catalog.find import place_of
from dpsql.catalog.identity import Identity
from dpsql.errors import UnknownTable
from dpsql.plan.relations import Field
from dpsql.schema.model import MADE, Column, MadeTable, Schema
from dpsql.sql.bind import find_table
from dpsql.sql.blocks import Block, Ownership, PublicRead, State
from dpsql.sql.dialect import span_of
from dpsql.sql.outputs import Output
from dpsql.sql.previews import made_up_name
from dpsql.sql.sources import check_qualifier

SCHEMAS = ("public", "main", "information_schema", "pg_catalog")


def public_source(source: exp.Table, state: State, who: Identity) -> Block:
    """A public table, or one of the catalog: read whole into the sandbox, under a name of ours.

    Of a preview also a private one: then made-up rows are read, which `made_up` names, and no row of the table.
    """
    place = place_of(state.schema, source.db, source.name) or ""
    made = made_table(state.schema, source)
    if made is not None:
        place, table = MADE, source.name
        columns = tuple(Field(c.name, c.type) for c in made.columns)
    elif place:
        found = find_catalog(state.schema, who, place, source.name.lower())
        if found is None:
            raise UnknownTable(f'table "{source.db}.{source.name}" does not exist',
                               hint=f"Known of it: {', '.join(catalog_names(place))}.",
                               span=span_of(source))  # fmt: skip
        table, columns = source.name.lower(), tuple(Field(name, type_) for name, type_ in found.columns)
    else:
        check_qualifier(source)
        declared = find_table(state.schema, source)
        if not declared.public:
            return _read_as(made_up_name(declared, state), source, declared.columns)
        table, columns = declared.name, tuple(Field(c.name, c.type) for c in declared.columns)
    read = state.reads.setdefault((place, table), PublicRead(f"_p{len(state.reads) + 1}", place, table, columns))
    return _read_as(read.name, source, columns)


def made_table(schema: Schema, source: exp.Table) -> MadeTable | None:
    """What the account itself has made, by its key; nobody else's is known here."""
    if source.db != MADE:
        return None
    return next((made for made in schema.made if made.key == source.name), None)


def without_schema(source: exp.Table) -> None:
    """"public"."v" is "v" after the split; what it is called stays."""
    source.set("db", None)
    source.set("catalog", None)


def without_schemas(select: exp.Select) -> None:
    """"public"."wards"."ward" is "wards"."ward" after the split, where tables have no schema."""
    for column in select.find_all(exp.Column):
        if column.db.lower() in SCHEMAS:
            column.set("db", None)
            column.set("catalog", None)


def _read_as(name: str, source: exp.Table, columns: Sequence[Field | Column]) -> Block:
    if source.args.get("alias") is None:
        source.set("alias", exp.TableAlias(this=exp.to_identifier(source.name, quoted=True)))
    source.meta["read"] = True
    source.set("this", exp.to_identifier(name))
    source.set("db", None)
    source.set("catalog", None)
    outputs = tuple(Output(column.name, column.type) for column in columns)
    return Block(Ownership.PUBLIC, exp.select("*").from_(source.copy()), (), outputs)
