"""Charging, redeeming, storing: the protocol of SOUNDNESS 9, in SQLite and in PostgreSQL."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from dpsql.errors import AccountSuspended, BudgetExceeded, InternalError, StaleData
from dpsql.ledger.base import Account, Binding, ChargedStatement, ReleaseRequest
from dpsql.ledger.ledger import SqlLedger
from dpsql.privacy.filters import limits_for_budget
from dpsql.privacy.loss import Loss
from tests.support.ledgers import Shelf, charges

BINDING = Binding("patients.patient_id", "add_remove", 1)
DATASET = Account("dataset", Fraction(8), Fraction(1, 10**7))
ANA = Account("ana", Fraction(1), Fraction(1, 10**8))
BEN = Account("ben", Fraction(1), Fraction(1, 10**8))
PURE = Account("pure", Fraction(1), Fraction(0))
NOW = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)


def laplace(epsilon: Fraction | str) -> Loss:
    return Loss(Fraction(epsilon), Fraction(epsilon) ** 2 / 2, Fraction(0))


def gaussian(rho: Fraction | str, delta: Fraction | str = "0") -> Loss:
    return Loss(None, Fraction(rho), Fraction(delta))


def ask(plan: str, loss: Loss, *errors: int, version: int = 1) -> ReleaseRequest:
    return ReleaseRequest(plan, version, loss, tuple(map(Fraction, errors or (10,))))


def make(shelf: Shelf, dataset: Account = DATASET, name: str = "a", **settings: object) -> SqlLedger:
    ledger = shelf.open(BINDING, dataset, name, **settings)
    if ledger.current_version() is None:
        ledger.register_version("files", "facts")
    return ledger


@pytest.fixture
def ledger(shelf: Shelf) -> SqlLedger:
    return make(shelf)


def test_a_new_release_is_charged_to_the_analyst_and_to_the_dataset(ledger: SqlLedger) -> None:
    (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/10"))], ChargedStatement("SELECT 1"), NOW)
    assert (claim.body, claim.charged, claim.loss, claim.errors) == (None, True, laplace("1/10"), (Fraction(10),))
    for account in (ANA, DATASET):
        assert ledger.get_balance(account).pure_epsilon == laplace("1/10").epsilon
    assert ledger.get_balance(BEN).charges == 0


def test_the_charge_is_there_for_the_next_process(shelf: Shelf) -> None:
    make(shelf).purchase(ANA, [ask("p", gaussian("1/100", "1e-10"))], ChargedStatement("SELECT 1"), NOW)
    balance = make(shelf).get_balance(ANA)
    assert (balance.spent_rho, balance.spent_delta) == (gaussian("1/100").rho, gaussian("0", "1e-10").delta)
    assert balance.pure_epsilon is None


def test_a_crash_before_the_release_is_stored_is_redeemed_by_a_repeat(shelf: Shelf) -> None:
    (first,) = make(shelf).purchase(ANA, [ask("p", laplace("1/10"))], ChargedStatement("SELECT 1"), NOW)
    ledger = make(shelf)
    (again,) = ledger.purchase(ANA, [ask("p", laplace("1/10"))], ChargedStatement("SELECT 1"), NOW)
    assert (again.release, again.body, again.charged) == (first.release, None, False)
    assert ledger.get_balance(ANA).charges == ledger.get_balance(DATASET).charges == 1


def test_a_repeat_is_answered_free_even_with_the_budget_spent(ledger: SqlLedger) -> None:
    (claim,) = ledger.purchase(PURE, [ask("p", laplace("1"))], ChargedStatement("SELECT 1"), NOW)
    ledger.store_body(claim.release, b"rows")
    with pytest.raises(BudgetExceeded):
        ledger.purchase(PURE, [ask("q", laplace("1/1000"))], ChargedStatement("SELECT 2"), NOW)
    (again,) = ledger.purchase(PURE, [ask("p", laplace("1"))], ChargedStatement("SELECT 1"), NOW)
    assert (again.body, again.charged) == (b"rows", False)


def test_two_runs_of_one_charge_deliver_one_body(ledger: SqlLedger) -> None:
    (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/10"))], ChargedStatement("SELECT 1"), NOW)
    bodies = [bytes([i]) * 1000 for i in range(8)]
    delivered: list[bytes] = []
    threads = [
        threading.Thread(target=lambda b=b: delivered.append(ledger.store_body(claim.release, b))) for b in bodies
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(delivered) == 8 and len(set(delivered)) == 1 and delivered[0] in bodies


def test_runtime_parameters_are_bound_once(ledger: SqlLedger) -> None:
    (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/10"))], ChargedStatement("SELECT 1"), NOW)
    assert ledger.bind_runtime_parameters(claim.release, b"3") == b"3"
    assert ledger.bind_runtime_parameters(claim.release, b"4") == b"3"
    assert ledger.store_body(claim.release, b"rows") == b"rows"
    assert ledger.bind_runtime_parameters(claim.release, b"5") == b"3"
    assert ledger.store_body(claim.release, b"other rows") == b"rows"


class TestWhichReleaseServes:
    def test_a_more_accurate_release_of_the_same_account_is_free(self, ledger: SqlLedger) -> None:
        (fine,) = ledger.purchase(ANA, [ask("p", laplace("1/5"), 5, 7)], ChargedStatement("fine"), NOW)
        ledger.store_body(fine.release, b"fine")
        (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/10"), 10, 7)], ChargedStatement("coarse"), NOW)
        assert (claim.release, claim.body, claim.charged) == (fine.release, b"fine", False)
        assert claim.errors == fine.errors == (Fraction(5), Fraction(7))

    def test_one_with_any_larger_error_is_not(self, ledger: SqlLedger) -> None:
        (first,) = ledger.purchase(ANA, [ask("p", laplace("1/5"), 5, 7)], ChargedStatement("a"), NOW)
        ledger.store_body(first.release, b"rows")
        (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/5"), 10, 6)], ChargedStatement("b"), NOW)
        assert claim.charged and claim.release != first.release

    def test_a_stored_one_goes_before_a_better_one_that_has_not_run(self, ledger: SqlLedger) -> None:
        (stored,) = ledger.purchase(ANA, [ask("p", laplace("1/10"), 10)], ChargedStatement("a"), NOW)
        ledger.store_body(stored.release, b"rows")
        (paid,) = ledger.purchase(ANA, [ask("p", laplace("1/5"), 5)], ChargedStatement("b"), NOW)
        (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/20"), 20)], ChargedStatement("c"), NOW)
        assert paid.charged and claim.release == stored.release

    def test_among_stored_ones_the_smallest_error(self, ledger: SqlLedger) -> None:
        for epsilon, error in (("1/10", 10), ("1/5", 5)):
            (claim,) = ledger.purchase(ANA, [ask("p", laplace(epsilon), error)], ChargedStatement("a"), NOW)
            ledger.store_body(claim.release, b"error %d" % error)
        (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/20"), 20)], ChargedStatement("c"), NOW)
        assert claim.body == b"error 5"

    def test_one_that_has_not_run_must_cover_the_requested_loss(self, ledger: SqlLedger) -> None:
        """Laplace with a larger error may cost more rho than Gaussian with a smaller one."""
        (claim,) = ledger.purchase(ANA, [ask("p", gaussian("1/1000"), 10)], ChargedStatement("gaussian"), NOW)
        (other,) = ledger.purchase(ANA, [ask("p", laplace("1/10"), 11)], ChargedStatement("laplace"), NOW)
        assert other.charged
        ledger.store_body(claim.release, b"rows")
        (served,) = ledger.purchase(ANA, [ask("p", laplace("1/9"), 11)], ChargedStatement("laplace"), NOW)
        assert (served.body, served.charged) == (b"rows", False)

    def test_one_that_has_not_run_serves_at_its_own_price_only(self, ledger: SqlLedger) -> None:
        """Others may have paid for it: it must not be run with more noise than they have bought."""
        (fine,) = ledger.purchase(ANA, [ask("p", laplace("1/5"), 5)], ChargedStatement("a"), NOW)
        ledger.purchase(BEN, [ask("p", laplace("1/5"), 5)], ChargedStatement("a"), NOW)
        (coarse,) = ledger.purchase(ANA, [ask("p", laplace("1/10"), 10)], ChargedStatement("b"), NOW)
        assert coarse.charged and coarse.release != fine.release
        (again,) = ledger.purchase(BEN, [ask("p", laplace("1/5"), 5)], ChargedStatement("a"), NOW)
        assert (again.release, again.charged) == (fine.release, False)

    def test_another_data_version_or_plan_does_not(self, ledger: SqlLedger) -> None:
        claims = [ledger.purchase(ANA, [ask(plan, laplace("1/10"))], ChargedStatement("a"), NOW)[0] for plan in "pq"]
        ledger.register_version("files", "facts")
        claims += ledger.purchase(ANA, [ask("p", laplace("1/10"), version=2)], ChargedStatement("a"), NOW)
        assert all(claim.charged for claim in claims) and len({claim.release for claim in claims}) == 3

    def test_one_plan_has_one_number_of_bundles(self, ledger: SqlLedger) -> None:
        ledger.purchase(ANA, [ask("p", laplace("1/10"), 10, 10)], ChargedStatement("a"), NOW)
        with pytest.raises(InternalError):
            ledger.purchase(ANA, [ask("p", laplace("1/10"), 10)], ChargedStatement("a"), NOW)


class TestAnotherAnalyst:
    def test_pays_from_the_analysts_own_account_only(self, ledger: SqlLedger) -> None:
        (first,) = ledger.purchase(ANA, [ask("p", laplace("1/10"))], ChargedStatement("a"), NOW)
        ledger.store_body(first.release, b"rows")
        (claim,) = ledger.purchase(BEN, [ask("p", laplace("1/10"))], ChargedStatement("a"), NOW)
        assert (claim.release, claim.body, claim.charged) == (first.release, b"rows", True)
        assert ledger.get_balance(BEN).charges == ledger.get_balance(DATASET).charges == 1

    @pytest.mark.parametrize(
        "other", [ask("p", laplace("1/20"), 10), ask("p", laplace("1/10"), 11), ask("p", gaussian("1/200"), 10)]
    )
    def test_never_gets_a_release_at_another_price(self, ledger: SqlLedger, other: ReleaseRequest) -> None:
        (first,) = ledger.purchase(ANA, [ask("p", laplace("1/10"), 10)], ChargedStatement("a"), NOW)
        ledger.store_body(first.release, b"rows")
        (claim,) = ledger.purchase(BEN, [other], ChargedStatement("a"), NOW)
        assert claim.release != first.release and claim.body is None and claim.loss == other.loss

    def test_is_refused_a_stored_release_that_exceeds_the_budget(self, ledger: SqlLedger) -> None:
        (first,) = ledger.purchase(ANA, [ask("p", laplace("1"))], ChargedStatement("a"), NOW)
        ledger.store_body(first.release, b"rows")
        ledger.purchase(PURE, [ask("q", laplace("1/2"))], ChargedStatement("b"), NOW)
        with pytest.raises(BudgetExceeded):
            ledger.purchase(PURE, [ask("p", laplace("1"))], ChargedStatement("a"), NOW)

    def test_the_dataset_as_the_only_account_pays_once(self, ledger: SqlLedger) -> None:
        ledger.purchase(DATASET, [ask("p", laplace("1/10"))], ChargedStatement("a"), NOW)
        assert ledger.get_balance(DATASET).charges == 1
        assert ledger.get_balance(DATASET).pure_epsilon == laplace("1/10").epsilon
        ledger.purchase(ANA, [ask("q", laplace("1/10"))], ChargedStatement("b"), NOW)
        (claim,) = ledger.purchase(DATASET, [ask("q", laplace("1/10"))], ChargedStatement("b"), NOW)
        assert not claim.charged and ledger.get_balance(DATASET).charges == 2

    def test_the_datasets_account_has_one_budget(self, ledger: SqlLedger) -> None:
        with pytest.raises(InternalError):
            ledger.purchase(Account("dataset", Fraction(99), Fraction(0)), [], ChargedStatement("a"), NOW)


class TestStatement:
    def test_several_releases_are_charged_in_one_entry(self, ledger: SqlLedger) -> None:
        asked = [ask("p", laplace("1/10")), ask("q", laplace("1/5")), ask("p", laplace("1/10"))]
        claims = ledger.purchase(ANA, asked, ChargedStatement("a"), NOW)
        assert [claim.charged for claim in claims] == [True, True, False]
        assert claims[0].release == claims[2].release != claims[1].release
        (entry,) = charges(ledger, ANA)
        assert sorted(entry.losses, key=lambda loss: loss.rho) == [laplace("1/10"), laplace("1/5")]

    def test_the_same_plan_at_two_errors_is_two_releases_until_the_finer_is_stored(self, ledger: SqlLedger) -> None:
        asked = [ask("p", laplace("1/10"), 10), ask("p", laplace("1/5"), 5)]
        coarse, fine = ledger.purchase(ANA, asked, ChargedStatement("a"), NOW)
        assert coarse.release != fine.release and coarse.charged and fine.charged
        ledger.store_body(fine.release, b"rows")
        assert {claim.release for claim in ledger.purchase(ANA, asked, ChargedStatement("a"), NOW)} == {fine.release}

    def test_only_what_is_not_paid_yet_is_charged(self, ledger: SqlLedger) -> None:
        ledger.purchase(PURE, [ask("p", laplace("1/2"))], ChargedStatement("a"), NOW)
        claims = ledger.purchase(PURE, [ask("p", laplace("1/2")), ask("q", laplace("1/2"))], ChargedStatement("b"), NOW)
        assert [claim.charged for claim in claims] == [False, True]
        assert ledger.get_balance(PURE).left_epsilon == 0

    def test_a_refused_one_leaves_nothing_behind(self, ledger: SqlLedger) -> None:
        with pytest.raises(BudgetExceeded):
            ledger.purchase(PURE, [ask("p", laplace("1/2")), ask("q", laplace("51/100"))], ChargedStatement("a"), NOW)
        assert ledger.get_balance(PURE).charges == ledger.get_balance(DATASET).charges == 0
        (claim,) = ledger.purchase(PURE, [ask("p", laplace("1/2"))], ChargedStatement("a"), NOW)
        assert claim.charged

    def test_a_client_may_send_lone_surrogates(self, ledger: SqlLedger) -> None:
        ledger.purchase(ANA, [ask("p", laplace("1/10"))], ChargedStatement("SELECT '\ud800'"), NOW)
        assert charges(ledger, ANA)[0].statement.text == "SELECT '\\ud800'"
        assert ledger.verify_chains() == ()


class TestBudget:
    def test_ten_tenths_are_one(self, ledger: SqlLedger) -> None:
        """A tenth is no multiple of 2^-80: whoever calibrates rounds it down first, and then ten of them fit."""
        tenth = Loss(Fraction((1 << 80) // 10, 1 << 80), Fraction(1, 200), Fraction(0))
        for i in range(10):
            ledger.purchase(PURE, [ask(f"p{i}", tenth)], ChargedStatement("a"), NOW)
        with pytest.raises(BudgetExceeded):
            ledger.purchase(PURE, [ask("more", tenth)], ChargedStatement("a"), NOW)
        assert ledger.get_balance(PURE).charges == 10

    def test_eight_eighths_are_exactly_one_and_the_least_more_is_refused(self, ledger: SqlLedger) -> None:
        for i in range(8):
            ledger.purchase(PURE, [ask(f"p{i}", laplace("1/8"))], ChargedStatement("a"), NOW)
        assert ledger.get_balance(PURE).left_epsilon == ledger.get_balance(PURE).fraction_left == 0
        with pytest.raises(BudgetExceeded):
            ledger.purchase(PURE, [ask("more", laplace(Fraction(1, 1 << 80)))], ChargedStatement("a"), NOW)

    def test_either_filter_may_grant(self, ledger: SqlLedger) -> None:
        most = limits_for_budget(ANA.epsilon, ANA.delta)
        ledger.purchase(ANA, [ask("half", laplace("1/2"))], ChargedStatement("pure: rho is above its limit"), NOW)
        assert ledger.get_balance(ANA).spent_rho > most.rho
        with pytest.raises(BudgetExceeded):
            ledger.purchase(ANA, [ask("g", gaussian("1/10000"))], ChargedStatement("pure no longer"), NOW)
        for i in range(120):
            ledger.purchase(BEN, [ask(f"p{i}", laplace("1/100"))], ChargedStatement("the sum passes 1, by rho"), NOW)
        assert ledger.get_balance(BEN).pure_epsilon > 1 >= ledger.get_balance(BEN).spent_epsilon  # type: ignore[operator]

    def test_rho_exactly_spent(self, ledger: SqlLedger) -> None:
        most = limits_for_budget(ANA.epsilon, ANA.delta)
        ledger.purchase(ANA, [ask("p", gaussian(most.rho))], ChargedStatement("all"), NOW)
        with pytest.raises(BudgetExceeded):
            ledger.purchase(ANA, [ask("q", gaussian(Fraction(1, 1 << 80)))], ChargedStatement("more"), NOW)
        assert ledger.get_balance(ANA).fraction_left == 0

    def test_the_analysts_refusal_says_what_is_left_and_what_would_fit(self, ledger: SqlLedger) -> None:
        ledger.purchase(PURE, [ask("p", laplace("2/3"))], ChargedStatement("a"), NOW)
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.purchase(PURE, [ask("q", laplace("1/2"))], ChargedStatement("b"), NOW)
        error = refusal.value
        expected = 'the statement asks for epsilon 0.5, which is 50 % of the budget of "pure", and 33.3 % is left'
        assert error.message == expected and error.sqlstate == "53400"
        assert error.hint is not None and "SET epsilon = 0.333." in error.hint
        ledger.purchase(PURE, [ask("q", laplace("0.333"))], ChargedStatement("b"), NOW)

    def test_the_dataset_refuses_with_one_fixed_text(self, shelf: Shelf) -> None:
        texts = set()
        cases = [("1", "1/2", "3/5"), ("1/4", "1/4", "1/100"), ("1/5", "1/10", "1")]
        for i, (budget, spent, asked) in enumerate(cases):
            ledger = make(shelf, Account("dataset", Fraction(budget), Fraction(0)), str(i))
            ledger.purchase(BEN, [ask("p", laplace(spent))], ChargedStatement("a"), NOW)
            with pytest.raises(BudgetExceeded) as refusal:
                ledger.purchase(ANA, [ask("q", laplace(asked))], ChargedStatement("b"), NOW)
            texts.add(str(refusal.value))
            assert ledger.get_balance(ANA).charges == 0
        (text,) = texts
        assert not re.search(r"\d", text)

    def test_the_analysts_refusal_comes_before_the_datasets(self, shelf: Shelf) -> None:
        ledger = make(shelf, Account("dataset", Fraction(1, 10), Fraction(0)))
        with pytest.raises(BudgetExceeded, match='"pure"'):
            ledger.purchase(PURE, [ask("q", laplace("2"))], ChargedStatement("b"), NOW)


class TestFailures:
    def fail(self, ledger: SqlLedger, account: Account, plan: str) -> None:
        (claim,) = ledger.purchase(account, [ask(plan, laplace("1/100"))], ChargedStatement("a"), NOW)
        ledger.count_failure(account, claim.release)

    def test_three_suspend_the_account_until_it_is_resumed(self, ledger: SqlLedger) -> None:
        for _ in range(3):
            self.fail(ledger, ANA, "p")
        with pytest.raises(AccountSuspended, match='"ana"'):
            ledger.purchase(ANA, [ask("q", laplace("1/100"))], ChargedStatement("a"), NOW)
        ledger.purchase(BEN, [ask("q", laplace("1/100"))], ChargedStatement("a"), NOW)
        ledger.resume_account(ANA)
        ledger.purchase(ANA, [ask("q", laplace("1/100"))], ChargedStatement("a"), NOW)

    def test_a_suspended_account_is_not_served_what_it_paid_for_either(self, ledger: SqlLedger) -> None:
        paid = [ask("stored", laplace("1/100"))]
        (claim,) = ledger.purchase(ANA, paid, ChargedStatement("a"), NOW)
        ledger.store_body(claim.release, b"rows")
        for _ in range(3):
            self.fail(ledger, ANA, "p")
        with pytest.raises(AccountSuspended, match='"ana"'):
            ledger.find_entitlements(ANA, paid, NOW)
        ledger.resume_account(ANA)
        served = ledger.find_entitlements(ANA, paid, NOW)
        assert served is not None and served[0].body == b"rows"

    def test_a_success_in_between_does_not_reset_the_count(self, ledger: SqlLedger) -> None:
        for plan in "pqr":
            self.fail(ledger, ANA, plan)
            if plan != "r":
                (claim,) = ledger.purchase(ANA, [ask(plan, laplace("1/100"))], ChargedStatement("a"), NOW)
                ledger.store_body(claim.release, b"rows")
        with pytest.raises(AccountSuspended):
            ledger.purchase(ANA, [ask("p", laplace("1/100"))], ChargedStatement("a"), NOW)

    def test_of_all_accounts_together_suspend_the_dataset(self, shelf: Shelf) -> None:
        ledger = make(shelf, dataset_failures=4)
        for account in (ANA, BEN):
            for plan in "pq":
                self.fail(ledger, account, plan)
        with pytest.raises(AccountSuspended) as refusal:
            ledger.purchase(PURE, [ask("p", laplace("1/100"))], ChargedStatement("a"), NOW)
        assert refusal.value.message == "the dataset is suspended"
        ledger.resume_account(DATASET)
        ledger.purchase(PURE, [ask("p", laplace("1/100"))], ChargedStatement("a"), NOW)

    def test_the_dataset_as_the_only_account_has_an_accounts_limit(self, ledger: SqlLedger) -> None:
        for plan in "pqr":
            self.fail(ledger, DATASET, plan)
        with pytest.raises(AccountSuspended):
            ledger.purchase(DATASET, [ask("p", laplace("1/100"))], ChargedStatement("a"), NOW)

    def test_only_a_payer_can_count_a_failure(self, ledger: SqlLedger) -> None:
        (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/100"))], ChargedStatement("a"), NOW)
        with pytest.raises(InternalError):
            ledger.count_failure(BEN, claim.release)

    def test_never_enter_the_entries(self, ledger: SqlLedger) -> None:
        (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/100"))], ChargedStatement("a"), NOW)
        before = charges(ledger, ANA), charges(ledger, DATASET), ledger.get_balance(ANA)
        ledger.count_failure(ANA, claim.release)
        ledger.store_body(claim.release, b"rows")
        assert (charges(ledger, ANA), charges(ledger, DATASET), ledger.get_balance(ANA)) == before


class TestDataVersions:
    def test_are_appended(self, ledger: SqlLedger) -> None:
        assert ledger.register_version("files", "facts") == 2
        assert ledger.register_version("other files", "more") == 3
        version = ledger.current_version()
        assert version is not None
        assert (version.number, version.identity, version.facts) == (3, "other files", "more")

    def test_the_first_is_registered_once(self, ledger: SqlLedger) -> None:
        assert ledger.register_version("other files", "facts", after=0) == 1
        current = ledger.current_version()
        assert current is not None and current.identity == "files"

    def test_an_older_one_takes_no_charge_but_what_runs_is_stored(self, ledger: SqlLedger) -> None:
        """Whether a run ended before the next version was made must not be told by whether it is answered."""
        (paid,) = ledger.purchase(ANA, [ask("p", laplace("1/10"))], ChargedStatement("a"), NOW)
        (kept,) = ledger.purchase(ANA, [ask("q", laplace("1/10"))], ChargedStatement("b"), NOW)
        ledger.store_body(kept.release, b"rows")
        ledger.register_version("files", "facts")
        for account, plan in ((ANA, "r"), (BEN, "p"), (BEN, "q")):
            with pytest.raises(StaleData):
                ledger.purchase(account, [ask(plan, laplace("1/10"))], ChargedStatement("a"), NOW)
        assert ledger.store_body(paid.release, b"late") == b"late"
        assert ledger.purchase(ANA, [ask("q", laplace("1/10"))], ChargedStatement("b"), NOW)[0].body == b"rows"
        assert ledger.get_balance(ANA).charges == 2
        assert ledger.get_balance(BEN).charges == 0

    def test_void_releases_take_no_body(self, ledger: SqlLedger) -> None:
        (dropped,) = ledger.purchase(ANA, [ask("p", laplace("1/10"))], ChargedStatement("a"), NOW)
        ledger.store_body(dropped.release, b"rows")
        ledger.register_version("files", "facts")
        assert ledger.drop_old_bodies(NOW + timedelta(days=1)) == 1
        with pytest.raises(StaleData):
            ledger.store_body(dropped.release, b"drawn again")
        with pytest.raises(StaleData):
            ledger.bind_runtime_parameters(dropped.release, b"too late")
        assert ledger.read_body(dropped.release) is None and ledger.verify_chains() == ()

    def test_an_unknown_one_takes_no_charge(self, ledger: SqlLedger) -> None:
        with pytest.raises(StaleData):
            ledger.purchase(ANA, [ask("p", laplace("1/10"), version=7)], ChargedStatement("a"), NOW)
