"""CREATE SYNTHETIC TABLE: options, the values of columns that nothing public tells, the study, and what is told of it.

    CREATE SYNTHETIC TABLE v AS SELECT sex, ward, cost FROM visits WITH (epsilon = 1, method = 'mwem', rounds = 12)

Text without declared values is released first, by SELECT DISTINCT of the same rows: a statement of its own, for a fifth
of epsilon and half of delta, shared by such columns. Before that is charged, the whole must be possible whatever is
released, and be covered by the budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

from dpsql.answer import Answer, rows_answer
from dpsql.calibrate import Noise, Share
from dpsql.compiled import Compiled
from dpsql.errors import DataError, InvalidParameter, InvalidSyntax, LimitExceeded
from dpsql.explain import Explanation
from dpsql.ledger.base import Made
from dpsql.making import options
from dpsql.making.base import Asked, Making
from dpsql.objects.tables import read_definition, write_axes
from dpsql.objects.within import Within, within_bins
from dpsql.option_names import OF_TABLES, choices_of, names_in
from dpsql.plan.stages import Axis
from dpsql.post.sandbox import OutputColumn
from dpsql.privacy.forest import MOST_AXES
from dpsql.privacy.loss import NO_LOSS, total
from dpsql.privacy.mwem import MOST_CELLS
from dpsql.privacy.release import Release, from_bytes
from dpsql.privacy.synthesis import FIGURE_GRID, MEASURED, ROW, TOTAL, Method, Synthesis
from dpsql.privacy.synthesis_shares import Wanted, method_for, under_epsilon, under_rho
from dpsql.privacy.tally import Axes, Study, UnitMass
from dpsql.queries import Queries
from dpsql.rewrite.tally import MOST_VALUES, Coding
from dpsql.schema.domain import Scalar
from dpsql.settings import Settings
from dpsql.sql.output_names import UNNAMED
from dpsql.sql.tallied import distinct_values
from dpsql.studying import Rows, Studied, compile_study, study_rows
from dpsql.types import BOOLEAN, DOUBLE, TEXT, Kind

OPTIONS = names_in(OF_TABLES)
BINS, MOST_BINS = 16, 256
ROWS, MOST_ROWS = 100_000, 1_000_000
MOST_ROUNDS = 100
VALUES_SHARE = Fraction(1, 5)
"""Of epsilon, for values that are not declared; of delta they take half."""

_COLUMNS = (("columns", TEXT), ("kind", TEXT), ("measured", BOOLEAN), ("expected_error", DOUBLE))
_UNKNOWN = tuple(f"value {number}" for number in range(100))
"""What stands for values that are not released yet, while mistakes are looked for and prices told."""

Listed = Mapping[str, tuple[Scalar, ...]]
Released = tuple[tuple[Scalar, ...], Answer]
"""The values of a column, and the answer that they come from."""


@dataclass(frozen=True)
class Chosen:
    """What the options say; `settings` are those of the whole statement."""

    method: Method | None
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
class Draft:
    """A synthetic table that could be made."""

    studied: Studied
    within: tuple[Within | None, ...]

    def definition(self, statement: str) -> dict[str, Any]:
        within = [None if one is None else one.written() for one in self.within]
        return {"statement": statement, "axes": write_axes(self.studied.axes), "within": within}


class SyntheticTables:
    """See `base.Maker`."""

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return tuple(OutputColumn(name, type_, str(type_)) for name, type_ in _COLUMNS)

    def compiled(self, asked: Asked) -> Compiled:
        chosen = read_options(asked)
        rows = _rows(asked, chosen.settings)
        return _draft(rows, chosen, dict.fromkeys(_unknown(rows), _UNKNOWN), guessed=True).studied.compiled

    def make(self, asked: Asked) -> Making:
        chosen = read_options(asked)
        rows = _rows(asked, chosen.settings)
        unknown = _unknown(rows)
        asking = [Values(asked, chosen.settings, name, len(unknown)) for name in unknown]
        draft, found = self._checked(asked, rows, chosen, asking)
        if unknown and not found:
            found = [one.ask() for one in asking]
            draft = _draft(rows, chosen, _listed(unknown, found))
        bought = asked.queries.bought(draft.studied.compiled)
        (release,), (number,) = bought.releases.values(), bought.numbers
        answer = told(release, draft.studied.axes, asked.command.name)
        notices = (*draft.studied.compiled.notices, *_left_out(unknown, found), *_instead(unknown, chosen, draft),
                   *_scaled(draft), *answer.notices)  # fmt: skip
        receipts = (*(one for _, answered in found for one in answered.receipts), *bought.receipts)
        loss = total([*(answered.loss for _, answered in found), bought.loss])
        answer = replace(answer, loss=loss, settings=chosen.settings, receipts=receipts, notices=notices)
        return Making(number, draft.definition(asked.statement), answer)

    def _checked(self, asked: Asked, rows: Rows, chosen: Chosen, asking: list[Values]) -> tuple[Draft, list[Released]]:
        """The table as far as it is known, and its values where they were paid for before. Nothing is charged.

        A mistake, a table that might be too large and a budget that is too small show here.
        """
        queries, unknown = asked.queries, tuple(one.column for one in asking)
        parts = [one.compiled() for one in asking]
        stored = all(queries.is_stored(part) for part in parts)
        found = [one.ask() for one in asking] if stored else []
        if stored:
            draft = _draft(rows, chosen, _listed(unknown, found))
        else:
            draft = _draft(rows, chosen, dict.fromkeys(unknown, _UNKNOWN), guessed=True)
        if unknown:
            queries.require_covered([*parts, draft.studied.compiled], asked.sql, chosen.settings)
        return draft, found

    def explain(self, asked: Asked) -> Explanation:
        chosen = read_options(asked)
        rows = _rows(asked, chosen.settings)
        unknown = _unknown(rows)

        def compile_with(settings: Settings) -> Compiled:
            listed = dict.fromkeys(unknown, _UNKNOWN)
            study = _draft(replace(rows, settings=settings), chosen, listed, guessed=True).studied.compiled
            values = [Values(asked, settings, name, len(unknown)).compiled() for name in unknown]
            steps = [step for part in (*values, study) for step in part.steps]
            return replace(study, steps=tuple(steps), settings=settings)

        outputs = [(name, str(type_)) for name, type_ in _COLUMNS]
        explained = asked.queries.explained(chosen.settings, compile_with, outputs)
        if not unknown:
            return explained
        notice = (f"the values of {', '.join(unknown)} are not declared, and are released first; what is shown of the "
                  f"table is for {len(_UNKNOWN)} values of each")  # fmt: skip
        return replace(explained, notices=(*explained.notices, notice))

    def show(self, made: Made, body: bytes) -> Answer:
        return replace(told(from_bytes(body), read_definition(made), made.name), command="SHOW")

    def plain(self, made: Made, body: bytes) -> tuple[Marginal, ...]:
        return tuple(Marginal(*row) for row in self.show(made, body).rows)


# --- what is asked ---------------------------------------------------------------------------------------------------


def read_options(asked: Asked) -> Chosen:
    given = options.read_options(asked, OPTIONS)
    own = given.own
    method = options.word(own.get("method"), choices_of("method", OF_TABLES))
    return Chosen(
        None if method in (None, "auto") else Method(method),
        options.whole(own.get("rounds"), 1, MOST_ROUNDS),
        options.whole(own.get("bins"), 2, MOST_BINS) or BINS,
        options.whole(own.get("rows"), 1, MOST_ROWS) or ROWS,
        given.settings,
    )


def _rows(asked: Asked, settings: Settings) -> Rows:
    queries = asked.queries

    def work() -> Rows:
        return study_rows(asked.sql, asked.command.query, queries.own.schema, settings, asked.parameters,
                          queries.clock(), queries.who)  # fmt: skip

    rows = queries.own.knowing(work)
    for name, span in zip(rows.names, rows.spans, strict=True):
        if name == UNNAMED:
            raise InvalidSyntax("a column of a synthetic table needs a name",
                                hint="Write AS and a name behind it: … AS x.", span=span)  # fmt: skip
    return rows


def _unknown(rows: Rows) -> tuple[str, ...]:
    """Text columns whose values must be released first. (Numbers and times without bounds are refused.)"""
    kinds = {name: column.expr.type.kind for name, column in zip(rows.names, rows.found.columns, strict=True)}
    return tuple(name for name in rows.unknown if kinds[name] is Kind.TEXT)


def _studied(settings: Settings, unknown: tuple[str, ...]) -> Settings:
    """What is left for the study where values are released first."""
    if not unknown:
        return settings
    return replace(settings, epsilon=settings.epsilon * (1 - VALUES_SHARE), delta=settings.delta / 2)


@dataclass(frozen=True)
class Values:
    """The values of one of `columns` columns that nothing public tells: those that enough units have."""

    asked: Asked
    settings: Settings  # of the whole statement
    column: str
    columns: int

    @property
    def _queries(self) -> Queries:
        epsilon, delta = self.settings.epsilon * VALUES_SHARE / self.columns, self.settings.delta / 2 / self.columns
        part = replace(self.settings, epsilon=epsilon, delta=delta)
        queries = self.asked.queries
        return replace(queries, settings=replace(queries.settings, statement=part))

    @property
    def _sql(self) -> str:
        return distinct_values(self.asked.command.query, self.asked.parameters, self.column)

    def compiled(self) -> Compiled:
        """As they would be asked for. Free."""
        return self._queries.compiled(self._sql)

    def ask(self) -> Released:
        answer = self._queries.ask(self._sql, ())
        values = tuple(sorted(row[0] for row in answer.rows if row[0] is not None))
        if not values:
            hint = "Leave it out, or give more epsilon."
            raise DataError(f'no value of column "{self.column}" has enough privacy units', hint=hint)
        return values, answer


def _listed(unknown: tuple[str, ...], found: list[Released]) -> Listed:
    return {name: values[:MOST_VALUES] for name, (values, _) in zip(unknown, found, strict=True)}


def _left_out(unknown: tuple[str, ...], found: list[Released]) -> list[str]:
    """It was paid for, so the table is made of as many values as there can be."""
    return [
        f'"{name}" has {len(values):,} values, of which the first {MOST_VALUES:,} are used; other rows are left out'
        for name, (values, _) in zip(unknown, found, strict=True)
        if len(values) > MOST_VALUES
    ]


def _scaled(draft: Draft) -> list[str]:
    """Said of the declarations alone: whether any unit has more rows is private."""
    mass = draft.studied.study.mass
    if mass.one_row:
        return []
    return [f"a unit counts like at most {mass.norm // mass.whole} rows; what that takes away is not in expected_error"]


def _instead(unknown: tuple[str, ...], chosen: Chosen, draft: Draft) -> list[str]:
    study = draft.studied.study
    assert isinstance(study, Synthesis)
    if not unknown or chosen.method is not None or study.method is Method.MWEM:
        return []
    return [f"made by {study.method.value}: with the values that were released there are too many cells for mwem"]


def _draft(rows: Rows, chosen: Chosen, listed: Listed, *, guessed: bool = False) -> Draft:
    """`listed` are the columns whose values are released first, with these; their price is not the study's.

    Where they are `guessed`, there may be as many as a column can have.
    """
    rows = replace(rows, settings=_studied(rows.settings, tuple(listed)))
    withins: list[Within | None] = []

    def design(axes: tuple[Axis, ...], ranges: Axes, mass: UnitMass, share: Share) -> Study:
        withins.extend(_within(rows, place, axis) for place, axis in enumerate(axes))
        most = tuple(MOST_VALUES + axis.null if guessed and axis.name in listed else axis.size for axis in axes)
        _check_size(chosen.method, most, guessed and bool(listed))
        widths = tuple(() if one is None else one.widths for one in withins)
        wanted = Wanted(chosen.method, ranges, mass, widths, chosen.most_rows, chosen.rounds)
        if share.noise is Noise.LAPLACE:
            return under_epsilon(wanted, share.epsilon)
        if share.rho <= 0:
            raise InvalidParameter("gaussian noise needs a delta above 0", hint="SET delta = 1e-9.")
        return under_rho(wanted, share.rho)

    studied = compile_study(rows, Coding(chosen.bins, listed, nulls=True), design)
    return Draft(studied, tuple(withins))


def _within(rows: Rows, place: int, axis: Axis) -> Within | None:
    if axis.bins is None:
        return None
    name = rows.found.columns[place].name
    return within_bins(axis, rows.found.domains[name].bounds, rows.found.grids.get(name))


def _check_size(method: Method | None, sizes: tuple[int, ...], guessed: bool) -> None:
    cells = prod(sizes)
    if method is Method.MWEM and cells > MOST_CELLS:
        have = "may have" if guessed else "have"  # of a column whose values are not known yet, as many as it can have
        raise LimitExceeded(
            f"mwem enumerates at most {MOST_CELLS:,} cells, and these columns {have} {cells:,}",
            hint="Leave the method out, take fewer columns, or fewer bins.",
        )
    if len(sizes) > MOST_AXES and (method or method_for(sizes)) is not Method.MWEM:
        raise LimitExceeded(f"a synthetic table has at most {MOST_AXES} columns", hint="Name those that you need.")


# --- what is told ----------------------------------------------------------------------------------------------------


def told(release: Release, axes: tuple[Axis, ...], name: str) -> Answer:
    """The expected error of each one- and two-way marginal, in rows, on average over its cells."""
    parts, values, *cells = release.cells
    codes = cells[: len(axes)]
    rows = []
    for place in range(len(parts)):
        if parts[place] in (ROW, TOTAL):
            continue
        named = [axis.name for axis, code in zip(axes, codes, strict=True) if code[place] == 0]
        error = float(values[place] * FIGURE_GRID) if values[place] >= 0 else None
        kind = "one-way" if len(named) == 1 else "two-way"
        rows.append((", ".join(named), kind, bool(parts[place] == MEASURED), error))
    count = int((parts == ROW).sum())
    stands = float(values[parts == TOTAL][0] * FIGURE_GRID)
    notice = f'"{name}" has {count:,} rows'
    if count < stands * 0.99:
        notice += f", of about {stands:,.0f}: its counts must be scaled up"
    return replace(rows_answer(_COLUMNS, rows, "CREATE"), notices=(notice,), loss=NO_LOSS)
