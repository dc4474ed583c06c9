"""What an owner could set better, each with its reason. What was read from the data says so: it is not private then."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

from dpsql.engines.measure import Ask, ColumnFacts, common_values
from dpsql.engines.structure import FoundColumn
from dpsql.figures import short_up
from dpsql.owner.proposals import (
    LEAST_UNITS,
    MOST_VALUES,
    nice_up,
    propose_bounds,
    propose_length,
)
from dpsql.owner.relate import names_rows
from dpsql.owner.report import Finding, Level, TableReport
from dpsql.owner.yaml_text import number, scalar
from dpsql.schema.domain import EPOCH
from dpsql.schema.literals import read_bound
from dpsql.schema.model import Analyst, Column, ForeignUnit, Group, OwnUnit, Schema, Source, Table
from dpsql.types import Kind

ROWS = 20
"""The norm that is tried where none is declared."""
GROUPS = 10
"""And the keys of a unit."""
A_FEW, MANY = 0.01, 0.1
"""Shares of rows: above A_FEW a better setting is proposed, above MANY it should be mended."""
MOST = 0.5
"""Of a column's values: above it they are of another type than is declared."""
NOISY = 0.5
"""Noise of 95 % of all answers, as a share: above it, an answer tells hardly more than its size."""
WIDER = 3
"""Bounds that are so many times as wide as the data's make so much more noise than is needed."""

Values = tuple[tuple[str, ...], int] | None


# --- the schema alone ------------------------------------------------------------------------------------------------


def of_schema(schema: Schema) -> Iterator[Finding]:
    yield from _budgets(schema)
    yield from _undeclared(schema)
    if schema.privacy.policy.largest_epsilon is None and all(a.policy.largest_epsilon is None for a in schema.analysts):
        most = schema.privacy.query.epsilon * 5
        if most < schema.privacy.budget.epsilon:
            what = "is not declared: one statement may be charged a whole budget, by a slip of the pen"
            yield Finding(Level.BETTER, "privacy.largest_query", what, f"largest_query: {{epsilon: {short_up(most)}}}")
    for table in schema.tables:
        for column in table.columns if not table.public else ():
            if _could_snap(column):
                what = "has no snap: a dashboard that sends the current time asks, and pays, anew each time"
                yield Finding(Level.BETTER, f"tables.{table.name}.{column.name}", what, "snap: 1 hour")


def _undeclared(schema: Schema) -> Iterator[Finding]:
    several = any(not _one_row(table) for table in schema.tables if not table.public)
    declared = schema.privacy.contributions
    if declared.rows is None and several and schema.privacy.unit != "row":
        what = "is not declared: questions about units with several rows are refused"
        yield Finding(Level.MEND, "privacy.contributions.rows", what, f"rows: {ROWS}")
    if declared.groups is None and several and schema.privacy.unit != "row":
        what = "is not declared: groups by undeclared keys are refused"
        yield Finding(Level.MEND, "privacy.contributions.groups", what, f"groups: {GROUPS}")


def _one_row(table: Table) -> bool:
    column = getattr(table.unit, "column", None)
    return column is not None and table.is_unique(column)


def _could_snap(column: Column) -> bool:
    return column.type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ) and column.snap is None


def _budgets(schema: Schema) -> Iterator[Finding]:
    """Accounts that the dataset's pays for: together they may be promised more than there is."""
    everyone: tuple[Group | Analyst, ...] = (*schema.groups, *schema.analysts)
    top = [one for one in everyone if one.parent is None]
    promised = sum((one.budget.epsilon for one in top), Fraction(0))
    if promised > schema.privacy.budget.epsilon:
        what = (
            f"together the accounts are promised epsilon {short_up(promised)}, and the dataset has "
            f"{short_up(schema.privacy.budget.epsilon)}: who asks last may be refused with budget left"
        )
        yield Finding(Level.BETTER, "analysts", what)


# --- columns ---------------------------------------------------------------------------------------------------------


