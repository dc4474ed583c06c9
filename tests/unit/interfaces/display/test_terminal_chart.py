"""Charts of answers given by hand, as screens."""

import datetime as dt
import math
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsql.amounts import CellError
from dpsql.interfaces.display.chart_data import ChartPoint, axis_position, make_number_ticks, make_time_ticks
from dpsql.interfaces.display.terminal import display_width
from dpsql.interfaces.display.terminal_chart import NothingToDraw, render_chart


def bar(value, half):
    return None if value is None else CellError(half / 1.96, value - half, value + half)


def chart(names, rows, halves=None, width=60, height=12, **how):
    """`halves`: the half-width of each column; None for those without noise."""
    bars = None
    if halves is not None:
        bars = [tuple(None if h is None else bar(v, h) for v, h in zip(row, halves, strict=True)) for row in rows]
    return "\n" + "\n".join(render_chart(names, rows, bars, width, height, **how)) + "\n"


WARDS = [("emergency", 8981), ("cardiology", 6853), ("surgery", 5054), ("maternity", 426)]


def test_bars_with_whiskers():
    """From noise, a count may be below zero; so its bar begins at a line with room on both sides."""
    assert (
        chart(["ward", "visits"], WARDS, (None, 900))
        == """
            visits
 emergency    │███████████████████████████├──┼──┤ 8981 ± 900
 cardiology   │████████████████████├──┼──┤        6853 ± 900
 surgery      │██████████████├──┼──┤              5054 ± 900
 maternity  ├───┼──┤                              426 ± 900
            ──┴─────────────────┴────────────────
              0                5000
whiskers are 95 % intervals
"""
    )


def test_bars_end_at_an_eighth_of_a_cell():
    assert (
        chart(["k", "n"], [("a", 16), ("b", 10), ("c", 1), ("d", 0)], width=29)
        == """
   n
 a │██████████████████████ 16
 b │█████████████▊         10
 c │█▍                     1
 d │                       0
   └─────────────┴────────
   0             10
"""
    )


def test_an_eighth_is_the_nearest():
    """Of 23 places, 5/8 has 14.375, 3/7 9.857; half of an eighth below the next one counts as it."""
    text = chart(["k", "n"], [("a", 7), ("b", 3), ("c", 5)], width=29)
    assert [line.split("│")[1].rstrip(" 753").count("█") for line in text.splitlines()[2:5]] == [23, 9, 16]
    assert "█▉ " in text.splitlines()[3] and "█▍ " in text.splitlines()[4]


def test_a_whisker_contains_its_value():
    """A value may be outside of its interval, where a bound has clipped it; so its scale holds both."""
    bars = [(None, CellError(1, 60, 90)), (None, CellError(1, 10, 40))]
    _, below, above, *_ = render_chart(["k", "n"], [("a", 20), ("b", 100)], bars, 60)
    assert "┼" not in below + above  # each stands at an end
    assert below.index("├") < above.index("├") + 7 and above.index("┤") > below.index("┤")
    assert ChartPoint("a", 20, bars[0][1]).interval == (20, 90) and ChartPoint("b", 100, bars[1][1]).interval == (
        10,
        100,
    )


def test_below_zero():
    assert (
        chart(["k", "n"], [("a", 10), ("b", -5), ("c", 0)], width=40)
        == """
   n
 a            │██████████████████████ 10
 b ███████████│                       -5
 c            │                       0
   ┴──────────┴──────────┴──────────┴
   -5         0          5          10
"""
    )
    assert (
        chart(["k", "n"], [("a", 10), ("b", -5), ("c", 0)], (None, 3), width=40)
        == """
   n
 a            │█████████├───┼───┤ 10 ± 3
 b ├───┼───┤██│                   -5 ± 3
 c       ├─────┼───┤              0 ± 3
   ───────────┴─────────────┴────
              0             10
whiskers are 95 % intervals
"""
    )


def test_lines_run_along_months():
    rows = [(dt.date(2024, month, 1), 500 + 40 * month) for month in range(1, 13)]
    assert (
        chart(["month", "visits"], rows, (None, 60))
        == """
       visits
 1000 ┤                                          ┬   ⢀●⣀⣀⠤⠤●
      │                            ┬    ┬⢀⣀⣀⠤●⠤⠔⠒●⠒⠉⠉⠁┴    ┴
      │                   ┬  ⢀●⣀⠤⠤⠔●⠒⠒⠉⠉●⠁   ┴
      │     ┬   ┬ ⣀⣀⠤●⠤⠤⠒⠒●⠊⠉⠁┴    ┴
      │●⡠⠤⠤⠒●⠒⠊⠉●⠉   ┴
  500 ┤┴
      │
      │
      │
    0 ┤
      └┬─────────────┬─────────────┬──────────────┬─────────
       2024-01    2024-04       2024-07        2024-10
whiskers are 95 % intervals
"""
    )


