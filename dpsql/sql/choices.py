"""Aggregates that choose a value of a column: quantiles, ends, and the most frequent ones."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from dpsql.errors import InvalidParameter, TypeMismatch, Unsupported
from dpsql.plan.expr import Expr
from dpsql.plan.measures import Extreme, Frequent, Measure, Quantile
from dpsql.sql.bind_expr import bind_expr
from dpsql.sql.bind_span import interval_to_seconds
from dpsql.sql.coerce import coerce_number_literal
from dpsql.sql.dialect import refuse_other_args, span_of, sql_name_of
from dpsql.sql.names import Scope
from dpsql.sql.numerals import parse_exact_number
from dpsql.types import BOOLEAN

MAX_FRACTIONS, MAX_TOP_VALUES = 100, 1_000
"""Of one aggregate: each fraction is a charge of its own."""

NAMED_SELECTIONS = frozenset({"quantile_cont", "quantile_disc", "histogram"})
_SELECTION_NODES = (
    exp.Median, exp.Quantile, exp.ApproxQuantile, exp.Min, exp.Max, exp.Mode, exp.ApproxTopK, exp.PercentileCont,
    exp.PercentileDisc,
)  # fmt: skip


def is_selection(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in NAMED_SELECTIONS
    return isinstance(node, _SELECTION_NODES)


def bind_selection(node: exp.Expr, scope: Scope) -> Measure:
    match node:
        case exp.Anonymous():
            return _bind_named_selection(node, scope)
        case exp.Median():
            refuse_other_args(node, "this")
            return _bind_quantile(node, node.this, exp.Literal.number("0.5"), scope, discrete=False)
        case exp.Quantile() | exp.ApproxQuantile():
            refuse_other_args(node, "this", "quantile")
            return _bind_quantile(node, node.this, node.args.get("quantile"), scope, discrete=True)
        case exp.Min() | exp.Max():
            refuse_other_args(node, "this")
            arg = _bind_ordered_argument(node.this, scope, node)
            return Extreme(arg, isinstance(node, exp.Max), span_of(node), _selection_text(node.this))
        case exp.Mode():
            refuse_other_args(node, "this")
            return _bind_frequent(node, node.this, None, "mode", scope)
        case exp.ApproxTopK():
            refuse_other_args(node, "this", "expression")
            return _bind_frequent(node, node.this, _read_top_count(node.args.get("expression"), node), "top", scope)
        case _:
            raise Unsupported(f"{sql_name_of(node)} needs WITHIN GROUP (ORDER BY …)",
                              hint=f"For example: {sql_name_of(node)[:-2]}(0.5) WITHIN GROUP (ORDER BY cost).",
                              span=span_of(node))  # fmt: skip


def bind_within_group(node: exp.WithinGroup, scope: Scope) -> Measure:
    """PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x DESC): of a falling order, 0.9 is 0.1 of a rising one."""
    refuse_other_args(node, "this", "expression")
    function, order = node.this, node.expression
    refuse_other_args(order, "expressions")
    if len(order.expressions) != 1:
        raise Unsupported("WITHIN GROUP takes one ORDER BY expression", span=span_of(order))
    ordered = order.expressions[0]
    refuse_other_args(ordered, "this", "desc", "nulls_first")
    match function:
        case exp.PercentileCont() | exp.PercentileDisc():
            refuse_other_args(function, "this")
            discrete = isinstance(function, exp.PercentileDisc)
            return _bind_quantile(node, ordered.this, function.this, scope, discrete, bool(ordered.args.get("desc")))
        case exp.Mode():
            refuse_other_args(function)
            return _bind_frequent(node, ordered.this, None, "mode", scope)
        case _:
            raise Unsupported(f"{sql_name_of(function)} takes no WITHIN GROUP", hint="Leave it out.", span=span_of(node))


def _bind_named_selection(node: exp.Anonymous, scope: Scope) -> Measure:
    name, args = str(node.this).lower(), node.expressions
    takes = 1 if name == "histogram" else 2
    if len(args) != takes:
        example = "HISTOGRAM(ward)" if takes == 1 else f"{name.upper()}(cost, 0.5)"
        raise Unsupported(f"{sql_name_of(node)} takes {'one argument' if takes == 1 else 'two arguments'}",
                          hint=f"For example: {example}.", span=span_of(node))  # fmt: skip
    if name == "histogram":
        return _bind_frequent(node, args[0], None, "histogram", scope)
    return _bind_quantile(node, args[0], args[1], scope, discrete=name == "quantile_disc")


def _bind_quantile(
    node: exp.Expr, arg: exp.Expr, fraction_node: exp.Expr | None, scope: Scope, discrete: bool, falling: bool = False
) -> Measure:
    bound = _bind_ordered_argument(arg, scope, node)
    is_list = isinstance(fraction_node, exp.Array)
    if is_list and bind_expr(arg, scope).type.is_microsecond_interval:
        raise Unsupported("a list of intervals is not supported",
                          hint=f"EXTRACT(epoch FROM {_selection_text(arg)}) is in seconds.", span=span_of(node))  # fmt: skip
    fractions = tuple(_read_fraction(part, node) for part in (fraction_node.expressions if isinstance(fraction_node, exp.Array) else [fraction_node]))
    if not 1 <= len(fractions) <= MAX_FRACTIONS:
        raise InvalidParameter(f"there must be 1 to {MAX_FRACTIONS} fractions", span=span_of(node))
    if falling:
        fractions = tuple(1 - fraction for fraction in fractions)
    return Quantile(bound, fractions, discrete, is_list, span_of(node), _selection_text(arg))


def _read_fraction(node: exp.Expr | None, whole: exp.Expr) -> Fraction:
    number = None
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        number = parse_exact_number(str(node.this), span_of(node))
    if number is None or not 0 <= number <= 1:
        raise InvalidParameter(
            "a fraction must be a literal between 0 and 1", hint="For example: QUANTILE_CONT(cost, 0.9).",
            span=span_of(whole if node is None else node) or span_of(whole),
        )  # fmt: skip
    return number


def _read_top_count(node: exp.Expr | None, whole: exp.Expr) -> int:
    if node is None:
        return 5  # as other engines have it
    number = str(node.this) if isinstance(node, exp.Literal) and not node.args.get("is_string") else ""
    if not number.isdigit() or not 1 <= int(number) <= MAX_TOP_VALUES:
        raise InvalidParameter(f"the number of values must be a literal between 1 and {MAX_TOP_VALUES}",
                               span=span_of(node) or span_of(whole))  # fmt: skip
    return int(number)


def _bind_frequent(node: exp.Expr, arg: exp.Expr | None, max_values: int | None, shape: str, scope: Scope) -> Measure:
    if arg is None:
        raise TypeMismatch(f"{sql_name_of(node)} takes one argument", hint="For example: MODE(ward).", span=span_of(node))
    bound = _bind_selection_argument(arg, scope, node)
    if bound.type.is_microsecond_interval:
        raise Unsupported(f"{sql_name_of(node)} of an interval is not supported",
                          hint=f"EXTRACT(day FROM {_selection_text(arg)}) gives whole days.", span=span_of(node))  # fmt: skip
    span, text = span_of(node), _selection_text(arg)
    if max_values is not None:
        return Frequent(bound, max_values, "top", span, text)
    return Frequent(bound, None, "histogram" if shape == "histogram" else "mode", span, text)


def _bind_ordered_argument(arg: exp.Expr, scope: Scope, node: exp.Expr) -> Expr:
    """An argument that has an order on which values between two of them make sense."""
    bound = coerce_number_literal(_bind_selection_argument(arg, scope, node), arg)
    if bound.type.is_microsecond_interval:
        return interval_to_seconds(bound, arg)
    if bound.type.is_number or bound.type.is_time:
        return bound
    if bound.type == BOOLEAN:
        hint = "BOOL_AND(x) and BOOL_OR(x) are the least and the greatest of truth values."
    else:
        hint = f"MODE({_selection_text(arg)}) gives its most frequent value; COUNT(*) with GROUP BY lists its values."
    raise Unsupported(f"{sql_name_of(node)} is for numbers, dates and timestamps, not {bound.type}", hint=hint,
                      span=span_of(arg) or span_of(node))  # fmt: skip


def _bind_selection_argument(arg: exp.Expr, scope: Scope, node: exp.Expr) -> Expr:
    if isinstance(arg, exp.Distinct | exp.Order):
        word = "DISTINCT" if isinstance(arg, exp.Distinct) else "ORDER BY"
        raise Unsupported(f"{word} within {sql_name_of(node)} is not supported", hint="Leave it out.", span=span_of(arg))
    return bind_expr(arg, scope)


def _selection_text(node: exp.Expr) -> str:
    return str(node.sql(dialect="postgres"))
