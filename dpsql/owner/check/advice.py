"""What an owner could set better, each with its reason. What was read from the data says so: it is not private then."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

from dpsql.amounts import format_rounded_up
from dpsql.owner.check.report import SchemaFinding, Severity, TableReport
from dpsql.owner.draft.relationships import is_id_column, names_people
from dpsql.owner.draft.suggestions import (
    MAX_VALUES,
    MIN_UNITS,
    REPEATED,
    RepeatedColumn,
    propose_bounds,
    propose_length,
    rank_repeated_columns,
    round_up,
)
from dpsql.owner.introspect.statistics import ColumnFacts, RunQuery, find_common_values
from dpsql.owner.introspect.tables import IntrospectedColumn
from dpsql.owner.yaml_text import format_number, format_scalar
from dpsql.schema.literals import read_bound
from dpsql.schema.model import EPOCH, Analyst, Column, ForeignUnit, Group, OwnUnit, RowUnit, Schema, Source, Table
from dpsql.types import Kind

NOTABLE_SHARE, LARGE_SHARE = 0.01, 0.1
"""Shares of rows: above A_FEW a better setting is proposed, above MANY it should be mended."""
MAJORITY_SHARE = 0.5
"""Of a column's values: above it they are of another type than is declared."""
NOISY_SHARE = 0.5
"""Noise of 95 % of all answers, as a share: above it, an answer tells hardly more than its size."""
WIDE_FACTOR = 3
"""Bounds that are so many times as wide as the data's make so much more noise than is needed."""

TOO_FEW = "too few privacy units"
"""How the refusal begins that automatic contributions give where a histogram of units shows nothing."""

CommonValues = tuple[tuple[str, ...], int] | None


# --- the schema alone ------------------------------------------------------------------------------------------------


def advise_schema(schema: Schema) -> Iterator[SchemaFinding]:
    yield from _advise_budgets(schema)
    if schema.privacy.policy.largest_epsilon is None and all(a.policy.largest_epsilon is None for a in schema.analysts):
        max_epsilon = schema.privacy.query.epsilon * 5
        if max_epsilon < schema.privacy.budget.epsilon:
            what = "is not declared: one statement may be charged a whole budget, by a slip of the pen"
            yield SchemaFinding(
                Severity.BETTER,
                "privacy.largest_query",
                what,
                f"largest_query: {{epsilon: {format_rounded_up(max_epsilon)}}}",
            )
    for table in schema.tables:
        for column in table.columns if not table.public else ():
            if _can_snap(column):
                what = "has no snap: a dashboard that sends the current time asks, and pays, anew each time"
                yield SchemaFinding(Severity.BETTER, f"tables.{table.name}.{column.name}", what, "snap: 1 hour")


def _can_snap(column: Column) -> bool:
    return column.type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ) and column.snap is None


def _advise_budgets(schema: Schema) -> Iterator[SchemaFinding]:
    """Accounts that the dataset's pays for: together they may be promised more than there is."""
    everyone: tuple[Group | Analyst, ...] = (*schema.groups, *schema.analysts)
    top = [account for account in everyone if account.parent is None]
    promised = sum((account.budget.epsilon for account in top), Fraction(0))
    if promised > schema.privacy.budget.epsilon:
        what = (
            f"together the accounts are promised epsilon {format_rounded_up(promised)}, and the dataset has "
            f"{format_rounded_up(schema.privacy.budget.epsilon)}: who asks last may be refused with budget left"
        )
        yield SchemaFinding(Severity.BETTER, "analysts", what)


# --- columns ---------------------------------------------------------------------------------------------------------


def advise_columns(
    schema: Schema,
    table: Table,
    facts: Mapping[str, ColumnFacts],
    rows: int,
    values_of: Callable[[Table, Column], CommonValues],
) -> Iterator[SchemaFinding]:
    ids = schema.find_id_columns(table) | {name for key in table.unique for name in key}
    for column in table.columns:
        measured = facts[column.name]
        where = f"tables.{table.name}.{column.name}"
        if column.name in ids or not measured.fit:
            continue
        if column.domain.values is not None:
            yield from _advise_listed_column(column, measured, rows, where)
        elif column.type.is_number or column.type.is_time:
            yield from _advise_numeric_column(column, measured, where)
        elif column.type.kind is Kind.TEXT:
            yield from _advise_text_column(table, column, measured, rows, where, values_of)


