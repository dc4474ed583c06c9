"""Prices: what a statement would cost its caller, with each kind of noise, before anything is charged.

Privacy: it looks at the caller's own payments, releases and balance, and at the owner's settings for those who pay with
her, so it tells nothing of what others have asked, nor of the dataset's figures (SOUNDNESS 9).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compiled import Compiled
from dpsql.compiler.settings import Settings
from dpsql.errors import AccessDenied, AccountSuspended, BudgetExceeded, Error
from dpsql.ledger.base import (
    Account,
    Balance,
    ChargedStatement,
    Entitlement,
    Ledger,
    ReleaseQuote,
    ReleaseRequest,
    all_add_epsilons,
)
from dpsql.ledger.budget import count_admitted, require_policy
from dpsql.privacy.filters import NO_COST, Cost, cost_of_losses
from dpsql.privacy.loss import Loss, sum_losses
from dpsql.privacy.release import release_from_bytes
from dpsql.privacy.release_spec import ReleaseSpec
from dpsql.session.explain import Explanation, Offer, expected_errors, expected_widths
from dpsql.session.noise_choice import NoiseChoice, NoiseOption, choose_noise
from dpsql.session.pilot import PilotedStatement, require_epsilon_allowed
from dpsql.session.reuse import ReusePlan, describe_origins

NOT_COVERED = "your budget does not cover it"
PILOT_DECIDED = "the pilot of max_relative_error was paid for before, and has decided this"
PILOT_SUFFICIENT = "the pilot of max_relative_error was paid for before, and is accurate enough: it is the answer"


@dataclass(frozen=True)
class PricingContext:
    """The account that asks, and when: `payers` are the account and all above it."""

    ledger: Ledger
    payers: tuple[Account, ...]
    now: datetime

    @property
    def account(self) -> Account:
        return self.payers[0]

    def find_stored(self, requests: Sequence[ReleaseRequest]) -> tuple[Entitlement, ...] | None:
        """The account's own stored releases for these; None where it may not have all of them, or there is one less."""
        with suppress(AccessDenied, AccountSuspended):
            return self.ledger.find_entitlements(self.account, requests, self.now)
        return None

    def refusal_reason(self) -> str | None:
        """Why the account may have nothing at all, not even what it has paid for."""
        try:
            self.ledger.find_entitlements(self.account, (), self.now)
        except (AccessDenied, AccountSuspended) as error:
            return error.message
        return None


@dataclass(frozen=True)
class StatementQuote:
    """The statement with one kind of noise, as its caller would get it.

    `quotes` are of all its releases; `own` are those that are stored, `reuse` has those that are derived.
    """

    piloted: PilotedStatement
    reuse: ReusePlan
    requests: Sequence[ReleaseRequest]
    quotes: tuple[ReleaseQuote, ...]
    own: Mapping[int, Entitlement]

    @property
    def compiled(self) -> Compiled:
        return self.piloted.compiled

    @property
    def losses_due(self) -> list[Loss]:
        """The losses that would be charged."""
        unpaid = [index for index, quote in enumerate(self.quotes) if not quote.is_paid]
        return _distinct_losses(
            self.requests, unpaid, {index: entitlement.release for index, entitlement in self.own.items()}
        )

    @property
    def all_losses(self) -> list[Loss]:
        """What would be charged if nothing were paid for, the histograms that norms were chosen from among it."""
        histograms = [norm.step.loss for norm in self.compiled.norm_steps if norm.decided]
        return [*_distinct_losses(self.requests, range(len(self.requests)), {}), *histograms]

    @property
    def is_paid(self) -> bool:
        return all(quote.is_paid for quote in self.quotes)

    @property
    def stderrs(self) -> tuple[float | None, ...]:
        """The errors of what will be delivered: of stored and derived releases their own."""
        return expected_errors(self.reuse.compiled, self._delivered_specs)

    @property
    def half_widths(self) -> tuple[float | None, ...]:
        return expected_widths(self.reuse.compiled, self._delivered_specs)

    @property
    def _delivered_specs(self) -> Mapping[int, ReleaseSpec]:
        specs: dict[int, ReleaseSpec] = {index: release.spec for index, release in self.reuse.releases.items()}
        for index, entitlement in self.own.items():
            if entitlement.body is not None:
                specs[index] = release_from_bytes(entitlement.body).spec
        return specs


