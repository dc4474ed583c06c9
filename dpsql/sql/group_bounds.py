"""GoogleSQL's bounds per group: what a unit adds to a group is worked out first, then clipped, then aggregated.

    SUM(cost, contribution_bounds_per_group => (0, 1000)) … GROUP BY ward
    →  Aggregate by ward: sum of clip(part, 0, 1000) · PerUnit by ward: part = sum of cost

All aggregates of such a block are over the units' parts: those without bounds of their own are sums of parts too.

Stability: a part is a function of one unit's rows in one group (SOUNDNESS 2), so the rows stay owned. A unit has one
row for each of its groups; `weigh_units` lets it count like at most `contributions.rows` of these, each within bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from dpsql.errors import Unsupported
from dpsql.plan.expr import Case, Cast, Column, Expr, IsNull, Literal, Not
from dpsql.plan.measures import CountDistinctUnits, MeanValues, Measure, SumValues
from dpsql.plan.nodes import Aggregate
from dpsql.plan.relations import Named, PerUnit, Project, Rows, UnitMeasure, has_uid
from dpsql.sql.aggregates import bind_measure
from dpsql.sql.bind_call import bind_clip
from dpsql.sql.bind_expr import bind_expr
from dpsql.sql.dialect import span_of, sql_name_of
from dpsql.sql.names import ColumnNamer, Scope
from dpsql.sql.options import PER_GROUP
from dpsql.sql.unit_measures import bind_unit_measure
from dpsql.types import BIGINT

AGGREGATE_CLAUSES = ("expressions", "having", "qualify", "order", "windows")


def has_group_bounds(select: exp.Select) -> bool:
    """Whether an aggregate of this block has bounds per group; sub-selects are blocks of their own."""
    for clause in AGGREGATE_CLAUSES:
        value = select.args.get(clause)
        for node in value if isinstance(value, list) else [value]:
            if node is not None and any(_is_group_bounds(part) for part in node.walk(prune=_is_query)):
                return True
    return False


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _is_group_bounds(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == PER_GROUP


@dataclass
class UnitContributions:
    """Collects what each unit adds to a group while the aggregates of a block are bound."""

    namer: ColumnNamer
    parts: list[UnitMeasure] = field(default_factory=list)

    def bind_contribution(self, node: exp.Expr, scope: Scope) -> Measure:
        """An aggregate of the block, over the units' parts."""
        plain, bounds = _split_bounds(node)
        if bounds is not None:
            return self._bind_bounded(node, plain, bounds, scope)
        inner = node.this if isinstance(node, exp.Filter) else node
        if isinstance(inner, exp.Count) and isinstance(inner.this, exp.Distinct):
            return self._count_units(bind_measure(node, scope), node)
        if not isinstance(inner, exp.Count | exp.CountIf | exp.Sum):
            raise _incompatible_aggregate_error(node)
        return SumValues(self._add_contribution(node, scope), span_of(node), _argument_text(inner))

    def _bind_bounded(self, node: exp.Expr, plain: exp.Expr, bounds: exp.Anonymous, scope: Scope) -> Measure:
        inner = plain.this if isinstance(plain, exp.Filter) else plain
        if not isinstance(inner, exp.Count | exp.CountIf | exp.Sum | exp.Avg) or isinstance(inner.this, exp.Distinct):
            raise Unsupported(
                f"{PER_GROUP} goes with COUNT, SUM and AVG",
                hint="contribution_bounds_per_row => (lower, upper) bounds each row.",
                span=span_of(node),
            )
        limits = [bind_expr(limit, scope) for limit in bounds.expressions[1:]]
        clipped = bind_clip([self._add_contribution(plain, scope), *limits], bounds)
        measure = MeanValues if isinstance(inner, exp.Avg) else SumValues
        return measure(clipped, span_of(node), _argument_text(inner))

    def _count_units(self, measure: Measure, node: exp.Expr) -> Measure:
        """COUNT(DISTINCT unit) counts the units that have a part; with FILTER, one of whose rows is kept."""
        if not isinstance(measure, CountDistinctUnits):
            raise _incompatible_aggregate_error(node)
        if measure.where is None:
            return measure
        part = UnitMeasure(self.namer.reserve_name("part"), "any", measure.where, measure.where.type)
        return CountDistinctUnits(self._contribution_column(part), measure.span)

    def _add_contribution(self, node: exp.Expr, scope: Scope) -> Column:
        return self._contribution_column(bind_unit_measure(node, self.namer.reserve_name("part"), scope))

    def _contribution_column(self, part: UnitMeasure) -> Column:
        """The part's column; equal parts are one."""
        existing = next((p for p in self.parts if (p.function, p.arg) == (part.function, part.arg)), None)
        if existing is None:
            self.parts.append(part)
        return Column((existing or part).name, part.type)

    def build_aggregate(self, rows: Rows, keys: tuple[Named, ...], measures: tuple[Measure, ...]) -> Aggregate:
        """The release over one row for each unit and group."""
        groups = tuple(Named(self.namer.reserve_name(key.name), key.expr) for key in keys)
        above = tuple(Named(key.name, _key_column(group)) for key, group in zip(keys, groups, strict=True))
        if has_uid(rows):
            return Aggregate(PerUnit(rows, groups, tuple(self.parts)), above, measures)
        single = tuple(Named(part.name, _contribution_of_row(part)) for part in self.parts)
        return Aggregate(Project(rows, groups + single), above, measures)


