"""\\copy: releases to files, as CSV, JSON or Parquet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from dpsql.dbapi.frames import Frame, to_arrow
from dpsql.display.formats import to_csv_lines, to_json_lines
from dpsql.errors import InterfaceError, InvalidSyntax
from dpsql.repl.commands import split_shell_words

COPY_FORMATS = ("csv", "json", "parquet")
_COPY_USAGE = "Write \\copy to FILE, or \\copy (SELECT …) to FILE; FORMAT is csv, json or parquet."


@dataclass(frozen=True)
class CopyRequest:
    """`sql` is None for the last answer."""

    sql: str | None
    path: Path
    format: str
    errors: bool


def parse_copy(argument: str) -> CopyRequest:
    """
    >>> parse_copy("(SELECT 1) to 'a b.csv' errors")
    CopyRequest(sql='SELECT 1', path=PosixPath('a b.csv'), format='csv', errors=True)
    """
    parsed = re.fullmatch(r"(?:\((?P<sql>.*)\)\s*)?to\s+(?P<rest>.+)", argument.strip(), re.DOTALL | re.IGNORECASE)
    if parsed is None:
        raise InvalidSyntax("\\copy needs the name of a file", hint=_COPY_USAGE)
    name, *words = split_shell_words(parsed["rest"].rstrip("; "), "\\copy")
    format_words = [word.lower() for word in words if word.lower() not in ("with", "header", "errors")]
    path = Path(name).expanduser()
    format_ = format_words[0] if format_words else path.suffix.removeprefix(".").lower()
    if len(format_words) > 1 or format_ not in COPY_FORMATS:
        what = f'"{format_words[-1]}" is' if format_words else "the file's name tells"
        raise InvalidSyntax(f"{what} no format", hint=_COPY_USAGE)
    return CopyRequest(parsed["sql"], path, format_, "errors" in (word.lower() for word in words))


def write_copy(copy: CopyRequest, frame: Frame) -> None:
    try:
        if copy.format == "parquet":
            table = to_arrow(frame)
            import_module("pyarrow.parquet").write_table(table, copy.path)
            return
        lines = (to_csv_lines if copy.format == "csv" else to_json_lines)(frame.names, frame.rows)
        copy.path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise InterfaceError(f'the file "{copy.path}" cannot be written: {error.strerror or "it failed"}') from None
