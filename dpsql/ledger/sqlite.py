"""The ledger in one SQLite file: charges and releases, for any number of threads and processes on one machine.

Law: what is charged is on disk before `purchase` returns, and what is delivered was read back after its commit.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction

from dpsql.errors import AccountSuspended, InternalError
from dpsql.ledger import answers, chain
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
    Version,
    admit_all,
)
from dpsql.ledger.budget import balance_of, limits_of, refuse_account, refuse_dataset
from dpsql.ledger.file import BUSY_SECONDS, LedgerFile, open_file, path_of
from dpsql.privacy.accounting import admit
from dpsql.privacy.loss import total

FAILURES = 3
"""Failed runs that suspend an account (SOUNDNESS 10)."""
ACCOUNTS_WORTH = 10
"""The dataset is suspended by the failures of so many accounts. With 1, one analyst alone could lock out all others;
without a limit, each new account would buy three more bits of "which query failed"."""


def open_ledger(
    url: str,
    binding: Binding,
    dataset: Account,
    *,
    failures: int = FAILURES,
    dataset_failures: int = FAILURES * ACCOUNTS_WORTH,
    busy_seconds: float = BUSY_SECONDS,
    entropy: Callable[[int], bytes] = os.urandom,
) -> SqliteLedger:
    """Open `sqlite:///path`, or make it where there is no file; it must be bound to `binding`."""
    file = open_file(path_of(url), binding, busy_seconds)
    return SqliteLedger(file, dataset, failures, dataset_failures, entropy)


@dataclass(frozen=True)
class SqliteLedger:
    """See `base.Ledger`; `dataset` is the parent of every other account."""

    file: LedgerFile
    dataset: Account
    failures: int
    dataset_failures: int
    entropy: Callable[[int], bytes]

    @property
    def identity(self) -> tuple[str, int, int]:
        return self.file.identity

    def purchase(
        self, account: Account, asked: Sequence[Asked], statement: str, now: datetime, admit: Admit = admit_all
    ) -> tuple[Claim, ...]:
        """Charge all releases of a statement, or none, and say which release each became.

        What the account has paid for is free. Raises BudgetExceeded, AccountSuspended, StaleData, or what `admit`
        raises, and then nothing was charged.

        Privacy: the filters of the account and of the dataset are checked and charged in one serialisable,
        durable transaction, before any run; so both are filters of everything that follows, in the order
        of the charges (SOUNDNESS 7, 9). Each account pays for a release once.
        """
        payers = self._payers(account)
        with self.file.write() as db:
            self._require_running(db, account)
            heads = {payer.name: chain.read_head(db, self.file.id, payer.name) for payer in payers}
            bills: dict[str, list[Charge]] = {payer.name: [] for payer in payers}
            claims: dict[int, Claim] = {}
            for place in _in_order(asked):
                wanted = _filled(asked[place], claims)
                found = answers.find_or_insert(db, account.name, wanted)
                owing = answers.unpaid(db, found.release, heads)
                for name in owing:
                    answers.pay(db, found.release, name, heads[name].number + 1)
                    bills[name].append(Charge(asked[place].plan, asked[place].version, found.loss))
                body = answers.read_body(db, found.release)
                claims[place] = Claim(found.release, body, account.name in owing, found.loss, found.errors)
            for payer in payers:
                if bills[payer.name]:
                    self._charge(db, payer, heads[payer.name], bills[payer.name], account, statement, now)
            bought = tuple(claims[place] for place in range(len(asked)))
            admit(bought)
            return bought

    def _payers(self, account: Account) -> tuple[Account, ...]:
        """The account, and its parent: in this order, so that her own refusal does not depend on others."""
        if account.name != self.dataset.name:
            return (account, self.dataset)
        if account != self.dataset:
            raise InternalError("the account of the dataset has two budgets")
        return (account,)

    def _charge(
        self,
        db: sqlite3.Connection,
        payer: Account,
        head: chain.Head,
        charges: Sequence[Charge],
        by: Account,
        statement: str,
        now: datetime,
    ) -> None:
        loss = total([charge.loss for charge in charges])
        spent = admit(limits_of(payer), head.spent, loss)
        if spent is None:
            raise refuse_account(payer, head.spent, loss, len(charges)) if payer == by else refuse_dataset()
        entry = Entry(
            account=payer.name,
            number=head.number + 1,
            at=now.astimezone(UTC),
            by=by.name,
            # Lone surrogates, which a client may send, have no UTF-8 form.
            statement=statement.encode("utf-8", "backslashreplace").decode(),
            budget=payer,
            charges=tuple(charges),
            spent=spent,
            nonce=self.entropy(32),
            previous=head.hash,
            hash="",
        )
        chain.append(db, entry)

    def bind_holes(self, release: int, holes: bytes) -> bytes:
        """Bind a release's holes unless they are bound; the values that now hold, for the run to use."""
        with self.file.write() as db:
            answers.bind_holes(db, release, holes)
        with self.file.read() as db:
            return answers.read_holes(db, release)

    def stored(self, release: int) -> bytes | None:
        """The body of a release that has one."""
        with self.file.read() as db:
            return answers.read_body(db, release)

    def store(self, release: int, body: bytes, errors: tuple[Fraction, ...] | None = None) -> bytes:
        """Store a release's body unless it has one; the body to deliver, read back after the commit.

        `errors` are those of this body, where the run used other noise than the claim's.

        Privacy: of two runs of one charge, only the first body is ever delivered (SOUNDNESS 9, T3).
        """
        with self.file.write() as db:
            answers.store(db, release, body, errors)
        with self.file.read() as db:
            return answers.read_stored(db, release)

    def failed(self, account: Account, release: int) -> None:
        """Count a failure of the engine after a charge, against the account and the dataset.

        Privacy: each failure may tell one analyst which query failed, outside of (epsilon, delta); the
        count bounds how often (SOUNDNESS 10). Later successes do not lower it, or failures could be
        bought back; only the owner does, by `resume`.
        """
        with self.file.write() as db:
            if answers.unpaid(db, release, [account.name]):
                raise InternalError(f'"{account.name}" has not paid for release {release}')
            for payer in self._payers(account):
                db.execute("UPDATE account SET failures = failures + 1 WHERE name = ?", (payer.name,))

    def failures_of(self, account: Account, *, parent: bool = False) -> Failures:
        """For the owner. As a `parent`, the dataset is suspended by its analysts' failures, of which it bears more."""
        with self.file.read() as db:
            row = db.execute("SELECT failures FROM account WHERE name = ?", (account.name,)).fetchone()
        return Failures(0 if row is None else row[0], self.dataset_failures if parent else self.failures)

    def resume(self, account: Account) -> None:
        """The owner lets the account go on, with its failures forgotten."""
        with self.file.write() as db:
            db.execute("UPDATE account SET failures = 0 WHERE name = ?", (account.name,))

    def _require_running(self, db: sqlite3.Connection, account: Account) -> None:
        """The dataset's own limit is for what its analysts do; where it is the one that asks, it is an account."""
        rows = db.execute("SELECT name, failures FROM account WHERE name IN (?, ?)", (account.name, self.dataset.name))
        failures: dict[str, int] = dict(rows.fetchall())
        if failures.get(account.name, 0) >= self.failures:
            raise AccountSuspended(
                f'the account "{account.name}" is suspended, because too many of its runs failed',
                hint="Ask the owner: dpsql account resume SCHEMA NAME.",
            )
        if failures.get(self.dataset.name, 0) >= self.dataset_failures:
            raise AccountSuspended(
                "the dataset is suspended", hint="Ask the owner: dpsql account resume SCHEMA dataset."
            )

    def void(self, version: int) -> None:
        """A data version can no longer be read: what was paid and not stored is lost."""
        with self.file.write() as db:
            answers.void(db, version)

    def balance(self, account: Account) -> Balance:
        """The account's own figures."""
        with self.file.read() as db:
            head = chain.read_head(db, self.file.id, account.name)
        return balance_of(account, head.spent, head.number)

    def entries(self, account: Account) -> tuple[Entry, ...]:
        """The account's own chain, oldest first."""
        with self.file.read() as db:
            return tuple(chain.read_entries(db, account.name))

    def verify_chain(self, account: Account) -> None:
        """Raise IntegrityError if the account's entries, payments or sums were altered."""
        with self.file.read() as db:
            chain.verify(db, self.file.id, account.name)

    def register_version(self, identity: str, facts: str, *, first: bool = False) -> int:
        """Append a data version; its number. With `first`, only where there is none: else the current one's.

        Two processes that open a new dataset at once so agree on version 1; compare `current_version` after.
        """
        with self.file.write() as db:
            current = _current(db)
            if first and current is not None:
                return current.number
            number = 1 if current is None else current.number + 1
            db.execute("INSERT INTO version (number, identity, facts) VALUES (?, ?, ?)", (number, identity, facts))
            return number

    def current_version(self) -> Version | None:
        with self.file.read() as db:
            return _current(db)

    def close(self) -> None:
        """Nothing is held open between transactions."""


def _current(db: sqlite3.Connection) -> Version | None:
    row = db.execute("SELECT number, identity, facts FROM version ORDER BY number DESC LIMIT 1").fetchone()
    return None if row is None else Version(*row)


def _in_order(asked: Sequence[Asked]) -> list[int]:
    """What fills holes comes before what has them; else the smallest errors first: they serve the same plan elsewhere
    in the statement."""
    first = [place for place, one in enumerate(asked) if not one.after]
    first.sort(key=lambda i: (asked[i].plan, asked[i].version, asked[i].errors))
    return first + [place for place, one in enumerate(asked) if one.after]


def _filled(asked: Asked, claims: Mapping[int, Claim]) -> Asked:
    """A release with holes is another one for every release that fills them."""
    if not asked.after:
        return asked
    text = "\n".join([asked.plan, *(str(claims[place].release) for place in asked.after)])
    return replace(asked, plan=hashlib.sha256(text.encode()).hexdigest())
