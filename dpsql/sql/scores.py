"""Aggregates that choose by scores: the best values, and draws from a posterior.

    PRIVATE_ARGMAX(ward, COUNT(*))      PRIVATE_TOP_K(ward, SUM(cost), 3)
    POSTERIOR_SAMPLE(readmitted, draws => 10, alpha => 1, beta => 1, truncate => 0.05)
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from dpsql.errors import InvalidParameter, InvalidSyntax, Unsupported
from dpsql.plan.expr import Expr
from dpsql.plan.measures import Best, Measure, Posterior, Score
from dpsql.sql.bind_call import is_named_argument, require_number_between, read_arguments, require_integer_between
from dpsql.sql.bind_expr import bind_expr
from dpsql.sql.dialect import span_of, sql_name_of
from dpsql.sql.names import Scope
from dpsql.sql.posteriors import bind_flag

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
            f"{sql_name_of(node)} compares values by a count or a sum: of a ratio, one privacy unit could move all of it",
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
        raise Unsupported(f"{sql_name_of(node)} of an interval is not supported",
                          hint=f"EXTRACT(day FROM {_argument_sql(arg)}) gives whole days.", span=span_of(node))  # fmt: skip
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
        return require_number_between(name, named[name], minimum, maximum, node, example) if name in named else otherwise

    alpha, beta = (read_number(name, Fraction(1), _THOUSANDTH, MAX_PRIOR) for name in ("alpha", "beta"))
    # Near 0 and 1 a single row would decide the posterior: draws stay away from both.
    first = read_number("truncate", Fraction(1, 20), _THOUSANDTH, _NEARLY_HALF) * THOUSANDTHS
    flag = bind_flag(arg, scope, node, called)
    return Posterior(flag, draws, "draws" in named, -(-first.numerator // first.denominator), alpha, beta,
                     span_of(node), _argument_sql(arg))  # fmt: skip


def _argument_sql(node: exp.Expr) -> str:
    return str(node.sql(dialect="postgres"))
