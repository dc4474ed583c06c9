"""A cursor: one statement's released rows, their error bars and what they were charged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dpsql.amounts import NO_CHARGE, CellError, Charge
from dpsql.errors import InterfaceError, ProgrammingError, Warning
from dpsql.interfaces.dbapi.dataframes import Frame, add_error_columns, to_arrow, to_pandas, to_polars
from dpsql.interfaces.dbapi.result import Answer
from dpsql.interfaces.dbapi.types import TypeCode
from dpsql.interfaces.dbapi.url import Setting, read_settings
from dpsql.session.session import (
    OutputColumn,
    Parameter,
    Receipt,
    StatementResult,
    check_placeholder_style,
    read_command,
    to_literals,
)

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from dpsql.interfaces.dbapi.connection import Connection

Row = tuple[Any, ...]
Description = tuple[str, TypeCode, None, None, int | None, int | None, bool | None]


class Cursor:
    """One statement at a time and its rows, as PEP 249 has it; besides, `loss`, `errors` and `notices` tell of it.

    Threads may share a connection, but each has cursors of its own.
    """

    arraysize: int = 1
    """How many rows `fetchmany` takes without an argument."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._answer: StatementResult | None = None
        self._loss = NO_CHARGE
        self._next = 0
        self._closed = False

    # --- PEP 249 -----------------------------------------------------------------------------------------------------

    def execute(
        self,
        operation: str,
        parameters: Sequence[Parameter] = (),
        *,
        settings: Mapping[str, Setting] | None = None,
        free: bool = False,
    ) -> Self:
        """Run one statement. `?`, or `$1`, in it stand for the parameters, which are values and never read as SQL.

        `settings`, such as {"epsilon": 0.1}, hold for this statement alone. With `free` it is answered only where that
        costs nothing, and else refused by BudgetExceeded: what is paid for, or follows from what is paid for, is free.
        """
        connection = self._require_open()
        check_statement(operation, parameters)
        setting_texts = read_settings(settings or {})
        self._answer, self._loss, self._next = None, NO_CHARGE, 0
        self._answer = connection._execute_statement(self, operation, parameters, setting_texts, free)
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Sequence[Parameter]]) -> None:
        """Run a command, such as SET, once for each of the parameters. Queries are refused, before any charge."""
        self._require_open()
        parameter_sets: list[Sequence[Parameter]] = []
        for raw_parameters in seq_of_parameters:
            check_statement(operation, raw_parameters)
            parameters = to_literals(raw_parameters)
            parameter_sets.append(parameters)
            if read_command(operation, parameters) is None:
                raise ProgrammingError(
                    "executemany is for statements without rows, and this is a query",
                    hint="Call execute for each of the parameters, or ask for all of them at once: GROUP BY …",
                )
        for bound in parameter_sets:
            self.execute(operation, bound)
        self._answer = None  # PEP 249: what has rows is not for executemany

    @property
    def connection(self) -> Connection:
        """The connection that the cursor asks."""
        return self._connection

    @property
    def description(self) -> list[Description] | None:
        """Name, type, display size, internal size, precision, scale, null_ok of each column; None without columns."""
        if self._answer is None or not self._answer.columns:
            return None
        return [_describe_column(column) for column in self._answer.columns]

    @property
    def rowcount(self) -> int:
        """How many rows the last query has; -1 where there was none."""
        return -1 if self._answer is None or not self._answer.columns else len(self._answer.rows)

    @property
    def rownumber(self) -> int | None:
        """The place, from 0, of the row that is fetched next; None without rows to fetch."""
        return None if self._answer is None or not self._answer.columns else self._next

    @property
    def lastrowid(self) -> None:
        """None: nothing is ever inserted."""
        return None

    @property
    def messages(self) -> list[tuple[type[Exception], Exception]]:
        """The notices of the last statement, as PEP 249 has them: pairs of `Warning` and a warning."""
        return [(Warning, Warning(notice)) for notice in self.notices]

    def fetchone(self) -> Row | None:
        """The next row; None after the last."""
        rows = self._take_rows(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next `size` rows, or `arraysize`; fewer where fewer are left."""
        row_count = self.arraysize if size is None else size
        if row_count < 0:
            raise InterfaceError("fetchmany takes a number of rows that is not negative")
        return self._take_rows(row_count)

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return self._take_rows(None)

    def scroll(self, value: int, mode: str = "relative") -> None:
        """Move to another row: by `value` rows, or to row `value`, from 0, where `mode` is "absolute"."""
        rows = self._require_rows().rows
        if mode not in ("relative", "absolute"):
            raise InterfaceError('the mode is "relative" or "absolute"')
        row_index = value + (self._next if mode == "relative" else 0)
        if not 0 <= row_index < max(len(rows), 1):
            raise IndexError(f"there is no row {row_index}: there are {len(rows)}, from 0")
        self._next = row_index

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Nothing is to be prepared: it does nothing."""
        self._require_open()

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Rows come whole: it does nothing."""
        self._require_open()

    def close(self) -> None:
        """Forget the rows; the connection stays open. Closing again does nothing."""
        self._closed, self._answer = True, None

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- beyond PEP 249 ----------------------------------------------------------------------------------------------

    @property
    def loss(self) -> Charge:
        """What the last statement was charged; nothing where all of it was paid for before.

        It is known also of a statement that failed or was canceled after its charge.
        """
        return self._loss

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The entries of the account by which the answer's releases were paid, now or before; keep them."""
        return () if self._answer is None else self._answer.receipts

    @property
    def errors(self) -> list[tuple[CellError | None, ...]]:
        """For each row, and each column in it, how far it may be off, or None where no noise is known.

        `stderr` is the noise's; from `low` to `high` reaches a 95 % interval. It includes `clipped`, how far units that
        were scaled down may have moved the answer: 0 where the statement scales none, None where it is not known.
        """
        return self._require_rows().errors

    @property
    def statusmessage(self) -> str | None:
        """The command of the last statement, and the number of its rows for a query: `SELECT 6`, `SET`, `SHOW`."""
        if self._answer is None:
            return None
        command = self._answer.command
        return f"{command} {len(self._answer.rows)}" if command == "SELECT" else command

    @property
    def notices(self) -> tuple[str, ...]:
        """What there is to say about the answer, for people."""
        return () if self._answer is None else self._answer.notices

    def answer(self) -> Answer:
        """All of the last statement's answer as one value, for notebooks, tables and charts: see `Answer`."""
        session_answer = self._answer
        if session_answer is None:
            raise ProgrammingError("there is no answer", hint="Execute a statement first.")
        connection = self._require_open()
        remaining = connection._remaining_budget_text() if session_answer.receipts else None
        codes = tuple(_type_code_of(column) for column in session_answer.columns)
        names = tuple(column.name for column in session_answer.columns)
        return Answer(
            names,
            codes,
            list(session_answer.rows),
            list(session_answer.errors),
            self._loss,
            session_answer.notices,
            session_answer.receipts,
            session_answer.command,
            remaining,
        )

    def fetch_arrow(self, *, errors: bool = False) -> pyarrow.Table:
        """The rows that are left, as an Arrow table; `errors` adds x_stderr, x_low… to each noisy x."""
        return to_arrow(self._fetch_frame(errors))

    def fetch_df(self, *, errors: bool = False) -> pandas.DataFrame:
        """The rows that are left, as a pandas data frame; `errors` adds x_stderr, x_low… to each noisy x."""
        return to_pandas(self._fetch_frame(errors))

    def fetch_pl(self, *, errors: bool = False) -> polars.DataFrame:
        """The rows that are left, as a polars data frame; `errors` adds x_stderr, x_low… to each noisy x."""
        return to_polars(self._fetch_frame(errors))

    # --- inside ------------------------------------------------------------------------------------------------------

    def _fetch_frame(self, errors: bool) -> Frame:
        answer, start = self._require_rows(), self._next
        names, types = tuple(c.name for c in answer.columns), tuple(c.type for c in answer.columns)
        frame = Frame(names, types, self._take_rows(None))
        return add_error_columns(frame, answer.errors[start:]) if errors else frame

    def _take_rows(self, count: int | None) -> list[Row]:
        answer = self._require_rows()
        rows = answer.rows[self._next : None if count is None else self._next + count]
        self._next += len(rows)
        return rows

    def _require_rows(self) -> StatementResult:
        self._require_open()
        if self._answer is None or not self._answer.columns:
            raise ProgrammingError("there are no rows to fetch", hint="Execute a SELECT first.")
        return self._answer

    def _require_open(self) -> Connection:
        if self._closed:
            raise InterfaceError("the cursor is closed", hint="Ask the connection for another one.")
        self._connection._require_session()
        return self._connection


def check_statement(operation: object, parameters: object) -> None:
    if not isinstance(operation, str):
        raise InterfaceError(f"a statement is text, not {type(operation).__name__}")
    if isinstance(parameters, Mapping):
        check_placeholder_style(operation)
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence):
        raise InterfaceError("parameters are a sequence, one value for each ?", hint='For example: ("f", 1980)')


def _type_code_of(column: OutputColumn) -> TypeCode:
    return TypeCode(column.type, column.spelling)


def _describe_column(column: OutputColumn) -> Description:
    type_ = column.type
    precision, scale = (None, None) if type_ is None else (type_.precision, type_.scale)
    return column.name, _type_code_of(column), None, None, precision, scale, None
