"""Many answers to one question, each with fresh noise, as a session gives them: for benchmarks of accuracy alone.

A session asks a question once and then answers it from its store. Here the exact cells are read once and get fresh
noise for each answer; where norms are chosen, their histograms do, too, and the question is compiled with the norms
that follow. What comes after, estimates and post-processing, is the session's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpsql.compiler.compile import ReleaseStep, compile_query
from dpsql.compiler.compiled import Compiled
from dpsql.compiler.norm_steps import KnownNorms, norm_statement
from dpsql.errors import InvalidParameter
from dpsql.privacy.exact import Exact
from dpsql.privacy.norm_choice import ChosenNorm
from dpsql.privacy.release import Release, perturb
from dpsql.session.norm_purchase import NormPurchase, choose_norms
from dpsql.session.postprocess import sandbox
from dpsql.session.postprocess.release_tables import build_released_tables
from dpsql.session.result import StatementResult, build_query_result
from dpsql.session.session import Session

SECONDS = 60


@dataclass(frozen=True)
class Draw:
    """One answer, and the norms that units were scaled to, by the cells that they are for."""

    answer: StatementResult
    norms: Mapping[str, ChosenNorm]


@dataclass
class Drawing:
    """A question with neither public tables nor holes."""

    session: Session
    sql: str
    _exact: dict[str, Exact] = field(default_factory=dict)
    _undecided: Compiled | None = None

    def draw(self) -> Draw | None:
        """None where too few units are seen to choose a norm."""
        try:
            compiled = self._decide()
        except InvalidParameter:
            return None
        tables = build_released_tables(compiled, self._release(compiled), False)
        result = sandbox.run_query(compiled.post_sql, tables, SECONDS)
        answer = build_query_result(compiled, (), result, compiled.loss, ())
        return Draw(answer, {cell: norm for step in compiled.steps for cell, norm in step.norms})

    def statements(self) -> tuple[Compiled, Compiled]:
        """Its histograms, and the question with norms that follow from them."""
        return norm_statement(self._compile({})), self._decide()

    def _decide(self) -> Compiled:
        return choose_norms(self._compile({}), self._compile, lambda ready, _: self._release(ready), NormPurchase())

    def _compile(self, norms: KnownNorms) -> Compiled:
        if not norms and self._undecided is not None:
            return self._undecided
        settings = self.session.settings.statement
        compiled = compile_query(self.sql, self.session.dataset.resolved, settings, norms=norms)
        if not norms:
            self._undecided = compiled
        return compiled

    def _release(self, compiled: Compiled) -> dict[int, Release]:
        return {
            index: perturb(self._read(step), step.calibrated.spec, self.session.sampler)
            for index, step in enumerate(compiled.steps)
        }

    def _read(self, step: ReleaseStep) -> Exact:
        if step.sql not in self._exact:
            self._exact[step.sql] = self.session.dataset.engine.execute(step.sql, len(step.keys), {})
        return self._exact[step.sql]
