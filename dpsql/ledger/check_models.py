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

from dpsql.ledger.check_mass import LossTriple, TallyMass, read_positive_fraction, read_positive_integer


def output_perturbation_loss(figures: dict[str, Any], mass: TallyMass) -> LossTriple:
    _require_names(figures, {"cells", "tolerance", "steps", "noise"}, {"count"})
    d, steps = read_positive_integer(figures["cells"]), read_positive_integer(figures["steps"])
    gradient = Fraction(mass.sides * mass.max_change, mass.whole)
    far = (gradient + 2 * read_positive_fraction(figures["tolerance"])) * steps
    return _add_loss_pair(_noise_loss(figures["noise"], *_vector_sensitivity(d, far)), _count_loss(figures, mass))


def objective_perturbation_loss(figures: dict[str, Any], mass: TallyMass) -> LossTriple:
    names = {"cells", "tolerance", "steps", "slope_steps", "least_ridge", "jacobian", "scale", "noise"}
    _require_names(figures, names, {"count"})
    if not mass.one_row:
        raise ValueError("objective perturbation needs one row for each unit")
    d, steps, slope_steps = (read_positive_integer(figures[name]) for name in ("cells", "steps", "slope_steps"))
    scale, jacobian = read_positive_fraction(figures["scale"]), read_positive_fraction(figures["jacobian"])
    if _log_down(1 + Fraction(1, 4) / read_positive_fraction(figures["least_ridge"])) > jacobian:
        raise ValueError("the determinant changes by more than the record says")
    epsilon = mass.sides * mass.group_size * (_sqrt_down(d) / scale + jacobian)
    residual = 2 * (read_positive_fraction(figures["tolerance"]) + 2 * _sqrt_down(d) * scale / slope_steps) * steps
    nearly = _noise_loss(figures["noise"], *_vector_sensitivity(d, residual))
    return _add_loss_pair(_add_loss_pair((epsilon, epsilon**2 / 2, Fraction(0)), nearly), _count_loss(figures, mass))


def noisy_moments_loss(figures: dict[str, Any], mass: TallyMass) -> LossTriple:
    _require_names(figures, {"parts", "squares", "unit", "noise"})
    parts, squares, unit = (read_positive_integer(figures[name]) for name in ("parts", "squares", "unit"))
    if squares > parts:
        raise ValueError("each part has one square")
    cells, far = math.comb(parts, 2) + squares, mass.sides * mass.max_change * unit
    return _noise_loss(figures["noise"], Fraction(far * cells), Fraction(far**2 * cells))


def _vector_sensitivity(d: int, far: Fraction) -> tuple[Fraction, Fraction]:
    """L1, and the square of L2, of a vector of length `far` whose d components are rounded on both sides."""
    return _sqrt_down(d) * far + d, (far + _sqrt_down(d)) ** 2


def _count_loss(figures: dict[str, Any], mass: TallyMass) -> LossTriple:
    if "count" not in figures:
        return Fraction(0), Fraction(0), Fraction(0)
    return _noise_loss(figures["count"], Fraction(mass.max_change), Fraction(mass.max_change**2))


def _noise_loss(part: Any, l1: Fraction, l2_squared: Fraction) -> LossTriple:
    _require_names(part, {"kind", "scale"})
    scale = read_positive_fraction(part["scale"])
    match part["kind"]:
        case "laplace":
            return l1 / scale, min(l1**2, l2_squared) / (2 * scale**2), Fraction(0)
        case "gaussian":
            return None, l2_squared / (2 * scale**2), Fraction(0)
        case _:
            raise ValueError("noise of an unknown kind")


def _add_loss_pair(first: LossTriple, second: LossTriple) -> LossTriple:
    epsilon = None if first[0] is None or second[0] is None else first[0] + second[0]
    return epsilon, first[1] + second[1], first[2] + second[2]


def _sqrt_down(d: int) -> Fraction:
    """The square root to 2^-64, rounded down: the charge is compared with it, and rounds up."""
    return Fraction(math.isqrt(d << 128), 1 << 64)


def _log_down(value: Fraction) -> Fraction:
    """The natural logarithm to 50 digits, rounded down."""
    with localcontext(Context(prec=60)):
        exact = (Decimal(value.numerator) / Decimal(value.denominator)).ln()
        return Fraction(exact * (1 - Decimal("1e-50")))


def _require_names(part: Any, names: set[str], others: Set[str] = frozenset()) -> None:
    if not isinstance(part, dict) or not names <= part.keys() <= names | others:
        raise ValueError("the record has names that are not known here, or lacks some")
