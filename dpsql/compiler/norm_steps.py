"""Norms that nobody declared: the steps whose histograms choose them, and what is chosen once these are released.

A statement with such norms is run as two: first its histograms, which are charged, run and stored like any release;
then the question, compiled with the norms as numbers. Loss and shares are fixed before either runs, and the question's
share is the same whether or not its histograms are stored already. Pure (law 6).

Privacy: a norm is a function of released histograms, of noise scales, of the statement and of the schema. So it is
post-processing, and so is all that follows from it: the plan, its grids, its price and its key (CONTRIBUTIONS 5,
rules 9 to 13).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.compiler.analysis.sensitivity import Neighboring, derive_sensitivity_bounds
from dpsql.compiler.calibrate.calibrate import LossShare, NoiseKind, calibrate, scale_share, share_within_plan
from dpsql.compiler.compiled import Compiled, NormStep, ReleaseStep
from dpsql.compiler.plan.aggregate import Gather, cells_of
from dpsql.compiler.plan.clipped_sums import ClippedSum
from dpsql.compiler.plan.estimators import Linear, Mean
from dpsql.compiler.plan.measures import CountRows, MeanValues, Measure, SumValues
from dpsql.compiler.planners import StepDraft
from dpsql.compiler.render.release import find_runtime_parameters, render_release
from dpsql.compiler.rewrite.automatic_norms import NormRequest, apply_norms
from dpsql.errors import InvalidParameter
from dpsql.privacy.norm_choice import CellNoise, ChosenNorm, NormBins, NormHistogram, choose_norm
from dpsql.schema.model import Resolved

NORM_SHARE, LARGE_NORM_SHARE = Fraction(1, 10), Fraction(1, 5)
"""Of a cell's loss, what the choice of its norm has: the larger part where little is seen with the smaller one."""

SMALL_EPSILON, FEW_UNITS = Fraction(1, 2), 500

KnownNorms = Mapping[str, NormHistogram]
"""Released histograms, by the hash of their plans."""


def norm_share(epsilon: Fraction, units: int | None) -> Fraction:
    few = units is not None and units <= FEW_UNITS
    return LARGE_NORM_SHARE if few or epsilon < SMALL_EPSILON else NORM_SHARE


@dataclass(frozen=True)
class DecidedDraft:
    """A draft with the norms that are known, and the part of each cell's loss that their choice has."""

    draft: StepDraft
    spent: Mapping[str, Fraction]
    chosen: tuple[tuple[str, ChosenNorm], ...]
    undecided: bool


@dataclass
class _Histogram:
    """One histogram, whoever asks for it, with the sum of their shares."""

    request: NormRequest
    sql: str
    draft: StepDraft
    share: LossShare


def decide_norms(
    drafts: Sequence[StepDraft],
    shares: Sequence[LossShare],
    relation: Neighboring,
    epsilon: Fraction,
    resolved: Resolved,
    known: KnownNorms,
) -> tuple[list[DecidedDraft], tuple[NormStep, ...]]:
    """The drafts with the norms that follow from known histograms, and all histograms that they need."""
    part = norm_share(epsilon, resolved.schema.privacy.units)
    histograms: dict[str, _Histogram] = {}
    hashes: dict[tuple[int, str], str] = {}
    for index, (draft, share) in enumerate(zip(drafts, shares, strict=True)):
        for request in _requests_of(draft):
            sql = render_release(request.gather)
            digest = _hash_histogram(sql, draft, relation)
            hashes[index, request.slot] = digest
            asked = _slot_share(request.slot, _gather_of(draft), share, relation, draft.choice is not None)
            taken = scale_share(asked, part)
            found = histograms.get(digest)
            if found is None:
                histograms[digest] = _Histogram(request, sql, draft, taken)
            else:
                found.share = replace(
                    found.share, epsilon=found.share.epsilon + taken.epsilon, rho=found.share.rho + taken.rho
                )
    steps = {digest: _make_step(digest, histogram, relation) for digest, histogram in histograms.items()}
    decided = [
        _decide_draft(
            draft, share, relation, part, {slot: hashes[i, slot] for i, slot in hashes if i == index}, steps, known
        )
        for index, (draft, share) in enumerate(zip(drafts, shares, strict=True))
    ]
    return decided, tuple(replace(step, decided=digest in known) for digest, step in steps.items())


