"""Releases and public tables as post-processing reads them: keys, answers and their errors as columns."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, assert_never

import numpy as np

from dpsql.compile import Answered, Chosen, Compiled, Counted, PublicStep, Ranked, ReleaseStep, Responses, TableStep
from dpsql.engines.duckdb import spelling
from dpsql.exact import Row
from dpsql.plan.measures import Frequent, SharesPosterior
from dpsql.plan.recipes import BetaPosterior, Linear, NormalPosterior, Recipe
from dpsql.plan.stages import VALUE, Bins, ReleaseColumn
from dpsql.post.estimates import Estimates, covariance, estimate, interval
from dpsql.post.posterior_columns import posterior, shares, told
from dpsql.post.posteriors import Level, Share
from dpsql.post.sandbox import ReleasedTable
from dpsql.privacy.release import Release
from dpsql.schema.domain import EPOCH
from dpsql.types import BIGINT, Kind, Type

_NO_COLUMNS: tuple[tuple[str, Type | str], ...] = (("_row", BIGINT),)
"""COUNT of groups, or a constant per group: only the number of rows matters."""

Values = list[Any]
Worked = dict[object, Share | Level]
"""Posteriors by what they are of, all columns at once."""


def empty_tables(compiled: Compiled) -> list[ReleasedTable]:
    """The columns alone, for describing a statement before anything is charged."""
    public = [(read.name, tuple((f.name, f.type) for f in read.columns)) for read in compiled.reads]
    released = [(table.name, _columns(table)) for table in compiled.tables]
    return [ReleasedTable(name, columns, [[] for _ in columns]) for name, columns in (*public, *released)]


def public_table(read: PublicStep, rows: Sequence[Row]) -> ReleasedTable:
    columns = tuple((column.name, column.type) for column in read.columns)
    return ReleasedTable(read.name, columns, [[row[place] for row in rows] for place in range(len(columns))])


def released_tables(compiled: Compiled, releases: Mapping[int, Release], nonnegative: bool) -> list[ReleasedTable]:
    """The tables of which all steps are released; `releases` are by the place of their step.

    Of one whose own step is there, and not yet those of its quantiles, the groups alone: these are chosen in them.
    """
    tables: list[ReleasedTable] = []
    for table in compiled.tables:
        if table.steps <= releases.keys():
            tables.append(_released(table, compiled.steps, releases, nonnegative))
        elif table.step is not None and table.step in releases:
            tables.append(_groups(table, compiled.steps[table.step], releases[table.step]))
    return tables


def _groups(table: TableStep, step: ReleaseStep, release: Release) -> ReleasedTable:
    columns = tuple((key.name, key.type) for key in step.keys)
    return ReleasedTable(table.name, columns, [[key[place] for key in release.keys] for place in range(len(columns))])


def _columns(table: TableStep) -> tuple[tuple[str, Type | str], ...]:
    return tuple((column.name, _spelled(column, table)) for column in table.columns) or _NO_COLUMNS


def _spelled(column: ReleaseColumn, table: TableStep) -> Type | str:
    """A list or map is spelled out: dpsql has no type for it."""
    if column.kind != "value":
        return column.type
    recipe = table.measures[column.place].recipe
    if isinstance(recipe, Chosen) and recipe.container is not None:
        return f"{spelling(column.type)}[]"
    if isinstance(recipe, Ranked) and recipe.asked.container is not None:
        return f"{spelling(column.type)}[]"
    if isinstance(recipe, Counted) and recipe.asked.container is not None:
        inner = spelling(column.type)
        told_of = "DOUBLE" if isinstance(recipe.asked, SharesPosterior) else "BIGINT"
        return f"{inner}[]" if recipe.asked.container == "list" else f"MAP({inner}, {told_of})"
    return column.type


def _released(
    table: TableStep, steps: Sequence[ReleaseStep], releases: Mapping[int, Release], nonnegative: bool
) -> ReleasedTable:
    names, groups = _named_groups(table, steps, releases)
    if not table.columns:
        return ReleasedTable(table.name, _NO_COLUMNS, [list(range(len(groups)))])
    found: dict[int, Estimates] = {}
    worked: Worked = {}

    def estimates(place: int) -> Estimates:
        if place not in found:
            found[place] = _estimates(table.measures[place], names, groups, steps, releases, nonnegative, worked)
        return found[place]

    values: list[Values] = []
    for column in table.columns:
        if column.kind == "key":
            place = names.index(column.name)
            values.append([key[place] for key in groups])
        elif column.kind == "cov":
            values.append(_covariance(table, column, steps, releases))
        elif column.kind == "factor":
            # A bar is of any of the measures, and some steps have no noise that is added: the widest of all holds.
            values.append([max(interval(releases[step]) for step in table.steps)] * len(groups))
        else:
            one = estimates(column.place)
            parts = {"value": one.values, "stderr": one.stderr, "low": one.low, "high": one.high}
            values.append(parts[column.kind])
    return ReleasedTable(table.name, _columns(table), values)


def _named_groups(
    table: TableStep, steps: Sequence[ReleaseStep], releases: Mapping[int, Release]
) -> tuple[list[str], Sequence[Row]]:
    if table.known is not None:
        return list(table.known.names), table.known.rows
    if table.step is None:
        return [], ((),)
    return [key.name for key in steps[table.step].keys], releases[table.step].keys


def _covariance(
    table: TableStep, column: ReleaseColumn, steps: Sequence[ReleaseStep], releases: Mapping[int, Release]
) -> Values:
    one, other = table.measures[column.place], table.measures[column.other]
    assert not isinstance(one.recipe, Chosen | Counted | Ranked | Responses)
    assert not isinstance(other.recipe, Chosen | Counted | Ranked | Responses)
    cells = steps[one.step].calibrated.columns
    return list(covariance(one.recipe, other.recipe, releases[one.step], cells))


def _estimates(
    answer: Answered,
    names: list[str],
    groups: Sequence[Row],
    steps: Sequence[ReleaseStep],
    releases: Mapping[int, Release],
    nonnegative: bool,
    worked: Worked,
) -> Estimates:
    step, release = steps[answer.step], releases[answer.step]
    match answer.recipe:
        case Chosen():
            values = _by_group(names, groups, step, release, _chosen(answer.recipe, release))
        case Counted(Frequent()):
            values = _frequent(answer.recipe, names, groups, step, release)
        case Ranked():
            values = _ranked(answer.recipe, names, groups, step, release)
        case Counted():
            values = _shares(answer.recipe, names, groups, step, release, worked)
        case BetaPosterior() | NormalPosterior():
            known = (answer.step, replace(answer.recipe, part=""))  # its columns are worked out together
            if known not in worked:
                worked[known] = posterior(answer.recipe, release, step.calibrated.columns)
            values = list(told(answer.recipe, worked[known]))
        case Responses(axis, counts):
            answers: Values = [*(axis.values or ()), *([None] if axis.null else [])]
            values = release.cells[0].tolist() if counts else answers
        case _:
            recipe: Recipe = answer.recipe
            return estimate(recipe, release, step.calibrated.columns, nonnegative)
    nothing: Values = [None] * len(values)
    return Estimates(values, nothing, nothing, nothing)


# --- quantiles -------------------------------------------------------------------------------------------------------


def _by_group(names: list[str], groups: Sequence[Row], step: ReleaseStep, release: Release, values: Values) -> Values:
    """Values of a step's groups, in the order of the main step's."""
    order = [[key.name for key in step.keys].index(name) for name in names]
    known = {tuple(key[place] for place in order): value for key, value in zip(release.keys, values, strict=True)}
    return [known.get(key) for key in groups]


def _chosen(chosen: Chosen, release: Release) -> Values:
    """A bin before the first is no answer: a test that was failed."""
    least = chosen.bins.lower
    columns = [[None if n < least else bin_value(n, chosen.bins) for n in cells.tolist()] for cells in release.cells]
    if chosen.container is None:
        return columns[0]
    return [list(row) for row in zip(*columns, strict=True)]


def bin_value(number: int, bins: Bins) -> Any:
    """What a bin stands for, in the type of the answer."""
    value = bins.origin + number * bins.grid
    if not bins.discrete:
        return float(value)
    kind = bins.type.kind
    match kind:
        case Kind.DATE:
            return EPOCH.date() + dt.timedelta(days=round(value))
        case Kind.TIMESTAMP:
            return EPOCH + dt.timedelta(microseconds=round(value))
        case Kind.TIMESTAMPTZ:
            return (EPOCH + dt.timedelta(microseconds=round(value))).replace(tzinfo=dt.UTC)
        case Kind.DECIMAL:
            scale = bins.type.scale or 0
            return Decimal(round(value * 10**scale)).scaleb(-scale)
        case _:
            return round(value) if bins.type.is_integer else float(value)


# --- frequent values -------------------------------------------------------------------------------------------------


def _frequent(
    counted: Counted, names: list[str], groups: Sequence[Row], step: ReleaseStep, release: Release
) -> Values:
    """The values of each group by their noisy counts, the most frequent first."""
    fields = [key.name for key in step.keys]
    order, place = [fields.index(name) for name in names], fields.index(VALUE)
    counts = estimate(counted.recipe, release, step.calibrated.columns).values
    found: dict[Row, list[tuple[int, Any]]] = {}
    for key, count in zip(release.keys, counts, strict=True):
        if key[place] is None:  # listed where nothing else can be; a NULL is no value
            continue
        found.setdefault(tuple(key[p] for p in order), []).append((int(count), key[place]))
    for values in found.values():
        values.sort(key=lambda pair: (-pair[0], str(pair[1])))
    answers = [_answer(counted, found.get(key, [])) for key in groups]
    return _maps(answers) if counted.asked.container == "map" else answers


def _maps(values: Values) -> Values:
    """Beside others an empty map is NULL: DuckDB takes it for one of another type."""
    return [value or None for value in values] if any(values) else values


def _ranked(ranked: Ranked, names: list[str], groups: Sequence[Row], step: ReleaseStep, release: Release) -> Values:
    """The best values of each group, in their places; NULL, or none, where there is nothing to choose from."""
    fields = [key.name for key in step.keys]
    order, place = [fields.index(name) for name in names], fields.index(VALUE)
    found: dict[Row, dict[int, Any]] = {}
    for key, number in zip(release.keys, release.cells[0].tolist(), strict=True):
        found.setdefault(tuple(key[p] for p in order), {})[number] = key[place]
    best = [[values[number] for number in sorted(values)] for values in (found.get(key, {}) for key in groups)]
    return best if ranked.asked.is_list else [values[0] if values else None for values in best]


def _shares(
    counted: Counted, names: list[str], groups: Sequence[Row], step: ReleaseStep, release: Release, worked: Worked
) -> Values:
    """The values of each group with one of the columns of their shares."""
    asked = counted.asked
    assert isinstance(asked, SharesPosterior) and isinstance(counted.recipe, Linear)
    fields = [key.name for key in step.keys]
    order, place = [fields.index(name) for name in names], fields.index(VALUE)
    rows = [number for number, key in enumerate(release.keys) if key[place] is not None]
    own = [tuple(release.keys[row][p] for p in order) for row in rows]
    places = {group: number for number, group in enumerate(dict.fromkeys(own))}
    known = (step.name, asked.prior, asked.confidence, counted.recipe)
    if known not in worked:
        kept = Release(tuple(own), tuple(cells[rows] for cells in release.cells), release.spec)
        among = np.array([places[group] for group in own], np.int64)
        concentration = float(dict(asked.prior).get("concentration", 1))
        worked[known] = shares(counted.recipe.terms, kept, step.calibrated.columns, among, concentration,
                               float(asked.confidence))  # fmt: skip
    column = getattr(worked[known], asked.part).tolist()
    found: dict[Row, dict[Any, float | None]] = {}
    for row, group, number in zip(rows, own, column, strict=True):
        found.setdefault(group, {})[release.keys[row][place]] = number if math.isfinite(number) else None
    return _maps([found.get(group, {}) for group in groups])


def _answer(counted: Counted, values: list[tuple[int, Any]]) -> Any:
    assert isinstance(counted.asked, Frequent)
    match counted.asked.shape:
        case "mode":
            return values[0][1] if values else None
        case "top":
            return [value for _, value in values[: counted.asked.most]]
        case "histogram":
            return {value: count for count, value in values}
        case _:
            assert_never(counted.asked.shape)
