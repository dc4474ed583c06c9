"""Find the public groups of the keys, and drop rows that fall outside of them.

    GROUP BY sex  (values: [f, m, x])   →  listed f, m, x; rows whose sex is NULL are filtered out
    GROUP BY ward (no values)           →  not listed: partition selection
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod

from dpsql.analysis.domains import node_domains
from dpsql.analysis.image import image
from dpsql.analysis.narrow import Environment
from dpsql.analysis.values import domain_of
from dpsql.plan.expr import Column, Expr, IsNull, Not, conjunction
from dpsql.plan.nodes import Aggregate, Listed, ListedRows
from dpsql.plan.relations import Field, Filter, Named, Rows, Scan, ScanColumn
from dpsql.plan.walk import columns_of, map_rows
from dpsql.schema.domain import EPOCH, Domain, Scalar
from dpsql.types import Kind

MOST_LISTED = 10_000
"""More public groups than this, and the keys are selected instead."""

MOST_WORKED_OUT = 2_000
"""Values of a column for which a key is worked out one by one, while the analyst waits."""

MOST_CROSSED = 1_000
"""The same for the public part of a key whose other part is selected: every selected key is crossed with it."""


@dataclass(frozen=True)
class Groups:
    """The aggregate over rows of listed groups only; the list; and the keys that must be selected."""

    aggregate: Aggregate
    listed: Listed | None
    selected: tuple[str, ...]
    drops_nulls: bool = False  # rows for which a computed key is NULL are in no group


def list_groups(aggregate: Aggregate) -> Groups:
    env = node_domains(_as_declared(aggregate.input))
    choices = {key.name: _key_choices(key.expr, env) for key in aggregate.keys}
    listable = [key for key in aggregate.keys if choices[key.name] is not None]
    most = MOST_LISTED if len(listable) == len(aggregate.keys) else MOST_CROSSED
    if not listable or prod(len(choices[key.name] or ()) for key in listable) > most:
        return Groups(aggregate, None, tuple(key.name for key in aggregate.keys))
    rows = tuple(product(*(choices[key.name] or () for key in listable)))
    listed = Listed((ListedRows(tuple(Field(key.name, key.expr.type) for key in listable), rows),))
    selected = tuple(key.name for key in aggregate.keys if key not in listable)
    kept = _drop_nulls(aggregate, listable, choices)
    computed = any(not isinstance(key.expr, Column) and None not in (choices[key.name] or ()) for key in listable)
    return Groups(kept, listed, selected, computed and kept is not aggregate)


def _as_declared(node: Rows) -> Rows:
    """The rows with NULL only where the owner says that NULL is a group."""

    def declared(column: ScanColumn) -> ScanColumn:
        return replace(column, domain=column.domain.with_nullable(column.null_group))

    def change(part: Rows) -> Rows:
        if isinstance(part, Scan):
            return replace(part, columns=tuple(declared(column) for column in part.columns))
        return part

    return map_rows(node, change)


Choices = dict[str, tuple[Scalar | None, ...] | None]


def _drop_nulls(aggregate: Aggregate, listable: list[Named], choices: Choices) -> Aggregate:
    """A NULL that is not a listed group is no group at all."""
    env = node_domains(aggregate.input)
    unlisted = [key for key in listable if None not in (choices[key.name] or ())]
    never_null = tuple(Not(IsNull(key.expr)) for key in unlisted if domain_of(key.expr, env).nullable)
    if not never_null:
        return aggregate
    return replace(aggregate, input=Filter(aggregate.input, conjunction(never_null)))


def _key_choices(expr: Expr, env: Environment) -> tuple[Scalar | None, ...] | None:
    """All that a key can be: worked out value by value where one listed column decides it, else its domain."""
    names = columns_of(expr)
    if len(names) == 1 and not isinstance(expr, Column):
        (name,) = names
        below = _choices(env[name])
        found = None if below is None or len(below) > MOST_WORKED_OUT else image(expr, name, below)
        # A NULL below is possible whatever is declared; it is no group of its own, but what a key makes of it is one.
        of_null = image(expr, name, (None,))
        if found is not None and of_null is not None:
            values = dict.fromkeys(value for value in (*found, *of_null) if value is not None)
            return (*values, None) if None in found else tuple(values)
    return _choices(domain_of(expr, env))


def _choices(domain: Domain) -> tuple[Scalar | None, ...] | None:
    values = domain.values if domain.values is not None else _range(domain)
    if values is None or len(values) > MOST_LISTED:
        return None
    return (*values, None) if domain.nullable else values


def _range(domain: Domain) -> tuple[Scalar, ...] | None:
    """Whole numbers or days between finite bounds."""
    if not domain.bounded or domain.bounds[1] - domain.bounds[0] > MOST_LISTED:
        return None
    if not domain.type.is_integer and domain.type.kind is not Kind.DATE:
        return None
    lower, upper = domain.bounds
    numbers = range(lower.__ceil__(), upper.__floor__() + 1)
    if domain.type.is_integer:
        return tuple(numbers)
    if not -719_162 <= numbers.start <= numbers.stop <= 2_932_897:  # days that Python's calendar has
        return None
    return tuple(_day(Fraction(number)) for number in numbers)


def _day(number: Fraction) -> dt.date:
    return EPOCH.date() + dt.timedelta(days=int(number))