def _requests_of(draft: StepDraft) -> tuple[NormRequest, ...]:
    if draft.choice is not None:
        return draft.choice.norms
    return draft.rewritten.norms if draft.rewritten is not None else ()


def _gather_of(draft: StepDraft) -> Gather:
    if draft.choice is not None:
        return draft.choice.gather
    assert draft.rewritten is not None
    return draft.rewritten.gather


def _hash_histogram(sql: str, draft: StepDraft, relation: Neighboring) -> str:
    """What runs, with what fills its holes; not who asked for it, so that one choice serves many questions."""
    holes = [hole for hole in draft.holes if hole.name in find_runtime_parameters(sql)]
    filled = [repr((h.name, h.shape.value, h.columns, h.most, h.sql, sorted(h.unique))) for h in holes]
    text = "\n".join(["norms", sql, repr(relation), *filled, draft.sources if holes else ""])
    return hashlib.sha256(text.encode()).hexdigest()


def _slot_share(slot: str, gather: Gather, share: LossShare, relation: Neighboring, choice: bool) -> LossShare:
    """The loss of all cells whose norm is the slot's."""
    if choice:
        return share
    shares = share_within_plan(gather, share, relation)
    if gather.selection is not None and gather.selection.cell == slot:
        return shares.selection
    return scale_share(shares.bundle, Fraction(len(_claims_of(slot, gather, relation))))


def _claims_of(slot: str, gather: Gather, relation: Neighboring) -> list[str]:
    """The first cells of the bundles whose norm is the slot's: of a clipped sum the cell itself, else all of a part."""
    firsts = [claim.cells[0] for claim in derive_sensitivity_bounds(gather, relation)]
    requests = {slot}
    for part in gather.parts:
        names = cells_of(part)
        if names[0] == slot and not isinstance(part, ClippedSum):
            requests |= set(names)
    return [first for first in firsts if first in requests]


def _make_step(digest: str, histogram: _Histogram, relation: Neighboring) -> NormStep:
    draft, sql = histogram.draft, histogram.sql
    calibrated = calibrate(histogram.request.gather, histogram.share, relation)
    read = find_runtime_parameters(sql)
    holes = tuple(hole for hole in draft.holes if hole.name in read)
    after = draft.after if holes else ()
    step = ReleaseStep(f"{draft.name}_norms", digest, sql, calibrated.gather.keys, calibrated, holes, after)
    return NormStep(step, bins_of(histogram.request))


def bins_of(request: NormRequest) -> NormBins:
    binning = request.part.binning
    return NormBins(binning.first, binning.last, binning.per_doubling, request.whole)


def _decide_draft(
    draft: StepDraft,
    share: LossShare,
    relation: Neighboring,
    part: Fraction,
    hashes: Mapping[str, str],
    steps: Mapping[str, NormStep],
    known: KnownNorms,
) -> DecidedDraft:
    requests = _requests_of(draft)
    if not requests:
        return DecidedDraft(draft, {}, (), False)
    gather, choice = _gather_of(draft), draft.choice is not None
    spent = {name: part for request in requests for name in (request.slot, *_claims_of(request.slot, gather, relation))}
    chosen: list[tuple[str, ChosenNorm]] = []
    for request in requests:
        histogram = known.get(hashes[request.slot])
        if histogram is None:
            return DecidedDraft(replace(draft, plan_hash=_hash_with_norms(draft, "undecided")), spent, (), True)
        own = _slot_share(request.slot, gather, share, relation, choice)
        claims = max(1, len(_claims_of(request.slot, gather, relation)))
        noise = _noise_per_norm(scale_share(own, (1 - part) / claims), relation)
        cell = CellNoise(
            noise, share.noise is NoiseKind.GAUSSIAN, request.groups, request.is_l2, request.signed,
            _only_divides(request.slot, draft),
        )  # fmt: skip
        norm = choose_norm(replace(histogram, bins=bins_of(request)), cell)
        if norm is None:
            raise too_few_units_error()
        chosen.append((request.slot, norm))
    norms = {slot: norm.norm for slot, norm in chosen}
    text = repr(sorted((slot, str(norms[slot]), hashes[slot]) for slot in norms))
    changed = apply_norms(gather, norms)
    if draft.choice is not None:
        draft = replace(draft, choice=replace(draft.choice, gather=changed))
    elif draft.rewritten is not None:
        draft = replace(draft, rewritten=replace(draft.rewritten, gather=changed))
    return DecidedDraft(replace(draft, plan_hash=_hash_with_norms(draft, text)), spent, tuple(chosen), False)


