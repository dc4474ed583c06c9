"""The rows of randomized answers: a tally of one column in which every row is counted, NULL among the answers.

    SELECT RANDOMIZED(answer, 1) FROM people   →   places of `answer` among its values, NULL the last; rows of each

Stability: every row has a place, that of NULL if its value is none of those declared: no row is left out, and how many
there are depends on the table alone.
"""

from __future__ import annotations

from dpsql.errors import UnboundedValues
from dpsql.plan.nodes import Aggregate, Norm
from dpsql.rewrite.policy import ContributionPolicy
from dpsql.rewrite.tally import MAX_VALUES, ColumnCoding, CodedRows, has_no_public_values, code_weighted_rows, prepare_codable_rows
from dpsql.schema.model import Resolved


def prepare_randomized_rows(aggregate: Aggregate, resolved: Resolved) -> CodedRows:
    """The only key of `aggregate` is the column."""
    (key,) = aggregate.keys
    codable = prepare_codable_rows(aggregate, resolved, (key.name,))
    if has_no_public_values(codable.domains[key.name]):
        raise _randomized_values_error(aggregate)
    # Whatever the owner says of NULL, data may hold it, and a row that were left out would be missed.
    coded = code_weighted_rows(codable, ColumnCoding(MAX_VALUES, {}, True, every=True), ContributionPolicy(1, None, Norm.L1))
    (axis,) = coded.axes
    if axis.values is None or not axis.null:
        raise _randomized_values_error(aggregate)
    return coded


def _randomized_values_error(aggregate: Aggregate) -> UnboundedValues:
    return UnboundedValues(
        "RANDOMIZED is for a column with declared values", hint="Declare its values in the schema.",
        span=aggregate.measures[0].span,
    )  # fmt: skip
