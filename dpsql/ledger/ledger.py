"""The ledger over a database: charges and releases, for any number of threads and processes.

Law: what is charged is durable before `purchase` returns, and what is delivered was read back after its commit.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from itertools import islice

from dpsql.errors import AccountSuspended, BudgetExceeded, IntegrityError, InternalError
from dpsql.ledger import hash_chain, release_store
from dpsql.ledger.audit import verify_chains
from dpsql.ledger.backend import LedgerDatabase, Transaction, fetch_one
from dpsql.ledger.base import (
    Account,
    AdmitCallback,
    Balance,
    Binding,
    ChargedStatement,
    DataVersion,
    Entitlement,
    EntryKind,
    FailureCount,
    LedgerEntry,
    LedgerFinding,
    ListedRelease,
    OwnRelease,
    RecordedCharge,
    ReleaseQuote,
    ReleaseRequest,
    RunLease,
    admit_all,
)
from dpsql.ledger.budget import (
    balance_of,
    budget_exceeded_error,
    changed_schema_error,
    require_policy,
    require_unexpired,
    shared_budget_error,
)
from dpsql.ledger.entries import EntryWriter
from dpsql.ledger.hash_chain import decode_loss
from dpsql.ledger.interactive_answers import ANSWER_PREFIX, InteractiveAnswers
from dpsql.ledger.named_objects import SqlObjectStore
from dpsql.ledger.release_store import CandidateRelease, HiddenReleases
from dpsql.privacy.filters import admit_charge, cost_of_losses

# Transactions of one thread over a ledger's database: it is in one at a time, and all that it reads is read there.


@dataclass(frozen=True)
class ThreadTransactions:
    database: LedgerDatabase
    _current: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    @contextmanager
    def read_snapshot(self) -> Iterator[None]:
        """What this thread reads within is one snapshot, in one transaction. Nothing can be written meanwhile."""
        with self.database.read() as db, self._join(db):
            yield

    def read(self) -> AbstractContextManager[Transaction]:
        db: Transaction | None = getattr(self._current, "db", None)
        return self.database.read() if db is None else nullcontext(db)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """What this thread reads within, it reads in the same transaction, behind its lock."""
        if getattr(self._current, "db", None) is not None:
            raise InternalError("the ledger is read, and would be written")
        with self.database.write() as db, self._join(db):
            yield db

    @contextmanager
    def _join(self, db: Transaction) -> Iterator[None]:
        before, self._current.db = getattr(self._current, "db", None), db
        try:
            yield
        finally:
            self._current.db = before


# The stored releases as the owner sees them.


def read_all_releases(db: Transaction, dataset: str) -> tuple[ListedRelease, ...]:
    """All releases, oldest first, each with the statement that was first charged for it.

    What an interactive mechanism answers is not among them: the mechanism is, and was paid for.
    """
    payers: dict[int, list[tuple[str, int]]] = {}
    for release, account, number in db.execute("SELECT release, account, entry FROM payment ORDER BY release, account"):
        payers.setdefault(release, []).append((account, number))
    statements = {
        (entry.account, entry.number): entry.statement.text
        for account in hash_chain.list_chain_accounts(db)
        for entry in hash_chain.read_entries(db, account)
        if entry.kind is EntryKind.CHARGE
    }
    rows = db.execute(
        "SELECT id, version, at, state, epsilon, rho, delta, length(body) FROM release"
        f" WHERE plan NOT LIKE '{ANSWER_PREFIX}%' ORDER BY id"
    )
    return tuple(
        ListedRelease(
            release=id,
            version=version,
            at=datetime.fromisoformat(at),
            state=state,
            statement=next((statements[p] for p in _dataset_first(payers.get(id, ()), dataset) if p in statements), ""),
            payers=tuple(account for account, _ in payers.get(id, ())),
            loss=decode_loss(*loss),
            size=size or 0,
        )
        for id, version, at, state, *loss, size in rows
    )


def _dataset_first(paid: Sequence[tuple[str, int]], dataset: str) -> list[tuple[str, int]]:
    """The dataset pays when a release is made, so its entry has the statement of who asked first."""
    return sorted(paid, key=lambda payment: payment[0] != dataset)


# Data versions as the ledger remembers them. What they are is told in `session/dataset/versions.py`.


def append_version(db: Transaction, identity: str, facts: str, after: int | None, at: datetime | None) -> int:
    """Append a version; its number. With `after`, only where that one is the last, 0 none: else the last one's."""
    latest = read_current_version(db)
    last = 0 if latest is None else latest.number
    if after is not None and after != last:
        return last
    number = last + 1
    when = "" if at is None else at.astimezone(UTC).isoformat()
    db.execute("INSERT INTO version (number, identity, facts, at) VALUES (?, ?, ?, ?)", number, identity, facts, when)
    return number


