"""Aggregate functions of the statement to measures of the plan."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from sqlglot import exp

from dpsql.compiler.bind import blockwise
from dpsql.compiler.bind.coercion import coerce_number_literal, narrow_integer
from dpsql.compiler.bind.datetime import interval_to_seconds
from dpsql.compiler.bind.expressions import bind_condition, bind_expr
from dpsql.compiler.bind.posteriors import POSTERIOR_FUNCTIONS, bind_posterior
from dpsql.compiler.bind.scope import Scope
from dpsql.compiler.bind.selections import (
    NAMED_SELECTIONS,
    SCORED_FUNCTIONS,
    SELECTION_NODES,
    bind_scored_aggregate,
    bind_selection,
    bind_within_group,
)
from dpsql.compiler.parse.dialect import refuse_other_args, span_of, sql_name_of
from dpsql.compiler.plan.expressions import And, Call, Case, Cast, Expr, IsNull, Literal, Not
from dpsql.compiler.plan.measures import (
    Best,
    Blockwise,
    ConjugatePosterior,
    CountDistinctUnits,
    CountRows,
    CountValues,
    DistinctValues,
    Extreme,
    Frequent,
    MeanValues,
    Measure,
    PairFunction,
    PairValues,
    Posterior,
    Quantile,
    SharesPosterior,
    SumValues,
    Truth,
    VarianceValues,
)
from dpsql.errors import TypeMismatch, Unsupported
from dpsql.types import BIGINT, BOOLEAN, DATE, DOUBLE, HUGEINT, INTEGER, TEXT, TIMESTAMP, Type, sum_type

SUPPORTED_AGGREGATES = (
    "COUNT, SUM, AVG, also with DISTINCT, COUNT_IF, MIN, MAX, MEDIAN, PERCENTILE_CONT, MODE, HISTOGRAM, VAR_POP, "
    "VAR_SAMP, STDDEV_POP, STDDEV_SAMP, COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE and its like, BOOL_AND, BOOL_OR, "
    "BETA_POSTERIOR, NORMAL_POSTERIOR, DIRICHLET_POSTERIOR"
)
_WINDOW_ONLY = (exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead, exp.Rank, exp.DenseRank, exp.Ntile,
                exp.Grouping)  # fmt: skip
_SINGLE_ROW_AGGREGATES = frozenset({"arbitrary", "first", "last"})
_LIST_AGGREGATES = frozenset({"list", "listagg"})
_NAMED_AGGREGATES = (
    frozenset({"every", "mean", blockwise.BLOCKWISE_NAME})
    | NAMED_SELECTIONS
    | SCORED_FUNCTIONS
    | POSTERIOR_FUNCTIONS
    | _SINGLE_ROW_AGGREGATES
    | _LIST_AGGREGATES
    | blockwise.BLOCKWISE_ONLY
)
"""Aggregates that sqlglot takes for functions that it does not know."""


def is_aggregate(node: exp.Expr) -> bool:
    """Aggregates of the statement; a windowed function is none, though its arguments may hold some."""
    if isinstance(node, exp.Filter | exp.WithinGroup):
        return True
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _NAMED_AGGREGATES
    return isinstance(node, exp.AggFunc | exp.List) and not isinstance(node, _WINDOW_ONLY)


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate of this block is in the expression; sub-selects are blocks of their own."""
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    if isinstance(node, exp.Window):
        parts = [child for key, child in _keyed_children(node) if key != "this"]
        parts += [child for _, child in _keyed_children(node.this)]
        return any(has_aggregate(part) for part in parts)
    return is_aggregate(node) or any(has_aggregate(child) for _, child in _keyed_children(node))


def _keyed_children(node: exp.Expr) -> list[tuple[str, exp.Expr]]:
    result: list[tuple[str, exp.Expr]] = []
    for key, value in node.args.items():
        values = value if isinstance(value, list) else [value]
        result += [(key, item) for item in values if isinstance(item, exp.Expr)]
    return result


