"""Find the public groups of the keys, and drop rows that fall outside of them.

GROUP BY sex  (values: [f, m, x])   →  listed f, m, x; rows whose sex is NULL are filtered out
GROUP BY ward (no values)           →  not listed: partition selection
GROUP BY wards.floor (public)       →  listed: what the public rows hold
WHERE sex ILIKE '%f%' GROUP BY sex  →  listed f: the values for which the condition is true
ROLLUP (sex)                        →  listed f, m, x in set 0 and NULL in set 1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, product
from math import prod
from typing import assert_never

from dpsql.compiler.analysis.domains import derive_domains, domain_of
from dpsql.compiler.analysis.key_values import MAX_LISTED_KEYS, evaluate_for_values, list_few_values, list_key_values
from dpsql.compiler.analysis.narrowing import Environment
from dpsql.compiler.analysis.public_rows import max_public_rows
from dpsql.compiler.plan.aggregate import (
    Aggregate,
    Factor,
    Gather,
    Listed,
    ListedHole,
    ListedRows,
    ListedSets,
)
from dpsql.compiler.plan.expressions import (
    Call,
    Column,
    Compare,
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
    row_fields,
    rows_before_sets,
)
from dpsql.compiler.plan.walk import columns_of, map_expr, map_rows, walk_exprs, walk_rows
from dpsql.compiler.rewrite.make_total import strip_finite
from dpsql.schema.model import Domain, Scalar
from dpsql.types import BIGINT

MAX_COMBINATIONS = 100_000
"""Combinations of values that are looked at, of which some no row can have."""

MAX_CONDITION_PARTS = 100_000
"""Parts of a condition that are worked out, over all values that it is tried on."""

MAX_CROSSED_KEYS = 1_000
"""As MOST_LISTED, for the public part of a key whose other part is selected: every selected key is crossed with it."""


MAX_JOINED_ROWS = 1_000_000
"""Public rows that are joined for a list of keys, where they are more than the limit of matches would allow."""


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
        return _list_grouping_sets(aggregate, env, choices)
    found = _list_keys(aggregate, env, choices) if aggregate.keys else None
    if found is None or not found.factors:
        return GroupPlan(aggregate, None, tuple(key.name for key in aggregate.keys))
    filtered = aggregate
    if found.never_null:
        present = join_conjuncts(tuple(Not(IsNull(key.expr)) for key in found.never_null))
        filtered = replace(aggregate, input=Filter(aggregate.input, present))
    return GroupPlan(filtered, Listed(found.factors), found.selected, _has_computed_key(found.never_null))


@dataclass(frozen=True)
class _KeyLists:
    """Lists of keys, those that are to be selected, and the listed ones for which NULL is no group."""

    factors: tuple[Factor, ...]
    selected: tuple[str, ...]
    never_null: tuple[Named, ...]


def _list_keys(aggregate: Aggregate, env: Environment, choices: ValuesByKey) -> _KeyLists | None:
    """Of a GROUP BY of all keys; None where there would be too many groups."""
    public, valued, selected = _classify_keys(aggregate, _public_keys_of(aggregate, env), choices)
    listed = prod(key_set.factor.count for key_set in public)
    if listed * prod(len(choices[k.name] or ()) for k in valued) > MAX_COMBINATIONS:
        return None
    rows = list_key_rows(valued, choices, lambda name: list_few_values(env[name]), aggregate.input)
    if listed * (1 if rows is None else rows.count) > (MAX_CROSSED_KEYS if selected else MAX_LISTED_KEYS):
        return None
    factors: list[Factor] = [*([] if rows is None else [rows]), *(key_set.factor for key_set in public)]
    return _KeyLists(tuple(factors), selected, _keys_never_null(aggregate, valued, choices))


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
    listing = [
        key_set
        for key_set in public
        if key_set.factor.count <= MAX_LISTED_KEYS
        and not (key_set.by_value and all(choices[key.name] is not None for key in key_set.keys))
    ]
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


def _list_grouping_sets(aggregate: Aggregate, env: Environment, choices: ValuesByKey) -> GroupPlan:
    """The groups of every grouping set, with NULL for keys that are not in it; all are selected where some must be.

    Each set lists what a GROUP BY of its keys lists: of keys that stand together in public rows, what these hold.
    Within one set a key could be public and in another not, but one list has to say which groups there are.
    """
    names = [key.name for key in aggregate.keys]
    lists: list[_KeyLists] = []
    for inside in aggregate.sets:
        keys = tuple(key for key in aggregate.keys if key.name in inside)
        found = _list_keys(replace(aggregate, keys=keys, sets=()), env, choices)
        if found is None or found.selected:
            return GroupPlan(aggregate, None, (*names, SET_COLUMN))
        lists.append(found)
    fields = (*(Field(key.name, key.expr.type) for key in aggregate.keys), Field(SET_COLUMN, BIGINT))
    of_sets = ListedSets(fields, tuple(Listed(found.factors) for found in lists))
    if of_sets.count > MAX_LISTED_KEYS:
        return GroupPlan(aggregate, None, (*names, SET_COLUMN))
    dropped = tuple(dict.fromkeys(key for found in lists for key in found.never_null))
    listed = Listed((_unite_sets(of_sets),))
    return GroupPlan(aggregate, listed, (), _has_computed_key(dropped), tuple(key.name for key in dropped))


def _unite_sets(listed: ListedSets) -> Factor:
    """The same groups row by row, where the statement and the schema alone tell them."""
    names = [key.name for key in listed.keys]
    rows: list[tuple[Scalar | None, ...]] = []
    for number, of in enumerate(listed.sets):
        known = [factor.rows for factor in of.factors if isinstance(factor, ListedRows) and factor.where is None]
        if len(known) != len(of.factors):
            return listed
        own = [*(key.name for key in of.keys), SET_COLUMN]
        for row in product(*known):
            values = dict(zip(own, (*chain.from_iterable(row), number), strict=True))
            rows.append(tuple(values.get(name) for name in names))
    return ListedRows(listed.keys, tuple(rows))


LIST_FORM = ("groups of public rows",)
"""What distinguishes lists, in the key of a stored release, from the longer ones of older versions."""


def list_form(listed: Listed | None) -> tuple[str, ...]:
    """Which groups a stored release has, where older versions listed others, or selected them."""
    return LIST_FORM if listed is not None and any(map(_is_narrow_list, listed.factors)) else ()


def _is_narrow_list(factor: Factor) -> bool:
    if isinstance(factor, ListedHole):
        return isinstance(factor.rows, Project)
    names = [key.name for key in factor.keys]
    if isinstance(factor, ListedRows) and SET_COLUMN in names:
        by_set: dict[Scalar | None, list[RowValues]] = {}
        for row in factor.rows:
            by_set.setdefault(row[names.index(SET_COLUMN)], []).append(row)
        values = {number: [len(set(column)) for column in zip(*rows, strict=True)] for number, rows in by_set.items()}
        return any(len(rows) != prod(values[number]) for number, rows in by_set.items())
    return isinstance(factor, ListedSets)


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


def rows_of_set(
    rows: Rows, keys: tuple[Field, ...], sets: tuple[frozenset[str], ...], never_null: tuple[str, ...], number: int
) -> Expand:
    """Of the rows that `expand_sets` makes, those of one grouping set, with its number."""
    inside = sets[number]
    present = tuple(
        Not(IsNull(Column(key.name, key.type))) for key in keys if key.name in never_null and key.name in inside
    )
    inner = rows_before_sets(rows)
    inner = Filter(inner, join_conjuncts(present)) if present else inner
    return Expand(inner, tuple(key.name for key in keys if key.name != SET_COLUMN), (inside,), number)


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


# --- keys that come from public rows ---------------------------------------------------------------------------------
#     visits JOIN wards ON visits.ward = wards.ward GROUP BY floor, wards.ward   →  the pairs that stand in wards
#     … WHERE floor = 2 GROUP BY visits.ward                                     →  the wards of the second floor
#
# A key comes from public rows where it is a column of theirs, or is equated to one by an inner join or a filter. The
# list meets the conditions that read public columns only, so that groups which no row could have are not in the answer.


PublicLeaf = RowsHole | PublicScan


@dataclass(frozen=True)
class PublicOrigin:
    """The column of public rows that a column equals; `optional`: or NULL, where an outer join found no row."""

    leaf: PublicLeaf
    column: Column
    optional: bool = False


@dataclass(frozen=True)
class PublicOrigins:
    """By the names of a relation's columns; and the conditions on public columns alone that all its rows meet."""

    columns: dict[str, PublicOrigin] = field(default_factory=dict)
    conditions: tuple[Expr, ...] = ()


