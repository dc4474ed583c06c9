"""Values that keys have together: what no row can have side by side is not listed, nor crossed with what is selected.

    CASE WHEN risk > 5 …, CASE WHEN risk > 8 …   →  the pairs that a risk gives, not all pairs of their values
    UPPER(city), LENGTH(city)                    →  selected together: the length says nothing new
    … WHERE kind IN (SELECT …) GROUP BY kind     →  of the listed kinds, those that the released values hold
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain, product
from typing import assert_never

from dpsql.analysis.image import evaluate_for_values
from dpsql.plan.expr import Column, Expr, HoleValue, InHole, join_conjuncts, split_conjuncts
from dpsql.plan.nodes import ListedRows
from dpsql.plan.relations import (
    Expand,
    Field,
    Filter,
    Join,
    JoinKind,
    Mark,
    Named,
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
)
from dpsql.plan.walk import columns_of, map_expr, walk_exprs
from dpsql.schema.domain import Scalar

RowValues = tuple[Scalar | None, ...]
KeyValueLists = Mapping[str, RowValues | None]


def keys_decided_by(keys: tuple[Named, ...], selected: tuple[Named, ...]) -> tuple[Named, ...]:
    """The keys that are worked out from columns which the selected ones read: they have few values beside each."""
    read = frozenset(chain.from_iterable(columns_of(key.expr) for key in selected))
    return tuple(key for key in keys if columns_of(key.expr) and columns_of(key.expr) <= read)


def list_key_rows(
    keys: list[Named], choices: KeyValueLists, below: Callable[[str], RowValues | None], node: Rows
) -> ListedRows | None:
    """The combinations of the keys' values; `below` gives the values of a column. None where there are no keys."""
    if not keys:
        return None
    groups: dict[str, list[Named]] = {}
    for key in keys:
        names = columns_of(key.expr)
        groups.setdefault(next(iter(names)) if len(names) == 1 else f"{key.name} alone", []).append(key)
    parts = [_combine_keys(name, group, choices, below) for name, group in groups.items()]
    ordered_keys = [key for group in groups.values() for key in group]
    rows = tuple(tuple(chain.from_iterable(row)) for row in product(*parts))
    fields = tuple(Field(key.name, key.expr.type) for key in ordered_keys)
    return ListedRows(fields, rows, _runtime_condition(ordered_keys, node))


def _combine_keys(
    name: str, keys: list[Named], choices: KeyValueLists, below: Callable[[str], RowValues | None]
) -> tuple[RowValues, ...]:
    each: tuple[RowValues, ...] = tuple(product(*(choices[key.name] or () for key in keys)))
    values = below(name) if len(keys) > 1 else None
    if values is None:
        return each
    evaluated = [_evaluate_keys(keys, name, value) for value in (*values, None)]
    if None in evaluated:
        return each
    possible = set(map(_typed_values, each))  # without NULL where it is no group
    return tuple(dict.fromkeys(row for row in evaluated if row is not None and _typed_values(row) in possible))


def _evaluate_keys(keys: list[Named], name: str, value: Scalar | None) -> RowValues | None:
    results = [evaluate_for_values(key.expr, name, (value,)) for key in keys]
    return None if None in results else tuple(result[0] for result in results if result is not None)


def _typed_values(row: RowValues) -> tuple[tuple[str, Scalar | None], ...]:
    return tuple((type(value).__name__, value) for value in row)


# --- conditions that released values decide --------------------------------------------------------------------------


def _runtime_condition(keys: list[Named], node: Rows) -> Expr | None:
    """What all rows meet of conditions that read holes and columns that are keys, said of the keys."""
    with_holes = (part for part in conditions_met(node) if any(isinstance(e, HoleValue | InHole) for e in walk_exprs(part)))
    renamed = _rename_conditions(tuple(part for part in with_holes if columns_of(part)), tuple(keys))
    return join_conjuncts(renamed) if renamed else None


def conditions_met(node: Rows) -> tuple[Expr, ...]:
    """Conditions that every row of the relation meets, by the names of its columns."""
    match node:
        case Filter():
            return (*conditions_met(node.input), *split_conjuncts(node.condition))
        case Project():
            return _rename_conditions(conditions_met(node.input), node.columns)
        case PerUnit():
            return _rename_conditions(conditions_met(node.input), node.keys)
        case Join():
            return conditions_met(node.left) + (conditions_met(node.right) if node.kind is JoinKind.INNER else ())
        case Mark():
            return conditions_met(node.left)
        case UnitWindow():
            return conditions_met(node.input)
        case SetOperation():
            return conditions_met(node.left) if node.kind in (SetKind.INTERSECT, SetKind.EXCEPT) else ()
        case Expand() | Table() | Scan() | PublicTable() | PublicScan() | RowsHole():
            return ()
        case _:
            assert_never(node)


def _rename_conditions(parts: tuple[Expr, ...], columns: tuple[Named, ...]) -> tuple[Expr, ...]:
    """The conditions that read columns which are passed on alone, by their new names."""
    names = {c.expr.name: Column(c.name, c.expr.type) for c in columns if isinstance(c.expr, Column)}
    readable = (part for part in parts if columns_of(part) <= names.keys())
    return tuple(map_expr(part, lambda e: names[e.name] if isinstance(e, Column) else e) for part in readable)
