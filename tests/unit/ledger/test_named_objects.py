"""Names of what accounts made: of releases that they paid for, seen by nobody else, gone without the charge."""

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from dpsql.errors import InternalError, ProgrammingError
from dpsql.ledger.backend import EARLIER_FORMAT, LEDGER_FORMAT
from dpsql.ledger.base import Account, Binding, ChargedStatement, CreatedObject, ReleaseRequest
from dpsql.ledger.ledger import SqlLedger
from dpsql.privacy.loss import Loss
from tests.support.ledgers import Shelf, raw

BINDING = Binding("row", "add_remove", 1)
DATASET = Account("dataset", Fraction(10**6), Fraction(0))
ANA, BEN = (Account(name, Fraction(10**6), Fraction(0)) for name in ("ana", "ben"))
NOW = datetime(2025, 1, 2, tzinfo=UTC)
LIKE = CreatedObject("synthetic table", "Visits_like", 1, '{"a": 1}', NOW)


@pytest.fixture
def ledger(shelf: Shelf) -> SqlLedger:
    """Ana has paid for release 1."""
    ledger = shelf.open(BINDING, DATASET)
    ledger.register_version("files", "facts")
    asked = ReleaseRequest("p", 1, Loss(Fraction(1), Fraction(1, 2), Fraction(0)), (Fraction(1),))
    ledger.purchase(ANA, [asked], ChargedStatement("CREATE …"), NOW)
    return ledger


def test_an_object_is_its_accounts_alone(ledger: SqlLedger) -> None:
    ledger.objects.save_object("ana", LIKE)
    assert ledger.objects.list_objects("ana") == (LIKE,) and ledger.objects.list_objects("ben") == ()
    assert not ledger.objects.drop_object("ben", LIKE.kind, LIKE.name)
    assert ledger.objects.list_objects("ana") == (LIKE,)


def test_only_what_was_paid_for_gets_a_name(ledger: SqlLedger) -> None:
    with pytest.raises(InternalError):
        ledger.objects.save_object("ben", LIKE)
    assert ledger.objects.list_objects("ben") == ()


def test_names_differ_whatever_their_case_and_kind(ledger: SqlLedger) -> None:
    ledger.objects.save_object("ana", LIKE)
    for other in (replace(LIKE, name="VISITS_LIKE"), replace(LIKE, kind="model")):
        with pytest.raises(ProgrammingError) as caught:
            ledger.objects.save_object("ana", other)
        assert caught.value.sqlstate == "42P07"
    with pytest.raises(ProgrammingError):  # a model does not take the place of a table
        ledger.objects.save_object("ana", replace(LIKE, kind="model"), instead=True)
    newer = replace(LIKE, name="visits_LIKE", definition="{}")
    ledger.objects.save_object("ana", newer, instead=True)
    assert ledger.objects.list_objects("ana") == (newer,)


def test_dropping_forgets_the_name_and_not_the_charge(ledger: SqlLedger) -> None:
    ledger.objects.save_object("ana", LIKE)
    before = ledger.get_balance(ANA)
    assert not ledger.objects.drop_object("ana", "model", LIKE.name)
    assert ledger.objects.drop_object("ana", LIKE.kind, "visits_like") and ledger.objects.list_objects("ana") == ()
    assert not ledger.objects.drop_object("ana", LIKE.kind, "visits_like")
    assert ledger.get_balance(ANA) == before and ledger.verify_chains() == ()


def test_a_ledger_of_the_format_before_is_migrated(ledger: SqlLedger, shelf: Shelf) -> None:
    mark = "PRAGMA user_version = 2" if shelf.server is None else "UPDATE format SET number = 2"
    assert (EARLIER_FORMAT, LEDGER_FORMAT) == (2, 3)
    with raw(shelf.url()) as db:
        db.execute("DROP TABLE object")
        db.execute(mark)
    again = shelf.open(BINDING, DATASET)
    assert again.objects.list_objects("ana") == () and again.get_balance(ANA).spent == ledger.get_balance(ANA).spent
    again.objects.save_object("ana", LIKE)
    assert shelf.open(BINDING, DATASET).objects.list_objects("ana") == (LIKE,)
