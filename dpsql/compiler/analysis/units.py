"""What a relation says about privacy units: how many rows each may have, and which columns depend on the unit alone.

Facts come from accepted unique keys only (SOUNDNESS 1.3), and are derived from the plan that runs. They die at joins
that may multiply rows, at UNION ALL and at grouping sets.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import prod
from typing import assert_never

from dpsql.compiler.analysis.domains import derive_domains
from dpsql.compiler.analysis.key_values import list_few_values
from dpsql.compiler.analysis.public_rows import max_join_matches
from dpsql.compiler.plan.expressions import Column
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
from dpsql.types import BIGINT

MAX_KEYED_ROWS = 100
"""Values of a unit's keys that bound its rows. With many more, few units have a row for each, and a norm that is chosen
from a histogram of units is smaller."""


@dataclass(frozen=True)
class UnitKey:
    """Columns of which no two rows of one unit have the same values; `nulls` says that this holds of NULL as well.

    It holds of the columns as they are: of (unit, year), not of (unit, year / 10).
    """

    columns: frozenset[str]
    nulls: bool = False


@dataclass(frozen=True)
class UnitFacts:
    """`rows`: most rows of one unit, None where there is no bound. `determined`: columns with one value per unit.

    Stability: removing one unit removes at most `rows` rows, and no other unit's row changes.
    """

    rows: int | None
    determined: frozenset[str]
    keys: frozenset[UnitKey] = field(default=frozenset(), compare=False)


def derive_unit_facts(node: Rows) -> UnitFacts:
    facts = _derive_facts(node)
    return _complete_facts(node, UnitFacts(_bound_rows(node, facts), facts.determined, facts.keys))


def _derive_facts(node: Rows) -> UnitFacts:
    """Without what the domains of keys say."""
    return _complete_facts(node, _facts_of_node(node))


def _complete_facts(node: Rows, facts: UnitFacts) -> UnitFacts:
    if facts.rows == 1:  # a unit with one row has one value in each column
        return UnitFacts(1, frozenset(f.name for f in row_fields(node)))
    return facts


def _bound_rows(node: Rows, facts: UnitFacts) -> int | None:
    return _count_key_values(node, facts.keys) if facts.rows is None and facts.keys else facts.rows


def _count_key_values(node: Rows, keys: Collection[UnitKey]) -> int | None:
    """The most rows that a unit can have, since each has other values of a key; None where they may be too many.

    Stability: the domains are those of the rows that are left, conditions on them included; a key without `nulls` says
    nothing of rows where one of its columns is NULL, so such rows must not be there.
    """
    env = derive_domains(node)
    bounds = []
    for key in keys:
        domains = [env[name] for name in key.columns]
        values = [list_few_values(domain) for domain in domains]
        if key.nulls or not any(domain.nullable for domain in domains):
            bounds.append(prod(MAX_KEYED_ROWS + 1 if listed is None else len(listed) for listed in values))
    least = min(bounds, default=MAX_KEYED_ROWS + 1)
    return max(1, least) if least <= MAX_KEYED_ROWS else None


def _is_keyed(node: Rows, keys: Collection[str]) -> bool:
    """Whether no two rows of a unit have the same values of these columns."""
    within = [key for key in _derive_facts(node).keys if key.columns <= set(keys)]
    if not within or any(key.nulls for key in within):
        return bool(within)
    env = derive_domains(node)
    return any(not any(env[name].nullable for name in key.columns) for key in within)


def has_one_row_per_group(node: Rows, keys: Collection[str]) -> bool:
    """Whether a unit has at most one row in each group of these keys.

    It has where it has one row in all; grouping sets repeat that row with another number, which is a key.
    """
    if derive_unit_facts(node).rows == 1 or _is_keyed(node, keys):
        return True
    if isinstance(node, Filter):
        return has_one_row_per_group(node.input, keys)
    return isinstance(node, Expand) and SET_COLUMN in keys and derive_unit_facts(node.input).rows == 1


def rows_are_groups(node: Rows, keys: Collection[str]) -> bool:
    """Whether the rows are what a unit adds to a group, one for each of its groups: those of a block per unit."""
    return any(key.nulls and key.columns and key.columns <= set(keys) for key in _derive_facts(node).keys)


def count_sets(node: Rows) -> int:
    """How many grouping sets these rows are in, each under its number in `_set`."""
    if isinstance(node, Expand):
        return len(node.sets)
    if isinstance(node, Filter) or (isinstance(node, Project) and _passes_set_number(node)):
        return count_sets(node.input)
    if isinstance(node, PerUnit) and _passes_set_number(node):
        return count_sets(node.input)
    raise InternalError("these rows are in no grouping sets")


def _passes_set_number(node: Project | PerUnit) -> bool:
    columns = node.columns if isinstance(node, Project) else node.keys
    return any(c.name == SET_COLUMN and c.expr == Column(SET_COLUMN, BIGINT) for c in columns)


def rows_of_each_set(rows: int, sets: int) -> int:
    """The most rows of a unit in one of its grouping sets, of as many in all.

    Sets repeat rows, so each has its part of them. A number that the sets do not divide was found in another way, from
    values of keys: then all may be in one set.
    """
    return rows if rows % sets else rows // sets


def _facts_of_node(node: Rows) -> UnitFacts:
    match node:
        case Scan():
            single = node.unit is None or node.unit_is_unique
            keys = frozenset(UnitKey(columns) for columns in node.unit_keys)
            return UnitFacts(1 if single else None, node.unit_columns, keys)
        case Filter():
            return _derive_facts(node.input)
        case Project():
            inner = _derive_facts(node.input)
            determined = (c.name for c in node.columns if columns_of(c.expr) <= inner.determined)
            passed = _keys_passed(node, inner.keys)
            lost = len(passed) < len(inner.keys)
            rows = _bound_rows(node.input, inner) if lost else inner.rows  # what a key says stays true without it
            return UnitFacts(rows, frozenset(determined), passed)
        case Join():
            return _join_facts(node)
        case Mark():
            return _mark_facts(node)
        case PerUnit():
            return _per_unit_facts(node)
        case UnitWindow():
            return _derive_facts(node.input)
        case SetOperation():
            return _set_operation_facts(node)
        case Expand():
            inner = _derive_facts(node.input)
            rows = _bound_rows(node.input, inner)
            rows = None if rows is None else rows * len(node.sets)
            if len(node.sets) == 1:  # a key that is not in the only set is NULL, and the set has one number
                apart = frozenset(node.keys) - node.sets[0]
                return UnitFacts(rows, inner.determined | apart | {SET_COLUMN})
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
    left, right = _facts_of_side(join.left), _facts_of_side(join.right)
    if join.kind is JoinKind.FULL:
        # Every row of a side without a partner stays, with NULL on the other: no column is the same in all rows.
        both = left.rows is not None and right.rows is not None
        rows = max((left.rows or 0) * (right.rows or 0), (left.rows or 0) + (right.rows or 0)) if both else None
        return UnitFacts(rows, frozenset())
    rows = None if left.rows is None or right.rows is None else left.rows * max(1, right.rows)
    # A column that depends on the unit still does when its rows are repeated: each copy has the same value.
    # The right side of a LEFT JOIN may also be NULL, for some rows of a unit and not for others.
    determined = left.determined | (right.determined if join.is_inner else frozenset())
    # Rows that meet one row of the unit at most are not repeated, and have other values of their keys as before.
    keys = left.keys if right.rows == 1 else right.keys if left.rows == 1 and join.is_inner else frozenset[UnitKey]()
    return UnitFacts(rows, determined, keys)


def _facts_of_side(node: Rows) -> UnitFacts:
    """With what the domains of keys say where that is one row; of several, products would outgrow chosen norms."""
    bounded = derive_unit_facts(node)
    return bounded if bounded.rows == 1 else _derive_facts(node)


def _public_join_facts(join: Join) -> UnitFacts:
    left, fanout = _derive_facts(join.left), max_join_matches(join)
    rows = None if left.rows is None else left.rows * max(1, fanout)
    if fanout > 1:
        return UnitFacts(rows, left.determined)
    # All rows of the unit meet the same public row, where the condition looks at nothing else of them.
    ours = {f.name for f in row_fields(join.left)}
    same = columns_of(join.condition) & ours <= left.determined
    theirs = frozenset(f.name for f in row_fields(join.right)) if same else frozenset()
    return UnitFacts(rows, left.determined | theirs, left.keys)


def _mark_facts(mark: Mark) -> UnitFacts:
    if not is_public(mark.right) and not mark.by_unit:
        raise InternalError("a sub-select over private rows does not equate the units")
    left = _derive_facts(mark.left)
    ours = {f.name for f in row_fields(mark.left)}
    read = columns_of(mark.condition) | (columns_of(mark.test[0]) | columns_of(mark.test[1]) if mark.test else set())
    same = read & ours <= left.determined
    return UnitFacts(left.rows, left.determined | ({mark.name} if same else set()), left.keys)


def _per_unit_facts(node: PerUnit) -> UnitFacts:
    inner = _derive_facts(node.input)
    determined = frozenset(key.name for key in node.keys if columns_of(key.expr) <= inner.determined)
    rows = 1 if len(determined) == len(node.keys) else inner.rows
    spread = frozenset(key.name for key in node.keys) - determined
    return UnitFacts(rows, determined, frozenset([UnitKey(spread, nulls=True)]))


def _keys_passed(node: Project, keys: Collection[UnitKey]) -> frozenset[UnitKey]:
    """The keys of which all columns are passed on as they are."""
    names = {column.expr.name: column.name for column in node.columns if isinstance(column.expr, Column)}
    passed = (key for key in keys if key.columns <= names.keys())
    return frozenset(UnitKey(frozenset(names[name] for name in key.columns), key.nulls) for key in passed)


def _set_operation_facts(node: SetOperation) -> UnitFacts:
    left, right = _derive_facts(node.left), _derive_facts(node.right)
    match node.kind:
        case SetKind.UNION_ALL | SetKind.UNION:
            rows = None if left.rows is None or right.rows is None else left.rows + right.rows
            return UnitFacts(rows, frozenset())
        case SetKind.INTERSECT | SetKind.EXCEPT:
            return left
        case _:
            assert_never(node.kind)
