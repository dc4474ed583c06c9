"""docs/python.md runs, and names all that there is."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpsql
from tests.support.optional_dependencies import package

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The demo's hospital in the working folder."""
    command = [sys.executable, "-m", "dpsql", "demo", "--keep", "hospital"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.chdir(tmp_path)
    package("matplotlib").use("Agg")
    yield tmp_path
    package("matplotlib.pyplot").close("all")


def test_every_example_runs(hospital: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One after another, as a reader would."""
    names: dict[str, object] = {}
    for number, block in enumerate(BLOCKS, 1):
        exec(compile(block, f"docs/python.md, example {number}", "exec"), names)
    connection = names["connection"]
    assert isinstance(connection, dpsql.Connection)
    connection.close()
    shown = capsys.readouterr().out
    assert len(BLOCKS) > 5 and "±" in shown and "left of ana's budget" in shown and "HINT:  " in shown
    assert type(names["chart"]).__name__ == "LayerChart" and type(names["axes"]).__name__ == "Axes"


@pytest.mark.parametrize("kind", [dpsql.Connection, dpsql.Cursor, dpsql.Answer], ids=lambda kind: kind.__name__)
def test_every_method_is_named(kind: type) -> None:
    names = {name for name in dir(kind) if not name.startswith("_")} | set(getattr(kind, "__annotations__", ()))
    errors = {name for name in names if isinstance(getattr(kind, name, None), type)}  # PEP 249's, as attributes
    assert [name for name in sorted(names - errors) if not re.search(rf"`[^`\n]*\b{name}\b", TEXT)] == []


def test_every_extra_is_named() -> None:
    extras = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text().split("[project.optional-dep")[1], re.M)
    mine = {"pandas", "polars", "arrow", "plot", "altair", "notebook", "sqlalchemy"}
    assert mine <= set(extras) and all(f"[{extra}]" in TEXT for extra in mine)
