"""SQLAlchemy's own suite for dialects, in processes of its own: its plugin is not for other tests.

`suite.txt` holds how each of its tests ended, and why those that are skipped are: a test that is lost shows. After a
change, read the diff of `DPSQL_GOLDEN=write pytest tests/clients/sqlalchemy/test_compliance.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy

pytestmark = pytest.mark.clients

FOLDER = Path(__file__).parent
GOLDEN = FOLDER / "suite.txt"
PARTS = 3
TITLE = "SQLAlchemy"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where that is to be had: each of a thousand fixtures opens a ledger, which waits for its disk."""
    memory = Path("/dev/shm")
    if not (memory.is_dir() and os.access(memory, os.W_OK)):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


def kept() -> tuple[str, list[str]]:
    head, *lines = GOLDEN.read_text(encoding="utf-8").splitlines()
    return head.removeprefix(f"{TITLE} "), [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("part", range(PARTS))
def test_the_suite_passes(part: int, folder: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    environment = {**os.environ, "SUITE_PART": f"{part}/{PARTS}", "SUITE_REPORT": str(report),
                   "PYTHONPATH": str(FOLDER.parents[2])}  # fmt: skip
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST"):
        environment.pop(name, None)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "suite.ini", "--rootdir", str(FOLDER), "-q",
         "-p", "tests.clients.sqlalchemy.plugin", "-p", "no:cacheprovider", "-p", "no:xdist",
         "--dburi", f"dpsql+suite:///{folder}", "compliance.py"],
        cwd=FOLDER, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
    ended = report.read_text(encoding="utf-8").splitlines()
    assert {line.split("\t")[0] for line in ended} <= {"passed", "skipped"}
    if os.environ.get("DPSQL_GOLDEN") == "write":
        _write(part, ended)
    version, lines = kept()
    if version == sqlalchemy.__version__:  # another one has other tests
        own = [line.partition("\t")[2] for line in lines if line.startswith(f"{part}\t")]
        # Not the reasons: of several that a test is skipped for, SQLAlchemy names any one.
        assert sorted(line.rpartition("\t")[0] for line in ended) == sorted(line.rpartition("\t")[0] for line in own)


def _write(part: int, ended: list[str]) -> None:
    others = [line for line in kept()[1] if not line.startswith(f"{part}\t")] if GOLDEN.exists() else []
    lines = sorted([*others, *(f"{part}\t{line}" for line in ended)])
    GOLDEN.write_text("\n".join([f"{TITLE} {sqlalchemy.__version__}", *_summary(lines), *lines, ""]), encoding="utf-8")


def _summary(lines: list[str]) -> list[str]:
    counts: Counter[str] = Counter()
    for line in lines:
        _, outcome, count, _, reason = line.split("\t")
        counts[f"{outcome}: {reason}" if reason else outcome] += int(count)
    return [f"# {count} {what}" for what, count in sorted(counts.items(), key=lambda pair: -pair[1])]


def test_every_test_that_is_skipped_has_a_reason() -> None:
    lines = [line.split("\t") for line in kept()[1]]
    reasons = {reason for _, outcome, _, _, reason in lines if outcome == "skipped"}
    assert not reasons & {"", "marked as skip", "custom function"}
    assert sum(int(count) for _, outcome, count, _, _ in lines if outcome == "passed") > 500
