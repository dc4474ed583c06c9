"""Norms that nobody declared: the steps whose histograms choose them, and what is chosen once these are released.

A statement with such norms is run as two: first its histograms, which are charged, run and stored like any release;
then the question, compiled with the norms as numbers. Loss and shares are fixed before either runs, and the question's
share is the same whether or not its histograms are stored already. Pure (law 6).

Privacy: a norm is a function of released histograms, of noise scales, of the statement and of the schema. So it is
post-processing, and so is all that follows from it: the plan, its grids, its price and its key (docs/soundness.md
4).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from dpsql.compiler.analysis.sensitivity import Neighboring, SensitivityBound, derive_sensitivity_bounds
from dpsql.compiler.calibrate.calibrate import (
    LossShare,
    NoiseKind,
    adds_epsilons,
    calibrate,
    scale_share,
    share_within_plan,
    shares_beside_histograms,
)
from dpsql.compiler.compiled import Compiled, NormStep, ReleaseStep, TableStep
from dpsql.compiler.plan.aggregate import Gather, cells_of
from dpsql.compiler.plan.clipped_sums import MEAN_POWERS, ClippedSum
from dpsql.compiler.plan.estimators import Linear, Mean, MovedCenter, Recipe, Variance, move_centers, recipes_by_set
from dpsql.compiler.plan.steps import hole_text
from dpsql.compiler.planners import StepDraft
from dpsql.compiler.render.release import find_runtime_parameters, render_release
from dpsql.compiler.rewrite.automatic_norms import CenterRequest, NormRequest, apply_norms
from dpsql.errors import InvalidParameter
from dpsql.privacy.norm_choice import (
    CellNoise,
    ChosenNorm,
    CountBeside,
    MeanBins,
    MeanHistogram,
    NormBins,
    NormHistogram,
    UnitHistogram,
    choose_center,
    choose_norm,
)
from dpsql.schema.model import Resolved

NORM_SHARE, LARGE_NORM_SHARE = Fraction(1, 10), Fraction(1, 5)
"""Of a cell's loss, what the choice of its norm has: the larger part where little is seen with the smaller one."""

CENTER_SHARE = Fraction(1, 10)
"""Of the loss of a cell with a centre, what the choice of the centre has beside that of the norm: near the mean, sums
have norms that are several times smaller."""

SMALL_EPSILON, FEW_UNITS = Fraction(1, 2), 500

KnownNorms = Mapping[str, UnitHistogram]
"""Released histograms, by the hash of their plans."""


def norm_share(epsilon: Fraction, units: int | None) -> Fraction:
    few = units is not None and units <= FEW_UNITS
    return LARGE_NORM_SHARE if few or epsilon < SMALL_EPSILON else NORM_SHARE


@dataclass(frozen=True)
class DecidedDraft:
    """A draft with the norms that are known, and the part of each cell's loss that their choice has.

    `moved` are the cells whose centres are no longer where recipes have them.
    """

    draft: StepDraft
    spent: Mapping[str, Fraction] = field(default_factory=dict)
    chosen: tuple[tuple[str, ChosenNorm], ...] = ()
    undecided: bool = False
    moved: Mapping[str, MovedCenter] = field(default_factory=dict)


@dataclass
class _Histogram:
    """One histogram, whoever asks for it, with the sum of their shares."""

    request: NormRequest | CenterRequest
    sql: str
    draft: StepDraft
    share: LossShare
    waits: bool = False


@dataclass(frozen=True)
class _LocatedRequest:
    """A slot's request with the hash of its histogram; where its centre is chosen first, with that of the centre's.

    `request` is about the centre, once that is known.
    """

    request: NormRequest
    digest: str
    center: Fraction | None = None  # as it was chosen
    center_digest: str | None = None
    waits: bool = False


