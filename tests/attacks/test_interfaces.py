"""Attacks that reviewers found through prompt, command line, Python, SQLAlchemy and the owner's commands."""

from __future__ import annotations

import io
import os
import signal
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
from dpsql.interfaces.display.terminal import Screen
from dpsql.interfaces.repl.shell import Shell
from dpsql.interfaces.repl.status_line import format_statement_cost

pytestmark = pytest.mark.slow

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
HERE = {**os.environ, "PYTHONPATH": str(Path(dpsql.__file__).parents[1])}  # this package, and no installed one
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
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=HERE)
    assert ran.returncode == 1 and "evil" in ran.stderr
    assert "\x1b" not in ran.stdout + ran.stderr and "\x07" not in ran.stdout + ran.stderr


def test_what_a_failed_statement_was_charged_is_reported(folder: Path) -> None:
    command = [sys.executable, "-m", "dpsql", "people.yaml", "--user", "ana", "-c", CAST]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=HERE)
    assert ran.returncode == 1 and "charged: epsilon ≤ 1 " in ran.stderr and "not charged again" in ran.stderr


@pytest.mark.parametrize("text", [f"\\explain SELECT COUNT(*) FROM people WHERE ward = '{STEERS}'",
                                  f"EXPLAIN SELECT COUNT(*) FROM people WHERE ward = '{STEERS}'"])  # fmt: skip
def test_a_plan_steers_no_terminal(connection: dpsql.Connection, text: str) -> None:
    out = io.StringIO()
    shell = Shell(lambda: connection, Screen(out, io.StringIO()))
    shell.run_text(text)
    shell.run_pending()
    assert "evil" in out.getvalue() and "\x1b" not in out.getvalue()


def test_a_pilot_is_confirmed_whatever_its_own_price(connection: dpsql.Connection) -> None:
    """What it decides is charged in the same statement, and was 22 times as much."""
    asked: list[str] = []
    shell = shell_on(connection, [False], asked)
    shell.run_text("SET epsilon = 0.1; SET max_relative_error = 0.002;")
    shell.run_text("SELECT COUNT(*) FROM people WHERE age < 41;")
    assert len(asked) == 1 and "and then is charged what that decides" in asked[0]
    assert connection.budget().charges == 0
    explained = connection.explain("SELECT COUNT(*) FROM people WHERE age < 41")
    assert format_statement_cost(explained) == "next: a pilot (epsilon 0.1), and then what it decides"


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


# --- the owner's commands --------------------------------------------------------------------------------------------

LABEL = "zqLABELqz"


