"""docs/owner.md: its commands run in their order, each line of output that it shows is printed, its schema is the one
that is served."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dpsql.schema.load import load_schema

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
OWNER = (ROOT / "docs" / "owner.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(console|yaml)\n(.*?)```", OWNER, re.DOTALL)
CODES = {"dpsql check clinic.yaml": [3, 0]}
"""The first check finds what the second has mended."""


def commands(block):
    """Each command with the lines that are shown below it."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, shown.splitlines()) for command, _, shown in (part.partition("\n") for part in parts)]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """All blocks in their order: (command, exit code, output, lines that are shown)."""
    folder = tmp_path_factory.mktemp("owner")
    program = folder / "bin" / "dpsql"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m dpsql "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join((str(program.parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = []
    for language, block in BLOCKS:
        if language == "yaml":
            (folder / "clinic.yaml").write_text(block, encoding="utf-8")
            continue
        for command, shown in commands(block):
            if command.startswith("cd "):
                folder = folder / command.removeprefix("cd ")
                continue
            one = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
            done.append((command, one.returncode, one.stdout, one.stderr, shown))
    return folder, done


def test_every_command_does_what_the_page_says(ran):
    codes: dict[str, list[int]] = {}
    for command, code, *_ in ran[1]:
        codes.setdefault(command, []).append(code)
    assert len(codes) >= 7
    assert {command: found for command, found in codes.items() if found != CODES.get(command, [0])} == {}


def test_every_line_that_is_shown_is_printed(ran):
    shown = [(command, line, out.splitlines()) for command, _, out, _, lines in ran[1] for line in lines]
    assert len(shown) > 15
    assert [(command, line) for command, line, out in shown if line not in out] == []


def test_the_second_check_has_the_schema_that_the_text_describes(ran):
    schema = load_schema(ran[0] / "clinic.yaml")
    assert schema.privacy.contributions.rows == 8 and schema.table("visits").column("cost").domain.upper == 2000
    assert "contributions: {rows: 8, groups: 6}" in OWNER and "bounds: [0, 2000]" in OWNER


def test_every_mark_of_the_table_is_one_of_a_draft(ran):
    """And the draft's own are in the table."""
    text = subprocess.run(
        [sys.executable, "-m", "dpsql", "init", "patients.csv", "visits.csv", "--analyst", "ana", "-o", "-"],
        cwd=ran[0], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for key in ("unit", "budget", "unique", "bounds", "values"):
        assert re.search(rf"\b{key}\b.*# decide:", text) or re.search(rf"# decide: {key}", text), key
        assert re.search(rf"^\| `[a-z.]*{key}`", OWNER, re.MULTILINE), key
