"""Put a sanitising scan in the place of every table, and push conditions towards it.

    Table(visits)  →  Scan(visits): total casts, clips, NaN to NULL, rows without a unit dropped

Only the columns that the plan uses are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dpsql.compiler.functions.calendar import bound_to_datetime, truncate_datetime
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import TRUE, Expr, join_conjuncts, split_conjuncts
from dpsql.compiler.plan.relations import (
    Filter,
    Hop,
    Join,
    JoinKind,
    Mark,
    PublicScan,
    PublicTable,
    Rows,
    Scan,
    ScanColumn,
    SetOperation,
    Table,
    UnitId,
    is_public,
    row_fields,
)
from dpsql.compiler.plan.walk import aggregate_exprs, columns_of, map_rows, node_exprs, walk_rows
from dpsql.compiler.rewrite.release_plan import RuleContext
from dpsql.errors import InternalError
from dpsql.schema import model
from dpsql.schema.model import ForeignUnit, OwnUnit, PublicFacts, Resolved, Schema, Source, to_number
from dpsql.types import TEXT, Kind, Type


def scan_tables(aggregate: Aggregate, context: RuleContext) -> Aggregate:
    used, resolved = _columns_used(aggregate), context.resolved

    def change(node: Rows) -> Rows:
        if not isinstance(node, Table | PublicTable):
            return node
        columns = tuple((name, field) for name, field in node.columns if field.name in used)
        if isinstance(node, PublicTable):
            return scan_public_table(replace(node, columns=columns), resolved)
        return scan_table(replace(node, columns=columns), resolved)

    return replace(aggregate, input=map_rows(aggregate.input, change))


def _columns_used(aggregate: Aggregate) -> frozenset[str]:
    """Every column that an expression of the plan reads; a plan's column names are unique."""
    exprs = aggregate_exprs(aggregate)
    by_position: set[str] = set()
    for node in walk_rows(aggregate.input):
        exprs += node_exprs(node)
        if isinstance(node, SetOperation):  # its sides are compared column by column, whatever is read above
            by_position |= {f.name for side in (node.left, node.right) for f in row_fields(side)}
    return frozenset(name for expr in exprs for name in columns_of(expr)) | by_position


def join_by_unit(aggregate: Aggregate, _context: RuleContext | None = None) -> Aggregate:
    """Let the SQL that runs equate the ids of both sides of every join of private rows (SOUNDNESS 2)."""

    def change(node: Rows) -> Rows:
        if isinstance(node, Join | Mark) and not is_public(node.right):
            return replace(node, by_unit=True)
        return node

    return replace(aggregate, input=map_rows(aggregate.input, change))


def scan_table(node: Table, resolved: Resolved) -> Scan:
    table = _require_table(resolved, node.table)
    path = resolved.schema.find_unit_path(table)
    ids = resolved.schema.find_id_columns(table)
    physical = resolved.physical[table.name]
    columns = tuple(_scan_column(table, name, field.name, physical, name in ids) for name, field in node.columns)
    columns = tuple(_end_before_bound(column, table, ids) for column in columns)
    direct = _own_unit_column(resolved, table)
    return Scan(
        table=table.name,
        source=resolved.relations[table.name],
        columns=columns,
        unit=_unit_id_of(resolved, table, path),
        unit_is_unique=direct is not None and table.is_unique(direct),
        unit_columns=frozenset(field.name for name, field in node.columns if name == direct),
        unique=_unique_keys_read(table.unique, {name: field.name for name, field in node.columns}),
        unit_keys=_unit_keys_read(table, direct, {name: field.name for name, field in node.columns}),
    )


def scan_public_table(node: PublicTable, resolved: Resolved) -> PublicScan:
    """The rows of a public table; what its columns hold was registered with the data version."""
    table = _require_table(resolved, node.table)
    facts = resolved.public[table.name]
    full_scan = make_public_scan(table, resolved.relations[table.name], resolved.physical[table.name])
    columns = {column.source: column for column in full_scan.columns}
    names = {name: field.name for name, field in node.columns}
    return replace(
        full_scan,
        columns=tuple(replace(_restrict_to_registered(columns[n], facts), name=names[n]) for n in names),
        rows=facts.rows,
        unique=_unique_keys_read((*table.unique, *facts.unique), names),
    )