def grouping_sets_error(select: exp.Select) -> Unsupported:
    return Unsupported(
        f"{PER_GROUP} does not go with ROLLUP, CUBE and GROUPING SETS",
        hint="Ask for each grouping set in a SELECT of its own.",
        span=span_of(select.args["group"]),
    )


def _key_column(key: Named) -> Column:
    return Column(key.name, key.expr.type, key.expr.origin if isinstance(key.expr, Column) else None)


def _contribution_of_row(part: UnitMeasure) -> Expr:
    """The part of a unit that is one row."""
    if part.arg is None:
        return Literal(1, BIGINT)
    if part.function == "count":
        return Case(((Not(IsNull(part.arg)), Literal(1, BIGINT)),), Literal(0, BIGINT), BIGINT)
    return part.arg if part.arg.type == part.type else Cast(part.arg, part.type)


def _split_bounds(node: exp.Expr) -> tuple[exp.Expr, exp.Anonymous | None]:
    """The aggregate as it would stand without bounds, and what holds them: its argument, lower and upper."""
    if isinstance(node, exp.Filter):
        plain, bounds = _split_bounds(node.this)
        return _replace_argument(node, plain), bounds
    argument = node.args.get("this")
    distinct = argument.expressions if isinstance(argument, exp.Distinct) else []
    if any(_is_group_bounds(part) for part in distinct):
        return node, distinct[0]
    if not isinstance(argument, exp.Anonymous) or not _is_group_bounds(argument):
        return node, None
    return _replace_argument(node, argument.expressions[0]), argument


def _replace_argument(node: exp.Expr, this: exp.Expr) -> exp.Expr:
    """The node over another argument; the tree that was parsed stays as it is."""
    parent = this.parent
    new = type(node)(**{**node.args, "this": this})
    this.parent = parent
    new.meta.update(node.meta)
    return new


def _incompatible_aggregate_error(node: exp.Expr) -> Unsupported:
    return Unsupported(
        f"{sql_name_of(node)} does not go with {PER_GROUP} in one SELECT",
        hint="COUNT and SUM do, and AVG with bounds of its own; without bounds write SUM(x) / COUNT(x). "
        "Ask for others in a SELECT of their own.",
        span=span_of(node),
    )


def _argument_text(node: exp.Expr) -> str:
    return str(node.this.sql(dialect="postgres")) if isinstance(node.this, exp.Expr) else "*"
