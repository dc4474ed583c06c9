"""BLOCKWISE(statistic, lower, upper, blocks => 100, combine => 'mean') to a measure of the plan.

The statistic is an expression over aggregates that are exact for a bag of rows (`plan/measures.py`): each is bound to
one of them, and the expression around them as any expression of doubles, in the forms that cannot raise.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import get_args

from sqlglot import exp

from dpsql.compiler.bind.calls import read_arguments, read_number_literal, require_integer_between
from dpsql.compiler.bind.coercion import coerce_number_literal, narrow_integer, null_unless
from dpsql.compiler.bind.expressions import bind_condition, bind_expr
from dpsql.compiler.bind.scope import BoundColumn, Scope, SourceScope
from dpsql.compiler.parse.dialect import refuse_other_args, span_of, sql_name_of
from dpsql.compiler.parse.literals import parse_exact_number
from dpsql.compiler.plan.expressions import Column, Expr, Literal
from dpsql.compiler.plan.measures import MAX_BLOCKS, BlockAggregate, BlockFunction, Blockwise, Statistic
from dpsql.errors import GroupingError, InvalidParameter, TypeMismatch, Unsupported
from dpsql.types import BIGINT, DOUBLE

BLOCKWISE_NAME = "blockwise"
BLOCKWISE_EXAMPLE = "BLOCKWISE(mad(cost), 0, 5000, blocks => 100)"
DEFAULT_BLOCKS, MIN_BLOCKS = 100, 2
MAX_BOUND = Fraction(10) ** 100
"""Of a bound; and of 1 over the distance of the two: all that is worked out from them is then a double."""

BLOCKWISE_ONLY = frozenset({"mad", "entropy", "kurtosis_pop"})
"""Aggregates without a mechanism of their own, which sqlglot takes for functions that it does not know."""

SUPPORTED_STATISTICS = (
    "MAD, SKEWNESS, KURTOSIS, KURTOSIS_POP, ENTROPY, MEDIAN, QUANTILE_CONT, QUANTILE_DISC, PERCENTILE_CONT, "
    "PERCENTILE_DISC, MIN, MAX, AVG, SUM, COUNT, also with DISTINCT, COUNT_IF, VAR_POP, VAR_SAMP, STDDEV_POP and "
    "STDDEV_SAMP"
)
_FUNCTION_BY_NODE: dict[type[exp.Expr], BlockFunction] = {
    exp.Sum: "sum", exp.Avg: "mean", exp.Min: "min", exp.Max: "max", exp.Median: "median", exp.VariancePop: "var_pop",
    exp.Variance: "var_samp", exp.StddevPop: "stddev_pop", exp.StddevSamp: "stddev_samp", exp.Stddev: "stddev_samp",
    exp.Skewness: "skewness", exp.Kurtosis: "kurtosis",
}  # fmt: skip
_FUNCTION_BY_NAME: dict[str, BlockFunction] = {
    "mean": "mean", "mad": "mad", "entropy": "entropy", "kurtosis_pop": "kurtosis_pop",
    "quantile_cont": "quantile_cont", "quantile_disc": "quantile_disc",
}  # fmt: skip


def is_blockwise(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == BLOCKWISE_NAME


def suggest_blockwise(node: exp.Expr) -> str | None:
    """What to write in the place of an aggregate that has no mechanism, if blocks can have it."""
    if type(node) not in (exp.Skewness, exp.Kurtosis) and _function_name_of(node) not in BLOCKWISE_ONLY:
        return None
    return f"On blocks of units, with bounds for the result: BLOCKWISE({node.sql(dialect='postgres').lower()}, 0, 100)."


def bind_blockwise(node: exp.Expr, scope: Scope, is_aggregate: Callable[[exp.Expr], bool]) -> Blockwise:
    """`is_aggregate` tells the aggregates of a statement, those among them that no block can have included."""
    positional, named = read_arguments(node, "BLOCKWISE", 3, ("blocks", "combine"), BLOCKWISE_EXAMPLE)
    lower, upper = (_read_bound(part, node) for part in positional[1:])
    if not lower < upper or 1 / (upper - lower) > MAX_BOUND:
        raise InvalidParameter(
            "the upper bound of BLOCKWISE must be above the lower",
            hint=f"For example: {BLOCKWISE_EXAMPLE}.",
            span=span_of(positional[2]) or span_of(node),
        )
    aggregates = _StatisticAggregates(scope, is_aggregate)
    result = aggregates.replace_aggregates(positional[0])
    if not aggregates.known:
        raise GroupingError(
            "the first argument of BLOCKWISE is an aggregate, or an expression of some",
            hint=f"For example: {BLOCKWISE_EXAMPLE}.",
            span=span_of(positional[0]) or span_of(node),
        )
    statistic = Statistic(tuple(aggregates.known), _bind_statistic(aggregates, result, positional[0]))
    blocks = DEFAULT_BLOCKS
    if "blocks" in named:
        blocks = require_integer_between("blocks", named["blocks"], MIN_BLOCKS, MAX_BLOCKS, node, "blocks => 100")
    combine = _read_combine(named.get("combine"), node)
    return Blockwise(statistic, lower, upper, blocks, combine, span_of(node), aggregates.text)


def filter_blockwise(measure: Blockwise, where: Callable[[Expr], Expr]) -> Blockwise:
    """The measure over the rows where a condition holds; `where` makes an argument NULL in all others."""

    def filter_aggregate(aggregate: BlockAggregate) -> BlockAggregate:
        if aggregate.arg is None:
            return replace(aggregate, function="count", arg=where(Literal(1, BIGINT)))
        return replace(aggregate, arg=where(aggregate.arg))

    statistic = replace(measure.statistic, aggregates=tuple(map(filter_aggregate, measure.statistic.aggregates)))
    return replace(measure, statistic=statistic)


# --- what stands behind the statistic --------------------------------------------------------------------------------


def _read_combine(node: exp.Expr | None, whole: exp.Expr) -> typing.Literal["mean", "median"]:
    text = str(node.this).lower() if isinstance(node, exp.Literal) and node.args.get("is_string") else ""
    if node is None or text == "mean":
        return "mean"
    if text == "median":
        return "median"
    raise InvalidParameter("combine must be 'mean' or 'median'", hint="For example: combine => 'median'.",
                           span=span_of(node) or span_of(whole))  # fmt: skip


def _read_bound(node: exp.Expr, whole: exp.Expr) -> Fraction:
    number = read_number_literal(node)
    if number is None or abs(number) > MAX_BOUND:
        raise InvalidParameter(
            "the bounds of BLOCKWISE must be literal numbers",
            hint=f"For example: {BLOCKWISE_EXAMPLE}.",
            span=span_of(node) or span_of(node.unnest()) or span_of(whole),
        )
    return number


# --- the statistic ---------------------------------------------------------------------------------------------------


@dataclass
class _StatisticAggregates:
    """Collects the aggregates of a statistic while it puts columns in their place."""

    scope: Scope
    is_aggregate: Callable[[exp.Expr], bool]
    known: list[BlockAggregate] = field(default_factory=list)
    text: str = "…"  # of the first argument, for hints

    def replace_aggregates(self, node: exp.Expr) -> exp.Expr:
        if self.is_aggregate(node):
            return exp.column(exp.to_identifier(self._column_name_of(self._bind_aggregate(node)), quoted=True))
        if isinstance(node, exp.Query | exp.Subquery | exp.Window):
            raise Unsupported("sub-selects and windows are not supported around the aggregates of BLOCKWISE",
                              hint="Compute them in a sub-select in FROM.", span=span_of(node))  # fmt: skip
        if isinstance(node, exp.Column):
            raise GroupingError(f'column "{node.name}" must appear in an aggregate of BLOCKWISE',
                                hint=f"For example: {BLOCKWISE_EXAMPLE}.", span=span_of(node))  # fmt: skip
        rebuilt = type(node)(**{key: self._replace_in_value(value) for key, value in node.args.items()})
        rebuilt.meta.update(node.meta)
        return rebuilt

    def _replace_in_value(self, value: object) -> object:
        if isinstance(value, exp.Expr):
            return self.replace_aggregates(value)
        return [self._replace_in_value(item) for item in value] if isinstance(value, list) else value

    def _column_name_of(self, aggregate: BlockAggregate) -> str:
        """The column of an aggregate; equal ones are one."""
        for existing in self.known:
            if replace(aggregate, name=existing.name) == existing:
                return existing.name
        self.known.append(replace(aggregate, name=f"a{len(self.known) + 1}"))
        return self.known[-1].name

    def _bind_aggregate(self, node: exp.Expr) -> BlockAggregate:
        match node:
            case exp.Filter():
                refuse_other_args(node, "this", "expression")
                refuse_other_args(node.expression, "this")
                inner, condition = self._bind_aggregate(node.this), bind_condition(node.expression.this, self.scope)
                if inner.arg is None:
                    return BlockAggregate("", "count", null_unless(condition, Literal(1, BIGINT)))
                return replace(inner, arg=null_unless(condition, inner.arg))
            case exp.Count():
                return self._bind_count(node)
            case exp.CountIf():
                refuse_other_args(node, "this")
                return BlockAggregate(
                    "", "count", null_unless(bind_condition(node.this, self.scope), Literal(1, BIGINT))
                )
            case exp.WithinGroup():
                return self._bind_within_group(node)
            case exp.Quantile():
                refuse_other_args(node, "this", "quantile")
                return self._bind_quantile("quantile_disc", node.this, node.args.get("quantile"), node)
            case exp.Anonymous() if _function_name_of(node) in _FUNCTION_BY_NAME:
                return self._bind_named_function(node, _FUNCTION_BY_NAME[_function_name_of(node)])
            case _ if type(node) in _FUNCTION_BY_NODE:
                refuse_other_args(node, "this")
                return BlockAggregate("", _FUNCTION_BY_NODE[type(node)], self._bind_number(node.this, node))
            case _:
                raise Unsupported(f"{sql_name_of(node)} of a block's rows is not supported",
                                  hint=f"These are: {SUPPORTED_STATISTICS}.", span=span_of(node))  # fmt: skip

    def _bind_named_function(self, node: exp.Anonymous, function: BlockFunction) -> BlockAggregate:
        takes = 2 if function.startswith("quantile") else 1
        if len(node.expressions) != takes:
            raise TypeMismatch(f"{sql_name_of(node)} takes {'two arguments' if takes == 2 else 'one argument'}",
                               span=span_of(node))  # fmt: skip
        if takes == 2:
            return self._bind_quantile(function, node.expressions[0], node.expressions[1], node)
        if function == "entropy":
            return BlockAggregate("", "entropy", self._bind_value(node.expressions[0], node))
        return BlockAggregate("", function, self._bind_number(node.expressions[0], node))

    def _bind_count(self, node: exp.Count) -> BlockAggregate:
        refuse_other_args(node, "this")
        arg = node.this
        if arg is None or isinstance(arg, exp.Star):
            return BlockAggregate("", "count_rows", None)
        if isinstance(arg, exp.Distinct):
            refuse_other_args(arg, "expressions")
            if len(arg.expressions) != 1:
                raise Unsupported("COUNT(DISTINCT …) of several columns is not supported within BLOCKWISE",
                                  hint="Concatenate them as text.", span=span_of(arg))  # fmt: skip
            return BlockAggregate("", "count_distinct", self._bind_value(arg.expressions[0], node))
        return BlockAggregate("", "count", self._bind_value(arg, node))

    def _bind_within_group(self, node: exp.WithinGroup) -> BlockAggregate:
        refuse_other_args(node, "this", "expression")
        function, order = node.this, node.expression
        refuse_other_args(order, "expressions")
        if not isinstance(function, exp.PercentileCont | exp.PercentileDisc) or len(order.expressions) != 1:
            raise Unsupported(
                f"{sql_name_of(function)} of a block's rows is not supported",
                hint=f"These are: {SUPPORTED_STATISTICS}.",
                span=span_of(node),
            )
        refuse_other_args(function, "this")
        ordered = order.expressions[0]
        refuse_other_args(
            ordered, "this", "nulls_first"
        )  # of a falling order, 0.9 is 0.1 of a rising one: it is to be written so
        kind: BlockFunction = "quantile_disc" if isinstance(function, exp.PercentileDisc) else "quantile_cont"
        return self._bind_quantile(kind, ordered.this, function.this, node)

    def _bind_quantile(
        self, kind: BlockFunction, arg: exp.Expr, fraction: exp.Expr | None, node: exp.Expr
    ) -> BlockAggregate:
        number = None
        if isinstance(fraction, exp.Literal) and not fraction.args.get("is_string"):
            number = parse_exact_number(str(fraction.this), span_of(fraction))
        if number is None or not 0 <= number <= 1:
            raise InvalidParameter("a fraction must be a literal between 0 and 1",
                                   hint="For example: QUANTILE_DISC(cost, 0.9).",
                                   span=span_of(fraction or node) or span_of(node))  # fmt: skip
        return BlockAggregate("", kind, self._bind_number(arg, node), number)

    def _bind_number(self, node: exp.Expr | None, whole: exp.Expr) -> Expr:
        arg = self._bind_value(node, whole)
        if not arg.type.is_number:
            raise TypeMismatch(f"{sql_name_of(whole)} needs numbers, not {arg.type}", span=span_of(node or whole))
        return arg

    def _bind_value(self, node: exp.Expr | None, whole: exp.Expr) -> Expr:
        if node is None:
            raise TypeMismatch(f"{sql_name_of(whole)} needs an argument", span=span_of(whole))
        if isinstance(node, exp.Distinct | exp.Order):
            raise Unsupported(f"DISTINCT and ORDER BY within {sql_name_of(whole)} are not supported within BLOCKWISE",
                              hint="Leave it out.", span=span_of(node) or span_of(whole))  # fmt: skip
        if not self.known and self.text == "…":
            self.text = str(node.sql(dialect="postgres"))
        return narrow_integer(coerce_number_literal(bind_expr(node, self.scope), node))


def _bind_statistic(aggregates: _StatisticAggregates, result: exp.Expr, written: exp.Expr) -> Expr:
    """The expression around the aggregates, which are doubles."""
    columns = tuple(BoundColumn(aggregate.name, Column(aggregate.name, DOUBLE)) for aggregate in aggregates.known)
    bound = coerce_number_literal(bind_expr(result, Scope((SourceScope("", columns),))), result)
    if not bound.type.is_number:
        raise TypeMismatch(f"BLOCKWISE needs a statistic that is a number, not {bound.type}", span=span_of(written))
    return bound


def _function_name_of(node: exp.Expr) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


assert set(_FUNCTION_BY_NODE.values()) | set(_FUNCTION_BY_NAME.values()) | {
    "count_rows",
    "count",
    "count_distinct",
} == set(get_args(BlockFunction))
