"""How an answer is computed from a release's noisy cells: pure functions, the same whatever the noise.

A recipe reads sums of coefficient * cell * grid (`Terms`), so it also fits a stored release of another resolution.
`session/postprocess/estimates.py` computes them all, with their gradients, from which every error and covariance
follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


@dataclass(frozen=True)
class BySet:
    """The answer of each grouping set from cells of its own: by the set's number, which is the last key of a group."""

    recipes: tuple[Recipe, ...]
    type: Type


Recipe = (
    BySet
    | Linear
    | Mean
    | Variance
    | Paired
    | Evidence
    | Debiased
    | DebiasedMean
    | BlockMean
    | BetaPosterior
    | NormalPosterior
)


def recipes_by_set(recipe: Recipe) -> tuple[Recipe, ...]:
    """That of each grouping set; one where all have the same."""
    return recipe.recipes if isinstance(recipe, BySet) else (recipe,)


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
        case BySet():
            return replace(recipe, recipes=tuple(map_terms(of_set, change) for of_set in recipe.recipes))
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


def recipe_cells(recipe: Recipe) -> frozenset[str]:
    """The cells that an answer is worked out from."""
    cells: set[str] = set()

    def collect(terms: Terms) -> Terms:
        cells.update(cell for cell, _ in terms)
        return terms

    map_terms(recipe, collect)
    return frozenset(cells)


@dataclass(frozen=True)
class MovedCenter:
    """A cell is centred `by` more than its recipes say; `count` is the cell of how many values it adds up."""

    by: Fraction
    count: str


def move_centers(recipe: Recipe, moved: Mapping[str, MovedCenter]) -> Recipe:
    """The same answer, of cells whose centres have moved.

    A sum is the centred one and so many times the centre as there are values. A mean says what it is about.
    """
    match recipe:
        case Linear():
            return replace(recipe, terms=_move_terms(recipe.terms, moved))
        case Mean():
            by = sum((part * moved[cell].by for cell, part in recipe.first if cell in moved), Fraction(0))
            return replace(recipe, center=recipe.center + by)
        case BySet():
            return replace(recipe, recipes=tuple(move_centers(of_set, moved) for of_set in recipe.recipes))
        case Debiased(inner):
            changed = move_centers(inner, moved)
            assert isinstance(changed, Linear | Mean)
            return replace(recipe, recipe=changed)
        case DebiasedMean(mean):
            changed = move_centers(mean, moved)
            assert isinstance(changed, Mean)
            return replace(recipe, mean=changed)
        case Variance() | Paired() | Evidence() | BlockMean() | BetaPosterior() | NormalPosterior():
            return recipe
        case _:
            assert_never(recipe)


def _move_terms(terms: Terms, moved: Mapping[str, MovedCenter]) -> Terms:
    result: dict[str, Fraction] = {}
    for cell, coefficient in terms:
        result[cell] = result.get(cell, Fraction(0)) + coefficient
        if cell in moved:
            count = moved[cell].count
            result[count] = result.get(count, Fraction(0)) + coefficient * moved[cell].by
    return tuple((cell, coefficient) for cell, coefficient in result.items() if coefficient)
