"""Axes of charts: from values to places, with ticks at round numbers, days and hours."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

MAX_POSITION = 1e200
"""What lies beyond is not drawn: the length of an axis must be a number too."""
MIN_RANGE = 1e-200
"""A range that is narrower is none: a part of it must be a number other than zero."""

_DAY = 86_400.0
_EPOCH = dt.datetime(1970, 1, 1)
_MIN_SECONDS, _MAX_SECONDS = ((end - _EPOCH).total_seconds() for end in (dt.datetime.min, dt.datetime(9999, 12, 31)))
_TIME_STEPS = (
    *((float(n), "%H:%M:%S") for n in (1, 5, 15, 30)),
    *((60.0 * n, "%H:%M") for n in (1, 5, 15, 30, 60, 180, 360, 720)),
    *((_DAY * n, "%Y-%m-%d") for n in (1, 2, 7, 14)),
)
_MONTH_STEPS = ((1, "%Y-%m"), (3, "%Y-%m"), (6, "%Y-%m"), *((12 * n, "%Y") for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)))


@dataclass(frozen=True)
class AxisScale:
    """From `low` at place 0 to `high` at place `size`."""

    low: float
    high: float
    size: int

    def to_position(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low) * self.size


@dataclass(frozen=True)
class Tick:
    value: float
    text: str


def axis_position(value: Any) -> float | None:
    """A number, a day or a time as a place on an axis; None where it has none."""
    match value:
        case None | bool() | str():
            return None
        case int() | float() | Decimal():
            size: Any = abs(value)
            return float(value) if size == size and size <= MAX_POSITION else None  # NaN is not equal to itself
        case dt.datetime():
            aware = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
            return (aware - _EPOCH).total_seconds()
        case dt.date():
            return (dt.datetime(value.year, value.month, value.day) - _EPOCH).total_seconds()
        case dt.time():
            return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
        case _:
            return None


def widen_range(values: Sequence[float], zero: bool) -> tuple[float, float]:
    """The range of the values, with 0 where `zero`; never empty."""
    low, high = min(values), max(values)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= max(1e-12 * max(abs(low), abs(high)), MIN_RANGE):
        around = abs(low) / 10 if abs(low) > MIN_RANGE else 1.0
        return (0.0, high + around) if zero and low >= 0 else (low - around, high + around)
    return low, high


def make_number_ticks(low: float, high: float, max_ticks: int) -> list[Tick]:
    """Round numbers between two others, at most `most` and as a rule more than half of that.

    >>> [tick.text for tick in make_number_ticks(-120, 9083, 5)]
    ['0', '2000', '4000', '6000', '8000']
    """
    step = _round_step((high - low) / max(1, max_ticks))
    first, last = math.ceil(low / float(step) - 1e-9), math.floor(high / float(step) + 1e-9)
    return [Tick(float(n * step), _format_tick_number(n * step)) for n in map(Decimal, range(first, last + 1))]


_ROUND_FACTORS = (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))


def _round_step(min_step: float) -> Decimal:
    power = Decimal(1).scaleb(math.floor(math.log10(min_step)))
    return next(power * n for n in _ROUND_FACTORS if float(power * n) >= min_step * (1 - 1e-9))


def _format_tick_number(value: Decimal) -> str:
    value = value.normalize()
    plain = value == 0 or -6 <= value.adjusted() <= 9
    return f"{value:f}" if plain else f"{value:e}".replace("e+", "e")


def make_time_ticks(low: float, high: float, max_ticks: int) -> list[Tick]:
    """Round times between two others, which are seconds since 1970."""
    for step, form in _TIME_STEPS:
        if (high - low) / step <= max_ticks:
            offset = 4 * _DAY if step % (7 * _DAY) == 0 else 0.0  # weeks begin on Mondays
            first, last = math.ceil((low - offset) / step), math.floor((high - offset) / step)
            return [_make_time_tick(offset + n * step, form) for n in range(first, last + 1)]
    return _make_month_ticks(low, high, max_ticks)


def _make_month_ticks(low: float, high: float, max_ticks: int) -> list[Tick]:
    low, high = max(low, _MIN_SECONDS), min(high, _MAX_SECONDS)
    first, last = (_month_number(_EPOCH + dt.timedelta(seconds=value)) for value in (low, high))
    step, form = next(((s, f) for s, f in _MONTH_STEPS if (last - first) / s <= max_ticks), _MONTH_STEPS[-1])
    months = range(-(-first // step) * step, last + 1, step)
    ticks = [_make_time_tick((dt.datetime(n // 12, n % 12 + 1, 1) - _EPOCH).total_seconds(), form) for n in months if n >= 12]
    return [tick for tick in ticks if low <= tick.value <= high]


def _month_number(time: dt.datetime) -> int:
    return time.year * 12 + time.month - 1


def _make_time_tick(seconds: float, form: str) -> Tick:
    time = _EPOCH + dt.timedelta(seconds=seconds)
    # Some platforms write the year 814 in three digits.
    return Tick(seconds, time.strftime(form.replace("%Y", f"{time.year:04d}")))


def choose_ticks(values: Sequence[Any]) -> Callable[[float, float, int], list[Tick]]:
    """The kind of ticks that an axis of such values has."""
    if any(isinstance(value, dt.date) for value in values):
        return make_time_ticks
    if any(isinstance(value, dt.time) for value in values):
        return _make_clock_ticks
    return make_number_ticks


def _make_clock_ticks(low: float, high: float, max_ticks: int) -> list[Tick]:
    return make_time_ticks(low, high, max_ticks) if high - low <= max_ticks * 43_200 else []
