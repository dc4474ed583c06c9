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

from dpsql.amounts import CellError
from dpsql.errors import InterfaceError, ProgrammingError
from dpsql.interfaces.display.cells import format_value, is_number
from dpsql.interfaces.display.chart_data import ChartColumns, ErrorBars, NothingToDraw, choose_chart_columns
from dpsql.interfaces.display.terminal import escape_text

Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class PlotPoint:
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
    series: tuple[tuple[str, tuple[PlotPoint, ...]], ...]
    legend: str = ""  # the keys that tell series apart

    @property
    def note(self) -> str:
        noisy = any(point.low < point.high for _, points in self.series for point in points)
        return "whiskers are 95 % intervals" if noisy else ""


def draw_plot(
    names: Sequence[str],
    rows: Rows,
    bars: ErrorBars,
    x: str | None,
    y: Sequence[str] | None,
    kind: str | None,
    library: str,
    ax: Any,
) -> Any:
    chart = plan_chart(names, rows, bars, x, y, kind)
    charts = [chart] if ax is not None else split_scales(chart, names, rows, bars, x, y)
    match library:
        case "matplotlib":
            return _draw_matplotlib(charts, ax)
        case "altair" if ax is None:
            return _draw_altair(charts)
        case "altair":
            raise InterfaceError("altair has no axes to draw on", hint="Leave ax out, and layer the charts: a + b.")
        case _:
            raise InterfaceError(f'there is no library "{library}"', hint='It is "matplotlib" or "altair".')


# --- what is drawn ---------------------------------------------------------------------------------------------------


def plan_chart(
    names: Sequence[str], rows: Rows, bars: ErrorBars, x: str | None, y: Sequence[str] | None, kind: str | None
) -> Chart:
    """What `choose_chart_columns` chooses: a key along x, and each further key, and each of several columns, is a
    series."""
    if kind not in (None, "bar", "line"):
        raise InterfaceError(f'there is no kind "{kind}" of chart', hint='It is "bar" or "line".')
    x_index = None if x is None else _column_index(names, x)
    try:
        columns = choose_chart_columns(
            names, rows, bars, x_index, None if y is None else [_column_index(names, name) for name in y]
        )
    except NothingToDraw as nothing:
        hint = "A chart needs rows with at least one number."
        raise ProgrammingError(f"there is nothing to draw: {nothing}", hint=hint) from None
    if len(rows) == 1 and not columns.keys:  # one row of aggregates: a bar for each
        points = [_make_point(escape_text(names[index]), rows[0][index], bars[0][index]) for index in columns.values]
        return _require_points(
            Chart(kind or "bar", "", "", (("", tuple(point for point in points if point is not None)),))
        )
    at = columns.first_key
    kind = kind or ("line" if _has_axis(columns, rows) else "bar")
    series = _plan_series(columns, names, rows, bars, kind)
    title = ", ".join(escape_text(names[index]) for index in columns.values)
    legend = ", ".join(escape_text(names[key]) for key in columns.keys if key != at)
    return _require_points(Chart(kind, "row" if at is None else escape_text(names[at]), title, series, legend))


UNLIKE_SCALES = 5
"""A column whose largest number is so many times another's hides it on one axis."""


def split_scales(
    chart: Chart, names: Sequence[str], rows: Rows, bars: ErrorBars, x: str | None, y: Sequence[str] | None
) -> list[Chart]:
    """A chart for each column, where several have scales that are unlike; else the one of all."""
    x_index = None if x is None else _column_index(names, x)
    asked = None if y is None else [_column_index(names, name) for name in y]
    columns = choose_chart_columns(names, rows, bars, x_index, asked)
    sizes = [max((abs(float(row[at])) for row in rows if _is_finite(row[at])), default=0.0) for at in columns.values]
    if len(sizes) < 2 or not columns.keys or 0 in sizes or max(sizes) <= UNLIKE_SCALES * min(sizes):
        return [chart]
    return [
        replace(
            chart,
            y=escape_text(names[index]),
            series=_plan_series(replace(columns, values=[index]), names, rows, bars, chart.kind),
        )
        for index in columns.values
    ]


def _is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def _has_axis(columns: ChartColumns, rows: Rows) -> bool:
    """No library has an axis of times of day."""
    return columns.along is not None and not any(isinstance(row[columns.along], dt.time) for row in rows)


