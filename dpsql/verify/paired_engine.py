"""An engine that runs every release on two neighboring databases and compares what they give.

The session that asks it is the real one. It is given the first database's cells, and draws the first one's noise; so
whatever follows, the next stage's holes included, is the same as if the second had been asked and had drawn the same
release. A session knows nothing of rows but what its engine says: what is compared here is all that there is to
compare (record and replay: Cebere et al. 2026).

Law: the only file besides `privacy/release.py` that opens exact rows. They are made up: its engines hold generated
tables only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from dpsql.compiler.compile import Compiled, ReleaseStep
from dpsql.compiler.norm_steps import norm_statement
from dpsql.engines.base import ENGINE_FAILED
from dpsql.engines.in_memory import InMemoryEngine, InMemoryEngineError
from dpsql.errors import EngineFailed, Error
from dpsql.privacy.exact import Exact, Row
from dpsql.privacy.norm_choice import MeanBins, NormBins
from dpsql.privacy.release import perturb
from dpsql.privacy.sampling import ExactSampler
from dpsql.schema.model import Privacy, Source
from dpsql.session.explain import ExplainedRelease, explain
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.neighbors import NeighborPair, TableRows
from dpsql.verify.generate.schemas import GeneratedSchema
from dpsql.verify.invariants import ExactCells, find_violations

CROWD, MAX_CROWDED_BIN = 10**9, 8
"""Units in a histogram that is made up, and the bins that they may be in: norms and means up to 2^8."""


@dataclass
class PairedEngine:
    """`first` and `second` hold neighbors; `mixed` the first again, in another order and with more threads.

    `findings` collects what differs beyond the claim while a statement runs.
    """

    first: InMemoryEngine
    second: InMemoryEngine
    mixed: InMemoryEngine
    findings: list[str] = field(default_factory=list)
    releases: int = 0
    name: str = "duckdb"

    def __post_init__(self) -> None:
        self._steps: dict[str, tuple[ReleaseStep, ExplainedRelease]] = {}
        self._histograms: dict[str, NormBins | MeanBins] = {}
        self._recompile: Callable[[], Compiled] | None = None
        self._privacy: Privacy | None = None

    def load_pair(self, generated: GeneratedSchema, pair: NeighborPair) -> None:
        for engine, rows in ((self.first, pair.first), (self.second, pair.second), (self.mixed, pair.mixed)):
            fill_engine(engine, generated, rows)
        self._privacy = generated.schema.privacy

    def expect_statement(self, compiled: Compiled, recompile: Callable[[], Compiled] | None = None) -> None:
        """The statement that will run: nothing else may be asked of a private table, and this is what it claims.

        Where norms are chosen first, `recompile` gives the statement that follows from them.
        """
        self._steps, self._histograms, self._recompile = {}, {}, recompile
        self.findings, self.releases = [], 0
        self._expect_steps(compiled)

    def _expect_steps(self, compiled: Compiled) -> None:
        statement = norm_statement(compiled) if compiled.undecided else compiled
        explained = explain(statement, self.name, ()).releases
        self._steps |= {step.sql: (step, release) for step, release in zip(statement.steps, explained, strict=True)}
        self._histograms |= {norm.step.sql: norm.bins for norm in compiled.norm_steps}

    # --- as an engine ------------------------------------------------------------------------------------------------

    def execute(self, sql: str, key_columns: int, holes: Mapping[str, object]) -> Exact:
        if sql not in self._steps and self._recompile is not None:
            self._expect_steps(self._recompile())
        expected = self._steps.get(sql)
        if expected is None or self._privacy is None:
            self.findings.append("another statement runs than was compiled")
            raise EngineFailed(ENGINE_FAILED)
        self.releases += 1
        engines = (("D", self.first), ("D'", self.second), ("D in another order", self.mixed))
        first, second, third = (self._run_release(name, engine, sql, key_columns, holes) for name, engine in engines)
        if first is None or second is None or third is None:
            raise EngineFailed(ENGINE_FAILED)
        first_cells, second_cells, mixed_cells = reveal_cells(first), reveal_cells(second), reveal_cells(third)
        step, release = expected
        self.findings += find_violations(step, release, first_cells, second_cells, self._privacy)
        if (first_cells.key_texts, first_cells.columns) != (mixed_cells.key_texts, mixed_cells.columns):
            self.findings.append("cells depend on the order of rows, on threads, or on rows that belong to no unit")
        self._check_perturb(second, step)
        return _crowded_histogram(first, sql, self._histograms[sql]) if sql in self._histograms else first

    def _run_release(
        self, name: str, engine: InMemoryEngine, sql: str, key_columns: int, holes: Mapping[str, object]
    ) -> Exact | None:
        try:
            return engine.run_release(sql, key_columns, holes)
        except InMemoryEngineError as failed:
            self.findings.append(f"the engine failed on {name}: {failed}")
            return None

    def _check_perturb(self, exact: Exact, step: ReleaseStep) -> None:
        """What the session does next with the first one's cells must not fail for the second's either."""
        try:
            perturb(exact, step.calibrated.spec, ExactSampler(ChoiceStream(0).random_bytes))
        except (Error, ValueError, TypeError, ArithmeticError) as error:
            self.findings.append(f"the noise failed on D' only: {error}")

    def execute_public(self, sql: str, holes: Mapping[str, object]) -> list[Row]:
        rows = [engine.query_rows(sql, holes) for engine in (self.first, self.second)]
        if Counter(map(repr, rows[0])) != Counter(map(repr, rows[1])):
            self.findings.append("public rows depend on private ones")
        return rows[0]

    def describe(self, source: Source) -> dict[str, str]:
        return self.first.describe(source)

    def close(self) -> None:
        for engine in (self.first, self.second, self.mixed):
            engine.close()


def _crowded_histogram(exact: Exact, sql: str, bins: NormBins | MeanBins) -> Exact:
    """A histogram of many units in one bin: generated databases have too few for a norm or a centre to be chosen.

    Any norm and any centre is sound, so which one is chosen is drawn.
    """
    keys = exact.reveal().keys
    places = [index for index, (bin_,) in enumerate(keys) if isinstance(bin_, int) and _is_small(bin_, bins)]
    counts = np.zeros(len(keys), np.int64)
    counts[ChoiceStream(sql).choice(tuple(places) or (0,))] = CROWD
    return Exact(keys, (counts,))


def _is_small(bin_: int, bins: NormBins | MeanBins) -> bool:
    if isinstance(bins, NormBins):
        return abs(bin_) <= MAX_CROWDED_BIN
    return max(map(abs, bins.edges(bin_ + bins.last))) <= 2.0**MAX_CROWDED_BIN


def fill_engine(engine: InMemoryEngine, generated: GeneratedSchema, rows: TableRows) -> None:
    for stored in generated.tables:
        engine.fill_table(stored.name, [(c.name, c.engine_type) for c in stored.columns], rows[stored.name])


def reveal_cells(exact: Exact) -> ExactCells:
    """The exact cells of an in-memory engine, whose rows are generated."""
    revealed = exact.reveal()
    return ExactCells(revealed.keys, tuple(tuple(column.tolist()) for column in revealed.cells))