def of_columns(
    schema: Schema,
    table: Table,
    facts: Mapping[str, ColumnFacts],
    rows: int,
    values_of: Callable[[Table, Column], Values],
) -> Iterator[Finding]:
    ids = schema.id_columns(table) | {name for key in table.unique for name in key}
    for column in table.columns:
        known = facts[column.name]
        where = f"tables.{table.name}.{column.name}"
        if column.name in ids or not known.fit:
            continue
        if column.domain.values is not None:
            yield from _of_listed(column, known, rows, where)
        elif column.type.is_number or column.type.is_time:
            yield from _of_numbers(column, known, where)
        elif column.type.kind is Kind.TEXT:
            yield from _of_text(table, column, known, rows, where, values_of)


def of_fields(schema: Schema, table: Table, facts: Mapping[str, ColumnFacts], rows: int) -> Iterator[Finding]:
    """What cannot be read counts as NULL: the owner would hear of it from nobody."""
    ids = schema.id_columns(table)
    for column in table.columns:
        known = facts[column.name]
        where = f"tables.{table.name}.{column.name}"
        if known.unfit:
            share, most = known.unfit / rows, known.unfit > MOST * known.present
            what = f"{_percent(share)} of the rows hold no {column.type}" + (", most that are not NULL" if most else "")
            level = Level.MEND if most else _level(share)
            yield Finding(level, where, what + _why(column, known, column.name in ids))
        elif rows and not known.present:
            yield Finding(Level.MEND, where, "is NULL in all rows: leave it out, or look at the source")


def _why(column: Column, known: ColumnFacts, is_id: bool) -> str:
    if known.commas:
        return f"; {_count(known.commas)} have a comma: numbers are read with a point, such as 1.5"
    if known.day_first:
        return f"; {_count(known.day_first)} begin with a day or month: times are read as 2023-12-24"
    return "; an id is read only as its type prints it, so 007 is no number" if is_id and column.type.is_number else ""


def _level(share: float) -> Level:
    return Level.MEND if share > MANY else Level.BETTER


def _of_listed(column: Column, known: ColumnFacts, rows: int, where: str) -> Iterator[Finding]:
    unlisted, null = known.unlisted / rows, (rows - known.fit) / rows
    if unlisted > A_FEW:
        what = f"{_percent(unlisted)} of the rows hold values that are not declared; they count as NULL"
        yield Finding(_level(unlisted), where, what, "values: … with those that are missing")
    if null + unlisted > A_FEW and not column.null_group:
        what = f"{_percent(null + unlisted)} of the rows are NULL here, and in no group"
        yield Finding(Level.BETTER, where, what, "nullable: true")


def _of_numbers(column: Column, known: ColumnFacts, where: str) -> Iterator[Finding]:
    proposed = propose_bounds(known, column.type)
    text = None if proposed is None else f"bounds: [{number(proposed[0])}, {number(proposed[1])}]"
    if not column.domain.bounded:
        if names_rows(FoundColumn(column.name, str(column.type), column.type)):  # an id of something: no quantity
            return
        what = "has no bounds: groups by time are found privately" if column.type.is_time else (
            "has no bounds: SUM and AVG need CLIP(x, low, high)"
        )  # fmt: skip
        yield Finding(Level.BETTER, where, what, text, from_data=text is not None)
        return
    clipped = (known.below + known.above) / known.fit
    if clipped > A_FEW:
        what = f"the bounds clip {_percent(clipped)} of the values"
        yield Finding(_level(clipped), where, what, text, from_data=text is not None)
    elif proposed is not None and column.type.is_number and _too_wide(column, proposed):
        what = "the bounds are far wider than the data: sums have more noise than they need"
        yield Finding(Level.BETTER, where, what, text, from_data=True)
    if column.type.is_float and column.grid is None and known.cents == known.fit:
        what = "all values are whole hundredths: sums are then exact before the noise"
        yield Finding(Level.BETTER, where, what, "grid: 0.01", from_data=True)


