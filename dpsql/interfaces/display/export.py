"""Released rows as CSV and as JSON: for programs, so every digit is there."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from dpsql.interfaces.display.cells import format_value

Row = tuple[Any, ...]


def to_csv_lines(names: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    """NULL is an empty field, an empty text is `""`, as PostgreSQL's COPY writes them; lists and maps are JSON."""
    yield ",".join(_quote_csv(name) for name in names)
    for row in rows:
        yield ",".join(_format_csv_field(value) for value in row)


def _format_csv_field(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return format_value(value) if not math.isfinite(value) else repr(value)
        case Decimal():
            return f"{value:f}"
        case dt.datetime():
            return value.isoformat(" ")
        case list() | tuple() | dict():
            return _quote_csv(_to_json(value))
        case _:
            return _quote_csv(str(value))


def _quote_csv(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"' if not text or text != text.strip() or any(c in text for c in ',"\r\n') else text


def to_json_lines(names: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    """An array with one object a line. Decimals are numbers with all their digits; NaN and Infinity are texts."""
    keys = [_quote_json(name) for name in names]
    yield "["
    for index, row in enumerate(rows):
        fields = ", ".join(f"{key}: {_to_json(value)}" for key, value in zip(keys, row, strict=True))
        yield f"  {{{fields}}}{',' if index < len(rows) - 1 else ''}"
    yield "]"


def _to_json(value: Any) -> str:
    match value:
        case None | bool() | int():
            return json.dumps(value)
        case float():
            return repr(value) if math.isfinite(value) else json.dumps(format_value(value))
        case Decimal():
            return f"{value:f}"
        case dt.date() | dt.time():
            return json.dumps(value.isoformat())
        case list() | tuple():
            return f"[{', '.join(_to_json(item) for item in value)}]"
        case dict():
            items = (f"{_quote_json(str(k))}: {_to_json(v)}" for k, v in value.items())
            return f"{{{', '.join(items)}}}"
        case _:
            return _quote_json(str(value))


def _quote_json(text: str) -> str:
    """Readable, but what would steer a terminal is escaped."""
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if quoted.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in quoted)


def make_names_unique(names: Sequence[str]) -> list[str]:
    """A second `count` becomes `count_2`: an object cannot hold one name twice.

    >>> make_names_unique(["count", "count", "count_2"])
    ['count', 'count_3', 'count_2']
    """
    result: list[str] = []
    for index, name in enumerate(names):
        new, number = name, 2
        while new in result or (new != name and new in names[index:]):
            new, number = f"{name}_{number}", number + 1
        result.append(new)
    return result
