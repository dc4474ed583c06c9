"""Derives a release from a stored one: some of its cells, groups added up, conditions on its keys.

Privacy: what is read is a stored release that the account has paid for, and nothing else.

Accuracy: the noise of the derived cells, in any combination of them, is no larger than that of fresh ones; groups come
from the same list, or from a selection that is as keen. A cell of rows that are weighed by an L2 norm, added up over
groups, has scaled each unit by a weight between the fresh one and 1, since the finer the groups, the smaller the norm:
clipping took away no more. (Not so where the fresh norm is that of a single group, which is known without rounding.)
Conditions go the other way, as a unit would weigh more without the rows that they leave out: there nothing is derived,
unless a condition keeps or leaves out all rows of a unit. L1 norms are the same over any groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsql.compiler.analysis.sensitivity import max_selection_keys
from dpsql.compiler.calibrate.calibrate import CalibratedPlan
from dpsql.compiler.plan.estimators import Terms
from dpsql.compiler.reuse.describe import CellForm, CellKind, CellShape, DescribedRelease, ReleaseShape
from dpsql.compiler.reuse.regroup import NotDerivable, Regrouping, regroup_release
from dpsql.privacy.loss import LossTooSmall
from dpsql.privacy.noise import Gaussian, Laplace, Mechanism, scale_from_square, scale_of
from dpsql.privacy.partition_selection import units_needed
from dpsql.privacy.release_spec import NoiseBundle, Release, ReleaseSpec

_MAX_CELL = (1 << 62) - 1


@dataclass(frozen=True)
class DerivedRelease:
    """A release with `columns` of a stored one; `terms` says what each cell that was asked for is in these.

    `noise` is the mean of the cells' variances, as parts of those of fresh ones.
    """

    release: Release
    columns: tuple[str, ...]
    terms: dict[str, Terms]
    noise: Fraction


def can_derive(wanted_release: DescribedRelease, stored: ReleaseShape) -> bool:
    """Whether a look at the release itself is worth while: it has the cells, of rows that meet no other conditions."""
    if wanted_release.shape.rows != stored.rows:
        return False
    more = set(stored.conditions) - set(wanted_release.shape.conditions)
    if not more <= {key.present for key in stored.keys}:
        return False
    forms = [cell.form for cell in stored.cells if cell is not None]
    wanted = [cell.form for cell in wanted_release.shape.cells if cell is not None]
    return all(find_combination(form, forms) is not None for form in wanted)


def derive_release(
    wanted: DescribedRelease, fresh: CalibratedPlan, stored: ReleaseShape, release: Release
) -> DerivedRelease | None:
    """The wanted release, derived from a stored one; None where that cannot be done as accurately as `fresh` would."""
    try:
        if wanted.shape.rows != stored.rows or release.spec.choice is not None:
            return None
        groups = regroup_release(wanted, fresh.gather, stored, release.keys)
        _check_selection(fresh, release.spec)
        numbers = _combine_cells(wanted.shape, stored, release.spec)
        used = sorted({index for row in numbers.values() for index, number in enumerate(row) if number})
        spread = any(cell.spread for cell in wanted.shape.cells if cell is not None)
        for index in used:
            _check_additive(stored.cells[index], stored, groups, spread)
        noise = _noise_ratio(numbers, fresh, release.spec, groups.max_members)
        return _build_release(numbers, used, groups, release, noise)
    except (NotDerivable, LossTooSmall):
        return None


# --- cells -----------------------------------------------------------------------------------------------------------

CellCombinations = dict[str, tuple[Fraction, ...]]
"""For each cell that is asked for: what every column of the stored release counts for in it."""


def _combine_cells(wanted: ReleaseShape, stored: ReleaseShape, spec: ReleaseSpec) -> CellCombinations:
    variances = _column_variances(spec)
    indices = [index for index, cell in enumerate(stored.cells) if cell is not None]
    result: CellCombinations = {}
    for cell in wanted.cells:
        if cell is not None:
            order = sorted(indices, key=lambda index: (_form_at(stored, index) != cell.form, variances[index]))
            factors = find_combination(cell.form, [_form_at(stored, index) for index in order])
            if factors is None:
                raise NotDerivable
            by_index = dict(zip(order, factors, strict=True))
            result[cell.name] = tuple(by_index.get(index, Fraction(0)) for index in range(len(stored.cells)))
    return result


def _form_at(stored: ReleaseShape, index: int) -> tuple[tuple[str, Fraction], ...]:
    cell = stored.cells[index]
    return () if cell is None else cell.form


def _check_additive(cell: CellShape | None, stored: ReleaseShape, groups: Regrouping, spread: bool) -> None:
    """Whether this cell of the stored groups means, added up, what it means in the asked ones, where `spread` is that
    of weighed cells."""
    if cell is None:
        raise NotDerivable
    whole_units = all(stored.keys[index].by_unit for index in groups.narrowed)
    apart = all(stored.keys[index].by_unit for index in groups.dropped)
    if cell.capped:  # a unit's groups are chosen among all that it has
        fits = not groups.narrowed and not groups.dropped
    elif cell.kind is CellKind.WEIGHED:
        fits = whole_units and cell.spread == spread
    elif cell.kind is CellKind.UNITS:
        fits = groups.max_members == 1 or apart
    else:
        fits = cell.kind is CellKind.ROWS or groups.max_members == 1
    if not fits:
        raise NotDerivable


# --- errors ----------------------------------------------------------------------------------------------------------


def _column_variances(spec: ReleaseSpec) -> dict[int, Fraction]:
    """The variance of each column's noise, in the units of its values; half of it for Laplace noise."""
    return {
        index: (scale_of(bundle.mechanism) * spec.grids[index]) ** 2
        for bundle in spec.bundles
        for index in bundle.columns
    }


