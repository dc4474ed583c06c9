"""Losses as the ledger writes them, as text: whole numbers of 2^-80; those of basic composition are exact fractions.

Sums are exact, and no database's integers are that wide.
"""

from __future__ import annotations

import json
from fractions import Fraction

from dpsql.errors import InternalError
from dpsql.privacy.filters import Cost, Spent
from dpsql.privacy.loss import UNIT, Loss

Figures = list[str | None]


def one_spelling(mechanisms: object) -> str:
    """A list of mechanisms as JSON."""
    return json.dumps(mechanisms, sort_keys=True, separators=(",", ":"))


def to_units(value: Fraction) -> str:
    """A loss in units of 2^-80."""
    units = value * UNIT
    if units.denominator != 1:
        raise InternalError("a loss is not a multiple of the ledger's unit")
    return str(units.numerator)


def from_units(text: str) -> Fraction:
    return Fraction(int(text), UNIT)


def figures(loss: Loss) -> Figures:
    return [_optional(loss.epsilon), to_units(loss.rho), to_units(loss.delta)]


def read_loss(epsilon: str | None, rho: str, delta: str) -> Loss:
    return Loss(_read_optional(epsilon), from_units(rho), from_units(delta))


def cost_figures(cost: Cost) -> Figures:
    return [*figures(cost.loss), *_basic(cost.epsilon, cost.delta, cost.squares)]


def read_cost(stored: Figures) -> Cost:
    pure, rho, delta, epsilon, whole_delta, squares = stored
    loss = Loss(_read_optional(pure), _read(rho), _read(delta))
    return Cost(loss, *_read_basic(epsilon, whole_delta, squares))


def spent_figures(spent: Spent) -> Figures:
    loss = [_optional(spent.epsilon), to_units(spent.rho), to_units(spent.delta)]
    return [*loss, *_basic(spent.basic_epsilon, spent.basic_delta, spent.squares)]


def read_spent(stored: Figures) -> Spent:
    epsilon, rho, delta, basic, basic_delta, squares = stored
    sums = (_read_optional(epsilon), _read(rho), _read(delta))
    return Spent(*sums, *_read_basic(basic, basic_delta, squares))


def _basic(epsilon: Fraction | None, delta: Fraction, squares: Fraction) -> Figures:
    return [None if epsilon is None else str(epsilon), str(delta), str(squares)]


def _read_basic(
    epsilon: str | None, delta: str | None, squares: str | None
) -> tuple[Fraction | None, Fraction, Fraction]:
    if delta is None or squares is None:
        raise ValueError("a figure is missing")
    return None if epsilon is None else Fraction(epsilon), Fraction(delta), Fraction(squares)


def _optional(value: Fraction | None) -> str | None:
    return None if value is None else to_units(value)


def _read_optional(text: str | None) -> Fraction | None:
    return None if text is None else from_units(text)


def _read(text: str | None) -> Fraction:
    if text is None:
        raise ValueError("a figure is missing")
    return from_units(text)
