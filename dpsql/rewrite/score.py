"""Turn the best values of a column, and draws from a posterior, into cells that scores are made of.

    PRIVATE_ARGMAX(ward, SUM(cost)) by k    →  the sum of cost per (k, ward): one of a group's wards will be chosen
    POSTERIOR_SAMPLE(flag) by k             →  the weights of rows that are true and false, per k

Candidates are a key like any other: listed, or selected by a release of their own and then listed by what it gave.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpsql.analysis.domains import node_domains
from dpsql.analysis.values import domain_of
from dpsql.errors import InternalError, InvalidParameter
from dpsql.plan.bundles import MomentBundle
from dpsql.plan.expr import Expr, IsNull, Not, Quantise
from dpsql.plan.measures import Best, CountRows, Frequent, Measure, Posterior, SharesPosterior
from dpsql.plan.nodes import Aggregate, Gather, Listed, cells_of
from dpsql.plan.recipes import Linear
from dpsql.plan.relations import Filter, Named
from dpsql.plan.stages import VALUE, Bins, ReleaseColumn
from dpsql.privacy.scores import STEPS
from dpsql.rewrite.need_flag import need_flag
from dpsql.rewrite.pipeline import Rewritten, prepare
from dpsql.rewrite.policy import Policy
from dpsql.rewrite.weigh_units import weigh_units
from dpsql.schema.model import Resolved
from dpsql.types import DOUBLE

_ONE = Fraction(1)


def counts(asked: Aggregate, measure: Frequent | SharesPosterior) -> Aggregate:
    """How often each value occurs in each group."""
    return _by_value(asked, measure.arg, CountRows())


def candidates(asked: Aggregate, measure: Best) -> Aggregate:
    """The values of each group that the best are chosen from, with what they are compared by."""
    return _by_value(asked, measure.arg, measure.score)


def _by_value(asked: Aggregate, arg: Expr, measure: Measure) -> Aggregate:
    rows = Filter(asked.input, Not(IsNull(arg)))
    sets = tuple(names | {VALUE} for names in asked.sets)
    return Aggregate(rows, (*asked.keys, Named(VALUE, arg)), (measure,), sets)


def key_columns(gather: Gather) -> tuple[ReleaseColumn, ...]:
    """The keys of a release as post-processing reads them."""
    return tuple(ReleaseColumn(key.name, key.type, "key", place) for place, key in enumerate(gather.keys))


def shares_of(measure: Posterior) -> Bins:
    """What a draw means: a share in thousandths."""
    return Bins(measure.first, STEPS - measure.first, Fraction(1, STEPS), DOUBLE, discrete=False)


def ranked(rewritten: Rewritten, measure: Best, listed: Listed | None) -> Rewritten:
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
    return replace(rewritten, gather=gather)


def weigh_truth(asked: Aggregate, listed: Listed | None, resolved: Resolved, policy: Policy) -> Rewritten:
    """`asked` has the posterior alone; `listed` are its groups, known or from a hole."""
    prepared = prepare(asked, resolved)
    (measure,) = prepared.measures
    assert isinstance(measure, Posterior)
    domain = domain_of(measure.arg, node_domains(prepared.rows, policy.rows))
    need_flag("POSTERIOR_SAMPLE", domain.lower, domain.upper, measure.text, measure.span)
    bundle = MomentBundle("trues", "falses", None, Quantise(measure.arg, _ONE, 0, 1))
    part = weigh_units(prepared.rows, tuple(key.name for key in prepared.keys), (bundle,), policy)
    return Rewritten(Gather(prepared.keys, listed, None, (part,)), ())
