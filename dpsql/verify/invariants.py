"""Do two neighboring databases keep what a compiled statement claims? Written from the rules, not from the code.

SOUNDNESS 4 to 7: norms of bundles, the selection's column, what choices of bins lose, and what the noise costs against
what is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compile import Compiled, ReleaseStep
from dpsql.privacy.exact import Row
from dpsql.privacy.exponential import Exponential, LocalSensitivityMechanism, choose_bins
from dpsql.privacy.median import (
    LocalSensitivity,
    ProposeTestRelease,
    SmoothMedian,
    distance_to_instability,
    local_sensitivity,
    smooth_sensitivity,
)
from dpsql.privacy.noise import Laplace
from dpsql.privacy.partition_selection import GaussianThreshold, LaplaceThreshold, OptimalSelection, WeightedGaussian
from dpsql.privacy.randomized_response import RandomizedResponse, randomize_responses
from dpsql.privacy.sampling import Integers
from dpsql.privacy.score_selection import PosteriorDraws, Ranking, Scores, posterior_penalties
from dpsql.privacy.weighted_rows import UnitMass
from dpsql.schema.model import Neighbors, Privacy
from dpsql.session.explain import ExplainedRelease, explain

# Medians by their local sensitivity, on a pair of neighbors: what their proofs rest on, exactly.

_MIN_SENSITIVITY = Fraction(1, 10**30)
Counts = npt.NDArray[np.int64]


def check_local_median(mechanism: LocalSensitivityMechanism, first: Counts, second: Counts) -> list[str]:
    """The violations in two neighbors' counts, a row for each block."""
    moved = np.abs(first - second).sum(axis=1)
    problems = []
    if np.count_nonzero(moved) > mechanism.reached.blocks:
        problems.append(f"neighbors differ in {np.count_nonzero(moved)} groups, claimed {mechanism.reached.blocks}")
    if moved.max(initial=0) > mechanism.reached.steps:
        problems.append(f"neighbors differ by {moved.max()} values in a group, claimed {mechanism.reached.steps}")
    for ours, theirs in zip(first[moved > 0], second[moved > 0], strict=True):
        pair = local_sensitivity(ours, mechanism.reached.steps), local_sensitivity(theirs, mechanism.reached.steps)
        problems += (
            _check_smooth_median(mechanism, *pair)
            if isinstance(mechanism, SmoothMedian)
            else _check_proposed_median(mechanism, *pair)
        )
    return problems


def _check_smooth_median(mechanism: SmoothMedian, first: LocalSensitivity, second: LocalSensitivity) -> list[str]:
    ours, theirs = (smooth_sensitivity(side, mechanism.rate, _MIN_SENSITIVITY) for side in (first, second))
    problems = []
    if abs(first.median - second.median) > min(ours, theirs):
        problems.append("the median moves further than its smooth sensitivity")
    if max(ours, theirs) > min(ours, theirs) * max_noise_growth(mechanism):
        problems.append("the smooth sensitivity is not smooth")
    return problems


def max_noise_growth(mechanism: SmoothMedian) -> Fraction:
    """1 + epsilon / (2 ln(2/delta)), the most by which noise may grow, from the delta that is charged."""
    with localcontext(Context(prec=60)):
        block_delta = mechanism.loss.delta / mechanism.reached.blocks
        log = (2 * Decimal(block_delta.denominator) / Decimal(block_delta.numerator)).ln()
        return 1 + mechanism.epsilon / (2 * Fraction(log)) * (1 + Fraction(1, 10**9))


def _check_proposed_median(
    mechanism: ProposeTestRelease, first: LocalSensitivity, second: LocalSensitivity
) -> list[str]:
    distances = [distance_to_instability(side, mechanism.proposal) for side in (first, second)]
    problems = []
    if abs(distances[0] - distances[1]) > mechanism.reached.steps:
        problems.append(f"the distance moves by {abs(distances[0] - distances[1])}, claimed {mechanism.reached.steps}")
    if abs(first.median - second.median) > mechanism.proposal and max(distances) > 0:
        problems.append("the median moves further than proposed, at a distance")
    return problems


FULL_VOTE_WEIGHT = 1 << 16
"""What a whole vote weighs where votes are weighted."""


