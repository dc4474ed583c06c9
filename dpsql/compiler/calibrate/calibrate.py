"""From a rewritten plan and its share of the statement's loss to noise: scales, thresholds, the loss to charge.

A statement's (ε, δ) is its total, split evenly over its releases; within one, the selection takes a part and the
bundles share the rest evenly. Gaussian noise is calibrated through ρ, Laplace through ε (SOUNDNESS 7).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from math import isqrt
from types import MappingProxyType

from dpsql.compiler.analysis.sensitivity import (
    Neighboring,
    SensitivityBound,
    derive_sensitivity_bounds,
    derive_unit_mass,
    max_groups_reached,
    max_selection_keys,
)
from dpsql.compiler.analysis.units import count_sets, derive_unit_facts
from dpsql.compiler.calibrate.local_sensitivity import calibrate_picks, pick_errors, uses_local_sensitivity
from dpsql.compiler.plan.aggregate import CountBlocks, Distinct, Gather, Sum, SumBlocks, Tally, Weigh, cells_of
from dpsql.compiler.plan.clipped_sums import ClippedSum, CountMeans, CountNorms, Norm
from dpsql.compiler.plan.expressions import ROW_WEIGHT
from dpsql.compiler.plan.measures import Best, Posterior
from dpsql.compiler.plan.steps import VALUE_KEY, Axis
from dpsql.compiler.rewrite.grids import coarsen_bundles, shift_for
from dpsql.compiler.rewrite.release_plan import BinSelection
from dpsql.errors import InternalError, InvalidParameter
from dpsql.privacy.audit_record import NoisedColumns, write_release_record, write_study_record
from dpsql.privacy.exponential import ChangedElements, Pick, UnitContribution, UnitWeights, picks_loss
from dpsql.privacy.filters import Composition
from dpsql.privacy.loss import Loss, LossTooSmall, epsilon_to_rho, round_down, sum_losses
from dpsql.privacy.noise import Mechanism, Sensitivity, calibrate_gaussian, calibrate_laplace, noise_loss, scale_of
from dpsql.privacy.partition_selection import (
    Selection,
    calibrate_selection_by_epsilon,
    calibrate_selection_by_rho,
    units_needed,
)
from dpsql.privacy.randomized_response import RandomizedResponse
from dpsql.privacy.release import KeySelection, NoiseBundle, ReleaseSpec
from dpsql.privacy.release_spec import BinPicks
from dpsql.privacy.score_selection import (
    LIKELIHOOD_STEPS,
    SHARE_STEPS,
    CellMoves,
    PosteriorDraws,
    Ranking,
    Scores,
    calibrate_scale_by_epsilon,
    calibrate_scale_by_rho,
    penalty_span,
    score_loss,
)
from dpsql.privacy.weighted_rows import Axes, WeightedRowsMechanism

SELECTION_SHARE = {True: Fraction(1, 5), False: Fraction(9, 20)}
"""Of a release's loss, where it also answers something: of rho with Gaussian noise, of epsilon with Laplace noise.

