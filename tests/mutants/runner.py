"""Run the tests of each mutant in a copy of the repository in which its bug is planted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from tests.mutants.match import StaleEdit, apply_edit, find_file
from tests.mutants.mutant import Mutant
from tests.mutants.selections import Tests

ROOT = Path(__file__).resolve().parent.parent.parent
WORKERS = 2
TEST_TIMEOUT_SECONDS = 240
COPIED_FOLDERS = ("dpsql", "tests", "schemas", "docs", "benchmarks")
COPIED_FILES = ("pyproject.toml", "Makefile", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
TESTS_PASSED, TESTS_FAILED = 0, 1
"""Exit codes of pytest. Any other says that the tests did not run, which proves nothing."""


@dataclass(frozen=True)
class Outcome:
    mutant: str
    verdict: str  # killed, survived, stale, broken
    seconds: float
    detail: str = ""


def copy_repository(to: Path) -> None:
    for name in COPIED_FOLDERS:
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__", "*.ledger*"))
    for name in COPIED_FILES:
        shutil.copy(ROOT / name, to)
    # Bytecode that is checked by the source's hash: the tests need not compile dpsql again, and a planted bug counts
    # also where neither the size of its file nor the second of its change tells it.
    compiled = [str(to / name) for name in ("dpsql", "tests")]
    compileall = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", *compiled]
    subprocess.run(compileall, check=True)


def plant(mutant: Mutant, root: Path) -> dict[Path, str]:
    """Make the edits below `root`; gives the files as they were. If an edit is stale, none is made."""
    before: dict[Path, str] = {}
    after: dict[Path, str] = {}
    for edit in mutant.edits:
        file = find_file(edit, root)
        before.setdefault(file, file.read_text(encoding="utf-8"))
        after[file] = apply_edit(edit, after.get(file, before[file]))
    for file, source in after.items():
        file.write_text(source, encoding="utf-8")
    return before


def run_tests(checkout: Path, tests: Tests) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "DPSQL_TRIALS": "240",
        "DPSQL_THOROUGH": "1",
        "DPSQL_SHRINK": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    return subprocess.run(
        command, cwd=checkout, env=env, capture_output=True, text=True, timeout=TEST_TIMEOUT_SECONDS, check=False
    )


def try_mutant(mutant: Mutant, checkout: Path) -> Outcome:
    """Plant the bug, run its tests, take it out again."""
    started = time.monotonic()
    try:
        before = plant(mutant, checkout)
    except StaleEdit as stale:
        return Outcome(mutant.name, "stale", 0.0, str(stale))
    try:
        done = run_tests(checkout, mutant.tests)
    except subprocess.TimeoutExpired:
        return Outcome(mutant.name, "survived", time.monotonic() - started, "out of time")
    finally:
        for file, source in before.items():
            file.write_text(source, encoding="utf-8")
    verdict = {TESTS_PASSED: "survived", TESTS_FAILED: "killed"}.get(done.returncode, "broken")
    detail = first_failure(done.stdout) if verdict == "killed" else ""
    return Outcome(mutant.name, verdict, time.monotonic() - started, detail)


def first_failure(output: str) -> str:
    failed = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR tests/"))]
    return failed[0].partition("::")[2].partition(" - ")[0] if failed else ""


def find_failing_baseline(mutants: Sequence[Mutant], checkout: Path) -> str | None:
    """The tests must pass without a bug, or they would kill everything."""
    for tests in dict.fromkeys(mutant.tests for mutant in mutants):
        done = run_tests(checkout, tests)
        if done.returncode != TESTS_PASSED:
            return f"{' '.join(tests)} fails without any bug:\n{done.stdout[-2000:]}"
    return None


def choose_mutants(mutants: Sequence[Mutant], words: Sequence[str]) -> list[Mutant]:
    """Those with one of the words in their name; all if there are no words."""
    return [mutant for mutant in mutants if not words or any(word in mutant.name for word in words)]


def run_mutants(mutants: Sequence[Mutant], words: Sequence[str]) -> int:
    """Try the mutants with one of these words in their name, or all; an exit code."""
    chosen = choose_mutants(mutants, words)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        checkouts: Queue[Path] = Queue()
        for number in range(WORKERS):
            checkout = Path(folder) / str(number)
            checkout.mkdir()
            copy_repository(checkout)
            checkouts.put(checkout)

        def try_in_free_checkout(mutant: Mutant) -> Outcome:
            checkout = checkouts.get()
            try:
                outcome = try_mutant(mutant, checkout)
            finally:
                checkouts.put(checkout)
            print(f"{outcome.verdict:9}{outcome.seconds:6.1f} s  {outcome.mutant}  {outcome.detail}", flush=True)
            return outcome

        with ThreadPoolExecutor(WORKERS) as pool:
            outcomes = list(pool.map(try_in_free_checkout, chosen))
        failing = None if words else find_failing_baseline(mutants, checkouts.get())
    killed = sum(outcome.verdict == "killed" for outcome in outcomes)
    print(f"{killed} of {len(outcomes)} mutants killed in {time.monotonic() - started:.0f} s")
    if failing is not None:
        print(failing)
    return int(killed < len(outcomes) or failing is not None)
