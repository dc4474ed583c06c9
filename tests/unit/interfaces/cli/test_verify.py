"""`dpsql verify` as its users run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpsql.interfaces.cli.main import main

pytestmark = pytest.mark.slow

CLINIC = Path(__file__).parents[4] / "schemas" / "clinic.yaml"


def verify(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dpsql", "verify", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, "NO_COLOR": "1"})


def test_a_schema_is_verified_and_reported(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = verify(str(CLINIC), "--trials", "16", "--seconds", "100", "--samples", "8000", "--workers", "2",
                  "--report", str(report))  # fmt: skip
    assert done.returncode in (0, 4) and done.stderr == "", done.stderr
    assert "Neighboring databases of clinic.yaml" in done.stdout and "with a planted bug" in done.stdout
    written = json.loads(report.read_text())
    assert written["schema"] == "clinic.yaml" and written["trials"]["count"] == 16 and not written["findings"]


def test_json_and_random_schemas(tmp_path: Path) -> None:
    done = verify("--trials", "8", "--seconds", "100", "--no-statistics", "--json", "--workers", "1", "--seed", "11")
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)
    assert written["holds"] is True and written["schema"] is None and written["seed"] == 11
    assert written["statistics"] == []


def test_a_report_that_cannot_be_written_is_reported_before_the_work(tmp_path: Path) -> None:
    done = verify("--report", str(tmp_path / "nowhere" / "x.json"))
    assert done.returncode == 1 and "cannot be written" in done.stderr


def test_variables_of_the_owners_machine_need_not_be_set(tmp_path: Path) -> None:
    text = CLINIC.read_text(encoding="utf-8")
    text = text.replace("sqlite:///clinic.ledger", "sqlite:///${NOWHERE_SET}/x.ledger")
    (tmp_path / "own.yaml").write_text(text, encoding="utf-8")
    done = verify(str(tmp_path / "own.yaml"), "--trials", "3", "--no-statistics", "--workers", "1", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["trials"]["count"] == 3


@pytest.mark.parametrize(
    "arguments", [["--seconds", "nan"], ["--seconds", "0"], ["--workers", "0"], ["--trials", "-1"]]
)
def test_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["verify", *arguments])
    assert ended.value.code == 2


def test_a_schema_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "nowhere.yaml"]) == 1
    assert "nowhere.yaml" in capsys.readouterr().err
