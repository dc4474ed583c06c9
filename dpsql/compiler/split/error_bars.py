"""Error bars of arithmetic over aggregates: the delta method, written out as SQL over the release's columns.

    stderr^2 = sum over i, j of (df/dm_i) * (df/dm_j) * cov(m_i, m_j)
    clipping moves f by sum over i of (df/dm_i) * (somewhere within mid_i - half_i and mid_i + half_i)

The derivatives are taken here, symbol by symbol; values, covariances, the interval's factor, and where each answer may
lie for what was scaled down, are columns of the release. So a bar is a function of released values and noise scales,
and costs nothing (SOUNDNESS 11). It is exact for sums and differences, and right to first order for products, ratios
and roots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from dpsql.compiler.bind.aggregates import is_aggregate, measure_type
from dpsql.compiler.parse.dialect import span_of, sql_name_of
from dpsql.compiler.plan.expressions import Expr
from dpsql.compiler.plan.measures import (
    Best,
    Blockwise,
    ConjugatePosterior,
    Extreme,
    Frequent,
    Measure,
    Posterior,
    Quantile,
    SharesPosterior,
    Truth,
)
from dpsql.errors import Unsupported

if TYPE_CHECKING:
    from dpsql.compiler.split.release_block import ReleaseReferences

MAX_EXPRESSION_NODES, MAX_ERROR_NODES = 150, 3_000
"""Of the expression, and of its error: derivatives of products grow, and such a bar is not worth its time."""


class ErrorBarInputs(Protocol):
    """What the release has to offer: measures are known by numbers."""

    def find_measure(self, node: exp.Expr) -> int | None:
        """The number of the measure for an aggregate that is a number and whose error is known."""
        ...

    def is_constant(self, node: exp.Expr) -> bool:
        """A key that is a number."""
        ...

    @property
    def value(self) -> Callable[[exp.Expr], exp.Expr]: ...

    def covariance_of(self, first: int, second: int) -> exp.Expr: ...

    def interval_factor(self) -> exp.Expr:
        """Half of the 95 % interval, in standard errors."""
        ...

    def clipping_of(self, measure: int) -> tuple[exp.Expr, exp.Expr]:
        """Half of how far apart the truth may lie for what was scaled down, and the middle of it from the answer."""
        ...


@dataclass(frozen=True)
class ErrorBarExpressions:
    """`clipped` is how far clipping may have moved the answer, which `low` and `high` include; NULL if not known."""

    stderr: exp.Expr
    low: exp.Expr
    high: exp.Expr
    clipped: exp.Expr

    @property
    def columns(self) -> tuple[exp.Expr, ...]:
        return (self.stderr, self.low, self.high, self.clipped)


@dataclass(frozen=True)
class NoErrorBar:
    """`node` is the part that has no derivative here."""

    node: exp.Expr


Gradient = dict[int, exp.Expr]
"""By measure; a measure that is not there has the derivative 0."""


class _NotDifferentiable(Exception):
    def __init__(self, node: exp.Expr) -> None:
        super().__init__()
        self.node = node


def propagate_error(node: exp.Expr, columns: ErrorBarInputs) -> ErrorBarExpressions | NoErrorBar:
    """Standard error and 95 % interval of an expression over the aggregates of one release.

    Values are asked for only of expressions that have a derivative: a sub-select is not read twice.
    """
    if sum(1 for _ in node.walk()) > MAX_EXPRESSION_NODES:
        return NoErrorBar(node)
    try:
        gradient = _gradient_of(node, columns)
    except _NotDifferentiable as stop:
        return NoErrorBar(stop.node)
    if not gradient:
        return NoErrorBar(node)  # a constant: nothing was noised
    value = _cast_to_double(columns.value(node))
    # ABS, because rounding may take a variance of 0 below it; GREATEST would skip NULL.
    root = exp.Sqrt(this=exp.Abs(this=_error_variance(gradient, columns)))
    # No answer, no bar; and 0 / 0 gives none either.
    unknown = exp.Is(this=value.copy(), expression=exp.Null())
    stderr = exp.Case(ifs=[exp.If(this=unknown, true=exp.Null())], default=root)
    if sum(1 for _ in stderr.walk()) > MAX_ERROR_NODES:
        return NoErrorBar(node)
    half = _multiply_terms(columns.interval_factor(), exp.Paren(this=stderr))
    clip_half, clip_mid = _propagate_clipping(gradient, columns)
    below, above = (
        exp.Coalesce(this=end(this=clip_half.copy(), expression=clip_mid.copy()), expressions=[_double_literal(0)])
        for end in (exp.Sub, exp.Add)
    )
    return ErrorBarExpressions(
        stderr,
        exp.Sub(this=exp.Sub(this=value, expression=exp.Paren(this=half)), expression=below),
        exp.Add(this=exp.Add(this=value.copy(), expression=exp.Paren(this=half.copy())), expression=above),
        exp.Paren(this=exp.Add(this=clip_half, expression=exp.Abs(this=clip_mid))),
    )


def _propagate_clipping(gradient: Gradient, columns: ErrorBarInputs) -> tuple[exp.Expr, exp.Expr]:
    """Half of how far apart the truth may lie, and the middle: measures may have lost much or little, each by itself.

    Claim: where each measure lies within its own half of its own middle, the expression does, to first order.
    """
    halves, middles = list[exp.Expr](), list[exp.Expr]()
    for measure in sorted(gradient):
        half, mid = columns.clipping_of(measure)
        halves.append(_multiply_terms(_absolute(gradient[measure]), half))
        middles.append(_multiply_terms(gradient[measure].copy(), mid))
    return exp.Paren(this=_add_terms(halves)), exp.Paren(this=_add_terms(middles))


def _absolute(term: exp.Expr) -> exp.Expr:
    return term.copy() if _is_one(term) else exp.Abs(this=term.copy())


def _add_terms(terms: list[exp.Expr]) -> exp.Expr:
    result = terms[0]
    for term in terms[1:]:
        result = exp.Add(this=result, expression=term)
    return result


def _error_variance(gradient: Gradient, columns: ErrorBarInputs) -> exp.Expr:
    terms: list[exp.Expr] = []
    measures = sorted(gradient)
    for index, first in enumerate(measures):
        for second in measures[index:]:
            pair = _multiply_terms(gradient[first].copy(), gradient[second].copy())
            term = _multiply_terms(pair, columns.covariance_of(first, second))
            terms.append(term if first == second else _multiply_terms(_double_literal(2), term))
    return _add_terms(terms)


def _gradient_of(node: exp.Expr, columns: ErrorBarInputs) -> Gradient:
    match node:
        case exp.Literal() if not node.is_string:
            return {}
        case exp.Paren():
            return _gradient_of(node.this, columns)
        case exp.Neg():
            return _scale_gradient(_gradient_of(node.this, columns), _double_literal(-1))
        case exp.Add():
            return _add_gradients(_gradient_of(node.this, columns), _gradient_of(node.expression, columns))
        case exp.Sub():
            return _add_gradients(
                _gradient_of(node.this, columns),
                _scale_gradient(_gradient_of(node.expression, columns), _double_literal(-1)),
            )
        case exp.Mul():
            return _product_gradient(node, columns)
        case exp.Div() | exp.IntDiv():
            return _quotient_gradient(node, columns)
        case exp.Abs():
            inner = _gradient_of(node.this, columns)
            return _scale_gradient(inner, exp.Sign(this=_cast_to_double(columns.value(node.this))))
        case exp.Sqrt():
            inner = _gradient_of(node.this, columns)
            root = exp.Sqrt(this=_cast_to_double(columns.value(node.this)))
            return _scale_gradient(inner, _divide_or_null(_double_literal("0.5"), root))
        case exp.Cast() if node.to.this in exp.DataType.NUMERIC_TYPES:
            return _gradient_of(node.this, columns)
        case exp.Round() | exp.Ceil() | exp.Floor():
            # The bar is that of the number before it was rounded.
            return _gradient_of(node.this, columns)
        case exp.Nullif() if _is_number_literal(node.expression):
            return _gradient_of(node.this, columns)
        case exp.Coalesce() if all(_is_number_literal(alternative) for alternative in node.expressions):
            # Where the first is NULL, so is its error: the bar is for what was measured.
            return _gradient_of(node.this, columns)
        case _:
            return _leaf_gradient(node, columns)


def _leaf_gradient(node: exp.Expr, columns: ErrorBarInputs) -> Gradient:
    measure = columns.find_measure(node)
    if measure is not None:
        return {measure: _double_literal(1)}
    if columns.is_constant(node):
        return {}
    raise _NotDifferentiable(node)


def _product_gradient(node: exp.Expr, columns: ErrorBarInputs) -> Gradient:
    left, right = _gradient_of(node.this, columns), _gradient_of(node.expression, columns)
    left_terms = _scale_gradient(left, _cast_to_double(columns.value(node.expression))) if left else {}
    right_terms = _scale_gradient(right, _cast_to_double(columns.value(node.this))) if right else {}
    return _add_gradients(left_terms, right_terms)


def _quotient_gradient(node: exp.Expr, columns: ErrorBarInputs) -> Gradient:
    above, below = _gradient_of(node.this, columns), _gradient_of(node.expression, columns)
    divisor = _cast_to_double(columns.value(node.expression))
    result = _scale_gradient(above, _divide_or_null(_double_literal(1), divisor)) if above else {}
    if not below:
        return result
    quotient = _divide_or_null(
        _cast_to_double(columns.value(node.this)), _multiply_terms(divisor.copy(), divisor.copy())
    )
    return _add_gradients(result, _scale_gradient(below, _multiply_terms(_double_literal(-1), quotient)))


def _add_gradients(left: Gradient, right: Gradient) -> Gradient:
    result = dict(left)
    for measure, term in right.items():
        result[measure] = exp.Paren(this=exp.Add(this=result[measure], expression=term)) if measure in result else term
    return result


def _scale_gradient(gradient: Gradient, factor: exp.Expr) -> Gradient:
    return {measure: _multiply_terms(factor.copy(), term) for measure, term in gradient.items()}


def _multiply_terms(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    if _is_one(left):
        return right
    return left if _is_one(right) else exp.Mul(this=left, expression=right)


def _divide_or_null(above: exp.Expr, below: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Div(this=above, expression=exp.Nullif(this=below, expression=_double_literal(0))))


def _double_literal(number: int | str) -> exp.Expr:
    text = str(number)
    return _cast_to_double(
        exp.Neg(this=exp.Literal.number(text[1:])) if text.startswith("-") else exp.Literal.number(text)
    )


def _cast_to_double(node: exp.Expr) -> exp.Expr:
    """Doubles throughout: products of decimals would run out of digits."""
    return exp.Cast(this=node, to=exp.DataType.build("DOUBLE"))


def _is_one(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.this == "1"


def _is_number_literal(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Neg | exp.Paren) else node
    return isinstance(inner, exp.Literal) and not inner.is_string


# What a block over private rows has to offer to error bars: its aggregates and keys, as columns of its release.


@dataclass(frozen=True)
class BlockColumns:
    """`register` gives the measure of an aggregate, `as_key` the key that an expression equals."""

    known: dict[str, Measure]  # grows while `register` finds more
    register: Callable[[exp.Expr], Measure]
    as_key: Callable[[exp.Expr], Expr | None]
    value: Callable[[exp.Expr], exp.Expr]
    refer: ReleaseReferences
    interval: Callable[[exp.Expr], bool]  # an aggregate that is an interval: there is no arithmetic of its bars

    def find_measure(self, node: exp.Expr) -> int | None:
        if not is_aggregate(node) or self.interval(node):
            return None
        measure = self.register(node)
        return list(self.known.values()).index(measure) if has_error_bar(measure) else None

    def is_constant(self, node: exp.Expr) -> bool:
        key = self.as_key(node)
        return key is not None and key.type.is_number

    def covariance_of(self, first: int, second: int) -> exp.Expr:
        measures = list(self.known.values())
        return self.refer.covariance_column(measures[first], measures[second])

    def interval_factor(self) -> exp.Expr:
        return self.refer.factor_column()

    def clipping_of(self, measure: int) -> tuple[exp.Expr, exp.Expr]:
        registered = list(self.known.values())[measure]
        return self.refer.error_column("clip_half", registered), self.refer.error_column("clip_mid", registered)


def has_error_bar(measure: Measure) -> bool:
    """Whether the noise alone tells how far the answer may be off; what was chosen or decided has no such figure."""
    if isinstance(measure, Blockwise):
        return measure.combine == "mean"
    chosen = isinstance(measure, Quantile | Extreme | Frequent | Best | Posterior)
    decided = isinstance(measure, Truth | ConjugatePosterior | SharesPosterior)
    return not chosen and not decided and measure_type(measure).is_number


def no_error_bar_error(missing: NoErrorBar, function: str) -> Unsupported:
    if is_aggregate(missing.node):
        return Unsupported(
            f"{sql_name_of(missing.node)} has no error bar: how far it is off depends on private rows",
            hint="Counts, sums, averages and what is computed from them have one.",
            span=span_of(missing.node),
        )
    return Unsupported(
        f"{function} takes an aggregate of this SELECT, or arithmetic of such aggregates",
        hint=f"For example: {function}(SUM(x) / COUNT(*)).",
        span=span_of(missing.node),
    )
