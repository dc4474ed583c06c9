"""Values as text: NULL distinct from text, and of a noisy number only the digits that its noise leaves.

Law: what is shown covers what is known. A bar is rounded up, and by as much more as its value was rounded, so that
`8980 ± 110` contains the 95 % interval of 8981 with its half-width 102.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from dpsql.amounts import CellError
from dpsql.interfaces.display.terminal import Digits, escape_text

SIGNIFICANT_DIGITS = 2
"""Digits of a bar: a third would tell how wrong an answer is to a hundredth, which nobody needs."""

_NEARLY_DUE = Decimal("0.98")
"""A half-width that is so much of its bar was asked for, most likely."""
MAX_DECIMALS = 9
MAX_INTEGER_DIGITS = 21  # before the point; beyond that an exponent is easier to read

_EXACT = Context(prec=800, rounding=ROUND_HALF_EVEN)  # a double has at most 767 significant digits


class FormattedNumber(str):
    """A number that is text already, since it was rounded with care."""


@dataclass(frozen=True)
class DisplayCell:
    """A value's text and, where it is noisy, that of its half-width."""

    text: str
    bar: str = ""
    is_number: bool = False
    is_null: bool = False


def format_cell(value: Any, bar: CellError | None, digits: Digits = "significant", plain: bool = False) -> DisplayCell:
    """The value as text; `bar` gives the digits that mean something, and the half-width.

    >>> format_cell(8981, CellError(52.0, 8879.0, 9083.0))
    DisplayCell(text='8980', bar='110', is_number=True, is_null=False)
    """
    width = half_width(value, bar)
    if value is None or width is None:
        return DisplayCell(format_value(value, plain), "", is_number(value), value is None)
    if width == 0 or not math.isfinite(width):
        return DisplayCell(format_value(value, plain), "Infinity" if width else "0", True)
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    exponent = _last_digit_exponent(value, width)
    if digits == "all":
        return DisplayCell(
            format_value(value, plain), _format_decimal(_round_up(Decimal(width), min(exponent, 0))), True
        )
    rounded = _EXACT.quantize(number, Decimal((0, (1,), exponent)))
    shown = _round_up(Decimal(width) + abs(rounded - number), exponent)
    due = _round_up(Decimal(width), exponent)
    if exponent > 0 and shown > due and Decimal(width) > due * _NEARLY_DUE:
        # An error that was asked for, such as 2000, would be shown as 2100: the value keeps more digits instead.
        finest = _EXACT.quantize(number, Decimal(1))
        if _round_up(Decimal(width) + abs(finest - number), exponent) == due:
            rounded, shown = finest, due
    return DisplayCell(_format_decimal(rounded), _format_decimal(shown), True)


def describe_error(error: CellError) -> str:
    """The two parts of a bar, for a place with room for them.

    >>> describe_error(CellError(52.0, 8879.0, 9163.0, 80.0))
    'noise: standard error 52; clipping: up to 80'
    """
    noise, clipped = (f"{number:.3g}" for number in (error.stderr, error.clipped or 0.0))
    return f"noise: standard error {noise}; clipping: up to {clipped}"


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal | FormattedNumber) and not isinstance(value, bool)


def half_width(value: Any, bar: CellError | None) -> float | None:
    """Half of the 95 % interval; where a bound cuts one side of it off, how far the other side reaches."""
    if bar is None or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if not math.isfinite(value):
        return None
    half, shift = (bar.high - bar.low) / 2, abs(float(value) - (bar.high + bar.low) / 2)
    # An integer is rounded, so it may stand half a step beside the middle.
    width = half if isinstance(value, int) and shift <= 0.5 else half + shift
    return None if math.isnan(width) else width


def _last_digit_exponent(value: Any, width: float) -> int:
    """The power of ten at which the half-width's last significant digit stands; no finer than the value itself."""
    finest = 0 if isinstance(value, int) else -MAX_DECIMALS
    if isinstance(value, Decimal):
        finest = max(finest, int(value.as_tuple().exponent))
    return max(finest, Decimal(width).adjusted() - SIGNIFICANT_DIGITS + 1)


def _round_up(width: Decimal, exponent: int) -> Decimal:
    # A hair less than the next digit is that digit: 0.1 + 0.2 is not to be told as 0.31.
    fair = width - width.copy_abs().scaleb(-12)
    return fair.quantize(Decimal((0, (1,), exponent)), ROUND_CEILING, _EXACT)


def _format_decimal(number: Decimal) -> str:
    if number == 0:
        number = abs(number)  # no -0
    return f"{number:f}" if number.adjusted() < MAX_INTEGER_DIGITS else f"{number.normalize():e}"


def format_value(value: Any, plain: bool = False) -> str:
    """The whole value as text, not shortened."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int() | FormattedNumber():
            return str(value)
        case float():
            return _format_double(value)
        case Decimal():
            return f"{value:f}" if value.is_finite() else str(value)
        case dt.datetime():
            return value.isoformat(" ")
        case str():
            text = escape_text(value, plain)
            return f'"{text}"' if text == "NULL" else text  # not to be taken for one
        case _:
            return escape_text(str(value), plain)


def _format_double(value: float) -> str:
    """As PostgreSQL writes it: as many digits as tell it from its neighbors."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value).removesuffix(".0")
