"""Typed text to statements: where one ends, and whether the last one has."""

import pytest
from hypothesis import given

from dpsql.base.lexer import TokenKind, split_tokens
from dpsql.interfaces.repl.split_input import MetaCommandText, StatementText, is_complete, split_input
from tests.support.prompt_text import typed


def split(text):
    return [
        piece.text if isinstance(piece, MetaCommandText) else piece.sql + ";" * piece.complete
        for piece in split_input(text)
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT 1; SELECT 2;", ["SELECT 1;", "SELECT 2;"]),
        ("SELECT 1;\nSELECT 2", ["SELECT 1;", "SELECT 2"]),
        ("SELECT ';' ;", ["SELECT ';';"]),
        ("SELECT 'it''s; so';", ["SELECT 'it''s; so';"]),
        ("SELECT 'a\\'; SELECT 2;", ["SELECT 'a\\';", "SELECT 2;"]),  # a backslash is no escape here
        (r"SELECT E'a\';'; SELECT 2;", [r"SELECT E'a\';';", "SELECT 2;"]),
        ('SELECT ";""";', ['SELECT ";""";']),
        ("SELECT $$;$$; SELECT $a$ $$ ; $a$;", ["SELECT $$;$$;", "SELECT $a$ $$ ; $a$;"]),
        ("SELECT $1; SELECT a$b$c;", ["SELECT $1;", "SELECT a$b$c;"]),
        ("SELECT 1 -- ; no\n; SELECT 2", ["SELECT 1 -- ; no;", "SELECT 2"]),
        ("SELECT /* ; /* ; */ ; */ 1;", ["SELECT /* ; /* ; */ ; */ 1;"]),
        ("SELECT 1; -- the end", ["SELECT 1;"]),
        ("-- first\nSELECT 1;", ["-- first\nSELECT 1;"]),
        ("", []),
        (" \n", []),
        (";", [";"]),
        ("\\d visits\nSELECT 1;", ["\\d visits", "SELECT 1;"]),
        ("SELECT 1 \\g", ["SELECT 1", "\\g"]),
        ("SELECT 1;\\gx out.csv  \n\\q", ["SELECT 1;", "\\gx out.csv", "\\q"]),
        ("SELECT '\\d';", ["SELECT '\\d';"]),
        ("\\copy (SELECT ';') to f", ["\\copy (SELECT ';') to f"]),
        ("SELECT 'open; \\d", ["SELECT 'open; \\d"]),
        ("SELECT E'open\\", ["SELECT E'open\\"]),
    ],
)
def test_pieces(text, found):
    assert split(text) == found


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1;", True), ("SELECT 1; -- done", True), ("SELECT 1", False), ("SELECT ';", False), ("\\d", True),
        ("SELECT 1; SELECT", False), ("/* ;", False), ("/* ; */", True), ("$$;", False), ("", True),
        ("SELECT 1 \\g", True),
        ('SELECT ";', False), ("SELECT 'a'';", False), ("E'\\';", False),
    ],
)  # fmt: skip
def test_is_complete(text, complete):
    assert is_complete(text) is complete


def test_where_pieces_begin():
    text = "  SELECT 1;\n \\d visits\n -- a\nSELECT"
    assert [text[piece.start :][:6] for piece in split_input(text)] == ["SELECT", "\\d vis", "-- a\nS"]
    assert split_input(text)[1] == MetaCommandText("\\d visits", 13) and isinstance(split_input(text)[2], StatementText)


@given(typed)
def test_tokens_joined_are_the_text(text):
    found = split_tokens(text)
    assert "".join(token.text for token in found) == text
    assert [token.start for token in found] == [sum(len(t.text) for t in found[:at]) for at in range(len(found))]
    assert all(token.ended for token in found[:-1])


@given(typed)
def test_nothing_typed_is_lost(text):
    """But for semicolons and space, and comments that stand alone."""
    kept = "".join(piece.text if isinstance(piece, MetaCommandText) else piece.sql for piece in split_input(text))
    words = [t.text for t in split_tokens(text) if t.kind not in (TokenKind.SPACE, TokenKind.COMMENT) and t.text != ";"]
    at = 0
    for word in words:
        at = kept.index(word.rstrip(), at) + len(word.rstrip())
