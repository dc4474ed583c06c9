"""Accounts: what the owner grants them, and what is left of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from dpsql.figures import Printed, short_down, short_left, short_up
from dpsql.privacy.filters import Composition, Cost, Limits, Spent, admit, limits


@dataclass(frozen=True)
class Terms:
    """What the owner grants an account: the most that may be lost, by which filter, and who pays with it."""

    epsilon: Fraction
    delta: Fraction
    composition: Composition = Composition.ZCDP
    parent: str | None = None

    @property
    def limits(self) -> Limits:
        return limits(self.epsilon, self.delta, self.composition)

    def within(self, other: Terms) -> bool:
        """Whether nothing is granted that the other terms do not grant."""
        return (
            self.epsilon <= other.epsilon and self.delta <= other.delta and self.composition is other.composition
        )


@dataclass(frozen=True)
class Account:
    """Who pays, its budget, and the owner's policy for single statements. No `parent`: the dataset, if it is not it."""

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
    def terms(self) -> Terms:
        return Terms(self.epsilon, self.delta, self.composition, self.parent)


DATASET = "dataset"
"""The account of all analysts together; no analyst can have this name."""


@dataclass(frozen=True)
class Balance(Printed):
    """One account's own figures.

    `pure_epsilon` is the sum of the pure losses, None once a loss was not pure. `spent_epsilon` is all
    that was lost, as one epsilon at the account's delta; `left_epsilon` the rest of the budget, which is
    less than a Gaussian release may ask for, since rho adds up and its epsilon grows more slowly.
    """

    account: str
    terms: Terms
    spent: Spent
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
        """Of selections under zCDP, of all charges under basic and advanced composition."""
        return self.spent.delta if self.terms.composition is Composition.ZCDP else self.spent.basic_delta

    @property
    def limit_delta(self) -> Fraction:
        return self.terms.limits.delta

    def admits(self, cost: Cost) -> bool:
        """Whether the account's own filter would grant it."""
        return admit(self.terms.limits, self.spent, cost) is not None

    @property
    def percent_left(self) -> str:
        return f"{short_left(100 * self.fraction_left, Fraction(100))} %"

    @property
    def left_text(self) -> str:
        """For people, such as: ana's budget: 60.5 % (epsilon 1.58 of 4)."""
        whose = "the dataset's" if self.account == DATASET else f"{self.account}'s"
        left = short_left(self.left_epsilon, self.epsilon)
        return f"{whose} budget: {self.percent_left} (epsilon {left} of {short_up(self.epsilon)})"

    def __repr__(self) -> str:
        """In figures for people; the fields are exact."""
        left = short_left(self.left_epsilon, self.epsilon)
        return (
            f"Balance(account={self.account!r}, epsilon={short_up(self.epsilon)}, delta={short_up(self.delta)}, "
            f"spent_epsilon={short_up(self.spent_epsilon)}, left_epsilon={left}, charges={self.charges})"
        )

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
        lines[2] += f"; rho {short_up(balance.spent_rho)} of {short_down(balance.limit_rho)}; delta of selections"
    elif balance.limit_delta:
        lines[1] += f", {balance.terms.composition.value} composition"
        lines[2] += "; delta"
    if balance.limit_delta:
        lines[2] += f" {short_up(balance.spent_delta)} of {short_down(balance.limit_delta)}"
    return lines
