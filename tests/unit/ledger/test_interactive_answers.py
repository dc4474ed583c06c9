"""Interactive mechanisms in the ledger: charged each time, never redeemed, their answers stored in turn and once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from dpsql.errors import IntegrityError, InternalError
from dpsql.ledger.audit import run_audit
from dpsql.ledger.base import Account, Binding, ChargedStatement, ReleaseRequest
from dpsql.ledger.ledger import SqlLedger
from dpsql.privacy.audit_record import write_sparse_vector_record
from dpsql.privacy.sparse_vector import calibrate_above_threshold
from tests.support.ledgers import Shelf, charges

BINDING = Binding("patients.patient_id", "add_remove", 1)
DATASET = Account("dataset", Fraction(8), Fraction(1, 10**7))
ANA = Account("ana", Fraction(1), Fraction(1, 10**8))
NOW = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
SPEC = calibrate_above_threshold(Fraction(100), Fraction(1), Fraction(1, 4), 1)
ASKED = ReleaseRequest("p" * 64, 1, SPEC.loss, (), mechanisms=write_sparse_vector_record(SPEC), once=True)


def begin(ledger: SqlLedger) -> int:
    (claim,) = ledger.purchase(ANA, [ASKED], ChargedStatement("above_threshold(100)"), NOW)
    assert claim.charged and claim.body is None
    return claim.release


@pytest.fixture
def ledger(shelf: Shelf) -> SqlLedger:
    ledger = shelf.open(BINDING, DATASET, "a")
    ledger.register_version("files", "facts")
    return ledger


def test_each_is_charged_and_none_is_found_again(ledger: SqlLedger) -> None:
    """As after a crash: what was paid is gone, whoever asks for the same."""
    first, second = begin(ledger), begin(ledger)
    assert first != second and len(charges(ledger, ANA)) == len(charges(ledger, DATASET)) == 2
    assert ledger.get_balance(ANA).pure_epsilon == Fraction(1, 2)
    assert ledger.find_entitlements(ANA, [ASKED], NOW) is None and not ledger.quote_releases(ANA, [ASKED])[0].is_paid
    assert ledger.quote_releases(ANA, [ReleaseRequest(ASKED.plan, 1, ASKED.loss, ())])[0].receipt is None


def test_answers_are_stored_in_turn_and_once(ledger: SqlLedger) -> None:
    release = begin(ledger)
    assert ledger.read_answer(release, 1) is None
    for number in (1, 2, 3):
        assert ledger.store_answer(release, number, b"said %d" % number) == b"said %d" % number
    for number in (1, 3, 5):
        with pytest.raises(IntegrityError, match="another process"):
            ledger.store_answer(release, number, b"said otherwise")
    assert [ledger.read_answer(release, number) for number in (1, 2, 3, 4, 5)] == [
        b"said 1",
        b"said 2",
        b"said 3",
        None,
        None,
    ]
    other = begin(ledger)
    assert ledger.store_answer(other, 1, b"its own") == b"its own" and ledger.read_answer(release, 1) == b"said 1"


def test_no_body_is_ever_stored_for_the_mechanism_itself(ledger: SqlLedger) -> None:
    release = begin(ledger)
    with pytest.raises(Exception, match="can no longer be read"):
        ledger.store_body(release, b"a body")
    assert ledger.read_body(release) is None


def test_only_a_mechanism_has_answers(ledger: SqlLedger) -> None:
    (claim,) = ledger.purchase(ANA, [ReleaseRequest("q", 1, ASKED.loss, ())], ChargedStatement("SELECT 1"), NOW)
    with pytest.raises(InternalError, match="no interactive mechanism"):
        ledger.store_answer(claim.release, 1, b"said")


def test_a_run_can_begin_after_each_answer(ledger: SqlLedger) -> None:
    release = begin(ledger)
    for number in (1, 2):
        assert ledger.begin_run(release, f"run {number}", 60).holder == f"run {number}"
        assert ledger.begin_run(release, "another", 60).holder == f"run {number}"
        ledger.store_answer(release, number, b"said")


def test_the_audit_finds_it_intact(shelf: Shelf, ledger: SqlLedger) -> None:
    release = begin(ledger)
    ledger.store_answer(release, 1, b"said")
    assert run_audit(ledger).findings == ()
    (listed,) = ledger.list_releases()
    assert (listed.release, listed.state, listed.payers) == (release, "void", ("ana", "dataset"))
    shelf.tamper("UPDATE release SET digest = 'other' WHERE body IS NOT NULL")
    assert any("not the one that was stored first" in finding.what for finding in run_audit(ledger).findings)


def test_answers_go_with_their_data_version(ledger: SqlLedger) -> None:
    release = begin(ledger)
    ledger.store_answer(release, 1, b"said")
    assert ledger.drop_old_bodies(NOW + timedelta(days=1)) == 0
    ledger.register_version("new files", "facts")
    assert ledger.drop_old_bodies(NOW + timedelta(days=1)) == 1
    assert ledger.read_answer(release, 1) is None and ledger.verify_chains() == ()
    with pytest.raises(IntegrityError):
        ledger.store_answer(release, 1, b"said otherwise")
