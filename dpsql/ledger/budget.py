"""What is left of an account, and the text of a refusal. It knows one account at a time, never another's figures."""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.errors import BudgetExceeded
from dpsql.figures import short_down, short_left, short_up
from dpsql.ledger.base import Account, Balance
from dpsql.privacy.accounting import Limits, Spent, epsilon_from, limits, rho_from
from dpsql.privacy.loss import UNIT, Loss

FREE = "Asking a question again that was answered before is free."


def limits_of(account: Account) -> Limits:
    return limits(account.epsilon, account.delta)


def balance_of(account: Account, spent: Spent, charges: int) -> Balance:
    most = limits_of(account)
    lost = _lost(account, spent)
    return Balance(
        account=account.name,
        epsilon=account.epsilon,
        delta=account.delta,
        pure_epsilon=spent.epsilon,
        spent_rho=spent.rho,
        limit_rho=most.rho,
        spent_delta=spent.delta,
        limit_delta=most.delta,
        spent_epsilon=lost,
        left_epsilon=max(Fraction(0), account.epsilon - lost),
        fraction_left=_fraction_left(most, spent),
        charges=charges,
    )


def _lost(account: Account, spent: Spent) -> Fraction:
    """All that was lost as one epsilon: the smaller of the two figures that the filters prove."""
    figures = [] if spent.epsilon is None else [spent.epsilon]
    if conversion_delta(account) > 0:
        figures.append(epsilon_from(spent.rho, conversion_delta(account)))
    # Neither figure exists if the owner has lowered delta to 0 after Gaussian releases: nothing is left then.
    return min(figures, default=account.epsilon)


def conversion_delta(account: Account) -> Fraction:
    """The part of the account's delta that is kept for the conversion of rho."""
    return account.delta - limits_of(account).delta


def _fraction_left(most: Limits, spent: Spent) -> Fraction:
    """Of the filter that has more to give: the part of it that is not yet spent."""
    pure = Fraction(0) if spent.epsilon is None else 1 - spent.epsilon / most.epsilon
    if not most.rho:
        return max(Fraction(0), pure)
    concentrated = 1 - max(spent.rho / most.rho, spent.delta / most.delta)
    return max(Fraction(0), pure, concentrated)


def refuse_account(account: Account, spent: Spent, loss: Loss, releases: int) -> BudgetExceeded:
    """The refusal that an account's own budget makes; its figures are that account's alone."""
    most = limits_of(account)
    if loss.epsilon is not None and not loss.delta and spent.epsilon is not None:
        return _refuse_pure(account, loss.epsilon, spent.epsilon, releases)
    if not most.rho:
        return BudgetExceeded(
            f'the budget of "{account.name}" has a delta of 0, so all of its charges must be pure',
            hint=f"SET delta = 0, and group by columns with declared values. {FREE}",
        )
    if spent.delta + loss.delta > most.delta:
        return _refuse_delta(account, loss.delta, spent.delta, most.delta)
    return _refuse_rho(account, loss, spent.rho, most.rho)


def _refuse_pure(account: Account, asked: Fraction, spent: Fraction, releases: int) -> BudgetExceeded:
    left = account.epsilon - spent
    # The parts of a statement's epsilon round up, one by one, to the ledger's unit.
    fits = left if releases == 1 else left - Fraction(releases, UNIT)
    setting = "epsilon", short_left(fits, account.epsilon)
    return _refusal(account, "asks for epsilon", short_up(asked), short_left(left, account.epsilon), setting)


def _refuse_delta(account: Account, asked: Fraction, spent: Fraction, limit: Fraction) -> BudgetExceeded:
    left = short_left(limit - spent, limit)
    # Selections take a part of a statement's delta, so a statement with this delta is certain to fit.
    return _refusal(account, "asks for a selection delta of", short_up(asked), left, ("delta", left))


def _refuse_rho(account: Account, loss: Loss, spent: Fraction, limit: Fraction) -> BudgetExceeded:
    delta, asked = conversion_delta(account), loss.rho
    if loss.epsilon is None:
        fits = _fitting_epsilon(limit - spent, delta)
    else:  # the rho of Laplace noise grows with the square of epsilon
        fits = loss.epsilon * Fraction(math.isqrt(int((limit - spent) / asked * 10**12)), 10**6)
    setting = "epsilon", short_left(fits, account.epsilon)
    counts, left = epsilon_from(asked, delta), account.epsilon - epsilon_from(spent, delta)
    if Fraction(short_up(counts)) > Fraction(short_left(left, account.epsilon)):
        return _refusal(account, "counts as epsilon", short_up(counts), short_left(left, account.epsilon), setting)
    # Too near to each other for three digits of epsilon: say it in rho, where the filter adds.
    return _refusal(account, "asks for rho", short_up(asked), short_left(limit - spent, limit), setting)


def _fitting_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """A short epsilon with rho_from(epsilon, delta) <= rho, or 0.

    It fits a statement whose own delta for the conversion is at most `delta`: less delta, less rho.
    """
    if rho <= 0:
        return Fraction(0)
    epsilon = Fraction(short_down(epsilon_from(rho, delta)))
    return epsilon if rho_from(epsilon, delta) <= rho else epsilon * Fraction(99, 100)


def _refusal(account: Account, verb: str, asked: str, left: str, setting: tuple[str, str]) -> BudgetExceeded:
    name, value = setting
    return BudgetExceeded(
        f'the statement {verb} {asked}, but only {left} of the budget of "{account.name}" is left',
        hint=FREE if value == "0" else f"A smaller charge may fit: SET {name} = {value}. {FREE}",
    )


def refuse_dataset() -> BudgetExceeded:
    """The refusal that the dataset's budget makes.

    Privacy: one fixed text, so that an analyst learns nothing of the figures of others (SOUNDNESS 9).
    """
    return BudgetExceeded("the budget of the dataset does not cover this statement", hint=f"Ask the owner. {FREE}")
