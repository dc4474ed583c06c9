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
    require_positive_share,
    scale_from_square,
    round_up_scale,
)
from dpsql.privacy.synthesis import TOTAL_SHARE, SynthesisMethod, Synthesis
from dpsql.privacy.tally import Axes, UnitMass, total_sensitivity


@dataclass(frozen=True)
class SynthesisRequest:
    """A synthetic table before its noise is known; `rounds` is None for as many as are usual."""

    method: SynthesisMethod | None
    axes: Axes
    mass: UnitMass
    widths: tuple[tuple[int, ...], ...]
    most_rows: int
    rounds: int | None = None


def default_method(sizes: tuple[int, ...]) -> SynthesisMethod:
    """The method for a domain where none is asked for."""
    return SynthesisMethod.MWEM if prod(sizes) <= mwem.MAX_CELLS else SynthesisMethod.MARGINALS


def default_rounds(sizes: tuple[int, ...]) -> int:
    """Of mwem: with as many marginals as columns and some more, each column is met about twice."""
    return 1 if len(sizes) == 1 else len(sizes) + 1


def calibrate_synthesis_by_epsilon(request: SynthesisRequest, epsilon: Fraction) -> Synthesis:
    """The synthetic table with the least noise that is charged at most `epsilon`."""
    return _divide_loss(request, epsilon, calibrate_laplace, lambda share: round_up_scale(2 * request.mass.l1 / share))


def calibrate_synthesis_by_rho(request: SynthesisRequest, rho: Fraction) -> Synthesis:
    """The synthetic table with the least noise that is charged at most `rho`."""
    square = request.mass.l1**2
    return _divide_loss(request, rho, calibrate_gaussian, lambda share: scale_from_square(square / (2 * share)))


def _divide_loss(
    request: SynthesisRequest,
    full_loss: Fraction,
    noise: Callable[[Sensitivity, Fraction], Mechanism],
    scale: Callable[[Fraction], Fraction],
) -> Synthesis:
    sizes, mass = request.axes.sizes, request.mass
    method = request.method or default_method(sizes)
    rounds, choices, parts = _plan_measurements(method, sizes, request.rounds)
    rest = full_loss * (1 - TOTAL_SHARE)
    ones, choosing, pairs = (rest * part for part in parts)
    sensitivity = marginal_sensitivity(mass)
    return Synthesis(
        method=method,
        axes=request.axes,
        mass=mass,
        total=noise(total_sensitivity(mass), full_loss * TOTAL_SHARE),
        ones=noise(sensitivity, ones / len(sizes)) if ones else None,
        pairs=noise(sensitivity, pairs / rounds) if rounds else None,
        choosing=scale(require_positive_share(choosing / rounds)) if choices else None,
        rounds=rounds,
        widths=request.widths,
        most_rows=request.most_rows,
    )


def _plan_measurements(method: SynthesisMethod, sizes: tuple[int, ...], requested_rounds: int | None) -> tuple[int, bool, tuple[Fraction, ...]]:
    """How many rounds, whether anything is chosen in them, and the parts of one-way marginals, choices and rounds."""
    zero, one = Fraction(0), Fraction(1)
    if method is SynthesisMethod.MWEM:
        rounds = requested_rounds or default_rounds(sizes)
        chooses = len(sizes) > 1 or rounds > 1
        return rounds, chooses, (zero, one / 4, 3 * one / 4) if chooses else (zero, zero, one)
    edges = forest.count_edges(sizes) if method is SynthesisMethod.MARGINALS else 0
    if not edges:
        return 0, False, (one, zero, zero)
    chooses = edges < len(forest.candidate_edges(sizes))
    return edges, chooses, (one / 3, one / 3, one / 3) if chooses else (one / 2, zero, one / 2)
