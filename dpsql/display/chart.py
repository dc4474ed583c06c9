"""The last answer as a chart on a terminal, with its 95 % intervals as whiskers.

Which columns are drawn: those with noise; else the numbers beside the first column. The others name the rows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from dpsql.display.cells import value_text
from dpsql.display.chart_bars import bar_lines
from dpsql.display.chart_lines import MOST_SERIES, curve_lines
from dpsql.display.scales import position
from dpsql.display.series import Point, Series
from dpsql.display.text import shown
from dpsql.figures import CellError

Row = Sequence[Any]
Bars = Sequence[Sequence[CellError | None]]
Kind = Literal["auto", "bars", "lines"]

MOST_PANELS = 4
"""Columns that are drawn below each other, each on a scale of its own: their units may differ."""

NARROWEST = 20


class NothingToDraw(Exception):
    """`str` says why, in words that follow "there is nothing to draw:"."""


def chart_lines(
    names: Sequence[str],
    rows: Sequence[Row],
    bars: Bars | None,
    width: int = 80,
    height: int = 20,
    kind: str = "auto",
    plain: bool = False,
    colour: bool = False,
) -> list[str]:
    """Bars where texts name the rows, lines where times or numbers do; or as `kind` says."""
    picked = _pick(names, rows, bars)
    width, height = max(width, NARROWEST), max(height, 6)
    lines: list[str] = []
    for title, points in _alone(picked, names, rows, bars, plain):
        lines += bar_lines(points, title, width, plain, colour)
    for at in picked.values[:MOST_PANELS] if not lines else ():
        title = shown(names[at], plain)
        series, left_out = _series(picked, at, names, rows, bars, plain)
        if kind == "lines" or (kind == "auto" and picked.along is not None):
            drawn = curve_lines(series, title, width, height, plain, colour) + left_out
        else:
            drawn = bar_lines(_points(picked, at, rows, bars, plain), title, width, plain, colour)
        lines += ([""] if lines else []) + drawn
    return lines + _notes(picked, bars)


@dataclass(frozen=True)
class _Picked:
    """The columns that are drawn; those that name rows; the one along which lines run, and the one that tells them
    apart."""

    values: list[int]
    keys: list[int]
    along: int | None = None
    apart: int | None = None


def _pick(names: Sequence[str], rows: Sequence[Row], bars: Bars | None) -> _Picked:
    if not rows:
        raise NothingToDraw("the answer has no rows")
    numbers = [at for at in range(len(names)) if _all_numbers([row[at] for row in rows])]
    noisy = [at for at in numbers if bars and any(row[at] is not None for row in bars)]
    if not numbers:
        raise NothingToDraw("no column has numbers")
    values = noisy or (numbers[1:] if numbers[0] == 0 and len(numbers) > 1 and len(rows) > 1 else numbers)
    keys = [at for at in range(len(names)) if at not in values and (at not in numbers or at < values[0])]
    if not any(position(row[at]) is not None for row in rows for at in values):
        raise NothingToDraw("all values are NULL or not finite")
    along, apart = _along(rows, keys)
    return _Picked(values, keys, along, apart)


def _all_numbers(values: list[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in known)


def _along(rows: Sequence[Row], keys: list[int]) -> tuple[int | None, int | None]:
    """Lines run along one time or number; a second key may tell a few of them apart."""
    ordered = [at for at in keys if _is_ordered([row[at] for row in rows])]
    if len(ordered) != 1 or len(keys) > 2:
        return None, None
    (along,) = ordered
    if len({row[along] for row in rows} - {None}) < 2:
        return None, None
    others = [at for at in keys if at != along]
    if not others:
        return (along, None) if _is_function(rows, keys) else (None, None)
    few = len({str(row[others[0]]) for row in rows}) <= MOST_SERIES
    return (along, others[0]) if few and _is_function(rows, keys) else (None, None)


def _is_ordered(values: list[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(
        isinstance(v, int | float | Decimal | dt.date | dt.time) and not isinstance(v, bool) for v in known
    )


def _is_function(rows: Sequence[Row], keys: list[int]) -> bool:
    return len({tuple(str(row[at]) for at in keys) for row in rows}) == len(rows)


def _series(
    picked: _Picked, at: int, names: Sequence[str], rows: Sequence[Row], bars: Bars | None, plain: bool
) -> tuple[list[Series], list[str]]:
    """For lines: points by what tells them apart, in the order of their places."""
    found: dict[str, list[Point]] = {}
    lost = 0
    for number, row in enumerate(rows):
        along = number if picked.along is None else row[picked.along]
        if position(along) is None:
            lost += 1
            continue
        name = "" if picked.apart is None else value_text(row[picked.apart], plain)
        label = _label(row, picked.keys, number, plain) if picked.along is None else ""
        found.setdefault(name, []).append(Point(label, row[at], bars[number][at] if bars else None, along))
    series = [
        Series(name, sorted(points, key=lambda one: position(one.along) or 0.0)) for name, points in found.items()
    ]
    key = "" if picked.along is None else shown(names[picked.along], plain)
    note = f'{lost} row{"" if lost == 1 else "s"} without "{key}" {"is" if lost == 1 else "are"} not drawn'
    return series, [note] if lost else []


def _points(picked: _Picked, at: int, rows: Sequence[Row], bars: Bars | None, plain: bool) -> list[Point]:
    """For bars: one for each row, in the order of the answer."""
    return [
        Point(_label(row, picked.keys, number, plain), row[at], bars[number][at] if bars else None)
        for number, row in enumerate(rows)
    ]


def _alone(
    picked: _Picked, names: Sequence[str], rows: Sequence[Row], bars: Bars | None, plain: bool
) -> list[tuple[str, list[Point]]]:
    """One row that nothing names: its columns are the bars."""
    if len(rows) > 1 or picked.keys:
        return []
    values = [Point(shown(names[at], plain), rows[0][at], bars[0][at] if bars else None) for at in picked.values]
    return [("", values)]


def _notes(picked: _Picked, bars: Bars | None) -> list[str]:
    more = len(picked.values) - MOST_PANELS if picked.keys else 0
    noisy = bars is not None and any(bar is not None for row in bars for bar in row)
    notes = (
        [f"{more} column{'' if more == 1 else 's'} more {'is' if more == 1 else 'are'} not drawn"] if more > 0 else []
    )
    return notes + (["whiskers are 95 % intervals"] if noisy else [])


def _label(row: Row, keys: list[int], number: int, plain: bool) -> str:
    return ", ".join(value_text(row[at], plain) for at in keys) if keys else str(number + 1)
