"""Sub-selects and window functions within expressions over private rows: EXISTS, IN, scalar sub-selects, OVER.

Each adds what it needs to the relation that is being bound (a mark, a left join, a window) and gives back its column.
A sub-select over private rows must equate its unit with that of the block around it; then only rows of the same unit
are looked at (SOUNDNESS 2). Over public rows and releases any condition will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.compiler.bind.aggregates import has_aggregate
from dpsql.compiler.bind.coercion import unify_types
from dpsql.compiler.bind.conditions import COMPARISONS
from dpsql.compiler.bind.correlation import iter_sources, reads_outer_block
from dpsql.compiler.bind.expressions import bind_condition, bind_expr
from dpsql.compiler.bind.joins import has_subquery, split_condition
from dpsql.compiler.bind.per_unit import bind_correlated_group
from dpsql.compiler.bind.relation import BoundRelation, nesting_level_error, require_same_unit
from dpsql.compiler.bind.scalar_subqueries import bind_group_value, bind_scalar
from dpsql.compiler.bind.scope import Scope, SourceScope, is_star
from dpsql.compiler.bind.sources import find_public_table
from dpsql.compiler.bind.windows import bind_window, refuse_row_selection, refuse_windows
from dpsql.compiler.parse.dialect import refuse_other_args, span_of
from dpsql.compiler.plan.expressions import (
    FALSE,
    TRUE,
    Call,
    Case,
    Column,
    Compare,
    Expr,
    HoleValue,
    InHole,
    IsNull,
    Literal,
    Not,
    split_shared_equalities,
)
from dpsql.compiler.plan.walk import columns_of
from dpsql.errors import TypeMismatch, Unsupported
from dpsql.types import BIGINT, BOOLEAN

if TYPE_CHECKING:
    from dpsql.compiler.bind.binder import Binder


def bind_subquery_or_window(
    binder: Binder, relation: BoundRelation, windows: Mapping[str, exp.Window], node: exp.Expr
) -> Expr:
    """What stands for a sub-select or window function; the same text is bound once."""
    text = f"{node.key} {node.sql(dialect='postgres')}"
    if text not in relation.bound:
        relation.bound[text] = _bind_nested_node(binder, relation, windows, node)
    return relation.bound[text]


def _bind_nested_node(
    binder: Binder, relation: BoundRelation, windows: Mapping[str, exp.Window], node: exp.Expr
) -> Expr:
    if isinstance(node, exp.Window):
        return bind_window(binder, relation, windows, node)
    if isinstance(node, exp.Exists):
        refuse_other_args(node, "this")
        return _bind_exists(binder, relation, unwrap_subquery(node.this), node)
    if isinstance(node, exp.In):
        refuse_other_args(node, "this", "query")
        return _bind_in(binder, relation, unwrap_subquery(node.args["query"]), node)
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        return _bind_in(binder, relation, unwrap_subquery(node.expression.this), node)
    if isinstance(node, exp.NEQ) and isinstance(node.expression, exp.All):
        return Not(_bind_in(binder, relation, unwrap_subquery(node.expression.this), node))
    if isinstance(node, exp.Subquery | exp.Query):
        return _bind_scalar_subquery(binder, relation, unwrap_subquery(node), node)
    if type(node) in COMPARISONS and isinstance(node.expression, exp.Any | exp.All):
        return _bind_quantified(binder, relation, unwrap_subquery(node.expression.this), node)
    raise Unsupported("ANY and ALL stand behind a comparison", span=span_of(node))


def unwrap_subquery(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Subquery | exp.Paren):
        refuse_other_args(node, "this")
        node = node.this
    return node


# --- EXISTS and IN ---------------------------------------------------------------------------------------------------


def _bind_exists(binder: Binder, relation: BoundRelation, query: exp.Expr, node: exp.Exists) -> Expr:
    if _is_evaluated_first(binder, relation, query):
        assert binder.outside is not None
        count = exp.Select(expressions=[exp.alias_(exp.Count(this=exp.Star()), "n")])
        count.set("from_", exp.From(this=exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("t")))))
        count.parent = node.parent
        return Compare(">", binder.outside.add_value(count), Literal(0, BIGINT))
    right, _ = _bind_subquery_rows(binder, relation, query, node, None)
    require_same_unit(relation, right, (), node)
    return relation.add_mark(right, binder.namer.reserve_name("exists"), None, node)


def _bind_in(binder: Binder, relation: BoundRelation, query: exp.Expr, node: exp.Expr) -> Expr:
    if isinstance(node.this, exp.Tuple):
        return _bind_row_in(binder, relation, query, node)
    arg = bind_expr(node.this, relation.scope)
    if _is_evaluated_first(binder, relation, query):
        return _bind_in_parameter(binder, arg, query, node)
    right, (value,) = _bind_subquery_rows(binder, relation, query, node, 1)
    (tested, other), _ = unify_types([arg, value], [node.this, node.this], "IN")
    equal: tuple[Expr, ...] = () if _can_be_missing(arg, relation.scope) else (Compare("=", tested, other),)
    require_same_unit(relation, right, equal, node)
    return relation.add_mark(right, binder.namer.reserve_name("found"), (tested, other), node)


def _bind_row_in(binder: Binder, relation: BoundRelation, query: exp.Expr, node: exp.Expr) -> Expr:
    """(a, b) IN (SELECT x, y …): true where all are equal in some row; NULL where in some row none differs for sure."""
    nodes = list(node.this.expressions)
    args = [bind_expr(part, relation.scope) for part in nodes]
    if _is_evaluated_first(binder, relation, query):
        raise Unsupported("IN of several columns takes a sub-select over private rows here",
                          hint="Join with the sub-select in FROM: ON a = x AND b = y.", span=span_of(node))  # fmt: skip
    right, values = _bind_subquery_rows(binder, relation, query, node, len(args))
    equal = []
    for arg, value, part in zip(args, values, nodes, strict=True):
        (tested, other), _ = unify_types([arg, value], [part, part], "IN")
        equal.append(Compare("=", tested, other))
    sure = tuple(e for e, arg in zip(equal, args, strict=True) if not _can_be_missing(arg, relation.scope))
    require_same_unit(relation, right, sure, node)
    perhaps: list[Expr] = [Call("coalesce", (e, TRUE), BOOLEAN) for e in equal]
    matched = _add_condition_mark(binder, relation, right, tuple(equal), node)
    unknown = _add_condition_mark(binder, relation, right, tuple(perhaps), node)
    return Case(((matched, TRUE), (unknown, Literal(None, BOOLEAN))), FALSE, BOOLEAN)


def _bind_quantified(binder: Binder, relation: BoundRelation, query: exp.Expr, node: exp.Expr) -> Expr:
    """x > ALL (SELECT y …) is false where a row says no, else NULL where a row is not sure; ANY is the contrary."""
    if _is_evaluated_first(binder, relation, query):
        raise Unsupported("ANY and ALL take = ANY and <> ALL here",
                          hint="Compare with (SELECT MIN(…) …) or (SELECT MAX(…) …).", span=span_of(node))  # fmt: skip
    arg = bind_expr(node.this, relation.scope)
    right, (value,) = _bind_subquery_rows(binder, relation, query, node, 1)
    require_same_unit(relation, right, (), node)
    (tested, other), _ = unify_types([arg, value], [node.this, node.this], "comparison")
    says = Compare(COMPARISONS[type(node)], tested, other)
    every = isinstance(node.expression, exp.All)
    decided = _add_condition_mark(binder, relation, right, (Not(says) if every else says,), node)
    unknown = _add_condition_mark(binder, relation, right, (IsNull(says),), node)
    branches = ((decided, FALSE if every else TRUE), (unknown, Literal(None, BOOLEAN)))
    return Case(branches, TRUE if every else FALSE, BOOLEAN)


def _add_condition_mark(
    binder: Binder, relation: BoundRelation, right: BoundRelation, conditions: tuple[Expr, ...], node: exp.Expr
) -> Column:
    """Whether a row of the right meets these conditions too; the right may be asked more than once."""
    restricted = replace(right, correlated=(*right.correlated, *conditions))
    return relation.add_mark(restricted, binder.namer.reserve_name("found"), None, node)


def _bind_in_parameter(binder: Binder, arg: Expr, query: exp.Expr, node: exp.Expr) -> Expr:
    assert binder.outside is not None
    name, domain = binder.outside.add_list(query)
    value = HoleValue(name, domain)
    (tested, other), _ = unify_types([arg, value], [node.this, node.this], "IN")
    if other != value:
        raise TypeMismatch(
            f"{arg.type} IN (SELECT …) of {domain.type}: the types do not fit together",
            hint=f"Cast the column within the sub-select, for example: CAST(x AS {arg.type}).",
            span=span_of(node),
        )
    return InHole(tested, name, domain)


def _can_be_missing(arg: Expr, scope: Scope) -> bool:
    """NULL NOT IN (…) is not true while anyone has rows there; seen over one unit's rows alone, it could be."""
    return isinstance(arg, Column) and any(c.column == arg and c.may_be_missing for c in scope.iter_columns())


