"""Released rows as charts with error bars: matplotlib's or altair's, where they are installed.

Law: a value or name is drawn as text: no mathematics in matplotlib, no markup or script in altair's pages.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib import import_module
from itertools import count
from typing import Any

from dpsql.display.cells import is_number, value_text
from dpsql.display.pick import Bars, NothingToDraw, Picked, pick
from dpsql.display.text import shown
from dpsql.errors import InterfaceError, ProgrammingError
from dpsql.figures import CellError

Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Point:
    """`x` is a text, a number, a date or a moment; from `low` to `high` the 95 % interval reaches."""

    x: Any
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Chart:
    """What is drawn, whoever draws it. Points of a series are in the order of the rows, for lines in that of `x`."""

    kind: str  # "bar" or "line"
    x: str
    y: str
    series: tuple[tuple[str, tuple[Point, ...]], ...]


def draw(
    names: Sequence[str],
    rows: Rows,
    bars: Bars,
    x: str | None,
    y: Sequence[str] | None,
    kind: str | None,
    library: str,
    ax: Any,
) -> Any:
    chart = plan_chart(names, rows, bars, x, y, kind)
    match library:
        case "matplotlib":
            return _matplotlib(chart, ax)
        case "altair" if ax is None:
            return _altair(chart)
        case "altair":
            raise InterfaceError("altair has no axes to draw on", hint="Leave ax out, and layer the charts: a + b.")
        case _:
            raise InterfaceError(f'there is no library "{library}"', hint='It is "matplotlib" or "altair".')


# --- what is drawn ---------------------------------------------------------------------------------------------------


def plan_chart(
    names: Sequence[str], rows: Rows, bars: Bars, x: str | None, y: Sequence[str] | None, kind: str | None
) -> Chart:
    """What `pick` chooses: a key along x, and each further key, and each of several columns, is a series."""
    if kind not in (None, "bar", "line"):
        raise InterfaceError(f'there is no kind "{kind}" of chart', hint='It is "bar" or "line".')
    given = None if x is None else _place(names, x)
    try:
        picked = pick(names, rows, bars, given, None if y is None else [_place(names, name) for name in y])
    except NothingToDraw as nothing:
        hint = "A chart needs rows with at least one number."
        raise ProgrammingError(f"there is nothing to draw: {nothing}", hint=hint) from None
    if len(rows) == 1 and not picked.keys:  # one row of aggregates: a bar for each
        found = [_point(shown(names[place]), rows[0][place], bars[0][place]) for place in picked.values]
        return _checked(Chart(kind or "bar", "", "", (("", tuple(point for point in found if point is not None)),)))
    at = picked.first
    kind = kind or ("line" if _has_axis(picked, rows) else "bar")
    series = _series(picked, names, rows, bars, kind)
    title = ", ".join(shown(names[place]) for place in picked.values)
    return _checked(Chart(kind, "row" if at is None else shown(names[at]), title, series))


def _has_axis(picked: Picked, rows: Rows) -> bool:
    """No library has an axis of times of day."""
    return picked.along is not None and not any(isinstance(row[picked.along], dt.time) for row in rows)


def _series(
    picked: Picked, names: Sequence[str], rows: Rows, bars: Bars, kind: str
) -> tuple[tuple[str, tuple[Point, ...]], ...]:
    at, several = picked.first, len(picked.values) > 1
    further = [key for key in picked.keys if key != at]
    found: dict[str, list[Point]] = {}
    taken: dict[str, dict[str, int]] = {}
    for place in picked.values:
        for number, (row, errors) in enumerate(zip(rows, bars, strict=True), 1):
            labels = [value_text(row[key]) for key in further] + ([shown(names[place])] if several else [])
            name = ", ".join(labels)
            x = _x_value(number if at is None else row[at], kind)
            point = _point(x, row[place], errors[place])
            if point is not None and kind == "bar":
                point = replace(point, x=_alone(x, taken.setdefault(name, {})))
            if point is not None:
                found.setdefault(name, []).append(point)
    if kind == "line":
        found = {name: sorted(points, key=lambda point: point.x) for name, points in found.items()}
    return tuple((name, tuple(points)) for name, points in found.items())


def _alone(x: str, taken: dict[str, int]) -> str:
    """A number behind the name of a bar that has the name of another: no bar stands on another."""
    for n in count(taken.get(x, 0) + 1):
        name = x if n == 1 else f"{x} ({n})"
        if name not in taken:
            taken[x] = n
            taken.setdefault(name, 1)
            return name
    raise AssertionError("numbers do not end")


def _checked(chart: Chart) -> Chart:
    if not any(points for _, points in chart.series):
        raise ProgrammingError("there is nothing to draw", hint="A chart needs rows with at least one number.")
    return chart


def _point(x: Any, y: Any, bar: CellError | None) -> Point | None:
    """None where there is no finite number to draw, or no place to draw it at."""
    if x is None or not is_number(y) or not math.isfinite(y):
        return None
    value = float(y)
    low, high = (value, value) if bar is None else (min(bar.low, value), max(bar.high, value))
    return Point(x, value, low if math.isfinite(low) else value, high if math.isfinite(high) else value)


def _x_value(value: Any, kind: str) -> Any:
    """For bars a text, as it is shown in a table; for lines a place on an axis, which NULL has not."""
    if kind == "bar":
        return value_text(value)
    match value:
        case Decimal():
            return float(value)
        case None | bool() | int() | float() | dt.date():
            return value if not isinstance(value, float) or math.isfinite(value) else None
        case _:
            raise InterfaceError(f"a {type(value).__name__} has no place on a line", hint='Say kind="bar".')


def _place(names: Sequence[str], name: str) -> int:
    if name not in names:
        known = ", ".join(shown(one) for one in names)
        raise ProgrammingError(f'there is no column "{shown(name)}"', hint=f"Columns: {known}.", sqlstate="42703")
    return list(names).index(name)


# --- matplotlib ------------------------------------------------------------------------------------------------------


def _package(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise InterfaceError(
            f"{module.partition('.')[0]} is not installed", hint=f'Install it: pip install "dpsql[{extra}]"'
        ) from None


def _matplotlib(chart: Chart, ax: Any) -> Any:
    pyplot = _package("matplotlib.pyplot", "plot")
    axes = pyplot.subplots()[1] if ax is None else ax
    (_bars if chart.kind == "bar" else _lines)(axes, chart)
    axes.set_xlabel(_plain(chart.x))
    axes.set_ylabel(_plain(chart.y))
    if len(chart.series) > 1:
        axes.legend()
    return axes


def _bars(axes: Any, chart: Chart) -> None:
    labels = list(dict.fromkeys(point.x for _, points in chart.series for point in points))
    width = 0.8 / len(chart.series)
    for number, (name, points) in enumerate(chart.series):
        shift = (number - (len(chart.series) - 1) / 2) * width
        where = [labels.index(point.x) + shift for point in points]
        heights = [point.y for point in points]
        axes.bar(where, heights, width, yerr=_whiskers(points), capsize=3, label=_plain(name) or None)
    slanted = {"rotation": 45, "ha": "right"} if sum(map(len, labels)) > 40 else {}
    axes.set_xticks(range(len(labels)), [_plain(label) for label in labels], **slanted)
    axes.axhline(0, color="black", linewidth=0.8)  # noise may fall below it


def _lines(axes: Any, chart: Chart) -> None:
    for name, points in chart.series:
        where, heights = [point.x for point in points], [point.y for point in points]
        axes.errorbar(where, heights, _whiskers(points), marker="o", capsize=3, label=_plain(name) or None)
    if any(isinstance(point.x, dt.date) for _, points in chart.series for point in points):
        axes.tick_params(axis="x", labelrotation=30)


def _whiskers(points: Sequence[Point]) -> list[list[float]]:
    return [[point.y - point.low for point in points], [point.high - point.y for point in points]]


def _plain(text: str) -> str:
    """Without mathematics, and not hidden from the legend as labels are that begin with an underscore."""
    plain = text.replace("$", r"\$")
    return f"\u200a{plain}" if plain.startswith("_") else plain


# --- altair ----------------------------------------------------------------------------------------------------------


def _altair(chart: Chart) -> Any:
    """Fields have names of our own: those of columns could hold what Vega reads as a path."""
    altair = _package("altair", "altair")
    values = [
        {"x": _json(point.x), "y": point.y, "low": point.low, "high": point.high, "series": _unmarked(name)}
        for name, points in chart.series
        for point in points
    ]
    several = len(chart.series) > 1
    first = next(point.x for _, points in chart.series for point in points)
    type_ = "nominal" if chart.kind == "bar" else "temporal" if isinstance(first, dt.date) else "quantitative"
    x = altair.X("x", type=type_, title=_unmarked(chart.x), sort=None)
    encoded: dict[str, Any] = {"x": x, "y": altair.Y("y", type="quantitative", title=_unmarked(chart.y))}
    if several:
        encoded["color"] = altair.Color("series", type="nominal", title=None)
    if several and chart.kind == "bar":
        encoded["xOffset"] = altair.XOffset("series", type="nominal")
    tooltip = [altair.Tooltip(name, type=kind) for name, kind in (("x", type_), ("y", "quantitative"),
               ("low", "quantitative"), ("high", "quantitative"))]  # fmt: skip
    base = altair.Chart().encode(**encoded, tooltip=tooltip)
    marks = base.mark_bar() if chart.kind == "bar" else base.mark_line(point=True)
    whiskers = {**encoded, "y": altair.Y("low", type="quantitative", title=_unmarked(chart.y)), "y2": "high"}
    whiskers["color"] = altair.value("black") if chart.kind == "bar" else encoded.get("color", altair.value("black"))
    return altair.layer(marks, altair.Chart().mark_rule().encode(**whiskers), data=altair.Data(values=values))


def _json(x: Any) -> Any:
    match x:
        case str():
            return _unmarked(x)
        case dt.date():
            return x.isoformat()
        case _:
            return x


def _unmarked(text: str) -> str:
    """No tag: altair's pages hold the values in a script as they are, and `</script>` would end it."""
    return _TAG.sub("<\u200b", text)


_TAG = re.compile(r"<(?=[/!?a-zA-Z])")
