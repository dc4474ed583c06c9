"""Statements as analysts would ask them, without noise, charge or trace: the owner's rehearsal.

Law: the ledger is a file in a folder of its own that is gone at the end, so nothing is charged to anyone and no data
version is registered. No noise is drawn, so what comes back is exact: it is for whoever has the data, and for no door
but the owner's command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql import versions
from dpsql.dataset import Dataset, now_utc
from dpsql.owner.scratch import open_temp_folder
from dpsql.payers import open_declared_ledger
from dpsql.runs import Runs
from dpsql.schema.keys import MAX_EPSILON
from dpsql.schema.model import Answers, Budget, Contributions, Policy, Schema
from dpsql.session import Session

_UNLIMITED_BUDGET = Budget(Fraction(MAX_EPSILON), Fraction(999, 1000))

Integers = npt.NDArray[np.int64]


class NoiselessSampler:
    """In the place of a sampler: every draw is nothing, every choice the best."""

    def laplace(self, n: int, scale: Fraction) -> Integers:
        return np.zeros(n, dtype=np.int64)

    def gaussian(self, n: int, sigma: Fraction) -> Integers:
        return np.zeros(n, dtype=np.int64)

    def choose(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        best: Integers = np.argmin(penalties, axis=1).astype(np.int64)
        return best

    def flip(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        return self.choose(penalties, scale)


@contextmanager
def open_dry_run(schema: Schema, contributions: Contributions) -> Iterator[Session]:
    """A session on the data as it is, with all checks of registering it made; they may raise.

    The schema's own defaults count, with `contributions` in the place of what it may not declare.
    """
    with open_temp_folder("check") as folder:
        detached = _detached_schema(schema, folder, contributions)
        ledger = open_declared_ledger(detached)
        try:
            now = now_utc()
            resolved = versions.register_data(detached, ledger, now=now)
            dataset = Dataset(resolved, versions.open_engine(resolved), ledger, Runs(ledger=ledger.identity))
        except BaseException:
            ledger.close()
            raise
        try:
            session = Session(dataset, sampler=NoiselessSampler())
            session.set("derive", "off")  # each statement with the noise of its own
            yield session
        finally:
            dataset.close()


def _detached_schema(schema: Schema, folder: Path, contributions: Contributions) -> Schema:
    """The schema with a ledger of its own, and nobody's budget, schedule or wait."""
    return replace(
        schema,
        ledger=f"sqlite:///{folder / 'rehearsal.ledger'}",
        privacy=replace(schema.privacy, budget=_UNLIMITED_BUDGET, contributions=contributions, policy=Policy()),
        analysts=(),
        groups=(),
        answers=Answers(),
        limits=replace(schema.limits, min_latency=Fraction(0)),
    )