@dataclass(frozen=True)
class ExactCells:
    """What a release's SQL returned on a made-up database: keys in order, and one tuple of integers per column."""

    keys: tuple[Row, ...]
    columns: tuple[tuple[int, ...], ...]

    @property
    def key_texts(self) -> tuple[str, ...]:
        """Keys as they print: 0.0 and -0.0, or 1 and True, are not the same answer."""
        return tuple(repr(key) for key in self.keys)


def find_violations(
    step: ReleaseStep, release: ExplainedRelease, first: ExactCells, second: ExactCells, privacy: Privacy
) -> list[str]:
    """The claims that this release breaks on this pair of databases; empty if all hold."""
    if step.calibrated.study is not None:
        return [
            *_check_weighted_rows(step.calibrated.study.mass, first, second, privacy),
            *_check_randomized_responses(step, first, second),
        ]
    problems = [*_check_shape(release, first), *_check_shape(release, second)]
    if problems:
        return problems
    return [
        *_check_keys(release, first, second),
        *_check_bundles(release, first, second),
        *_check_selection(step, release, first, second, privacy),
        *_check_bin_choices(step, first, second),
        *_check_score_choices(step, first, second),
    ]


def _check_shape(release: ExplainedRelease, cells: ExactCells) -> list[str]:
    problems = []
    if len(set(cells.keys)) != len(cells.keys):
        problems.append("a group leaves twice")
    if len(cells.columns) != len(release.columns):
        problems.append("other columns than explained")
    if not release.keys and len(cells.keys) != 1:
        problems.append("a single group must always be there")
    return problems


def _check_keys(release: ExplainedRelease, first: ExactCells, second: ExactCells) -> list[str]:
    """Public groups are the same in the same order; a key of both is spelled the same in both."""
    if release.selection is None:
        return [] if first.key_texts == second.key_texts else ["public groups depend on the rows"]
    texts = dict(zip(second.keys, second.key_texts, strict=True))
    differ = [s for key, s in zip(first.keys, first.key_texts, strict=True) if texts.get(key, s) != s]
    if differ:
        return [f"the spelling of a key depends on the rows: {differ[0]}"]
    ours, theirs = set(first.keys), set(second.keys)
    common = [key for key in first.keys if key in theirs]
    return [] if common == [key for key in second.keys if key in ours] else ["the order of keys depends on the rows"]


def _column_by_key(release: ExplainedRelease, name: str, cells: ExactCells) -> dict[Row, int]:
    index = [column.name for column in release.columns].index(name)
    return dict(zip(cells.keys, cells.columns[index], strict=True))


def _check_bundles(release: ExplainedRelease, first: ExactCells, second: ExactCells) -> list[str]:
    problems = []
    for bundle in release.bundles:
        steps: list[int] = []
        for name in bundle.columns:
            ours, theirs = _column_by_key(release, name, first), _column_by_key(release, name, second)
            # Values are compared on the keys of both: the others are the selection's business.
            steps += [ours[key] - theirs[key] for key in ours if key in theirs]
        l1, square, linf = sum(map(abs, steps)), sum(s * s for s in steps), max(map(abs, steps), default=0)
        if l1 > bundle.l1:
            problems.append(f"L1 of {', '.join(bundle.columns)}: {l1} > {bundle.l1}")
        if Fraction(square) > Fraction(bundle.l2) ** 2:
            problems.append(f"L2 of {', '.join(bundle.columns)}: {math.sqrt(square)} > {bundle.l2}")
        if linf > bundle.linf:
            problems.append(f"Linf of {', '.join(bundle.columns)}: {linf} > {bundle.linf}")
    return problems


# --- tallies ---------------------------------------------------------------------------------------------------------


def _check_weighted_rows(mass: UnitMass, first: ExactCells, second: ExactCells, privacy: Privacy) -> list[str]:
    """Neighbors move the weights of all tuples together by what units may add, and no set of them by more."""
    problems = []
    k, change_one = privacy.group_size, privacy.neighbors is Neighbors.CHANGE_ONE
    if (mass.group_size, mass.change_one) != (k, change_one):
        problems.append("the study is for another relation")
    ours, theirs = (dict(zip(zip(*c.columns[:-1], strict=True), c.columns[-1], strict=True)) for c in (first, second))
    if len(ours) != len(first.keys) or len(theirs) != len(second.keys):
        problems.append("a tuple is there twice")
    steps = [ours.get(code, 0) - theirs.get(code, 0) for code in {*ours, *theirs}]
    up, down = sum(s for s in steps if s > 0), -sum(s for s in steps if s < 0)
    max_change = k * mass.norm
    # Of several units some may come and others leave: then what comes and what leaves is theirs together.
    if max(up, down) > max_change or (not change_one and up + down > max_change):
        problems.append(f"a tally moves by +{up} and -{down}, and a unit's mass is {mass.norm}")
    return problems