def read_current_version(db: Transaction) -> DataVersion | None:
    row = fetch_one(db, "SELECT number, identity, facts, at FROM version ORDER BY number DESC LIMIT 1")
    if row is None:
        return None
    number, identity, facts, at = row
    return DataVersion(number, identity, facts, datetime.fromisoformat(at) if at else None)


# Which releases serve a statement, where some of them fill the holes of others.
#
# A release with holes is another one for every release that fills them. So the best release that fills a hole may be
# one for which the other has never been asked: what the account has paid for as a whole goes first.

_MAX_TRIED = 8
"""Own releases that are tried for one that fills holes."""

MatchedReleases = dict[int, CandidateRelease]


def matching_order(requests: Sequence[ReleaseRequest]) -> list[int]:
    """What fills holes comes before what has them; else the smallest errors first: they serve the same plan elsewhere
    in the statement."""
    first = [index for index, request in enumerate(requests) if not request.after]
    first.sort(key=lambda i: (requests[i].plan, requests[i].version, requests[i].errors))
    return first + [index for index, request in enumerate(requests) if request.after]


def with_filled_plan(request: ReleaseRequest, releases: Mapping[int, CandidateRelease]) -> ReleaseRequest:
    """The same, known by the releases that fill its holes."""
    if not request.after:
        return request
    text = "\n".join([request.plan, *(str(releases[index].release) for index in request.after)])
    return replace(request, plan=hashlib.sha256(text.encode()).hexdigest())


def match_releases(
    db: Transaction, account: str, requests: Sequence[ReleaseRequest], hidden: HiddenReleases
) -> MatchedReleases | None:
    """The account's own releases for all of a statement, if it has paid for all; those that are stored first."""
    return _match_remaining(db, account, requests, hidden, matching_order(requests), {})


def _match_remaining(
    db: Transaction,
    account: str,
    requests: Sequence[ReleaseRequest],
    hidden: HiddenReleases,
    indexes: list[int],
    chosen: MatchedReleases,
) -> MatchedReleases | None:
    if not indexes:
        return chosen
    index, *rest = indexes
    fills = any(index in requests[other].after for other in rest)
    serving = release_store.list_own_releases(db, account, with_filled_plan(requests[index], chosen), hidden)
    for release in islice(serving, _MAX_TRIED if fills else 1):
        matched = _match_remaining(db, account, requests, hidden, rest, chosen | {index: release})
        if matched is not None:
            return matched
    return None


# Failed runs, counted against accounts.
#
# Privacy: each failure may tell one analyst which query failed, outside of (epsilon, delta); the count bounds how often
# (SOUNDNESS 10). Later successes do not lower it, or failures could be bought back; only the owner does.


def add_failure(db: Transaction, names: set[str]) -> None:
    for name in names:
        db.execute("UPDATE account SET failures = failures + 1 WHERE name = ?", name)


def count_failures(db: Transaction, name: str) -> int:
    row = fetch_one(db, "SELECT failures FROM account WHERE name = ?", name)
    return 0 if row is None else int(row[0])


def reset_failures(db: Transaction, name: str) -> None:
    db.execute("UPDATE account SET failures = 0 WHERE name = ?", name)


