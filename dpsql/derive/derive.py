"""A release made of another one: some of its cells, groups added up, conditions on its keys.

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

from dpsql.analysis.sensitivity import selection_keys
from dpsql.calibrate import Calibrated
from dpsql.derive.describe import Described
from dpsql.derive.linear import combination, covariance, never_negative
from dpsql.derive.regroup import NotDerived, Regrouped, regroup
from dpsql.derive.shape import Cell, Kind, Shape
from dpsql.plan.recipes import Terms
from dpsql.privacy.loss import TooSmall
from dpsql.privacy.mechanisms import Gaussian, Laplace, Mechanism, root_at_least, scale_of
from dpsql.privacy.selection import units_needed
from dpsql.privacy.spec import Bundle, Release, Spec

_MOST = (1 << 62) - 1


@dataclass(frozen=True)
class Derived:
    """A release with `columns` of a stored one; `terms` says what each cell that was asked for is in these.

    `noise` is the mean of the cells' variances, as parts of those of fresh ones.
    """

    release: Release
    columns: tuple[str, ...]
    terms: dict[str, Terms]
    noise: Fraction


def may_derive(asked: Described, stored: Shape) -> bool:
    """Whether a look at the release itself is worth while: it has the cells, of rows that meet no other conditions."""
    if asked.shape.rows != stored.rows:
        return False
    more = set(stored.conditions) - set(asked.shape.conditions)
    if not more <= {key.present for key in stored.keys}:
        return False
    forms = [cell.form for cell in stored.cells if cell is not None]
    wanted = [cell.form for cell in asked.shape.cells if cell is not None]
    return all(combination(form, forms) is not None for form in wanted)


def derive(asked: Described, fresh: Calibrated, stored: Shape, release: Release) -> Derived | None:
    """What is asked, from a stored release; None where it cannot be told, or not as accurately as `fresh` would."""
    try:
        if asked.shape.rows != stored.rows or release.spec.choice is not None:
            return None
        groups = regroup(asked, fresh.gather, stored, release.keys)
        _check_selection(fresh, release.spec)
        numbers = _combinations(asked.shape, stored, release.spec)
        used = sorted({place for row in numbers.values() for place, number in enumerate(row) if number})
        spread = any(cell.spread for cell in asked.shape.cells if cell is not None)
        for place in used:
            _check_additive(stored.cells[place], stored, groups, spread)
        noise = _noise(numbers, fresh, release.spec, groups.most)
        return _derived(numbers, used, groups, release, noise)
    except (NotDerived, TooSmall):
        return None


# --- cells -----------------------------------------------------------------------------------------------------------

Numbers = dict[str, tuple[Fraction, ...]]
"""For each cell that is asked for: what every column of the stored release counts for in it."""


def _combinations(asked: Shape, stored: Shape, spec: Spec) -> Numbers:
    variances = _variances(spec)
    places = [place for place, cell in enumerate(stored.cells) if cell is not None]
    result: Numbers = {}
    for cell in asked.cells:
        if cell is not None:
            order = sorted(places, key=lambda place: (_form(stored, place) != cell.form, variances[place]))
            found = combination(cell.form, [_form(stored, place) for place in order])
            if found is None:
                raise NotDerived
            by_place = dict(zip(order, found, strict=True))
            result[cell.name] = tuple(by_place.get(place, Fraction(0)) for place in range(len(stored.cells)))
    return result


def _form(stored: Shape, place: int) -> tuple[tuple[str, Fraction], ...]:
    cell = stored.cells[place]
    return () if cell is None else cell.form


def _check_additive(cell: Cell | None, stored: Shape, groups: Regrouped, spread: bool) -> None:
    """Whether this cell of the stored groups means, added up, what it means in the asked ones, where `spread` is that
    of weighed cells."""
    if cell is None:
        raise NotDerived
    whole_units = all(stored.keys[place].by_unit for place in groups.narrowed)
    apart = all(stored.keys[place].by_unit for place in groups.dropped)
    if cell.capped:  # a unit's groups are chosen among all that it has
        fits = not groups.narrowed and not groups.dropped
    elif cell.kind is Kind.WEIGHED:
        fits = whole_units and cell.spread == spread
    elif cell.kind is Kind.UNITS:
        fits = groups.most == 1 or apart
    else:
        fits = cell.kind is Kind.ROWS or groups.most == 1
    if not fits:
        raise NotDerived


# --- errors ----------------------------------------------------------------------------------------------------------


def _variances(spec: Spec) -> dict[int, Fraction]:
    """Of each column, in the units of its values: of Gaussian noise the variance, of Laplace noise half of it."""
    return {
        place: (scale_of(bundle.mechanism) * spec.grids[place]) ** 2
        for bundle in spec.bundles
        for place in bundle.columns
    }


def _noise(numbers: Numbers, fresh: Calibrated, spec: Spec, most: int) -> Fraction:
    """No combination of the derived cells, whatever is worked out of them, has more noise than that of fresh ones."""
    asked = fresh.spec
    if len({type(bundle.mechanism) for bundle in (*asked.bundles, *spec.bundles)}) > 1:
        raise NotDerived
    known, wanted = _variances(spec), _variances(asked)
    variances = [known.get(place, Fraction(0)) * most for place in range(len(spec.grids))]
    places = [place for place, name in enumerate(fresh.columns) if name in numbers]
    found = covariance([numbers[fresh.columns[place]] for place in places], variances)
    room = [
        [(wanted[place] if place == other else Fraction(0)) - number for other, number in zip(places, row, strict=True)]
        for place, row in zip(places, found, strict=True)
    ]
    if not never_negative(room):
        raise NotDerived
    parts = [found[number][number] / wanted[place] for number, place in enumerate(places)]
    return sum(parts, Fraction(0)) / max(1, len(parts))


def _check_selection(fresh: Calibrated, spec: Spec) -> None:
    if fresh.selection is not None:
        keys = selection_keys(fresh.gather)
        if spec.selection is None or units_needed(spec.selection.mechanism, keys) > units_needed(fresh.selection, keys):
            raise NotDerived


# --- the release -----------------------------------------------------------------------------------------------------


def _derived(numbers: Numbers, used: list[int], groups: Regrouped, release: Release, noise: Fraction) -> Derived:
    names = tuple(f"d{number}" for number in range(1, len(used) + 1))
    terms = {
        cell: tuple((name, row[place]) for name, place in zip(names, used, strict=True) if row[place])
        for cell, row in numbers.items()
    }
    spec = release.spec
    kept = [(bundle, tuple(used.index(place) for place in bundle.columns if place in used)) for bundle in spec.bundles]
    bundles = tuple(Bundle(columns, _sum(bundle.mechanism, groups.most)) for bundle, columns in kept if columns)
    cells = tuple(np.array(_added(release.cells[place].tolist(), groups.members), np.int64) for place in used)
    derived = Release(groups.keys, cells, Spec(tuple(spec.grids[place] for place in used), bundles))
    return Derived(derived, names, terms, noise)


def _added(cells: Sequence[int], members: Sequence[tuple[int, ...]]) -> list[int]:
    sums = [sum(cells[place] for place in places) for places in members]
    if any(abs(number) > _MOST for number in sums):
        raise NotDerived
    return sums


def _sum(mechanism: Mechanism, most: int) -> Mechanism:
    """Noise whose errors are those of a sum of `most` draws.

    A sum of Gaussians is told by its variance. One of Laplace draws has the standard error of a single draw of this
    scale, and lighter tails, so that an interval which fits the latter holds the sum at least as often.
    """
    if most == 1:
        return mechanism
    match mechanism:
        case Laplace(scale):
            return Laplace(root_at_least(most * scale**2))
        case Gaussian(sigma):
            return Gaussian(root_at_least(most * sigma**2))