def _distinct_losses(
    requests: Sequence[ReleaseRequest], indexes: Iterable[int], own_releases: Mapping[int, int]
) -> list[Loss]:
    """The losses of these releases, each charged once: the same question may stand in a statement twice."""

    def identity_of(index: int) -> Hashable:
        if index in own_releases:
            return own_releases[index]
        request = requests[index]
        return (
            request.plan,
            request.version,
            request.loss,
            request.errors,
            tuple(identity_of(before) for before in request.after),
        )

    return list({identity_of(index): requests[index].loss for index in indexes}.values())


# --- what there is ---------------------------------------------------------------------------------------------------


def compile_noise_kinds(
    settings: Settings, compile_with: Callable[[Settings], PilotedStatement]
) -> list[PilotedStatement]:
    """The statement with the noise that it has, then with the other kind, if it may have that. Where the kind is left
    open, the first is Gaussian noise."""
    statement = compile_with(settings)
    kinds = {statement.compiled.settings.chosen_noise: statement}
    if statement.compiled.steps:
        is_open = statement.compiled.settings.has_open_noise
        for noise in set(NoiseKind) - kinds.keys():
            with suppress(Error):  # Gaussian noise needs a delta
                other = compile_with(replace(settings, auto_noise=noise) if is_open else replace(settings, noise=noise))
                kinds.setdefault(other.compiled.settings.chosen_noise, other)
    return list(kinds.values())


def put_chosen_first(
    quotes: list[StatementQuote], relative_error: float | None, context: PricingContext
) -> tuple[list[StatementQuote], NoiseChoice | None]:
    """The quotes, first that of the kind of noise that the statement would have, and why; None if there is no choice.

    `relative_error` is that of Laplace noise beside Gaussian noise.
    """
    if len(quotes) < 2 or not quotes[0].compiled.settings.has_open_noise:
        return quotes, None
    balance = context.ledger.get_balance(context.account)
    options = {
        quote.compiled.settings.chosen_noise: NoiseOption(
            quote.is_paid or quote.piloted.pilot is not None,
            bool(quote.compiled.norm_steps) and not quote.compiled.undecided,
            quote.is_paid or balance.admits(_statement_cost(quote.losses_due, quote.compiled)),
        )
        for quote in quotes
    }
    choice = choose_noise(options, relative_error, same_cost=all_add_epsilons(context.payers))
    return sorted(quotes, key=lambda quote: quote.compiled.settings.chosen_noise is not choice.kind), choice


def quote_statement(
    statement: PilotedStatement, reuse: ReusePlan, requests: Sequence[ReleaseRequest], context: PricingContext
) -> StatementQuote:
    """What each release would cost the caller; those that others of hers tell cost nothing."""
    bought = reuse.requests_to_charge(requests)
    quotes = dict(zip(bought, context.ledger.quote_releases(context.account, list(bought.values())), strict=True))
    for index, source in reuse.sources.items():
        quotes[index] = ReleaseQuote(requests[index].loss, source.receipt)
    own_releases = _find_own_releases({index: requests[index] for index in bought if quotes[index].is_paid}, context)
    return StatementQuote(
        statement, reuse, requests, tuple(quotes[index] for index in range(len(requests))), own_releases
    )


