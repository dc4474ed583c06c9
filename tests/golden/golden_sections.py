"""What each section of a golden case shows."""

import datetime as dt
from fractions import Fraction
from functools import cache

import duckdb

from dpsql.compiler import settings
from dpsql.compiler.compile import Compiled, ReleaseStep, compile_query
from dpsql.compiler.parse.commands import ResetCommand, SetCommand, read_command
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.plan.show import show_plan as show
from dpsql.compiler.render.expressions import render_type_name
from dpsql.compiler.split.split import split_query
from dpsql.errors import Error
from dpsql.privacy.loss import Loss
from dpsql.privacy.noise import Gaussian
from dpsql.schema.model import Resolved
from dpsql.session.postprocess import sandbox
from dpsql.session.postprocess.release_tables import build_empty_tables
from dpsql.session.postprocess.sandbox import OutputColumn
from tests.golden.golden_file import Case

NOW = dt.datetime(2024, 3, 1, 12, 30, tzinfo=dt.UTC)


class Shown:
    """One case, worked out as far as its sections need."""

    def __init__(self, case: Case, resolved: Resolved) -> None:
        self._case = case
        self._resolved = resolved

    def section(self, name: str) -> str:
        show = {
            "command": lambda: repr(read_command(self._case.sql)),
            "parsed": lambda: parse_query(self._case.sql, self._case.parameters).sql(dialect="postgres", pretty=True),
            "plan": self._plan,
            "rewritten": lambda: self._per_release(lambda step: show_plan(step)),
            "privacy": lambda: self._per_release(_privacy),
            "duckdb": lambda: self._per_release(self._executed),
            "post": lambda: self._compile().post_sql,
            "notices": lambda: "\n".join(self._compile().notices) or "none",
            "output": lambda: "\n".join(f"{c.name} {c.spelling}" for c in describe(self._compile())),
            "error": self._error,
        }
        return show[name]()

    def fails(self) -> Error | None:
        try:
            self._run()
        except Error as error:
            return error
        return None

    def _run(self) -> None:
        command = read_command(self._case.sql)
        privacy = self._resolved.schema.privacy
        if isinstance(command, SetCommand):
            settings.change_setting(self._settings(), privacy, command.name, command.value)
        elif isinstance(command, ResetCommand) and command.name is not None:
            settings.reset_setting(self._settings(), privacy, command.name, settings.default_settings(privacy))
        elif command is None:
            describe(self._compile())

    def _settings(self) -> settings.SessionSettings:
        privacy = self._resolved.schema.privacy
        chosen = settings.default_settings(privacy)
        for name, value in self._case.settings:
            chosen = settings.change_setting(chosen, privacy, name, value)
        return chosen

    def _compile(self) -> Compiled:
        return compile_query(self._case.sql, self._resolved, self._settings().statement, self._case.parameters, NOW)

    def _plan(self) -> str:
        releases = split_query(parse_query(self._case.sql, self._case.parameters), self._resolved.schema, NOW).releases
        return _joined([(release.name, show(release.aggregate)) for release in releases])

    def _per_release(self, text) -> str:
        return _joined([(step.name, text(step)) for step in self._compile().steps])

    def _executed(self, step: ReleaseStep) -> str:
        """SQL that a real DuckDB binds and runs, over tables without rows."""
        engine(self._case.schema, self._resolved).cursor().execute(step.sql).fetchall()
        return step.sql

    def _error(self) -> str:
        error = self.fails()
        assert error is not None, "the case has a section `error`, but nothing fails"
        return f"ERROR {error.sqlstate} ({type(error).__name__}):  {error}"


def show_plan(step: ReleaseStep) -> str:
    return show(step.calibrated.gather)


def describe(compiled: Compiled) -> tuple[OutputColumn, ...]:
    """What post-processing gives out, as the sandbox says; it may also refuse."""
    described = sandbox.describe_query(compiled.post_sql, build_empty_tables(compiled))
    return described[: len(compiled.errors)] if compiled.errors else described


_engines: dict[str, duckdb.DuckDBPyConnection] = {}


def engine(name: str, resolved: Resolved) -> duckdb.DuckDBPyConnection:
    if name not in _engines:
        connection = duckdb.connect(":memory:")
        for table in resolved.schema.tables:
            columns = ", ".join(f'"{c}" {render_type_name(t)}' for c, t in resolved.physical[table.name].items() if t)
            connection.execute(f'CREATE TABLE "{table.name}" ({columns})')
        _engines[name] = connection
    return _engines[name]


def _joined(texts: list[tuple[str, str]]) -> str:
    """One release stands alone; several are named."""
    if len(texts) == 1:
        return texts[0][1]
    return "\n".join(f"{name}:\n{text}" for name, text in texts)


def _privacy(step: ReleaseStep) -> str:
    calibrated = step.calibrated
    chosen = calibrated.choice is not None or calibrated.scores is not None
    grids = {} if chosen else dict(zip(calibrated.columns, calibrated.grids, strict=True))
    lines = []
    if calibrated.selection is not None and calibrated.gather.selection is not None:
        selection, reach = calibrated.selection, calibrated.selection.reach
        limit = selection.bound if hasattr(selection, "bound") else selection.threshold
        scale = selection.scale if hasattr(selection, "scale") else selection.sigma
        lines.append(
            f"selection {calibrated.gather.selection.cell}: {selection.name}, at most {reach.l0} keys,"
            f" scale {_short(scale)}, above {limit}; {_loss(selection.loss)}"
        )
    for bundle in calibrated.bundles:
        moved, mechanism = bundle.claim.sensitivity, bundle.mechanism
        gaussian = isinstance(mechanism, Gaussian)
        lines.append(
            f"{', '.join(bundle.claim.cells)}: l1 {moved.l1}, l2² {moved.l2_squared}, linf {moved.linf};"
            f" grid {grids[bundle.claim.cells[0]]};"
            f" {'gaussian' if gaussian else 'laplace'} {_short(mechanism.sigma if gaussian else mechanism.scale)};"
            f" {_loss(bundle.loss)}"
        )
    if calibrated.scores is not None and calibrated.moves is not None:
        scores, moves = calibrated.scores, calibrated.moves
        lines.append(f"{type(scores).__name__.lower()}: scale {_short(scores.scale)}, {scores.rounds} rounds;"
                     f" l1 {moves.l1}, l2² {moves.l2_squared}")  # fmt: skip
    if calibrated.choice is not None:
        for pick in calibrated.choice.picks:
            scale = _short(pick.mechanism.scale)
            lines.append(f"{pick.target}: exponential {scale}, a row is {calibrated.choice.whole}")
    return "\n".join([*lines, f"loss: {_loss(calibrated.loss)}"])


def _loss(loss: Loss) -> str:
    pure = "" if loss.epsilon is None else f"epsilon {_short(loss.epsilon)}, "
    return f"{pure}rho {_short(loss.rho)}, delta {_short(loss.delta)}"


@cache
def _short(number: Fraction) -> str:
    return f"{float(number):.6g}"