def advise_unreadable_values(
    schema: Schema, table: Table, facts: Mapping[str, ColumnFacts], rows: int
) -> Iterator[SchemaFinding]:
    """What cannot be read counts as NULL: the owner would hear of it from nobody."""
    ids = schema.find_id_columns(table)
    for column in table.columns:
        measured = facts[column.name]
        where = f"tables.{table.name}.{column.name}"
        if measured.unfit_count:
            share, is_majority = measured.unfit_count / rows, measured.unfit_count > MAJORITY_SHARE * measured.present
            what = f"{_format_percent(share)} of the rows hold no {column.type}" + (
                ", most that are not NULL" if is_majority else ""
            )
            level = Severity.MEND if is_majority else _severity_of(share)
            yield SchemaFinding(level, where, what + _unreadable_reason(column, measured, column.name in ids))
        elif rows and not measured.present:
            yield SchemaFinding(Severity.MEND, where, "is NULL in all rows: leave it out, or look at the source")


def _unreadable_reason(column: Column, measured: ColumnFacts, is_id: bool) -> str:
    if measured.commas:
        return f'; {_format_count(measured.commas)} have a comma: write decimal: "," in the source, or 1.5 there'
    if measured.day_first:
        return f"; {_format_count(measured.day_first)} begin with a day or month: declare their format"
    return "; an id is read only as its type prints it, so 007 is no number" if is_id and column.type.is_number else ""


def _severity_of(share: float) -> Severity:
    return Severity.MEND if share > LARGE_SHARE else Severity.BETTER


def _advise_listed_column(column: Column, measured: ColumnFacts, rows: int, where: str) -> Iterator[SchemaFinding]:
    unlisted, null = measured.unlisted / rows, (rows - measured.fit) / rows
    if unlisted > NOTABLE_SHARE:
        what = f"{_format_percent(unlisted)} of the rows hold values that are not declared; they count as NULL"
        yield SchemaFinding(_severity_of(unlisted), where, what, "values: … with those that are missing")
    if null + unlisted > NOTABLE_SHARE and not column.null_group:
        what = f"{_format_percent(null + unlisted)} of the rows are NULL here, and in no group"
        yield SchemaFinding(Severity.BETTER, where, what, "nullable: true")


def _advise_numeric_column(column: Column, measured: ColumnFacts, where: str) -> Iterator[SchemaFinding]:
    proposed = propose_bounds(measured, column.type, column.name)
    text = None if proposed is None else f"bounds: [{format_number(proposed[0])}, {format_number(proposed[1])}]"
    if not column.domain.is_bounded:
        if is_id_column(
            IntrospectedColumn(column.name, str(column.type), column.type)
        ):  # an id of something: no quantity
            return
        what = "has no bounds: groups by time are found privately" if column.type.is_time else (
            "has no bounds: quantiles need CLIP(x, low, high), and sums have more noise"
        )  # fmt: skip
        yield SchemaFinding(Severity.BETTER, where, what, text, from_data=text is not None)
        return
    clipped = (measured.below + measured.above) / measured.fit
    if clipped > NOTABLE_SHARE:
        what = f"the bounds clip {_format_percent(clipped)} of the values"
        yield SchemaFinding(_severity_of(clipped), where, what, text, from_data=text is not None)
    elif proposed is not None and column.type.is_number and _is_too_wide(column, proposed):
        what = "the bounds are far wider than the data: sums have more noise than they need"
        yield SchemaFinding(Severity.BETTER, where, what, text, from_data=True)
    if column.type.is_float and column.grid is None and measured.cents == measured.fit:
        what = "all values are whole hundredths: sums are then exact before the noise"
        yield SchemaFinding(Severity.BETTER, where, what, "grid: 0.01", from_data=True)


def _is_too_wide(column: Column, proposed: tuple[str, str]) -> bool:
    """By what noise follows: the largest value that a row may have."""
    low, high = (read_bound(text, column.type) for text in proposed)
    if low is None or high is None:
        return False
    declared = max(abs(bound) for bound in column.domain.bounds)
    needed = max(abs(low), abs(high))
    return needed > 0 and declared > WIDE_FACTOR * needed


