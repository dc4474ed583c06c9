"""PREPARE, EXECUTE, DECLARE, FETCH, MOVE, CLOSE and COPY, as clients spell them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from sqlglot.tokenizer_core import TokenType

from dpsql.compiler.parse.commands import read_command
from dpsql.compiler.parse.cursor_commands import (
    CloseCommand,
    CopyCommand,
    DeclareCommand,
    ExecuteCommand,
    FetchCommand,
    FetchDirection,
    PrepareCommand,
)
from dpsql.compiler.parse.parameters import ParameterLiteral
from dpsql.compiler.parse.parser import split_statements
from dpsql.errors import Error, InvalidSyntax, Unsupported
from dpsql.types import BIGINT, TEXT, decimal_type

Q = "SELECT 1 AS x"


@pytest.mark.parametrize(
    ("sql", "command"),
    [
        (f"PREPARE s AS {Q};", PrepareCommand("s", (), Q, 13)),
        (
            f'prepare "S" (int8, unknown, numeric(10, 2), text) as {Q}',
            PrepareCommand("S", (BIGINT, None, decimal_type(10, 2), TEXT), Q, 53),
        ),
        ("EXECUTE s", ExecuteCommand("s", ())),
        (
            r"EXECUTE s (1, -2.5, 'it''s', NULL, true, '2020-01-01'::date, $$a$$, E'a\'b')",
            ExecuteCommand(
                "s",
                (
                    ParameterLiteral(TokenType.NUMBER, "1"),
                    ParameterLiteral(TokenType.NUMBER, "-2.5"),
                    ParameterLiteral(TokenType.STRING, "it's"),
                    ParameterLiteral(TokenType.NULL, "NULL"),
                    ParameterLiteral(TokenType.TRUE, "TRUE"),
                    ParameterLiteral(TokenType.STRING, "2020-01-01"),
                    ParameterLiteral(TokenType.STRING, "a"),
                    ParameterLiteral(TokenType.STRING, "a'b"),
                ),
            ),
        ),
        (f"DECLARE c CURSOR FOR {Q}", DeclareCommand("c", Q, 21)),
        (f'DECLARE "C 1" BINARY NO SCROLL CURSOR WITH HOLD FOR {Q}', DeclareCommand("C 1", Q, 52, hold=True)),
        (f"/* x */ declare c insensitive scroll cursor without hold for {Q}", DeclareCommand("c", Q, 61)),
        ("FETCH c", FetchCommand("c")),
        ("FETCH FROM c", FetchCommand("c")),
        ("FETCH NEXT IN c", FetchCommand("c")),
        ('FETCH FORWARD 100 FROM "c"', FetchCommand("c", FetchDirection.FORWARD, 100)),
        ("FETCH 5 c", FetchCommand("c", FetchDirection.FORWARD, 5)),
        ("FETCH -5 FROM c", FetchCommand("c", FetchDirection.BACKWARD, 5)),
        ("FETCH ALL FROM c", FetchCommand("c", FetchDirection.FORWARD, None)),
        ("FETCH BACKWARD ALL FROM c", FetchCommand("c", FetchDirection.BACKWARD, None)),
        ("FETCH PRIOR FROM c", FetchCommand("c", FetchDirection.BACKWARD, 1)),
        ("FETCH FIRST FROM c", FetchCommand("c", FetchDirection.ABSOLUTE, 1)),
        ("FETCH LAST FROM c", FetchCommand("c", FetchDirection.ABSOLUTE, -1)),
        ("FETCH ABSOLUTE 3 FROM c", FetchCommand("c", FetchDirection.ABSOLUTE, 3)),
        ("FETCH RELATIVE -3 FROM c", FetchCommand("c", FetchDirection.RELATIVE, -3)),
        ("MOVE ALL FROM c", FetchCommand("c", FetchDirection.FORWARD, None, move=True)),
        ("CLOSE c;", CloseCommand("c")),
        ("CLOSE ALL", CloseCommand(None)),
        (f"COPY ({Q}) TO STDOUT", CopyCommand(Q, 6)),
        (
            f"COPY ({Q}) TO STDOUT WITH (FORMAT csv, HEADER, DELIMITER ';', NULL 'NA', FORCE_QUOTE *)",
            CopyCommand(Q, 6, True, True, ";", "NA", force_quote=("*",)),
        ),
        (
            f"copy ({Q}) to stdout csv header quote as '~' force quote x",
            CopyCommand(Q, 6, True, True, ",", "", "~", "~", ("x",)),
        ),
        (
            "COPY (SELECT ')' FROM (SELECT 1) t) TO STDOUT (FORMAT 'text', HEADER false, ENCODING 'UTF-8')",
            CopyCommand("SELECT ')' FROM (SELECT 1) t", 6),
        ),
        ("COPY visits TO STDOUT", CopyCommand('SELECT * FROM "visits"', -9)),
        (
            'COPY public . "Wards" ( ward , "Floor" ) TO STDOUT CSV',
            CopyCommand('SELECT "ward", "Floor" FROM "public"."Wards"', -23, True, delimiter=",", null=""),
        ),
    ],
)
def test_what_is_read(sql: str, command: object) -> None:
    assert read_command(sql) == command


@pytest.mark.parametrize(
    "sql",
    [
        "PREPARE", "PREPARE s", "PREPARE s SELECT 1", "PREPARE s (nonsense) AS SELECT 1", "EXECUTE",
        "EXECUTE s (now())", "EXECUTE s (1", "DECLARE c", "DECLARE c CURSOR", "DECLARE c FAST CURSOR FOR SELECT 1",
        "FETCH", "FETCH 1.5 FROM c", "FETCH FROM c d", "FETCH 99999999999 FROM c", "CLOSE", "CLOSE a b",
        "COPY visits FROM STDIN", "COPY visits (ward FROM STDIN", "COPY visits () TO STDOUT", "COPY 1 TO STDOUT",
        "COPY (SELECT 1) TO 'file'",
        "COPY (SELECT 1) TO PROGRAM 'x'", "COPY (SELECT 1", "COPY () TO STDOUT",
        "COPY (SELECT 1) TO STDOUT (FORMAT binary)", "COPY (SELECT 1) TO STDOUT (DELIMITER 'ab')",
        "COPY (SELECT 1) TO STDOUT (FORMAT csv, QUOTE '')", "COPY (SELECT 1) TO STDOUT (QUOTE 'x')",
        "COPY (SELECT 1) TO STDOUT (ENCODING 'latin1')", "COPY (SELECT 1) TO STDOUT (FREEZE)",
        "COPY (SELECT 1) TO STDOUT (FORMAT csv, NULL 'a\nb')",
    ],
)  # fmt: skip
def test_what_is_refused(sql: str) -> None:
    with pytest.raises((InvalidSyntax, Unsupported)):
        read_command(sql)


@pytest.mark.parametrize("end", range(60))
def test_half_a_command_gives_no_other_error(end: int) -> None:
    for sql in ("EXECUTE s (1, 'a', $x$y$x$, NULL)", "COPY (SELECT 1) TO STDOUT WITH (FORMAT csv, HEADER, NULL 'x')",
                'DECLARE "c" NO SCROLL CURSOR WITH HOLD FOR SELECT 1', "FETCH BACKWARD 10 FROM c"):  # fmt: skip
        with suppress(Error):
            read_command(sql[:end])


@pytest.mark.parametrize(
    ("sql", "statements"),
    [
        ("", ()),
        (" ; -- nothing\n ; /* ; */ ", ()),
        ("SELECT 1", (("SELECT 1", 0),)),
        ("BEGIN;SELECT 1;COMMIT;", (("BEGIN", 0), ("SELECT 1", 6), ("COMMIT", 15))),
        (r"""SELECT ';', $$;$$, "a;b", E'\';' ; SELECT 2""",
         ((r"""SELECT ';', $$;$$, "a;b", E'\';'""", 0), ("SELECT 2", 35))),
        ("EXPLAIN SELECT ';'; SHOW x", (("EXPLAIN SELECT ';'", 0), ("SHOW x", 20))),
        ("SELECT 'unfinished; SELECT 2", (("SELECT 'unfinished; SELECT 2", 0),)),
    ],
)  # fmt: skip
def test_several_statements(sql: str, statements: tuple[tuple[str, int], ...]) -> None:
    assert split_statements(sql) == statements
    assert all(sql[at : at + len(text)] == text for text, at in statements)
