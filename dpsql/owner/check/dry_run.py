"""The owner's dry run: statements as analysts would ask them, without noise, charge or trace.

Law: the ledger is a file in a folder of its own that is gone at the end, so nothing is charged to anyone and no data
version is registered. No noise is drawn, so what comes back is exact: it is for whoever has the data, and for no
interface but the owner's command line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.base.lexer import quote_name
from dpsql.errors import Error
from dpsql.owner.check.report import QueryReport
from dpsql.owner.introspect.statistics import ExactFigures
from dpsql.owner.temp_folder import open_temp_folder
from dpsql.privacy.noise import interval_factor
from dpsql.schema.keys import MAX_EPSILON
from dpsql.schema.model import Answers, Budget, Column, Contributions, Policy, Schema, Table
from dpsql.session.dataset import versions
from dpsql.session.dataset.accounts import open_declared_ledger
from dpsql.session.dataset.dataset import Dataset, now_utc
from dpsql.session.dataset.runs import Runs
from dpsql.session.session import Session, StatementResult
from dpsql.types import Kind

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

    The schema's own defaults count, with `contributions` in the place of its own.
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
            session.set("empty_groups", "show")  # the errors of small groups count as well
            yield session
        finally:
            dataset.close()


def _detached_schema(schema: Schema, folder: Path, contributions: Contributions) -> Schema:
    """The schema with a ledger of its own, and nobody's budget, schedule or wait."""
    return replace(
        schema,
        ledger=f"sqlite:///{folder / 'rehearsal.ledger'}",
        privacy=replace(
            schema.privacy,
            budget=_UNLIMITED_BUDGET,
            contributions=contributions,
            policy=Policy(composition=schema.privacy.policy.composition),  # by which noise is chosen
        ),
        analysts=(),
        groups=(),
        answers=Answers(),
        limits=replace(schema.limits, min_latency=Fraction(0)),
    )


# Typical questions about a table, as analysts would write them; and how wrong their answers would be.

MAX_SUMS, MAX_KEYS, MAX_UNDECLARED = 3, 2, 4
"""Columns of a table that are asked about."""
TARGET_ERROR = Fraction(1, 20)
"""The error that an epsilon is told for."""

ExactQuery = Callable[[Column | None, Column | None], list[ExactFigures]]


@dataclass(frozen=True)
class TypicalQuery:
    """`measure` is what is asked of `value`, or of rows: "count", "sum" or "mean"."""

    sql: str
    measure: str
    key: Column | None = None
    value: Column | None = None


def summable_columns(schema: Schema, table: Table) -> list[Column]:
    """The columns that one would add up: bounded numbers that are no ids, the finer types first."""
    ids = schema.find_id_columns(table) | {name for key in table.unique for name in key}
    columns = [c for c in table.columns if c.name not in ids and c.type.is_number and c.domain.is_bounded]
    return sorted(columns, key=lambda column: (column.type.is_integer, column.domain.values is not None))


def declared_keys(schema: Schema, table: Table) -> list[Column]:
    ids = schema.find_id_columns(table)
    return [c for c in table.columns if c.name not in ids and c.domain.values is not None]


def undeclared_keys(schema: Schema, table: Table) -> list[Column]:
    """Text that one would group by: its groups are found by partition selection."""
    ids = schema.find_id_columns(table) | {key[0] for key in table.unique if len(key) == 1}
    return [c for c in table.columns if c.name not in ids and c.type.kind is Kind.TEXT and c.domain.values is None]


def typical_queries(schema: Schema, table: Table) -> Iterator[TypicalQuery]:
    name = quote_name(table.name)
    sums = summable_columns(schema, table)[:MAX_SUMS]
    keys = declared_keys(schema, table)[:MAX_KEYS]
    yield TypicalQuery(f"SELECT COUNT(*) FROM {name}", "count")
    for column in sums:
        yield TypicalQuery(f"SELECT SUM({quote_name(column.name)}) FROM {name}", "sum", value=column)
        yield TypicalQuery(f"SELECT AVG({quote_name(column.name)}) FROM {name}", "mean", value=column)
    for key in keys:
        by = quote_name(key.name)
        yield TypicalQuery(f"SELECT {by}, COUNT(*) FROM {name} GROUP BY {by}", "count", key)
    if keys and sums:
        by, value = quote_name(keys[0].name), quote_name(sums[0].name)
        yield TypicalQuery(f"SELECT {by}, AVG({value}) FROM {name} GROUP BY {by}", "mean", keys[0], sums[0])


