"""CREATE SYNTHETIC TABLE: options, the values of columns that are not declared, the study, and its report.

    CREATE SYNTHETIC TABLE v AS SELECT sex, ward, cost FROM visits WITH (epsilon = 1, method = 'mwem', rounds = 12)

Text without declared values is released first, by SELECT DISTINCT of the same rows: a statement of its own, for a fifth
of epsilon and half of delta, shared by such columns. Before that is charged, the whole must be possible whatever is
released, and be covered by the budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any

from dpsql.base.option_names import SYNTHETIC_TABLE_OPTIONS, list_option_choices, list_option_names
from dpsql.compiler.bind.outputs import UNNAMED_COLUMN
from dpsql.compiler.calibrate.calibrate import LossShare, NoiseKind
from dpsql.compiler.compiled import Compiled
from dpsql.compiler.norm_steps import KnownNorms
from dpsql.compiler.plan.steps import Axis
from dpsql.compiler.rewrite.weighted_rows import MAX_VALUES, ColumnCoding
from dpsql.compiler.settings import Settings
from dpsql.compiler.split.private_rows import distinct_values_query
from dpsql.compiler.weighted_rows import CompiledStudy, StudyRows, compile_study, compile_weighted_rows
from dpsql.errors import DataError, InvalidParameter, InvalidSyntax, LimitExceeded
from dpsql.ledger.base import CreatedObject
from dpsql.privacy.loss import NO_LOSS, sum_losses
from dpsql.privacy.release import Release, release_from_bytes
from dpsql.privacy.synthetic.mst import MAX_AXES
from dpsql.privacy.synthetic.mwem import MAX_CELLS
from dpsql.privacy.synthetic.synthesis import (
    FIGURE_GRID,
    MEASURED,
    ROW,
    TOTAL,
    Synthesis,
    SynthesisMethod,
    SynthesisRequest,
    calibrate_synthesis_by_epsilon,
    calibrate_synthesis_by_rho,
    default_method,
)
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRowsMechanism
from dpsql.schema.model import Resolved, Scalar
from dpsql.session.artifacts import base
from dpsql.session.artifacts.base import CreatedArtifact, CreateRequest
from dpsql.session.artifacts.synthetic_table import BinSampler, axes_to_json, build_bin_sampler, definition_axes
from dpsql.session.explain import Explanation
from dpsql.session.norm_purchase import with_undecided_histograms
from dpsql.session.postprocess.sandbox import OutputColumn
from dpsql.session.query import NO_NORMS, QueryExecutor
from dpsql.session.result import StatementResult, build_rows_result
from dpsql.types import BOOLEAN, DOUBLE, TEXT, Kind

TABLE_OPTIONS = list_option_names(SYNTHETIC_TABLE_OPTIONS)
DEFAULT_BINS, MAX_BINS = 16, 256
DEFAULT_ROWS, MAX_ROWS = 100_000, 1_000_000
MAX_ROUNDS = 100
VALUES_SHARE = Fraction(1, 5)
"""Of epsilon, for values that are not declared; of delta they take half."""

_COLUMNS = (("columns", TEXT), ("kind", TEXT), ("measured", BOOLEAN), ("expected_error", DOUBLE))
_DUMMY_VALUES = tuple(f"value {number}" for number in range(100))
"""What stands for values that are not released yet, while mistakes are looked for and prices told."""

ListedValues = Mapping[str, tuple[Scalar, ...]]
ReleasedValues = tuple[tuple[Scalar, ...], StatementResult]
"""The values of a column, and the answer that they come from."""


@dataclass(frozen=True)
class SyntheticTableOptions:
    """What the options say; `settings` are those of the whole statement."""

    method: SynthesisMethod | None
    rounds: int | None
    bins: int
    most_rows: int
    settings: Settings


@dataclass(frozen=True)
class Marginal:
    """A row of what is told, for programs."""

    columns: str
    kind: str
    measured: bool
    expected_error: float | None


@dataclass(frozen=True)
class SyntheticTableDraft:
    """A synthetic table that could be made."""

    studied: CompiledStudy
    within: tuple[BinSampler | None, ...]

    def to_definition(self, statement: str) -> dict[str, Any]:
        within = [None if sampler is None else sampler.to_json() for sampler in self.within]
        return {"statement": statement, "axes": axes_to_json(self.studied.axes), "within": within}


class SyntheticTableBuilder:
    """See `base.ArtifactBuilder`."""

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return tuple(OutputColumn(name, type_, str(type_)) for name, type_ in _COLUMNS)

    def compile_release(self, request: CreateRequest) -> Compiled:
        chosen, rows = _read_and_settle(request)
        return _compile_with_paid_norms(request, rows, chosen)

    def create_artifact(self, request: CreateRequest) -> CreatedArtifact:
        chosen, rows = _read_and_settle(request)
        unknown = _undeclared_columns(rows)
        undeclared = [UndeclaredValues(request, chosen.settings, name, len(unknown)) for name in unknown]
        released = self._check_draft(request, rows, chosen, undeclared)
        if unknown and not released:
            released = [values.release_values() for values in undeclared]
        listed = _list_values(unknown, released)
        norms = request.queries.buy_norms(
            lambda known: _compile_draft(rows, chosen, listed, norms=known).studied.compiled
        )
        draft = _compile_draft(rows, chosen, listed, norms=norms.known)
        bought = request.queries.charge_releases(draft.studied.compiled)
        (release,), (number,) = bought.releases.values(), bought.numbers
        answer = report_marginals(release, draft.studied.axes, request.command.name)
        notices = (
            *draft.studied.compiled.notices,
            *_truncation_notices(unknown, released),
            *_method_notices(unknown, chosen, draft),
            *_norm_notices(draft),
            *answer.notices,
        )
        receipts = (*(receipt for _, answered in released for receipt in answered.receipts), *bought.receipts)
        loss = sum_losses([*(answered.loss for _, answered in released), bought.loss])
        answer = replace(answer, loss=loss, settings=chosen.settings, receipts=receipts, notices=notices)
        return CreatedArtifact(number, draft.to_definition(request.statement), norms.combine(answer))

    def _check_draft(
        self, request: CreateRequest, rows: StudyRows, chosen: SyntheticTableOptions, undeclared: list[UndeclaredValues]
    ) -> list[ReleasedValues]:
        """Look at the table as far as it is known; its values where they were paid for before. Nothing is charged.

        A mistake, a table that might be too large and a budget that is too small show here.
        """
        queries, unknown = request.queries, tuple(values.column for values in undeclared)
        parts = [values.compile_release() for values in undeclared]
        stored = all(queries.is_stored(part) for part in parts)
        released = [values.release_values() for values in undeclared] if stored else []
        listed = _list_values(unknown, released) if stored else dict.fromkeys(unknown, _DUMMY_VALUES)
        study = _compile_with_paid_norms(request, rows, chosen, listed, guessed=not stored)
        if unknown:
            queries.require_covered([*parts, study], request.sql, chosen.settings)
        return released

    def explain(self, request: CreateRequest) -> Explanation:
        chosen = read_table_options(request)
        rows = _compile_rows(request, chosen.settings)
        unknown = _undeclared_columns(rows)

        outputs = [(name, str(type_)) for name, type_ in _COLUMNS]
        compile_with = partial(_compile_whole, request, rows, chosen)
        explained = request.queries.explain_compiled(chosen.settings, compile_with, outputs)
        if not unknown:
            return explained
        notice = (f"the values of {', '.join(unknown)} are not declared, and are released first; what is shown of the "
                  f"table is for {len(_DUMMY_VALUES)} values of each")  # fmt: skip
        return replace(explained, notices=(*explained.notices, notice))

    def show(self, stored_table: CreatedObject, body: bytes) -> StatementResult:
        return replace(
            report_marginals(release_from_bytes(body), definition_axes(stored_table), stored_table.name), command="SHOW"
        )

    def to_record(self, stored_table: CreatedObject, body: bytes) -> tuple[Marginal, ...]:
        return tuple(Marginal(*row) for row in self.show(stored_table, body).rows)


# --- what is asked ---------------------------------------------------------------------------------------------------


def read_table_options(request: CreateRequest) -> SyntheticTableOptions:
    create_options = base.read_create_options(request, TABLE_OPTIONS)
    own_options = create_options.own
    method = base.read_choice(own_options.get("method"), list_option_choices("method", SYNTHETIC_TABLE_OPTIONS))
    return SyntheticTableOptions(
        None if method in (None, "auto") else SynthesisMethod(method),
        base.read_integer(own_options.get("rounds"), 1, MAX_ROUNDS),
        base.read_integer(own_options.get("bins"), 2, MAX_BINS) or DEFAULT_BINS,
        base.read_integer(own_options.get("rows"), 1, MAX_ROWS) or DEFAULT_ROWS,
        create_options.settings,
    )


def _read_and_settle(request: CreateRequest) -> tuple[SyntheticTableOptions, StudyRows]:
    """What is asked for, with the kind of noise that is chosen where it is left open."""
    chosen = read_table_options(request)
    rows = _compile_rows(request, chosen.settings)
    settings = request.queries.settle_noise(chosen.settings, partial(_compile_whole, request, rows, chosen))
    return replace(chosen, settings=settings), replace(rows, settings=settings)


def _compile_whole(
    request: CreateRequest, rows: StudyRows, chosen: SyntheticTableOptions, settings: Settings
) -> Compiled:
    """All releases of the statement, as far as they are known. Free."""
    named = replace(settings, noise=settings.chosen_noise)  # in all of its parts
    unknown = _undeclared_columns(rows)
    undeclared = [UndeclaredValues(request, named, name, len(unknown)) for name in unknown]
    parts = [values.compile_release() for values in undeclared]
    listed: ListedValues | None = None
    if parts and all(map(request.queries.is_stored, parts)):
        with suppress(DataError):  # no value has enough units: the statement itself says so
            listed = _list_values(unknown, [values.release_values() for values in undeclared])
    study = _compile_with_paid_norms(
        request, replace(rows, settings=named), chosen, listed, guessed=bool(unknown) and listed is None
    )
    steps = [step for part in (*parts, study) for step in part.steps]
    return replace(study, steps=tuple(steps), settings=settings)


def _compile_rows(request: CreateRequest, settings: Settings) -> StudyRows:
    queries = request.queries

    def compile_rows(resolved: Resolved) -> StudyRows:
        return compile_weighted_rows(
            request.sql,
            request.command.query,
            resolved,
            settings,
            request.parameters,
            queries.context.clock(),
            queries.context.identity,
        )

    rows = queries.namespace.with_refresh(lambda: queries.plan_with_counts(compile_rows))
    for name, span in zip(rows.names, rows.spans, strict=True):
        if name == UNNAMED_COLUMN:
            raise InvalidSyntax("a column of a synthetic table needs a name",
                                hint="Write AS and a name behind it: … AS x.", span=span)  # fmt: skip
    return rows


def _undeclared_columns(rows: StudyRows) -> tuple[str, ...]:
    """Text columns whose values must be released first. (Numbers and times without bounds are refused.)"""
    kinds = {name: column.expr.type.kind for name, column in zip(rows.names, rows.found.columns, strict=True)}
    return tuple(name for name in rows.unknown_columns if kinds[name] is Kind.TEXT)


def _study_settings(settings: Settings, unknown: tuple[str, ...]) -> Settings:
    """The settings for the study, with what is left where values are released first."""
    if not unknown:
        return settings
    return replace(settings, epsilon=settings.epsilon * (1 - VALUES_SHARE), delta=settings.delta / 2)


@dataclass(frozen=True)
class UndeclaredValues:
    """The values of one of `columns` columns that nothing public tells: those that enough units have."""

    request: CreateRequest
    settings: Settings  # of the whole statement
    column: str
    columns: int

    @property
    def _queries(self) -> QueryExecutor:
        epsilon, delta = self.settings.epsilon * VALUES_SHARE / self.columns, self.settings.delta / 2 / self.columns
        part = replace(self.settings, epsilon=epsilon, delta=delta)
        return self.request.queries.with_settings(part)

    @property
    def _sql(self) -> str:
        return distinct_values_query(self.request.command.query, self.request.parameters, self.column)

    def compile_release(self) -> Compiled:
        """As they would be asked for. Free."""
        return with_undecided_histograms(self._queries.compile_with_paid_norms(self._sql))

    def release_values(self) -> ReleasedValues:
        answer = self._queries.execute_query(self._sql, ())
        values = tuple(sorted(row[0] for row in answer.rows if row[0] is not None))
        if not values:
            hint = "Leave it out, or give more epsilon."
            raise DataError(f'no value of column "{self.column}" has enough privacy units', hint=hint)
        return values, answer


def _list_values(unknown: tuple[str, ...], released: list[ReleasedValues]) -> ListedValues:
    return {name: values[:MAX_VALUES] for name, (values, _) in zip(unknown, released, strict=True)}


def _truncation_notices(unknown: tuple[str, ...], released: list[ReleasedValues]) -> list[str]:
    """It was paid for, so the table is made of as many values as there can be."""
    return [
        f'"{name}" has {len(values):,} values, of which the first {MAX_VALUES:,} are used; other rows are left out'
        for name, (values, _) in zip(unknown, released, strict=True)
        if len(values) > MAX_VALUES
    ]


def _norm_notices(draft: SyntheticTableDraft) -> list[str]:
    """Said of the declarations alone: whether any unit has more rows is private."""
    mass = draft.studied.study.mass
    if mass.one_row:
        return []
    if draft.studied.compiled.steps[0].norms:  # how many rows, and what that takes away, is said already
        return ["rows that were scaled down are not in expected_error"]
    return [f"a unit counts like at most {mass.norm // mass.whole} rows; what that takes away is not in expected_error"]


def _method_notices(unknown: tuple[str, ...], chosen: SyntheticTableOptions, draft: SyntheticTableDraft) -> list[str]:
    study = draft.studied.study
    assert isinstance(study, Synthesis)
    if not unknown or chosen.method is not None or study.method is SynthesisMethod.MWEM:
        return []
    return [f"made by {study.method.value}: with the values that were released there are too many cells for mwem"]


def _compile_with_paid_norms(
    request: CreateRequest,
    rows: StudyRows,
    chosen: SyntheticTableOptions,
    listed: ListedValues | None = None,
    *,
    guessed: bool = True,
) -> Compiled:
    """The table's release, with the histogram that would be bought first. Free."""
    values = dict.fromkeys(_undeclared_columns(rows), _DUMMY_VALUES) if listed is None else listed

    def compile_with(known: KnownNorms) -> Compiled:
        return _compile_draft(rows, chosen, values, guessed=guessed, norms=known).studied.compiled

    return with_undecided_histograms(compile_with(request.queries.find_paid_norms(compile_with).known))


