"""A small shop whose bounds and norms do not bite, opened with noise that is always zero.

Every value lies within its bounds and on its grid, every unit stays below its norm, and every unknown key has far more
units than any threshold: what comes out is what was asked, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import numpy.typing as npt

from dpsql.compiler import norm_steps
from dpsql.privacy.norm_choice import CellNoise, ChosenNorm, CountBeside, NormHistogram, choose_norm
from dpsql.privacy.sampling import Integers
from dpsql.session.dataset.dataset import Dataset, open_dataset
from dpsql.session.postprocess import noisy_cells
from dpsql.session.session import Session
from tests.support.likeliest_index import likeliest_index

SCHEMA = """
dpsql: 1
engine: duckdb:///shop.duckdb
ledger: sqlite:///shop.ledger
privacy:
  unit: people.uid
  budget: {epsilon: 1000000, delta: 0.9}
  query: {epsilon: 2000, delta: 1e-3}
  contributions: {rows: 4000, groups: 8}
tables:
  people:
    unit: uid
    unique: [uid]
    columns:
      uid: {type: bigint}
      region: {type: text, values: [north, east, south], nullable: true}
      age: {type: integer, bounds: [0, 120]}
      vip: {type: boolean}
      joined: {type: date, bounds: [2020-01-01, 2023-12-31]}
  orders:
    unit: {uid: people.uid}
    unique: [oid]
    columns:
      oid: {type: bigint}
      uid: {type: bigint}
      city: {type: text}
      kind: {type: text, values: [web, shop, phone]}
      amount: {type: double, bounds: [-100, 1000], grid: 0.25}
      qty: {type: integer, bounds: [-5, 20]}
      price: {type: "decimal(9,2)", bounds: [0, 500]}
      paid: {type: boolean, nullable: true}
      made: {type: timestamp, bounds: [2021-01-01, 2023-12-31]}
      note: {type: text}
  items:
    unit: {oid: orders.oid}
    columns:
      oid: {type: bigint}
      product: {type: text, values: [book, pen, toy]}
      weight: {type: double, bounds: [0, 10], grid: 0.5}
"""

DATA = """
CREATE TABLE people AS SELECT
  i::BIGINT AS uid,
  CASE i % 4 WHEN 0 THEN 'north' WHEN 1 THEN 'east' WHEN 2 THEN 'south' END AS region,
  CASE WHEN i % 11 = 0 THEN NULL ELSE (18 + i * 7 % 60) END::INTEGER AS age,
  i % 3 = 0 AS vip,
  DATE '2020-01-01' + (i * 37 % 1400)::INTEGER AS joined
FROM range(240) t(i);
CREATE TABLE orders AS SELECT
  i::BIGINT AS oid,
  (i * 13 % 241)::BIGINT AS uid,
  ['Oslo', 'Rome', 'Łódź', 'New York', 'o''Neil', 'oslo', ''][1 + i % 7] AS city,
  ['web', 'shop', 'phone'][1 + i * 5 % 3] AS kind,
  CASE WHEN i % 17 = 0 THEN NULL ELSE -100 + (i * 31 % 4400) * 0.25 END::DOUBLE AS amount,
  CASE WHEN i % 13 = 0 THEN NULL ELSE i * 7 % 26 - 5 END::INTEGER AS qty,
  (i * 97 % 50001 / 100)::DECIMAL(9,2) AS price,
  CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN TRUE WHEN 2 THEN FALSE WHEN 3 THEN TRUE ELSE FALSE END AS paid,
  TIMESTAMP '2021-01-01' + to_minutes((i * 977 % 1500000)::BIGINT) AS made,
  [NULL, 'gift', 'Gift wrap', '50% off', 'a_b', ''][1 + i % 6] AS note
FROM range(2400) t(i);
CREATE TABLE items AS SELECT
  (i * 7 % 2400)::BIGINT AS oid, ['book', 'pen', 'toy'][1 + i % 3] AS product,
  CASE WHEN i % 19 = 0 THEN NULL ELSE (i % 21) * 0.5 END::DOUBLE AS weight
FROM range(4000) t(i);
"""


class Silence:
    """No noise at all: for comparing with the engine, never for answering anyone."""

    def laplace(self, n: int, scale: Fraction) -> Integers:
        return np.zeros(n, np.int64)

    def gaussian(self, n: int, sigma: Fraction) -> Integers:
        return np.zeros(n, np.int64)

    def choose(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        return likeliest_index(penalties)

    def flip(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        return self.choose(penalties, scale)


@contextmanager
def silent_widths() -> Iterator[None]:
    """Noise that is always zero has no width either: a listed group is empty if it has no row, as in SQL."""
    with patch.object(noisy_cells, "interval_factor", lambda mechanism: 0.0):
        yield


SILENCE = 1e-9
"""Of a noise that is never drawn, what is left where a norm is chosen for it: of two that clip nothing, the smaller."""


def _silence_cell(cell: CellNoise) -> CellNoise:
    return replace(cell, per_norm=cell.per_norm * SILENCE)


@contextmanager
def unclipped_norms() -> Iterator[None]:
    """Norms chosen for noise that is always zero: the least that scales down no unit of a bin that is seen.

    A norm is chosen for its noise, so with an error that is not drawn it may scale down a unit for nothing.
    """

    def choose(
        histogram: NormHistogram, cell: CellNoise, largest: Fraction | None = None, beside: CountBeside | None = None
    ) -> ChosenNorm | None:
        counted = None if beside is None else replace(beside, cell=_silence_cell(beside.cell))
        return choose_norm(histogram, _silence_cell(cell), largest, counted)

    with patch.object(norm_steps, "choose_norm", choose):
        yield


def open_shop(folder: Path, change: str = "") -> tuple[Session, duckdb.DuckDBPyConnection]:
    """A session without noise, and the same rows for the engine to be asked directly; `change` is run on both."""
    (folder / "shop.yaml").write_text(SCHEMA, encoding="utf-8")
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute(DATA + change)
    reference = duckdb.connect(":memory:")
    reference.execute(DATA + change)
    reference.execute("CREATE MACRO clip(x, lo, hi) AS CASE WHEN x < lo THEN lo WHEN x > hi THEN hi ELSE x END")
    return Session(open_dataset(folder / "shop.yaml"), sampler=Silence()), reference


@contextmanager
def opened_with(folder: Path, accounts: str) -> Iterator[Dataset]:
    """The shop, with what stands in its schema from `query` to `tables:` replaced."""
    start, end = SCHEMA.index("  query:"), SCHEMA.index("tables:")
    text = SCHEMA[:start].rstrip() + accounts + SCHEMA[end + len("tables:") :]
    (folder / "shop.yaml").write_text(text, encoding="utf-8")
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute(DATA)
    dataset = open_dataset(folder / "shop.yaml")
    yield dataset
    dataset.close()