def _advise_text_column(
    table: Table,
    column: Column,
    measured: ColumnFacts,
    rows: int,
    where: str,
    values_of: Callable[[Table, Column], CommonValues],
) -> Iterator[SchemaFinding]:
    too_long = measured.too_long / rows
    if too_long > NOTABLE_SHARE:
        length = propose_length(measured)
        what = f"{_format_percent(too_long)} of the rows are longer than max_length, and count as NULL"
        yield SchemaFinding(_severity_of(too_long), where, what, f"max_length: {length}", from_data=True)
    if measured.distinct > 2 * MAX_VALUES:
        return
    values = values_of(table, column)
    if values is not None and values[0]:
        rare = f", and {values[1]} of fewer than {MIN_UNITS} units" if values[1] else ""
        what = f"has few values{rare}: if everyone knows them, no group is hidden or paid for"
        proposal = f"values: [{', '.join(format_scalar(value) for value in values[0])}]"
        yield SchemaFinding(Severity.BETTER, where, what, proposal, from_data=True)


def list_common_values(ask: RunQuery, source: Source, table: Table, column: Column) -> CommonValues:
    return find_common_values(ask, source, column, getattr(table.unit, "column", None), MIN_UNITS, MAX_VALUES)


# --- units -----------------------------------------------------------------------------------------------------------


def advise_units(schema: Schema, table: Table, report: TableReport) -> Iterator[SchemaFinding]:
    where = f"tables.{table.name}"
    yield from _advise_unique_unit(schema, table, report)
    yield from _advise_unit_key(schema, table, report)
    if report.rows and report.without_unit:
        share = report.without_unit / report.rows
        what = (
            f"{_format_count(report.without_unit)} rows ({_format_percent(share)}) belong to no unit, and "
            "are in no answer"
        )
        yield SchemaFinding(Severity.MEND if share > NOTABLE_SHARE else Severity.BETTER, where, what)
    if report.orphans and isinstance(table.unit, ForeignUnit):
        what = _describe_orphans(schema, table.unit, report)
        yield SchemaFinding(
            Severity.MEND if report.orphans > NOTABLE_SHARE * report.rows else Severity.BETTER, f"{where}.unit", what
        )
    for key in report.keys:
        if key.units_over > LARGE_SHARE / 2:
            what = f"{_format_percent(key.units_over)} of the units have more keys of {key.column} than are counted"
            yield SchemaFinding(Severity.BETTER, "privacy.contributions.groups", what)
        if key.rows_hidden > LARGE_SHARE:
            hidden = (
                f"{key.groups - key.shown} of {key.groups} groups with {_format_percent(key.rows_hidden)} of the rows"
            )
            what = f"{hidden} stay hidden at the default epsilon"
            yield SchemaFinding(Severity.BETTER, f"{where}.{key.column}", what)
    yield from _advise_queries(report, where)


def _describe_orphans(schema: Schema, unit: ForeignUnit, report: TableReport) -> str:
    share = _format_percent(report.orphans / report.rows)
    what = f'{_format_count(report.orphans)} rows ({share}) name a row of "{unit.table}" that is not there'
    if not unit.also and f"{unit.table}.{unit.key}" == schema.privacy.unit:  # the id stands in the row itself
        return (
            f"{what}: questions about this table alone count them, as of units like the others; a join with "
            f'"{unit.table}" leaves them out'
        )
    return f"{what}: nobody knows whose they are, so no answer counts them"


