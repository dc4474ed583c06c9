"""Which groups of a stored release make up each group that is asked for.

    stored: day, kind; asked: date_trunc('month', day) WHERE kind = 'web'  →  the days of each month, of 'web' alone

What is asked is worked out of single stored keys, as `analysis/key_values.py` works out listed ones. The result is the
groups that a fresh release would list, no more and no less; what cannot be told so is not derived.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from math import prod
from typing import assert_never

from dpsql.compiler.analysis.canonical import canonical_expr_text
from dpsql.compiler.analysis.key_values import evaluate_for_values
from dpsql.compiler.plan.aggregate import Factor, Gather, ListedHole, ListedRange, ListedRows, ListedSets
from dpsql.compiler.plan.expressions import Call, Column, Compare, Expr, InList, Literal
from dpsql.compiler.plan.walk import columns_of, map_expr, walk_exprs
from dpsql.compiler.reuse.describe import DescribedRelease, KeyShape, ReleaseShape
from dpsql.privacy.exact import Row
from dpsql.schema.model import Scalar
from dpsql.types import Kind

KEY_COLUMN = "\0key"
"""The column that stands for a stored key. No column of a schema can have this name, and an alias must not."""

MAX_PARTS = 200
"""Of an expression in which a key is looked for."""

MAX_GROUPS = 100_000

_DAY_UNITS = ("day", "hour", "minute", "second")
FINER_UNITS = {
    "year": ("quarter", "month", *_DAY_UNITS),
    "quarter": ("month", *_DAY_UNITS),
    "month": _DAY_UNITS,
    "week": _DAY_UNITS,
    "day": _DAY_UNITS[1:],
    "hour": _DAY_UNITS[2:],
    "minute": _DAY_UNITS[3:],
}
"""Parts of time that lie within one another: a week does not lie within a month."""


class NotDerivable(Exception):
    """The wanted release cannot be derived from this one."""


@dataclass(frozen=True)
class KeyExpr:
    """An expression that reads nothing but the stored key at `place`, as the column KEY."""

    place: int
    expr: Expr

    @property
    def is_key(self) -> bool:
        return isinstance(self.expr, Column)

    def evaluate_at(self, value: Scalar | None) -> Scalar | None:
        values = evaluate_for_values(self.expr, KEY_COLUMN, (value,))
        if values is None:
            raise NotDerivable
        return values[0]


@dataclass(frozen=True)
class Regrouping:
    """The groups asked for, each with the places of the stored ones that make it up.

    `narrowed` are the stored keys that leave rows out; `dropped` those that are not keys of what is asked.
    """

    keys: tuple[Row, ...]
    members: tuple[tuple[int, ...], ...]
    narrowed: frozenset[int]
    dropped: frozenset[int]

    @property
    def max_members(self) -> int:
        """Stored groups in one of those asked for, at most."""
        return max(1, *map(len, self.members)) if self.members else 1


def regroup_release(
    wanted: DescribedRelease, gather: Gather, stored: ReleaseShape, groups: Sequence[Row]
) -> Regrouping:
    """`gather` is the asked plan, `groups` the keys of the stored release."""
    keys = [_find_key_expr(expr, stored.keys) for expr in wanted.keys]
    stored_conditions = set(stored.conditions)
    more = zip(wanted.shape.conditions, wanted.conditions, strict=True)
    extra = [_find_key_expr(expr, stored.keys) for text, expr in more if text not in stored_conditions]
    _check_conditions(wanted.shape, stored, extra)
    narrowed = frozenset(_narrowing_keys(extra, stored, groups))
    _check_selected(wanted.shape, stored, extra, narrowed, groups)
    members: dict[Row, list[int]] = {group: [] for group in _wanted_groups(wanted.shape, gather, keys, stored, groups)}
    for index, group in enumerate(_map_groups(keys, extra, groups)):
        if group is not None:
            if group not in members:
                raise NotDerivable
            members[group].append(index)
    if not all(members.values()) and not all(key.complete for key in stored.keys):
        raise NotDerivable  # where every row is in a stored group, one that none of them makes up is empty
    key_indices = {over.place for over in keys if over.is_key}
    dropped = frozenset(range(len(stored.keys))) - key_indices
    return Regrouping(tuple(members), tuple(map(tuple, members.values())), narrowed, dropped)


def _find_key_expr(expr: Expr, keys: Sequence[KeyShape]) -> KeyExpr:
    """The expression over the first stored key that decides it: one that is a part of it, or a finer moment."""
    if KEY_COLUMN in columns_of(expr):
        raise NotDerivable
    texts = {key.text: index for index, key in enumerate(keys)}
    parts = list(walk_exprs(expr))
    for part in parts if len(parts) <= MAX_PARTS else ():
        for finer, replacement in ((part, Column(KEY_COLUMN, part.type)), *_finer_truncations(part)):
            index = texts.get(canonical_expr_text(finer))
            above = None if index is None else _substitute_part(expr, part, replacement)
            if index is not None and above is not None and columns_of(above) == {KEY_COLUMN}:
                return KeyExpr(index, above)
    raise NotDerivable


def _finer_truncations(part: Expr) -> Iterable[tuple[Expr, Expr]]:
    """date_trunc('month', x) is date_trunc('month', date_trunc('day', x)), and so on; the calendar is that of UTC."""
    if isinstance(part, Call) and part.function == "date_trunc" and part.type.kind is Kind.TIMESTAMP:
        unit, timestamp = part.args
        for finer in FINER_UNITS.get(str(unit.value), ()) if isinstance(unit, Literal) else ():
            within = replace(part, args=(Literal(finer, unit.type), timestamp))
            yield within, replace(part, args=(unit, Column(KEY_COLUMN, part.type)))


def _substitute_part(expr: Expr, part: Expr, replacement: Expr) -> Expr:
    return replacement if expr == part else map_expr(expr, lambda inner: replacement if inner == part else inner)


# --- conditions ------------------------------------------------------------------------------------------------------


def _check_conditions(wanted: ReleaseShape, stored: ReleaseShape, extra: list[KeyExpr]) -> None:
    """Every row that is asked for is in the stored release: it meets the stored conditions too."""
    for condition in set(stored.conditions) - set(wanted.conditions):
        indices = [index for index, key in enumerate(stored.keys) if key.present == condition]
        if not any(over.evaluate_at(None) is not True for over in extra if over.place in indices):
            raise NotDerivable


def _narrowing_keys(extra: list[KeyExpr], stored: ReleaseShape, groups: Sequence[Row]) -> Iterable[int]:
    for over in extra:
        key = stored.keys[over.place]
        values = {group[over.place] for group in groups}
        if not (key.complete and values and all(over.evaluate_at(value) is True for value in values)):
            yield over.place


def _check_selected(
    wanted: ReleaseShape, stored: ReleaseShape, extra: list[KeyExpr], narrowed: frozenset[int], groups: Sequence[Row]
) -> None:
    """A selection serves as it is, for the same rows and keys; one that is added up or looked into has to show every
    group that is asked for, by name: a group that is missing may hold rows."""
    selected = [index for index, key in enumerate(stored.keys) if key.selected]
    if wanted.selection is not None:
        same = {key.text for key in wanted.keys if key.selected} == {stored.keys[index].text for index in selected}
        if not same or wanted.selection != stored.selection or narrowed:
            raise NotDerivable
    elif selected:
        named = [_named_values(index, extra) for index in selected]
        shown = {tuple(group[index] for index in selected) for group in groups}
        if prod(map(len, named)) > MAX_GROUPS or not shown.issuperset(product(*named)):
            raise NotDerivable


def _named_values(index: int, extra: list[KeyExpr]) -> list[Scalar | None]:
    """The values that a condition names: key IN (…), or key = one of them."""
    for over in extra:
        match over.expr:
            case InList(Column(), values) if over.place == index:
                return [literal.value for literal in values]
            case Compare("=", Column(), Literal() as one) | Compare("=", Literal() as one, Column()):
                if over.place == index:
                    return [one.value]
            case _:
                pass
    raise NotDerivable


def _map_groups(keys: list[KeyExpr], extra: list[KeyExpr], groups: Sequence[Row]) -> Iterable[Row | None]:
    """The asked group of every stored one; None where a condition leaves it out."""
    values = [list(dict.fromkeys(group[index] for group in groups)) for index in range(len(groups[0]) if groups else 0)]
    meets = [
        (over.place, {value: over.evaluate_at(value) is True for value in values[over.place]})
        for over in extra
        if values
    ]
    key_values = [
        (over.place, {v: v if over.is_key else over.evaluate_at(v) for v in values[over.place]})
        for over in keys
        if values
    ]
    for group in groups:
        is_met = all(lookup[group[index]] for index, lookup in meets)
        yield tuple(lookup[group[index]] for index, lookup in key_values) if is_met else None


# --- groups ----------------------------------------------------------------------------------------------------------


def _wanted_groups(
    wanted: ReleaseShape, gather: Gather, keys: list[KeyExpr], stored: ReleaseShape, groups: Sequence[Row]
) -> Iterable[Row]:
    """The groups that a fresh release would have, in its order."""
    names = [field.name for field in gather.keys]
    over = dict(zip(names, keys, strict=True))
    selected = [name for name, key in zip(names, wanted.keys, strict=True) if key.selected]
    factors: list[tuple[list[str], Sequence[Row]]] = []
    if selected:
        factors.append((selected, _shown_values([over[name] for name in selected], groups)))
    for factor in gather.listed.factors if gather.listed is not None else ():
        own = [field.name for field in factor.keys]
        same = all(_has_same_list(name, names, wanted, over, stored) for name in own)
        factors.append((own, _listed_rows(factor, [over[name] for name in own] if same else None, groups)))
    if prod(len(rows) for _, rows in factors) > MAX_GROUPS:
        raise NotDerivable
    order = [name for own, _ in factors for name in own]
    for rows in product(*(rows for _, rows in factors)):
        values = dict(zip(order, chain.from_iterable(rows), strict=True))
        yield tuple(values[name] for name in names)


def _has_same_list(
    name: str, names: list[str], wanted: ReleaseShape, over: dict[str, KeyExpr], stored: ReleaseShape
) -> bool:
    key = wanted.keys[names.index(name)]
    return over[name].is_key and key.listing is not None and key.listing == stored.keys[over[name].place].listing


def _listed_rows(factor: Factor, same: list[KeyExpr] | None, groups: Sequence[Row]) -> Sequence[Row]:
    match factor:
        case ListedRows():
            if factor.where is not None:
                raise NotDerivable
            return factor.rows
        case ListedRange():
            return [(number,) for number in range(factor.lower, factor.upper + 1)]
        case ListedHole():
            if same is None:
                raise NotDerivable
            return _shown_values(same, groups)
        case ListedSets():  # nothing is derived for grouping sets
            raise NotDerivable
        case _:
            assert_never(factor)


def _shown_values(keys: list[KeyExpr], groups: Sequence[Row]) -> list[Row]:
    """The distinct values of these keys; a list of public rows shows all of its own in every release."""
    if not all(over.is_key for over in keys):
        raise NotDerivable
    return list(dict.fromkeys(tuple(group[over.place] for over in keys) for group in groups))
