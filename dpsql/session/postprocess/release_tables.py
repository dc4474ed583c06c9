"""Releases and public tables as post-processing reads them: keys, answers and their errors as columns."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import compress
from typing import Any, assert_never

import numpy as np

from dpsql.compiler.clipping import find_scaled_cells
from dpsql.compiler.compile import (
    Compiled,
    CountedValues,
    MeasureSource,
    PublicStep,
    RandomizedResponses,
    RankedValues,
    ReleaseStep,
    SelectedBins,
    TableStep,
)
from dpsql.compiler.plan.estimators import BetaPosterior, BySet, Linear, NormalPosterior, Recipe, recipes_by_set
from dpsql.compiler.plan.measures import Frequent, SharesPosterior
from dpsql.compiler.plan.steps import VALUE_KEY, Bins, ReleaseColumn
from dpsql.engines.duckdb import duckdb_type_name
from dpsql.privacy.exact import Row
from dpsql.privacy.release import Release
from dpsql.schema.model import EPOCH
from dpsql.session.postprocess.empty_groups import find_seen_groups
from dpsql.session.postprocess.estimates import Estimates, estimate_covariance, estimate_measure, widest_interval_factor
from dpsql.session.postprocess.posteriors import (
    MeanPosterior,
    ProportionPosterior,
    infer_posterior,
    infer_proportions,
    posterior_column,
)
from dpsql.session.postprocess.sandbox import ReleasedTable
from dpsql.types import BIGINT, Kind, Type

_ROW_NUMBER_COLUMN: tuple[tuple[str, Type | str], ...] = (("_row", BIGINT),)
"""COUNT of groups, or a constant per group: only the number of rows matters."""

ColumnValues = list[Any]
PosteriorCache = dict[object, ProportionPosterior | MeanPosterior]
"""Posteriors by what they are of, all columns at once."""


def build_empty_tables(compiled: Compiled) -> list[ReleasedTable]:
    """The columns alone, for describing a statement before anything is charged."""
    public = [(read.name, tuple((f.name, f.type) for f in read.columns)) for read in compiled.reads]
    released = [(table.name, _table_columns(table)) for table in compiled.tables]
    return [ReleasedTable(name, columns, [[] for _ in columns]) for name, columns in (*public, *released)]


def build_public_table(read: PublicStep, rows: Sequence[Row]) -> ReleasedTable:
    columns = tuple((column.name, column.type) for column in read.columns)
    return ReleasedTable(read.name, columns, [[row[index] for row in rows] for index in range(len(columns))])


def build_released_tables(
    compiled: Compiled, releases: Mapping[int, Release], nonnegative: bool
) -> list[ReleasedTable]:
    """The tables of which all steps are released; `releases` are by the place of their step.

    Of one whose own step is there, and not yet those of its quantiles, the groups alone: these are chosen in them.
    """
    tables: list[ReleasedTable] = []
    for table in compiled.tables:
        if table.steps <= releases.keys():
            tables.append(_build_released_table(table, compiled.steps, releases, nonnegative))
        elif table.step is not None and table.step in releases:
            tables.append(_build_groups_table(table, compiled.steps[table.step], releases[table.step]))
    return tables


def _build_groups_table(table: TableStep, step: ReleaseStep, release: Release) -> ReleasedTable:
    columns = tuple((key.name, key.type) for key in step.keys)
    return ReleasedTable(table.name, columns, [[key[index] for key in release.keys] for index in range(len(columns))])


def _table_columns(table: TableStep) -> tuple[tuple[str, Type | str], ...]:
    return tuple((column.name, _column_type(column, table)) for column in table.columns) or _ROW_NUMBER_COLUMN


def _column_type(column: ReleaseColumn, table: TableStep) -> Type | str:
    """A list or map is spelled out: dpsql has no type for it."""
    if column.kind != "value":
        return column.type
    recipe = table.measures[column.place].recipe
    if isinstance(recipe, SelectedBins) and recipe.container is not None:
        return f"{duckdb_type_name(column.type)}[]"
    if isinstance(recipe, RankedValues) and recipe.asked.container is not None:
        return f"{duckdb_type_name(column.type)}[]"
    if isinstance(recipe, CountedValues) and recipe.asked.container is not None:
        inner = duckdb_type_name(column.type)
        told_of = "DOUBLE" if isinstance(recipe.asked, SharesPosterior) else "BIGINT"
        return f"{inner}[]" if recipe.asked.container == "list" else f"MAP({inner}, {told_of})"
    return column.type


def _build_released_table(
    table: TableStep, steps: Sequence[ReleaseStep], releases: Mapping[int, Release], nonnegative: bool
) -> ReleasedTable:
    names, groups = _resolve_groups(table, steps, releases)
    if not table.columns:
        seen = find_seen_groups(table, names, groups, steps, releases)
        rows = len(groups) if seen is None else int(seen.sum())
        return ReleasedTable(table.name, _ROW_NUMBER_COLUMN, [list(range(rows))])
    estimates_by_measure: dict[int, Estimates] = {}
    posterior_cache: PosteriorCache = {}

    def estimates_of(index: int) -> Estimates:
        if index not in estimates_by_measure:
            estimates_by_measure[index] = _estimate_answer(
                table.measures[index], names, groups, steps, releases, nonnegative, posterior_cache
            )
        return estimates_by_measure[index]

    values: list[ColumnValues] = []
    for column in table.columns:
        if column.kind == "key":
            index = names.index(column.name)
            values.append([key[index] for key in groups])
        elif column.kind == "cov":
            values.append(_covariance_column(table, column, steps, releases))
        elif column.kind == "factor":
            # A bar is of any of the measures, and some steps have no noise that is added: the widest of all holds.
            values.append([max(widest_interval_factor(releases[step]) for step in table.steps)] * len(groups))
        else:
            measure = estimates_of(column.place)
            values.append(measure.values if column.kind == "value" else measure.column(column.kind))
    seen = find_seen_groups(table, names, groups, steps, releases)
    if seen is not None:
        values = [list(compress(column_values, seen.tolist())) for column_values in values]
    return ReleasedTable(table.name, _table_columns(table), values)


def _resolve_groups(
    table: TableStep, steps: Sequence[ReleaseStep], releases: Mapping[int, Release]
) -> tuple[list[str], Sequence[Row]]:
    if table.known is not None:
        return list(table.known.names), table.known.rows
    if table.step is None:
        return [], ((),)
    return [key.name for key in steps[table.step].keys], releases[table.step].keys


def _covariance_column(
    table: TableStep, column: ReleaseColumn, steps: Sequence[ReleaseStep], releases: Mapping[int, Release]
) -> ColumnValues:
    first, second = table.measures[column.place], table.measures[column.other]
    assert not isinstance(first.recipe, SelectedBins | CountedValues | RankedValues | RandomizedResponses)
    assert not isinstance(second.recipe, SelectedBins | CountedValues | RankedValues | RandomizedResponses)
    cells = steps[first.step].calibrated.columns
    return list(estimate_covariance(first.recipe, second.recipe, releases[first.step], cells))


def _estimate_answer(
    answer: MeasureSource,
    names: list[str],
    groups: Sequence[Row],
    steps: Sequence[ReleaseStep],
    releases: Mapping[int, Release],
    nonnegative: bool,
    posterior_cache: PosteriorCache,
) -> Estimates:
    step, release = steps[answer.step], releases[answer.step]
    match answer.recipe:
        case SelectedBins():
            values = _align_to_groups(names, groups, step, release, _bins_to_values(answer.recipe, release))
        case CountedValues(Frequent()):
            values = _frequent_values(answer.recipe, names, groups, step, release)
        case RankedValues():
            values = _best_values(answer.recipe, names, groups, step, release)
        case CountedValues():
            values = _share_values(answer.recipe, names, groups, step, release, posterior_cache)
        case BetaPosterior() | NormalPosterior():
            cache_key = (answer.step, replace(answer.recipe, part=""))  # its columns are worked out together
            if cache_key not in posterior_cache:
                posterior_cache[cache_key] = infer_posterior(answer.recipe, release, step.calibrated.columns)
            values = list(posterior_column(answer.recipe, posterior_cache[cache_key]))
        case RandomizedResponses(axis, counts):
            answers: ColumnValues = [*(axis.values or ()), *([None] if axis.null else [])]
            values = release.cells[0].tolist() if counts else answers
        case _:
            recipe: Recipe = answer.recipe
            return estimate_measure(recipe, release, step.calibrated.columns, nonnegative, find_scaled_cells(step))
    nothing: ColumnValues = [None] * len(values)
    return Estimates(values, nothing, nothing, nothing)


# --- quantiles -------------------------------------------------------------------------------------------------------


def _align_to_groups(
    names: list[str], groups: Sequence[Row], step: ReleaseStep, release: Release, values: ColumnValues
) -> ColumnValues:
    """Values of a step's groups, in the order of the main step's."""
    order = [[key.name for key in step.keys].index(name) for name in names]
    value_by_group = {
        tuple(key[index] for index in order): value for key, value in zip(release.keys, values, strict=True)
    }
    return [value_by_group.get(key) for key in groups]


def _bins_to_values(chosen: SelectedBins, release: Release) -> ColumnValues:
    """A bin before the first is no answer: a test that was failed."""
    lower = chosen.bins.lower
    columns = [[None if n < lower else bin_to_value(n, chosen.bins) for n in cells.tolist()] for cells in release.cells]
    if chosen.container is None:
        return columns[0]
    return [list(row) for row in zip(*columns, strict=True)]


def bin_to_value(number: int, bins: Bins) -> Any:
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


def _frequent_values(
    counted: CountedValues, names: list[str], groups: Sequence[Row], step: ReleaseStep, release: Release
) -> ColumnValues:
    """The values of each group by their noisy counts, the most frequent first."""
    fields = [key.name for key in step.keys]
    order, value_index = [fields.index(name) for name in names], fields.index(VALUE_KEY)
    counts = estimate_measure(counted.recipe, release, step.calibrated.columns).values
    values_by_group: dict[Row, list[tuple[int, Any]]] = {}
    for key, count in zip(release.keys, counts, strict=True):
        if key[value_index] is None:  # listed where nothing else can be; a NULL is no value
            continue
        values_by_group.setdefault(tuple(key[p] for p in order), []).append((int(count), key[value_index]))
    for values in values_by_group.values():
        values.sort(key=lambda pair: (-pair[0], str(pair[1])))
    answers = [_shape_frequent_values(counted, values_by_group.get(key, [])) for key in groups]
    return _empty_maps_to_null(answers) if counted.asked.container == "map" else answers


def _empty_maps_to_null(values: ColumnValues) -> ColumnValues:
    """Beside others an empty map is NULL: DuckDB takes it for one of another type."""
    return [value or None for value in values] if any(values) else values


def _best_values(
    ranked: RankedValues, names: list[str], groups: Sequence[Row], step: ReleaseStep, release: Release
) -> ColumnValues:
    """The best values of each group, in their places; NULL, or none, where there is nothing to choose from."""
    fields = [key.name for key in step.keys]
    order, value_index = [fields.index(name) for name in names], fields.index(VALUE_KEY)
    values_by_group: dict[Row, dict[int, Any]] = {}
    for key, number in zip(release.keys, release.cells[0].tolist(), strict=True):
        values_by_group.setdefault(tuple(key[p] for p in order), {})[number] = key[value_index]
    best = [
        [values[number] for number in sorted(values)] for values in (values_by_group.get(key, {}) for key in groups)
    ]
    return best if ranked.asked.is_list else [values[0] if values else None for values in best]


def _share_values(
    counted: CountedValues,
    names: list[str],
    groups: Sequence[Row],
    step: ReleaseStep,
    release: Release,
    posterior_cache: PosteriorCache,
) -> ColumnValues:
    """The values of each group with one of the columns of their shares; of each grouping set from cells of its own."""
    measure = counted.asked
    assert isinstance(measure, SharesPosterior)
    fields = [key.name for key in step.keys]
    order, value_index = [fields.index(name) for name in names], fields.index(VALUE_KEY)
    shares_by_group: dict[Row, dict[Any, float | None]] = {}
    for number, recipe in enumerate(recipes_by_set(counted.recipe)):
        assert isinstance(recipe, Linear)
        rows = [
            row
            for row, key in enumerate(release.keys)
            if key[value_index] is not None and (not isinstance(counted.recipe, BySet) or key[-1] == number)
        ]
        row_groups = [tuple(release.keys[row][p] for p in order) for row in rows]
        cache_key = (step.name, measure.prior, measure.confidence, recipe, number)
        if cache_key not in posterior_cache:
            posterior_cache[cache_key] = _infer_shares(measure, recipe, rows, row_groups, step, release)
        column = getattr(posterior_cache[cache_key], measure.part).tolist()
        for row, group, share in zip(rows, row_groups, column, strict=True):
            shares_by_group.setdefault(group, {})[release.keys[row][value_index]] = (
                share if math.isfinite(share) else None
            )
    return _empty_maps_to_null([shares_by_group.get(group, {}) for group in groups])


def _infer_shares(
    measure: SharesPosterior,
    counts: Linear,
    rows: list[int],
    row_groups: list[Row],
    step: ReleaseStep,
    release: Release,
) -> ProportionPosterior:
    """Of these rows of the release, each beside the others of its group."""
    group_numbers = {group: number for number, group in enumerate(dict.fromkeys(row_groups))}
    among = np.array([group_numbers[group] for group in row_groups], np.int64)
    valued = Release(tuple(row_groups), tuple(cells[rows] for cells in release.cells), release.spec)
    concentration = float(dict(measure.prior).get("concentration", 1))
    columns = step.calibrated.columns
    return infer_proportions(counts.terms, valued, columns, among, concentration, float(measure.confidence))


def _shape_frequent_values(counted: CountedValues, values: list[tuple[int, Any]]) -> Any:
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
