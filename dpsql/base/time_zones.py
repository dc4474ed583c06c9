"""A session's time zone: its name, and how local times become moments and back, by the rules of the IANA database.

The rules are those of the package pytz, which DuckDB's driver needs too, so they do not depend on the machine.

Law: nothing that privacy rests on is worked out with these rules. They read literals and write answers; what happens to
private rows is the engine's own function, and its bounds are checked against the engine.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

_HOUR = 3600
_RULES_CHANGED_FROM, _RULES_CHANGED_UNTIL = 1970, 2038


@dataclass(frozen=True)
class TimeZone:
    """`name` as SHOW tells it, `engine_name` as DuckDB has it."""

    name: str
    engine_name: str
    rules: dt.tzinfo = field(compare=False)
    is_utc: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_utc", self.rules is dt.UTC)

    @property
    def fixed_offset(self) -> dt.timedelta | None:
        """How far it is ahead of UTC, if it always is as far."""
        return self.rules.utcoffset(None) if isinstance(self.rules, dt.timezone) else None

    @cached_property
    def has_whole_hours(self) -> bool:
        """Whether its hours begin when those of UTC do, now and in all years since 1970."""
        if self.fixed_offset is not None:
            return not self.fixed_offset % dt.timedelta(hours=1)
        days = (
            dt.datetime(year, month, 1, tzinfo=dt.UTC)
            for year in range(_RULES_CHANGED_FROM, _RULES_CHANGED_UNTIL)
            for month in (1, 4, 7, 10)
        )
        return not any(self.offset_seconds(at) % _HOUR for at in days)

    def offset_seconds(self, moment: dt.datetime) -> int:
        """Seconds that clocks are ahead of UTC at that moment. OverflowError at the ends of Python's calendar."""
        offset = moment.astimezone(self.rules).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())

    def to_local(self, moment: dt.datetime) -> dt.datetime:
        """What clocks show then, without a zone. OverflowError at the ends of Python's calendar."""
        if self.is_utc and moment.tzinfo in (None, dt.UTC):
            return moment.replace(tzinfo=None)
        return moment.astimezone(self.rules).replace(tzinfo=None)

    def to_utc(self, local: dt.datetime) -> dt.datetime:
        """The moment when clocks show it. OverflowError at the ends of Python's calendar.

        As PostgreSQL and DuckDB do: a time that is skipped in spring is read by the rule before, one that comes twice
        in autumn is the later one. Both is the smaller offset.
        """
        offsets = (local.replace(tzinfo=self.rules, fold=fold).utcoffset() or dt.timedelta() for fold in (0, 1))
        return (local - min(offsets)).replace(tzinfo=dt.UTC)


UTC = TimeZone("UTC", "UTC", dt.UTC)


@lru_cache(maxsize=1024)
def load_time_zone(name: str, engine_name: str, offset_minutes: int | None = None) -> TimeZone:
    """The zone with its rules; one that is always so many minutes ahead of UTC needs none."""
    if offset_minutes is not None:
        rules = dt.timezone(dt.timedelta(minutes=offset_minutes)) if offset_minutes else dt.UTC
        return TimeZone(name, engine_name, rules)
    with resources.files("pytz").joinpath("zoneinfo", *engine_name.split("/")).open("rb") as file:
        return TimeZone(name, engine_name, ZoneInfo.from_file(file, key=engine_name))