def find_public_origins(node: Rows) -> PublicOrigins:
    match node:
        case RowsHole() | PublicScan():
            return PublicOrigins({f.name: PublicOrigin(node, Column(f.name, f.type)) for f in row_fields(node)})
        case Filter():
            return _filter_origins(find_public_origins(node.input), node.condition)
        case Project():
            below = find_public_origins(node.input)
            return PublicOrigins(_rename_origins(node.columns, below), below.conditions)
        case PerUnit():
            below = find_public_origins(node.input)
            return PublicOrigins(_rename_origins(node.keys, below), below.conditions)
        case Join():
            return _join_origins(node, find_public_origins(node.left), find_public_origins(node.right))
        case Mark():
            return find_public_origins(node.left)
        case UnitWindow() | Expand():
            return find_public_origins(node.input)
        case SetOperation():
            return (
                find_public_origins(node.left) if node.kind in (SetKind.INTERSECT, SetKind.EXCEPT) else PublicOrigins()
            )
        case Table() | Scan() | PublicTable():
            return PublicOrigins()
        case _:
            assert_never(node)


def _rename_origins(columns: tuple[Named, ...], below: PublicOrigins) -> dict[str, PublicOrigin]:
    return {c.name: origin for c in columns if (origin := public_origin_of(c.expr, below)) is not None}


