"""Which parts of a plan read answers that were randomized before they were recorded, and how.

An answer that was not asked for is NULL and was never randomized: whether a column is NULL says nothing wrong. All else
that is made of a recorded answer is told apart here by the column that it comes from, through joins, sub-selects and
per-unit aggregates, so that nothing is debiased twice, and nothing is told as recorded without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from dpsql.compiler.plan.expressions import Column, Expr, IsNull
from dpsql.compiler.plan.relations import (
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
from dpsql.compiler.plan.walk import child_exprs
from dpsql.schema.model import Randomized, Schema

Origin = tuple[str, str]
"""A declared column that holds randomized answers, by its table's name and its own."""

Origins = frozenset[Origin]
NO_ORIGINS: Origins = frozenset()


@dataclass(frozen=True)
class RandomizedReads:
    """Of a relation: the answers that each column was made of, the columns that are answers as they were recorded, and
    the answers that decide which rows there are."""

    columns: Mapping[str, Origins]
    recorded: Mapping[str, Origin]
    rows: Origins = NO_ORIGINS

    def origins_of(self, expr: Expr) -> Origins:
        return frozenset(origin for name in _columns_read(expr) for origin in self.columns.get(name, NO_ORIGINS))

    def recorded_origin(self, expr: Expr) -> Origin | None:
        """The answers that an expression is, as they were recorded."""
        return self.recorded.get(expr.name) if isinstance(expr, Column) else None


def _columns_read(expr: Expr) -> Iterator[str]:
    """The columns whose values an expression depends on; of some it only asks whether they are NULL."""
    if isinstance(expr, Column):
        yield expr.name
    elif not (isinstance(expr, IsNull) and isinstance(expr.arg, Column)):
        for child in child_exprs(expr):
            yield from _columns_read(child)


def randomization_of(schema: Schema, origin: Origin) -> Randomized:
    table = schema.table(origin[0])
    column = None if table is None else table.column(origin[1])
    assert column is not None and column.randomized is not None
    return column.randomized


def find_randomized_reads(node: Rows, schema: Schema) -> RandomizedReads:
    match node:
        case Table():
            return _table_reads(node.table, [(source, f.name) for source, f in node.columns], schema)
        case Scan():
            return _table_reads(node.table, [(column.source, column.name) for column in node.columns], schema)
        case PublicTable() | PublicScan() | RowsHole():
            return RandomizedReads({}, {})
        case Filter():
            below = find_randomized_reads(node.input, schema)
            return replace(below, rows=below.rows | below.origins_of(node.condition))
        case Project():
            return _project_reads(node, find_randomized_reads(node.input, schema))
        case Join():
            both = _merge_reads(find_randomized_reads(node.left, schema), find_randomized_reads(node.right, schema))
            return replace(both, rows=both.rows | both.origins_of(node.condition))
        case Mark():
            return _mark_reads(node, schema)
        case PerUnit():
            return _per_unit_reads(node, find_randomized_reads(node.input, schema))
        case UnitWindow():
            below = find_randomized_reads(node.input, schema)
            parts = (*node.args, *node.partition, *(ordering.expr for ordering in node.order))
            return replace(below, columns={**below.columns, node.name: _origins_of_all(below, parts)})
        case SetOperation():
            return _set_operation_reads(node, schema)
        case Expand():
            return find_randomized_reads(node.input, schema)
        case _:
            assert_never(node)


def _table_reads(table: str, names: list[tuple[str, str]], schema: Schema) -> RandomizedReads:
    declared = schema.table(table)
    columns = {} if declared is None else {column.name: column for column in declared.columns}
    recorded = {
        name: (table, source) for source, name in names if source in columns and columns[source].randomized is not None
    }
    return RandomizedReads({name: frozenset({origin}) for name, origin in recorded.items()}, recorded)


def _origins_of_all(below: RandomizedReads, exprs: tuple[Expr, ...]) -> Origins:
    return frozenset(origin for expr in exprs for origin in below.origins_of(expr))


def _merge_reads(left: RandomizedReads, right: RandomizedReads) -> RandomizedReads:
    return RandomizedReads(
        {**left.columns, **right.columns}, {**left.recorded, **right.recorded}, left.rows | right.rows
    )


def _project_reads(node: Project, below: RandomizedReads) -> RandomizedReads:
    recorded = {column.name: below.recorded_origin(column.expr) for column in node.columns}
    return RandomizedReads(
        {column.name: below.origins_of(column.expr) for column in node.columns},
        {name: origin for name, origin in recorded.items() if origin is not None},
        below.rows,
    )


def _mark_reads(node: Mark, schema: Schema) -> RandomizedReads:
    """The rows are the left's; whether one is marked depends on the right's."""
    left, right = find_randomized_reads(node.left, schema), find_randomized_reads(node.right, schema)
    marked = _origins_of_all(_merge_reads(left, right), (node.condition, *(node.test or ()))) | right.rows
    return replace(left, columns={**left.columns, node.name: marked})


def _per_unit_reads(node: PerUnit, below: RandomizedReads) -> RandomizedReads:
    """A unit has a row for each value of the keys: which rows there are depends on them."""
    columns = {key.name: below.origins_of(key.expr) for key in node.keys}
    columns |= {m.name: NO_ORIGINS if m.arg is None else below.origins_of(m.arg) for m in node.measures}
    return RandomizedReads(columns, {}, below.rows | _origins_of_all(below, tuple(key.expr for key in node.keys)))


def _set_operation_reads(node: SetOperation, schema: Schema) -> RandomizedReads:
    """Columns by their places. A row of one side may go by one of the other, but for UNION ALL."""
    left, right = find_randomized_reads(node.left, schema), find_randomized_reads(node.right, schema)
    pairs = zip(row_fields(node.left), row_fields(node.right), strict=True)
    columns = {
        ours.name: left.columns.get(ours.name, NO_ORIGINS) | right.columns.get(theirs.name, NO_ORIGINS)
        for ours, theirs in pairs
    }
    rows = left.rows | right.rows
    if node.kind is not SetKind.UNION_ALL:
        rows = rows.union(*columns.values())
    return RandomizedReads(columns, {}, rows)