# --- selection -------------------------------------------------------------------------------------------------------


def _check_selection(
    step: ReleaseStep, release: ExplainedRelease, first: ExactCells, second: ExactCells, privacy: Privacy
) -> list[str]:
    spec, mechanism = step.calibrated.spec.selection, step.calibrated.selection
    if release.selection is None or spec is None or mechanism is None:
        return [] if release.selection is None and spec is None else ["a selection is half there"]
    weighted = isinstance(mechanism, WeightedGaussian)
    reach, k = mechanism.reach, privacy.group_size
    problems = []
    if (reach.group_size, reach.change_one) != (k, privacy.neighbors is Neighbors.CHANGE_ONE):
        problems.append("the selection is for another relation")
    ours, theirs = (_count_votes(spec.column, spec.keys, cells) for cells in (first, second))
    if ours is None or theirs is None:
        return [*problems, "the selection's column differs within a block"]
    if any(count < 1 for count in (*ours.values(), *theirs.values())):
        problems.append("a key leaves that no unit has")
    max_change = k * FULL_VOTE_WEIGHT if weighted else k
    steps = {key: ours.get(key, 0) - theirs.get(key, 0) for key in {*ours, *theirs}}
    up, down = (sum(1 for s in steps.values() if sign * s > 0) for sign in (1, -1))
    if max(up, down) > k * reach.l0:
        problems.append(f"selection moves {max(up, down)} keys > {k} * {reach.l0}")
    if any(abs(s) > max_change for s in steps.values()):
        problems.append(f"selection moves a key by {max(map(abs, steps.values()))} > {max_change}")
    sides = 2 if reach.change_one else 1
    square = sum(s * s for s in steps.values())
    allowed = sides * max_change**2 * (1 if weighted else reach.l0)
    if square > allowed:
        problems.append(f"selection's L2 squared {square} > {allowed}")
    if not weighted and sum(map(abs, steps.values())) > sides * k * reach.l0:
        problems.append("selection's L1 is beyond its claim")
    return problems


def _count_votes(column: int, keys: int, cells: ExactCells) -> dict[Row, int] | None:
    """The count of each selected key; None where the rows of one, a block, do not share it."""
    counts: dict[Row, int] = {}
    for key, count in zip(cells.keys, cells.columns[column], strict=True):
        if counts.setdefault(key[:keys], count) != count:
            return None
    return counts


# --- bins ------------------------------------------------------------------------------------------------------------


