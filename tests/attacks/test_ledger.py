"""What attackers of the ledger and of the answer store found, kept so that it stays mended."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.errors import BudgetExceeded, Error, IntegrityError
from dpsql.ledger import hash_chain
from dpsql.ledger.audit import run_audit
from dpsql.ledger.base import Account, Binding, ChargedStatement, ReleaseRequest
from dpsql.ledger.open import open_ledger
from dpsql.owner.administration import audit_ledger, grant_budget, register_data_version
from dpsql.privacy.audit_record import write_release_record
from dpsql.privacy.partition_selection import calibrate_selection_by_rho
from dpsql.session.dataset import dataset as datasets
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.dataset.runs import Runs
from dpsql.session.session import Session
from tests.support.shop import DATA, SCHEMA, Silence

pytestmark = pytest.mark.slow

BOTH = """
analysts:
  ana: {budget: {epsilon: 100000, delta: 0.1}}
  bob: {budget: {epsilon: 100000, delta: 0.1}}
"""
TEAM = """
groups:
  team: {budget: {epsilon: 20, delta: 0.01}}
analysts:
  ana: {budget: {epsilon: 1000, delta: 0.1}, parent: team}
"""
COUNT = "SELECT COUNT(*) FROM people"

Open = Callable[..., Session]
Shop = Callable[..., Path]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    def made(more: str = "", schema: str = SCHEMA, data: str = DATA) -> Path:
        (tmp_path / "shop.yaml").write_text(schema.replace("tables:", f"{more}tables:", 1), encoding="utf-8")
        with duckdb.connect(str(tmp_path / "shop.duckdb")) as db:
            db.execute(data)
        return tmp_path / "shop.yaml"

    return made


@pytest.fixture
def opened() -> Iterator[Open]:
    closing_later = []

    def session(path: Path, user: str | None = None, **settings: object) -> Session:
        dataset = open_dataset(path)
        closing_later.append(dataset)
        return Session(dataset, user, **settings)  # type: ignore[arg-type]

    yield session
    for dataset in closing_later:
        dataset.close()


def test_a_column_named_as_the_placeholder_of_keys_is_not_taken_for_one(shop: Shop, opened: Open) -> None:
    """`kind = key` was read as `key = key`, and so answered from counts by kind, wrongly and for nothing."""
    table = """  ev:
    unit: {uid: people.uid}
    unique: [uid]
    columns:
      uid: {type: bigint}
      key: {type: integer, bounds: [0, 3], nullable: true}
      kind: {type: integer, bounds: [0, 3], nullable: true}
  items:"""
    rows = "CREATE TABLE ev AS SELECT (i % 240)::BIGINT uid, (i % 4)::INTEGER AS key, (i // 7 % 4)::INTEGER AS kind"
    data = f"{DATA}{rows} FROM range(240) t(i);"
    session = opened(shop(schema=SCHEMA.replace("  items:", table), data=data), sampler=Silence())
    session.set("epsilon", "100000")
    session.execute("SELECT kind, COUNT(*) FROM ev GROUP BY kind")
    session.set("epsilon", "20")
    with duckdb.connect(":memory:") as db:
        db.execute(data)
        for sql in (
            "SELECT COUNT(*) FROM ev WHERE kind = key",
            "SELECT COUNT(*) FROM ev WHERE kind <> key",
            'SELECT COUNT(*) FROM (SELECT kind AS "d1", key AS "value" FROM ev) e WHERE "d1" = "value"',
        ):
            assert session.execute(sql).rows == db.execute(sql).fetchall(), sql


# --- the audit -------------------------------------------------------------------------------------------------------


def spend(path: Path, opened: Open) -> list[str]:
    ana = opened(path, "ana")
    answers = [ana.execute(sql) for sql in (COUNT, "SELECT SUM(age) FROM people")]
    return [str(receipt) for answer in answers for receipt in answer.receipts]


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path.with_name("shop.ledger"), isolation_level=None)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            db.execute(statement)


def test_the_dataset_cannot_be_refunded_under_its_analysts_receipts(shop: Shop, opened: Open) -> None:
    """Every chain fits, since the last lines of all were cut; but ana has paid for what the dataset has not."""
    path = shop(BOTH)
    receipts = spend(path, opened)
    assert audit_ledger(path, receipts).is_clean
    edit(
        path,
        "DELETE FROM payment WHERE account = 'dataset' AND entry = (SELECT max(number) FROM entry WHERE account ="
        " 'dataset')",
        "DELETE FROM journal WHERE account = 'dataset' AND number = (SELECT max(number) FROM entry WHERE account ="
        " 'dataset')",
        "DELETE FROM entry WHERE account = 'dataset' AND number = (SELECT max(number) FROM entry WHERE account ="
        " 'dataset')",
        "UPDATE account SET entries = entries - 1, head = (SELECT hash FROM entry WHERE account = 'dataset' ORDER BY"
        " number DESC LIMIT 1) WHERE name = 'dataset'",
    )
    relink(path)
    found = audit_ledger(path, receipts)
    assert not found.is_clean and any("has not paid for all" in str(finding) for finding in found.findings)


def relink(path: Path) -> None:
    """The owner's chain, made anew over what is left: whoever can write can do so."""
    with closing(sqlite3.connect(path.with_name("shop.ledger"), isolation_level=None)) as db:
        lines = db.execute("SELECT account, number FROM journal ORDER BY place").fetchall()
        db.execute("DELETE FROM journal")
        previous = ""
        for place, (account, number) in enumerate(lines, 1):
            sql = "SELECT hash FROM entry WHERE account = ? AND number = ?"
            values = (account, number)
            if account == hash_chain.BODY_ACCOUNT:
                sql, values = "SELECT digest FROM release WHERE id = ?", (number,)
            ((hashed,),) = db.execute(sql, values).fetchall()
            previous = hash_chain.hash_journal_line(previous, account, number, hashed)
            db.execute("INSERT INTO journal VALUES (?, ?, ?, ?)", (place, account, number, previous))


