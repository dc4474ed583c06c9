"""The rows of randomized answers: a tally of one column in which every row is counted, NULL among the answers.

    SELECT RANDOMIZED(answer, 1) FROM people   →   places of `answer` among its values, NULL the last; rows of each

Stability: every row has a place, that of NULL if its value is none of those declared: no row is left out, and how many
there are depends on the table alone.
"""

from __future__ import annotations

from dpsql.errors import UnboundedValues
from dpsql.plan.nodes import Aggregate, Norm
from dpsql.rewrite.policy import Policy
from dpsql.rewrite.tally import MOST_VALUES, Coding, Tallied, is_unknown, tally, tally_rows
from dpsql.schema.model import Resolved


def respond_rows(aggregate: Aggregate, resolved: Resolved) -> Tallied:
    """The only key of `aggregate` is the column."""
    (key,) = aggregate.keys
    found = tally_rows(aggregate, resolved, (key.name,))
    if is_unknown(found.domains[key.name]):
        raise _no_values(aggregate)
    # Whatever the owner says of NULL, data may hold it, and a row that were left out would be missed.
    tallied = tally(found, Coding(MOST_VALUES, {}, True, every=True), Policy(1, None, Norm.L1))
    (axis,) = tallied.axes
    if axis.values is None or not axis.null:
        raise _no_values(aggregate)
    return tallied


def _no_values(aggregate: Aggregate) -> UnboundedValues:
    return UnboundedValues(
        "RANDOMIZED is for a column with declared values", hint="Declare its values in the schema.",
        span=aggregate.measures[0].span,
    )  # fmt: skip
