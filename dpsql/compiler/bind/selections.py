"""Aggregates that choose values: quantiles, MIN and MAX, the most frequent, and the best by a score."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from dpsql.compiler.bind.calls import is_named_argument, read_arguments, require_integer_between, require_number_between
from dpsql.compiler.bind.coercion import coerce_number_literal, narrow_integer
from dpsql.compiler.bind.datetime import interval_to_seconds
from dpsql.compiler.bind.expressions import bind_expr
from dpsql.compiler.bind.posteriors import bind_flag
from dpsql.compiler.bind.scope import Scope
from dpsql.compiler.parse.dialect import refuse_other_args, span_of, sql_name_of
from dpsql.compiler.parse.function_names import unwrap_cast_literal
from dpsql.compiler.parse.literals import parse_exact_number
from dpsql.compiler.plan.expressions import Expr
from dpsql.compiler.plan.measures import Best, Extreme, Frequent, Measure, Posterior, Quantile, Score
from dpsql.errors import InvalidParameter, InvalidSyntax, TypeMismatch, Unsupported
from dpsql.types import BOOLEAN

MAX_FRACTIONS, MAX_TOP_VALUES = 100, 1_000
"""Of one aggregate: each fraction is a charge of its own."""

NAMED_SELECTIONS = frozenset({"quantile_cont", "quantile_disc", "histogram"})
SELECTION_NODES = (
    exp.Median, exp.Quantile, exp.ApproxQuantile, exp.Min, exp.Max, exp.Mode, exp.ApproxTopK, exp.PercentileCont,
    exp.PercentileDisc,
)  # fmt: skip


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
            raise Unsupported(
                f"{sql_name_of(function)} takes no WITHIN GROUP", hint="Leave it out.", span=span_of(node)
            )


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
        raise Unsupported(
            "a list of intervals is not supported",
            hint=f"EXTRACT(epoch FROM {_selection_text(arg)}) is in seconds.",
            span=span_of(node),
        )
    fractions = tuple(
        _read_fraction(part, node)
        for part in (fraction_node.expressions if isinstance(fraction_node, exp.Array) else [fraction_node])
    )
    if not 1 <= len(fractions) <= MAX_FRACTIONS:
        raise InvalidParameter(f"there must be 1 to {MAX_FRACTIONS} fractions", span=span_of(node))
    if falling:
        fractions = tuple(1 - fraction for fraction in fractions)
    return Quantile(bound, fractions, discrete, is_list, span_of(node), _selection_text(arg))


def _read_fraction(node: exp.Expr | None, whole: exp.Expr) -> Fraction:
    number = None
    if node is not None:
        node = unwrap_cast_literal(node, exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL)
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
        raise TypeMismatch(
            f"{sql_name_of(node)} takes one argument", hint="For example: MODE(ward).", span=span_of(node)
        )
    bound = _bind_selection_argument(arg, scope, node)
    if bound.type.is_microsecond_interval:
        raise Unsupported(
            f"{sql_name_of(node)} of an interval is not supported",
            hint=f"EXTRACT(day FROM {_selection_text(arg)}) gives whole days.",
            span=span_of(node),
        )
    span, text = span_of(node), _selection_text(arg)
    if max_values is not None:
        return Frequent(bound, max_values, "top", span, text)
    return Frequent(bound, None, "histogram" if shape == "histogram" else "mode", span, text)


def _bind_ordered_argument(arg: exp.Expr, scope: Scope, node: exp.Expr) -> Expr:
    """An argument that has an order on which values between two of them make sense."""
    bound = narrow_integer(coerce_number_literal(_bind_selection_argument(arg, scope, node), arg))
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
        raise Unsupported(
            f"{word} within {sql_name_of(node)} is not supported", hint="Leave it out.", span=span_of(arg)
        )
    return bind_expr(arg, scope)


def _selection_text(node: exp.Expr) -> str:
    return str(node.sql(dialect="postgres"))


# Aggregates that choose by scores: the best values, and draws from a posterior.
#
#     PRIVATE_ARGMAX(ward, COUNT(*))      PRIVATE_TOP_K(ward, SUM(cost), 3)
#     POSTERIOR_SAMPLE(readmitted, draws => 10, alpha => 1, beta => 1, truncate => 0.05)

SCORED_FUNCTIONS = frozenset({"private_argmax", "private_top_k", "posterior_sample"})

MAX_TOP_K = 100
MAX_DRAWS = 1_000
"""Of one aggregate: each is a charge of its own."""
THOUSANDTHS = 1_000
_THOUSANDTH, _NEARLY_HALF = Fraction(1, THOUSANDTHS), Fraction(499, THOUSANDTHS)
MAX_PRIOR = Fraction(1_000_000)

_EXAMPLES = {
    "private_argmax": "PRIVATE_ARGMAX(ward, COUNT(*))",
    "private_top_k": "PRIVATE_TOP_K(ward, SUM(cost), 3)",
    "posterior_sample": "POSTERIOR_SAMPLE(urgent, draws => 10, truncate => 0.05)",
}

BindScore = Callable[[exp.Expr, Scope], Measure | None]


def bind_scored_aggregate(node: exp.Expr, scope: Scope, bind_score: BindScore) -> Measure:
    name, args = str(node.this).lower(), list(node.expressions)
    if name == "posterior_sample":
        return _bind_posterior_sample(node, scope)
    takes = 2 if name == "private_argmax" else 3
    if len(args) != takes or any(map(is_named_argument, args)):
        raise _wrong_arguments_error(node, f"takes {'two' if takes == 2 else 'three'} arguments")
    value, score = _bind_candidate(args[0], scope, node), bind_score(args[1], scope)
    if not isinstance(score, Score):
        raise Unsupported(
            f"{sql_name_of(node)} compares values by a count or a sum: "
            "of a ratio, one privacy unit could move all of it",
            hint="Compare by COUNT(*), COUNT(DISTINCT unit) or SUM(x), or ask for the averages with GROUP BY.",
            span=span_of(args[1]) or span_of(node),
        )
    max_values = 1 if takes == 2 else _read_count_literal(args[2], node, MAX_TOP_K)
    return Best(value, score, max_values, takes == 3, span_of(node), _argument_sql(args[0]))


def _bind_candidate(arg: exp.Expr, scope: Scope, node: exp.Expr) -> Expr:
    if isinstance(arg, exp.Distinct | exp.Order):
        raise _wrong_arguments_error(node, "takes a plain expression first")
    bound = bind_expr(arg, scope)
    if bound.type.is_microsecond_interval:
        raise Unsupported(
            f"{sql_name_of(node)} of an interval is not supported",
            hint=f"EXTRACT(day FROM {_argument_sql(arg)}) gives whole days.",
            span=span_of(node),
        )
    return bound


def _read_count_literal(arg: exp.Expr, node: exp.Expr, maximum: int) -> int:
    number = str(arg.this) if isinstance(arg, exp.Literal) and not arg.args.get("is_string") else ""
    if not number.isdigit() or not 1 <= int(number) <= maximum:
        raise InvalidParameter(f"a number in {sql_name_of(node)} must be a literal between 1 and {maximum}",
                               hint=f"For example: {_EXAMPLES[str(node.this).lower()]}.",
                               span=span_of(arg) or span_of(node))  # fmt: skip
    return int(number)


def _wrong_arguments_error(node: exp.Expr, what: str) -> InvalidSyntax:
    example = _EXAMPLES[str(node.this).lower()]
    return InvalidSyntax(f"{sql_name_of(node)} {what}", hint=f"For example: {example}.", span=span_of(node))


# --- posteriors ------------------------------------------------------------------------------------------------------


def _bind_posterior_sample(node: exp.Expr, scope: Scope) -> Posterior:
    called, example = "POSTERIOR_SAMPLE", _EXAMPLES["posterior_sample"]
    (arg,), named = read_arguments(node, called, 1, ("draws", "alpha", "beta", "truncate"), example)
    draws = require_integer_between("draws", named["draws"], 1, MAX_DRAWS, node, example) if "draws" in named else 1

    def read_number(name: str, otherwise: Fraction, minimum: Fraction, maximum: Fraction) -> Fraction:
        return (
            require_number_between(name, named[name], minimum, maximum, node, example) if name in named else otherwise
        )

    alpha, beta = (read_number(name, Fraction(1), _THOUSANDTH, MAX_PRIOR) for name in ("alpha", "beta"))
    # Near 0 and 1 a single row would decide the posterior: draws stay away from both.
    first = read_number("truncate", Fraction(1, 20), _THOUSANDTH, _NEARLY_HALF) * THOUSANDTHS
    flag = bind_flag(arg, scope, node, called)
    return Posterior(flag, draws, "draws" in named, -(-first.numerator // first.denominator), alpha, beta,
                     span_of(node), _argument_sql(arg))  # fmt: skip


def _argument_sql(node: exp.Expr) -> str:
    return str(node.sql(dialect="postgres"))
