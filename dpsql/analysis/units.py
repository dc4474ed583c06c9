"""What a relation says about privacy units: how many rows each may have, and which columns depend on the unit alone.

Facts come from accepted unique keys only (SOUNDNESS 1.3), and are derived from the plan that runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from dpsql.errors import InternalError
from dpsql.plan.nodes import Aggregate, CountUnits, Filter, Gather, Join, Node, Project, Scan, Sum, Table, Weigh
from dpsql.plan.walk import columns_of


@dataclass(frozen=True)
class UnitFacts:
    """`rows`: most rows of one unit, None where there is no bound. `determined`: columns with one value per unit.

    Stability: removing one unit removes at most `rows` rows, and no other unit's row changes.
    """

    rows: int | None
    determined: frozenset[str]


def unit_facts(node: Node) -> UnitFacts:
    match node:
        case Scan():
            return _scan(node)
        case Filter():
            return unit_facts(node.input)
        case Project():
            inner = unit_facts(node.input)
            kept = (c.name for c in node.columns if columns_of(c.expr) <= inner.determined)
            return UnitFacts(inner.rows, frozenset(kept))
        case Join():
            return _join(node)
        case Weigh():
            return unit_facts(node.input)
        case Table() | Aggregate() | Sum() | CountUnits() | Gather():
            raise TypeError("facts about units are derived from sanitised rows")
        case _:
            assert_never(node)


def _scan(scan: Scan) -> UnitFacts:
    if scan.unit is None:
        return UnitFacts(1, frozenset(column.name for column in scan.columns))
    if scan.unit_is_unique:
        return UnitFacts(1, frozenset(column.name for column in scan.columns))
    return UnitFacts(None, scan.unit_columns)


def _join(join: Join) -> UnitFacts:
    """Rows of a unit meet rows of the same unit only: the ids are equated in the SQL that runs."""
    if not join.by_unit:
        raise InternalError("a join of private rows does not equate the units")
    left, right = unit_facts(join.left), unit_facts(join.right)
    rows = None if left.rows is None or right.rows is None else left.rows * right.rows
    # A column that depends on the unit still does when its rows are repeated: each copy has the same value.
    # The right side of a LEFT JOIN may also be NULL, for some rows of a unit and not for others.
    determined = left.determined | (right.determined if join.is_inner else frozenset())
    return UnitFacts(rows, determined)
