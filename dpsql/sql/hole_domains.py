"""The bounds of a hole's numbers: those of its source expression, by interval arithmetic (SOUNDNESS 8).

    JOIN (SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward) AS t0   →  t0.m lies within the bounds of cost

Averages, quantiles and extremes lie within the bounds of what they are of; counts and sums with noise have none.

Privacy: nothing here depends on values, and values are moved into these bounds before they are bound (`post/holes`). So
what noise and whole-number arithmetic are computed from holds, whatever was released.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from dpsql.analysis.domains import node_domains
from dpsql.analysis.values import domain_of
from dpsql.plan.expr import UID
from dpsql.plan.measures import Blockwise, Extreme, MeanValues, Measure, Quantile
from dpsql.plan.nodes import Aggregate
from dpsql.plan.relations import Field, PublicScan, PublicTable, Rows, Scan, ScanColumn, Table, UnitId
from dpsql.plan.walk import map_rows
from dpsql.schema.domain import Domain
from dpsql.schema.model import MADE, EngineTable, MadeTable, Schema
from dpsql.sql.blocks import State
from dpsql.sql.coerce import bind_literal
from dpsql.types import Type

Interval = tuple[Fraction, Fraction]

MOST = 10**300
"""Beyond this a double has no room for what is added to it."""

_WITHIN = (exp.Paren, exp.Alias, exp.Nullif, exp.Min, exp.Max, exp.Avg, exp.Median)
"""What gives no number beyond those that it is given."""


def source_domains(domains: tuple[Domain, ...], post: exp.Query, state: State) -> tuple[Domain, ...]:
    """The domains of a hole's columns, with bounds where the post-processing that fills it shows some."""
    made = _whole(post, post, state)
    if made is not None and len(made.columns) == len(domains):
        return tuple(_with_bounds(domain, column.domain) for domain, column in zip(domains, made.columns, strict=True))
    if not isinstance(post, exp.Select) or len(post.selects) != len(domains):
        return domains
    found = (_interval(item, post, state) if domain.type.is_number else None
             for item, domain in zip(post.selects, domains, strict=True))  # fmt: skip
    pairs = zip(domains, found, strict=True)
    return tuple(domain if bounds is None else domain.with_bounds(*bounds) for domain, bounds in pairs)


def _with_bounds(domain: Domain, known: Domain) -> Domain:
    return domain.with_bounds(*known.bounds) if domain.type.is_number and known.bounded else domain


def _interval(node: exp.Expr, select: exp.Select, state: State) -> Interval | None:
    if isinstance(node, exp.Column):
        return _column(node, select, state)
    if isinstance(node, exp.Literal):
        return _number(node)
    if isinstance(node, _WITHIN):
        return _interval(node.this, select, state)
    inner = [_interval(part, select, state) for part in _operands(node)]
    known = [bounds for bounds in inner if bounds is not None]
    if not known or len(known) != len(inner):
        return None
    found = _combined(node, known)
    return None if found is None or max(map(abs, found)) > MOST else found


def _number(node: exp.Literal) -> Interval | None:
    """As everywhere: a literal past a double's range is refused before anything is worked out from it."""
    value = bind_literal(node).value
    return (Fraction(value), Fraction(value)) if isinstance(value, int | float | Decimal) else None


def _operands(node: exp.Expr) -> list[exp.Expr]:
    match node:
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return [node.this, node.expression]
        case exp.Neg():
            return [node.this]
        case exp.Round() if not isinstance(node.args.get("decimals"), exp.Neg):  # tens and hundreds move further
            return [node.this] if isinstance(node.args.get("decimals"), exp.Literal | None) else []
        case exp.Cast() if node.to.this in (exp.DataType.Type.DOUBLE, exp.DataType.Type.DECIMAL):
            return [node.this]
        case exp.Coalesce():
            return [node.this, *node.expressions]
        case _:
            return []


def _combined(node: exp.Expr, known: list[Interval]) -> Interval | None:
    (low, high), (other_low, other_high) = known[0], known[-1]
    match node:
        case exp.Add():
            return low + other_low, high + other_high
        case exp.Sub():
            return low - other_high, high - other_low
        case exp.Mul():
            return _hull([a * b for a in known[0] for b in known[1]])
        case exp.Div():
            return None if other_low <= 0 <= other_high else _hull([a / b for a in known[0] for b in known[1]])
        case exp.Neg():
            return -high, -low
        case exp.Coalesce():
            return _hull([end for bounds in known for end in bounds])
        case _:  # rounded: to a neighbor
            return Fraction(low.__floor__()), Fraction(high.__ceil__())


