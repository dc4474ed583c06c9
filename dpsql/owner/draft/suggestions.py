"""Bounds, values and lengths that the data suggests. They are read from rows, and so not private: the owner decides.

Rounding goes outward to steps of 1, 2 or 5, so that a proposal shows less of single values than quantiles would; that
is a courtesy and no guarantee.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsql.owner.draft.relationships import split_words
from dpsql.owner.introspect.statistics import ColumnFacts
from dpsql.schema.literals import fits_type
from dpsql.schema.model import EPOCH
from dpsql.types import Kind, Type, integer_range

MAX_VALUES = 24
"""A list that people still read."""
MIN_UNITS = 20
"""Units that have a value which is proposed for a list: a rarer one could be someone's own."""
REPEATED = 1.2
"""Rows for each value of an id: with more, it is no key of the rows. The number of values is a sketch."""
MAX_INTEGERS = 6
"""Whole numbers that are codes or answers, such as 0 and 1; of more, they are more likely quantities."""
MIN_STEPS = 5
"""A proposed range has so many rounding steps or more."""


@dataclass(frozen=True)
class ColumnProposal:
    """For one column; what there is nothing to say about is empty. `left_out` counts values too rare to be listed,
    `type` is that of the texts in the column."""

    bounds: tuple[str, str] | None = None
    values: tuple[str, ...] = ()
    left_out: int = 0
    max_length: int | None = None
    type: Type | None = None


_CALENDAR_RANGES = (
    ({"quarter"}, (1, 4)),
    ({"month"}, (1, 12)),
    ({"week"}, (1, 53)),
    ({"weekday", "dow"}, (0, 7)),
    ({"day"}, (1, 31)),
    ({"hour"}, (0, 23)),
    ({"minute", "second"}, (0, 59)),
)
"""Parts of calendars and clocks: where there is one of them, all are usual."""
_USUAL_RANGES = (
    ({"year"}, (1900, 2030)),
    *_CALENDAR_RANGES,
    ({"age", "years"}, (0, 120)),
    ({"percent", "pct", "percentage"}, (0, 100)),
    ({"latitude", "lat"}, (-90, 90)),
    ({"longitude", "lon", "lng"}, (-180, 180)),
)
"""Ranges that everyone knows without the data, by a word of the column's name."""
_YEARS = 1800, 2200
"""Whole numbers of a column called year within these are years, and not what has lasted so many."""


def usual_range(name: str) -> tuple[int, int] | None:
    """
    >>> usual_range("birth_year"), usual_range("arr_delay")
    ((1900, 2030), None)
    """
    words = set(split_words(name))
    return next((range_ for names, range_ in _USUAL_RANGES if names & words), None)


def step_below(width: Fraction) -> Fraction:
    """The largest of 1, 2, 5 times a power of ten that is not above the width.

    >>> [str(step_below(Fraction(w))) for w in ("19", "20", "0.7", "5000")]
    ['10', '20', '1/2', '5000']
    """
    power = Fraction(10) ** math.floor(math.log10(width))
    power = power / 10 if power > width else power
    return max(factor * power for factor in (1, 2, 5, 10) if factor * power <= width)


def round_up(number: int) -> int:
    """
    >>> [round_up(n) for n in (1, 3, 17, 20, 21, 640)]
    [1, 5, 20, 20, 50, 1000]
    """
    power: int = 10 ** (len(str(max(1, number))) - 1)
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= number)


