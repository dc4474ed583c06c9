"""Charts with error bars, and what is drawn where nobody says."""

from __future__ import annotations

import datetime as dt
import json
import math
import sys
from decimal import Decimal
from typing import Any

import pytest

from dpsql.amounts import CellError
from dpsql.errors import Error, InterfaceError, ProgrammingError
from dpsql.interfaces.display.chart_data import choose_chart_columns
from dpsql.interfaces.display.plot import Chart, PlotPoint, draw_plot, plan_chart
from dpsql.interfaces.display.terminal_chart import render_chart
from tests.support.optional_dependencies import package

Rows = list[tuple[Any, ...]]


def bars_of(rows: Rows, noisy: tuple[int, ...]) -> list[tuple[CellError | None, ...]]:
    def bar(place: int, value: Any) -> CellError | None:
        known = place in noisy and isinstance(value, int | float | Decimal) and math.isfinite(value)
        return CellError(1.0, float(value) - 2, float(value) + 2) if known else None

    return [tuple(bar(place, value) for place, value in enumerate(row)) for row in rows]


def planned(names: list[str], rows: Rows, noisy: tuple[int, ...], **asked: Any) -> Chart:
    return plan_chart(names, rows, bars_of(rows, noisy), asked.get("x"), asked.get("y"), asked.get("kind"))


WARDS: Rows = [("surgery", 10), ("oncology", 5), (None, 1)]
MONTHS: Rows = [(dt.date(2024, 2, 1), "f", 3), (dt.date(2024, 1, 1), "f", 1), (dt.date(2024, 1, 1), "m", 2)]


# --- what is drawn ---------------------------------------------------------------------------------------------------


def test_text_keys_make_bars_in_the_order_of_the_rows() -> None:
    chart = planned(["ward", "n"], WARDS, (1,))
    assert (chart.kind, chart.x, chart.y) == ("bar", "ward", "n")
    ((_, points),) = chart.series
    assert [point.x for point in points] == ["surgery", "oncology", "NULL"]
    assert points[0] == PlotPoint("surgery", 10.0, 8.0, 12.0)


def test_time_keys_make_lines_in_order_and_other_keys_series() -> None:
    chart = planned(["m", "sex", "n"], MONTHS, (2,))
    assert chart.kind == "line" and [name for name, _ in chart.series] == ["f", "m"]
    assert [point.y for point in chart.series[0][1]] == [1.0, 3.0]


def test_several_measures_are_series() -> None:
    chart = planned(["ward", "n", "c"], [("a", 1, 2.5), ("b", 3, None)], (1, 2))
    assert [(name, len(points)) for name, points in chart.series] == [("n", 2), ("c", 1)]


def test_one_row_of_aggregates_has_a_bar_for_each() -> None:
    chart = planned(["n", "c"], [(10, 2.5)], (0, 1))
    assert [point.x for point in chart.series[0][1]] == ["n", "c"]


def test_what_is_named_is_drawn() -> None:
    chart = planned(["ward", "n", "c"], [("a", 1, 2.5)], (1, 2), y=["c"])
    assert chart.y == "c" and len(chart.series) == 1
    chart = planned(["year", "n"], [(2020, 1), (2021, 2)], (1,), kind="bar")
    assert chart.kind == "bar" and chart.series[0][1][0].x == "2020"
    assert planned(["a", "b", "n"], [("x", "y", 1)], (2,), x="b").x == "b"


def test_what_cannot_be_drawn_is_left_out() -> None:
    rows: Rows = [("a", 1.0), ("b", None), ("c", float("nan")), ("d", float("inf"))]
    ((_, points),) = planned(["k", "n"], rows, (1,)).series
    assert [point.x for point in points] == ["a"]
    lines = planned(["k", "n"], [(1, 1), (2, 2), (None, 3)], (1,))
    assert [point.x for point in lines.series[0][1]] == [1, 2]  # NULL has no place on a line


