"""What reviewers found at the doors: prompt, command line, Python, SQLAlchemy and the owner's commands."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.display.screen import Screen
from dpsql.repl.beneath import next_text
from dpsql.repl.shell import Shell

STEERS = "evil\x1b]0;PWNED\x07\x1b[2J"
SCHEMA = """
dpsql: 1
ledger: sqlite:///people.ledger
privacy:
  unit: people.id
  budget: {epsilon: 100, delta: 1e-4}
  query: {epsilon: 1, delta: 1e-6}
limits: {min_latency: LATENCY}
analysts:
  ana: {budget: {epsilon: 50, delta: 1e-5}}
tables:
  people:
    source: people.parquet
    unit: id
    unique: [id]
    columns:
      id: {type: bigint}
      age: {type: integer, bounds: [0, 99]}
      ward: {type: text}
"""
CAST = "SELECT CAST(ward AS INTEGER) AS x FROM (SELECT ward, COUNT(*) AS n FROM people GROUP BY ward) AS q"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with duckdb.connect() as connection:
        rows = "SELECT i AS id, CAST(i % 100 AS INTEGER) AS age, $1 AS ward FROM range(2000) AS r(i)"
        connection.execute(f"COPY ({rows}) TO '{tmp_path / 'people.parquet'}'", [STEERS])
    (tmp_path / "people.yaml").write_text(SCHEMA.replace("LATENCY", "0"))
    return tmp_path


@pytest.fixture
def connection(folder: Path) -> Iterator[dpsql.Connection]:
    with dpsql.connect(folder / "people.yaml", user="ana") as connection:
        yield connection


def shell_on(connection: dpsql.Connection, answers: list[bool], asked: list[str]) -> Shell:
    def ask(question: str) -> bool:
        asked.append(question)
        return answers.pop(0)

    shell = Shell(lambda: connection, Screen(io.StringIO(), io.StringIO()), ask=ask)
    shell.confirm = Fraction(1, 2)
    return shell


# --- the prompt and the command line ---------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["table", "csv"])
def test_a_selected_key_steers_no_terminal_through_an_error(folder: Path, format_: str) -> None:
    command = [sys.executable, "-m", "dpsql", "query", "people.yaml", CAST, "--user", "ana", "--format", format_]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 1 and "evil" in ran.stderr
    assert "\x1b" not in ran.stdout + ran.stderr and "\x07" not in ran.stdout + ran.stderr


def test_what_a_failed_statement_was_charged_is_told(folder: Path) -> None:
    command = [sys.executable, "-m", "dpsql", "people.yaml", "--user", "ana", "-c", CAST]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 1 and "charged: epsilon ≤ 1 " in ran.stderr and "asking again is free" in ran.stderr


@pytest.mark.parametrize("text", [f"\\explain SELECT COUNT(*) FROM people WHERE ward = '{STEERS}'",
                                  f"EXPLAIN SELECT COUNT(*) FROM people WHERE ward = '{STEERS}'"])  # fmt: skip
def test_a_plan_steers_no_terminal(connection: dpsql.Connection, text: str) -> None:
    out = io.StringIO()
    shell = Shell(lambda: connection, Screen(out, io.StringIO()))
    shell.feed(text)
    shell.finish()
    assert "evil" in out.getvalue() and "\x1b" not in out.getvalue()


def test_a_pilot_is_asked_about_whatever_its_own_price(connection: dpsql.Connection) -> None:
    """What it decides is charged in the same statement, and was 22 times as much."""
    asked: list[str] = []
    shell = shell_on(connection, [False], asked)
    shell.feed("SET epsilon = 0.1; SET max_relative_error = 0.002;")
    shell.feed("SELECT COUNT(*) FROM people WHERE age < 41;")
    assert len(asked) == 1 and "and then is charged what that decides" in asked[0]
    assert connection.budget().charges == 0
    explained = connection.explain("SELECT COUNT(*) FROM people WHERE age < 41")
    assert next_text(explained) == "next: a pilot (epsilon 0.1), and then what it decides"


# --- how far a statement is ------------------------------------------------------------------------------------------


def test_progress_is_no_clock_of_the_engine(folder: Path) -> None:
    """Privacy: a release counts as delivered when its run is seen to have ended, on the grid of `min_latency`."""
    (folder / "people.yaml").write_text(SCHEMA.replace("LATENCY", "1"))
    with dpsql.connect(folder / "people.yaml", user="ana") as connection:
        sql = "SELECT (SELECT COUNT(*) FROM people WHERE age < 9) + (SELECT COUNT(*) FROM people WHERE age > 9)"
        thread = threading.Thread(target=lambda: connection.cursor().execute(sql))
        thread.start()
        seen: dict[tuple[int, int], float] = {}
        while thread.is_alive():
            seen.setdefault(connection.progress(), time.monotonic())
            time.sleep(0.01)
        thread.join()
    assert seen[1, 2] - seen[0, 2] > 0.9
