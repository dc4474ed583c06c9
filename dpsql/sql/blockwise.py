"""BLOCKWISE(statistic, lower, upper, blocks => 100, combine => 'mean') to a measure of the plan.

The statistic is an expression over aggregates that are exact for a bag of rows (`plan/statistics`): each is bound to
one of them, and the expression around them as any expression of doubles, in the forms that cannot raise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal as One
from typing import get_args

from sqlglot import exp

from dpsql.errors import GroupingError, InvalidParameter, TypeMismatch, Unsupported
from dpsql.plan.expr import Case, Column, Expr, Literal
from dpsql.plan.measures import Blockwise
from dpsql.plan.statistics import MOST_BLOCKS, BlockAggregate, BlockFunction, Statistic
from dpsql.sql.bind_call import literal_number, read_arguments, whole_between
from dpsql.sql.bind_expr import bind_condition, bind_expr
from dpsql.sql.coerce import number_literal
from dpsql.sql.dialect import only, span_of, spelled
from dpsql.sql.names import BoundColumn, Scope, SourceScope
from dpsql.sql.numerals import exact_number
from dpsql.types import BIGINT, DOUBLE

NAME = "blockwise"
EXAMPLE = "BLOCKWISE(mad(cost), 0, 5000, blocks => 100)"
BLOCKS, LEAST_BLOCKS = 100, 2
LARGEST = Fraction(10) ** 100
"""Of a bound; and of 1 over the distance of the two: all that is worked out from them is then a double."""

ONLY_HERE = frozenset({"mad", "entropy", "kurtosis_pop"})
"""Aggregates without a mechanism of their own, which sqlglot takes for functions that it does not know."""

ANSWERED = (
    "MAD, SKEWNESS, KURTOSIS, KURTOSIS_POP, ENTROPY, MEDIAN, QUANTILE_CONT, QUANTILE_DISC, PERCENTILE_CONT, "
    "PERCENTILE_DISC, MIN, MAX, AVG, SUM, COUNT, also with DISTINCT, COUNT_IF, VAR_POP, VAR_SAMP, STDDEV_POP and "
    "STDDEV_SAMP"
)
_FUNCTIONS: dict[type[exp.Expr], BlockFunction] = {
    exp.Sum: "sum", exp.Avg: "mean", exp.Min: "min", exp.Max: "max", exp.Median: "median", exp.VariancePop: "var_pop",
    exp.Variance: "var_samp", exp.StddevPop: "stddev_pop", exp.StddevSamp: "stddev_samp", exp.Stddev: "stddev_samp",
    exp.Skewness: "skewness", exp.Kurtosis: "kurtosis",
}  # fmt: skip
_NAMED: dict[str, BlockFunction] = {
    "mean": "mean", "mad": "mad", "entropy": "entropy", "kurtosis_pop": "kurtosis_pop",
    "quantile_cont": "quantile_cont", "quantile_disc": "quantile_disc",
}  # fmt: skip


def is_blockwise(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == NAME


def instead(node: exp.Expr) -> str | None:
    """What to write in the place of an aggregate that has no mechanism, if blocks can have it."""
    if type(node) not in (exp.Skewness, exp.Kurtosis) and _name(node) not in ONLY_HERE:
        return None
    return f"On blocks of units, with bounds for the result: BLOCKWISE({node.sql(dialect='postgres').lower()}, 0, 100)."


def bind_blockwise(node: exp.Expr, scope: Scope, is_aggregate: Callable[[exp.Expr], bool]) -> Blockwise:
    """`is_aggregate` tells the aggregates of a statement, those among them that no block can have included."""
    given, named = read_arguments(node, "BLOCKWISE", 3, ("blocks", "combine"), EXAMPLE)
    lower, upper = (_bound(part, node) for part in given[1:])
    if not lower < upper or 1 / (upper - lower) > LARGEST:
        raise InvalidParameter("the upper bound of BLOCKWISE must be above the lower",
                               hint=f"For example: {EXAMPLE}.", span=span_of(given[2]) or span_of(node))  # fmt: skip
    found = _Aggregates(scope, is_aggregate)
    result = found.replaced(given[0])
    if not found.known:
        raise GroupingError("the first argument of BLOCKWISE is an aggregate, or an expression of some",
                            hint=f"For example: {EXAMPLE}.", span=span_of(given[0]) or span_of(node))  # fmt: skip
    statistic = Statistic(tuple(found.known), _number_of(found, result, given[0]))
    blocks = BLOCKS
    if "blocks" in named:
        blocks = whole_between("blocks", named["blocks"], LEAST_BLOCKS, MOST_BLOCKS, node, "blocks => 100")
    combine = _combine(named.get("combine"), node)
    return Blockwise(statistic, lower, upper, blocks, combine, span_of(node), found.text)


def filtered(measure: Blockwise, where: Callable[[Expr], Expr]) -> Blockwise:
    """Of the rows where a condition holds; `where` makes NULL of an argument elsewhere."""

    def kept(one: BlockAggregate) -> BlockAggregate:
        if one.arg is None:
            return replace(one, function="count", arg=where(Literal(1, BIGINT)))
        return replace(one, arg=where(one.arg))

    statistic = replace(measure.statistic, aggregates=tuple(map(kept, measure.statistic.aggregates)))
    return replace(measure, statistic=statistic)


# --- what stands behind the statistic --------------------------------------------------------------------------------


def _combine(node: exp.Expr | None, whole: exp.Expr) -> One["mean", "median"]:
    text = str(node.this).lower() if isinstance(node, exp.Literal) and node.args.get("is_string") else ""
    if node is None or text == "mean":
        return "mean"
    if text == "median":
        return "median"
    raise InvalidParameter("combine must be 'mean' or 'median'", hint="For example: combine => 'median'.",
                           span=span_of(node) or span_of(whole))  # fmt: skip


def _bound(node: exp.Expr, whole: exp.Expr) -> Fraction:
    number = literal_number(node)
    if number is None or abs(number) > LARGEST:
        raise InvalidParameter("the bounds of BLOCKWISE must be literal numbers", hint=f"For example: {EXAMPLE}.",
                               span=span_of(node) or span_of(node.unnest()) or span_of(whole))  # fmt: skip
    return number


# --- the statistic ---------------------------------------------------------------------------------------------------


@dataclass
class _Aggregates:
    """Collects the aggregates of a statistic while it puts columns in their place."""

    scope: Scope
    is_aggregate: Callable[[exp.Expr], bool]
    known: list[BlockAggregate] = field(default_factory=list)
    text: str = "…"  # of the first argument, for hints

    def replaced(self, node: exp.Expr) -> exp.Expr:
        if self.is_aggregate(node):
            return exp.column(exp.to_identifier(self._name(self._bound(node)), quoted=True))
        if isinstance(node, exp.Query | exp.Subquery | exp.Window):
            raise Unsupported("sub-selects and windows are not supported around the aggregates of BLOCKWISE",
                              hint="Compute them in a sub-select in FROM.", span=span_of(node))  # fmt: skip
        if isinstance(node, exp.Column):
            raise GroupingError(f'column "{node.name}" must appear in an aggregate of BLOCKWISE',
                                hint=f"For example: {EXAMPLE}.", span=span_of(node))  # fmt: skip
        rebuilt = type(node)(**{key: self._part(value) for key, value in node.args.items()})
        rebuilt.meta.update(node.meta)
        return rebuilt

    def _part(self, value: object) -> object:
        if isinstance(value, exp.Expr):
            return self.replaced(value)
        return [self._part(item) for item in value] if isinstance(value, list) else value

    def _name(self, one: BlockAggregate) -> str:
        """The column of an aggregate; equal ones are one."""
        for known in self.known:
            if replace(one, name=known.name) == known:
                return known.name
        self.known.append(replace(one, name=f"a{len(self.known) + 1}"))
        return self.known[-1].name

    def _bound(self, node: exp.Expr) -> BlockAggregate:
        match node:
            case exp.Filter():
                only(node, "this", "expression")
                only(node.expression, "this")
                one, condition = self._bound(node.this), bind_condition(node.expression.this, self.scope)
                if one.arg is None:
                    return BlockAggregate("", "count", _where(condition, Literal(1, BIGINT)))
                return replace(one, arg=_where(condition, one.arg))
            case exp.Count():
                return self._count(node)
            case exp.CountIf():
                only(node, "this")
                return BlockAggregate("", "count", _where(bind_condition(node.this, self.scope), Literal(1, BIGINT)))
            case exp.WithinGroup():
                return self._within_group(node)
            case exp.Quantile():
                only(node, "this", "quantile")
                return self._quantile("quantile_disc", node.this, node.args.get("quantile"), node)
            case exp.Anonymous() if _name(node) in _NAMED:
                return self._called(node, _NAMED[_name(node)])
            case _ if type(node) in _FUNCTIONS:
                only(node, "this")
                return BlockAggregate("", _FUNCTIONS[type(node)], self._number(node.this, node))
            case _:
                raise Unsupported(f"{spelled(node)} of a block's rows is not supported",
                                  hint=f"These are: {ANSWERED}.", span=span_of(node))  # fmt: skip

    def _called(self, node: exp.Anonymous, function: BlockFunction) -> BlockAggregate:
        takes = 2 if function.startswith("quantile") else 1
        if len(node.expressions) != takes:
            raise TypeMismatch(f"{spelled(node)} takes {'two arguments' if takes == 2 else 'one argument'}",
                               span=span_of(node))  # fmt: skip
        if takes == 2:
            return self._quantile(function, node.expressions[0], node.expressions[1], node)
        if function == "entropy":
            return BlockAggregate("", "entropy", self._value(node.expressions[0], node))
        return BlockAggregate("", function, self._number(node.expressions[0], node))

    def _count(self, node: exp.Count) -> BlockAggregate:
        only(node, "this")
        arg = node.this
        if arg is None or isinstance(arg, exp.Star):
            return BlockAggregate("", "count_rows", None)
        if isinstance(arg, exp.Distinct):
            only(arg, "expressions")
            if len(arg.expressions) != 1:
                raise Unsupported("COUNT(DISTINCT …) of several columns is not supported within BLOCKWISE",
                                  hint="Concatenate them as text.", span=span_of(arg))  # fmt: skip
            return BlockAggregate("", "count_distinct", self._value(arg.expressions[0], node))
        return BlockAggregate("", "count", self._value(arg, node))

    def _within_group(self, node: exp.WithinGroup) -> BlockAggregate:
        only(node, "this", "expression")
        function, order = node.this, node.expression
        only(order, "expressions")
        if not isinstance(function, exp.PercentileCont | exp.PercentileDisc) or len(order.expressions) != 1:
            raise Unsupported(f"{spelled(function)} of a block's rows is not supported", hint=f"These are: {ANSWERED}.",
                              span=span_of(node))  # fmt: skip
        only(function, "this")
        ordered = order.expressions[0]
        only(ordered, "this", "nulls_first")  # of a falling order, 0.9 is 0.1 of a rising one: it is to be written so
        kind: BlockFunction = "quantile_disc" if isinstance(function, exp.PercentileDisc) else "quantile_cont"
        return self._quantile(kind, ordered.this, function.this, node)

    def _quantile(self, kind: BlockFunction, arg: exp.Expr, at: exp.Expr | None, node: exp.Expr) -> BlockAggregate:
        number = None
        if isinstance(at, exp.Literal) and not at.args.get("is_string"):
            number = exact_number(str(at.this), span_of(at))
        if number is None or not 0 <= number <= 1:
            raise InvalidParameter("a fraction must be a literal between 0 and 1",
                                   hint="For example: QUANTILE_DISC(cost, 0.9).",
                                   span=span_of(at or node) or span_of(node))  # fmt: skip
        return BlockAggregate("", kind, self._number(arg, node), number)

    def _number(self, node: exp.Expr | None, whole: exp.Expr) -> Expr:
        arg = self._value(node, whole)
        if not arg.type.is_number:
            raise TypeMismatch(f"{spelled(whole)} needs numbers, not {arg.type}", span=span_of(node or whole))
        return arg

    def _value(self, node: exp.Expr | None, whole: exp.Expr) -> Expr:
        if node is None:
            raise TypeMismatch(f"{spelled(whole)} needs an argument", span=span_of(whole))
        if isinstance(node, exp.Distinct | exp.Order):
            raise Unsupported(f"DISTINCT and ORDER BY within {spelled(whole)} are not supported within BLOCKWISE",
                              hint="Leave it out.", span=span_of(node) or span_of(whole))  # fmt: skip
        if not self.known and self.text == "…":
            self.text = str(node.sql(dialect="postgres"))
        return number_literal(bind_expr(node, self.scope), node)


def _number_of(found: _Aggregates, result: exp.Expr, written: exp.Expr) -> Expr:
    """The expression around the aggregates, which are doubles."""
    columns = tuple(BoundColumn(one.name, Column(one.name, DOUBLE)) for one in found.known)
    bound = number_literal(bind_expr(result, Scope((SourceScope("", columns),))), result)
    if not bound.type.is_number:
        raise TypeMismatch(f"BLOCKWISE needs a statistic that is a number, not {bound.type}", span=span_of(written))
    return bound


def _where(condition: Expr, arg: Expr) -> Expr:
    return Case(((condition, arg),), Literal(None, arg.type), arg.type)


def _name(node: exp.Expr) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


assert set(_FUNCTIONS.values()) | set(_NAMED.values()) | {"count_rows", "count", "count_distinct"} == set(
    get_args(BlockFunction)
)
