"""What the documents say is checked against the code."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.compiler.functions.table import FUNCTIONS
from dpsql.compiler.settings import SETTING_NAMES
from dpsql.ledger.base import Account
from dpsql.ledger.budget import balance_of
from dpsql.ledger.summary import count_more_like, usual_cost
from dpsql.privacy.filters import NO_CUMULATIVE_LOSS, Composition
from dpsql.schema.load import load_schema
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session

ROOT = Path(__file__).parent.parent
SQL = (ROOT / "docs" / "sql.md").read_text()
SOURCES = {path: path.read_text() for path in (ROOT / "dpsql").rglob("*.py")}


def test_every_function_is_documented():
    """Those without an example are never written: only rewriting makes them."""
    assert [name for name, function in FUNCTIONS.items() if function.example and f"`{name}`" not in SQL] == []


def test_every_setting_is_documented():
    assert [name for name in SETTING_NAMES if f"`{name}`" not in SQL] == []


def test_every_sqlstate_is_documented_and_no_other():
    pattern = r"""sqlstate\s*=\s*["']([0-9A-Z]{5})["']"""
    used = {state for text in SOURCES.values() for state in re.findall(pattern, text)}
    documented = set(re.findall(r"^\| ([0-9A-Z]{5}) \|", SQL, re.MULTILINE))
    assert used == documented


# --- docs/sql.md runs ------------------------------------------------------------------------------------------------

CORPUS = ROOT / "tests" / "corpus"
EXAMPLES = [
    statement.strip()
    for block in re.findall(r"```sql\n(.*?)```", SQL, re.DOTALL)
    for statement in re.split(r";[^\n]*\n", block)
    if statement.strip()
]
ROW = r"^\| `(\w+)` \| `((?:[^`|]|\\\|)+)` \|"
FUNCTION_EXAMPLES = [(name, example.replace("\\|", "|")) for name, example in re.findall(ROW, SQL, re.MULTILINE)]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The hospital of the corpus."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "hospital.yaml").write_text((CORPUS / "hospital.yaml").read_text())
    with duckdb.connect(str(folder / "hospital.duckdb")) as connection:
        connection.execute((CORPUS / "mix.sql").read_text() + (CORPUS / "hospital.sql").read_text())
    dataset = open_dataset(folder / "hospital.yaml")
    yield Session(dataset)
    dataset.close()


def test_the_document_has_examples():
    assert len(EXAMPLES) > 40 and {name for name, _ in FUNCTION_EXAMPLES} <= FUNCTIONS.keys()
    assert {name for name, function in FUNCTIONS.items() if function.example} == {name for name, _ in FUNCTION_EXAMPLES}


@pytest.mark.parametrize("statement", EXAMPLES)
def test_every_example_is_answered(session: Session, statement: str) -> None:
    """Compiled and described, which is all that could refuse it; what is no query is run."""
    before = EXAMPLES[: EXAMPLES.index(statement)]
    allow = [one for one in before if re.match(r"(SET|RESET) integer_division\b", one)][-1:]
    for setting in allow:  # it refuses, and another process may have run it
        session.execute(setting)
    if re.match(r"(SELECT|WITH)\b", statement):
        assert session.describe(statement)
    else:
        session.execute(statement)


@pytest.mark.parametrize(("name", "example"), FUNCTION_EXAMPLES, ids=[name for name, _ in FUNCTION_EXAMPLES])
def test_every_example_of_a_function_is_answered(session: Session, name: str, example: str) -> None:
    rows = "visits JOIN patients USING (patient_id)"
    assert session.describe(f"SELECT COUNT(*) FROM {rows} WHERE ({example}) IS NOT NULL")


# --- the other documents ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))], ids=lambda p: p.name)
def test_prose_is_wrapped_at_100_characters(page: Path) -> None:
    """Outside of code blocks and tables; a line that begins with code may be as long as the code is."""
    prose = re.sub(r"^( *)```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert [line for line in prose.splitlines() if len(line) > 100 and not line.startswith(("|", "`"))] == []


def test_every_command_in_the_readme_exists():
    readme = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"`?make ([a-z]+)`?", readme))
    assert targets and all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme")
    subprocess.run([sys.executable, "-m", "dpsql", "demo", "--keep", "hospital"], cwd=folder, check=True,
                   capture_output=True)  # fmt: skip
    return folder


def test_the_python_of_the_readme_runs(hospital, monkeypatch, capsys):
    monkeypatch.chdir(hospital)
    (code,) = _blocks("python")
    exec(compile(code, "README.md", "exec"), {})
    assert "epsilon" in capsys.readouterr().out


def test_the_query_of_the_readme_runs(hospital):
    console = next(block for block in _blocks("console") if "dpsql query" in block)
    command = re.search(r"\$ dpsql (query .*?\")\n", console.replace("\\\n", " "), re.DOTALL)
    ran = subprocess.run([sys.executable, "-m", "dpsql", *shlex.split(command[1])], cwd=hospital, capture_output=True,
                         text=True, check=True)  # fmt: skip
    shown = [line.split("│")[0].strip() for line in console.splitlines() if "│" in line]
    assert [line.split("│")[0].strip() for line in ran.stdout.splitlines() if "│" in line] == shown


def test_the_schema_of_the_readme_loads(tmp_path):
    (text,) = _blocks("yaml")
    path = tmp_path / "hospital.yaml"
    path.write_text(text)
    assert {table.name for table in load_schema(path).tables} == {"patients", "visits"}


def test_every_soundness_rule_that_is_cited_is_there():
    rules = set(re.findall(r"^## (\d+)\.", (ROOT / "docs" / "soundness.md").read_text(), re.MULTILINE))
    texts = [*SOURCES.values(), *(path.read_text() for path in (ROOT / "tests").rglob("*.py"))]
    cited = {rule for text in texts for rule in re.findall(r"SOUNDNESS (\d+)", text)}
    assert cited and cited <= rules


def test_every_rule_of_the_split_that_is_cited_is_there():
    text = (ROOT / "docs" / "soundness.md").read_text().split("## The split")[1]
    rules = re.findall(r"^(\d+)\. ", text, re.MULTILINE)
    cited = {rule for source in SOURCES.values() for rule in re.findall(r"rule (\d+) of the split", source)}
    assert rules == [str(number) for number in range(1, 16)] and cited and cited <= set(rules)


# --- docs/budget.md runs ---------------------------------------------------------------------------------------------

BUDGET = (ROOT / "docs" / "budget.md").read_text()
CONSOLES = re.findall(r"```console\n(.*?)```", BUDGET, re.DOTALL)


def _plain(line: str) -> str:
    """Without what differs from run to run: hashes, figures, bars, the width of columns."""
    for pattern, instead in ((r"[0-9a-f]{64}", "HASH"), (r"\[[#-]+\]", "BAR"), (r"\d+(\.\d+)?(e-\d+)?", "N")):
        line = re.sub(pattern, instead, line)
    return " ".join(line.split())


@pytest.mark.slow
def test_the_commands_about_budgets_run_and_say_what_is_shown(tmp_path: Path) -> None:
    """All blocks in order, in one folder; each line that is shown was printed, figures and hashes aside."""
    program = tmp_path / "bin" / "dpsql"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m dpsql "$@"\n')
    program.chmod(0o755)
    paths = os.pathsep.join((str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": paths, "PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(ROOT)}
    subprocess.run([program, "demo", "--keep", "hospital"], cwd=tmp_path, env=environment, check=True,
                   capture_output=True)  # fmt: skip
    assert len(CONSOLES) >= 9
    for block in CONSOLES:
        commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
        ran = subprocess.run(["bash", "-ec", "\n".join(commands)], cwd=tmp_path, env=environment, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        assert ran.returncode == 0, (commands, ran.stdout)
        printed = {_plain(line) for line in ran.stdout.splitlines()}
        shown = [line for line in block.splitlines() if line and not line.startswith("$ ")]
        assert [line for line in shown if _plain(line) not in printed] == [], ran.stdout


@pytest.mark.parametrize(("label", "epsilon", "delta"), [("ε 0.1, pure", "0.1", "0"), ("ε 0.01, pure", "0.01", "0"),
                                                         ("ε 0.1, δ 1e-9", "0.1", "1e-9"),
                                                         ("ε 0.01, δ 1e-9", "0.01", "1e-9")])  # fmt: skip
def test_the_table_of_compositions_is_what_accounts_grant(label: str, epsilon: str, delta: str) -> None:
    (row,) = re.findall(rf"^\| {re.escape(label)} \| (.*) \|$", BUDGET, re.MULTILINE)
    cost = usual_cost(Fraction(epsilon), Fraction(delta))
    granted = []
    for composition in (Composition.ZCDP, Composition.BASIC, Composition.ADVANCED):
        account = Account("a", Fraction(1), Fraction(1, 10**6), composition)
        granted.append(count_more_like(balance_of(account, NO_CUMULATIVE_LOSS, 0), cost))
    assert [int(cell) for cell in row.split(" | ")] == granted
