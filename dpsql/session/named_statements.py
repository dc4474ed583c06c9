"""A connection's prepared statements and cursors, as in PostgreSQL, and its mechanisms, by name.

A prepared statement is text: what it asks is compiled again with the values, which may narrow bounds. A cursor's query
is asked and charged where it is declared; fetching only goes through its rows. Cursors and mechanisms have their names
in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, assert_never

from dpsql.compiler.parse.cursor_commands import (
    CloseCommand,
    CopyCommand,
    DeallocateCommand,
    DeclareCommand,
    ExecuteCommand,
    FetchCommand,
    FetchDirection,
    NamedStatementCommand,
    PrepareCommand,
)
from dpsql.compiler.parse.mechanism_commands import DeclareMechanismCommand, ShowMechanismsCommand, SubmitQuery
from dpsql.compiler.parse.parameters import Parameter
from dpsql.errors import LimitExceeded, OperationalError, ProgrammingError, Unsupported, relocate_errors
from dpsql.session.mechanisms.registry import MechanismRegistry
from dpsql.session.query import QueryExecutor
from dpsql.session.result import StatementResult, build_command_result
from dpsql.types import Type

MAX_NAMES = 1_000
"""Names of each kind."""
MAX_PREPARED_BYTES = 64 * 1024 * 1024
"""Of the texts of prepared statements, in memory."""
MAX_CURSOR_ROWS = 2_000_000
"""Of all cursors together."""


@dataclass
class _NamedCursor:
    """`at` is the row that was fetched last, from 1; 0 is before the first, one more than there are after the last."""

    answer: StatementResult
    hold: bool
    at: int = 0


class DescribedStatement(Protocol):
    """A statement before its values are known."""

    @property
    def command(self) -> str: ...


class StatementExecutor(Protocol):
    """One statement of a session: what it asks, and what its names are held beside."""

    @property
    def in_transaction(self) -> bool: ...
    @property
    def queries(self) -> QueryExecutor: ...
    def prepare(self, sql: str, types: Sequence[Type | None]) -> DescribedStatement: ...


class NamedStatements:
    """The prepared statements and cursors of one connection, by name."""

    def __init__(self) -> None:
        self._prepared: dict[str, PrepareCommand] = {}
        self._cursors: dict[str, _NamedCursor] = {}
        self.mechanisms = MechanismRegistry()

    def execute_command(
        self, command: NamedStatementCommand, sql: str, parameters: Sequence[Parameter], executor: StatementExecutor
    ) -> StatementResult:
        match command:
            case PrepareCommand():
                with relocate_errors(sql, command.offset):
                    # Free: what is wrong with it is told here.
                    if executor.prepare(command.sql, command.types).command != "SELECT":
                        raise Unsupported("PREPARE takes a query", hint="PREPARE s AS SELECT …")
                self.add_prepared(command)
                return build_command_result("PREPARE")
            case ExecuteCommand(name, arguments):
                return executor.queries.execute_nested(self.get_prepared(name).sql, arguments)
            case DeallocateCommand(name):
                return build_command_result(self.deallocate(name))
            case DeclareCommand(name, inner, offset, hold):
                self._check_new_cursor(name, hold or executor.in_transaction)
                with relocate_errors(sql, offset):
                    answer = executor.queries.execute_nested(inner, parameters)
                self._add_cursor(name, answer, hold)
                return replace(answer, columns=(), rows=[], errors=[], command="DECLARE CURSOR")
            case FetchCommand():
                return self.fetch_rows(command)
            case CloseCommand(name):
                return build_command_result(self.close_named(name))
            case DeclareMechanismCommand(name=name):
                self._check_name_free(name)
                return self.mechanisms.declare_mechanism(executor.queries, command)
            case SubmitQuery():
                return self.mechanisms.submit_query(executor.queries, command, sql, parameters)
            case ShowMechanismsCommand(kind):
                return self.mechanisms.list_mechanisms(executor.queries, kind)
            case CopyCommand():
                hint = "Ask the query itself, and fetch its rows."
                raise Unsupported("COPY is for connections to a server", hint=hint)
            case _:
                assert_never(command)

    # --- prepared statements -----------------------------------------------------------------------------------------

    def add_prepared(self, command: PrepareCommand) -> None:
        if command.name in self._prepared:
            raise ProgrammingError(f'prepared statement "{command.name}" already exists', sqlstate="42P05")
        if len(self._prepared) >= MAX_NAMES:
            raise LimitExceeded(f"there are {MAX_NAMES} prepared statements already", hint="DEALLOCATE ALL drops them.")
        if sum(map(_statement_size, self._prepared.values())) + _statement_size(command) > MAX_PREPARED_BYTES:
            raise OperationalError(
                "prepared statements hold too much memory", hint="DEALLOCATE ALL drops them.", sqlstate="53200"
            )
        self._prepared[command.name] = command

    def get_prepared(self, name: str) -> PrepareCommand:
        if name not in self._prepared:
            raise ProgrammingError(f'prepared statement "{name}" does not exist', sqlstate="26000")
        return self._prepared[name]

    def deallocate(self, name: str | None) -> str:
        """The word that tells of it. None: all."""
        if name is None:
            self._prepared.clear()
            return "DEALLOCATE ALL"
        self.get_prepared(name)
        del self._prepared[name]
        return "DEALLOCATE"

    # --- cursors -----------------------------------------------------------------------------------------------------

    def _check_new_cursor(self, name: str, will_last: bool) -> None:
        """Refuse a cursor that cannot be opened, before its query is run."""
        if not will_last:
            raise ProgrammingError(
                "DECLARE CURSOR can only be used in transaction blocks",
                hint="BEGIN first, or DECLARE … CURSOR WITH HOLD FOR …",
                sqlstate="25P01",
            )
        self._check_name_free(name)
        if name in self.mechanisms:
            raise ProgrammingError(f'"{name}" is a threshold or a holdout already', sqlstate="42P03")
        if len(self._cursors) >= MAX_NAMES:
            raise LimitExceeded(f"there are {MAX_NAMES} cursors already", hint="CLOSE ALL closes them.")

    def _check_name_free(self, name: str) -> None:
        if name in self._cursors:
            raise ProgrammingError(f'cursor "{name}" already exists', sqlstate="42P03")

    def _add_cursor(self, name: str, answer: StatementResult, hold: bool) -> None:
        if sum(len(cursor.answer.rows) for cursor in self._cursors.values()) + len(answer.rows) > MAX_CURSOR_ROWS:
            raise LimitExceeded(
                f"the cursors hold more than {MAX_CURSOR_ROWS:,} rows", hint="CLOSE those that are done."
            )
        self._cursors[name] = _NamedCursor(answer, hold)

    def get_cursor_result(self, name: str) -> StatementResult:
        return self._get_cursor(name).answer

    def fetch_rows(self, command: FetchCommand) -> StatementResult:
        """The rows that it goes over, in the order in which it does; without charge or notices of their own."""
        cursor = self._get_cursor(command.name)
        positions, cursor.at = _fetch_range(command, cursor.at, len(cursor.answer.rows))
        rows, errors = cursor.answer.rows, cursor.answer.errors
        fetched = replace(cursor.answer.copy_uncharged(), command="FETCH", notices=(), receipts=(), warnings=(),
                          rows=[rows[position - 1] for position in positions],
                          errors=[errors[position - 1] for position in positions])  # fmt: skip
        if not command.move:
            return fetched
        return replace(fetched, columns=(), rows=[], errors=[], command=f"MOVE {len(positions)}")

    def close_named(self, name: str | None) -> str:
        if name is None:
            self._cursors.clear()
            self.mechanisms.close_all()
            return "CLOSE CURSOR ALL"
        if name in self.mechanisms:
            return self.mechanisms.close(name)
        self._get_cursor(name)
        del self._cursors[name]
        return "CLOSE CURSOR"

    def change_role(self) -> None:
        """A cursor's rows are of who has paid for them, and so is a mechanism: its name tells why it has ended."""
        self._cursors.clear()
        self.mechanisms.end_all("the role of its connection has changed")

    def end_transaction(self) -> None:
        """Cursors end with it, but for those that hold. A mechanism's charge and answers are not undone, nor is it."""
        self._cursors = {name: cursor for name, cursor in self._cursors.items() if cursor.hold}

    def discard_all(self) -> None:
        self._prepared.clear()
        self._cursors.clear()
        self.mechanisms.close_all()

    def _get_cursor(self, name: str) -> _NamedCursor:
        if name not in self._cursors:
            raise ProgrammingError(f'cursor "{name}" does not exist', sqlstate="34000")
        return self._cursors[name]


def _statement_size(command: PrepareCommand) -> int:
    """As Python may hold it: up to four bytes of a character."""
    return (len(command.sql) + len(command.name)) * 4 + 200


def _fetch_range(command: FetchCommand, at: int, rows: int) -> tuple[range, int]:
    """The places of rows that a FETCH goes over, from 1, and where it ends."""
    count = command.count
    match command.way:
        case FetchDirection.FORWARD if count == 0:
            return (range(at, at + 1) if 1 <= at <= rows else range(0)), at
        case FetchDirection.FORWARD:
            last = rows if count is None else min(at + count, rows)
            within = count is not None and at + count <= rows
            return range(at + 1, last + 1), last if within else rows + 1
        case FetchDirection.BACKWARD:
            first = 1 if count is None else max(at - count, 1)
            within = count is not None and at - count >= 1
            return range(at - 1, first - 1, -1), first if within else 0
        case FetchDirection.ABSOLUTE | FetchDirection.RELATIVE:
            step = count or 0
            target = at + step if command.way is FetchDirection.RELATIVE else step if step >= 0 else rows + 1 + step
            exists = 1 <= target <= rows
            return (range(target, target + 1) if exists else range(0)), min(max(target, 0), rows + 1)
