"""Do two neighboring databases keep what a compiled statement claims? Written from the rules, not from the code."""

from __future__ import annotations

import math
from fractions import Fraction

from support.engine import Cells

from dpsql.calibrate import Noise
from dpsql.compile import Compiled, ReleaseStep
from dpsql.explain import ExplainedRelease, explain
from dpsql.privacy.mechanisms import Laplace
from dpsql.privacy.selection import LaplaceThreshold, OptimalSelection, WeightedGaussian
from dpsql.schema.model import Neighbors, Privacy

WHOLE = 1 << 16


def violations(step: ReleaseStep, release: ExplainedRelease, one: Cells, other: Cells, privacy: Privacy) -> list[str]:
    """What is wrong with this release on this pair of databases; nothing, if all is well."""
    return [
        *_shape(release, one),
        *_shape(release, other),
        *_keys(release, one, other),
        *_bundles(release, one, other),
        *_selection(step, release, one, other, privacy),
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
    return [f"the spelling of a key depends on the rows: {differ[0]}"] if differ else []


def _column(release: ExplainedRelease, name: str, cells: Cells) -> dict[tuple[object, ...], int]:
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
            found.append(f"L1 of {bundle.columns}: {l1} > {bundle.l1}")
        if Fraction(square) > Fraction(bundle.l2) ** 2:
            found.append(f"L2 of {bundle.columns}: {math.sqrt(square)} > {bundle.l2}")
        if linf > bundle.linf:
            found.append(f"Linf of {bundle.columns}: {linf} > {bundle.linf}")
    return found


def _selection(step: ReleaseStep, release: ExplainedRelease, one: Cells, other: Cells, privacy: Privacy) -> list[str]:
    mechanism, listed = step.calibrated.selection, step.calibrated.gather.listed
    if release.selection is None or mechanism is None:
        return [] if release.selection is None and mechanism is None else ["a selection is half there"]
    weighted = isinstance(mechanism, WeightedGaussian)
    reach, k = mechanism.reach, privacy.group_size
    found = []
    if (reach.group_size, reach.change_one) != (k, privacy.neighbors is Neighbors.CHANGE_ONE):
        found.append("the selection is for another relation")
    blocks = max(1, listed.count) if listed is not None else 1
    ours, theirs = (_blocks(release, cells, blocks) for cells in (one, other))
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
        found.append("selection's L1")
    return found


def _blocks(release: ExplainedRelease, cells: Cells, size: int) -> dict[tuple[object, ...], int] | None:
    """The count of each selected key: rows come in blocks, one for each public part, that share it."""
    assert release.selection is not None
    place = [column.name for column in release.columns].index(release.selection)
    counts: dict[tuple[object, ...], int] = {}
    for start in range(0, len(cells.keys), size):
        block = cells.columns[place][start : start + size]
        if len(block) != size or len(set(block)) != 1:
            return None
        counts[cells.keys[start]] = block[0]
    return counts


# --- what is charged -------------------------------------------------------------------------------------------------


def undercharged(compiled: Compiled) -> list[str]:
    """Whether the noise that will be drawn costs more than what is charged, or the charge more than was asked."""
    found = []
    for step, release in zip(compiled.steps, explain(compiled, "duckdb", ()).releases, strict=True):
        loss, pure, rho = step.loss, Fraction(0), Fraction(0)
        for bundle in release.bundles:
            square = min(Fraction(bundle.l1) ** 2, Fraction(bundle.l2) ** 2)
            rho += square / (2 * bundle.scale**2) * Fraction(10**12 - 1, 10**12)  # l2 is rounded up
            if bundle.mechanism == "laplace":
                pure += bundle.l1 / bundle.scale
        if rho > loss.rho:
            found.append(f"noise costs rho {float(rho)}, charged {float(loss.rho)}")
        if loss.epsilon is not None and pure > loss.epsilon:
            found.append(f"noise costs epsilon {float(pure)}, charged {float(loss.epsilon)}")
    return found + _beyond_what_was_asked(compiled)


def _beyond_what_was_asked(compiled: Compiled) -> list[str]:
    """Gaussian noise by way of rho; Laplace by adding up epsilons; a selection's delta on top of either."""
    loss, asked = compiled.loss, compiled.settings
    pure, rho = Fraction(0), Fraction(0)
    for step in compiled.steps:
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
    if left < -1e-15 or _delta(float(rho), left) + float(loss.delta) > float(asked.delta) * (1 + 1e-9):
        return [f"epsilon {float(pure)}, rho {float(rho)}, delta {float(loss.delta)}: more than was asked"]
    return []


def _delta(rho: float, epsilon: float) -> float:
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
