"""Lines along times or numbers, with a vertical whisker at each point."""

from __future__ import annotations

import math

from dpsql.display.canvas import Canvas
from dpsql.display.pick import MOST_SERIES
from dpsql.display.scales import Scale, Tick, number_ticks, position, ticks_of, widened
from dpsql.display.series import Point, Series
from dpsql.display.text import cut, width_of

_MARKS = "●○◆◇▲△"
_PLAIN_MARKS = "ox*+#@"
_COLOURS = ("36", "33", "35", "32", "34", "31")


def curve_lines(series: list[Series], title: str, width: int, height: int, plain: bool, colour: bool) -> list[str]:
    """`height` lines with the axis; above them the title, and a legend where there are several."""
    low, high = _range(series)
    ticks = number_ticks(low, high, max(2, (height - 2) // 3))
    left = max((len(tick.text) for tick in ticks), default=1)
    canvas = Canvas(max(8, width - left - 3), max(3, height - 2), plain)
    along = [one.along for each in series for one in each.points]
    places = [place for place in map(position, along) if place is not None]
    x = Scale(*widened(places, zero=False), canvas.width - 1)
    y = Scale(low, high, canvas.height)
    if low < 0 < high:
        canvas.zero = min(canvas.height - 1, math.floor(y.place(0.0)))
    for number, one in enumerate(series[:MOST_SERIES]):
        _draw(canvas, one, number, x, y)
    head = [" " * (left + 3) + _heading(series, title, width - left - 3, plain, colour)]
    return head + _framed(canvas, ticks, y, left, colour) + _below(series, canvas, x, left)


def _heading(series: list[Series], title: str, width: int, plain: bool, colour: bool) -> str:
    """The title, and which mark is which line."""
    if len(series) == 1 and not series[0].name:
        return cut(title, width, plain)
    marks = _PLAIN_MARKS if plain else _MARKS
    share = max(4, width // (min(len(series), MOST_SERIES) + 1) - 4)
    named = [
        f"{_paint(marks[at], _COLOURS[at], colour)} {cut(one.name, share, plain)}"
        for at, one in enumerate(series[:MOST_SERIES])
    ]
    return f"{cut(title, share, plain)}: {'  '.join(named)}"


def _range(series: list[Series]) -> tuple[float, float]:
    """All whiskers; and 0, where it is not far."""
    values = [reach for one in series for point in one.points for reach in point.reach]
    low, high = widened(values or [0.0], zero=False)
    if 0 < low < 0.5 * high or 0 > high > 0.5 * low:
        low, high = widened([low, high], zero=True)
    return low, high


def _draw(canvas: Canvas, series: Series, number: int, x: Scale, y: Scale) -> None:
    style, sparse = _COLOURS[number], _is_sparse(series, canvas.width)
    before: tuple[int, int] | None = None
    for point in series.points:
        place = position(point.along)
        if point.y is None or place is None:
            before = None  # a NULL interrupts the line
            continue
        at = (round(2 * x.place(place)), min(4 * canvas.height - 1, math.floor(4 * y.place(point.y))))
        if before is not None:
            canvas.line(before, at, style)
        before = at
    every = 1 if sparse else max(1, 8 * len(series.points) // canvas.width)
    for nth, point in enumerate(series.points):
        place = position(point.along)
        if point.y is not None and place is not None:
            marked = sparse or (bool(series.name) and nth % every == 0)
            _mark(canvas, point, point.y, round(2 * x.place(place)), y, number, sparse, marked)


def _is_sparse(series: Series, width: int) -> bool:
    return len(series.points) <= width // 3


def _mark(
    canvas: Canvas, point: Point, value: float, x: int, y: Scale, number: int, sparse: bool, marked: bool
) -> None:
    """The point and its whisker: as signs where there is room for them, as dots where points stand close."""
    style, top = _COLOURS[number], canvas.height - 1
    ends = [min(max(end, y.low), y.high) for end in point.interval or (value, value)]
    low, high, line = (min(top, math.floor(y.place(end))) for end in (*ends, value))
    if sparse:
        for place in range(low, high + 1):
            sign = "|" if canvas.plain else "┬" if place == high else "┴" if place == low else "│"
            canvas.put(x // 2, place, sign, style)
    else:
        bottom, above = (min(4 * canvas.height - 1, math.floor(4 * y.place(end))) for end in ends)
        canvas.line((x, bottom), (x, above), style)
    if marked:
        canvas.put(x // 2, line, (_PLAIN_MARKS if canvas.plain else _MARKS)[number], style)


def _paint(text: str, style: str, colour: bool) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if colour and style else text


def _framed(canvas: Canvas, ticks: list[Tick], y: Scale, left: int, colour: bool) -> list[str]:
    """The lines of the canvas behind the axis on the left."""
    named = {min(canvas.height - 1, math.floor(y.place(tick.value))): tick.text for tick in ticks}
    lines: list[str] = []
    for number, signs in enumerate(canvas.lines()):
        text = named.get(canvas.height - 1 - number, "")
        wall = ("+" if text else "|") if canvas.plain else ("┤" if text else "│")
        drawn = "".join(_paint(sign, style, colour) for sign, style in signs)
        lines.append(f" {text:>{left}} {wall}{drawn}".rstrip())
    return lines


def _below(series: list[Series], canvas: Canvas, x: Scale, left: int) -> list[str]:
    """The axis on which the lines run."""
    line, below = ["-" if canvas.plain else "─"] * canvas.width, [" "] * canvas.width
    free = -1
    for tick in _along_ticks(series, x, canvas.width, canvas.plain):
        column = round(x.place(tick.value))
        start = max(0, min(column - width_of(tick.text) // 2, canvas.width - width_of(tick.text)))
        if start <= free:
            continue
        line[column] = "+" if canvas.plain else "┬"
        free = start + width_of(tick.text)
        below[start:free] = [tick.text] + [""] * (free - start - 1)
    corner = "+" if canvas.plain else "└"
    return [f" {' ' * left} {corner}{''.join(line)}", f" {' ' * left}  {''.join(below)}".rstrip()]


def _along_ticks(series: list[Series], x: Scale, width: int, plain: bool) -> list[Tick]:
    """Round places; or, where rows have no places, the labels of some of them."""
    points = [point for one in series for point in one.points]
    if points and points[0].label:
        return [Tick(float(position(point.along) or 0), cut(point.label, 14, plain)) for point in points]
    return ticks_of([point.along for point in points])(x.low, x.high, max(2, width // 12))
