"""The last answer as a chart on a terminal, with its 95 % intervals as whiskers. `choose_chart_columns` has what is drawn."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.display.bar_chart import render_bar_chart
from dpsql.display.cells import format_value
from dpsql.display.line_chart import render_line_chart
from dpsql.display.pick import ErrorBars, NothingToDraw, ChartColumns, Row, choose_chart_columns
from dpsql.display.scales import axis_position
from dpsql.display.series import ChartPoint, Series
from dpsql.display.text import escape_text

__all__ = ["NothingToDraw", "render_chart"]

MAX_PANELS = 4
"""Columns that are drawn below each other, each on a scale of its own: their units may differ."""

MIN_CHART_WIDTH = 20


def render_chart(
    names: Sequence[str],
    rows: Sequence[Row],
    bars: ErrorBars | None,
    width: int = 80,
    height: int = 20,
    kind: str = "auto",
    plain: bool = False,
    colour: bool = False,
) -> list[str]:
    """Bars where texts name the rows, lines where times or numbers do; or as `kind` says."""
    columns = choose_chart_columns(names, rows, bars)
    width, height = max(width, MIN_CHART_WIDTH), max(height, 6)
    lines: list[str] = []
    for title, points in _single_row_points(columns, names, rows, bars, plain):
        lines += render_bar_chart(points, title, width, plain, colour)
    for at in columns.values[:MAX_PANELS] if not lines else ():
        title = escape_text(names[at], plain)
        series, left_out = _build_series(columns, at, names, rows, bars, plain)
        if kind == "lines" or (kind == "auto" and columns.along is not None):
            panel = render_line_chart(series, title, width, height, plain, colour) + left_out
        else:
            panel = render_bar_chart(_build_points(columns, at, rows, bars, plain), title, width, plain, colour)
        lines += ([""] if lines else []) + panel
    return lines + _chart_notes(columns, bars)


def _build_series(
    columns: ChartColumns, at: int, names: Sequence[str], rows: Sequence[Row], bars: ErrorBars | None, plain: bool
) -> tuple[list[Series], list[str]]:
    """For lines: points by what tells them apart, in the order of their places."""
    points_by_name: dict[str, list[ChartPoint]] = {}
    lost = 0
    for number, row in enumerate(rows):
        along = number if columns.along is None else row[columns.along]
        if axis_position(along) is None:
            lost += 1
            continue
        name = "" if columns.apart is None else format_value(row[columns.apart], plain)
        label = _row_label(row, columns.keys, number, plain) if columns.along is None else ""
        points_by_name.setdefault(name, []).append(ChartPoint(label, row[at], bars[number][at] if bars else None, along))
    series = [
        Series(name, sorted(points, key=lambda point: axis_position(point.along) or 0.0)) for name, points in points_by_name.items()
    ]
    key = "" if columns.along is None else escape_text(names[columns.along], plain)
    note = f'{lost} row{"" if lost == 1 else "s"} without "{key}" {"is" if lost == 1 else "are"} not drawn'
    return series, [note] if lost else []


def _build_points(columns: ChartColumns, at: int, rows: Sequence[Row], bars: ErrorBars | None, plain: bool) -> list[ChartPoint]:
    """For bars: one for each row, in the order of the answer."""
    return [
        ChartPoint(_row_label(row, columns.keys, number, plain), row[at], bars[number][at] if bars else None)
        for number, row in enumerate(rows)
    ]


def _single_row_points(
    columns: ChartColumns, names: Sequence[str], rows: Sequence[Row], bars: ErrorBars | None, plain: bool
) -> list[tuple[str, list[ChartPoint]]]:
    """One row that nothing names: its columns are the bars."""
    if len(rows) > 1 or columns.keys:
        return []
    values = [ChartPoint(escape_text(names[at], plain), rows[0][at], bars[0][at] if bars else None) for at in columns.values]
    return [("", values)]


def _chart_notes(columns: ChartColumns, bars: ErrorBars | None) -> list[str]:
    more = len(columns.values) - MAX_PANELS if columns.keys else 0
    noisy = bars is not None and any(bar is not None for row in bars for bar in row)
    notes = (
        [f"{more} column{'' if more == 1 else 's'} more {'is' if more == 1 else 'are'} not drawn"] if more > 0 else []
    )
    return notes + (["whiskers are 95 % intervals"] if noisy else [])


def _row_label(row: Row, keys: list[int], number: int, plain: bool) -> str:
    return ", ".join(format_value(row[at], plain) for at in keys) if keys else str(number + 1)
