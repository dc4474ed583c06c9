"""The rules in order: from the aggregate that was asked to the plan that runs."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.analysis.public import multiplied
from dpsql.plan.expr import ROW, Column, Expr
from dpsql.plan.measures import Blockwise, Measure
from dpsql.plan.nodes import Aggregate, Gather, Part, Sum, Weigh
from dpsql.plan.recipes import Recipe
from dpsql.plan.relations import SET, Field, Filter, Named, Project, Rows, row_fields
from dpsql.plan.walk import map_measure, measure_args, walk
from dpsql.rewrite.carry_rows import carry_rows
from dpsql.rewrite.drop_clips import drop_clips
from dpsql.rewrite.exact_units import exact_units
from dpsql.rewrite.expand_sets import expand_sets
from dpsql.rewrite.form_blocks import check_reach, refuse_sets, sum_blocks
from dpsql.rewrite.form_bundles import form_bundles
from dpsql.rewrite.keep_pairs import keep_pairs
from dpsql.rewrite.limit_joins import limit_joins
from dpsql.rewrite.limit_public import limit_public
from dpsql.rewrite.limit_work import limit_work
from dpsql.rewrite.list_groups import Groups, list_groups
from dpsql.rewrite.make_total import make_total
from dpsql.rewrite.policy import Policy
from dpsql.rewrite.push_conditions import push_conditions
from dpsql.rewrite.scan_tables import join_by_unit, scan_tables
from dpsql.rewrite.select_groups import count_units, select_groups
from dpsql.rewrite.weigh_units import weigh_units
from dpsql.schema.model import Resolved
from dpsql.types import BIGINT

NULLS_DROPPED = "rows for which a computed key is NULL are in no group; COALESCE(…) within the key keeps them"


@dataclass(frozen=True)
class Rewritten:
    gather: Gather
    recipes: tuple[Recipe, ...]  # one per measure of the aggregate
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """The rows of a release, sanitised and narrowed to its keys and arguments, and what its groups are."""

    rows: Rows
    measures: tuple[Measure, ...]
    keys: tuple[Field, ...]
    groups: Groups


def prepare(aggregate: Aggregate, resolved: Resolved) -> Prepared:
    refuse_sets(aggregate)
    aggregate = join_by_unit(push_conditions(scan_tables(carry_rows(aggregate), resolved)))
    aggregate = limit_work(limit_joins(limit_public(aggregate)))
    aggregate = make_total(exact_units(aggregate))
    groups = list_groups(aggregate)
    narrow, measures = _narrow_rows(groups.aggregate)
    keys = tuple(Field(key.name, key.expr.type) for key in aggregate.keys)
    if not aggregate.sets:
        return Prepared(narrow, measures, keys, groups)
    rows = expand_sets(narrow, keys, aggregate.sets, groups.never_null)
    return Prepared(rows, measures, (*keys, Field(SET, BIGINT)), groups)


def rewrite(aggregate: Aggregate, resolved: Resolved, policy: Policy) -> Rewritten:
    prepared = prepare(aggregate, resolved)
    rows, groups = prepared.rows, prepared.groups
    blockwise = [measure for measure in prepared.measures if isinstance(measure, Blockwise)]
    others = tuple(measure for measure in prepared.measures if not isinstance(measure, Blockwise))
    bundled = form_bundles(others, rows, policy.rows)
    keys = tuple(key.name for key in prepared.keys)
    parts: list[Part] = []
    if bundled.bundles:
        parts.append(weigh_units(rows, keys, bundled.bundles, policy))
    for found in bundled.distinct:
        parts.append(Sum(keep_pairs(rows, keys, found.columns, policy), keys, found.bundles))
    for count in bundled.units:
        counted = rows if count.where is None else Filter(rows, count.where)
        parts.append(count_units(counted, keys, count.cell, groups.listed, policy))
    blocks = [sum_blocks(m, rows, keys, f"b{number}", policy.rows) for number, m in enumerate(blockwise, 1)]
    parts += [part for part, _ in blocks]
    means, linear = iter([mean for _, mean in blocks]), iter(bundled.recipes)
    recipes = tuple(next(means) if isinstance(m, Blockwise) else next(linear) for m in prepared.measures)
    selection = select_groups(rows, groups.selected, policy)
    gather = Gather(_selected_first(prepared.keys, groups.selected), groups.listed, selection, tuple(parts))
    for measure, (part, _) in zip(blockwise, blocks, strict=True):
        check_reach(measure, part, gather)
    notices = ((NULLS_DROPPED,) if groups.drops_nulls else ()) + _counted_often(aggregate, rows, parts, policy)
    return Rewritten(drop_clips(gather), recipes, notices)


def _counted_often(aggregate: Aggregate, rows: Rows, parts: list[Part], policy: Policy) -> tuple[str, ...]:
    """Said of the statement alone: a row that counts many times uses up what its unit may contribute."""
    if not any(isinstance(part, Sum) and isinstance(part.input, Weigh) for part in parts):
        return ()
    times = [(len(aggregate.sets), "is in {} grouping sets"), (multiplied(rows), "may meet {} public rows")]
    return tuple(
        f"each row {words.format(number)}, and a unit counts like at most {policy.rows} rows over all of them"
        for number, words in times
        if number > 1
    )


def _selected_first(keys: tuple[Field, ...], selected: tuple[str, ...]) -> tuple[Field, ...]:
    """Rows come in blocks of one selected key each, which is drawn once."""
    return tuple(sorted(keys, key=lambda key: key.name not in selected))


def _narrow_rows(aggregate: Aggregate) -> tuple[Project, tuple[Measure, ...]]:
    """The rows of the release with its keys and arguments as columns, and nothing else."""
    columns = list(aggregate.keys)
    names: dict[Expr, Column] = {}
    measures: list[Measure] = []
    for measure in aggregate.measures:
        for arg in measure_args(measure):
            if arg not in names:
                names[arg] = Column(f"x{len(names) + 1}", arg.type, _origin(arg))
                columns.append(Named(names[arg].name, arg))
        measures.append(map_measure(measure, names.__getitem__))
    columns += [Named(f.name, Column(f.name, f.type)) for f in row_fields(aggregate.input) if f.name == ROW]
    return Project(aggregate.input, tuple(columns)), tuple(measures)


def _origin(arg: Expr) -> str | None:
    return next((part.origin for part in walk(arg) if isinstance(part, Column) and part.origin), None)