def report_query(session: Session, question: TypicalQuery, exact: ExactQuery) -> QueryReport:
    """The answer without noise against the exact one, and the error bar that it would have."""
    try:
        answer = session.execute(question.sql)
    except Error as error:
        return QueryReport(question.sql, None, None, None, None, None, error.message)
    rows = _debias_figures(exact(question.key, question.value), question.key)
    figures = {_to_text(row.group): getattr(row, question.measure) for row in rows}
    factor = _half_width_factor(session, question)
    cells = [
        _compare_values(figures.get(group), value, half) for group, value, half in _read_cells(answer, question, factor)
    ]
    comparable = [cell for cell in cells if cell is not None]
    if not comparable:
        return QueryReport(question.sql, len(cells) if question.key else None, None, None, None, None)
    middle = median(cell[0] for cell in comparable)
    noise = [cell[2] for cell in comparable if cell[2] is not None]
    relative = median(noise) if noise else None
    return QueryReport(
        question.sql,
        len(cells) if question.key else None,
        middle,
        median(cell[1] for cell in comparable),
        relative,
        None if relative is None else _epsilon_for_target(session, question, middle, relative),
    )


def _debias_figures(rows: list[ExactFigures], key: Column | None) -> list[ExactFigures]:
    """In groups of answers that were randomized, what answers are about: counts and means as they are debiased.

    Of a recorded figure c it is (c - n q) / (p - q), with n the sum over all answers; NULL was not randomized.
    """
    how = None if key is None else key.randomized
    if how is None:
        return rows
    answers = {_to_text(value) for value in how.values}
    randomized = [row for row in rows if _to_text(row.group) in answers]

    def debias(recorded_value: float, every: float) -> float:
        return (recorded_value - every * how.other_probability) / how.signal_weight

    every = [sum(getattr(row, name) or 0 for row in randomized) for name in ("count", "sum", "present")]
    debiased = [row for row in rows if _to_text(row.group) not in answers]
    for row in randomized:
        recorded = zip((row.count, row.sum or 0.0, row.present), every, strict=True)
        count, total, present = (debias(recorded_value, all_of_it) for recorded_value, all_of_it in recorded)
        mean = total / present if present > 0 else None
        debiased.append(ExactFigures(row.group, round(count), total, mean, round(present)))
    return debiased


def _half_width_factor(session: Session, question: TypicalQuery) -> float:
    """Half of a 95 % interval in standard errors; that of an answer's own interval may end at bounds before."""
    bundles = [
        bundle for step in session.compile_statement(question.sql).steps for bundle in step.calibrated.spec.bundles
    ]
    return max((interval_factor(bundle.mechanism) for bundle in bundles), default=0.0)


def _read_cells(
    answer: StatementResult, question: TypicalQuery, factor: float
) -> Iterator[tuple[str | None, float | None, float | None]]:
    """Group, value and half of its 95 % interval."""
    for row, errors in zip(answer.rows, answer.errors, strict=True):
        group = _to_text(row[0]) if question.key else None
        bar = errors[-1]
        value = row[-1]
        half = None if bar is None or not math.isfinite(bar.stderr) else factor * bar.stderr
        yield group, None if value is None else float(value), half


def _to_text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _compare_values(
    exact: float | None, value: float | None, half: float | None
) -> tuple[float, float, float | None] | None:
    """The exact value, what is lost of it, and the noise, the latter two as shares of it; None where it is zero."""
    if exact is None or exact == 0 or value is None:
        return None
    return exact, (exact - value) / abs(exact), None if half is None else half / abs(exact)


def _epsilon_for_target(session: Session, question: TypicalQuery, exact: float, noise: float) -> float | None:
    """The least that makes the noise GOOD: of averages about, since their noise depends on counts.

    None where none is sure to: the chance of randomized answers is in their noise, and no epsilon makes it smaller.
    """
    if question.key is not None and question.key.randomized is not None:
        return None
    settings = session.settings.statement
    if question.measure == "mean":
        return float(settings.epsilon) * noise / float(TARGET_ERROR)
    max_error = Fraction(float(f"{abs(exact) * float(TARGET_ERROR):.3g}"))
    try:
        aimed = session.compile_statement(question.sql, settings=replace(settings, max_error=max_error))
    except Error:
        return None
    if aimed.undecided:  # automatic norms are chosen by epsilon, too: about
        return float(settings.epsilon) * noise / float(TARGET_ERROR)
    return float(aimed.settings.epsilon)


def find_shown_groups(session: Session, table: Table, key: Column) -> tuple[set[str | None], int | None]:
    """The groups of an undeclared key that would show without noise, and the units that one needs."""
    by, name = quote_name(key.name), quote_name(table.name)
    sql = f"SELECT {by}, COUNT(*) FROM {name} GROUP BY {by}"
    rows = session.execute(sql).rows  # first, since an automatic cap of groups is known then
    needed = session.explain(sql).releases[0].units_to_appear
    return {_to_text(row[0]) for row in rows}, needed
