"""\\copy: releases to files, as CSV, JSON or Parquet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from dpsql.dbapi.frames import Frame, to_arrow
from dpsql.display.formats import csv_lines, json_lines
from dpsql.errors import InterfaceError, InvalidSyntax
from dpsql.repl.commands import words_of

FORMATS = ("csv", "json", "parquet")
_USAGE = "Write \\copy to FILE, or \\copy (SELECT …) to FILE; FORMAT is csv, json or parquet."


@dataclass(frozen=True)
class Copy:
    """`sql` is None for the last answer."""

    sql: str | None
    path: Path
    format: str
    errors: bool


def read_copy(argument: str) -> Copy:
    """
    >>> read_copy("(SELECT 1) to 'a b.csv' errors")
    Copy(sql='SELECT 1', path=PosixPath('a b.csv'), format='csv', errors=True)
    """
    found = re.fullmatch(r"(?:\((?P<sql>.*)\)\s*)?to\s+(?P<rest>.+)", argument.strip(), re.DOTALL | re.IGNORECASE)
    if found is None:
        raise InvalidSyntax("\\copy needs the name of a file", hint=_USAGE)
    name, *words = words_of(found["rest"].rstrip("; "), "\\copy")
    said = [word.lower() for word in words if word.lower() not in ("with", "header", "errors")]
    path = Path(name).expanduser()
    format_ = said[0] if said else path.suffix.removeprefix(".").lower()
    if len(said) > 1 or format_ not in FORMATS:
        what = f'"{said[-1]}" is' if said else "the file's name tells"
        raise InvalidSyntax(f"{what} no format", hint=_USAGE)
    return Copy(found["sql"], path, format_, "errors" in (word.lower() for word in words))


def write_copy(copy: Copy, frame: Frame) -> None:
    try:
        if copy.format == "parquet":
            table = to_arrow(frame)
            import_module("pyarrow.parquet").write_table(table, copy.path)
            return
        lines = (csv_lines if copy.format == "csv" else json_lines)(frame.names, frame.rows)
        copy.path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise InterfaceError(f'the file "{copy.path}" cannot be written: {error.strerror or "it failed"}') from None
