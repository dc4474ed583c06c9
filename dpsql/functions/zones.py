"""Time zones: the local time of a moment, and the moment of a local time, by the rules that the engine has of a zone.

Where clocks are set forward, a local time that never was is read by the rule before; where they are set back, one that
was twice is the later moment. So says the engine, and nothing here is worked out in Python.
"""

from __future__ import annotations

import datetime as dt
from difflib import get_close_matches
from fractions import Fraction

from dpsql.functions.calendar import FIRST_DAY, LAST_TIMESTAMP, DAY_MICROSECONDS, datetime_bounds
from dpsql.functions.dates import null_outside_calendar
from dpsql.functions.record import Domains, Signature, ScalarFunction, Types, quote_text, text_argument
from dpsql.functions.zone_names import ZONE_OFFSETS
from dpsql.plan.expr import Call
from dpsql.schema.domain import Domain
from dpsql.types import TEXT, TIMESTAMP, TIMESTAMPTZ

HOUR_MICROSECONDS = 3_600_000_000
MAX_OFFSET_HOURS = 24  # hours; before time was kept by zones, Manila was 16 hours behind
_RULES_FROM, _RULES_UNTIL = dt.datetime(1970, 1, 2), dt.datetime(2099, 12, 30)  # between them a zone's hours are known

UTC_NAMES = frozenset({"utc", "etc/utc", "gmt", "z", "zulu", "etc/zulu", "uct", "etc/uct", "universal", "etc/universal",
                 "etc/gmt", "greenwich", "etc/greenwich"})  # fmt: skip


def find_zone_name(spelling: str) -> str | None:
    """The zone's own spelling; None where there is no such zone."""
    zone = ZONE_OFFSETS.get(spelling.strip().lower())
    return None if zone is None else zone[0]


def suggest_zones(spelling: str) -> list[str]:
    """Names that are perhaps meant: those like it, and those of a place of that name."""
    folded = spelling.strip().lower().replace(" ", "_")
    names = [name for name in ZONE_OFFSETS if folded and folded == name.rpartition("/")[2]]
    names += [name for name in get_close_matches(folded, ZONE_OFFSETS, n=3, cutoff=0.75) if name not in names]
    return [ZONE_OFFSETS[name][0] for name in names[:3]]


def _timezone_signature(types: Types) -> Signature | None:
    zone, at = types
    if zone != TEXT or at not in (TIMESTAMP, TIMESTAMPTZ):
        return None
    return Signature(types, TIMESTAMP if at == TIMESTAMPTZ else TIMESTAMPTZ)


def _check_timezone(call: Call) -> str | None:
    spelling = text_argument(call, 0)
    return None if spelling.lower() in ZONE_OFFSETS else f'there is no time zone "{spelling}"'


def _render_timezone(call: Call, args: list[str]) -> str:
    return null_outside_calendar(f"timezone({quote_text(ZONE_OFFSETS[text_argument(call, 0).lower()][0])}, {args[1]})", call.type)


def _timezone_domain(call: Call, args: Domains) -> Domain:
    """The bounds, moved by the least and the most that the zone is ahead of UTC, or behind it on the way back."""
    bounds = datetime_bounds(args[1])
    if bounds is None:
        return Domain(call.type, True)
    _, lowest, highest = ZONE_OFFSETS[text_argument(call, 0).lower()]
    if not (bounds[0] >= _RULES_FROM and bounds[1] <= _RULES_UNTIL):
        lowest, highest = -MAX_OFFSET_HOURS, MAX_OFFSET_HOURS
    if call.type == TIMESTAMPTZ:
        lowest, highest = -highest, -lowest
    lower, upper = args[1].bounds[0] + lowest * HOUR_MICROSECONDS, args[1].bounds[1] + highest * HOUR_MICROSECONDS
    first, last = Fraction(FIRST_DAY * DAY_MICROSECONDS), Fraction(LAST_TIMESTAMP)
    inside = lower >= first and upper <= last
    return Domain(call.type, args[1].nullable or not inside, max(lower, first), min(upper, last))


TIME_ZONE_FUNCTIONS = (
    ScalarFunction("timezone", "timezone('Europe/Berlin', at)", _timezone_signature, _timezone_domain, _render_timezone, 2, 2, frozenset({0}), _check_timezone),
)  # fmt: skip
