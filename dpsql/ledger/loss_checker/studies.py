"""The loss of a study, computed again from its record: one function for each kind.

Law: as of `checker.py`. Nothing of `privacy` is imported; each formula is derived here once more, in exact fractions. A
record that is not understood to the last name raises ValueError, KeyError or TypeError, and is then unreadable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

# What one unit adds to the weighted rows of a study, and the figures of its record.

LossTriple = tuple[Fraction | None, Fraction, Fraction]
"""Epsilon, where the loss is pure; rho; delta."""


@dataclass(frozen=True)
class TallyMass:
    """What one unit adds to a study's tally: weights that sum to at most `norm`; a whole row weighs `whole`."""

    norm: int
    whole: int
    one_row: bool
    group_size: int
    change_one: bool

    @property
    def max_change(self) -> int:
        """The most that the weight of a set of tuples changes: what comes and what leaves are both at least 0."""
        return self.group_size * self.norm

    @property
    def sides(self) -> int:
        return 2 if self.change_one else 1


def read_mass(part: dict[str, Any]) -> TallyMass:
    if part.keys() != {"norm", "whole", "one_row", "group_size", "change_one"}:
        raise ValueError("a mass has other names")
    norm, whole, group_size = (read_positive_integer(part[name]) for name in ("norm", "whole", "group_size"))
    if not isinstance(part["one_row"], bool) or not isinstance(part["change_one"], bool):
        raise ValueError("a mass has a figure where it needs true or false")
    if part["one_row"] and norm != whole:
        raise ValueError("one row weighs what a whole row weighs")
    return TallyMass(norm, whole, part["one_row"], group_size, part["change_one"])


def read_positive_integer(text: Any) -> int:
    """A whole number above 0, in decimal text."""
    if not isinstance(text, str) or (value := Fraction(text)) < 1 or value.denominator != 1:
        raise ValueError("a figure of the record is no positive whole number")
    return value.numerator


def read_positive_fraction(text: Any) -> Fraction:
    """A number above 0, in decimal text."""
    if not isinstance(text, str) or (value := Fraction(text)) <= 0:
        raise ValueError("a figure of the record is no positive number")
    return value


# What a model loses, computed again from its record.
#
# A minimiser of a ridge-convex sum moves by (moved gradient) / ridge, and the gradient of a row's logistic loss is no
# longer than the row's weight. In steps of 1/(ridge * steps) that is steps * (sides * moved / whole), and what the
# solver leaves on both sides 2 * tolerance * steps more; rounding d components on both sides makes sqrt(d) in L2 and d
# in L1.
#     output      the noise covers that.
#     objective   one row for each unit. A row that comes or goes shifts the slope by at most 1 in L2, sqrt(d) in L1:
#                 sqrt(d)/scale in the exponent of a Laplace density; and multiplies the determinant by at most
#                 1 + (1/4)/ridge. The noise covers only how far solver and grid of the slope (two steps of
#                 scale/slope_steps in each component) leave the minimiser apart, on any two tables.
#     moments     `parts` numbers of at most 1 in size have parts (parts - 1)/2 products, and `squares` squares, each at
#                 most `unit`: a row moves that many cells, a unit `moved` times as far.
#     count       the weight of all rows, before: moved by `moved`.


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


def study_loss(part: dict[str, Any]) -> LossTriple:
    """What the study of a record loses."""
    figures = {name: value for name, value in part.items() if name not in ("kind", "mass")}
    return STUDY_LOSSES[part["kind"]](figures, read_mass(part["mass"]))


def _synthesis_loss(figures: dict[str, Any], mass: TallyMass) -> LossTriple:
    """A synthetic table looks at its tally so many times, at each with noise of its own; looks add up.

    A unit's weights w >= 0 sum to at most M = k norm, and on each side so: the total moves by at most M; a marginal,
    which adds up disjoint tuples, by M on each side in L1, by M^2 on each side in L2, squared (no negative products);
    and the L1 distance of a marginal to what is public by as much as the marginal in L1, D. Choosing by distances:
    ln P/P' spans 2 D/b, so epsilon = 2 D/b and rho = (2 D/b)^2/8.
    """
    if figures.keys() != {"looks"} or not isinstance(figures["looks"], list) or not figures["looks"]:
        raise ValueError("a synthetic table has looks, and nothing else")
    epsilon: Fraction | None = Fraction(0)
    rho = Fraction(0)
    pure: Fraction | None
    for look in figures["looks"]:
        if look.keys() != {"at", "noise", "scale", "times"}:
            raise ValueError("a look has other names")
        sides = {"total": 1, "marginal": mass.sides, "furthest": mass.sides}[look["at"]]
        scale, times, l1 = (
            read_positive_fraction(look["scale"]),
            read_positive_integer(look["times"]),
            sides * mass.max_change,
        )
        match look["at"], look["noise"]:
            case "furthest", "exponential":
                pure, concentrated = 2 * l1 / scale, (2 * l1 / scale) ** 2 / 8
            case (("total" | "marginal"), "laplace"):
                pure, concentrated = l1 / scale, sides * mass.max_change**2 / (2 * scale**2)
            case (("total" | "marginal"), "gaussian"):
                pure, concentrated = None, sides * mass.max_change**2 / (2 * scale**2)
            case _:
                raise ValueError("a look with noise that is not known here")
        epsilon = None if epsilon is None or pure is None else epsilon + times * pure
        rho += times * concentrated
    return epsilon, rho, Fraction(0)


def _response_loss(figures: dict[str, Any], mass: TallyMass) -> LossTriple:
    """One randomized answer for each unit: a tells b with probability p if a = b, else q, where p / q = exp(epsilon).

    Where one answer differs, the log-likelihood ratio of what is told is between -epsilon and epsilon, and a mechanism
    that is pure with epsilon has a rho of at most epsilon^2/2. k units differ in k answers, told by draws of their own:
    k times both. If a unit could have no row, or several, the number of answers would tell; so each has one, always.
    """
    if figures.keys() != {"epsilon", "answers"} or read_positive_integer(figures["answers"]) < 2:
        raise ValueError("a response has other names")
    if not (mass.one_row and mass.change_one):
        raise ValueError("the number of answers is not public")
    epsilon = read_positive_fraction(figures["epsilon"])
    return mass.group_size * epsilon, mass.group_size * epsilon**2 / 2, Fraction(0)


STUDY_LOSSES: dict[str, Callable[[dict[str, Any], TallyMass], LossTriple]] = {
    "synthesis": _synthesis_loss,
    "output": output_perturbation_loss,
    "objective": objective_perturbation_loss,
    "moments": noisy_moments_loss,
    "response": _response_loss,
}