def require_not_suspended(
    db: Transaction, name: str, max_failures: int, dataset: str, max_dataset_failures: int
) -> None:
    """The dataset's own limit is for what its analysts do; where it is the one that asks, it is an account."""
    if count_failures(db, name) >= max_failures:
        raise AccountSuspended(
            f'the account "{name}" is suspended, because too many of its runs failed',
            hint="Ask the owner: dpsql account resume SCHEMA NAME.",
        )
    if count_failures(db, dataset) >= max_dataset_failures:
        raise AccountSuspended("the dataset is suspended", hint="Ask the owner: dpsql account resume SCHEMA dataset.")


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
    _laplace: dict[str, tuple[bool, int]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def id(self) -> str:
        return self.database.id

    @property
    def identity(self) -> Hashable:
        return self.database.identity

    @cached_property
    def _transactions(self) -> ThreadTransactions:
        return ThreadTransactions(self.database)

    def check_writable(self) -> None:
        """Raise what a charge would meet, such as a disk that is full or read-only."""
        self.database.check_writable()

    def read_snapshot(self) -> AbstractContextManager[None]:
        return self._transactions.read_snapshot()

    def _read_transaction(self) -> AbstractContextManager[Transaction]:
        return self._transactions.read()

    def _write_transaction(self) -> AbstractContextManager[Transaction]:
        return self._transactions.write()

    # --- charges -----------------------------------------------------------------------------------------------------

    def purchase(
        self,
        account: Account,
        requests: Sequence[ReleaseRequest],
        statement: ChargedStatement,
        now: datetime,
        admit: AdmitCallback = admit_all,
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

    def find_entitlements(
        self, account: Account, requests: Sequence[ReleaseRequest], now: datetime
    ) -> tuple[Entitlement, ...] | None:
        """The claims of a statement of which all is stored and paid for by the account; None where something is not.

        Nothing is charged, and no lock is taken: most questions of a dashboard end here.
        """
        with self._read_transaction() as db:
            self._require_account_active(db, account, now)
            matched = match_releases(db, account.name, requests, release_store.find_hidden_releases(db, self.grid))
            if matched is None or not all(release.stored for release in matched.values()):
                return None
            return tuple(self._build_entitlement(db, account, matched[index], False) for index in range(len(requests)))

    def _require_account_active(self, db: Transaction, account: Account, now: datetime) -> None:
        for payer in self._paying_accounts(account):
            require_unexpired(payer, now.astimezone(UTC).date())
        require_not_suspended(db, account.name, self.failures, self.dataset.name, self.dataset_failures)

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
        bills: dict[str, list[RecordedCharge]] = {payer.name: [] for payer in payers}
        releases: dict[int, release_store.CandidateRelease] = {}
        charged: dict[int, bool] = {}
        hidden = release_store.find_hidden_releases(db, self.grid)
        matched = match_releases(db, account.name, requests, hidden) or {}
        for index in matching_order(requests):
            request = with_filled_plan(
                requests[index], releases
            )  # the release's own plan: what fills its holes is in it
            release = matched.get(index) or release_store.find_or_insert_release(db, account.name, request, now, hidden)
            releases[index] = release
            owing = release_store.accounts_unpaid(db, release.release, bills)
            charged[index] = account.name in owing
            for name in owing:
                release_store.record_payment(db, release.release, name, heads[name].number + 1)
                charge = RecordedCharge(request.plan, request.version, release.loss, release.mechanisms)
                bills[name].append(charge)
        charging = [payer for payer in payers if bills[payer.name]]
        for payer in charging:
            require_policy(payer, statement)
        for payer in charging:
            self._charge_payer(writer, payer, heads[payer.name], bills[payer.name], account, statement)
        return tuple(
            self._build_entitlement(db, account, releases[index], charged[index]) for index in range(len(requests))
        )

    def _settle_terms(self, writer: EntryWriter, payers: tuple[Account, ...]) -> None:
        """Record terms that are new; those of parents first, and who joins them charges them."""
        for payer in reversed(payers):
            try:
                writer.settle_terms(payer)
            except (IntegrityError, BudgetExceeded) as error:
                if payer == payers[0] and isinstance(error, IntegrityError):
                    raise  # her own figures
                raise changed_schema_error() from None

    def _build_entitlement(
        self, db: Transaction, account: Account, release: release_store.CandidateRelease, charged: bool
    ) -> Entitlement:
        body = release_store.read_body(db, release.release) if release.stored else None
        receipt = release_store.receipt_of(db, release.release, account.name)
        return Entitlement(release.release, body, charged, release.loss, release.errors, receipt)

    def _charge_payer(
        self,
        writer: EntryWriter,
        payer: Account,
        head: hash_chain.ChainHead,
        charges: Sequence[RecordedCharge],
        by: Account,
        statement: ChargedStatement,
    ) -> None:
        cost = cost_of_losses([charge.loss for charge in charges], statement.epsilon, statement.conversion)
        spent = admit_charge(payer.terms.limits, head.spent, cost)
        if spent is None:
            own = payer == by
            raise (
                budget_exceeded_error(payer, head.spent, cost, statement, len(charges))
                if own
                else shared_budget_error()
            )
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
        return EntryWriter(
            db, self.database.id, self.binding, now.astimezone(UTC), schema, self.entropy, self._paying_accounts
        )

    # --- what is stored ----------------------------------------------------------------------------------------------

    def quote_releases(self, account: Account, requests: Sequence[ReleaseRequest]) -> tuple[ReleaseQuote, ...]:
        """What a statement would cost the account. Free, and asks nothing of others (`base.ReleaseQuote`)."""
        quotes: dict[int, ReleaseQuote] = {}
        releases: dict[int, release_store.CandidateRelease] = {}
        with self._read_transaction() as db:
            hidden = release_store.find_hidden_releases(db, self.grid)
            matched = match_releases(db, account.name, requests, hidden) or {}
            for index in matching_order(requests):
                own = matched.get(index)
                if own is None and all(before in releases for before in requests[index].after):
                    own = release_store.find_own_release(
                        db, account.name, with_filled_plan(requests[index], releases), hidden
                    )
                if own is not None:
                    releases[index] = own
                receipt = None if own is None else release_store.receipt_of(db, own.release, account.name)
                quotes[index] = ReleaseQuote(requests[index].loss if own is None else own.loss, receipt)
        return tuple(quotes[index] for index in range(len(requests)))

    def list_own_stored(self, account: Account, rows: Sequence[str], version: int) -> tuple[OwnRelease, ...]:
        """The stored releases about these rows that the account has paid for, the latest first."""
        with self._read_transaction() as db:
            return (
                release_store.list_own_stored(
                    db, account.name, rows, version, release_store.find_hidden_releases(db, self.grid)
                )
                if rows
                else ()
            )

    def may_own_laplace(self, account: Account) -> bool:
        """Whether the account may have paid for a release with Laplace noise. Only what is new is looked at."""
        owned, last = self._laplace.get(account.name, (False, 0))
        if not owned:
            with self._read_transaction() as db:
                owned, last = release_store.find_laplace(db, account.name, last)
            self._laplace[account.name] = owned, last
        return owned

    def bind_runtime_parameters(self, release: int, holes: bytes) -> bytes:
        """Bind a release's holes unless they are bound; the values that now hold, for the run to use."""
        with self._write_transaction() as db:
            release_store.bind_runtime_parameters(db, release, holes)
        with self._read_transaction() as db:
            return release_store.read_runtime_parameters(db, release)

    def read_body(self, release: int) -> bytes | None:
        """The body of a release that has one."""
        with self._read_transaction() as db:
            return release_store.read_body(db, release)

    def begin_run(self, release: int, holder: str, seconds: float) -> RunLease:
        """Let `holder` run the release for so long, unless it is run or stored: the run that now holds."""
        with self._write_transaction() as db:
            return release_store.begin_lease(db, release, holder, seconds)

    def find_run(self, release: int) -> RunLease | None:
        with self._read_transaction() as db:
            return release_store.read_lease(db, release)

    def renew_run(self, release: int, holder: str, seconds: float) -> None:
        """The run goes on: let it have so much more time from now."""
        with self._write_transaction() as db:
            release_store.renew_lease(db, release, holder, seconds)

    def end_run(self, release: int, holder: str) -> None:
        """The run has ended, and nothing was stored."""
        with self._write_transaction() as db:
            release_store.end_lease(db, release, holder)

    def store_body(self, release: int, body: bytes, errors: tuple[Fraction, ...] | None = None) -> bytes:
        """Store a release's body unless it has one; the body to deliver, read back after the commit.

        `errors` are those of this body, where the run used other noise than the claim's.

        Privacy: of two runs of one charge, only the first body is ever delivered (SOUNDNESS 9, T3).
        """
        with self._write_transaction() as db:
            release_store.store_body(db, release, body, errors)
            release_store.end_lease(db, release)
        with self._read_transaction() as db:
            return release_store.read_stored_body(db, release)

    def list_releases(self) -> tuple[ListedRelease, ...]:
        """For the owner: all releases, oldest first."""
        with self._read_transaction() as db:
            return read_all_releases(db, self.dataset.name)

    def drop_old_bodies(self, before: datetime) -> int:
        """The owner's retention: bodies charged before a time are dropped; how many."""
        with self._write_transaction() as db:
            return release_store.drop_old_bodies(db, before.astimezone(UTC))

    @property
    def objects(self) -> SqlObjectStore:
        """What accounts made of their releases, by name."""
        return SqlObjectStore(self._read_transaction, self._write_transaction)

    # --- failures ----------------------------------------------------------------------------------------------------

    def count_failure(self, account: Account, release: int) -> None:
        """Count a failure of the engine after a charge, against the account and the dataset (`failures`)."""
        with self._write_transaction() as db:
            if release_store.accounts_unpaid(db, release, [account.name]):
                raise InternalError(f'"{account.name}" has not paid for release {release}')
            add_failure(db, {account.name, self.dataset.name})

    def failures_of(self, account: Account, *, parent: bool = False) -> FailureCount:
        """For the owner. As a `parent`, the dataset is suspended by its analysts' failures, of which it bears more."""
        with self._read_transaction() as db:
            counted = count_failures(db, account.name)
        return FailureCount(counted, self.dataset_failures if parent else self.failures)

    def resume_account(self, account: Account) -> None:
        """The owner lets the account go on, with its failures forgotten."""
        with self._write_transaction() as db:
            reset_failures(db, account.name)

    # --- accounts ----------------------------------------------------------------------------------------------------

    def get_balance(self, account: Account) -> Balance:
        """The account's own figures. They are worked out again when the end of its chain has changed."""
        with self._read_transaction() as db:
            end = hash_chain.read_end(db, account.name)
            key, cached = self._balances.get(account.name, (None, None))
            if cached is not None and key == (account, end):
                return cached
            head = hash_chain.head_of(end, self.database.id, account.name)
            in_force = self._entry_writer(db, datetime.now(UTC), "").account_in_force(account, head)
            charges = fetch_one(db, "SELECT count(*) FROM entry WHERE account = ? AND kind = 'charge'", account.name)
        assert charges is not None
        balance = balance_of(in_force, head.spent, charges[0])
        self._balances[account.name] = (account, end), balance
        return balance

    def list_accounts(self) -> tuple[str, ...]:
        """For the owner: the names of all accounts that have an entry, also of those that the schema has no more."""
        with self._read_transaction() as db:
            return hash_chain.list_chain_accounts(db)

    def list_entries(self, account: str) -> tuple[LedgerEntry, ...]:
        """An account's own chain, oldest first."""
        with self._read_transaction() as db:
            return tuple(hash_chain.read_entries(db, account))

    def verify_chains(self) -> tuple[LedgerFinding, ...]:
        """What in the entries, payments, sums or chains was altered: nothing, if nothing is returned."""
        with self._read_transaction() as db:
            return tuple(verify_chains(db, self.database.id, self.dataset.name))

    def adopt_terms(self, now: datetime, schema: str) -> None:
        """Record the terms of the schema's accounts where they are new or smaller, and who joined a parent.

        Where the schema grants more than the ledger has recorded, or a parent cannot pay for who joins it, what was
        recorded stands, and the account itself is refused when it is to be charged: more is the owner's act
        (`grant_terms`).
        """
        everyone = self._all_accounts()
        with self._read_transaction() as db:
            heads = [hash_chain.read_head(db, self.database.id, account.name) for account in everyone]
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
            return append_version(db, identity, facts, after, at)

    def current_version(self) -> DataVersion | None:
        with self._read_transaction() as db:
            return read_current_version(db)

    def close(self) -> None:
        self.database.close()
