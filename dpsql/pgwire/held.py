"""What a client holds by name: prepared statements, and portals, which are statements with values.

Law: memory is bounded, whatever a client prepares and leaves open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dpsql.errors import Error, LimitExceeded, OperationalError, ProgrammingError
from dpsql.pgwire.meta import MARK, Wishes
from dpsql.pgwire.results import Columns
from dpsql.pgwire.wire_types import WireType
from dpsql.session import CopyCommand, DeallocateCommand, OutputColumn, Parameter, read_command

MOST_STATEMENTS = 1_000
MOST_PORTALS = 1_000
MOST_BYTES = 64 * 1024 * 1024
"""Of texts and values that are held."""
MOST_ROWS = 2_000_000
"""Of portals that were not read to their end."""


_BLANK = r"(?:\s++|--[^\n]*+\n|/\*(?:[^*]++|\*(?!/))*+\*/)*+"
_HEAD = re.compile(_BLANK + r"(?:copy|deallocate)\b", re.IGNORECASE)


def read_held(sql: str) -> CopyCommand | DeallocateCommand | None:
    """The commands that are carried out here and not by the session: both are about the wire."""
    command = read_command(sql) if _HEAD.match(sql) else None
    return command if isinstance(command, CopyCommand | DeallocateCommand) else None


@dataclass(frozen=True)
class Statement:
    """`sql` began at `offset` of what was parsed. It takes `used` of the parameters whose `types` are told.

    `unknown`: why its columns are not known before its values are; there are some.
    """

    sql: str
    offset: int
    types: tuple[WireType, ...] = ()
    used: int = 0
    columns: tuple[OutputColumn, ...] = ()
    command: str = ""  # none: an empty statement
    copy: CopyCommand | None = None
    unknown: Error | None = None

    @property
    def gives_rows(self) -> bool:
        return bool(self.columns) or self.unknown is not None

    @property
    def varies(self) -> bool:
        """Whether its columns depend on values."""
        return bool(self.used) and self.command == "SELECT"

    @property
    def size(self) -> int:
        return len(self.sql) * 2 + 200


@dataclass(eq=False)
class Portal:
    """`rows` are there once it was executed; those before `at` were given out."""

    statement: Statement
    parameters: tuple[Parameter, ...]
    columns: Columns
    size: int
    wishes: Wishes = field(default_factory=Wishes)
    rows: Sequence[Sequence[Any]] | None = None
    at: int = 0
    command: str = ""
    answered: tuple[OutputColumn, ...] = ()
    formats: tuple[int, ...] = ()  # of its columns, as they were asked for

    @property
    def left(self) -> int:
        return 0 if self.rows is None else len(self.rows) - self.at


class Held:
    def __init__(self, own: bool = False) -> None:
        """`own`: of our own client, whose names tell what holds for one statement."""
        self._own = own
        self.statements: dict[str, Statement] = {}
        self.portals: dict[str, Portal] = {}

    # --- statements --------------------------------------------------------------------------------------------------

    def check_new_statement(self, name: str) -> None:
        if self._lasts(name) and name in self.statements:
            raise ProgrammingError(f'prepared statement "{name}" already exists', sqlstate="42P05")

    def add_statement(self, name: str, statement: Statement) -> None:
        self.check_new_statement(name)
        others = len(self.statements) - (name in self.statements)
        if others >= MOST_STATEMENTS:
            raise LimitExceeded(f"there are {MOST_STATEMENTS} prepared statements already", hint="Close some of them.")
        self._check_size(statement.size)
        self.statements[name] = statement

    def statement(self, name: str) -> Statement:
        found = self.statements.get(name)
        if found is None:
            named = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise ProgrammingError(f"{named} does not exist", sqlstate="26000")
        return found

    def close_statement(self, name: str) -> None:
        """And the portals that were made of it."""
        gone = self.statements.pop(name, None)
        if gone is not None:
            self.portals = {at: portal for at, portal in self.portals.items() if portal.statement is not gone}

    # --- portals -----------------------------------------------------------------------------------------------------

    def add_portal(self, name: str, portal: Portal) -> None:
        if self._lasts(name) and name in self.portals:
            raise ProgrammingError(f'cursor "{name}" already exists', sqlstate="42P03")
        self.portals.pop(name, None)
        if len(self.portals) >= MOST_PORTALS:
            raise LimitExceeded(f"there are {MOST_PORTALS} open portals already", hint="Close some of them.")
        self._check_size(portal.size)
        self.portals[name] = portal

    def portal(self, name: str) -> Portal:
        found = self.portals.get(name)
        if found is None:
            raise ProgrammingError(f'portal "{name}" does not exist', sqlstate="34000")
        return found

    def check_rows(self) -> None:
        """After a portal has got its rows."""
        if sum(portal.left for portal in self.portals.values()) > MOST_ROWS:
            raise OperationalError(
                f"open portals hold more than {MOST_ROWS:,} rows", hint="Read or close some of them.", sqlstate="53200"
            )

    def close_portals(self) -> None:
        """A transaction has ended, and takes them along."""
        self.portals.clear()

    def drop_unnamed(self) -> None:
        self.statements.pop("", None)
        self.portals.pop("", None)

    def clear(self) -> None:
        self.statements.clear()
        self.portals.clear()

    def _check_size(self, more: int) -> None:
        held = sum(one.size for one in self.statements.values()) + sum(one.size for one in self.portals.values())
        if held + more > MOST_BYTES:
            raise OperationalError("prepared statements and portals hold too much", hint="Close some of them.",
                                   sqlstate="53200")  # fmt: skip

    def _lasts(self, name: str) -> bool:
        """A name that must be closed before it is used again."""
        return bool(name) and not (self._own and name.startswith(MARK))
