"""The interface of a ledger, and its accounts. Law: pay first, durably, once for each release; no refunds.

An account may lose its budget and no more. Accounts form a tree: the dataset's is above all others, and groups may
stand between. A release that nobody has paid for yet is charged to the analyst and to all above her, in one
transaction; one that others have paid for, to those of them who have not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from typing import Protocol

from dpsql.amounts import TextRepr, format_remaining, format_rounded_down, format_rounded_up
from dpsql.privacy.filters import (
    Composition,
    Cost,
    CumulativeLoss,
    FilterLimits,
    admit_charge,
    cumulative_epsilon,
    fraction_remaining,
    limits_for_budget,
)
from dpsql.privacy.loss import Loss

__all__ = [
    "Account",
    "AccountTerms",
    "AdmitCallback",
    "Balance",
    "Binding",
    "ChargedStatement",
    "CreatedObject",
    "DataVersion",
    "Entitlement",
    "EntryKind",
    "FailureCount",
    "Ledger",
    "LedgerEntry",
    "LedgerFinding",
    "ListedRelease",
    "ObjectStore",
    "OwnRelease",
    "Receipt",
    "RecordedCharge",
    "ReleaseQuote",
    "ReleaseRequest",
    "RunLease",
    "admit_all",
]


@dataclass(frozen=True)
class AccountTerms:
    """What the owner grants an account: the most that may be lost, by which filter, and who pays with it."""

    epsilon: Fraction
    delta: Fraction
    composition: Composition = Composition.ZCDP
    parent: str | None = None

    @property
    def limits(self) -> FilterLimits:
        return limits_for_budget(self.epsilon, self.delta, self.composition)

    def is_within(self, other: AccountTerms) -> bool:
        """Whether nothing is granted that the other terms do not grant."""
        return self.epsilon <= other.epsilon and self.delta <= other.delta and self.composition is other.composition


@dataclass(frozen=True)
class Account:
    """An account, its budget, and the policy for single statements; without `parent`, the dataset pays too."""

    name: str
    epsilon: Fraction
    delta: Fraction
    composition: Composition = Composition.ZCDP
    parent: str | None = None
    largest_epsilon: Fraction | None = None
    largest_delta: Fraction | None = None
    expires: date | None = None  # the first day, in UTC, on which it may ask no more

    def __post_init__(self) -> None:
        if not self.name or self.epsilon <= 0 or not 0 <= self.delta < 1:
            raise ValueError("an account has a name, an epsilon above 0 and a delta in [0, 1)")

    @property
    def terms(self) -> AccountTerms:
        return AccountTerms(self.epsilon, self.delta, self.composition, self.parent)


def all_add_epsilons(payers: Sequence[Account]) -> bool:
    """Whether all who pay add up epsilons: then a charge costs the same with either kind of noise."""
    return all(payer.composition is not Composition.ZCDP for payer in payers)


DATASET = "dataset"
"""The account of all analysts together; no analyst can have this name."""


@dataclass(frozen=True)
class Balance(TextRepr):
    """One account's own figures.

    `pure_epsilon` is the sum of the pure losses, None once a loss was not pure. `spent_epsilon` is all
    that was lost, as one epsilon at the account's delta; `left_epsilon` the rest of the budget, which is
    less than a Gaussian release may ask for, since rho adds up and its epsilon grows more slowly.
    """

    account: str
    terms: AccountTerms
    spent: CumulativeLoss
    spent_epsilon: Fraction
    left_epsilon: Fraction
    fraction_left: Fraction
    charges: int

    @property
    def epsilon(self) -> Fraction:
        return self.terms.epsilon

    @property
    def delta(self) -> Fraction:
        return self.terms.delta

    @property
    def pure_epsilon(self) -> Fraction | None:
        return self.spent.epsilon

    @property
    def spent_rho(self) -> Fraction:
        return self.spent.rho

    @property
    def limit_rho(self) -> Fraction:
        return self.terms.limits.rho

    @property
    def spent_delta(self) -> Fraction:
        """The delta spent: by selections under zCDP, by all charges under basic and advanced composition."""
        return self.spent.delta if self.terms.composition is Composition.ZCDP else self.spent.basic_delta

    @property
    def limit_delta(self) -> Fraction:
        return self.terms.limits.delta

    def admits(self, cost: Cost) -> bool:
        """Whether the account's own filter would grant it."""
        return admit_charge(self.terms.limits, self.spent, cost) is not None

    def share_of(self, cost: Cost) -> Fraction | None:
        """The part of the budget that it would take, as `fraction_left` counts; None where it is refused."""
        limits = self.terms.limits
        after = admit_charge(limits, self.spent, cost)
        if after is None:
            return None
        conversion = self.terms.delta - limits.delta if limits.composition is Composition.ZCDP else Fraction(0)
        epsilon = cumulative_epsilon(limits, after, conversion)
        return self.fraction_left - fraction_remaining(limits, after, self.epsilon if epsilon is None else epsilon)

    @property
    def percent_left(self) -> str:
        return f"{format_remaining(100 * self.fraction_left, Fraction(100))} %"

    @property
    def left_text(self) -> str:
        """For people, such as: ana's budget: 60.5 % (epsilon 1.58 of 4)."""
        whose = "the dataset's" if self.account == DATASET else f"{self.account}'s"
        remaining = format_remaining(self.left_epsilon, self.epsilon)
        return f"{whose} budget: {self.percent_left} (epsilon {remaining} of {format_rounded_up(self.epsilon)})"

    def __repr__(self) -> str:
        """In figures for people; the fields are exact."""
        remaining = format_remaining(self.left_epsilon, self.epsilon)
        return (
            f"Balance(account={self.account!r}, epsilon={format_rounded_up(self.epsilon)}, "
            f"delta={format_rounded_up(self.delta)}, "
            f"spent_epsilon={format_rounded_up(self.spent_epsilon)}, left_epsilon={remaining}, charges={self.charges})"
        )

    def __str__(self) -> str:
        return "\n".join(_balance_lines(self))


