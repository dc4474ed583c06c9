"""The owner's rehearsal: exact answers with the bars of real ones, each as if it were the first."""

import duckdb
import pytest

from dpsql.errors import OperationalError
from dpsql.owner.check.dry_run import open_dry_run
from dpsql.owner.introspect.csv_files import introspect_csv
from dpsql.schema.load import load_schema
from dpsql.schema.model import Contributions, Files
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session

SCHEMA = """
dpsql: 1
engine: duckdb:///d.duckdb
privacy:
  unit: users.user_id
  budget: {epsilon: 1, delta: 1e-6}
  query: {epsilon: 0.5, delta: 1e-8}
  largest_query: {epsilon: 0.6}
  expires: 2020-01-01
limits: {min_latency: 30}
analysts: {ana: {budget: {epsilon: 1, delta: 1e-6}}}
tables:
  users: {unit: user_id, columns: {user_id: {type: bigint}, x: {type: integer, bounds: [0, 9]}}}
"""
TWO = Contributions(2, 2)


@pytest.fixture
def schema(tmp_path):
    (tmp_path / "d.yaml").write_text(SCHEMA)
    with duckdb.connect(str(tmp_path / "d.duckdb")) as db:
        db.execute("CREATE TABLE users AS SELECT i AS user_id, (i % 12)::INTEGER AS x FROM range(600) t(i)")
    return load_schema(tmp_path / "d.yaml")


def test_answers_are_exact_and_bars_are_those_of_noise(schema):
    with open_dry_run(schema, TWO) as session:
        answer = session.execute("SELECT COUNT(*), SUM(x) FROM users")
        expected = session.explain("SELECT COUNT(*), SUM(x) FROM users").expected
    assert answer.rows == [(600, sum(min(9, i % 12) for i in range(600)))]
    assert [bar.stderr for bar in answer.errors[0]] == pytest.approx(list(expected))


def test_each_statement_has_the_noise_of_its_own(schema):
    """Nothing is derived from what was asked before."""
    with open_dry_run(schema, TWO) as session:
        session.execute("SELECT SUM(x), COUNT(*) FROM users")
        after = session.execute("SELECT AVG(x) FROM users")
    with open_dry_run(schema, TWO) as session:
        alone = session.execute("SELECT AVG(x) FROM users")
    assert after.errors == alone.errors and after.loss.rho == alone.loss.rho > 0


def test_nobody_s_budget_policy_or_wait_stops_it(schema):
    """Forty statements of half the budget each; the account has expired, and answers would wait for half a minute."""
    with open_dry_run(schema, TWO) as session:
        for least in range(40):
            session.execute(f"SELECT COUNT(*) FROM users WHERE x >= {least % 9} AND user_id > {least}")


def test_the_real_ledger_is_not_there(schema, tmp_path):
    with open_dry_run(schema, TWO) as session:
        session.execute("SELECT COUNT(*) FROM users")
        assert not str(session.dataset.schema.ledger).startswith(f"sqlite:///{tmp_path}/")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.duckdb", "d.yaml"]


def test_what_was_asked_in_it_is_not_served_later(schema, tmp_path):
    with open_dry_run(schema, TWO) as session:
        session.execute("SELECT COUNT(*) FROM users")
    open_again = SCHEMA.replace("  expires: 2020-01-01\n", "  contributions: {rows: 2, groups: 2}\n")
    (tmp_path / "d.yaml").write_text(open_again.replace("limits: {min_latency: 30}\n", ""))
    dataset = open_dataset(tmp_path / "d.yaml")
    try:
        assert Session(dataset, "ana").explain("SELECT COUNT(*) FROM users").paid == (False,)
    finally:
        dataset.close()


def test_what_the_driver_says_of_a_text_file_is_not_passed_on(tmp_path):
    """It may quote a line."""
    (tmp_path / "a.csv").write_text("x\n")

    class Talking:
        def make_readable(self, files, columns):
            return files

        def query_rows(self, sql):
            raise OperationalError("the engine cannot read a source", detail="Original Line: secret,row")

    with pytest.raises(OperationalError) as raised:
        introspect_csv(Talking(), "a", Files((), "csv"), str(tmp_path / "a.csv"), None)
    assert "secret" not in str(raised.value) and raised.value.__cause__ is None