def _compile_draft(
    rows: StudyRows,
    chosen: SyntheticTableOptions,
    listed: ListedValues,
    *,
    guessed: bool = False,
    norms: KnownNorms = NO_NORMS,
) -> SyntheticTableDraft:
    """`listed` are the columns whose values are released first, with these; their price is not the study's.

    Where they are `guessed`, there may be as many as a column can have.
    """
    rows = replace(rows, settings=_study_settings(rows.settings, tuple(listed)))
    samplers: list[BinSampler | None] = []

    def design_synthesis(
        axes: tuple[Axis, ...], ranges: Axes, mass: UnitMass, share: LossShare
    ) -> WeightedRowsMechanism:
        samplers.extend(_bin_sampler_of(rows, index, axis) for index, axis in enumerate(axes))
        max_sizes = tuple(MAX_VALUES + axis.null if guessed and axis.name in listed else axis.size for axis in axes)
        _check_size(chosen.method, max_sizes, guessed and bool(listed))
        widths = tuple(() if sampler is None else sampler.widths for sampler in samplers)
        synthesis_request = SynthesisRequest(chosen.method, ranges, mass, widths, chosen.most_rows, chosen.rounds)
        if share.noise is NoiseKind.LAPLACE:
            return calibrate_synthesis_by_epsilon(synthesis_request, share.epsilon)
        if share.rho <= 0:
            raise InvalidParameter("gaussian noise needs a delta above 0", hint="SET delta = 1e-9.")
        return calibrate_synthesis_by_rho(synthesis_request, share.rho)

    studied = compile_study(rows, ColumnCoding(chosen.bins, listed, nulls=True), design_synthesis, norms)
    return SyntheticTableDraft(studied, tuple(samplers))


