"""What a plan scales down, and what is said of it: which cells of a release are affected, and notices.

Privacy: all of it follows from the plan, from norms that were chosen and from the noisy histograms that they were
chosen from. Whether any unit really was scaled is an exact fact, which nothing here depends on: the same plan and the
same released histograms give the same words (docs/soundness.md 4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.compiler.compiled import ReleaseStep
from dpsql.compiler.norm_steps import DecidedDraft, format_norm
from dpsql.compiler.plan.aggregate import Aggregate, CountUnits, Distinct, Gather, Part, Sum, Weigh, cells_of
from dpsql.compiler.plan.bundles import CountBundle, CovarianceBundle, MomentBundle, VarianceBundle
from dpsql.compiler.plan.clipped_sums import ClippedSum
from dpsql.compiler.plan.estimators import BySet, Linear, Mean, Recipe, Terms, recipe_cells, recipes_by_set
from dpsql.compiler.plan.expressions import Column
from dpsql.compiler.plan.measures import (
    CountDistinctUnits,
    CountRows,
    CountValues,
    DistinctValues,
    MeanValues,
    Measure,
    PairValues,
    SumValues,
    VarianceValues,
)
from dpsql.compiler.plan.walk import measure_args, walk_exprs
from dpsql.compiler.settings import Settings
from dpsql.privacy.norm_choice import ChosenNorm
from dpsql.schema.model import Column as SchemaColumn
from dpsql.schema.model import Schema, Table, View

HEAVY_TAIL_NOTICE = "a few units may hold much more than was seen: {}"

BOUNDS_UNKNOWN = "how much declared bounds clip is unknown"
"""Values beyond them count as the bound."""

SMALL_PERCENT = 0.1
"""Shares below are not told apart."""


# --- which cells are scaled ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScaledCells:
    """Of a release's cells, those in which units may be scaled down, or left out in part; others count every row.

    `norms` were read from histograms, by cell; `sharing` are all cells that one weight of a unit is for, `beside` those
    that have the norm of a cell together with it. `row_counts` are the cells that add up to the rows of units that are
    weighed by a norm of rows. Of `unknown` cells no figure is known: their caps are declared or set, or what rows that
    weigh less would have added is not seen.
    """

    norms: Mapping[str, ChosenNorm] = field(default_factory=dict)
    sharing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    row_counts: Mapping[frozenset[str], ChosenNorm] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cells: frozenset[str] = frozenset()  # all of the plan; a release that is derived from another has that one's

    def is_unknown(self, cell: str) -> bool:
        return cell in self.unknown or (cell not in self.cells and bool(self.unknown))

    def is_scaled(self, cell: str) -> bool:
        return cell in self.norms or self.is_unknown(cell)

    def row_norm(self, terms: Terms) -> ChosenNorm | None:
        """The norm of rows, where these terms count them."""
        equal = len({coefficient for _, coefficient in terms}) == 1
        return self.row_counts.get(frozenset(cell for cell, _ in terms)) if equal else None

    def lost_beside(self, cell: str) -> float:
        """What a cell loses, about, since other cells have its units' weights too: of each unit at most its norm.

        Units that are beyond both norms are scaled down once: what the cell's own norm takes away is not added again.
        """
        own = max(0.0, self.norms[cell].scaled)
        others = (other for other in self.sharing.get(cell, ()) if other != cell and other in self.norms)
        return float(self.norms[cell].norm) * sum(max(0.0, self.norms[other].scaled - own) for other in others)


def find_scaled_cells(step: ReleaseStep) -> ScaledCells:
    plan = step.calibrated.plan
    return scaled_cells_of(plan, dict(step.norms)) if isinstance(plan, Gather) else ScaledCells()


def scaled_cells_of(gather: Gather, chosen: Mapping[str, ChosenNorm]) -> ScaledCells:
    norms: dict[str, ChosenNorm] = {}
    sharing: dict[str, tuple[str, ...]] = {}
    beside: dict[str, tuple[str, ...]] = {}
    row_counts: dict[frozenset[str], ChosenNorm] = {}
    unknown: set[str] = set()
    for part in gather.parts:
        cells = cells_of(part)
        if isinstance(part, ClippedSum):
            norms |= {cell: chosen[cell] for cell in cells if cell in chosen}
            sharing |= dict.fromkeys(cells, cells)
            beside |= {bundle[0].cell: tuple(cell.cell for cell in bundle[1:]) for bundle in part.bundles}
        elif _is_capped(part):
            norm = chosen.get(cells[0])
            if norm is not None and isinstance(part, CountUnits):
                norms[cells[0]] = norm
                continue
            unknown |= set(cells)
            if norm is not None:
                row_counts |= dict.fromkeys(_row_counts(part), norm)
    every = frozenset(cell for part in gather.parts for cell in cells_of(part))
    return ScaledCells(norms, sharing, row_counts, frozenset(unknown), beside, every)


def _is_capped(part: Part) -> bool:
    """Whether a unit counts like so many rows, groups or values at most."""
    if isinstance(part, CountUnits):
        return part.limit is not None
    if isinstance(part, Sum) and isinstance(part.input, Distinct):
        return part.input.limit is not None
    return isinstance(part, Sum) and isinstance(part.input, Weigh)


def _row_counts(part: Part) -> Iterator[frozenset[str]]:
    """The cells whose sum counts the rows of a part."""
    for bundle in part.bundles if isinstance(part, Sum) else ():
        match bundle:
            case CountBundle():
                yield frozenset({bundle.cell})
            case MomentBundle():
                yield frozenset({bundle.above, bundle.below})
                yield frozenset(bundle.cells)
            case VarianceBundle():
                yield frozenset({bundle.rest, bundle.square})
            case CovarianceBundle():
                yield frozenset(bundle.names[:2])


# --- what is said with an answer -------------------------------------------------------------------------------------


def clipping_notices(decided: DecidedDraft) -> list[str]:
    """By about how much each answer was scaled down. Nothing here says whether any unit really was."""
    if decided.undecided or not decided.chosen:
        return []
    chosen, notices = dict(decided.chosen), list[str]()
    if decided.draft.rewritten is None or decided.draft.scored is not None:
        return [_cap_notice(norm) for norm in chosen.values()] + _heavy_tail_notices(chosen, False)
    rewritten = decided.draft.rewritten
    scaled = scaled_cells_of(rewritten.gather, chosen)
    for measure, recipe in zip(decided.draft.aggregate.measures, rewritten.recipes, strict=True):
        notices += _measure_notices(measure_label(measure), recipe, scaled)
    totals = any(isinstance(part, Linear) for recipe in rewritten.recipes for part in recipes_by_set(recipe))
    return notices + _heavy_tail_notices(chosen, totals)


def _measure_notices(name: str, recipe: Recipe, scaled: ScaledCells) -> list[str]:
    if isinstance(recipe, BySet):
        return _set_notices(name, recipe, scaled)
    norms = _norms_of_sum(recipe, scaled) if isinstance(recipe, Linear) else []
    if norms:
        return [_sum_notice(name, norms)]
    weighed = {cell for cells in scaled.row_counts for cell in cells}
    affected = recipe_cells(recipe) & (scaled.norms.keys() | weighed)
    if not affected:
        return []
    if not isinstance(recipe, Mean) or affected & weighed:
        return [f"in {name}, units that contribute much count less; how much that changes it is not known"]
    return [f"in {name}, units that contribute much count less"]


def _set_notices(name: str, recipe: BySet, scaled: ScaledCells) -> list[str]:
    """One for all grouping sets: of the one that lost the largest part."""
    sums = [_norms_of_sum(part, scaled) for part in recipe.recipes if isinstance(part, Linear)]
    scaled_sums = [norms for norms in sums if norms]
    if scaled_sums:
        return [_sum_notice(name, max(scaled_sums, key=_clipped_share))]
    return list(dict.fromkeys(notice for part in recipe.recipes for notice in _measure_notices(name, part, scaled)))


def _norms_of_sum(recipe: Linear, scaled: ScaledCells) -> list[tuple[ChosenNorm, float]]:
    """The norms of a sum's cells, each with its coefficient."""
    rows = scaled.row_norm(recipe.terms)
    if rows is not None:
        return [(rows, 1.0)]
    return [(scaled.norms[cell], abs(float(part))) for cell, part in recipe.terms if cell in scaled.norms]