def public_origin_of(expr: Expr, below: PublicOrigins) -> PublicOrigin | None:
    if isinstance(expr, Call) and expr.function == "finite":
        return public_origin_of(expr.args[0], below)
    return below.columns.get(expr.name) if isinstance(expr, Column) else None


def _join_origins(join: Join, left: PublicOrigins, right: PublicOrigins) -> PublicOrigins:
    def optional(side: PublicOrigins) -> dict[str, PublicOrigin]:
        return {name: replace(origin, optional=True) for name, origin in side.columns.items()}

    conditions = left.conditions + right.conditions
    match join.kind:
        case JoinKind.INNER:
            return _filter_origins(PublicOrigins(left.columns | right.columns, conditions), join.condition)
        case JoinKind.LEFT:
            return PublicOrigins(left.columns | optional(right), conditions)
        case JoinKind.FULL:
            return PublicOrigins(optional(left) | optional(right), conditions)
        case _:
            assert_never(join.kind)


def _filter_origins(below: PublicOrigins, condition: Expr) -> PublicOrigins:
    parts = split_conjuncts(condition)
    columns = dict(below.columns)
    while equated := _find_equated_columns(parts, columns):
        columns |= equated
    public = tuple(part for part in parts if columns_of(part) and columns_of(part) <= _certain_columns(columns))
    rewritten = (_to_public_columns(part, columns) for part in public)
    return PublicOrigins(
        columns, below.conditions + tuple(part for part in rewritten if not _is_trivial(part, columns))
    )


def _find_equated_columns(parts: tuple[Expr, ...], columns: dict[str, PublicOrigin]) -> dict[str, PublicOrigin]:
    """Columns that were not known to be public and equal one that is, in every row."""
    for part in parts:
        match part:
            case Compare("=", Column() as one, Column() as other) if one.type == other.type:
                for new, public in ((one.name, other.name), (other.name, one.name)):
                    if new not in columns and public in _certain_columns(columns):
                        return {new: columns[public]}
            case _:
                pass
    return {}


def _certain_columns(columns: dict[str, PublicOrigin]) -> frozenset[str]:
    return frozenset(name for name, origin in columns.items() if not origin.optional)


def _to_public_columns(part: Expr, columns: dict[str, PublicOrigin]) -> Expr:
    return map_expr(part, lambda e: columns[e.name].column if isinstance(e, Column) else e)


def _is_trivial(part: Expr, columns: dict[str, PublicOrigin]) -> bool:
    """x = x, where x is never NULL: what is left of an equality by which a private column is public."""
    if not isinstance(part, Compare) or part.op != "=" or part.left != part.right or not isinstance(part.left, Column):
        return False
    column = part.left
    leaves = {origin.leaf for origin in columns.values() if origin.column == column}
    return all(isinstance(leaf, PublicScan) and not _is_nullable(leaf, column) for leaf in leaves)


def _is_nullable(scan: PublicScan, column: Column) -> bool:
    return next(c.values.nullable for c in scan.columns if c.name == column.name)