def decide_norms(
    drafts: Sequence[StepDraft],
    shares: tuple[LossShare, ...],
    relation: Neighboring,
    epsilon: Fraction,
    delta_conv: Fraction,
    resolved: Resolved,
    known: KnownNorms,
) -> tuple[list[DecidedDraft], tuple[NormStep, ...], Fraction]:
    """The drafts with the norms that follow from known histograms, all histograms that they need, and their part of
    the statement's epsilon."""
    part = norm_share(epsilon, resolved.schema.privacy.units)
    finder = _HistogramFinder(relation, part, known)
    located = [finder.locate(draft, share) for draft, share in zip(drafts, shares, strict=True)]
    histograms = finder.histograms
    taken_part = sum((histogram.share.epsilon for histogram in histograms.values()), Fraction(0)) / epsilon
    shares = shares_beside_histograms(shares, epsilon, delta_conv, taken_part)
    decided = [
        _decide_draft(draft, share, relation, part, requests, known)
        for draft, share, requests in zip(drafts, shares, located, strict=True)
    ]
    steps = tuple(_make_step(digest, histogram, relation, known) for digest, histogram in histograms.items())
    return decided, steps, taken_part


@dataclass
class _HistogramFinder:
    """All histograms that drafts ask for, each once, by the hashes of what runs."""

    relation: Neighboring
    part: Fraction
    known: KnownNorms
    histograms: dict[str, _Histogram] = field(default_factory=dict)

    def locate(self, draft: StepDraft, share: LossShare) -> tuple[_LocatedRequest, ...]:
        return tuple(self._locate_request(request, draft, share) for request in draft.norms)

    def _locate_request(self, request: NormRequest, draft: StepDraft, share: LossShare) -> _LocatedRequest:
        slot_share = _slot_share(request.slot, _gather_of(draft), share, self.relation, draft.choice is not None)
        if request.center is None:
            return _LocatedRequest(request, self._add(request, draft, scale_share(slot_share, self.part)))
        center_digest = self._add(request.center, draft, scale_share(slot_share, CENTER_SHARE))
        histogram, center = self.known.get(center_digest), None
        if histogram is not None:
            assert isinstance(histogram, MeanHistogram)
            chosen = choose_center(histogram)
            center = request.part.center if chosen is None else request.center.limit(chosen)
        waits = center is None
        request = request.about(request.part.center if center is None else center)
        digest = self._add(request, draft, scale_share(slot_share, self.part), "about", waits)
        return _LocatedRequest(request, digest, center, center_digest, waits)

    def _add(
        self,
        request: NormRequest | CenterRequest,
        draft: StepDraft,
        taken: LossShare,
        kind: Literal["norms", "about"] = "norms",
        waits: bool = False,
    ) -> str:
        """The hash of the histogram, which is one with others of the same text.

        One that is `about` a centre to be chosen is no other slot's, wherever that centre lies. Before it is chosen its
        text may be that of a sum about 0: as one with that they would be bought with the loss of both, and what lies
        about the centre once more.
        """
        sql = render_release(request.gather)
        digest = _hash_histogram(kind, sql, draft, self.relation)
        if adds_epsilons(taken):
            taken = replace(taken, noise=NoiseKind.LAPLACE)
        histogram = self.histograms.get(digest)
        if histogram is None:
            self.histograms[digest] = _Histogram(request, sql, draft, taken, waits)
        else:
            histogram.waits &= waits
            histogram.share = replace(
                histogram.share, epsilon=histogram.share.epsilon + taken.epsilon, rho=histogram.share.rho + taken.rho
            )
        return digest