def draft(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dpsql", "init", *arguments, "-o", "-"]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.fixture
def enums(tmp_path: Path) -> str:
    """Types that were made of rows, as pandas' categoricals are: one label is one person's own."""
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute(f"""
            CREATE TABLE raw AS SELECT i AS user_id, CASE i WHEN 7 THEN '{LABEL}' ELSE 'often' END AS d
            FROM range(100) t(i);
            CREATE TYPE seen AS ENUM (SELECT DISTINCT d FROM raw);
            CREATE TABLE users AS SELECT user_id, d::seen AS d, [d::seen] AS l, {{'k': d::seen}} AS s,
                MAP {{d::seen: 1}} AS m, [{{'k': [d::seen]}}] AS deep FROM raw;
            DROP TABLE raw;
        """)
    return str(path)


def test_labels_of_a_type_are_rows(enums: str) -> None:
    """Neither they nor their number; types that dpsql has not are named by their outermost word."""
    ran = draft(enums)
    assert ran.returncode == 0, ran.stderr
    assert LABEL not in ran.stdout + ran.stderr and "often" not in ran.stdout
    (line,) = (line for line in ran.stdout.splitlines() if line.startswith("      d:"))
    assert line.split("#")[0].split() == ["d:", "{type:", "text}"] and "decide: values: [...]" in line
    shown = [line.split("#")[1].split(" is no")[0].strip() for line in ran.stdout.splitlines() if "is no type" in line]
    assert shown == ["l: ENUM[]", "s: STRUCT", "m: MAP", "deep: STRUCT[]"]


def test_labels_are_looked_at_like_other_values(enums: str) -> None:
    ran = draft(enums, "--look-at-data")
    assert ran.returncode == 0 and LABEL not in ran.stdout + ran.stderr
    (line,) = (line for line in ran.stdout.splitlines() if line.startswith("      d:"))
    assert "values: [often]" in line and "decide: values read from the data, 1 rare ones left out" in line


def test_an_id_of_another_type_is_reported_without_labels(enums: str, tmp_path: Path) -> None:
    text = (
        f"{{dpsql: 1, engine: 'duckdb:///{enums}', privacy: {{unit: users.d, budget: {{epsilon: 1, delta: 0}}}},"
        " tables: {users: {unit: d, columns: {d: {type: text}}}}}"
    )
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(dpsql.OperationalError, match='"d" of "users" is ENUM in the data') as raised:
        dpsql.connect(tmp_path / "s.yaml")
    assert LABEL not in str(raised.value)


@pytest.mark.parametrize(
    "lines",
    [
        "Smith,Berlin,missing\n" + "".join(f"n{i},c{i % 3},{i}\n" for i in range(50)),
        "smith,berlin,late,lost\n" + "".join(f"n{i},{'Berlin' if i == 9 else 'x'},{i},{i}\n" for i in range(50)),
        "Smith,late\nJones,2024-01-31\n",
        "missing\n12\n13\n",
        "Smith,Berlin,absent\n" + "".join(f"n{i},c{i % 3},{i}\n" for i in range(50)),
        "Smith,no answer,not asked\n" + "".join(f"n{i},{i},{i}\n" for i in range(50)),
        "smith,berlin,absent\n" + "".join(f"n{i},c{i % 3},{i}\n" for i in range(50)),
        "smith,berlin\n" + "".join(f"n{i},c{i % 3}\n" for i in range(50)),
        "smith,absent\n" + "".join(f"n{i},p{i}@example.org\n" for i in range(50)),
        "smith,amount\n" + "".join(f"n{i},{'rent' if i % 2 else 'food'}\n" for i in range(50)),
        "smith,absent\n" + "".join(f"{'jones' if i == 9 else 'N'}{i},{i}\n" for i in range(50)),
        "smith,absent\nN12,7\nN13,8\n",
        "Anna Smith,a,b\n" + "".join(f"n{i},{i},{i % 3}\n" for i in range(50)).replace("2\n", "x\n", 1),
        "x,a,Berlin\n" + "".join(f"n{i},{i},c{i % 3}\n" for i in range(50)),
        "smith,berlin\n",
    ],
    ids=[
        "an odd null",
        "a value that comes again",
        "a date",
        "alone",
        "a word for it",
        "two odd nulls",
        "in small",
        "words alone",
        "one column of codes",
        "a word of a quantity above words",
        "nearly codes",
        "few codes",
        "two words",
        "letters and a word",
        "one row",
    ],
)
def test_a_first_row_with_an_odd_null_is_no_header(tmp_path: Path, lines: str) -> None:
    (tmp_path / "people.csv").write_text(lines)
    ran = draft(str(tmp_path / "people.csv"))
    assert ran.returncode == 1 and "--no-header" in ran.stderr
    said = (ran.stdout + ran.stderr).lower()
    assert not any(word in said for word in ("smith", "berlin", "missing", "absent", "asked", "anna"))


@pytest.mark.parametrize("header", ["name,age", "user_id,ward", "ward,floor,beds", "n"])
def test_a_plain_header_is_still_reported(tmp_path: Path, header: str) -> None:
    first, *others = header.split(",")
    rows = [",".join([f"x{i}" if others else str(i), *(str(i) for _ in others)]) for i in range(50)]
    (tmp_path / "people.csv").write_text("\n".join([header, *rows]))
    ran = draft(str(tmp_path / "people.csv"))
    assert ran.returncode == 0 and f"{first}:" in ran.stdout


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A schema over a CSV file that takes a while to copy."""
    with duckdb.connect() as db:
        rows = "SELECT i AS id, CAST(i % 100 AS INTEGER) AS age, 'w' || i % 9 AS ward FROM range(1000000) AS r(i)"
        db.execute(f"COPY ({rows}) TO '{tmp_path / 'people.csv'}' (HEADER)")
    (tmp_path / "people.yaml").write_text(SCHEMA.replace("parquet", "csv").replace("LATENCY", "0"))
    (tmp_path / "scratch").mkdir()
    return tmp_path


def apart(scratch: Path) -> dict[str, str]:
    """The environment of a process that runs this package from another folder."""
    return {**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": str(Path(dpsql.__file__).parents[1])}


def restore_signals() -> None:
    """Undo what the tests' own process may have inherited: under `nohup` SIGHUP is ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def struck(slow: Path, number: int, *command: str) -> int:
    """Send a signal as soon as something of the rows is in the folder of copies; the exit code."""
    scratch = slow / "scratch"
    with subprocess.Popen(
        [sys.executable, "-m", "dpsql", *command], cwd=slow, env=apart(scratch),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=restore_signals,
    ) as child:  # fmt: skip
        while not any(path.is_file() and path.suffix != ".yaml" for path in scratch.glob("dpsql-*/**/*")):
            assert child.poll() is None, "nothing was there to be left"
            time.sleep(0.002)
        child.send_signal(number)
        return child.wait(60)


CHECK = ("check", "people.yaml")
LOOK = ("init", "people.csv", "-o", "draft.yaml", "--look-at-data")


@pytest.mark.parametrize("command", [CHECK, LOOK], ids=["check", "look"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["TERM", "HUP"])
def test_a_signal_leaves_no_rows_behind(slow: Path, command: tuple[str, ...], number: signal.Signals) -> None:
    assert struck(slow, number, *command) == 128 + number
    assert list((slow / "scratch").iterdir()) == [] and not (slow / "draft.yaml").exists()


def test_what_a_killed_command_left_is_gone_at_the_next(slow: Path) -> None:
    scratch = slow / "scratch"
    assert struck(slow, signal.SIGKILL, *CHECK) == -signal.SIGKILL
    (left,) = scratch.iterdir()
    alive, strange = scratch / f"dpsql-check-{os.getpid()}-x", scratch / "dpsql-check-notes"
    alive.mkdir()
    strange.mkdir()
    (scratch / left.name.replace("check", "look")).symlink_to(slow)
    (slow / "small.csv").write_text("user_id,age\n1,2\n")
    command = [sys.executable, "-m", "dpsql", "init", "small.csv", "-o", "-", "--look-at-data"]
    subprocess.run(command, cwd=slow, env=apart(scratch), check=True, capture_output=True)
    assert not left.exists() and alive.exists() and strange.exists() and (slow / "people.csv").exists()
