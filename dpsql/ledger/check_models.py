"""What a model loses, computed again from its record: see `check_studies` for the law.

A minimiser of a ridge-convex sum moves by (moved gradient) / ridge, and the gradient of a row's logistic loss is no
longer than the row's weight. In steps of 1/(ridge * steps) that is steps * (sides * moved / whole), and what the solver
leaves on both sides 2 * tolerance * steps more; rounding d components on both sides makes sqrt(d) in L2 and d in L1.
    output      the noise covers that.
    objective   one row for each unit. A row that comes or goes shifts the slope by at most 1 in L2, sqrt(d) in L1:
                sqrt(d)/scale in the exponent of a Laplace density; and multiplies the determinant by at most
                1 + (1/4)/ridge. The noise covers only how far solver and grid of the slope (two steps of
                scale/slope_steps in each component) leave the minimiser apart, on any two tables.
    moments     `parts` numbers of at most 1 in size have parts (parts - 1)/2 products, and `squares` squares, each at
                most `unit`: a row moves that many cells, a unit `moved` times as far.
    count       the weight of all rows, before: moved by `moved`.
"""

from __future__ import annotations

import math
from collections.abc import Set
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

from dpsql.ledger.check_mass import Lost, Mass, fraction, positive


def lost_by_output(figures: dict[str, Any], mass: Mass) -> Lost:
    _only(figures, {"cells", "tolerance", "steps", "noise"}, {"count"})
    d, steps = positive(figures["cells"]), positive(figures["steps"])
    gradient = Fraction(mass.sides * mass.moved, mass.whole)
    far = (gradient + 2 * fraction(figures["tolerance"])) * steps
    return _add(_noise(figures["noise"], *_vector(d, far)), _count(figures, mass))


def lost_by_objective(figures: dict[str, Any], mass: Mass) -> Lost:
    names = {"cells", "tolerance", "steps", "slope_steps", "least_ridge", "jacobian", "scale", "noise"}
    _only(figures, names, {"count"})
    if not mass.one_row:
        raise ValueError("objective perturbation needs one row for each unit")
    d, steps, slope_steps = (positive(figures[name]) for name in ("cells", "steps", "slope_steps"))
    scale, jacobian = fraction(figures["scale"]), fraction(figures["jacobian"])
    if _log(1 + Fraction(1, 4) / fraction(figures["least_ridge"])) > jacobian:
        raise ValueError("the determinant changes by more than the record says")
    epsilon = mass.sides * mass.group_size * (_root(d) / scale + jacobian)
    left = 2 * (fraction(figures["tolerance"]) + 2 * _root(d) * scale / slope_steps) * steps
    nearly = _noise(figures["noise"], *_vector(d, left))
    return _add(_add((epsilon, epsilon**2 / 2, Fraction(0)), nearly), _count(figures, mass))


def lost_by_moments(figures: dict[str, Any], mass: Mass) -> Lost:
    _only(figures, {"parts", "squares", "unit", "noise"})
    parts, squares, unit = (positive(figures[name]) for name in ("parts", "squares", "unit"))
    if squares > parts:
        raise ValueError("each part has one square")
    cells, far = math.comb(parts, 2) + squares, mass.sides * mass.moved * unit
    return _noise(figures["noise"], Fraction(far * cells), Fraction(far**2 * cells))


def _vector(d: int, far: Fraction) -> tuple[Fraction, Fraction]:
    """L1, and the square of L2, of a vector of length `far` whose d components are rounded on both sides."""
    return _root(d) * far + d, (far + _root(d)) ** 2


def _count(figures: dict[str, Any], mass: Mass) -> Lost:
    if "count" not in figures:
        return Fraction(0), Fraction(0), Fraction(0)
    return _noise(figures["count"], Fraction(mass.moved), Fraction(mass.moved**2))


def _noise(part: Any, l1: Fraction, l2_squared: Fraction) -> Lost:
    _only(part, {"kind", "scale"})
    scale = fraction(part["scale"])
    match part["kind"]:
        case "laplace":
            return l1 / scale, min(l1**2, l2_squared) / (2 * scale**2), Fraction(0)
        case "gaussian":
            return None, l2_squared / (2 * scale**2), Fraction(0)
        case _:
            raise ValueError("noise of an unknown kind")


def _add(one: Lost, other: Lost) -> Lost:
    epsilon = None if one[0] is None or other[0] is None else one[0] + other[0]
    return epsilon, one[1] + other[1], one[2] + other[2]


def _root(d: int) -> Fraction:
    """The square root to 2^-64, rounded down: the charge is compared with it, and rounds up."""
    return Fraction(math.isqrt(d << 128), 1 << 64)


def _log(value: Fraction) -> Fraction:
    """The natural logarithm to 50 digits, rounded down."""
    with localcontext(Context(prec=60)):
        exact = (Decimal(value.numerator) / Decimal(value.denominator)).ln()
        return Fraction(exact * (1 - Decimal("1e-50")))


def _only(part: Any, names: set[str], others: Set[str] = frozenset()) -> None:
    if not isinstance(part, dict) or not names <= part.keys() <= names | others:
        raise ValueError("the record has names that are not known here, or lacks some")
