"""Numbers as PostgreSQL writes them: floats in the fewest digits that read back the same, numerics digit by digit."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from fractions import Fraction

_NUMERIC_NAN, _NUMERIC_INFINITE, _NUMERIC_MINUS_INFINITE = 0xC000, 0xD000, 0xF000
_NUMERIC_NEGATIVE = 0x4000


def double_to_text(value: float) -> str:
    """
    >>> [double_to_text(value) for value in (0.1, 1e15, 123456789012345.0, 1e-5, -0.0)]
    ['0.1', '1e+15', '123456789012345', '1e-05', '-0']
    """
    if 1e-4 <= abs(value) < 1e15:
        return repr(value).removesuffix(".0")  # Python writes these as PostgreSQL does
    if not math.isfinite(value) or value == 0:
        return _special_to_text(value)
    digits, exponent = _significant_digits(repr(value))
    if 2.0**53 <= abs(value) < 1e40 and _is_halfway(digits, exponent, value, "d"):
        digits, exponent = _shortest_digits(value, range(len(digits), 18), "d")
    return _format_digits(value < 0, digits, exponent, 15)


def single_to_text(value: float) -> str:
    """Of a number that four bytes hold.

    >>> single_to_text(0.10000000149011612), single_to_text(1e6), single_to_text(123456.0)
    ('0.1', '1e+06', '123456')
    """
    if not math.isfinite(value) or value == 0:
        return _special_to_text(value)
    digits, exponent = _shortest_digits(value, range(1 if abs(value) < 2e-38 else 6, 10), "f")
    return _format_digits(value < 0, digits, exponent, 6)


def _special_to_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    return "Infinity" if value > 0 else "-Infinity"


def _significant_digits(text: str) -> tuple[str, int]:
    """The digits of a number, and the exponent of the first."""
    number = Decimal(text)
    digits = "".join(map(str, number.as_tuple().digits)).lstrip("0")
    return digits.rstrip("0") or "0", number.adjusted()


def _shortest_digits(value: float, digit_counts: range, size: str) -> tuple[str, int]:
    """The fewest digits that mean this number of `size` alone."""
    for count in digit_counts:
        nearest = Decimal(f"{abs(value):.{count - 1}e}")
        # Above a power of two numbers stand wider: the next digits up may mean it where the nearest do not.
        for candidate in (nearest, nearest + Decimal(1).scaleb(nearest.adjusted() - count + 1)):
            digits, exponent = _significant_digits(str(candidate))
            same = _pack_float(float(candidate), size) == _pack_float(abs(value), size)
            if same and not _is_halfway(digits, exponent, value, size):
                return digits, exponent
    return _significant_digits(f"{value:.{digit_counts[-1] - 1}e}")


def _pack_float(value: float, size: str) -> bytes:
    try:
        return struct.pack(f"!{size}", value)
    except OverflowError:
        return b""


def _is_halfway(digits: str, exponent: int, value: float, size: str) -> bool:
    """Whether the digits stand just between two numbers: PostgreSQL does not count on how a tie is read."""
    number = int.from_bytes(_pack_float(abs(value), size), "big")
    decimal, width = Fraction(f"{digits}e{exponent - len(digits) + 1}"), struct.calcsize(size)
    exact = Fraction(abs(value))
    other = number + (1 if decimal > exact else -1)
    neighbor = struct.unpack(f"!{size}", other.to_bytes(width, "big"))[0]
    return math.isfinite(neighbor) and decimal != exact and decimal == (exact + Fraction(neighbor)) / 2


def _format_digits(negative: bool, digits: str, exponent: int, max_digits: int) -> str:
    """With an exponent where the number is less than 0.0001, or has more than `max_digits` digits before the point."""
    sign = "-" if negative else ""
    if not -4 <= exponent < max_digits:
        point = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{point}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    integer, part = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return sign + integer + (f".{part}" if part else "")


def numeric_to_text(value: object) -> str:
    """
    >>> [numeric_to_text(value) for value in (Decimal("1.50"), Decimal("1E+3"), Decimal("-0.00"), 7)]
    ['1.50', '1000', '0.00', '7']
    """
    number = to_decimal(value)
    if number.is_nan():
        return "NaN"
    if number.is_infinite():
        return "Infinity" if number > 0 else "-Infinity"
    return format(number if number else number.copy_abs(), "f")  # there is no -0


def to_decimal(value: object) -> Decimal:
    if isinstance(value, Decimal):
        return value
    return Decimal(repr(value) if isinstance(value, float) else str(value))


def numeric_to_bytes(value: object) -> bytes:
    """Groups of four digits, the place of the first before the point, the sign, and the digits that are shown."""
    number = to_decimal(value)
    if not number.is_finite():
        infinite = _NUMERIC_NAN if number.is_nan() else _NUMERIC_INFINITE if number > 0 else _NUMERIC_MINUS_INFINITE
        return struct.pack("!hhHh", 0, 0, infinite, 0 if number.is_nan() else 32)  # as PostgreSQL sends it
    integer, _, part = format(number.copy_abs(), "f").partition(".")
    integer = integer.lstrip("0")
    padded = integer.rjust(-(-len(integer) // 4) * 4, "0") + part.ljust(-(-len(part) // 4) * 4, "0")
    groups = [int(padded[at : at + 4]) for at in range(0, len(padded), 4)]
    weight = -(-len(integer) // 4) - 1
    while groups and not groups[0]:
        groups.pop(0)
        weight -= 1
    while groups and not groups[-1]:
        groups.pop()
    sign = _NUMERIC_NEGATIVE if groups and number < 0 else 0
    head = struct.pack("!hhHh", len(groups), weight if groups else 0, sign, len(part))
    return head + struct.pack(f"!{len(groups)}h", *groups)


def numeric_from_bytes(data: bytes) -> Decimal:
    """ValueError where these are the bytes of no numeric."""
    if len(data) < 8:
        raise ValueError("too short")
    count, weight, sign, scale = struct.unpack("!hhHh", data[:8])
    special = {_NUMERIC_NAN: "NaN", _NUMERIC_INFINITE: "Infinity", _NUMERIC_MINUS_INFINITE: "-Infinity"}.get(sign)
    if special is not None:
        return Decimal(special)
    if count < 0 or len(data) != 8 + 2 * count or sign not in (0, _NUMERIC_NEGATIVE) or scale < 0:
        raise ValueError("not a numeric")
    groups = struct.unpack(f"!{count}h", data[8:])
    if any(not 0 <= group <= 9999 for group in groups):
        raise ValueError("not a numeric")
    digits = "".join(f"{group:04}" for group in groups) or "0"
    exponent = 4 * (weight - count + 1) if groups else 0
    number = Decimal((int(sign == _NUMERIC_NEGATIVE), tuple(map(int, digits)), exponent))
    return _set_scale(number, scale)


def _set_scale(number: Decimal, scale: int) -> Decimal:
    """With so many digits behind the point, without rounding away any."""
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    missing = exponent + scale
    if missing >= 0:
        return Decimal((sign, (*digits, *(0,) * missing), -scale))
    remaining, cut = digits[:missing] or (0,), digits[missing:]
    return Decimal((sign, remaining, -scale)) if not any(cut) else number