def _unit_keys_read(table: model.Table, unit: str | None, names: Mapping[str, str]) -> tuple[frozenset[str], ...]:
    """What is left of accepted unique keys within the rows of one unit, where it is read; nothing of the unit alone."""
    rest = (tuple(name for name in key if name != unit) for key in table.unique)
    return tuple(frozenset(names[name] for name in key) for key in rest if key and names.keys() >= set(key))


def _unique_keys_read(keys: Iterable[tuple[str, ...]], names: Mapping[str, str]) -> tuple[frozenset[str], ...]:
    """The accepted unique keys of which all columns are read."""
    read = (frozenset(names[n] for n in key) for key in keys if names.keys() >= set(key))
    return tuple(dict.fromkeys(read))


def make_public_scan(table: model.Table, source: Source, physical: Mapping[str, Type | None]) -> PublicScan:
    """All columns of a public table as every statement reads them, before anything is known of its rows."""
    columns = tuple(_scan_column(table, column.name, column.name, physical, is_id=False) for column in table.columns)
    return PublicScan(table.name, source, columns, 0, ())


def _restrict_to_registered(column: ScanColumn, facts: PublicFacts) -> ScanColumn:
    """A public column holds what was registered, and nothing else: so its values are public groups.

    Where the owner declares `values`, all of them are; whether NULL is one is known from the rows.
    """
    values = facts.values.get(column.source)
    if values is None:
        return column
    if column.domain.values is not None:
        return replace(column, known=column.domain.with_nullable(None in values), null_group=None in values)
    present_values = tuple(value for value in values if value is not None)
    domain = replace(column.domain, values=present_values, nullable=None in values)
    if present_values and (domain.type.is_number or domain.type.is_time):
        numbers = [to_number(value) for value in present_values]
        domain = domain.with_bounds(min(numbers), max(numbers))
    return replace(column, known=domain, null_group=None in values)


# A timestamp column's upper bound at the start of a month is the end of the month before: no value is at that moment.
#
#     bounds: [2024-01-01, 2025-01-01]  →  clipped into [2024-01-01 00:00, 2024-12-31 23:59:59.999999]
#
# Otherwise the moment alone would be a group of its own in every chart: a 13th month, a second year. What lies beyond
# the bound is clipped into the last period, so no row is lost. Any other bound is a value that the column may have.


def ends_before_bound(column: model.Column, table: model.Table, ids: frozenset[str]) -> bool:
    """Whether the values of a private column end before its upper bound.

    Stability: what is claimed of keys was checked with the bound as a value, so columns of keys, and ids, keep it.
    Public columns do too: what they hold was registered.
    """
    domain, kind = column.domain, column.type.kind
    if table.public or kind not in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ) or not domain.is_bounded or domain.values:
        return False
    of_keys = ids.union(*table.unique) | ({column.name} if column.determines_unit else set())
    last = bound_to_datetime(domain.bounds[1], kind)
    is_start = last is not None and last == truncate_datetime("month", last)
    return is_start and domain.bounds[0] < domain.bounds[1] and column.name not in of_keys


def columns_before_bounds(aggregate: Aggregate, schema: Schema) -> list[str]:
    """The columns of this kind that a plan over declared tables reads."""
    used, found = _columns_used(aggregate), set[str]()
    for node in walk_rows(aggregate.input):
        table = schema.table(node.table) if isinstance(node, Table) else None
        if isinstance(node, Table) and table is not None:
            ids = schema.find_id_columns(table)
            read = [table.column(name) for name, field in node.columns if field.name in used]
            found |= {f"{table.name}.{c.name}" for c in read if c is not None and ends_before_bound(c, table, ids)}
    return sorted(found)


def _end_before_bound(column: ScanColumn, table: model.Table, ids: frozenset[str]) -> ScanColumn:
    declared = table.column(column.source)
    if declared is None or not ends_before_bound(declared, table, ids):
        return column
    lower, upper = column.domain.bounds
    return replace(column, domain=column.domain.with_bounds(lower, upper - 1))  # in microseconds


def _require_table(resolved: Resolved, name: str) -> model.Table:
    table = resolved.schema.table(name)
    if table is None:
        raise InternalError("a bound table is not in the schema")
    return table


