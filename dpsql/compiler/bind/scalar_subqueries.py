"""Scalar sub-selects that read the block around them: an aggregate of the same unit's rows, or a row found by its key.

SELECT … (SELECT COUNT(*) FROM visits v WHERE v.patient_id = p.patient_id) … FROM patients p
→  LEFT JOIN with PerUnit by patient_id: count rows; a missing count is 0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.compiler.analysis.public_rows import columns_equated_to_left
from dpsql.compiler.bind.aggregates import has_aggregate, is_aggregate
from dpsql.compiler.bind.coercion import coerce, unify_types
from dpsql.compiler.bind.expressions import bind_expr
from dpsql.compiler.bind.per_unit import GROUP_SOURCE, group_column, rebuild_node
from dpsql.compiler.bind.relation import BoundRelation, equates_unit, nesting_level_error
from dpsql.compiler.bind.scope import BoundColumn, ColumnNamer, Scope, SourceScope, is_star
from dpsql.compiler.bind.sources import lookup_table
from dpsql.compiler.bind.unit_aggregates import UnitPickBinder, bind_unit_measure
from dpsql.compiler.bind.windows import PER_UNIT_ROW_NUMBER
from dpsql.compiler.parse.dialect import refuse_other_args, span_of
from dpsql.compiler.plan.expressions import Call, Case, Column, Compare, Expr, IsNull, Literal, join_conjuncts
from dpsql.compiler.plan.relations import Named, PerUnit, Project, UnitMeasure
from dpsql.compiler.plan.walk import columns_of
from dpsql.errors import GroupingError, Unsupported
from dpsql.types import BIGINT

if TYPE_CHECKING:
    from dpsql.compiler.bind.binder import Binder

EqualityPairs = list[tuple[Expr, Expr]]
"""What of the sub-select is equal to what of the outer block."""


def bind_scalar(
    binder: Binder, relation: BoundRelation, select: exp.Select, inner: BoundRelation, require_unit: Callable[[], None]
) -> Expr:
    """`inner` has the sub-select's rows, with the conditions that read the outer block aside."""
    check_single_row(select)
    if len(select.expressions) != 1 or is_star(select.expressions[0]):
        raise Unsupported("this sub-select must give one column", span=span_of(select))
    item = select.expressions[0].unalias()
    equal = [_split_equality(condition, relation, inner, select) for condition in inner.correlated]
    require_unit()
    if has_aggregate(item):
        return _bind_aggregated(binder, relation, inner, equal, [item])[0]
    return _bind_lookup(binder, relation, select, inner, equal, item)


def bind_unit_aggregates(
    binder: Binder, relation: BoundRelation, select: exp.Select, inner: BoundRelation
) -> list[Expr]:
    """As `bind_scalar`, for a sub-select that gives aggregates, and equates the unit: one grouping has them all."""
    equal = [_split_equality(condition, relation, inner, select) for condition in inner.correlated]
    return _bind_aggregated(binder, relation, inner, equal, [item.unalias() for item in select.expressions])


def check_single_row(select: exp.Select) -> None:
    """Refuse what may give other than one row."""
    if select.args.get("limit") is not None or select.args.get("offset") is not None:
        raise Unsupported(
            "LIMIT in a sub-select over private rows is not supported",
            hint=f"Use MIN or MAX, or number each unit's rows and keep those with 1: {PER_UNIT_ROW_NUMBER}.",
            span=span_of(select.args.get("limit") or select.args["offset"]),
        )
    for clause in ("group", "having", "distinct"):
        if select.args.get(clause) is not None:
            raise Unsupported(
                f"{clause.upper().replace('GROUP', 'GROUP BY')} in a sub-select that gives one value is not supported",
                hint="Join with the grouped rows in FROM instead.",
                span=span_of(select.args[clause]),
            )
    refuse_other_args(select, "expressions", "from_", "joins", "where", "order", "windows")