@pytest.mark.parametrize(
    "edits",
    [
        ("UPDATE release SET body = NULL, state = 'paid'", "DELETE FROM run"),
        ("UPDATE release SET body = NULL, digest = NULL, state = 'paid'", "DELETE FROM run"),
        ("UPDATE release SET body = CAST('{}' AS BLOB)",),
    ],
)
def test_a_body_that_is_taken_away_to_be_drawn_again_shows(shop: Shop, opened: Open, edits: tuple[str, ...]) -> None:
    path = shop(BOTH)
    spend(path, opened)
    edit(path, *edits)
    assert any("the body of release 1" in str(finding) for finding in audit_ledger(path).findings)


def test_mechanisms_under_other_neighbors_than_the_ledgers_show(tmp_path: Path) -> None:
    selection = calibrate_selection_by_rho(
        Fraction(1, 10), Fraction(1, 10**6), l0=3, group_size=1, change_one=False, weights=False
    )
    ana = Account("ana", Fraction(4), Fraction(1, 10**3))
    dataset = Account("dataset", Fraction(8), Fraction(1, 10**3))
    for name, binding in (("fits", Binding("row", "add_remove", 1)), ("other", Binding("row", "change_one", 5))):
        ledger = open_ledger(f"sqlite://{tmp_path}/{name}.ledger", binding, dataset)
        ledger.register_version("files", "facts")
        asked = ReleaseRequest("p", 1, selection.loss, (Fraction(1),), mechanisms=write_release_record([], selection))
        ledger.purchase(ana, [asked], ChargedStatement("x", Fraction(1), Fraction(1, 10**5), Fraction(1, 10**6)), NOW)
        assert run_audit(ledger).is_clean == (name == "fits")


NOW = datetime(2025, 1, 2, tzinfo=UTC)


# --- one account, and the others -------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [False, True])
def test_retention_does_not_reveal_whether_another_account_ran_it_first(shop: Shop, opened: Open, other: bool) -> None:
    path = shop(BOTH + "answers: {retention: 30 days}\n")
    now = datetime.now(UTC)
    ana = opened(path, "ana", clock=lambda: now - timedelta(days=31))
    bob = opened(path, "bob", clock=lambda: now - timedelta(days=1))
    if other:
        ana.execute(COUNT)
    bob.execute(COUNT)
    again = opened(path, "bob")  # opening is when answers past their retention are dropped
    assert again.execute(COUNT).loss.rho == 0
    register_data_version(path)
    assert opened(path, "bob").dataset.ledger.list_releases()[0].state == ("void" if other else "stored")