def _only_divides(slot: str, draft: StepDraft) -> bool:
    """Whether a slot is the count of averages, and no cell that shares its weight is asked for as a sum."""
    if draft.rewritten is None:
        return False
    recipes = draft.rewritten.recipes
    counts = {cell for recipe in recipes if isinstance(recipe, Mean) for cell, _ in recipe.count}
    asked = {cell for recipe in recipes if isinstance(recipe, Linear) for cell, _ in recipe.terms}
    sharing = [part.cell_names for part in draft.rewritten.gather.parts if isinstance(part, ClippedSum)]
    return slot in counts and not any(slot in names and asked & set(names) for names in sharing)


def _hash_with_norms(draft: StepDraft, text: str) -> str:
    return hashlib.sha256(f"{draft.plan_hash}\nnorms {text}".encode()).hexdigest()


def _noise_per_norm(share: LossShare, relation: Neighboring) -> float:
    """The scale of the noise of a cell whose norm is 1."""
    if share.noise is NoiseKind.GAUSSIAN:
        scale = 1 / math.sqrt(2 * float(share.rho))
        return scale * relation.group_size * (math.sqrt(2) if relation.change_one else 1)
    return relation.group_size * (2 if relation.change_one else 1) / float(share.epsilon)


def too_few_units_error() -> InvalidParameter:
    return InvalidParameter(
        "too few privacy units are seen to tell how much each of them contributes",
        detail="The histogram of units was charged, and is kept; the question itself was not.",
        hint="Ask with a larger epsilon or of more rows, or SET contributions.rows to the rows that one unit may "
        "count for.",
    )


def norm_statement(compiled: Compiled) -> Compiled:
    """The histograms that can be asked next, as a statement of their own, with the steps that fill their holes."""
    ready = [norm.step for norm in compiled.norm_steps if not norm.decided and not _waits(compiled, norm.step.after)]
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


# --- what is told ----------------------------------------------------------------------------------------------------


def clipping_notices(decided: DecidedDraft) -> list[str]:
    """By about how much each answer was scaled down. Nothing here says whether any unit really was."""
    if decided.undecided or not decided.chosen:
        return []
    chosen, notices = dict(decided.chosen), list[str]()
    if decided.draft.rewritten is None:
        return [_cap_notice(norm) for norm in chosen.values()]
    aggregate, recipes = decided.draft.aggregate, decided.draft.rewritten.recipes
    for measure, recipe in zip(aggregate.measures, recipes, strict=True):
        name = measure_label(measure)
        if isinstance(recipe, Linear):
            notices += [_sum_notice(name, chosen[cell]) for cell, _ in recipe.terms if cell in chosen]
        elif isinstance(recipe, Mean) and any(cell in chosen for cell, _ in (*recipe.count, *recipe.first)):
            notices.append(f"in {name}, units that contribute much count less")
    if any(norm.heavy_tail for norm in chosen.values()):
        notices.append("a few units may hold much more than was seen: totals may be too low")
    return notices


def _sum_notice(name: str, norm: ChosenNorm) -> str:
    percent = 100 * norm.clipped_share
    about = "less than 0.1 %" if percent < 0.1 else f"about {percent:.1f} %"
    return f"{about} of {name} was scaled down (units beyond {format_norm(norm.norm)} each)"


def _cap_notice(norm: ChosenNorm) -> str:
    return f"a unit counts like at most {format_norm(Fraction(math.ceil(norm.norm)))} rows"


def measure_label(measure: Measure) -> str:
    if isinstance(measure, SumValues | MeanValues):
        return f"{'SUM' if isinstance(measure, SumValues) else 'AVG'}({measure.text})"
    return "COUNT(*)" if isinstance(measure, CountRows) else "COUNT"


def format_norm(norm: Fraction) -> str:
    return f"{int(norm):,}" if norm.denominator == 1 else f"{float(norm):,.6g}"
