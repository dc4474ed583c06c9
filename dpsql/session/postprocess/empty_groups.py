"""Which listed groups are left out of a released table, by their noisy counts.

Privacy: a function of released cells, of the scale of their noise and of the plan alone (SOUNDNESS 11). Exact counts
are in no release, so there is nothing else that it could read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsql.compiler.compiled import Compiled, GroupCount, ReleaseStep, TableStep
from dpsql.compiler.plan.aggregate import Gather
from dpsql.compiler.plan.relations import SET_COLUMN
from dpsql.privacy.exact import Row
from dpsql.privacy.release import Release
from dpsql.session.postprocess.estimates import NoisyCounts, estimate_counts

Mask = npt.NDArray[np.bool_]


def find_seen_groups(
    table: TableStep,
    names: Sequence[str],
    groups: Sequence[Row],
    steps: Sequence[ReleaseStep],
    releases: Mapping[int, Release],
) -> Mask | None:
    """Of each group, whether it is given out; None where all are. `names` are those of the keys in `groups`."""
    if table.counted is None:
        return None
    source = table.measures[table.counted.measure]
    step, release = steps[source.step], releases[source.step]
    counts = estimate_counts(source.recipe, release, step.calibrated.columns)
    order = [[key.name for key in step.keys].index(name) for name in names]
    places = {tuple(key[index] for index in order): place for place, key in enumerate(release.keys)}
    aligned = counts.at(np.array([places[tuple(group)] for group in groups], np.intp))
    return _judge(table.counted, names, groups, aligned)


def _judge(count: GroupCount, names: Sequence[str], groups: Sequence[Row], counts: NoisyCounts) -> Mask:
    if not count.sets:
        judged = [index for index, name in enumerate(names) if name not in count.times]
        return counts.exceed_half_width([tuple(group[index] for index in judged) for group in groups])
    number = list(names).index(SET_COLUMN)
    series: list[Row] = []
    kept = np.zeros(len(groups), np.bool_)
    keys_of_set = [
        [index for index, name in enumerate(names) if name in keys and name not in count.times] for keys in count.sets
    ]
    for place, group in enumerate(groups):
        judged = keys_of_set[group[number]]
        kept[place] = not judged  # a total over everything, or over points of time alone
        series.append((group[number], *(group[index] for index in judged)))
    return _keep_totals(count, names, groups, kept | counts.exceed_half_width(series))


def _keep_totals(count: GroupCount, names: Sequence[str], groups: Sequence[Row], kept: Mask) -> Mask:
    """A total is given out with each of its parts: a part that is there would otherwise be the part of nothing."""
    number = list(names).index(SET_COLUMN)
    result = kept.copy()
    for total, keys in enumerate(count.sets):
        shared = [index for index, name in enumerate(names) if name in keys]
        parts = {part for part, finer in enumerate(count.sets) if keys < finer}
        there = {
            tuple(group[index] for index in shared)
            for group, is_kept in zip(groups, kept.tolist(), strict=True)
            if is_kept and group[number] in parts
        }
        for place, group in enumerate(groups):
            if group[number] == total and not result[place]:
                result[place] = tuple(group[index] for index in shared) in there
    return result


# --- what is told of it ----------------------------------------------------------------------------------------------


NOTHING_SELECTED = (
    "no group is shown: a key without listed values is shown where enough units have it, and none was seen to; declare"
    " values for it, ask for coarser groups, or use a larger epsilon"
)


@dataclass(frozen=True)
class HiddenGroups:
    hidden: int
    listed: int

    @property
    def notices(self) -> tuple[str, ...]:
        if not self.hidden:
            return ()
        be, counts, them = ("is", "its count", "it") if self.hidden == 1 else ("are", "their counts", "them")
        return (
            f"{self.hidden:,} of {self.listed:,} groups {be} left out: nothing but noise is seen in {counts}, as in"
            f" those of empty groups; SET empty_groups = show lists {them}",
        )


def unseen_selection_notices(compiled: Compiled, releases: Mapping[int, Release]) -> tuple[str, ...]:
    """That no group of a release was selected: an answer without rows, or a count of none, does not say why."""
    empty = [
        index
        for index in sorted({table.step for table in compiled.tables if table.step is not None} & releases.keys())
        if isinstance(plan := compiled.steps[index].calibrated.plan, Gather)
        if plan.selection is not None and not releases[index].keys
    ]
    return (NOTHING_SELECTED,) if empty else ()


def count_hidden_groups(compiled: Compiled, releases: Mapping[int, Release]) -> HiddenGroups:
    """Over all releases of a statement whose groups are judged."""
    hidden = listed = 0
    for table in compiled.tables:
        if table.counted is not None and table.step is not None and table.steps <= releases.keys():
            names = [key.name for key in compiled.steps[table.step].keys]
            seen = find_seen_groups(table, names, releases[table.step].keys, compiled.steps, releases)
            if seen is not None:
                hidden, listed = hidden + int((~seen).sum()), listed + len(seen)
    return HiddenGroups(hidden, listed)