def _plan_series(
    columns: ChartColumns, names: Sequence[str], rows: Rows, bars: ErrorBars, kind: str
) -> tuple[tuple[str, tuple[PlotPoint, ...]], ...]:
    at, several = columns.first_key, len(columns.values) > 1
    further = [key for key in columns.keys if key != at]
    points_by_name: dict[str, list[PlotPoint]] = {}
    taken_names: dict[str, dict[str, int]] = {}
    for index in columns.values:
        for number, (row, errors) in enumerate(zip(rows, bars, strict=True), 1):
            labels = [format_value(row[key]) for key in further] + ([escape_text(names[index])] if several else [])
            name = ", ".join(labels)
            x = _to_x_value(number if at is None else row[at], kind)
            point = _make_point(x, row[index], errors[index])
            if point is not None and kind == "bar":
                point = replace(point, x=_unique_bar_name(x, taken_names.setdefault(name, {})))
            if point is not None:
                points_by_name.setdefault(name, []).append(point)
    if kind == "line":
        points_by_name = {name: sorted(points, key=lambda point: point.x) for name, points in points_by_name.items()}
    return tuple((name, tuple(points)) for name, points in points_by_name.items())


def _unique_bar_name(x: str, taken_names: dict[str, int]) -> str:
    """A number behind the name of a bar that has the name of another: no bar stands on another."""
    for n in count(taken_names.get(x, 0) + 1):
        name = x if n == 1 else f"{x} ({n})"
        if name not in taken_names:
            taken_names[x] = n
            taken_names.setdefault(name, 1)
            return name
    raise AssertionError("numbers do not end")


def _require_points(chart: Chart) -> Chart:
    if not any(points for _, points in chart.series):
        raise ProgrammingError("there is nothing to draw", hint="A chart needs rows with at least one number.")
    return chart


def _make_point(x: Any, y: Any, bar: CellError | None) -> PlotPoint | None:
    """None where there is no finite number to draw, or no place to draw it at."""
    if x is None or not is_number(y) or not math.isfinite(y):
        return None
    value = float(y)
    low, high = (value, value) if bar is None else (min(bar.low, value), max(bar.high, value))
    return PlotPoint(x, value, low if math.isfinite(low) else value, high if math.isfinite(high) else value)


def _to_x_value(value: Any, kind: str) -> Any:
    """For bars a text, as it is shown in a table; for lines a place on an axis, which NULL has not."""
    if kind == "bar":
        return format_value(value)
    match value:
        case Decimal():
            return float(value)
        case None | bool() | int() | float() | dt.date():
            return value if not isinstance(value, float) or math.isfinite(value) else None
        case _:
            raise InterfaceError(f"a {type(value).__name__} has no place on a line", hint='Say kind="bar".')


def _column_index(names: Sequence[str], name: str) -> int:
    if name not in names:
        column_names = ", ".join(escape_text(column) for column in names)
        raise ProgrammingError(
            f'there is no column "{escape_text(name)}"', hint=f"Columns: {column_names}.", sqlstate="42703"
        )
    return list(names).index(name)


# --- matplotlib ------------------------------------------------------------------------------------------------------


def _import_package(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise InterfaceError(
            f"{module.partition('.')[0]} is not installed", hint=f'Install it: pip install "dpsql[{extra}]"'
        ) from None


def _draw_matplotlib(charts: Sequence[Chart], ax: Any) -> Any:
    """The axes; those of the first chart where there are several, one above another."""
    pyplot = _import_package("matplotlib.pyplot", "plot")
    if ax is not None:
        panels = [ax]
    else:
        width, height = pyplot.rcParams["figure.figsize"]
        size = width, height * (1 + (len(charts) - 1) / 2)
        share = len({_places_of(chart) for chart in charts}) == 1  # bars of other rows have other labels
        # Constrained: slanted labels are not cut where the figure is saved.
        grid = pyplot.subplots(len(charts), squeeze=False, sharex=share, figsize=size, layout="constrained")[1]
        panels = [row[0] for row in grid]
    for axes, chart in zip(panels, charts, strict=True):
        (_draw_bars if chart.kind == "bar" else _draw_lines)(axes, chart)
        axes.set_ylabel(_escape_matplotlib(chart.y))
        if len(chart.series) > 1:
            axes.legend(title=_escape_matplotlib(chart.legend) or None)
    panels[-1].set_xlabel(_escape_matplotlib(charts[0].x))
    note = next((chart.note for chart in charts if chart.note), "")
    if note and not panels[0].get_title("right"):
        panels[0].set_title(note, loc="right", fontsize="small")
    return panels[0]


def _places_of(chart: Chart) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(point.x for _, points in chart.series for point in points))