def advise_row_unit(schema: Schema, table: Table, facts: Mapping[str, ColumnFacts]) -> Iterator[SchemaFinding]:
    """Rows that are units of their own, beside an id that several of them share: whoever has it is not protected.

    An id is known by its name, or by another table that has it as well. What only repeats may be one, whatever it is
    called: that is a question to the owner.
    """
    if not isinstance(table.unit, RowUnit):
        return
    where, unclear = f"tables.{table.name}.unit", list[RepeatedColumn]()
    for column in table.columns:
        measured = facts[column.name]
        if measured.distinct < MIN_UNITS or measured.fit <= REPEATED * measured.distinct:
            continue
        repeats = _describe_repeats(column.name, measured.distinct, measured.fit)
        repeated = RepeatedColumn.of(table.name, column.name, column.type, measured) if _can_be_id(column) else None
        if is_id_column(IntrospectedColumn(column.name, str(column.type), column.type)):
            what = f"is row, and {repeats}: if they are people, each is protected for one row only"
            yield SchemaFinding(Severity.MEND, where, what, f"unit: {format_scalar(column.name)}")
        elif repeated is not None and (other := _table_that_shares(schema, table, column)) is not None:
            what = (
                f'is row, and {repeats}, and the table "{other}" has the column, too: if it names people, each is '
                "protected for one row only"
            )
            yield SchemaFinding(Severity.MEND, where, what, f"unit: {format_scalar(column.name)}")
        elif repeated is not None:
            unclear.append(repeated)
    if unclear:
        what = (
            f"is row, and values repeat: {_list_repeats(unclear)}. If a column names people, it should be the unit: "
            "else each of them is protected for one row only. If none does, declare their values or bounds, or leave "
            "them out"
        )
        yield SchemaFinding(Severity.MEND, where, what, is_promise=True)


def advise_single_rows(
    schema: Schema, table: Table, facts: Mapping[str, ColumnFacts], report: TableReport
) -> Iterator[SchemaFinding]:
    """Units of one row each, which nothing says to be people: what repeats beside them may name whom to protect."""
    if not isinstance(table.unit, OwnUnit) or report.most_rows != 1 or names_people(table.name, table.unit.column):
        return
    if any(isinstance(other.unit, ForeignUnit) for other in schema.tables):
        return
    measured = ((column, facts[column.name]) for column in table.columns if _can_be_id(column))
    repeated = [RepeatedColumn.of(table.name, column.name, column.type, found) for column, found in measured]
    unclear = [each for each in repeated if each is not None]
    if unclear:
        what = (
            f"is {table.unit.column}, which differs in every row, while other values repeat: {_list_repeats(unclear)}."
            " If a column names people, it should be the unit: else each of them is protected for one row only"
        )
        yield SchemaFinding(Severity.BETTER, f"tables.{table.name}.unit", what, is_promise=True)


def _list_repeats(columns: Sequence[RepeatedColumn]) -> str:
    ranked = [_describe_repeats(each.column, each.distinct, each.rows) for each in rank_repeated_columns(columns)]
    more = f", and {len(ranked) - _MAX_UNCLEAR} columns more" if len(ranked) > _MAX_UNCLEAR else ""
    return f"{'; '.join(ranked[:_MAX_UNCLEAR])}{more}"


def _describe_repeats(column: str, distinct: int, rows: int) -> str:
    return f"about {_format_count(distinct)} values of {column} stand in {_format_count(rows)} rows"


_MAX_UNCLEAR = 3
"""Columns that may be ids, which are named."""


def _can_be_id(column: Column) -> bool:
    """Whether the declarations leave it open: ids are whole numbers or texts, without bounds or known values."""
    can_name = column.type.is_integer or column.type.kind in (Kind.TEXT, Kind.UUID)
    return can_name and column.domain.values is None and not column.domain.is_bounded


def _table_that_shares(schema: Schema, table: Table, column: Column) -> str | None:
    for other in schema.tables:
        same = next((candidate for candidate in other.columns if candidate.name == column.name), None)
        if other is not table and other.unit is not None and same is not None and same.type == column.type:
            return other.name
    return None


def _advise_unique_unit(schema: Schema, table: Table, report: TableReport) -> Iterator[SchemaFinding]:
    """A unit that has one row needs no norm, but only if the schema says so."""
    column = unit_column_of(schema, table)
    if column is None or table.is_unique(column) or report.most_rows != 1 or (report.units or 0) < MIN_UNITS:
        return
    norm = schema.privacy.contributions.rows
    gain = f", and counts and sums {norm} times less noise" if norm is not None and norm > 1 else ""
    what = f"no two rows share {column}: declared unique, a unit has one row{gain}; it is checked at registration"
    proposal = f"unique: [{', '.join((*map(_write_key, table.unique), format_scalar(column)))}]"
    yield SchemaFinding(Severity.BETTER, f"tables.{table.name}.unique", what, proposal, from_data=True)


MAX_KEY_VALUES = 100
"""Values of a column that is proposed as a unit's key: with more, the key bounds nothing."""


