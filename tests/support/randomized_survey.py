"""A survey whose answers were randomized before they were recorded, with and without that being declared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from dpsql.privacy.sampling import Sampler
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from tests.support.shop import Silence

YES = "randomized: {epsilon: 1.0986122886681098, values: [yes, no]}"
PARTY = "randomized: {epsilon: 1, values: [a, b, c, d]}"

SCHEMA = f"""\
dpsql: 1
engine: duckdb:///polls.duckdb
privacy:
  neighbors: NEIGHBORS
  unit: people.pid
  budget: {{epsilon: 1000, delta: 1e-3}}
  query: {{epsilon: 1, delta: 1e-6}}
  contributions: {{rows: 1, groups: 1}}
tables:
  people:
    unit: pid
    unique: [pid]
    columns:
      pid: {{type: bigint}}
      region: {{type: text, values: [n, s]}}
      age: {{type: integer, bounds: [0, 100]}}
      answer: {{type: text, {YES}, nullable: true}}
      party: {{type: text, {PARTY}}}
      sport: {{type: text, {YES}}}
      smokes: {{type: boolean, nullable: true}}
      note: {{type: text}}
  calls:
    unit: {{pid: people.pid}}
    columns:
      pid: {{type: bigint}}
      kind: {{type: text, values: [in, out]}}
"""

DATA = """
-- 1,000 answers: 600 yes and 400 no; and 20 who were not asked
CREATE TABLE people AS
SELECT i AS pid, CASE WHEN i % 2 = 0 THEN 'n' ELSE 's' END AS region, (i % 101)::INTEGER AS age,
       CASE WHEN i < 600 THEN 'yes' WHEN i < 1000 THEN 'no' END AS answer,
       CASE WHEN i < 1000 THEN CASE WHEN i % 5 < 2 THEN 'a' WHEN i % 5 = 2 THEN 'b' WHEN i % 5 = 3 THEN 'c' ELSE 'd' END
       END AS party,
       CASE WHEN i % 4 = 0 THEN 'yes' ELSE 'no' END AS sport,
       CASE WHEN i < 1000 THEN i % 3 = 0 END AS smokes,
       'note ' || i AS note
FROM range(1020) t(i);
CREATE TABLE calls AS SELECT i % 50 AS pid, CASE WHEN i % 3 = 0 THEN 'in' ELSE 'out' END AS kind FROM range(100) t(i);
"""


@contextmanager
def polls(
    folder: Path, declared: bool = True, neighbors: str = "add_remove", sampler: Sampler | None = None
) -> Iterator[Session]:
    text = SCHEMA.replace("NEIGHBORS", neighbors)
    if not declared:
        text = text.replace(YES, "values: [yes, no]").replace(PARTY, "values: [a, b, c, d]")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "polls.yaml").write_text(text, encoding="utf-8")
    with duckdb.connect(str(folder / "polls.duckdb")) as connection:
        connection.execute(DATA)
    dataset = open_dataset(folder / "polls.yaml")
    try:
        yield Session(dataset, sampler=sampler or Silence())
    finally:
        dataset.close()
