"""Values as text for people.

As many digits as the error bar leaves, NULL told apart from text, and nothing that steers a terminal.
"""

from __future__ import annotations

import datetime as dt
import math
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from dpsql.figures import CellError

MOST_DECIMALS = 9


def half_width(value: Any, bar: CellError | None) -> float | None:
    """Half of the 95 % interval; where a bound cuts one side of it off, how far the other side reaches."""
    if bar is None or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    half, shift = (bar.high - bar.low) / 2, abs(float(value) - (bar.high + bar.low) / 2)
    # An integer is rounded, so it may stand half a step beside the middle.
    return half if isinstance(value, int) and shift <= 0.5 else half + shift


def column_decimals(values: Sequence[Any], widths: Sequence[float | None]) -> int:
    """One number of decimals for a whole column: two digits of its smallest error bar, or six digits of its values."""
    numbers = [float(v) for v in values if isinstance(v, float | Decimal)]
    if not numbers:
        return 0
    bars = [w for w in widths if w is not None and math.isfinite(w) and w > 0]
    if bars:
        return _clip(1 - _magnitude(min(bars)))
    sizes = [abs(n) for n in numbers if math.isfinite(n) and n]
    digits = _clip(5 - _magnitude(max(sizes))) if sizes else 0
    while digits and all(_ends_in_zero(n, digits) for n in numbers):
        digits -= 1
    return digits


def _clip(decimals: int) -> int:
    return max(0, min(MOST_DECIMALS, decimals))


def _magnitude(number: float) -> int:
    return math.floor(math.log10(number))


def _ends_in_zero(number: float, digits: int) -> bool:
    return not math.isfinite(number) or f"{number:.{digits}f}".endswith("0")


def cell_text(value: Any, decimals: int) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case float() | Decimal():
            return f"{value:.{decimals}f}"
        case dt.datetime():
            return value.isoformat(" ")
        case str():
            return _shown(value)
        case _:
            return _shown(str(value))


def bar_text(width: float | None, decimals: int) -> str:
    """The half-width, rounded up."""
    if width is None:
        return ""
    if not math.isfinite(width):
        return "± Infinity"
    scale = 10**decimals
    return f"± {math.ceil(width * scale - 1e-9) / scale:.{decimals}f}"


def _shown(text: str) -> str:
    """Control characters are escaped; a text that reads NULL is quoted, so that it is not taken for one."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f'"{safe}"' if safe == "NULL" else safe


def width_of(text: str) -> int:
    """Columns that the text takes on a terminal."""
    return sum(_columns(c) for c in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
