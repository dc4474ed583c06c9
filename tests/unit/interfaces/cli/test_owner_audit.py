"""`dpsql audit` finds what was altered, names it, and says what a receipt tells."""

import json
import re
import shutil
import sqlite3
from contextlib import closing

import pytest

pytestmark = pytest.mark.slow

BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"
WITH_HOLES = "SELECT ward, COUNT(*), MEDIAN(cost) FROM visits GROUP BY ward"
COUNT = "SELECT COUNT(*) FROM visits"


@pytest.fixture
def asked(run, clinic):
    """Three statements of ana, one of bi; the last is of another kind of noise."""
    for user, sql, *options in (
        ("ana", BY_SEX), ("ana", WITH_HOLES), ("bi", BY_SEX), ("ana", COUNT, "--delta", "0"),
    ):  # fmt: skip
        assert run("query", clinic, sql, "--user", user, "--epsilon", "0.5", *options).code == 0
    return clinic


def ledger_of(clinic):
    return re.sub(r"yaml$", "ledger", clinic)


def tamper(clinic, *statements):
    with closing(sqlite3.connect(ledger_of(clinic), isolation_level=None)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f'DROP TRIGGER "{name}"')
        for statement in statements:
            assert db.execute(statement).rowcount > 0, statement


def receipts(run, clinic):
    return {one["account"]: one["end"] for one in json.loads(run("audit", clinic, "--json").out)["accounts"]}


def test_all_is_well(run, asked):
    """Also of a statement whose later release is filled by an earlier one."""
    ran = run("audit", asked)
    assert ran.code == 0 and "The chains are whole" in ran.out and "FOUND" not in ran.out
    document = json.loads(run("audit", asked, "--json").out)
    assert document["well"] is True and document["findings"] == []
    assert [(one["account"], one["entries"]) for one in document["accounts"]] == [("ana", 4), ("bi", 2), ("dataset", 4)]
    assert all(one["losses"] > 0 for one in document["accounts"])


@pytest.mark.parametrize(
    ("edit", "finding"),
    [
        (["UPDATE entry SET content = replace(content, 'COUNT', 'SUM') WHERE account = 'ana' AND number = 3"],
         '"ana" 3: its content was changed'),
        (["DELETE FROM entry WHERE account = 'ana' AND number = 2"], '"ana" 2: it is missing'),
        (["DELETE FROM entry WHERE account = 'ana' AND number = 4"], '"ana" 4: it is missing'),
        (["UPDATE entry SET number = 99 WHERE account = 'ana' AND number = 2",
          "UPDATE entry SET number = 2 WHERE account = 'ana' AND number = 3",
          "UPDATE entry SET number = 3 WHERE account = 'ana' AND number = 99"],
         '"ana" 2: it cannot be read, or it belongs to another place'),
        (["DELETE FROM entry WHERE account = 'bi'", "DELETE FROM account WHERE name = 'bi'"],
         '"bi" 2: the owner\'s chain has it, and the account\'s has not'),
        (["UPDATE release SET rho = '1' WHERE id = 1"], '"ana" 2: what it paid for is not what it was charged for'),
        (["UPDATE entry SET content = 'x' WHERE account = 'dataset' AND number = 3"],
         '"dataset" 3: it cannot be read, or it belongs to another place'),
    ],
    ids=["changed", "removed", "cut off", "reordered", "account gone", "cheaper release", "unreadable"],
)  # fmt: skip
def test_what_was_altered_is_named(run, asked, edit, finding):
    tamper(asked, *edit)
    ran = run("audit", asked)
    assert ran.code == 3 and f"FOUND:  {finding}" in ran.out and "The chains are whole" not in ran.out
    assert json.loads(run("audit", asked, "--json").out)["well"] is False


def test_accounts_that_left_the_schema_are_audited(run, asked, folder):
    path = folder / "clinic.yaml"
    path.write_text(re.sub(r"\n  bi: .*", "", path.read_text()))
    assert '"bi": 2 entries' in run("audit", asked).out
    tamper(asked, "UPDATE entry SET content = replace(content, 'sex', 'xes') WHERE account = 'bi' AND number = 2")
    ran = run("audit", asked)
    assert ran.code == 3 and '"bi" 2: its content was changed' in ran.out


def test_receipts_that_are_there(run, asked):
    held = receipts(run, asked)
    ran = run("audit", asked, "--receipt", held["ana"], held["bi"], "--receipt", held["dataset"])
    assert ran.code == 0 and ran.out.count("is in the ledger") == 3


def test_a_query_shows_a_receipt_that_the_audit_knows(run, asked):
    shown = run("query", asked, "SELECT SUM(nights) FROM visits", "--user", "bi")
    (receipt,) = re.findall(r"receipt: (\S+)", shown.out + shown.err)
    assert receipt.startswith("bi/3/") and run("audit", asked, "--receipt", receipt).code == 0


def test_an_old_backup_lacks_newer_receipts(run, asked, tmp_path):
    backup = tmp_path / "backup"
    shutil.copyfile(ledger_of(asked), backup)
    run("query", asked, "SELECT SUM(cost) FROM visits", "--user", "ana")
    receipt = receipts(run, asked)["ana"]
    backup.chmod(0o600)
    shutil.copyfile(backup, ledger_of(asked))
    ran = run("audit", asked)
    assert ran.code == 0, "the backup is whole in itself"
    ran = run("audit", asked, "--receipt", receipt)
    assert ran.code == 3 and f"receipt {receipt} is not in the ledger" in ran.out
    assert 'the last entry of "ana" is 4: the ledger is older than the receipt, as an old backup is' in ran.out
    assert "The chains are whole" in ran.out
    run("query", asked, "SELECT SUM(nights) FROM visits", "--user", "ana")  # and another entry takes its number
    ran = run("audit", asked, "--receipt", receipt)
    assert ran.code == 3 and 'entry 5 of "ana" is another one' in ran.out


def test_receipts_of_other_ledgers_and_no_receipts(run, asked):
    ran = run("audit", asked, "--receipt", f"eve/1/{'0' * 64}")
    assert ran.code == 3 and 'the ledger has no entry of "eve"' in ran.out
    for text in ("ana", "ana/1", "ana/x/" + "0" * 64, "ana/1/ff", "/1/" + "0" * 64):
        ran = run("audit", asked, "--receipt", text)
        assert ran.code == 1 and "is no receipt" in ran.err


def test_an_error_is_no_finding(run, folder):
    assert run("audit", str(folder / "nosuch.yaml")).code == 1


def test_verify_of_accounts_is_gone(run, clinic):
    assert run("account", "verify", clinic, "ana").code == 2
