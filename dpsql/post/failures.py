"""What DuckDB says of a statement over releases, in PostgreSQL's words and with its codes.

Law: the sandbox holds releases and public rows only, so all that it says may be shown.
"""

from __future__ import annotations

import re

from dpsql.errors import DataError, Error, InvalidSyntax, ProgrammingError, UnknownColumn, UnknownFunction, UnknownTable

_KIND = re.compile(r"^[A-Z][A-Za-z-]*( [A-Za-z-]+)* Error: ")  # it says nothing more
_COLUMN = re.compile(
    r'Referenced column "(?P<name>.+?)" (?:was )?not found|does not have a column named "(?P<own>.+?)"'
    r'|^Column "(?P<output>.+?)" referenced that exists in the SELECT clause'  # as we name the output after it
)
_TABLE = re.compile(r'Referenced table "(.+?)" not found|Table with name (.+?) does not exist')
_FUNCTION = re.compile(r"Function with name (.+?) does not exist")
_CANDIDATES = re.compile(r"Candidate (?:bindings|tables): *:? *(.+)")
_STATES = (
    (re.compile(r"Ambiguous reference to column name"), "42702"),
    (re.compile(r"must appear in the GROUP BY clause"), "42803"),
    (re.compile(r"cannot contain aggregates|aggregate function calls cannot be nested"), "42803"),
    (re.compile(r"Window functions are not supported here"), "42P20"),
    (re.compile(r"ORDER term out of range|GROUP BY term out of range"), "42P10"),
    (re.compile(r"No function matches|Could not choose a best candidate function"), "42883"),
    (re.compile(r"Set operations can only apply"), "42601"),
)


def read_failure(kind: str, text: str) -> Error:
    """Of an exception of DuckDB's driver: its class's name, and what it says.

    >>> print(read_failure("BinderException", 'Binder Error: Referenced column "wrd" not found in FROM clause!'))
    column "wrd" does not exist
    """
    # DuckDB points into the text with our part in front, which the reader has not written.
    lines = [line for line in text.split("\n\nLINE ")[0].splitlines() if line.strip()]
    message = _KIND.sub("", lines[0].rstrip(".!")) if lines else kind
    detail = "\n".join(lines[1:]) or None
    return _unknown_name(message, detail) or _wrong(kind, message, detail)


def _unknown_name(message: str, detail: str | None) -> Error | None:
    near = _CANDIDATES.search(detail or "")
    hint = f"Perhaps you meant {near[1].strip()}." if near else None
    if found := _COLUMN.search(message):
        return UnknownColumn(f'column "{found["name"] or found["own"] or found["output"]}" does not exist', hint=hint)
    if found := _TABLE.search(message):
        return UnknownTable(f'table "{found[1] or found[2]}" does not exist', hint=hint)
    if found := _FUNCTION.search(message):
        return UnknownFunction(f'function "{found[1]}" does not exist')
    return None


def _wrong(kind: str, message: str, detail: str | None) -> Error:
    for pattern, state in _STATES:
        if pattern.search(message):
            return ProgrammingError(f"post-processing failed: {message}", detail=detail, sqlstate=state)
    told = f"post-processing failed: {message}"
    match kind:
        case "ParserException":
            return InvalidSyntax(told, detail=detail)
        case "OutOfRangeException":
            return DataError(told, detail=detail, sqlstate="22003")
        case "ConversionException":
            state = "22003" if "out of range" in message or "Could not cast value" in message else "22P02"
            return DataError(told, detail=detail, sqlstate=state)
        case "InvalidInputException" if "More than one row" in message:
            return DataError(told, sqlstate="21000")
        case _:
            return DataError(told, detail=detail)
