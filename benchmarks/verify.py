"""How many random statements a second `dpsql verify` tries, and how soon it finds planted bugs.

    python -m benchmarks.verify             30 s, and each bug until it is found
    python -m benchmarks.verify --seconds 10

The target is 40 statements a second on two cores. The bugs are planted in a copy of the package, one at a time; those
of `tests/mutants/` that a neighbor can see.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.runner import plant
from tests.mutants.selections import FAR_END, ONE_UNIT_MOVES

ROOT = Path(__file__).resolve().parent.parent

TARGET = 40.0
MOST = 60
BROKEN = 3
"""The exit code of a claim that does not hold."""


def verify(package: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    """Run the command on the package in this folder; its exit code and report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "dpsql", "verify", "--report", str(report), *arguments]
        done = subprocess.run(command, cwd=package, env={**os.environ, "PYTHONPATH": str(package)}, capture_output=True)
        return done.returncode, json.loads(report.read_text()) if report.exists() else {}


def rate(seconds: int) -> None:
    code, report = verify(ROOT, "--seconds", str(seconds), "--no-statistics")
    trials = report["trials"]
    assert isinstance(trials, dict)
    verdict = "met" if trials["per_second"] >= TARGET else "MISSED"
    print(f"{trials['count']} statements, {trials['per_second']} a second; {TARGET:g} on two cores: {verdict}")
    print(f"{trials['releases']} releases compared, exit {code}")


def found_after(mutant: Mutant) -> float | None:
    """Seconds until a statement shows the bug; None if none does."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(ROOT / "dpsql", copy / "dpsql", ignore=shutil.ignore_patterns("__pycache__"))
        plant(mutant, copy)
        started = time.monotonic()
        code, report = verify(copy, "--seconds", str(MOST), "--no-statistics", "--findings", "1")
        return time.monotonic() - started if code == BROKEN and report.get("findings") else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--no-bugs", action="store_true", help="the rate only")
    given = parser.parse_args()
    rate(given.seconds)
    if given.no_bugs:
        return
    seen = [mutant for mutant in MUTANTS if mutant.tests in (ONE_UNIT_MOVES, FAR_END)]
    caught = 0
    for mutant in seen:
        after = found_after(mutant)
        caught += after is not None
        print(f"{'not found' if after is None else f'{after:6.1f} s':>10}  {mutant.name}", flush=True)
    print(f"{caught} of {len(seen)} planted bugs found within {MOST} s each")


if __name__ == "__main__":
    main()