@pytest.mark.parametrize(
    ("names", "rows", "noisy"),
    [
        (["year", "a", "b"], [(2020, 1, 2), (2021, 3, 4)], ()),
        (["sex", "year", "n"], [("f", 2020, 1), ("f", 2021, 3), ("m", 2020, 5)], (2,)),
        (["year", "month", "n"], [(2020, 1, 1), (2020, 2, 3)], (2,)),
        (["n"], [(3,), (4,)], (0,)),
        (["n", "m"], [(3, 4)], (0, 1)),
        (["ward", "n"], [("a", 1), ("a", 2)], (1,)),
        (["at", "n"], [(dt.time(1), 1), (dt.time(2), 2)], (1,)),
        (["k", "twice", "n"], [("a", 2, 5), ("b", 2, 6)], (2,)),
        (["k", "n", "twice"], [("a", 2, 5), ("b", 2, 6)], (1,)),
    ],
)
def test_a_notebook_and_a_terminal_draw_the_same_columns(names: list[str], rows: Rows, noisy: tuple[int, ...]) -> None:
    bars = bars_of(rows, noisy)
    picked, chart = choose_chart_columns(names, rows, bars), planned(names, rows, noisy)
    assert sum(len(points) for _, points in chart.series) == len(picked.values) * len(rows)
    values = sorted(float(row[at]) for row in rows for at in picked.values)
    assert sorted(point.y for _, points in chart.series for point in points) == values
    terminal = "\n".join(render_chart(names, rows, bars))
    if any(isinstance(value, dt.time) for row in rows for value in row):
        assert chart.kind == "bar"  # no library has an axis of times of day
    else:
        assert (chart.kind == "line") == ("●" in terminal)


def test_numbers_run_along_the_first_column_where_nothing_has_noise() -> None:
    chart = planned(["year", "a", "b"], [(2020, 1, 2), (2021, 3, 4)], ())
    assert (chart.kind, chart.x, [name for name, _ in chart.series]) == ("line", "year", ["a", "b"])


def test_lines_run_along_the_key_that_is_ordered() -> None:
    chart = planned(["sex", "year", "n"], [("f", 2020, 1), ("f", 2021, 3), ("m", 2020, 5)], (2,))
    assert (chart.x, [name for name, _ in chart.series]) == ("year", ["f", "m"])


def test_no_bar_stands_on_another() -> None:
    ((_, points),) = planned(["n"], [(3,), (4,)], (0,)).series
    assert [point.x for point in points] == ["1", "2"]
    rows: Rows = [("a (2)", 1), ("a", 2), ("a", 3), ("a", 4), ("a (2)", 5)]
    ((_, points),) = planned(["k", "n"], rows, (1,)).series
    assert [point.x for point in points] == ["a (2)", "a", "a (3)", "a (4)", "a (2) (2)"]


def test_what_is_named_is_no_key_of_the_rest() -> None:
    rows: Rows = [(2020, 1, 2, 3), (2021, 4, 5, 6)]
    chart = planned(["year", "a", "b", "c"], rows, (), y=["b"])
    assert (chart.kind, chart.x, [len(points) for _, points in chart.series]) == ("line", "year", [2])


def test_whiskers_never_turn_around() -> None:
    """A value may be outside of its interval, where a bound has clipped it."""
    ((_, points),) = plan_chart(["k", "n"], [("a", 5)], [(None, CellError(1, 6, 9))], None, None, None).series
    assert points[0] == PlotPoint("a", 5.0, 5.0, 9.0)


@pytest.mark.parametrize(
    ("names", "rows", "asked"),
    [
        (["k", "n"], [], {}),
        (["k"], [("a",)], {}),
        (["k", "n"], [("a", None)], {}),
        (["k", "n"], [("a", 1)], {"x": "nothing"}),
        (["k", "n"], [("a", 1)], {"y": ["nothing"]}),
        (["k", "n"], [("a", 1)], {"kind": "pie"}),
        (["k", "n"], [("a", 1)], {"kind": "line"}),
    ],
)
def test_what_is_no_chart_is_reported(names: list[str], rows: Rows, asked: dict[str, Any]) -> None:
    with pytest.raises(Error) as caught:
        planned(names, rows, (1,), **asked)
    assert isinstance(caught.value, ProgrammingError | InterfaceError) and caught.value.hint


# --- matplotlib ------------------------------------------------------------------------------------------------------

HOSTILE = ["$\\frac$", "$x", "_hidden", "</script><script>alert(1)</script>", "<10", "a\x1b[31m"]


def drawn(library: str, rows: Rows, noisy: tuple[int, ...], names: list[str], **asked: Any) -> Any:
    return draw_plot(
        names, rows, bars_of(rows, noisy), asked.get("x"), None, asked.get("kind"), library, asked.get("ax")
    )


