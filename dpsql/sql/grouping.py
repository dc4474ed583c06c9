"""GROUP BY with several grouping sets: ROLLUP, CUBE, GROUPING SETS, and their products."""

from __future__ import annotations

from itertools import combinations, product

from sqlglot import exp

from dpsql.errors import LimitExceeded
from dpsql.sql.dialect import refuse_other_args, span_of

MAX_GROUPING_SETS = 64
"""Every row counts once in each set, so more of them would drown every answer."""

GroupingSet = tuple[exp.Expr, ...]


def expand_grouping_sets(group: exp.Group) -> list[GroupingSet] | None:
    """The sets of keys that are grouped by, each in order; None for a plain list of keys."""
    parts = group.expressions
    if not any(isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets) for part in parts):
        return None
    choices: list[list[GroupingSet]] = []
    count = 1
    for part in parts:
        choices.append(_expand_grouping_part(part))
        count *= len(choices[-1])
        if count > MAX_GROUPING_SETS:
            raise LimitExceeded(f"there are more than {MAX_GROUPING_SETS} grouping sets", span=span_of(part))
    return [tuple(node for keys in chosen for node in keys) for chosen in product(*choices)]


def _expand_grouping_part(part: exp.Expr) -> list[GroupingSet]:
    match part:
        case exp.Rollup():
            refuse_other_args(part, "expressions")
            keys = [_grouping_keys(node) for node in part.expressions]
            return [_concatenate_keys(keys[:length]) for length in range(len(keys), -1, -1)]
        case exp.Cube():
            refuse_other_args(part, "expressions")
            keys = [_grouping_keys(node) for node in part.expressions]
            if len(keys) > MAX_GROUPING_SETS.bit_length():
                raise LimitExceeded(f"there are more than {MAX_GROUPING_SETS} grouping sets", span=span_of(part))
            lengths = range(len(keys), -1, -1)
            return [_concatenate_keys(list(chosen)) for length in lengths for chosen in combinations(keys, length)]
        case exp.GroupingSets():
            refuse_other_args(part, "expressions")
            return [grouping_set for node in part.expressions for grouping_set in _expand_grouping_part(node)]
        case _:
            return [_grouping_keys(part)]


def _grouping_keys(node: exp.Expr) -> GroupingSet:
    """(a, b) is two keys that come and go together."""
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    return (node.this,) if isinstance(node, exp.Paren) else (node,)


def _concatenate_keys(keys: list[GroupingSet]) -> GroupingSet:
    return tuple(node for part in keys for node in part)