With more, groups would appear whose values drown in noise. Rho falls with the square of epsilon, so a fifth of it is
the rho of 0.447 of epsilon: with 9/20, Laplace noise shows no fewer groups than Gaussian noise does.
"""

MIN_STEPS = 10
"""Coarsening leaves at least 2^10 steps to the largest row: its rounding must stay far below the row."""


class NoiseKind(Enum):
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True)
class LossShare:
    """What one release may lose: `epsilon` for Laplace, `rho` for Gaussian; `delta` and `delta_conv` if it selects.

    `composition` is how the account adds up charges: where it adds their epsilons, each must have one. `alone` says
    that no other release of the statement loses anything, or that all of them may lose their part of epsilon.
    """

    noise: NoiseKind
    epsilon: Fraction
    rho: Fraction
    delta: Fraction
    delta_conv: Fraction
    composition: Composition = Composition.ZCDP
    alone: bool = False


@dataclass(frozen=True)
class NoisyBundle:
    claim: SensitivityBound
    mechanism: Mechanism
    loss: Loss


@dataclass(frozen=True)
class CalibratedPlan:
    """The plan that runs, with its noise; `columns` are the engine's, behind the keys."""

    plan: Gather | Tally
    columns: tuple[str, ...]
    grids: tuple[Fraction, ...]
    bundles: tuple[NoisyBundle, ...]
    selection: Selection | None
    loss: Loss
    choice: BinPicks | None = field(default=None, kw_only=True)
    counted: SensitivityBound | None = field(
        default=None, kw_only=True
    )  # the sensitivity of the counts that a choice looks at
    weights: UnitWeights | None = field(default=None, kw_only=True)  # and what one unit may add to them, or change
    study: WeightedRowsMechanism | None = field(default=None, kw_only=True)  # of a tally
    scores: Scores | None = field(default=None, kw_only=True)  # of the cells that are `counted`
    moves: CellMoves | None = field(default=None, kw_only=True)  # and how far neighbors move these
    errors: tuple[Fraction, ...]  # per bundle, then the selection: what a stored release is compared by

    @property
    def gather(self) -> Gather:
        """The plan, where it is one of groups and cells, and no tally."""
        assert isinstance(self.plan, Gather)
        return self.plan

    @property
    def spends_delta(self) -> bool:
        """Whether a part of the statement's delta is for it, beside the conversion from rho: as that of selections."""
        return self.selection is not None or (self.choice is not None and uses_local_sensitivity(self.choice))

    @property
    def record(self) -> str:
        """Its mechanisms as the ledger keeps them: `noise_loss` can be computed again from this text alone."""
        if self.study is not None:
            return write_study_record(self.study)
        bundles = [NoisedColumns(len(b.claim.cells), b.claim.sensitivity, b.mechanism) for b in self.bundles]
        picks = () if self.choice is None else self.choice.picks
        scores = None if self.scores is None or self.moves is None else (self.scores, self.moves)
        return write_release_record(bundles, self.selection, picks, self.weights, scores)

    @property
    def spec(self) -> ReleaseSpec:
        if self.study is not None:
            return ReleaseSpec(self.grids, (), study=self.study)
        if self.scores is not None:
            return ReleaseSpec(self.grids, (), scores=self.scores)
        if self.choice is not None:
            return ReleaseSpec(self.grids, (), None, self.choice)
        indexes = {name: index for index, name in enumerate(self.columns)}
        bundles = tuple(NoiseBundle(tuple(indexes[c] for c in b.claim.cells), b.mechanism) for b in self.bundles)
        selection = None
        if self.selection is not None and self.gather.selection is not None:
            selected = self.gather.selection
            selection = KeySelection(indexes[selected.cell], self.selection, len(selected.keys))
        return ReleaseSpec(self.grids, bundles, selection)


def delta_for_conversion(delta: Fraction, selects: bool) -> Fraction:
    """The part of a statement's δ that is for the conversion from ρ."""
    return delta * Fraction(9, 10) if selects else delta


COUNT_SHARE = Fraction(1, 10)
"""Of a statement's loss, what all counts have by which empty groups are left out, where there are any."""


class LossNeed(Enum):
    """What a release takes of its statement's loss. The list of public groups, beside which others tell, takes none;
    `COUNT` is that of a count by which empty groups are left out."""

    NOTHING = "nothing"
    COUNT = "a part of epsilon"
    EPSILON = "epsilon"
    DELTA = "epsilon and delta"


def loss_needed(gather: Gather, relation: Neighboring) -> LossNeed:
    if gather.selection is not None:
        return LossNeed.DELTA
    return LossNeed.EPSILON if derive_sensitivity_bounds(gather, relation) else LossNeed.NOTHING


def split_loss(
    noise: NoiseKind,
    epsilon: Fraction,
    delta: Fraction,
    needs: tuple[LossNeed, ...],
    composition: Composition = Composition.ZCDP,
) -> tuple[LossShare, ...]:
    """A statement's loss, divided over the releases that lose; a tenth of δ is for selections, if there are any, and a
    tenth of all else for the counts of groups."""
    counts = sum(need is LossNeed.COUNT for need in needs)
    releases = max(1, sum(need in (LossNeed.EPSILON, LossNeed.DELTA) for need in needs))
    selections = sum(need is LossNeed.DELTA for need in needs)
    delta_conv = delta_for_conversion(delta, selections > 0)
    delta_sel = delta - delta_conv
    rho = epsilon_to_rho(epsilon, delta_conv) if noise is NoiseKind.GAUSSIAN else Fraction(0)
    alone = releases == 1 and not counts
    whole = LossShare(noise, epsilon, rho, Fraction(0), Fraction(0), composition, alone)
    each = scale_share(whole, (1 - COUNT_SHARE if counts else 1) * Fraction(1, releases))
    selecting = replace(each, delta=delta_sel / max(1, selections), delta_conv=delta_conv / max(1, selections))
    nothing = LossShare(noise, Fraction(0), Fraction(0), Fraction(0), Fraction(0))  # noise cannot be had for it
    counting = scale_share(whole, COUNT_SHARE / max(1, counts))
    share_by_need = {
        LossNeed.NOTHING: nothing,
        LossNeed.COUNT: counting,
        LossNeed.EPSILON: each,
        LossNeed.DELTA: selecting,
    }
    return tuple(share_by_need[need] for need in needs)


