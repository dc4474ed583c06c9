"""What may stand in FROM of a block over private rows: tables, sub-selects, CTEs, joins in parentheses, public rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.errors import InternalError, InvalidSyntax, UnknownTable, Unsupported
from dpsql.plan.expr import Column
from dpsql.plan.relations import Field, PublicTable, Table
from dpsql.schema import model
from dpsql.schema.model import ForeignUnit, OwnUnit, RowUnit, Schema
from dpsql.sql.aggregates import holds_aggregate
from dpsql.sql.dialect import only, span_of
from dpsql.sql.joins import join_tree
from dpsql.sql.made_commands import no_schema
from dpsql.sql.names import UNIT, BoundColumn, Link, Scope, SourceScope, same
from dpsql.sql.parentheses import is_tree
from dpsql.sql.relation import Relation
from dpsql.types import Type

if TYPE_CHECKING:
    from dpsql.sql.bind import Binder

Ctes = Mapping[str, exp.Query]


def bind_source(binder: Binder, source: exp.Expr, ctes: Ctes, alone: bool = False) -> Relation:
    """A source with the joins that hang on it, or `alone`: sqlglot hangs those in parentheses on the first of them."""
    if source.args.get("joins") and not alone:
        return join_tree(binder, source, source.args["joins"], ctes)
    refuse_sample(source)
    binder.namer.count_source(source)
    if is_tree(source):
        only(source, "this", "alias", "joins")
        tree = binder.source(source.this, ctes)
        return tree if source.args.get("alias") is None else _renamed(tree, source)
    if isinstance(source, exp.Table) and not isinstance(source.this, exp.Func):
        return _table(binder, source, ctes)
    if isinstance(source, exp.Subquery):
        return _sub_select(binder, source, ctes)
    if isinstance(source, exp.Lateral):
        raise Unsupported(
            "LATERAL needs sources before it",
            hint="For example: FROM patients p CROSS JOIN LATERAL (SELECT …) AS x.",
            span=span_of(source),
        )
    if binder.outside is not None and not binder.outside.is_owned(source):
        return _hole(binder, source)
    raise Unsupported("this cannot stand in FROM with private rows", span=span_of(source))


def _renamed(relation: Relation, source: exp.Expr) -> Relation:
    """(a JOIN b …) AS t: all columns under one name."""
    columns = tuple(relation.scope.visible())
    relation.scope = Scope((SourceScope(source.alias, alias_columns(source, columns)),))
    return relation


def refuse_sample(source: exp.Expr) -> None:
    sample = source.args.get("sample")
    if sample is not None:
        raise Unsupported(
            "TABLESAMPLE over private rows is not supported",
            detail="Which rows it takes depends on other units' rows.",
            hint="Leave it out: the noise does not shrink with a sample.",
            span=span_of(sample) or span_of(source),
        )


# --- sub-selects -----------------------------------------------------------------------------------------------------


def _sub_select(binder: Binder, source: exp.Subquery, ctes: Ctes) -> Relation:
    only(source, "this", "alias", "joins")
    query: exp.Expr = source.this
    while isinstance(query, exp.Subquery) and query.args.get("alias") is None:
        only(query, "this")
        query = query.this
    if binder.outside is not None and not binder.outside.is_owned(query):
        if isinstance(query, exp.Select) and _is_simple_public(binder, query, ctes):
            return _public_select(binder, query, source)
        return _hole(binder, source)
    return derived(binder, query, source, source.alias or "subquery")


def derived(binder: Binder, query: exp.Expr, source: exp.Expr, alias: str) -> Relation:
    """Rows of an owned query under an alias."""
    node, columns = binder.owned_query(query)
    columns = alias_columns(source, columns)
    return Relation(node, Scope((SourceScope(alias, columns),)), (columns,), told=binder.told)


def _public_select(binder: Binder, query: exp.Select, source: exp.Subquery) -> Relation:
    node, columns = binder.owned_select(query)
    scope = Scope((SourceScope(source.alias or "subquery", alias_columns(source, columns)),))
    return Relation(node, scope, told=binder.told)


def _is_simple_public(binder: Binder, query: exp.Select, ctes: Ctes) -> bool:
    """Filters and columns of declared public tables: these stay in the engine, where their unique keys are known."""
    clauses = {"expressions", "from_", "joins", "where"}
    if any(value for key, value in query.args.items() if key not in clauses) or query.args.get("from_") is None:
        return False
    tables = [query.args["from_"].this, *(join.this for join in query.args.get("joins") or ())]
    nested = [node for node in query.walk() if isinstance(node, exp.Query | exp.Window) and node is not query]
    if nested or any(holds_aggregate(item) for item in query.expressions):
        return False
    return all(declared_public(binder, table, ctes) is not None for table in tables)


def _hole(binder: Binder, source: exp.Expr) -> Relation:
    assert binder.outside is not None
    hole, names = binder.outside.rows(source, binder.namer)
    columns = tuple(BoundColumn(n, Column(f.name, f.type)) for n, f in zip(names, hole.columns, strict=True))
    alias = source.alias_or_name or "subquery"
    return Relation(hole, Scope((SourceScope(alias, columns),)), told=binder.told)


def alias_columns(source: exp.Expr, columns: tuple[BoundColumn, ...]) -> tuple[BoundColumn, ...]:
    """AS t(a, b) renames the first columns."""
    alias = source.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        return columns
    only(alias, "this", "columns")
    names = alias.args.get("columns") or []
    if len(names) > len(columns):
        raise InvalidSyntax(
            f'"{alias.name}" has {len(columns)} columns, and {len(names)} names are given',
            span=span_of(names[-1]), sqlstate="42P10",
        )  # fmt: skip
    given = tuple(replace(column, name=name.name) for column, name in zip(columns, names, strict=False))
    return given + columns[len(given) :]


# --- tables ----------------------------------------------------------------------------------------------------------


def _table(binder: Binder, source: exp.Table, ctes: Ctes) -> Relation:
    only(source, "this", "db", "catalog", "alias", "joins")
    cte = None if source.db else ctes.get(source.name.lower())
    if cte is not None:
        return derived(binder, cte, source, source.alias or source.name)
    public = declared_public(binder, source, ctes)
    if public is not None:
        return _public(binder, public, source)
    if binder.outside is not None and not binder.outside.is_owned(source):
        return _hole(binder, source)
    check_qualifier(source)
    return _private(binder, find_table(binder.schema, source), source)


def declared_public(binder: Binder, source: exp.Expr, ctes: Ctes) -> model.Table | None:
    """The public table that a source names; a CTE or view of that name goes first."""
    if not isinstance(source, exp.Table) or isinstance(source.this, exp.Func):
        return None
    if not source.db and source.name.lower() in ctes:
        return None
    if binder.outside is not None and binder.outside.is_named(source):
        return None
    if source.catalog or source.db.lower() not in ("", "public", "main"):
        return None
    table = known_table(binder.schema, source)
    return table if table is not None and table.public else None


def _public(binder: Binder, table: model.Table, source: exp.Table) -> Relation:
    refuse_sample(source)
    columns = tuple(
        BoundColumn(c.name, Column(binder.namer.name(c.name), c.type, f"{table.name}.{c.name}")) for c in table.columns
    )
    node = PublicTable(table.name, _fields(columns))
    scope = Scope((SourceScope(source.alias or table.name, alias_columns(source, columns)),))
    return Relation(node, scope, told=binder.told)


def _private(binder: Binder, table: model.Table, source: exp.Table) -> Relation:
    columns = tuple(_declared(binder, table, column) for column in table.columns)
    node = Table(table.name, _fields(columns), _unit_type(binder.schema, table))
    columns = alias_columns(source, columns)
    return Relation(node, Scope((SourceScope(source.alias or table.name, columns),)), (columns,), told=binder.told)


def _fields(columns: tuple[BoundColumn, ...]) -> tuple[tuple[str, Field], ...]:
    return tuple((c.name, Field(c.column.name, c.column.type)) for c in columns)


def _declared(binder: Binder, table: model.Table, column: model.Column) -> BoundColumn:
    bound = Column(binder.namer.name(column.name), column.type, f"{table.name}.{column.name}")
    unit = unit_column(binder.schema, table)
    return BoundColumn(
        name=column.name,
        column=bound,
        is_unit=unit == column.name,
        links=_links(table, column.name, unit),
        one_per_unit=unit == column.name or (unit is not None and table.is_unique(unit)),
    )


def _links(table: model.Table, column: str, unit: str | None) -> frozenset[Link]:
    """Where a column leads: to the unit itself, or through an accepted unique key, its own or the one it refers to."""
    found: set[Link] = set()
    if column == unit:
        found.add(UNIT)
    if isinstance(table.unit, ForeignUnit) and table.unit.column == column:
        found.add((table.unit.table, table.unit.key))
    if table.is_unique(column) and not isinstance(table.unit, RowUnit):
        found.add((table.name, column))
    return frozenset(found)


def unit_column(schema: Schema, table: model.Table) -> str | None:
    """The table's own column that equals the unit's id, if it has one."""
    match table.unit:
        case OwnUnit(column):
            return column
        case ForeignUnit(column, target, key):
            other = schema.table(target)
            return column if other is not None and other.unit == OwnUnit(key) else None
        case _:
            return None


def _unit_type(schema: Schema, table: model.Table) -> Type | None:
    if isinstance(table.unit, RowUnit):
        return None
    path = schema.unit_path(table)
    owner, column = (path[-1].table, path[-1].key) if path else (table.name, schema.privacy.unit.split(".")[1])
    found = schema.table(owner)
    unit = found.column(column) if found is not None else None
    if unit is None:
        raise InternalError("the unit's column is not declared")
    return unit.type


def without_database(tree: exp.Query, schema: Schema) -> exp.Query:
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
        raise no_schema(name, span_of(node))


def known_table(schema: Schema, source: exp.Table) -> model.Table | None:
    return schema.table(source.name) or next((table for table in schema.tables if same(source.this, table.name)), None)


def find_table(schema: Schema, source: exp.Table) -> model.Table:
    found = known_table(schema, source)
    if found is not None:
        return found
    names = [relation.name for relation in schema.relations]
    close = get_close_matches(source.name, names, n=1)
    raise UnknownTable(
        f'table "{source.name}" does not exist',
        hint=f'Perhaps you meant "{close[0]}".' if close else f"Tables: {', '.join(names)}.",
        span=span_of(source),
    )
