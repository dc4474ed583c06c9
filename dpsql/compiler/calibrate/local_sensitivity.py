"""MEDIAN with noise by its local sensitivity: its share of the loss, and why it is rarely better.

Law: what is said about it is public. The smooth sensitivity and the distance of the test are facts about rows.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from dpsql.amounts import format_rounded_up
from dpsql.compiler.plan.measures import MAX_BLOCKS, Blockwise, Extreme, Local, Measure, MedianBy, Quantile
from dpsql.compiler.plan.steps import Bins
from dpsql.errors import InternalError, InvalidParameter
from dpsql.privacy.exponential import (
    MEDIAN,
    OVERSHOOT,
    Exponential,
    ExtremeTarget,
    Pick,
    Target,
    UnitContribution,
    UnitWeights,
    calibrate_picks_by_epsilon,
    calibrate_picks_by_rho,
    rank_error,
)
from dpsql.privacy.median import (
    BlockReach,
    ProposeTestRelease,
    SmoothMedian,
    calibrate_propose_test_release,
    calibrate_smooth_median,
    units_for_precision,
    units_to_pass_test,
    worst_scale,
)
from dpsql.privacy.noise import Laplace, standard_error
from dpsql.privacy.release_spec import BinPicks
from dpsql.types import Kind

DEFAULT_PROPOSAL = Fraction(1, 100)
"""Of the range. Without a figure of the analyst's own: noise that leaves two digits, if the test is passed."""
RANGE_HUNDREDTH = Fraction(1, 100)
_SQRT_PRECISION = 1 << 40

SelectionMeasure = Quantile | Extreme | Blockwise


def apply_overshoot(measure: SelectionMeasure, overshoot: Fraction) -> SelectionMeasure:
    """MIN or MAX with the overshoot that is set; the default is not written, so stored releases are found again."""
    return replace(measure, overshoot=overshoot) if isinstance(measure, Extreme) and overshoot != OVERSHOOT else measure


def apply_median_setting(measure: SelectionMeasure, by: MedianBy, proposal: Fraction | None) -> SelectionMeasure:
    """A median by its local sensitivity, where that is set; other measures as they are."""
    if not isinstance(measure, Quantile) or not measure.is_median or by is MedianBy.EXPONENTIAL:
        return measure
    return replace(measure, local=Local(by, proposal if by is MedianBy.PTR else None))


def neighbor_reach(contribution: UnitContribution) -> BlockReach:
    """Where neighbors differ, if a unit has one value (`norm` 1), or one in each of `norm` groups, which are all.

    Stability: k units come or go, or each is changed, which is one value less and another more. Together these are
    `steps` values, if each unit has one; else there are no more blocks than `norm`.
    """
    steps = contribution.group_size * (2 if contribution.change_one else 1)
    return BlockReach(steps, 1 if contribution.single else max(steps, contribution.norm))


def uses_local_sensitivity(choice: BinPicks) -> bool:
    return any(not isinstance(pick.mechanism, Exponential) for pick in choice.picks)


def calibrate_picks(
    targets: tuple[Target, ...], local: Local | None, bins: Bins, contribution: UnitWeights, delta: Fraction,
    rho: Fraction | None, epsilon: Fraction, overshoot: Fraction,
) -> tuple[Pick, ...]:  # fmt: skip
    """The sharpest choices that are charged at most `rho`, or where that is None `epsilon`, together."""
    if rho is not None and rho <= 0:
        raise InvalidParameter("gaussian noise needs a delta above 0", hint="SET delta = 1e-9.")
    if local is not None:
        if not isinstance(contribution, UnitContribution):
            raise InternalError("a median by its local sensitivity is one of units")
        return (calibrate_local_pick(local, bins, contribution, delta, epsilon=epsilon, rho=rho),)
    count = bins.upper - bins.lower + 1
    if rho is not None:
        return calibrate_picks_by_rho(targets, contribution, count, rho, overshoot)
    return calibrate_picks_by_epsilon(targets, contribution, count, epsilon, overshoot)


def pick_errors(pick: Pick, row_weight: int) -> tuple[Fraction, ...]:
    """What a stored release is compared by: less is better."""
    match pick.mechanism:
        case Exponential(scale):
            return (scale / row_weight,)
        case SmoothMedian(epsilon, rate):
            return (1 / epsilon, 1 / rate)
        case ProposeTestRelease(epsilon, _, limit):
            return (1 / epsilon, Fraction(limit))


def calibrate_local_pick(
    local: Local, bins: Bins, contribution: UnitContribution, delta: Fraction, *,
    epsilon: Fraction | None = None, rho: Fraction | None = None,
) -> Pick:  # fmt: skip
    """The least noise that is charged at most `rho`, or (epsilon, delta) by adding up; over all blocks together."""
    if delta <= 0:
        raise InvalidParameter(f"a median by {local.by.value} needs a delta above 0", hint="SET delta = 1e-9.")
    reached = neighbor_reach(contribution)
    parts = 1 if local.by is MedianBy.SMOOTH else 2  # ptr tests, then releases
    if rho is not None:
        each = _sqrt_below(2 * rho / (parts * reached.blocks))
    else:
        assert epsilon is not None
        each = epsilon / (parts * reached.blocks)
    count = bins.upper - bins.lower + 1
    if local.by is MedianBy.SMOOTH:
        return Pick(MEDIAN, calibrate_smooth_median(each, delta / reached.blocks, reached, count))
    return Pick(
        MEDIAN, calibrate_propose_test_release(each, delta / reached.blocks, _proposal_in_bins(local, bins), reached)
    )


