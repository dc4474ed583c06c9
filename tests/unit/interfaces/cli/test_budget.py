"""`dpsql budget`: a tree of bars for the owner, her own figures for an analyst, the report, the history."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from fractions import Fraction as F

import pytest

from dpsql.interfaces.cli.budget import format_bar
from dpsql.interfaces.cli.main import main

BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"
GROUPS = """
groups:
  hospital: {budget: {epsilon: 8, delta: 8e-7}}
  research: {parent: hospital, budget: {epsilon: 6, delta: 6e-7}}
analysts:
  ana: {parent: research, budget: {epsilon: 5, delta: 5e-7}}
  bi: {parent: hospital, budget: {epsilon: 5, delta: 5e-7}}
  eve: {budget: {epsilon: 5, delta: 5e-7}, expires: 2099-01-01}
"""


@pytest.fixture
def grouped(folder):
    path = folder / "clinic.yaml"
    text = path.read_text()
    start, end = text.index("analysts:"), text.index("tables:")
    path.write_text(text[:start] + GROUPS.lstrip() + "\n" + text[end:])
    return str(path)


def names(out: str) -> list[str]:
    return [line.split(" │ [")[0].rstrip()[1:] for line in out.splitlines() if "% left" in line]


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (F(1), "[####################] 100 % left"),
        (F(61, 100), "[############--------]  61 % left"),
        (F(0), "[--------------------]   0 % left"),
        (F(999, 1000), "[###################-] 99.9 % left"),
    ],
)
def test_a_bar_shows_no_more_than_there_is(part, shown):
    assert format_bar(part) == shown


def test_accounts_are_a_tree(run, grouped):
    run("query", grouped, BY_SEX, "--user", "ana")
    ran = run("budget", grouped)
    assert ran.code == 0
    assert names(ran.out) == ["dataset", "├─ hospital", "│  ├─ research", "│  │  └─ ana", "│  └─ bi", "└─ eve"]
    charges = [line.split("│")[-3].strip() for line in ran.out.splitlines() if "% left" in line]
    assert charges == ["1", "1", "1", "1", "0", "0"]
    assert '"eve" may ask until 2099-01-01' in ran.out


def test_a_terminal_without_utf8_gets_ascii(grouped):
    assert main(["query", grouped, "SELECT 1", "--user", "ana"]) == 0  # makes the ledger
    ran = subprocess.run([sys.executable, "-m", "dpsql", "budget", grouped], capture_output=True,
                         env={**os.environ, "PYTHONIOENCODING": "ascii"})  # fmt: skip
    assert ran.returncode == 0 and b"|  `- bi" in ran.stdout and b"[####################] 100 % left" in ran.stdout
    assert b"\x1b" not in ran.stdout and b"\\u" not in ran.stdout


def test_what_is_left_in_statements_is_what_will_be_granted(run, clinic):
    """Told before: about so many. Asked one by one, so many pass, and the next is refused."""
    options = ("--user", "ana", "--epsilon", "1")
    run("query", clinic, "SELECT 1", "--user", "ana")  # makes the ledger
    told = int(re.search(r"about (\d+) more statements at the default epsilon 1 and delta 1e-7",
                         run("budget", clinic, "--user", "ana").out)[1])  # fmt: skip
    granted, asked = 0, "SELECT COUNT(*) FROM patients WHERE birth_year > "
    while run("query", clinic, f"{asked} {1930 + granted}", *options).code == 0:
        granted += 1
    assert told == granted and 10 < told < 40
    after = run("budget", clinic, "--user", "ana").out
    assert "about 0 more statements" in after


def test_an_analyst_sees_their_own_figures_only(run, clinic):
    run("query", clinic, BY_SEX, "--user", "ana")
    for options in ((), ("--json",), ("--report",), ("--report", "--json"), ("--history", "-")):
        shown = run("budget", clinic, "--user", "bi", *options)
        assert shown.code == 0 and "ana" not in shown.out and "failures" not in shown.out
        assert "1 charge" not in shown.out and BY_SEX not in shown.out, options
    assert '"account": "dataset"' not in run("budget", clinic, "--user", "bi", "--json").out


def test_json_has_every_account(run, grouped):
    run("query", grouped, BY_SEX, "--user", "ana", "--epsilon", "1")
    accounts = {one["account"]: one for one in json.loads(run("budget", grouped, "--json").out)["accounts"]}
    assert {name: one["parent"] for name, one in accounts.items()} == {
        "dataset": None, "hospital": "dataset", "research": "hospital", "ana": "research", "bi": "hospital",
        "eve": "dataset",
    }  # fmt: skip
    assert accounts["ana"]["charges"] == accounts["dataset"]["charges"] == 1 and accounts["bi"]["charges"] == 0
    assert 0 < accounts["ana"]["spent"]["rho"] == accounts["research"]["spent"]["rho"]
    assert accounts["bi"]["left"] == {"epsilon": 5.0, "part": 1.0}
    assert accounts["eve"]["default"]["more"] > accounts["ana"]["default"]["more"] > 0
    assert accounts["eve"]["expires"] == "2099-01-01" and accounts["eve"]["failures"]["suspended"] is False


def test_the_report_says_that_it_is_none_of_the_rules(run, clinic):
    for _ in range(3):
        run("query", clinic, BY_SEX, "--user", "ana", "--delta", "0", "--epsilon", "0.2")
    run("query", clinic, "SELECT COUNT(*) FROM visits", "--user", "ana", "--delta", "0", "--epsilon", "0.1")
    shown = run("budget", clinic, "--user", "ana", "--report").out
    assert 'REPORT, not the rule, on "ana"' in shown and "The ledger grants by its filter" in shown
    document = json.loads(run("budget", clinic, "--report", "--json").out)["accounts"]
    assert [one["report"]["rule"] for one in document] == [False] * 3
    of_ana = {one["accountant"]: one["epsilon"] for one in document[1]["report"]["accountants"]}
    assert of_ana["basic"] == pytest.approx(0.3) and of_ana["PLD"] <= 0.3 + 1e-3 and of_ana["RDP"] <= 0.3 + 1e-3
    of_bi = {one["epsilon"] for one in document[2]["report"]["accountants"]}
    assert of_bi == {0.0}


def test_the_history_is_a_table(run, clinic, tmp_path):
    run("query", clinic, BY_SEX, "--user", "ana", "--epsilon", "0.5")
    run("query", clinic, "SELECT COUNT(*) FROM visits", "--user", "bi", "--delta", "0")
    rows = list(csv.DictReader(io.StringIO(run("budget", clinic, "--history", "-").out)))
    assert [(row["account"], row["kind"]) for row in rows] == [
        ("ana", "opened"), ("ana", "charge"), ("bi", "opened"), ("bi", "charge"),
        ("dataset", "opened"), ("dataset", "charge"), ("dataset", "charge"),
    ]  # fmt: skip
    asked = rows[1]
    assert asked["statement"] == BY_SEX and asked["asked_by"] == "ana" and float(asked["epsilon"]) == 0.5
    assert asked["charged_epsilon"] == "" and 0 < float(asked["charged_rho"]) < 0.01
    assert re.fullmatch("ana/2/[0-9a-f]{64}", asked["receipt"])
    assert json.loads(asked["mechanisms"])["bundles"][0]["kind"] == "gaussian"
    assert float(rows[3]["charged_epsilon"]) == pytest.approx(1.0)
    path = tmp_path / "history.csv"
    path.touch(mode=0o644)  # one that was there before is closed to others too
    ran = run("budget", clinic, "--user", "bi", "--history", str(path))
    assert ran.out == "" and "2 entries" in ran.err
    assert [row["account"] for row in csv.DictReader(io.StringIO(path.read_text()))] == ["bi", "bi"]
    assert os.name != "posix" or path.stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_written_or_does_not_fit_together(run, clinic, tmp_path):
    assert run("budget", clinic, "--history", str(tmp_path / "no" / "file.csv")).code == 1
    assert run("budget", clinic, "--history", "-", "--json").code == 2
    assert run("budget", clinic, "--history", "-", "--user", "nobody").code == 1


def test_an_account_that_left_the_schema_is_reported(run, clinic, folder):
    run("query", clinic, BY_SEX, "--user", "bi")
    path = folder / "clinic.yaml"
    path.write_text(re.sub(r"\n  bi: .*", "", path.read_text()))
    assert 'also has "bi", which the schema has no more' in run("budget", clinic).out
    assert "bi,2," in run("budget", clinic, "--history", "-").out
