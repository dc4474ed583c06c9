"""What a study loses, computed again from its record: one function for each kind.

Law: as of `checker`. Nothing of `privacy` is imported; each formula is derived here once more, in exact fractions. A
record that is not understood to the last name raises ValueError, KeyError or TypeError, and is then unreadable.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpsql.ledger.check_mass import LossTriple, TallyMass, read_positive_fraction, read_positive_integer, read_mass
from dpsql.ledger.check_models import noisy_moments_loss, objective_perturbation_loss, output_perturbation_loss


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
        scale, times, l1 = read_positive_fraction(look["scale"]), read_positive_integer(look["times"]), sides * mass.max_change
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
