"""How a synthetic table's loss is divided over its looks, and the noise that follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from dpsql.privacy import forest, mwem
from dpsql.privacy.looks import marginal_sensitivity
from dpsql.privacy.mechanisms import (
    Mechanism,
    Sensitivity,
    calibrate_gaussian,
    calibrate_laplace,
    positive_share,
    root_at_least,
    scale_at_least,
)
from dpsql.privacy.synthesis import TOTAL_SHARE, Method, Synthesis
from dpsql.privacy.tally import Axes, UnitMass, total_sensitivity


@dataclass(frozen=True)
class Wanted:
    """A synthetic table before its noise is known; `rounds` is None for as many as are usual."""

    method: Method | None
    axes: Axes
    mass: UnitMass
    widths: tuple[tuple[int, ...], ...]
    most_rows: int
    rounds: int | None = None


def method_for(sizes: tuple[int, ...]) -> Method:
    """The method for a domain where none is asked for."""
    return Method.MWEM if prod(sizes) <= mwem.MOST_CELLS else Method.MARGINALS


def usual_rounds(sizes: tuple[int, ...]) -> int:
    """Of mwem: with as many marginals as columns and some more, each column is met about twice."""
    return 1 if len(sizes) == 1 else len(sizes) + 1


def under_epsilon(wanted: Wanted, epsilon: Fraction) -> Synthesis:
    """The synthetic table with the least noise that is charged at most `epsilon`."""
    return _divided(wanted, epsilon, calibrate_laplace, lambda share: scale_at_least(2 * wanted.mass.l1 / share))


def under_rho(wanted: Wanted, rho: Fraction) -> Synthesis:
    """The synthetic table with the least noise that is charged at most `rho`."""
    square = wanted.mass.l1**2
    return _divided(wanted, rho, calibrate_gaussian, lambda share: root_at_least(square / (2 * share)))


def _divided(
    wanted: Wanted,
    whole: Fraction,
    noise: Callable[[Sensitivity, Fraction], Mechanism],
    scale: Callable[[Fraction], Fraction],
) -> Synthesis:
    sizes, mass = wanted.axes.sizes, wanted.mass
    method = wanted.method or method_for(sizes)
    rounds, choices, parts = _looks(method, sizes, wanted.rounds)
    rest = whole * (1 - TOTAL_SHARE)
    ones, choosing, pairs = (rest * part for part in parts)
    moved = marginal_sensitivity(mass)
    return Synthesis(
        method=method,
        axes=wanted.axes,
        mass=mass,
        total=noise(total_sensitivity(mass), whole * TOTAL_SHARE),
        ones=noise(moved, ones / len(sizes)) if ones else None,
        pairs=noise(moved, pairs / rounds) if rounds else None,
        choosing=scale(positive_share(choosing / rounds)) if choices else None,
        rounds=rounds,
        widths=wanted.widths,
        most_rows=wanted.most_rows,
    )


def _looks(method: Method, sizes: tuple[int, ...], asked: int | None) -> tuple[int, bool, tuple[Fraction, ...]]:
    """How many rounds, whether anything is chosen in them, and the parts of one-way marginals, choices and rounds."""
    zero, one = Fraction(0), Fraction(1)
    if method is Method.MWEM:
        rounds = asked or usual_rounds(sizes)
        chooses = len(sizes) > 1 or rounds > 1
        return rounds, chooses, (zero, one / 4, 3 * one / 4) if chooses else (zero, zero, one)
    edges = forest.edges_of(sizes) if method is Method.MARGINALS else 0
    if not edges:
        return 0, False, (one, zero, zero)
    chooses = edges < len(forest.pairs_of(sizes))
    return edges, chooses, (one / 3, one / 3, one / 3) if chooses else (one / 2, zero, one / 2)
