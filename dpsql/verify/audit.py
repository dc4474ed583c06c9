"""The statistical pass: releases of neighboring databases, thousands of each, must not be told apart beyond the claim.

A template's SQL runs once on each side; then the very code that makes releases draws many of them at once. The events
to look at are picked on one half of the draws (the likelihood ratio above some level; a key that appears), and judged
on the other (`judge`): a sound release is accused with a chance of at most ALPHA. Every template is
run again with a planted bug, half of the noise or a lower threshold, which must be found: an audit that finds nothing
there shows nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpsql.compile import ReleaseStep, compile_query
from dpsql.engines.scratch import ScratchEngine
from dpsql.exact import Exact
from dpsql.privacy.choice import Exponential, Pick, penalties
from dpsql.privacy.loss import total
from dpsql.privacy.mechanisms import Gaussian, Laplace, Mechanism, scale_of
from dpsql.privacy.release import Release, Spec, perturb
from dpsql.privacy.sampling import Sampler
from dpsql.privacy.selection import (
    GaussianThreshold,
    LaplaceThreshold,
    OptimalSelection,
    Selection,
    WeightedGaussian,
)
from dpsql.verify.claims import Cells
from dpsql.verify.columns import spelled
from dpsql.verify.judge import Flags, Floats, Many, Shown, judge
from dpsql.verify.neighbors import Rows
from dpsql.verify.templates import TABLES, Template
from dpsql.verify.witness import open_cells

SAMPLES = 40_000
_BATCH = 4_000
_SMOOTH = 1 << 10
_CONTRASTED = 5
"""Cells of which pairs are looked at."""



@dataclass(frozen=True)
class Audited:
    template: str
    samples: int
    shown: tuple[Shown, ...]
    control: tuple[Shown, ...]

    @property
    def holds(self) -> bool:
        return not any(one.breaks for one in self.shown)

    @property
    def has_power(self) -> bool:
        """Whether the planted bug was found."""
        return any(one.breaks for one in self.control)


def audit(template: Template, sampler: Sampler, engine: ScratchEngine, samples: int = SAMPLES) -> Audited:
    resolved = template.resolved
    steps = compile_query(template.sql, resolved, template.settings).steps
    steps = tuple({step.plan_hash: step for step in steps}.values())
    if any(step.holes for step in steps):
        raise ValueError("a template's steps stand alone")
    one, other = (_cells(engine, side, steps) for side in template.sides)
    loss = total([step.loss for step in steps])
    found = _look(steps, one, other, sampler, samples, lambda spec: spec)
    planted = _look(steps, one, other, sampler, samples, lambda spec: _weakened(spec, template.weaker))
    gaussian = all(_is_gaussian(step) for step in steps)
    return Audited(template.name, samples, judge(found, loss, gaussian), judge(planted, loss, gaussian))


def _is_gaussian(step: ReleaseStep) -> bool:
    """Nothing but Gaussian noise, of so many steps that its discrete form has the continuous one's curve."""
    calibrated = step.calibrated
    mechanisms = [bundle.mechanism for bundle in calibrated.bundles]
    return (
        calibrated.choice is None
        and calibrated.selection is None
        and all(isinstance(noise, Gaussian) and noise.sigma >= _SMOOTH for noise in mechanisms)
    )


def _cells(engine: ScratchEngine, side: Rows, steps: tuple[ReleaseStep, ...]) -> list[Cells]:
    for table in TABLES:
        engine.fill(table.name, [(column.name, spelled(column.type)) for column in table.columns], side[table.name])
    return [open_cells(engine.release(step.sql, len(step.keys), {})) for step in steps]


# --- many releases at once -------------------------------------------------------------------------------------------


def _look(
    steps: tuple[ReleaseStep, ...],
    one: list[Cells],
    other: list[Cells],
    sampler: Sampler,
    samples: int,
    change: Callable[[Spec], Spec],
) -> tuple[Many, Many]:
    """Draws of both sides. The ratio is that of the noise as claimed, whatever noise is drawn."""
    sides = []
    for cells in (one, other):
        ratio, keys = np.zeros(samples), dict[tuple[int, tuple[Any, ...]], Flags]()
        noisy: list[Floats] = []
        for place, step in enumerate(steps):
            spec = step.calibrated.spec
            drawn: list[Floats] = []
            for start in range(0, samples, _BATCH):
                stop = min(start + _BATCH, samples)
                release = perturb(_tiled(cells[place], stop - start), _for_tiles(change(spec)), sampler)
                ratio[start:stop] += _ratio(release, spec, one[place], other[place], stop - start)
                if spec.selection is not None:
                    for key, flags in _appeared(release, spec.selection.keys, stop - start).items():
                        keys.setdefault((place, key), np.zeros(samples, np.bool_))[start:stop] = flags
                elif spec.choice is None:
                    drawn.append(_in_noise(release, spec, stop - start))
            if spec.selection is not None:
                keys |= _any_own(place, keys, one[place], other[place], spec.selection.keys, samples)
            noisy += list(np.concatenate(drawn).T) if drawn else []
        sides.append(Many(ratio, keys, _contrasts(noisy[:_CONTRASTED])))
    return sides[0], sides[1]


def _in_noise(release: Release, spec: Spec, n: int) -> Floats:
    """The cells of each release, one row for each, in units of their noise."""
    scales = {column: float(scale_of(bundle.mechanism)) for bundle in spec.bundles for column in bundle.columns}
    columns = [release.cells[column].astype(np.float64).reshape(n, -1) / scale for column, scale in scales.items()]
    found: Floats = np.concatenate(columns, axis=1) if columns else np.zeros((n, 0))
    return found


