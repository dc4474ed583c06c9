"""What a ledger is asked and what it answers. Law: pay first, durably, once for each release; no refunds.

An account may lose its budget and no more. The dataset's account is the parent of all others: a release
that nobody has paid for yet is charged to the analyst and to the dataset, in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Protocol

from dpsql.figures import short_down, short_left, short_up
from dpsql.privacy.accounting import Spent
from dpsql.privacy.loss import Loss


@dataclass(frozen=True)
class Binding:
    """What the losses in a ledger are about. It is fixed when the ledger is made: losses that protect
    different units, or under different neighbors, do not add up."""

    unit: str
    neighbors: str
    group_size: int


@dataclass(frozen=True)
class Account:
    """Who pays, and the budget: the most that may be lost."""

    name: str
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if not self.name or self.epsilon <= 0 or not 0 <= self.delta < 1:
            raise ValueError("an account has a name, an epsilon above 0 and a delta in [0, 1)")


@dataclass(frozen=True)
class Asked:
    """One release that a statement wants.

    `plan` is a hash of the canonical plan with its bounds and caps, without epsilon; `errors` is the
    noise of each bundle in the units of its values, smaller is better, of one length for one plan.
    """

    plan: str
    version: int
    loss: Loss
    errors: tuple[Fraction, ...]
    after: tuple[int, ...] = ()  # places, in the same statement, of the releases that fill its holes


@dataclass(frozen=True)
class Claim:
    """What one `Asked` became: the release that the account may have.

    `body` is the stored release, to be used as it is; None means that the engine has yet to run.
    `loss` and `errors` are the release's own, and may be better than what was asked. Whoever runs it
    may use the noise that was asked (the loss covers it), and then tells `store` its errors.
    """

    release: int
    body: bytes | None
    charged: bool
    loss: Loss
    errors: tuple[Fraction, ...]


Admit = Callable[[Sequence[Claim]], None]
"""Looks at what a statement would have, before its charge, and may raise: then nothing is charged."""


def admit_all(claims: Sequence[Claim]) -> None:
    pass


@dataclass(frozen=True)
class Charge:
    """A release as an entry names it: by its plan, not by its number, which would count others' releases."""

    plan: str
    version: int
    loss: Loss


@dataclass(frozen=True)
class Entry:
    """One charged statement in an account's chain. It tells nothing of rows, durations or outcomes.

    `by` is the account that asked (in the dataset's chain, an analyst's); `budget` the account's at that
    time; `spent` the account's sum, this entry included; `hash` is over everything else.
    """

    account: str
    number: int
    at: datetime
    by: str
    statement: str
    budget: Account
    charges: tuple[Charge, ...]
    spent: Spent
    nonce: bytes
    previous: str
    hash: str

    @property
    def losses(self) -> tuple[Loss, ...]:
        return tuple(charge.loss for charge in self.charges)


@dataclass(frozen=True)
class Version:
    """A registered data version: `identity` pins its files, `facts` is what registering found."""

    number: int
    identity: str
    facts: str


@dataclass(frozen=True)
class Balance:
    """One account's own figures.

    `pure_epsilon` is the sum of the pure losses, None once a loss was not pure. `spent_epsilon` is all
    that was lost, as one epsilon at the account's delta; `left_epsilon` the rest of the budget, which is
    less than a Gaussian release may ask for, since rho adds up and its epsilon grows more slowly.
    """

    account: str
    epsilon: Fraction
    delta: Fraction
    pure_epsilon: Fraction | None
    spent_rho: Fraction
    limit_rho: Fraction
    spent_delta: Fraction
    limit_delta: Fraction
    spent_epsilon: Fraction
    left_epsilon: Fraction
    fraction_left: Fraction
    charges: int

    def __str__(self) -> str:
        return "\n".join(_lines(self))


@dataclass(frozen=True)
class Failures:
    """Failed runs that are counted against an account; it is suspended by as many as `suspending`."""

    counted: int
    suspending: int

    @property
    def suspended(self) -> bool:
        return self.counted >= self.suspending

    def __str__(self) -> str:
        return f"{self.counted} of {self.suspending}" + (", suspended" if self.suspended else "")


def _lines(balance: Balance) -> list[str]:
    charges = "1 charge" if balance.charges == 1 else f"{balance.charges} charges"
    lines = [
        f'account "{balance.account}": {charges}',
        f"budget: epsilon {short_down(balance.epsilon)}, delta {short_down(balance.delta)}",
        f"spent:  epsilon {short_up(balance.spent_epsilon)}",
        f"left:   epsilon {short_left(balance.left_epsilon, balance.epsilon)}"
        f" ({short_left(100 * balance.fraction_left, Fraction(100))} %)",
    ]
    if balance.limit_rho:
        lines[2] += (
            f"; rho {short_up(balance.spent_rho)} of {short_down(balance.limit_rho)}"
            f"; delta of selections {short_up(balance.spent_delta)} of {short_down(balance.limit_delta)}"
        )
    return lines


class Ledger(Protocol):
    """The durable record of charges and releases, shared by threads and processes."""

    @property
    def identity(self) -> Hashable:
        """Equal where two are one: the same releases under the same numbers."""
        ...

    def purchase(
        self, account: Account, asked: Sequence[Asked], statement: str, now: datetime, admit: Admit = admit_all
    ) -> tuple[Claim, ...]: ...

    def bind_holes(self, release: int, holes: bytes) -> bytes: ...

    def stored(self, release: int) -> bytes | None: ...

    def store(self, release: int, body: bytes, errors: tuple[Fraction, ...] | None = None) -> bytes: ...

    def failed(self, account: Account, release: int) -> None: ...

    def failures_of(self, account: Account, *, parent: bool = False) -> Failures: ...

    def resume(self, account: Account) -> None: ...

    def void(self, version: int) -> None: ...

    def balance(self, account: Account) -> Balance: ...

    def entries(self, account: Account) -> tuple[Entry, ...]: ...

    def verify_chain(self, account: Account) -> None: ...

    def register_version(self, identity: str, facts: str, *, first: bool = False) -> int: ...

    def current_version(self) -> Version | None: ...

    def close(self) -> None: ...
