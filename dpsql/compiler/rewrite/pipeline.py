"""The rules in order: from the aggregate that was asked to the plan that runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from dpsql.compiler.analysis.public_rows import max_row_multiplication
from dpsql.compiler.plan.aggregate import Aggregate, Gather, Part, Sum, Weigh
from dpsql.compiler.plan.estimators import Recipe
from dpsql.compiler.plan.expressions import ROW, Call, Column, Expr, InList, IsNull, Literal, Not, Or, join_conjuncts
from dpsql.compiler.plan.measures import Blockwise, Measure
from dpsql.compiler.plan.relations import (
    SET_COLUMN,
    Expand,
    Field,
    Filter,
    Join,
    Mark,
    Named,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    SetOperation,
    Table,
    UnitWindow,
    has_uid,
    row_fields,
)
from dpsql.compiler.plan.walk import map_measure, map_rows, measure_args, walk_exprs
from dpsql.compiler.rewrite.bound_contributions import (
    ContributionPolicy,
    cap_distinct_values,
    count_units,
    select_groups,
    weigh_units,
)
from dpsql.compiler.rewrite.form_blocks import check_groups_reached, refuse_grouping_sets, sum_blocks
from dpsql.compiler.rewrite.form_bundles import form_bundles
from dpsql.compiler.rewrite.grids import drop_clips
from dpsql.compiler.rewrite.limit_joins import limit_joins, limit_public_joins, limit_work
from dpsql.compiler.rewrite.list_groups import GroupPlan, list_groups
from dpsql.compiler.rewrite.make_total import make_total, make_unit_aggregates_exact
from dpsql.compiler.rewrite.scan_tables import join_by_unit, push_conditions, scan_tables
from dpsql.errors import Unsupported
from dpsql.schema.model import Resolved
from dpsql.types import BIGINT

# Let each row stand once in every grouping set.
#
#     GROUP BY ROLLUP (sex)  →  each row with its sex in set 0, and with NULL in set 1; grouped by (sex, _set)
#
# A NULL key that is no group drops the row from the sets that have the key, and from no other.


def expand_sets(
    rows: Rows, keys: tuple[Field, ...], sets: tuple[frozenset[str], ...], never_null: tuple[str, ...]
) -> Rows:
    """`rows` have the keys as columns; those of `never_null` are no group where they are NULL and in the set."""
    expanded = Expand(rows, tuple(key.name for key in keys), sets)
    number = Column(SET_COLUMN, BIGINT)
    conditions = []
    for key in keys:
        if key.name in never_null:
            set_numbers = tuple(Literal(index, BIGINT) for index, names in enumerate(sets) if key.name in names)
            conditions.append(Or((Not(IsNull(Column(key.name, key.type))), Not(InList(number, set_numbers)))))
    return Filter(expanded, join_conjuncts(tuple(conditions))) if conditions else expanded


# Where each row is its own unit, and blocks are made of units: carry a hash of the row up to where blocks are made.
#
#     Table(events)  →  Project(events, all columns and _row = hash of all of them); every Project above passes _row on
#
# Stability: the hash is taken where the table is scanned, of its columns as sanitised, before anything is joined to
# them. So it is a function of the row alone; copies of a row, which a join with public rows makes, have the same, and
# are
# in one block. Equal rows share a block, too.


def carry_row_hash(aggregate: Aggregate) -> Aggregate:
    blockwise = next((measure for measure in aggregate.measures if isinstance(measure, Blockwise)), None)
    if blockwise is None or has_uid(aggregate.input):
        return aggregate

    def change(node: Rows) -> Rows:
        match node:
            case Table():
                columns = tuple(Column(f.name, f.type) for _, f in node.columns)
                hashed = Named(ROW, Call("row_hash", columns, BIGINT))
                return Project(node, (*(Named(column.name, column) for column in columns), hashed))
            case Project():
                carried = any(f.name == ROW for f in row_fields(node.input))  # public rows have none
                return replace(node, columns=(*node.columns, Named(ROW, Column(ROW, BIGINT)))) if carried else node
            case Filter() | Join() | Mark() | PublicTable() | RowsHole():
                return node  # what they give out, of private rows, is what they are given
            case SetOperation():
                raise Unsupported(
                    "BLOCKWISE of a UNION ALL is not supported where each row is a privacy unit",
                    hint="Ask for each of its parts in a SELECT of its own.",
                    span=blockwise.span,
                )
            case PerUnit() | UnitWindow() | Expand() | Scan() | PublicScan():
                raise TypeError("rows that are units have no ids to group by, and are not scanned yet")
            case _:
                assert_never(node)

    return replace(aggregate, input=map_rows(aggregate.input, change))


NULLS_DROPPED_NOTICE = "rows for which a computed key is NULL are in no group; COALESCE(…) within the key keeps them"


@dataclass(frozen=True)
class RewrittenPlan:
    gather: Gather
    recipes: tuple[Recipe, ...]  # one per measure of the aggregate
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class PreparedRows:
    """The rows of a release, sanitised and narrowed to its keys and arguments, and what its groups are."""

    rows: Rows
    measures: tuple[Measure, ...]
    keys: tuple[Field, ...]
    groups: GroupPlan


def prepare_rows(aggregate: Aggregate, resolved: Resolved) -> PreparedRows:
    refuse_grouping_sets(aggregate)
    aggregate = join_by_unit(push_conditions(scan_tables(carry_row_hash(aggregate), resolved)))
    aggregate = limit_work(limit_joins(limit_public_joins(aggregate)))
    aggregate = make_total(make_unit_aggregates_exact(aggregate))
    groups = list_groups(aggregate)
    narrow, measures = _narrow_rows(groups.aggregate)
    keys = tuple(Field(key.name, key.expr.type) for key in aggregate.keys)
    if not aggregate.sets:
        return PreparedRows(narrow, measures, keys, groups)
    rows = expand_sets(narrow, keys, aggregate.sets, groups.never_null)
    return PreparedRows(rows, measures, (*keys, Field(SET_COLUMN, BIGINT)), groups)


def rewrite_plan(aggregate: Aggregate, resolved: Resolved, policy: ContributionPolicy) -> RewrittenPlan:
    prepared = prepare_rows(aggregate, resolved)
    rows, groups = prepared.rows, prepared.groups
    blockwise = [measure for measure in prepared.measures if isinstance(measure, Blockwise)]
    others = tuple(measure for measure in prepared.measures if not isinstance(measure, Blockwise))
    bundled = form_bundles(others, rows, policy.rows)
    keys = tuple(key.name for key in prepared.keys)
    parts: list[Part] = []
    if bundled.bundles:
        parts.append(weigh_units(rows, keys, bundled.bundles, policy))
    for distinct_sums in bundled.distinct:
        parts.append(Sum(cap_distinct_values(rows, keys, distinct_sums.columns, policy), keys, distinct_sums.bundles))
    for count in bundled.units:
        counted = rows if count.where is None else Filter(rows, count.where)
        parts.append(count_units(counted, keys, count.cell, groups.listed, policy))
    blocks = [sum_blocks(m, rows, keys, f"b{number}", policy.rows) for number, m in enumerate(blockwise, 1)]
    parts += [part for part, _ in blocks]
    means, linear = iter([mean for _, mean in blocks]), iter(bundled.recipes)
    recipes = tuple(next(means) if isinstance(m, Blockwise) else next(linear) for m in prepared.measures)
    selection = select_groups(rows, groups.selected, policy)
    gather = Gather(_order_selected_first(prepared.keys, groups.selected), groups.listed, selection, tuple(parts))
    for measure, (part, _) in zip(blockwise, blocks, strict=True):
        check_groups_reached(measure, part, gather)
    notices = ((NULLS_DROPPED_NOTICE,) if groups.drops_nulls else ()) + _repeated_row_notices(
        aggregate, rows, parts, policy
    )
    return RewrittenPlan(drop_clips(gather), recipes, notices)


def _repeated_row_notices(
    aggregate: Aggregate, rows: Rows, parts: list[Part], policy: ContributionPolicy
) -> tuple[str, ...]:
    """Said of the statement alone: a row that counts many times uses up what its unit may contribute."""
    if not any(isinstance(part, Sum) and isinstance(part.input, Weigh) for part in parts):
        return ()
    times = [(len(aggregate.sets), "is in {} grouping sets"), (max_row_multiplication(rows), "may meet {} public rows")]
    return tuple(
        f"each row {words.format(number)}, and a unit counts like at most {policy.rows} rows over all of them"
        for number, words in times
        if number > 1
    )


def _order_selected_first(keys: tuple[Field, ...], selected: tuple[str, ...]) -> tuple[Field, ...]:
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
                names[arg] = Column(f"x{len(names) + 1}", arg.type, _origin_of(arg))
                columns.append(Named(names[arg].name, arg))
        measures.append(map_measure(measure, names.__getitem__))
    columns += [Named(f.name, Column(f.name, f.type)) for f in row_fields(aggregate.input) if f.name == ROW]
    return Project(aggregate.input, tuple(columns)), tuple(measures)


def _origin_of(arg: Expr) -> str | None:
    return next((part.origin for part in walk_exprs(arg) if isinstance(part, Column) and part.origin), None)
