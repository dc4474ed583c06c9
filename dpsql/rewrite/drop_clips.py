"""Leave the clip of a number to `Quantise` where nothing else reads the column: it clips again, in integers.

    Sum(Quantise(x)) over Scan(clip x)  →  Sum(Quantise(x)) over Scan(x as stored)
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.plan.bundles import CountBundle
from dpsql.plan.expr import Column
from dpsql.plan.nodes import CountBlocks, CountUnits, Distinct, Gather, Part, Sum, SumBlocks, Weigh
from dpsql.plan.relations import Filter, Join, Project, PublicScan, Rows, RowsHole, Scan, ScanColumn
from dpsql.plan.walk import columns_of, map_rows, walk_nodes

_PASSING_NODES = (Scan, PublicScan, RowsHole, Filter, Join)
"""Operators that read a column only in their condition."""


def drop_clips(gather: Gather) -> Gather:
    sums = [part for part in gather.parts if isinstance(part, Sum)]
    if any(isinstance(part, SumBlocks | CountBlocks) for part in gather.parts):
        return gather  # they also compare values
    rows = _rows_of_part(sums[0]) if sums else None
    if not isinstance(rows, Project) or any(_rows_of_part(part) != rows for part in gather.all_parts):
        return gather  # values are compared, or rows filtered, above the clip
    if not all(isinstance(n, _PASSING_NODES) for n in walk_nodes(rows.input)):
        return gather
    free = _columns_only_quantized(rows, sums) - _columns_read_below(rows.input)
    if not free:
        return gather
    return _replace_rows(gather, replace(rows, input=map_rows(rows.input, lambda node: _relax_scan(node, free))))


def _rows_of_part(part: Part) -> Rows | Distinct:
    return part.input.input if isinstance(part.input, Weigh) else part.input


def _columns_only_quantized(rows: Project, sums: list[Sum]) -> frozenset[str]:
    """Columns of the input that are passed on, and then only read by `Quantise`."""
    quantised: set[str] = set()
    otherwise: set[str] = set()
    for bundle in (bundle for part in sums for bundle in part.bundles):
        if isinstance(bundle, CountBundle):
            otherwise |= columns_of(bundle.present) if bundle.present is not None else frozenset()
        quantised |= {value.arg.name for value in bundle.values if isinstance(value.arg, Column)}
    passed: set[str] = set()
    computed: set[str] = set()
    for column in rows.columns:
        if isinstance(column.expr, Column) and column.name in quantised - otherwise:
            passed.add(column.expr.name)
        else:
            computed |= columns_of(column.expr)
    return frozenset(passed - computed)


def _columns_read_below(node: Rows) -> frozenset[str]:
    read: frozenset[str] = frozenset()
    for part in walk_nodes(node):
        if isinstance(part, Filter | Join):
            read |= columns_of(part.condition)
    return read


def _relax_scan(node: Rows, free: frozenset[str]) -> Rows:
    if not isinstance(node, Scan):
        return node
    return replace(node, columns=tuple(_relax_column(column) if column.name in free else column for column in node.columns))


def _relax_column(column: ScanColumn) -> ScanColumn:
    if not column.domain.type.is_number or column.domain.values is not None or column.is_id:
        return column
    return replace(column, domain=column.domain.with_bounds(None, None), as_stored=True)


def _replace_rows(gather: Gather, rows: Rows) -> Gather:
    def change(part: Part) -> Part:
        if isinstance(part.input, Weigh):
            return replace(part, input=replace(part.input, input=rows))
        return replace(part, input=rows)

    selection = gather.selection
    if selection is not None:
        changed = change(selection)
        assert isinstance(changed, CountUnits)
        selection = changed
    return replace(gather, parts=tuple(change(part) for part in gather.parts), selection=selection)
