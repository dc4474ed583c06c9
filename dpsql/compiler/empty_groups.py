"""Which listed groups may be left out of an answer, and the noisy count that decides it. Pure (law 6).

A list of groups is public: it says nothing about rows, so it also holds groups that no row is in. SQL does not have
these. A group whose noisy count is not above half of the width of its 95 % interval is taken for one of them:

    SELECT page, SUM(n) … GROUP BY page   →  a count of rows per page beside the sum; pages that it does not see go

Privacy: what is left out is worked out from noisy counts that are charged like any other cell, from their noise and
from the plan (`session/postprocess/empty_groups.py`); so it is post-processing, and neither the price nor the columns
of an answer depend on it.

The count is the statement's own wherever that has one: COUNT(*), COUNT(DISTINCT unit), the count within an average.
Otherwise it joins the cells of a sum, where it widens no noise; or it is a release of its own, which has a tenth of the
loss. Of that one each unit is one row at most: with a larger cap a unit would add no more to a count than to its noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.compiler.analysis.canonical import canonical_measure_text
from dpsql.compiler.analysis.sensitivity import Neighboring, derive_sensitivity_bounds
from dpsql.compiler.analysis.unmatched_rows import keeps_unmatched_groups
from dpsql.compiler.calibrate.calibrate import cell_grids
from dpsql.compiler.plan.aggregate import Aggregate, Gather
from dpsql.compiler.plan.clipped_sums import Norm
from dpsql.compiler.plan.estimators import Recipe, Terms, map_terms
from dpsql.compiler.plan.expressions import Column, Expr
from dpsql.compiler.plan.measures import Best, CountDistinctUnits, CountRows, Posterior
from dpsql.compiler.plan.relations import Project, Rows
from dpsql.compiler.plan.walk import columns_of, has_joins, walk_exprs, walk_rows
from dpsql.compiler.rewrite.pipeline import rewrite_plan
from dpsql.compiler.rewrite.release_plan import RewrittenPlan, RuleContext
from dpsql.compiler.settings import EmptyGroups, Settings
from dpsql.compiler.split.blocks import BoundRelease
from dpsql.types import Kind

COUNT_FORM = ("a unit counts for one row at most",)
"""What distinguishes a count of its own from COUNT(*), in the key of a stored release."""

MAX_WIDENING = Fraction(51, 50)
"""How much wider a statement's own noise may become by a count that joins its cells; a tenth of the loss is 1.05."""


def may_leave_out(release: BoundRelease, aggregate: Aggregate, settings: Settings) -> bool:
    """Whether a release is a grouping that SQL has no empty groups in, and that nothing else leaves them out of."""
    return (
        settings.empty_groups is EmptyGroups.HIDE
        and bool(aggregate.keys)
        and any(not isinstance(measure, Best | Posterior) for measure in aggregate.measures)
        and not release.lookup
        and not release.asks_keys
        and not (has_joins(release.aggregate.input) and keeps_unmatched_groups(release.aggregate))
    )


def find_times(aggregate: Aggregate, gather: Gather, shows_rows: Callable[[int | None], bool]) -> frozenset[str] | None:
    """The keys along which a chart keeps its points; None where no group of this release is judged.

    A key is one where it is a moment, or worked out from moments alone, such as a month. Points are kept where the
    statement shows the release's rows, of at most so many groups, as they are (`shows_rows`); what is counted, joined
    or ranked above them are the groups that SQL has.
    """
    if gather.listed is None:
        return None
    times = frozenset(key.name for key in aggregate.keys if _is_of_times(key.expr, aggregate.input))
    if times and not shows_rows(None if gather.selection else gather.listed.count):
        times = frozenset()
    listed = {key.name for key in gather.listed.keys if key.name in {named.name for named in aggregate.keys}}
    judged = listed - times if not aggregate.sets else frozenset().union(*aggregate.sets) - times
    return times if judged else None


