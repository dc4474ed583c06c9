"""How an answer is worked out from a release's noisy cells: pure functions, the same whatever the noise.

A recipe reads sums of coefficient * cell * grid (`Terms`), so it also fits a stored release of another resolution.
`post/estimates.py` computes them all, with their gradients, from which every error and covariance follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from dpsql.plan.measures import PairFunction
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


Recipe = Linear | Mean | Variance | Paired | Evidence


def map_terms(recipe: Recipe, change: Callable[[Terms], Terms]) -> Recipe:
    """The same answer, of cells that are said otherwise."""
    match recipe:
        case Linear():
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
        case _:
            assert_never(recipe)