def _is_evaluated_first(binder: Binder, relation: BoundRelation, query: exp.Expr) -> bool:
    """Whether a sub-select is worked out before: over public rows or releases, without a look at the block around."""
    if binder.outside is None or reads_outer_block(binder, query, relation.scope) or binder.outside.is_owned(query):
        return False
    return not (is_plain_select(query) and not _has_nested_query(query) and _reads_public_tables_only(binder, query))


def _has_nested_query(query: exp.Expr) -> bool:
    """Sub-selects within one over public rows are all post-processing: they have no unit to be equated."""
    return any(inner is not query for inner in query.find_all(exp.Select))


def _reads_public_tables_only(binder: Binder, query: exp.Expr) -> bool:
    """Declared public tables only: they are looked up in the engine, however many rows they have."""
    assert isinstance(query, exp.Select)
    ctes, sources = binder.ctes_of(query), list(iter_sources(query))
    return bool(sources) and all(find_public_table(binder, source, ctes) is not None for source in sources)


def is_plain_select(query: exp.Expr) -> bool:
    """A block of filters and columns; its order and repeats do not matter here."""
    if not isinstance(query, exp.Select) or query.args.get("group") is not None or query.args.get("having") is not None:
        return False
    holds_window = any(item.find(exp.Window) for item in query.expressions)
    return not holds_window and not any(map(has_aggregate, query.expressions)) and query.args.get("qualify") is None


