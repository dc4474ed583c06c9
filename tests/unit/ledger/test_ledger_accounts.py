"""Accounts: groups above them, policies, what the owner grants, joining, and receipts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import partial

import pytest

from dpsql.errors import AccessDenied, BudgetExceeded, IntegrityError, InternalError, OperationalError
from dpsql.ledger.base import Account, Binding, ChargedStatement, EntryKind, ReleaseRequest
from dpsql.ledger.ledger import SqlLedger
from dpsql.privacy.filters import Composition
from dpsql.privacy.loss import Loss, epsilon_to_rho, round_down
from tests.support.ledgers import Shelf, charges

BINDING = Binding("patients.patient_id", "add_remove", 1)
DATASET = Account("dataset", Fraction(8), Fraction(1, 10**7))
UNI = Account("uni", Fraction(2), Fraction(1, 10**8))
TEAM = Account("team", Fraction(1), Fraction(1, 10**8), parent="uni")
ANA = Account("ana", Fraction(1), Fraction(1, 10**8), parent="team")
BEN = Account("ben", Fraction(1), Fraction(1, 10**8), parent="team")
EVE = Account("eve", Fraction(1), Fraction(1, 10**8))
EVERYONE = (UNI, TEAM, ANA, BEN, EVE)
NOW = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
SQL = ChargedStatement("SELECT")

Make = Callable[..., SqlLedger]


@pytest.fixture
def make(shelf: Shelf) -> Make:
    """Opens one and the same ledger, with the accounts that a schema declares."""

    def opened(*accounts: Account, dataset: Account = DATASET) -> SqlLedger:
        ledger = shelf.open(BINDING, dataset, others=accounts)
        if ledger.current_version() is None:
            ledger.register_version("files", "facts")
        return ledger

    return opened


@pytest.fixture
def ledger(make: Make) -> SqlLedger:
    return make(*EVERYONE)


def laplace(epsilon: str | Fraction) -> Loss:
    return Loss(Fraction(epsilon), Fraction(epsilon) ** 2 / 2, Fraction(0))


def ask(plan: str, epsilon: str = "1/8") -> list[ReleaseRequest]:
    return [ReleaseRequest(plan, 1, laplace(epsilon), (Fraction(10),))]


def spent(ledger: SqlLedger, *accounts: Account) -> list[Fraction]:
    return [ledger.get_balance(account).pure_epsilon or Fraction(0) for account in accounts]


class TestGroups:
    def test_all_above_an_account_pay_with_it(self, ledger: SqlLedger) -> None:
        ledger.purchase(ANA, ask("p"), SQL, NOW)
        eighth = Fraction(1, 8)
        assert spent(ledger, ANA, TEAM, UNI, DATASET, BEN, EVE) == [eighth, eighth, eighth, eighth, 0, 0]
        assert {entry.by for account in (TEAM, UNI, DATASET) for entry in charges(ledger, account)} == {"ana"}

    def test_pay_once_for_a_release_that_several_members_run(self, ledger: SqlLedger) -> None:
        ledger.purchase(ANA, ask("p"), SQL, NOW)
        (claim,) = ledger.purchase(BEN, ask("p"), SQL, NOW)
        assert claim.charged
        ledger.purchase(EVE, ask("p"), SQL, NOW)
        assert spent(ledger, ANA, BEN, EVE) == [Fraction(1, 8)] * 3
        assert [len(charges(ledger, account)) for account in (TEAM, UNI, DATASET)] == [1, 1, 1]
        assert ledger.verify_chains() == ()

    def test_pay_for_what_others_than_their_members_ran_first(self, ledger: SqlLedger) -> None:
        ledger.purchase(EVE, ask("p"), SQL, NOW)
        assert spent(ledger, TEAM, UNI, DATASET) == [0, 0, Fraction(1, 8)]
        ledger.purchase(ANA, ask("p"), SQL, NOW)
        assert spent(ledger, TEAM, UNI, DATASET) == [Fraction(1, 8)] * 3
        assert len(charges(ledger, DATASET)) == 1

    def test_one_that_cannot_pay_refuses_with_the_datasets_text(self, ledger: SqlLedger, make: Make) -> None:
        ledger.purchase(BEN, ask("all of it", "1"), SQL, NOW)
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.purchase(ANA, ask("p"), SQL, NOW)
        assert "share with others" in refusal.value.message and not re.search(r"\d", str(refusal.value))
        assert spent(ledger, ANA, TEAM, UNI, DATASET) == [0, 1, 1, 1]
        ledger.purchase(EVE, ask("p"), SQL, NOW)

    def test_a_parent_that_is_not_there_or_a_circle_is_a_mistake_of_ours(self, make: Make) -> None:
        with pytest.raises(InternalError):
            make(ANA).purchase(ANA, ask("p"), SQL, NOW)
        with pytest.raises(InternalError):
            make(replace(UNI, parent="team"), TEAM, ANA).purchase(ANA, ask("p"), SQL, NOW)


class TestPolicies:
    @pytest.mark.parametrize("who", [ANA, TEAM, DATASET])
    @pytest.mark.parametrize("name", ["epsilon", "delta"])
    def test_the_largest_query(self, make: Make, who: Account, name: str) -> None:
        limited = replace(who, **{f"largest_{name}": Fraction(1, 10**9)})
        everyone = {account.name: account for account in (UNI, TEAM, ANA, DATASET)} | {limited.name: limited}
        ledger = make(*(everyone[n] for n in ("uni", "team", "ana")), dataset=everyone["dataset"])
        large = ChargedStatement("SELECT", **{name: Fraction(2, 10**9)})
        with pytest.raises(BudgetExceeded, match="may ask for at most 1e-9") as refusal:
            ledger.purchase(everyone["ana"], ask("p"), large, NOW)
        assert f"SET {name} = 1e-9" in str(refusal.value) and spent(ledger, everyone["ana"], UNI) == [0, 0]
        ledger.purchase(everyone["ana"], ask("p"), ChargedStatement("SELECT", **{name: Fraction(1, 10**9)}), NOW)
        ledger.purchase(everyone["ana"], ask("p"), large, NOW)  # what was paid for is free, whatever the policy

    def test_a_policy_is_reported_before_a_budget_that_is_short(self, make: Make) -> None:
        """Else she would be told an epsilon that fits, and be refused it again."""
        ledger = make(UNI, replace(TEAM, largest_epsilon=Fraction(1, 10)), ANA)
        with pytest.raises(BudgetExceeded, match=r"one query of .team. may ask for at most 0\.1"):
            ledger.purchase(ANA, ask("p", "3"), ChargedStatement("SELECT", Fraction(3)), NOW)

    @pytest.mark.parametrize("who", ["ana", "team", "dataset"])
    def test_an_expired_account_makes_no_charge(self, make: Make, who: str) -> None:
        everyone = {a.name: replace(a, expires=date(2025, 1, 3)) if a.name == who else a for a in (*EVERYONE, DATASET)}
        dataset = everyone.pop("dataset")
        ledger = make(*everyone.values(), dataset=dataset)
        ana = everyone["ana"]
        last = datetime(2025, 1, 2, 23, 59, tzinfo=UTC)
        (claim,) = ledger.purchase(ana, ask("p"), SQL, last)
        ledger.store_body(claim.release, b"rows")
        assert ledger.find_entitlements(ana, ask("p"), last) is not None
        for later in (last + timedelta(minutes=1), last + timedelta(days=400)):
            for plan in ("p", "q"):
                for ask_for in (
                    partial(ledger.purchase, ana, ask(plan), SQL),
                    partial(ledger.find_entitlements, ana, ask(plan)),
                ):
                    with pytest.raises(AccessDenied, match=f'the account "{who}" expired on 2025-01-03'):
                        ask_for(later)


class TestTerms:
    def test_are_recorded_when_a_schema_is_opened(self, ledger: SqlLedger) -> None:
        ledger.adopt_terms(NOW, "schema")
        entries = [entry for name in ("ana", "dataset", "team") for entry in ledger.list_entries(name)]
        assert [(entry.kind, entry.terms, entry.statement.schema) for entry in entries] == [
            (EntryKind.OPENED, account.terms, "schema") for account in (ANA, DATASET, TEAM)
        ]
        ledger.adopt_terms(NOW, "schema")
        assert [len(ledger.list_entries(name)) for name in ledger.list_accounts()] == [1] * 6

    @pytest.mark.parametrize(
        "raised",
        [
            replace(ANA, epsilon=Fraction(2)),
            replace(ANA, delta=Fraction(1, 10**7)),
            replace(ANA, epsilon=Fraction(1, 2), delta=Fraction(1, 10**7)),
            replace(ANA, composition=Composition.BASIC),
        ],
    )
    def test_that_grant_more_wait_for_the_owner(self, ledger: SqlLedger, make: Make, raised: Account) -> None:
        ledger.adopt_terms(NOW, "")
        ledger.purchase(ANA, ask("p", "1"), SQL, NOW)
        changed = make(UNI, replace(TEAM, epsilon=TEAM.epsilon), raised, BEN, EVE)
        changed.adopt_terms(NOW, "")
        recorded = changed.list_entries(raised.name)[-1].terms
        assert recorded == changed.get_balance(raised).terms == ANA.terms, "what was recorded stands"
        with pytest.raises(IntegrityError, match='changes the budget of "ana" from') as refusal:
            changed.purchase(raised, ask("q"), SQL, NOW)
        assert "dpsql account grant SCHEMA ana" in str(refusal.value)
        changed.purchase(BEN, ask("p", "1"), SQL, NOW)  # nobody else is held up
        entry = changed.grant_terms(raised, NOW, "schema")
        assert entry is not None and (entry.kind, entry.terms) == (EntryKind.CHANGED, raised.terms)
        assert entry.spent == charges(changed, ANA)[-1].spent, "nothing is forgiven"
        assert changed.grant_terms(raised, NOW, "schema") is None
        changed.adopt_terms(NOW, "")
        assert changed.verify_chains() == ()

    def test_that_grant_less_count_at_once(self, ledger: SqlLedger, make: Make) -> None:
        ledger.purchase(ANA, ask("p", "1/2"), SQL, NOW)
        lowered = replace(ANA, epsilon=Fraction(9, 16))
        changed = make(UNI, TEAM, lowered, BEN, EVE)
        with pytest.raises(BudgetExceeded):
            changed.purchase(lowered, ask("q"), SQL, NOW)
        changed.adopt_terms(NOW, "")
        assert [entry.kind for entry in changed.list_entries("ana")] == [
            EntryKind.OPENED,
            EntryKind.CHARGE,
            EntryKind.CHANGED,
        ]
        with pytest.raises(IntegrityError):
            ledger.purchase(ANA, ask("r"), SQL, NOW)  # the schema of before: a raise, now

    def test_a_raise_does_not_bring_back_what_was_spent(self, ledger: SqlLedger, make: Make) -> None:
        ledger.purchase(EVE, ask("p", "1"), SQL, NOW)
        raised = replace(EVE, epsilon=Fraction(3, 2))
        changed = make(UNI, TEAM, ANA, BEN, raised)
        changed.grant_terms(raised, NOW, "")
        changed.purchase(raised, ask("q", "1/2"), SQL, NOW)
        with pytest.raises(BudgetExceeded):
            changed.purchase(raised, ask("r"), SQL, NOW)


class TestJoining:
    def test_charges_the_members_history_to_all_above(self, ledger: SqlLedger, make: Make) -> None:
        for plan in ("p", "q"):
            ledger.purchase(EVE, ask(plan), SQL, NOW)
        ledger.purchase(ANA, ask("q"), SQL, NOW)
        joined = replace(EVE, parent="team")
        changed = make(UNI, TEAM, ANA, BEN, joined)
        changed.adopt_terms(NOW, "")
        assert spent(changed, TEAM, UNI) == [Fraction(1, 4)] * 2, "q was paid for by ana"
        entry = changed.list_entries("team")[-1]
        assert (entry.kind, entry.by, [charge.plan for charge in entry.charges]) == (EntryKind.JOINED, "eve", ["p"])
        assert changed.verify_chains() == ()
        changed.purchase(joined, ask("r"), SQL, NOW)
        assert spent(changed, TEAM, EVE) == [Fraction(3, 8)] * 2

    def test_without_opening_the_schema_anew_the_first_charge_does(self, ledger: SqlLedger, make: Make) -> None:
        ledger.purchase(EVE, ask("p"), SQL, NOW)
        joined = replace(EVE, parent="team")
        changed = make(UNI, TEAM, ANA, BEN, joined)
        changed.purchase(joined, ask("q"), SQL, NOW)
        assert spent(changed, TEAM, UNI, EVE, DATASET) == [Fraction(1, 4)] * 4
        assert changed.verify_chains() == ()

    def test_of_a_group_charges_what_its_members_ran(self, make: Make) -> None:
        alone = replace(TEAM, parent=None)
        ledger = make(UNI, alone, ANA, BEN)
        ledger.purchase(ANA, ask("p"), SQL, NOW)
        ledger.purchase(BEN, ask("q"), SQL, NOW)
        changed = make(*EVERYONE)
        changed.adopt_terms(NOW, "")
        assert spent(changed, UNI) == [Fraction(1, 4)] and changed.verify_chains() == ()

    def test_is_refused_where_a_parent_cannot_pay(self, ledger: SqlLedger, make: Make) -> None:
        ledger.purchase(BEN, ask("p", "3/4"), SQL, NOW)
        ledger.purchase(EVE, ask("q", "1/2"), SQL, NOW)
        ledger.adopt_terms(NOW, "")
        changed = make(UNI, TEAM, ANA, BEN, replace(EVE, parent="team"))
        before = {name: changed.list_entries(name) for name in changed.list_accounts()}
        changed.adopt_terms(NOW, "")
        assert {name: changed.list_entries(name) for name in changed.list_accounts()} == before
        eve = replace(EVE, parent="team")
        with pytest.raises(OperationalError, match="the schema was changed since it was opened"):
            changed.purchase(eve, ask("r"), SQL, NOW)
        with pytest.raises(BudgetExceeded, match='"team" does not cover what its new member "eve" has been charged'):
            changed.grant_terms(eve, NOW, "")  # the owner is told why

    def test_again_charges_only_what_came_between(self, ledger: SqlLedger, make: Make) -> None:
        ledger.purchase(ANA, ask("p"), SQL, NOW)
        left = replace(ANA, parent=None)
        alone = make(UNI, TEAM, left, BEN, EVE)
        alone.adopt_terms(NOW, "")
        with pytest.raises(IntegrityError, match="parent team to none"):
            alone.purchase(left, ask("q"), SQL, NOW)  # who leaves has more to spend: that is the owner's act
        alone.grant_terms(left, NOW, "")
        alone.purchase(left, ask("q"), SQL, NOW)
        assert spent(ledger, TEAM, ANA) == [Fraction(1, 8), Fraction(1, 4)]
        ledger.adopt_terms(NOW, "")
        assert spent(ledger, TEAM, ANA) == [Fraction(1, 4)] * 2 and ledger.verify_chains() == ()


class TestCompositions:
    @pytest.mark.parametrize(("composition", "count"), [(Composition.BASIC, 10), (Composition.ADVANCED, 3)])
    def test_of_gaussian_statements(self, make: Make, composition: Composition, count: int) -> None:
        """The advanced form gives fewer where statements are large: 2 ln(2e6) 0.01 n + … passes 1 at the fourth."""
        account = Account("ana", Fraction(1), Fraction(1, 10**6), composition)
        ledger = make(account)
        assert self.granted(ledger, account, Fraction(1, 10), Fraction(1, 10**9), 30) == count
        assert ledger.verify_chains() == ()

    def test_advanced_lets_many_small_ones_pass(self, make: Make) -> None:
        account = Account("ana", Fraction(1), Fraction(1, 10**6), Composition.ADVANCED)
        dataset = replace(DATASET, epsilon=Fraction(100))
        assert self.granted(make(account, dataset=dataset), account, Fraction(1, 25), Fraction(1, 10**9), 40) > 25 - 10

    def granted(self, ledger: SqlLedger, account: Account, epsilon: Fraction, delta: Fraction, most: int) -> int:
        statement = ChargedStatement("SELECT", epsilon, delta, delta)
        loss = Loss(None, round_down(epsilon_to_rho(epsilon, delta)), Fraction(0))
        for number in range(most):
            try:
                ledger.purchase(account, [ReleaseRequest(f"p{number}", 1, loss, (Fraction(1),))], statement, NOW)
            except BudgetExceeded as refusal:
                assert '"ana"' in refusal.message
                return number
        return most

    def test_joining_a_basic_group_charges_complete_statements(self, make: Make) -> None:
        """The losses of a statement's releases have no (epsilon, delta) of their own: its entry has."""
        eve, team = replace(EVE, epsilon=Fraction(2)), replace(TEAM, parent=None, composition=Composition.BASIC)
        ledger = make(team, eve)
        assert self.granted(ledger, replace(eve), Fraction(1, 10), Fraction(1, 10**9), 3) == 3
        changed = make(team, replace(eve, parent="team"))
        changed.adopt_terms(NOW, "")
        assert changed.get_balance(team).spent_epsilon == Fraction(3, 10) and changed.verify_chains() == ()


