"""`dpsql check` of a column that was randomized: debiased answers are held against what they are about."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from dpsql.interfaces.cli.main import main
from dpsql.owner.check.check import check_schema
from dpsql.owner.check.report import Severity

SCHEMA = """
dpsql: 1
ledger: sqlite:///poll.ledger
privacy:
  neighbors: change_one
  unit: people.pid
  budget: {epsilon: 8, delta: 1e-6}
  query: {epsilon: 0.5, delta: 1e-8}
  contributions: {rows: 1, groups: 1}
tables:
  people:
    source: people.csv
    unit: pid
    unique: [pid]
    columns:
      pid: {type: integer}
      drug: {type: text, randomized: {epsilon: 1, values: [red, green, blue, none]}, nullable: true}
      age: {type: integer, bounds: [0, 80]}
"""


@pytest.fixture
def poll(tmp_path: Path) -> Path:
    """Nine in twelve recorded "none": more of them said so."""
    drug = "CASE i % 12 WHEN 0 THEN 'red' WHEN 1 THEN 'green' WHEN 2 THEN NULL ELSE 'none' END"
    rows = f"SELECT i AS pid, {drug} AS drug, (i % 80)::INTEGER AS age FROM range(4800) t(i)"
    with duckdb.connect() as db:
        db.execute(f"COPY ({rows}) TO '{tmp_path / 'people.csv'}' (HEADER)")
    (tmp_path / "poll.yaml").write_text(SCHEMA)
    return tmp_path / "poll.yaml"


def test_nothing_is_lost_by_debiasing(poll: Path) -> None:
    report = check_schema(poll)
    (table,) = report.tables
    asked = [one for one in table.questions if "GROUP BY drug" in one.sql]
    assert len(asked) == 2
    for one in asked:
        assert one.lost == pytest.approx(0, abs=1e-3) and one.noise is not None and one.epsilon is None
    assert not [one for one in report.findings if one.level is Severity.MEND]


def test_the_report_says_why_no_epsilon_is_named(poll: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(poll)]) == 0
    told = capsys.readouterr().out
    assert "none: where answers were randomized" in told and "NULL\n" not in told.split("Typical questions")[1]
