"""CSV and JSON, of rows given by hand."""

import csv
import datetime as dt
import io
import json
from decimal import Decimal

import pytest

from dpsql.interfaces.display.export import make_names_unique, to_csv_lines, to_json_lines


def test_csv_is_read_back():
    rows = [("a,b", 1), ('q"q', None), ("", 2), ("line\nbreak", 3), (" x ", 4)]
    text = "\n".join(to_csv_lines(["name", "n"], rows)) + "\n"
    assert list(csv.reader(io.StringIO(text))) == [["name", "n"]] + [[a, "" if n is None else str(n)] for a, n in rows]


def test_csv_distinguishes_null_from_empty_text():
    assert list(to_csv_lines(["a", "b"], [(None, "")])) == ["a,b", ',""']


def test_csv_values_are_complete():
    row = (0.1 + 0.2, Decimal("1E+2"), True, dt.datetime(2024, 1, 2), float("nan"))
    assert list(to_csv_lines(list("abcde"), [row]))[1] == "0.30000000000000004,100,true,2024-01-02 00:00:00,NaN"


def test_csv_has_lists_structs_and_maps_as_json():
    row = (["emergency", "x,y", None], [True], {"f": 0.51}, {"d": dt.date(2024, 1, 2), "n": [Decimal("1.10")]}, [])
    line = list(to_csv_lines(list("abcde"), [row]))[1]
    (fields,) = csv.reader(io.StringIO(line))
    assert fields == ['["emergency", "x,y", null]', "[true]", '{"f": 0.51}', '{"d": "2024-01-02", "n": [1.10]}', "[]"]


def test_json_is_read_back():
    infinite, day = float("inf"), dt.date(2024, 1, 2)
    row = ('a"\u00fc\n', None, 2**60 + 1, 0.1 + 0.2, Decimal("1.10"), day, True, infinite, [1, None])
    text = "\n".join(to_json_lines(list("abcdefghi"), [row, row]))
    assert '"e": 1.10' in text and "\u00fc" in text
    read = json.loads(text)
    assert len(read) == 2 and list(read[0].values()) == [
        'a"\u00fc\n', None, 2**60 + 1, 0.1 + 0.2, 1.1, "2024-01-02", True, "Infinity", [1, None]
    ]  # fmt: skip


def test_json_steers_no_terminal():
    text = "\n".join(to_json_lines(["a\x9b"], [("\x9b31m\u202e\U000e0041é",)]))
    assert text.replace("\n", "").isprintable() and "é" in text
    assert json.loads(text) == [{"a\x9b": "\x9b31m\u202e\U000e0041é"}]


def test_json_of_nothing():
    assert json.loads("\n".join(to_json_lines(["a"], []))) == []


@pytest.mark.parametrize(
    ("names", "unique"),
    [(["a", "a"], ["a", "a_2"]), (["a", "a", "a"], ["a", "a_2", "a_3"]), (["a", "a", "a_2"], ["a", "a_3", "a_2"])],
)
def test_names_become_unique(names, unique):
    assert make_names_unique(names) == unique
