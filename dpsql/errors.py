"""What can go wrong, for people and programs. An error's text depends on statement, schema and ledger, never on rows.

Warning
Error
├── InterfaceError                     the DB-API is used in a way it does not allow
└── DatabaseError
    ├── DataError                      a released value does not fit where it is used
    ├── OperationalError
    │   ├── BudgetExceeded      53400  an account's budget does not cover the charge
    │   ├── AccountSuspended    57P03  too many failed runs; the owner resumes the account
    │   ├── QueryCanceled       57014  the client, or its time, has ended the wait; the run goes on
    │   ├── EngineFailed        58000  the engine failed after the charge; one fixed text
    │   ├── StaleData           55000  the data is not the registered version
    │   └── AccessDenied        28000  no such user, or no user named
    ├── IntegrityError                 the ledger is not the one that the schema needs
    ├── InternalError           XX000  a bug of ours
    ├── ProgrammingError
    │   ├── InvalidSyntax       42601
    │   ├── UnknownTable        42P01
    │   ├── UnknownColumn       42703
    │   ├── AmbiguousColumn     42702
    │   ├── UnknownFunction     42883
    │   ├── GroupingError       42803  a private column outside of an aggregate
    │   ├── TypeMismatch        42804
    │   ├── InvalidParameter    22023  a setting or parameter out of its range
    │   ├── LimitExceeded       54000  the statement is too long or too deep
    │   └── SchemaError         F0000  the YAML schema is wrong
    └── NotSupportedError
        ├── Unsupported         0A000  SQL that dpsql does not (yet) answer
        ├── NotPrivate          0A000  would reveal single rows
        ├── UnboundedContribution  0A000  a unit's contribution has no bound
        └── UnboundedValues     0A000  the values of a sum have no bounds
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from dpsql.amounts import NO_CHARGE

# Where in the SQL text something stands, for errors that point at it.

_MIN_COLUMNS = 20
"""Columns of a line that are shown, however narrow the screen."""


@dataclass(frozen=True)
class Span:
    """Characters `start` to `end` (exclusive) of the statement, counted from 0."""

    start: int
    end: int

    def union(self, other: Span | None) -> Span:
        if other is None:
            return self
        return Span(min(self.start, other.start), max(self.end, other.end))


def format_caret(text: str, span: Span, width: int | None = None) -> str:
    """The line that holds the span's start, with a caret below, as psql prints it; cut to a width around the caret."""
    start = min(span.start, len(text))
    line_number = text.count("\n", 0, start) + 1
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line = text[line_start : line_end if line_end >= 0 else len(text)].replace("\t", " ")
    prefix, at = f"LINE {line_number}: ", start - line_start
    max_width = None if width is None else max(_MIN_COLUMNS, width - len(prefix) - 1)
    if max_width is not None and len(line) > max_width:
        line, at = _cut_line(line, at, max_width)
    return f"{prefix}{line}\n{' ' * (len(prefix) + at)}^"


