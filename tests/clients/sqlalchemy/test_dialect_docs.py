"""Every example of docs/sqlalchemy.md runs, in order, on the hospital of the demo."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpsql.interfaces.sqlalchemy.execution import EXECUTION_OPTIONS

PAGE = (Path(__file__).parents[3] / "docs" / "sqlalchemy.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    subprocess.run([sys.executable, "-m", "dpsql", "demo", "--keep", "hospital"], cwd=tmp_path, check=True,
                   capture_output=True)  # fmt: skip
    monkeypatch.chdir(tmp_path)  # as README and docs/python.md do
    assert len(BLOCKS) == 6
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, "docs/sqlalchemy.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "charged: " in printed and "±" in printed and "Bounds: " in printed


def test_every_setting_is_named() -> None:
    assert [name for name in EXECUTION_OPTIONS if f"`{name}`" not in PAGE] == []
