"""What an answer looks like on a terminal, in a file, wide and narrow."""

import datetime as dt
import io
from decimal import Decimal

import pyte
import pytest

from dpsql.amounts import CellError
from dpsql.interfaces.display.table import print_table, render_table
from dpsql.interfaces.display.terminal import Layout, Screen, display_width, escape_text, supports_color


def bar(value, half):
    return CellError(half / 1.96, value - half, value + half)


def table(names, rows, halves=None, **layout):
    bars = None
    if halves is not None:
        bars = [tuple(None if h is None else bar(float(v or 0), h) for v, h in zip(row, half, strict=True))
                for row, half in zip(rows, halves, strict=True)]  # fmt: skip
    return "\n" + "\n".join(render_table(names, rows, bars, Layout(**layout))) + "\n"


WARDS = ["ward", "visits", "average_cost"]
VISITS = [("emergency", 8981, 425.3), ("cardiology", 6853, 1023.44), ("maternity", -21, 1129.5)]
HALVES = [(None, 102, 10.2), (None, 102, 12.6), (None, 102, 134.0)]


def test_numbers_right_text_left():
    assert (
        table(["name", "n"], [("a", 1), ("long name", 12345)])
        == """
 name      │     n
───────────┼───────
 a         │     1
 long name │ 12345
"""
    )


def test_a_number_shows_the_digits_that_its_noise_leaves():
    """Two digits of the error, and the value to the same place; points and ± stand below each other."""
    assert (
        table(WARDS, VISITS, HALVES)
        == """
 ward       │     visits │ average_cost
────────────┼────────────┼──────────────
 emergency  │ 8980 ± 110 │    425 ±  11
 cardiology │ 6850 ± 110 │   1023 ±  14
 maternity  │  -20 ± 110 │   1130 ± 140
"""
    )


def test_all_digits():
    assert (
        table(WARDS, VISITS, HALVES, digits="all")
        == """
 ward       │     visits │  average_cost
────────────┼────────────┼───────────────
 emergency  │ 8981 ± 102 │  425.3  ±  11
 cardiology │ 6853 ± 102 │ 1023.44 ±  13
 maternity  │  -21 ± 102 │ 1129.5  ± 134
"""
    )


def test_without_bars_the_digits_stay_few():
    assert (
        table(WARDS, VISITS, HALVES, errors=False)
        == """
 ward       │ visits │ average_cost
────────────┼────────┼──────────────
 emergency  │   8980 │          425
 cardiology │   6850 │         1023
 maternity  │    -20 │         1130
"""
    )


def test_points_stand_below_each_other():
    rows = [("a", 0.12345), ("b", 12.3456), ("c", 999.5), ("d", None)]
    assert (
        table(["k", "x"], rows, [(None, 0.0123), (None, 0.2), (None, 20.0), (None, None)])
        == """
 k │                 x
───┼───────────────────
 a │    0.123 ±  0.013
 b │   12.35  ±  0.21
 c │ 1000     ± 21
 d │ NULL
"""
    )


def test_numbers_without_noise_are_reported_in_full():
    rows = [(1 / 3, Decimal("2.50"), 123456789012345678), (2.0, Decimal("10.00"), 1)]
    assert (
        table(["double", "decimal", "whole"], rows)
        == """
             double │ decimal │              whole
────────────────────┼─────────┼────────────────────
 0.3333333333333333 │    2.50 │ 123456789012345678
 2                  │   10.00 │                  1
"""
    )


def test_one_line_for_each_value():
    assert (
        table(WARDS, VISITS[:2], HALVES[:2], expanded="on")
        == """
─[ RECORD 1 ]─┬────────────
 ward         │ emergency
 visits       │ 8980 ± 110
 average_cost │ 425 ± 11
─[ RECORD 2 ]─┼────────────
 ward         │ cardiology
 visits       │ 6850 ± 110
 average_cost │ 1023 ± 14
"""
    )


def test_in_ascii():
    assert (
        table(["wård", "n"], [("Zürich", 8981)], [(None, 102)], plain=True)
        == """
 w\\xe5rd   |            n
-----------+--------------
 Z\\xfcrich | 8980 +/- 110
"""
    )
    assert (
        table(["n"], [(8981,)], [(102,)], plain=True, expanded="on")
        == """
-[ RECORD 1 ]-+--------------
 n            | 8980 +/- 110
"""
    )


LONG = [("a very long description of it", "short", 8981), ("b", "also rather long text", 51)]


def test_a_narrow_terminal_cuts_texts_and_no_number():
    assert (
        table(["description", "note", "n"], LONG, [(None, None, 102)] * 2, width=44)
        == """
 description   │ note          │          n
───────────────┼───────────────┼────────────
 a very long … │ short         │ 8980 ± 110
 b             │ also rather … │   50 ± 110
"""
    )


def test_the_widest_text_is_cut_first():
    assert (
        table(["description", "note", "n"], LONG, width=55)
        == """
 description            │ note                  │    n
────────────────────────┼───────────────────────┼──────
 a very long descripti… │ short                 │ 8981
 b                      │ also rather long text │   51
"""
    )


