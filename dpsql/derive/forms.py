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

from dpsql.derive.shape import CellForm
from dpsql.plan.bundles import Bundle, CountBundle, CovarianceBundle, MomentBundle, SumBundle, VarianceBundle
from dpsql.plan.expr import Expr, Quantise

AtomSums = Mapping[str, Fraction]
RenderExpr = Callable[[Expr], str]
IsNullable = Callable[[Expr], bool]


class FormBuilder:
    """Forms of the bundles over one relation of rows; `prefix` tells how these rows are weighed or chosen."""

    def __init__(self, prefix: str, text: RenderExpr, nullable: IsNullable) -> None:
        self._prefix, self._text, self._nullable = prefix, text, nullable

    def build_forms(self, bundle: Bundle) -> tuple[CellForm, ...]:
        """One for each of the bundle's cells, in order."""
        return tuple(_sums_to_form(sums) for sums in self._sums_of_bundle(bundle))

    def _sums_of_bundle(self, bundle: Bundle) -> list[AtomSums]:
        match bundle:
            case CountBundle(_, None):
                return [self._row_count]
            case CountBundle(_, present):
                assert present is not None
                return [self._count_sum(present)]
            case SumBundle():
                return [self._value_sum(bundle.value)]
            case MomentBundle():
                return self._mean_sums(bundle)
            case VarianceBundle():
                return self._variance_sums(bundle)
            case CovarianceBundle():
                return self._covariance_sums(bundle)
            case _:
                assert_never(bundle)

    def _mean_sums(self, bundle: MomentBundle) -> list[AtomSums]:
        value = bundle.value
        lower, upper = value.lower * value.grid, value.upper * value.grid
        count, total = self._count_sum(value.arg), self._value_sum(value)
        missing = _add_sums((self._row_count, 1), (count, -1))
        if bundle.null_as is not None:
            total, count = _add_sums((total, 1), (missing, bundle.null_as * value.grid)), self._row_count
        cells = [_add_sums((total, 1), (count, -lower)), _add_sums((count, upper), (total, -1))]
        return cells if bundle.missing is None else [*cells, _add_sums((missing, upper - lower))]

    def _variance_sums(self, bundle: VarianceBundle) -> list[AtomSums]:
        value = bundle.value
        count, square = self._count_sum(value.arg), self._make_atom("square", self._value_text(value))
        linear = _add_sums(
            (self._value_sum(value), 2 / (value.grid * bundle.max_width)),
            (count, Fraction(-(value.lower + value.upper), bundle.max_width)),
        )
        return [_add_sums((count, 1), (square, -1)), square, linear]

    def _covariance_sums(self, bundle: CovarianceBundle) -> list[AtomSums]:
        """Of one pair, whichever of the two comes first."""
        first, second = (self._value_text(value) for value in bundle.values)
        both = " and ".join(sorted((first, second)))
        nullable = any(self._nullable(value.arg) for value in bundle.values)
        count = self._make_atom("count", both) if nullable else self._row_count
        a, b = (self._make_atom("linear", f"{x} of {both}") for x in (first, second))
        aa, bb = (self._make_atom("squared", f"{x} of {both}") for x in (first, second))
        return [_add_sums((count, 1), (aa, -1)), aa, a, b, bb, self._make_atom("product", both)]

    # --- sums that bundles share -------------------------------------------------------------------------------------

    @property
    def _row_count(self) -> AtomSums:
        return self._make_atom("rows", "")

    def _count_sum(self, arg: Expr) -> AtomSums:
        return self._make_atom("count", self._text(arg)) if self._nullable(arg) else self._row_count

    def _value_sum(self, value: Quantise) -> AtomSums:
        return self._make_atom("sum", self._value_text(value))

    def _value_text(self, value: Quantise) -> str:
        return f"{self._text(value.arg)} {value.grid} {value.lower} {value.upper}"

    def _make_atom(self, name: str, of: str) -> AtomSums:
        return {f"{self._prefix} {name} {of}": Fraction(1)}


def _add_sums(*parts: tuple[AtomSums, Fraction | int]) -> AtomSums:
    result: dict[str, Fraction] = {}
    for sums, factor in parts:
        for atom, number in sums.items():
            result[atom] = result.get(atom, Fraction(0)) + number * factor
    return result


def _sums_to_form(sums: AtomSums) -> CellForm:
    return tuple(sorted((atom, number) for atom, number in sums.items() if number))
