"""What is shown before the data is opened: who is no analyst is refused before that."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpsql
from dpsql.errors import AccessDenied
from dpsql.session import status_preview
from dpsql.session.status_preview import preview_status

SCHEMA = """
dpsql: 1
ledger: sqlite:///people.ledger
privacy: {unit: people.id, budget: {epsilon: 8, delta: 1e-6}}
analysts:
  ana: {budget: {epsilon: 2, delta: 1e-7}}
  bob: {budget: {epsilon: 3, delta: 1e-7}}
tables:
  people: {source: people.csv, unit: id, unique: [id], columns: {id: {type: bigint}}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("id\n1\n2\n")
    (tmp_path / "people.yaml").write_text(SCHEMA)
    return tmp_path / "people.yaml"


@pytest.mark.parametrize("opened", [True, False], ids=["registered", "new"])
@pytest.mark.parametrize("user", [None, "eve", "dataset"])
def test_an_unknown_analyst_is_refused_at_once(
    path: Path, user: str | None, opened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if opened:
        dpsql.connect(path, user="ana").close()
    monkeypatch.setattr(
        status_preview, "open_declared_ledger", lambda *_, **__: pytest.fail("the ledger was opened for a stranger")
    )
    with pytest.raises(AccessDenied):
        preview_status(path, user)


def test_the_balance_is_that_of_the_user(path: Path) -> None:
    assert preview_status(path, "ana") is None, "nothing is registered yet"
    assert not list(path.parent.glob("*.ledger*")), "and no ledger was made"
    with dpsql.connect(path, user="bob") as bob, dpsql.connect(path, user="ana") as ana:
        ana.cursor().execute("SELECT COUNT(*) FROM people")
        for connection, name, charges in ((ana, "ana", 1), (bob, "bob", 0)):
            shown = preview_status(path, name)
            assert shown is not None and shown.balance == connection.budget() and shown.balance.charges == charges
