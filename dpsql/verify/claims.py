"""Do two neighboring databases keep what a compiled statement claims? Written from the rules, not from the code.

SOUNDNESS 4 to 7: norms of bundles, the selection's column, what choices of bins lose, and what the noise costs against
what is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.calibrate import Noise
from dpsql.compile import Compiled, ReleaseStep
from dpsql.exact import Row
from dpsql.explain import ExplainedRelease, explain
from dpsql.privacy.choice import choose_bins
from dpsql.privacy.mechanisms import Laplace
from dpsql.privacy.sampling import Integers
from dpsql.privacy.selection import GaussianThreshold, LaplaceThreshold, OptimalSelection, WeightedGaussian
from dpsql.schema.model import Neighbors, Privacy

WHOLE = 1 << 16
"""What a whole vote weighs where votes are weighted."""


@dataclass(frozen=True)
class Cells:
    """What a release's SQL returned on a made-up database: keys in order, and one tuple of integers per column."""

    keys: tuple[Row, ...]
    columns: tuple[tuple[int, ...], ...]

    @property
    def spelled(self) -> tuple[str, ...]:
        """Keys as they print: 0.0 and -0.0, or 1 and True, are not the same answer."""
        return tuple(repr(key) for key in self.keys)


def violations(step: ReleaseStep, release: ExplainedRelease, one: Cells, other: Cells, privacy: Privacy) -> list[str]:
    """What is wrong with this release on this pair of databases; nothing, if all is well."""
    found = [*_shape(release, one), *_shape(release, other)]
    if found:
        return found
    return [
        *_keys(release, one, other),
        *_bundles(release, one, other),
        *_selection(step, release, one, other, privacy),
        *_choices(step, one, other),
    ]


def _shape(release: ExplainedRelease, cells: Cells) -> list[str]:
    found = []
    if len(set(cells.keys)) != len(cells.keys):
        found.append("a group leaves twice")
    if len(cells.columns) != len(release.columns):
        found.append("other columns than explained")
    if not release.keys and len(cells.keys) != 1:
        found.append("a single group must always be there")
    return found


def _keys(release: ExplainedRelease, one: Cells, other: Cells) -> list[str]:
    """Public groups are the same in the same order; a key of both is spelled the same in both."""
    if release.selection is None:
        return [] if one.spelled == other.spelled else ["public groups depend on the rows"]
    spelled = dict(zip(other.keys, other.spelled, strict=True))
    differ = [s for key, s in zip(one.keys, one.spelled, strict=True) if spelled.get(key, s) != s]
    if differ:
        return [f"the spelling of a key depends on the rows: {differ[0]}"]
    ours, theirs = set(one.keys), set(other.keys)
    common = [key for key in one.keys if key in theirs]
    return [] if common == [key for key in other.keys if key in ours] else ["the order of keys depends on the rows"]


def _column(release: ExplainedRelease, name: str, cells: Cells) -> dict[Row, int]:
    place = [column.name for column in release.columns].index(name)
    return dict(zip(cells.keys, cells.columns[place], strict=True))


def _bundles(release: ExplainedRelease, one: Cells, other: Cells) -> list[str]:
    found = []
    for bundle in release.bundles:
        steps: list[int] = []
        for name in bundle.columns:
            ours, theirs = _column(release, name, one), _column(release, name, other)
            # Values are compared on the keys of both: the others are the selection's business.
            steps += [ours[key] - theirs[key] for key in ours if key in theirs]
        l1, square, linf = sum(map(abs, steps)), sum(s * s for s in steps), max(map(abs, steps), default=0)
        if l1 > bundle.l1:
            found.append(f"L1 of {', '.join(bundle.columns)}: {l1} > {bundle.l1}")
        if Fraction(square) > Fraction(bundle.l2) ** 2:
            found.append(f"L2 of {', '.join(bundle.columns)}: {math.sqrt(square)} > {bundle.l2}")
        if linf > bundle.linf:
            found.append(f"Linf of {', '.join(bundle.columns)}: {linf} > {bundle.linf}")
    return found


# --- selection -------------------------------------------------------------------------------------------------------


