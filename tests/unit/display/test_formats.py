"""Tables, CSV and JSON, of rows given by hand."""

import csv
import datetime as dt
import doctest
import importlib
import io
import json
from decimal import Decimal

import pytest

from dpsql.display.formats import csv_lines, json_lines, print_table, unique_names
from dpsql.display.screen import Screen, coloured
from dpsql.session import CellError


def table(names, rows, bars=None, stream=None):
    out = stream or io.StringIO()
    print_table(Screen(out, io.StringIO()), names, rows, bars)
    return out.getvalue() if stream is None else None


def test_numbers_right_text_left():
    assert table(["name", "n"], [("a", 1), ("long name", 12345)]) == (
        " name      │     n\n"
        "───────────┼───────\n"
        " a         │     1\n"
        " long name │ 12345\n"
    )  # fmt: skip


def test_error_bars_stand_below_each_other():
    rows = [("a", 1000, 12.3456), ("b", 7, 999.5), ("c", None, None)]
    bars = [(None, CellError(50.0, 902.0, 1098.0), CellError(0.1, 12.1456, 12.5456)),
            (None, CellError(50.0, -91.0, 105.0), CellError(10.0, 979.5, 1019.5)),
            (None, None, None)]  # fmt: skip
    assert table(["k", "n", "x"], rows, bars) == (
        " k │         n │              x\n"
        "───┼───────────┼────────────────\n"
        " a │ 1000 ± 98 │  12.35 ±  0.20\n"
        " b │    7 ± 98 │ 999.50 ± 20.00\n"
        " c │ NULL      │   NULL\n"
    )


def test_an_interval_that_a_bound_cuts_is_told_by_its_longer_side():
    assert "10 ± 90" in table(["x"], [(10.0,)], [(CellError(45.0, 0.0, 100.0),)])


def test_half_widths_round_up():
    assert "100 ± 11" in table(["n"], [(100,)], [(CellError(5.1, 89.9, 110.1),)])


def test_null_is_no_text():
    text = table(["x"], [(None,), ("NULL",), ("",)])
    assert text.splitlines()[2:] == [" NULL", ' "NULL"', ""]


def test_nothing_steers_the_terminal():
    text = table(["x\n"], [("a\x1b[31m\nb\t\u202e",)])
    assert "\x1b" not in text and len(text.splitlines()) == 3 and "\\x1b[31m\\nb\\t\\u202e" in text


def test_wide_and_combining_characters_are_aligned():
    lines = table(["x", "n"], [("東京", 1), ("e\u0301", 2), ("abcd", 3)]).splitlines()
    # Two characters take four columns, and two take one.
    assert [line.index("│") for line in lines[2:]] == [6 - 2, 6 + 1, 6]


def test_values_of_each_type():
    row = (True, dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3), Decimal("2.50"), float("inf"), [1, 2])
    assert table(list("abcdef"), [row]).splitlines()[2] == (
        " true │ 2024-02-29 │ 2024-02-29 01:02:03 │ 2.5 │ Infinity │ [1, 2]"
    )


def test_no_rows():
    assert table(["a", "b"], []) == " a │ b\n───┼───\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_colours_on_terminals_only(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured(Terminal()) and not coloured(io.StringIO())
    shown = Terminal()
    table(["a"], [(None,)], stream=shown)
    assert "\x1b[1ma" in shown.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured(Terminal())


def test_a_stream_without_unicode_stays_aligned():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    table(["k", "n"], [("é", 10)], [(None, CellError(1.0, 8.0, 12.0))], stream=stream)
    stream.flush()
    assert raw.getvalue().decode() == " k |      n\n---+--------\n \\xe9 | 10 +-2\n"


def test_csv_is_read_back():
    rows = [("a,b", 1), ('q"q', None), ("", 2), ("line\nbreak", 3), (" x ", 4)]
    text = "\n".join(csv_lines(["name", "n"], rows)) + "\n"
    assert list(csv.reader(io.StringIO(text))) == [["name", "n"]] + [[a, "" if n is None else str(n)] for a, n in rows]


def test_csv_tells_null_from_empty_text():
    assert list(csv_lines(["a", "b"], [(None, "")])) == ["a,b", ',""']


def test_csv_values_are_complete():
    row = (0.1 + 0.2, Decimal("1E+2"), True, dt.datetime(2024, 1, 2), float("nan"))
    assert list(csv_lines(list("abcde"), [row]))[1] == "0.30000000000000004,100,true,2024-01-02 00:00:00,NaN"


def test_json_is_read_back():
    infinite, day = float("inf"), dt.date(2024, 1, 2)
    row = ('a"\u00fc\n', None, 2**60 + 1, 0.1 + 0.2, Decimal("1.10"), day, True, infinite, [1, None])
    text = "\n".join(json_lines(list("abcdefghi"), [row, row]))
    assert '"e": 1.10' in text and "\u00fc" in text
    read = json.loads(text)
    assert len(read) == 2 and list(read[0].values()) == [
        'a"\u00fc\n', None, 2**60 + 1, 0.1 + 0.2, 1.1, "2024-01-02", True, "Infinity", [1, None]
    ]  # fmt: skip


def test_json_of_nothing():
    assert json.loads("\n".join(json_lines(["a"], []))) == []


@pytest.mark.parametrize(
    ("names", "unique"),
    [(["a", "a"], ["a", "a_2"]), (["a", "a", "a"], ["a", "a_2", "a_3"]), (["a", "a", "a_2"], ["a", "a_3", "a_2"])],
)
def test_names_become_unique(names, unique):
    assert unique_names(names) == unique


@pytest.mark.parametrize("module", ["dpsql.display.formats", "dpsql.cli.query", "dpsql.figures"])
def test_examples_in_docstrings(module):
    results = doctest.testmod(importlib.import_module(module))
    assert results.attempted and not results.failed