def bind_measure(node: exp.Expr, scope: Scope) -> Measure:
    if isinstance(node, exp.Filter):
        refuse_other_args(node, "this", "expression")
        refuse_other_args(node.expression, "this")
        return _filter_measure(bind_measure(node.this, scope), bind_condition(node.expression.this, scope), node)
    if isinstance(node, exp.WithinGroup):
        return bind_within_group(node, scope)
    binder = _BINDERS.get(type(node)) or _SELECTION_BINDERS.get(type(node))
    binder = binder or _NAMED_BINDERS.get(_function_name_of(node))
    if binder is None:
        raise _unsupported_aggregate_error(node)
    return binder(node, scope)


def _bind_blockwise(node: exp.Expr, scope: Scope) -> Measure:
    return blockwise.bind_blockwise(node, scope, is_aggregate)


def _bind_scored(node: exp.Expr, scope: Scope) -> Measure:
    return bind_scored_aggregate(node, scope, bind_score)


def bind_score(node: exp.Expr, scope: Scope) -> Measure | None:
    """What candidates are compared by: an aggregate, or the sum of a plain expression; None where it is neither."""
    if is_aggregate(node):
        return bind_measure(node, scope)
    return None if has_aggregate(node) else bind_measure(exp.Sum(this=node), scope)


def _function_name_of(node: exp.Expr) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def _unsupported_aggregate_error(node: exp.Expr) -> Unsupported:
    span, what = span_of(node), sql_name_of(node)
    if (
        isinstance(node, exp.AnyValue | exp.First | exp.Last | exp.ArgMax | exp.ArgMin)
        or _function_name_of(node) in _SINGLE_ROW_AGGREGATES
    ):
        hint = "MODE(x) gives the most frequent value, MIN(x) and MAX(x) the ends."
        return Unsupported(f"{what} would show the value of one row", hint=hint, span=span)
    if (
        isinstance(node, exp.GroupConcat | exp.ArrayAgg | exp.List | exp.JSONArrayAgg)
        or _function_name_of(node) in _LIST_AGGREGATES
    ):
        hint = "COUNT(*) with GROUP BY x, or HISTOGRAM(x), counts how often each value is there."
        return Unsupported(f"{what} would show the values of all rows", hint=hint, span=span)
    hint = blockwise.suggest_blockwise(node) or f"These are: {SUPPORTED_AGGREGATES}."
    return Unsupported(f"{what} is not supported yet", hint=hint, span=span)


def measure_type(measure: Measure) -> Type:
    """The type of the measure's answer; of the values in it where that is a list or a map (its `container`)."""
    match measure:
        case SumValues(arg):
            return sum_type(arg.type)
        case CountRows() | CountValues() | CountDistinctUnits():
            return BIGINT
        case DistinctValues(function, args):
            return {"count": BIGINT, "sum": sum_type(args[0].type), "mean": DOUBLE}[function]
        case MeanValues() | VarianceValues() | Blockwise() | ConjugatePosterior():
            return DOUBLE
        case PairValues(function):
            return BIGINT if function is PairFunction.COUNT else DOUBLE
        case Truth():
            return BOOLEAN
        case Quantile(arg):
            if measure.discrete or (arg.type.is_time and arg.type != DATE):
                return arg.type
            return TIMESTAMP if arg.type == DATE else DOUBLE
        case Extreme(arg) | Frequent(arg) | Best(arg) | SharesPosterior(arg):
            return arg.type
        case Posterior():
            return DOUBLE
        case _:
            assert_never(measure)


# --- counts ----------------------------------------------------------------------------------------------------------


