"""GROUP BY with several grouping sets: ROLLUP, CUBE, GROUPING SETS, and their products."""

from __future__ import annotations

from itertools import combinations, product

from sqlglot import exp

from dpsql.errors import LimitExceeded
from dpsql.sql.dialect import only, span_of

MOST_SETS = 64
"""Every row counts once in each set, so more of them would drown every answer."""

Set = tuple[exp.Expr, ...]


def grouping_sets(group: exp.Group) -> list[Set] | None:
    """The sets of keys that are grouped by, each in order; None for a plain list of keys."""
    parts = group.expressions
    if not any(isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets) for part in parts):
        return None
    choices: list[list[Set]] = []
    count = 1
    for part in parts:
        choices.append(_sets(part))
        count *= len(choices[-1])
        if count > MOST_SETS:
            raise LimitExceeded(f"there are more than {MOST_SETS} grouping sets", span=span_of(part))
    return [tuple(node for keys in chosen for node in keys) for chosen in product(*choices)]


def _sets(part: exp.Expr) -> list[Set]:
    match part:
        case exp.Rollup():
            only(part, "expressions")
            keys = [_keys(node) for node in part.expressions]
            return [_joined(keys[:length]) for length in range(len(keys), -1, -1)]
        case exp.Cube():
            only(part, "expressions")
            keys = [_keys(node) for node in part.expressions]
            if len(keys) > MOST_SETS.bit_length():
                raise LimitExceeded(f"there are more than {MOST_SETS} grouping sets", span=span_of(part))
            lengths = range(len(keys), -1, -1)
            return [_joined(list(chosen)) for length in lengths for chosen in combinations(keys, length)]
        case exp.GroupingSets():
            only(part, "expressions")
            return [found for node in part.expressions for found in _sets(node)]
        case _:
            return [_keys(part)]


def _keys(node: exp.Expr) -> Set:
    """(a, b) is two keys that come and go together."""
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    return (node.this,) if isinstance(node, exp.Paren) else (node,)


def _joined(keys: list[Set]) -> Set:
    return tuple(node for part in keys for node in part)