@pytest.fixture
def pyplot() -> Any:
    matplotlib = package("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_bars_of_matplotlib(pyplot: Any) -> None:
    axes = drawn("matplotlib", WARDS, (1,), ["ward", "n"])
    assert [bar.get_height() for bar in axes.patches] == [10, 5, 1]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["surgery", "oncology", "NULL"]
    ((_, _, (whiskers,)),) = [(c[0], c[1], c[2]) for c in axes.containers if type(c).__name__ == "ErrorbarContainer"]
    assert [(segment[0][1], segment[1][1]) for segment in whiskers.get_segments()] == [(8, 12), (3, 7), (-1, 3)]


@pytest.mark.parametrize("kind", ["bar", "line"])
def test_whiskers_of_matplotlib_reach_from_low_to_high(pyplot: Any, kind: str) -> None:
    bars = [(None, CellError(1, 9.0, 14.0)), (None, CellError(1, 12.0, 21.0))]
    axes = draw_plot(["k", "n"], [(1, 10), (2, 20)], bars, None, None, kind, "matplotlib", None)
    (whiskers,) = [c[2][0] for c in axes.containers if type(c).__name__ == "ErrorbarContainer"]
    assert [(segment[0][1], segment[1][1]) for segment in whiskers.get_segments()] == [(9, 14), (12, 21)]


def test_lines_of_matplotlib_with_a_legend_on_given_axes(pyplot: Any) -> None:
    given = pyplot.subplots()[1]
    axes = drawn("matplotlib", MONTHS, (2,), ["m", "sex", "n"], ax=given)
    assert axes is given and [text.get_text() for text in axes.get_legend().get_texts()] == ["f", "m"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("m", "n")


@pytest.mark.parametrize("kind", ["bar", "line"])
def test_hostile_texts_are_drawn_as_texts(pyplot: Any, kind: str) -> None:
    """Mathematics that cannot be read would raise when the figure is drawn."""
    rows: Rows = [(at, text, at) for at, text in enumerate(HOSTILE, 1)]
    axes = drawn("matplotlib", rows, (2,), ["$k", "$s", "$n$"], kind=kind)
    axes.figure.canvas.draw()
    assert len(axes.get_legend().get_texts()) == len(HOSTILE)


UNLIKE: Rows = [("emergency", "f", 9000, 430.5), ("oncology", "f", 4500, 1350.0), ("oncology", "m", 4400, 1320.0)]


def test_unlike_scales_have_axes_of_their_own(pyplot: Any) -> None:
    """Else the smaller is a line of dots at the bottom; axes that were given stay one."""
    names = ["ward", "sex", "visits", "average"]
    axes = drawn("matplotlib", UNLIKE, (2, 3), names)
    first, second = axes.figure.axes
    assert axes is first and (first.get_ylabel(), second.get_ylabel()) == ("visits", "average")
    assert [text.get_text() for text in second.get_legend().get_texts()] == ["f", "m"]
    assert sorted(bar.get_height() for bar in second.patches) == [430.5, 1320.0, 1350.0]
    assert (first.get_xlabel(), second.get_xlabel()) == ("", "ward")
    given = pyplot.subplots()[1]
    assert drawn("matplotlib", UNLIKE, (2, 3), names, ax=given) is given and len(given.figure.axes) == 1
    like: Rows = [(ward, sex, visits, average * 4) for ward, sex, visits, average in UNLIKE]
    assert len(drawn("matplotlib", like, (2, 3), names).figure.axes) == 1


def test_each_chart_labels_its_own_bars(pyplot: Any) -> None:
    """A row without an average has no bar there; names that end in another's are told apart."""
    rows: Rows = [("a", 9000, None), ("b", 8000, 2.5), ("c", 7000, 3.5)]
    first, second = drawn("matplotlib", rows, (1, 2), ["k", "n", "x, n"]).figure.axes
    assert [label.get_text() for label in first.get_xticklabels()] == ["a", "b", "c"]
    assert [label.get_text() for label in second.get_xticklabels()] == ["b", "c"]
    assert [bar.get_height() for bar in second.patches] == [2.5, 3.5]


def test_a_legend_has_a_title_and_whiskers_are_explained(pyplot: Any) -> None:
    axes = drawn("matplotlib", MONTHS, (2,), ["m", "sex", "n"])
    assert axes.get_legend().get_title().get_text() == "sex"
    assert axes.get_title("right") == "whiskers are 95 % intervals"
    assert drawn("matplotlib", WARDS, (), ["ward", "n"]).get_title("right") == ""


def test_no_label_is_cut_where_a_figure_is_saved(pyplot: Any) -> None:
    rows: Rows = [(f"a ward with a long name {at}", at) for at in range(1, 7)]
    axes = drawn("matplotlib", rows, (1,), ["ward", "n"])
    axes.figure.canvas.draw()
    for label in (*axes.get_xticklabels(), axes.xaxis.label, axes.yaxis.label):
        extent = label.get_window_extent()
        assert extent.x0 >= 0 and extent.y0 >= 0


def test_whole_numbers_have_no_ticks_between_them(pyplot: Any) -> None:
    axes = drawn("matplotlib", [(2021, 5), (2022, 6), (2023, 7)], (1,), ["year", "n"])
    assert all(float(tick).is_integer() for tick in axes.get_xticks())


# --- altair ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "names", "noisy"), [(WARDS, ["ward", "n"], (1,)), (MONTHS, ["m", "sex", "n"], (2,))])
def test_altair(rows: Rows, names: list[str], noisy: tuple[int, ...]) -> None:
    package("altair")
    spec = json.loads(drawn("altair", rows, noisy, names).to_json())
    marks = [layer["mark"]["type"] for layer in spec["layer"]]
    assert marks == (["bar", "rule"] if len(names) == 2 else ["line", "rule"])
    values = spec["data"]["values"]
    assert [(one["low"], one["high"]) for one in values] == [(one["y"] - 2, one["y"] + 2) for one in values]
    rule = spec["layer"][1]["encoding"]
    assert (rule["y"]["field"], rule["y2"]["field"]) == ("low", "high")
    assert len(values) == len(rows) and all(one["low"] <= one["y"] <= one["high"] for one in values)
    assert spec["layer"][0]["encoding"]["x"]["title"] == names[0]


def test_no_text_ends_the_script_of_an_altair_page() -> None:
    package("altair")
    rows: Rows = [(text, text, at) for at, text in enumerate([*HOSTILE, "<!--<script>"], 1)]
    page = drawn("altair", rows, (2,), ["</script>k", "s", "</script>n"], kind="bar").to_html()
    plain = drawn("altair", [("a", "b", 1)], (2,), ["k", "s", "n"], kind="bar").to_html()
    for tag in ("<script", "</script", "<!--"):
        assert page.lower().count(tag) == plain.lower().count(tag)
    assert "<10" in page  # what is no tag stays as it is


def test_unlike_scales_of_altair() -> None:
    package("altair")
    spec = drawn("altair", UNLIKE, (2, 3), ["ward", "sex", "visits", "average"]).to_dict()
    titles = [part["layer"][0]["encoding"]["y"]["title"] for part in spec["vconcat"]]
    assert titles == ["visits", "average"]
    assert spec["vconcat"][0]["layer"][0]["encoding"]["color"]["title"] == "sex"
    assert spec["vconcat"][0]["title"]["text"] == "whiskers are 95 % intervals"


def test_columns_may_be_named_like_paths() -> None:
    """Vega reads a.b and a[0] as paths into a value; fields have names of our own."""
    package("altair")
    spec = drawn("altair", [("x", 1)], (1,), ["a.b[0]:Q", "c\\.d"]).to_dict()
    assert spec["layer"][0]["encoding"]["x"]["field"] == "x"


# --- libraries that are not there ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("library", "module", "extra"),
    [("matplotlib", "matplotlib.pyplot", "plot"), ("altair", "altair", "altair")],
)
def test_a_missing_library(monkeypatch: pytest.MonkeyPatch, library: str, module: str, extra: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InterfaceError, match=f"{library} is not installed") as caught:
        drawn(library, WARDS, (1,), ["ward", "n"])
    assert f'pip install "dpsql[{extra}]"' in str(caught.value.hint)


def test_an_unknown_library_and_axes_for_altair() -> None:
    for library, ax in (("plotly", None), ("altair", object())):
        with pytest.raises(InterfaceError):
            drawn(library, WARDS, (1,), ["ward", "n"], ax=ax)