# --- lists -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PublicKeys:
    """Keys whose values stand together in public rows, and the factor that lists them."""

    keys: tuple[Named, ...]
    factor: ListedHole
    by_value: bool  # one key, and no condition but on the key itself: its values, which are registered, say the same
    decided_by: frozenset[str] = frozenset()  # columns by which an outer join looks these up


@dataclass(frozen=True)
class _PublicKey:
    """A key as public rows have it: `expr` reads columns of `leaf`, and of rows that conditions tie to it."""

    key: Named
    expr: Expr
    leaf: PublicLeaf
    optional: bool = False


def find_public_keys(keys: tuple[Named, ...], node: Rows, nullable: Mapping[str, bool]) -> list[PublicKeys]:
    """`nullable` says which keys may be NULL.

    Privacy: the lists are made of public rows and released values alone (SOUNDNESS 3).
    """
    node_origins = find_public_origins(node)
    counted = any(isinstance(join, Join) and join.matches is not None for join in walk_rows(node))

    def find_leaves(leaf: PublicLeaf) -> tuple[PublicLeaf, ...]:
        tied = _connected_leaves(leaf, node, node_origins.conditions)
        return tied if not counted or _are_joined_soon(tied, node_origins.conditions) else (leaf,)

    together: dict[tuple[tuple[PublicLeaf, ...], bool], list[_PublicKey]] = {}
    for key in keys:
        public = _find_public_key(key, node_origins)
        if public is not None:
            leaves = (public.leaf,) if public.optional else find_leaves(public.leaf)
            if columns_of(public.expr) <= _column_names(*leaves):
                together.setdefault((leaves, public.optional), []).append(public)
    return [
        replace(
            _list_from_leaves(leaves, members, node_origins.conditions, nullable),
            decided_by=_lookup_columns(leaves[0], node) if optional else frozenset(),
        )
        for (leaves, optional), members in together.items()
    ]


def _find_public_key(key: Named, origins: PublicOrigins) -> _PublicKey | None:
    """A column of public rows, or what is worked out of such columns where every row has them."""
    origin = public_origin_of(key.expr, origins)
    if origin is not None:
        return _PublicKey(key, origin.column, origin.leaf, origin.optional)
    names = columns_of(key.expr)
    if not names or not names <= _certain_columns(origins.columns):
        return None
    return _PublicKey(key, _to_public_columns(key.expr, origins.columns), origins.columns[min(names)].leaf)


def _are_joined_soon(leaves: tuple[PublicLeaf, ...], conditions: tuple[Expr, ...]) -> bool:
    """Whether joining them is little work; where joins were not counted, the limit of matches bounds it."""
    about = tuple(condition for condition in conditions if columns_of(condition) <= _column_names(*leaves))
    return max_public_rows(_join_leaves(leaves, about)) <= MAX_JOINED_ROWS


def _lookup_columns(leaf: PublicLeaf, node: Rows) -> frozenset[str]:
    """The columns of the left by which an outer join finds its public rows: they decide which ones it finds."""
    for join in walk_rows(node):
        if isinstance(join, Join) and join.kind is JoinKind.LEFT and leaf in walk_rows(join.right):
            return columns_of(join.condition) - _column_names(join.right)
    return frozenset()


def _connected_leaves(leaf: PublicLeaf, node: Rows, conditions: tuple[Expr, ...]) -> tuple[PublicLeaf, ...]:
    """The public rows that conditions tie to these, in the order of the plan: for all of them the same."""
    leaves = [part for part in walk_rows(node) if isinstance(part, RowsHole | PublicScan)]
    tied: set[PublicLeaf] = set()
    more = {leaf}
    while more - tied:
        tied |= more
        read = [columns_of(condition) for condition in conditions if columns_of(condition) & _column_names(*tied)]
        more = {other for other in leaves for names in read if names & _column_names(other)}
    return tuple(other for other in leaves if other in tied)


def _column_names(*nodes: Rows) -> frozenset[str]:
    return frozenset(f.name for node in nodes for f in row_fields(node))


