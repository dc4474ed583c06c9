"""What is left of an account, and the text of a refusal. It knows one account at a time, never another's figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from fractions import Fraction

from dpsql.amounts import format_remaining, format_rounded_down, format_rounded_up
from dpsql.errors import AccessDenied, BudgetExceeded, IntegrityError, OperationalError
from dpsql.ledger.base import Account, AccountTerms, Balance, ChargedStatement
from dpsql.privacy.filters import (
    Composition,
    Cost,
    CumulativeLoss,
    add_cost,
    admit_charge,
    cost_of,
    cumulative_epsilon,
    fraction_remaining,
)
from dpsql.privacy.loss import LOSS_DENOMINATOR, Loss, epsilon_to_rho

FREE_HINT = "Asking a question again that was answered before is free."


def balance_of(account: Account, spent: CumulativeLoss, charges: int) -> Balance:
    limits = account.terms.limits
    # There is no figure if the owner has lowered delta to 0 after Gaussian releases: nothing is left then.
    spent_epsilon = cumulative_epsilon(limits, spent, conversion_delta(account))
    spent_epsilon = account.epsilon if spent_epsilon is None else spent_epsilon
    return Balance(
        account=account.name,
        terms=account.terms,
        spent=spent,
        spent_epsilon=spent_epsilon,
        left_epsilon=max(Fraction(0), account.epsilon - spent_epsilon),
        fraction_left=fraction_remaining(limits, spent, spent_epsilon),
        charges=charges,
    )


def conversion_delta(account: Account) -> Fraction:
    """The part of the account's delta that is kept for the conversion of rho."""
    if account.composition is not Composition.ZCDP:
        return Fraction(0)
    return account.delta - account.terms.limits.delta


# --- refusals --------------------------------------------------------------------------------------------------------


def budget_exceeded_error(
    account: Account, spent: CumulativeLoss, cost: Cost, statement: ChargedStatement, releases: int
) -> BudgetExceeded:
    """The refusal that an account's own budget makes; its figures are that account's alone.

    Price and rest are parts of the budget, under the filter that refuses: epsilons of several statements do not add up
    but under basic composition, and would not fit each other.
    """
    pure = cost.loss.epsilon is not None and not cost.loss.delta and spent.epsilon is not None
    if not pure and not account.delta:
        return BudgetExceeded(
            f'the budget of "{account.name}" has a delta of 0, so all of its charges must be pure',
            hint=f"{statement.knobs[1].format(0)}, and group by columns with declared values. {FREE_HINT}",
        )
    if not pure and _needs_more_delta(account, spent, cost):
        return _delta_exceeded_error(account, spent, cost, statement)
    part, remaining = _pure_budget_parts(account, spent, cost) if pure else _mixed_budget_parts(account, spent, cost)
    fits = _find_fitting_epsilon(account, spent, cost, statement, releases)
    epsilon, delta = statement.knobs
    hints = [f"A smaller charge may fit: {epsilon.format(fits)}."] if fits != "0" else []
    rest = Fraction(0) if pure or spent.epsilon is None else account.epsilon - spent.epsilon
    if rest > 0 and format_remaining(rest, account.epsilon) != "0":
        hints.append(
            f"Pure charges may fit up to epsilon {format_remaining(rest, account.epsilon)}: {delta.format(0)}."
        )
    epsilon_requested = statement.epsilon or cost.loss.epsilon or Fraction(0)
    price = f"asks for epsilon {format_rounded_up(epsilon_requested)}, which is" if epsilon_requested else "asks for"
    return BudgetExceeded(
        f'the statement {price} {format_rounded_up(100 * part)} % of the budget of "{account.name}", and'
        f" {format_remaining(100 * remaining, Fraction(100))} % is left",
        hint=" ".join([*hints, FREE_HINT]),
    )


def _pure_budget_parts(account: Account, spent: CumulativeLoss, cost: Cost) -> tuple[Fraction, Fraction]:
    assert cost.loss.epsilon is not None and spent.epsilon is not None
    return cost.loss.epsilon / account.epsilon, 1 - spent.epsilon / account.epsilon


