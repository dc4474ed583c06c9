"""What a statement would cost its caller, with each kind of noise, before anything is spent.

Privacy: it looks at the caller's own payments, releases and balance, and at the owner's settings for those who pay with
her, so it tells nothing of what others have asked, nor of the dataset's figures (SOUNDNESS 9).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from dpsql.calibrate import Noise
from dpsql.compiled import Compiled
from dpsql.derivation import Told, origins
from dpsql.errors import AccessDenied, AccountSuspended, BudgetExceeded, Error
from dpsql.explain import Explanation, Offer, expected_errors, expected_widths
from dpsql.ledger.base import Account, Asked, Balance, Claim, Ledger, Quote, Statement
from dpsql.ledger.budget import require_policy
from dpsql.ledger.how_many import how_many
from dpsql.pilot import Known, require_allowed
from dpsql.privacy.filters import NO_COST, Cost, cost_of
from dpsql.privacy.loss import Loss, total
from dpsql.privacy.release import from_bytes
from dpsql.privacy.spec import Spec
from dpsql.settings import Settings

NOT_COVERED = "your budget does not cover it"
DECIDED = "the pilot of max_relative_error was paid for before, and has decided this"
ENOUGH = "the pilot of max_relative_error was paid for before, and is accurate enough: it is the answer"


@dataclass(frozen=True)
class Asker:
    """Who asks, and when: `payers` are the account and all above it."""

    ledger: Ledger
    payers: tuple[Account, ...]
    now: datetime

    @property
    def account(self) -> Account:
        return self.payers[0]

    def stored(self, asked: Sequence[Asked]) -> tuple[Claim, ...] | None:
        """The account's own stored releases for these; None where it may not have all of them, or there is one less."""
        with suppress(AccessDenied, AccountSuspended):
            return self.ledger.served(self.account, asked, self.now)
        return None

    def shut_out(self) -> str | None:
        """Why the account may have nothing at all, not even what it has paid for."""
        try:
            self.ledger.served(self.account, (), self.now)
        except (AccessDenied, AccountSuspended) as error:
            return error.message
        return None


@dataclass(frozen=True)
class Quoted:
    """The statement with one kind of noise, as its caller would get it.

    `quotes` are of all its releases; `own` are those that are stored, `told` has those that are derived.
    """

    known: Known
    told: Told
    asked: Sequence[Asked]
    quotes: tuple[Quote, ...]
    own: Mapping[int, Claim]

    @property
    def compiled(self) -> Compiled:
        return self.known.compiled

    @property
    def due(self) -> Loss:
        """What would be charged."""
        unpaid = [place for place, quote in enumerate(self.quotes) if not quote.paid]
        return _once(self.asked, unpaid, {place: claim.release for place, claim in self.own.items()})

    @property
    def whole(self) -> Loss:
        """What would be charged if nothing were paid for."""
        return _once(self.asked, range(len(self.asked)), {})

    @property
    def paid(self) -> bool:
        return all(quote.paid for quote in self.quotes)

    @property
    def expected(self) -> tuple[float | None, ...]:
        """The errors of what will be delivered: of stored and derived releases their own."""
        return expected_errors(self.told.compiled, self._delivered)

    @property
    def within(self) -> tuple[float | None, ...]:
        return expected_widths(self.told.compiled, self._delivered)

    @property
    def _delivered(self) -> Mapping[int, Spec]:
        specs: dict[int, Spec] = {place: release.spec for place, release in self.told.releases.items()}
        for place, claim in self.own.items():
            if claim.body is not None:
                specs[place] = from_bytes(claim.body).spec
        return specs


def _once(asked: Sequence[Asked], places: Iterable[int], own: Mapping[int, int]) -> Loss:
    """The loss of these releases, each charged once: the same question may stand in a statement twice."""

    def same(place: int) -> Hashable:
        if place in own:
            return own[place]
        one = asked[place]
        return one.plan, one.version, one.loss, one.errors, tuple(same(before) for before in one.after)

    return total(list({same(place): asked[place].loss for place in places}.values()))


# --- what there is ---------------------------------------------------------------------------------------------------


