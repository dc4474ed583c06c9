"""The columns, series and scales of a chart, the same for terminals and notebooks.

Drawn are the columns with noise; else the numbers beside the first column. The others name the rows.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dpsql.amounts import CellError
from dpsql.interfaces.display.cells import DisplayCell, format_cell

# Axes of charts: from values to places, with ticks at round numbers, days and hours.

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
_MONTH_STEPS = (
    (1, "%Y-%m"),
    (3, "%Y-%m"),
    (6, "%Y-%m"),
    *((12 * n, "%Y") for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
)


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
    """Round numbers between two others, at most `max_ticks` and as a rule more than half of that.

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
    ticks = [
        _make_time_tick((dt.datetime(n // 12, n % 12 + 1, 1) - _EPOCH).total_seconds(), form) for n in months if n >= 12
    ]
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


Row = Sequence[Any]
ErrorBars = Sequence[Sequence[CellError | None]]

MAX_SERIES = 6
"""Lines that can be told apart."""


class NothingToDraw(Exception):
    """`str` says why, in words that follow "there is nothing to draw:"."""


@dataclass(frozen=True)
class ChartColumns:
    """The columns that are drawn; those that name rows; the one along which lines run, and the one that tells them
    apart. Where `along` is None, the rows have bars."""

    values: list[int]
    keys: list[int]
    along: int | None = None
    apart: int | None = None

    @property
    def first_key(self) -> int | None:
        """The key that an axis of bars has, where it has one only."""
        return self.along if self.along is not None else self.keys[0] if self.keys else None


def choose_chart_columns(
    names: Sequence[str],
    rows: Sequence[Row],
    bars: ErrorBars | None,
    x: int | None = None,
    y: Sequence[int] | None = None,
) -> ChartColumns:
    """`x` is the key that comes first, and `y` are the columns that are drawn, where someone has said so."""
    if not rows:
        raise NothingToDraw("the answer has no rows")
    candidates = [at for at in range(len(names)) if at != x]
    numbers = [at for at in candidates if _has_only_numbers([row[at] for row in rows])]
    if not numbers and y is None:
        raise NothingToDraw("no column has numbers")
    usual = _default_values(numbers, rows, bars)
    values = usual if y is None else list(y)
    key_columns = [at for at in candidates if at not in {*usual, *values} and (at not in numbers or at < usual[0])]
    if not any(axis_position(row[at]) is not None for row in rows for at in values):
        raise NothingToDraw("all values are NULL or not finite")
    keys = key_columns if x is None else [x, *key_columns]
    along, apart = _choose_x_column(rows, keys, x)
    return ChartColumns(values, keys, along, apart)


def _default_values(numbers: list[int], rows: Sequence[Row], bars: ErrorBars | None) -> list[int]:
    noisy = [at for at in numbers if bars and any(row[at] is not None for row in bars)]
    return noisy or (numbers[1:] if numbers[:1] == [0] and len(numbers) > 1 and len(rows) > 1 else numbers)


def _has_only_numbers(values: list[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in present)


def _choose_x_column(rows: Sequence[Row], keys: list[int], x: int | None) -> tuple[int | None, int | None]:
    """Lines run along one time or number; a second key may tell a few of them apart."""
    ordered = [at for at in keys if x in (None, at) and _is_ordered([row[at] for row in rows])]
    if len(ordered) != 1 or len(keys) > 2 or not _has_unique_keys(rows, keys):
        return None, None
    (along,) = ordered
    if len({row[along] for row in rows} - {None}) < 2:
        return None, None
    others = [at for at in keys if at != along]
    if not others:
        return along, None
    few = len({str(row[others[0]]) for row in rows}) <= MAX_SERIES
    return (along, others[0]) if few else (None, None)


def _is_ordered(values: list[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(v, int | float | Decimal | dt.date | dt.time) and not isinstance(v, bool) for v in present
    )


def _has_unique_keys(rows: Sequence[Row], keys: list[int]) -> bool:
    return len({tuple(str(row[at]) for at in keys) for row in rows}) == len(rows)


# What a chart is drawn from.


@dataclass(frozen=True)
class ChartPoint:
    """A value with its interval; `along` is its place on the axis of lines."""

    label: str
    value: Any
    bar: CellError | None = None
    along: Any = None

    @property
    def y(self) -> float | None:
        return axis_position(self.value)

    @property
    def interval(self) -> tuple[float, float] | None:
        """What the whisker spans; None where there is no noise."""
        if self.y is None or self.bar is None or math.isnan(self.bar.low) or math.isnan(self.bar.high):
            return None
        return min(self.bar.low, self.y), max(self.bar.high, self.y)

    @property
    def scale_values(self) -> list[float]:
        """All that a scale must hold."""
        if self.y is None:
            return []
        return [self.y, *(end for end in self.interval or () if abs(end) <= MAX_POSITION)]

    @property
    def cell(self) -> DisplayCell:
        return format_cell(self.value, self.bar)


@dataclass(frozen=True)
class Series:
    name: str
    points: list[ChartPoint]