def has_few_values(column: Column) -> bool:
    """Whether a column's declared values, or whole numbers within bounds, are few enough to bound a unit's rows."""
    domain = column.domain
    if domain.values is not None:
        return 1 < len(domain.values) <= MAX_KEY_VALUES
    if not domain.type.is_integer or domain.lower is None or domain.upper is None:
        return False
    return 1 <= domain.upper - domain.lower < MAX_KEY_VALUES


def _advise_unit_key(schema: Schema, table: Table, report: TableReport) -> Iterator[SchemaFinding]:
    """A unit with one row in each year has few rows, but only if the schema says so."""
    unit = unit_column_of(schema, table)
    if unit is None or report.unit_key is None or (report.units or 0) < MIN_UNITS:
        return
    what = (
        f"no {unit} has two rows of one {report.unit_key}: declared unique together, counts and sums by "
        f"{report.unit_key} need no norm; it is checked at registration"
    )
    keys = [*map(_write_key, table.unique), _write_key((unit, report.unit_key))]
    yield SchemaFinding(
        Severity.BETTER, f"tables.{table.name}.unique", what, f"unique: [{', '.join(keys)}]", from_data=True
    )


def _write_key(key: Sequence[str]) -> str:
    return format_scalar(key[0]) if len(key) == 1 else f"[{', '.join(map(format_scalar, key))}]"


def unit_column_of(schema: Schema, table: Table) -> str | None:
    """The table's own column that holds the unit's id, if it has one."""
    match table.unit:
        case OwnUnit(column):
            return column
        case ForeignUnit(column, target, key, ()):
            return column if f"{target}.{key}" == schema.privacy.unit else None
        case _:
            return None


def _advise_queries(report: TableReport, where: str) -> Iterator[SchemaFinding]:
    """Each kind of fault once, by its worst example."""
    yield from _advise_hidden_clipping(report, where)
    refused = next((query for query in report.questions if query.refused and query.refused.startswith(TOO_FEW)), None)
    if refused is not None:
        what = f"{refused.sql} is refused: there are too few units to choose contributions from at the default epsilon"
        level = Severity.MEND if refused is report.questions[0] else Severity.BETTER  # the first is COUNT(*)
        yield SchemaFinding(level, "privacy.contributions", what, "contributions: {rows: …, groups: …}")
    losing = [
        (abs(query.lost), query)
        for query in report.questions
        if query.lost is not None and abs(query.lost) > LARGE_SHARE
    ]
    noisy = [
        (query.noise, query) for query in report.questions if query.noise is not None and query.noise > NOISY_SHARE
    ]
    if losing:
        worst, query = max(losing, key=lambda pair: pair[0])
        others = f", as do {len(losing) - 1} more of the typical questions over 10 %" if len(losing) > 1 else ""
        what = f"{query.sql} loses {_format_percent(worst)} to bounds and norm, whatever the noise{others}"
        yield SchemaFinding(Severity.MEND, where, what)
    if noisy:
        worst, query = max(noisy, key=lambda pair: pair[0])
        needed = f"; epsilon {query.epsilon:.2g} makes it 5 %" if query.epsilon else ""
        yield SchemaFinding(
            Severity.BETTER, where, f"{query.sql} is wrong by {_format_percent(worst)} at the default epsilon{needed}"
        )


def _advise_hidden_clipping(report: TableReport, where: str) -> Iterator[SchemaFinding]:
    """A count that a declared norm moves further than its error bar reaches: analysts cannot see it."""
    for query in report.questions:
        hidden = query.lost is not None and query.noise is not None and abs(query.lost) > query.noise
        if hidden and query.lost is not None and "COUNT(" in query.sql:
            if abs(query.lost) > LARGE_SHARE:  # these have a finding of their own
                return
            off = f"{query.sql} is off by {_format_percent(abs(query.lost))} since units are scaled down, more than"
            if report.norms:
                what = f"{off} its error bar of {_format_percent(query.noise or 0)} says"
                yield SchemaFinding(Severity.MEND, where, what, "contributions: auto")
            else:
                what = (
                    f"{off} the noise of {_format_percent(query.noise or 0)}: notices tell analysts by about how much; "
                    "declared contributions may be better with few units, or a larger epsilon"
                )
                yield SchemaFinding(Severity.BETTER, where, what)
            return


