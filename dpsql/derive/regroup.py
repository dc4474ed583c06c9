"""Which groups of a stored release make up each group that is asked for.

    stored: day, kind; asked: date_trunc('month', day) WHERE kind = 'web'  →  the days of each month, of 'web' alone

What is asked is worked out of single stored keys, as `analysis/image` works out listed ones. The result is the groups
that a fresh release would list, no more and no less; what cannot be told so is not derived.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from math import prod
from typing import assert_never

from dpsql.analysis.canon import canonical_expr
from dpsql.analysis.image import image
from dpsql.derive.describe import Described
from dpsql.derive.shape import Key, Shape
from dpsql.exact import Row
from dpsql.plan.expr import Call, Column, Compare, Expr, InList, Literal
from dpsql.plan.nodes import Factor, Gather, ListedHole, ListedRange, ListedRows
from dpsql.plan.walk import columns_of, map_expr, walk
from dpsql.schema.domain import Scalar
from dpsql.types import Kind

KEY = "\0key"
"""The column that stands for a stored key. No column of a schema can have this name, and an alias must not."""

MOST_PARTS = 200
"""Of an expression in which a key is looked for."""

MOST_GROUPS = 100_000

_WITHIN_A_DAY = ("day", "hour", "minute", "second")
FINER = {
    "year": ("quarter", "month", *_WITHIN_A_DAY),
    "quarter": ("month", *_WITHIN_A_DAY),
    "month": _WITHIN_A_DAY,
    "week": _WITHIN_A_DAY,
    "day": _WITHIN_A_DAY[1:],
    "hour": _WITHIN_A_DAY[2:],
    "minute": _WITHIN_A_DAY[3:],
}
"""Parts of time that lie within one another: a week does not lie within a month."""


class NotDerived(Exception):
    """What is asked cannot be told from this release."""


@dataclass(frozen=True)
class Over:
    """An expression that reads nothing but the stored key at `place`, as the column KEY."""

    place: int
    expr: Expr

    @property
    def is_key(self) -> bool:
        return isinstance(self.expr, Column)

    def at(self, value: Scalar | None) -> Scalar | None:
        found = image(self.expr, KEY, (value,))
        if found is None:
            raise NotDerived
        return found[0]


@dataclass(frozen=True)
class Regrouped:
    """The groups asked for, each with the places of the stored ones that make it up.

    `narrowed` are the stored keys that leave rows out; `dropped` those that are not keys of what is asked.
    """

    keys: tuple[Row, ...]
    members: tuple[tuple[int, ...], ...]
    narrowed: frozenset[int]
    dropped: frozenset[int]

    @property
    def most(self) -> int:
        """Stored groups in one of those asked for, at most."""
        return max(1, *map(len, self.members)) if self.members else 1


def regroup(asked: Described, gather: Gather, stored: Shape, groups: Sequence[Row]) -> Regrouped:
    """`gather` is the asked plan, `groups` the keys of the stored release."""
    keys = [_over(expr, stored.keys) for expr in asked.keys]
    known = set(stored.conditions)
    more = zip(asked.shape.conditions, asked.conditions, strict=True)
    extra = [_over(expr, stored.keys) for text, expr in more if text not in known]
    _check_conditions(asked.shape, stored, extra)
    narrowed = frozenset(_narrowed(extra, stored, groups))
    _check_selected(asked.shape, stored, extra, narrowed, groups)
    members: dict[Row, list[int]] = {group: [] for group in _wanted(asked.shape, gather, keys, stored, groups)}
    for place, group in enumerate(_regrouped(keys, extra, groups)):
        if group is not None:
            if group not in members:
                raise NotDerived
            members[group].append(place)
    if not all(members.values()) and not all(key.complete for key in stored.keys):
        raise NotDerived  # where every row is in a stored group, one that none of them makes up is empty
    kept = {over.place for over in keys if over.is_key}
    dropped = frozenset(range(len(stored.keys))) - kept
    return Regrouped(tuple(members), tuple(map(tuple, members.values())), narrowed, dropped)


def _over(expr: Expr, keys: Sequence[Key]) -> Over:
    """The expression over the first stored key that decides it: one that is a part of it, or a finer moment."""
    if KEY in columns_of(expr):
        raise NotDerived
    texts = {key.text: place for place, key in enumerate(keys)}
    parts = list(walk(expr))
    for part in parts if len(parts) <= MOST_PARTS else ():
        for finer, said in ((part, Column(KEY, part.type)), *_finer(part)):
            place = texts.get(canonical_expr(finer))
            above = None if place is None else _above(expr, part, said)
            if place is not None and above is not None and columns_of(above) == {KEY}:
                return Over(place, above)
    raise NotDerived


def _finer(part: Expr) -> Iterable[tuple[Expr, Expr]]:
    """date_trunc('month', x) is date_trunc('month', date_trunc('day', x)), and so on; the calendar is that of UTC."""
    if isinstance(part, Call) and part.function == "date_trunc" and part.type.kind is Kind.TIMESTAMP:
        unit, moment = part.args
        for finer in FINER.get(str(unit.value), ()) if isinstance(unit, Literal) else ():
            within = replace(part, args=(Literal(finer, unit.type), moment))
            yield within, replace(part, args=(unit, Column(KEY, part.type)))


def _above(expr: Expr, part: Expr, said: Expr) -> Expr:
    return said if expr == part else map_expr(expr, lambda inner: said if inner == part else inner)


# --- conditions ------------------------------------------------------------------------------------------------------


def _check_conditions(asked: Shape, stored: Shape, extra: list[Over]) -> None:
    """Every row that is asked for is in the stored release: it meets the stored conditions too."""
    for condition in set(stored.conditions) - set(asked.conditions):
        places = [place for place, key in enumerate(stored.keys) if key.present == condition]
        if not any(over.at(None) is not True for over in extra if over.place in places):
            raise NotDerived


def _narrowed(extra: list[Over], stored: Shape, groups: Sequence[Row]) -> Iterable[int]:
    for over in extra:
        key = stored.keys[over.place]
        values = {group[over.place] for group in groups}
        if not (key.complete and values and all(over.at(value) is True for value in values)):
            yield over.place


def _check_selected(
    asked: Shape, stored: Shape, extra: list[Over], narrowed: frozenset[int], groups: Sequence[Row]
) -> None:
    """A selection serves as it is, for the same rows and keys; one that is added up or looked into has to show every
    group that is asked for, by name: a group that is missing may hold rows."""
    selected = [place for place, key in enumerate(stored.keys) if key.selected]
    if asked.selection is not None:
        same = {key.text for key in asked.keys if key.selected} == {stored.keys[place].text for place in selected}
        if not same or asked.selection != stored.selection or narrowed:
            raise NotDerived
    elif selected:
        named = [_named(place, extra) for place in selected]
        shown = {tuple(group[place] for place in selected) for group in groups}
        if prod(map(len, named)) > MOST_GROUPS or not shown.issuperset(product(*named)):
            raise NotDerived


def _named(place: int, extra: list[Over]) -> list[Scalar | None]:
    """The values that a condition names: key IN (…), or key = one of them."""
    for over in extra:
        match over.expr:
            case InList(Column(), values) if over.place == place:
                return [literal.value for literal in values]
            case Compare("=", Column(), Literal() as one) | Compare("=", Literal() as one, Column()):
                if over.place == place:
                    return [one.value]
            case _:
                pass
    raise NotDerived


def _regrouped(keys: list[Over], extra: list[Over], groups: Sequence[Row]) -> Iterable[Row | None]:
    """The asked group of every stored one; None where a condition leaves it out."""
    values = [list(dict.fromkeys(group[place] for group in groups)) for place in range(len(groups[0]) if groups else 0)]
    meets = [(over.place, {value: over.at(value) is True for value in values[over.place]}) for over in extra if values]
    given = [(over.place, {v: v if over.is_key else over.at(v) for v in values[over.place]}) for over in keys if values]
    for group in groups:
        met = all(known[group[place]] for place, known in meets)
        yield tuple(known[group[place]] for place, known in given) if met else None


# --- groups ----------------------------------------------------------------------------------------------------------


def _wanted(
    asked: Shape, gather: Gather, keys: list[Over], stored: Shape, groups: Sequence[Row]
) -> Iterable[Row]:
    """The groups that a fresh release would have, in its order."""
    names = [field.name for field in gather.keys]
    over = dict(zip(names, keys, strict=True))
    selected = [name for name, key in zip(names, asked.keys, strict=True) if key.selected]
    factors: list[tuple[list[str], Sequence[Row]]] = []
    if selected:
        factors.append((selected, _shown([over[name] for name in selected], groups)))
    for factor in gather.listed.factors if gather.listed is not None else ():
        own = [field.name for field in factor.keys]
        same = all(_same_list(name, names, asked, over, stored) for name in own)
        factors.append((own, _listed(factor, [over[name] for name in own] if same else None, groups)))
    if prod(len(rows) for _, rows in factors) > MOST_GROUPS:
        raise NotDerived
    order = [name for own, _ in factors for name in own]
    for rows in product(*(rows for _, rows in factors)):
        found = dict(zip(order, chain.from_iterable(rows), strict=True))
        yield tuple(found[name] for name in names)


def _same_list(name: str, names: list[str], asked: Shape, over: dict[str, Over], stored: Shape) -> bool:
    key = asked.keys[names.index(name)]
    return over[name].is_key and key.listing is not None and key.listing == stored.keys[over[name].place].listing


def _listed(factor: Factor, same: list[Over] | None, groups: Sequence[Row]) -> Sequence[Row]:
    match factor:
        case ListedRows():
            if factor.where is not None:
                raise NotDerived
            return factor.rows
        case ListedRange():
            return [(number,) for number in range(factor.lower, factor.upper + 1)]
        case ListedHole():
            if same is None:
                raise NotDerived
            return _shown(same, groups)
        case _:
            assert_never(factor)


def _shown(keys: list[Over], groups: Sequence[Row]) -> list[Row]:
    """The distinct values of these keys; a list of public rows shows all of its own in every release."""
    if not all(over.is_key for over in keys):
        raise NotDerived
    return list(dict.fromkeys(tuple(group[over.place] for over in keys) for group in groups))
