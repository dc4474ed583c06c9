"""A cap of rows that nobody declared, for what is no cell of an answer: a study of weighted rows, and the questions to
an interactive mechanism.

A histogram of units by their rows chooses it, like the norms of sums (`norm_steps`): a release of its own, charged, run
and stored before what it is for. It counts the rows before they are coded, so that one histogram serves every study and
every COUNT of the same rows; units only have fewer rows in what is made of them.

Privacy: the cap is a function of a released histogram, of the share of the loss and of the schema. The rows are weighed
to it whatever it is (`bound_contributions`), so any cap is sound (docs/soundness.md 4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.compiler.analysis.sensitivity import neighboring_of
from dpsql.compiler.calibrate.calibrate import LossShare, scale_share, shares_beside_histograms
from dpsql.compiler.compiled import Compiled, NormStep
from dpsql.compiler.norm_steps import KnownNorms, decide_norms, format_norm
from dpsql.compiler.plan.aggregate import Aggregate, Gather, Sum, Weigh
from dpsql.compiler.plan.bundles import CountBundle
from dpsql.compiler.plan.clipped_sums import ClippedSum, Norm
from dpsql.compiler.plan.relations import Project, Rows
from dpsql.compiler.planners import StepDraft
from dpsql.compiler.rewrite.automatic_norms import UNKNOWN_GROUPS, find_norm_requests
from dpsql.compiler.rewrite.bound_contributions import ContributionPolicy, weigh_units
from dpsql.compiler.rewrite.form_bundles import ROWS_CELL
from dpsql.compiler.rewrite.release_plan import RewrittenPlan
from dpsql.privacy.norm_choice import ChosenNorm
from dpsql.schema.model import Resolved


@dataclass(frozen=True)
class RowCap:
    """How many rows one unit may count for: a placeholder while it is `undecided`, None where the plan proves it.

    `left` is what the choice leaves of the loss: the same whether or not its histogram is stored already. `key` tells
    apart what was made with other caps, or with caps from other histograms.
    """

    rows: int | None
    left: LossShare
    spent: Fraction = Fraction(0)  # the part of the loss that the choice has
    steps: tuple[NormStep, ...] = ()
    chosen: ChosenNorm | None = None
    undecided: bool = False
    key: str = ""

    @property
    def notices(self) -> tuple[str, ...]:
        """By about how much rows were scaled down. Nothing here says whether any unit really was."""
        if self.chosen is None:
            return ()
        percent = 100 * self.chosen.clipped_share
        about = "less than 0.1 %" if percent < 0.1 else f"about {percent:.1f} %"
        cap = f"a unit counts like at most {format_norm(Fraction(self.rows or 1))} rows"
        return (f"{cap}, and {about} of all rows was scaled down for that",)


def choose_row_cap(
    name: str, rows: Rows, share: LossShare, epsilon: Fraction, delta: Fraction, resolved: Resolved, known: KnownNorms
) -> RowCap:
    """The cap for these rows, from its histogram if that is `known`; epsilon and delta are of the whole statement."""
    units = resolved.schema.privacy.units
    bundles = (CountBundle(ROWS_CELL, None),)
    part = weigh_units(Project(rows, ()), (), bundles, ContributionPolicy(None, None, Norm.L1, True, units))
    if not isinstance(part.input, Weigh):
        return RowCap(None, share)
    gather = Gather((), None, None, (part,))
    # What is made of the rows is more than one number, so that each loses a part of what is scaled down.
    norms = tuple(replace(norm, groups=UNKNOWN_GROUPS) for norm in find_norm_requests(gather, rows, units))
    draft = StepDraft(name, "", Aggregate(rows, (), ()), RewrittenPlan(gather, (), norms=norms), None, (), ())
    relation = neighboring_of(resolved)
    (decided,), steps, part_taken = decide_norms([draft], (share,), relation, epsilon, delta, resolved, known)
    spent = max(decided.spent.values())
    assert decided.draft.rewritten is not None
    (capped,) = decided.draft.rewritten.gather.parts
    assert isinstance(capped, Sum) and isinstance(capped.input, Weigh)
    chosen = next((norm for _, norm in decided.chosen), None)
    (whole,) = shares_beside_histograms((share,), epsilon, delta, part_taken)
    left = scale_share(whole, 1 - spent)
    return RowCap(capped.input.rows, left, spent, steps, chosen, decided.undecided, decided.draft.plan_hash)


def rows_of_question(compiled: Compiled) -> Rows | None:
    """The rows that the only number of a statement is worked out from, where its norm is not chosen."""
    if len(compiled.steps) != 1 or len(compiled.steps[0].calibrated.gather.parts) != 1:
        return None
    (part,) = compiled.steps[0].calibrated.gather.parts
    rows = part.input.input if isinstance(part, Sum) and isinstance(part.input, Weigh) else part.input
    if not isinstance(part, ClippedSum | Sum) or not isinstance(rows, Project):
        return None
    return rows.input  # below it are the columns that the number reads