def _too_wide(column: Column, proposed: tuple[str, str]) -> bool:
    """By what noise follows: the largest value that a row may have."""
    low, high = (read_bound(text, column.type) for text in proposed)
    if low is None or high is None:
        return False
    own = max(abs(bound) for bound in column.domain.bounds)
    needed = max(abs(low), abs(high))
    return needed > 0 and own > WIDER * needed


def _of_text(
    table: Table,
    column: Column,
    known: ColumnFacts,
    rows: int,
    where: str,
    values_of: Callable[[Table, Column], Values],
) -> Iterator[Finding]:
    too_long = known.too_long / rows
    if too_long > A_FEW:
        length = propose_length(known)
        what = f"{_percent(too_long)} of the rows are longer than max_length, and count as NULL"
        yield Finding(_level(too_long), where, what, f"max_length: {length}", from_data=True)
    if known.distinct > 2 * MOST_VALUES:
        return
    values = values_of(table, column)
    if values is not None and values[0]:
        rare = f", and {values[1]} of fewer than {LEAST_UNITS} units" if values[1] else ""
        what = f"has few values{rare}: if everyone knows them, no group is hidden or paid for"
        listed = f"values: [{', '.join(scalar(value) for value in values[0])}]"
        yield Finding(Level.BETTER, where, what, listed, from_data=True)


def listed(ask: Ask, source: Source, table: Table, column: Column) -> Values:
    return common_values(ask, source, column, getattr(table.unit, "column", None), LEAST_UNITS, MOST_VALUES)


# --- units -----------------------------------------------------------------------------------------------------------


def of_contributions(schema: Schema, table: Table, report: TableReport) -> Iterator[Finding]:
    where = f"tables.{table.name}"
    yield from _of_one_row(schema, table, report)
    if report.rows and report.without_unit:
        share = report.without_unit / report.rows
        what = f"{_count(report.without_unit)} rows ({_percent(share)}) belong to no unit, and are in no answer"
        yield Finding(Level.MEND if share > A_FEW else Level.BETTER, where, what)
    if report.orphans and isinstance(table.unit, ForeignUnit):
        what = f'{_count(report.orphans)} rows name a row of "{table.unit.table}" that is not there'
        yield Finding(Level.MEND if report.orphans > A_FEW * report.rows else Level.BETTER, f"{where}.unit", what)
    for key in report.keys:
        if key.units_over > MANY / 2:
            what = f"{_percent(key.units_over)} of the units have more keys of {key.column} than are counted"
            yield Finding(Level.BETTER, "privacy.contributions.groups", what)
        if key.rows_hidden > MANY:
            hidden = f"{key.groups - key.shown} of {key.groups} groups with {_percent(key.rows_hidden)} of the rows"
            what = f"{hidden} stay hidden at the default epsilon"
            yield Finding(Level.BETTER, f"{where}.{key.column}", what)
    yield from _of_questions(report, where)


def _of_one_row(schema: Schema, table: Table, report: TableReport) -> Iterator[Finding]:
    """A unit that has one row needs no norm, but only if the schema says so."""
    column = _unit_column(schema, table)
    if column is None or table.is_unique(column) or report.most_rows != 1 or (report.units or 0) < LEAST_UNITS:
        return
    norm = schema.privacy.contributions.rows
    gain = f", and counts and sums {norm} times less noise" if norm is not None and norm > 1 else ""
    what = f"no two rows share {column}: declared unique, a unit has one row{gain}; it is checked at registration"
    keys = [scalar(key[0]) if len(key) == 1 else f"[{', '.join(map(scalar, key))}]" for key in table.unique]
    listed = f"unique: [{', '.join((*keys, scalar(column)))}]"
    yield Finding(Level.BETTER, f"tables.{table.name}.unique", what, listed, from_data=True)


def _unit_column(schema: Schema, table: Table) -> str | None:
    """The table's own column that holds the unit's id, if it has one."""
    match table.unit:
        case OwnUnit(column):
            return column
        case ForeignUnit(column, target, key):
            return column if f"{target}.{key}" == schema.privacy.unit else None
        case _:
            return None


