"""Find the public groups of the keys, and drop rows that fall outside of them.

GROUP BY sex  (values: [f, m, x])   →  listed f, m, x; rows whose sex is NULL are filtered out
GROUP BY ward (no values)           →  not listed: partition selection
GROUP BY wards.floor (public)       →  listed: what the public rows hold
WHERE sex ILIKE '%f%' GROUP BY sex  →  listed f: the values for which the condition is true
ROLLUP (sex)                        →  listed f, m, x in set 0 and NULL in set 1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, product
from math import prod
from typing import assert_never

from dpsql.compiler.analysis.domains import derive_domains, domain_of
from dpsql.compiler.analysis.key_values import MAX_LISTED_KEYS, evaluate_for_values, list_few_values, list_key_values
from dpsql.compiler.analysis.narrowing import Environment
from dpsql.compiler.plan.aggregate import Aggregate, Factor, Gather, Listed, ListedRows
from dpsql.compiler.plan.expressions import (
    Column,
    Expr,
    HoleValue,
    InHole,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    join_conjuncts,
    split_conjuncts,
)
from dpsql.compiler.plan.relations import (
    SET_COLUMN,
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
    ScanColumn,
    SetKind,
    SetOperation,
    Table,
    UnitWindow,
)
from dpsql.compiler.plan.walk import columns_of, map_expr, map_rows, walk_exprs
from dpsql.compiler.rewrite.make_total import strip_finite
from dpsql.compiler.rewrite.public_keys import PublicKeys, find_public_keys
from dpsql.schema.domain import Domain, Scalar
from dpsql.types import BIGINT

MAX_COMBINATIONS = 100_000
"""Combinations of values that are looked at, of which some no row can have."""

MAX_CONDITION_PARTS = 100_000
"""Parts of a condition that are worked out, over all values that it is tried on."""

MAX_CROSSED_KEYS = 1_000
"""As MOST_LISTED, for the public part of a key whose other part is selected: every selected key is crossed with it."""


@dataclass(frozen=True)
class GroupPlan:
    """The aggregate over rows of listed groups only; the list; and the keys that must be selected."""

    aggregate: Aggregate
    listed: Listed | None
    selected: tuple[str, ...]
    drops_nulls: bool = False  # rows for which a computed key is NULL are in no group
    never_null: tuple[str, ...] = ()  # of grouping sets: keys for which NULL is no group


def list_groups(aggregate: Aggregate) -> GroupPlan:
    env = narrow_by_conditions(derive_domains(with_declared_nulls(aggregate.input)), aggregate)
    choices = {key.name: list_key_values(key.expr, env) for key in aggregate.keys}
    if aggregate.sets:
        return _list_grouping_sets(aggregate, choices)
    public, valued, selected = _classify_keys(aggregate, _public_keys_of(aggregate, env), choices)
    listed = prod(key_set.factor.count for key_set in public)
    if not (valued or public) or listed * prod(len(choices[k.name] or ()) for k in valued) > MAX_COMBINATIONS:
        return GroupPlan(aggregate, None, tuple(key.name for key in aggregate.keys))
    rows = list_key_rows(valued, choices, lambda name: list_few_values(env[name]), aggregate.input)
    if listed * (1 if rows is None else rows.count) > (MAX_CROSSED_KEYS if selected else MAX_LISTED_KEYS):
        return GroupPlan(aggregate, None, tuple(key.name for key in aggregate.keys))
    factors: list[Factor] = [*([] if rows is None else [rows]), *(key_set.factor for key_set in public)]
    dropped = _keys_never_null(aggregate, valued, choices)
    filtered = aggregate
    if dropped:
        present = join_conjuncts(tuple(Not(IsNull(key.expr)) for key in dropped))
        filtered = replace(aggregate, input=Filter(aggregate.input, present))
    return GroupPlan(filtered, Listed(tuple(factors)), selected, _has_computed_key(dropped))


def narrow_by_conditions(env: Environment, aggregate: Aggregate) -> Environment:
    """The domains without those values of a key's column for which a condition that all rows meet is not true.

    Stability: a group that is taken off the list has no row that meets the condition, and would be empty.
    """
    result = dict(env)
    key_columns = frozenset(name for key in aggregate.keys for name in columns_of(key.expr))
    for part in conditions_met(aggregate.input):
        names = columns_of(part)
        name = next(iter(names), "")
        if len(names) == 1 and name in key_columns and name in result:
            result[name] = _narrow_to_true_values(part, name, result[name])
    return result


def _narrow_to_true_values(part: Expr, name: str, domain: Domain) -> Domain:
    values = list_few_values(domain)
    if values is None or len(values) * _count_parts(part) > MAX_CONDITION_PARTS:
        return domain
    true_values: list[Scalar | None] = []
    for value in values:
        truth = evaluate_for_values(part, name, (value,))
        if truth is None:  # not worked out
            return domain
        true_values += [value] * (truth == (True,))
    return replace(domain, values=tuple(v for v in true_values if v is not None), nullable=None in true_values)


def _count_parts(part: Expr) -> int:
    return sum(len(inner.values) if isinstance(inner, InList) else 1 for inner in walk_exprs(part))


def _classify_keys(
    aggregate: Aggregate, public: list[PublicKeys], choices: ValuesByKey
) -> tuple[list[PublicKeys], list[Named], tuple[str, ...]]:
    """Keys that public rows list, keys listed by value, and those to be selected, with all that these decide."""
    listing = [key_set for key_set in public if key_set.factor.count <= MAX_LISTED_KEYS and not key_set.by_value]
    from_rows = {key.name for key_set in listing for key in key_set.keys}
    valued = [key for key in aggregate.keys if key.name not in from_rows and choices[key.name] is not None]
    selected = tuple(key for key in aggregate.keys if key not in valued and key.name not in from_rows)
    selected += keys_decided_by(tuple(valued), selected)
    read = frozenset(name for key in selected for name in columns_of(key.expr))
    decided_sets = [key_set for key_set in public if key_set.decided_by and key_set.decided_by <= read]
    selected += tuple(key for key_set in decided_sets for key in key_set.keys if key not in selected)
    names = {key.name for key in selected}
    return (
        [key_set for key_set in listing if key_set not in decided_sets],
        [key for key in valued if key.name not in names],
        tuple(key.name for key in aggregate.keys if key.name in names),
    )


def _list_grouping_sets(aggregate: Aggregate, choices: ValuesByKey) -> GroupPlan:
    """The groups of every grouping set, with NULL for keys that are not in it; all are selected where some must be.

    Within one set a key could be public and in another not, but one list has to say which groups there are.
    """
    names = [key.name for key in aggregate.keys]
    listable = all(choices[name] is not None for name in names)
    sizes = [prod(len(choices[name] or ()) for name in names if name in inside) for inside in aggregate.sets]
    if not listable or sum(sizes) > MAX_LISTED_KEYS:
        return GroupPlan(aggregate, None, (*names, SET_COLUMN))
    null_only: tuple[Scalar | None, ...] = (None,)
    rows = tuple(
        (*row, number)
        for number, inside in enumerate(aggregate.sets)
        for row in product(*((choices[name] or ()) if name in inside else null_only for name in names))
    )
    fields = tuple(Field(key.name, key.expr.type) for key in aggregate.keys)
    dropped = _keys_never_null(aggregate, list(aggregate.keys), choices)
    listed = Listed((ListedRows((*fields, Field(SET_COLUMN, BIGINT)), rows),))
    return GroupPlan(aggregate, listed, (), _has_computed_key(dropped), tuple(key.name for key in dropped))


def _public_keys_of(aggregate: Aggregate, env: Environment) -> list[PublicKeys]:
    nullable = {key.name: domain_of(strip_finite(key.expr), env).nullable for key in aggregate.keys}
    return find_public_keys(aggregate.keys, aggregate.input, nullable)


def with_declared_nulls(node: Rows) -> Rows:
    """The rows with NULL only where the owner says that NULL is a group, or public rows have it."""

    def declared(column: ScanColumn) -> ScanColumn:
        return replace(column, domain=column.domain.with_nullable(column.null_group))

    def change(part: Rows) -> Rows:
        if isinstance(part, Scan):
            return replace(part, columns=tuple(declared(column) for column in part.columns))
        return part

    return map_rows(node, change)


ValuesByKey = dict[str, tuple[Scalar | None, ...] | None]


def _keys_never_null(aggregate: Aggregate, listed: list[Named], choices: ValuesByKey) -> tuple[Named, ...]:
    """Keys that may be NULL in a row although NULL is not among their groups: such a row is in none of them."""
    env = derive_domains(aggregate.input)
    unlisted = [key for key in listed if None not in (choices[key.name] or ())]
    return tuple(key for key in unlisted if domain_of(key.expr, env).nullable)


def _has_computed_key(dropped: tuple[Named, ...]) -> bool:
    return any(not isinstance(key.expr, Column) for key in dropped)


# Values that keys have together: what no row can have side by side is not listed, nor crossed with what is selected.
#
#     CASE WHEN risk > 5 …, CASE WHEN risk > 8 …   →  the pairs that a risk gives, not all pairs of their values
#     UPPER(city), LENGTH(city)                    →  selected together: the length says nothing new
#     … WHERE kind IN (SELECT …) GROUP BY kind     →  of the listed kinds, those that the released values hold

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
    with_holes = (
        part for part in conditions_met(node) if any(isinstance(e, HoleValue | InHole) for e in walk_exprs(part))
    )
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


# Let each row stand once in every grouping set.
#
#     GROUP BY ROLLUP (sex)  →  each row with its sex in set 0, and with NULL in set 1; grouped by (sex, _set)
#
# A NULL key that is no group drops the row from the sets that have the key, and from no other.


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


# Groups of which nothing is asked, and which the schema lists: who asks for them needs no release.
#
#     SELECT DISTINCT sex FROM patients  (values: [f, m, x])   →  f, m, x: no row is read, and nothing is charged

GroupRows = tuple[tuple[Scalar | None, ...], ...]


def is_list_only(gather: Gather) -> bool:
    """Whether the answer is its list of groups: no cell is asked of them, and none of them is selected.

    Privacy: the list is made of the schema, the statement, public rows and released values (`Listed`), and every group
    of it is in the answer whether rows have it or not. So the answer is the same for all neighbors.
    """
    return not gather.all_parts


def list_declared_groups(gather: Gather) -> tuple[tuple[str, ...], GroupRows] | None:
    """The names of the keys and the groups, where schema and statement alone tell them."""
    if not is_list_only(gather):
        return None
    if gather.listed is None or not gather.keys:
        return (), ((),)
    rows = [factor.rows for factor in gather.listed.factors if isinstance(factor, ListedRows) and factor.where is None]
    if len(rows) != len(gather.listed.factors):
        return None
    names = tuple(key.name for key in gather.listed.keys)
    return names, tuple(tuple(chain.from_iterable(row)) for row in product(*rows))
