"""Horizontal bars from a zero line, to an eighth of a place; over the end of each its interval, as a whisker."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsql.display.scales import number_ticks, widened
from dpsql.display.series import Point
from dpsql.display.text import cut, pad, width_of

MOST_BARS = 50
LEAST_PLOT = 10

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_WHISKER = ("├", "─", "┼", "┤")
_PLAIN_WHISKER = ("|", "-", "+", "|")


def bar_lines(points: list[Point], title: str, width: int, plain: bool, colour: bool) -> list[str]:
    shown = points[:MOST_BARS]
    values = [reach for point in shown for reach in point.reach]
    low, high = widened(values or [0.0], zero=True)
    texts = [_value(point, plain) for point in shown]
    labels, room = _columns(shown, texts, width, plain)
    ruler = _ruler(low, high, room)
    wide = max(width_of(text) for text in labels)
    lines = [" " * (wide + 2) + title] if title else []
    for point, label, text in zip(shown, labels, texts, strict=True):
        drawn = _paint(_bar(point, ruler, plain), colour)
        lines.append(
            f" {pad(label, wide)} {drawn} {text}".rstrip() if text else f" {pad(label, wide)} {drawn}".rstrip()
        )
    lines += [f" {' ' * wide} {line}".rstrip() for line in _axis(low, high, ruler, plain)]
    rest = len(points) - len(shown)
    return (
        [*lines, f"{rest} row{'' if rest == 1 else 's'} more {'is' if rest == 1 else 'are'} not drawn"]
        if rest
        else lines
    )


def _value(point: Point, plain: bool) -> str:
    cell = point.cell
    return f"{cell.text} {'+/-' if plain else '±'} {cell.bar}" if cell.bar else cell.text


def _columns(points: list[Point], texts: list[str], width: int, plain: bool) -> tuple[list[str], int]:
    """Labels, of which long ones are cut to a third of the width, and the room for bars; values may go beyond it."""
    most = max(6, width // 3)
    labels = [cut(point.label, most, plain) for point in points]
    taken = max(map(width_of, labels)) + max(map(width_of, texts)) + 4
    return labels, max(LEAST_PLOT, width - taken)


def _paint(text: str, colour: bool) -> str:
    return f"\x1b[36m{text}\x1b[0m" if colour and text.strip() else text


@dataclass(frozen=True)
class _Ruler:
    """`left` places below zero, the zero line, `right` places above; `unit` is the value of one place."""

    left: int
    right: int
    unit: float

    def column(self, value: float) -> int:
        """Where a value stands, counted from the left; the zero line is column `left`."""
        places = value / self.unit if math.isfinite(value) else math.copysign(math.inf, value)
        if value >= 0:
            return self.left + 1 + (min(self.right - 1, math.floor(places)) if places < self.right else self.right - 1)
        return self.left - 1 - (min(self.left - 1, math.floor(-places)) if -places < self.left else self.left - 1)


def _ruler(low: float, high: float, room: int) -> _Ruler:
    """Zero is a line between two places, so that bars on both sides begin at it."""
    if low == 0:
        return _Ruler(0, room, high / room)
    if high == 0:
        return _Ruler(room - 1, 1, -low / (room - 1))
    left = min(room - 1, max(1, round(room * -low / (high - low))))
    return _Ruler(left, room - left, max(-low / left, high / (room - left)))


def _bar(point: Point, ruler: _Ruler, plain: bool) -> str:
    signs = [" "] * (ruler.left + 1 + ruler.right)
    signs[ruler.left] = "|" if plain else "│"
    if point.y is not None:
        _fill(signs, point.y, ruler, plain)
        if point.interval is not None:
            _whisker(signs, point.y, point.interval, ruler, plain)
    return "".join(signs)


def _fill(signs: list[str], value: float, ruler: _Ruler, plain: bool) -> None:
    eighths = round(8 * abs(value) / ruler.unit)
    whole, part = divmod(eighths, 8)
    step = 1 if value >= 0 else -1
    for place in range(1, whole + 1):
        at = ruler.left + step * place
        if 0 <= at < len(signs):
            signs[at] = "#" if plain else "█"
    at = ruler.left + step * (whole + 1)
    if part and 0 <= at < len(signs):
        signs[at] = _partial(part, step, plain)


def _partial(eighths: int, step: int, plain: bool) -> str:
    if plain:
        return "#" if eighths >= 4 else " "
    if step > 0:
        return _EIGHTHS[eighths]
    return "▕" if eighths <= 2 else "▐" if eighths <= 6 else "█"  # there are no other signs that grow from the right


def _whisker(signs: list[str], value: float, interval: tuple[float, float], ruler: _Ruler, plain: bool) -> None:
    """Nothing where the interval is narrower than a place: then the bar's end tells enough."""
    left, line, middle, right = _PLAIN_WHISKER if plain else _WHISKER
    low, high = interval
    start, end, at = ruler.column(low), ruler.column(high), ruler.column(value)
    if start == end:
        return
    for place in range(start, end + 1):
        signs[place] = line
    signs[at] = middle
    if math.isfinite(low):
        signs[start] = left
    if math.isfinite(high):
        signs[end] = right


def _axis(low: float, high: float, ruler: _Ruler, plain: bool) -> list[str]:
    """A line below all bars, with round numbers where there is room for them."""
    size = ruler.left + 1 + ruler.right
    line = ["-" if plain else "─"] * size
    below = [" "] * (size + 8)
    line[ruler.left] = "+" if plain else "┴" if ruler.left else "└"
    free = -1
    ticks = number_ticks(low, high, max(2, size // 10))
    for tick in sorted(ticks, key=lambda one: one.value):
        column = ruler.left if tick.value == 0 else ruler.column(tick.value * (1 - 1e-9))
        start = max(0, column - (len(tick.text) - 1) // 2) if column > ruler.left or tick.value < 0 else column
        if start <= free or start + len(tick.text) > len(below):
            continue
        if tick.value != 0:
            line[column] = "+" if plain else "┴"
        below[start : start + len(tick.text)] = tick.text
        free = start + len(tick.text)
    return ["".join(line), "".join(below).rstrip()]