def _of_questions(report: TableReport, where: str) -> Iterator[Finding]:
    """Each kind of fault once, by its worst example."""
    losing = [(abs(one.lost), one) for one in report.questions if one.lost is not None and abs(one.lost) > MANY]
    noisy = [(one.noise, one) for one in report.questions if one.noise is not None and one.noise > NOISY]
    if losing:
        most, one = max(losing, key=lambda pair: pair[0])
        others = f", and {len(losing) - 1} other typical questions over 10 %" if len(losing) > 1 else ""
        what = f"{one.sql} loses {_percent(most)} to bounds and norm, whatever the noise{others}"
        yield Finding(Level.MEND, where, what)
    if noisy:
        most, one = max(noisy, key=lambda pair: pair[0])
        needed = f"; epsilon {one.epsilon:.2g} makes it 5 %" if one.epsilon else ""
        yield Finding(Level.BETTER, where, f"{one.sql} is wrong by {_percent(most)} at the default epsilon{needed}")


def of_tables(schema: Schema, reports: Sequence[TableReport]) -> Iterator[Finding]:
    units = max((report.units or 0 for report in reports), default=0)
    delta = schema.privacy.budget.delta
    if units and delta * units >= Fraction(1, 10):
        level = Level.MEND if delta * units >= 1 else Level.BETTER
        what = f"delta is {short_up(delta)} with {_count(units)} units: it should be far below one in so many"
        proposed = Fraction(1, 10 ** (len(str(units)) + 1))
        yield Finding(level, "privacy.budget", what, f"delta: {short_up(proposed)}", from_data=True)
    yield from _norm(schema, [report for report in reports if report.norms])


def _norm(schema: Schema, reports: Sequence[TableReport]) -> Iterator[Finding]:
    """One norm for all tables: that with the least error, summed over them as shares of their rows."""
    own = schema.privacy.contributions.rows
    if own is None or not reports:
        return
    tried: dict[int, float] = {}
    for norm in {norm.rows for report in reports for norm in report.norms}:
        tried[norm] = sum(_error(report, norm) for report in reports)
    best = min(tried, key=lambda norm: (tried[norm], norm))
    if tried[best] * 1.25 < tried[own]:
        lost = max(report.norms[0].rows_lost for report in reports)
        what = (
            f"counts would be wrong by {_percent(tried[best] / len(reports))} instead of"
            f" {_percent(tried[own] / len(reports))}, norm and noise together"
        )
        level = Level.MEND if lost > MANY else Level.BETTER
        yield Finding(level, "privacy.contributions.rows", what, f"rows: {nice(best)}", from_data=True)


def _error(report: TableReport, norm: int) -> float:
    """Between norms that were worked out, the next larger one's loss and the noise in proportion."""
    known = sorted(report.norms, key=lambda one: one.rows)
    above = next((one for one in known if one.rows >= norm), known[-1])
    noise = above.noise or 0.0
    return above.rows_lost + noise * norm / above.rows


def nice(norm: int) -> int:
    """Small norms as they are, larger ones rounded up: a round number shows less of the data."""
    return norm if norm < 10 else nice_up(norm) if nice_up(norm) <= norm * 1.3 else -(-norm // 5) * 5


def times(column: Column) -> str:
    lower, upper = column.domain.bounds
    unit = dt.timedelta(days=1) if column.type.kind is Kind.DATE else dt.timedelta(microseconds=1)
    return f"[{_moment(lower, unit)}, {_moment(upper, unit)}]"


def _moment(value: Fraction, unit: dt.timedelta) -> str:
    moment = EPOCH + int(value) * unit
    return moment.date().isoformat() if moment.time() == dt.time() else moment.isoformat(" ", "minutes")


def _percent(share: float) -> str:
    """
    >>> _percent(0.123), _percent(0.0004), _percent(0), _percent(3.2)
    ('12.3 %', '0.04 %', '0 %', '320 %')
    """
    if share == 0:
        return "0 %"
    return f"{100 * share:.0f} %" if abs(share) >= 0.995 else f"{100 * share:.3g} %"


def _count(value: int) -> str:
    return f"{value:,}"
