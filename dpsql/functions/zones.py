"""Time zones: the local time of a moment, and the moment of a local time, by the rules that the engine has of a zone.

Where clocks are set forward, a local time that never was is read by the rule before; where they are set back, one that
was twice is the later moment. So says the engine, and nothing here is worked out in Python.
"""

from __future__ import annotations

import datetime as dt
from difflib import get_close_matches
from fractions import Fraction

from dpsql.functions.calendar import FIRST_DAY, LAST_MOMENT, MICROSECONDS, ends
from dpsql.functions.dates import in_calendar
from dpsql.functions.record import Domains, Fit, Function, Types, quoted, text_of
from dpsql.functions.zone_names import ZONES
from dpsql.plan.expr import Call
from dpsql.schema.domain import Domain
from dpsql.types import TEXT, TIMESTAMP, TIMESTAMPTZ

HOUR = 3_600_000_000
FARTHEST = 24  # hours; before time was kept by zones, Manila was 16 hours behind
_FIRST, _LAST = dt.datetime(1970, 1, 2), dt.datetime(2099, 12, 30)  # between them a zone's hours are known

UTC = frozenset({"utc", "etc/utc", "gmt", "z", "zulu", "etc/zulu", "uct", "etc/uct", "universal", "etc/universal",
                 "etc/gmt", "greenwich", "etc/greenwich"})  # fmt: skip


def zone_name(written: str) -> str | None:
    """The zone's own spelling; None where there is no such zone."""
    found = ZONES.get(written.strip().lower())
    return None if found is None else found[0]


def close_zones(written: str) -> list[str]:
    """Names that are perhaps meant: those like it, and those of a place of that name."""
    folded = written.strip().lower().replace(" ", "_")
    places = [name for name in ZONES if folded and folded == name.rpartition("/")[2]]
    places += [name for name in get_close_matches(folded, ZONES, n=3, cutoff=0.75) if name not in places]
    return [ZONES[name][0] for name in places[:3]]


def _fit(types: Types) -> Fit | None:
    zone, at = types
    if zone != TEXT or at not in (TIMESTAMP, TIMESTAMPTZ):
        return None
    return Fit(types, TIMESTAMP if at == TIMESTAMPTZ else TIMESTAMPTZ)


def _check(call: Call) -> str | None:
    written = text_of(call, 0)
    return None if written.lower() in ZONES else f'there is no time zone "{written}"'


def _form(call: Call, args: list[str]) -> str:
    return in_calendar(f"timezone({quoted(ZONES[text_of(call, 0).lower()][0])}, {args[1]})", call.type)


def _domain(call: Call, args: Domains) -> Domain:
    """The bounds, moved by the least and the most that the zone is ahead of UTC, or behind it on the way back."""
    found = ends(args[1])
    if found is None:
        return Domain(call.type, True)
    _, least, most = ZONES[text_of(call, 0).lower()]
    if not (found[0] >= _FIRST and found[1] <= _LAST):
        least, most = -FARTHEST, FARTHEST
    if call.type == TIMESTAMPTZ:
        least, most = -most, -least
    lower, upper = args[1].bounds[0] + least * HOUR, args[1].bounds[1] + most * HOUR
    first, last = Fraction(FIRST_DAY * MICROSECONDS), Fraction(LAST_MOMENT)
    inside = lower >= first and upper <= last
    return Domain(call.type, args[1].nullable or not inside, max(lower, first), min(upper, last))


ZONED = (
    Function("timezone", "timezone('Europe/Berlin', at)", _fit, _domain, _form, 2, 2, frozenset({0}), _check),
)  # fmt: skip
