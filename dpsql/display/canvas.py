"""A grid of characters to draw lines on: eight dots of braille in each place, or one sign where only ASCII is."""

from __future__ import annotations

from dataclasses import dataclass, field

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
        return [[self._sign_at(column, line) for column in range(self.width)] for line in range(self.height - 1, -1, -1)]

    def _sign_at(self, column: int, line: int) -> tuple[str, str]:
        if (column, line) in self.signs:
            return self.signs[column, line]
        bits, style = self.dots.get((column, line), (0, ""))
        if not bits:
            return (" " if line != self.zero else "-" if self.plain else "┄"), ""
        return ("." if self.plain else chr(0x2800 + bits)), style
