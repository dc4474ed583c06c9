"""The purchase of a statement's releases: charge, run, perturb, store.

The order is the law: charge durably, run, perturb, store durably (these three in `runs`), read back. This is the only
caller of `purchase`; what is given out is what was read back from the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import islice

from dpsql.amounts import Charge
from dpsql.compiler.compile import Compiled, ReleaseStep, Settings
from dpsql.errors import BudgetExceeded, Error, InternalError
from dpsql.ledger.base import Account, AdmitCallback, Balance, ChargedStatement, Entitlement, Receipt, ReleaseRequest
from dpsql.ledger.budget import budget_exceeded_error
from dpsql.privacy.filters import NO_COST, Cost, cost_of_losses
from dpsql.privacy.loss import NO_LOSS, Loss
from dpsql.privacy.release import Release, release_from_bytes
from dpsql.privacy.sampling import Sampler
from dpsql.session.dataset.dataset import Dataset
from dpsql.session.dataset.runs import InteractiveJob, ReleaseJob
from dpsql.session.postprocess.release_tables import build_released_tables
from dpsql.session.postprocess.runtime_parameters import (
    ParameterValues,
    bind_runtime_parameters,
    values_from_bytes,
    values_to_bytes,
)
from dpsql.session.postprocess.sandbox import SandboxTable
from dpsql.session.result import PendingCharge, charged_loss, total_charge
from dpsql.session.reuse import ReuseCandidates, ReusePlan, find_candidates, release_requests
from dpsql.session.statement_context import StatementContext

NOT_FREE_MESSAGE = "it would be charged, and only what is free was asked for"


@dataclass(frozen=True)
class PurchasedReleases:
    """The releases by the places of their steps, what they were charged now, and the entries that paid for them.

    `numbers` are those of the releases that were bought, in the order of their steps; others were derived.
    """

    releases: dict[int, Release]
    loss: Loss
    receipts: tuple[Receipt, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class StoredReleases:
    """What serves a whole statement, if all of it is stored and paid for; else what may tell a part of it."""

    served: tuple[Entitlement, ...] | None
    candidates: ReuseCandidates = field(default_factory=ReuseCandidates)
    balance: Balance | None = None  # the account's own, if it was asked for
    may_own_laplace: bool = False


class _DryRunDone(Exception):
    """Ends a charge that was only tried, so that nothing of it is kept."""


@dataclass
class Purchase:
    """What one statement buys, and what it was charged so far."""

    context: StatementContext
    sampler: Sampler
    balance: Balance | None = None  # as the statement left it, where it was served and so nothing was charged
    _charges: list[PendingCharge] = field(default_factory=list)

    @property
    def _dataset(self) -> Dataset:
        return self.context.dataset

    @property
    def _account(self) -> Account:
        return self.context.account

    @property
    def charge_so_far(self) -> Charge:
        """What the last statement was charged: also where it failed, ran out of time or was canceled after that."""
        return total_charge([charge for charge in self._charges if charge.recorded or self._is_recorded(charge)])

    def _is_recorded(self, charge: PendingCharge) -> bool:
        """Whether the ledger has the charge. Where that cannot be looked up, the charge counts as made."""
        if any(request.once for request in charge.requests):
            return True
        try:
            return all(quote.is_paid for quote in self._dataset.ledger.quote_releases(self._account, charge.requests))
        except Error:
            return True

    def release_requests(self, compiled: Compiled) -> list[ReleaseRequest]:
        return release_requests(compiled, self._dataset.resolved.version)

    def find_entitlements(self, compiled: Compiled) -> tuple[Entitlement, ...] | None:
        """What the account has paid for and is stored, if that is all that the statement needs."""
        return self.find_stored(compiled).served

    def find_stored(self, compiled: Compiled, derive: bool = False, *, choosing: bool = False) -> StoredReleases:
        """What the account has for the statement, in one snapshot; with `derive`, also what may tell a part of it; with
        `choosing`, also what the choice of a kind of noise looks at."""
        self.balance = None
        if not compiled.steps:
            return StoredReleases(())
        ledger, requests = self._dataset.ledger, self.release_requests(compiled)
        with ledger.read_snapshot():
            self._dataset.check_current()
            self.context.check_cancellation()
            served = ledger.find_entitlements(self._account, requests, self.context.clock())
            if served is not None:
                with suppress(Error):  # the answer is there, whatever is wrong with the figures
                    self.balance = ledger.get_balance(self._account)
                return StoredReleases(served)
            stored = StoredReleases(None)
            if derive:
                stored = replace(stored, candidates=find_candidates(compiled, requests, ledger, self._account))
            if choosing:
                owned = ledger.may_own_laplace(self._account)
                stored = replace(stored, balance=ledger.get_balance(self._account), may_own_laplace=owned)
            return stored

    def find_all_stored(self, statements: Sequence[Compiled]) -> tuple[tuple[Entitlement, ...], ...] | None:
        """What the account has of several statements, in one snapshot, if it has all of all of them."""
        requests: list[ReleaseRequest] = []
        for compiled in statements:
            first = len(requests)
            requests += [
                replace(request, after=tuple(first + index for index in request.after))
                for request in self.release_requests(compiled)
            ]
        ledger, self.balance = self._dataset.ledger, None
        with ledger.read_snapshot():
            self._dataset.check_current()
            self.context.check_cancellation()
            served = ledger.find_entitlements(self._account, requests, self.context.clock())
            if served is None:
                return None
            with suppress(Error):  # the answer is there, whatever is wrong with the figures
                self.balance = ledger.get_balance(self._account)
        rest = iter(served)
        return tuple(tuple(islice(rest, len(compiled.steps))) for compiled in statements)

    def find_unpaid(self, compiled: Compiled, reuse: ReusePlan) -> frozenset[int]:
        """The places of steps that would be charged now."""
        requests = reuse.requests_to_charge(self.release_requests(compiled))
        quotes = self._dataset.ledger.quote_releases(self._account, list(requests.values()))
        return frozenset(index for index, quote in zip(requests, quotes, strict=True) if not quote.is_paid)

    def cost_due(self, compiled: Compiled, reuse: ReusePlan) -> Cost:
        """What would be charged for a statement now, each release counted for itself."""
        requests = list(reuse.requests_to_charge(self.release_requests(compiled)).values())
        quotes = self._dataset.ledger.quote_releases(self._account, requests)
        unpaid = [quote.loss for quote in quotes if not quote.is_paid]
        return cost_of_losses(unpaid, compiled.settings.epsilon, compiled.conversion) if unpaid else NO_COST

    def charge_and_run(
        self,
        compiled: Compiled,
        reuse: ReusePlan,
        public: Sequence[SandboxTable],
        served: tuple[Entitlement, ...] | None,
        *,
        prepares: bool = False,
    ) -> PurchasedReleases:
        """Pay for all steps at once, then run those that are not stored yet; later ones may read earlier ones.

        Where all is `served`, nothing is charged. What `prepares` a statement is within the epsilon of that one.
        """
        if compiled.undecided:
            raise InternalError("a statement is run whose norms are not chosen")
        early = [(index, step) for index, step in enumerate(compiled.steps) if step.holes and not step.after]
        # Holes that read no release: what is wrong with them is told before anything is charged.
        timeout, time_zone = self.context.timeout, self.context.identity.time_zone.engine_name
        ready = {index: bind_runtime_parameters(step.holes, public, timeout, time_zone) for index, step in early}
        releases, requests = reuse.releases, reuse.requests_to_charge(self.release_requests(compiled))
        entitlements = served
        if entitlements is None:
            self.balance = None  # what was looked up before is no more
            self._dataset.check_files()
            entitlements = self._charge_account(
                list(requests.values()), self._describe_statement(compiled), compiled.settings, prepares=prepares
            )

        def parameter_values(index: int) -> ParameterValues:
            if index in ready:
                return ready[index]
            tables = [*public, *build_released_tables(reuse.compiled, releases, nonnegative=False)]
            return bind_runtime_parameters(compiled.steps[index].holes, tables, timeout, time_zone)

        bodies: dict[int, bytes] = {}
        self.context.cancel.releases = len({entitlement.release for entitlement in entitlements})
        for index, entitlement in zip(requests, entitlements, strict=True):
            if entitlement.release not in bodies:
                bodies[entitlement.release] = self._load_or_run(
                    compiled.steps[index], entitlement, partial(parameter_values, index)
                )
                self.context.cancel.delivered = len(bodies)
            releases[index] = release_from_bytes(bodies[entitlement.release])
        receipts = tuple(dict.fromkeys((*reuse.receipts, *(entitlement.receipt for entitlement in entitlements))))
        return PurchasedReleases(
            releases, charged_loss(entitlements), receipts, tuple(entitlement.release for entitlement in entitlements)
        )

    def require_covered(self, parts: Sequence[tuple[Compiled, ReusePlan]], text: str, settings: Settings) -> None:
        """That one statement may be charged all of its parts, which are bought one after another; the last has its
        text. Nothing is charged.

        Privacy: her own account is looked at as for EXPLAIN, those above it by a charge that is tried and undone; a
        refusal of theirs is the one fixed text that the charge itself would have had (SOUNDNESS 9).
        """
        ledger, cost, all_requests, due = self._dataset.ledger, NO_COST, list[ReleaseRequest](), list[Loss]()
        for compiled, reuse in parts:
            requests = list(reuse.requests_to_charge(self.release_requests(compiled)).values())
            all_requests += [
                replace(request, after=tuple(index + len(all_requests) for index in request.after))
                for request in requests
            ]
            unpaid = [quote.loss for quote in ledger.quote_releases(self._account, requests) if not quote.is_paid]
            if unpaid:
                cost += cost_of_losses(unpaid, compiled.settings.epsilon, compiled.conversion)
            due += unpaid
        if not due:
            return
        conversion = sum((compiled.conversion for compiled, _ in parts), Fraction(0))
        schema = self._dataset.resolved.hash
        statement = ChargedStatement(text, settings.epsilon, settings.delta, conversion, schema, parts[-1][0].knobs)
        balance = ledger.get_balance(self._account)
        if not balance.admits(cost):
            raise budget_exceeded_error(self._account, balance.spent, cost, statement, len(due))
        with suppress(_DryRunDone):
            self._charge_account(all_requests, statement, settings, self._end_dry_run)

    def _end_dry_run(self, entitlements: Sequence[Entitlement]) -> None:
        self.context.check_cancellation()
        raise _DryRunDone

    def charge_mechanism(self, request: ReleaseRequest, text: str, settings: Settings) -> Entitlement:
        """Pay for an interactive mechanism, before the first question is put to it; no other charge is for it."""
        self._dataset.check_files()
        schema, knobs = self._dataset.resolved.hash, ("epsilon = {}", "delta = {}")  # arguments of a call
        statement = ChargedStatement(text, settings.epsilon, settings.delta, Fraction(0), schema, knobs)
        (entitlement,) = self._charge_account([request], statement, settings)
        return entitlement

    def submit(self, job: InteractiveJob) -> bytes:
        """Ask a question of a mechanism that was paid for; its answer as it is stored."""
        return self._dataset.runs.run_release(self._dataset, job, self._account, self.context.cancel)

    def pending_answer(self, release: int, number: int) -> bytes | None:
        """The answer to a question that was canceled while it ran, once it is stored; None if it has none."""
        body = self._dataset.runs.join_run(self._dataset, release, self._account, self.context.cancel)
        return self._dataset.ledger.read_answer(release, number) if body is None else body

    def require_account_active(self) -> None:
        """Refuse a question to a mechanism if the account may ask no more, or the data is not the registered one."""
        with self._dataset.ledger.read_snapshot():
            self._dataset.check_unchanged()
            self._dataset.ledger.find_entitlements(self._account, (), self.context.clock())

    def _charge_account(
        self,
        requests: Sequence[ReleaseRequest],
        statement: ChargedStatement,
        settings: Settings,
        admit: AdmitCallback | None = None,
        *,
        prepares: bool = False,
    ) -> tuple[Entitlement, ...]:
        admit = admit or partial(self._admit_charge, settings, requests, prepares)
        entitlements = self._dataset.ledger.purchase(self._account, requests, statement, self.context.clock(), admit)
        for charge in self._charges:  # told also if what follows fails
            charge.recorded = True
        return entitlements

    def _admit_charge(
        self,
        settings: Settings,
        requests: Sequence[ReleaseRequest],
        prepares: bool,
        entitlements: Sequence[Entitlement],
    ) -> None:
        """The last checks, in the transaction of the charge: so no data version is registered in between."""
        self.context.check_cancellation()
        self._dataset.check_current()
        loss = charged_loss(entitlements)
        if self.context.cancel.free and loss != NO_LOSS:
            raise BudgetExceeded(NOT_FREE_MESSAGE, detail="Nothing was charged.")
        self._dataset.runs.admit_runs(entitlements)
        if loss != NO_LOSS:
            self._charges.append(PendingCharge(settings, requests, loss, prepares=prepares))

    def _describe_statement(self, compiled: Compiled) -> ChargedStatement:
        settings, schema = compiled.settings, self._dataset.resolved.hash
        return ChargedStatement(
            compiled.statement, settings.epsilon, settings.delta, compiled.conversion, schema, compiled.knobs
        )

    def _load_or_run(self, step: ReleaseStep, entitlement: Entitlement, filled: Callable[[], ParameterValues]) -> bytes:
        """The stored release; where there is none, or its run is not yet seen to have ended, that of the run."""
        runs = self._dataset.runs
        body = runs.join_run(self._dataset, entitlement.release, self._account, self.context.cancel)
        if body is None:
            body = entitlement.body
        if body is None:
            holes = self._bind_runtime_parameters(entitlement, filled()) if step.holes else {}
            spec, errors = step.calibrated.spec, step.calibrated.errors
            job = ReleaseJob(entitlement.release, step.sql, len(step.keys), holes, spec, errors, self.sampler)
            body = runs.run_release(self._dataset, job, self._account, self.context.cancel)
        return body

    def _bind_runtime_parameters(self, entitlement: Entitlement, values: ParameterValues) -> ParameterValues:
        """What stands in the step's holes: bound once, durably, so that a run after a crash asks the same question."""
        return values_from_bytes(
            self._dataset.ledger.bind_runtime_parameters(entitlement.release, values_to_bytes(values))
        )
