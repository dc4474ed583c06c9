"""UNION, INTERSECT and EXCEPT of private rows. The ids of units are compared along, so that units never mix.

UNION ALL keeps every row with its unit. The others make equal rows one: only where the unit is among the columns, in
the same place on both sides, do equal rows belong to one unit (SOUNDNESS 2).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.errors import InvalidSyntax, NotPrivate, Unsupported
from dpsql.plan.expr import Column, Expr, Literal
from dpsql.plan.relations import Named, Project, Rows, SetKind, SetOperation
from dpsql.sql.choosing import refuse_choice
from dpsql.sql.coerce import meet
from dpsql.sql.dialect import only, span_of
from dpsql.sql.names import BoundColumn

if TYPE_CHECKING:
    from dpsql.sql.bind import Binder

Bound = tuple[Rows, tuple[BoundColumn, ...]]


def bind_set_operation(binder: Binder, query: exp.SetOperation) -> Bound:
    refuse_choice(query)
    only(query, "this", "expression", "distinct", "order", "with_")
    kind = _kind(query)
    for side in (query.this, query.expression):
        if binder.outside is not None and not binder.outside.is_owned(side):
            raise Unsupported(
                f"{query.key.upper()} of private rows with others is not supported",
                hint="Aggregate the private rows first: set operations of aggregated rows are fine.",
                span=span_of(side),
            )
    left, right = binder.owned_query(query.this), binder.owned_query(query.expression)
    if len(left[1]) != len(right[1]):
        raise InvalidSyntax(f"each side of {query.key.upper()} must have the same number of columns",
                            span=span_of(query.expression), sqlstate="42601")  # fmt: skip
    units = [one.is_unit and other.is_unit for one, other in zip(left[1], right[1], strict=True)]
    if kind is not SetKind.UNION_ALL and not any(map(_same_unit, left[1], right[1])):
        raise NotPrivate(
            f"{query.key.upper()} of private rows needs the privacy unit among the columns",
            detail="Equal rows of two units would become one.",
            hint="Add the unit's column in the same place on both sides, or write UNION ALL.",
            span=span_of(query),
        )
    (ours, names), (theirs, _) = _typed(binder, left, right)
    return SetOperation(kind, ours, theirs), tuple(
        BoundColumn(one.name, name, unit, one.links & other.links, unit)
        for one, other, name, unit in zip(left[1], right[1], names, units, strict=True)
    )


def _same_unit(one: BoundColumn, other: BoundColumn) -> bool:
    """Equal values of these columns belong to one unit."""
    return one.leads_to_unit and other.leads_to_unit and bool(one.links & other.links)


def _kind(query: exp.SetOperation) -> SetKind:
    distinct = query.args.get("distinct")
    if isinstance(query, exp.Union):
        return SetKind.UNION if distinct else SetKind.UNION_ALL
    if not distinct:
        raise Unsupported(f"{query.key.upper()} ALL over private rows is not supported",
                          hint=f"Write {query.key.upper()}.", span=span_of(query))  # fmt: skip
    return SetKind.INTERSECT if isinstance(query, exp.Intersect) else SetKind.EXCEPT


def _typed(
    binder: Binder, left: Bound, right: Bound
) -> tuple[tuple[Rows, list[Column]], tuple[Rows, list[Column]]]:
    """Both sides in the same types, column by column."""
    ours: list[Named] = []
    theirs: list[Named] = []
    for one, other in zip(left[1], right[1], strict=True):
        nodes: list[exp.Expr] = [exp.column(one.name), exp.column(other.name)]
        met, _ = meet([_value(left[0], one), _value(right[0], other)], nodes, "set operation")
        ours.append(Named(binder.namer.name(one.name), met[0]))
        theirs.append(Named(binder.namer.name(other.name), met[1]))
    return (
        (Project(left[0], tuple(ours)), [_column(named, c) for named, c in zip(ours, left[1], strict=True)]),
        (Project(right[0], tuple(theirs)), [_column(named, c) for named, c in zip(theirs, right[1], strict=True)]),
    )


def _column(named: Named, column: BoundColumn) -> Column:
    return replace(column.column, name=named.name, type=named.expr.type)


def _value(node: Rows, column: BoundColumn) -> Expr:
    """The column; a literal as such, since one without a type takes that of the other side."""
    if isinstance(node, Project):
        for named in node.columns:
            if named.name == column.column.name and isinstance(named.expr, Literal):
                return named.expr
    return column.column
