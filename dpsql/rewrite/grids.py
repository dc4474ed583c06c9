"""Pick the integer grid on which the values of a sum are counted."""

from __future__ import annotations

from fractions import Fraction
from typing import assert_never

from dpsql.errors import UnboundedValues
from dpsql.plan.expr import Column, Expr, Quantise
from dpsql.plan.relations import (
    Expand,
    Filter,
    Join,
    Mark,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    SetOperation,
    Table,
    UnitWindow,
)
from dpsql.schema.domain import Domain
from dpsql.types import Kind

STEP_BITS = 24
"""A range of values has about 2^24 steps. A row is then rounded by 2^-25 of the range, and a sum of n rows by about the
root of n times that: for a billion rows a thousandth of the range, where noise is a good part of the range itself."""

MAX_STEPS = 1 << 45
"""Steps on either side of zero: times a weight of 2^16 this is below 2^62, within BIGINT."""


MAX_MAGNITUDE = Fraction(10) ** 100
"""Of the values of a sum: the square of 10^100, for as many rows as there may be, is still a double."""


def declared_grids(node: Rows) -> dict[str, Fraction]:
    """The owner's grid of each column that is passed on as it is."""
    match node:
        case Scan() | PublicScan():
            return {column.name: column.grid for column in node.columns if column.grid is not None}
        case Project():
            inner = declared_grids(node.input)
            return {
                c.name: inner[c.expr.name]
                for c in node.columns
                if isinstance(c.expr, Column) and c.expr.name in inner
            }
        case Join():
            return declared_grids(node.left) | declared_grids(node.right)
        case Filter() | UnitWindow() | Expand():
            return declared_grids(node.input)
        case Mark() | SetOperation():
            return declared_grids(node.left) if isinstance(node, Mark) else {}
        case RowsHole() | PerUnit():
            return {}
        case Table() | PublicTable():
            raise TypeError("grids are those of sanitised rows")
        case _:
            assert_never(node)


def quantize_arg(
    arg: Expr, domain: Domain, declared: Fraction | None, widest: int | None = None, fine: int = STEP_BITS
) -> Quantise:
    """The argument on its grid, clipped to its domain; the bounds move inward to whole steps.

    With `widest`, a power of two, there are at most so many steps between the bounds. Without a grid that the column's
    type or owner gives, there are about 2^fine.
    """
    if max(map(abs, domain.bounds)) > MAX_MAGNITUDE:
        raise UnboundedValues(
            "the values that are added up have bounds beyond 1e100",
            hint="Write CLIP(…, 0, 100) around them, with bounds of your own.",
        )
    grid = _pick_grid(domain, declared, fine)
    if widest is not None:
        grid = _coarsen_grid(grid, domain, widest)
    lower, upper = domain.bounds
    first_step, last_step = (lower / grid).__ceil__(), (upper / grid).__floor__()
    if first_step > last_step:  # both bounds lie between two steps
        first_step = last_step = round((lower + upper) / 2 / grid)
    return Quantise(arg, grid, first_step, last_step)


def _pick_grid(domain: Domain, declared: Fraction | None, fine: int) -> Fraction:
    lower, upper = domain.bounds
    largest = max(abs(lower), abs(upper), Fraction(1, 1 << 200))
    natural = declared or _natural_grid(domain)
    if natural is not None and largest / natural < MAX_STEPS:
        return natural
    spread = max(upper - lower, largest / (1 << 20))
    return max(_power_of_two_below(spread) / (1 << fine), _power_of_two_below(largest) / (MAX_STEPS >> 2))


def _coarsen_grid(grid: Fraction, domain: Domain, widest: int) -> Fraction:
    """The grid times the least power of two that leaves at most `widest` steps."""
    lower, upper = domain.bounds
    while (upper - lower) / grid > widest:
        grid *= 2
    return grid


def _natural_grid(domain: Domain) -> Fraction | None:
    if domain.type.is_integer:
        return Fraction(1)
    if domain.type.kind is Kind.DECIMAL:
        return Fraction(1, 10 ** (domain.type.scale or 0))
    return None


def _power_of_two_below(number: Fraction) -> Fraction:
    """The largest power of two that is not above the number."""
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= number else power / 2
