"""The last answer as a chart on a terminal, with its 95 % intervals as whiskers. `choose_chart_columns` has what is
drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from dpsql.interfaces.display.cells import format_value
from dpsql.interfaces.display.chart_data import (
    MAX_SERIES,
    AxisScale,
    ChartColumns,
    ChartPoint,
    ErrorBars,
    NothingToDraw,
    Row,
    Series,
    Tick,
    axis_position,
    choose_chart_columns,
    choose_ticks,
    make_number_ticks,
    widen_range,
)
from dpsql.interfaces.display.terminal import display_width, escape_text, pad_text, truncate_text

__all__ = ["NothingToDraw", "render_chart"]

# Horizontal bars from a zero line, to an eighth of a place; over the end of each its interval, as a whisker.

MAX_BARS = 50
MIN_PLOT_WIDTH = 10

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_WHISKER = ("├", "─", "┼", "┤")
_PLAIN_WHISKER = ("|", "-", "+", "|")


def render_bar_chart(points: list[ChartPoint], title: str, width: int, plain: bool, colour: bool) -> list[str]:
    visible = points[:MAX_BARS]
    values = [value for point in visible for value in point.scale_values]
    low, high = widen_range(values or [0.0], zero=True)
    texts = [_format_bar_label(point, plain) for point in visible]
    labels, plot_width = _fit_labels(visible, texts, width, plain)
    axis = _make_bar_axis(low, high, plot_width)
    label_width = max(display_width(text) for text in labels)
    lines = [" " * (label_width + 2) + title] if title else []
    for point, label, text in zip(visible, labels, texts, strict=True):
        bar = _color_bar(_render_bar(point, axis, plain), colour)
        lines.append(
            f" {pad_text(label, label_width)} {bar} {text}".rstrip()
            if text
            else f" {pad_text(label, label_width)} {bar}".rstrip()
        )
    lines += [f" {' ' * label_width} {line}".rstrip() for line in _render_bar_axis(low, high, axis, plain)]
    rest = len(points) - len(visible)
    return (
        [*lines, f"{rest} row{'' if rest == 1 else 's'} more {'is' if rest == 1 else 'are'} not drawn"]
        if rest
        else lines
    )


def _format_bar_label(point: ChartPoint, plain: bool) -> str:
    cell = point.cell
    return f"{cell.text} {'+/-' if plain else '±'} {cell.bar}" if cell.bar else cell.text


def _fit_labels(points: list[ChartPoint], texts: list[str], width: int, plain: bool) -> tuple[list[str], int]:
    """Labels, of which long ones are cut to a third of the width, and the room for bars; values may go beyond it."""
    max_width = max(6, width // 3)
    labels = [truncate_text(point.label, max_width, plain) for point in points]
    used_width = max(map(display_width, labels)) + max(map(display_width, texts)) + 4
    return labels, max(MIN_PLOT_WIDTH, width - used_width)


def _color_bar(text: str, colour: bool) -> str:
    return f"\x1b[36m{text}\x1b[0m" if colour and text.strip() else text


@dataclass(frozen=True)
class _BarAxis:
    """`left` places below zero, the zero line, `right` places above; `unit` is the value of one place."""

    left: int
    right: int
    unit: float

    def column_of(self, value: float) -> int:
        """Where a value stands, counted from the left; the zero line is column `left`."""
        cells = value / self.unit if math.isfinite(value) else math.copysign(math.inf, value)
        if value >= 0:
            return self.left + 1 + (min(self.right - 1, math.floor(cells)) if cells < self.right else self.right - 1)
        return self.left - 1 - (min(self.left - 1, math.floor(-cells)) if -cells < self.left else self.left - 1)


def _make_bar_axis(low: float, high: float, plot_width: int) -> _BarAxis:
    """Zero is a line between two places, so that bars on both sides begin at it."""
    if low == 0:
        return _BarAxis(0, plot_width, high / plot_width)
    if high == 0:
        return _BarAxis(plot_width - 1, 1, -low / (plot_width - 1))
    left = min(plot_width - 1, max(1, round(plot_width * -low / (high - low))))
    return _BarAxis(left, plot_width - left, max(-low / left, high / (plot_width - left)))


def _render_bar(point: ChartPoint, ruler: _BarAxis, plain: bool) -> str:
    signs = [" "] * (ruler.left + 1 + ruler.right)
    signs[ruler.left] = "|" if plain else "│"
    if point.y is not None:
        _fill_bar(signs, point.y, ruler, plain)
        if point.interval is not None:
            _draw_whisker(signs, point.y, point.interval, ruler, plain)
    return "".join(signs)


def _fill_bar(signs: list[str], value: float, ruler: _BarAxis, plain: bool) -> None:
    eighths = round(8 * abs(value) / ruler.unit)
    full_cells, part = divmod(eighths, 8)
    step = 1 if value >= 0 else -1
    for offset in range(1, full_cells + 1):
        at = ruler.left + step * offset
        if 0 <= at < len(signs):
            signs[at] = "#" if plain else "█"
    at = ruler.left + step * (full_cells + 1)
    if part and 0 <= at < len(signs):
        signs[at] = _partial_block(part, step, plain)


def _partial_block(eighths: int, step: int, plain: bool) -> str:
    if plain:
        return "#" if eighths >= 4 else " "
    if step > 0:
        return _EIGHTHS[eighths]
    return "▕" if eighths <= 2 else "▐" if eighths <= 6 else "█"  # there are no other signs that grow from the right


def _draw_whisker(signs: list[str], value: float, interval: tuple[float, float], ruler: _BarAxis, plain: bool) -> None:
    """Nothing where the interval is narrower than a place: then the bar's end tells enough."""
    left, line, middle, right = _PLAIN_WHISKER if plain else _WHISKER
    low, high = interval
    start, end, at = ruler.column_of(low), ruler.column_of(high), ruler.column_of(value)
    if start == end:
        return
    for column in range(start, end + 1):
        signs[column] = line
    signs[at] = middle
    if math.isfinite(low):
        signs[start] = left
    if math.isfinite(high):
        signs[end] = right


