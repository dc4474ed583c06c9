"""What a chart is drawn from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpsql.display.cells import DisplayCell, format_cell
from dpsql.display.scales import MAX_POSITION, axis_position
from dpsql.figures import CellError


@dataclass(frozen=True)
class ChartPoint:
    """A value with its interval; `along` is its place on the axis of lines."""

    label: str
    value: Any
    bar: CellError | None = None
    along: Any = None

    @property
    def y(self) -> float | None:
        return axis_position(self.value)

    @property
    def interval(self) -> tuple[float, float] | None:
        """What the whisker spans; None where there is no noise."""
        if self.y is None or self.bar is None or math.isnan(self.bar.low) or math.isnan(self.bar.high):
            return None
        return min(self.bar.low, self.y), max(self.bar.high, self.y)

    @property
    def reach(self) -> list[float]:
        """All that a scale must hold."""
        if self.y is None:
            return []
        return [self.y, *(end for end in self.interval or () if abs(end) <= MAX_POSITION)]

    @property
    def cell(self) -> DisplayCell:
        return format_cell(self.value, self.bar)


@dataclass(frozen=True)
class Series:
    name: str
    points: list[ChartPoint]
