"""What stands in FROM of a statement about the catalog: its relations, and functions that give rows."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from sqlglot import exp

from dpsql.catalog.builtin import Relation
from dpsql.catalog.contents import is_of_session, session_rows
from dpsql.catalog.identity import Identity
from dpsql.catalog.lookups import Names, storage
from dpsql.sql.catalog_functions import FUNCTIONS, TABLE_FUNCTIONS


@dataclass(frozen=True)
class Surroundings:
    """What names mean, who asks, and when."""

    names: Names
    who: Identity
    now: dt.datetime


def data_type(spelled: str) -> exp.DataType:
    return exp.DataType.build(spelled, dialect="duckdb")


def table(node: exp.Table, around: Surroundings) -> exp.Expr:
    if isinstance(node.this, exp.Identifier):
        return _relation(node, around)
    return _function_source(node, node.this, bool(node.args.get("ordinality")))


def _relation(node: exp.Table, around: Surroundings) -> exp.Expr:
    known = node.meta.get("relation")
    if known is None:
        return node  # a part of WITH
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(known.name, quoted=True))
    if is_of_session(known):
        return _session_table(known, alias, around.who)
    name = known.name if known.place == "pg_catalog" else f"{known.place}.{known.name}"
    made = exp.Table(this=exp.to_identifier(name, quoted=True), db=exp.to_identifier("main"), alias=alias)
    made.set("joins", node.args.get("joins"))
    return made


def _session_table(known: Relation, alias: exp.TableAlias, who: Identity) -> exp.Expr:
    """As VALUES, which say the types."""
    rows = session_rows(who, known)
    kinds = [data_type(storage(attribute.type)) for attribute in known.attributes]
    shown = rows or [tuple(None for _ in kinds)]
    cells = [[exp.Cast(this=_constant(v), to=kind.copy()) for v, kind in zip(r, kinds, strict=True)] for r in shown]
    names = [exp.to_identifier(attribute.name, quoted=True) for attribute in known.attributes]
    inner = exp.TableAlias(this=exp.to_identifier("rows__"), columns=names)
    values = exp.Values(expressions=[exp.Tuple(expressions=row) for row in cells], alias=inner)
    query = exp.select("*").from_(values)
    if not rows:
        query = query.where(exp.false())
    return exp.Subquery(this=query, alias=alias)


def _constant(value: object) -> exp.Expr:
    if isinstance(value, list):
        return exp.Array(expressions=[_constant(one) for one in value])
    return exp.convert(value)


def unnest(node: exp.Unnest, around: Surroundings) -> exp.Expr:
    call = exp.Anonymous(this="unnest", expressions=list(node.expressions))
    offset = node.args.get("offset")
    source = exp.Table(this=call, alias=node.args.get("alias"))
    if isinstance(offset, exp.Identifier):
        if source.args.get("alias") is None:
            names = [exp.to_identifier("unnest")]
            source.set("alias", exp.TableAlias(this=exp.to_identifier("unnest"), columns=names))
        source.args["alias"].append("columns", offset)
    return _named_function(source, bool(offset))


def _function_source(node: exp.Table, call: exp.Expr, ordinality: bool) -> exp.Expr:
    """A function in FROM: its rows are a table's, or the elements of a list."""
    if isinstance(call, exp.Subquery | exp.Select):
        return node
    name = str(call.meta.get("function", ""))
    if name in TABLE_FUNCTIONS:
        table, columns = TABLE_FUNCTIONS[name]
        items = [_column_of(table, column, type_) for column, type_ in columns]
        if ordinality:
            items.append(_column_of("lookup__none", "ordinality", "int8"))
        query = exp.select(*items).from_(exp.to_table(table))
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
        return exp.Subquery(this=query, alias=alias)
    if name not in FUNCTIONS:
        return _named_function(node, ordinality)
    listed = call.expressions[0] if isinstance(call, exp.Anonymous) and call.name == "unnest" else call
    if name == "_pg_expandarray":
        items = [exp.alias_(exp.Anonymous(this="struct_extract", expressions=[exp.column("e__"), exp.convert(field)]),
                            field) for field in ("x", "n")]  # fmt: skip
        inner = exp.select(exp.alias_(exp.Anonymous(this="unnest", expressions=[listed]), "e__")).subquery("s__")
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
        return exp.Subquery(this=exp.select(*items).from_(inner), alias=alias)
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
    if name != "unnest" and not FUNCTIONS[name].rows:
        title = (alias.args.get("columns") or [alias.this])[0].name
        return exp.Subquery(this=exp.select(exp.alias_(call, title, quoted=True)), alias=alias)
    source = exp.Table(this=exp.Anonymous(this="unnest", expressions=[listed]), alias=alias)
    return _named_function(source, ordinality)


def _column_of(table: str, column: str, type_: str) -> exp.Expr:
    value = exp.column(column) if table != "lookup__none" else exp.Null()
    return exp.alias_(exp.Cast(this=value, to=data_type(storage(type_))), column)


def _named_function(node: exp.Table, ordinality: bool) -> exp.Expr:
    """A function's only column is named as the function is, by PostgreSQL."""
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier("unnest"))
    if not alias.args.get("columns"):
        alias.set("columns", [alias.this.copy()])
    if ordinality and len(alias.args["columns"]) == 1:
        alias.append("columns", exp.to_identifier("ordinality"))
    node.set("alias", alias)
    node.set("ordinality", ordinality)
    return node


def lateral(node: exp.Lateral, around: Surroundings) -> exp.Expr:
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
        return _function_source(exp.Table(this=inner, alias=node.args.get("alias")), inner, False)
    return node
