"""Window functions over private rows: PARTITION BY contains the privacy unit, so each unit's rows are looked at alone.

Ties cannot choose: where they could, the order is completed with all columns of the input (SOUNDNESS 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.compiler.bind.aggregates import has_aggregate
from dpsql.compiler.bind.coercion import coerce
from dpsql.compiler.bind.expressions import bind_condition, bind_expr
from dpsql.compiler.bind.relation import BoundRelation
from dpsql.compiler.bind.scope import Scope
from dpsql.compiler.bind.unit_aggregates import bind_function_and_argument, unit_measure_type
from dpsql.compiler.parse.dialect import refuse_other_args, span_of, sql_name_of
from dpsql.compiler.plan.expressions import Case, Column, Expr, Literal
from dpsql.compiler.plan.relations import Ordering, UnitWindow
from dpsql.errors import GroupingError, InvalidSyntax, NotPrivate, Unsupported
from dpsql.types import BIGINT, INTEGER, Type

if TYPE_CHECKING:
    from dpsql.compiler.bind.binder import Binder


RANK_FUNCTIONS: dict[type[exp.Expr], str] = {exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank"}
VALUE_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Lag: "lag", exp.Lead: "lead", exp.FirstValue: "first_value", exp.LastValue: "last_value",
    exp.NthValue: "nth_value",
}  # fmt: skip
MAX_FRAME_ROWS = 10_000
"""Rows that a frame, LAG or NTILE may count."""


def bind_window(binder: Binder, relation: BoundRelation, windows: Mapping[str, exp.Window], node: exp.Window) -> Column:
    refuse_other_args(node, "this", "partition_by", "order", "spec", "alias", "over")
    if has_aggregate(node):
        raise GroupingError("aggregates cannot stand in a window function here", span=span_of(node))
    partition, order, spec = _window_definition(windows, node)
    keys = _bind_partition(partition, relation.scope, node)
    orderings = tuple(_bind_ordering(ordered, relation.scope) for ordered in order)
    function, args, type_ = _bind_window_function(node.this, relation.scope)
    frame = None if spec is None else _render_frame(spec)
    name = binder.namer.reserve_name(function)
    return relation.add_window(UnitWindow(relation.node, name, function, args, keys, orderings, frame, type_))


def refuse_windows(node: exp.Expr, where: str) -> None:
    """Filters come before windows, so they cannot read them."""
    for part in node.walk(prune=lambda part: isinstance(part, exp.Query)):
        if isinstance(part, exp.Window):
            raise InvalidSyntax(
                f"window functions cannot stand in {where}",
                hint="Use QUALIFY, or filter in an outer SELECT.",
                span=span_of(part),
                sqlstate="42P20",
            )


def _window_definition(
    windows: Mapping[str, exp.Window], node: exp.Window
) -> tuple[list[exp.Expr], list[exp.Expr], exp.WindowSpec | None]:
    """PARTITION BY, ORDER BY and frame, those of a named window included."""
    order = node.args["order"].expressions if node.args.get("order") is not None else []
    partition, spec = list(node.args.get("partition_by") or ()), node.args.get("spec")
    alias = node.args.get("alias")
    if alias is None:
        return partition, list(order), spec
    named = windows.get(alias.name.lower())
    if named is None:
        raise InvalidSyntax(f'window "{alias.name}" does not exist', span=span_of(alias), sqlstate="42704")
    refuse_other_args(named, "this", "partition_by", "order", "spec", "alias")
    first, second, third = _window_definition({n: w for n, w in windows.items() if w is not named}, named)
    if partition or (order and second):
        raise InvalidSyntax(f'window "{alias.name}" already has PARTITION BY or ORDER BY', span=span_of(node))
    return first, second or list(order), spec or third


def _bind_partition(nodes: list[exp.Expr], scope: Scope, window: exp.Window) -> tuple[Expr, ...]:
    unit = False
    keys: list[Expr] = []
    for node in nodes:
        inner = node
        while isinstance(inner, exp.Paren):
            inner = inner.this
        column = scope.resolve_column(inner) if isinstance(inner, exp.Column) else None
        unit = unit or (column is not None and column.leads_to_unit)
        if column is None or not column.is_unit:
            keys.append(bind_expr(node, scope))
    if not unit and window.meta.get(DISTINCT_ON_KEY):
        raise NotPrivate(
            "DISTINCT ON over private rows must contain the privacy unit",
            detail="Otherwise one unit's rows decide about another's.",
            hint="Add the unit to its list: each unit's rows are then chosen from alone. Or aggregate, with GROUP BY.",
            span=span_of(window),
        )
    if not unit:
        raise NotPrivate(
            "a window function over private rows must have PARTITION BY the privacy unit",
            detail="Otherwise one unit's rows decide about another's.",
            hint=_partition_hint(scope),
            span=span_of(window),
        )
    return tuple(keys)


def _partition_hint(scope: Scope) -> str:
    form = "aggregate first, with GROUP BY: window functions over aggregated rows are fine"
    for source in scope.sources:
        for column in source.columns:
            if column.is_unit:
                return f"Add PARTITION BY {source.alias}.{column.name}; or {form}."
    return f"{form[0].upper()}{form[1:]}."


def _bind_ordering(node: exp.Expr, scope: Scope) -> Ordering:
    refuse_other_args(node, "this", "desc", "nulls_first")
    expr = bind_expr(node.this, scope)
    return Ordering(expr, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


# --- functions -------------------------------------------------------------------------------------------------------


def _bind_window_function(node: exp.Expr, scope: Scope) -> tuple[str, tuple[Expr, ...], Type]:
    if type(node) in RANK_FUNCTIONS:
        refuse_other_args(node)
        return RANK_FUNCTIONS[type(node)], (), BIGINT
    if type(node) in VALUE_FUNCTIONS:
        return _bind_value_function(node, scope)
    if isinstance(node, exp.Ntile):
        refuse_other_args(node, "this")
        if node.this is None:
            raise InvalidSyntax("NTILE takes a number", span=span_of(node))
        return "ntile", (_read_number(node.this, "NTILE"),), BIGINT
    if isinstance(node, exp.Filter):
        refuse_other_args(node, "this", "expression")
        refuse_other_args(node.expression, "this")
        return _bind_filtered(node, scope)
    if isinstance(node, exp.AggFunc) and not isinstance(node, exp.PercentRank | exp.CumeDist):
        function, arg = bind_function_and_argument(node, scope)
        if function == "count_distinct":
            raise Unsupported("DISTINCT in a window function is not supported", span=span_of(node))
        if function in ("count_rows", "count", "sum", "mean", "min", "max", "any", "all"):
            return function, () if arg is None else (arg,), unit_measure_type(function, arg)
    raise Unsupported(
        f"{sql_name_of(node)} is not supported as a window function over private rows",
        hint="ROW_NUMBER, RANK, DENSE_RANK, NTILE, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE, COUNT, SUM, AVG, MIN"
        " and MAX are.",
        span=span_of(node),
    )


def _bind_filtered(node: exp.Filter, scope: Scope) -> tuple[str, tuple[Expr, ...], Type]:
    function, args, type_ = _bind_window_function(node.this, scope)
    condition = bind_condition(node.expression.this, scope)
    if function not in ("count_rows", "count", "sum", "mean", "min", "max", "any", "all"):
        raise Unsupported(f"FILTER does not go with {sql_name_of(node.this)}", span=span_of(node))
    arg: Expr = args[0] if args else Literal(1, BIGINT)
    argument = Case(((condition, arg),), Literal(None, arg.type), arg.type)
    return "count" if function == "count_rows" else function, (argument,), type_


def _bind_value_function(node: exp.Expr, scope: Scope) -> tuple[str, tuple[Expr, ...], Type]:
    refuse_other_args(node, "this", "offset", "default")
    arg = bind_expr(node.this, scope)
    args: list[Expr] = [arg]
    if node.args.get("offset") is not None:
        args.append(_read_number(node.args["offset"], sql_name_of(node)))
    elif isinstance(node, exp.NthValue):
        raise InvalidSyntax("NTH_VALUE takes a value and a number", span=span_of(node))
    if node.args.get("default") is not None:
        default = node.args["default"]
        args.append(coerce(bind_expr(default, scope), arg.type, default))
    return VALUE_FUNCTIONS[type(node)], tuple(args), arg.type


def _read_number(node: exp.Expr, what: str) -> Literal:
    minimum = 1 if what in ("NTILE", "NTH_VALUE()") else 0
    text = str(node.this) if isinstance(node, exp.Literal) and not node.args.get("is_string") else ""
    if not text.isdigit() or not minimum <= int(text) <= MAX_FRAME_ROWS:
        raise Unsupported(
            f"the number in {what} must be a literal between {minimum} and {MAX_FRAME_ROWS}", span=span_of(node)
        )
    return Literal(int(text), INTEGER)


# --- frames ----------------------------------------------------------------------------------------------------------


def _render_frame(spec: exp.WindowSpec) -> str:
    """A frame from literals only: an offset that is computed could raise for some rows."""
    refuse_other_args(spec, "kind", "start", "start_side", "end", "end_side")
    kind = str(spec.args.get("kind") or "").upper()
    if kind not in ("ROWS", "RANGE"):
        raise Unsupported(f"{kind} frames are not supported over private rows", hint="Use ROWS.", span=span_of(spec))
    start = _frame_edge(spec, "start", kind)
    end = _frame_edge(spec, "end", kind) if spec.args.get("end") is not None else "CURRENT ROW"
    return f"{kind} BETWEEN {start} AND {end}"


def _frame_edge(spec: exp.WindowSpec, edge: str, kind: str) -> str:
    value, side = spec.args.get(edge), str(spec.args.get(f"{edge}_side") or "").upper()
    if isinstance(value, str) and value.upper() == "CURRENT ROW":
        return "CURRENT ROW"
    if isinstance(value, str) and value.upper() == "UNBOUNDED" and side in ("PRECEDING", "FOLLOWING"):
        return f"UNBOUNDED {side}"
    if kind == "ROWS" and isinstance(value, exp.Expr) and side in ("PRECEDING", "FOLLOWING"):
        return f"{_read_number(value, 'a frame').value} {side}"
    raise Unsupported(
        f"this {kind} frame is not supported over private rows",
        hint="For example: ROWS BETWEEN 2 PRECEDING AND CURRENT ROW.",
        span=span_of(spec),
    )


# Clauses that choose rows by looking at all of them: one unit would move another's rows (SOUNDNESS 2).

PER_UNIT_ROW_NUMBER = "ROW_NUMBER() OVER (PARTITION BY the unit ORDER BY …)"


DISTINCT_ON_KEY = "distinct on"
"""The note by which a window is known to have been written so."""


def rewrite_distinct_on(select: exp.Select) -> None:
    """DISTINCT ON over rows, as the row that ROW_NUMBER() numbers 1: the binder then asks that the unit be in its list.

    SELECT DISTINCT ON (a) a, b … ORDER BY a, c
    →  SELECT a, b … QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY a, c) = 1
    """
    distinct = select.args.get("distinct")
    on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
    parts = [*select.expressions, select.args.get("having"), select.args.get("order")]
    over_groups = any(part is not None and has_aggregate(part) for part in parts)
    if on is None or over_groups or any(select.args.get(clause) is not None for clause in ("group", "qualify")):
        return
    order = select.args.get("order")
    keys = [_resolve_output_reference(node, select) for node in (on.expressions if isinstance(on, exp.Tuple) else [on])]
    ordered = [] if order is None else [node.copy() for node in order.expressions]
    for node in ordered:
        node.set("this", _resolve_output_reference(node.this, select))
    number = exp.Window(this=exp.RowNumber(), partition_by=keys)
    number.set("order", exp.Order(expressions=ordered) if ordered else None)
    number.meta[DISTINCT_ON_KEY] = True
    select.set("qualify", exp.Qualify(this=exp.EQ(this=number, expression=exp.Literal.number(1))))
    select.set("distinct", None)


def _resolve_output_reference(node: exp.Expr, select: exp.Select) -> exp.Expr:
    """What a position or an output column's name stands for, as in ORDER BY."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Literal) and str(node.this).isdigit() and 1 <= int(node.this) <= len(select.expressions):
        selected: exp.Expr = select.expressions[int(node.this) - 1].unalias().copy()
        return selected
    for item in select.expressions:
        bare = isinstance(node, exp.Column) and not node.table
        if bare and isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower():
            return item.this.copy()  # type: ignore[no-any-return]
    return node.copy()


def refuse_row_selection(query: exp.Expr) -> None:
    for clause in ("limit", "offset"):
        if query.args.get(clause) is not None:
            raise NotPrivate(
                f"{clause.upper()} over private rows lets one unit move another's rows",
                hint="Aggregate first, then use LIMIT in the outer SELECT; "
                f"or number each unit's rows: {PER_UNIT_ROW_NUMBER}.",
                span=span_of(query.args[clause]),
            )
    distinct = query.args.get("distinct")
    if isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None:
        raise NotPrivate(
            "DISTINCT ON over private rows lets one unit move another's rows",
            hint=f"Number each unit's rows, and keep those with 1: {PER_UNIT_ROW_NUMBER}.",
            span=span_of(distinct),
        )