def _list_from_leaves(
    leaves: tuple[PublicLeaf, ...],
    members: list[_PublicKey],
    conditions: tuple[Expr, ...],
    nullable: Mapping[str, bool],
) -> PublicKeys:
    about = tuple(condition for condition in conditions if columns_of(condition) <= _column_names(*leaves))
    present = tuple(Not(IsNull(m.expr)) for m in members if not m.optional and not nullable[m.key.name])
    joined = _join_leaves(leaves, about + tuple(part for part in present if columns_of(part)))
    keys, own = tuple(m.key for m in members), frozenset(name for m in members for name in columns_of(m.expr))
    rows, columns = joined, tuple(m.expr.name for m in members if isinstance(m.expr, Column))
    if len(columns) < len(members):
        rows, columns = Project(joined, tuple(Named(m.key.name, m.expr) for m in members)), tuple(k.name for k in keys)
    fields = tuple(Field(key.name, key.expr.type) for key in keys)
    missing = all(m.optional and nullable[m.key.name] for m in members)
    factor = ListedHole(fields, rows, columns, _max_key_rows(joined, members, leaves), missing)
    alone = len(members) == 1 and len(leaves) == 1 and all(columns_of(condition) <= own for condition in about)
    return PublicKeys(keys, factor, alone and _is_known_by_value(members[0]))


def _max_key_rows(rows: Rows, keys: list[_PublicKey], leaves: tuple[PublicLeaf, ...]) -> int:
    """How many combinations the keys have at most: as many as rows, or as the columns that they read.

    Rows that are joined to those that hold the keys repeat their values, and add none.

    Stability: counted are rows and values that were registered with the data version; no domain is derived for it, as
    sensitivities of units per group rest on the number of groups.
    """
    read = {name for key in keys for name in columns_of(key.expr)}
    most = min(max_public_rows(rows), prod(max_public_rows(leaf) for leaf in leaves if read & _column_names(leaf)))
    counts = (_count_registered_values(name, leaves) for name in read)
    return min(most, prod(most if count is None else count for count in counts))


def _count_registered_values(name: str, leaves: tuple[PublicLeaf, ...]) -> int | None:
    """How many values the public column has, where they are registered: those of a hole are known when it is bound."""
    values = _registered_values(name, leaves)
    return None if values is None else len(values) + 1  # and NULL


def _registered_values(name: str, leaves: tuple[PublicLeaf, ...]) -> tuple[Scalar, ...] | None:
    columns = (column for leaf in leaves if isinstance(leaf, PublicScan) for column in leaf.columns)
    return next((column.values.values for column in columns if column.name == name), None)


def _is_known_by_value(key: _PublicKey) -> bool:
    """Whether the values of the column that it reads are registered, and it is worked out for each of them."""
    if len(columns_of(key.expr)) != 1:
        return False
    (name,) = columns_of(key.expr)
    values = _registered_values(name, (key.leaf,))
    return values is not None and evaluate_for_values(key.expr, name, (*values, None)) is not None


def _join_leaves(leaves: tuple[PublicLeaf, ...], conditions: tuple[Expr, ...]) -> Rows:
    """The rows joined to each other; started with those that bound their number best."""
    return min((_join_leaves_from(start, leaves, conditions) for start in leaves), key=max_public_rows)


def _join_leaves_from(start: PublicLeaf, leaves: tuple[PublicLeaf, ...], conditions: tuple[Expr, ...]) -> Rows:
    rows: Rows = _filter_leaf(start, conditions)
    used = [condition for condition in conditions if columns_of(condition) <= _column_names(start)]
    rest = [leaf for leaf in leaves if leaf != start]
    while rest:
        leaf = next((candidate for candidate in rest if _tying_conditions(rows, candidate, conditions, used)), rest[0])
        rest.remove(leaf)
        used += [condition for condition in conditions if columns_of(condition) <= _column_names(leaf)]
        ties = _tying_conditions(rows, leaf, conditions, used)
        rows = Join(rows, _filter_leaf(leaf, conditions), JoinKind.INNER, join_conjuncts(ties))
        used += ties
    return rows


def _tying_conditions(rows: Rows, leaf: PublicLeaf, conditions: tuple[Expr, ...], used: list[Expr]) -> tuple[Expr, ...]:
    return tuple(c for c in conditions if c not in used and columns_of(c) <= _column_names(rows, leaf))


def _filter_leaf(leaf: PublicLeaf, conditions: tuple[Expr, ...]) -> Rows:
    own = tuple(condition for condition in conditions if columns_of(condition) <= _column_names(leaf))
    return Filter(leaf, join_conjuncts(own)) if own else leaf