def _scan_column(
    table: model.Table, name: str, as_name: str, physical: Mapping[str, Type | None], is_id: bool
) -> ScanColumn:
    column = table.column(name)
    if column is None:
        raise InternalError("a bound column is not in the schema")
    return ScanColumn(
        source=name,
        name=as_name,
        physical=physical[name],
        domain=replace(column.domain, length=column.max_length) if column.type == TEXT else column.domain,
        max_length=column.max_length,
        is_id=is_id,
        null_group=column.null_group,
        grid=column.grid,
    )


def _scan_id_column(table: model.Table, name: str, resolved: Resolved) -> ScanColumn:
    return _scan_column(table, name, name, resolved.physical[table.name], is_id=True)


def _own_unit_column(resolved: Resolved, table: model.Table) -> str | None:
    """The table's own column that equals the unit's id, if it has one."""
    match table.unit:
        case OwnUnit(column):
            return column
        case ForeignUnit(column, target, key, ()):
            return column if _require_table(resolved, target).unit == OwnUnit(key) else None
        case _:
            return None


def _unit_id_of(resolved: Resolved, table: model.Table, path: tuple[ForeignUnit, ...]) -> UnitId | None:
    """Follow the foreign keys; one that refers to the unit's own column needs no join."""
    if not isinstance(table.unit, OwnUnit) and not path:
        return None
    hops: list[Hop] = []
    for step in path:
        own = _own_unit_column(resolved, table)
        if own is not None:
            break
        target = _require_table(resolved, step.table)
        if not target.has_unique_key(step.keys):
            raise InternalError("a foreign key arrives at a key that is not unique")
        first, *others = (
            (_scan_id_column(table, column, resolved), _scan_id_column(target, key, resolved))
            for column, key in step.pairs
        )
        hops.append(Hop(first[0], resolved.relations[target.name], first[1], tuple(others)))
        table = target
    own = _own_unit_column(resolved, table)
    if own is None:
        raise InternalError("a unit path does not end at the unit")
    return UnitId(_scan_id_column(table, own, resolved), tuple(hops))


# Move what WHERE says of a join's rows into the join, where it was written with a comma.
#
#     Filter(a.k = b.k and a.x > 1) over Join(a, b on true)  →  Join(Filter(a.x > 1) over a, b on a.k = b.k)
#
# The rows are the same. But a condition within the join tells how many public rows a private one may meet, and engines
# need not find it again.


def push_conditions(aggregate: Aggregate, _context: RuleContext | None = None) -> Aggregate:
    return replace(aggregate, input=map_rows(aggregate.input, _push_into_join))


def _push_into_join(node: Rows) -> Rows:
    if not isinstance(node, Filter) or not _can_take_conditions(node.input):
        return node
    parts = [part for part in split_conjuncts(node.condition) if part != TRUE]
    rows, remaining = _push_parts(node.input, parts)
    return Filter(rows, join_conjuncts(tuple(remaining))) if remaining else rows


def _can_take_conditions(node: Rows) -> bool:
    return isinstance(node, Join) and node.kind is JoinKind.INNER


def _push_parts(node: Rows, parts: list[Expr]) -> tuple[Rows, list[Expr]]:
    """The relation with all conditions that it can take, and those that it cannot."""
    if not isinstance(node, Join) or node.kind is not JoinKind.INNER or not parts:
        return node, parts
    ours, theirs = ({f.name for f in row_fields(side)} for side in (node.left, node.right))
    on_left = [part for part in parts if columns_of(part) and columns_of(part) <= ours]
    on_right = [part for part in parts if columns_of(part) and columns_of(part) <= theirs]
    both = [p for p in parts if p not in on_left and p not in on_right and columns_of(p) & theirs]
    rest = [part for part in parts if part not in on_left and part not in on_right and part not in both]
    left, right = _push_into_side(node.left, on_left), _push_into_side(node.right, on_right)
    own_conditions = tuple(part for part in split_conjuncts(node.condition) if part != TRUE)
    return replace(node, left=left, right=right, condition=join_conjuncts((*own_conditions, *both))), rest


def _push_into_side(rows: Rows, parts: list[Expr]) -> Rows:
    inner, remaining = _push_parts(rows, parts)
    return Filter(inner, join_conjuncts(tuple(remaining))) if remaining else inner