def _split_equality(
    condition: Expr, relation: BoundRelation, inner: BoundRelation, select: exp.Select
) -> tuple[Expr, Expr]:
    """An equality of something of the sub-select with something of the outer block."""
    if isinstance(condition, Compare) and condition.op == "=":
        for inner_side, outer_side in ((condition.left, condition.right), (condition.right, condition.left)):
            if (
                columns_of(inner_side) <= inner.names
                and columns_of(inner_side)
                and columns_of(outer_side) <= relation.names
            ):
                return inner_side, outer_side
    raise Unsupported(
        "a sub-select that gives one value may be compared with the outer block by = only",
        hint="Join the rows in FROM and aggregate there, or use a window function with PARTITION BY the unit.",
        span=span_of(select.args["where"]),
    )


def _bind_aggregated(
    binder: Binder, relation: BoundRelation, inner: BoundRelation, equal: EqualityPairs, items: list[exp.Expr]
) -> list[Expr]:
    """One row per unit and compared values, joined to the rows that ask for it; no row means that nothing was counted.

    Stability: the unit is equated by the conditions, so a row of the outer block meets its own unit's results only.
    """
    if inner.is_public:
        raise Unsupported(
            "an aggregate of public rows for each private row is not supported",
            hint="Join with a sub-select in FROM that aggregates the public rows with GROUP BY.",
            span=span_of(items[0]),
        )
    measures: list[UnitMeasure] = []

    def rewrite(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query | exp.Subquery | exp.Window):
            raise Unsupported("this cannot stand beside an aggregate in a sub-select", span=span_of(node))
        if is_aggregate(node):
            name = binder.namer.reserve_name("measure")
            pick = UnitPickBinder(binder.namer, inner, tuple(inner_side for inner_side, _ in equal)).bind_measure(
                node, name
            )
            measures.append(pick or bind_unit_measure(node, name, inner.scope))
            arg = measures[-1].arg
            if arg is not None and not columns_of(arg) <= inner.names:
                raise nesting_level_error(node)
            return group_column(measures[-1].name, node)
        if isinstance(node, exp.Column) and inner.scope.find_column(node) in tuple(inner.scope.iter_columns()):
            raise GroupingError(f'column "{node.name}" must appear in an aggregate', span=span_of(node))
        return rebuild_node(node, rewrite)

    above = [rewrite(item) for item in items]
    keys = tuple(Named(binder.namer.reserve_name("key"), inner_side) for inner_side, _ in equal)
    joined = [
        Compare("=", Column(key.name, key.expr.type), outer_side)
        for key, (_, outer_side) in zip(keys, equal, strict=True)
    ]
    relation.add_left_join(PerUnit(inner.node, keys, tuple(measures)), join_conjuncts(tuple(joined)))
    columns: list[BoundColumn] = []
    for measure in measures:
        column = Column(measure.name, measure.type)
        if measure.function.startswith("count"):
            column = relation.add_column(
                binder.namer.reserve_name("count"), Call("coalesce", (column, Literal(0, BIGINT)), BIGINT)
            )
        columns.append(BoundColumn(measure.name, column))
    scope = Scope((SourceScope(GROUP_SOURCE, tuple(columns)),), outer=relation.scope)
    return [bind_expr(item, scope) for item in above]


def _bind_lookup(
    binder: Binder,
    relation: BoundRelation,
    select: exp.Select,
    inner: BoundRelation,
    equal: EqualityPairs,
    item: exp.Expr,
) -> Expr:
    """A row found by a unique key: there is at most one, and none gives NULL."""
    if not _is_by_unique_key(binder, select, inner, [inner_side for inner_side, _ in equal]):
        raise Unsupported(
            "this sub-select may give more than one row",
            hint="Aggregate, for example with MAX, or compare a column that the schema declares unique.",
            span=span_of(item),
        )
    value = bind_expr(item, inner.scope)
    if not columns_of(value) <= inner.names:
        raise nesting_level_error(item)
    name = binder.namer.reserve_name("value")
    keys = tuple(Named(binder.namer.reserve_name("key"), inner_side) for inner_side, _ in equal)
    joined = [
        Compare("=", Column(key.name, key.expr.type), outer_side)
        for key, (_, outer_side) in zip(keys, equal, strict=True)
    ]
    relation.add_left_join(Project(inner.node, (*keys, Named(name, value))), join_conjuncts(tuple(joined)))
    return Column(name, value.type)


