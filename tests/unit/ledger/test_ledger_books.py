"""Charging, redeeming, storing: the protocol of SOUNDNESS 9, in SQLite and in PostgreSQL."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from dpsql.errors import AccountSuspended, BudgetExceeded, InternalError, StaleData
from dpsql.ledger.base import Account, Asked, Binding, Statement
from dpsql.ledger.books import Books
from dpsql.privacy.filters import limits
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


def ask(plan: str, loss: Loss, *errors: int, version: int = 1) -> Asked:
    return Asked(plan, version, loss, tuple(map(Fraction, errors or (10,))))


def make(shelf: Shelf, dataset: Account = DATASET, name: str = "a", **settings: object) -> Books:
    ledger = shelf.open(BINDING, dataset, name, **settings)
    if ledger.current_version() is None:
        ledger.register_version("files", "facts")
    return ledger


@pytest.fixture
def ledger(shelf: Shelf) -> Books:
    return make(shelf)


def test_a_new_release_is_charged_to_the_analyst_and_to_the_dataset(ledger: Books) -> None:
    (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/10"))], Statement("SELECT 1"), NOW)
    assert (claim.body, claim.charged, claim.loss, claim.errors) == (None, True, laplace("1/10"), (Fraction(10),))
    for account in (ANA, DATASET):
        assert ledger.balance(account).pure_epsilon == laplace("1/10").epsilon
    assert ledger.balance(BEN).charges == 0


def test_the_charge_is_there_for_the_next_process(shelf: Shelf) -> None:
    make(shelf).purchase(ANA, [ask("p", gaussian("1/100", "1e-10"))], Statement("SELECT 1"), NOW)
    balance = make(shelf).balance(ANA)
    assert (balance.spent_rho, balance.spent_delta) == (gaussian("1/100").rho, gaussian("0", "1e-10").delta)
    assert balance.pure_epsilon is None


def test_a_crash_before_the_release_is_stored_is_redeemed_by_asking_again(shelf: Shelf) -> None:
    (first,) = make(shelf).purchase(ANA, [ask("p", laplace("1/10"))], Statement("SELECT 1"), NOW)
    ledger = make(shelf)
    (again,) = ledger.purchase(ANA, [ask("p", laplace("1/10"))], Statement("SELECT 1"), NOW)
    assert (again.release, again.body, again.charged) == (first.release, None, False)
    assert ledger.balance(ANA).charges == ledger.balance(DATASET).charges == 1


def test_asked_again_answered_again_free_even_with_the_budget_gone(ledger: Books) -> None:
    (claim,) = ledger.purchase(PURE, [ask("p", laplace("1"))], Statement("SELECT 1"), NOW)
    ledger.store(claim.release, b"rows")
    with pytest.raises(BudgetExceeded):
        ledger.purchase(PURE, [ask("q", laplace("1/1000"))], Statement("SELECT 2"), NOW)
    (again,) = ledger.purchase(PURE, [ask("p", laplace("1"))], Statement("SELECT 1"), NOW)
    assert (again.body, again.charged) == (b"rows", False)


def test_two_runs_of_one_charge_deliver_one_body(ledger: Books) -> None:
    (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/10"))], Statement("SELECT 1"), NOW)
    bodies = [bytes([i]) * 1000 for i in range(8)]
    delivered: list[bytes] = []
    threads = [threading.Thread(target=lambda b=b: delivered.append(ledger.store(claim.release, b))) for b in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(delivered) == 8 and len(set(delivered)) == 1 and delivered[0] in bodies


def test_holes_are_bound_once(ledger: Books) -> None:
    (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/10"))], Statement("SELECT 1"), NOW)
    assert ledger.bind_holes(claim.release, b"3") == b"3"
    assert ledger.bind_holes(claim.release, b"4") == b"3"
    assert ledger.store(claim.release, b"rows") == b"rows"
    assert ledger.bind_holes(claim.release, b"5") == b"3"
    assert ledger.store(claim.release, b"other rows") == b"rows"


class TestWhichReleaseServes:
    def test_a_better_one_of_her_own_is_free(self, ledger: Books) -> None:
        (fine,) = ledger.purchase(ANA, [ask("p", laplace("1/5"), 5, 7)], Statement("fine"), NOW)
        ledger.store(fine.release, b"fine")
        (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/10"), 10, 7)], Statement("coarse"), NOW)
        assert (claim.release, claim.body, claim.charged) == (fine.release, b"fine", False)
        assert claim.errors == fine.errors == (Fraction(5), Fraction(7))

    def test_one_with_any_larger_error_is_not(self, ledger: Books) -> None:
        (first,) = ledger.purchase(ANA, [ask("p", laplace("1/5"), 5, 7)], Statement("a"), NOW)
        ledger.store(first.release, b"rows")
        (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/5"), 10, 6)], Statement("b"), NOW)
        assert claim.charged and claim.release != first.release

    def test_a_stored_one_goes_before_a_better_one_that_has_not_run(self, ledger: Books) -> None:
        (stored,) = ledger.purchase(ANA, [ask("p", laplace("1/10"), 10)], Statement("a"), NOW)
        ledger.store(stored.release, b"rows")
        (paid,) = ledger.purchase(ANA, [ask("p", laplace("1/5"), 5)], Statement("b"), NOW)
        (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/20"), 20)], Statement("c"), NOW)
        assert paid.charged and claim.release == stored.release

    def test_among_stored_ones_the_smallest_error(self, ledger: Books) -> None:
        for epsilon, error in (("1/10", 10), ("1/5", 5)):
            (claim,) = ledger.purchase(ANA, [ask("p", laplace(epsilon), error)], Statement("a"), NOW)
            ledger.store(claim.release, b"error %d" % error)
        (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/20"), 20)], Statement("c"), NOW)
        assert claim.body == b"error 5"

    def test_one_that_has_not_run_must_cover_the_asked_loss(self, ledger: Books) -> None:
        """Laplace with a larger error may cost more rho than Gaussian with a smaller one."""
        (claim,) = ledger.purchase(ANA, [ask("p", gaussian("1/1000"), 10)], Statement("gaussian"), NOW)
        (other,) = ledger.purchase(ANA, [ask("p", laplace("1/10"), 11)], Statement("laplace"), NOW)
        assert other.charged
        ledger.store(claim.release, b"rows")
        (served,) = ledger.purchase(ANA, [ask("p", laplace("1/9"), 11)], Statement("laplace"), NOW)
        assert (served.body, served.charged) == (b"rows", False)

    def test_one_that_has_not_run_serves_at_its_own_price_only(self, ledger: Books) -> None:
        """Others may have paid for it: it must not be run with more noise than they have bought."""
        (fine,) = ledger.purchase(ANA, [ask("p", laplace("1/5"), 5)], Statement("a"), NOW)
        ledger.purchase(BEN, [ask("p", laplace("1/5"), 5)], Statement("a"), NOW)
        (coarse,) = ledger.purchase(ANA, [ask("p", laplace("1/10"), 10)], Statement("b"), NOW)
        assert coarse.charged and coarse.release != fine.release
        (again,) = ledger.purchase(BEN, [ask("p", laplace("1/5"), 5)], Statement("a"), NOW)
        assert (again.release, again.charged) == (fine.release, False)

    def test_another_data_version_or_plan_does_not(self, ledger: Books) -> None:
        claims = [ledger.purchase(ANA, [ask(plan, laplace("1/10"))], Statement("a"), NOW)[0] for plan in "pq"]
        ledger.register_version("files", "facts")
        claims += ledger.purchase(ANA, [ask("p", laplace("1/10"), version=2)], Statement("a"), NOW)
        assert all(claim.charged for claim in claims) and len({claim.release for claim in claims}) == 3

    def test_one_plan_has_one_number_of_bundles(self, ledger: Books) -> None:
        ledger.purchase(ANA, [ask("p", laplace("1/10"), 10, 10)], Statement("a"), NOW)
        with pytest.raises(InternalError):
            ledger.purchase(ANA, [ask("p", laplace("1/10"), 10)], Statement("a"), NOW)


class TestAnotherAnalyst:
    def test_pays_from_her_own_account_only(self, ledger: Books) -> None:
        (first,) = ledger.purchase(ANA, [ask("p", laplace("1/10"))], Statement("a"), NOW)
        ledger.store(first.release, b"rows")
        (claim,) = ledger.purchase(BEN, [ask("p", laplace("1/10"))], Statement("a"), NOW)
        assert (claim.release, claim.body, claim.charged) == (first.release, b"rows", True)
        assert ledger.balance(BEN).charges == ledger.balance(DATASET).charges == 1

    @pytest.mark.parametrize(
        "other", [ask("p", laplace("1/20"), 10), ask("p", laplace("1/10"), 11), ask("p", gaussian("1/200"), 10)]
    )
    def test_never_gets_a_release_at_another_price(self, ledger: Books, other: Asked) -> None:
        (first,) = ledger.purchase(ANA, [ask("p", laplace("1/10"), 10)], Statement("a"), NOW)
        ledger.store(first.release, b"rows")
        (claim,) = ledger.purchase(BEN, [other], Statement("a"), NOW)
        assert claim.release != first.release and claim.body is None and claim.loss == other.loss

    def test_is_refused_a_stored_release_that_she_cannot_pay(self, ledger: Books) -> None:
        (first,) = ledger.purchase(ANA, [ask("p", laplace("1"))], Statement("a"), NOW)
        ledger.store(first.release, b"rows")
        ledger.purchase(PURE, [ask("q", laplace("1/2"))], Statement("b"), NOW)
        with pytest.raises(BudgetExceeded):
            ledger.purchase(PURE, [ask("p", laplace("1"))], Statement("a"), NOW)

    def test_the_dataset_as_the_only_account_pays_once(self, ledger: Books) -> None:
        ledger.purchase(DATASET, [ask("p", laplace("1/10"))], Statement("a"), NOW)
        assert ledger.balance(DATASET).charges == 1
        assert ledger.balance(DATASET).pure_epsilon == laplace("1/10").epsilon
        ledger.purchase(ANA, [ask("q", laplace("1/10"))], Statement("b"), NOW)
        (claim,) = ledger.purchase(DATASET, [ask("q", laplace("1/10"))], Statement("b"), NOW)
        assert not claim.charged and ledger.balance(DATASET).charges == 2

    def test_the_datasets_account_has_one_budget(self, ledger: Books) -> None:
        with pytest.raises(InternalError):
            ledger.purchase(Account("dataset", Fraction(99), Fraction(0)), [], Statement("a"), NOW)


class TestStatement:
    def test_is_charged_as_a_whole_in_one_entry(self, ledger: Books) -> None:
        asked = [ask("p", laplace("1/10")), ask("q", laplace("1/5")), ask("p", laplace("1/10"))]
        claims = ledger.purchase(ANA, asked, Statement("a"), NOW)
        assert [claim.charged for claim in claims] == [True, True, False]
        assert claims[0].release == claims[2].release != claims[1].release
        (entry,) = charges(ledger, ANA)
        assert sorted(entry.losses, key=lambda loss: loss.rho) == [laplace("1/10"), laplace("1/5")]

    def test_the_same_plan_at_two_errors_is_two_releases_until_the_finer_is_stored(self, ledger: Books) -> None:
        asked = [ask("p", laplace("1/10"), 10), ask("p", laplace("1/5"), 5)]
        coarse, fine = ledger.purchase(ANA, asked, Statement("a"), NOW)
        assert coarse.release != fine.release and coarse.charged and fine.charged
        ledger.store(fine.release, b"rows")
        assert {claim.release for claim in ledger.purchase(ANA, asked, Statement("a"), NOW)} == {fine.release}

    def test_only_what_is_not_paid_yet_is_charged(self, ledger: Books) -> None:
        ledger.purchase(PURE, [ask("p", laplace("1/2"))], Statement("a"), NOW)
        claims = ledger.purchase(PURE, [ask("p", laplace("1/2")), ask("q", laplace("1/2"))], Statement("b"), NOW)
        assert [claim.charged for claim in claims] == [False, True]
        assert ledger.balance(PURE).left_epsilon == 0

    def test_a_refused_one_leaves_nothing_behind(self, ledger: Books) -> None:
        with pytest.raises(BudgetExceeded):
            ledger.purchase(PURE, [ask("p", laplace("1/2")), ask("q", laplace("51/100"))], Statement("a"), NOW)
        assert ledger.balance(PURE).charges == ledger.balance(DATASET).charges == 0
        (claim,) = ledger.purchase(PURE, [ask("p", laplace("1/2"))], Statement("a"), NOW)
        assert claim.charged

    def test_a_client_may_send_lone_surrogates(self, ledger: Books) -> None:
        ledger.purchase(ANA, [ask("p", laplace("1/10"))], Statement("SELECT '\ud800'"), NOW)
        assert charges(ledger, ANA)[0].statement.text == "SELECT '\\ud800'"
        assert ledger.verify() == ()


class TestBudget:
    def test_ten_tenths_are_one(self, ledger: Books) -> None:
        """A tenth is no multiple of 2^-80: whoever calibrates rounds it down first, and then ten of them fit."""
        tenth = Loss(Fraction((1 << 80) // 10, 1 << 80), Fraction(1, 200), Fraction(0))
        for i in range(10):
            ledger.purchase(PURE, [ask(f"p{i}", tenth)], Statement("a"), NOW)
        with pytest.raises(BudgetExceeded):
            ledger.purchase(PURE, [ask("more", tenth)], Statement("a"), NOW)
        assert ledger.balance(PURE).charges == 10

    def test_eight_eighths_are_exactly_one_and_the_least_more_is_refused(self, ledger: Books) -> None:
        for i in range(8):
            ledger.purchase(PURE, [ask(f"p{i}", laplace("1/8"))], Statement("a"), NOW)
        assert ledger.balance(PURE).left_epsilon == ledger.balance(PURE).fraction_left == 0
        with pytest.raises(BudgetExceeded):
            ledger.purchase(PURE, [ask("more", laplace(Fraction(1, 1 << 80)))], Statement("a"), NOW)

    def test_either_filter_may_grant(self, ledger: Books) -> None:
        most = limits(ANA.epsilon, ANA.delta)
        ledger.purchase(ANA, [ask("half", laplace("1/2"))], Statement("pure: rho is above its limit"), NOW)
        assert ledger.balance(ANA).spent_rho > most.rho
        with pytest.raises(BudgetExceeded):
            ledger.purchase(ANA, [ask("g", gaussian("1/10000"))], Statement("pure no longer"), NOW)
        for i in range(120):
            ledger.purchase(BEN, [ask(f"p{i}", laplace("1/100"))], Statement("the sum passes 1, by rho"), NOW)
        assert ledger.balance(BEN).pure_epsilon > 1 >= ledger.balance(BEN).spent_epsilon  # type: ignore[operator]

    def test_rho_exactly_spent(self, ledger: Books) -> None:
        most = limits(ANA.epsilon, ANA.delta)
        ledger.purchase(ANA, [ask("p", gaussian(most.rho))], Statement("all"), NOW)
        with pytest.raises(BudgetExceeded):
            ledger.purchase(ANA, [ask("q", gaussian(Fraction(1, 1 << 80)))], Statement("more"), NOW)
        assert ledger.balance(ANA).fraction_left == 0

    def test_her_refusal_says_what_is_left_and_what_would_fit(self, ledger: Books) -> None:
        ledger.purchase(PURE, [ask("p", laplace("2/3"))], Statement("a"), NOW)
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.purchase(PURE, [ask("q", laplace("1/2"))], Statement("b"), NOW)
        error = refusal.value
        expected = 'the statement asks for epsilon 0.5, which is 50 % of the budget of "pure", and 33.3 % is left'
        assert error.message == expected and error.sqlstate == "53400"
        assert error.hint is not None and "SET epsilon = 0.333." in error.hint
        ledger.purchase(PURE, [ask("q", laplace("0.333"))], Statement("b"), NOW)

    def test_the_dataset_refuses_with_one_fixed_text(self, shelf: Shelf) -> None:
        texts = set()
        cases = [("1", "1/2", "3/5"), ("1/4", "1/4", "1/100"), ("1/5", "1/10", "1")]
        for i, (budget, spent, asked) in enumerate(cases):
            ledger = make(shelf, Account("dataset", Fraction(budget), Fraction(0)), str(i))
            ledger.purchase(BEN, [ask("p", laplace(spent))], Statement("a"), NOW)
            with pytest.raises(BudgetExceeded) as refusal:
                ledger.purchase(ANA, [ask("q", laplace(asked))], Statement("b"), NOW)
            texts.add(str(refusal.value))
            assert ledger.balance(ANA).charges == 0
        (text,) = texts
        assert not re.search(r"\d", text)

    def test_her_own_refusal_comes_before_the_datasets(self, shelf: Shelf) -> None:
        ledger = make(shelf, Account("dataset", Fraction(1, 10), Fraction(0)))
        with pytest.raises(BudgetExceeded, match='"pure"'):
            ledger.purchase(PURE, [ask("q", laplace("2"))], Statement("b"), NOW)


class TestFailures:
    def fail(self, ledger: Books, account: Account, plan: str) -> None:
        (claim,) = ledger.purchase(account, [ask(plan, laplace("1/100"))], Statement("a"), NOW)
        ledger.failed(account, claim.release)

    def test_three_suspend_the_account_until_it_is_resumed(self, ledger: Books) -> None:
        for _ in range(3):
            self.fail(ledger, ANA, "p")
        with pytest.raises(AccountSuspended, match='"ana"'):
            ledger.purchase(ANA, [ask("q", laplace("1/100"))], Statement("a"), NOW)
        ledger.purchase(BEN, [ask("q", laplace("1/100"))], Statement("a"), NOW)
        ledger.resume(ANA)
        ledger.purchase(ANA, [ask("q", laplace("1/100"))], Statement("a"), NOW)

    def test_a_suspended_account_is_not_served_what_it_paid_for_either(self, ledger: Books) -> None:
        paid = [ask("stored", laplace("1/100"))]
        (claim,) = ledger.purchase(ANA, paid, Statement("a"), NOW)
        ledger.store(claim.release, b"rows")
        for _ in range(3):
            self.fail(ledger, ANA, "p")
        with pytest.raises(AccountSuspended, match='"ana"'):
            ledger.served(ANA, paid, NOW)
        ledger.resume(ANA)
        served = ledger.served(ANA, paid, NOW)
        assert served is not None and served[0].body == b"rows"

    def test_a_success_in_between_does_not_reset_the_count(self, ledger: Books) -> None:
        for plan in "pqr":
            self.fail(ledger, ANA, plan)
            if plan != "r":
                (claim,) = ledger.purchase(ANA, [ask(plan, laplace("1/100"))], Statement("a"), NOW)
                ledger.store(claim.release, b"rows")
        with pytest.raises(AccountSuspended):
            ledger.purchase(ANA, [ask("p", laplace("1/100"))], Statement("a"), NOW)

    def test_of_all_accounts_together_suspend_the_dataset(self, shelf: Shelf) -> None:
        ledger = make(shelf, dataset_failures=4)
        for account in (ANA, BEN):
            for plan in "pq":
                self.fail(ledger, account, plan)
        with pytest.raises(AccountSuspended) as refusal:
            ledger.purchase(PURE, [ask("p", laplace("1/100"))], Statement("a"), NOW)
        assert refusal.value.message == "the dataset is suspended"
        ledger.resume(DATASET)
        ledger.purchase(PURE, [ask("p", laplace("1/100"))], Statement("a"), NOW)

    def test_the_dataset_as_the_only_account_has_an_accounts_limit(self, ledger: Books) -> None:
        for plan in "pqr":
            self.fail(ledger, DATASET, plan)
        with pytest.raises(AccountSuspended):
            ledger.purchase(DATASET, [ask("p", laplace("1/100"))], Statement("a"), NOW)

    def test_only_who_paid_can_fail(self, ledger: Books) -> None:
        (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/100"))], Statement("a"), NOW)
        with pytest.raises(InternalError):
            ledger.failed(BEN, claim.release)

    def test_never_enter_the_entries(self, ledger: Books) -> None:
        (claim,) = ledger.purchase(ANA, [ask("p", laplace("1/100"))], Statement("a"), NOW)
        before = charges(ledger, ANA), charges(ledger, DATASET), ledger.balance(ANA)
        ledger.failed(ANA, claim.release)
        ledger.store(claim.release, b"rows")
        assert (charges(ledger, ANA), charges(ledger, DATASET), ledger.balance(ANA)) == before


class TestDataVersions:
    def test_are_appended(self, ledger: Books) -> None:
        assert ledger.register_version("files", "facts") == 2
        assert ledger.register_version("other files", "more") == 3
        version = ledger.current_version()
        assert version is not None
        assert (version.number, version.identity, version.facts) == (3, "other files", "more")

    def test_the_first_is_registered_once(self, ledger: Books) -> None:
        assert ledger.register_version("other files", "facts", after=0) == 1
        current = ledger.current_version()
        assert current is not None and current.identity == "files"

    def test_an_older_one_takes_no_charge_but_what_runs_is_stored(self, ledger: Books) -> None:
        """Whether a run ended before the next version was made must not be told by whether it is answered."""
        (paid,) = ledger.purchase(ANA, [ask("p", laplace("1/10"))], Statement("a"), NOW)
        (kept,) = ledger.purchase(ANA, [ask("q", laplace("1/10"))], Statement("b"), NOW)
        ledger.store(kept.release, b"rows")
        ledger.register_version("files", "facts")
        for account, plan in ((ANA, "r"), (BEN, "p"), (BEN, "q")):
            with pytest.raises(StaleData):
                ledger.purchase(account, [ask(plan, laplace("1/10"))], Statement("a"), NOW)
        assert ledger.store(paid.release, b"late") == b"late"
        assert ledger.purchase(ANA, [ask("q", laplace("1/10"))], Statement("b"), NOW)[0].body == b"rows"
        assert ledger.balance(ANA).charges == 2
        assert ledger.balance(BEN).charges == 0

    def test_void_releases_take_no_body(self, ledger: Books) -> None:
        (dropped,) = ledger.purchase(ANA, [ask("p", laplace("1/10"))], Statement("a"), NOW)
        ledger.store(dropped.release, b"rows")
        ledger.register_version("files", "facts")
        assert ledger.drop_answers(NOW + timedelta(days=1)) == 1
        with pytest.raises(StaleData):
            ledger.store(dropped.release, b"drawn again")
        with pytest.raises(StaleData):
            ledger.bind_holes(dropped.release, b"too late")
        assert ledger.stored(dropped.release) is None and ledger.verify() == ()

    def test_an_unknown_one_takes_no_charge(self, ledger: Books) -> None:
        with pytest.raises(StaleData):
            ledger.purchase(ANA, [ask("p", laplace("1/10"), version=7)], Statement("a"), NOW)
