"""Answers in notebooks: nothing that a value or a name holds is markup."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import pytest

from dpsql.amounts import CellError
from dpsql.interfaces.display.html import render_html_table

NOISE = CellError(52.0, 8879.0, 9083.0)
HOSTILE = [
    "<script>alert(1)</script>",
    "</td></table><img src=x onerror=alert(1)>",
    "\"' onmouseover='alert(1)'",
    "<!-- ",
    "]]>",
    "&lt;b&gt; &amp;#60;",
    "</pre></div><style>*{display:none}</style>",
    "javascript:alert(1)",
]


class Reader(HTMLParser):
    """The tags with their attributes, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")


def page(value: Any, name: str = "n", beneath: str = "charged") -> Reader:
    return Reader(render_html_table(["ward", name], [(value, 8981)], [(None, NOISE)], [beneath]))


def test_numbers_have_their_bars_and_the_digits_that_these_leave() -> None:
    text = page("surgery").text
    assert "surgery" in text and "8980 ± 110" in text and "8981" not in text and "charged" in text


def test_null_is_distinguished_from_text() -> None:
    assert 'opacity:0.6">NULL<' in render_html_table(["a"], [(None,)], [(None,)])
    assert '"NULL"' in Reader(render_html_table(["a"], [("NULL",)], [(None,)])).text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_values_names_and_lines_are_text(hostile: str) -> None:
    plain = page("x", "x", "x")
    for attacked in (page(hostile, "x", "x"), page("x", hostile, "x"), page("x", "x", hostile)):
        assert attacked.tags == plain.tags  # no tag and no attribute more
        assert hostile in attacked.text  # and all of it is seen


def test_values_of_other_types_are_escaped_too() -> None:
    attacked = page([HOSTILE[0], {HOSTILE[1]: 1}])
    assert attacked.tags == page("x").tags and "<script>" in attacked.text
    assert "2024-02-29 12:00:00" in page(dt.datetime(2024, 2, 29, 12)).text and "2.50" in page(Decimal("2.50")).text


def test_marks_that_turn_writing_around_and_controls_are_escaped() -> None:
    text = page("a\u202eb\x1b[31m\x00").text
    assert "\u202e" not in text and "\x1b" not in text and "\\u202e" in text


def test_notebooks_typeset_no_mathematics() -> None:
    assert "tex2jax_ignore mathjax_ignore" in render_html_table(["$x$"], [("$y$",)], [(None,)])


def test_nothing_but_lines() -> None:
    only = Reader(render_html_table((), (), (), ["a < b"]))
    assert [tag for tag, _ in only.tags] == ["div", "pre"] and "a < b" in only.text


def test_a_cell_shows_its_two_parts_where_one_is_for_clipping() -> None:
    both = CellError(52.0, 8879.0, 9163.0, 80.0)
    page = render_html_table(["n"], [[8981]], [[both]])
    assert 'title="noise: standard error 52; clipping: up to 80"' in page
    assert "title=" not in render_html_table(["n"], [[8981]], [[NOISE]])
