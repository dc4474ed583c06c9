"""Which columns of an answer a chart draws, and along which: one choice for terminals and notebooks.

Drawn are the columns with noise; else the numbers beside the first column. The others name the rows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dpsql.display.scales import axis_position
from dpsql.figures import CellError

Row = Sequence[Any]
ErrorBars = Sequence[Sequence[CellError | None]]

MAX_SERIES = 6
"""Lines that can be told apart."""


class NothingToDraw(Exception):
    """`str` says why, in words that follow "there is nothing to draw:"."""


@dataclass(frozen=True)
class ChartColumns:
    """The columns that are drawn; those that name rows; the one along which lines run, and the one that tells them
    apart. Where `along` is None, the rows have bars."""

    values: list[int]
    keys: list[int]
    along: int | None = None
    apart: int | None = None

    @property
    def first_key(self) -> int | None:
        """The key that an axis of bars has, where it has one only."""
        return self.along if self.along is not None else self.keys[0] if self.keys else None


def choose_chart_columns(
    names: Sequence[str], rows: Sequence[Row], bars: ErrorBars | None, x: int | None = None, y: Sequence[int] | None = None
) -> ChartColumns:
    """`x` is the key that comes first, and `y` are the columns that are drawn, where someone has said so."""
    if not rows:
        raise NothingToDraw("the answer has no rows")
    candidates = [at for at in range(len(names)) if at != x]
    numbers = [at for at in candidates if _has_only_numbers([row[at] for row in rows])]
    if not numbers and y is None:
        raise NothingToDraw("no column has numbers")
    usual = _default_values(numbers, rows, bars)
    values = usual if y is None else list(y)
    key_columns = [at for at in candidates if at not in {*usual, *values} and (at not in numbers or at < usual[0])]
    if not any(axis_position(row[at]) is not None for row in rows for at in values):
        raise NothingToDraw("all values are NULL or not finite")
    keys = key_columns if x is None else [x, *key_columns]
    along, apart = _choose_x_column(rows, keys, x)
    return ChartColumns(values, keys, along, apart)


def _default_values(numbers: list[int], rows: Sequence[Row], bars: ErrorBars | None) -> list[int]:
    noisy = [at for at in numbers if bars and any(row[at] is not None for row in bars)]
    return noisy or (numbers[1:] if numbers[:1] == [0] and len(numbers) > 1 and len(rows) > 1 else numbers)


def _has_only_numbers(values: list[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in present)


def _choose_x_column(rows: Sequence[Row], keys: list[int], x: int | None) -> tuple[int | None, int | None]:
    """Lines run along one time or number; a second key may tell a few of them apart."""
    ordered = [at for at in keys if x in (None, at) and _is_ordered([row[at] for row in rows])]
    if len(ordered) != 1 or len(keys) > 2 or not _has_unique_keys(rows, keys):
        return None, None
    (along,) = ordered
    if len({row[along] for row in rows} - {None}) < 2:
        return None, None
    others = [at for at in keys if at != along]
    if not others:
        return along, None
    few = len({str(row[others[0]]) for row in rows}) <= MAX_SERIES
    return (along, others[0]) if few else (None, None)


def _is_ordered(values: list[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(v, int | float | Decimal | dt.date | dt.time) and not isinstance(v, bool) for v in present
    )


def _has_unique_keys(rows: Sequence[Row], keys: list[int]) -> bool:
    return len({tuple(str(row[at]) for at in keys) for row in rows}) == len(rows)