def _noise_ratio(numbers: CellCombinations, fresh: CalibratedPlan, spec: ReleaseSpec, max_members: int) -> Fraction:
    """No combination of the derived cells, whatever is worked out of them, has more noise than that of fresh ones."""
    fresh_spec = fresh.spec
    if len({type(bundle.mechanism) for bundle in (*fresh_spec.bundles, *spec.bundles)}) > 1:
        raise NotDerivable
    stored_variances, fresh_variances = _column_variances(spec), _column_variances(fresh_spec)
    variances = [stored_variances.get(index, Fraction(0)) * max_members for index in range(len(spec.grids))]
    indices = [index for index, name in enumerate(fresh.columns) if name in numbers]
    derived_covariance = covariance_matrix([numbers[fresh.columns[index]] for index in indices], variances)
    margin = [
        [
            (fresh_variances[index] if index == other else Fraction(0)) - number
            for other, number in zip(indices, row, strict=True)
        ]
        for index, row in zip(indices, derived_covariance, strict=True)
    ]
    if not is_positive_semidefinite(margin):
        raise NotDerivable
    parts = [derived_covariance[number][number] / fresh_variances[index] for number, index in enumerate(indices)]
    return sum(parts, Fraction(0)) / max(1, len(parts))


def _check_selection(fresh: CalibratedPlan, spec: ReleaseSpec) -> None:
    if fresh.selection is not None:
        keys = max_selection_keys(fresh.gather)
        if spec.selection is None or units_needed(spec.selection.mechanism, keys) > units_needed(fresh.selection, keys):
            raise NotDerivable


# --- the release -----------------------------------------------------------------------------------------------------


