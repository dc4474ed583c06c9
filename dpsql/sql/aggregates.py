"""Aggregate functions of the statement to measures of the plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal as One
from typing import assert_never

from sqlglot import exp

from dpsql.errors import TypeMismatch, Unsupported
from dpsql.plan.expr import And, Call, Case, Cast, Expr, IsNull, Literal, Not
from dpsql.plan.measures import (
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
from dpsql.sql import blockwise
from dpsql.sql.bind_expr import bind_condition, bind_expr
from dpsql.sql.bind_span import seconds
from dpsql.sql.choices import NAMED_CHOICES, bind_choice, bind_within_group, is_choice
from dpsql.sql.coerce import number_literal
from dpsql.sql.dialect import only, span_of, spelled
from dpsql.sql.names import Scope
from dpsql.sql.posteriors import POSTERIORS, bind_posterior
from dpsql.sql.scores import SCORED, bind_scored
from dpsql.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, TEXT, TIMESTAMP, Type, sum_type

ANSWERED = (
    "COUNT, SUM, AVG, also with DISTINCT, COUNT_IF, MIN, MAX, MEDIAN, PERCENTILE_CONT, MODE, HISTOGRAM, VAR_POP, "
    "VAR_SAMP, STDDEV_POP, STDDEV_SAMP, COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE and its like, BOOL_AND, BOOL_OR, "
    "BETA_POSTERIOR, NORMAL_POSTERIOR, DIRICHLET_POSTERIOR"
)
_WINDOW_ONLY = (exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead, exp.Rank, exp.DenseRank, exp.Ntile,
                exp.Grouping)  # fmt: skip
_SHOWN = frozenset({"arbitrary", "first", "last"})
_LISTED = frozenset({"list", "listagg"})
_NAMED = (
    frozenset({"every", "mean", blockwise.NAME}) | NAMED_CHOICES | SCORED | POSTERIORS | _SHOWN | _LISTED
    | blockwise.ONLY_HERE
)
"""Aggregates that sqlglot takes for functions that it does not know."""


def is_aggregate(node: exp.Expr) -> bool:
    """Aggregates of the statement; a windowed function is none, though its arguments may hold some."""
    if isinstance(node, exp.Filter | exp.WithinGroup):
        return True
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _NAMED
    return isinstance(node, exp.AggFunc | exp.List) and not isinstance(node, _WINDOW_ONLY)


def holds_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate of this block is in the expression; sub-selects are blocks of their own."""
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    if isinstance(node, exp.Window):
        parts = [child for key, child in _children(node) if key != "this"]
        parts += [child for _, child in _children(node.this)]
        return any(holds_aggregate(part) for part in parts)
    return is_aggregate(node) or any(holds_aggregate(child) for _, child in _children(node))


def _children(node: exp.Expr) -> list[tuple[str, exp.Expr]]:
    result: list[tuple[str, exp.Expr]] = []
    for key, value in node.args.items():
        values = value if isinstance(value, list) else [value]
        result += [(key, item) for item in values if isinstance(item, exp.Expr)]
    return result


def bind_measure(node: exp.Expr, scope: Scope) -> Measure:
    if isinstance(node, exp.Filter):
        only(node, "this", "expression")
        only(node.expression, "this")
        return _filtered(bind_measure(node.this, scope), bind_condition(node.expression.this, scope), node)
    if isinstance(node, exp.WithinGroup):
        return bind_within_group(node, scope)
    if is_choice(node):
        return bind_choice(node, scope)
    if blockwise.is_blockwise(node):
        return blockwise.bind_blockwise(node, scope, is_aggregate)
    if _name(node) in SCORED:
        return bind_scored(node, scope, bind_score)
    binder = _BINDERS.get(type(node)) or _NAMED_BINDERS.get(_name(node))
    if binder is None:
        raise _refused(node)
    return binder(node, scope)


def bind_score(node: exp.Expr, scope: Scope) -> Measure | None:
    """What candidates are compared by: an aggregate, or the sum of a plain expression; None where it is neither."""
    if is_aggregate(node):
        return bind_measure(node, scope)
    return None if holds_aggregate(node) else bind_measure(exp.Sum(this=node), scope)


def _name(node: exp.Expr) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def _refused(node: exp.Expr) -> Unsupported:
    span, what = span_of(node), spelled(node)
    if isinstance(node, exp.AnyValue | exp.First | exp.Last | exp.ArgMax | exp.ArgMin) or _name(node) in _SHOWN:
        hint = "MODE(x) gives the most frequent value, MIN(x) and MAX(x) the ends."
        return Unsupported(f"{what} would show the value of one row", hint=hint, span=span)
    if isinstance(node, exp.GroupConcat | exp.ArrayAgg | exp.List | exp.JSONArrayAgg) or _name(node) in _LISTED:
        hint = "COUNT(*) with GROUP BY x, or HISTOGRAM(x), counts how often each value is there."
        return Unsupported(f"{what} would show the values of all rows", hint=hint, span=span)
    hint = blockwise.instead(node) or f"These are: {ANSWERED}."
    return Unsupported(f"{what} is not supported yet", hint=hint, span=span)


