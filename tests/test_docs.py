"""What the documents say is checked against the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpsql.settings import NAMES
from dpsql.sql.functions import FUNCTIONS

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
