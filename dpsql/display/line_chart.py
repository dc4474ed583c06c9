"""Lines along times or numbers, with a vertical whisker at each point."""

from __future__ import annotations

import math

from dpsql.display.canvas import Canvas
from dpsql.display.pick import MAX_SERIES
from dpsql.display.scales import AxisScale, Tick, make_number_ticks, axis_position, choose_ticks, widen_range
from dpsql.display.series import ChartPoint, Series
from dpsql.display.text import truncate_text, display_width

_MARKS = "●○◆◇▲△"
_PLAIN_MARKS = "ox*+#@"
_COLOURS = ("36", "33", "35", "32", "34", "31")


def render_line_chart(series: list[Series], title: str, width: int, height: int, plain: bool, colour: bool) -> list[str]:
    """`height` lines with the axis; above them the title, and a legend where there are several."""
    low, high = _value_range(series)
    ticks = make_number_ticks(low, high, max(2, (height - 2) // 3))
    axis_width = max((len(tick.text) for tick in ticks), default=1)
    canvas = Canvas(max(8, width - axis_width - 3), max(3, height - 2), plain)
    along = [item.along for each in series for item in each.points]
    positions = [value for value in map(axis_position, along) if value is not None]
    x = AxisScale(*widen_range(positions, zero=False), canvas.width - 1)
    y = AxisScale(low, high, canvas.height)
    if low < 0 < high:
        canvas.zero = min(canvas.height - 1, math.floor(y.to_position(0.0)))
    for number, item in enumerate(series[:MAX_SERIES]):
        _draw_series(canvas, item, number, x, y)
    head = [" " * (axis_width + 3) + _render_heading(series, title, width - axis_width - 3, plain, colour)]
    return head + _render_framed(canvas, ticks, y, axis_width, colour) + _render_x_axis(series, canvas, x, axis_width)


def _render_heading(series: list[Series], title: str, width: int, plain: bool, colour: bool) -> str:
    """The title, and which mark is which line."""
    if len(series) == 1 and not series[0].name:
        return truncate_text(title, width, plain)
    marks = _PLAIN_MARKS if plain else _MARKS
    share = max(4, width // (min(len(series), MAX_SERIES) + 1) - 4)
    legend = [
        f"{_color_text(marks[at], _COLOURS[at], colour)} {truncate_text(each.name, share, plain)}"
        for at, each in enumerate(series[:MAX_SERIES])
    ]
    return f"{truncate_text(title, share, plain)}: {'  '.join(legend)}"


def _value_range(series: list[Series]) -> tuple[float, float]:
    """All whiskers; and 0, where it is not far."""
    values = [reach for each in series for point in each.points for reach in point.reach]
    low, high = widen_range(values or [0.0], zero=False)
    if 0 < low < 0.5 * high or 0 > high > 0.5 * low:
        low, high = widen_range([low, high], zero=True)
    return low, high


def _draw_series(canvas: Canvas, series: Series, number: int, x: AxisScale, y: AxisScale) -> None:
    style, sparse = _COLOURS[number], _is_sparse(series, canvas.width)
    before: tuple[int, int] | None = None
    for point in series.points:
        x_value = axis_position(point.along)
        if point.y is None or x_value is None:
            before = None  # a NULL interrupts the line
            continue
        at = (round(2 * x.to_position(x_value)), min(4 * canvas.height - 1, math.floor(4 * y.to_position(point.y))))
        if before is not None:
            canvas.draw_line(before, at, style)
        before = at
    every = 1 if sparse else max(1, 8 * len(series.points) // canvas.width)
    for nth, point in enumerate(series.points):
        x_value = axis_position(point.along)
        if point.y is not None and x_value is not None:
            marked = sparse or (bool(series.name) and nth % every == 0)
            _draw_point(canvas, point, point.y, round(2 * x.to_position(x_value)), y, number, sparse, marked)


def _is_sparse(series: Series, width: int) -> bool:
    return len(series.points) <= width // 3


def _draw_point(
    canvas: Canvas, point: ChartPoint, value: float, x: int, y: AxisScale, number: int, sparse: bool, marked: bool
) -> None:
    """The point and its whisker: as signs where there is room for them, as dots where points stand close."""
    style, top = _COLOURS[number], canvas.height - 1
    ends = [min(max(end, y.low), y.high) for end in point.interval or (value, value)]
    low, high, line = (min(top, math.floor(y.to_position(end))) for end in (*ends, value))
    if sparse:
        for row in range(low, high + 1):
            sign = "|" if canvas.plain else "┬" if row == high else "┴" if row == low else "│"
            canvas.put_sign(x // 2, row, sign, style)
    else:
        bottom, above = (min(4 * canvas.height - 1, math.floor(4 * y.to_position(end))) for end in ends)
        canvas.draw_line((x, bottom), (x, above), style)
    if marked:
        canvas.put_sign(x // 2, line, (_PLAIN_MARKS if canvas.plain else _MARKS)[number], style)


def _color_text(text: str, style: str, colour: bool) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if colour and style else text


def _render_framed(canvas: Canvas, ticks: list[Tick], y: AxisScale, axis_width: int, colour: bool) -> list[str]:
    """The lines of the canvas behind the axis on the left."""
    labels = {min(canvas.height - 1, math.floor(y.to_position(tick.value))): tick.text for tick in ticks}
    lines: list[str] = []
    for number, signs in enumerate(canvas.render_lines()):
        text = labels.get(canvas.height - 1 - number, "")
        wall = ("+" if text else "|") if canvas.plain else ("┤" if text else "│")
        cells = "".join(_color_text(sign, style, colour) for sign, style in signs)
        lines.append(f" {text:>{axis_width}} {wall}{cells}".rstrip())
    return lines


def _render_x_axis(series: list[Series], canvas: Canvas, x: AxisScale, axis_width: int) -> list[str]:
    """The axis on which the lines run."""
    line, below = ["-" if canvas.plain else "─"] * canvas.width, [" "] * canvas.width
    free = -1
    for tick in _make_x_ticks(series, x, canvas.width, canvas.plain):
        column = round(x.to_position(tick.value))
        start = max(0, min(column - display_width(tick.text) // 2, canvas.width - display_width(tick.text)))
        if start <= free:
            continue
        line[column] = "+" if canvas.plain else "┬"
        free = start + display_width(tick.text)
        below[start:free] = [tick.text] + [""] * (free - start - 1)
    corner = "+" if canvas.plain else "└"
    return [f" {' ' * axis_width} {corner}{''.join(line)}", f" {' ' * axis_width}  {''.join(below)}".rstrip()]


def _make_x_ticks(series: list[Series], x: AxisScale, width: int, plain: bool) -> list[Tick]:
    """Round places; or, where rows have no places, the labels of some of them."""
    points = [point for each in series for point in each.points]
    if points and points[0].label:
        return [Tick(float(axis_position(point.along) or 0), truncate_text(point.label, 14, plain)) for point in points]
    return choose_ticks([point.along for point in points])(x.low, x.high, max(2, width // 12))