def _bind_count(node: exp.Expr, scope: Scope) -> Measure:
    refuse_other_args(node, "this")
    span = span_of(node)
    arg = node.this
    if arg is None or isinstance(arg, exp.Star):
        if arg is not None:
            refuse_other_args(arg)
        return CountRows(span)
    if isinstance(arg, exp.Distinct):
        return _bind_count_distinct(arg, scope)
    if isinstance(arg, exp.Order):
        raise Unsupported("ORDER BY within COUNT() changes nothing", hint="Leave it out.", span=span_of(arg))
    bound = bind_expr(arg, scope)
    if isinstance(bound, Literal) and bound.value is not None:
        return CountRows(span)
    return CountValues(bound, span)


def _bind_count_distinct(node: exp.Distinct, scope: Scope) -> Measure:
    """COUNT(DISTINCT (a, b)) counts pairs, NULL and all; COUNT(DISTINCT a, b) those without NULL, as MySQL does."""
    refuse_other_args(node, "expressions")
    nodes, span = node.expressions, span_of(node)
    if len(nodes) == 1 and isinstance(nodes[0], exp.Column) and scope.resolve_column(nodes[0]).is_unit:
        return CountDistinctUnits(None, span)
    if len(nodes) == 1 and isinstance(nodes[0], exp.Tuple):
        refuse_other_args(nodes[0], "expressions")
        args = tuple(_to_comparable(bind_expr(part, scope)) for part in nodes[0].expressions)
        return DistinctValues("count", (Literal(1, BIGINT), *args), span)
    args = tuple(_to_comparable(bind_expr(part, scope)) for part in nodes)
    if len(args) == 1:
        return DistinctValues("count", args, span, _sql_text_of(nodes[0]))
    return DistinctValues("count", (_one_where_true(And(tuple(Not(IsNull(arg)) for arg in args))), *args), span)


def _bind_approx_distinct(node: exp.Expr, scope: Scope) -> Measure:
    refuse_other_args(node, "this")
    return _bind_count_distinct(exp.Distinct(expressions=[node.this]), scope)


def _bind_count_if(node: exp.Expr, scope: Scope) -> Measure:
    refuse_other_args(node, "this")
    return CountValues(_one_where_true(bind_condition(node.this, scope)), span_of(node))


def _to_comparable(arg: Expr) -> Expr:
    """NaN and infinities are no values, and -0.0 is 0.0: which of the two is kept must not depend on rows."""
    return Call("finite", (arg,), DOUBLE) if arg.type.is_float else arg


# --- sums ------------------------------------------------------------------------------------------------------------


def _bind_sum(node: exp.Expr, scope: Scope) -> Measure:
    return _bind_sum_or_mean(node, node.this, scope, "sum")


def _bind_mean(node: exp.Expr, scope: Scope) -> Measure:
    return _bind_sum_or_mean(
        node, _require_one_argument(node) if isinstance(node, exp.Anonymous) else node.this, scope, "mean"
    )


def _bind_sum_or_mean(node: exp.Expr, arg: exp.Expr, scope: Scope, function: typing.Literal["sum", "mean"]) -> Measure:
    if not isinstance(node, exp.Anonymous):
        refuse_other_args(node, "this")
    span = span_of(node)
    if isinstance(arg, exp.Distinct):
        refuse_other_args(arg, "expressions")
        if len(arg.expressions) != 1:
            raise TypeMismatch(f"{sql_name_of(node)} takes one number", span=span)
        number = _to_comparable(_bind_number(arg.expressions[0], scope, sql_name_of(node)))
        return DistinctValues(function, (number,), span, _sql_text_of(arg.expressions[0]))
    number = _bind_number(arg, scope, sql_name_of(node), spans=True)
    return (SumValues if function == "sum" else MeanValues)(number, span, _sql_text_of(arg))


def _variance_binder(sample: bool, root: bool) -> Callable[[exp.Expr, Scope], Measure]:
    def bind(node: exp.Expr, scope: Scope) -> Measure:
        refuse_other_args(node, "this")
        return VarianceValues(
            _bind_number(node.this, scope, sql_name_of(node)), sample, root, span_of(node), _sql_text_of(node.this)
        )

    return bind