def measure_type(measure: Measure) -> Type:
    """Of one answer; where the answer is a list or a map (`container_of`), of the values in it."""
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


def _count(node: exp.Expr, scope: Scope) -> Measure:
    only(node, "this")
    span = span_of(node)
    arg = node.this
    if arg is None or isinstance(arg, exp.Star):
        if arg is not None:
            only(arg)
        return CountRows(span)
    if isinstance(arg, exp.Distinct):
        return _count_distinct(arg, scope)
    if isinstance(arg, exp.Order):
        raise Unsupported("ORDER BY within COUNT() changes nothing", hint="Leave it out.", span=span_of(arg))
    bound = bind_expr(arg, scope)
    if isinstance(bound, Literal) and bound.value is not None:
        return CountRows(span)
    return CountValues(bound, span)


def _count_distinct(node: exp.Distinct, scope: Scope) -> Measure:
    """COUNT(DISTINCT (a, b)) counts pairs, NULL and all; COUNT(DISTINCT a, b) those without NULL, as MySQL does."""
    only(node, "expressions")
    nodes, span = node.expressions, span_of(node)
    if len(nodes) == 1 and isinstance(nodes[0], exp.Column) and scope.resolve(nodes[0]).is_unit:
        return CountDistinctUnits(None, span)
    if len(nodes) == 1 and isinstance(nodes[0], exp.Tuple):
        only(nodes[0], "expressions")
        args = tuple(_comparable(bind_expr(part, scope)) for part in nodes[0].expressions)
        return DistinctValues("count", (Literal(1, BIGINT), *args), span)
    args = tuple(_comparable(bind_expr(part, scope)) for part in nodes)
    if len(args) == 1:
        return DistinctValues("count", args, span, _text(nodes[0]))
    return DistinctValues("count", (_one_where(And(tuple(Not(IsNull(arg)) for arg in args))), *args), span)


def _approx_distinct(node: exp.Expr, scope: Scope) -> Measure:
    only(node, "this")
    return _count_distinct(exp.Distinct(expressions=[node.this]), scope)


def _count_if(node: exp.Expr, scope: Scope) -> Measure:
    only(node, "this")
    return CountValues(_one_where(bind_condition(node.this, scope)), span_of(node))


def _comparable(arg: Expr) -> Expr:
    """NaN and infinities are no values, and -0.0 is 0.0: which of the two is kept must not depend on rows."""
    return Call("finite", (arg,), DOUBLE) if arg.type.is_float else arg


# --- sums ------------------------------------------------------------------------------------------------------------


def _sum(node: exp.Expr, scope: Scope) -> Measure:
    return _summed(node, node.this, scope, "sum")


def _mean(node: exp.Expr, scope: Scope) -> Measure:
    return _summed(node, _only_argument(node) if isinstance(node, exp.Anonymous) else node.this, scope, "mean")


def _summed(node: exp.Expr, arg: exp.Expr, scope: Scope, function: One["sum", "mean"]) -> Measure:
    if not isinstance(node, exp.Anonymous):
        only(node, "this")
    span = span_of(node)
    if isinstance(arg, exp.Distinct):
        only(arg, "expressions")
        if len(arg.expressions) != 1:
            raise TypeMismatch(f"{spelled(node)} takes one number", span=span)
        number = _comparable(_number(arg.expressions[0], scope, spelled(node)))
        return DistinctValues(function, (number,), span, _text(arg.expressions[0]))
    number = _number(arg, scope, spelled(node), spans=True)
    return (SumValues if function == "sum" else MeanValues)(number, span, _text(arg))


def _variance(sample: bool, root: bool) -> Callable[[exp.Expr, Scope], Measure]:
    def bind(node: exp.Expr, scope: Scope) -> Measure:
        only(node, "this")
        return VarianceValues(_number(node.this, scope, spelled(node)), sample, root, span_of(node), _text(node.this))

    return bind


def _pair(function: PairFunction) -> Callable[[exp.Expr, Scope], Measure]:
    def bind(node: exp.Expr, scope: Scope) -> Measure:
        only(node, "this", "expression")
        y, x = (_number(part, scope, spelled(node)) for part in (node.this, node.expression))
        return PairValues(function, y, x, span_of(node), (_text(node.this), _text(node.expression)))

    return bind


def _truth(every: bool) -> Callable[[exp.Expr, Scope], Measure]:
    def bind(node: exp.Expr, scope: Scope) -> Measure:
        arg = _only_argument(node)
        return Truth(Cast(bind_condition(arg, scope), INTEGER), every, span_of(node), _text(arg))

    return bind


def _only_argument(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Anonymous):
        only(node, "this")
        return node.this  # type: ignore[no-any-return]
    if len(node.expressions) != 1:
        raise TypeMismatch(f"{spelled(node)} takes one argument", span=span_of(node))
    return node.expressions[0]  # type: ignore[no-any-return]


