"""Put a sanitising scan in the place of every private table.

    Table(visits)  →  Scan(visits): total casts, clips, NaN to NULL, rows without a unit dropped

Only the columns that the plan uses are read.
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.errors import InternalError
from dpsql.plan.nodes import Aggregate, Filter, Hop, Join, Node, Project, Scan, ScanColumn, Table, UnitId
from dpsql.plan.walk import columns_of, map_rows, measure_args, walk_nodes
from dpsql.schema import model
from dpsql.schema.model import ForeignUnit, OwnUnit, Resolved
from dpsql.types import TEXT


def scan_tables(aggregate: Aggregate, resolved: Resolved) -> Aggregate:
    used = _used(aggregate)

    def change(node: Node) -> Node:
        if not isinstance(node, Table):
            return node
        columns = tuple((name, field) for name, field in node.columns if field.name in used)
        return scan(replace(node, columns=columns), resolved)

    return replace(aggregate, input=map_rows(aggregate.input, change))


def _used(aggregate: Aggregate) -> frozenset[str]:
    """Every column that an expression of the plan reads; a plan's column names are unique."""
    exprs = [key.expr for key in aggregate.keys]
    exprs += [arg for measure in aggregate.measures for arg in measure_args(measure)]
    for node in walk_nodes(aggregate.input):
        if isinstance(node, Filter | Join):
            exprs.append(node.condition)
        elif isinstance(node, Project):
            exprs += [column.expr for column in node.columns]
    return frozenset(name for expr in exprs for name in columns_of(expr))


def join_by_unit(aggregate: Aggregate) -> Aggregate:
    """Let the SQL that runs equate the ids of both sides of every join (SOUNDNESS 2)."""

    def change(node: Node) -> Node:
        return replace(node, by_unit=True) if isinstance(node, Join) else node

    return replace(aggregate, input=map_rows(aggregate.input, change))


def scan(node: Table, resolved: Resolved) -> Scan:
    table = _table(resolved, node.table)
    path = resolved.schema.unit_path(table)
    ids = resolved.schema.id_columns(table)
    columns = tuple(_column(table, name, field.name, resolved, name in ids) for name, field in node.columns)
    direct = _unit_column(resolved, table)
    return Scan(
        table=table.name,
        source=resolved.relations[table.name],
        columns=columns,
        unit=_unit_id(resolved, table, path),
        unit_is_unique=direct is not None and table.is_unique(direct),
        unit_columns=frozenset(field.name for name, field in node.columns if name == direct),
    )


def _table(resolved: Resolved, name: str) -> model.Table:
    table = resolved.schema.table(name)
    if table is None:
        raise InternalError("a bound table is not in the schema")
    return table


def _column(table: model.Table, name: str, as_name: str, resolved: Resolved, is_id: bool) -> ScanColumn:
    column = table.column(name)
    if column is None:
        raise InternalError("a bound column is not in the schema")
    return ScanColumn(
        source=name,
        name=as_name,
        physical=resolved.physical[table.name][name],
        domain=replace(column.domain, length=column.max_length) if column.type == TEXT else column.domain,
        max_length=column.max_length,
        is_id=is_id,
        null_group=column.null_group,
        grid=column.grid,
    )


def _id(table: model.Table, name: str, resolved: Resolved) -> ScanColumn:
    return _column(table, name, name, resolved, is_id=True)


def _unit_column(resolved: Resolved, table: model.Table) -> str | None:
    """The table's own column that equals the unit's id, if it has one."""
    match table.unit:
        case OwnUnit(column):
            return column
        case ForeignUnit(column, target, key):
            return column if _table(resolved, target).unit == OwnUnit(key) else None
        case _:
            return None


def _unit_id(resolved: Resolved, table: model.Table, path: tuple[ForeignUnit, ...]) -> UnitId | None:
    """Follow the foreign keys; the last one refers to the unit's own column and needs no join."""
    if isinstance(table.unit, OwnUnit):
        return UnitId(_id(table, table.unit.column, resolved))
    if not path:
        return None
    hops: list[Hop] = []
    for step in path[:-1]:
        target = _table(resolved, step.table)
        if not target.is_unique(step.key):
            raise InternalError("a foreign key arrives at a key that is not unique")
        column, key = _id(table, step.column, resolved), _id(target, step.key, resolved)
        hops.append(Hop(column, resolved.relations[target.name], key))
        table = target
    last = path[-1]
    if _table(resolved, last.table).unit != OwnUnit(last.key):
        raise InternalError("a unit path does not end at the unit")
    return UnitId(_id(table, last.column, resolved), tuple(hops))
