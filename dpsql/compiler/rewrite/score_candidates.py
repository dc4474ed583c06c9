"""Turn the best values of a column, and draws from a posterior, into cells that scores are made of.

    PRIVATE_ARGMAX(ward, SUM(cost)) by k    →  the sum of cost per (k, ward): one of a group's wards will be chosen
    POSTERIOR_SAMPLE(flag) by k             →  the weights of rows that are true and false, per k

Candidates are a key like any other: listed, or selected by a release of their own and then listed by what it gave.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpsql.compiler.analysis.domains import derive_domains, domain_of
from dpsql.compiler.plan.aggregate import Aggregate, Gather, Listed, cells_of
from dpsql.compiler.plan.bundles import MomentBundle
from dpsql.compiler.plan.estimators import Linear
from dpsql.compiler.plan.expressions import Expr, IsNull, Not, Quantise
from dpsql.compiler.plan.measures import Best, CountRows, Frequent, Measure, Posterior, SharesPosterior
from dpsql.compiler.plan.relations import Filter, Named
from dpsql.compiler.plan.steps import VALUE_KEY, Bins, ReleaseColumn
from dpsql.compiler.rewrite.bound_contributions import weigh_units
from dpsql.compiler.rewrite.form_bundles import require_flag
from dpsql.compiler.rewrite.release_plan import ReleasePlan, RewrittenPlan, RuleContext
from dpsql.errors import InternalError, InvalidParameter
from dpsql.privacy.score_selection import SHARE_STEPS
from dpsql.types import DOUBLE

_ONE = Fraction(1)


def count_by_value(aggregate: Aggregate, measure: Frequent | SharesPosterior) -> Aggregate:
    """How often each value occurs in each group."""
    return _aggregate_by_value(aggregate, measure.arg, CountRows())


def score_by_value(aggregate: Aggregate, measure: Best) -> Aggregate:
    """The values of each group that the best are chosen from, with what they are compared by."""
    return _aggregate_by_value(aggregate, measure.arg, measure.score)


def _aggregate_by_value(aggregate: Aggregate, arg: Expr, measure: Measure) -> Aggregate:
    rows = Filter(aggregate.input, Not(IsNull(arg)))
    sets = tuple(names | {VALUE_KEY} for names in aggregate.sets)
    return Aggregate(rows, (*aggregate.keys, Named(VALUE_KEY, arg)), (measure,), sets)


def release_key_columns(gather: Gather) -> tuple[ReleaseColumn, ...]:
    """The keys of a release as post-processing reads them."""
    return tuple(ReleaseColumn(key.name, key.type, "key", index) for index, key in enumerate(gather.keys))


def share_bins_of(measure: Posterior) -> Bins:
    """What a draw means: a share in thousandths."""
    return Bins(measure.first, SHARE_STEPS - measure.first, Fraction(1, SHARE_STEPS), DOUBLE, discrete=False)


def rank_candidates(rewritten: RewrittenPlan, measure: Best, listed: Listed | None) -> RewrittenPlan:
    """One cell for each candidate, that grows with the score; `listed` are the candidates that were selected."""
    gather = rewritten.gather
    if listed is not None:
        gather = replace(gather, listed=listed, selection=None)
    cells = [cell for part in gather.all_parts for cell in cells_of(part)]
    (recipe,) = rewritten.recipes
    if not isinstance(recipe, Linear) or len(cells) != 1:
        raise InternalError("a score is one cell")
    if [cell for cell, factor in recipe.terms if factor > 0] != cells:
        raise InvalidParameter(
            "the values that are summed are all the same, and not above 0",
            hint="Compare by COUNT(*), or by a sum whose values differ.",
            span=measure.span,
        )
    norms = tuple(request for request in rewritten.norms if request.slot in cells)  # not that of the selection
    return replace(rewritten, gather=gather, norms=norms)


def weigh_truth_values(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    """The weights of rows that are true and that are false; the posterior is the only measure."""
    (measure,) = plan.measures
    assert isinstance(measure, Posterior)
    domain = domain_of(measure.arg, derive_domains(plan.rows, context.policy.rows))
    require_flag("POSTERIOR_SAMPLE", domain.lower, domain.upper, measure.text, measure.span)
    bundle = MomentBundle("trues", "falses", None, Quantise(measure.arg, _ONE, 0, 1))
    part = weigh_units(plan.rows, plan.key_names, (bundle,), context.policy)
    return replace(plan, listed=context.listed, parts=(part,))