class TestReceipts:
    def test_name_the_entry_of_the_account_that_paid(self, ledger: SqlLedger) -> None:
        (claim,) = ledger.purchase(ANA, ask("p"), SQL, NOW)
        (entry,) = charges(ledger, ANA)
        assert claim.receipt == entry.receipt and str(claim.receipt) == f"ana/2/{entry.hash}"
        ledger.purchase(ANA, ask("q"), SQL, NOW)
        ledger.store_body(claim.release, b"rows")
        (again,) = ledger.purchase(ANA, ask("p"), SQL, NOW)
        assert (again.receipt, again.charged) == (claim.receipt, False)
        (other,) = ledger.purchase(BEN, ask("p"), SQL, NOW)
        assert other.receipt.account == "ben" and other.receipt == charges(ledger, BEN)[0].receipt


class TestQuotes:
    def test_list_what_is_paid_for_and_nothing_of_others(self, ledger: SqlLedger) -> None:
        (quote,) = ledger.quote_releases(BEN, ask("p"))
        ledger.purchase(ANA, ask("p"), SQL, NOW)
        assert (ledger.quote_releases(BEN, ask("p")), quote.is_paid, quote.loss) == ((quote,), False, laplace("1/8"))
        (own,) = ledger.quote_releases(ANA, ask("p"))
        assert own.is_paid and own.receipt == charges(ledger, ANA)[0].receipt
        assert (
            not ledger.quote_releases(ANA, ask("p", "1/4"))[0].is_paid
            or ledger.quote_releases(ANA, ask("p", "1/4"))[0].receipt
        )

    def test_write_nothing(self, ledger: SqlLedger) -> None:
        ledger.quote_releases(ANA, ask("p"))
        assert ledger.list_accounts() == ()

    def test_of_a_release_whose_runtime_parameters_come_from_another(self, ledger: SqlLedger) -> None:
        inner = ReleaseRequest("inner", 1, laplace("1/8"), (Fraction(10),))
        outer = ReleaseRequest("outer", 1, laplace("1/8"), (Fraction(10),), after=(0,))
        assert [quote.is_paid for quote in ledger.quote_releases(ANA, [inner, outer])] == [False, False]
        ledger.purchase(ANA, [inner, outer], SQL, NOW)
        assert [quote.is_paid for quote in ledger.quote_releases(ANA, [inner, outer])] == [True, True]
        other = replace(inner, plan="another")
        assert [quote.is_paid for quote in ledger.quote_releases(ANA, [other, outer])] == [False, False]


