"""Arguments of aggregates that are multiples of one another but for a constant: they are summed once.

    SUM(w), SUM(w + 1), AVG(2 * w)   →   SUM(w) and COUNT(w), of which all three are combinations

An argument a * e + c is NULL where e is, so its sum is a * SUM(e) + c * COUNT(e). That is said of the numbers
themselves: where a * e + c would not fit into 64 bits it is not NULL, and counts as what it is. One argument of several
stands for e, so that nothing is read that was not asked.

What is shared is the same question with fewer cells; each of them has more of the loss. Where that saves no cell,
aggregates are left as they are: a SUM(x - 1000) alone has its own bounds, or its own norm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from dpsql.compiler.plan.expressions import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Clip,
    Column,
    Compare,
    Expr,
    HoleValue,
    InHole,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    Quantise,
)
from dpsql.compiler.plan.measures import CountValues, MeanValues, Measure, SumValues, VarianceValues
from dpsql.compiler.plan.relations import Expand, Filter, Project, Rows
from dpsql.compiler.plan.walk import map_measure
from dpsql.types import INTEGER_BITS, Kind, Type

LinearMeasure = CountValues | SumValues | MeanValues | VarianceValues


@dataclass(frozen=True)
class LinearArgument:
    """factor * base + offset, NULL where the base is."""

    base: Expr
    factor: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)

    def scale_by(self, number: Fraction) -> LinearArgument:
        return LinearArgument(self.base, self.factor * number, self.offset * number)

    def add(self, number: Fraction) -> LinearArgument:
        return LinearArgument(self.base, self.factor, self.offset + number)

    def in_terms_of(self, other: LinearArgument, base: Expr) -> LinearArgument:
        """Of two arguments over one base: this one by the other, which `base` names."""
        factor = self.factor / other.factor
        return LinearArgument(base, factor, self.offset - factor * other.offset)


def find_linear_argument(expr: Expr) -> LinearArgument:
    """What an expression is a multiple of, but for a constant."""
    match expr:
        case Arithmetic("+", left, right) if (number := _number_of(right)) is not None:
            return find_linear_argument(left).add(number)
        case Arithmetic("+", left, right) if (number := _number_of(left)) is not None:
            return find_linear_argument(right).add(number)
        case Arithmetic("-", left, right) if (number := _number_of(right)) is not None:
            return find_linear_argument(left).add(-number)
        case Arithmetic("-", left, right) if (number := _number_of(left)) is not None:
            return find_linear_argument(right).scale_by(Fraction(-1)).add(number)
        case Arithmetic("*", left, right) if number := _number_of(right):
            return find_linear_argument(left).scale_by(number)
        case Arithmetic("*", left, right) if number := _number_of(left):
            return find_linear_argument(right).scale_by(number)
        case Arithmetic("/", left, right) if number := _number_of(right):
            return find_linear_argument(left).scale_by(1 / number)
        case Cast(arg, type_) if _holds_all(type_, arg.type):
            return find_linear_argument(arg)
        case Case(((when, then),), Literal(None)) if not isinstance(then, Literal):  # as FILTER is
            inner = find_linear_argument(then)
            base = Case(((when, inner.base),), Literal(None, inner.base.type), inner.base.type)
            return LinearArgument(base, inner.factor, inner.offset)
        case Column() | Literal() | Arithmetic() | Case() | Cast() | Call() | Clip() | Quantise() | HoleValue():
            return LinearArgument(expr)
        case Compare() | And() | Or() | Not() | IsNull() | InList() | InHole():
            return LinearArgument(expr)
        case _:
            assert_never(expr)


def _number_of(expr: Expr) -> Fraction | None:
    if not isinstance(expr, Literal) or expr.value is None or not expr.type.is_number:
        return None
    return Fraction(expr.value)  # type: ignore[arg-type]


def _holds_all(type_: Type, inner: Type) -> bool:
    """Whether every number of the inner type is one of the outer, doubles' rounding aside."""
    if type_.is_integer and inner.is_integer:
        return INTEGER_BITS[inner.kind] <= INTEGER_BITS[type_.kind]
    return type_.kind is Kind.DOUBLE and inner.is_number


def _expressions_of(rows: Rows) -> dict[str, Expr]:
    while isinstance(rows, Filter | Expand):  # grouping sets leave arguments as they are
        rows = rows.input
    return {column.name: column.expr for column in rows.columns} if isinstance(rows, Project) else {}


def share_arguments(
    measures: Iterable[Measure], rows: Rows, cells_of: Callable[[Expr, list[LinearMeasure]], int]
) -> Mapping[Expr, LinearArgument]:
    """The arguments that are read off another's sums, and how.

    `cells_of` says how many cells the aggregates of one argument take on their own, in the cost of a cell with a norm
    of its own; 0 if they cannot be asked. Cells are shared where they become fewer.
    """
    linear = [measure for measure in measures if isinstance(measure, LinearMeasure)]
    # A bundle that has squares costs more than one of sums alone, so sums are not read off it for its sake.
    squared = {measure.arg for measure in linear if isinstance(measure, VarianceValues)}
    exprs, groups = _expressions_of(rows), dict[tuple[Expr, bool], dict[Expr, LinearArgument]]()
    for arg in dict.fromkeys(measure.arg for measure in linear):
        if isinstance(arg, Column) and arg.name in exprs:
            linear_argument = find_linear_argument(exprs[arg.name])
            groups.setdefault((linear_argument.base, arg in squared), {})[arg] = linear_argument
    shared: dict[Expr, LinearArgument] = {}
    for members in groups.values():
        if len(members) < 2:
            continue
        # The plainest stands for all: it is the likeliest to be asked again.
        base = min(members, key=lambda arg: (members[arg].offset != 0, abs(members[arg].factor) != 1))
        related = {arg: linear_argument.in_terms_of(members[base], base) for arg, linear_argument in members.items()}
        own = {arg: [measure for measure in linear if measure.arg == arg] for arg in members}
        together = [part for arg in members for measure in own[arg] for part in read_off(measure, related[arg])]
        apart = [cells_of(arg, own[arg]) for arg in members]
        if all(apart) and 0 < cells_of(base, together) < sum(apart):
            shared |= {arg: argument for arg, argument in related.items() if arg != base}
    return shared


def read_off(measure: LinearMeasure, argument: LinearArgument) -> list[LinearMeasure]:
    """The aggregates of the base that one of the argument is a combination of."""
    of_base = map_measure(measure, lambda _: argument.base)
    assert isinstance(of_base, LinearMeasure)
    if isinstance(measure, SumValues) and argument.offset:
        return [of_base, CountValues(argument.base)]
    return [of_base]