def adds_epsilons(share: LossShare) -> bool:
    """Whether the loss is one of Gaussian noise for an account that adds up the epsilons of its charges, not rhos."""
    return share.noise is NoiseKind.GAUSSIAN and share.composition is not Composition.ZCDP


def may_lose_epsilon(share: LossShare) -> bool:
    """Whether a choice may lose epsilon itself though the noise is Gaussian: what it would lose by its rho is less.

    Privacy: a choice that loses epsilon is (epsilon, 0)-DP, which is within (epsilon, delta); its account adds up
    epsilons, and all of the statement together has no more than epsilon.
    """
    return share.alone and adds_epsilons(share)


def shares_beside_histograms(
    shares: tuple[LossShare, ...], epsilon: Fraction, delta_conv: Fraction, part: Fraction
) -> tuple[LossShare, ...]:
    """The shares of a question whose histograms are charged apart, `part` of its loss.

    Where rhos add up nothing changes: the cells with a histogram leave it theirs. Where epsilons do, the histograms
    have Laplace noise and are charged part * epsilon and no delta; so the question may lose the other part of epsilon,
    with all of delta, and its rho is that of both.

    Privacy: (part * epsilon, 0) and ((1 - part) * epsilon, delta) add up to (epsilon, delta).
    """
    total_rho = sum((share.rho for share in shares), Fraction(0))
    if not part or not total_rho or not any(map(adds_epsilons, shares)):
        return shares
    factor = epsilon_to_rho(epsilon * (1 - part), delta_conv) / (total_rho * (1 - part))
    return tuple(replace(share, rho=share.rho * factor) for share in shares)


@contextmanager
def _require_drawable() -> Iterator[None]:
    """Refuses a share below the ledger's unit, and noise past what the sampler can draw."""
    try:
        yield
    except LossTooSmall:
        raise InvalidParameter(
            "epsilon or delta is too small for this query", hint="SET epsilon or delta to a larger value."
        ) from None


@dataclass(frozen=True)
class PlanShares:
    """What the selection of a plan, and each of its bundles, may lose; a bundle as often as it weighs."""

    selection: LossShare
    bundle: LossShare


def share_within_plan(gather: Gather, share: LossShare, relation: Neighboring) -> PlanShares:
    count = sum(claim.weight for claim in derive_sensitivity_bounds(gather, relation))
    part = SELECTION_SHARE[share.noise is NoiseKind.GAUSSIAN]
    selecting = Fraction(0) if gather.selection is None else part if count else Fraction(1)
    return PlanShares(scale_share(share, selecting), scale_share(share, (1 - selecting) / max(1, count)))


@_require_drawable()
def calibrate(
    gather: Gather,
    share: LossShare,
    relation: Neighboring,
    spent: Mapping[str, Fraction] = MappingProxyType({}),
) -> CalibratedPlan:
    """Choose the selection, then the resolution, then the noise: each from the plan as it then stands.

    `spent` is the part of a cell's loss that the choice of its norm has, by cell.
    """
    shares = share_within_plan(gather, share, relation)
    selection, losses = None, list[Loss]()
    if gather.selection is not None:
        left = scale_share(shares.selection, 1 - spent.get(gather.selection.cell, Fraction(0)))
        automatic = gather.selection.cell in spent
        selection = _calibrate_selection(gather, left, relation, automatic)
        losses = [_selection_loss(selection, left, automatic)]
        gather = replace(gather, selection=replace(gather.selection, weighted=selection.weighted))
    gather = coarsen_bundles(gather, _coarsening_shifts(gather, shares.bundle, relation))
    bundles = tuple(
        _calibrate_bundle(
            claim, scale_share(shares.bundle, claim.weight * (1 - spent.get(claim.cells[0], Fraction(0))))
        )
        for claim in derive_sensitivity_bounds(gather, relation)
    )
    columns = tuple(cell for part in gather.all_parts for cell in cells_of(part))
    grids = cell_grids(gather)
    losses += [bundle.loss for bundle in bundles]
    return CalibratedPlan(
        plan=gather,
        columns=columns,
        grids=tuple(grids[column] for column in columns),
        bundles=bundles,
        selection=selection,
        loss=sum_losses(losses),
        errors=_comparison_errors(bundles, grids, selection, gather),
    )


