"""Let each row stand once in every grouping set.

    GROUP BY ROLLUP (sex)  →  each row with its sex in set 0, and with NULL in set 1; grouped by (sex, _set)

A NULL key that is no group drops the row from the sets that have the key, and from no other.
"""

from __future__ import annotations

from dpsql.plan.expr import Column, InList, IsNull, Literal, Not, Or, join_conjuncts
from dpsql.plan.relations import SET_COLUMN, Expand, Field, Filter, Rows
from dpsql.types import BIGINT


def expand_sets(
    rows: Rows, keys: tuple[Field, ...], sets: tuple[frozenset[str], ...], never_null: tuple[str, ...]
) -> Rows:
    """`rows` have the keys as columns; those of `never_null` are no group where they are NULL and in the set."""
    expanded = Expand(rows, tuple(key.name for key in keys), sets)
    number = Column(SET_COLUMN, BIGINT)
    conditions = []
    for key in keys:
        if key.name in never_null:
            set_numbers = tuple(Literal(index, BIGINT) for index, names in enumerate(sets) if key.name in names)
            conditions.append(Or((Not(IsNull(Column(key.name, key.type))), Not(InList(number, set_numbers)))))
    return Filter(expanded, join_conjuncts(tuple(conditions))) if conditions else expanded