def _build_release(
    numbers: CellCombinations, used: list[int], groups: Regrouping, release: Release, noise: Fraction
) -> DerivedRelease:
    names = tuple(f"d{number}" for number in range(1, len(used) + 1))
    terms = {
        cell: tuple((name, row[index]) for name, index in zip(names, used, strict=True) if row[index])
        for cell, row in numbers.items()
    }
    spec = release.spec
    used_bundles = [
        (bundle, tuple(used.index(index) for index in bundle.columns if index in used)) for bundle in spec.bundles
    ]
    bundles = tuple(
        NoiseBundle(columns, _sum_mechanism(bundle.mechanism, groups.max_members))
        for bundle, columns in used_bundles
        if columns
    )
    cells = tuple(np.array(_add_groups(release.cells[index].tolist(), groups.members), np.int64) for index in used)
    derived = Release(groups.keys, cells, ReleaseSpec(tuple(spec.grids[index] for index in used), bundles))
    return DerivedRelease(derived, names, terms, noise)


def _add_groups(cells: Sequence[int], members: Sequence[tuple[int, ...]]) -> list[int]:
    sums = [sum(cells[index] for index in indices) for indices in members]
    if any(abs(number) > _MAX_CELL for number in sums):
        raise NotDerivable
    return sums


def _sum_mechanism(mechanism: Mechanism, draws: int) -> Mechanism:
    """Noise whose errors are those of a sum of `draws` draws.

    A sum of Gaussians is told by its variance. One of Laplace draws has the standard error of a single draw of this
    scale, and lighter tails, so that an interval which fits the latter holds the sum at least as often.
    """
    if draws == 1:
        return mechanism
    match mechanism:
        case Laplace(scale):
            return Laplace(scale_from_square(draws * scale**2))
        case Gaussian(sigma):
            return Gaussian(scale_from_square(draws * sigma**2))


# Cells as combinations of other cells, in exact rationals; and whether one noise is nowhere larger than another.

Matrix = list[list[Fraction]]


def find_combination(target: CellForm, cells: Sequence[CellForm]) -> tuple[Fraction, ...] | None:
    """Numbers by which the cells add up to the target, earlier ones preferred; None where they do not."""
    atoms = sorted({atom for form in (target, *cells) for atom, _ in form})
    columns = [dict(form) for form in (*cells, target)]
    rows: Matrix = [[column.get(atom, Fraction(0)) for column in columns] for atom in atoms]
    pivots = _row_reduce(rows, len(cells))
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    numbers = [Fraction(0)] * len(cells)
    for row, pivot in zip(rows, pivots, strict=False):
        numbers[pivot] = row[-1]
    return tuple(numbers)


def _row_reduce(rows: Matrix, width: int) -> list[int]:
    """Gauss and Jordan, in place; the columns that lead a row."""
    pivots: list[int] = []
    for column in range(width):
        top = len(pivots)
        pivot_row = next((index for index in range(top, len(rows)) if rows[index][column]), None)
        if pivot_row is None:
            continue
        rows[top], rows[pivot_row] = rows[pivot_row], rows[top]
        rows[top] = [number / rows[top][column] for number in rows[top]]
        for index, row in enumerate(rows):
            if index != top and row[column]:
                rows[index] = [a - row[column] * b for a, b in zip(row, rows[top], strict=True)]
        pivots.append(column)
    return pivots


def covariance_matrix(numbers: Sequence[Sequence[Fraction]], variances: Sequence[Fraction]) -> Matrix:
    """Of combinations of independent noises."""
    return [
        [
            sum((a * b * v for a, b, v in zip(row, other_row, variances, strict=True)), Fraction(0))
            for other_row in numbers
        ]
        for row in numbers
    ]


def is_positive_semidefinite(matrix: Matrix) -> bool:
    """Whether x' M x >= 0 for all x, of a symmetric matrix: by completing squares, exactly."""
    rows = [list(row) for row in matrix]
    for index in range(len(rows)):
        pivot = rows[index][index]
        if pivot < 0 or (pivot == 0 and any(rows[index][index:])):
            return False
        if pivot == 0:
            continue
        for below in range(index + 1, len(rows)):
            factor = rows[below][index] / pivot
            rows[below] = [a - factor * b for a, b in zip(rows[below], rows[index], strict=True)]
    return True