def _sqrt_below(square: Fraction) -> Fraction:
    return Fraction(math.isqrt(square.numerator * _SQRT_PRECISION**2 // square.denominator), _SQRT_PRECISION)


def _proposal_in_bins(local: Local, bins: Bins) -> int:
    """In bins, rounded up: more noise, and a test that is passed more often."""
    steps = bins.upper - bins.lower
    proposal = steps * DEFAULT_PROPOSAL if local.proposal is None else local.proposal * _proposal_unit(bins) / bins.grid
    if math.ceil(proposal) >= steps:
        raise InvalidParameter(
            "the proposal of ptr must be less than the range of the values",
            hint="SET proposal to a smaller number, or SET mechanism = exponential.",
        )
    return max(1, math.ceil(proposal))


def _proposal_unit(bins: Bins) -> int:
    """What 1 is in a proposal: a second of a moment is a million microseconds."""
    return 1_000_000 if bins.type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ) else 1


def describe_pick(pick: Pick, choice: BinPicks, grid: Fraction) -> tuple[str, Fraction, float]:
    """Mechanism, scale and error: by rank at 95 % where a bin is chosen; of `smooth` the most that it can be."""
    match pick.mechanism:
        case Exponential(scale):
            return "exponential", scale, rank_error(pick, choice.bins) / choice.whole
        case SmoothMedian(epsilon):
            scale = worst_scale(epsilon, choice.bins)
            return "smooth", scale, standard_error(Laplace(scale)) * float(grid)
        case ProposeTestRelease():
            scale = pick.mechanism.noise_scale
            return "ptr", scale, standard_error(Laplace(scale)) * float(grid)


def few_blocks_notices(choice: BinPicks | None, measures: tuple[Measure, ...]) -> list[str]:
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
    more = f"{enough} blocks or more, " if enough <= MAX_BLOCKS else ""
    return [
        f"the median of {blocks} blocks is little but noise: it may be off by {format_rounded_up(Fraction(off))} of"
        f" them by rank (95 %); take {more}a larger epsilon, or combine => 'mean'"
    ]


def extreme_notices(choice: BinPicks | None, measures: tuple[Measure, ...], undecided: bool) -> list[str]:
    """Which quantile MIN and MAX are: from epsilon, bins and settings alone, like the rank itself."""
    if choice is None or len(measures) != 1 or not isinstance(measures[0], Extreme):
        return []
    measure, (pick,) = measures[0], choice.picks
    assert isinstance(pick.target, ExtremeTarget)
    named, beyond = f"MIN({measure.text}) is a low quantile, not the smallest value", "smaller"
    if measure.high:
        named, beyond = f"MAX({measure.text}) is a high quantile, not the largest value", "larger"
    if undecided:
        return [f"{named}; how many units have {beyond} ones is known once the norm is chosen"]
    about = format_rounded_up(Fraction(pick.target.rank, choice.whole))
    max_error = format_rounded_up(Fraction(rank_error(pick, choice.bins) / choice.whole))
    return [f"{named}: about {about} units of a group have {beyond} ones, at most {max_error} (95 %)"]


# --- why it is rarely better -----------------------------------------------------------------------------------------


def comparison_notices(choice: BinPicks | None, bins: Bins, contribution: UnitWeights | None) -> list[str]:
    """What the exponential mechanism would do for the same charge; nothing where it is used."""
    if choice is None or not isinstance(contribution, UnitContribution):
        return []
    local = [pick.mechanism for pick in choice.picks if not isinstance(pick.mechanism, Exponential)]
    return [_compare_with_exponential(mechanism, bins, contribution) for mechanism in local]


def _compare_with_exponential(
    mechanism: SmoothMedian | ProposeTestRelease, bins: Bins, contribution: UnitContribution
) -> str:
    count = bins.upper - bins.lower + 1
    (other,) = calibrate_picks_by_rho((MEDIAN,), contribution, count, mechanism.loss.rho)
    rows = format_rounded_up(Fraction(rank_error(other, count)))
    rarely = f"the exponential mechanism at the same rho is within {rows} rows by rank on any data (95 %)"
    match mechanism:
        case SmoothMedian():
            units = units_for_precision(mechanism, RANGE_HUNDREDTH)
            return (
                f"smooth sensitivity is rarely better: with fewer than {units} units in a group, wherever their values"
                f" lie, its noise is wider than a hundredth of the range; {rarely}"
            )
        case ProposeTestRelease():
            units = units_to_pass_test(mechanism)
            width = format_rounded_up(Fraction(math.log(20)) * mechanism.noise_scale * bins.grid / _proposal_unit(bins))
            return (
                f"ptr is rarely better: with fewer than {units} units in a group, wherever their values lie, it has no"
                f" answer (NULL) in more than 1 of 20 runs, and else noise of {width} (95 %); {rarely}"
            )
