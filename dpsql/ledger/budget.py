"""What is left of an account, and the text of a refusal. It knows one account at a time, never another's figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from fractions import Fraction

from dpsql.errors import AccessDenied, BudgetExceeded, IntegrityError, OperationalError
from dpsql.figures import short_down, short_left, short_up
from dpsql.ledger.base import Account, Balance, Statement, Terms
from dpsql.privacy.accounting import rho_from
from dpsql.privacy.filters import Composition, Cost, Spent, add, admit, cost_of, lost, part_left
from dpsql.privacy.loss import UNIT, Loss

FREE = "Asking a question again that was answered before is free."


def balance_of(account: Account, spent: Spent, charges: int) -> Balance:
    most = account.terms.limits
    # There is no figure if the owner has lowered delta to 0 after Gaussian releases: nothing is left then.
    gone = lost(most, spent, conversion_delta(account))
    gone = account.epsilon if gone is None else gone
    return Balance(
        account=account.name,
        terms=account.terms,
        spent=spent,
        spent_epsilon=gone,
        left_epsilon=max(Fraction(0), account.epsilon - gone),
        fraction_left=part_left(most, spent, gone),
        charges=charges,
    )


def conversion_delta(account: Account) -> Fraction:
    """The part of the account's delta that is kept for the conversion of rho."""
    if account.composition is not Composition.ZCDP:
        return Fraction(0)
    return account.delta - account.terms.limits.delta


# --- refusals --------------------------------------------------------------------------------------------------------


def refuse_account(account: Account, spent: Spent, cost: Cost, statement: Statement, releases: int) -> BudgetExceeded:
    """The refusal that an account's own budget makes; its figures are that account's alone.

    Price and rest are parts of the budget, under the filter that refuses: epsilons of several statements do not add up
    but under basic composition, and would not fit each other.
    """
    pure = cost.loss.epsilon is not None and not cost.loss.delta and spent.epsilon is not None
    if not pure and not account.delta:
        return BudgetExceeded(
            f'the budget of "{account.name}" has a delta of 0, so all of its charges must be pure',
            hint=f"{statement.knobs[1].format(0)}, and group by columns with declared values. {FREE}",
        )
    if not pure and _short_of_delta(account, spent, cost):
        return _refuse_delta(account, spent, cost, statement)
    part, left = _pure_parts(account, spent, cost) if pure else _mixed_parts(account, spent, cost)
    fits = _fitting(account, spent, cost, statement, releases)
    epsilon, delta = statement.knobs
    hints = [f"A smaller charge may fit: {epsilon.format(fits)}."] if fits != "0" else []
    rest = Fraction(0) if pure or spent.epsilon is None else account.epsilon - spent.epsilon
    if rest > 0 and short_left(rest, account.epsilon) != "0":
        hints.append(f"Pure charges may fit up to epsilon {short_left(rest, account.epsilon)}: {delta.format(0)}.")
    asked = statement.epsilon or cost.loss.epsilon or Fraction(0)
    price = f"asks for epsilon {short_up(asked)}, which is" if asked else "asks for"
    return BudgetExceeded(
        f'the statement {price} {short_up(100 * part)} % of the budget of "{account.name}", and'
        f" {short_left(100 * left, Fraction(100))} % is left",
        hint=" ".join([*hints, FREE]),
    )


def _pure_parts(account: Account, spent: Spent, cost: Cost) -> tuple[Fraction, Fraction]:
    assert cost.loss.epsilon is not None and spent.epsilon is not None
    return cost.loss.epsilon / account.epsilon, 1 - spent.epsilon / account.epsilon


def _mixed_parts(account: Account, spent: Spent, cost: Cost) -> tuple[Fraction, Fraction]:
    """The price and the rest, as parts of what the filter of the account's composition has to give."""
    most = account.terms.limits
    if most.composition is Composition.ZCDP:
        part = max(cost.loss.rho / most.rho, cost.loss.delta / most.delta)
        return part, max(Fraction(0), 1 - max(spent.rho / most.rho, spent.delta / most.delta))
    mixed = replace(spent, epsilon=None)  # the pure filter has no room for it
    before, after = lost(most, mixed, Fraction(0)), lost(most, add(mixed, cost), Fraction(0))
    if before is None or after is None:  # a charge without an (epsilon, delta)
        return Fraction(1), Fraction(0)
    gone = max(before / account.epsilon, spent.basic_delta / most.delta)
    part = max((after - before) / account.epsilon, cost.delta / most.delta)
    return part, max(Fraction(0), 1 - gone)


def _short_of_delta(account: Account, spent: Spent, cost: Cost) -> bool:
    if account.composition is Composition.ZCDP:
        return spent.delta + cost.loss.delta > account.terms.limits.delta
    return spent.basic_delta + cost.delta > account.terms.limits.delta


