"""Refuse joins of private rows with each other that would multiply a unit's rows beyond a power.

    visits a JOIN visits b ON the unit                  →  n * n rows of a unit with n visits
    prescriptions p JOIN visits v ON the visit's key    →  n: a prescription meets one visit
    four tables of visits, joined on the unit alone     →  refused

Privacy: how long an engine works, and whether it runs out of memory, depends on the rows of single units. The bound
keeps that from growing with the statement (SOUNDNESS 2, 10): with eight tables of visits, a unit of ten rows took 26 s
and its absence none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from dpsql.analysis.public import columns_equated_to_left
from dpsql.errors import LimitExceeded
from dpsql.plan.expr import Column
from dpsql.plan.nodes import Aggregate
from dpsql.plan.relations import (
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
    SetOperation,
    Table,
    UnitWindow,
    is_public,
)

MAX_POWER = 3
"""As for the three steps of a funnel; more are asked with a row for each unit in between."""


def limit_joins(aggregate: Aggregate) -> Aggregate:
    if _row_power(aggregate.input).most > MAX_POWER:
        raise LimitExceeded(
            f"more than {MAX_POWER} private tables with many rows for each unit meet on the unit alone",
            hint="Group them by the unit in sub-selects first, or join them on a key that the schema declares unique.",
        )
    return aggregate


@dataclass(frozen=True)
class _RowPower:
    """Of a unit's rows: at most n to the power `now` leave a step, and `most` is the largest of all steps."""

    now: int
    most: int


def _row_power(node: Rows) -> _RowPower:
    match node:
        case Scan():
            return _RowPower(0, 0) if node.unit is None or node.unit_is_unique else _RowPower(1, 1)
        case Filter() | Project() | UnitWindow() | Expand():
            return _row_power(node.input)
        case PerUnit():
            inner = _row_power(node.input)
            return _RowPower(inner.now if node.keys else 0, inner.most)
        case Join() if not is_public(node.right):
            left, right = _row_power(node.left), _row_power(node.right)
            now = _joined_power(node, left.now, right.now)
            return _RowPower(now, max(now, left.most, right.most))
        case Mark() if not is_public(node.right):
            left, right = _row_power(node.left), _row_power(node.right)
            probed = left.now if _has_unique_match(node) else left.now + right.now
            return _RowPower(left.now, max(probed, left.most, right.most))
        case Join() | Mark():
            return _row_power(node.left)
        case SetOperation():
            left, right = _row_power(node.left), _row_power(node.right)
            return _RowPower(max(left.now, right.now), max(left.most, right.most))
        case Table() | PublicTable() | PublicScan() | RowsHole():
            return _RowPower(0, 0)
        case _:
            assert_never(node)


def _joined_power(join: Join, left: int, right: int) -> int:
    if _has_unique_match(join):
        return max(left, right) if join.kind is JoinKind.FULL else left
    named = columns_equated_to_left(join.condition, join.right, join.left)
    if any(key <= named for key in _private_unique_keys(join.left)):
        return right if join.kind is JoinKind.INNER else max(left, right)
    return left + right


def _has_unique_match(node: Join | Mark) -> bool:
    """Whether a row of the left meets at most one of the right: the condition names a unique key of it."""
    named = columns_equated_to_left(node.condition, node.left, node.right)
    return any(key <= named for key in _private_unique_keys(node.right))


def _private_unique_keys(node: Rows) -> tuple[frozenset[str], ...]:
    """Accepted unique keys of private rows, under the names that they have here."""
    match node:
        case Scan():
            return node.unique
        case Filter() | UnitWindow():
            return _private_unique_keys(node.input)
        case Mark():
            return _private_unique_keys(node.left)
        case Project():
            names = {c.expr.name: c.name for c in node.columns if isinstance(c.expr, Column)}
            return tuple(frozenset(names[n] for n in key) for key in _private_unique_keys(node.input) if key <= names.keys())
        case Join() if not is_public(node.right) and node.kind is not JoinKind.FULL and _has_unique_match(node):
            return _private_unique_keys(node.left)
        case Join() | PerUnit() | SetOperation() | Expand() | Table() | PublicTable() | PublicScan() | RowsHole():
            return ()
        case _:
            assert_never(node)
