"""Losses as the ledger writes them, as text: whole numbers of 2^-80; those of basic composition are exact fractions.

Sums are exact, and no database's integers are that wide.
"""

from __future__ import annotations

import json
from fractions import Fraction

from dpsql.errors import InternalError
from dpsql.privacy.filters import Cost, CumulativeLoss
from dpsql.privacy.loss import LOSS_DENOMINATOR, Loss

EncodedFigures = list[str | None]


def canonical_mechanisms(mechanisms: object) -> str:
    """A list of mechanisms as JSON."""
    return json.dumps(mechanisms, sort_keys=True, separators=(",", ":"))


def to_units(value: Fraction) -> str:
    """A loss in units of 2^-80."""
    units = value * LOSS_DENOMINATOR
    if units.denominator != 1:
        raise InternalError("a loss is not a multiple of the ledger's unit")
    return str(units.numerator)


def from_units(text: str) -> Fraction:
    return Fraction(int(text), LOSS_DENOMINATOR)


def encode_loss(loss: Loss) -> EncodedFigures:
    return [_encode_optional(loss.epsilon), to_units(loss.rho), to_units(loss.delta)]


def decode_loss(epsilon: str | None, rho: str, delta: str) -> Loss:
    return Loss(_decode_optional(epsilon), from_units(rho), from_units(delta))


def encode_cost(cost: Cost) -> EncodedFigures:
    return [*encode_loss(cost.loss), *_encode_basic(cost.epsilon, cost.delta, cost.squares)]


def decode_cost(stored: EncodedFigures) -> Cost:
    pure, rho, delta, epsilon, whole_delta, squares = stored
    loss = Loss(_decode_optional(pure), _decode_required(rho), _decode_required(delta))
    return Cost(loss, *_decode_basic(epsilon, whole_delta, squares))


def encode_spent(spent: CumulativeLoss) -> EncodedFigures:
    loss = [_encode_optional(spent.epsilon), to_units(spent.rho), to_units(spent.delta)]
    return [*loss, *_encode_basic(spent.basic_epsilon, spent.basic_delta, spent.squares)]


def decode_spent(stored: EncodedFigures) -> CumulativeLoss:
    epsilon, rho, delta, basic, basic_delta, squares = stored
    sums = (_decode_optional(epsilon), _decode_required(rho), _decode_required(delta))
    return CumulativeLoss(*sums, *_decode_basic(basic, basic_delta, squares))


def _encode_basic(epsilon: Fraction | None, delta: Fraction, squares: Fraction) -> EncodedFigures:
    return [None if epsilon is None else str(epsilon), str(delta), str(squares)]


def _decode_basic(
    epsilon: str | None, delta: str | None, squares: str | None
) -> tuple[Fraction | None, Fraction, Fraction]:
    if delta is None or squares is None:
        raise ValueError("a figure is missing")
    return None if epsilon is None else Fraction(epsilon), Fraction(delta), Fraction(squares)


def _encode_optional(value: Fraction | None) -> str | None:
    return None if value is None else to_units(value)


def _decode_optional(text: str | None) -> Fraction | None:
    return None if text is None else from_units(text)


def _decode_required(text: str | None) -> Fraction:
    if text is None:
        raise ValueError("a figure is missing")
    return from_units(text)
