"""Getting budget back by the ledger's file, the schema, another name, a setting or a transaction."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from dpsql.errors import AccessDenied, BudgetExceeded, Error, IntegrityError, InvalidParameter, SchemaError, StaleData
from dpsql.ledger.ledger import SqlLedger
from dpsql.owner.administration import grant_budget
from dpsql.session.dataset.accounts import dataset_account
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from tests.support.attack_hospital import (
    DATA,
    TABLES,
    VICTIM,
    build,
    for_free,
    outcome,
    reopen,
    replace_data,
    schema_text,
    spent,
)
from tests.support.optional_dependencies import no_root

pytestmark = pytest.mark.slow

COUNT = "SELECT kind, COUNT(*) FROM visits GROUP BY kind"


def bodies(path: Path) -> list[tuple[int, bytes | None]]:
    """What the ledger holds for sale: releases and their bodies."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        rows = db.execute("SELECT id, body FROM release ORDER BY id").fetchall()
    db.close()
    return rows


def new(folder: Path, name: str = "h", **named: Any) -> Session:
    return build(folder, name, schema_text(name, **named), DATA)


# --- the ledger's file -----------------------------------------------------------------------------------------------


def tampered(folder: Path, name: str = "h") -> Path:
    return folder / f"{name}.ledger"


