"""Two neighboring databases behind real sessions: a crowd, and the crowd with unit 7, whose rows have the worst values.

The file names are the same on both sides, so that whatever differs is due to the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from dpsql.errors import Error
from dpsql.privacy.sampling import ExactSampler
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Parameter, Session
from tests.support.shop import Silence

ROWS, GROUPS = 3, 3

SCHEMA = """
dpsql: 1
engine: duckdb:///data.duckdb
privacy:
  unit: people.pid
  budget: {epsilon: 1000000, delta: 0.9}
  query: {epsilon: 1, delta: 1e-6}
  contributions: {rows: 3, groups: 3}
tables:
  people:
    unit: pid
    unique: [pid]
    columns:
      pid: {type: bigint}
      age: {type: integer, bounds: [0, 120]}
      sex: {type: text, values: [f, m]}
      born: {type: date}
  visits:
    unit: {pid: people.pid}
    unique: [vid]
    columns:
      vid: {type: bigint}
      pid: {type: bigint}
      kind: {type: text, values: [a, b, c], nullable: true}
      ward: {type: text}
      note: {type: text, max_length: 2000}
      n: {type: integer, bounds: [0, 100]}
      i: {type: integer}
      big: {type: bigint}
      huge: {type: hugeint}
      x: {type: double, bounds: [0, 100]}
      w: {type: double}
      r: {type: real}
      c: {type: "decimal(10,2)", bounds: [0, 1000]}
      z: {type: "decimal(38,10)"}
      d: {type: date}
      f: {type: date, bounds: [2020-01-01, 2024-12-31]}
      p: {type: timestamp}
      q: {type: timestamp, bounds: [2020-01-01, 2024-12-31]}
      o: {type: timestamptz}
      h: {type: time}
      ok: {type: boolean, nullable: true}
      u: {type: uuid}
  texts:                       # what the owner declares, and text in the engine
    unit: {pid: people.pid}
    columns:
      pid: {type: bigint}
      i: {type: integer}
      n: {type: integer, bounds: [0, 100]}
      x: {type: double, bounds: [0, 100]}
      c: {type: "decimal(10,2)"}
      d: {type: date}
      p: {type: timestamp}
      o: {type: timestamptz}
      h: {type: time}
      ok: {type: boolean}
      u: {type: uuid}
  kinds:
    public: true
    unique: [kind]
    columns: {kind: {type: text}, rank: {type: integer}}
"""

TABLES = """
SET TimeZone = 'UTC';
CREATE TABLE people (pid BIGINT, age INTEGER, sex VARCHAR, born DATE, hidden VARCHAR DEFAULT 'not in the schema');
CREATE TABLE visits (
  vid BIGINT, pid BIGINT, kind VARCHAR, ward VARCHAR, note VARCHAR, n INTEGER, i INTEGER, big BIGINT, huge HUGEINT,
  x DOUBLE, w DOUBLE, r REAL, c DECIMAL(10,2), z DECIMAL(38,10), d DATE, f DATE, p TIMESTAMP, q TIMESTAMP,
  o TIMESTAMPTZ, h TIME, ok BOOLEAN, u UUID);
CREATE TABLE texts (pid BIGINT, i VARCHAR, n VARCHAR, x VARCHAR, c VARCHAR, d VARCHAR, p VARCHAR, o VARCHAR, h VARCHAR,
  ok VARCHAR, u VARCHAR);
