"""All that a key can be, where it is few enough values to list.

    age(DATE '2025-01-01', born) in years / 10 * 10   →  the years first, 10 to 94; then 10, 20, … 90
"""

from __future__ import annotations

from decimal import Decimal

from dpsql.analysis.image import Value, image
from dpsql.analysis.narrow import Environment
from dpsql.analysis.values import domain_of
from dpsql.functions.calendar import ends, time_as
from dpsql.functions.rules import every_value
from dpsql.plan.expr import Arithmetic, Call, Column, Expr, Literal
from dpsql.plan.walk import columns_of, map_expr, walk
from dpsql.schema.domain import Domain

MOST_LISTED = 10_000
"""More public groups than this, and the keys are selected instead."""

MOST_WORKED_OUT = 2_000
"""Values of a part of a key for which the key is worked out one by one, while the analyst waits."""

MOST_PARTS = 200
"""Of an expression in which a deciding part is looked for."""

_PART = "part"

Choices = tuple[Value, ...]


def key_choices(expr: Expr, env: Environment) -> Choices | None:
    """Worked out value by value where one listed part decides the key, else its domain."""
    if isinstance(expr, Column):
        return _choices(domain_of(expr, env))
    for part in _deciding(expr):
        found = _worked_out(expr, part, env)
        if found is not None:
            return found
    steps = _steps(expr, env)
    return _choices(domain_of(expr, env)) if steps is None else steps


def _steps(expr: Expr, env: Environment) -> Choices | None:
    """floor(extract(epoch FROM at) / 3600): every whole number from what its first moment gives to its last's.

    Doubles are divided and rounded alike everywhere, and later moments never give less, so the ends are exact.
    """
    at = _counted(expr)
    domain = None if at is None else domain_of(at, env)
    moments = None if domain is None else ends(domain)
    if at is None or domain is None or moments is None:
        return None
    found = image(_above(at, expr), _PART, tuple(time_as(moment, domain.type) for moment in moments))
    if found is None:
        return None
    first, last = (int(number) for number in (found[0], found[-1]) if isinstance(number, float))
    if last - first >= MOST_LISTED:
        return None
    return (*(float(number) for number in range(first, last + 1)), *((None,) if domain.nullable else ()))


def _counted(expr: Expr) -> Expr | None:
    """The moment whose seconds, or whose seconds by a number above 0, are rounded down."""
    if not isinstance(expr, Call) or expr.function != "floor":
        return None
    seconds = expr.args[0]
    if isinstance(seconds, Arithmetic) and seconds.op == "/" and isinstance(seconds.right, Literal):
        width = seconds.right.value
        seconds = seconds.left if isinstance(width, int | float | Decimal) and width > 0 else seconds
    counts = isinstance(seconds, Call) and seconds.function == "epoch"
    return seconds.args[0] if isinstance(seconds, Call) and counts and seconds.args[0].type.is_time else None


def _deciding(expr: Expr) -> tuple[Expr, ...]:
    """Parts that the key reads its columns through: its one column, then the largest such part."""
    names = columns_of(expr)
    if not names:
        return ()
    every = tuple(walk(expr))
    columns = [part for part in every if isinstance(part, Column)][:1] if len(names) == 1 else []
    parts = (part for part in every[1:] if not isinstance(part, Column | Literal) and len(every) <= MOST_PARTS)
    largest = next((part for part in parts if columns_of(part) == names and _decides(part, expr)), None)
    return (*columns, *(() if largest is None else (largest,)))


def _decides(part: Expr, expr: Expr) -> bool:
    return columns_of(_above(part, expr)) == {_PART}


def _above(part: Expr, expr: Expr) -> Expr:
    """The expression over a column that stands for its part."""
    column = Column(_PART, part.type)
    return column if expr == part else map_expr(expr, lambda inner: column if inner == part else inner)


def _worked_out(expr: Expr, part: Expr, env: Environment) -> Choices | None:
    below = key_choices(part, env)
    if below is None or len(below) > MOST_WORKED_OUT:
        return None
    above = _above(part, expr)
    # A NULL below is possible whatever is declared; it is no group of its own, but what a key makes of it is one.
    found, of_null = image(above, _PART, below), image(above, _PART, (None,))
    if found is None or of_null is None:
        return None
    values = dict.fromkeys(value for value in (*found, *of_null) if value is not None)
    return (*values, None) if None in found else tuple(values)


def few(domain: Domain) -> Choices | None:
    """The values of a column, where there are few enough to work out something of each."""
    values = _choices(domain)
    return None if values is None or len(values) > MOST_WORKED_OUT else values


def _choices(domain: Domain) -> Choices | None:
    values = every_value(domain, MOST_LISTED)
    if values is None:
        return None
    return (*values, None) if domain.nullable else values
