"""Releases of a statement that need not be bought, since the account's own stored releases give them.

Privacy: what is read was paid for by this account and is of the statement's data version (SOUNDNESS 9), so the answer
is post-processing and costs nothing. Others' releases, and so what others have asked, make no difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction

from dpsql.compiler.compile import (
    Compiled,
    CountedValues,
    MeasureSource,
    RandomizedResponses,
    RankedValues,
    ReleaseStep,
    SelectedBins,
    TableStep,
)
from dpsql.compiler.plan.aggregate import Gather
from dpsql.compiler.plan.clipped_sums import CountMeans, CountNorms
from dpsql.compiler.plan.estimators import Recipe, Terms, map_terms
from dpsql.compiler.reuse.derive import DerivedRelease, can_derive, derive_release
from dpsql.compiler.reuse.describe import ReleaseShape, shape_from_text
from dpsql.ledger.base import Account, Ledger, OwnRelease, Receipt, ReleaseQuote, ReleaseRequest
from dpsql.privacy.release import Release, release_from_bytes


@dataclass(frozen=True)
class ReuseSource:
    """Where a derived release comes from: when the account was charged for that, and by which entry."""

    release: Release
    at: datetime
    receipt: Receipt

    def __str__(self) -> str:
        return f"your release of {self.at:%Y-%m-%d %H:%M}"


@dataclass(frozen=True)
class ReusePlan:
    """A statement, with the releases that are derived, by the place of their step.

    `compiled` is the statement whose tables are worked out from these: its recipes read the cells that they have.
    """

    compiled: Compiled
    sources: Mapping[int, ReuseSource] = field(default_factory=dict)

    @property
    def releases(self) -> dict[int, Release]:
        return {index: source.release for index, source in self.sources.items()}

    @property
    def missing(self) -> bool:
        """Whether there is a step that is not derived."""
        return len(self.sources) < len(self.compiled.steps)

    @property
    def notices(self) -> tuple[str, ...]:
        texts = sorted(str(source) for source in self.sources.values())
        return tuple(dict.fromkeys(f"derived from {text}, at no cost" for text in texts))

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        return tuple(source.receipt for source in self.sources.values())

    def requests_to_charge(self, requests: Sequence[ReleaseRequest]) -> dict[int, ReleaseRequest]:
        """What has to be bought, by the place of its step; `after` counts places among what is bought."""
        indexes = [index for index in range(len(requests)) if index not in self.sources]
        return {
            p: replace(requests[p], after=tuple(indexes.index(before) for before in requests[p].after)) for p in indexes
        }


def release_requests(compiled: Compiled, version: int) -> list[ReleaseRequest]:
    """The releases of a statement, as the ledger is asked for them."""
    return [_release_request(step, version) for step in compiled.steps]


def _release_request(step: ReleaseStep, version: int) -> ReleaseRequest:
    shape = None if step.described is None else step.described.shape
    rows, text = ("", "") if shape is None else (shape.rows, shape.text)
    calibrated = step.calibrated
    nearest = isinstance(calibrated.plan, Gather) and any(
        isinstance(part, CountNorms | CountMeans) for part in calibrated.plan.parts
    )
    return ReleaseRequest(
        step.plan_hash,
        version,
        step.loss,
        calibrated.errors,
        step.after,
        calibrated.record,
        rows,
        text,
        nearest=nearest,
    )


@dataclass(frozen=True)
class ReuseCandidates:
    """Steps of a statement that the account has not paid for, and its own releases about the same rows."""

    unpaid: tuple[int, ...] = ()
    own_releases: tuple[OwnRelease, ...] = ()


def find_candidates(
    compiled: Compiled, requests: Sequence[ReleaseRequest], ledger: Ledger, account: Account
) -> ReuseCandidates:
    """What may tell a part of the statement. What the account has paid for as it is, is not looked at.

    A release that fills holes of another is bought: the other is known by it.
    """
    needed = {index for step in compiled.steps for index in step.after}
    able = {index for index, step in enumerate(compiled.steps) if step.described is not None} - needed
    if not able:
        return ReuseCandidates()
    quotes = ledger.quote_releases(account, requests)
    unpaid = tuple(sorted(index for index in able if not quotes[index].is_paid))
    if not unpaid:
        return ReuseCandidates()
    rows = sorted({requests[index].rows for index in unpaid})
    return ReuseCandidates(unpaid, ledger.list_own_stored(account, rows, requests[unpaid[0]].version))


def plan_reuse(compiled: Compiled, candidates: ReuseCandidates) -> ReusePlan:
    """The statement with what the account's own releases tell of it."""
    shapes = [(shape_from_text(own.shape), own) for own in candidates.own_releases]
    own_releases = [(shape, own) for shape, own in shapes if shape is not None]
    best_by_index = {
        index: best
        for index in candidates.unpaid
        if (best := _find_most_accurate(compiled.steps[index], own_releases)) is not None
    }
    if not best_by_index:
        return ReusePlan(compiled)
    sources = {
        p: ReuseSource(derived.release, own_release.at, own_release.receipt)
        for p, (derived, own_release) in best_by_index.items()
    }
    return ReusePlan(
        _read_from_derived(compiled, {index: derived for index, (derived, _) in best_by_index.items()}), sources
    )


