"""All that a key can be, where it is few enough values to list."""

from __future__ import annotations

from dpsql.analysis.image import image
from dpsql.analysis.narrow import Environment
from dpsql.analysis.values import domain_of
from dpsql.functions.rules import every_value
from dpsql.plan.expr import Column, Expr
from dpsql.plan.walk import columns_of
from dpsql.schema.domain import Domain, Scalar

MOST_LISTED = 10_000
"""More public groups than this, and the keys are selected instead."""

MOST_WORKED_OUT = 2_000
"""Values of a column for which a key is worked out one by one, while the analyst waits."""


def key_choices(expr: Expr, env: Environment) -> tuple[Scalar | None, ...] | None:
    """All that a key can be: worked out value by value where one listed column decides it, else its domain."""
    names = columns_of(expr)
    if len(names) == 1 and not isinstance(expr, Column):
        (name,) = names
        below = few(env[name])
        found = None if below is None else image(expr, name, below)
        # A NULL below is possible whatever is declared; it is no group of its own, but what a key makes of it is one.
        of_null = image(expr, name, (None,))
        if found is not None and of_null is not None:
            values = dict.fromkeys(value for value in (*found, *of_null) if value is not None)
            return (*values, None) if None in found else tuple(values)
    return _choices(domain_of(expr, env))


def few(domain: Domain) -> tuple[Scalar | None, ...] | None:
    """The values of a column, where there are few enough to work out something of each."""
    values = _choices(domain)
    return None if values is None or len(values) > MOST_WORKED_OUT else values


def _choices(domain: Domain) -> tuple[Scalar | None, ...] | None:
    values = every_value(domain, MOST_LISTED)
    if values is None:
        return None
    return (*values, None) if domain.nullable else values