def _is_of_times(expr: Expr, rows: Rows) -> bool:
    if _is_moment(expr):
        return True
    columns = [part for part in walk_exprs(expr) if isinstance(part, Column)]
    made = {named.name: named.expr for node in walk_rows(rows) if isinstance(node, Project) for named in node.columns}

    def is_of_times(column: Column) -> bool:
        below = made.get(column.name)
        if below is None or column.name in columns_of(below):
            return _is_moment(column)
        return _is_of_times(below, rows)

    return bool(columns) and all(map(is_of_times, columns))


def _is_moment(expr: Expr) -> bool:
    return expr.type.is_time or expr.type.kind is Kind.TIME


# --- the count -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CountedPlan:
    """A release's linear measures and a count of rows, which is at `place`; `same`: its cells are those without it."""

    aggregate: Aggregate
    rewritten: RewrittenPlan
    place: int
    same: bool = False


def find_asked_count(aggregate: Aggregate) -> int | None:
    """The place of a measure that is 0 in empty groups and in no other."""
    places = [
        place
        for place, measure in enumerate(aggregate.measures)
        if isinstance(measure, CountRows) or measure == CountDistinctUnits()
    ]
    return min(places, key=lambda place: not isinstance(aggregate.measures[place], CountRows), default=None)


def count_beside(
    main: Aggregate, rewritten: RewrittenPlan, context: RuleContext, relation: Neighboring
) -> CountedPlan | None:
    """A count that costs the release nothing; None where there is no such count."""
    if not main.measures:
        return None
    measures = tuple(sorted((*main.measures, CountRows()), key=canonical_measure_text))
    place = measures.index(CountRows())
    counted = replace(main, measures=measures)
    joined = rewrite_plan(counted, context)
    if [new for index, new in enumerate(measures) if index != place] != list(main.measures):
        return None
    if joined.gather == rewritten.gather:
        return CountedPlan(counted, joined, place, same=True)
    asked = [recipe for index, recipe in enumerate(joined.recipes) if index != place]
    norm = context.policy.norm
    before = _noise_sizes(rewritten.recipes, rewritten.gather, relation, norm)
    after = _noise_sizes(asked, joined.gather, relation, norm)
    if len(before) != len(after) or any(new > MAX_WIDENING**2 * old for old, new in zip(before, after, strict=True)):
        return None
    return CountedPlan(counted, joined, place)


def _noise_sizes(recipes: Iterable[Recipe], gather: Gather, relation: Neighboring, norm: Norm) -> list[Fraction]:
    """The squares of how wide the noise of all sums is that recipes read, for a loss of 1 that their cells share."""
    claims = derive_sensitivity_bounds(gather, relation)
    total, grids, squares = sum(claim.weight for claim in claims), cell_grids(gather), dict[str, Fraction]()
    for claim in claims:
        sensitivity, part = claim.sensitivity, Fraction(total, claim.weight)
        size = sensitivity.l2_squared * part if norm is Norm.L2 else Fraction(sensitivity.l1) ** 2 * part**2
        squares |= {cell: size * grids[cell] ** 2 for cell in claim.cells}
    return [
        sum((coefficient**2 * squares.get(cell, Fraction(0)) for cell, coefficient in terms), Fraction(0))
        for recipe in recipes
        for terms in _terms_of(recipe)
    ]


def _terms_of(recipe: Recipe) -> Iterator[Terms]:
    read: list[Terms] = []

    def note(terms: Terms) -> Terms:
        read.append(terms)
        return terms

    map_terms(recipe, note)
    yield from read


def count_alone(aggregate: Aggregate, context: RuleContext) -> CountedPlan:
    """A release of the count alone. It says nothing of its own: nobody sees its figures."""
    counted = replace(aggregate, measures=(CountRows(),))
    policy = replace(context.policy, rows=1, own_norms=False)
    rewritten = rewrite_plan(counted, replace(context, policy=policy))
    return CountedPlan(counted, replace(rewritten, notices=()), 0)
