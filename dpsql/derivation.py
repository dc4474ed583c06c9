"""Which releases of a statement need not be bought: those that the account's own stored releases tell.

Privacy: what is read was paid for by this account and is of the statement's data version (SOUNDNESS 9), so the answer
is post-processing and costs nothing. Others' releases, and so what others have asked, make no difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction

from dpsql.compile import Answered, Chosen, Compiled, Counted, Ranked, ReleaseStep, Responses, TableStep
from dpsql.derive.derive import Derived, derive, may_derive
from dpsql.derive.shape import Shape, from_text
from dpsql.ledger.base import Account, Asked, Ledger, OwnRelease, Quote, Receipt
from dpsql.plan.recipes import Recipe, Terms, map_terms
from dpsql.privacy.release import Release, from_bytes


@dataclass(frozen=True)
class Source:
    """Where a derived release comes from: when the account was charged for that, and by which entry."""

    release: Release
    at: datetime
    receipt: Receipt

    def __str__(self) -> str:
        return f"your release of {self.at:%Y-%m-%d %H:%M}"


@dataclass(frozen=True)
class Told:
    """A statement, with the releases that are derived, by the place of their step.

    `compiled` is the statement whose tables are worked out from these: its recipes read the cells that they have.
    """

    compiled: Compiled
    sources: Mapping[int, Source] = field(default_factory=dict)

    @property
    def releases(self) -> dict[int, Release]:
        return {place: source.release for place, source in self.sources.items()}

    @property
    def notices(self) -> tuple[str, ...]:
        texts = sorted(str(source) for source in self.sources.values())
        return tuple(dict.fromkeys(f"derived from {text}, at no cost" for text in texts))

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        return tuple(source.receipt for source in self.sources.values())

    def bought(self, asked: Sequence[Asked]) -> dict[int, Asked]:
        """What has to be bought, by the place of its step; `after` counts places among what is bought."""
        places = [place for place in range(len(asked)) if place not in self.sources]
        return {p: replace(asked[p], after=tuple(places.index(before) for before in asked[p].after)) for p in places}


def asked_for(compiled: Compiled, version: int) -> list[Asked]:
    """The releases of a statement, as the ledger is asked for them."""
    return [_asked(step, version) for step in compiled.steps]


def _asked(step: ReleaseStep, version: int) -> Asked:
    shape = None if step.described is None else step.described.shape
    rows, text = ("", "") if shape is None else (shape.rows, shape.text)
    calibrated = step.calibrated
    return Asked(step.plan_hash, version, step.loss, calibrated.errors, step.after, calibrated.record, rows, text)


def tell(compiled: Compiled, asked: Sequence[Asked], ledger: Ledger, account: Account) -> Told:
    """What the account's own releases tell of a statement. What it has paid for as it is, is not looked at.

    A release that fills holes of another is bought: the other is known by it.
    """
    needed = {place for step in compiled.steps for place in step.after}
    able = {place for place, step in enumerate(compiled.steps) if step.described is not None} - needed
    if not able:
        return Told(compiled)
    quotes = ledger.quote(account, asked)
    wanted = sorted(place for place in able if not quotes[place].paid)
    known = _own(ledger, account, [asked[place] for place in wanted])
    found = {place: best for place in wanted if (best := _best(compiled.steps[place], known)) is not None}
    if not found:
        return Told(compiled)
    sources = {p: Source(derived.release, own.at, own.receipt) for p, (derived, own) in found.items()}
    return Told(_reading(compiled, {place: derived for place, (derived, _) in found.items()}), sources)


def _own(ledger: Ledger, account: Account, asked: Sequence[Asked]) -> list[tuple[Shape, OwnRelease]]:
    if not asked:
        return []
    stored = ledger.own_stored(account, sorted({one.rows for one in asked}), asked[0].version)
    shapes = [(from_text(own.shape), own) for own in stored]
    return [(shape, own) for shape, own in shapes if shape is not None]


def _best(step: ReleaseStep, known: list[tuple[Shape, OwnRelease]]) -> tuple[Derived, OwnRelease] | None:
    """The most accurate one; of equal ones the latest."""
    assert step.described is not None
    found: list[tuple[Derived, OwnRelease]] = []
    for shape, own in known:
        if may_derive(step.described, shape):
            derived = derive(step.described, step.calibrated, shape, from_bytes(own.body))
            if derived is not None:
                found.append((derived, own))
    return min(found, key=lambda pair: pair[0].noise, default=None)


def origins(told: Told, quotes: Sequence[Quote]) -> tuple[str, ...]:
    """Where each release of a statement will come from, in words."""
    return tuple(
        f"derived from {told.sources[place]}, at no cost" if place in told.sources else _origin(quote)
        for place, quote in enumerate(quotes)
    )


def _origin(quote: Quote) -> str:
    return "your own release, paid for before" if quote.paid else "a run that has to be paid for"


# --- recipes ---------------------------------------------------------------------------------------------------------


def _reading(compiled: Compiled, derived: Mapping[int, Derived]) -> Compiled:
    """The statement with the columns and recipes of what is derived."""
    steps = tuple(
        replace(step, calibrated=replace(step.calibrated, columns=derived[place].columns)) if place in derived else step
        for place, step in enumerate(compiled.steps)
    )
    return replace(compiled, steps=steps, tables=tuple(_table(table, derived) for table in compiled.tables))


def _table(table: TableStep, derived: Mapping[int, Derived]) -> TableStep:
    return replace(table, measures=tuple(_answered(answer, derived) for answer in table.measures))


def _answered(answer: Answered, derived: Mapping[int, Derived]) -> Answered:
    if answer.step not in derived:
        return answer
    terms = derived[answer.step].terms

    def said(recipe: Recipe) -> Recipe:
        return map_terms(recipe, lambda cells: _over(cells, terms))

    match answer.recipe:
        case Chosen() | Ranked() | Responses():
            return answer
        case Counted():
            return replace(answer, recipe=replace(answer.recipe, recipe=said(answer.recipe.recipe)))
        case _:
            return replace(answer, recipe=said(answer.recipe))


def _over(cells: Terms, terms: Mapping[str, Terms]) -> Terms:
    """The same sum, of the cells that a derived release has."""
    result: dict[str, Fraction] = {}
    for cell, coefficient in cells:
        for name, number in terms[cell]:
            result[name] = result.get(name, Fraction(0)) + coefficient * number
    return tuple((name, number) for name, number in result.items() if number)