def _contrasts(cells: list[Floats]) -> tuple[Floats, ...]:
    pairs = [(one, other) for place, one in enumerate(cells) for other in cells[:place]]
    return tuple(contrast for one, other in pairs for contrast in (one - other, one + other))


def _any_own(
    place: int, keys: dict[tuple[int, tuple[Any, ...]], Flags], one: Cells, other: Cells, unknown: int, n: int
) -> dict[tuple[int, tuple[Any, ...]], Flags]:
    """Whether any of the keys appears that one side alone has: each is rare, all together are not as rare."""
    sides = [{key[:unknown] for key in cells.keys} for cells in (one, other)]
    found: dict[tuple[int, tuple[Any, ...]], Flags] = {}
    for name, own in (("any of D", sides[0] - sides[1]), ("any of D'", sides[1] - sides[0])):
        flags = [keys[place, key] for key in own if (place, key) in keys]
        found[place, (name,)] = np.logical_or.reduce(flags) if flags else np.zeros(n, np.bool_)
    return found


def _tiled(cells: Cells, n: int) -> Exact:
    """The same cells n times, under a first key that tells them apart: n releases in one."""
    keys = [(copy, *key) for copy in range(n) for key in cells.keys]
    return Exact(keys, [np.tile(np.array(column, np.int64), n) for column in cells.columns])


def _for_tiles(spec: Spec) -> Spec:
    selection = spec.selection
    return spec if selection is None else replace(spec, selection=replace(selection, keys=selection.keys + 1))


def _ratio(release: Release, spec: Spec, one: Cells, other: Cells, n: int) -> Floats:
    if spec.choice is not None:
        return _bins_ratio(release, spec, one, other, n)
    copies = np.array([key[0] for key in release.keys], np.int64)
    places = {key: place for place, key in enumerate(one.keys)}
    theirs = {key: place for place, key in enumerate(other.keys)}
    shared = [key[1:] in places and key[1:] in theirs for key in release.keys]
    rows = np.flatnonzero(shared)
    at = [places[release.keys[row][1:]] for row in rows]
    against = [theirs[release.keys[row][1:]] for row in rows]
    result = np.zeros(n)
    for bundle in spec.bundles:
        for column in bundle.columns:
            drawn = release.cells[column][rows].astype(np.float64)
            ours = np.array(one.columns[column], np.float64)[at] if at else np.zeros(0)
            others = np.array(other.columns[column], np.float64)[against] if at else np.zeros(0)
            np.add.at(result, copies[rows], _log_ratio(bundle.mechanism, drawn, ours, others))
    return result


def _log_ratio(mechanism: Mechanism, drawn: Floats, ours: Floats, others: Floats) -> Floats:
    match mechanism:
        case Laplace(scale):
            found: Floats = (np.abs(drawn - others) - np.abs(drawn - ours)) / float(scale)
        case Gaussian(sigma):
            found = ((drawn - others) ** 2 - (drawn - ours) ** 2) / (2 * float(sigma) ** 2)
    return found


def _bins_ratio(release: Release, spec: Spec, one: Cells, other: Cells, n: int) -> Floats:
    choice = spec.choice
    assert choice is not None
    result = np.zeros(n)
    for pick, chosen in zip(choice.picks, release.cells, strict=True):
        sides = [
            penalties(pick.target, np.array(cells.columns[0], np.int64).reshape(-1, choice.bins)).astype(np.float64)
            for cells in (one, other)
        ]
        bins = (chosen - choice.lower).reshape(n, -1)
        scale = float(_scale(pick))  # a multiple of it would do as well: levels are picked from the draws
        for group in range(bins.shape[1]):
            result += (sides[1][group][bins[:, group]] - sides[0][group][bins[:, group]]) / scale
    return result


def _scale(pick: Pick) -> Fraction:
    if not isinstance(pick.mechanism, Exponential):
        raise ValueError("a template chooses by the exponential mechanism")
    return pick.mechanism.scale


def _appeared(release: Release, unknown: int, n: int) -> dict[tuple[Any, ...], Flags]:
    """Which of the copies have each selected key."""
    found: dict[tuple[Any, ...], Flags] = {}
    for key in release.keys:
        found.setdefault(key[1 : 1 + unknown], np.zeros(n, np.bool_))[key[0]] = True
    return found


# --- planted bugs ----------------------------------------------------------------------------------------------------


def _weakened(spec: Spec, by: int) -> Spec:
    """Half of the noise, or less; or a threshold that is too low."""
    if spec.choice is not None:
        picks = tuple(replace(p, mechanism=Exponential(_scale(p) / by)) for p in spec.choice.picks)
        return replace(spec, choice=replace(spec.choice, picks=picks))
    bundles = tuple(replace(bundle, mechanism=_divided(bundle.mechanism, by)) for bundle in spec.bundles)
    selection = spec.selection
    if selection is not None:
        selection = replace(selection, mechanism=_lowered(selection.mechanism))
    return replace(spec, bundles=bundles, selection=selection)


def _divided(mechanism: Mechanism, by: int) -> Mechanism:
    return Laplace(mechanism.scale / by) if isinstance(mechanism, Laplace) else Gaussian(mechanism.sigma / by)


def _lowered(selection: Selection) -> Selection:
    match selection:
        case OptimalSelection(scale, bound):
            return replace(selection, bound=max(1, bound - 1 - math.ceil(2 * scale)))
        case LaplaceThreshold(scale, threshold):
            return replace(selection, threshold=threshold - 1 - math.ceil(2 * scale))
        case GaussianThreshold(sigma, threshold) | WeightedGaussian(sigma, threshold):
            return replace(selection, threshold=threshold - 1 - math.ceil(sigma))