def _find_most_accurate(
    step: ReleaseStep, own_releases: list[tuple[ReleaseShape, OwnRelease]]
) -> tuple[DerivedRelease, OwnRelease] | None:
    """The most accurate one; of equal ones the latest."""
    assert step.described is not None
    candidates: list[tuple[DerivedRelease, OwnRelease]] = []
    for shape, own in own_releases:
        if can_derive(step.described, shape):
            derived = derive_release(step.described, step.calibrated, shape, release_from_bytes(own.body))
            if derived is not None:
                candidates.append((derived, own))
    return min(candidates, key=lambda pair: pair[0].noise, default=None)


def describe_origins(reuse: ReusePlan, quotes: Sequence[ReleaseQuote]) -> tuple[str, ...]:
    """Where each release of a statement will come from, in words."""
    return tuple(
        f"derived from {reuse.sources[index]}, at no cost" if index in reuse.sources else _describe_origin(quote)
        for index, quote in enumerate(quotes)
    )


def _describe_origin(quote: ReleaseQuote) -> str:
    return "your own release, paid for before" if quote.is_paid else "a run that has to be paid for"


# --- recipes ---------------------------------------------------------------------------------------------------------


def _read_from_derived(compiled: Compiled, derived: Mapping[int, DerivedRelease]) -> Compiled:
    """The statement with the columns and recipes of what is derived."""
    steps = tuple(
        replace(step, calibrated=replace(step.calibrated, columns=derived[index].columns)) if index in derived else step
        for index, step in enumerate(compiled.steps)
    )
    return replace(compiled, steps=steps, tables=tuple(_rewrite_table(table, derived) for table in compiled.tables))


def _rewrite_table(table: TableStep, derived: Mapping[int, DerivedRelease]) -> TableStep:
    return replace(table, measures=tuple(_rewrite_measure(answer, derived) for answer in table.measures))


def _rewrite_measure(answer: MeasureSource, derived: Mapping[int, DerivedRelease]) -> MeasureSource:
    if answer.step not in derived:
        return answer
    terms = derived[answer.step].terms

    def rewrite_recipe(recipe: Recipe) -> Recipe:
        return map_terms(recipe, lambda cells: _substitute_terms(cells, terms))

    match answer.recipe:
        case SelectedBins() | RankedValues() | RandomizedResponses():
            return answer
        case CountedValues():
            return replace(answer, recipe=replace(answer.recipe, recipe=rewrite_recipe(answer.recipe.recipe)))
        case _:
            return replace(answer, recipe=rewrite_recipe(answer.recipe))


def _substitute_terms(cells: Terms, terms: Mapping[str, Terms]) -> Terms:
    """The same sum, of the cells that a derived release has."""
    result: dict[str, Fraction] = {}
    for cell, coefficient in cells:
        for name, number in terms[cell]:
            result[name] = result.get(name, Fraction(0)) + coefficient * number
    return tuple((name, number) for name, number in result.items() if number)
