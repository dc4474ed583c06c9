"""Accounts: what the owner grants them, and what is left of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from dpsql.amounts import TextRepr, format_remaining, format_rounded_down, format_rounded_up
from dpsql.privacy.filters import Composition, Cost, CumulativeLoss, FilterLimits, admit_charge, limits_for_budget


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