@_require_drawable()
def calibrate_choice(
    choice: BinSelection, share: LossShare, relation: Neighboring, spent: Fraction = Fraction(0)
) -> CalibratedPlan:
    """Bins are chosen, one for each target in every group (SOUNDNESS 6). `spent` is what the choice of rows has."""
    gather, bins, share = choice.gather, choice.bins, scale_share(share, 1 - spent)
    contribution, row_weight = _unit_contribution(gather, relation)

    def calibrated_by(rho: Fraction | None) -> tuple[Pick, ...]:
        return calibrate_picks(
            choice.targets, choice.local, bins, contribution, share.delta, rho, share.epsilon, choice.overshoot
        )

    picks = calibrated_by(share.rho if share.noise is NoiseKind.GAUSSIAN else None)
    if may_lose_epsilon(share) and picks_loss(picks, contribution).epsilon is not None:
        picks = min(picks, calibrated_by(None), key=lambda found: pick_errors(found[0], row_weight))
    return CalibratedPlan(
        plan=gather,
        columns=tuple(cell for part in gather.parts for cell in cells_of(part)),
        grids=tuple(bins.grid for _ in picks),
        bundles=(),
        selection=None,
        loss=picks_loss(picks, contribution),
        errors=tuple(error for pick in picks for error in pick_errors(pick, row_weight)),
        choice=BinPicks(picks, bins.lower, bins.upper, row_weight),
        counted=derive_sensitivity_bounds(gather, relation)[0],
        weights=contribution,
    )


@_require_drawable()
def calibrate_scores(
    gather: Gather, measure: Best | Posterior, share: LossShare, relation: Neighboring
) -> CalibratedPlan:
    """The best candidates, or draws from a posterior, of every group: `privacy/score_selection.py` has the claim.

    Where epsilon itself is what is charged, the best are found by permute-and-flip, else by the exponential mechanism
    (SOUNDNESS 6).
    """
    (claim,), (part,) = derive_sensitivity_bounds(gather, relation), gather.parts
    is_best, pure = isinstance(measure, Best), share.noise is NoiseKind.LAPLACE
    non_negative = not isinstance(part, Sum) or all(bundle.non_negative for bundle in part.bundles)
    single = len(gather.keys) == (1 if is_best else 0)  # the candidates alone, or no key at all
    moves = CellMoves(claim.sensitivity, non_negative, single, relation.group_size, relation.change_one)
    rounds, width = (measure.most, 1) if isinstance(measure, Best) else (measure.draws, penalty_span(measure.first))
    if not pure and share.rho > 0:
        scale = calibrate_scale_by_rho(rounds, width, moves, share.rho)
        if may_lose_epsilon(share):
            pure = calibrate_scale_by_epsilon(rounds, width, moves, share.epsilon) <= scale
    if pure:
        scale = calibrate_scale_by_epsilon(rounds, width, moves, share.epsilon)
    elif share.rho <= 0:
        raise InvalidParameter("gaussian noise needs a delta above 0", hint="SET delta = 1e-9.")
    grid, row_weight = cell_grids(gather)[claim.cells[0]], ROW_WEIGHT if isinstance(part, Sum) and part.weighted else 1
    scores: Scores
    if isinstance(measure, Best):
        scores = Ranking(scale, measure.most, pure, [key.name for key in gather.keys].index(VALUE_KEY))
    else:
        # At a temper of 1 the draws are those of the posterior itself: a sharper one is no posterior.
        scale = max(scale, Fraction(LIKELIHOOD_STEPS * row_weight))
        scores = PosteriorDraws(scale, measure.draws, measure.first, measure.alpha, measure.beta, row_weight)
    lost = score_loss(scores, moves)
    if not pure and lost.epsilon is not None and lost.epsilon > share.epsilon:
        lost = replace(lost, epsilon=None)  # over many groups rho is the better figure, and the one that was asked for
    return CalibratedPlan(
        plan=gather,
        columns=claim.cells,
        grids=(Fraction(1),) if is_best else (Fraction(1, SHARE_STEPS),) * rounds,
        bundles=(),
        selection=None,
        loss=lost,
        errors=(scale * grid,) if is_best else (scale / (LIKELIHOOD_STEPS * row_weight),),
        counted=claim,
        scores=scores,
        moves=moves,
    )


