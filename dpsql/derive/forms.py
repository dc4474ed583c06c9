"""What the cells of a bundle add up to, in terms of sums that other bundles share.

    v - lower, upper - v              →  SUM(v) - lower * COUNT(v), upper * COUNT(v) - SUM(v)
    (W^2 - z^2, z^2, W z) / W^2       →  COUNT(v) - SQUARES(v), SQUARES(v), (2 SUM(v) - (lower + upper) COUNT(v)) / W

Two sums are one where their text is: the same expression on the same grid, clipped to the same bounds, of rows that are
weighed alike. COUNT of what is never NULL is COUNT(*).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import assert_never

from dpsql.derive.shape import Form
from dpsql.plan.bundles import Bundle, CountBundle, CovarianceBundle, MomentBundle, SumBundle, VarianceBundle
from dpsql.plan.expr import Expr, Quantise

Sums = Mapping[str, Fraction]
Text = Callable[[Expr], str]
Nullable = Callable[[Expr], bool]


class Former:
    """Forms of the bundles over one relation of rows; `prefix` tells how these rows are weighed or chosen."""

    def __init__(self, prefix: str, text: Text, nullable: Nullable) -> None:
        self._prefix, self._text, self._nullable = prefix, text, nullable

    def forms(self, bundle: Bundle) -> tuple[Form, ...]:
        """One for each of the bundle's cells, in order."""
        return tuple(_form(sums) for sums in self._sums(bundle))

    def _sums(self, bundle: Bundle) -> list[Sums]:
        match bundle:
            case CountBundle(_, None):
                return [self._rows]
            case CountBundle(_, present):
                assert present is not None
                return [self._count(present)]
            case SumBundle():
                return [self._total(bundle.value)]
            case MomentBundle():
                return self._moments(bundle)
            case VarianceBundle():
                return self._squares(bundle)
            case CovarianceBundle():
                return self._products(bundle)
            case _:
                assert_never(bundle)

    def _moments(self, bundle: MomentBundle) -> list[Sums]:
        value = bundle.value
        lower, upper = value.lower * value.grid, value.upper * value.grid
        count, total = self._count(value.arg), self._total(value)
        missing = _plus((self._rows, 1), (count, -1))
        if bundle.null_as is not None:
            total, count = _plus((total, 1), (missing, bundle.null_as * value.grid)), self._rows
        cells = [_plus((total, 1), (count, -lower)), _plus((count, upper), (total, -1))]
        return cells if bundle.missing is None else [*cells, _plus((missing, upper - lower))]

    def _squares(self, bundle: VarianceBundle) -> list[Sums]:
        value = bundle.value
        count, square = self._count(value.arg), self._atom("square", self._number(value))
        linear = _plus(
            (self._total(value), 2 / (value.grid * bundle.wide)),
            (count, Fraction(-(value.lower + value.upper), bundle.wide)),
        )
        return [_plus((count, 1), (square, -1)), square, linear]

    def _products(self, bundle: CovarianceBundle) -> list[Sums]:
        """Of one pair, whichever of the two comes first."""
        first, second = (self._number(value) for value in bundle.values)
        both = " and ".join(sorted((first, second)))
        nullable = any(self._nullable(value.arg) for value in bundle.values)
        count = self._atom("count", both) if nullable else self._rows
        a, b = (self._atom("linear", f"{x} of {both}") for x in (first, second))
        aa, bb = (self._atom("squared", f"{x} of {both}") for x in (first, second))
        return [_plus((count, 1), (aa, -1)), aa, a, b, bb, self._atom("product", both)]

    # --- sums that bundles share -------------------------------------------------------------------------------------

    @property
    def _rows(self) -> Sums:
        return self._atom("rows", "")

    def _count(self, arg: Expr) -> Sums:
        return self._atom("count", self._text(arg)) if self._nullable(arg) else self._rows

    def _total(self, value: Quantise) -> Sums:
        return self._atom("sum", self._number(value))

    def _number(self, value: Quantise) -> str:
        return f"{self._text(value.arg)} {value.grid} {value.lower} {value.upper}"

    def _atom(self, name: str, of: str) -> Sums:
        return {f"{self._prefix} {name} {of}": Fraction(1)}


def _plus(*parts: tuple[Sums, Fraction | int]) -> Sums:
    result: dict[str, Fraction] = {}
    for sums, factor in parts:
        for atom, number in sums.items():
            result[atom] = result.get(atom, Fraction(0)) + number * factor
    return result


def _form(sums: Sums) -> Form:
    return tuple(sorted((atom, number) for atom, number in sums.items() if number))
