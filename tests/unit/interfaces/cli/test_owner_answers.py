"""`dpsql answers`: what the owner may do with stored answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.unit.interfaces.cli.conftest import Ran

Run = Callable[..., Ran]
COUNT = "SELECT sex, COUNT(*) FROM patients GROUP BY sex"


def test_are_listed_exported_and_dropped(run: Run, clinic: str) -> None:
    path = clinic
    assert run("query", path, COUNT, "--user", "ana").code == 0
    listed = run("answers", "list", path)
    assert listed.code == 0 and "stored" in listed.out and "ana, dataset" in listed.out and COUNT in listed.out
    (told,) = json.loads(run("answers", "list", path, "--json").out)
    assert told["statement"] == COUNT and told["payers"] == ["ana", "dataset"] and told["rho"] > 0
    (line,) = run("answers", "export", path, "1").out.splitlines()
    release = json.loads(line)["release"]
    assert [key[0] for key in release["keys"]] == [["str", "f"], ["str", "m"], ["str", "x"], None]
    assert len(release["cells"][0]) == 4
    assert run("answers", "drop", path, "--before", "2000-01-01").out.startswith("0 answers")
    assert run("answers", "drop", path, "--before", "2999-01-01").out.startswith("0 answers"), "they may be asked for"
    assert run("data", "changed", path).code == 0
    assert run("answers", "drop", path, "--before", "2999-01-01").out.startswith("1 answer dropped")
    assert "void" in run("answers", "list", path).out and run("answers", "export", path).out == ""
    again = run("query", path, COUNT, "--user", "ana")
    assert "charged: nothing" not in again.out, "on the next version she pays again"
    assert run("audit", path).code == 0


def test_wrong_numbers_and_days(run: Run, clinic: str) -> None:
    assert "there is no ledger" in run("answers", "list", clinic).err
    assert run("query", clinic, COUNT, "--user", "ana").code == 0
    assert "no stored answer 7" in run("answers", "export", clinic, "7").err
    assert "takes a date" in run("answers", "drop", clinic, "--before", "yesterday").err


def test_a_ledger_that_is_gone_is_not_made_by_looking(run: Run, clinic: str) -> None:
    """An audit of a new ledger would find all well, and its accounts have all of their budget."""
    for command in (("audit",), ("budget",), ("answers", "list"), ("account", "grant")):
        more = ("ana",) if command[0] == "account" else ()
        ran = run(*command, clinic, *more)
        assert ran.code == 1 and "there is no ledger at" in ran.err
    assert not Path(clinic).with_name("clinic.ledger").exists()


def test_a_charged_answer_comes_with_its_receipt(run: Run, clinic: str) -> None:
    first = run("query", clinic, COUNT, "--user", "ana")
    (receipt,) = [line.removeprefix("receipt: ") for line in first.err.splitlines() if line.startswith("receipt: ")]
    assert run("audit", clinic, "--receipt", receipt).code == 0
    forged = receipt[:-4] + ("0000" if receipt[-4:] != "0000" else "1111")
    assert run("audit", clinic, "--receipt", forged).code == 3
    assert f"receipt: {receipt}" in run("query", clinic, COUNT, "--user", "ana").err, "also when it is free"


def test_a_raised_budget_waits_for_the_owner(run: Run, clinic: str) -> None:
    assert run("query", clinic, COUNT, "--user", "ana").code == 0
    text = Path(clinic).read_text()
    assert "ana: {budget: {epsilon: 5," in text
    Path(clinic).write_text(text.replace("ana: {budget: {epsilon: 5,", "ana: {budget: {epsilon: 6,"))
    assert run("query", clinic, COUNT, "--user", "ana").code == 0, "what is paid for is free"
    assert run("query", clinic, COUNT, "--user", "bi").code == 0, "nobody else is held up"
    refused = run("query", clinic, "SELECT COUNT(*) FROM visits", "--user", "ana")
    assert refused.code == 1 and "dpsql account grant" in refused.err
    told = run("budget", clinic).out
    assert 'The schema gives "ana" other terms' in told and "dpsql account grant" in told
    granted = run("account", "grant", clinic, "ana")
    assert granted.code == 0 and "receipt ana/3/" in granted.out
    assert "stands in the ledger" in run("account", "grant", clinic, "ana").out
    assert run("query", clinic, COUNT, "--user", "ana").code == 0
    assert run("account", "grant", clinic, "nobody").code == 1
