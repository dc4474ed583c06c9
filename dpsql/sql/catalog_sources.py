"""What stands in FROM of a statement about the catalog: its relations, and functions that give rows."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from sqlglot import exp

from dpsql.catalog.builtin import CatalogRelation
from dpsql.catalog.contents import is_session_relation, rows_of_session
from dpsql.catalog.identity import Identity
from dpsql.catalog.lookups import ObjectOids, duckdb_type_of
from dpsql.sql.catalog_functions import CATALOG_FUNCTIONS, TABLE_FUNCTIONS


@dataclass(frozen=True)
class RewriteContext:
    """What names mean, who asks, and when."""

    names: ObjectOids
    who: Identity
    now: dt.datetime


def duckdb_data_type(name: str) -> exp.DataType:
    return exp.DataType.build(name, dialect="duckdb")


def rewrite_table(node: exp.Table, context: RewriteContext) -> exp.Expr:
    if isinstance(node.this, exp.Identifier):
        return _rewrite_relation(node, context)
    return _rewrite_function_source(node, node.this, bool(node.args.get("ordinality")))


def _rewrite_relation(node: exp.Table, context: RewriteContext) -> exp.Expr:
    relation = node.meta.get("relation")
    if relation is None:
        return node  # a part of WITH
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(relation.name, quoted=True))
    if is_session_relation(relation):
        return _build_session_table(relation, alias, context.who)
    name = relation.name if relation.place == "pg_catalog" else f"{relation.place}.{relation.name}"
    rewritten = exp.Table(this=exp.to_identifier(name, quoted=True), db=exp.to_identifier("main"), alias=alias)
    rewritten.set("joins", node.args.get("joins"))
    return rewritten


def _build_session_table(relation: CatalogRelation, alias: exp.TableAlias, identity: Identity) -> exp.Expr:
    """As VALUES, which say the types."""
    rows = rows_of_session(identity, relation)
    kinds = [duckdb_data_type(duckdb_type_of(attribute.type)) for attribute in relation.attributes]
    shown_rows = rows or [tuple(None for _ in kinds)]
    cells = [[exp.Cast(this=_constant_to_expr(v), to=kind.copy()) for v, kind in zip(r, kinds, strict=True)] for r in shown_rows]
    names = [exp.to_identifier(attribute.name, quoted=True) for attribute in relation.attributes]
    inner = exp.TableAlias(this=exp.to_identifier("rows__"), columns=names)
    values = exp.Values(expressions=[exp.Tuple(expressions=row) for row in cells], alias=inner)
    query = exp.select("*").from_(values)
    if not rows:
        query = query.where(exp.false())
    return exp.Subquery(this=query, alias=alias)


def _constant_to_expr(value: object) -> exp.Expr:
    if isinstance(value, list):
        return exp.Array(expressions=[_constant_to_expr(item) for item in value])
    return exp.convert(value)


def rewrite_unnest(node: exp.Unnest, context: RewriteContext) -> exp.Expr:
    call = exp.Anonymous(this="unnest", expressions=list(node.expressions))
    offset = node.args.get("offset")
    source = exp.Table(this=call, alias=node.args.get("alias"))
    if isinstance(offset, exp.Identifier):
        if source.args.get("alias") is None:
            names = [exp.to_identifier("unnest")]
            source.set("alias", exp.TableAlias(this=exp.to_identifier("unnest"), columns=names))
        source.args["alias"].append("columns", offset)
    return _name_function_columns(source, bool(offset))


def _rewrite_function_source(node: exp.Table, call: exp.Expr, ordinality: bool) -> exp.Expr:
    """A function in FROM: its rows are a table's, or the elements of a list."""
    if isinstance(call, exp.Subquery | exp.Select):
        return node
    name = str(call.meta.get("function", ""))
    if name in TABLE_FUNCTIONS:
        table, columns = TABLE_FUNCTIONS[name]
        items = [_typed_column(table, column, type_) for column, type_ in columns]
        if ordinality:
            items.append(_typed_column("lookup__none", "ordinality", "int8"))
        query = exp.select(*items).from_(exp.to_table(table))
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
        return exp.Subquery(this=query, alias=alias)
    if name not in CATALOG_FUNCTIONS:
        return _name_function_columns(node, ordinality)
    listed = call.expressions[0] if isinstance(call, exp.Anonymous) and call.name == "unnest" else call
    if name == "_pg_expandarray":
        items = [exp.alias_(exp.Anonymous(this="struct_extract", expressions=[exp.column("e__"), exp.convert(field)]),
                            field) for field in ("x", "n")]  # fmt: skip
        inner = exp.select(exp.alias_(exp.Anonymous(this="unnest", expressions=[listed]), "e__")).subquery("s__")
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
        return exp.Subquery(this=exp.select(*items).from_(inner), alias=alias)
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
    if name != "unnest" and not CATALOG_FUNCTIONS[name].rows:
        title = (alias.args.get("columns") or [alias.this])[0].name
        return exp.Subquery(this=exp.select(exp.alias_(call, title, quoted=True)), alias=alias)
    source = exp.Table(this=exp.Anonymous(this="unnest", expressions=[listed]), alias=alias)
    return _name_function_columns(source, ordinality)


def _typed_column(table: str, column: str, type_: str) -> exp.Expr:
    value = exp.column(column) if table != "lookup__none" else exp.Null()
    return exp.alias_(exp.Cast(this=value, to=duckdb_data_type(duckdb_type_of(type_))), column)


def _name_function_columns(node: exp.Table, ordinality: bool) -> exp.Expr:
    """A function's only column is named as the function is, by PostgreSQL."""
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier("unnest"))
    if not alias.args.get("columns"):
        alias.set("columns", [alias.this.copy()])
    if ordinality and len(alias.args["columns"]) == 1:
        alias.append("columns", exp.to_identifier("ordinality"))
    node.set("alias", alias)
    node.set("ordinality", ordinality)
    return node


def rewrite_lateral(node: exp.Lateral, context: RewriteContext) -> exp.Expr:
    """LATERAL before a function says nothing; before a sub-select it stays."""
    inner = node.this
    if isinstance(inner, exp.Table):
        if node.args.get("alias") is not None and isinstance(inner.args.get("alias"), exp.TableAlias):
            columns = node.args["alias"].args.get("columns") or [node.args["alias"].this.copy()]
            rest = (inner.args["alias"].args.get("columns") or [])[len(columns) :]
            inner.set("alias", exp.TableAlias(this=node.args["alias"].this, columns=[*columns, *rest]))
        return inner
    call = str(inner.meta.get("function", ""))
    if call:
        return _rewrite_function_source(exp.Table(this=inner, alias=node.args.get("alias")), inner, False)
    return node