CREATE TABLE kinds (kind VARCHAR, rank INTEGER);
INSERT INTO kinds VALUES ('a', 1), ('b', 2), ('c', 3);
CREATE TABLE secret AS SELECT 7::BIGINT AS pid, 'not in the schema' AS word;
"""

CROWD = """
INSERT INTO people (pid, age, sex, born) SELECT i, i % 90, ['f',
'm'][1 + i % 2], DATE '1960-01-01' + (i * 17)::INTEGER FROM range(50, {0}) r(i);
INSERT INTO visits SELECT i, i // 2, ['a', 'b',
'c'][1 + i % 3], 'w' || i % 4, 'fine ' || i % 5, i % 100, i % 1000, i, i,
  i % 100, i % 7, 1.5, i % 1000, i, DATE '2022-01-01' + (i % 300)::INTEGER, DATE '2022-01-01' + (i % 300)::INTEGER,
  TIMESTAMP '2022-01-01 10:00:00' + to_days((i % 300)::INTEGER), TIMESTAMP '2022-01-01 10:00:00' + to_days((i % 300)::INTEGER),
  TIMESTAMPTZ '2022-01-01 10:00:00+00', TIME '10:00', i % 2 = 0, '00000000-0000-0000-0000-000000000001'
  FROM range(100, 2 * {0}) r(i);
INSERT INTO texts SELECT i, '1', '2', '3.5', '4.25', '2022-01-01', '2022-01-01 10:00:00', '2022-01-01 10:00:00+00',
'10:00',
  'true', '00000000-0000-0000-0000-000000000001' FROM range(50, {0}) r(i);