@dataclass(frozen=True)
class FailureCount:
    """Failed runs that are counted against an account; it is suspended by as many as `suspending`."""

    counted: int
    suspending: int

    @property
    def is_suspended(self) -> bool:
        return self.counted >= self.suspending

    def __str__(self) -> str:
        return f"{self.counted} of {self.suspending}" + (", suspended" if self.is_suspended else "")


def _balance_lines(balance: Balance) -> list[str]:
    charges = "1 charge" if balance.charges == 1 else f"{balance.charges} charges"
    lines = [
        f'account "{balance.account}": {charges}',
        f"budget: epsilon {format_rounded_down(balance.epsilon)}, delta {format_rounded_down(balance.delta)}",
        f"spent:  epsilon {format_rounded_up(balance.spent_epsilon)}",
        f"left:   epsilon {format_remaining(balance.left_epsilon, balance.epsilon)}"
        f" ({format_remaining(100 * balance.fraction_left, Fraction(100))} %)",
    ]
    if balance.limit_rho:
        lines[2] += (
            f"; rho {format_rounded_up(balance.spent_rho)} of {format_rounded_down(balance.limit_rho)}; "
            "delta of selections"
        )
    elif balance.limit_delta:
        lines[1] += f", {balance.terms.composition.value} composition"
        lines[2] += "; delta"
    if balance.limit_delta:
        lines[2] += f" {format_rounded_up(balance.spent_delta)} of {format_rounded_down(balance.limit_delta)}"
    return lines


@dataclass(frozen=True)
class Binding:
    """What the losses in a ledger are about. It is fixed when the ledger is made: losses that protect
    different units, or under different neighbors, do not add up."""

    unit: str
    neighbors: str
    group_size: int


@dataclass(frozen=True)
class ChargedStatement:
    """What is charged for: its text, the (epsilon, delta) that it asks for, and the hash of the schema that it means.

    `conversion` is the part of its delta that is for the conversion from rho. `knobs` say how another epsilon and
    another delta are asked for, each with {} for the figure.
    """

    text: str
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    conversion: Fraction = Fraction(0)
    schema: str = ""
    knobs: tuple[str, str] = field(default=("SET epsilon = {}", "SET delta = {}"), compare=False)