def _bin_sampler_of(rows: StudyRows, index: int, axis: Axis) -> BinSampler | None:
    if axis.bins is None:
        return None
    name = rows.found.columns[index].name
    return build_bin_sampler(axis, rows.found.domains[name].bounds, rows.found.grids.get(name))


def _check_size(method: SynthesisMethod | None, sizes: tuple[int, ...], guessed: bool) -> None:
    cells = prod(sizes)
    if method is SynthesisMethod.MWEM and cells > MAX_CELLS:
        have = "may have" if guessed else "have"  # of a column whose values are not known yet, as many as it can have
        raise LimitExceeded(
            f"mwem enumerates at most {MAX_CELLS:,} cells, and these columns {have} {cells:,}",
            hint="Leave the method out, take fewer columns, or fewer bins.",
        )
    if len(sizes) > MAX_AXES and (method or default_method(sizes)) is not SynthesisMethod.MWEM:
        raise LimitExceeded(f"a synthetic table has at most {MAX_AXES} columns", hint="Name those that you need.")


# --- what is told ----------------------------------------------------------------------------------------------------


def report_marginals(release: Release, axes: tuple[Axis, ...], name: str) -> StatementResult:
    """The expected error of each one- and two-way marginal, in rows, on average over its cells."""
    parts, values, *cells = release.cells
    codes = cells[: len(axes)]
    rows = []
    for index in range(len(parts)):
        if parts[index] in (ROW, TOTAL):
            continue
        named = [axis.name for axis, code in zip(axes, codes, strict=True) if code[index] == 0]
        error = float(f"{float(values[index] * FIGURE_GRID):.3g}") if values[index] >= 0 else None
        kind = "one-way" if len(named) == 1 else "two-way"
        rows.append((", ".join(named), kind, bool(parts[index] == MEASURED), error))
    count = int((parts == ROW).sum())
    stands = float(values[parts == TOTAL][0] * FIGURE_GRID)
    notice = f'"{name}" has {count:,} rows'
    if count < stands * 0.99:
        notice += f", of about {stands:,.0f}: its counts must be scaled up"
    return replace(build_rows_result(_COLUMNS, rows, "CREATE"), notices=(notice,), loss=NO_LOSS)