def test_a_charge_that_two_have_made_is_not_redeemed_with_the_noise_of_one(
    shop: Shop, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shop(BOTH)
    ana, bob = opened(path, "ana"), opened(path, "bob")

    def killed(*_: object, **__: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Runs, "run_release", killed)
        for session in (ana, bob):
            session.set("epsilon", "10")
            with pytest.raises(KeyboardInterrupt):
                session.execute(COUNT)
    ana.set("epsilon", "1")
    ana.execute(COUNT)
    redeemed = bob.execute(COUNT)
    assert redeemed.loss.rho == 0 and redeemed.errors[0][0] is not None
    assert redeemed.errors[0][0].stderr < 1, "the noise that bob has paid for"


def test_leaving_a_group_needs_the_owners_grant(shop: Shop, opened: Open) -> None:
    path = shop(TEAM)
    ana = opened(path, "ana")
    ana.set("epsilon", "15")
    with pytest.raises(BudgetExceeded, match="share with others"):
        for number in range(50):
            ana.execute(f"SELECT COUNT(*) FROM people WHERE age > {number}")
    path.write_text(path.read_text().replace(", parent: team", ""))
    with pytest.raises(IntegrityError, match="parent team to none"):
        opened(path, "ana").execute("SELECT COUNT(*) FROM people WHERE age > 99")
    grant_budget(path, "ana")
    alone = opened(path, "ana")
    alone.set("epsilon", "15")
    assert alone.execute("SELECT COUNT(*) FROM people WHERE age > 99").loss.rho > 0


def test_another_schema_on_the_ledger_reveals_nothing_of_others(shop: Shop, opened: Open) -> None:
    path = shop(TEAM)
    before = opened(path, "ana")
    lowered = path.with_name("other.yaml")
    lowered.write_text(path.read_text().replace("{epsilon: 20, delta: 0.01}", "{epsilon: 7, delta: 0.01}"))
    opened(lowered, "ana")
    with pytest.raises(Error) as refusal:
        before.execute(COUNT)
    assert str(refusal.value) == ("the schema was changed since it was opened\nHINT:  Connect again; or ask the owner.")


# --- asking again ----------------------------------------------------------------------------------------------------


def test_a_better_release_for_a_runtime_parameter_does_not_charge_the_statement_again(shop: Shop, opened: Open) -> None:
    session = opened(shop())
    inner = "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)"
    session.set("epsilon", "2000")
    first = session.execute(inner)
    session.set("epsilon", "20000")
    session.execute("SELECT AVG(age) FROM people")
    session.set("epsilon", "2000")
    assert all(session.explain(inner).paid)
    again = session.execute(inner)
    assert first.loss.rho > 0 == again.loss.rho and again.rows == first.rows


def test_a_schedule_does_not_time_a_run(shop: Shop, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends after the next version is due is answered like one that ends before."""
    start = datetime(2030, 1, 1, 0, 59, 59, tzinfo=UTC)
    now = [start]
    monkeypatch.setattr(datasets, "now_utc", lambda: now[0])
    session = opened(shop(BOTH + "answers: {refresh: 1 hour}\n"), "ana")
    engine = session.dataset.engine
    execute = type(engine).execute

    def late(self: object, *given: object) -> object:
        exact = execute(self, *given)  # type: ignore[arg-type]
        now[0] = start + timedelta(seconds=2)
        opened(session.dataset.schema.path, "bob")  # who connects then makes the next version
        return exact

    monkeypatch.setattr(type(engine), "execute", late)
    assert session.execute(COUNT).loss.rho > 0
    with pytest.raises(Error, match="newer version"):
        session.execute(COUNT)
    assert replace(session.dataset, runs=session.dataset.runs).ledger.failures_of(session._account).counted == 0
