"""The grid to which times are rounded that statements compare with a column.

Law: a whole day is on every grid below a day, so that dates stay dates; rounding what is rounded changes nothing.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

from dpsql.schema.domain import EPOCH

SNAP_PATTERN = r"[1-9][0-9]{0,3} (minutes?|hours?|days?|weeks?)"
_SECONDS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}
_ONE_DAY = dt.timedelta(days=1)
_MONDAY = EPOCH - dt.timedelta(days=3)


@dataclass(frozen=True)
class Snap:
    """`count` minutes, hours, days or weeks, counted from 1970-01-01 00:00 in UTC; weeks from a Monday."""

    count: int
    unit: str  # minute, hour, day or week

    @property
    def step(self) -> dt.timedelta:
        return dt.timedelta(seconds=self.count * _SECONDS[self.unit])

    @property
    def divides_days(self) -> bool:
        """Whether each day begins on the grid."""
        return _ONE_DAY % self.step == dt.timedelta(0)

    @property
    def whole_days(self) -> bool:
        return self.step % _ONE_DAY == dt.timedelta(0)

    def round_down(self, value: dt.date) -> dt.date:
        """The last time of the grid that is not after `value`, of the same type; itself, where no calendar has it.

        >>> Snap(1, "week").round_down(dt.date(2024, 3, 1)), Snap(15, "minute").round_down(dt.datetime(2024, 3, 1, 12, 34))
        (datetime.date(2024, 2, 26), datetime.datetime(2024, 3, 1, 12, 30))
        """
        return self._shift_on_grid(value, 0)

    def next_step(self, value: dt.date) -> dt.date:
        """The time of the grid that follows `down(value)`."""
        return self._shift_on_grid(value, 1)

    def _shift_on_grid(self, value: dt.date, steps: int) -> dt.date:
        origin = _MONDAY if self.unit == "week" else EPOCH
        timestamp = _to_naive_utc(value)
        try:
            moved = origin + ((timestamp - origin) // self.step + steps) * self.step
        except OverflowError:
            return value
        if not isinstance(value, dt.datetime):
            return moved.date()
        return moved if value.tzinfo is None else moved.replace(tzinfo=dt.UTC)

    def __str__(self) -> str:
        return f"{self.count} {self.unit}" + ("s" if self.count > 1 else "")


def _to_naive_utc(value: dt.date) -> dt.datetime:
    if not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)


def parse_snap(text: str) -> Snap | None:
    """None where the text is no span, or one of which a day is no multiple and that is none of a day."""
    if not re.fullmatch(SNAP_PATTERN, text):
        return None
    count, unit = text.split()
    snap = Snap(int(count), unit.removesuffix("s"))
    return snap if snap.divides_days or snap.whole_days else None