@dataclass(frozen=True)
class ReleaseRequest:
    """One release that a statement wants.

    `plan` is a hash of the canonical plan with its bounds and caps, without epsilon; `errors` is the
    noise of each bundle in the units of its values, smaller is better, of one length for one plan. `mechanisms` is the
    text from which the loss can be worked out again. `rows` and `shape` tell what else could be derived from it.
    An interactive mechanism is asked `once`: each asking is a charge of its own, and is never redeemed. Of several
    that serve, the most accurate is taken, or the `nearest`: a histogram that a stored answer's norm was chosen from
    must be found again, whatever was bought since.
    """

    plan: str
    version: int
    loss: Loss
    errors: tuple[Fraction, ...]
    after: tuple[int, ...] = ()  # places, in the same statement, of the releases that fill its holes
    mechanisms: str = "[]"
    rows: str = ""
    shape: str = ""
    once: bool = False
    nearest: bool = False


@dataclass(frozen=True)
class Receipt:
    """What the holder of an answer can show: the entry of her own account by which it was paid."""

    account: str
    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.account}/{self.number}/{self.hash}"


@dataclass(frozen=True)
class Entitlement:
    """What one `ReleaseRequest` became: the release that the account may have.

    `body` is the stored release, to be used as it is; None means that the engine has yet to run.
    `loss` and `errors` are the release's own, and may be better than what was asked. Whoever runs it
    may use the noise that was asked (the loss covers it), and then tells `store_body` its errors.
    """

    release: int
    body: bytes | None
    charged: bool
    loss: Loss
    errors: tuple[Fraction, ...]
    receipt: Receipt


@dataclass(frozen=True)
class ReleaseQuote:
    """What one `ReleaseRequest` would become: the account's own release, for nothing, or one at this loss.

    Privacy: it looks at the account's own payments only, so it tells nothing of what others have asked.
    """

    loss: Loss
    receipt: Receipt | None  # None: it has to be paid for

    @property
    def is_paid(self) -> bool:
        return self.receipt is not None


@dataclass(frozen=True)
class OwnRelease:
    """A stored release that an account has paid for."""

    shape: str
    body: bytes
    errors: tuple[Fraction, ...]
    at: datetime  # of the charge
    receipt: Receipt


AdmitCallback = Callable[[Sequence[Entitlement]], None]
"""Looks at what a statement would have, before its charge, and may raise: then nothing is charged."""


def admit_all(claims: Sequence[Entitlement]) -> None:
    pass


class EntryKind(Enum):
    """What an entry records: that an account was opened, its terms were changed, it was charged, or it took over what
    a new member had paid for."""

    OPENED = "opened"
    CHANGED = "changed"
    CHARGE = "charge"
    JOINED = "joined"


@dataclass(frozen=True)
class RecordedCharge:
    """A release as an entry names it: by its plan, not by its number, which would count others' releases."""

    plan: str
    version: int
    loss: Loss
    mechanisms: str


@dataclass(frozen=True)
class LedgerEntry:
    """One act in an account's chain. It tells nothing of rows, durations or outcomes.

    `by` is the account that asked (in a parent's chain, an analyst's) or that joined; `terms` are the account's from
    this entry on; `cost` is what the charges add, `spent` the account's sum, this entry included; `hash` is over
    everything else.
    """

    account: str
    number: int
    kind: EntryKind
    at: datetime
    by: str
    statement: ChargedStatement
    binding: Binding
    terms: AccountTerms
    charges: tuple[RecordedCharge, ...]
    cost: Cost
    spent: CumulativeLoss
    nonce: bytes
    previous: str
    hash: str

    @property
    def losses(self) -> tuple[Loss, ...]:
        return tuple(charge.loss for charge in self.charges)

    @property
    def receipt(self) -> Receipt:
        return Receipt(self.account, self.number, self.hash)


@dataclass(frozen=True)
class LedgerFinding:
    """Something in a ledger that does not fit; without a number it is about a whole chain, without an account about
    the ledger."""

    account: str | None
    number: int | None
    what: str

    def __str__(self) -> str:
        if self.account is None:
            return self.what
        number = "" if self.number is None else f" {self.number}"
        return f'"{self.account}"{number}: {self.what}'


@dataclass(frozen=True)
class DataVersion:
    """A registered data version: `identity` pins its files, `facts` is what registering found."""

    number: int
    identity: str
    facts: str
    at: datetime | None = None


@dataclass(frozen=True)
class ListedRelease:
    """A release as the owner lists it: which statement asked for it first, when, and who has paid."""

    release: int
    version: int
    at: datetime
    state: str
    statement: str
    payers: tuple[str, ...]
    loss: Loss
    size: int