def spread_of_norms(draft: StepDraft) -> int:
    """In how many groups a unit may be, at most, whose norm over all of them is smaller in L2 than in L1."""
    groups = max((r.groups for r in draft.norms if r.is_l2 or r.part.distinct), default=1)
    if draft.choice is None:
        return groups
    bins = draft.choice.bins.upper - draft.choice.bins.lower + 1  # listed beside the groups
    return max(1, groups // bins)


def _gather_of(draft: StepDraft) -> Gather:
    if draft.choice is not None:
        return draft.choice.gather
    assert draft.rewritten is not None
    return draft.rewritten.gather


def _hash_histogram(kind: str, sql: str, draft: StepDraft, relation: Neighboring) -> str:
    """What runs, with what fills its holes; not who asked for it, so that one choice serves many questions."""
    holes = [hole for hole in draft.holes if hole.name in find_runtime_parameters(sql)]
    filled = [hole_text(hole) for hole in holes]
    text = "\n".join([kind, sql, repr(relation), *filled, draft.sources if holes else ""])
    return hashlib.sha256(text.encode()).hexdigest()


def _slot_share(slot: str, gather: Gather, share: LossShare, relation: Neighboring, choice: bool) -> LossShare:
    """The loss of all cells whose norm is the slot's."""
    if choice:
        return share
    shares = share_within_plan(gather, share, relation)
    if gather.selection is not None and gather.selection.cell == slot:
        return shares.selection
    return scale_share(shares.bundle, Fraction(sum(claim.weight for claim in _claims_of(slot, gather, relation))))


def _claims_of(slot: str, gather: Gather, relation: Neighboring) -> list[SensitivityBound]:
    """The bundles whose norm is the slot's: of a clipped sum the one that begins with it, else all of a part."""
    requests = {slot}
    for part in gather.parts:
        names = cells_of(part)
        if names[0] == slot and not isinstance(part, ClippedSum):
            requests |= set(names)
    return [claim for claim in derive_sensitivity_bounds(gather, relation) if claim.cells[0] in requests]


def _make_step(digest: str, histogram: _Histogram, relation: Neighboring, known: KnownNorms) -> NormStep:
    draft, sql = histogram.draft, histogram.sql
    calibrated = calibrate(histogram.request.gather, histogram.share, relation)
    read = find_runtime_parameters(sql)
    holes = tuple(hole for hole in draft.holes if hole.name in read)
    after = draft.after if holes else ()
    kind = "centers" if isinstance(histogram.request, CenterRequest) else "norms"
    step = ReleaseStep(f"{draft.name}_{kind}", digest, sql, calibrated.gather.keys, calibrated, holes, after)
    return NormStep(step, bins_of(histogram.request), digest in known and not histogram.waits, histogram.waits)


def bins_of(request: NormRequest | CenterRequest) -> NormBins | MeanBins:
    return mean_bins_of(request) if isinstance(request, CenterRequest) else norm_bins_of(request)


def norm_bins_of(request: NormRequest) -> NormBins:
    binning = request.part.binning
    return NormBins(binning.first, binning.last, binning.per_doubling, request.whole)


def mean_bins_of(request: CenterRequest) -> MeanBins:
    return MeanBins(request.part.last, request.part.per_doubling, MEAN_POWERS[0])


def _decide_draft(
    draft: StepDraft,
    share: LossShare,
    relation: Neighboring,
    part: Fraction,
    requests: Sequence[_LocatedRequest],
    known: KnownNorms,
) -> DecidedDraft:
    if not requests:
        return DecidedDraft(draft)
    gather, choice = _gather_of(draft), draft.choice is not None
    spent: dict[str, Fraction] = {}
    for located in requests:
        taken = part + (CENTER_SHARE if located.center_digest is not None else 0)
        slot = located.request.slot
        firsts = (claim.cells[0] for claim in _claims_of(slot, gather, relation))
        spent |= dict.fromkeys((slot, *firsts), taken)
    chosen: list[tuple[str, ChosenNorm]] = []
    counted, besides = _find_counts(gather), dict[str, CountBeside]()
    unseen: list[NormRequest] = []
    for located in requests:
        request, histogram = located.request, known.get(located.digest)
        if histogram is None or located.waits:
            return DecidedDraft(replace(draft, plan_hash=_hash_with_norms(draft, "undecided")), spent, (), True)
        assert isinstance(histogram, NormHistogram)
        own = _slot_share(request.slot, gather, share, relation, choice)
        claims = _claims_of(request.slot, gather, relation)
        noise = _noise_per_norm(scale_share(own, (1 - spent[request.slot]) / max(1, len(claims))), relation)
        noise *= math.sqrt(max((claim.weight for claim in claims), default=1))  # COUNT(*) is a sum of so many cells
        noise *= request.sets ** (0.5 if share.noise is NoiseKind.GAUSSIAN else 1)
        cell = CellNoise(
            noise, share.noise is NoiseKind.GAUSSIAN, request.groups, request.is_l2, request.signed,
            _only_divides(request.slot, draft),
        )  # fmt: skip
        beside = besides.get(counted.get(request.slot, ""))
        norm = choose_norm(replace(histogram, bins=norm_bins_of(request)), cell, beside=beside)
        if norm is None:
            unseen.append(request)
            continue
        if not cell.divides:
            besides[request.slot] = CountBeside(norm, cell)
        chosen.append((request.slot, norm))
    chosen += [(request.slot, _norm_of_rows(request, gather, dict(chosen))) for request in unseen]
    norms = {slot: norm.norm for slot, norm in chosen}
    centers = {located.request.slot: located.center for located in requests if located.center is not None}
    origins = [
        (
            located.request.slot,
            str(norms[located.request.slot]),
            located.digest,
            str(located.center),
            located.center_digest,
        )
        for located in requests
    ]
    moved = _find_moved(gather, centers)
    changed = apply_norms(gather, norms, centers)
    if draft.choice is not None:
        draft = replace(draft, choice=replace(draft.choice, gather=changed))
    elif draft.rewritten is not None:
        recipes = tuple(move_centers(recipe, moved) for recipe in draft.rewritten.recipes)
        draft = replace(draft, rewritten=replace(draft.rewritten, gather=changed, recipes=recipes))
    draft = replace(draft, plan_hash=_hash_with_norms(draft, repr(sorted(origins))))
    return DecidedDraft(draft, spent, tuple(chosen), False, moved)


def _norm_of_rows(request: NormRequest, gather: Gather, chosen: Mapping[str, ChosenNorm]) -> ChosenNorm:
    """The norm of a sum that nearly all units have 0 in, where another cell of the release counts its rows.

    That cell's norm says how many rows a unit counts for, and bounds how far a row's value lies from the centre; where
    there are none, it is taken to be no further than 0 does. A count for which no unit is seen tells nothing.
    """
    part = request.part
    reach = abs(part.center) if part.bounds is None else max(abs(bound - part.center) for bound in part.bounds)
    cells = _row_cells(request.slot, gather)
    rows = next((chosen[cell] for cell in cells if cell in chosen), None)
    if part.arg is None or rows is None or not reach:
        raise too_few_units_error(sums=part.arg is not None and (rows is not None or not cells))
    norm = rows.norm * (reach**2 if part.squared else reach)
    return ChosenNorm(norm, 0.0, 0.0, 0.0, part.bounds is None, request.is_l2, request.signed)


def _row_cells(slot: str, gather: Gather) -> list[str]:
    """The cells that count what a slot adds up, or all rows of the same parts: those that share its weights first."""
    parts = [part for part in gather.parts if isinstance(part, ClippedSum)]
    own, counts = [part.input for part in parts if slot in part.cell_names], _find_counts(gather)
    rows = [c.cell for part in parts if part.input in own for c in part.cells if c.counts and c.arg is None]
    return [*([counts[slot]] if slot in counts else []), *rows]


def _find_counts(gather: Gather) -> dict[str, str]:
    """The counts that share the weights of sums about a centre, by these: they come before them."""
    parts = [part for part in gather.parts if isinstance(part, ClippedSum)]
    return {cell.cell: cell.count for part in parts for cell in part.cells if cell.count is not None}


def _find_moved(gather: Gather, centers: Mapping[str, Fraction]) -> dict[str, MovedCenter]:
    return {
        cell.cell: MovedCenter(centers[cell.cell] - cell.center, cell.count)
        for part in gather.parts
        if isinstance(part, ClippedSum)
        for cell in part.cells
        if cell.count is not None and centers.get(cell.cell, cell.center) != cell.center
    }


def move_tables(tables: Sequence[TableStep], decided: Sequence[DecidedDraft]) -> tuple[TableStep, ...]:
    """The tables with recipes that read cells about their centres, where these have moved."""
    if not any(step.moved for step in decided):
        return tuple(tables)
    return tuple(
        replace(
            table,
            measures=tuple(
                replace(measure, recipe=move_centers(measure.recipe, decided[measure.step].moved))
                if isinstance(measure.recipe, Recipe)
                else measure
                for measure in table.measures
            ),
        )
        for table in tables
    )


def _only_divides(slot: str, draft: StepDraft) -> bool:
    """Whether a slot is the count of averages, and no cell that shares its weight is asked for as a sum."""
    if draft.rewritten is None:
        return False
    recipes = draft.rewritten.recipes
    recipes = tuple(of_set for recipe in recipes for of_set in recipes_by_set(recipe))
    counts = {cell for recipe in recipes if isinstance(recipe, Mean | Variance) for cell, _ in recipe.count}
    summed = {cell for recipe in recipes if isinstance(recipe, Linear) for cell, _ in recipe.terms}
    sharing = [part.cell_names for part in draft.rewritten.gather.parts if isinstance(part, ClippedSum)]
    return slot in counts and not any(slot in names and summed & set(names) for names in sharing)


def _hash_with_norms(draft: StepDraft, text: str) -> str:
    return hashlib.sha256(f"{draft.plan_hash}\nnorms {text}".encode()).hexdigest()


def _noise_per_norm(share: LossShare, relation: Neighboring) -> float:
    """The scale of the noise of a cell whose norm is 1."""
    if share.noise is NoiseKind.GAUSSIAN:
        scale = 1 / math.sqrt(2 * float(share.rho))
        return scale * relation.group_size * (math.sqrt(2) if relation.change_one else 1)
    return relation.group_size * (2 if relation.change_one else 1) / float(share.epsilon)


def too_few_units_error(sums: bool) -> InvalidParameter:
    """Of `sums` nearly all units may add 0: how many rows they have tells a norm, where values have bounds."""
    return InvalidParameter(
        "too few privacy units are seen to tell how much each of them contributes",
        detail="The histogram of units was charged, and is kept; the question itself was not.",
        hint="Nearly all units may add 0. Ask for COUNT(*) beside the sum, and write CLIP(…, 0, 100) in it, with "
        "bounds of your own; or ask with a larger epsilon or of more rows."
        if sums
        else "Ask with a larger epsilon or of more rows, or SET contributions.rows to the rows that one unit may "
        "count for.",
    )


def norm_statement(compiled: Compiled) -> Compiled:
    """The histograms that can be asked next, as a statement of their own, with the steps that fill their holes."""
    ready = [
        norm.step
        for norm in compiled.norm_steps
        if not norm.decided and not norm.waits and not _waits(compiled, norm.step.after)
    ]
    needed = sorted({index for step in ready for index in _all_before(compiled, step.after)})
    places = {index: place for place, index in enumerate(needed)}
    moved = [
        replace(step, after=tuple(places[index] for index in step.after))
        for step in (*(compiled.steps[index] for index in needed), *ready)
    ]
    tables = tuple(
        replace(
            table,
            step=None if table.step is None else places[table.step],
            measures=tuple(replace(m, step=places[m.step]) for m in table.measures),
        )
        for table in compiled.tables
        if table.steps <= places.keys()
    )
    return replace(compiled, steps=tuple(moved), tables=tables, norm_steps=(), notices=(), errors=())


def _all_before(compiled: Compiled, after: Sequence[int]) -> set[int]:
    return {index for first in after for index in {first, *_all_before(compiled, compiled.steps[first].after)}}


def _waits(compiled: Compiled, after: Sequence[int]) -> bool:
    """Whether a step that fills a hole has norms of its own to be chosen first."""
    return any(compiled.steps[index].undecided for index in _all_before(compiled, after))


def format_norm(norm: Fraction) -> str:
    return f"{int(norm):,}" if norm.denominator == 1 else f"{float(norm):,.6g}"
