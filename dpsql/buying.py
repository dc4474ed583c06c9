"""Where an account pays, and what it gets for that: the releases of one statement.

The order is the law: charge durably, run, perturb, store durably (these three in `runs`), read back. This is the only
caller of `purchase`; what is given out is what was read back from the store.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

from dpsql.answer import Charging, charge_of, loss_of
from dpsql.compile import Compiled, ReleaseStep, Settings
from dpsql.dataset import Dataset
from dpsql.derivation import Told, asked_for
from dpsql.errors import BudgetExceeded, Error
from dpsql.figures import Charge
from dpsql.ledger.base import Account, Admit, Asked, Balance, Claim, Receipt, Statement
from dpsql.ledger.budget import refuse_account
from dpsql.post.holes import Values, fill, values_from_bytes, values_to_bytes
from dpsql.post.sandbox import Table
from dpsql.post.tables import released_tables
from dpsql.privacy.filters import NO_COST, cost_of
from dpsql.privacy.loss import NO_LOSS, Loss, total
from dpsql.privacy.release import Release, from_bytes
from dpsql.privacy.sampling import Sampler
from dpsql.runs import Asking, Job
from dpsql.ticket import NOT_FREE, Ticket


@dataclass(frozen=True)
class Bought:
    """The releases by the places of their steps, what they were charged now, and the entries that paid for them.

    `numbers` are those of the releases that were bought, in the order of their steps; others were derived.
    """

    releases: dict[int, Release]
    loss: Loss
    receipts: tuple[Receipt, ...]
    numbers: tuple[int, ...]


class Covered(Exception):
    """Ends a charge that was only tried, so that nothing of it is kept."""


@dataclass
class Buyer:
    """One account, for one statement, which `ticket` is for."""

    dataset: Dataset
    account: Account
    sampler: Sampler
    clock: Callable[[], dt.datetime]
    timeout: float
    ticket: Ticket
    balance: Balance | None = None  # as the statement left it, where it was served and so nothing was charged
    _charges: list[Charging] = field(default_factory=list)

    @property
    def charged(self) -> Charge:
        """What the last statement was charged: also where it failed, ran out of time or was canceled after that."""
        return charge_of([one for one in self._charges if one.made or self._was_made(one)])

    def _was_made(self, charge: Charging) -> bool:
        """As the ledger has it. A charge of which it cannot tell now, or that is found no more, is told as made."""
        if any(asked.once for asked in charge.asked):
            return True
        try:
            return all(quote.paid for quote in self.dataset.ledger.quote(self.account, charge.asked))
        except Error:
            return True

    def asked(self, compiled: Compiled) -> list[Asked]:
        return asked_for(compiled, self.dataset.resolved.version)

    def served(self, compiled: Compiled) -> tuple[Claim, ...] | None:
        """What the account has paid for and is stored, if that is all that the statement needs."""
        self.balance = None
        if not compiled.steps:
            return ()
        ledger = self.dataset.ledger
        with ledger.reading():
            self.dataset.check_current()
            self.dataset.runs.check(self.ticket)
            served = ledger.served(self.account, self.asked(compiled), self.clock())
            if served is not None:
                with suppress(Error):  # the answer is there, whatever is wrong with the figures
                    self.balance = ledger.balance(self.account)
            return served

    def buy(
        self, compiled: Compiled, told: Told, public: Sequence[Table], served: tuple[Claim, ...] | None
    ) -> Bought:
        """Pay for all steps at once, then run those that are not stored yet; later ones may read earlier ones.

        Where all is `served`, nothing is charged.
        """
        early = [(place, step) for place, step in enumerate(compiled.steps) if step.holes and not step.after]
        # Holes that read no release: what is wrong with them is told before anything is charged.
        ready = {place: fill(step.holes, public, self.timeout) for place, step in early}
        releases, asked = told.releases, told.bought(self.asked(compiled))
        claims = served
        if claims is None:
            self.dataset.check_unchanged()
            claims = self._paid(list(asked.values()), self._statement(compiled), compiled.settings)

        def filled(place: int) -> Values:
            if place in ready:
                return ready[place]
            tables = [*public, *released_tables(told.compiled, releases, nonnegative=False)]
            return fill(compiled.steps[place].holes, tables, self.timeout)

        bodies: dict[int, bytes] = {}
        self.ticket.releases = len({claim.release for claim in claims})
        for place, claim in zip(asked, claims, strict=True):
            if claim.release not in bodies:
                bodies[claim.release] = self._body(compiled.steps[place], claim, partial(filled, place))
                self.ticket.delivered = len(bodies)
            releases[place] = from_bytes(bodies[claim.release])
        receipts = tuple(dict.fromkeys((*told.receipts, *(claim.receipt for claim in claims))))
        return Bought(releases, loss_of(claims), receipts, tuple(claim.release for claim in claims))

    def require_covered(self, parts: Sequence[tuple[Compiled, Told]], text: str, settings: Settings) -> None:
        """That one statement may be charged all of its parts, which are bought one after another; the last has its
        text. Nothing is charged.

        Privacy: her own account is looked at as for EXPLAIN, those above it by a charge that is tried and undone; a
        refusal of theirs is the one fixed text that the charge itself would have had (SOUNDNESS 9).
        """
        ledger, cost, every, due = self.dataset.ledger, NO_COST, list[Asked](), list[Loss]()
        for compiled, told in parts:
            asked = list(told.bought(self.asked(compiled)).values())
            every += [replace(one, after=tuple(place + len(every) for place in one.after)) for one in asked]
            unpaid = [quote.loss for quote in ledger.quote(self.account, asked) if not quote.paid]
            if unpaid:
                cost += cost_of(total(unpaid), compiled.settings.epsilon, compiled.conversion)
            due += unpaid
        if not due:
            return
        conversion = sum((compiled.conversion for compiled, _ in parts), Fraction(0))
        schema = self.dataset.resolved.hash
        statement = Statement(text, settings.epsilon, settings.delta, conversion, schema, parts[-1][0].knobs)
        balance = ledger.balance(self.account)
        if not balance.admits(cost):
            raise refuse_account(self.account, balance.spent, cost, statement, len(due))
        with suppress(Covered):
            self._paid(every, statement, settings, self._covered)

    def _covered(self, claims: Sequence[Claim]) -> None:
        self.dataset.runs.check(self.ticket)
        raise Covered

    def begin(self, asked: Asked, text: str, settings: Settings) -> Claim:
        """Pay for an interactive mechanism, before the first question is put to it; no other charge is for it."""
        self.dataset.check_unchanged()
        schema, knobs = self.dataset.resolved.hash, ("epsilon = {}", "delta = {}")  # arguments of a call
        statement = Statement(text, settings.epsilon, settings.delta, Fraction(0), schema, knobs)
        (claim,) = self._paid([asked], statement, settings)
        return claim

    def put(self, asking: Asking) -> bytes:
        """The answer to a question that a mechanism which was paid for is asked, as it is stored."""
        return self.dataset.runs.run(self.dataset, asking, self.account, self.ticket)

    def left_behind(self, release: int, number: int) -> bytes | None:
        """The answer to a question that was left by a cancel, once it is there; None: it has none."""
        body = self.dataset.runs.join(self.dataset, release, self.account, self.ticket)
        return self.dataset.ledger.told(release, number) if body is None else body

    def require_allowed(self) -> None:
        """A mechanism that was paid for answers as long as the account may ask: of the registered data."""
        self.dataset.check_unchanged()
        self.dataset.ledger.served(self.account, (), self.clock())

    def _paid(
        self, asked: Sequence[Asked], statement: Statement, settings: Settings, admit: Admit | None = None
    ) -> tuple[Claim, ...]:
        admit = admit or partial(self._admit, settings, asked)
        claims = self.dataset.ledger.purchase(self.account, asked, statement, self.clock(), admit)
        for charge in self._charges:  # told also if what follows fails
            charge.made = True
        return claims

    def _admit(self, settings: Settings, asked: Sequence[Asked], claims: Sequence[Claim]) -> None:
        """The last word before the charge is made."""
        self.dataset.runs.check(self.ticket)
        loss = loss_of(claims)
        if self.ticket.free and loss != NO_LOSS:
            raise BudgetExceeded(NOT_FREE, detail="Nothing was charged.")
        self.dataset.runs.admit(claims)
        if loss != NO_LOSS:
            self._charges.append(Charging(settings, asked, loss))

    def _statement(self, compiled: Compiled) -> Statement:
        settings, schema = compiled.settings, self.dataset.resolved.hash
        return Statement(
            compiled.statement, settings.epsilon, settings.delta, compiled.conversion, schema, compiled.knobs
        )

    def _body(self, step: ReleaseStep, claim: Claim, filled: Callable[[], Values]) -> bytes:
        """The stored release; where there is none, or its run is not yet seen to have ended, that of the run."""
        runs = self.dataset.runs
        body = runs.join(self.dataset, claim.release, self.account, self.ticket)
        if body is None:
            body = claim.body
        if body is None:
            holes = self._bound(claim, filled()) if step.holes else {}
            spec, errors = step.calibrated.spec, step.calibrated.errors
            job = Job(claim.release, step.sql, len(step.keys), holes, spec, errors, self.sampler)
            body = runs.run(self.dataset, job, self.account, self.ticket)
        return body

    def _bound(self, claim: Claim, values: Values) -> Values:
        """What stands in the step's holes: bound once, durably, so that a run after a crash asks the same question."""
        return values_from_bytes(self.dataset.ledger.bind_holes(claim.release, values_to_bytes(values)))