def _heavy_tail_notices(chosen: Mapping[str, ChosenNorm], totals: bool) -> list[str]:
    consequence = "totals may be too low" if totals else "answers may be further off"
    return [HEAVY_TAIL_NOTICE.format(consequence)] if any(norm.heavy_tail for norm in chosen.values()) else []


def _clipped_share(norms: Sequence[tuple[ChosenNorm, float]]) -> float:
    """Of the sum of some cells, each times a number: about a centre, values and their count are added up apart."""
    clipped = sum(weight * max(0.0, norm.clipped) for norm, weight in norms)
    kept = sum(weight * norm.kept for norm, weight in norms)
    return clipped / (clipped + kept) if clipped else 0.0


def _sum_notice(name: str, norms: Sequence[tuple[ChosenNorm, float]]) -> str:
    percent = 100 * _clipped_share(norms)
    about = f"less than {SMALL_PERCENT} %" if percent < SMALL_PERCENT else f"about {percent:.1f} %"
    beyond = f" (units beyond {format_norm(norms[0][0].norm)} each)" if len(norms) == 1 else ""
    return f"{about} of {name} was scaled down{beyond}"


def _cap_notice(norm: ChosenNorm) -> str:
    return f"a unit counts like at most {format_norm(Fraction(math.ceil(norm.norm)))} rows"