def _mixed_budget_parts(account: Account, spent: CumulativeLoss, cost: Cost) -> tuple[Fraction, Fraction]:
    """The price and the rest, as parts of what the filter of the account's composition has to give."""
    limits = account.terms.limits
    if limits.composition is Composition.ZCDP:
        part = max(cost.loss.rho / limits.rho, cost.loss.delta / limits.delta)
        return part, max(Fraction(0), 1 - max(spent.rho / limits.rho, spent.delta / limits.delta))
    mixed = replace(spent, epsilon=None)  # the pure filter has no room for it
    before, after = (
        cumulative_epsilon(limits, mixed, Fraction(0)),
        cumulative_epsilon(limits, add_cost(mixed, cost), Fraction(0)),
    )
    if before is None or after is None:  # a charge without an (epsilon, delta)
        return Fraction(1), Fraction(0)
    spent_part = max(before / account.epsilon, spent.basic_delta / limits.delta)
    part = max((after - before) / account.epsilon, cost.delta / limits.delta)
    return part, max(Fraction(0), 1 - spent_part)


def _needs_more_delta(account: Account, spent: CumulativeLoss, cost: Cost) -> bool:
    if account.composition is Composition.ZCDP:
        return spent.delta + cost.loss.delta > account.terms.limits.delta
    return spent.basic_delta + cost.delta > account.terms.limits.delta


def _delta_exceeded_error(
    account: Account, spent: CumulativeLoss, cost: Cost, statement: ChargedStatement
) -> BudgetExceeded:
    max_delta = account.terms.limits.delta
    if account.composition is Composition.ZCDP:
        verb, requested, remaining = "asks for a selection delta of", cost.loss.delta, max_delta - spent.delta
    else:
        verb, requested, remaining = "asks for a delta of", cost.delta, max_delta - spent.basic_delta
    remaining_text = format_remaining(remaining, max_delta)
    smaller = f"A smaller charge may fit: {statement.knobs[1].format(remaining_text)}. {FREE_HINT}"
    # Selections take a part of a statement's delta, so a statement with this delta is certain to fit.
    return BudgetExceeded(
        f"the statement {verb} {format_rounded_up(requested)}, and {remaining_text} of the delta of "
        f'"{account.name}" is left',
        hint=FREE_HINT if remaining_text == "0" else smaller,
    )


def _find_fitting_epsilon(
    account: Account, spent: CumulativeLoss, cost: Cost, statement: ChargedStatement, releases: int
) -> str:
    """The largest epsilon, in three digits, at which the same statement would be granted; "0" if there is none.

    A statement at another epsilon is charged no more than its share of it: of Laplace noise the epsilon, of Gaussian
    noise the rho, as this one's cost is to its epsilon. The parts of a statement round up, one by one, to the ledger's
    unit.
    """
    slack = Fraction(releases, LOSS_DENOMINATOR)
    requested = statement.epsilon or cost.loss.epsilon or Fraction(0)
    scaled = (
        _pure_cost_at(cost, requested, slack)
        if cost.loss.epsilon is not None
        else _gaussian_cost_at(cost, statement, slack)
    )
    if scaled is None or requested <= 0:
        return "0"
    limits = account.terms.limits

    def fits(epsilon: Fraction) -> bool:
        return admit_charge(limits, spent, scaled(epsilon)) is not None

    low, high = Fraction(0), min(requested, account.epsilon)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    rounded = format_remaining(low, account.epsilon)
    return rounded if rounded != "0" and fits(Fraction(rounded)) else "0"


def _pure_cost_at(cost: Cost, requested: Fraction, slack: Fraction) -> Callable[[Fraction], Cost]:
    pure = cost.loss.epsilon or Fraction(0)

    def scaled(epsilon: Fraction) -> Cost:
        part = epsilon / requested
        return cost_of(Loss(part * pure + slack, part**2 * cost.loss.rho + slack, cost.loss.delta))

    return scaled


