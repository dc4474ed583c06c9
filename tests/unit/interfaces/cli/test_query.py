"""Command lines from arguments to output and exit code."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpsql
from dpsql.engines.duckdb import DuckDBEngine
from dpsql.errors import EngineFailed
from dpsql.interfaces.cli.query import parse_parameter

pytestmark = pytest.mark.slow

BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY sex"


def test_version_and_help(run):
    assert run("--version").out == f"dpsql {dpsql.__version__}\n"
    helped = run("--help")
    assert helped.code == 0 and all(name in helped.out for name in ("query", "explain", "budget", "data", "demo"))
    assert "--format" in run("query", "--help").out


def test_a_table_with_error_bars(run, clinic, silent):
    ran = run("query", clinic, BY_SEX, "--user", "ana")
    assert ran.code == 0 and re.fullmatch(r"receipt: ana/2/[0-9a-f]{64}\n", ran.err)
    assert ran.out == (
        " sex  │         n\n"
        "──────┼───────────\n"
        " f    │ 1268 ± 10\n"
        " m    │ 1116 ± 10\n"
        " x    │   51 ± 10\n"
        " NULL │   65 ± 10\n"
        "(4 rows, ± 95 % intervals)\n"
        "charged: epsilon ≤ 1 at delta 1e-7 (rho 0.0202)\n"
        "left of ana's budget: 94.7 % (epsilon 3.97 of 5)\n"
    )


def test_a_table_without_error_bars(run, clinic, silent):
    ran = run("query", clinic, BY_SEX, "--user", "ana", "--no-errors")
    assert ran.out.splitlines()[2] == " f    │ 1268" and "(4 rows)" in ran.out


def test_a_repeat_is_free(run, clinic):
    first = run("query", clinic, BY_SEX, "--user", "ana").out
    again = run("query", clinic, BY_SEX, "--user", "ana").out
    assert "charged: nothing\n" in again
    assert again.splitlines()[:-2] == first.splitlines()[:-2] and again.splitlines()[-1] == first.splitlines()[-1]


def test_csv(run, clinic, silent):
    ran = run("query", clinic, BY_SEX, "--user", "ana", "--format", "csv")
    assert ran.out == "sex,n\nf,1268\nm,1116\nx,51\n,65\n"
    assert ran.err.startswith("charged: epsilon ≤ 1 ") and "left of ana's budget" in ran.err


def test_csv_with_errors(run, clinic, silent):
    ran = run("query", clinic, BY_SEX, "--user", "ana", "--format", "csv", "--errors")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert list(rows[0]) == ["sex", "n", "n_stderr", "n_low", "n_high", "n_clipped"]
    assert (rows[0]["n"], rows[0]["n_low"], rows[0]["n_high"]) == ("1268", "1258.0", "1278.0")


def test_json(run, clinic, silent):
    ran = run("query", clinic, BY_SEX, "--user", "ana", "--format", "json")
    assert json.loads(ran.out)[0] == {"sex": "f", "n": 1268} and json.loads(ran.out)[3] == {"sex": None, "n": 65}
    assert ran.err.startswith("charged: ")


def test_json_with_errors_and_equal_names(run, clinic, silent):
    sql = "SELECT COUNT(*), COUNT(*) FROM patients"
    ran = run("query", clinic, sql, "--user", "ana", "--format", "json", "--errors")
    assert list(json.loads(ran.out)[0]) == [
        "count", "count_stderr", "count_low", "count_high", "count_clipped",
        "count_2", "count_2_stderr", "count_2_low", "count_2_high", "count_2_clipped",
    ]  # fmt: skip


def test_notices_go_beside_the_rows(run, clinic, silent):
    sql = "SELECT COUNT(*) FROM patients WHERE birth_year = 1950 AND sex = 'x'"
    ran = run("query", clinic, sql, "--user", "ana", "--epsilon", "0.0001")
    assert ran.err.startswith("NOTICE:  the noise is wider") and "NOTICE" not in ran.out


def test_commands_cost_nothing_and_do_not_speak_of_it(run, clinic):
    ran = run("query", clinic, "SHOW TABLES", "--user", "ana")
    assert ran.code == 0 and "visits" in ran.out and "charged" not in ran.out
    assert "last" in run("query", clinic, "SET epsilon = 1", "--user", "ana").err


def test_an_error_points_at_its_position(run, clinic):
    ran = run("query", clinic, "SELECT\n  SUM(costt) FROM visits", "--user", "ana")
    assert ran.code == 1 and ran.out == ""
    lines = ran.err.splitlines()
    assert lines[0].startswith("ERROR:  ") and "costt" in lines[0]
    assert lines[1] == "LINE 2:   SUM(costt) FROM visits" and lines[2].index("^") == lines[1].index("costt")


def test_single_rows_are_refused(run, clinic):
    ran = run("query", clinic, "SELECT * FROM visits LIMIT 5", "--user", "ana")
    assert ran.code == 1 and "single private rows" in ran.err and "HINT:  " in ran.err


def test_the_budget_ends(run, clinic):
    ran = run("query", clinic, BY_SEX, "--user", "ana", "--epsilon", "50")
    assert ran.code == 1 and '% of the budget of "ana", and 100 % is left' in ran.err and "SET epsilon" in ran.err
    assert "0 charges" not in ran.err and "0 charges" in run("budget", clinic, "--user", "ana").out


@pytest.mark.parametrize(
    "arguments",
    [("query",), ("query", "s.yaml"), ("query", "s.yaml", "SELECT 1", "--file", "x.sql"), ("nothing",),
     ("query", "s.yaml", "SELECT 1", "--format", "xml"), ("query", "s.yaml", "SELECT 1", "--set", "epsilon"), ("data",),
     ("query", "s.yaml", "SELECT 1", "SELECT 2"), ("query", "s.yaml", "--bogus"),
     ("query", "s.yaml", "--user", "a", "-x"), ("budget", "s.yaml", "more")],
)  # fmt: skip
def test_wrong_usage(run, arguments):
    ran = run(*arguments)
    assert ran.code == 2 and ran.err.startswith("usage: dpsql") and ran.out == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("query", "SCHEMA", "SELECT 1"), "a user must be named"),
        (("query", "SCHEMA", "SELECT 1", "--user", "eve"), 'no analyst "eve"'),
        (("query", "SCHEMA", "SELECT 1", "--user", "ana", "--epsilon", "0"), "epsilon must be above 0"),
        (("query", "SCHEMA", "SELECT 1", "--user", "ana", "--set", "bogus=1"), 'no setting "bogus"'),
        (("query", "SCHEMA", "--file", "no.sql"), 'the file "no.sql" cannot be read'),
        (("query", "no.yaml", "SELECT 1"), "no such file"),
        (("query", "dpsql://host/x", "SELECT 1"), "the URL names no user"),
        (("query", "dpsql://ana:x@127.0.0.1:1/x", "SELECT 1"), "no connection to 127.0.0.1:1"),
        (("check", "dpsql://ana:x@host/x"), "not with a server"),
        (("budget", "SCHEMA", "--user", "eve"), 'no analyst "eve"'),
        (("data", "changed", "no.yaml"), "no such file"),
    ],
)
def test_errors_are_reported_in_words(run, clinic, arguments, text):
    run("query", clinic, "SELECT 1", "--user", "ana")  # makes the ledger
    ran = run(*(clinic if argument == "SCHEMA" else argument for argument in arguments))
    assert ran.code == 1 and ran.err.startswith("ERROR:  ") and text in ran.err and "Traceback" not in ran.err


@pytest.mark.parametrize("sql", ["SELECT 1 AS a", "-- a comment\nSELECT 1 AS a", "-"])
def test_options_may_stand_anywhere(run, clinic, monkeypatch, sql):
    orders = (("query", clinic, sql, "--user", "ana", "--format", "csv"),
              ("query", clinic, "--user", "ana", sql, "--format", "csv"),
              ("query", "--user", "ana", clinic, "--format", "csv", sql),
              ("query", "--user", "ana", "--format", "csv", clinic, sql))  # fmt: skip
    for arguments in orders:
        monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 1 AS a"))
        assert run(*arguments).out == "a\n1\n", arguments


def test_from_standard_input_and_file(run, clinic, monkeypatch, tmp_path, silent):
    monkeypatch.setattr(sys, "stdin", io.StringIO(BY_SEX + ";\n"))
    one = run("query", clinic, "-", "--user", "ana", "--format", "csv")
    (tmp_path / "q.sql").write_text("-- by sex\n" + BY_SEX)
    two = run("query", clinic, "--file", str(tmp_path / "q.sql"), "--user", "ana", "--format", "csv")
    assert one.out == two.out == "sex,n\nf,1268\nm,1116\nx,51\n,65\n"


def test_parameters(run, clinic, silent):
    sql = "SELECT COUNT(*) AS n FROM patients WHERE sex = ? AND birth_year > ?"
    ran = run("query", clinic, sql, "-p", "f", "-p", "1980", "--user", "ana", "--format", "csv")
    literal = sql.replace("= ?", "= 'f'").replace("> ?", "> 1980")
    assert ran.out == run("query", clinic, literal, "--user", "ana", "--format", "csv").out
    assert run("query", clinic, sql, "-p", "f", "--user", "ana").code == 1


@pytest.mark.parametrize("text", ["1 OR 1=1", "1e", "0x10", "١٢", "1_000", "nan", "inf", "--", "'"])
def test_what_is_no_number_is_text(text):
    assert parse_parameter(text) == text


def test_settings(run, clinic):
    ran = run(
        "query",
        clinic,
        "SHOW ALL",
        "--user",
        "ana",
        "--epsilon",
        "0.5",
        "--delta",
        "0",
        "--set",
        "contributions.rows=3",
        "--format",
        "csv",
    )
    shown = dict(csv.reader(io.StringIO(ran.out)))
    assert (shown["epsilon"], shown["delta"], shown["contributions.rows"]) == ("0.5", "0", "3")


def test_explain(run, clinic):
    ran = run("explain", clinic, BY_SEX, "--user", "ana", "--epsilon", "0.5")
    assert ran.code == 0 and "epsilon 0.5" in ran.out and "gaussian" in ran.out
    through_sql = run("query", clinic, f"EXPLAIN {BY_SEX}", "--user", "ana", "--epsilon", "0.5")
    assert through_sql.out == ran.out
    assert "0 charges" in run("budget", clinic, "--user", "ana").out


def test_budget_of_all_accounts(run, clinic):
    run("query", clinic, BY_SEX, "--user", "ana")
    lines = run("budget", clinic).out.splitlines()
    assert [line.split("│")[0].strip() for line in lines[2:5]] == ["dataset", "├─ ana", "└─ bi"]
    assert [line.split("│")[-3].strip() for line in lines[2:5]] == ["1", "1", "0"]
    assert [line.split("│")[-1].strip() for line in lines[2:5]] == ["0 of 30", "0 of 3", "0 of 3"]
    assert len(lines) == 7


def test_the_owner_sees_failures_and_suspensions(run, clinic, monkeypatch):
    def fail(*arguments):
        raise EngineFailed("x")

    with monkeypatch.context() as patched:
        patched.setattr(DuckDBEngine, "execute", fail)
        for _ in range(3):
            assert run("query", clinic, BY_SEX, "--user", "ana").code == 1
    shown = run("budget", clinic).out
    lines = shown.splitlines()
    assert [line.split("│")[-1].strip() for line in lines[2:5]] == ["3 of 30", "3 of 3, suspended", "0 of 3"]
    assert f'"ana" is suspended until: dpsql account resume {clinic} ana' in shown and "DPSQL_LOG=FILE" in shown
    assert "suspended" in run("query", clinic, BY_SEX, "--user", "ana").err
    run("account", "resume", clinic, "ana")
    again = run("budget", clinic).out
    assert "suspended" not in again and "DPSQL_LOG=FILE" in again, "the dataset's are still counted"
    assert run("query", clinic, BY_SEX, "--user", "ana").code == 0


def test_budget_where_no_analysts_are_declared(run, folder):
    survey = str(folder / "survey.yaml")
    ran = run("query", survey, "SELECT region, AVG(score) FROM answers GROUP BY region")
    assert ran.code == 0 and "left of the dataset's budget" in ran.out
    assert "dataset" in run("budget", survey).out


def test_changed_data_is_served_once_the_owner_registers_it(run, clinic, folder):
    assert run("query", clinic, BY_SEX, "--user", "ana").code == 0
    os.utime(folder / "data" / "patients.parquet", ns=(1, 1))
    stale = run("query", clinic, BY_SEX, "--user", "ana")
    assert stale.code == 1 and '"patients" is not the registered version' in stale.err
    assert "dpsql data changed" in stale.err
    changed = run("data", "changed", clinic)
    assert changed.code == 0 and "version 2" in changed.out
    again = run("query", clinic, BY_SEX, "--user", "ana")
    assert again.code == 0 and "charged: epsilon" in again.out  # another version is another release


def test_a_bug_reveals_nothing_of_the_data(run, clinic, monkeypatch):
    def fail(*arguments, **settings):
        raise RuntimeError("patient 17 is ill")

    monkeypatch.setattr("dpsql.interfaces.dbapi.connection.connect", fail)
    monkeypatch.delenv("DPSQL_DEBUG", raising=False)
    ran = run("query", clinic, "SELECT 1")
    assert ran.code == 1 and ran.err.startswith("ERROR:  internal error") and "DPSQL_DEBUG=1" in ran.err
    assert "17" not in ran.err and "Traceback" not in ran.err
    monkeypatch.setenv("DPSQL_DEBUG", "1")
    assert "Traceback" in run("query", clinic, "SELECT 1").err


def test_an_interrupt(run, clinic, monkeypatch):
    def interrupt(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpsql.interfaces.dbapi.connection.connect", interrupt)
    assert run("query", clinic, "SELECT 1").code == 130


def test_a_reader_that_goes_away(folder):
    command = [sys.executable, "-m", "dpsql", "query", str(folder / "survey.yaml"),
               "SELECT i FROM generate_series(1, 100000) AS s(i)", "--format", "csv"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "i\n"
        process.stdout.close()
        error = process.stderr.read()
    assert process.returncode == 141 and "Traceback" not in error and "Exception" not in error


def test_the_module_runs(tmp_path):
    done = subprocess.run([sys.executable, "-m", "dpsql", "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == f"dpsql {dpsql.__version__}\n"


def test_the_entry_point_is_declared():
    text = (Path(__file__).parents[4] / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dpsql = "dpsql.interfaces.cli.main:main"' in text


def test_the_owners_log_is_private(tmp_path):
    """It may hold private values."""
    old = tmp_path / "old.log"
    old.touch(mode=0o644)
    for log in (tmp_path / "new.log", old):
        environment = {**os.environ, "DPSQL_LOG": str(log)}
        subprocess.run([sys.executable, "-m", "dpsql", "budget", "nosuch.yaml"], env=environment, capture_output=True)
        assert log.stat().st_mode & 0o777 == 0o600


def test_a_log_that_cannot_be_written_is_reported(run, tmp_path, monkeypatch):
    monkeypatch.setenv("DPSQL_LOG", str(tmp_path / "no" / "log"))
    ran = run("budget", "nosuch.yaml")
    assert ran.code == 1 and "the log" in ran.err and "cannot be written" in ran.err and "nosuch" not in ran.err
