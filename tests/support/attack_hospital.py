"""Ground for attacks: a hospital with and without one victim, opened as a real dataset, and what leaks between the two.

The victim is patient 7, who has far more rows than the norm, values at and beyond the bounds, and words of her own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np

from dpsql.errors import Error
from dpsql.ledger.base import Balance
from dpsql.privacy.sampling import Sampler
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.explain import Explanation
from dpsql.session.session import Parameter, Session, StatementResult
from dpsql.verify.invariants import ExactCells, find_undercharges, find_violations

ROWS = 20
"""The norm: a unit counts like at most so many rows."""

PRIVACY = """
dpsql: 1
engine: duckdb:///{name}.duckdb
ledger: sqlite:///{name}.ledger
privacy:
  neighbors: {neighbors}
  unit: people.pid
  budget: {{epsilon: {epsilon}, delta: {delta}}}
  query: {{epsilon: 1, delta: 1e-6}}
  contributions: {{rows: 20, groups: 4}}
"""

TABLES = """
tables:
  people:
    unit: pid
    unique: [pid]
    columns:
      pid: {type: bigint}
      city: {type: text}
      sex: {type: text, values: [f, m], nullable: true}
      age: {type: integer, bounds: [0, 120]}
  visits:
    unit: {pid: people.pid}
    columns:
      pid: {type: bigint}
      ward: {type: text}
      kind: {type: text, values: [a, b, c]}
      n: {type: bigint, bounds: [0, 100]}
      x: {type: double, bounds: [-5, 5], grid: 0.1}
      day: {type: date, bounds: [2024-01-01, 2024-12-31]}
  wards: {public: true, unique: [ward], columns: {ward: {type: text}, floor: {type: integer}}}
  nums: {public: true, columns: {i: {type: integer}}}
  repeats: {public: true, columns: {kind: {type: text}}}
"""

DATA = """
CREATE TABLE people (pid BIGINT, city VARCHAR, sex VARCHAR, age INTEGER);
CREATE TABLE visits (pid BIGINT, ward VARCHAR, kind VARCHAR, n BIGINT, x DOUBLE, day DATE);
CREATE TABLE wards AS SELECT 'w' || i AS ward, i::INTEGER AS floor FROM range(4) r(i);
CREATE TABLE nums AS SELECT i::INTEGER AS i FROM range(40) r(i);
CREATE TABLE repeats AS SELECT 'a' AS kind FROM range(200);
INSERT INTO people SELECT i, 'c' || i % 3, CASE i % 3 WHEN 0 THEN 'f' WHEN 1 THEN 'm' END, i % 90
  FROM range(100, 400) r(i);
INSERT INTO visits SELECT 100 + i % 300, 'w' || i % 4, ['a', 'b', 'c'][1 + i % 3], i % 130, i % 11 - 5.0,
  DATE '2024-01-01' + (i % 365)::INTEGER FROM range(900) r(i);
"""

VICTIM = """
INSERT INTO people VALUES (7, 'nowhere', 'f', 33);
INSERT INTO visits SELECT 7, 'w' || i % 4, ['a', 'b', 'c'][1 + i % 3], [100, 1000000, NULL, 0][1 + i % 4],
  [5.0, 'inf'::DOUBLE, 'nan'::DOUBLE, -5.0, 0.1][1 + i % 5], DATE '2024-06-01' FROM range(300) r(i);