def advise_dataset(schema: Schema, reports: Sequence[TableReport]) -> Iterator[SchemaFinding]:
    units = max((report.units or 0 for report in reports), default=0)
    delta = schema.privacy.budget.delta
    if units and delta * units >= Fraction(1, 10):
        level = Severity.MEND if delta * units >= 1 else Severity.BETTER
        what = (
            f"delta is {format_rounded_up(delta)} with {_format_count(units)} units: it should be far below "
            "one in so many"
        )
        proposed = Fraction(1, 10 ** (len(str(units)) + 1))
        yield SchemaFinding(level, "privacy.budget", what, f"delta: {format_rounded_up(proposed)}", from_data=True)
    yield from _advise_norm(schema, [report for report in reports if report.norms])


def _advise_norm(schema: Schema, reports: Sequence[TableReport]) -> Iterator[SchemaFinding]:
    """One norm for all tables: that with the least error, summed over them as shares of their rows."""
    declared = schema.privacy.contributions.rows
    if declared is None or not reports:
        return
    errors: dict[int, float] = {}
    for norm in {norm.rows for report in reports for norm in report.norms}:
        errors[norm] = sum(_norm_error(report, norm) for report in reports)
    best = min(errors, key=lambda norm: (errors[norm], norm))
    yield from _advise_automatic(errors[declared], reports)
    if errors[best] * 1.25 < errors[declared]:
        lost = max(report.norms[0].rows_lost for report in reports)
        what = (
            f"counts would be wrong by {_format_percent(errors[best] / len(reports))} instead of"
            f" {_format_percent(errors[declared] / len(reports))}, norm and noise together"
        )
        level = Severity.MEND if lost > LARGE_SHARE else Severity.BETTER
        yield SchemaFinding(level, "privacy.contributions.rows", what, f"rows: {round_norm(best)}", from_data=True)


def _advise_automatic(declared: float, reports: Sequence[TableReport]) -> Iterator[SchemaFinding]:
    """Where automatic contributions would count all tables better, noise and what is scaled down together."""
    counts = [report.automatic for report in reports if report.automatic is not None]
    totals = [abs(count.lost) + count.noise for count in counts if count.lost is not None and count.noise is not None]
    if len(totals) == len(reports) and sum(totals) * 1.25 < declared:
        what = (
            f"counts would be wrong by {_format_percent(sum(totals) / len(reports))} with automatic contributions, and "
            f"are by {_format_percent(declared / len(reports))} with those declared, norm and noise together"
        )
        level = Severity.MEND if max(report.norms[0].rows_lost for report in reports) > LARGE_SHARE else Severity.BETTER
        yield SchemaFinding(level, "privacy.contributions", what, "contributions: auto")


def _norm_error(report: TableReport, norm: int) -> float:
    """Between norms that were worked out, the next larger one's loss and the noise in proportion."""
    norms = sorted(report.norms, key=lambda candidate: candidate.rows)
    above = next((candidate for candidate in norms if candidate.rows >= norm), norms[-1])
    noise = above.noise or 0.0
    return above.rows_lost + noise * norm / above.rows


def round_norm(norm: int) -> int:
    """Small norms as they are, larger ones rounded up: a round number shows less of the data."""
    return norm if norm < 10 else round_up(norm) if round_up(norm) <= norm * 1.3 else -(-norm // 5) * 5


def format_time_bounds(column: Column) -> str:
    lower, upper = column.domain.bounds
    unit = dt.timedelta(days=1) if column.type.kind is Kind.DATE else dt.timedelta(microseconds=1)
    return f"[{_format_timestamp(lower, unit)}, {_format_timestamp(upper, unit)}]"


def _format_timestamp(value: Fraction, unit: dt.timedelta) -> str:
    timestamp = EPOCH + int(value) * unit
    return timestamp.date().isoformat() if timestamp.time() == dt.time() else timestamp.isoformat(" ", "minutes")


def _format_percent(share: float) -> str:
    """
    >>> _format_percent(0.123), _format_percent(0.0004), _format_percent(0), _format_percent(3.2)
    ('12.3 %', '0.04 %', '0 %', '320 %')
    """
    if share == 0:
        return "0 %"
    return f"{100 * share:.0f} %" if abs(share) >= 0.995 else f"{100 * share:.3g} %"


def _format_count(value: int) -> str:
    return f"{value:,}"
