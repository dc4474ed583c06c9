"""What may stand in FROM of a block over private rows: tables, sub-selects, CTEs, joins in parentheses, public rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.compiler.bind.aggregates import has_aggregate
from dpsql.compiler.bind.joins import bind_join_tree
from dpsql.compiler.bind.relation import BoundRelation
from dpsql.compiler.bind.scope import (
    UNIT_LINK,
    BoundColumn,
    KeyPart,
    Scope,
    SourceScope,
    UnitLink,
    matches_identifier,
)
from dpsql.compiler.parse.create_commands import unknown_schema_error
from dpsql.compiler.parse.dialect import refuse_other_args, span_of
from dpsql.compiler.parse.parser import is_join_tree
from dpsql.compiler.plan.expressions import Column
from dpsql.compiler.plan.relations import Field, PublicTable, Table
from dpsql.errors import InternalError, InvalidSyntax, UnknownTable, Unsupported
from dpsql.schema import model
from dpsql.schema.model import ForeignUnit, OwnUnit, RowUnit, Schema
from dpsql.types import Type

if TYPE_CHECKING:
    from dpsql.compiler.bind.binder import Binder

Ctes = Mapping[str, exp.Query]


def bind_source(binder: Binder, source: exp.Expr, ctes: Ctes, alone: bool = False) -> BoundRelation:
    """A source with the joins that hang on it, or `alone`: sqlglot hangs those in parentheses on the first of them."""
    if source.args.get("joins") and not alone:
        return bind_join_tree(binder, source, source.args["joins"], ctes)
    refuse_tablesample(source)
    binder.namer.count_source(source)
    if is_join_tree(source):
        refuse_other_args(source, "this", "alias", "joins")
        tree = binder.bind_from_item(source.this, ctes)
        return tree if source.args.get("alias") is None else _rename_source(tree, source)
    if isinstance(source, exp.Table) and not isinstance(source.this, exp.Func):
        return _bind_table(binder, source, ctes)
    if isinstance(source, exp.Subquery):
        return _bind_subquery(binder, source, ctes)
    if isinstance(source, exp.Lateral):
        raise Unsupported(
            "LATERAL needs sources before it",
            hint="For example: FROM patients p CROSS JOIN LATERAL (SELECT …) AS x.",
            span=span_of(source),
        )
    if binder.outside is not None and not binder.outside.is_owned(source):
        return _bind_parameter_rows(binder, source)
    raise Unsupported("this cannot stand in FROM with private rows", span=span_of(source))


def _rename_source(relation: BoundRelation, source: exp.Expr) -> BoundRelation:
    """(a JOIN b …) AS t: all columns under one name."""
    columns = tuple(relation.scope.visible_columns())
    relation.scope = Scope((SourceScope(source.alias, apply_column_aliases(source, columns)),))
    return relation


def refuse_tablesample(source: exp.Expr) -> None:
    sample = source.args.get("sample")
    if sample is not None:
        raise Unsupported(
            "TABLESAMPLE over private rows is not supported",
            detail="Which rows it takes depends on other units' rows.",
            hint="Leave it out: the noise does not shrink with a sample.",
            span=span_of(sample) or span_of(source),
        )


# --- sub-selects -----------------------------------------------------------------------------------------------------


def _bind_subquery(binder: Binder, source: exp.Subquery, ctes: Ctes) -> BoundRelation:
    refuse_other_args(source, "this", "alias", "joins")
    query: exp.Expr = source.this
    while isinstance(query, exp.Subquery) and query.args.get("alias") is None:
        refuse_other_args(query, "this")
        query = query.this
    if binder.outside is not None and not binder.outside.is_owned(query):
        if isinstance(query, exp.Select) and _is_simple_public(binder, query, ctes):
            return _bind_public_select(binder, query, source)
        return _bind_parameter_rows(binder, source)
    return bind_derived_table(binder, query, source, source.alias or "subquery")


def bind_derived_table(binder: Binder, query: exp.Expr, source: exp.Expr, alias: str) -> BoundRelation:
    """Rows of an owned query under an alias."""
    node, columns = binder.bind_owned_query(query)
    columns = apply_column_aliases(source, columns)
    return BoundRelation(node, Scope((SourceScope(alias, columns),)), (columns,), told=binder.told)


def _bind_public_select(binder: Binder, query: exp.Select, source: exp.Subquery) -> BoundRelation:
    node, columns = binder.bind_owned_select(query)
    scope = Scope((SourceScope(source.alias or "subquery", apply_column_aliases(source, columns)),))
    return BoundRelation(node, scope, told=binder.told)


def _is_simple_public(binder: Binder, query: exp.Select, ctes: Ctes) -> bool:
    """Filters and columns of declared public tables: these stay in the engine, where their unique keys are known."""
    clauses = {"expressions", "from_", "joins", "where"}
    if any(value for key, value in query.args.items() if key not in clauses) or query.args.get("from_") is None:
        return False
    tables = [query.args["from_"].this, *(join.this for join in query.args.get("joins") or ())]
    nested = [node for node in query.walk() if isinstance(node, exp.Query | exp.Window) and node is not query]
    if nested or any(has_aggregate(item) for item in query.expressions):
        return False
    return all(find_public_table(binder, table, ctes) is not None for table in tables)


def _bind_parameter_rows(binder: Binder, source: exp.Expr) -> BoundRelation:
    assert binder.outside is not None
    hole, names = binder.outside.add_table(source, binder.namer)
    columns = tuple(BoundColumn(n, Column(f.name, f.type)) for n, f in zip(names, hole.columns, strict=True))
    alias = source.alias_or_name or "subquery"
    return BoundRelation(hole, Scope((SourceScope(alias, columns),)), told=binder.told)


def apply_column_aliases(source: exp.Expr, columns: tuple[BoundColumn, ...]) -> tuple[BoundColumn, ...]:
    """AS t(a, b) renames the first columns."""
    alias = source.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        return columns
    refuse_other_args(alias, "this", "columns")
    names = alias.args.get("columns") or []
    if len(names) > len(columns):
        raise InvalidSyntax(
            f'"{alias.name}" has {len(columns)} columns, and {len(names)} names are given',
            span=span_of(names[-1]), sqlstate="42P10",
        )  # fmt: skip
    renamed = tuple(replace(column, name=name.name) for column, name in zip(columns, names, strict=False))
    return renamed + columns[len(renamed) :]


# --- tables ----------------------------------------------------------------------------------------------------------


def _bind_table(binder: Binder, source: exp.Table, ctes: Ctes) -> BoundRelation:
    refuse_other_args(source, "this", "db", "catalog", "alias", "joins")
    cte = None if source.db else ctes.get(source.name.lower())
    if cte is not None:
        return bind_derived_table(binder, cte, source, source.alias or source.name)
    public = find_public_table(binder, source, ctes)
    if public is not None:
        return _bind_public_table(binder, public, source)
    if binder.outside is not None and not binder.outside.is_owned(source):
        return _bind_parameter_rows(binder, source)
    check_qualifier(source)
    return _bind_private_table(binder, require_table(binder.schema, source), source)


def find_public_table(binder: Binder, source: exp.Expr, ctes: Ctes) -> model.Table | None:
    """The public table that a source names; a CTE or view of that name goes first."""
    if not isinstance(source, exp.Table) or isinstance(source.this, exp.Func):
        return None
    if not source.db and source.name.lower() in ctes:
        return None
    if binder.outside is not None and binder.outside.is_cte_or_view(source):
        return None
    if source.catalog or source.db.lower() not in ("", "public", "main"):
        return None
    table = lookup_table(binder.schema, source)
    return table if table is not None and table.public else None


def _bind_public_table(binder: Binder, table: model.Table, source: exp.Table) -> BoundRelation:
    refuse_tablesample(source)
    columns = tuple(
        BoundColumn(c.name, Column(binder.namer.reserve_name(c.name), c.type, f"{table.name}.{c.name}"))
        for c in table.columns
    )
    node = PublicTable(table.name, _table_fields(columns))
    scope = Scope((SourceScope(source.alias or table.name, apply_column_aliases(source, columns)),))
    return BoundRelation(node, scope, told=binder.told)


def _bind_private_table(binder: Binder, table: model.Table, source: exp.Table) -> BoundRelation:
    columns = tuple(_bind_declared_column(binder, table, column) for column in table.columns)
    node = Table(table.name, _table_fields(columns), _unit_type(binder.schema, table))
    columns = apply_column_aliases(source, columns)
    return BoundRelation(node, Scope((SourceScope(source.alias or table.name, columns),)), (columns,), told=binder.told)


def _table_fields(columns: tuple[BoundColumn, ...]) -> tuple[tuple[str, Field], ...]:
    return tuple((c.name, Field(c.column.name, c.column.type)) for c in columns)


def _bind_declared_column(binder: Binder, table: model.Table, column: model.Column) -> BoundColumn:
    bound = Column(binder.namer.reserve_name(column.name), column.type, f"{table.name}.{column.name}")
    unit = unit_column(binder.schema, table)
    return BoundColumn(
        name=column.name,
        column=bound,
        is_unit=unit == column.name,
        links=_unit_links(binder.schema, table, column.name),
        parts=_key_parts(binder.schema, table, column.name, binder.namer.sources),
        one_per_unit=unit == column.name or (unit is not None and table.is_unique(unit)),
    )


def _unit_links(schema: Schema, table: model.Table, column: str) -> frozenset[UnitLink]:
    """Where a column leads: to the unit itself, or through an accepted unique key, its own or the one it refers to, or
    by an accepted claim that it determines the unit.

    What a column refers to leads where that one leads: the row that is found there has the same unit.
    """
    if isinstance(table.unit, RowUnit):
        return frozenset()
    links: set[UnitLink] = set()
    if column == unit_column(schema, table):
        links.add(UNIT_LINK)
    declared = table.column(column)
    if table.is_unique(column) or (declared is not None and declared.determines_unit):
        links.add((table.name, column))
    for target, key in _referenced_columns(schema, table, column):
        links |= _unit_links(schema, target, key)
    return frozenset(links)


def _key_parts(schema: Schema, table: model.Table, column: str, source: int) -> frozenset[KeyPart]:
    """The composite unique keys that a column is a part of, in its own table or in the one that it refers to."""
    if isinstance(table.unit, RowUnit | None):
        return frozenset()
    keys = (tuple(sorted(key)) for key in table.unique if len(key) > 1 and column in key)
    parts = {KeyPart(table.name, key, column, source) for key in keys}
    for target, key_column in _referenced_columns(schema, table, column):
        parts |= _key_parts(schema, target, key_column, source)
    return frozenset(parts)


def _referenced_columns(schema: Schema, table: model.Table, column: str) -> list[tuple[model.Table, str]]:
    hop = table.unit
    target = schema.table(hop.table) if isinstance(hop, ForeignUnit) else None
    if target is None or not isinstance(hop, ForeignUnit):
        return []
    return [(target, key) for name, key in hop.pairs if name == column]


def unit_column(schema: Schema, table: model.Table) -> str | None:
    """The table's own column that equals the unit's id, if it has one."""
    match table.unit:
        case OwnUnit(column):
            return column
        case ForeignUnit(column, target, key, ()):
            other = schema.table(target)
            return column if other is not None and other.unit == OwnUnit(key) else None
        case _:
            return None


def _unit_type(schema: Schema, table: model.Table) -> Type | None:
    if isinstance(table.unit, RowUnit):
        return None
    owner, _, column = schema.privacy.unit.partition(".")
    owner_table = schema.table(owner)
    unit = owner_table.column(column) if owner_table is not None else None
    if unit is None:
        raise InternalError("the unit's column is not declared")
    return unit.type


def strip_database(tree: exp.Query, schema: Schema) -> exp.Query:
    """The database's own name may stand before that of a schema; it is taken off here, any other stays."""
    for node in tree.find_all(exp.Table, exp.Column):
        catalog = node.args.get("catalog")
        if catalog is not None and catalog.name.lower() == schema.database.lower():
            node.set("catalog", None)
    return tree


def check_qualifier(node: exp.Table | exp.Column) -> None:
    """`public.` may stand before a table's name; no other schema or database does."""
    if node.catalog or (node.db and node.db.lower() not in ("public", "main")):
        name = node.catalog or node.db
        raise unknown_schema_error(name, span_of(node))


def find_synthetic_table(schema: Schema, source: exp.Table) -> model.MadeTable | None:
    """What the account itself has made, by its key; nobody else's is known here."""
    if source.db != model.CREATED_SCHEMA:
        return None
    return next((table for table in schema.made if table.key == source.name), None)


def lookup_table(schema: Schema, source: exp.Table) -> model.Table | None:
    return schema.table(source.name) or next(
        (table for table in schema.tables if matches_identifier(source.this, table.name)), None
    )


def require_table(schema: Schema, source: exp.Table) -> model.Table:
    table = lookup_table(schema, source)
    if table is not None:
        return table
    names = [relation.name for relation in schema.relations]
    close = get_close_matches(source.name, names, n=1)
    raise UnknownTable(
        f'relation "{source.name}" does not exist',
        hint=f'Perhaps you meant "{close[0]}".' if close else f"Tables: {', '.join(names)}.",
        span=span_of(source),
    )
