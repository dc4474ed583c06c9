"""What the documents say is checked against the code."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dpsql.functions.table import FUNCTIONS
from dpsql.schema.load import load_schema
from dpsql.settings import NAMES

ROOT = Path(__file__).parent.parent
SQL = (ROOT / "docs" / "sql.md").read_text()
SOURCES = {path: path.read_text() for path in (ROOT / "dpsql").rglob("*.py")}


def test_every_function_is_documented():
    assert [name for name in FUNCTIONS if name != "finite" and f"`{name}`" not in SQL] == []


def test_every_setting_is_documented():
    assert [name for name in NAMES if f"`{name}`" not in SQL] == []


def test_every_sqlstate_is_documented_and_no_other():
    pattern = r"""sqlstate\s*=\s*["']([0-9A-Z]{5})["']"""
    used = {state for text in SOURCES.values() for state in re.findall(pattern, text)}
    documented = set(re.findall(r"^\| ([0-9A-Z]{5}) \|", SQL, re.MULTILINE))
    assert used == documented


@pytest.mark.parametrize("document", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")), ids=lambda p: p.name)
def test_files_that_a_document_names_exist(document):
    named = re.findall(r"`((?:dpsql|tests|docs|schemas|benchmarks)/[\w/.-]+)`", document.read_text())
    assert [name for name in named if not (ROOT / name).exists() and "*" not in name] == []


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