def _hull(ends: list[Fraction]) -> Interval:
    return min(ends), max(ends)


# --- columns ---------------------------------------------------------------------------------------------------------


def _column(node: exp.Column, select: exp.Select, state: State) -> Interval | None:
    release = state.releases.get(node.table)
    if release is None:
        return _of_made(node, select, state) or _passed_on(node, select, state)
    column = next((c for c in release.columns if c.name == node.name and c.kind == "value"), None)
    if column is None:
        return None
    return _measured(release.aggregate.measures[column.place], release.aggregate, state.schema)


def _of_made(node: exp.Column, select: exp.Select, state: State) -> Interval | None:
    """A column of the only source, where that is a synthetic table: its bounds are those of what it was made of."""
    start = select.args.get("from_")
    if start is None or select.args.get("joins") or node.table.lower() not in ("", start.this.alias_or_name.lower()):
        return None
    made = _table(start.this, select, state)
    column = None if made is None else next((c for c in made.columns if c.name.lower() == node.name.lower()), None)
    return column.domain.bounds if column is not None and column.domain.bounded else None


def _whole(query: exp.Expr, outer: exp.Expr, state: State) -> MadeTable | None:
    """The synthetic table that a query is all columns of."""
    if not isinstance(query, exp.Select) or [type(item) for item in query.expressions] != [exp.Star]:
        return None
    if any(query.expressions[0].args.values()) or query.args.get("joins") or query.args.get("from_") is None:
        return None
    return _table(query.args["from_"].this, outer, state)


def _table(source: exp.Expr, outer: exp.Expr, state: State) -> MadeTable | None:
    """By its own name, or by that of a WITH of the query that reads all of it."""
    if not isinstance(source, exp.Table) or source.alias_column_names:
        return None
    if source.args.get("joins") or source.args.get("pivots") or source.args.get("laterals"):
        return None
    with_ = outer.args.get("with_")
    for part in with_.expressions if isinstance(with_, exp.With) else ():
        if part.alias.lower() == source.name.lower():
            return None if part.alias_column_names else _whole(part.this, part.this, state)
    read = next((one for one in state.reads.values() if one.name == source.name and one.place == MADE), None)
    return None if read is None else next((one for one in state.schema.made if one.key == read.table), None)


def _passed_on(node: exp.Column, select: exp.Select, state: State) -> Interval | None:
    """A column of the only source, where that is a SELECT with such an item."""
    source = select.args["from_"].this if select.args.get("from_") is not None else None
    if select.args.get("joins") or not isinstance(source, exp.Subquery) or not isinstance(source.this, exp.Select):
        return None
    if source.args.get("pivots") or source.alias_column_names:
        return None
    items = [item for item in source.this.selects if item.alias_or_name.lower() == node.name.lower()]
    return _interval(items[0], source.this, state) if len(items) == 1 else None


def _measured(measure: Measure, aggregate: Aggregate, schema: Schema) -> Interval | None:
    if isinstance(measure, Blockwise):
        return measure.lower, measure.upper
    if not isinstance(measure, MeanValues | Quantile | Extreme) or not measure.arg.type.is_number:
        return None
    if isinstance(measure, Quantile) and measure.is_list:
        return None
    domain = domain_of(measure.arg, node_domains(_as_declared(aggregate.input, schema)))
    return domain.bounds if domain.bounded else None


def _as_declared(rows: Rows, schema: Schema) -> Rows:
    """The relation over what the schema says of its tables: enough to know bounds, nothing that could run."""

    def change(node: Rows) -> Rows:
        if isinstance(node, Table):
            unit = None if node.unit is None else UnitId(_scanned(UID, UID, Domain(node.unit)))
            columns = _columns(node.table, node.columns, schema)
            return Scan(node.table, EngineTable((node.table,)), columns, unit, False, frozenset())
        if isinstance(node, PublicTable):
            columns = _columns(node.table, node.columns, schema)
            return PublicScan(node.table, EngineTable((node.table,)), columns, 0, ())
        return node

    return map_rows(rows, change)


def _columns(table: str, columns: tuple[tuple[str, Field], ...], schema: Schema) -> tuple[ScanColumn, ...]:
    return tuple(_scanned(name, field.name, _declared(table, name, field.type, schema)) for name, field in columns)


def _scanned(source: str, name: str, domain: Domain) -> ScanColumn:
    return ScanColumn(source, name, None, domain, domain.length or 0, False)


def _declared(table: str, name: str, type_: Type, schema: Schema) -> Domain:
    found = schema.table(table)
    column = None if found is None else found.column(name)
    return Domain(type_) if column is None else column.domain
