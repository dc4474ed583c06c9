"""docs/attacks.md runs: each attack succeeds on plain SQL and fails on dpsql, as its own assertions say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
ATTACKS = (
    "Differencing", "Averaging", "Triangulation with HAVING", "Linkage with public rows", "A budget that resets daily",
)  # fmt: skip


def test_every_attack_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One after another, as a reader would."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    names: dict[str, object] = {}
    for number, block in enumerate(BLOCKS, 1):
        exec(compile(block, f"docs/attacks.md, example {number}", "exec"), names)
    shown = capsys.readouterr().out
    assert len(re.findall(r"^morning \d: ", shown, re.MULTILINE)) == 3 and "single private rows" in shown


@pytest.mark.parametrize("attack", ATTACKS)
def test_every_attack_is_tried_on_both(attack: str) -> None:
    section = TEXT.split(f"## {attack}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert "plain" in blocks[0] + blocks[1] and any("protected(" in block for block in blocks)
    assert "**What remains.**" in section
