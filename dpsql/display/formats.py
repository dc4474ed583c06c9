"""Released rows as an aligned table, as CSV and as JSON."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from dpsql.display.cells import bar_text, cell_text, column_decimals, half_width, width_of
from dpsql.display.screen import BOLD, DIM, Screen
from dpsql.figures import CellError

Row = tuple[Any, ...]
Bars = Sequence[tuple[CellError | None, ...]]


class Figure(str):
    """A number that is text already, since it was rounded with care."""


def print_table(screen: Screen, names: Sequence[str], rows: Sequence[Row], bars: Bars | None = None) -> None:
    """Numbers to the right, each with its error bar where `bars` are given; text to the left."""
    columns = [_column([row[i] for row in rows], [b[i] for b in bars] if bars else None) for i in range(len(names))]
    heads = [cell_text(name, 0) for name in names]
    widths = [max(width_of(t) for t in (head, *column)) for head, column in zip(heads, columns, strict=True)]
    right = [_is_number([row[i] for row in rows]) for i in range(len(names))]
    aligned = [_pad(head, width, at) for head, width, at in zip(heads, widths, right, strict=True)]
    screen.print(_line(screen, [screen.style(head, BOLD) for head in aligned]))
    screen.print(screen.style("─┼─".join("─" * width for width in widths).join(("─", "─")), DIM))
    for place, row in enumerate(rows):
        cells = [_pad(columns[i][place], widths[i], right[i]) for i in range(len(names))]
        screen.print(_line(screen, [_dim_null(screen, cell, row[i]) for i, cell in enumerate(cells)]))


def _line(screen: Screen, cells: Sequence[str]) -> str:
    return (" " + f" {screen.style('│', DIM)} ".join(cells)).rstrip()


def _dim_null(screen: Screen, cell: str, value: object) -> str:
    return screen.style(cell, DIM) if value is None else cell


def _column(values: list[Any], bars: list[CellError | None] | None) -> list[str]:
    """The texts of a column; values and error bars each end at one place."""
    widths = [half_width(v, bar) for v, bar in zip(values, bars or [None] * len(values), strict=True)]
    decimals = column_decimals(values, widths)
    texts = [cell_text(value, decimals) for value in values]
    errors = [bar_text(width, decimals) for width in widths]
    if not any(errors):
        return texts
    most, widest = max(map(width_of, texts)), max(map(len, errors))
    return [
        f"{_pad(text, most, True)} {f'± {error[2:]:>{widest - 2}}' if error else ' ' * widest}"
        for text, error in zip(texts, errors, strict=True)
    ]


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - width_of(text))
    return space + text if right else text + space


def _is_number(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(v, int | float | Decimal | Figure) and not isinstance(v, bool) for v in known)


def csv_lines(names: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    """NULL is an empty field, an empty text is `""`, as PostgreSQL's COPY writes them."""
    yield ",".join(_csv_text(name) for name in names)
    for row in rows:
        yield ",".join(_csv_field(value) for value in row)


def _csv_field(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return cell_text(value, 0) if not math.isfinite(value) else repr(value)
        case Decimal():
            return f"{value:f}"
        case dt.datetime():
            return value.isoformat(" ")
        case _:
            return _csv_text(str(value))


def _csv_text(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"' if not text or text != text.strip() or any(c in text for c in ',"\r\n') else text


def json_lines(names: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    """An array with one object a line. Decimals are numbers with all their digits; NaN and Infinity are texts."""
    keys = [json.dumps(name, ensure_ascii=False) for name in names]
    yield "["
    for place, row in enumerate(rows):
        fields = ", ".join(f"{key}: {_json_value(value)}" for key, value in zip(keys, row, strict=True))
        yield f"  {{{fields}}}{',' if place < len(rows) - 1 else ''}"
    yield "]"


def _json_value(value: Any) -> str:
    match value:
        case None | bool() | int():
            return json.dumps(value)
        case float():
            return repr(value) if math.isfinite(value) else json.dumps(cell_text(value, 0))
        case Decimal():
            return f"{value:f}"
        case dt.date() | dt.time():
            return json.dumps(value.isoformat())
        case list() | tuple():
            return f"[{', '.join(_json_value(item) for item in value)}]"
        case dict():
            items = (f"{json.dumps(str(k), ensure_ascii=False)}: {_json_value(v)}" for k, v in value.items())
            return f"{{{', '.join(items)}}}"
        case _:
            return json.dumps(str(value), ensure_ascii=False)


def unique_names(names: Sequence[str]) -> list[str]:
    """A second `count` becomes `count_2`: an object cannot hold one name twice.

    >>> unique_names(["count", "count", "count_2"])
    ['count', 'count_3', 'count_2']
    """
    result: list[str] = []
    for place, name in enumerate(names):
        new, number = name, 2
        while new in result or (new != name and new in names[place:]):
            new, number = f"{name}_{number}", number + 1
        result.append(new)
    return result