@pytest.mark.parametrize("width", range(20, 80))
def test_what_fits_is_not_wider_than_the_terminal(width):
    lines = table(["description", "note", "n"], LONG, [(None, None, 102)] * 2, width=width, expanded="off").split("\n")
    fits = width >= 8 + 8 + 10 + 3 * 2 + 2
    assert (max(map(display_width, lines)) <= width) == fits
    assert "8980 ± 110" in lines[3]


def test_what_cannot_be_cut_is_expanded_or_left_to_the_pager():
    wide = table(["description", "note", "n"], LONG, width=24)
    assert wide == table(["description", "note", "n"], LONG)  # nothing is cut where cutting does not help
    assert (
        table(["description", "note", "n"], LONG[:1], width=24, expanded="auto")
        == """
─[ RECORD 1 ]─┬─────────
 description  │ a very long description of it
 note         │ short
 n            │ 8981
"""
    )
    assert table(["description", "note", "n"], LONG, width=70, expanded="auto").startswith("\n description")


def test_a_file_has_no_width():
    assert table(["x"], [("y" * 500,)], expanded="auto").endswith("y" * 500 + "\n")


def test_null_is_no_text():
    assert table(["x"], [(None,), ("NULL",), ("",)]).splitlines()[3:] == [" NULL", ' "NULL"', ""]


def test_values_of_each_type():
    row = (True, dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3), Decimal("2.50"), float("inf"), [1, 2])
    assert table(list("abcdef"), [row]).splitlines()[3] == (
        " true │ 2024-02-29 │ 2024-02-29 01:02:03 │ 2.50 │ Infinity │ [1, 2]"
    )


def test_no_rows():
    assert table(["a", "b"], []) == "\n a │ b\n───┼───\n"
    assert table(["a", "b"], [], expanded="on") == "\n\n"
    assert render_table([], [()], None, Layout()) == []


# --- what a value may not do -----------------------------------------------------------------------------------------


def test_nothing_steers_the_terminal():
    text = table(["x\n"], [("a\x1b[31m\nb\t\u202e\x9b2J",)])
    assert text.replace("\n", "").isprintable() and len(text.splitlines()) == 4
    assert "a\\x1b[31m\\nb\\t\\u202e\\x9b2J" in text


TEXTS = ["abcd", "東京", "e\u0301", "❤\ufe0f", "👨\u200d👩", "שלום", "\u0301x", "a" + "\u0301" * 50, "\u3164", "한글",
         "\u1112\u1161\u11ab", "a│b", "\u00a0", "a\u2028b", "\U000e0100", "\u034f", "\x1b[5C", "\t"]  # fmt: skip


def test_a_value_moves_no_column():
    """Held against a terminal: the last wall of each line stands in one column, whatever the text."""
    lines = render_table(["x", "n"], [(text, at) for at, text in enumerate(TEXTS)], None, Layout())
    assert len(lines) == len(TEXTS) + 2
    screen = pyte.Screen(500, len(lines) + 1)
    stream = pyte.Stream(screen)
    for character in "\r\n".join(lines):  # of a longer text it forgets what follows a mark
        stream.feed(character)
    rows = [screen.buffer[line] for line in range(len(lines))]
    walls = [max(column for column, cell in row.items() if cell.data[:1] in ("│", "┼")) for row in rows]
    assert len(set(walls)) == 1


def test_a_flag_is_two_columns():
    """A pair of letters that terminals draw as one flag; the emulator above takes it for four."""
    assert display_width("🇨🇭") == 2


def test_marks_stand_on_letters_and_not_in_towers():
    assert escape_text("\u0301x") == "\\u0301x"
    assert escape_text("a" + "\u0301" * 6) == "a" + "\u0301" * 4 + "\\u0301" * 2
    assert escape_text("❤\ufe0f") == "❤" and escape_text("\u202eabc") == "\\u202eabc"


def test_text_from_right_to_left_ends_before_the_next_column():
    """Or a terminal that follows the bidirectional algorithm would show the number before the text."""
    (line,) = render_table(["x", "n"], [("שלום", 12)], None, Layout())[2:]
    assert line == " שלום\u200e │ 12"
    (cut,) = render_table(["x", "n"], [("שלום" * 9, 12)], None, Layout(width=20))[2:]
    assert "…\u200e │ 12" in cut and display_width(cut) <= 20
    assert "\\u200e" in table(["x"], [("a\u200e",)])  # its own are shown


# --- screens ---------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_colours_on_terminals_only(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert supports_color(Terminal()) and not supports_color(io.StringIO())
    shown = Terminal()
    print_table(Screen(shown, io.StringIO()), ["a"], [(None,)])
    assert "\x1b[1ma" in shown.getvalue() and "\x1b[2mNULL\x1b[0m" in shown.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not supports_color(Terminal())


def test_colours_take_no_columns():
    plain, coloured = (table(WARDS, VISITS, HALVES, colour=colour, width=36) for colour in (False, True))
    assert "\x1b[2m ± 110\x1b[0m" in coloured
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m"):
        coloured = coloured.replace(code, "")
    assert [line.rstrip() for line in coloured.splitlines()] == plain.splitlines()


def test_a_stream_without_unicode_stays_aligned():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    print_table(Screen(stream, io.StringIO()), ["k", "n"], [("é", 10)], [(None, CellError(1.0, 8.0, 12.0))])
    stream.flush()
    assert raw.getvalue().decode() == " k    |        n\n------+----------\n \\xe9 | 10 +/- 2\n"
