"""A block over private rows without an aggregate: its types are public, and its rows are never given out."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from dpsql.errors import NotPrivate
from dpsql.sql.bind import Binder
from dpsql.sql.blocks import Block, Ownership, SplitState
from dpsql.sql.coerce import bind_literal
from dpsql.sql.dialect import span_of
from dpsql.sql.suggest import aggregate_hint
from dpsql.types import Type


def describe_or_refuse_rows(select: exp.Select, binder: Binder, state: SplitState) -> Block:
    """LIMIT 0 and WHERE FALSE ask for types only; everything else without an aggregate asks for rows."""
    only_types, some = _needs_types_only(select), select.args.get("limit") is not None
    select.set("limit", None)
    select.set("offset", None)
    _, columns = binder.bind_owned_select(select)  # a misspelt name or function is said first
    if not only_types:
        hint = aggregate_hint(select, columns, state.schema, state.scopes[id(select)], some)
        first = span_of(select.expressions[0]) if select.expressions else None
        raise NotPrivate("this would return single private rows", hint=hint, span=first)
    return Block(Ownership.PUBLIC, _empty_select((c.name, c.column.type) for c in columns))


def _needs_types_only(select: exp.Select) -> bool:
    limit, where = select.args.get("limit"), select.args.get("where")
    if limit is not None and isinstance(limit.expression, exp.Literal) and str(limit.expression.this) == "0":
        return True
    return where is not None and _is_false_condition(where.this)


def _empty_select(columns: Iterable[tuple[str, Type]]) -> exp.Select:
    """No row, with columns of these names and types."""
    items = [exp.alias_(exp.cast(exp.Null(), str(type_)), name, quoted=True) for name, type_ in columns]
    return exp.select(*items).where(exp.false())


def _is_false_condition(node: exp.Expr) -> bool:
    """WHERE FALSE, 1 = 0, 1 <> 1, NOT TRUE: also in parentheses, and beside other conditions."""
    match node:
        case exp.Paren():
            return _is_false_condition(node.this)
        case exp.And():
            return _is_false_condition(node.this) or _is_false_condition(node.expression)
        case exp.Boolean():
            return not node.this
        case exp.Not() if isinstance(node.this, exp.Boolean):
            return bool(node.this.this)
        case exp.EQ() | exp.NEQ():
            sides = [bind_literal(side) for side in (node.this, node.expression) if isinstance(side, exp.Literal)]
            if len(sides) != 2 or not all(side.type.is_number for side in sides):
                return False
            return (sides[0].value == sides[1].value) == isinstance(node, exp.NEQ)
        case _:
            return False