def _refuse_delta(account: Account, spent: Spent, cost: Cost, statement: Statement) -> BudgetExceeded:
    most = account.terms.limits.delta
    if account.composition is Composition.ZCDP:
        verb, asked, left = "asks for a selection delta of", cost.loss.delta, most - spent.delta
    else:
        verb, asked, left = "asks for a delta of", cost.delta, most - spent.basic_delta
    shown = short_left(left, most)
    smaller = f"A smaller charge may fit: {statement.knobs[1].format(shown)}. {FREE}"
    # Selections take a part of a statement's delta, so a statement with this delta is certain to fit.
    return BudgetExceeded(
        f'the statement {verb} {short_up(asked)}, and {shown} of the delta of "{account.name}" is left',
        hint=FREE if shown == "0" else smaller,
    )


def _fitting(account: Account, spent: Spent, cost: Cost, statement: Statement, releases: int) -> str:
    """The largest epsilon, in three digits, at which the same statement would be granted; "0" if there is none.

    A statement at another epsilon is charged no more than its share of it: of Laplace noise the epsilon, of Gaussian
    noise the rho, as this one's cost is to its epsilon. The parts of a statement round up, one by one, to the ledger's
    unit.
    """
    slack = Fraction(releases, UNIT)
    asked = statement.epsilon or cost.loss.epsilon or Fraction(0)
    scaled = _pure_at(cost, asked, slack) if cost.loss.epsilon is not None else _gaussian_at(cost, statement, slack)
    if scaled is None or asked <= 0:
        return "0"
    most = account.terms.limits

    def fits(epsilon: Fraction) -> bool:
        return admit(most, spent, scaled(epsilon)) is not None

    low, high = Fraction(0), min(asked, account.epsilon)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    shown = short_left(low, account.epsilon)
    return shown if shown != "0" and fits(Fraction(shown)) else "0"


def _pure_at(cost: Cost, asked: Fraction, slack: Fraction) -> Callable[[Fraction], Cost]:
    pure = cost.loss.epsilon or Fraction(0)

    def scaled(epsilon: Fraction) -> Cost:
        part = epsilon / asked
        return cost_of(Loss(part * pure + slack, part**2 * cost.loss.rho + slack, cost.loss.delta))

    return scaled


def _gaussian_at(cost: Cost, statement: Statement, slack: Fraction) -> Callable[[Fraction], Cost] | None:
    whole = rho_from(statement.epsilon, statement.conversion) if statement.conversion > 0 else Fraction(0)
    if not whole:
        return None

    def scaled(epsilon: Fraction) -> Cost:
        rho = cost.loss.rho / whole * rho_from(epsilon, statement.conversion)
        return cost_of(replace(cost.loss, rho=rho + slack), epsilon, statement.conversion)

    return scaled


def refuse_shared() -> BudgetExceeded:
    """The refusal that the budget of the dataset or of a group makes.

    Privacy: one fixed text, so that an analyst learns nothing of the figures of others (SOUNDNESS 9).
    """
    return BudgetExceeded(
        "the budget that you share with others does not cover this statement", hint=f"Ask the owner. {FREE}"
    )


def require_policy(account: Account, statement: Statement) -> None:
    """The owner's limits for one statement; they are settings, not figures of anybody."""
    largest_delta = account.delta if account.largest_delta is None else account.largest_delta
    for name, asked, most in (
        ("epsilon", statement.epsilon, account.largest_epsilon),
        ("delta", statement.delta, largest_delta),
    ):
        if most is not None and asked > most:
            raise BudgetExceeded(
                f'the statement asks for {name} {short_up(asked)}, and one query of "{account.name}" may ask for at'
                f" most {short_down(most)}",
                hint=f"SET {name} = {short_down(most)}. {FREE}",
            )


def require_unexpired(account: Account, today: date) -> None:
    if account.expires is not None and today >= account.expires:
        raise AccessDenied(
            f'the account "{account.name}" expired on {account.expires.isoformat()}', hint="Ask the owner."
        )


def refuse_terms(account: Account, recorded: Terms) -> IntegrityError:
    """The schema grants what the owner has not recorded."""
    changes = [
        f"{name} {_figure(was)} to {_figure(now)}"
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


def _figure(value: Fraction | str | None) -> str:
    return f"{float(value):.12g}".replace("e-0", "e-") if isinstance(value, Fraction) else value or "none"


def refuse_changed_schema() -> OperationalError:
    """What an analyst reads where the account of another is not as the schema that she opened has it.

    Privacy: one fixed text; the figures are others'.
    """
    return OperationalError("the schema was changed since it was opened", hint="Connect again; or ask the owner.")


def refuse_joining(member: str, parent: str) -> BudgetExceeded:
    """For the owner, who declared it: no analyst reads it."""
    return BudgetExceeded(
        f'the budget of "{parent}" does not cover what its new member "{member}" has been charged',
        hint=f'A parent is charged the history of its members: raise its budget, or leave "{member}" out.',
    )