def _draw_bars(axes: Any, chart: Chart) -> None:
    labels = _places_of(chart)
    width = 0.8 / len(chart.series)
    for number, (name, points) in enumerate(chart.series):
        shift = (number - (len(chart.series) - 1) / 2) * width
        where = [labels.index(point.x) + shift for point in points]
        heights = [point.y for point in points]
        axes.bar(
            where, heights, width, yerr=_whisker_lengths(points), capsize=3, label=_escape_matplotlib(name) or None
        )
    slanted = {"rotation": 45, "ha": "right"} if sum(map(len, labels)) > 40 else {}
    axes.set_xticks(range(len(labels)), [_escape_matplotlib(label) for label in labels], **slanted)
    axes.axhline(0, color="black", linewidth=0.8)  # noise may fall below it


def _draw_lines(axes: Any, chart: Chart) -> None:
    for name, points in chart.series:
        where, heights = [point.x for point in points], [point.y for point in points]
        axes.errorbar(
            where, heights, _whisker_lengths(points), marker="o", capsize=3, label=_escape_matplotlib(name) or None
        )
    places = [point.x for _, points in chart.series for point in points]
    if any(isinstance(place, dt.date) for place in places):
        axes.tick_params(axis="x", labelrotation=30)
    elif all(isinstance(place, int) for place in places):  # no year 2021.5
        axes.locator_params(axis="x", integer=True)


def _whisker_lengths(points: Sequence[PlotPoint]) -> list[list[float]]:
    return [[point.y - point.low for point in points], [point.high - point.y for point in points]]


def _escape_matplotlib(text: str) -> str:
    """Without mathematics, and not hidden from the legend as labels are that begin with an underscore."""
    plain = text.replace("$", r"\$")
    return f"\u200a{plain}" if plain.startswith("_") else plain


# --- altair ----------------------------------------------------------------------------------------------------------


def _draw_altair(charts: Sequence[Chart]) -> Any:
    altair = _import_package("altair", "altair")
    drawn = [_draw_altair_layers(altair, chart) for chart in charts]
    return drawn[0] if len(drawn) == 1 else altair.vconcat(*drawn)


def _draw_altair_layers(altair: Any, chart: Chart) -> Any:
    """Fields have names of our own: those of columns could hold what Vega reads as a path."""
    values = [
        {"x": _to_json_value(point.x), "y": point.y, "low": point.low, "high": point.high, "series": _escape_tags(name)}
        for name, points in chart.series
        for point in points
    ]
    several = len(chart.series) > 1
    first = next(point.x for _, points in chart.series for point in points)
    type_ = "nominal" if chart.kind == "bar" else "temporal" if isinstance(first, dt.date) else "quantitative"
    x = altair.X("x", type=type_, title=_escape_tags(chart.x), sort=None)
    encoded: dict[str, Any] = {"x": x, "y": altair.Y("y", type="quantitative", title=_escape_tags(chart.y))}
    if several:
        encoded["color"] = altair.Color("series", type="nominal", title=_escape_tags(chart.legend) or None)
    if several and chart.kind == "bar":
        encoded["xOffset"] = altair.XOffset("series", type="nominal")
    tooltip = [altair.Tooltip(name, type=kind) for name, kind in (("x", type_), ("y", "quantitative"),
               ("low", "quantitative"), ("high", "quantitative"))]  # fmt: skip
    base = altair.Chart().encode(**encoded, tooltip=tooltip)
    marks = base.mark_bar() if chart.kind == "bar" else base.mark_line(point=True)
    whiskers = {**encoded, "y": altair.Y("low", type="quantitative", title=_escape_tags(chart.y)), "y2": "high"}
    whiskers["color"] = altair.value("black") if chart.kind == "bar" else encoded.get("color", altair.value("black"))
    note = {"title": altair.TitleParams(chart.note, anchor="end", fontSize=10)} if chart.note else {}
    layers = marks, altair.Chart().mark_rule().encode(**whiskers)
    return altair.layer(*layers, data=altair.Data(values=values)).properties(**note)


def _to_json_value(x: Any) -> Any:
    match x:
        case str():
            return _escape_tags(x)
        case dt.date():
            return x.isoformat()
        case _:
            return x


def _escape_tags(text: str) -> str:
    """No tag: altair's pages hold the values in a script as they are, and `</script>` would end it."""
    return _TAG_START.sub("<\u200b", text)


_TAG_START = re.compile(r"<(?=[/!?a-zA-Z])")