def calibrate_study(tally: Tally, study: WeightedRowsMechanism, relation: Neighboring) -> CalibratedPlan:
    """A study that was made for what one unit adds to the tally that runs (law 2).

    It is stored under all of its parameters, so there is no error to compare it by.
    """
    if study.mass != derive_unit_mass(tally, relation):
        raise InternalError("the study was made for another tally")
    return CalibratedPlan(tally, tally.columns, study.grids, (), None, study.loss, errors=(), study=study)


def calibrate_response(tally: Tally, axis: Axis, epsilon: Fraction, relation: Neighboring) -> CalibratedPlan:
    """One randomized answer for each unit: it loses the epsilon that it was asked with, and has no other noise."""
    mass = derive_unit_mass(tally, relation)
    if not (mass.one_row and mass.change_one):
        raise InternalError("these rows are not one for each unit")
    return calibrate_study(tally, RandomizedResponse(Axes((axis.lower,), (axis.size,)), mass, epsilon), relation)


def _unit_contribution(gather: Gather, relation: Neighboring) -> tuple[UnitWeights, int]:
    """What one unit adds to the bins of a group, over all groups; and what a whole row weighs."""
    (part,) = gather.parts
    if isinstance(part, CountBlocks):
        return ChangedElements(max_groups_reached(part, gather), relation.group_size, relation.change_one), 1
    if not isinstance(part, Sum) or isinstance(part.input, Distinct):
        raise InternalError("bins are counted in rows")
    single = len(gather.keys) == 1  # the bin alone
    k, change_one = relation.group_size, relation.change_one
    if isinstance(part.input, Weigh):
        groups = {key.name for key in gather.keys[:-1]}
        if not set(part.input.keys) <= groups:
            raise InternalError("a unit's rows are weighed over the bins of a group together")
        norm, summed = part.input.rows * ROW_WEIGHT, part.input.norm is Norm.L1 or not part.input.keys
        if part.input.per_set:  # of each grouping set; their groups are apart
            sets = count_sets(part.input.input)
            norm = norm * sets if summed else isqrt(norm * norm * sets - 1) + 1
        return UnitContribution(norm, summed, single, k, change_one), ROW_WEIGHT
    rows = derive_unit_facts(part.input).rows
    if rows is None:
        raise InternalError("the rows that one privacy unit adds have no bound")
    return UnitContribution(rows, True, single, k, change_one), 1


def scale_share(share: LossShare, part: Fraction) -> LossShare:
    return replace(share, epsilon=share.epsilon * part, rho=share.rho * part)


def _calibrate_selection(gather: Gather, share: LossShare, relation: Neighboring, automatic: bool) -> Selection:
    if share.delta == 0:
        raise InvalidParameter(
            "the groups asked for are not public, and finding them needs a delta above 0",
            hint="SET delta = 1e-9, or group by a column whose values the schema declares.",
        )
    l0, k, change_one = max_selection_keys(gather), relation.group_size, relation.change_one
    weights = gather.selection is not None and gather.selection.may_be_weighted
    rho = _selection_rho(share, automatic)
    if rho is not None:
        return calibrate_selection_by_rho(rho, share.delta, l0=l0, group_size=k, change_one=change_one, weights=weights)
    return calibrate_selection_by_epsilon(
        share.epsilon,
        share.delta,
        share.delta_conv,
        l0=l0,
        group_size=k,
        change_one=change_one,
        weights=weights,
        unconverted=share.delta if share.composition is Composition.ZCDP else share.delta + share.delta_conv,
    )


def _selection_rho(share: LossShare, automatic: bool) -> Fraction | None:
    """The rho that a selection may lose, whatever cap on groups is chosen; None where it is given an epsilon.

    For Laplace noise it is that of the same (epsilon, delta): a selection's delta closes the pure filter in any case.
    """
    if share.noise is NoiseKind.GAUSSIAN:
        return share.rho
    if automatic and share.composition is Composition.ZCDP:
        return epsilon_to_rho(share.epsilon, share.delta_conv)
    return None


