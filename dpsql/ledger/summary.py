"""How accounts stand: what is left of each, what more of the usual could be asked, and their history.

An account's figures are its own; who may see which is decided where they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from dpsql.ledger.accountants import AccountantReport, HistoryCharge, report_accountants
from dpsql.ledger.base import Account, Balance, FailureCount, Ledger, LedgerEntry
from dpsql.ledger.budget import count_admitted
from dpsql.privacy.filters import Cost, cost_of
from dpsql.privacy.loss import Loss, epsilon_to_rho, round_down, sum_losses


@dataclass(frozen=True)
class AccountSummary:
    """One account; `more` statements of the usual (epsilon, delta) would still pass its own filter."""

    account: Account
    balance: Balance
    failures: FailureCount
    epsilon: Fraction
    delta: Fraction
    more: int


def summarize_account(
    ledger: Ledger, account: Account, epsilon: Fraction, delta: Fraction, *, parent: bool
) -> AccountSummary:
    """How an account stands, where a statement usually asks for (epsilon, delta); `parent`: others are below it."""
    if not account.delta:
        delta = Fraction(0)  # only pure statements pass
    balance = ledger.get_balance(account)
    failures = ledger.failures_of(account, parent=parent)
    return AccountSummary(
        account, balance, failures, epsilon, delta, count_more_like(balance, usual_cost(epsilon, delta))
    )


def usual_cost(epsilon: Fraction, delta: Fraction) -> Cost:
    """The loss of a statement that selects no groups: Gaussian noise for (epsilon, delta), or Laplace if delta is 0."""
    if not delta:
        pure = round_down(epsilon)  # as noise is calibrated, so that shares of a budget add up to it
        return cost_of(Loss(pure, pure**2 / 2, Fraction(0)))
    return cost_of(Loss(None, epsilon_to_rho(epsilon, delta), Fraction(0)), epsilon, delta)


def count_more_like(balance: Balance, cost: Cost) -> int:
    """How many charges like this one the account's own filter would still grant, up to a million."""
    return count_admitted(lambda count: balance.admits(cost.scaled_by(count)))


def report_history(ledger: Ledger, account: Account) -> tuple[AccountantReport, ...]:
    """What each accountant would say of the account's history, at its delta: a report, not the rule."""
    charged = (entry for entry in ledger.list_entries(account.name) if entry.charges)
    history = [
        HistoryCharge(entry.cost.epsilon, entry.cost.delta, tuple(charge.mechanisms for charge in entry.charges))
        for entry in charged
    ]
    return report_accountants(history, account.delta)


HISTORY_COLUMNS = (
    "account", "number", "time", "kind", "asked_by", "statement", "epsilon", "delta", "charged_epsilon", "charged_rho",
    "charged_delta", "budget_epsilon", "budget_delta", "composition", "data_versions", "mechanisms", "receipt",
)  # fmt: skip
"""The columns of a history: asked for is (epsilon, delta); charged_epsilon is empty where a loss was not pure."""


def history_rows(entries: Iterable[LedgerEntry]) -> Iterator[tuple[object, ...]]:
    """Entries as rows of HISTORY. Figures are floats; the exact ones stand in the ledger."""
    for entry in entries:
        loss, statement = sum_losses(entry.losses), entry.statement
        charged = (None, None, None) if not entry.charges else (
            None if loss.epsilon is None else float(loss.epsilon), float(loss.rho), float(loss.delta)
        )  # fmt: skip
        yield (
            entry.account,
            entry.number,
            entry.at.isoformat(),
            entry.kind.value,
            entry.by,
            statement.text,
            float(statement.epsilon) if entry.charges and statement.text else None,
            float(statement.delta) if entry.charges and statement.text else None,
            *charged,
            float(entry.terms.epsilon),
            float(entry.terms.delta),
            entry.terms.composition.value,
            " ".join(sorted({str(charge.version) for charge in entry.charges})),
            " ".join(charge.mechanisms for charge in entry.charges),
            str(entry.receipt),
        )