def _selection(step: ReleaseStep, release: ExplainedRelease, one: Cells, other: Cells, privacy: Privacy) -> list[str]:
    spec, mechanism = step.calibrated.spec.selection, step.calibrated.selection
    if release.selection is None or spec is None or mechanism is None:
        return [] if release.selection is None and spec is None else ["a selection is half there"]
    weighted = isinstance(mechanism, WeightedGaussian)
    reach, k = mechanism.reach, privacy.group_size
    found = []
    if (reach.group_size, reach.change_one) != (k, privacy.neighbors is Neighbors.CHANGE_ONE):
        found.append("the selection is for another relation")
    ours, theirs = (_votes(spec.column, spec.keys, cells) for cells in (one, other))
    if ours is None or theirs is None:
        return [*found, "the selection's column differs within a block"]
    if any(count < 1 for count in (*ours.values(), *theirs.values())):
        found.append("a key leaves that no unit has")
    most = k * WHOLE if weighted else k
    steps = {key: ours.get(key, 0) - theirs.get(key, 0) for key in {*ours, *theirs}}
    up, down = (sum(1 for s in steps.values() if sign * s > 0) for sign in (1, -1))
    if max(up, down) > k * reach.l0:
        found.append(f"selection moves {max(up, down)} keys > {k} * {reach.l0}")
    if any(abs(s) > most for s in steps.values()):
        found.append(f"selection moves a key by {max(map(abs, steps.values()))} > {most}")
    sides = 2 if reach.change_one else 1
    square = sum(s * s for s in steps.values())
    allowed = sides * most**2 * (1 if weighted else reach.l0)
    if square > allowed:
        found.append(f"selection's L2 squared {square} > {allowed}")
    if not weighted and sum(map(abs, steps.values())) > sides * k * reach.l0:
        found.append("selection's L1 is beyond its claim")
    return found


def _votes(column: int, keys: int, cells: Cells) -> dict[Row, int] | None:
    """The count of each selected key; None where the rows of one, a block, do not share it."""
    counts: dict[Row, int] = {}
    for key, count in zip(cells.keys, cells.columns[column], strict=True):
        if counts.setdefault(key[:keys], count) != count:
            return None
    return counts


# --- bins ------------------------------------------------------------------------------------------------------------