def _bind_subquery_rows(
    binder: Binder, relation: BoundRelation, query: exp.Expr, node: exp.Expr, wanted: int | None
) -> tuple[BoundRelation, list[Expr]]:
    """The rows of a sub-select, conditions that read the outer block aside, and its columns: as many as are wanted."""
    if isinstance(query, exp.Select) and query.args.get("with_") is not None:
        raise Unsupported("WITH cannot stand in a sub-select over private rows",
                          hint="Move it to the beginning of the statement.", span=span_of(node))  # fmt: skip
    if is_plain_select(query):
        assert isinstance(query, exp.Select)
        _check_plain_clauses(query, is_exists=wanted is None)
        right = bind_from_and_where(binder, relation, query, node)
        if wanted is None:
            return right, []
        if len(query.expressions) != wanted or any(map(is_star, query.expressions)):
            raise _column_count_error(wanted, node)
        return right, [bind_expr(item.unalias(), right.scope) for item in query.expressions]
    if isinstance(query, exp.Select) and reads_outer_block(binder, query, relation.scope):
        right = bind_correlated_group(binder, query, bind_from_and_where(binder, relation, query, node), node)
    else:
        rows, columns = binder.bind_owned_query(query)
        right = BoundRelation(rows, Scope((SourceScope("subquery", columns),)), (columns,), told=binder.told)
    columns = right.scope.sources[0].columns
    if wanted is not None and len(columns) != wanted:
        raise _column_count_error(wanted, node)
    return right, [column.column for column in columns] if wanted is not None else []


def _check_plain_clauses(select: exp.Select, is_exists: bool) -> None:
    refuse_other_args(
        select, "expressions", "from_", "joins", "where", "order", "distinct", "limit", "offset", "windows"
    )
    limit = select.args.get("limit")
    number = str(limit.expression.this) if limit is not None and isinstance(limit.expression, exp.Literal) else "0"
    if limit is not None and is_exists and number.isdigit() and int(number) > 0 and select.args.get("offset") is None:
        return  # EXISTS (… LIMIT 1) asks for the same
    refuse_row_selection(select)


def _column_count_error(wanted: int, node: exp.Expr) -> Unsupported:
    number = "one column" if wanted == 1 else f"{wanted} columns"
    return Unsupported(f"this sub-select must give {number}", hint="Name what is compared instead of *.",
                       span=span_of(node))  # fmt: skip


def bind_from_and_where(binder: Binder, relation: BoundRelation, select: exp.Select, node: exp.Expr) -> BoundRelation:
    """FROM and WHERE of a sub-select; conditions that read the outer block are kept aside."""
    inner = binder.bind_from(select)
    binder.enable_subqueries(inner, select, relation.scope)
    where = select.args.get("where")
    if where is not None:
        refuse_windows(where, "WHERE")
    nodes = split_condition(where.this) if where is not None else []
    for part in sorted(nodes, key=has_subquery):
        for condition in split_shared_equalities(bind_condition(part, inner.scope)):
            read = columns_of(condition)
            if read <= inner.names:
                inner.filter([condition])
            elif read <= inner.names | relation.names:
                inner.correlated += (condition,)
            else:
                raise nesting_level_error(part)
    return inner


# --- scalar sub-selects ----------------------------------------------------------------------------------------------


def _bind_scalar_subquery(binder: Binder, relation: BoundRelation, query: exp.Expr, node: exp.Expr) -> Expr:
    if reads_outer_block(binder, query, relation.scope):
        if not isinstance(query, exp.Select) or relation.is_public:
            raise Unsupported("this sub-select cannot read the block around it",
                              hint="Join the tables in FROM instead.", span=span_of(node))  # fmt: skip
        value = bind_group_value(
            binder, relation, query, lambda other: bind_from_and_where(other, relation, query, node)
        )
        if value is not None:
            return value
        inner = bind_from_and_where(binder, relation, query, node)
        return bind_scalar(binder, relation, query, inner, lambda: require_same_unit(relation, inner, (), node))
    if binder.outside is None:
        raise Unsupported("a sub-select cannot stand here", span=span_of(node))
    return binder.outside.add_value(query)