def round_outward(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """The range rounded outward; one that begins near zero begins there.

    >>> ranges = (21, 1874), (1931, 2024), (7, 7)
    >>> [tuple(map(str, round_outward(Fraction(low), Fraction(high)))) for low, high in ranges]
    [('0', '2000'), ('1930', '2030'), ('5', '10')]
    """
    width = high - low
    step = step_below(width / MIN_STEPS) if width else step_below(max(abs(low), Fraction(1)))
    below, above = math.floor(low / step) * step, math.ceil(high / step) * step
    if 0 < below <= width / 4:
        below = Fraction(0)
    return below, above if above > below else below + step


def propose_bounds(facts: ColumnFacts, type_: Type, name: str = "") -> tuple[str, str] | None:
    """By the values, but for the parts of calendars and other quantities that have a usual range by their `name`."""
    if facts.low is None or facts.high is None:
        return None
    if type_.is_time:
        return _propose_time_bounds(facts.low, facts.high, type_)
    low, high = _calendar_bounds(facts.low, facts.high, type_, name) or round_outward(
        Fraction(facts.low), Fraction(facts.high)
    )
    usual = usual_range(name)
    if usual is not None and usual[0] <= facts.low and facts.high <= usual[1]:
        low, high = max(low, Fraction(usual[0])), min(high, Fraction(usual[1]))
    if type_.is_integer:
        smallest, largest = integer_range(type_)
        low, high = Fraction(max(smallest, math.floor(low))), Fraction(min(largest, math.ceil(high)))
    if not (fits_type(low, type_) and fits_type(high, type_)):
        return None
    return _format_number(low), _format_number(high)


def _calendar_bounds(low: float, high: float, type_: Type, name: str) -> tuple[Fraction, Fraction] | None:
    """Whole decades of years, and all months, days or hours that there are."""
    words = set(split_words(name))
    if not type_.is_integer:
        return None
    if "year" in words and _YEARS[0] <= low and high <= _YEARS[1]:
        return Fraction(math.floor(low / 10) * 10), Fraction(math.floor(high / 10) * 10 + 10)
    parts = ((least, largest) for names, (least, largest) in _CALENDAR_RANGES if names & words)
    return next(((Fraction(a), Fraction(b)) for a, b in parts if a <= low and high <= b), None)


def _format_number(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else repr(float(number))


def _propose_time_bounds(low: float, high: float, type_: Type) -> tuple[str, str] | None:
    """Whole years for a span of years, whole months for one of months, else days.

    The upper bound of dates is their last day. That of timestamps is the moment after them where a month begins with
    it, as such a bound is none of the values; else the last moment of their last day.
    """
    try:
        first, last = (_to_timestamp(value, type_) for value in (low, high))
        days = (last - first).days
        if days > 5 * 365:
            start, end = dt.date(first.year, 1, 1), dt.date(last.year + 1, 1, 1)
        elif days > 5 * 30:
            start = dt.date(first.year, first.month, 1)
            end = dt.date(last.year + last.month // 12, last.month % 12 + 1, 1)
        else:
            start, end = first.date(), last.date() + dt.timedelta(days=1)
        last_day = end - dt.timedelta(days=1)
    except (OverflowError, ValueError):  # beyond the years 1 to 9999
        return None
    if type_.kind is Kind.DATE:
        return start.isoformat(), last_day.isoformat()
    return start.isoformat(), end.isoformat() if end.day == 1 else f"{last_day} 23:59:59.999999"


def _to_timestamp(value: float, type_: Type) -> dt.datetime:
    return EPOCH + (dt.timedelta(days=value) if type_.kind is Kind.DATE else dt.timedelta(microseconds=value))


@dataclass(frozen=True)
class RepeatedColumn:
    """A column whose values stand in several rows each: it may name the unit. The number of values is a sketch."""

    table: str
    column: str
    distinct: int
    rows: int
    is_text: bool

    @classmethod
    def of(cls, table: str, column: str, type_: Type, facts: ColumnFacts) -> RepeatedColumn | None:
        """None where the values hardly repeat, or name nobody: parts of calendars, and numbers below 0."""
        can_name = type_.kind in (Kind.TEXT, Kind.UUID) or (type_.is_integer and (facts.least or 0) >= 0)
        repeats = facts.distinct >= MIN_UNITS and facts.fit > REPEATED * facts.distinct
        if not can_name or not repeats or usual_range(column) is not None:
            return None
        return cls(table, column, facts.distinct, facts.fit, not type_.is_number)

    def __str__(self) -> str:
        return f"about {_round_near(self.distinct):,} values of {self.column} in about {_round_near(self.rows):,} rows"


def rank_repeated_columns(columns: Sequence[RepeatedColumn]) -> tuple[RepeatedColumn, ...]:
    """Texts first, and those of most values."""
    return tuple(sorted(columns, key=lambda column: (not column.is_text, -column.distinct, column.table)))


def _round_near(number: int) -> int:
    """
    >>> [_round_near(number) for number in (7, 38, 2972, 73421)]
    [7, 38, 3000, 73000]
    """
    step: int = 10 ** max(0, len(str(number)) - 2)
    return round(number / step) * step


def propose_length(facts: ColumnFacts) -> int | None:
    return None if not facts.longest else round_up(facts.longest)


# --- norms -----------------------------------------------------------------------------------------------------------


def histogram_quantile(histogram: Mapping[int, int], share: Fraction) -> int:
    """The least number that so great a share of the units do not pass.

    >>> histogram_quantile({1: 90, 5: 9, 200: 1}, Fraction(95, 100))
    5
    """
    remaining = math.ceil(share * sum(histogram.values()))
    for number in sorted(histogram):
        remaining -= histogram[number]
        if remaining <= 0:
            return number
    return 1


def count_lost_rows(histogram: Mapping[int, int], norm: int) -> int:
    """The rows that COUNT(*) over a whole table loses: a unit of n rows counts like at most `norm`."""
    return sum(count * (number - norm) for number, count in histogram.items() if number > norm)


def count_clipped_units(histogram: Mapping[int, int], norm: int) -> int:
    return sum(count for number, count in histogram.items() if number > norm)


def list_candidate_norms(histogram: Mapping[int, int]) -> Iterator[int]:
    """All numbers up to 20, then steps of 5 % up to the largest."""
    number, largest = 1, max(histogram, default=1)
    while number < largest:
        yield number
        number = max(number + 1, number * 105 // 100)
    yield largest


def norms_to_show(histogram: Mapping[int, int], declared: int, noise: float | None) -> list[int]:
    """Norms worth a look beside the declared one: the medians of units, those of nearly all, and the best."""
    shares = (Fraction(1, 2), Fraction(9, 10), Fraction(95, 100), Fraction(99, 100), Fraction(999, 1000))
    norms = {histogram_quantile(histogram, share) for share in shares} | {max(histogram, default=1)}
    if noise is not None:
        norms.add(find_best_norm(histogram, noise))
    return sorted(norms - {declared})


def find_best_norm(histogram: Mapping[int, int], noise: float) -> int:
    """The norm at which COUNT(*) over all rows is wrong by least: what is lost, and 95 % noise of `noise` rows a unit
    of norm."""
    return min(
        list_candidate_norms(histogram), key=lambda norm: (count_lost_rows(histogram, norm) + noise * norm, norm)
    )
