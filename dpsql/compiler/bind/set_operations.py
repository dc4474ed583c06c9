"""UNION, INTERSECT and EXCEPT of private rows. The ids of units are compared along, so that units never mix.

UNION ALL keeps every row with its unit. The others make equal rows one: only where the unit is among the columns, in
the same place on both sides, do equal rows belong to one unit (SOUNDNESS 2).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.compiler.bind.coercion import unify_types
from dpsql.compiler.bind.scope import BoundColumn
from dpsql.compiler.bind.windows import refuse_row_selection
from dpsql.compiler.parse.dialect import refuse_other_args, span_of
from dpsql.compiler.plan.expressions import Column, Expr, Literal
from dpsql.compiler.plan.relations import Named, Project, Rows, SetKind, SetOperation
from dpsql.errors import InvalidSyntax, NotPrivate, Unsupported

if TYPE_CHECKING:
    from dpsql.compiler.bind.binder import Binder

BoundQuery = tuple[Rows, tuple[BoundColumn, ...]]


def bind_set_operation(binder: Binder, query: exp.SetOperation) -> BoundQuery:
    refuse_row_selection(query)
    refuse_other_args(query, "this", "expression", "distinct", "order", "with_")
    kind = _set_kind(query)
    for side in (query.this, query.expression):
        if binder.outside is not None and not binder.outside.is_owned(side):
            raise Unsupported(
                f"{query.key.upper()} of private rows with others is not supported",
                hint="Aggregate the private rows first: set operations of aggregated rows are fine.",
                span=span_of(side),
            )
    left, right = binder.bind_owned_query(query.this), binder.bind_owned_query(query.expression)
    if len(left[1]) != len(right[1]):
        raise InvalidSyntax(f"each side of {query.key.upper()} must have the same number of columns",
                            span=span_of(query.expression), sqlstate="42601")  # fmt: skip
    units = [
        left_column.is_unit and right_column.is_unit
        for left_column, right_column in zip(left[1], right[1], strict=True)
    ]
    if kind is not SetKind.UNION_ALL and not any(map(_is_same_unit, left[1], right[1])):
        raise NotPrivate(
            f"{query.key.upper()} of private rows needs the privacy unit among the columns",
            detail="Equal rows of two units would become one.",
            hint=f"Add the unit's column in the same place on both sides, or {_across_units(kind)}.",
            span=span_of(query),
        )
    (ours, names), (theirs, _) = _unify_types(binder, left, right)
    return SetOperation(kind, ours, theirs), tuple(
        BoundColumn(left_column.name, name, unit, left_column.links & right_column.links, unit)
        for left_column, right_column, name, unit in zip(left[1], right[1], names, units, strict=True)
    )


def _across_units(kind: SetKind) -> str:
    """What to ask where rows of all units are meant."""
    if kind is SetKind.UNION:
        return "write UNION ALL"
    return "write SELECT DISTINCT on both sides, to compare what groups there are"


def _is_same_unit(left: BoundColumn, right: BoundColumn) -> bool:
    """Equal values of these columns belong to one unit."""
    return left.leads_to_unit and right.leads_to_unit and bool(left.links & right.links)


def _set_kind(query: exp.SetOperation) -> SetKind:
    distinct = query.args.get("distinct")
    if isinstance(query, exp.Union):
        return SetKind.UNION if distinct else SetKind.UNION_ALL
    if not distinct:
        raise Unsupported(f"{query.key.upper()} ALL over private rows is not supported",
                          hint=f"Write {query.key.upper()}.", span=span_of(query))  # fmt: skip
    return SetKind.INTERSECT if isinstance(query, exp.Intersect) else SetKind.EXCEPT


def _unify_types(
    binder: Binder, left: BoundQuery, right: BoundQuery
) -> tuple[tuple[Rows, list[Column]], tuple[Rows, list[Column]]]:
    """Both sides in the same types, column by column."""
    ours: list[Named] = []
    theirs: list[Named] = []
    for left_column, right_column in zip(left[1], right[1], strict=True):
        nodes: list[exp.Expr] = [exp.column(left_column.name), exp.column(right_column.name)]
        met, _ = unify_types(
            [_column_value(left[0], left_column), _column_value(right[0], right_column)], nodes, "set operation"
        )
        ours.append(Named(binder.namer.reserve_name(left_column.name), met[0]))
        theirs.append(Named(binder.namer.reserve_name(right_column.name), met[1]))
    return (
        (Project(left[0], tuple(ours)), [_typed_column(named, c) for named, c in zip(ours, left[1], strict=True)]),
        (
            Project(right[0], tuple(theirs)),
            [_typed_column(named, c) for named, c in zip(theirs, right[1], strict=True)],
        ),
    )


def _typed_column(named: Named, column: BoundColumn) -> Column:
    return replace(column.column, name=named.name, type=named.expr.type)


def _column_value(node: Rows, column: BoundColumn) -> Expr:
    """The column; a literal as such, since one without a type takes that of the other side."""
    if isinstance(node, Project):
        for named in node.columns:
            if named.name == column.column.name and isinstance(named.expr, Literal):
                return named.expr
    return column.column
