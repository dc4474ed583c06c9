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
    Admit,
    Asked,
    Balance,
    Binding,
    Charge,
    Claim,
    Entry,
    Failures,
    Finding,
    OwnRelease,
    Quote,
    Running,
    Statement,
    Stored,
    Terms,
    Version,
    admit_all,
)
from dpsql.ledger.budget import (
    balance_of,
    refuse_account,
    refuse_changed_schema,
    refuse_shared,
    require_policy,
    require_unexpired,
)
from dpsql.ledger.database import Database, Transaction, one
from dpsql.ledger.objects import ObjectBooks
from dpsql.ledger.terms import Bookkeeper
from dpsql.ledger.transactions import Transactions
from dpsql.ledger.transcripts import Transcripts
from dpsql.ledger.verify import verify
from dpsql.privacy.filters import admit, cost_of
from dpsql.privacy.loss import total

FAILURES = 3
"""Failed runs that suspend an account (SOUNDNESS 10)."""
ACCOUNTS_WORTH = 10
"""The dataset is suspended by the failures of so many accounts. With 1, one analyst alone could lock out all others;
without a limit, each new account would buy three more bits of "which query failed"."""


@dataclass(frozen=True)
class Books(Transcripts):
    """See `base.Ledger`; `dataset` is above every other account, `others` are those of the schema, by name."""

    database: Database
    binding: Binding
    dataset: Account
    others: Mapping[str, Account] = field(default_factory=dict)
    failures: int = FAILURES
    dataset_failures: int = FAILURES * ACCOUNTS_WORTH
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
    def _opened(self) -> Transactions:
        return Transactions(self.database)

    def reading(self) -> AbstractContextManager[None]:
        return self._opened.reading()

    def _read(self) -> AbstractContextManager[Transaction]:
        return self._opened.read()

    def _write(self) -> AbstractContextManager[Transaction]:
        return self._opened.write()

    # --- charges -----------------------------------------------------------------------------------------------------

    def purchase(
        self, account: Account, asked: Sequence[Asked], statement: Statement, now: datetime, admit: Admit = admit_all
    ) -> tuple[Claim, ...]:
        """Charge all releases of a statement, or none, and say which release each became.

        What the account has paid for is free. Raises BudgetExceeded, AccountSuspended, AccessDenied, StaleData, or what
        `admit` raises, and then nothing was charged.

        Privacy: the filters of the account and of all above it are checked and charged in one serialisable,
        durable transaction, before any run; so each is a filter of everything that follows, in the order
        of the charges (SOUNDNESS 7, 9). Each account pays for a release once.
        """
        with self._write() as db:
            self._require_allowed(db, account, now)
            bought = self._buy(db, self._payers(account), asked, statement, now)
            admit(bought)
            return bought

    def served(self, account: Account, asked: Sequence[Asked], now: datetime) -> tuple[Claim, ...] | None:
        """The claims of a statement of which all is stored and paid for by the account; None where something is not.

        Nothing is charged, and no lock is taken: most questions of a dashboard end here.
        """
        with self._read() as db:
            self._require_allowed(db, account, now)
            own = matching.own(db, account.name, asked, leases.hidden(db, self.grid))
            if own is None or not all(found.stored for found in own.values()):
                return None
            return tuple(self._claim(db, account, own[place], False) for place in range(len(asked)))

    def _require_allowed(self, db: Transaction, account: Account, now: datetime) -> None:
        for payer in self._payers(account):
            require_unexpired(payer, now.astimezone(UTC).date())
        failures.require_running(db, account.name, self.failures, self.dataset.name, self.dataset_failures)

    def _buy(
        self,
        db: Transaction,
        payers: tuple[Account, ...],
        asked: Sequence[Asked],
        statement: Statement,
        now: datetime,
    ) -> tuple[Claim, ...]:
        account, now = payers[0], now.astimezone(UTC)
        keeper = self._keeper(db, now, statement.schema)
        self._settle(keeper, payers)
        heads = {payer.name: keeper.settled(payer) for payer in payers}
        bills: dict[str, list[Charge]] = {payer.name: [] for payer in payers}
        found: dict[int, answers.Found] = {}
        charged: dict[int, bool] = {}
        hidden = leases.hidden(db, self.grid)
        whole = matching.own(db, account.name, asked, hidden) or {}
        for place in matching.in_order(asked):
            wanted = matching.filled(asked[place], found)  # the release's own plan: what fills its holes is in it
            release = whole.get(place) or answers.find_or_insert(db, account.name, wanted, now, hidden)
            found[place] = release
            owing = answers.unpaid(db, release.release, bills)
            charged[place] = account.name in owing
            for name in owing:
                answers.pay(db, release.release, name, heads[name].number + 1)
                charge = Charge(wanted.plan, wanted.version, release.loss, release.mechanisms)
                bills[name].append(charge)
        charging = [payer for payer in payers if bills[payer.name]]
        for payer in charging:
            require_policy(payer, statement)
        for payer in charging:
            self._charge(keeper, payer, heads[payer.name], bills[payer.name], account, statement)
        return tuple(self._claim(db, account, found[place], charged[place]) for place in range(len(asked)))

    def _settle(self, keeper: Bookkeeper, payers: tuple[Account, ...]) -> None:
        """Record terms that are new; those of parents first, and who joins them charges them."""
        for payer in reversed(payers):
            try:
                keeper.settled(payer)
            except (IntegrityError, BudgetExceeded) as error:
                if payer == payers[0] and isinstance(error, IntegrityError):
                    raise  # her own figures
                raise refuse_changed_schema() from None

    def _claim(self, db: Transaction, account: Account, found: answers.Found, charged: bool) -> Claim:
        body = answers.read_body(db, found.release) if found.stored else None
        receipt = answers.receipt_of(db, found.release, account.name)
        return Claim(found.release, body, charged, found.loss, found.errors, receipt)

    def _charge(
        self,
        keeper: Bookkeeper,
        payer: Account,
        head: chain.Head,
        charges: Sequence[Charge],
        by: Account,
        statement: Statement,
    ) -> None:
        cost = cost_of(total([charge.loss for charge in charges]), statement.epsilon, statement.conversion)
        spent = admit(payer.terms.limits, head.spent, cost)
        if spent is None:
            own = payer == by
            raise refuse_account(payer, head.spent, cost, statement, len(charges)) if own else refuse_shared()
        keeper.charge(payer, head, by.name, statement, tuple(charges), cost, spent)

    def _payers(self, account: Account) -> tuple[Account, ...]:
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

    def _keeper(self, db: Transaction, now: datetime, schema: str) -> Bookkeeper:
        return Bookkeeper(db, self.database.id, self.binding, now.astimezone(UTC), schema, self.entropy, self._payers)

    # --- what is stored ----------------------------------------------------------------------------------------------

    def quote(self, account: Account, asked: Sequence[Asked]) -> tuple[Quote, ...]:
        """What a statement would cost the account. Free, and asks nothing of others (`base.Quote`)."""
        quotes: dict[int, Quote] = {}
        found: dict[int, answers.Found] = {}
        with self._read() as db:
            hidden = leases.hidden(db, self.grid)
            whole = matching.own(db, account.name, asked, hidden) or {}
            for place in matching.in_order(asked):
                own = whole.get(place)
                if own is None and all(before in found for before in asked[place].after):
                    own = answers.find_own(db, account.name, matching.filled(asked[place], found), hidden)
                if own is not None:
                    found[place] = own
                receipt = None if own is None else answers.receipt_of(db, own.release, account.name)
                quotes[place] = Quote(asked[place].loss if own is None else own.loss, receipt)
        return tuple(quotes[place] for place in range(len(asked)))

    def own_stored(self, account: Account, rows: Sequence[str], version: int) -> tuple[OwnRelease, ...]:
        """The stored releases about these rows that the account has paid for, the latest first."""
        with self._read() as db:
            return answers.own_stored(db, account.name, rows, version, leases.hidden(db, self.grid)) if rows else ()

    def bind_holes(self, release: int, holes: bytes) -> bytes:
        """Bind a release's holes unless they are bound; the values that now hold, for the run to use."""
        with self._write() as db:
            answers.bind_holes(db, release, holes)
        with self._read() as db:
            return answers.read_holes(db, release)

    def stored(self, release: int) -> bytes | None:
        """The body of a release that has one."""
        with self._read() as db:
            return answers.read_body(db, release)

    def begin_run(self, release: int, holder: str, seconds: float) -> Running:
        """Let `holder` run the release for so long, unless it is run or stored: the run that now holds (`leases`)."""
        with self._write() as db:
            return leases.begin(db, release, holder, seconds)

    def run_of(self, release: int) -> Running | None:
        with self._read() as db:
            return leases.read(db, release)

    def keep_run(self, release: int, holder: str, seconds: float) -> None:
        """The run goes on: let it have so much more time from now."""
        with self._write() as db:
            leases.keep(db, release, holder, seconds)

    def end_run(self, release: int, holder: str) -> None:
        """The run has ended, and nothing was stored."""
        with self._write() as db:
            leases.end(db, release, holder)

    def store(self, release: int, body: bytes, errors: tuple[Fraction, ...] | None = None) -> bytes:
        """Store a release's body unless it has one; the body to deliver, read back after the commit.

        `errors` are those of this body, where the run used other noise than the claim's.

        Privacy: of two runs of one charge, only the first body is ever delivered (SOUNDNESS 9, T3).
        """
        with self._write() as db:
            answers.store(db, release, body, errors)
            leases.end(db, release)
        with self._read() as db:
            return answers.read_stored(db, release)

    def answers(self) -> tuple[Stored, ...]:
        """For the owner: all releases, oldest first."""
        with self._read() as db:
            return listing.releases(db, self.dataset.name)

    def drop_answers(self, before: datetime) -> int:
        """The owner's retention: bodies charged before a time are dropped; how many."""
        with self._write() as db:
            return answers.drop(db, before.astimezone(UTC))

    @property
    def objects(self) -> ObjectBooks:
        """What accounts made of their releases, by name."""
        return ObjectBooks(self._read, self._write)

    # --- failures ----------------------------------------------------------------------------------------------------

    def failed(self, account: Account, release: int) -> None:
        """Count a failure of the engine after a charge, against the account and the dataset (`failures`)."""
        with self._write() as db:
            if answers.unpaid(db, release, [account.name]):
                raise InternalError(f'"{account.name}" has not paid for release {release}')
            failures.add(db, {account.name, self.dataset.name})

    def failures_of(self, account: Account, *, parent: bool = False) -> Failures:
        """For the owner. As a `parent`, the dataset is suspended by its analysts' failures, of which it bears more."""
        with self._read() as db:
            counted = failures.count(db, account.name)
        return Failures(counted, self.dataset_failures if parent else self.failures)

    def resume(self, account: Account) -> None:
        """The owner lets the account go on, with its failures forgotten."""
        with self._write() as db:
            failures.forget(db, account.name)

    # --- accounts ----------------------------------------------------------------------------------------------------

    def balance(self, account: Account) -> Balance:
        """The account's own figures. They are worked out again when the end of its chain has changed."""
        with self._read() as db:
            end = chain.read_end(db, account.name)
            key, known = self._balances.get(account.name, (None, None))
            if known is not None and key == (account, end):
                return known
            head = chain.head_of(end, self.database.id, account.name)
            in_force = self._keeper(db, datetime.now(UTC), "").in_force(account, head)
            charges = one(db, "SELECT count(*) FROM entry WHERE account = ? AND kind = 'charge'", account.name)
        assert charges is not None
        balance = balance_of(in_force, head.spent, charges[0])
        self._balances[account.name] = (account, end), balance
        return balance

    def recorded(self, account: Account) -> Terms | None:
        """The terms that were recorded last; None where the account has no entry."""
        with self._read() as db:
            return chain.read_head(db, self.database.id, account.name).terms

    def accounts(self) -> tuple[str, ...]:
        """For the owner: the names of all accounts that have an entry, also of those that the schema has no more."""
        with self._read() as db:
            return chain.accounts(db)

    def entries(self, account: str) -> tuple[Entry, ...]:
        """An account's own chain, oldest first."""
        with self._read() as db:
            return tuple(chain.read_entries(db, account))

    def verify(self) -> tuple[Finding, ...]:
        """What in the entries, payments, sums or chains was altered: nothing, if nothing is returned."""
        with self._read() as db:
            return tuple(verify(db, self.database.id, self.dataset.name))

    def adopt(self, now: datetime, schema: str) -> None:
        """Record the terms of the schema's accounts where they are new or smaller, and who joined a parent.

        Where the schema grants more than the ledger has recorded, or a parent cannot pay for who joins it, what was
        recorded stands, and the account itself is refused when it is to be charged: that is the owner's act, `grant`.
        """
        everyone = self._everyone()
        with self._read() as db:
            heads = [chain.read_head(db, self.database.id, account.name) for account in everyone]
        if all(head.terms == account.terms for head, account in zip(heads, everyone, strict=True)):
            return
        for account in everyone:
            with suppress(IntegrityError, BudgetExceeded), self.database.write() as db:
                self._keeper(db, now, schema).settled(account)

    def grant(self, account: Account, now: datetime, schema: str) -> Entry | None:
        """The owner's act: the account's terms as the schema has them, whatever they were. None: they were the same."""
        with self._write() as db:
            return self._keeper(db, now, schema).granted(account)

    def _everyone(self) -> tuple[Account, ...]:
        """Parents before their members, so that they are there to be charged."""
        return (self.dataset, *sorted(self.others.values(), key=lambda account: len(self._payers(account))))

    # --- data versions -----------------------------------------------------------------------------------------------

    def register_version(
        self, identity: str, facts: str, *, after: int | None = None, at: datetime | None = None
    ) -> int:
        """Append a data version; its number. With `after`, only where that one is the last, 0 none: else the last's.

        Two processes that open a new dataset at once so agree on version 1; compare `current_version` after.
        """
        with self._write() as db:
            return versions.register(db, identity, facts, after, at)

    def current_version(self) -> Version | None:
        with self._read() as db:
            return versions.current(db)

    def close(self) -> None:
        self.database.close()