def _selection_loss(selection: Selection, share: LossShare, automatic: bool) -> Loss:
    """What a selection is charged; where its cap on groups is `automatic`, the same whatever cap was chosen.

    Privacy: at least what it loses. Where it was given an epsilon, the rho of Gaussian noise is at most that of
    (epsilon, delta_conv), so it is (epsilon, delta + delta_conv)-DP (Canonne, Kamath, Steinke 2020), and Laplace noise
    has a rho of at most epsilon^2/2 (Bun, Steinke 2016).
    """
    lost, rho, adds = selection.loss, _selection_rho(share, automatic), share.composition is not Composition.ZCDP
    if rho is not None:
        return Loss(None, round_down(rho), round_down(share.delta)) if automatic else lost
    epsilon, delta = round_down(share.epsilon), round_down(share.delta + share.delta_conv)
    if automatic:
        return Loss(epsilon, epsilon**2 / 2, delta)
    return Loss(epsilon, lost.rho, lost.delta + share.delta_conv) if adds and lost.epsilon is None else lost


def _calibrate_bundle(claim: SensitivityBound, share: LossShare) -> NoisyBundle:
    mechanism = _calibrate_mechanism(claim.sensitivity, share)
    return NoisyBundle(claim, mechanism, noise_loss(mechanism, claim.sensitivity))


def _calibrate_mechanism(sensitivity: Sensitivity, share: LossShare) -> Mechanism:
    if share.noise is NoiseKind.LAPLACE:
        return calibrate_laplace(sensitivity, share.epsilon)
    if share.rho <= 0:
        raise InvalidParameter("gaussian noise needs a delta above 0", hint="SET delta = 1e-9, or SET noise = laplace.")
    return calibrate_gaussian(sensitivity, share.rho)


def _coarsening_shifts(gather: Gather, share: LossShare, relation: Neighboring) -> dict[str, int]:
    """By how much each bundle is finer than its noise needs, keyed by its first cell."""
    limits = {
        bundle.cells[0]: (bundle.row_linf * (ROW_WEIGHT if part.weighted else 1)).bit_length() - 1 - MIN_STEPS
        for part in gather.parts
        if isinstance(part, Sum)
        for bundle in part.bundles
    }
    result: dict[str, int] = {}
    for claim in derive_sensitivity_bounds(gather, relation):
        limit = limits.get(claim.cells[0], 0)
        if limit > 0:
            sensitivity = claim.sensitivity
            if share.noise is NoiseKind.GAUSSIAN:
                scale_squared = sensitivity.l2_squared / (2 * share.rho) if share.rho else Fraction(0)
            else:
                scale_squared = (sensitivity.l1 / share.epsilon) ** 2
            result[claim.cells[0]] = min(limit, shift_for(int(scale_squared)))
    return result


def cell_grids(gather: Gather) -> dict[str, Fraction]:
    """What one step of each cell is worth, in the units of its values."""
    grids: dict[str, Fraction] = {}
    for part in gather.all_parts:
        if isinstance(part, Sum):
            weight = Fraction(1, ROW_WEIGHT) if part.weighted else Fraction(1)
            for bundle in part.bundles:
                grids |= dict.fromkeys(bundle.cells, bundle.grid * weight * (1 << bundle.shift))
        elif isinstance(part, SumBlocks):
            grids[part.cell] = part.blocks.grid
        elif isinstance(part, CountBlocks):
            grids[part.cell] = Fraction(1)
        elif isinstance(part, ClippedSum):
            grids |= {cell.cell: cell.grid for cell in part.cells}
        elif isinstance(part, CountNorms | CountMeans):
            grids[part.cell] = Fraction(1)
        else:
            grids[part.cell] = Fraction(1, ROW_WEIGHT) if part.weighted else Fraction(1)
    return grids


def _comparison_errors(
    bundles: tuple[NoisyBundle, ...],
    grids: dict[str, Fraction],
    selection: Selection | None,
    gather: Gather,
) -> tuple[Fraction, ...]:
    noise = tuple(scale_of(bundle.mechanism) * grids[bundle.claim.cells[0]] for bundle in bundles)
    if selection is None:
        return noise
    return (*noise, Fraction(units_needed(selection, max_selection_keys(gather))))
