"""What a connection holds by name: prepared statements and cursors as in PostgreSQL, and mechanisms under way.

A prepared statement is text: what it asks is compiled again with the values, which may narrow bounds. A cursor's query
is asked and charged where it is declared; fetching only goes through its rows. Cursors and mechanisms have their names
in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, assert_never

from dpsql.answer import Answer, done
from dpsql.errors import LimitExceeded, OperationalError, ProgrammingError, Unsupported, part_of
from dpsql.interactive.named import Mechanisms
from dpsql.queries import Queries
from dpsql.sql.asked_commands import AskCommand, DeclareMechanismCommand, ShowMechanismsCommand
from dpsql.sql.copy_command import CopyCommand
from dpsql.sql.held_commands import (
    CloseCommand,
    DeallocateCommand,
    DeclareCommand,
    ExecuteCommand,
    FetchCommand,
    HeldCommand,
    PrepareCommand,
    Way,
)
from dpsql.sql.parameters import Parameter
from dpsql.types import Type

MOST = 1_000
"""Names of each kind."""
MOST_BYTES = 64 * 1024 * 1024
"""Of the texts of prepared statements, in memory."""
MOST_ROWS = 2_000_000
"""Of all cursors together."""


@dataclass
class _Cursor:
    """`at` is the row that was fetched last, from 1; 0 is before the first, one more than there are after the last."""

    answer: Answer
    hold: bool
    at: int = 0


class Known(Protocol):
    """A statement before its values are known."""

    @property
    def command(self) -> str: ...


class Desk(Protocol):
    """Who answers queries: a session."""

    @property
    def in_transaction(self) -> bool: ...
    @property
    def queries(self) -> Queries: ...
    def ask(self, sql: str, parameters: Sequence[Parameter]) -> Answer: ...
    def prepare(self, sql: str, types: Sequence[Type | None] = ()) -> Known: ...


class Held:
    """Of one connection."""

    def __init__(self) -> None:
        self._prepared: dict[str, PrepareCommand] = {}
        self._cursors: dict[str, _Cursor] = {}
        self.mechanisms = Mechanisms()

    def carry_out(self, command: HeldCommand, sql: str, parameters: Sequence[Parameter], desk: Desk) -> Answer:
        match command:
            case PrepareCommand():
                with part_of(sql, command.offset):
                    # Free: what is wrong with it is told here.
                    if desk.prepare(command.sql, command.types).command != "SELECT":
                        raise Unsupported("PREPARE takes a query", hint="PREPARE s AS SELECT …")
                self.prepare(command)
                return done("PREPARE")
            case ExecuteCommand(name, arguments):
                return desk.ask(self.prepared(name).sql, arguments)
            case DeallocateCommand(name):
                return done(self.deallocate(name))
            case DeclareCommand(name, inner, offset, hold):
                self._check_new(name, hold or desk.in_transaction)
                with part_of(sql, offset):
                    answer = desk.ask(inner, parameters)
                self._declare(name, answer, hold)
                return replace(answer, columns=(), rows=[], errors=[], command="DECLARE CURSOR")
            case FetchCommand():
                return self.fetch(command)
            case CloseCommand(name):
                return done(self.close(name))
            case DeclareMechanismCommand(name=name):
                self._check_free(name)
                return self.mechanisms.declare(desk.queries, command)
            case AskCommand():
                return self.mechanisms.ask(desk.queries, command, sql, parameters, desk.ask)
            case ShowMechanismsCommand(kind):
                return self.mechanisms.listed(desk.queries, kind)
            case CopyCommand():
                hint = "Ask the query itself, and fetch its rows."
                raise Unsupported("COPY is for connections to a server", hint=hint)
            case _:
                assert_never(command)

    # --- prepared statements -----------------------------------------------------------------------------------------

    def prepare(self, command: PrepareCommand) -> None:
        if command.name in self._prepared:
            raise ProgrammingError(f'prepared statement "{command.name}" already exists', sqlstate="42P05")
        if len(self._prepared) >= MOST:
            raise LimitExceeded(f"there are {MOST} prepared statements already", hint="DEALLOCATE ALL drops them.")
        if sum(map(_size, self._prepared.values())) + _size(command) > MOST_BYTES:
            raise OperationalError(
                "prepared statements hold too much memory", hint="DEALLOCATE ALL drops them.", sqlstate="53200"
            )
        self._prepared[command.name] = command

    def prepared(self, name: str) -> PrepareCommand:
        if name not in self._prepared:
            raise ProgrammingError(f'prepared statement "{name}" does not exist', sqlstate="26000")
        return self._prepared[name]

    def deallocate(self, name: str | None) -> str:
        """The word that tells of it. None: all."""
        if name is None:
            self._prepared.clear()
            return "DEALLOCATE ALL"
        self.prepared(name)
        del self._prepared[name]
        return "DEALLOCATE"

    # --- cursors -----------------------------------------------------------------------------------------------------

    def _check_new(self, name: str, will_last: bool) -> None:
        """Before its query is asked."""
        if not will_last:
            raise ProgrammingError(
                "DECLARE CURSOR can only be used in transaction blocks",
                hint="BEGIN first, or DECLARE … CURSOR WITH HOLD FOR …",
                sqlstate="25P01",
            )
        self._check_free(name)
        if name in self.mechanisms:
            raise ProgrammingError(f'"{name}" is a threshold or a holdout already', sqlstate="42P03")
        if len(self._cursors) >= MOST:
            raise LimitExceeded(f"there are {MOST} cursors already", hint="CLOSE ALL closes them.")

    def _check_free(self, name: str) -> None:
        if name in self._cursors:
            raise ProgrammingError(f'cursor "{name}" already exists', sqlstate="42P03")

    def _declare(self, name: str, answer: Answer, hold: bool) -> None:
        if sum(len(cursor.answer.rows) for cursor in self._cursors.values()) + len(answer.rows) > MOST_ROWS:
            raise LimitExceeded(f"the cursors hold more than {MOST_ROWS:,} rows", hint="CLOSE those that are done.")
        self._cursors[name] = _Cursor(answer, hold)

    def cursor(self, name: str) -> Answer:
        return self._cursor(name).answer

    def fetch(self, command: FetchCommand) -> Answer:
        """The rows that it goes over, in the order in which it does; without charge or notices of their own."""
        cursor = self._cursor(command.name)
        places, cursor.at = _way(command, cursor.at, len(cursor.answer.rows))
        rows, errors = cursor.answer.rows, cursor.answer.errors
        fetched = replace(cursor.answer.again(), command="FETCH", notices=(), receipts=(), warnings=(),
                          rows=[rows[place - 1] for place in places],
                          errors=[errors[place - 1] for place in places])  # fmt: skip
        if not command.move:
            return fetched
        return replace(fetched, columns=(), rows=[], errors=[], command=f"MOVE {len(places)}")

    def close(self, name: str | None) -> str:
        if name is None:
            self._cursors.clear()
            self.mechanisms.close_all()
            return "CLOSE CURSOR ALL"
        if name in self.mechanisms:
            return self.mechanisms.close(name)
        self._cursor(name)
        del self._cursors[name]
        return "CLOSE CURSOR"

    def change_role(self) -> None:
        """A cursor's rows are of who has paid for them, and so is a mechanism: its name tells why it has ended."""
        self._cursors.clear()
        self.mechanisms.end("the role of its connection has changed")

    def end_transaction(self) -> None:
        """Cursors end with it, but for those that hold. A mechanism's charge and answers are not undone, nor is it."""
        self._cursors = {name: one for name, one in self._cursors.items() if one.hold}

    def forget(self) -> None:
        self._prepared.clear()
        self._cursors.clear()
        self.mechanisms.close_all()

    def _cursor(self, name: str) -> _Cursor:
        if name not in self._cursors:
            raise ProgrammingError(f'cursor "{name}" does not exist', sqlstate="34000")
        return self._cursors[name]


def _size(command: PrepareCommand) -> int:
    """As Python may hold it: up to four bytes of a character."""
    return (len(command.sql) + len(command.name)) * 4 + 200


def _way(command: FetchCommand, at: int, rows: int) -> tuple[range, int]:
    """The places of rows that a FETCH goes over, from 1, and where it ends."""
    count = command.count
    match command.way:
        case Way.FORWARD if count == 0:
            return (range(at, at + 1) if 1 <= at <= rows else range(0)), at
        case Way.FORWARD:
            last = rows if count is None else min(at + count, rows)
            whole = count is not None and at + count <= rows
            return range(at + 1, last + 1), last if whole else rows + 1
        case Way.BACKWARD:
            first = 1 if count is None else max(at - count, 1)
            whole = count is not None and at - count >= 1
            return range(at - 1, first - 1, -1), first if whole else 0
        case Way.ABSOLUTE | Way.RELATIVE:
            step = count or 0
            wanted = at + step if command.way is Way.RELATIVE else step if step >= 0 else rows + 1 + step
            there = 1 <= wanted <= rows
            return (range(wanted, wanted + 1) if there else range(0)), min(max(wanted, 0), rows + 1)