def kinds_of(settings: Settings, compile_with: Callable[[Settings], Known]) -> list[Known]:
    """The statement with the noise that it has, then with the other kind, if it may have that."""
    asked = compile_with(settings)
    kinds = {asked.compiled.settings.chosen_noise: asked}
    if asked.compiled.steps:
        for noise in set(Noise) - kinds.keys():
            with suppress(Error):  # Gaussian noise needs a delta
                other = compile_with(replace(settings, noise=noise))
                kinds.setdefault(other.compiled.settings.chosen_noise, other)
    return list(kinds.values())


def quoted(known: Known, told: Told, asked: Sequence[Asked], asker: Asker) -> Quoted:
    """What each release would cost the caller; those that others of hers tell cost nothing."""
    bought = told.bought(asked)
    found = dict(zip(bought, asker.ledger.quote(asker.account, list(bought.values())), strict=True))
    for place, source in told.sources.items():
        found[place] = Quote(asked[place].loss, source.receipt)
    own = _own({place: asked[place] for place in bought if found[place].paid}, asker)
    return Quoted(known, told, asked, tuple(found[place] for place in range(len(asked))), own)


def _own(paid: Mapping[int, Asked], asker: Asker) -> dict[int, Claim]:
    """The stored ones among what was paid for: all at once, or else each with those that fill its holes."""

    def stored(places: Sequence[int]) -> dict[int, Claim]:
        asked = [replace(paid[p], after=tuple(places.index(before) for before in paid[p].after)) for p in places]
        claims = asker.stored(asked)
        return {} if claims is None else dict(zip(places, claims, strict=True))

    def with_fillers(place: int) -> list[int]:
        return sorted({place, *(other for before in paid[place].after for other in with_fillers(before))})

    whole = stored(list(paid)) if paid else {}
    return whole or {place: claim for one in paid for place, claim in stored(with_fillers(one)).items()}


# --- what it costs ---------------------------------------------------------------------------------------------------


def with_prices(explained: Explanation, kinds: Sequence[Quoted], asker: Asker) -> Explanation:
    """`kinds` are the statement with each noise that it may have, its own first."""
    first = kinds[0]
    if not first.compiled.steps:
        return explained
    balance, shut_out = asker.ledger.balance(asker.account), asker.shut_out()
    offers = tuple(_offer(one, asker, balance, shut_out, one is first) for one in kinds)
    return replace(
        explained,
        offers=offers,
        undecided=first.known.undecided,
        expected=explained.expected if first.known.undecided else offers[0].expected or explained.expected,
        paid=tuple(quote.paid for quote in first.quotes),
        sources=origins(first.told, first.quotes),
        notices=explained.notices + _about_the_pilot(first.known),
    )


def _about_the_pilot(known: Known) -> tuple[str, ...]:
    if known.pilot is None or known.refused is not None:
        return ()
    return (ENOUGH,) if known.compiled is known.pilot else (DECIDED,)


def _offer(one: Quoted, asker: Asker, balance: Balance, shut_out: str | None, chosen: bool) -> Offer:
    due = _cost(one.due, one.compiled)
    never = shut_out or one.known.refused or _against_policy(one.compiled, asker.payers)
    short = None if one.paid or balance.admits(due) else NOT_COVERED
    like_this = _cost(one.whole, one.compiled)
    if one.known.pilot is not None and one.compiled is not one.known.pilot:
        like_this += _cost(one.known.pilot.loss, one.known.pilot)
    before = NO_COST if one.paid else due
    return Offer(
        noise=one.compiled.settings.chosen_noise.value,
        chosen=chosen,
        epsilon=one.compiled.epsilon,
        rho=one.whole.rho,
        price=one.due,
        expected=one.expected,
        within=one.within,
        more=0 if never or short else how_many(lambda number: balance.admits(before + like_this.times(number))),
        paid=one.paid,
        undecided=one.known.undecided,
        refused=bool(shut_out or one.known.refused or (not one.paid and (never or short))),
        reason=never or short,
    )


def _cost(loss: Loss, compiled: Compiled) -> Cost:
    return cost_of(loss, compiled.settings.epsilon, compiled.conversion)


def _against_policy(compiled: Compiled, payers: Sequence[Account]) -> str | None:
    """What the owner allows in one query, along all who pay; settings, not figures of anybody."""
    settings = compiled.settings
    try:
        require_allowed(compiled, payers)
        for payer in payers:
            require_policy(payer, Statement(compiled.statement, settings.epsilon, settings.delta))
    except BudgetExceeded as error:
        return error.message
    return None