def _render_bar_axis(low: float, high: float, ruler: _BarAxis, plain: bool) -> list[str]:
    """A line below all bars, with round numbers where there is room for them."""
    size = ruler.left + 1 + ruler.right
    line = ["-" if plain else "─"] * size
    below = [" "] * (size + 8)
    line[ruler.left] = "+" if plain else "┴" if ruler.left else "└"
    free = -1
    ticks = make_number_ticks(low, high, max(2, size // 10))
    for tick in sorted(ticks, key=lambda candidate: candidate.value):
        column = ruler.left if tick.value == 0 else ruler.column_of(tick.value * (1 - 1e-9))
        start = max(0, column - (len(tick.text) - 1) // 2) if column > ruler.left or tick.value < 0 else column
        if start <= free or start + len(tick.text) > len(below):
            continue
        if tick.value != 0:
            line[column] = "+" if plain else "┴"
        below[start : start + len(tick.text)] = tick.text
        free = start + len(tick.text)
    return ["".join(line), "".join(below).rstrip()]


# A grid of characters to draw lines on: eight dots of braille in each place, or one sign where only ASCII is.

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The dots of a braille character, by row and column; U+2800 is the one without any."""


@dataclass
class Canvas:
    """`width` columns of `height` lines; dots are counted from the left and from below, two by four in each place."""

    width: int
    height: int
    plain: bool = False
    signs: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)
    dots: dict[tuple[int, int], tuple[int, str]] = field(default_factory=dict)
    zero: int | None = None  # a line that is drawn where nothing else is

    def put_sign(self, column: int, line: int, sign: str, style: str = "") -> None:
        """A sign in place of all dots there; lines are counted from below."""
        if 0 <= column < self.width and 0 <= line < self.height:
            self.signs[column, line] = (sign, style)

    def draw_dot(self, x: int, y: int, style: str = "") -> None:
        cell = (x // 2, y // 4)
        if 0 <= x < 2 * self.width and 0 <= y < 4 * self.height:
            bits, _ = self.dots.get(cell, (0, ""))
            self.dots[cell] = (bits | _DOTS[3 - y % 4][x % 2], style)

    def draw_line(self, start: tuple[int, int], end: tuple[int, int], style: str = "") -> None:
        """Dots from one to the other, both in dots."""
        (x, y), (to_x, to_y) = start, end
        steps = max(abs(to_x - x), abs(to_y - y), 1)
        for step in range(steps + 1):
            self.draw_dot(x + round((to_x - x) * step / steps), y + round((to_y - y) * step / steps), style)

    def render_lines(self) -> list[list[tuple[str, str]]]:
        """From the top: signs, each with its style."""
        return [
            [self._sign_at(column, line) for column in range(self.width)] for line in range(self.height - 1, -1, -1)
        ]

    def _sign_at(self, column: int, line: int) -> tuple[str, str]:
        if (column, line) in self.signs:
            return self.signs[column, line]
        bits, style = self.dots.get((column, line), (0, ""))
        if not bits:
            return (" " if line != self.zero else "-" if self.plain else "┄"), ""
        return ("." if self.plain else chr(0x2800 + bits)), style


# Lines along times or numbers, with a vertical whisker at each point.

_MARKS = "●○◆◇▲△"
_PLAIN_MARKS = "ox*+#@"
_COLOURS = ("36", "33", "35", "32", "34", "31")


def render_line_chart(
    series: list[Series], title: str, width: int, height: int, plain: bool, colour: bool
) -> list[str]:
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
    values = [value for each in series for point in each.points for value in point.scale_values]
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
        points_by_name.setdefault(name, []).append(
            ChartPoint(label, row[at], bars[number][at] if bars else None, along)
        )
    series = [
        Series(name, sorted(points, key=lambda point: axis_position(point.along) or 0.0))
        for name, points in points_by_name.items()
    ]
    key = "" if columns.along is None else escape_text(names[columns.along], plain)
    note = f'{lost} row{"" if lost == 1 else "s"} without "{key}" {"is" if lost == 1 else "are"} not drawn'
    return series, [note] if lost else []


def _build_points(
    columns: ChartColumns, at: int, rows: Sequence[Row], bars: ErrorBars | None, plain: bool
) -> list[ChartPoint]:
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
    values = [
        ChartPoint(escape_text(names[at], plain), rows[0][at], bars[0][at] if bars else None) for at in columns.values
    ]
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
