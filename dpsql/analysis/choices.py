"""All that a key can be, where it is few enough values to list.

    age(DATE '2025-01-01', born) in years / 10 * 10   →  the years first, 10 to 94; then 10, 20, … 90
"""

from __future__ import annotations

from decimal import Decimal

from dpsql.analysis.image import Value, evaluate_for_values
from dpsql.analysis.narrow import Environment
from dpsql.analysis.values import domain_of
from dpsql.functions.calendar import datetime_bounds, convert_time
from dpsql.functions.rules import enumerate_values
from dpsql.plan.expr import Arithmetic, Call, Column, Expr, Literal
from dpsql.plan.walk import columns_of, map_expr, walk_exprs
from dpsql.schema.domain import Domain

MAX_LISTED_KEYS = 10_000
"""More public groups than this, and the keys are selected instead."""

MAX_EVALUATED_VALUES = 2_000
"""Values of a part of a key for which the key is worked out one by one, while the analyst waits."""

MAX_PARTS = 200
"""Of an expression in which a deciding part is looked for."""

_PART = "part"

KeyValues = tuple[Value, ...]


def list_key_values(expr: Expr, env: Environment) -> KeyValues | None:
    """Worked out value by value where one listed part decides the key, else its domain."""
    if isinstance(expr, Column):
        return _list_domain_values(domain_of(expr, env))
    for part in _deciding_parts(expr):
        key_values = _evaluate_by_part(expr, part, env)
        if key_values is not None:
            return key_values
    steps = _list_time_steps(expr, env)
    return _list_domain_values(domain_of(expr, env)) if steps is None else steps


def _list_time_steps(expr: Expr, env: Environment) -> KeyValues | None:
    """floor(extract(epoch FROM at) / 3600): every whole number from what its first moment gives to its last's.

    Doubles are divided and rounded alike everywhere, and later moments never give less, so the ends are exact.
    """
    at = _counted_timestamp(expr)
    domain = None if at is None else domain_of(at, env)
    timestamps = None if domain is None else datetime_bounds(domain)
    if at is None or domain is None or timestamps is None:
        return None
    step_numbers = evaluate_for_values(_substitute_part(at, expr), _PART, tuple(convert_time(timestamp, domain.type) for timestamp in timestamps))
    if step_numbers is None:
        return None
    first, last = (int(number) for number in (step_numbers[0], step_numbers[-1]) if isinstance(number, float))
    if last - first >= MAX_LISTED_KEYS:
        return None
    return (*(float(number) for number in range(first, last + 1)), *((None,) if domain.nullable else ()))


def _counted_timestamp(expr: Expr) -> Expr | None:
    """The moment whose seconds, or whose seconds by a number above 0, are rounded down."""
    if not isinstance(expr, Call) or expr.function != "floor":
        return None
    seconds = expr.args[0]
    if isinstance(seconds, Arithmetic) and seconds.op == "/" and isinstance(seconds.right, Literal):
        width = seconds.right.value
        seconds = seconds.left if isinstance(width, int | float | Decimal) and width > 0 else seconds
    counts = isinstance(seconds, Call) and seconds.function == "epoch"
    return seconds.args[0] if isinstance(seconds, Call) and counts and seconds.args[0].type.is_time else None


def _deciding_parts(expr: Expr) -> tuple[Expr, ...]:
    """Parts that the key reads its columns through: its one column, then the largest such part."""
    names = columns_of(expr)
    if not names:
        return ()
    every = tuple(walk_exprs(expr))
    columns = [part for part in every if isinstance(part, Column)][:1] if len(names) == 1 else []
    parts = (part for part in every[1:] if not isinstance(part, Column | Literal) and len(every) <= MAX_PARTS)
    largest = next((part for part in parts if columns_of(part) == names and _is_deciding_part(part, expr)), None)
    return (*columns, *(() if largest is None else (largest,)))


def _is_deciding_part(part: Expr, expr: Expr) -> bool:
    return columns_of(_substitute_part(part, expr)) == {_PART}


def _substitute_part(part: Expr, expr: Expr) -> Expr:
    """The expression over a column that stands for its part."""
    column = Column(_PART, part.type)
    return column if expr == part else map_expr(expr, lambda inner: column if inner == part else inner)


def _evaluate_by_part(expr: Expr, part: Expr, env: Environment) -> KeyValues | None:
    below = list_key_values(part, env)
    if below is None or len(below) > MAX_EVALUATED_VALUES:
        return None
    above = _substitute_part(part, expr)
    # A NULL below is possible whatever is declared; it is no group of its own, but what a key makes of it is one.
    evaluated, of_null = evaluate_for_values(above, _PART, below), evaluate_for_values(above, _PART, (None,))
    if evaluated is None or of_null is None:
        return None
    values = dict.fromkeys(value for value in (*evaluated, *of_null) if value is not None)
    return (*values, None) if None in evaluated else tuple(values)


def list_few_values(domain: Domain) -> KeyValues | None:
    """The values of a column, where there are few enough to work out something of each."""
    values = _list_domain_values(domain)
    return None if values is None or len(values) > MAX_EVALUATED_VALUES else values


def _list_domain_values(domain: Domain) -> KeyValues | None:
    values = enumerate_values(domain, MAX_LISTED_KEYS)
    if values is None:
        return None
    return (*values, None) if domain.nullable else values
