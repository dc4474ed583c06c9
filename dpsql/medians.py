"""MEDIAN with noise by its local sensitivity: its share of the loss, and why it is rarely better.

Law: what is said about it is public. The smooth sensitivity and the distance of the test are facts about rows.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from dpsql.errors import InternalError, InvalidParameter
from dpsql.figures import short_up
from dpsql.plan.measures import Blockwise, Extreme, Local, Measure, MedianBy, Quantile
from dpsql.plan.stages import Bins
from dpsql.plan.statistics import MOST_BLOCKS
from dpsql.privacy.choice import (
    MEDIAN,
    Contribution,
    Exponential,
    Pick,
    Target,
    UnitWeights,
    picks_under_epsilon,
    picks_under_rho,
    rank_error,
)
from dpsql.privacy.mechanisms import Laplace, standard_error
from dpsql.privacy.ptr import Proposed, calibrate_proposed
from dpsql.privacy.ptr import units_for as units_tested
from dpsql.privacy.smooth import Reached, Smooth, calibrate_smooth, worst_scale
from dpsql.privacy.smooth import units_for as units_smoothed
from dpsql.privacy.spec import Choice
from dpsql.types import Kind

DEFAULT_PROPOSAL = Fraction(1, 100)
"""Of the range. Without a figure of the analyst's own: noise that leaves two digits, if the test is passed."""
HUNDREDTH = Fraction(1, 100)
_ROOT = 1 << 40

Asked = Quantile | Extreme | Blockwise


def by_setting(measure: Asked, by: MedianBy, proposal: Fraction | None) -> Asked:
    """A median by its local sensitivity, where that is set; other measures as they are."""
    if not isinstance(measure, Quantile) or not measure.is_median or by is MedianBy.EXPONENTIAL:
        return measure
    return replace(measure, local=Local(by, proposal if by is MedianBy.PTR else None))


def reached_by(contribution: Contribution) -> Reached:
    """Where neighbors differ, if a unit has one value (`norm` 1), or one in each of `norm` groups, which are all.

    Stability: k units come or go, or each is changed, which is one value less and another more. Together these are
    `steps` values, if each unit has one; else there are no more blocks than `norm`.
    """
    steps = contribution.group_size * (2 if contribution.change_one else 1)
    return Reached(steps, 1 if contribution.single else max(steps, contribution.norm))


def is_local(choice: Choice) -> bool:
    return any(not isinstance(pick.mechanism, Exponential) for pick in choice.picks)


def picks_for(
    targets: tuple[Target, ...], local: Local | None, bins: Bins, contribution: UnitWeights, delta: Fraction,
    rho: Fraction | None, epsilon: Fraction,
) -> tuple[Pick, ...]:  # fmt: skip
    """The sharpest choices that are charged at most `rho`, or where that is None `epsilon`, together."""
    if rho is not None and rho <= 0:
        raise InvalidParameter("gaussian noise needs a delta above 0", hint="SET delta = 1e-9.")
    if local is not None:
        if not isinstance(contribution, Contribution):
            raise InternalError("a median by its local sensitivity is one of units")
        return (pick_under(local, bins, contribution, delta, epsilon=epsilon, rho=rho),)
    count = bins.upper - bins.lower + 1
    if rho is not None:
        return picks_under_rho(targets, contribution, count, rho)
    return picks_under_epsilon(targets, contribution, count, epsilon)


def errors_of(pick: Pick, whole: int) -> tuple[Fraction, ...]:
    """What a stored release is compared by: less is better."""
    match pick.mechanism:
        case Exponential(scale):
            return (scale / whole,)
        case Smooth(epsilon, rate):
            return (1 / epsilon, 1 / rate)
        case Proposed(epsilon, _, limit):
            return (1 / epsilon, Fraction(limit))


def pick_under(
    local: Local, bins: Bins, contribution: Contribution, delta: Fraction, *,
    epsilon: Fraction | None = None, rho: Fraction | None = None,
) -> Pick:  # fmt: skip
    """The least noise that is charged at most `rho`, or (epsilon, delta) by adding up; over all blocks together."""
    if delta <= 0:
        raise InvalidParameter(f"a median by {local.by.value} needs a delta above 0", hint="SET delta = 1e-9.")
    reached = reached_by(contribution)
    parts = 1 if local.by is MedianBy.SMOOTH else 2  # ptr tests, then releases
    if rho is not None:
        each = _root_below(2 * rho / (parts * reached.blocks))
    else:
        assert epsilon is not None
        each = epsilon / (parts * reached.blocks)
    count = bins.upper - bins.lower + 1
    if local.by is MedianBy.SMOOTH:
        return Pick(MEDIAN, calibrate_smooth(each, delta / reached.blocks, reached, count))
    return Pick(MEDIAN, calibrate_proposed(each, delta / reached.blocks, _proposal(local, bins), reached))