def _is_by_unique_key(binder: Binder, select: exp.Select, inner: BoundRelation, compared: list[Expr]) -> bool:
    source = select.args["from_"].this
    if select.args.get("joins") or not isinstance(source, exp.Table) or len(inner.scope.sources) != 1:
        return False
    if source.name.lower() in binder.ctes_of(select):
        return False
    if binder.outside is not None and binder.outside.is_cte_or_view(source):
        return False
    table = lookup_table(binder.schema, source)
    origins = {c.column.origin for c in inner.scope.iter_columns() if c.column in compared}
    return table is not None and any({f"{table.name}.{name}" for name in key} <= origins for key in table.unique)


# A sub-select that gives one value of a group which the outer row names, of all units: a release of its own; of public
# rows or of a release it is worked out before, for all groups.
#
#     SELECT COUNT(*) FROM visits v WHERE v.cost > (SELECT AVG(x.cost) FROM visits x WHERE x.ward = v.ward)
#     →  LEFT JOIN with the rows of SELECT AVG(x.cost) AS v, x.ward AS _c1 FROM visits x GROUP BY x.ward, a hole
#
# Stability: a row meets released rows, which are public by then; what a unit has depends on its own rows and on those.

BindInnerRows = Callable[["Binder"], BoundRelation]
"""FROM and WHERE of the sub-select, bound by a binder."""


def bind_group_value(binder: Binder, relation: BoundRelation, select: exp.Select, rows: BindInnerRows) -> Expr | None:
    """None where the sub-select looks at rows of the outer row's unit, or is no aggregate found by equalities.

    Of public rows and releases the same: their groups are worked out first, and are public by then.
    """
    if binder.outside is None or not _is_single_aggregate(select):
        return None
    inner = rows(replace(binder, namer=_scratch_namer(binder.namer), told=[], outside=binder.outside.scratch_copy()))
    if not inner.is_public and equates_unit(relation, inner, ()):
        return None
    release = binder.outside.add_grouped_release(select, inner.scope)
    if release is None:
        return None
    grouped, outer = release
    hole, _ = binder.outside.add_table(grouped, binder.namer, keys=len(outer))
    value, *keys = (Column(field.name, field.type) for field in hole.columns)
    parts: list[Expr] = []
    for key, node in zip(keys, outer, strict=True):
        (left, right), _ = unify_types([key, bind_expr(node, relation.scope)], [node, node], "comparison")
        parts.append(Compare("=", left, right))
    condition = join_conjuncts(tuple(parts))
    if hole.unique <= columns_equated_to_left(condition, relation.node, hole):
        hole = binder.outside.allow_keyed_rows(hole)
    relation.add_left_join(hole, condition)
    item = select.expressions[0].unalias()
    missing = coerce(bind_expr(_value_without_group(item, value), Scope(())), value.type, item)
    if missing == Literal(None, value.type):
        return value
    return Case(((IsNull(keys[0]), missing),), value, value.type)


def _is_single_aggregate(select: exp.Select) -> bool:
    clauses = {"expressions", "from_", "joins", "where", "order"}
    if any(value for key, value in select.args.items() if key not in clauses) or len(select.expressions) != 1:
        return False
    return not is_star(select.expressions[0]) and has_aggregate(select.expressions[0])


def _scratch_namer(namer: ColumnNamer) -> ColumnNamer:
    """Names for what is bound to be looked at only, beside those that are taken."""
    return ColumnNamer(set(namer.taken), namer.sources)


def _value_without_group(item: exp.Expr, value: Column) -> exp.Expr:
    """What the sub-select gives where there is no such group: counts are 0, other aggregates NULL."""
    if is_aggregate(item):
        counts = isinstance(item.this if isinstance(item, exp.Filter) else item, exp.Count | exp.CountIf)
        return exp.Literal.number(0) if counts else exp.cast(exp.Null(), str(value.type))
    return rebuild_node(item, lambda part: _value_without_group(part, value))