def _number(node: exp.Expr | None, scope: Scope, what: str, spans: bool = False) -> Expr:
    """`spans`: an interval will do, as its seconds."""
    if node is None:
        raise TypeMismatch(f"{what} needs an argument")
    if isinstance(node, exp.Distinct | exp.Order):
        word = "DISTINCT" if isinstance(node, exp.Distinct) else "ORDER BY"
        raise Unsupported(f"{word} within {what} is not supported", hint="Leave it out.", span=span_of(node))
    arg = number_literal(bind_expr(node, scope), node)
    if arg.type.is_span and spans:
        return seconds(arg, node)
    if not arg.type.is_number:
        raise TypeMismatch(f"{what} needs numbers, not {arg.type}", hint=_instead(arg.type, node, what),
                           span=span_of(node))  # fmt: skip
    return arg


def _instead(type_: Type, node: exp.Expr, what: str) -> str | None:
    function, text = what.removesuffix("()"), _text(node)
    if type_.is_span:
        return f"{function}(EXTRACT(epoch FROM {text})) is in seconds."
    if type_ == BOOLEAN:
        return f"COUNT(*) FILTER (WHERE {text}) counts the rows where it is true."
    if type_.is_time:
        return f"MEDIAN({text}), MIN({text}) and MAX({text}) are for dates; COUNT({text}) counts them."
    if type_ == TEXT:
        return f"COUNT({text}) counts them, COUNT(DISTINCT {text}) how many different ones there are."
    return f"COUNT({text}) counts them."


def gives_interval(node: exp.Expr, scope: Scope) -> bool:
    """Whether an aggregate of this node's is an interval: a sum, mean, end or quantile of intervals."""
    match node:
        case exp.Filter():
            return gives_interval(node.this, scope)
        case exp.WithinGroup():
            arg = node.expression.expressions[0].this
        case exp.Sum() | exp.Avg() | exp.Min() | exp.Max() | exp.Median() | exp.Quantile() | exp.ApproxQuantile():
            arg = node.this
        case exp.Anonymous() if node.expressions and _name(node) in ("mean", "quantile_cont", "quantile_disc"):
            arg = node.expressions[0]
        case _:
            return False
    return not isinstance(arg, exp.Distinct) and bind_expr(arg, scope).type.is_span


def _text(node: exp.Expr) -> str:
    return str(node.sql(dialect="postgres"))


# --- FILTER ----------------------------------------------------------------------------------------------------------


def _filtered(measure: Measure, condition: Expr, node: exp.Expr) -> Measure:
    """FILTER (WHERE c): the argument where c holds, NULL elsewhere, which no aggregate counts."""
    span = span_of(node)

    def where(arg: Expr) -> Expr:
        return Case(((condition, arg),), Literal(None, arg.type), arg.type)

    match measure:
        case CountRows():
            return CountValues(_one_where(condition), span)
        case CountDistinctUnits():
            return replace(measure, where=condition, span=span)
        case DistinctValues(_, args):
            return replace(measure, args=(where(args[0]), *args[1:]), span=span)
        case PairValues():
            return replace(measure, y=where(measure.y), span=span)
        case CountValues() | SumValues() | MeanValues() | VarianceValues() | Truth() | ConjugatePosterior():
            return replace(measure, arg=where(measure.arg), span=span)
        case Quantile() | Extreme() | Frequent() | Best() | Posterior() | SharesPosterior():
            return replace(measure, arg=where(measure.arg), span=span)
        case Blockwise():
            return blockwise.filtered(measure, where)
        case _:
            assert_never(measure)


def _one_where(condition: Expr) -> Expr:
    return Case(((condition, Literal(1, BIGINT)),), Literal(None, BIGINT), BIGINT)


_BINDERS: dict[type[exp.Expr], Callable[[exp.Expr, Scope], Measure]] = {
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.ApproxDistinct: _approx_distinct,
    exp.Sum: _sum,
    exp.Avg: _mean,
    exp.VariancePop: _variance(sample=False, root=False),
    exp.Variance: _variance(sample=True, root=False),
    exp.StddevPop: _variance(sample=False, root=True),
    exp.StddevSamp: _variance(sample=True, root=True),
    exp.Stddev: _variance(sample=True, root=True),
    exp.CovarPop: _pair(PairFunction.COVAR_POP),
    exp.CovarSamp: _pair(PairFunction.COVAR_SAMP),
    exp.Corr: _pair(PairFunction.CORR),
    exp.RegrSlope: _pair(PairFunction.SLOPE),
    exp.RegrIntercept: _pair(PairFunction.INTERCEPT),
    exp.RegrR2: _pair(PairFunction.R2),
    exp.RegrCount: _pair(PairFunction.COUNT),
    exp.RegrAvgx: _pair(PairFunction.AVGX),
    exp.RegrAvgy: _pair(PairFunction.AVGY),
    exp.RegrSxx: _pair(PairFunction.SXX),
    exp.RegrSyy: _pair(PairFunction.SYY),
    exp.RegrSxy: _pair(PairFunction.SXY),
    exp.LogicalAnd: _truth(every=True),
    exp.LogicalOr: _truth(every=False),
}
_NAMED_BINDERS: dict[str, Callable[[exp.Expr, Scope], Measure]] = {
    "every": _truth(every=True), "mean": _mean, **dict.fromkeys(POSTERIORS, bind_posterior)
}  # fmt: skip
