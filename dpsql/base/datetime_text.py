"""Dates and times as PostgreSQL reads them from text: ISO 8601 and what else people and drivers write.

2024-02-29 +00      20240229      29 Feb 2024      Feb 29, 2024      2/29/2024      29-Feb-2024      today
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

CURRENT_TIME_WORDS = ("now", "today", "tomorrow", "yesterday")
"""What stands for a time of the clock; each is the time of the statement that it is read for."""

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DATES = [
    re.compile(pattern, re.ASCII)
    for pattern in (
        r"(?P<year>\d{4})-(?P<number>\d{1,2})-(?P<day>\d{1,2})",
        r"(?P<year>\d{4})/(?P<number>\d{1,2})/(?P<day>\d{1,2})",
        r"(?P<year>\d{4})(?P<number>\d\d)(?P<day>\d\d)",
        r"(?P<number>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})",
        rf"(?P<day>\d{{1,2}})[ -]?{_MONTH}(?:,? |-)(?P<year>\d{{4}})",
        rf"{_MONTH} ?(?P<day>\d{{1,2}})(?:,? )(?P<year>\d{{4}})",
        rf"(?P<year>\d{{4}})[ -]{_MONTH}[ -](?P<day>\d{{1,2}})",
    )
]
_TIME_AND_ZONE = re.compile(
    r"(?:(?:t| )(?P<hour>\d{1,2}):?(?P<minute>\d\d)(?::?(?P<second>\d\d)(?:\.(?P<fraction>\d{0,6}))?)?)?"
    r"(?: ?(?:(?P<utc>z|utc|gmt|zulu)|(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d\d))?(?::\d\d)?))?",
    re.ASCII,
)
MAX_CHARACTERS = 100


@dataclass(frozen=True)
class DatetimeText:
    """A local time, and how far its zone is ahead of UTC where the text says so."""

    local: dt.datetime
    ahead: dt.timedelta | None = None


def read_datetime(text: str, now: dt.datetime | None = None) -> DatetimeText | None:
    """None where it is no date or time. `now` is what the session's clocks show, for words such as today.

    >>> read_datetime("2024-02-29 +02").local, read_datetime("29 Feb 2024 9:30").local
    (datetime.datetime(2024, 2, 29, 0, 0), datetime.datetime(2024, 2, 29, 9, 30))
    """
    folded = " ".join(text.lower().split())
    if len(folded) > MAX_CHARACTERS:
        return None
    if folded == "epoch":
        return DatetimeText(dt.datetime(1970, 1, 1), dt.timedelta())
    if folded in CURRENT_TIME_WORDS:
        return None if now is None else DatetimeText(_read_word(folded, now))
    for pattern in _DATES:
        date = pattern.match(folded)
        rest = None if date is None else _TIME_AND_ZONE.fullmatch(folded, date.end())
        if date is not None and rest is not None:
            return _build(date, rest)
    return None


def _read_word(word: str, now: dt.datetime) -> dt.datetime:
    if word == "now":
        return now
    days = {"today": 0, "tomorrow": 1, "yesterday": -1}[word]
    return dt.datetime(now.year, now.month, now.day) + dt.timedelta(days=days)


def _build(date: re.Match[str], rest: re.Match[str]) -> DatetimeText | None:
    named = date.groupdict()
    month = int(named["number"]) if named.get("number") else _MONTHS.index(named["month"][:3]) + 1
    micro = int((rest["fraction"] or "").ljust(6, "0"))
    hour, minute, second = (int(rest[name] or 0) for name in ("hour", "minute", "second"))
    try:
        local = dt.datetime(int(named["year"]), month, int(named["day"]), hour, minute, second, micro)
    except ValueError:
        return None
    if rest["utc"]:
        return DatetimeText(local, dt.timedelta())
    if rest["sign"] is None:
        return DatetimeText(local)
    ahead = dt.timedelta(hours=int(rest["hours"]), minutes=int(rest["minutes"] or 0))
    if ahead >= dt.timedelta(hours=16):
        return None
    return DatetimeText(local, -ahead if rest["sign"] == "-" else ahead)