def _find_own_releases(paid: Mapping[int, ReleaseRequest], context: PricingContext) -> dict[int, Entitlement]:
    """The stored ones among what was paid for: all at once, or else each with those that fill its holes."""

    def find_stored_releases(indexes: Sequence[int]) -> dict[int, Entitlement]:
        requests = [replace(paid[p], after=tuple(indexes.index(before) for before in paid[p].after)) for p in indexes]
        entitlements = context.find_stored(requests)
        return {} if entitlements is None else dict(zip(indexes, entitlements, strict=True))

    def with_fillers(index: int) -> list[int]:
        return sorted({index, *(other for before in paid[index].after for other in with_fillers(before))})

    all_stored = find_stored_releases(list(paid)) if paid else {}
    return all_stored or {
        index: entitlement for first in paid for index, entitlement in find_stored_releases(with_fillers(first)).items()
    }


# --- what it costs ---------------------------------------------------------------------------------------------------


def add_prices(
    explained: Explanation, kinds: Sequence[StatementQuote], context: PricingContext, choice: NoiseChoice | None = None
) -> Explanation:
    """`kinds` are the statement with each noise that it may have, its own first, by `choice` if there was one."""
    first = kinds[0]
    if not first.compiled.steps:
        return explained
    balance, access_refusal = context.ledger.get_balance(context.account), context.refusal_reason()
    offers = tuple(
        _build_offer(statement_quote, context, balance, access_refusal, statement_quote is first)
        for statement_quote in kinds
    )
    return replace(
        explained,
        offers=offers,
        noise="" if choice is None else choice.describe({offer.noise: offer.part for offer in offers}),
        undecided=first.piloted.undecided,
        expected=explained.expected if first.piloted.undecided else offers[0].expected or explained.expected,
        paid=tuple(quote.is_paid for quote in first.quotes),
        sources=describe_origins(first.reuse, first.quotes),
        notices=explained.notices + _pilot_notices(first.piloted),
    )


def _pilot_notices(statement: PilotedStatement) -> tuple[str, ...]:
    if statement.pilot is None or statement.refused is not None:
        return ()
    return (PILOT_SUFFICIENT,) if statement.compiled is statement.pilot else (PILOT_DECIDED,)


def _build_offer(
    quote: StatementQuote, context: PricingContext, balance: Balance, access_refusal: str | None, chosen: bool
) -> Offer:
    due = _statement_cost(quote.losses_due, quote.compiled)
    refusal = access_refusal or quote.piloted.refused or _policy_violation(quote.compiled, context.payers)
    shortage = None if quote.is_paid or balance.admits(due) else NOT_COVERED
    cost_of_repeat = _statement_cost(quote.all_losses, quote.compiled)
    if quote.piloted.pilot is not None and quote.compiled is not quote.piloted.pilot:
        cost_of_repeat += _statement_cost([step.loss for step in quote.piloted.pilot.steps], quote.piloted.pilot)
    cost_now = NO_COST if quote.is_paid else due
    return Offer(
        noise=quote.compiled.settings.chosen_noise.value,
        chosen=chosen,
        epsilon=quote.compiled.epsilon,
        rho=sum_losses(quote.all_losses).rho,
        price=sum_losses(quote.losses_due),
        expected=quote.stderrs,
        within=quote.half_widths,
        more=0
        if refusal or shortage
        else count_admitted(lambda number: balance.admits(cost_now + cost_of_repeat.scaled_by(number))),
        paid=quote.is_paid,
        undecided=quote.piloted.undecided,
        refused=bool(access_refusal or quote.piloted.refused or (not quote.is_paid and (refusal or shortage))),
        reason=refusal or shortage,
        part=balance.share_of(cost_of_repeat),
    )


def _statement_cost(losses: Sequence[Loss], compiled: Compiled) -> Cost:
    return cost_of_losses(losses, compiled.settings.epsilon, compiled.conversion)


def _policy_violation(compiled: Compiled, payers: Sequence[Account]) -> str | None:
    """What the owner allows in one query, along all who pay; settings, not figures of anybody."""
    settings = compiled.settings
    try:
        require_epsilon_allowed(compiled, payers)
        for payer in payers:
            require_policy(payer, ChargedStatement(compiled.statement, settings.epsilon, settings.delta))
    except BudgetExceeded as error:
        return error.message
    return None