"""  # noqa: E501

HUGEST = 2**127 - 1
WORST = f"""
INSERT INTO people (pid, age, sex, born) VALUES (7, 2147483647, '?', '5877642-06-25 (BC)');
INSERT INTO visits VALUES
(1, 7, '?', '20000-01-01', repeat('a', 2000), 2147483647, 2147483647, {2**63 - 1}, {HUGEST}, 'nan', 'nan', 'nan',
 99999999.99, 9999999999999999999999999999.9999999999, '5881580-07-10', 'infinity', '294247-01-10 04:00:54.775806',
 'infinity', '294247-01-10 04:00:54.775806+00', '24:00:00', NULL, 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
(2, 7, 'a', '', '(', -2147483648, -2147483648, {-(2**63)}, {-HUGEST}, 'inf', 'inf', 'inf',
 -99999999.99, -9999999999999999999999999999.9999999999, '5877642-06-25 (BC)', '-infinity',
 '290309-12-22 (BC) 00:00:00', '-infinity', '290309-12-22 (BC) 00:00:00+00', '00:00:00', TRUE, NULL),
(3, 7, 'b', 'nan', 'a\\', 0, 0, 0, 0, '-inf', '-inf', '-inf', 0, 0, 'infinity', '2022-01-01', 'infinity',
 '2022-01-01', 'infinity', '23:59:59.999999', FALSE, NULL),
(4, 7, 'c', '1e400', '2020-01-01 10:00 Nowhere/Zone', -1, -1, -1, -1, 1e308, 1.7976931348623157e308, 3.4e38, 0.01,
 0.0000000001, '0001-01-01', '2024-12-31', '0001-01-01 00:00:00', '2024-12-31', '0001-01-01 00:00:00+00',
 '12:00', NULL, NULL),
(5, 7, NULL, chr(0), chr(0) || 'é', 1, 1, 1, 1, -1e308, -1.7976931348623157e308, -3.4e38, 1, 1, '9999-12-31',
 '2020-01-01', '9999-12-31 23:59:59.999999', '2020-01-01', '9999-12-31 23:59:59.999999+00', '12:00', NULL, NULL),
(6, 7, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '-0.0', '-0.0', '-0.0', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
 NULL, NULL),
(7, 7, 'a', '[[:nope:]]', '%', 9, 9, {2**63 - 1}, {HUGEST}, 5, 1e308, 5, 5, 9999999999999999999999999999, '2020-02-29',
 '2022-02-02', '2020-02-29', '2022-02-02', '2020-02-29', '12:00', TRUE, NULL);
INSERT INTO texts
SELECT 7, t, t, t, t, t, t, t, t, t, t FROM (VALUES ('nan'), ('inf'), ('1e308'), ('-1e400'), ('9223372036854775808'), (''),
 ('24:00:00'), ('5877642-06-25 (BC)'), ('290309-12-22 (BC) 00:00:00+15'), ('2021-01-01 10:00:00 Nowhere/Zone'),
 ('infinity'), ('epoch'), ('1e1000000000'), ('0x7f'), (chr(0)), (repeat('9', 5000)), ('ü'), ('2020-02-30'), ('maybe')) s(t);
"""  # noqa: E501


@dataclass(frozen=True)
class Neighbors:
    """`small` is a third database, far from the others: with a tenth of the crowd."""

    without: Session
    with_victim: Session
    small: Session


def open_side(folder: Path, rows: str, quiet: bool = False) -> Session:
    """`quiet` is without noise: for what an attacker would see if there were none. All groups are listed: which of them
    noise leaves out says nothing."""
    folder.mkdir(parents=True)
    (folder / "data.yaml").write_text(SCHEMA, encoding="utf-8")
    with duckdb.connect(str(folder / "data.duckdb")) as db:
        db.execute(TABLES + rows)
    sampler = Silence() if quiet else ExactSampler()
    return Session(open_dataset(folder / "data.yaml"), sampler=sampler, opened_with={"empty_groups": "show"})


@contextmanager
def neighbors(folder: Path, quiet: bool = False) -> Iterator[Neighbors]:
    crowd = CROWD.format(650)
    sides = (("without", crowd), ("with", crowd + WORST), ("small", CROWD.format(110)))
    sessions = [open_side(folder / name, rows, quiet) for name, rows in sides]
    yield Neighbors(*sessions)
    for session in sessions:
        session.dataset.close()


@dataclass(frozen=True)
class Outcome:
    """All that an analyst sees but noise: the kind of answer, an error in full, columns with their types.

    `charges` counts those of a refusal: what is answered is free where it was asked before.
    """

    kind: str
    text: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    charges: int = 0
    notices: tuple[str, ...] = ()


def outcome(session: Session, sql: str, parameters: tuple[Parameter, ...] = ()) -> Outcome:
    before = session.budget().charges
    try:
        answer = session.execute(sql, parameters)
    except Error as error:
        charged = session.budget().charges - before
        return Outcome(type(error).__name__, f"{error.sqlstate} {error}", charges=charged)
    columns = tuple((column.name, column.spelling) for column in answer.columns)
    unknown = answer.unknown_clipping  # a session says them once: what it was asked before is not the rows
    said = (notice for notice in answer.notices if notice not in unknown)
    fixed = tuple(notice for notice in said if not notice.startswith("the noise is wider"))
    return Outcome("answered", "", columns, notices=(*fixed, *unknown))


def assert_alike(both: Neighbors, sql: str, parameters: tuple[Parameter, ...] = ()) -> Outcome:
    """The same to see on both sides; nothing fails for its rows, and a refusal costs nothing."""
    said, heard = (outcome(side, sql, parameters) for side in (both.without, both.with_victim))
    assert said == heard, sql
    assert said.kind not in ("EngineFailed", "InternalError", "AccountSuspended"), (sql, said)
    assert said.kind in ("answered", "DataError") or said.charges == 0, f"a refusal was charged: {sql}"
    return said


def assert_answered(both: Neighbors, sql: str, parameters: tuple[Parameter, ...] = ()) -> None:
    said = assert_alike(both, sql, parameters)
    assert said.kind == "answered", (sql, said)


def assert_refused(both: Neighbors, sql: str, parameters: tuple[Parameter, ...] = ()) -> Outcome:
    said = assert_alike(both, sql, parameters)
    assert said.kind != "answered", sql
    assert said.charges == 0, sql
    return said


def exact(session: Session, sql: str) -> dict[tuple[object, ...], tuple[int, ...]]:
    """The cells of a statement's one release, before noise."""
    (step,) = session.compile_statement(sql, ()).steps
    revealed = session.dataset.engine.execute(step.sql, len(step.keys), {}).reveal()
    return {key: tuple(int(cell[row]) for cell in revealed.cells) for row, key in enumerate(revealed.keys)}