def measure_label(measure: Measure) -> str:
    """The aggregate as it was written, about."""
    if isinstance(measure, CountRows):
        return "COUNT(*)"
    if isinstance(measure, CountValues) and isinstance(measure.arg, Column) and measure.arg.origin is not None:
        return f"COUNT({measure.arg.origin.rpartition('.')[2]})"
    if isinstance(measure, CountValues):
        return "COUNT"
    if isinstance(measure, CountDistinctUnits) or (isinstance(measure, DistinctValues) and measure.function == "count"):
        return "COUNT(DISTINCT …)"
    if isinstance(measure, SumValues):
        return f"SUM({measure.text})"
    if isinstance(measure, MeanValues):
        return f"AVG({measure.text})"
    if isinstance(measure, VarianceValues):
        return f"{'STDDEV' if measure.root else 'VAR'}_{'SAMP' if measure.sample else 'POP'}({measure.text})"
    return measure.function.value.upper() if isinstance(measure, PairValues) else "an answer"


# --- what is not known -----------------------------------------------------------------------------------------------


def unknown_clipping_notices(decided: DecidedDraft, settings: Settings, schema: Schema) -> list[str]:
    """Where the plan may change what units or values count for, and no histogram tells by how much.

    They are for the first answer of a session that they concern, and for EXPLAIN.
    """
    draft, notices = decided.draft, list[str]()
    gather = draft.choice.gather if draft.choice is not None else draft.rewritten.gather if draft.rewritten else None
    parts = () if gather is None else gather.parts
    caps = {_declared_cap_name(part, settings) for part in parts if _is_declared_cap(part)}
    notices += [f"how much {cap} scales down is unknown" for cap in sorted(cap for cap in caps if cap is not None)]
    if draft.rewritten is not None and _reads_bounded_values(draft.aggregate, schema):
        notices.append(BOUNDS_UNKNOWN)
    return notices


def _is_declared_cap(part: Part) -> bool:
    if not _is_capped(part):
        return False
    capped = part if isinstance(part, CountUnits) else part.input if isinstance(part, Sum) else None
    return not getattr(capped, "automatic", False)


def _declared_cap_name(part: Part, settings: Settings) -> str | None:
    """The setting that a cap comes from.

    None where nothing is declared: then the cap is what a unit can have at most, and no unit is scaled down by it.
    """
    by_groups = settings.rows is None
    if isinstance(part, Sum) and isinstance(part.input, Weigh) and settings.groups is not None:
        by_groups = part.input.rows != settings.rows  # a row is what a unit adds to one group
    if isinstance(part, CountUnits) and settings.groups is not None:
        by_groups = part.limit != settings.rows
    name, cap = ("groups", settings.groups) if by_groups else ("rows", settings.rows)
    return None if cap is None else f"contributions.{name} = {cap:,}"


def declared_caps(step: ReleaseStep, settings: Settings) -> tuple[str, ...]:
    """What is declared or set, and limits what one unit adds to a release, whatever norms are chosen."""
    plan = step.calibrated.plan
    if not isinstance(plan, Gather):
        return ()
    caps: list[str] = []
    for part in plan.parts:
        for cell in part.cells if isinstance(part, ClippedSum) else ():
            if cell.bounds is not None and isinstance(cell.arg, Column):
                name = (cell.arg.origin or "a value").rpartition(".")[2]
                caps.append(f"{name} of a row counts within {' and '.join(map(format_norm, cell.bounds))}")
    if settings.rows is not None:
        caps.append(f"a unit counts like at most {settings.rows:,} rows")
    limits = [part.limit for part in plan.parts if isinstance(part, CountUnits) and _is_declared_cap(part)]
    caps += [f"a unit is counted in at most {n:,} groups" for n in limits if n is not None and n != settings.rows]
    if settings.groups is not None and plan.selection is not None:
        caps.append(f"a unit makes at most {settings.groups:,} groups appear")
    return tuple(dict.fromkeys(caps))


def describe_caps(table: Table | View, settings: Settings) -> tuple[str, ...]:
    """Which caps hold for statements about a table, for DESCRIBE: those of the session, never beyond the owner's."""
    if isinstance(table, Table) and table.public:
        return ()
    rows = "is chosen for each answer" if settings.rows is None else f"is {settings.rows:,}"
    groups = "is chosen for each answer" if settings.groups is None else f"is {settings.groups:,}"
    lines = [
        f"contributions.rows {rows}: a unit with more is scaled down",
        f"contributions.groups {groups}: a unit in more is left out of some of them",
    ]
    if any(is_bounded(column) for column in table.columns):
        lines.append("values beyond their bounds count as the bound")
    return tuple(lines)


def is_bounded(column: SchemaColumn) -> bool:
    return column.domain.is_bounded and not column.domain.values


def _reads_bounded_values(aggregate: Aggregate, schema: Schema) -> bool:
    summed = [m for m in aggregate.measures if isinstance(m, SumValues | MeanValues | VarianceValues | PairValues)]
    columns = (
        part for measure in summed for arg in measure_args(measure) for part in walk_exprs(arg)
        if isinstance(part, Column) and part.origin is not None
    )  # fmt: skip
    return any(_has_declared_bounds(column.origin or "", schema) for column in columns)


def _has_declared_bounds(origin: str, schema: Schema) -> bool:
    table, _, name = origin.rpartition(".")
    declared = next((t for t in schema.tables if t.name == table), None)
    column = None if declared is None else declared.column(name)
    return column is not None and is_bounded(column)