class TestOwnStored:
    def test_are_those_of_the_account_about_the_same_rows(self, ledger: SqlLedger) -> None:
        def about(plan: str, rows: str) -> list[ReleaseRequest]:
            return [replace(ask(plan)[0], rows=rows, shape=f"shape of {plan}")]

        for account, plan, rows in ((ANA, "p", "visits"), (ANA, "q", "patients"), (BEN, "r", "visits")):
            (claim,) = ledger.purchase(account, about(plan, rows), SQL, NOW)
            ledger.store_body(claim.release, plan.encode())
        ledger.purchase(ANA, about("not stored", "visits"), SQL, NOW)
        (found,) = ledger.list_own_stored(ANA, ["visits"], 1)
        assert (found.shape, found.body, found.at, found.receipt.account) == ("shape of p", b"p", NOW, "ana")
        assert ledger.list_own_stored(ANA, ["visits"], 2) == ledger.list_own_stored(EVE, ["visits"], 1) == ()
        assert ledger.list_own_stored(ANA, [], 1) == ()
        assert len(ledger.list_own_stored(ANA, ["visits", "patients"], 1)) == 2

    def test_come_latest_first_by_the_accounts_own_charges(self, ledger: SqlLedger) -> None:
        """Not by when a release was made, perhaps for others."""
        by_plan = {plan: [replace(ask(plan)[0], rows="visits", shape=plan)] for plan in "pqr"}
        for account, plans in ((BEN, "r"), (ANA, "qpr")):
            for plan in plans:
                (claim,) = ledger.purchase(account, by_plan[plan], SQL, NOW)
                ledger.store_body(claim.release, plan.encode())
        assert [own.shape for own in ledger.list_own_stored(ANA, ["visits"], 1)] == ["r", "p", "q"]


