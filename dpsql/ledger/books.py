"""The ledger over a database: charges and releases, for any number of threads and processes.

Law: what is charged is durable before `purchase` returns, and what is delivered was read back after its commit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property

from dpsql.errors import BudgetExceeded, IntegrityError, InternalError
from dpsql.ledger import answers, chain, failures, leases, listing, matching, versions
from dpsql.ledger.base import (
    Account,
    AdmitCallback,
    ReleaseRequest,
    Balance,
    Binding,
    Charge,
    Entitlement,
    LedgerEntry,
    FailureCount,
    LedgerFinding,
    OwnRelease,
    ReleaseQuote,
    RunLease,
    ChargedStatement,
    ListedRelease,
    AccountTerms,
    DataVersion,
    admit_all,
)
from dpsql.ledger.budget import (
    balance_of,
    budget_exceeded_error,
    changed_schema_error,
    shared_budget_error,
    require_policy,
    require_unexpired,
)
from dpsql.ledger.database import LedgerDatabase, Transaction, fetch_one
from dpsql.ledger.objects import SqlObjectStore
from dpsql.ledger.terms import EntryWriter
from dpsql.ledger.transactions import ThreadTransactions
from dpsql.ledger.transcripts import InteractiveAnswers
from dpsql.ledger.verify import verify_chains
from dpsql.privacy.filters import admit_charge, cost_of
from dpsql.privacy.loss import sum_losses

MAX_FAILURES = 3
"""Failed runs that suspend an account (SOUNDNESS 10)."""
DATASET_FAILURE_FACTOR = 10
"""The dataset is suspended by the failures of so many accounts. With 1, one analyst alone could lock out all others;
without a limit, each new account would buy three more bits of "which query failed"."""


@dataclass(frozen=True)
class SqlLedger(InteractiveAnswers):
    """See `base.Ledger`; `dataset` is above every other account, `others` are those of the schema, by name."""

    database: LedgerDatabase
    binding: Binding
    dataset: Account
    others: Mapping[str, Account] = field(default_factory=dict)
    failures: int = MAX_FAILURES
    dataset_failures: int = MAX_FAILURES * DATASET_FAILURE_FACTOR
    entropy: Callable[[int], bytes] = os.urandom
    grid: int = 0  # microseconds: the owner's min_latency
    _balances: dict[str, tuple[Hashable, Balance]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def id(self) -> str:
        return self.database.id

    @property
    def identity(self) -> Hashable:
        return self.database.identity

    @cached_property
    def _transactions(self) -> ThreadTransactions:
        return ThreadTransactions(self.database)

    def read_snapshot(self) -> AbstractContextManager[None]:
        return self._transactions.read_snapshot()

    def _read_transaction(self) -> AbstractContextManager[Transaction]:
        return self._transactions.read()

    def _write_transaction(self) -> AbstractContextManager[Transaction]:
        return self._transactions.write()

    # --- charges -----------------------------------------------------------------------------------------------------

    def purchase(
        self, account: Account, requests: Sequence[ReleaseRequest], statement: ChargedStatement, now: datetime, admit: AdmitCallback = admit_all
    ) -> tuple[Entitlement, ...]:
        """Charge all releases of a statement, or none, and say which release each became.

        What the account has paid for is free. Raises BudgetExceeded, AccountSuspended, AccessDenied, StaleData, or what
        `admit_charge` raises, and then nothing was charged.

        Privacy: the filters of the account and of all above it are checked and charged in one serialisable,
        durable transaction, before any run; so each is a filter of everything that follows, in the order
        of the charges (SOUNDNESS 7, 9). Each account pays for a release once.
        """
        with self._write_transaction() as db:
            self._require_account_active(db, account, now)
            bought = self._charge_releases(db, self._paying_accounts(account), requests, statement, now)
            admit(bought)
            return bought

    def find_entitlements(self, account: Account, requests: Sequence[ReleaseRequest], now: datetime) -> tuple[Entitlement, ...] | None:
        """The claims of a statement of which all is stored and paid for by the account; None where something is not.

        Nothing is charged, and no lock is taken: most questions of a dashboard end here.
        """
        with self._read_transaction() as db:
            self._require_account_active(db, account, now)
            matched = matching.match_releases(db, account.name, requests, leases.find_hidden_releases(db, self.grid))
            if matched is None or not all(release.stored for release in matched.values()):
                return None
            return tuple(self._build_entitlement(db, account, matched[index], False) for index in range(len(requests)))

    def _require_account_active(self, db: Transaction, account: Account, now: datetime) -> None:
        for payer in self._paying_accounts(account):
            require_unexpired(payer, now.astimezone(UTC).date())
        failures.require_not_suspended(db, account.name, self.failures, self.dataset.name, self.dataset_failures)

    def _charge_releases(
        self,
        db: Transaction,
        payers: tuple[Account, ...],
        requests: Sequence[ReleaseRequest],
        statement: ChargedStatement,
        now: datetime,
    ) -> tuple[Entitlement, ...]:
        account, now = payers[0], now.astimezone(UTC)
        writer = self._entry_writer(db, now, statement.schema)
        self._settle_terms(writer, payers)
        heads = {payer.name: writer.settle_terms(payer) for payer in payers}
        bills: dict[str, list[Charge]] = {payer.name: [] for payer in payers}
        releases: dict[int, answers.CandidateRelease] = {}
        charged: dict[int, bool] = {}
        hidden = leases.find_hidden_releases(db, self.grid)
        matched = matching.match_releases(db, account.name, requests, hidden) or {}
        for index in matching.matching_order(requests):
            request = matching.with_filled_plan(requests[index], releases)  # the release's own plan: what fills its holes is in it
            release = matched.get(index) or answers.find_or_insert_release(db, account.name, request, now, hidden)
            releases[index] = release
            owing = answers.accounts_unpaid(db, release.release, bills)
            charged[index] = account.name in owing
            for name in owing:
                answers.record_payment(db, release.release, name, heads[name].number + 1)
                charge = Charge(request.plan, request.version, release.loss, release.mechanisms)
                bills[name].append(charge)
        charging = [payer for payer in payers if bills[payer.name]]
        for payer in charging:
            require_policy(payer, statement)
        for payer in charging:
            self._charge_payer(writer, payer, heads[payer.name], bills[payer.name], account, statement)
        return tuple(self._build_entitlement(db, account, releases[index], charged[index]) for index in range(len(requests)))

    def _settle_terms(self, writer: EntryWriter, payers: tuple[Account, ...]) -> None:
        """Record terms that are new; those of parents first, and who joins them charges them."""
        for payer in reversed(payers):
            try:
                writer.settle_terms(payer)
            except (IntegrityError, BudgetExceeded) as error:
                if payer == payers[0] and isinstance(error, IntegrityError):
                    raise  # her own figures
                raise changed_schema_error() from None

    def _build_entitlement(self, db: Transaction, account: Account, release: answers.CandidateRelease, charged: bool) -> Entitlement:
        body = answers.read_body(db, release.release) if release.stored else None
        receipt = answers.receipt_of(db, release.release, account.name)
        return Entitlement(release.release, body, charged, release.loss, release.errors, receipt)

    def _charge_payer(
        self,
        writer: EntryWriter,
        payer: Account,
        head: chain.ChainHead,
        charges: Sequence[Charge],
        by: Account,
        statement: ChargedStatement,
    ) -> None:
        cost = cost_of(sum_losses([charge.loss for charge in charges]), statement.epsilon, statement.conversion)
        spent = admit_charge(payer.terms.limits, head.spent, cost)
        if spent is None:
            own = payer == by
            raise budget_exceeded_error(payer, head.spent, cost, statement, len(charges)) if own else shared_budget_error()
        writer.append_charge(payer, head, by.name, statement, tuple(charges), cost, spent)

    def _paying_accounts(self, account: Account) -> tuple[Account, ...]:
        """The account and all above it, the dataset last: so her own refusal does not depend on others."""
        if account.name == self.dataset.name:
            if account != self.dataset:
                raise InternalError("the account of the dataset has two budgets")
            return (account,)
        payers = [account]
        while (parent := payers[-1].parent) is not None:
            if parent not in self.others or len(payers) > len(self.others):
                raise InternalError("the parents of an account do not lead to the dataset")
            payers.append(self.others[parent])
        return (*payers, self.dataset)

    def _entry_writer(self, db: Transaction, now: datetime, schema: str) -> EntryWriter:
        return EntryWriter(db, self.database.id, self.binding, now.astimezone(UTC), schema, self.entropy, self._paying_accounts)

    # --- what is stored ----------------------------------------------------------------------------------------------

    def quote_releases(self, account: Account, requests: Sequence[ReleaseRequest]) -> tuple[ReleaseQuote, ...]:
        """What a statement would cost the account. Free, and asks nothing of others (`base.Quote`)."""
        quotes: dict[int, ReleaseQuote] = {}
        releases: dict[int, answers.CandidateRelease] = {}
        with self._read_transaction() as db:
            hidden = leases.find_hidden_releases(db, self.grid)
            matched = matching.match_releases(db, account.name, requests, hidden) or {}
            for index in matching.matching_order(requests):
                own = matched.get(index)
                if own is None and all(before in releases for before in requests[index].after):
                    own = answers.find_own_release(db, account.name, matching.with_filled_plan(requests[index], releases), hidden)
                if own is not None:
                    releases[index] = own
                receipt = None if own is None else answers.receipt_of(db, own.release, account.name)
                quotes[index] = ReleaseQuote(requests[index].loss if own is None else own.loss, receipt)
        return tuple(quotes[index] for index in range(len(requests)))

    def list_own_stored(self, account: Account, rows: Sequence[str], version: int) -> tuple[OwnRelease, ...]:
        """The stored releases about these rows that the account has paid for, the latest first."""
        with self._read_transaction() as db:
            return answers.list_own_stored(db, account.name, rows, version, leases.find_hidden_releases(db, self.grid)) if rows else ()

    def bind_runtime_parameters(self, release: int, holes: bytes) -> bytes:
        """Bind a release's holes unless they are bound; the values that now hold, for the run to use."""
        with self._write_transaction() as db:
            answers.bind_runtime_parameters(db, release, holes)
        with self._read_transaction() as db:
            return answers.read_runtime_parameters(db, release)

    def read_body(self, release: int) -> bytes | None:
        """The body of a release that has one."""
        with self._read_transaction() as db:
            return answers.read_body(db, release)

    def begin_run(self, release: int, holder: str, seconds: float) -> RunLease:
        """Let `holder` run the release for so long, unless it is run or stored: the run that now holds (`leases`)."""
        with self._write_transaction() as db:
            return leases.begin_lease(db, release, holder, seconds)

    def find_run(self, release: int) -> RunLease | None:
        with self._read_transaction() as db:
            return leases.read_lease(db, release)

    def renew_run(self, release: int, holder: str, seconds: float) -> None:
        """The run goes on: let it have so much more time from now."""
        with self._write_transaction() as db:
            leases.renew_lease(db, release, holder, seconds)

    def end_run(self, release: int, holder: str) -> None:
        """The run has ended, and nothing was stored."""
        with self._write_transaction() as db:
            leases.end_lease(db, release, holder)

    def store_body(self, release: int, body: bytes, errors: tuple[Fraction, ...] | None = None) -> bytes:
        """Store a release's body unless it has one; the body to deliver, read back after the commit.

        `errors` are those of this body, where the run used other noise than the claim's.

        Privacy: of two runs of one charge, only the first body is ever delivered (SOUNDNESS 9, T3).
        """
        with self._write_transaction() as db:
            answers.store_body(db, release, body, errors)
            leases.end_lease(db, release)
        with self._read_transaction() as db:
            return answers.read_stored_body(db, release)

    def list_releases(self) -> tuple[ListedRelease, ...]:
        """For the owner: all releases, oldest first."""
        with self._read_transaction() as db:
            return listing.read_all_releases(db, self.dataset.name)

    def drop_old_bodies(self, before: datetime) -> int:
        """The owner's retention: bodies charged before a time are dropped; how many."""
        with self._write_transaction() as db:
            return answers.drop_old_bodies(db, before.astimezone(UTC))

    @property
    def objects(self) -> SqlObjectStore:
        """What accounts made of their releases, by name."""
        return SqlObjectStore(self._read_transaction, self._write_transaction)

    # --- failures ----------------------------------------------------------------------------------------------------

    def count_failure(self, account: Account, release: int) -> None:
        """Count a failure of the engine after a charge, against the account and the dataset (`failures`)."""
        with self._write_transaction() as db:
            if answers.accounts_unpaid(db, release, [account.name]):
                raise InternalError(f'"{account.name}" has not paid for release {release}')
            failures.add_failure(db, {account.name, self.dataset.name})

    def failures_of(self, account: Account, *, parent: bool = False) -> FailureCount:
        """For the owner. As a `parent`, the dataset is suspended by its analysts' failures, of which it bears more."""
        with self._read_transaction() as db:
            counted = failures.count_failures(db, account.name)
        return FailureCount(counted, self.dataset_failures if parent else self.failures)

    def resume_account(self, account: Account) -> None:
        """The owner lets the account go on, with its failures forgotten."""
        with self._write_transaction() as db:
            failures.reset_failures(db, account.name)

    # --- accounts ----------------------------------------------------------------------------------------------------

    def get_balance(self, account: Account) -> Balance:
        """The account's own figures. They are worked out again when the end of its chain has changed."""
        with self._read_transaction() as db:
            end = chain.read_end(db, account.name)
            key, cached = self._balances.get(account.name, (None, None))
            if cached is not None and key == (account, end):
                return cached
            head = chain.head_of(end, self.database.id, account.name)
            in_force = self._entry_writer(db, datetime.now(UTC), "").account_in_force(account, head)
            charges = fetch_one(db, "SELECT count(*) FROM entry WHERE account = ? AND kind = 'charge'", account.name)
        assert charges is not None
        balance = balance_of(in_force, head.spent, charges[0])
        self._balances[account.name] = (account, end), balance
        return balance

    def recorded_terms(self, account: Account) -> AccountTerms | None:
        """The terms that were recorded last; None where the account has no entry."""
        with self._read_transaction() as db:
            return chain.read_head(db, self.database.id, account.name).terms

    def list_accounts(self) -> tuple[str, ...]:
        """For the owner: the names of all accounts that have an entry, also of those that the schema has no more."""
        with self._read_transaction() as db:
            return chain.list_chain_accounts(db)

    def list_entries(self, account: str) -> tuple[LedgerEntry, ...]:
        """An account's own chain, oldest first."""
        with self._read_transaction() as db:
            return tuple(chain.read_entries(db, account))

    def verify_chains(self) -> tuple[LedgerFinding, ...]:
        """What in the entries, payments, sums or chains was altered: nothing, if nothing is returned."""
        with self._read_transaction() as db:
            return tuple(verify_chains(db, self.database.id, self.dataset.name))

    def adopt_terms(self, now: datetime, schema: str) -> None:
        """Record the terms of the schema's accounts where they are new or smaller, and who joined a parent.

        Where the schema grants more than the ledger has recorded, or a parent cannot pay for who joins it, what was
        recorded stands, and the account itself is refused when it is to be charged: that is the owner's act, `grant`.
        """
        everyone = self._all_accounts()
        with self._read_transaction() as db:
            heads = [chain.read_head(db, self.database.id, account.name) for account in everyone]
        if all(head.terms == account.terms for head, account in zip(heads, everyone, strict=True)):
            return
        for account in everyone:
            with suppress(IntegrityError, BudgetExceeded), self.database.write() as db:
                self._entry_writer(db, now, schema).settle_terms(account)

    def grant_terms(self, account: Account, now: datetime, schema: str) -> LedgerEntry | None:
        """The owner's act: the account's terms as the schema has them, whatever they were. None: they were the same."""
        with self._write_transaction() as db:
            return self._entry_writer(db, now, schema).grant_terms(account)

    def _all_accounts(self) -> tuple[Account, ...]:
        """Parents before their members, so that they are there to be charged."""
        return (self.dataset, *sorted(self.others.values(), key=lambda account: len(self._paying_accounts(account))))

    # --- data versions -----------------------------------------------------------------------------------------------

    def register_version(
        self, identity: str, facts: str, *, after: int | None = None, at: datetime | None = None
    ) -> int:
        """Append a data version; its number. With `after`, only where that one is the last, 0 none: else the last's.

        Two processes that open a new dataset at once so agree on version 1; compare `current_version` after.
        """
        with self._write_transaction() as db:
            return versions.append_version(db, identity, facts, after, at)

    def current_version(self) -> DataVersion | None:
        with self._read_transaction() as db:
            return versions.read_current_version(db)

    def close(self) -> None:
        self.database.close()