def _root_below(square: Fraction) -> Fraction:
    return Fraction(math.isqrt(square.numerator * _ROOT**2 // square.denominator), _ROOT)


def _proposal(local: Local, bins: Bins) -> int:
    """In bins, rounded up: more noise, and a test that is passed more often."""
    steps = bins.upper - bins.lower
    proposal = steps * DEFAULT_PROPOSAL if local.proposal is None else local.proposal * _unit(bins) / bins.grid
    if math.ceil(proposal) >= steps:
        raise InvalidParameter(
            "the proposal of ptr must be less than the range of the values",
            hint="SET proposal to a smaller number, or SET mechanism = exponential.",
        )
    return max(1, math.ceil(proposal))


def _unit(bins: Bins) -> int:
    """What 1 is in a proposal: a second of a moment is a million microseconds."""
    return 1_000_000 if bins.type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ) else 1


def told(pick: Pick, choice: Choice, grid: Fraction) -> tuple[str, Fraction, float]:
    """Mechanism, scale and error: by rank at 95 % where a bin is chosen; of `smooth` the most that it can be."""
    match pick.mechanism:
        case Exponential(scale):
            return "exponential", scale, rank_error(pick, choice.bins) / choice.whole
        case Smooth(epsilon):
            scale = worst_scale(epsilon, choice.bins)
            return "smooth", scale, standard_error(Laplace(scale)) * float(grid)
        case Proposed():
            scale = pick.mechanism.noise_scale
            return "ptr", scale, standard_error(Laplace(scale)) * float(grid)


def few_blocks(choice: Choice | None, measures: tuple[Measure, ...]) -> list[str]:
    """Where the median of blocks is little but noise: it may be as far off as either end of them. From public figures
    alone; the error by rank is the same for any number of blocks."""
    if choice is None or len(measures) != 1 or not isinstance(measures[0], Blockwise):
        return []
    blocks = measures[0].blocks
    (pick,) = choice.picks
    off = rank_error(pick, choice.bins) / choice.whole
    if off <= blocks / 2:
        return []
    enough = math.ceil(4 * off / 10) * 10
    more = f"{enough} blocks or more, " if enough <= MOST_BLOCKS else ""
    return [
        f"the median of {blocks} blocks is little but noise: it may be off by {short_up(Fraction(off))} of them by rank"
        f" (95 %); take {more}a larger epsilon, or combine => 'mean'"
    ]


# --- why it is rarely better -----------------------------------------------------------------------------------------


def compared(choice: Choice | None, bins: Bins, contribution: UnitWeights | None) -> list[str]:
    """What the exponential mechanism would do for the same charge; nothing where it is used."""
    if choice is None or not isinstance(contribution, Contribution):
        return []
    local = [pick.mechanism for pick in choice.picks if not isinstance(pick.mechanism, Exponential)]
    return [_compared(mechanism, bins, contribution) for mechanism in local]


def _compared(mechanism: Smooth | Proposed, bins: Bins, contribution: Contribution) -> str:
    count = bins.upper - bins.lower + 1
    (other,) = picks_under_rho((MEDIAN,), contribution, count, mechanism.loss.rho)
    rows = short_up(Fraction(rank_error(other, count)))
    rarely = f"the exponential mechanism at the same rho is within {rows} rows by rank on any data (95 %)"
    match mechanism:
        case Smooth():
            units = units_smoothed(mechanism, HUNDREDTH)
            return (
                f"smooth sensitivity is rarely better: with fewer than {units} units in a group, wherever their values"
                f" lie, its noise is wider than a hundredth of the range; {rarely}"
            )
        case Proposed():
            units = units_tested(mechanism)
            width = short_up(Fraction(math.log(20)) * mechanism.noise_scale * bins.grid / _unit(bins))
            return (
                f"ptr is rarely better: with fewer than {units} units in a group, wherever their values lie, it has no"
                f" answer (NULL) in more than 1 of 20 runs, and else noise of {width} (95 %); {rarely}"
            )
