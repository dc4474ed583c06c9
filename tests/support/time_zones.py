"""The time zones that DuckDB knows, and how far from UTC they have been.

`python -m tests.support.time_zones` prints the part of `dpsql/compiler/functions/time_zones.py` that lists them.
"""

from __future__ import annotations

import textwrap
import zoneinfo

import duckdb

LEFT_OUT = frozenset({"Factory", "localtime", "posixrules"})
"""Not places: what an installation happens to be set to."""

HEAD = """# Names of time zones that engines know, by the hours from UTC between which they have been since 1970.
#
# Written by `python -m tests.support.time_zones`, since a compilation reads no files;
# `tests/unit/compiler/functions/test_time_zones.py` asks DuckDB whether all of it is so.

_ZONES_BY_OFFSETS = {"""

TAIL = '''}

ZONE_OFFSETS: dict[str, tuple[str, int, int]] = {
    name.lower(): (name, least, most) for (least, most), names in _ZONES_BY_OFFSETS.items() for name in names.split()
}
"""By name in lower case: the name, and the least and the most hours that local time is ahead of UTC."""'''


def known(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """What both DuckDB's ICU and IANA's list name; DuckDB alone has CST and others, which mean several zones."""
    names = {name for (name,) in connection.execute("SELECT name FROM pg_timezone_names()").fetchall()}
    return (names & zoneinfo.available_timezones()) - LEFT_OUT


def hours(name: str, since: int, connection: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """The whole hours around all offsets of a zone, at every sixth day from a year to 2100."""
    ((least, most),) = connection.execute(
        """SELECT floor(min(ahead) / 3600)::INT, ceil(max(ahead) / 3600)::INT FROM (
             SELECT epoch(timezone($1, moment) - timezone('UTC', moment)) AS ahead
             FROM (SELECT unnest(generate_series(make_timestamptz($2, 1, 1, 0, 0, 0.0, 'UTC'),
                                                 TIMESTAMPTZ '2100-01-01 00:00+00', INTERVAL '6 days')) AS moment))""",
        [name, since],
    ).fetchall()
    return least, most


def main() -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    found: dict[tuple[int, int], list[str]] = {}
    for name in sorted(known(connection)):
        found.setdefault(hours(name, 1970, connection), []).append(name)
    print(HEAD)
    for ends, names in sorted(found.items()):
        lines = textwrap.wrap(" ".join(names), 100, break_on_hyphens=False)
        quoted = [f'"{line}{" " if place < len(lines) - 1 else ""}"' for place, line in enumerate(lines)]
        text = quoted[0] if len(quoted) == 1 else "(\n        " + "\n        ".join(quoted) + "\n    )"
        print(f"    {ends}: {text},")
    print(TAIL)


if __name__ == "__main__":
    main()
