"""Colours of typed text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.interfaces.repl.prompt import HIGHLIGHT_STYLES, highlight_sql
from tests.support.prompt_text import typed


def styles(text):
    return " ".join(f"{fragment}:{style}" for style, fragment in highlight_sql(text) if style)


@pytest.mark.parametrize(
    ("text", "styled"),
    [
        ("SELECT a FROM t", "SELECT:keyword FROM:keyword"),
        ("select Count(*), left(a, 1), b.date", "select:keyword Count:function *:operator left:function 1:number"),
        ("a LEFT JOIN b", "LEFT:keyword JOIN:keyword"),
        ("x IN (1)", "IN:keyword 1:number"),
        ("'it''s' || \"a b\"", "'it''s':string ||:operator \"a b\":name"),
        ("DATE '2024-01-01' > date", "DATE:keyword '2024-01-01':string >:operator"),
        ("a::int", "::: operator int:keyword".replace(": o", ":o")),
        ("CAST(a AS double)", "CAST:function AS:keyword double:keyword"),
        ("v.select", ""),
        ("$1 + ? -- so", "$1:parameter +:operator ?:parameter -- so:comment"),
        ("/* open", "/* open:comment"),
        ("'open", "'open:string"),
        ("\\d visits", "\\d:command"),
        ("1.5e3 .5 0x1F", "1.5e3:number .5:number 0x1F:number"),
    ],
)
def test_styles(text, styled):
    assert styles(text) == styled


WORDS = ["select ", "count(", "as ", "::", "date", "'x'", ".", "(", ")", "\\d", "\n", " ", "left"]


@given(st.one_of(typed, st.lists(st.sampled_from(WORDS)).map("".join)))
def test_fragments_joined_are_the_text(text):
    found = highlight_sql(text)
    assert "".join(fragment for _, fragment in found) == text
    assert {style for style, _ in found} <= set(HIGHLIGHT_STYLES) and all(fragment for _, fragment in found)