@dataclass(frozen=True)
class RunLease:
    """The last run of a release, as all processes see it: in microseconds since it began.

    `ended` is when it had, well or badly. One that has not, and whose `left` is used up, was left by its process; so
    was one that is to begin in future, by a clock that was turned back.
    """

    holder: str
    elapsed: int
    ended: int | None
    left: int

    @property
    def is_over(self) -> bool:
        return self.ended is not None or self.left <= 0 or self.elapsed < 0


@dataclass(frozen=True)
class CreatedObject:
    """What an account made of a release that it paid for: a synthetic table or a model.

    `definition` is JSON of whoever made it: how the release is read, and the statement that asked for it.
    """

    kind: str
    name: str
    release: int
    definition: str
    at: datetime


class ObjectStore(Protocol):
    """What accounts made, by name. The names of one account differ, whatever their case and kind."""

    def list_objects(self, account: str) -> tuple[CreatedObject, ...]:
        """The account's objects, by name."""
        ...

    def save_object(self, account: str, created: CreatedObject, *, instead: bool = False) -> None:
        """Give a release its name; `instead` of what had it, if that is of the same kind."""
        ...

    def drop_object(self, account: str, kind: str, name: str) -> bool:
        """Drop an object; whether there was one."""
        ...


class Ledger(Protocol):
    """The durable record of charges and releases, shared by threads and processes."""

    @property
    def id(self) -> str:
        """Random, and as old as the ledger. No analyst is told it, so what is derived from it is a secret of hers who
        has the ledger."""
        ...

    @property
    def identity(self) -> Hashable:
        """Equal where two are one: the same releases under the same numbers."""
        ...

    def check_writable(self) -> None:
        """Raise what a charge would meet, such as a disk that is full or read-only; changes nothing."""
        ...

    def read_snapshot(self) -> AbstractContextManager[None]:
        """What the thread reads within is one snapshot, in one transaction; it must write nothing."""
        ...

    def purchase(
        self,
        account: Account,
        requests: Sequence[ReleaseRequest],
        statement: ChargedStatement,
        now: datetime,
        admit: AdmitCallback = admit_all,
    ) -> tuple[Entitlement, ...]: ...

    def find_entitlements(
        self, account: Account, requests: Sequence[ReleaseRequest], now: datetime
    ) -> tuple[Entitlement, ...] | None: ...

    def quote_releases(self, account: Account, requests: Sequence[ReleaseRequest]) -> tuple[ReleaseQuote, ...]: ...

    def list_own_stored(self, account: Account, rows: Sequence[str], version: int) -> tuple[OwnRelease, ...]: ...

    def may_own_laplace(self, account: Account) -> bool: ...

    def bind_runtime_parameters(self, release: int, holes: bytes) -> bytes: ...

    def read_body(self, release: int) -> bytes | None: ...

    def begin_run(self, release: int, holder: str, seconds: float) -> RunLease: ...

    def find_run(self, release: int) -> RunLease | None: ...

    def renew_run(self, release: int, holder: str, seconds: float) -> None: ...

    def end_run(self, release: int, holder: str) -> None: ...

    def store_body(self, release: int, body: bytes, errors: tuple[Fraction, ...] | None = None) -> bytes: ...

    def store_answer(self, release: int, number: int, body: bytes) -> bytes: ...

    def read_answer(self, release: int, number: int) -> bytes | None: ...

    def count_failure(self, account: Account, release: int) -> None: ...

    def failures_of(self, account: Account, *, parent: bool = False) -> FailureCount: ...

    def resume_account(self, account: Account) -> None: ...

    def get_balance(self, account: Account) -> Balance: ...

    def list_accounts(self) -> tuple[str, ...]: ...

    def list_entries(self, account: str) -> tuple[LedgerEntry, ...]: ...

    def verify_chains(self) -> tuple[LedgerFinding, ...]: ...

    def adopt_terms(self, now: datetime, schema: str) -> None: ...

    def grant_terms(self, account: Account, now: datetime, schema: str) -> LedgerEntry | None: ...

    def list_releases(self) -> tuple[ListedRelease, ...]: ...

    def drop_old_bodies(self, before: datetime) -> int: ...

    def register_version(
        self, identity: str, facts: str, *, after: int | None = None, at: datetime | None = None
    ) -> int: ...

    def current_version(self) -> DataVersion | None: ...

    @property
    def objects(self) -> ObjectStore: ...

    def close(self) -> None: ...
