"""A client's prepared statements and portals (statements with values), by name.

Law: memory is bounded, whatever a client prepares and leaves open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dpsql.errors import Error, LimitExceeded, OperationalError, ProgrammingError
from dpsql.interfaces.pgwire.backend_session.results import ResultColumns
from dpsql.interfaces.pgwire.protocol.extension import NAME_PREFIX, StatementOptions
from dpsql.interfaces.pgwire.protocol.types import WireType
from dpsql.session.session import (
    CloseCommand,
    CopyCommand,
    DeallocateCommand,
    FetchCommand,
    FetchDirection,
    OutputColumn,
    Parameter,
    read_command,
)

MAX_STATEMENTS = 1_000
MAX_PORTALS = 1_000
MAX_STORED_BYTES = 64 * 1024 * 1024
"""Of texts and values that are held."""
MAX_OPEN_ROWS = 2_000_000
"""Of portals that were not read to their end."""


_BLANK = r"(?:\s++|--[^\n]*+\n|/\*(?:[^*]++|\*(?!/))*+\*/)*+"
_WIRE_COMMAND = re.compile(_BLANK + r"(?:copy|deallocate|fetch|move|close)\b", re.IGNORECASE)


WireCommand = CopyCommand | DeallocateCommand | FetchCommand | CloseCommand


def read_wire_command(sql: str) -> WireCommand | None:
    """The commands that are carried out here and not by the session, as far as they concern the protocol: portals are
    cursors too."""
    command = read_command(sql) if _WIRE_COMMAND.match(sql) else None
    return command if isinstance(command, WireCommand) else None


@dataclass(frozen=True)
class WireStatement:
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
    def returns_rows(self) -> bool:
        return bool(self.columns) or self.unknown is not None

    @property
    def has_varying_columns(self) -> bool:
        """Whether its columns depend on values."""
        return bool(self.used) and self.command == "SELECT"

    @property
    def size(self) -> int:
        return len(self.sql) * 2 + 200


@dataclass(eq=False)
class Portal:
    """`rows` is set once it was executed; those before `at` were sent."""

    statement: WireStatement
    parameters: tuple[Parameter, ...]
    columns: ResultColumns
    size: int
    options: StatementOptions = field(default_factory=StatementOptions)
    rows: Sequence[Sequence[Any]] | None = None
    at: int = 0
    command: str = ""
    answered: tuple[OutputColumn, ...] = ()
    formats: tuple[int, ...] = ()  # of its columns, as they were asked for

    @property
    def remaining_rows(self) -> int:
        return 0 if self.rows is None else len(self.rows) - self.at

    def take_rows(self, count: int | None) -> Sequence[Sequence[Any]]:
        """The next rows, or all that are left; it goes behind them."""
        rows = self.rows or ()
        end = len(rows) if count is None else min(len(rows), self.at + count)
        taken, self.at = rows[self.at : end], end
        return taken


class PortalStore:
    def __init__(self, own_client: bool = False) -> None:
        """`own_client`: of our own client, whose names tell what holds for one statement."""
        self._own_client = own_client
        self.statements: dict[str, WireStatement] = {}
        self.portals: dict[str, Portal] = {}

    # --- statements --------------------------------------------------------------------------------------------------

    def check_new_statement(self, name: str) -> None:
        if self._is_durable_name(name) and name in self.statements:
            raise ProgrammingError(f'prepared statement "{name}" already exists', sqlstate="42P05")

    def add_statement(self, name: str, statement: WireStatement) -> None:
        self.check_new_statement(name)
        others = len(self.statements) - (name in self.statements)
        if others >= MAX_STATEMENTS:
            raise LimitExceeded(f"there are {MAX_STATEMENTS} prepared statements already", hint="Close some of them.")
        self._check_size(statement.size)
        self.statements[name] = statement

    def get_statement(self, name: str) -> WireStatement:
        statement = self.statements.get(name)
        if statement is None:
            description = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise ProgrammingError(f"{description} does not exist", sqlstate="26000")
        return statement

    def close_statement(self, name: str) -> None:
        """Close a statement, and the portals that were bound from it."""
        statement = self.statements.pop(name, None)
        if statement is not None:
            self.portals = {
                portal_name: portal for portal_name, portal in self.portals.items() if portal.statement is not statement
            }

    # --- portals -----------------------------------------------------------------------------------------------------

    def find_cursor(self, command: WireCommand | None) -> Portal | None:
        """The portal that a FETCH or MOVE names, as a cursor that goes forward only."""
        portal = self.portals.get(command.name) if isinstance(command, FetchCommand) and command.name else None
        if portal is not None and isinstance(command, FetchCommand) and command.way is not FetchDirection.FORWARD:
            raise ProgrammingError("cursor can only scan forward", sqlstate="55000",
                                   hint="Declare it with SCROLL option to enable backward scan.")  # fmt: skip
        return portal

    def add_portal(self, name: str, portal: Portal) -> None:
        if self._is_durable_name(name) and name in self.portals:
            raise ProgrammingError(f'cursor "{name}" already exists', sqlstate="42P03")
        self.portals.pop(name, None)
        if len(self.portals) >= MAX_PORTALS:
            raise LimitExceeded(f"there are {MAX_PORTALS} open portals already", hint="Close some of them.")
        self._check_size(portal.size)
        self.portals[name] = portal

    def get_portal(self, name: str) -> Portal:
        portal = self.portals.get(name)
        if portal is None:
            raise ProgrammingError(f'portal "{name}" does not exist', sqlstate="34000")
        return portal

    def check_open_rows(self) -> None:
        """After a portal has got its rows."""
        if sum(portal.remaining_rows for portal in self.portals.values()) > MAX_OPEN_ROWS:
            raise OperationalError(
                f"open portals hold more than {MAX_OPEN_ROWS:,} rows",
                hint="Read or close some of them.",
                sqlstate="53200",
            )

    def close_portals(self) -> None:
        """Close all portals: their transaction has ended."""
        self.portals.clear()

    def drop_unnamed(self) -> None:
        self.statements.pop("", None)
        self.portals.pop("", None)

    def clear(self) -> None:
        self.statements.clear()
        self.portals.clear()

    def _check_size(self, added_bytes: int) -> None:
        stored_bytes = sum(item.size for item in self.statements.values()) + sum(
            item.size for item in self.portals.values()
        )
        if stored_bytes + added_bytes > MAX_STORED_BYTES:
            raise OperationalError("prepared statements and portals hold too much", hint="Close some of them.",
                                   sqlstate="53200")  # fmt: skip

    def _is_durable_name(self, name: str) -> bool:
        """A name that must be closed before it is used again."""
        return bool(name) and not (self._own_client and name.startswith(NAME_PREFIX))