INSERT INTO visits SELECT 7, 'own' || i, 'a', 100, 5.0, DATE '2024-06-01' FROM range(50) r(i);
"""


def schema_text(name: str, tables: str = TABLES, neighbors: str = "add_remove", epsilon: str = "1000000",
                delta: str = "0.5") -> str:  # fmt: skip
    return PRIVACY.format(name=name, neighbors=neighbors, epsilon=epsilon, delta=delta) + tables


def build(folder: Path, name: str, schema: str, data: str, user: str | None = None,
          sampler: Sampler | None = None) -> Session:  # fmt: skip
    """A session on data of its own. The database is made once; opened again, it is the same dataset and ledger."""
    path = folder / f"{name}.yaml"
    path.write_text(schema, encoding="utf-8")
    if not (folder / f"{name}.duckdb").exists():
        with duckdb.connect(str(folder / f"{name}.duckdb")) as db:
            db.execute(data)
    return reopen(path, user, sampler)


def reopen(path: Path, user: str | None = None, sampler: Sampler | None = None) -> Session:
    """All groups are listed: what is left out would show an attacker less, and now and then another shape."""
    session = Session(open_dataset(path), user, opened_with={"empty_groups": "show"})
    return session if sampler is None else replace(session, sampler=sampler)


@dataclass(frozen=True)
class Pair:
    """Two neighbors: the hospital without the victim, or with another in her place, and with her."""

    without: Session
    with_: Session

    def __iter__(self) -> Iterator[Session]:
        return iter((self.without, self.with_))

    def close(self) -> None:
        for session in self:
            session.dataset.close()


def build_pair(folder: Path, tables: str = TABLES, data: str = DATA, victim: str = VICTIM, instead: str = "",
               neighbors: str = "add_remove") -> Pair:  # fmt: skip
    sides = (("hospital_1", data + instead), ("hospital_2", data + victim))
    return Pair(*(build(folder, name, schema_text(name, tables, neighbors), rows) for name, rows in sides))


def exact(session: Session, sql: str, place: int = 0) -> ExactCells:
    """The cells of one of the statement's releases before noise, on this side's rows."""
    step = session.compile_statement(sql, ()).steps[place]
    revealed = session.dataset.engine.execute(step.sql, len(step.keys), {}).reveal()
    return ExactCells(tuple(revealed.keys), tuple(tuple(np.asarray(column).tolist()) for column in revealed.cells))


def told_apart(pair: Pair, sql: str) -> list[str]:
    """What is wrong with the statement on these neighbors: texts, claims, charges; nothing, if all is well."""
    one, other = pair
    compiled, theirs = one.compile_statement(sql, ()), other.compile_statement(sql, ())
    explained = one.explain(sql)
    found = [] if _plain(one, explained) == _plain(other, other.explain(sql)) else ["EXPLAIN depends on the rows"]
    privacy = one.dataset.schema.privacy
    for place, (step, release) in enumerate(zip(compiled.steps, explained.releases, strict=True)):
        found += find_violations(step, release, exact(one, sql, place), exact(other, sql, place), privacy)
    same = [step.loss for step in compiled.steps] == [step.loss for step in theirs.steps]
    return found + ([] if same else ["the price depends on the rows"]) + find_undercharges(compiled)


def _plain(session: Session, explained: Explanation) -> str:
    """Without the choice of noise, which says what this side's own account has left and has paid for."""
    text = str(replace(explained, noise="", offers=()))
    return text.replace(session.dataset.schema.path.stem, "")


def outcome(session: Session, sql: str, parameters: Sequence[Parameter] = ()) -> str:
    """The error in full, or that there is none. Anything but an error of ours is raised."""
    try:
        session.execute(sql, parameters)
    except Error as error:
        return f"{type(error).__name__}: {error}"
    return "answered"


def same_outcome(pair: Pair, sql: str) -> str:
    """What both sides say; they must say the same, and never that the engine failed."""
    said = [outcome(session, sql) for session in pair]
    assert said[0] == said[1], sql
    assert "EngineFailed" not in said[0] and "InternalError" not in said[0], (sql, said[0])
    return said[0]


def spent(session: Session) -> tuple[int, Fraction, Fraction]:
    balance: Balance = session.budget()
    return balance.charges, balance.spent_rho, balance.spent_delta


@contextmanager
def for_free(*sessions: Session) -> Iterator[None]:
    """What is done here charges nobody."""
    before = [session.budget() for session in sessions]
    yield
    assert [session.budget() for session in sessions] == before, "a charge was made"


def values(answer: StatementResult) -> list[tuple[object, ...]]:
    return [tuple(row) for row in answer.rows]


def replace_data(folder: Path, name: str, data: str) -> None:
    """Another database file in the place of the open one, as a writer would leave it."""
    draft = folder / f"{name}.draft"
    with duckdb.connect(str(draft)) as db:
        db.execute(data)
    draft.replace(folder / f"{name}.duckdb")
