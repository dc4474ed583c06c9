"""A service account that asks for others: they pay, she sees their budgets, and nobody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.errors import AccessDenied, BudgetExceeded, Error
from dpsql.session.dataset.dataset import Dataset, open_dataset
from dpsql.session.session import Session

SCHEMA = """
dpsql: 1
engine: "duckdb:///:memory:"
ledger: sqlite:///s.ledger
privacy:
  unit: visits.patient
  budget: {epsilon: 8, delta: 1e-6}
  query: {epsilon: 0.5, delta: 1e-9}
  contributions: {rows: 2, groups: 2}
analysts:
  bi: {budget: {epsilon: 1, delta: 1e-7}, may_act_for: [ana]}
  ana: {budget: {epsilon: 2, delta: 1e-7}, largest_query: {epsilon: 0.25}}
  bob: {budget: {epsilon: 2, delta: 1e-7}}
tables:
  visits:
    source: visits.csv
    unit: patient
    columns:
      patient: {type: bigint}
      cost: {type: integer, bounds: [0, 9]}
"""
COUNT = "SELECT COUNT(*) FROM visits"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    (tmp_path / "visits.csv").write_text("patient,cost\n1,3\n2,4\n")
    (tmp_path / "s.yaml").write_text(SCHEMA.replace("source: visits.csv", "source: {path: visits.csv}"))
    return open_dataset(tmp_path / "s.yaml")


def charges(dataset: Dataset) -> dict[str, int]:
    return {name: len(dataset.ledger.list_entries(name)) for name in ("bi", "ana", "bob")}


def test_the_analyst_who_is_acted_for_pays(dataset: Dataset) -> None:
    session = Session(dataset, "bi")
    session.execute("SET ROLE ana")
    assert session.execute("SELECT current_user, session_user").rows == [("ana", "bi")]
    assert session.execute("SHOW role").rows == [("ana",)]
    ana = charges(dataset)
    session.execute(COUNT)
    after = charges(dataset)
    assert after["ana"] > ana["ana"] and after["bi"] == ana["bi"]
    session.execute("RESET ROLE")
    assert session.execute("SELECT current_user").rows == [("bi",)]
    session.execute(COUNT)
    assert charges(dataset)["bi"] > after["bi"]


def test_what_one_role_paid_for_is_not_free_for_another(dataset: Dataset) -> None:
    """Also not from what the session remembers."""
    session = Session(dataset, "bi")
    session.execute("SET ROLE ana")
    rows = session.execute(COUNT).rows
    assert session.execute(COUNT).rows == rows and session.charged.epsilon == 0
    session.execute("SET ROLE NONE")
    assert session.execute(COUNT).loss.rho > 0
    assert session.charged.epsilon > 0


def test_the_policy_of_the_analyst_who_is_acted_for_binds(dataset: Dataset) -> None:
    session = Session(dataset, "bi", opened_with={"role": "ana"})
    assert session.execute("SHOW epsilon").rows == [("0.25",)]
    session.execute("SET epsilon = 0.5")
    with pytest.raises(BudgetExceeded):
        session.execute(COUNT)
    assert charges(dataset)["ana"] == len(dataset.ledger.list_entries("ana"))


def test_roles_of_others_are_not_revealed(dataset: Dataset) -> None:
    session = Session(dataset, "ana")
    for asked, due in (("'ana'", True), ("'ana', 'ana'", True), ("'bi', 'ana'", False), ("'ana', 'bi'", False)):
        assert session.execute(f"SELECT pg_has_role({asked}, 'member')").rows == [(due,)]


def test_cursors_end_where_the_role_changes(dataset: Dataset) -> None:
    """Their rows are of who has paid for them."""
    session = Session(dataset, "bi")
    session.execute(f"DECLARE c CURSOR WITH HOLD FOR {COUNT}")
    session.execute("SET ROLE bi")
    assert len(session.execute("FETCH 1 FROM c").rows) == 1
    session.execute("SET ROLE ana")
    with pytest.raises(Error, match='"c" does not exist'):
        session.execute("FETCH PRIOR FROM c")
    session.execute(f"DECLARE c CURSOR WITH HOLD FOR {COUNT}")
    session.execute("RESET ROLE")
    with pytest.raises(Error, match='"c" does not exist'):
        session.execute("FETCH 1 FROM c")


def test_a_budget_is_that_of_the_role_alone(dataset: Dataset) -> None:
    session = Session(dataset, "bi")
    own = str(session.budget())
    session.execute("SET SESSION AUTHORIZATION ana")
    assert str(session.budget()) != own
    session.execute("SET SESSION AUTHORIZATION DEFAULT")
    assert str(session.budget()) == own
    for name in ("bob", "dataset", "nobody"):
        with pytest.raises(AccessDenied, match="permission denied to set role"):
            session.execute(f"SET ROLE {name}")
    with pytest.raises(AccessDenied):
        Session(dataset, "ana").execute("SET ROLE bi")


def test_a_connection_that_was_opened_in_a_role_stays_in_it(dataset: Dataset) -> None:
    """Who opened it for her may let an analyst write its statements; they lead to nobody else's budget."""
    session = Session(dataset, "bi", opened_with={"role": "ana"})
    session.execute("SET ROLE ana")
    for statement in ("SET ROLE NONE", "SET ROLE bi", "SET ROLE bob", "SET SESSION AUTHORIZATION bi",
                      "SET LOCAL ROLE bi", "SELECT set_config('role', 'none', false)"):  # fmt: skip
        with pytest.raises(Error):
            session.execute(statement)
    for statement in ("RESET ROLE", "RESET ALL", "DISCARD ALL", "SET SESSION AUTHORIZATION DEFAULT", "ROLLBACK"):
        session.execute(statement)
        assert session.execute("SELECT current_user").rows == [("ana",)], statement
    before = charges(dataset)
    session.execute(COUNT)
    after = charges(dataset)
    assert after["ana"] > before["ana"] and after["bi"] == before["bi"]


@pytest.mark.parametrize("own", ["bi", "BI", "none", "NONE"])
def test_also_in_its_own(dataset: Dataset, own: str) -> None:
    """Who is named as the service, or as nobody, where the service names the role, gets no further by that."""
    session = Session(dataset, "bi", opened_with={"role": own})
    assert session.execute("SELECT current_user").rows == [("bi",)]
    for statement in ("SET ROLE ana", "SET SESSION AUTHORIZATION ana"):
        with pytest.raises(AccessDenied, match="permission denied to set role"):
            session.execute(statement)
    session.execute("SET ROLE NONE")
    assert session.execute("SELECT current_user").rows == [("bi",)]
