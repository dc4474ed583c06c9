"""How far clipping may have moved answers: from the histograms that norms were chosen from, and from noisy answers.

For sums they hold in about nine of ten cases, but for units that are too few to be seen; for averages they are about
what shared weights may move. What is lost is spread over groups as their answers are.

Privacy: a function of released histograms and answers, of noise scales and of the plan (SOUNDNESS 11).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsql.compiler.clipping import ScaledCells
from dpsql.compiler.plan.estimators import BlockMean, Linear, Mean, Recipe, Terms, recipe_cells
from dpsql.session.postprocess.latent_sums import Floats
from dpsql.session.postprocess.noisy_cells import NoisyCells


@dataclass(frozen=True)
class ClippingReach:
    """How far below and above each answer the truth may lie for what was scaled down; both are at least 0."""

    below: Floats
    above: Floats

    @property
    def half(self) -> Floats:
        """Half of the width of where the truth may lie, which is about `middle` from the answer."""
        return (self.above + self.below) / 2

    @property
    def middle(self) -> Floats:
        return (self.above - self.below) / 2


def clipping_reach(recipe: Recipe, cells: NoisyCells, scaled: ScaledCells) -> ClippingReach | None:
    """None where it is not known: for caps that were declared or set, and for answers that have no such figure."""
    if not any(scaled.is_scaled(cell) for cell in recipe_cells(recipe)):
        nothing = np.zeros(len(cells.release.keys))
        return None if isinstance(recipe, BlockMean) else ClippingReach(nothing, nothing)
    match recipe:
        case Linear(terms):
            return _reach_of_sum(terms, cells, scaled)
        case Mean():
            return _reach_of_mean(recipe, cells, scaled)
        case _:
            return None


def _reach_of_sum(terms: Terms, cells: NoisyCells, scaled: ScaledCells) -> ClippingReach | None:
    """What is lost adds up: its upper estimate, which holds in nine of ten cases."""
    rows = scaled.row_norm(terms)
    if rows is not None:
        return ClippingReach(*rows.group_shifts(cells.to_dual(terms).value))
    below, above = np.zeros(len(cells.release.keys)), np.zeros(len(cells.release.keys))
    for cell, coefficient in terms:
        if scaled.is_unknown(cell):
            return None
        if cell in scaled.norms:
            norm = scaled.norms[cell]
            lost = norm.clipped_above + scaled.lost_beside(cell)
            together = (cell, *(other for other in scaled.beside.get(cell, ()) if other in dict(terms)))
            answers = cells.to_dual(tuple((name, Fraction(1)) for name in together)).value
            less, more = norm.group_shifts(answers, lost)
            less, more = (less, more) if coefficient > 0 else (more, less)
            below, above = below + less * abs(float(coefficient)), above + more * abs(float(coefficient))
    return ClippingReach(below, above)


def _reach_of_mean(recipe: Mean, cells: NoisyCells, scaled: ScaledCells) -> ClippingReach | None:
    """To first order, of first / count, by what both have lost, about: their noise is in the bar already.

    Units that are scaled down lose in both. The mean moves by (lost sum - mean * lost count) / count: where sums have
    one sign that is at most the larger of the two; where they have both, the mean about its centre is small.
    """
    count, first = cells.to_dual(recipe.count).value, cells.to_dual(recipe.first).value
    lost_rows, lost_sums = (_lost_about(terms, cells, scaled, count) for terms in (recipe.count, recipe.first))
    if lost_rows is None or lost_sums is None:
        return None
    with np.errstate(all="ignore"):
        reach = np.maximum(lost_sums, np.abs(first / count) * lost_rows) / np.abs(count)
        reach = np.nan_to_num(reach, nan=np.inf, posinf=np.inf)
    return ClippingReach(reach, reach)


def _lost_about(terms: Terms, cells: NoisyCells, scaled: ScaledCells, count: Floats) -> Floats | None:
    """What each group has lost, about; spread as rows are, where sums may cancel."""
    total = np.zeros(len(count))
    for cell, coefficient in terms:
        if scaled.is_unknown(cell):
            return None
        if cell in scaled.norms:
            norm = scaled.norms[cell]
            lost = max(0.0, norm.clipped) + scaled.lost_beside(cell)
            less, more = norm.group_shifts(cells.to_dual(((cell, Fraction(1)),)).value, lost, count)
            total = total + np.maximum(less, more) * abs(float(coefficient))
    return total