def test_a_ledger_that_is_removed_or_replaced_serves_nothing(tmp_path: Path) -> None:
    session, ledger = new(tmp_path), tampered(tmp_path)
    session.execute(COUNT)
    kept = ledger.read_bytes()
    ledger.unlink()
    assert outcome(session, "SELECT SUM(n) FROM visits").startswith("OperationalError")
    assert not ledger.exists(), "it must not come back empty"
    other = new(tmp_path, "other")
    other.execute(COUNT)
    shutil.copy(tampered(tmp_path, "other"), ledger)
    assert "was replaced while it was open" in outcome(session, "SELECT SUM(n) FROM visits")
    ledger.unlink()
    ledger.symlink_to(tampered(tmp_path, "other"))
    assert "was replaced while it was open" in outcome(session, "SELECT SUM(n) FROM visits")
    ledger.unlink()
    ledger.write_bytes(b"")
    assert outcome(session, "SELECT SUM(n) FROM visits").startswith(("IntegrityError", "OperationalError"))
    ledger.write_bytes(kept[: len(kept) // 2])
    assert outcome(session, "SELECT SUM(n) FROM visits").startswith(("IntegrityError", "OperationalError"))
    ledger.write_bytes(kept)
    assert outcome(session, COUNT) == "answered" and session.budget().charges == 1


def test_an_empty_or_foreign_file_is_no_ledger(tmp_path: Path) -> None:
    new(tmp_path).dataset.close()
    for content in (b"", b"SQLite format 3\x00" + b"\0" * 4096, b"x" * 100):
        tampered(tmp_path).write_bytes(content)
        with pytest.raises(Error):
            open_dataset(tmp_path / "h.yaml")
    tampered(tmp_path).unlink()
    tampered(tmp_path).mkdir()
    with pytest.raises(Error):
        open_dataset(tmp_path / "h.yaml")


def test_a_journal_without_its_ledger_is_not_a_new_ledger(tmp_path: Path) -> None:
    """Half of a crash: the budget must not come back."""
    session = new(tmp_path)
    session.execute(COUNT)
    tampered(tmp_path).rename(tmp_path / "h.ledger-journal")
    with pytest.raises(Error):
        open_dataset(tmp_path / "h.yaml")


def test_an_edited_ledger_shows(tmp_path: Path) -> None:
    session = new(tmp_path)
    session.execute(COUNT)
    with sqlite3.connect(tampered(tmp_path)) as db:
        with pytest.raises(sqlite3.IntegrityError):
            db.execute("UPDATE entry SET content = '{}'")
        with pytest.raises(sqlite3.IntegrityError):
            db.execute("DELETE FROM payment")
        db.execute("DROP TRIGGER entry_UPDATE")
        db.execute('UPDATE entry SET content = replace(content, \'"spent":["\', \'"spent":["-\')')
        db.execute('UPDATE entry SET content = replace(content, \'"spent":[null,"\', \'"spent":[null,"-\')')
    db.close()
    assert session.dataset.ledger.verify_chains() != ()
    assert outcome(session, "SELECT SUM(n) FROM visits").startswith("IntegrityError")


def test_an_old_copy_of_the_ledger_does_not_fit_later_receipts(tmp_path: Path) -> None:
    """Who can write the file can put an old copy back; what was handed out since shows it."""
    session = new(tmp_path)
    session.execute(COUNT)
    old = tampered(tmp_path).read_bytes()
    session.execute("SELECT SUM(n) FROM visits")
    receipt = session.dataset.ledger.list_entries(session._account.name)[-1]
    tampered(tmp_path).write_bytes(old)
    assert receipt.hash not in {entry.hash for entry in session.dataset.ledger.list_entries(session._account.name)}
    session.execute("SELECT SUM(x) FROM visits")
    again = session.dataset.ledger.list_entries(session._account.name)[-1]
    assert (again.number, again.hash) != (receipt.number, receipt.hash) and again.number == receipt.number


def test_a_read_only_ledger_serves_nothing_new() -> None:
    with no_root() as folder:
        session = new(folder)
        tampered(folder).chmod(0o400)
        assert outcome(session, COUNT).startswith("OperationalError")
        tampered(folder).chmod(0o600)
        assert not outcome(session, COUNT).startswith("OperationalError")


def test_a_locked_ledger_serves_nothing(tmp_path: Path) -> None:
    session = new(tmp_path)
    ledger = session.dataset.ledger
    assert isinstance(ledger, SqlLedger)
    object.__setattr__(ledger.database, "busy_seconds", 0.1)
    with sqlite3.connect(tampered(tmp_path), isolation_level=None) as db:
        db.execute("BEGIN EXCLUSIVE")
        assert "locked" in outcome(session, COUNT)
        db.execute("ROLLBACK")
    db.close()
    assert session.budget().charges == 0


# --- schemas ---------------------------------------------------------------------------------------------------------


def edit(folder: Path, old: str, new: str, name: str = "h") -> Path:
    path = folder / f"{name}.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def test_wider_bounds_are_another_question(tmp_path: Path) -> None:
    """A stored release must not be read with other bounds than its noise was made for."""
    session = new(tmp_path)
    first = session.execute("SELECT SUM(n) FROM visits")
    edit(tmp_path, "bounds: [0, 100]", "bounds: [0, 1000]")
    again = reopen(tmp_path / "h.yaml")
    second = again.execute("SELECT SUM(n) FROM visits")
    assert second.loss.rho > 0 and first.rows != second.rows
    edit(tmp_path, "rows: 20", "rows: 40")
    assert reopen(tmp_path / "h.yaml").execute("SELECT SUM(n) FROM visits").loss.rho > 0


def test_a_raised_budget_keeps_what_was_spent(tmp_path: Path) -> None:
    session = new(tmp_path, epsilon="2", delta="1e-5")
    session.execute(COUNT)
    paid = spent(session)[1]
    path = edit(tmp_path, "budget: {epsilon: 2,", "budget: {epsilon: 4,")
    with pytest.raises(IntegrityError, match='changes the budget of "dataset" from epsilon 2 to 4'):
        reopen(path).execute("SELECT SUM(n) FROM visits")
    _, receipt = grant_budget(path, "dataset")
    assert receipt is not None and grant_budget(path, "dataset")[1] is None
    assert spent(reopen(path))[1] == paid
    edit(tmp_path, "budget: {epsilon: 4,", "budget: {epsilon: 1,")
    lowered = reopen(tmp_path / "h.yaml")
    assert spent(lowered)[1] == paid
    lowered.set("epsilon", "0.9")
    assert outcome(lowered, "SELECT SUM(n) FROM visits").startswith("BudgetExceeded")


@pytest.mark.parametrize("old, new", [("neighbors: add_remove", "neighbors: change_one"),
                                      ("  contributions:", "  group_size: 2\n  contributions:")])  # fmt: skip
def test_a_ledger_is_bound_to_what_it_protects(tmp_path: Path, old: str, new: str) -> None:
    build(tmp_path, "h", schema_text("h"), DATA).execute(COUNT)
    edit(tmp_path, old, new)
    with pytest.raises(IntegrityError, match="was made for"):
        open_dataset(tmp_path / "h.yaml")


def test_two_schemas_on_one_ledger_do_not_share_answers(tmp_path: Path) -> None:
    """Another schema's table of the same name is another question, or is not served at all."""
    session = new(tmp_path)
    first = session.execute("SELECT COUNT(*) FROM people").rows
    other = schema_text("g").replace("sqlite:///g.ledger", "sqlite:///h.ledger")
    try:
        second = build(tmp_path, "g", other, DATA + VICTIM)
    except StaleData:
        return
    charges = second.budget().charges
    again = second.execute("SELECT COUNT(*) FROM people").rows
    assert second.budget().charges == charges + 1 or again == first


def test_a_newer_version_is_not_the_old_answer(tmp_path: Path) -> None:
    """What is stored is about the registered version, and is answered as it was; nothing else is."""
    session = new(tmp_path)
    first = session.execute(COUNT)
    replace_data(tmp_path, "h", DATA + VICTIM)
    with for_free(session):
        assert session.execute(COUNT).rows == first.rows
        assert outcome(session, "SELECT SUM(n) FROM visits").startswith("StaleData")


# --- names, settings, transactions -----------------------------------------------------------------------------------

ANALYSTS = "analysts:\n  {}: {{budget: {{epsilon: 2, delta: 1e-6}}}}\n  {}: {{budget: {{epsilon: 2, delta: 1e-6}}}}\n"


@pytest.mark.parametrize("one, other", [("ana", "Ana"), ("ana", "ANA"), ("jos\u00e9", "jose\u0301"),
    ("ana", "\uff41na"),
                                        ("ana", "dataset"), ("ana", "DATASET"), ("stra\u00dfe", "strasse"),
                                        ("ana", "'ana'"), ("ana", "ana "), ("\u0430na", "ana")])  # fmt: skip
def test_an_account_has_one_name(tmp_path: Path, one: str, other: str) -> None:
    """Names that people take for each other would be two budgets for one, or one budget for two."""
    text = schema_text("h", TABLES + ANALYSTS.format(f'"{one}"', f'"{other}"'))
    (tmp_path / "h.yaml").write_text(text, encoding="utf-8")
    try:
        session = build(tmp_path, "h", text, DATA, one)
    except SchemaError:
        return
    session.execute(COUNT)
    second = Session(session.dataset, other.strip("'"))
    assert second.budget().charges == 0 and second.execute(COUNT).loss.rho > 0


def test_the_dataset_and_the_empty_name_cannot_connect(tmp_path: Path) -> None:
    session = build(tmp_path, "h", schema_text("h", TABLES + ANALYSTS.format("ana", "ben")), DATA, "ana")
    for user in (None, "dataset", "DATASET", "Ana", "ana ", "", "ana\x00", "ana' OR '1'='1", "*", "ana,ben"):
        with pytest.raises(AccessDenied):
            Session(session.dataset, user)
    for sql in (
        "SET ROLE ben",
        "SET SESSION AUTHORIZATION ben",
        "SET user = ben",
        "RESET ROLE",
        "SET SESSION ROLE ben",
    ):
        outcome(session, sql)
        assert session.execute("SHOW session_authorization").rows == [("ana",)]
        assert session._account.name == "ana"


@pytest.fixture(scope="module")
def policed(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return new(tmp_path_factory.mktemp("policed"))


@pytest.mark.parametrize("sql", [
    "SET contributions.rows = 21", "SET contributions.groups = 5", "SET contributions.rows = 1e6", "SET epsilon = 0",
    "SET epsilon = -1", "SET delta = 1", "SET epsilon = 1e7", "SET contributions.rows = none",
    "SET contributions.rows = 0",
    "SET contributions.rows = 2.5", "SET epsilon = nan", "SET epsilon = inf", "SET noise = none", "SET noise = off",
    "SET neighbors = add_remove", "SET group_size = 1", "SET privacy.budget = 9", "SET ledger = x",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 21) COUNT(*) FROM visits",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = NULL) COUNT(*) FROM visits",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = n) COUNT(*) FROM visits",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = -1) COUNT(*) FROM visits",
    "SELECT (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1000) COUNT(*) FROM visits)",
    "SELECT * FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1000) COUNT(*) FROM visits) t",
    "WITH t AS (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1000) COUNT(*) FROM visits) SELECT * FROM t",
    "SELECT COUNT(*) FROM visits UNION ALL SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 9) COUNT(*) FROM visits",
])  # fmt: skip
def test_caps_and_policies_are_the_owners(policed: Session, sql: str) -> None:
    session = policed
    before = session.settings
    with for_free(session):
        assert outcome(session, sql) != "answered"
    assert session.settings == before


def test_a_rollback_refunds_nothing(tmp_path: Path) -> None:
    session = new(tmp_path)
    session.execute("BEGIN")
    session.execute("SET LOCAL epsilon = 0.5")
    first = session.execute(COUNT).rows
    session.execute("SAVEPOINT a")
    session.execute("SELECT SUM(n) FROM visits")
    paid = spent(session)
    for command in ("ROLLBACK TO SAVEPOINT a", "ROLLBACK", "BEGIN", "ABORT", "DISCARD ALL", "RESET ALL"):
        session.execute(command)
        assert spent(session) == paid, command
    session.execute("SET epsilon = 0.5")
    assert session.execute(COUNT).rows == first and spent(session) == paid


def test_explaining_and_describing_are_free_however_often(tmp_path: Path) -> None:
    session = new(tmp_path)
    with for_free(session):
        for number in range(15):
            sql = f"SELECT ward, COUNT(*) FROM visits WHERE n > {number} GROUP BY ward"
            session.explain(sql)
            session.describe(sql)
            session.execute(f"EXPLAIN {sql}")
            session.execute(f"DESCRIBE {sql}")
    assert bodies(tmp_path / "h.ledger") == []


def test_a_budget_figure_counts_the_accounts_own_charges_only(tmp_path: Path) -> None:
    """SHOW BUDGET and refusals as a channel: what ben does must not move a digit of what ana is shown."""
    text = schema_text("h", TABLES + ANALYSTS.format("ana", "ben"))
    ana = build(tmp_path, "h", text, DATA, "ana")
    ben = Session(ana.dataset, "ben")
    shown = ana.execute("SHOW BUDGET").rows, ana.budget(), str(ana.explain(COUNT))
    ana.set("epsilon", "50")
    refused = outcome(ana, COUNT)
    ana.set("epsilon", "1")
    for number in range(5):
        ben.set("epsilon", f"0.{number + 1}")
        ben.execute(f"SELECT COUNT(*) FROM visits WHERE n > {number}")
    assert (ana.execute("SHOW BUDGET").rows, ana.budget(), str(ana.explain(COUNT))) == shown
    ana.set("epsilon", "50")
    assert outcome(ana, COUNT) == refused
    assert [e.kind.value for e in ana.dataset.ledger.list_entries("ana")] == ["opened"]
    whole = ana.dataset.ledger.get_balance(dataset_account(ana.dataset.schema))
    assert whole.charges == 5


def test_the_ledger_is_charged_before_the_engine_runs(tmp_path: Path) -> None:
    session = new(tmp_path, epsilon="2", delta="1e-5")
    asked: list[str] = []
    real = session.dataset.engine.execute

    def execute(sql: str, keys: int, holes: Any) -> Any:
        asked.append(sql)
        return real(sql, keys, holes)

    object.__setattr__(session.dataset.engine, "execute", execute)
    session.set("epsilon", "1.9")
    session.set("delta", "5e-6")
    outcome(session, COUNT)
    before = len(asked)
    with pytest.raises(BudgetExceeded):
        session.execute("SELECT SUM(n), SUM(x) FROM visits")
    with pytest.raises(InvalidParameter):
        session.execute("SET epsilon = 0")
    assert len(asked) == before
