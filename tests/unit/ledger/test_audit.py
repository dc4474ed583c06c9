"""What an audit finds that the chains alone do not show; and how much more an account could ask."""

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.ledger.audit import parse_receipt, run_audit
from dpsql.ledger.base import Account, Balance, Binding, ChargedStatement, Receipt, ReleaseRequest
from dpsql.ledger.budget import MAX_COUNTED, balance_of
from dpsql.ledger.ledger import SqlLedger
from dpsql.ledger.open import open_ledger
from dpsql.ledger.summary import count_more_like, history_rows, report_history, summarize_account, usual_cost
from dpsql.privacy.audit_record import NoisedColumns, write_release_record
from dpsql.privacy.filters import NO_CUMULATIVE_LOSS, Composition, admit_charge
from dpsql.privacy.loss import Loss
from dpsql.privacy.noise import Sensitivity, calibrate_gaussian, calibrate_laplace, noise_loss

pytestmark = pytest.mark.slow

DATASET = Account("dataset", F(8), F(1, 10**6))
ANA = Account("ana", F(4), F(1, 10**7))
NOW = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
COUNT = Sensitivity(1, 1, 1)
LAPLACE = calibrate_laplace(COUNT, F(1, 10))
GAUSSIAN = calibrate_gaussian(Sensitivity(12, 48, 4), F(1, 100))
RIGHT = [
    ReleaseRequest(
        "l", 1, noise_loss(LAPLACE, COUNT), (F(1),), mechanisms=write_release_record([NoisedColumns(1, COUNT, LAPLACE)])
    ),
    ReleaseRequest(
        "g",
        1,
        noise_loss(GAUSSIAN, Sensitivity(12, 48, 4)),
        (F(1),),
        mechanisms=write_release_record([NoisedColumns(3, Sensitivity(12, 48, 4), GAUSSIAN)]),
    ),
]


@pytest.fixture
def ledger(tmp_path: Path) -> SqlLedger:
    ledger = open_ledger(f"sqlite://{tmp_path}/a.ledger", Binding("row", "add_remove", 1), DATASET)
    ledger.register_version("files", "facts")
    ledger.purchase(ANA, RIGHT, ChargedStatement("right", F(1), F(1, 10**8), F(1, 10**8)), NOW)
    return ledger


def test_charges_that_their_mechanisms_bear_out(ledger: SqlLedger) -> None:
    found = run_audit(ledger)
    assert found.is_clean and [(c.account, c.entries, c.losses) for c in found.chains] == [
        ("ana", 2, 2),
        ("dataset", 2, 2),
    ]


@pytest.mark.parametrize("right", RIGHT, ids=["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda one: replace(one, loss=replace(one.loss, rho=one.loss.rho * F(99, 100))),
         "it is charged less than its mechanisms lose"),
        (lambda one: replace(one, loss=Loss(F(1, 1000), one.loss.rho, F(0))),
         "it is charged less than its mechanisms lose"),
        (lambda one: replace(one, loss=replace(one.loss, rho=one.loss.rho * 3)),
         "it is charged more than twice what its mechanisms lose"),
        (lambda one: replace(one, mechanisms="[]"),
         "its loss cannot be computed again: the record has names that are not known here, or lacks some"),
    ],
    ids=["less rho", "less epsilon", "much more", "unknown"],
)  # fmt: skip
def test_a_charge_that_is_not_its_loss_is_found_though_the_chains_are_intact(
    ledger: SqlLedger, right: ReleaseRequest, change: object, what: str
) -> None:
    wrong = replace(change(right), plan="wrong")  # type: ignore[operator]
    ledger.purchase(ANA, [wrong], ChargedStatement("wrong", F(1), F(1, 10**8), F(1, 10**8)), NOW)
    assert ledger.verify_chains() == ()
    assert [str(finding) for finding in run_audit(ledger).findings] == [f'"ana" 3: {what}', f'"dataset" 3: {what}']


def test_receipts(ledger: SqlLedger) -> None:
    (_, entry) = ledger.list_entries("ana")
    held = parse_receipt(str(entry.receipt))
    assert held == entry.receipt and run_audit(ledger, [entry.receipt]).is_clean
    changes: tuple[dict[str, Any], ...] = ({"number": 1}, {"number": 9}, {"hash": "0"}, {"account": "bi"})
    for change in changes:
        found = run_audit(ledger, [replace(entry.receipt, **change)])
        assert not found.is_clean and found.findings == () and found.receipts[0].what
    assert parse_receipt(f"a/b/3/{'0' * 64}") == Receipt("a/b", 3, "0" * 64)


def balances(draw_spent: int, composition: Composition, delta: F) -> Balance:
    account = Account("a", F(3), delta, composition)
    spent, limits, cost = NO_CUMULATIVE_LOSS, account.terms.limits, usual_cost(F(1, 10), delta / 1000)
    for _ in range(draw_spent):
        after = admit_charge(limits, spent, cost)
        spent = spent if after is None else after
    return balance_of(account, spent, draw_spent)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 40),
    st.sampled_from(list(Composition)),
    st.sampled_from([F(0), F(1, 10**6)]),
    st.fractions(F(1, 100), F(4), max_denominator=100),
)
def test_as_many_as_are_reported_are_granted(asked: int, composition: Composition, delta: F, epsilon: F) -> None:
    balance = balances(asked, composition, delta)
    cost = usual_cost(epsilon, delta / 1000)
    told, spent, granted, limits = count_more_like(balance, cost), balance.spent, 0, balance.terms.limits
    while (after := admit_charge(limits, spent, cost)) is not None and granted <= told:
        spent, granted = after, granted + 1
    assert told == granted


def test_counting_ends(ledger: SqlLedger) -> None:
    assert count_more_like(ledger.get_balance(DATASET), usual_cost(F(1, 10**7), F(0))) == MAX_COUNTED


def test_an_account_without_delta_is_reported_pure_statements(ledger: SqlLedger) -> None:
    pure = Account("pure", F(1), F(0))
    found = summarize_account(ledger, pure, F(1, 10), F(1, 10**9), parent=False)
    assert (found.delta, found.more) == (0, 10)


def test_a_report_is_on_the_accounts_own_charges(ledger: SqlLedger) -> None:
    told = {verdict.accountant: verdict.epsilon for verdict in report_history(ledger, ANA)}
    assert told["zCDP (CKS20)"] is not None and 0.3 < told["zCDP (CKS20)"] < 1.0
    assert {verdict.epsilon for verdict in report_history(ledger, Account("bi", F(1), F(1, 10**6)))} == {0.0}


def test_the_history_has_an_entry_for_each_act(ledger: SqlLedger) -> None:
    opened, charge = history_rows(ledger.list_entries("ana"))
    assert (opened[3], charge[3], opened[6], charge[6]) == ("opened", "charge", None, 1.0)
    assert charge[8] is None and charge[9] == pytest.approx(0.015, rel=1e-3) and charge[14] == "1"
