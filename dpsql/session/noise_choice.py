"""Which kind of noise a statement has where that is left open (`noise = auto`): of those that cost its account no
more, the more accurate.

Where all who pay add up epsilons, a statement costs the same with either kind. Where someone adds up rhos, Laplace
noise costs many times what Gaussian noise does, and one charge of it may leave no room for selected groups; so it is
taken only where the account cannot pay for Gaussian noise. What is paid for already is free, whatever its kind.

Privacy: it looks at the statement, at how those who pay add up their charges, which the schema says, and at the
account's own charges and releases. What others have spent makes no difference: where an account above refuses a charge,
the other kind is not tried instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from dpsql.amounts import format_rounded_up
from dpsql.compiler.calibrate.calibrate import NoiseKind

LARGER_ERROR = 2.0
"""A histogram of units that is paid for is a tenth or a fifth of a question; it is not worth errors larger than so."""

GAUSSIAN, LAPLACE = NoiseKind.GAUSSIAN, NoiseKind.LAPLACE


class ChoiceReason(Enum):
    PAID = "paid for"
    COVERED = "the only one that the budget covers"
    BEGUN = "its histogram is paid for"
    CHEAPER = "the cheaper"
    PRECISE = "the more accurate"


@dataclass(frozen=True)
class NoiseOption:
    """A statement with one kind of noise: whether the account has it or its pilot already, or all histograms that it
    needs first; and whether the account's own budget covers what is left to pay."""

    paid: bool
    begun: bool
    covered: bool


@dataclass(frozen=True)
class NoiseChoice:
    """`relative_error` is the error with Laplace noise as a multiple of that with Gaussian noise; None: not known."""

    kind: NoiseKind
    reason: ChoiceReason
    relative_error: float | None = None

    def describe(self, parts: Mapping[str, Fraction | None]) -> str:
        """In words. `parts` are the parts of the budget that each kind would take; None is more than is left."""
        other = LAPLACE if self.kind is GAUSSIAN else GAUSSIAN
        kind, error = self.kind.value, self.relative_error
        match self.reason:
            case ChoiceReason.PAID:
                return f"{kind}, with which it was paid for before"
            case ChoiceReason.COVERED:
                return f"{kind}, since your budget does not cover it with {other.value} noise"
            case ChoiceReason.BEGUN:
                return f"{kind}, with which its histogram of units was paid for before"
            case ChoiceReason.PRECISE:
                if error is None or _is_even(error):
                    return f"{kind}; {other.value} would be about as precise, at the same cost"
                return f"{kind}, which is {_compare(1 / error if self.kind is LAPLACE else error)}, at the same cost"
            case ChoiceReason.CHEAPER:
                price = _describe_parts(parts, self.kind, other)
                if error is None:
                    return f"{kind}; {other.value} would {price}"
                helps = error < 1 and not _is_even(error) and parts.get(other.value) is not None
                hint = f": SET noise = {other.value}" if helps else ""
                return f"{kind}; {other.value} would be {_compare(1 / error)} and {price}{hint}"


def _is_even(relative_error: float) -> bool:
    return 1 / 1.05 < relative_error < 1.05


def _compare(precision: float) -> str:
    """
    >>> [_compare(number) for number in (3.512, 1.02, 0.25, 1234.0)]
    ['about 3.5 times more precise', 'about as precise', 'about 4 times less precise', 'over 100 times more precise']
    """
    if _is_even(precision):
        return "about as precise"
    factor = max(precision, 1 / precision)
    times = f"about {factor:.2g} times" if factor < 99.5 else "over 100 times"
    return f"{times} {'more' if precision > 1 else 'less'} precise"


def _describe_parts(parts: Mapping[str, Fraction | None], kind: NoiseKind, other: NoiseKind) -> str:
    ours, theirs = parts.get(kind.value), parts.get(other.value)
    instead = "" if ours is None else f" instead of {format_rounded_up(100 * ours)} %"
    if theirs is None:
        return "take more than is left of the budget"
    return f"take {format_rounded_up(100 * theirs)} % of the budget{instead}"


def choose_noise(
    options: Mapping[NoiseKind, NoiseOption], relative_error: float | None, *, same_cost: bool
) -> NoiseChoice:
    """`relative_error` is that of Laplace noise beside Gaussian noise, before norms are chosen: so who asks again, with
    the histogram paid for, is told the same."""
    for kind in (GAUSSIAN, LAPLACE):
        if options[kind].paid:
            return NoiseChoice(kind, ChoiceReason.PAID, relative_error)
    covered = [kind for kind in (GAUSSIAN, LAPLACE) if options[kind].covered]
    if covered == [LAPLACE] or (same_cost and len(covered) == 1):
        return NoiseChoice(covered[0], ChoiceReason.COVERED, relative_error)
    if not same_cost:
        return NoiseChoice(GAUSSIAN, ChoiceReason.CHEAPER, relative_error)
    error = 1.0 if relative_error is None else relative_error
    begun = [kind for kind in (GAUSSIAN, LAPLACE) if options[kind].begun]
    if len(begun) == 1 and (error if begun[0] is LAPLACE else 1 / error) <= LARGER_ERROR:
        return NoiseChoice(begun[0], ChoiceReason.BEGUN, relative_error)
    return NoiseChoice(LAPLACE if error < 1 else GAUSSIAN, ChoiceReason.PRECISE, relative_error)