class TestTheOwnersAnswers:
    def test_are_listed_with_statement_payers_and_size(self, ledger: SqlLedger) -> None:
        (claim,) = ledger.purchase(ANA, ask("p"), ChargedStatement("SELECT 1"), NOW)
        ledger.store_body(claim.release, b"rows")
        ledger.purchase(EVE, ask("p"), ChargedStatement("select 1"), NOW + timedelta(days=1))
        ledger.purchase(EVE, ask("q"), ChargedStatement("SELECT 2"), NOW + timedelta(days=1))
        first, second = ledger.list_releases()
        assert (first.state, first.size, first.at, first.version) == ("stored", 4, NOW, 1)
        assert (first.statement, set(first.payers)) == ("SELECT 1", {"ana", "team", "uni", "dataset", "eve"})
        assert (second.state, second.statement, second.size) == ("paid", "SELECT 2", 0)

    def test_past_their_retention_are_dropped_once_their_version_is_unused(self, ledger: SqlLedger) -> None:
        """Else who paid for a stored release would see, by her price, when another had asked for it first."""
        (old,) = ledger.purchase(EVE, ask("p"), SQL, NOW)
        ledger.store_body(old.release, b"rows")
        (new,) = ledger.purchase(EVE, ask("q"), SQL, NOW + timedelta(days=2))
        ledger.store_body(new.release, b"rows")
        assert ledger.drop_old_bodies(NOW + timedelta(days=9)) == 0, "all are of the last version"
        ledger.register_version("files", "facts")
        assert ledger.drop_old_bodies(NOW + timedelta(days=1)) == 1
        assert ledger.drop_old_bodies(NOW + timedelta(days=1)) == 0
        assert [one.state for one in ledger.list_releases()] == ["void", "stored"]
        assert ledger.verify_chains() == () and spent(ledger, EVE) == [Fraction(1, 4)], "what was charged stays charged"


