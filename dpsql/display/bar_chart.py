"""Horizontal bars from a zero line, to an eighth of a place; over the end of each its interval, as a whisker."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsql.display.scales import make_number_ticks, widen_range
from dpsql.display.series import ChartPoint
from dpsql.display.text import truncate_text, pad_text, display_width

MAX_BARS = 50
MIN_PLOT_WIDTH = 10

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_WHISKER = ("├", "─", "┼", "┤")
_PLAIN_WHISKER = ("|", "-", "+", "|")


def render_bar_chart(points: list[ChartPoint], title: str, width: int, plain: bool, colour: bool) -> list[str]:
    visible = points[:MAX_BARS]
    values = [reach for point in visible for reach in point.reach]
    low, high = widen_range(values or [0.0], zero=True)
    texts = [_format_bar_label(point, plain) for point in visible]
    labels, plot_width = _fit_labels(visible, texts, width, plain)
    axis = _make_bar_axis(low, high, plot_width)
    label_width = max(display_width(text) for text in labels)
    lines = [" " * (label_width + 2) + title] if title else []
    for point, label, text in zip(visible, labels, texts, strict=True):
        bar = _color_bar(_render_bar(point, axis, plain), colour)
        lines.append(
            f" {pad_text(label, label_width)} {bar} {text}".rstrip() if text else f" {pad_text(label, label_width)} {bar}".rstrip()
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