def _gaussian_cost_at(cost: Cost, statement: ChargedStatement, slack: Fraction) -> Callable[[Fraction], Cost] | None:
    full_rho = epsilon_to_rho(statement.epsilon, statement.conversion) if statement.conversion > 0 else Fraction(0)
    if not full_rho:
        return None

    def scaled(epsilon: Fraction) -> Cost:
        rho = cost.loss.rho / full_rho * epsilon_to_rho(epsilon, statement.conversion)
        return cost_of(replace(cost.loss, rho=rho + slack), epsilon, statement.conversion)

    return scaled


def shared_budget_error() -> BudgetExceeded:
    """The refusal that the budget of the dataset or of a group makes.

    Privacy: one fixed text, so that an analyst learns nothing of the figures of others (SOUNDNESS 9).
    """
    return BudgetExceeded(
        "the budget that you share with others does not cover this statement", hint=f"Ask the owner. {FREE_HINT}"
    )


def require_policy(account: Account, statement: ChargedStatement) -> None:
    """The owner's limits for one statement; they are settings, not figures of anybody."""
    largest_delta = account.delta if account.largest_delta is None else account.largest_delta
    for name, requested, largest in (
        ("epsilon", statement.epsilon, account.largest_epsilon),
        ("delta", statement.delta, largest_delta),
    ):
        if largest is not None and requested > largest:
            raise BudgetExceeded(
                f"the statement asks for {name} {format_rounded_up(requested)}, and one query of "
                f'"{account.name}" may ask for at'
                f" most {format_rounded_down(largest)}",
                hint=f"SET {name} = {format_rounded_down(largest)}. {FREE_HINT}",
            )


def require_unexpired(account: Account, today: date) -> None:
    if account.expires is not None and today >= account.expires:
        raise AccessDenied(
            f'the account "{account.name}" expired on {account.expires.isoformat()}', hint="Ask the owner."
        )


def unrecorded_terms_error(account: Account, recorded: AccountTerms) -> IntegrityError:
    """The schema grants what the owner has not recorded."""
    changes = [
        f"{name} {_format_figure(was)} to {_format_figure(now)}"
        for name, was, now in (
            ("epsilon", recorded.epsilon, account.epsilon),
            ("delta", recorded.delta, account.delta),
            ("composition", recorded.composition.value, account.composition.value),
            ("parent", recorded.parent, account.parent),
        )
        if was != now
    ]
    return IntegrityError(
        f'the schema changes the budget of "{account.name}" from {", ".join(changes)}, which is not recorded',
        hint=f"Raising a budget is the owner's act: dpsql account grant SCHEMA {account.name}. Where it was lowered"
        " meanwhile, connect again.",
    )


def _format_figure(value: Fraction | str | None) -> str:
    return f"{float(value):.12g}".replace("e-0", "e-") if isinstance(value, Fraction) else value or "none"


def changed_schema_error() -> OperationalError:
    """What an analyst reads where the account of another is not as the schema that she opened has it.

    Privacy: one fixed text; the figures are others'.
    """
    return OperationalError("the schema was changed since it was opened", hint="Connect again; or ask the owner.")


def joining_refused_error(member: str, parent: str) -> BudgetExceeded:
    """For the owner, who declared it: no analyst reads it."""
    return BudgetExceeded(
        f'the budget of "{parent}" does not cover what its new member "{member}" has been charged',
        hint=f'A parent is charged the history of its members: raise its budget, or leave "{member}" out.',
    )


# How often something more would be granted.

MAX_COUNTED = 1_000_000
"""No more than so many are counted."""


def count_admitted(admits: Callable[[int], bool]) -> int:
    """The largest number, up to MANY, that is admitted; of those below it, all are.

    >>> count_admitted(lambda number: 3 * number <= 100)
    33
    >>> count_admitted(lambda number: False), count_admitted(lambda number: True)
    (0, 1000000)
    """
    low, high = 0, 1
    while high <= MAX_COUNTED and admits(high):
        low, high = high, 2 * high
    high = min(high, MAX_COUNTED + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if admits(middle) else (low, middle)
    return low
