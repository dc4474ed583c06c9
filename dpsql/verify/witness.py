"""An engine that runs every release on two neighboring databases and compares what they give.

The session that asks it is the real one. It is given the first database's cells, and draws the first one's noise; so
whatever follows, the next stage's holes included, is the same as if the second had been asked and had drawn the same
release. A session knows nothing of rows but what its engine says: what is compared here is all that there is to
compare (record and replay: Cebere et al. 2026).

Law: the only file besides `privacy/release.py` that opens exact rows. They are made up: a witness has scratch engines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from dpsql.compile import Compiled, ReleaseStep
from dpsql.engines.base import FAILED
from dpsql.engines.scratch import ScratchEngine, ScratchFailed
from dpsql.errors import EngineFailed, Error
from dpsql.exact import Exact, Row
from dpsql.explain import ExplainedRelease, explain
from dpsql.privacy.release import perturb
from dpsql.privacy.sampling import ExactSampler
from dpsql.schema.model import Privacy, Source
from dpsql.verify.claims import Cells, violations
from dpsql.verify.draws import Draws
from dpsql.verify.neighbors import Pair, Rows
from dpsql.verify.worlds import World


@dataclass
class Witness:
    """`one` and `other` hold neighbors; `mixed` the first again, in another order and with more threads.

    `findings` collects what differs beyond the claim while a statement runs.
    """

    one: ScratchEngine
    other: ScratchEngine
    mixed: ScratchEngine
    findings: list[str] = field(default_factory=list)
    releases: int = 0
    name: str = "duckdb"

    def __post_init__(self) -> None:
        self._steps: dict[str, tuple[ReleaseStep, ExplainedRelease]] = {}
        self._privacy: Privacy | None = None

    def load(self, world: World, pair: Pair) -> None:
        for engine, rows in ((self.one, pair.first), (self.other, pair.second), (self.mixed, pair.mixed)):
            fill(engine, world, rows)
        self._privacy = world.schema.privacy

    def expect(self, compiled: Compiled) -> None:
        """The statement that will run: nothing else may be asked of a private table, and this is what it claims."""
        explained = explain(compiled, self.name, ()).releases
        self._steps = {step.sql: (step, release) for step, release in zip(compiled.steps, explained, strict=True)}
        self.findings, self.releases = [], 0

    # --- as an engine ------------------------------------------------------------------------------------------------

    def execute(self, sql: str, key_columns: int, holes: Mapping[str, object]) -> Exact:
        known = self._steps.get(sql)
        if known is None or self._privacy is None:
            self.findings.append("another statement runs than was compiled")
            raise EngineFailed(FAILED)
        self.releases += 1
        engines = (("D", self.one), ("D'", self.other), ("D in another order", self.mixed))
        first, second, third = (self._run(name, engine, sql, key_columns, holes) for name, engine in engines)
        if first is None or second is None or third is None:
            raise EngineFailed(FAILED)
        one, other, mixed = open_cells(first), open_cells(second), open_cells(third)
        step, release = known
        self.findings += violations(step, release, one, other, self._privacy)
        if (one.spelled, one.columns) != (mixed.spelled, mixed.columns):
            self.findings.append("cells depend on the order of rows, on threads, or on rows that belong to no unit")
        self._perturbed(second, step)
        return first

    def _run(
        self, name: str, engine: ScratchEngine, sql: str, key_columns: int, holes: Mapping[str, object]
    ) -> Exact | None:
        try:
            return engine.release(sql, key_columns, holes)
        except ScratchFailed as failed:
            self.findings.append(f"the engine failed on {name}: {failed}")
            return None

    def _perturbed(self, exact: Exact, step: ReleaseStep) -> None:
        """What the session does next with the first one's cells must not fail for the second's either."""
        try:
            perturb(exact, step.calibrated.spec, ExactSampler(Draws(0).bits))
        except (Error, ValueError, TypeError, ArithmeticError) as error:
            self.findings.append(f"the noise failed on D' only: {error}")

    def public(self, sql: str, holes: Mapping[str, object]) -> list[Row]:
        rows = [engine.ask(sql, holes) for engine in (self.one, self.other)]
        if Counter(map(repr, rows[0])) != Counter(map(repr, rows[1])):
            self.findings.append("public rows depend on private ones")
        return rows[0]

    def describe(self, source: Source) -> dict[str, str]:
        return self.one.describe(source)

    def close(self) -> None:
        for engine in (self.one, self.other, self.mixed):
            engine.close()


def fill(engine: ScratchEngine, world: World, rows: Rows) -> None:
    for laid in world.tables:
        engine.fill(laid.name, [(c.name, c.spelled) for c in laid.columns], rows[laid.name])


def open_cells(exact: Exact) -> Cells:
    """Of a scratch engine: nobody's rows."""
    revealed = exact.reveal()
    return Cells(revealed.keys, tuple(tuple(column.tolist()) for column in revealed.cells))