@dataclass
class _Penalties:
    """A sampler that draws nothing and remembers what a draw would be made from."""

    seen: list[tuple[npt.NDArray[Any], Fraction]] = field(default_factory=list)

    def laplace(self, n: int, scale: Fraction) -> Integers:
        return np.zeros(n, np.int64)

    def gaussian(self, n: int, sigma: Fraction) -> Integers:
        return np.zeros(n, np.int64)

    def choose(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        self.seen.append((penalties, scale))
        return np.zeros(len(penalties), np.int64)


def _choices(step: ReleaseStep, one: Cells, other: Cells) -> list[str]:
    """The loss that the exponential mechanism has on this pair, exactly, against what is charged.

    P(z) ~ exp(-penalty / scale): the logarithm of the ratio of two such distributions lies in an interval as long as
    r, the range of the differences of penalties over the scale. In all blocks: epsilon is the sum of r, rho of r^2/8.
    """
    choice = step.calibrated.choice
    if choice is None or not one.keys:
        return []
    if len(one.keys) % choice.bins or one.keys != other.keys:
        return ["an incomplete block of bins"]
    epsilon, rho = Fraction(0), Fraction(0)
    for pick in choice.picks:
        sides = [_Penalties(), _Penalties()]
        for side, cells in zip(sides, (one, other), strict=True):
            weights = np.array(cells.columns[0], np.int64).reshape(-1, choice.bins)
            choose_bins(pick, weights, side)
        for (ours, scale), (theirs, _) in zip(sides[0].seen, sides[1].seen, strict=True):
            moved = ours - theirs
            for reach in (moved.max(axis=1) - moved.min(axis=1)).tolist():
                epsilon += Fraction(reach) / scale
                rho += (Fraction(reach) / scale) ** 2 / 8
    loss = step.loss
    found = []
    if loss.epsilon is not None and epsilon > loss.epsilon:
        found.append(f"choosing bins loses epsilon {float(epsilon)}, charged {float(loss.epsilon)}")
    if rho > loss.rho:
        found.append(f"choosing bins loses rho {float(rho)}, charged {float(loss.rho)}")
    return found


# --- what is charged -------------------------------------------------------------------------------------------------


def undercharged(compiled: Compiled) -> list[str]:
    """Whether the noise that will be drawn costs more than what is charged, or the charge more than was asked."""
    found = []
    for step, release in zip(compiled.steps, explain(compiled, "duckdb", ()).releases, strict=True):
        loss, pure, rho = step.loss, Fraction(0), Fraction(0)
        for bundle in release.bundles:
            if bundle.mechanism == "exponential":  # compared on the rows, exactly
                continue
            square = min(Fraction(bundle.l1) ** 2, Fraction(bundle.l2) ** 2)
            rho += square / (2 * bundle.scale**2) * Fraction(10**12 - 1, 10**12)  # l2 is rounded up
            if bundle.mechanism == "laplace":
                pure += bundle.l1 / bundle.scale
        rho += _selection_rho(step)
        if rho > loss.rho:
            found.append(f"noise costs rho {float(rho)}, charged {float(loss.rho)}")
        if loss.epsilon is not None and pure > loss.epsilon:
            found.append(f"noise costs epsilon {float(pure)}, charged {float(loss.epsilon)}")
    return found + _beyond_what_was_asked(compiled)


def _selection_rho(step: ReleaseStep) -> Fraction:
    """Of the noise in a selection's column: votes of k units in l0 keys each, once more where they are replaced."""
    selection = step.calibrated.selection
    if selection is None:
        return Fraction(0)
    reach = selection.reach
    sides, k = (2 if reach.change_one else 1), reach.group_size
    match selection:
        case WeightedGaussian(sigma):
            return Fraction(sides * (k * WHOLE) ** 2) / (2 * sigma**2)
        case OptimalSelection(scale) | LaplaceThreshold(scale) | GaussianThreshold(scale):
            return Fraction(sides * k**2 * reach.l0) / (2 * scale**2)


def _beyond_what_was_asked(compiled: Compiled) -> list[str]:
    """Gaussian noise by way of rho; Laplace by adding up epsilons; a selection's delta on top of either."""
    loss, asked = compiled.loss, compiled.settings
    pure, rho = Fraction(0), Fraction(0)
    for step in compiled.steps:
        if step.calibrated.choice is not None:
            if asked.chosen_noise is Noise.LAPLACE:
                pure += step.loss.epsilon or 0
            else:
                rho += step.loss.rho
        for bundle in step.calibrated.bundles:
            if isinstance(bundle.mechanism, Laplace):
                pure += Fraction(bundle.claim.sensitivity.l1) / bundle.mechanism.scale
            else:
                rho += Fraction(bundle.claim.sensitivity.l2_squared) / (2 * bundle.mechanism.sigma**2)
        selection = step.calibrated.selection
        if isinstance(selection, OptimalSelection | LaplaceThreshold) and asked.chosen_noise is Noise.LAPLACE:
            pure += Fraction(selection.reach.l1) / selection.scale
        elif selection is not None:
            rho += selection.loss.rho
    left = float(asked.epsilon - pure)
    if left < -1e-15 or delta_of(float(rho), left) + float(loss.delta) > float(asked.delta) * (1 + 1e-9):
        return [f"epsilon {float(pure)}, rho {float(rho)}, delta {float(loss.delta)}: more than was asked"]
    return []


def delta_of(rho: float, epsilon: float) -> float:
    """Least delta of rho-zCDP at this epsilon (Canonne, Kamath, Steinke 2020, Corollary 13), by a search over alpha."""

    def at(alpha: float) -> float:
        return (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)

    if rho <= 0:
        return 0.0
    low, high = 1.0 + 1e-9, max(4.0, 4 * (epsilon / rho + 40 / math.sqrt(rho)))
    for _ in range(200):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if at(a) < at(b) else (a, high)
    return math.exp(at((low + high) / 2)) * (1 - 1e-9)
