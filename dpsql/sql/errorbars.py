"""Error bars of arithmetic over aggregates: the delta method, written out as SQL over the release's columns.

    stderr^2 = sum over i, j of (df/dm_i) * (df/dm_j) * cov(m_i, m_j)

The derivatives are taken here, symbol by symbol; values, covariances and the interval's factor are columns of the
release. So a bar is a function of released values and noise scales, and costs nothing (SOUNDNESS 11). It is exact for
sums and differences, and right to first order for products, ratios and roots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

MOST_NODES, MOST_WRITTEN = 150, 3_000
"""Of the expression, and of its error: derivatives of products grow, and such a bar is not worth its time."""


class Columns(Protocol):
    """What the release has to offer: measures are known by numbers."""

    def measure(self, node: exp.Expr) -> int | None:
        """Of an aggregate that is a number and whose error is known."""
        ...

    def is_constant(self, node: exp.Expr) -> bool:
        """A key that is a number."""
        ...

    @property
    def value(self) -> Callable[[exp.Expr], exp.Expr]: ...

    def covariance(self, one: int, other: int) -> exp.Expr: ...

    def factor(self) -> exp.Expr:
        """Half of the 95 % interval, in standard errors."""
        ...


@dataclass(frozen=True)
class Bars:
    stderr: exp.Expr
    low: exp.Expr
    high: exp.Expr


@dataclass(frozen=True)
class NoBars:
    """`node` is the part that has no derivative here."""

    node: exp.Expr


Gradient = dict[int, exp.Expr]
"""By measure; a measure that is not there has the derivative 0."""


class _Underivable(Exception):
    def __init__(self, node: exp.Expr) -> None:
        super().__init__()
        self.node = node


def propagate(node: exp.Expr, columns: Columns) -> Bars | NoBars:
    """Standard error and 95 % interval of an expression over the aggregates of one release.

    Values are asked for only of expressions that have a derivative: a sub-select is not read twice.
    """
    if sum(1 for _ in node.walk()) > MOST_NODES:
        return NoBars(node)
    try:
        gradient = _gradient(node, columns)
    except _Underivable as stop:
        return NoBars(stop.node)
    if not gradient:
        return NoBars(node)  # a constant: nothing was noised
    value = _double(columns.value(node))
    # ABS, because rounding may take a variance of 0 below it; GREATEST would skip NULL.
    root = exp.Sqrt(this=exp.Abs(this=_variance(gradient, columns)))
    # No answer, no bar; and 0 / 0 gives none either.
    unknown = exp.Is(this=value.copy(), expression=exp.Null())
    stderr = exp.Case(ifs=[exp.If(this=unknown, true=exp.Null())], default=root)
    if sum(1 for _ in stderr.walk()) > MOST_WRITTEN:
        return NoBars(node)
    half = _times(columns.factor(), exp.Paren(this=stderr))
    return Bars(
        stderr,
        exp.Sub(this=value, expression=exp.Paren(this=half)),
        exp.Add(this=value.copy(), expression=exp.Paren(this=half.copy())),
    )


def _variance(gradient: Gradient, columns: Columns) -> exp.Expr:
    terms: list[exp.Expr] = []
    measures = sorted(gradient)
    for place, one in enumerate(measures):
        for other in measures[place:]:
            pair = _times(gradient[one].copy(), gradient[other].copy())
            term = _times(pair, columns.covariance(one, other))
            terms.append(term if one == other else _times(_number(2), term))
    result = terms[0]
    for term in terms[1:]:
        result = exp.Add(this=result, expression=term)
    return result


def _gradient(node: exp.Expr, columns: Columns) -> Gradient:
    match node:
        case exp.Literal() if not node.is_string:
            return {}
        case exp.Paren():
            return _gradient(node.this, columns)
        case exp.Neg():
            return _scaled(_gradient(node.this, columns), _number(-1))
        case exp.Add():
            return _sum(_gradient(node.this, columns), _gradient(node.expression, columns))
        case exp.Sub():
            return _sum(_gradient(node.this, columns), _scaled(_gradient(node.expression, columns), _number(-1)))
        case exp.Mul():
            return _product(node, columns)
        case exp.Div() | exp.IntDiv():
            return _quotient(node, columns)
        case exp.Abs():
            inner = _gradient(node.this, columns)
            return _scaled(inner, exp.Sign(this=_double(columns.value(node.this))))
        case exp.Sqrt():
            inner = _gradient(node.this, columns)
            root = exp.Sqrt(this=_double(columns.value(node.this)))
            return _scaled(inner, _ratio(_number("0.5"), root))
        case exp.Cast() if node.to.this in exp.DataType.NUMERIC_TYPES:
            return _gradient(node.this, columns)
        case exp.Round() | exp.Ceil() | exp.Floor():
            # The bar is that of the number before it was rounded.
            return _gradient(node.this, columns)
        case exp.Nullif() if _is_number(node.expression):
            return _gradient(node.this, columns)
        case exp.Coalesce() if all(_is_number(one) for one in node.expressions):
            # Where the first is NULL, so is its error: the bar is for what was measured.
            return _gradient(node.this, columns)
        case _:
            return _leaf(node, columns)


def _leaf(node: exp.Expr, columns: Columns) -> Gradient:
    measure = columns.measure(node)
    if measure is not None:
        return {measure: _number(1)}
    if columns.is_constant(node):
        return {}
    raise _Underivable(node)


def _product(node: exp.Expr, columns: Columns) -> Gradient:
    left, right = _gradient(node.this, columns), _gradient(node.expression, columns)
    one = _scaled(left, _double(columns.value(node.expression))) if left else {}
    other = _scaled(right, _double(columns.value(node.this))) if right else {}
    return _sum(one, other)


def _quotient(node: exp.Expr, columns: Columns) -> Gradient:
    above, below = _gradient(node.this, columns), _gradient(node.expression, columns)
    divisor = _double(columns.value(node.expression))
    result = _scaled(above, _ratio(_number(1), divisor)) if above else {}
    if not below:
        return result
    quotient = _ratio(_double(columns.value(node.this)), _times(divisor.copy(), divisor.copy()))
    return _sum(result, _scaled(below, _times(_number(-1), quotient)))


def _sum(one: Gradient, other: Gradient) -> Gradient:
    result = dict(one)
    for measure, term in other.items():
        result[measure] = exp.Paren(this=exp.Add(this=result[measure], expression=term)) if measure in result else term
    return result


def _scaled(gradient: Gradient, factor: exp.Expr) -> Gradient:
    return {measure: _times(factor.copy(), term) for measure, term in gradient.items()}


def _times(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    if _is_one(one):
        return other
    return one if _is_one(other) else exp.Mul(this=one, expression=other)


def _ratio(above: exp.Expr, below: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Div(this=above, expression=exp.Nullif(this=below, expression=_number(0))))


def _number(number: int | str) -> exp.Expr:
    text = str(number)
    return _double(exp.Neg(this=exp.Literal.number(text[1:])) if text.startswith("-") else exp.Literal.number(text))


def _double(node: exp.Expr) -> exp.Expr:
    """Doubles throughout: products of decimals would run out of digits."""
    return exp.Cast(this=node, to=exp.DataType.build("DOUBLE"))


def _is_one(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.this == "1"


def _is_number(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Neg | exp.Paren) else node
    return isinstance(inner, exp.Literal) and not inner.is_string
