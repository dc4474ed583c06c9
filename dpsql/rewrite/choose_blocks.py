"""Turn BLOCKWISE with combine => 'median' into counts of blocks per group and bin, of which one bin is chosen.

    BLOCKWISE(mad(cost), 0, 5000, combine => 'median') by k  →  blocks per (k, bin), every group and every bin listed
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.analysis.units import derive_unit_facts
from dpsql.errors import UnboundedContribution
from dpsql.plan.measures import Blockwise
from dpsql.plan.nodes import Aggregate, CountBlocks, Gather, Listed, ListedRange
from dpsql.plan.relations import Field
from dpsql.plan.stages import Bins
from dpsql.privacy.choice import Rank
from dpsql.rewrite.choose import BIN_KEY, BinSelection, max_bins_for
from dpsql.rewrite.form_blocks import blocks_of
from dpsql.rewrite.pipeline import prepare_rows
from dpsql.rewrite.policy import ContributionPolicy
from dpsql.schema.model import Resolved
from dpsql.types import BIGINT, DOUBLE

BLOCKS_CELL = "blocks"

MAX_BLOCK_BINS = 1 << 12
"""Between the bounds: a median of some hundred blocks is hardly known better."""


def bin_block_median(
    aggregate: Aggregate, measure: Blockwise, listed: Listed | None, selected: bool, resolved: Resolved, policy: ContributionPolicy
) -> BinSelection:
    """`listed` are the groups, known or from a hole that a selection fills; the aggregate has this measure alone."""
    prepared = prepare_rows(aggregate, resolved)
    (prepared_measure,) = prepared.measures
    assert isinstance(prepared_measure, Blockwise)
    names = tuple(key.name for key in prepared.keys)
    if selected and not set(names) <= derive_unit_facts(prepared.rows).determined:
        raise UnboundedContribution(
            "a privacy unit may be in any number of the groups asked for, and changes a block in each of them",
            hint="Group by keys that depend on the unit alone, or whose values are declared: BLOCKWISE has no cap.",
            span=measure.span,
        )
    steps = max_bins_for(listed, MAX_BLOCK_BINS) // 2 * 2
    part = CountBlocks(prepared.rows, names, BIN_KEY, blocks_of(prepared_measure, prepared.rows, steps, policy.rows), BLOCKS_CELL)
    bin_ = Field(BIN_KEY, BIGINT)
    factors = listed.factors if listed is not None else ()
    all_bins = Listed((*factors, ListedRange(bin_, 0, steps)))
    gather = Gather((*prepared.keys, bin_), all_bins, None, (part,))
    bins = Bins(0, steps, part.blocks.grid, DOUBLE, False, measure.lower)
    return BinSelection(gather, bins, (Rank(Fraction(1, 2)),))
