"""Find the public groups of the keys, and drop rows that fall outside of them.

    GROUP BY sex  (values: [f, m, x])   →  listed f, m, x; rows whose sex is NULL are filtered out
    GROUP BY ward (no values)           →  not listed: partition selection
    GROUP BY wards.floor (public)       →  listed: what the public rows hold
    WHERE sex ILIKE '%f%' GROUP BY sex  →  listed f: the values for which the condition is true
    ROLLUP (sex)                        →  listed f, m, x in set 0 and NULL in set 1
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod

from dpsql.analysis.choices import MOST_LISTED as MOST_LISTED
from dpsql.analysis.choices import few, key_choices
from dpsql.analysis.domains import node_domains
from dpsql.analysis.image import image
from dpsql.analysis.narrow import Environment
from dpsql.analysis.values import domain_of
from dpsql.plan.expr import Call, Column, Expr, InList, IsNull, Not, conjunction
from dpsql.plan.nodes import Aggregate, Factor, Listed, ListedRows
from dpsql.plan.relations import SET, Field, Filter, Named, Rows, Scan, ScanColumn
from dpsql.plan.walk import columns_of, map_rows, walk
from dpsql.rewrite.joint_keys import decided_by, listed_rows, met
from dpsql.rewrite.public_keys import PublicKeys, public_keys
from dpsql.schema.domain import Domain, Scalar
from dpsql.types import BIGINT

MOST_WORKED_OUT_TOGETHER = 100_000
"""Combinations of values that are looked at, of which some no row can have."""

MOST_TRIED = 100_000
"""Parts of a condition that are worked out, over all values that it is tried on."""

MOST_CROSSED = 1_000
"""As MOST_LISTED, for the public part of a key whose other part is selected: every selected key is crossed with it."""


@dataclass(frozen=True)
class Groups:
    """The aggregate over rows of listed groups only; the list; and the keys that must be selected."""

    aggregate: Aggregate
    listed: Listed | None
    selected: tuple[str, ...]
    drops_nulls: bool = False  # rows for which a computed key is NULL are in no group
    never_null: tuple[str, ...] = ()  # of grouping sets: keys for which NULL is no group


def list_groups(aggregate: Aggregate) -> Groups:
    env = tried(node_domains(as_declared(aggregate.input)), aggregate)
    choices = {key.name: key_choices(key.expr, env) for key in aggregate.keys}
    if aggregate.sets:
        return _list_sets(aggregate, choices)
    public, valued, selected = _sorted(aggregate, _public(aggregate, env), choices)
    listed = prod(found.factor.count for found in public)
    if not (valued or public) or listed * prod(len(choices[k.name] or ()) for k in valued) > MOST_WORKED_OUT_TOGETHER:
        return Groups(aggregate, None, tuple(key.name for key in aggregate.keys))
    rows = listed_rows(valued, choices, lambda name: few(env[name]), aggregate.input)
    if listed * (1 if rows is None else rows.count) > (MOST_CROSSED if selected else MOST_LISTED):
        return Groups(aggregate, None, tuple(key.name for key in aggregate.keys))
    factors: list[Factor] = [*([] if rows is None else [rows]), *(found.factor for found in public)]
    dropped = _never_null(aggregate, valued, choices)
    kept = aggregate
    if dropped:
        present = conjunction(tuple(Not(IsNull(key.expr)) for key in dropped))
        kept = replace(aggregate, input=Filter(aggregate.input, present))
    return Groups(kept, Listed(tuple(factors)), selected, _computed(dropped))


def tried(env: Environment, aggregate: Aggregate) -> Environment:
    """The domains without those values of a key's column for which a condition that all rows meet is not true.

    Stability: a group that is taken off the list has no row that meets the condition, and would be empty.
    """
    result = dict(env)
    asked = frozenset(name for key in aggregate.keys for name in columns_of(key.expr))
    for part in met(aggregate.input):
        names = columns_of(part)
        name = next(iter(names), "")
        if len(names) == 1 and name in asked and name in result:
            result[name] = _for_which_true(part, name, result[name])
    return result


def _for_which_true(part: Expr, name: str, domain: Domain) -> Domain:
    values = few(domain)
    if values is None or len(values) * _size(part) > MOST_TRIED:
        return domain
    kept: list[Scalar | None] = []
    for value in values:
        truth = image(part, name, (value,))
        if truth is None:  # not worked out
            return domain
        kept += [value] * (truth == (True,))
    return replace(domain, values=tuple(v for v in kept if v is not None), nullable=None in kept)


def _size(part: Expr) -> int:
    return sum(len(inner.values) if isinstance(inner, InList) else 1 for inner in walk(part))


def _sorted(
    aggregate: Aggregate, public: list[PublicKeys], choices: Choices
) -> tuple[list[PublicKeys], list[Named], tuple[str, ...]]:
    """Keys that public rows list, keys listed by value, and those to be selected, with all that these decide."""
    listing = [found for found in public if found.factor.count <= MOST_LISTED and not found.by_value]
    from_rows = {key.name for found in listing for key in found.keys}
    valued = [key for key in aggregate.keys if key.name not in from_rows and choices[key.name] is not None]
    selected = tuple(key for key in aggregate.keys if key not in valued and key.name not in from_rows)
    selected += decided_by(tuple(valued), selected)
    read = frozenset(name for key in selected for name in columns_of(key.expr))
    met = [found for found in public if found.decided_by and found.decided_by <= read]
    selected += tuple(key for found in met for key in found.keys if key not in selected)
    names = {key.name for key in selected}
    return (
        [found for found in listing if found not in met],
        [key for key in valued if key.name not in names],
        tuple(key.name for key in aggregate.keys if key.name in names),
    )


def _list_sets(aggregate: Aggregate, choices: Choices) -> Groups:
    """The groups of every grouping set, with NULL for keys that are not in it; all are selected where some must be.

    Within one set a key could be public and in another not, but one list has to say which groups there are.
    """
    names = [key.name for key in aggregate.keys]
    listable = all(choices[name] is not None for name in names)
    sizes = [prod(len(choices[name] or ()) for name in names if name in inside) for inside in aggregate.sets]
    if not listable or sum(sizes) > MOST_LISTED:
        return Groups(aggregate, None, (*names, SET))
    nothing: tuple[Scalar | None, ...] = (None,)
    rows = tuple(
        (*row, number)
        for number, inside in enumerate(aggregate.sets)
        for row in product(*((choices[name] or ()) if name in inside else nothing for name in names))
    )
    fields = tuple(Field(key.name, key.expr.type) for key in aggregate.keys)
    dropped = _never_null(aggregate, list(aggregate.keys), choices)
    listed = Listed((ListedRows((*fields, Field(SET, BIGINT)), rows),))
    return Groups(aggregate, listed, (), _computed(dropped), tuple(key.name for key in dropped))


def _public(aggregate: Aggregate, env: Environment) -> list[PublicKeys]:
    nullable = {key.name: domain_of(_plain(key.expr), env).nullable for key in aggregate.keys}
    return public_keys(aggregate.keys, aggregate.input, nullable)


def _plain(expr: Expr) -> Expr:
    return expr.args[0] if isinstance(expr, Call) and expr.function == "finite" else expr


def as_declared(node: Rows) -> Rows:
    """The rows with NULL only where the owner says that NULL is a group, or public rows have it."""

    def declared(column: ScanColumn) -> ScanColumn:
        return replace(column, domain=column.domain.with_nullable(column.null_group))

    def change(part: Rows) -> Rows:
        if isinstance(part, Scan):
            return replace(part, columns=tuple(declared(column) for column in part.columns))
        return part

    return map_rows(node, change)


Choices = dict[str, tuple[Scalar | None, ...] | None]


def _never_null(aggregate: Aggregate, listed: list[Named], choices: Choices) -> tuple[Named, ...]:
    """Keys that may be NULL in a row although NULL is not among their groups: such a row is in none of them."""
    env = node_domains(aggregate.input)
    unlisted = [key for key in listed if None not in (choices[key.name] or ())]
    return tuple(key for key in unlisted if domain_of(key.expr, env).nullable)


def _computed(dropped: tuple[Named, ...]) -> bool:
    return any(not isinstance(key.expr, Column) for key in dropped)