def _cut_line(line: str, at: int, max_width: int) -> tuple[str, int]:
    """As much of the line as there is room for, with dots where it goes on; and where `at` stands in it.

    >>> _cut_line("SELECT a, b, c, d FROM somewhere", 13, 20)
    ('... a, b, c, d FR...', 10)
    """
    begin = max(0, min(at - max_width // 2, len(line) - max_width))
    shown = list(line[begin : begin + max_width])
    if begin > 0:
        shown[:3] = "..."
    if begin + max_width < len(line):
        shown[-3:] = "..."
    return "".join(shown), at - begin


class Warning(builtins.Warning):
    """What there is to say about an answer; `cursor.messages` holds them."""


class Error(Exception):
    """An error with the fields that PostgreSQL gives its own."""

    default_sqlstate: ClassVar[str] = "XX000"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        span: Span | None = None,
        sqlstate: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.span = span
        self.sqlstate = sqlstate or self.default_sqlstate
        self.statement: str | None = None
        self.place: str | None = None
        """Where the statement stands, if it stands in a file: its name and line."""
        self.charge = NO_CHARGE
        """What the statement had been charged when it failed: it stands, and is not charged again."""

    @property
    def position(self) -> int | None:
        """The 1-based character at which the trouble starts, as PostgreSQL counts."""
        return None if self.span is None else self.span.start + 1

    def __str__(self) -> str:
        return self.format_text()

    def format_text(self, width: int | None = None) -> str:
        """For a screen of so many columns: the line that it points into is cut to what is around the caret."""
        lines = [self.message if self.place is None else f"{self.place}: {self.message}"]
        if self.statement is not None and self.span is not None:
            lines.append(format_caret(self.statement, self.span, width))
        if self.detail:
            lines.append(f"DETAIL:  {self.detail}")
        if self.hint:
            lines.append(f"HINT:  {self.hint}")
        return "\n".join(lines)


@contextmanager
def relocate_errors(statement: str, offset: int) -> Iterator[None]:
    """Around what is asked about a statement that starts at `offset` of another: errors point into the whole."""
    try:
        yield
    except Error as error:
        if error.span is not None:
            start, end = error.span.start + offset, error.span.end + offset
            error.span = Span(start, end) if start >= 0 else None  # of what was put in front, and not written
        error.statement = statement
        raise


class InterfaceError(Error):
    """The library is used in a way that it does not allow: a closed cursor, a wrong argument, a missing package."""

    default_sqlstate = "08000"


class DatabaseError(Error):
    """Something is wrong with the statement, the data, the account or the engine."""


class DataError(DatabaseError):
    """A released value does not fit where it is used."""

    default_sqlstate = "22000"


class OperationalError(DatabaseError):
    """The statement is well, but cannot be answered now: no budget, no time, other data, a failed engine."""

    default_sqlstate = "58000"


class BudgetExceeded(OperationalError):
    """An account's budget does not cover the charge; nothing was charged."""

    default_sqlstate = "53400"


class AccountSuspended(OperationalError):
    """Too many runs failed; the owner resumes the account."""

    default_sqlstate = "57P03"


class QueryCanceled(OperationalError):
    """The client, or its time, has ended the wait. The run goes on, and `charge` stands."""

    default_sqlstate = "57014"


class EngineFailed(OperationalError):
    """The engine failed after the charge; one fixed text, whatever the reason."""

    default_sqlstate = "58000"


class StaleData(OperationalError):
    """The data is not the registered version."""

    default_sqlstate = "55000"


class AccessDenied(OperationalError):
    """There is no such user, or none was named."""

    default_sqlstate = "28000"


class IntegrityError(DatabaseError):
    """The ledger is not the one that the schema needs."""

    default_sqlstate = "23000"


class InternalError(DatabaseError):
    """A bug of ours."""

    default_sqlstate = "XX000"


class ProgrammingError(DatabaseError):
    """The statement, a parameter or the schema is wrong."""

    default_sqlstate = "42000"


class InvalidSyntax(ProgrammingError):
    """The statement cannot be read."""

    default_sqlstate = "42601"


class UnknownTable(ProgrammingError):
    """There is no such table."""

    default_sqlstate = "42P01"


class UnknownColumn(ProgrammingError):
    """There is no such column."""

    default_sqlstate = "42703"


class AmbiguousColumn(ProgrammingError):
    """Several tables have the column."""

    default_sqlstate = "42702"


class UnknownFunction(ProgrammingError):
    """There is no such function over private rows."""

    default_sqlstate = "42883"


class GroupingError(ProgrammingError):
    """A private column stands outside of an aggregate."""

    default_sqlstate = "42803"


class TypeMismatch(ProgrammingError):
    """A value is not of the type that is needed."""

    default_sqlstate = "42804"


class InvalidParameter(ProgrammingError):
    """A setting or parameter is out of its range."""

    default_sqlstate = "22023"


class LimitExceeded(ProgrammingError):
    """The statement is too long or too deep."""

    default_sqlstate = "54000"


class SchemaError(ProgrammingError):
    """The schema is wrong."""

    default_sqlstate = "F0000"


class NotSupportedError(DatabaseError):
    """dpsql does not answer this: it would not be private, or is not there yet."""

    default_sqlstate = "0A000"


class Unsupported(NotSupportedError):
    """SQL that dpsql does not, or not yet, answer."""


class NotPrivate(NotSupportedError):
    """It would reveal single rows."""


class UnboundedContribution(NotSupportedError):
    """A unit's contribution has no bound."""


class UnboundedValues(NotSupportedError):
    """The values of a sum have no bounds."""