def _pair_binder(function: PairFunction) -> Callable[[exp.Expr, Scope], Measure]:
    def bind(node: exp.Expr, scope: Scope) -> Measure:
        refuse_other_args(node, "this", "expression")
        y, x = (_bind_number(part, scope, sql_name_of(node)) for part in (node.this, node.expression))
        return PairValues(function, y, x, span_of(node), (_sql_text_of(node.this), _sql_text_of(node.expression)))

    return bind


def _truth_binder(every: bool) -> Callable[[exp.Expr, Scope], Measure]:
    def bind(node: exp.Expr, scope: Scope) -> Measure:
        arg = _require_one_argument(node)
        return Truth(Cast(bind_condition(arg, scope), INTEGER), every, span_of(node), _sql_text_of(arg))

    return bind


def _require_one_argument(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Anonymous):
        refuse_other_args(node, "this")
        return node.this  # type: ignore[no-any-return]
    if len(node.expressions) != 1:
        raise TypeMismatch(f"{sql_name_of(node)} takes one argument", span=span_of(node))
    return node.expressions[0]  # type: ignore[no-any-return]


def _bind_number(node: exp.Expr | None, scope: Scope, what: str, spans: bool = False) -> Expr:
    """`spans`: an interval will do, as its seconds."""
    if node is None:
        raise TypeMismatch(f"{what} needs an argument")
    if isinstance(node, exp.Distinct | exp.Order):
        word = "DISTINCT" if isinstance(node, exp.Distinct) else "ORDER BY"
        raise Unsupported(f"{word} within {what} is not supported", hint="Leave it out.", span=span_of(node))
    arg = bind_expr(node, scope)
    if isinstance(arg, Literal):
        arg = coerce_number_literal(arg, node)
    if arg.type.is_microsecond_interval and spans:
        return interval_to_seconds(arg, node)
    if not arg.type.is_number:
        raise TypeMismatch(f"{what} needs numbers, not {arg.type}", hint=_number_hint(arg.type, node, what),
                           span=span_of(node))  # fmt: skip
    return narrow_integer(arg) if arg.type == HUGEINT else arg


def _number_hint(type_: Type, node: exp.Expr, what: str) -> str | None:
    function, text = what.removesuffix("()"), _sql_text_of(node)
    if type_.is_microsecond_interval:
        return f"{function}(EXTRACT(epoch FROM {text})) is in seconds."
    if type_ == BOOLEAN:
        return f"COUNT(*) FILTER (WHERE {text}) counts the rows where it is true."
    if type_.is_time:
        return f"MEDIAN({text}), MIN({text}) and MAX({text}) are for dates; COUNT({text}) counts them."
    if type_ == TEXT:
        return f"COUNT({text}) counts them, COUNT(DISTINCT {text}) how many different ones there are."
    return f"COUNT({text}) counts them."


def is_interval_aggregate(node: exp.Expr, scope: Scope) -> bool:
    """Whether an aggregate of this node's is an interval: a sum, mean, end or quantile of intervals."""
    match node:
        case exp.Filter():
            return is_interval_aggregate(node.this, scope)
        case exp.WithinGroup():
            arg = node.expression.expressions[0].this
        case exp.Sum() | exp.Avg() | exp.Min() | exp.Max() | exp.Median() | exp.Quantile() | exp.ApproxQuantile():
            arg = node.this
        case exp.Anonymous() if node.expressions and _function_name_of(node) in (
            "mean",
            "quantile_cont",
            "quantile_disc",
        ):
            arg = node.expressions[0]
        case _:
            return False
    return not isinstance(arg, exp.Distinct) and bind_expr(arg, scope).type.is_microsecond_interval


def _sql_text_of(node: exp.Expr) -> str:
    return str(node.sql(dialect="postgres"))