class TestHiddenEnds:
    """Where the owner hides how long runs take, a price must not tell it."""

    def test_what_is_stored_counts_from_when_it_is_to_be_seen(self, make: Make) -> None:
        ledger = replace(make(EVE), grid=600_000)
        about = [replace(ask("p")[0], rows="visits", shape="shape")]
        (claim,) = ledger.purchase(EVE, about, SQL, NOW)
        ledger.begin_run(claim.release, "here", 60)
        ledger.store_body(claim.release, b"rows")
        less = [replace(about[0], loss=Loss(None, Fraction(1, 10**6), Fraction(0)))]

        def seen() -> list[object]:
            """All that depends on whether it is stored."""
            (again,) = ledger.purchase(EVE, about, SQL, NOW)
            served = ledger.find_entitlements(EVE, about, NOW)
            return [again.body, served and served[0].body, len(ledger.list_own_stored(EVE, ["visits"], 1)),
                    ledger.quote_releases(EVE, less)[0].is_paid]  # fmt: skip

        assert replace(ledger, grid=0).list_own_stored(EVE, ["visits"], 1) != (), "it is stored at once"
        assert seen() == [None, None, 0, False]
        assert ledger.read_body(claim.release) == b"rows", "for its own run"
        time.sleep(0.7)
        assert seen() == [b"rows", b"rows", 1, True]
