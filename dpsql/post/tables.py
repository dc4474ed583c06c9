"""A release as post-processing reads it: keys, answers and their errors as columns."""

from __future__ import annotations

from dpsql.compile import ReleaseStep
from dpsql.post.estimates import Estimates, estimate
from dpsql.post.sandbox import ReleasedTable
from dpsql.privacy.release import Release
from dpsql.types import BIGINT, Type

_NO_COLUMNS: tuple[tuple[str, Type], ...] = (("_row", BIGINT),)
"""COUNT of groups, or a constant per group: only the number of rows matters."""


def empty_table(step: ReleaseStep) -> ReleasedTable:
    """The columns alone, for describing a statement before anything is charged."""
    columns = tuple((column.name, column.type) for column in step.columns) or _NO_COLUMNS
    return ReleasedTable(step.name, columns, [[] for _ in columns])


def released_table(step: ReleaseStep, release: Release, nonnegative: bool) -> ReleasedTable:
    if not step.columns:
        return ReleasedTable(step.name, _NO_COLUMNS, [list(range(len(release.keys)))])
    keys = {key.name: place for place, key in enumerate(step.keys)}
    cells = step.calibrated.columns
    measures = sorted({column.place for column in step.columns if column.kind != "key"})
    estimates = {place: estimate(step.recipes[place], release, cells, nonnegative) for place in measures}
    values: list[list[object]] = []
    for column in step.columns:
        if column.kind == "key":
            place = keys[column.name]
            values.append([key[place] for key in release.keys])
        else:
            values.append(_part(estimates[column.place], column.kind))
    return ReleasedTable(step.name, tuple((column.name, column.type) for column in step.columns), values)


def _part(found: Estimates, kind: str) -> list[object]:
    parts = {"value": found.values, "stderr": found.stderr, "low": found.low, "high": found.high}
    return parts[kind]
