"""What of a plan reads answers that were randomized before they were recorded, and how.

An answer that was not asked for is NULL and was never randomized: whether a column is NULL says nothing wrong. All else
that is made of a recorded answer is told apart here by the column that it comes from, through joins, sub-selects and
per-unit aggregates, so that nothing is debiased twice, and nothing is told as recorded without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from dpsql.plan.expr import Column, Expr, IsNull
from dpsql.plan.relations import (
    Expand,
    Filter,
    Join,
    Mark,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    SetKind,
    SetOperation,
    Table,
    UnitWindow,
    row_fields,
)
from dpsql.plan.walk import children
from dpsql.schema.model import Randomized, Schema

Origin = tuple[str, str]
"""A declared column that holds randomized answers, by its table's name and its own."""

Origins = frozenset[Origin]
NONE: Origins = frozenset()


@dataclass(frozen=True)
class Reads:
    """Of a relation: the answers that each column was made of, the columns that are answers as they were recorded, and
    the answers that decide which rows there are."""

    columns: Mapping[str, Origins]
    recorded: Mapping[str, Origin]
    rows: Origins = NONE

    def of(self, expr: Expr) -> Origins:
        return frozenset(origin for name in _read(expr) for origin in self.columns.get(name, NONE))

    def recorded_by(self, expr: Expr) -> Origin | None:
        """The answers that an expression is, as they were recorded."""
        return self.recorded.get(expr.name) if isinstance(expr, Column) else None


def _read(expr: Expr) -> Iterator[str]:
    """The columns whose values an expression depends on; of some it only asks whether they are NULL."""
    if isinstance(expr, Column):
        yield expr.name
    elif not (isinstance(expr, IsNull) and isinstance(expr.arg, Column)):
        for child in children(expr):
            yield from _read(child)


def how_randomized(schema: Schema, origin: Origin) -> Randomized:
    table = schema.table(origin[0])
    column = None if table is None else table.column(origin[1])
    assert column is not None and column.randomized is not None
    return column.randomized


def reads(node: Rows, schema: Schema) -> Reads:
    match node:
        case Table():
            return _declared(node.table, [(source, f.name) for source, f in node.columns], schema)
        case Scan():
            return _declared(node.table, [(column.source, column.name) for column in node.columns], schema)
        case PublicTable() | PublicScan() | RowsHole():
            return Reads({}, {})
        case Filter():
            below = reads(node.input, schema)
            return replace(below, rows=below.rows | below.of(node.condition))
        case Project():
            return _project(node, reads(node.input, schema))
        case Join():
            both = _both(reads(node.left, schema), reads(node.right, schema))
            return replace(both, rows=both.rows | both.of(node.condition))
        case Mark():
            return _mark(node, schema)
        case PerUnit():
            return _per_unit(node, reads(node.input, schema))
        case UnitWindow():
            below = reads(node.input, schema)
            parts = (*node.args, *node.partition, *(ordering.expr for ordering in node.order))
            return replace(below, columns={**below.columns, node.name: _all(below, parts)})
        case SetOperation():
            return _set_operation(node, schema)
        case Expand():
            return reads(node.input, schema)
        case _:
            assert_never(node)


def _declared(table: str, names: list[tuple[str, str]], schema: Schema) -> Reads:
    declared = schema.table(table)
    columns = {} if declared is None else {column.name: column for column in declared.columns}
    found = {
        name: (table, source)
        for source, name in names
        if source in columns and columns[source].randomized is not None
    }
    return Reads({name: frozenset({origin}) for name, origin in found.items()}, found)


def _all(below: Reads, exprs: tuple[Expr, ...]) -> Origins:
    return frozenset(origin for expr in exprs for origin in below.of(expr))


def _both(left: Reads, right: Reads) -> Reads:
    return Reads({**left.columns, **right.columns}, {**left.recorded, **right.recorded}, left.rows | right.rows)


def _project(node: Project, below: Reads) -> Reads:
    recorded = {column.name: below.recorded_by(column.expr) for column in node.columns}
    return Reads(
        {column.name: below.of(column.expr) for column in node.columns},
        {name: origin for name, origin in recorded.items() if origin is not None},
        below.rows,
    )


def _mark(node: Mark, schema: Schema) -> Reads:
    """The rows are the left's; whether one is marked depends on the right's."""
    left, right = reads(node.left, schema), reads(node.right, schema)
    marked = _all(_both(left, right), (node.condition, *(node.test or ()))) | right.rows
    return replace(left, columns={**left.columns, node.name: marked})


def _per_unit(node: PerUnit, below: Reads) -> Reads:
    """A unit has a row for each value of the keys: which rows there are depends on them."""
    columns = {key.name: below.of(key.expr) for key in node.keys}
    columns |= {m.name: NONE if m.arg is None else below.of(m.arg) for m in node.measures}
    return Reads(columns, {}, below.rows | _all(below, tuple(key.expr for key in node.keys)))


def _set_operation(node: SetOperation, schema: Schema) -> Reads:
    """Columns by their places. A row of one side may go by one of the other, but for UNION ALL."""
    left, right = reads(node.left, schema), reads(node.right, schema)
    pairs = zip(row_fields(node.left), row_fields(node.right), strict=True)
    columns = {
        ours.name: left.columns.get(ours.name, NONE) | right.columns.get(theirs.name, NONE) for ours, theirs in pairs
    }
    rows = left.rows | right.rows
    if node.kind is not SetKind.UNION_ALL:
        rows = rows.union(*columns.values())
    return Reads(columns, {}, rows)