# --- FILTER ----------------------------------------------------------------------------------------------------------


def _filter_measure(measure: Measure, condition: Expr, node: exp.Expr) -> Measure:
    """FILTER (WHERE c): the argument where c holds, NULL elsewhere, which no aggregate counts."""
    span = span_of(node)

    def null_unless_met(arg: Expr) -> Expr:
        return Case(((condition, arg),), Literal(None, arg.type), arg.type)

    match measure:
        case CountRows():
            return CountValues(_one_where_true(condition), span)
        case CountDistinctUnits():
            return replace(measure, where=condition, span=span)
        case DistinctValues(_, args):
            return replace(measure, args=(null_unless_met(args[0]), *args[1:]), span=span)
        case PairValues():
            return replace(measure, y=null_unless_met(measure.y), span=span)
        case CountValues() | SumValues() | MeanValues() | VarianceValues() | Truth() | ConjugatePosterior():
            return replace(measure, arg=null_unless_met(measure.arg), span=span)
        case Quantile() | Extreme() | Frequent() | Best() | Posterior() | SharesPosterior():
            return replace(measure, arg=null_unless_met(measure.arg), span=span)
        case Blockwise():
            return blockwise.filter_blockwise(measure, null_unless_met)
        case _:
            assert_never(measure)


def _one_where_true(condition: Expr) -> Expr:
    return Case(((condition, Literal(1, BIGINT)),), Literal(None, BIGINT), BIGINT)


_BINDERS: dict[type[exp.Expr], Callable[[exp.Expr, Scope], Measure]] = {
    exp.Count: _bind_count,
    exp.CountIf: _bind_count_if,
    exp.ApproxDistinct: _bind_approx_distinct,
    exp.Sum: _bind_sum,
    exp.Avg: _bind_mean,
    exp.VariancePop: _variance_binder(sample=False, root=False),
    exp.Variance: _variance_binder(sample=True, root=False),
    exp.StddevPop: _variance_binder(sample=False, root=True),
    exp.StddevSamp: _variance_binder(sample=True, root=True),
    exp.Stddev: _variance_binder(sample=True, root=True),
    exp.CovarPop: _pair_binder(PairFunction.COVAR_POP),
    exp.CovarSamp: _pair_binder(PairFunction.COVAR_SAMP),
    exp.Corr: _pair_binder(PairFunction.CORR),
    exp.RegrSlope: _pair_binder(PairFunction.SLOPE),
    exp.RegrIntercept: _pair_binder(PairFunction.INTERCEPT),
    exp.RegrR2: _pair_binder(PairFunction.R2),
    exp.RegrCount: _pair_binder(PairFunction.COUNT),
    exp.RegrAvgx: _pair_binder(PairFunction.AVGX),
    exp.RegrAvgy: _pair_binder(PairFunction.AVGY),
    exp.RegrSxx: _pair_binder(PairFunction.SXX),
    exp.RegrSyy: _pair_binder(PairFunction.SYY),
    exp.RegrSxy: _pair_binder(PairFunction.SXY),
    exp.LogicalAnd: _truth_binder(every=True),
    exp.LogicalOr: _truth_binder(every=False),
}
_SELECTION_BINDERS: dict[type[exp.Expr], Callable[[exp.Expr, Scope], Measure]] = dict.fromkeys(
    SELECTION_NODES, bind_selection
)
_NAMED_BINDERS: dict[str, Callable[[exp.Expr, Scope], Measure]] = {
    "every": _truth_binder(every=True),
    "mean": _bind_mean,
    blockwise.BLOCKWISE_NAME: _bind_blockwise,
    **dict.fromkeys(POSTERIOR_FUNCTIONS, bind_posterior),
    **dict.fromkeys(NAMED_SELECTIONS, bind_selection),
    **dict.fromkeys(SCORED_FUNCTIONS, _bind_scored),
}
