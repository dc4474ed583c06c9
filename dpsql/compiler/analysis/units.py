"""What a relation says about privacy units: how many rows each may have, and which columns depend on the unit alone.

Facts come from accepted unique keys only (SOUNDNESS 1.3), and are derived from the plan that runs. They die at joins
that may multiply rows, at UNION ALL and at grouping sets.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import assert_never

from dpsql.compiler.analysis.public_rows import max_join_matches
from dpsql.compiler.plan.relations import (
    SET_COLUMN,
    Expand,
    Filter,
    Join,
    JoinKind,
    Mark,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    SetKind,
    SetOperation,
    Table,
    UnitWindow,
    is_public,
    row_fields,
)
from dpsql.compiler.plan.walk import columns_of
from dpsql.errors import InternalError


@dataclass(frozen=True)
class UnitFacts:
    """`rows`: most rows of one unit, None where there is no bound. `determined`: columns with one value per unit.

    Stability: removing one unit removes at most `rows` rows, and no other unit's row changes.
    """

    rows: int | None
    determined: frozenset[str]


def derive_unit_facts(node: Rows) -> UnitFacts:
    facts = _facts_of_node(node)
    if facts.rows == 1:  # a unit with one row has one value in each column
        return UnitFacts(1, frozenset(f.name for f in row_fields(node)))
    return facts


def has_one_row_per_group(node: Rows, keys: Collection[str]) -> bool:
    """Whether a unit has at most one row in each group of these keys.

    It has where it has one row in all; grouping sets repeat that row with another number, which is a key.
    """
    if derive_unit_facts(node).rows == 1:
        return True
    if isinstance(node, Filter):
        return has_one_row_per_group(node.input, keys)
    return isinstance(node, Expand) and SET_COLUMN in keys and derive_unit_facts(node.input).rows == 1


def _facts_of_node(node: Rows) -> UnitFacts:
    match node:
        case Scan():
            single = node.unit is None or node.unit_is_unique
            return UnitFacts(1 if single else None, node.unit_columns)
        case Filter():
            return derive_unit_facts(node.input)
        case Project():
            inner = derive_unit_facts(node.input)
            determined = (c.name for c in node.columns if columns_of(c.expr) <= inner.determined)
            return UnitFacts(inner.rows, frozenset(determined))
        case Join():
            return _join_facts(node)
        case Mark():
            return _mark_facts(node)
        case PerUnit():
            return _per_unit_facts(node)
        case UnitWindow():
            return derive_unit_facts(node.input)
        case SetOperation():
            return _set_operation_facts(node)
        case Expand():
            inner = derive_unit_facts(node.input)
            rows = None if inner.rows is None else inner.rows * len(node.sets)
            return UnitFacts(rows, inner.determined - set(node.keys))
        case Table() | PublicTable() | PublicScan() | RowsHole():
            raise TypeError("facts about units are derived from sanitised rows of units")
        case _:
            assert_never(node)


def _join_facts(join: Join) -> UnitFacts:
    """Rows of a unit meet rows of the same unit only (the ids are equated in the SQL that runs), or public rows."""
    if is_public(join.right):
        return _public_join_facts(join)
    if not join.by_unit:
        raise InternalError("a join of private rows does not equate the units")
    left, right = derive_unit_facts(join.left), derive_unit_facts(join.right)
    if join.kind is JoinKind.FULL:
        # Every row of a side without a partner stays, with NULL on the other: no column is the same in all rows.
        both = left.rows is not None and right.rows is not None
        rows = max((left.rows or 0) * (right.rows or 0), (left.rows or 0) + (right.rows or 0)) if both else None
        return UnitFacts(rows, frozenset())
    rows = None if left.rows is None or right.rows is None else left.rows * max(1, right.rows)
    # A column that depends on the unit still does when its rows are repeated: each copy has the same value.
    # The right side of a LEFT JOIN may also be NULL, for some rows of a unit and not for others.
    determined = left.determined | (right.determined if join.is_inner else frozenset())
    return UnitFacts(rows, determined)


def _public_join_facts(join: Join) -> UnitFacts:
    left, fanout = derive_unit_facts(join.left), max_join_matches(join)
    rows = None if left.rows is None else left.rows * max(1, fanout)
    if fanout > 1:
        return UnitFacts(rows, left.determined)
    # All rows of the unit meet the same public row, where the condition looks at nothing else of them.
    ours = {f.name for f in row_fields(join.left)}
    same = columns_of(join.condition) & ours <= left.determined
    theirs = frozenset(f.name for f in row_fields(join.right)) if same else frozenset()
    return UnitFacts(rows, left.determined | theirs)


def _mark_facts(mark: Mark) -> UnitFacts:
    if not is_public(mark.right) and not mark.by_unit:
        raise InternalError("a sub-select over private rows does not equate the units")
    left = derive_unit_facts(mark.left)
    ours = {f.name for f in row_fields(mark.left)}
    read = columns_of(mark.condition) | (columns_of(mark.test[0]) | columns_of(mark.test[1]) if mark.test else set())
    same = read & ours <= left.determined
    return UnitFacts(left.rows, left.determined | ({mark.name} if same else set()))


def _per_unit_facts(node: PerUnit) -> UnitFacts:
    inner = derive_unit_facts(node.input)
    determined = frozenset(key.name for key in node.keys if columns_of(key.expr) <= inner.determined)
    rows = 1 if len(determined) == len(node.keys) else inner.rows
    return UnitFacts(rows, determined)


def _set_operation_facts(node: SetOperation) -> UnitFacts:
    left, right = derive_unit_facts(node.left), derive_unit_facts(node.right)
    match node.kind:
        case SetKind.UNION_ALL | SetKind.UNION:
            rows = None if left.rows is None or right.rows is None else left.rows + right.rows
            return UnitFacts(rows, frozenset())
        case SetKind.INTERSECT | SetKind.EXCEPT:
            return left
        case _:
            assert_never(node.kind)
