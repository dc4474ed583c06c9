"""How an answer is worked out from a release's noisy cells: pure functions, the same whatever the noise.

A recipe reads sums of coefficient * cell * grid (`Terms`), so it also fits a stored release of another resolution.
`session/postprocess/estimates.py` computes them all, with their gradients, from which every error and covariance
follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from dpsql.compiler.plan.measures import PairFunction
from dpsql.schema.model import Randomized
from dpsql.types import BOOLEAN, DOUBLE, Type

Terms = tuple[tuple[str, Fraction], ...]
"""Cells with their coefficients."""


@dataclass(frozen=True)
class Linear:
    """The sum of coefficient * cell."""

    terms: Terms
    type: Type


@dataclass(frozen=True)
class Mean:
    """center + first / count, within the bounds; NULL where nothing is left to count."""

    count: Terms
    first: Terms  # the sum of v - center
    center: Fraction
    lower: Fraction
    upper: Fraction
    type: Type = DOUBLE


@dataclass(frozen=True)
class Variance:
    """second / count - (first / count)^2, between 0 and `most`; of a sample times n / (n - 1), NULL for n <= 1."""

    count: Terms
    first: Terms  # the sum of v - center
    second: Terms  # the sum of (v - center)^2
    most: Fraction
    sample: bool
    root: bool
    type: Type = DOUBLE


@dataclass(frozen=True)
class Moments:
    """The sums of one of two values: what it is centred at, how far it is from there at most."""

    first: Terms
    second: Terms
    center: Fraction
    half: Fraction


@dataclass(frozen=True)
class Paired:
    """A function of the moments of two values, of the rows where both are there."""

    function: PairFunction
    count: Terms
    y: Moments
    x: Moments
    product: Terms  # the sum of (y - its center) * (x - its center)
    type: Type = DOUBLE


@dataclass(frozen=True)
class Evidence:
    """`found` where there are witnesses beyond what noise explains, else its contrary; NULL where nothing is counted.

    "Beyond": the noisy count of witnesses is above the half-width of its own 95 % interval. So BOOL_OR is wrongly true
    in at most one of forty groups without a witness, and a few witnesses may go unseen.
    """

    witnesses: Terms
    count: Terms
    found: bool
    type: Type = BOOLEAN


@dataclass(frozen=True)
class Debiased:
    """A count or mean of groups by randomized answers, of the rows whose true answer it is.

    `keys` are the places among the release's keys that hold such answers, with how they were randomized. Of a recorded
    count c of a value, with n the sum over all values (within equal other keys), it is (c - n q) / (p - q).
    """

    recipe: Linear | Mean
    keys: tuple[tuple[int, Randomized], ...]
    type: Type


@dataclass(frozen=True)
class DebiasedMean:
    """The mean of a function of randomized answers: of the recorded mean m, (m - q total) / (p - q).

    `total` and `squares` are the sums of the function's values, and of their squares, over all answers.
    """

    mean: Mean
    randomized: Randomized
    total: Fraction
    squares: Fraction
    type: Type = DOUBLE


@dataclass(frozen=True)
class BlockMean:
    """center + the sum of coefficient * cell, within the bounds: a mean over a number of blocks that is known."""

    terms: Terms
    center: Fraction
    lower: Fraction
    upper: Fraction
    type: Type = DOUBLE


@dataclass(frozen=True)
class BetaPosterior:
    """The posterior of a share, from noisy counts of ones and zeros; `part` is one of the columns that show it."""

    ones: Terms
    zeros: Terms
    alpha: Fraction
    beta: Fraction
    confidence: Fraction
    part: str
    type: Type = DOUBLE


@dataclass(frozen=True)
class NormalPosterior:
    """Of a mean, from noisy sums of 1 - z^2, z^2 and z, where z = (v - center) / half lies within [-1, 1].

    As if `prior_n` rows had been seen before, with mean `prior_mean` and, where it is given, deviation `prior_sd`; the
    deviation may be known, as `sigma`.
    """

    rest: Terms
    square: Terms
    linear: Terms
    center: Fraction
    half: Fraction
    prior_mean: Fraction
    prior_n: Fraction
    prior_sd: Fraction | None
    sigma: Fraction | None
    confidence: Fraction
    part: str
    type: Type = DOUBLE


Recipe = (
    Linear | Mean | Variance | Paired | Evidence | Debiased | DebiasedMean | BlockMean | BetaPosterior | NormalPosterior
)


def map_terms(recipe: Recipe, change: Callable[[Terms], Terms]) -> Recipe:
    """The same answer, of cells that are said otherwise."""
    match recipe:
        case Linear() | BlockMean():
            return replace(recipe, terms=change(recipe.terms))
        case Mean():
            return replace(recipe, count=change(recipe.count), first=change(recipe.first))
        case Variance():
            count, first, second = map(change, (recipe.count, recipe.first, recipe.second))
            return replace(recipe, count=count, first=first, second=second)
        case Paired():
            y, x = (replace(of, first=change(of.first), second=change(of.second)) for of in (recipe.y, recipe.x))
            return replace(recipe, count=change(recipe.count), y=y, x=x, product=change(recipe.product))
        case Evidence():
            return replace(recipe, witnesses=change(recipe.witnesses), count=change(recipe.count))
        case Debiased(inner):
            changed = map_terms(inner, change)
            assert isinstance(changed, Linear | Mean)
            return replace(recipe, recipe=changed)
        case DebiasedMean(mean):
            changed = map_terms(mean, change)
            assert isinstance(changed, Mean)
            return replace(recipe, mean=changed)
        case BetaPosterior():
            return replace(recipe, ones=change(recipe.ones), zeros=change(recipe.zeros))
        case NormalPosterior():
            rest, square, linear = map(change, (recipe.rest, recipe.square, recipe.linear))
            return replace(recipe, rest=rest, square=square, linear=linear)
        case _:
            assert_never(recipe)