@dataclass
class _RecordingSampler:
    """A sampler that draws nothing and remembers what a draw would be made from."""

    seen: list[tuple[npt.NDArray[Any], Fraction]] = field(default_factory=list)

    def laplace(self, n: int, scale: Fraction) -> Integers:
        return np.zeros(n, np.int64)

    def gaussian(self, n: int, sigma: Fraction) -> Integers:
        return np.zeros(n, np.int64)

    def choose(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        self.seen.append((penalties, scale))
        return np.zeros(len(penalties), np.int64)

    def flip(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        return self.choose(penalties, scale)


def _check_bin_choices(step: ReleaseStep, first: ExactCells, second: ExactCells) -> list[str]:
    """The loss that the exponential mechanism has on this pair, exactly, against what is charged.

    P(z) ~ exp(-penalty / scale): the logarithm of the ratio of two such distributions lies in an interval as long as
    r, the range of the differences of penalties over the scale. In all blocks: epsilon is the sum of r, rho of r^2/8.
    """
    choice = step.calibrated.choice
    if choice is None or not first.keys:
        return []
    if len(first.keys) % choice.bins or first.keys != second.keys:
        return ["an incomplete block of bins"]
    epsilon, rho = Fraction(0), Fraction(0)
    problems: list[str] = []
    for pick in choice.picks:
        if not isinstance(pick.mechanism, Exponential):
            counts = [np.array(cells.columns[0], np.int64).reshape(-1, choice.bins) for cells in (first, second)]
            problems += check_local_median(pick.mechanism, *counts)
            continue
        sides = [_RecordingSampler(), _RecordingSampler()]
        for side, cells in zip(sides, (first, second), strict=True):
            weights = np.array(cells.columns[0], np.int64).reshape(-1, choice.bins)
            choose_bins(pick, weights, side)
        for (ours, scale), (theirs, _) in zip(sides[0].seen, sides[1].seen, strict=True):
            moved = ours - theirs
            for reach in (moved.max(axis=1) - moved.min(axis=1)).tolist():
                epsilon += Fraction(reach) / scale
                rho += (Fraction(reach) / scale) ** 2 / 8
    loss = step.loss
    if loss.epsilon is not None and epsilon > loss.epsilon:
        problems.append(f"choosing bins loses epsilon {float(epsilon)}, charged {float(loss.epsilon)}")
    if rho > loss.rho:
        problems.append(f"choosing bins loses rho {float(rho)}, charged {float(loss.rho)}")
    return problems


# --- scores ----------------------------------------------------------------------------------------------------------


def _check_score_choices(step: ReleaseStep, first: ExactCells, second: ExactCells) -> list[str]:
    """As for bins: what a choice by scores loses on this pair, by the range of what its penalties move by.

    Permute-and-flip has the same epsilon, and the rho of any pure loss. What a round leaves out narrows no range but
    its own: every round is counted as if it had all candidates.
    """
    scores, moves, loss = step.calibrated.scores, step.calibrated.moves, step.loss
    if scores is None or moves is None or first.keys != second.keys:
        return []  # keys that differ are told before
    ranges = _penalty_ranges(scores, first, second)
    epsilon = sum((r / scores.scale for r in ranges), Fraction(0)) * scores.rounds
    flips = isinstance(scores, Ranking) and scores.flips
    rho = sum(((r / scores.scale) ** 2 for r in ranges), Fraction(0)) / (2 if flips else 8) * scores.rounds
    problems = []
    if loss.epsilon is not None and epsilon > loss.epsilon:
        problems.append(f"choosing by scores loses epsilon {float(epsilon)}, charged {float(loss.epsilon)}")
    if rho > loss.rho:
        problems.append(f"choosing by scores loses rho {float(rho)}, charged {float(loss.rho)}")
    return problems


def _penalty_ranges(scores: Scores, first: ExactCells, second: ExactCells) -> list[int]:
    match scores:
        case Ranking(place=index):
            blocks: dict[Row, list[int]] = {}
            for key, ours, theirs in zip(first.keys, first.columns[0], second.columns[0], strict=True):
                if key[index] is not None:
                    blocks.setdefault(key[:index] + key[index + 1 :], []).append(ours - theirs)
            return [max(steps) - min(steps) for steps in blocks.values()]
        case PosteriorDraws():
            sides = [np.array(cells.columns, np.int64).T.reshape(-1, 2) for cells in (first, second)]
            before, after = (posterior_penalties(scores, np.maximum(side, 0)) for side in sides)
            moved = before.astype(object) - after.astype(object)
            return [int(max(row) - min(row)) for row in moved]


# --- randomized answers ----------------------------------------------------------------------------------------------


def _check_randomized_responses(step: ReleaseStep, first: ExactCells, second: ExactCells) -> list[str]:
    """What randomized answers lose on this pair, from the penalties that they are drawn by.

    Their number is told as it is, so it must be the same. As many as moved are told by other draws, each of them its
    own: an answer that is kept e^r times as often as any other loses r, and a rho of r^2/2.
    """
    study, loss = step.calibrated.study, step.loss
    if not isinstance(study, RandomizedResponse):
        return []
    (ours, rows), (theirs, others) = first.columns, second.columns
    if sum(rows) != sum(others):
        return ["the number of randomized answers depends on a unit"]
    before, after = dict(zip(ours, rows, strict=True)), dict(zip(theirs, others, strict=True))
    moved = sum(max(0, weight - after.get(code, 0)) for code, weight in before.items())
    sampler, answers = _RecordingSampler(), study.axes.sizes[0]
    randomize_responses(np.arange(answers), answers, study.epsilon, sampler)
    ratio = max(int(penalties.max() - penalties.min()) / scale for penalties, scale in sampler.seen)
    if loss.epsilon is None or moved * ratio > loss.epsilon or moved * ratio**2 / 2 > loss.rho:
        return [f"{moved} randomized answers lose epsilon {float(ratio)} each, charged {loss.epsilon}"]
    return []


# --- what is charged -------------------------------------------------------------------------------------------------


def find_undercharges(compiled: Compiled) -> list[str]:
    """Whether the noise that will be drawn costs more than what is charged, or the charge more than was asked."""
    problems = []
    for step, release in zip(compiled.steps, explain(compiled, "duckdb", ()).releases, strict=True):
        loss, pure, rho = step.loss, Fraction(0), Fraction(0)
        for bundle in release.bundles:
            if bundle.mechanism not in ("laplace", "gaussian"):  # compared on the rows, exactly
                continue
            square = min(Fraction(bundle.l1) ** 2, Fraction(bundle.l2) ** 2)
            rho += square / (2 * bundle.scale**2) * Fraction(10**12 - 1, 10**12)  # l2 is rounded up
            if bundle.mechanism == "laplace":
                pure += bundle.l1 / bundle.scale
        rho += _rho_of_selection(step)
        if rho > loss.rho:
            problems.append(f"noise costs rho {float(rho)}, charged {float(loss.rho)}")
        if loss.epsilon is not None and pure > loss.epsilon:
            problems.append(f"noise costs epsilon {float(pure)}, charged {float(loss.epsilon)}")
    return problems + _check_total_loss(compiled)


def _rho_of_selection(step: ReleaseStep) -> Fraction:
    """The rho of a selection's noise: votes of k units in l0 keys each, once more where they are replaced."""
    selection = step.calibrated.selection
    if selection is None:
        return Fraction(0)
    reach = selection.reach
    sides, k = (2 if reach.change_one else 1), reach.group_size
    match selection:
        case WeightedGaussian(sigma):
            return Fraction(sides * (k * FULL_VOTE_WEIGHT) ** 2) / (2 * sigma**2)
        case OptimalSelection(scale) | LaplaceThreshold(scale) | GaussianThreshold(scale):
            return Fraction(sides * k**2 * reach.l0) / (2 * scale**2)


def _check_total_loss(compiled: Compiled) -> list[str]:
    """Gaussian noise by way of rho; Laplace by adding up epsilons; a selection's delta on top of either."""
    loss, settings = compiled.loss, compiled.settings
    pure, rho = Fraction(0), Fraction(0)
    for step in compiled.steps:
        if step.calibrated.study is not None:
            pure += step.loss.epsilon or 0
            rho += step.loss.rho if step.loss.epsilon is None else 0
        if step.calibrated.choice is not None or step.calibrated.scores is not None:
            if settings.chosen_noise is NoiseKind.LAPLACE:
                pure += step.loss.epsilon or 0
                picks = () if step.calibrated.choice is None else step.calibrated.choice.picks
                pure += sum(p.mechanism.total_epsilon for p in picks if not isinstance(p.mechanism, Exponential))
            else:
                rho += step.loss.rho
        for bundle in step.calibrated.bundles:
            if isinstance(bundle.mechanism, Laplace):
                pure += Fraction(bundle.claim.sensitivity.l1) / bundle.mechanism.scale
            else:
                rho += Fraction(bundle.claim.sensitivity.l2_squared) / (2 * bundle.mechanism.sigma**2)
        selection = step.calibrated.selection
        by_epsilon = step.loss.epsilon is not None and settings.chosen_noise is NoiseKind.LAPLACE
        if isinstance(selection, OptimalSelection | LaplaceThreshold) and by_epsilon:
            pure += Fraction(selection.reach.l1) / selection.scale
        elif selection is not None:
            rho += selection.loss.rho
    epsilon_left = float(settings.epsilon - pure)
    if epsilon_left < -1e-15 or delta_from_rho(float(rho), epsilon_left) + float(loss.delta) > float(settings.delta) * (
        1 + 1e-9
    ):
        return [f"epsilon {float(pure)}, rho {float(rho)}, delta {float(loss.delta)}: more than was asked"]
    return []


def delta_from_rho(rho: float, epsilon: float) -> float:
    """Least delta of rho-zCDP at this epsilon (Canonne, Kamath, Steinke 2020, Corollary 13), by a search over alpha."""

    def log_delta(alpha: float) -> float:
        return (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)

    if rho <= 0:
        return 0.0
    low, high = 1.0 + 1e-9, max(4.0, 4 * (epsilon / rho + 40 / math.sqrt(rho)))
    for _ in range(200):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if log_delta(a) < log_delta(b) else (a, high)
    return math.exp(log_delta((low + high) / 2)) * (1 - 1e-9)