@pytest.mark.parametrize("key", [dt.datetime(2024, 1, 1), dt.time(1), 1, 1.5, Decimal("2.5"), dt.date(2024, 2, 29)])
def test_what_is_ordered_gives_lines(key):
    later = {dt.datetime: dt.datetime(2024, 1, 2), dt.time: dt.time(23), dt.date: dt.date(2025, 1, 1)}
    text = chart(["key", "n"], [(key, 5), (later.get(type(key), 9), 7)], (None, 1))
    assert text.count("●") == 2


def test_series_have_marks_of_their_own():
    rows = [(year, sex, 10 * (year - 1990) + 80 * at) for year in range(2000, 2005) for at, sex in enumerate("fm")]
    assert (
        chart(["year", "sex", "n"], rows, (None, None, 13))
        == """
      n: ● f  ○ m
     │                          ┬          ⣀⣀⣀○⣀⣀⣀⣀⣀⣀⠤⠤⠤⠤⠤⠤○
 200 ┤┬         ⣀⣀⣀○⣀⣀⡠⠤⠤⠤⠤⠤⠤⠔⠒⠒○⠒⠒⠒⠉⠉⠉⠉⠉⠉⠉   ┴            ┴
     │○⠒⠒⠊⠉⠉⠉⠉⠉⠉   ┴
     │                                        ┬         ⣀⣀⣀●
     │             ┬         ⢀⣀⣀●⣀⣀⣀⠤⠤⠤⠤⠤⠤⠤⠒⠒⠒●⠒⠒⠊⠉⠉⠉⠉⠉⠉   ┴
 100 ┤●⠤⠤⠤⠤⠤⠤⠒⠒⠒⠒⠒⠒●⠒⠒⠊⠉⠉⠉⠉⠉⠉⠁  ┴
     │┴
     │
     │
   0 ┤
     └┬────────────┬────────────┬─────────────┬────────────┬
      2000       2001         2002          2003        2004
whiskers are 95 % intervals
"""
    )
    many = [(day, sex, day + 80 * at) for day in range(200) for at, sex in enumerate("fm")]
    dense = chart(["day", "sex", "n"], many, (None, None, 20))
    assert dense.count("●") > 3 and dense.count("○") > 3  # also where points stand too close for marks on all


def test_many_series_become_bars():
    rows = [(year, f"ward {ward}", 5) for year in range(2) for ward in range(9)]
    assert "0, ward 8" in chart(["year", "ward", "n"], rows, (None, None, 3))


def test_a_column_each_has_a_scale_of_its_own():
    text = chart(["ward", "n", "cost"], [("a", 1000, 0.5), ("b", 900, 0.25)], (None, 5, 0.01))
    assert text.index(" n\n") < text.index(" cost\n") and "1000 ± 5" in text and "0.500 ± 0.010" in text


def test_columns_beyond_the_fourth_are_reported():
    row = ("a", 1, 2, 3, 4, 5, 6)
    assert "2 columns more are not drawn" in chart(list("kabcdef"), [row, row], (None, 1, 1, 1, 1, 1, 1))


def test_a_thousand_rows():
    rows = [(f"row {n}", n) for n in range(1000)]
    text = chart(["k", "n"], rows, (None, 3))
    assert "950 rows more are not drawn" in text and "row 49" in text and "row 50" not in text
    lines = chart(["x", "n"], [(n, math.sin(n)) for n in range(1000)], (None, 0.1)).splitlines()
    assert len(lines) == 1 + 1 + 12 + 1


def test_one_row_without_a_key_has_its_columns_as_bars():
    text = chart(["visits", "cost"], [(8981, 425.3)], (100, 10))
    assert [line.split()[0] for line in text.splitlines()[1:3]] == ["visits", "cost"]


def test_rows_without_a_key_are_numbered():
    assert [line.split()[0] for line in chart(["n"], [(3,), (4,)], (1,)).splitlines()[2:4]] == ["1", "2"]


def test_null_and_what_is_not_finite():
    rows = [("a", 5.0), (None, None), ("c", math.nan), ("d", math.inf), ("e", 1e300)]
    bars = [(None, bar(5.0, 1)), (None, None), (None, None), (None, CellError(1, -math.inf, math.inf)), (None, None)]
    lines = render_chart(["k", "x"], rows, bars, 60)
    assert [line.split()[0] for line in lines[1:6]] == ["a", "NULL", "c", "d", "e"]
    assert lines[2].endswith("NULL") and lines[3].endswith("NaN") and lines[4].endswith("Infinity")


def test_a_missing_value_interrupts_a_line_and_a_missing_key_is_reported():
    rows = [(1, 5), (2, None), (3, 7), (None, 9)]
    text = chart(["x", "n"], rows, (None, 1))
    assert text.count("●") == 2 and '1 row without "x" is not drawn' in text and "⠤" not in text and "⠉" not in text


def test_an_endless_interval_reaches_the_edge():
    bars = [(None, CellError(1, 4, math.inf)), (None, None)]
    _, line, *_ = render_chart(["k", "n"], [("a", 5), ("b", 9)], bars, 60)
    assert line.rstrip().split("│")[1].split(" ")[0].endswith("─")


