"""What \\copy writes, and how its line is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsql.errors import InterfaceError, InvalidSyntax
from dpsql.interfaces.dbapi.dataframes import Frame
from dpsql.interfaces.repl.run_meta_command import CopyRequest, parse_copy, write_copy
from dpsql.types import BIGINT, TEXT
from tests.support.optional_dependencies import package

FRAME = Frame(("k", "n"), (TEXT, BIGINT), [("a,\nb", 2**53 + 1), (None, None)])


@pytest.mark.parametrize(
    ("argument", "sql", "path", "format_", "errors"),
    [
        ("to a.csv", None, "a.csv", "csv", False),
        ("TO 'a b.JSON' ERRORS", None, "a b.JSON", "json", True),
        ("to out parquet;", None, "out", "parquet", False),
        ("to out.csv with json header", None, "out.csv", "json", False),
        ("(SELECT ')' AS a\nFROM t)to a.csv", "SELECT ')' AS a\nFROM t", "a.csv", "csv", False),
        ("(SELECT 'x) to b.csv') to a.csv", "SELECT 'x) to b.csv'", "a.csv", "csv", False),
    ],
)
def test_lines(argument: str, sql: str | None, path: str, format_: str, errors: bool) -> None:
    assert parse_copy(argument) == CopyRequest(sql, Path(path), format_, errors)


def test_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert parse_copy("to ~/a.csv").path == tmp_path / "a.csv"


@pytest.mark.parametrize("argument", ["a.csv", "to a", "to a.csv json csv", "to a.xls", "to 'a.csv", ""])
def test_lines_that_cannot_be_read(argument: str) -> None:
    with pytest.raises(InvalidSyntax):
        parse_copy(argument)


def test_files(tmp_path: Path) -> None:
    arrow = package("pyarrow.parquet")
    for format_ in ("csv", "json", "parquet"):
        write_copy(CopyRequest(None, tmp_path / format_, format_, False), FRAME)
    assert (tmp_path / "csv").read_text(encoding="utf-8") == f'k,n\n"a,\nb",{2**53 + 1}\n,\n'
    rows = [{"k": "a,\nb", "n": 2**53 + 1}, {"k": None, "n": None}]
    assert json.loads((tmp_path / "json").read_text(encoding="utf-8")) == rows
    assert arrow.read_table(tmp_path / "parquet").to_pylist() == rows


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_where_nothing_can_be_written(tmp_path: Path, format_: str) -> None:
    with pytest.raises(InterfaceError, match="cannot be written"):
        write_copy(CopyRequest(None, tmp_path / "missing" / "a", format_, False), FRAME)
