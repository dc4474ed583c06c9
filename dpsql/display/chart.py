"""The last answer as a chart on a terminal, with its 95 % intervals as whiskers. `pick` has what is drawn."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.display.bar_chart import bar_lines
from dpsql.display.cells import value_text
from dpsql.display.line_chart import curve_lines
from dpsql.display.pick import Bars, NothingToDraw, Picked, Row, pick
from dpsql.display.scales import position
from dpsql.display.series import Point, Series
from dpsql.display.text import shown

__all__ = ["NothingToDraw", "chart_lines"]

MOST_PANELS = 4
"""Columns that are drawn below each other, each on a scale of its own: their units may differ."""

NARROWEST = 20


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
    picked = pick(names, rows, bars)
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


def _series(
    picked: Picked, at: int, names: Sequence[str], rows: Sequence[Row], bars: Bars | None, plain: bool
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


def _points(picked: Picked, at: int, rows: Sequence[Row], bars: Bars | None, plain: bool) -> list[Point]:
    """For bars: one for each row, in the order of the answer."""
    return [
        Point(_label(row, picked.keys, number, plain), row[at], bars[number][at] if bars else None)
        for number, row in enumerate(rows)
    ]


def _alone(
    picked: Picked, names: Sequence[str], rows: Sequence[Row], bars: Bars | None, plain: bool
) -> list[tuple[str, list[Point]]]:
    """One row that nothing names: its columns are the bars."""
    if len(rows) > 1 or picked.keys:
        return []
    values = [Point(shown(names[at], plain), rows[0][at], bars[0][at] if bars else None) for at in picked.values]
    return [("", values)]


def _notes(picked: Picked, bars: Bars | None) -> list[str]:
    more = len(picked.values) - MOST_PANELS if picked.keys else 0
    noisy = bars is not None and any(bar is not None for row in bars for bar in row)
    notes = (
        [f"{more} column{'' if more == 1 else 's'} more {'is' if more == 1 else 'are'} not drawn"] if more > 0 else []
    )
    return notes + (["whiskers are 95 % intervals"] if noisy else [])


def _label(row: Row, keys: list[int], number: int, plain: bool) -> str:
    return ", ".join(value_text(row[at], plain) for at in keys) if keys else str(number + 1)