def test_all_equal():
    assert "7" in chart(["k", "n"], [("a", 7), ("b", 7)])
    assert "0" in chart(["k", "n"], [("a", 0), ("b", 0)])
    assert "●" in chart(["x", "n"], [(1, 7), (2, 7)], (None, 0))


@pytest.mark.parametrize(
    ("names", "rows", "reason"),
    [
        (["k", "n"], [], "the answer has no rows"),
        (["k"], [("a",)], "no column has numbers"),
        (["n"], [(None,)], "no column has numbers"),
        (["k", "n"], [("a", math.nan)], "all values are NULL or not finite"),
        (["b"], [(True,)], "no column has numbers"),
    ],
)
def test_nothing_to_draw(names, rows, reason):
    with pytest.raises(NothingToDraw, match=reason):
        render_chart(names, rows, None)


def test_in_ascii():
    for kind in ("bars", "lines"):
        assert chart(["wård", "n"], [("é", 5), ("b", -7)], (None, 1), kind=kind, plain=True).isascii()


def test_kind_decides():
    days = [(dt.date(2024, 1, day), day) for day in range(1, 5)]
    assert "█" in chart(["day", "n"], days, (None, 0.1), kind="bars")
    assert "●" in chart(["ward", "n"], WARDS, (None, 10), kind="lines")


def test_colours_take_no_columns():
    for kind in ("bars", "lines"):
        plain, coloured = (chart(["x", "n"], [(1, 5), (2, 7)], (None, 1), kind=kind, colour=c) for c in (False, True))
        for code in ("\x1b[36m", "\x1b[0m"):
            coloured = coloured.replace(code, "")
        assert [line.rstrip() for line in coloured.split("\n")] == [line.rstrip() for line in plain.split("\n")]


keys = st.one_of(st.none(), st.text(max_size=30), st.integers(-5, 5), st.dates(), st.datetimes(), st.booleans())
numbers = st.one_of(st.none(), st.integers(-(10**38), 10**38), st.floats(), st.decimals(allow_nan=False, places=3))
ends = st.one_of(st.none(), st.tuples(st.floats(), st.floats()))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(keys, numbers, ends), max_size=20), st.integers(0, 120), st.integers(0, 30),
    st.sampled_from(["auto", "bars", "lines"]), st.booleans(),
)  # fmt: skip
def test_anything_is_drawn_or_refused(rows, width, height, kind, plain):
    """Within the width, but for values beside narrow bars."""
    bars = [(None, None if end is None else CellError(1.0, *end)) for _, _, end in rows]
    try:
        lines = render_chart(["k", "n"], [row[:2] for row in rows], bars, width, height, kind, plain)
    except NothingToDraw:
        return
    assert all("\n" not in line and "\x1b" not in line for line in lines)
    if width >= 80 and all(len(str(row[1])) < 10 for row in rows):
        assert max(map(display_width, lines)) <= width


extremes = st.one_of(
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-310, 1e-200, 1e-199, 1e200, 1e308, 1.0]),
    st.floats(-1e-290, 1e-290), st.floats(),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc") | extremes, extremes, st.none() | st.tuples(extremes, extremes)),
        min_size=1, max_size=6,
    ),
    st.sampled_from(["auto", "bars", "lines"]),
)  # fmt: skip
@example([("a", -0.0, None), ("b", 5e-324, None)], "auto")
@example([("a", 5e-324, None), ("b", 5e-324, None)], "lines")
@example([("a", 0.0, (0.0, 5e-324))], "bars")
@example([(0.0, 1.0, None), (5e-324, 2.0, None)], "lines")
def test_the_smallest_and_largest_numbers_are_drawn(rows, kind):
    bars = [(None, None if end is None else CellError(1.0, *end)) for _, _, end in rows]
    try:
        assert render_chart(["k", "n"], [row[:2] for row in rows], bars, 60, 12, kind)
    except NothingToDraw:
        assert not any(axis_position(row[1]) is not None for row in rows)


def test_ticks_are_round():
    assert [tick.text for tick in make_number_ticks(0, 1, 5)] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert [tick.text for tick in make_number_ticks(-3, 12, 4)] == ["0", "5", "10"]
    assert [tick.text for tick in make_number_ticks(1e12, 3e12, 2)] == ["1e12", "2e12", "3e12"]

    def at(*when):
        return (dt.datetime(*when) - dt.datetime(1970, 1, 1)).total_seconds()

    days = [tick.text for tick in make_time_ticks(at(2024, 1, 1), at(2024, 1, 30), 5)]
    assert days == ["2024-01-01", "2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29"]  # Mondays
    months = [tick.text for tick in make_time_ticks(at(2024, 1, 1), at(2024, 12, 1), 4)]
    assert months == ["2024-01", "2024-04", "2024-07", "2024-10"]
    assert [tick.text for tick in make_time_ticks(at(1990, 6, 1), at(2024, 1, 1), 4)] == ["2000", "2010", "2020"]
    assert [tick.text for tick in make_time_ticks(at(2024, 1, 1, 6), at(2024, 1, 1, 22), 3)] == [
        "06:00",
        "12:00",
        "18:00",
    ]
