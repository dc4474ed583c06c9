"""Released rows as charts with error bars: matplotlib's or altair's, where they are installed.

Law: a value or name is drawn as text: no mathematics in matplotlib, no markup or script in altair's pages.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from typing import Any

from dpsql.display.cells import is_number, value_text
from dpsql.display.text import shown
from dpsql.errors import InterfaceError, ProgrammingError
from dpsql.figures import CellError

Rows = Sequence[Sequence[Any]]
Bars = Sequence[Sequence[CellError | None]]


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
    """The first key along x, the noisy columns along y; each further key, and each of several y, is a series."""
    if kind not in (None, "bar", "line"):
        raise InterfaceError(f'there is no kind "{kind}" of chart', hint='It is "bar" or "line".')
    places = _y_places(names, rows, bars, y, x)
    keys = [place for place in range(len(names)) if place not in places and not _is_noisy(bars, place)]
    at = _place(names, x) if x is not None else keys[0] if keys else None
    if at is None:  # one row of aggregates: a bar for each
        series = tuple(("", tuple(_points(rows, bars, [(shown(names[place]), place)]))) for place in places)
        merged = tuple(point for _, points in series for point in points)
        return _checked(Chart(kind or "bar", "", "", (("", merged),)))
    further = [key for key in keys if key != at]
    values = [row[at] for row in rows if row[at] is not None]
    kind = kind or ("line" if values and all(_is_ordered(value) for value in values) and len(values) > 1 else "bar")
    series_rows: dict[str, list[Point]] = {}
    for place in places:
        for row, errors in zip(rows, bars, strict=True):
            label = ", ".join(value_text(row[key]) for key in further)
            name = ", ".join(part for part in (label, shown(names[place]) if len(places) > 1 else "") if part)
            point = _point(_x_value(row[at], kind), row[place], errors[place])
            if point is not None:
                series_rows.setdefault(name, []).append(point)
    if kind == "line":
        series_rows = {name: sorted(points, key=lambda point: point.x) for name, points in series_rows.items()}
    title = ", ".join(shown(names[place]) for place in places)
    return _checked(Chart(kind, shown(names[at]), title, tuple((n, tuple(p)) for n, p in series_rows.items())))


def _checked(chart: Chart) -> Chart:
    if not any(points for _, points in chart.series):
        raise ProgrammingError("there is nothing to draw", hint="A chart needs rows with at least one number.")
    return chart


def _points(rows: Rows, bars: Bars, labelled: Sequence[tuple[str, int]]) -> list[Point]:
    found = [
        _point(label, row[place], errors[place])
        for row, errors in zip(rows, bars, strict=True)
        for label, place in labelled
    ]
    return [point for point in found if point is not None]


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


def _is_ordered(value: Any) -> bool:
    return is_number(value) or isinstance(value, dt.date)


def _is_noisy(bars: Bars, place: int) -> bool:
    return any(errors[place] is not None for errors in bars)


def _y_places(names: Sequence[str], rows: Rows, bars: Bars, y: Sequence[str] | None, x: str | None) -> list[int]:
    if y is not None:
        return [_place(names, name) for name in y]
    noisy = [place for place in range(len(names)) if _is_noisy(bars, place) and names[place] != x]
    if noisy:
        return noisy
    numbers = [p for p in range(len(names)) if any(is_number(row[p]) for row in rows) and names[p] != x]
    return numbers[-1:]  # the last: the first ones are keys


def _place(names: Sequence[str], name: str) -> int:
    if name not in names:
        known = ", ".join(shown(one) for one in names)
        raise ProgrammingError(f'there is no column "{shown(name)}"', hint=f"Columns: {known}.", sqlstate="42703")
    return list(names).index(name)


# --- matplotlib ------------------------------------------------------------------------------------------------------


def _optional(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise InterfaceError(
            f"{module.partition('.')[0]} is not installed", hint=f'Install it: pip install "dpsql[{extra}]"'
        ) from None


def _matplotlib(chart: Chart, ax: Any) -> Any:
    pyplot = _optional("matplotlib.pyplot", "plot")
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
    altair = _optional("altair", "altair")
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
