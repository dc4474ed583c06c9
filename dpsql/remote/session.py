"""A session whose statements run on a server: to a connection, it is as a local one.

What is charged, how good an answer is and what is left, the server tells (`pgwire.meta`). Nothing is asked twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dpsql.errors import Error, InvalidSyntax, OperationalError
from dpsql.figures import NOTHING, Charge
from dpsql.pgwire.meta import Told, Wishes, read_json
from dpsql.plain import from_plain
from dpsql.remote.exchange import Heard, ask, ask_json
from dpsql.remote.link import Link
from dpsql.remote.values import bound, reader
from dpsql.session import (
    Answer,
    Balance,
    Explanation,
    NamedFunction,
    NamedSetting,
    NamedTable,
    OutputColumn,
    Parameter,
    Receipt,
    Ticket,
)

EXPLAIN = "EXPLAIN (FORMAT JSON) "
PATIENCE = 5.0
"""Seconds after Ctrl-C for the server to let go of a statement; after that the connection is left."""
LONG = 3600.0
"""Seconds of a wait that has no end of its own: with a time it can be interrupted."""

_TABLES: Any = tuple[NamedTable, ...]
_FUNCTIONS: Any = tuple[NamedFunction, ...]
_SETTINGS: Any = tuple[NamedSetting, ...]


class RemoteSession:
    """One login. Threads may share it: their statements go one after another."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lock = threading.RLock()
        self._turning = threading.Lock()  # between the statement under way and who cancels it
        self._ticket: Ticket | None = None
        self._heard = Heard()
        self._charged = NOTHING
        self._left: str | None = None
        self._known: dict[str, Any] = {}

    # --- who and where -----------------------------------------------------------------------------------------------

    @property
    def user(self) -> str | None:
        return self._link.login.server.user

    @property
    def database(self) -> str:
        return self._link.login.server.database

    @property
    def place(self) -> str:
        """Where the server is and how it is reached, for people."""
        return f"{self._link.address}, {self._link.secured}"

    @property
    def lost(self) -> bool:
        """Whether the connection broke: nothing can be asked any more."""
        return self._link.broken

    def close(self) -> None:
        self._link.close()

    # --- statements --------------------------------------------------------------------------------------------------

    def execute(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        *,
        settings: Mapping[str, str] | None = None,
        ticket: Ticket | None = None,
    ) -> Answer:
        """One statement, as a local session has it. `settings`, and whether it must be free, hold for it alone."""
        ticket = ticket or Ticket()
        with self._lock, _about(sql):
            self._charged, self._heard = NOTHING, Heard()
            try:
                values = bound(parameters)
                wishes = Wishes(tuple((settings or {}).items()), ticket.free)
                heard = self._run(lambda heard: ask(self._link, sql, values, wishes, heard), ticket)
                self._left = heard.told.left or self._left
                if sql.lstrip()[:6].lower().startswith(("create", "drop")):
                    self._known.clear()  # there are other names now
                return _answer(heard)
            finally:  # Ctrl-C, too, leaves a charge behind
                self._charged = self._heard.told.charge

    @property
    def charged(self) -> Charge:
        """What the last statement was charged, as far as the server has told."""
        return self._charged

    @property
    def progress(self) -> tuple[int, int]:
        return self._heard.told.progress

    def cancel(self, ticket: Ticket | None = None) -> None:
        """From any thread; one whose turn has yet to come is not sent.

        Under a lock that the end of a statement needs too: so no cancel is for the one after it.
        """
        with self._turning:
            running = self._ticket
            if ticket is not None:
                ticket.canceled = True
            if running is not None and ticket in (None, running):
                running.canceled = True
                self._link.cancel()

    def explain(
        self, sql: str, parameters: Sequence[Parameter] = (), *, settings: Mapping[str, str] | None = None
    ) -> Explanation:
        with self._lock, _about(sql):
            values, wishes = bound(parameters), Wishes(tuple((settings or {}).items()))
            told = self._run(
                lambda heard: ask(self._link, EXPLAIN + sql, values, wishes, heard, len(EXPLAIN)), Ticket()
            )
            explained: Explanation = _read(Explanation, _cell(told))
            return explained

    def budget(self) -> Balance:
        balance: Balance = self._told(Balance, "SHOW BUDGET (FORMAT JSON)")
        return balance

    def left_text(self) -> str | None:
        """As the server told it with the last answer that had something to tell of it."""
        return self._left

    def tables(self) -> tuple[NamedTable, ...]:
        found: tuple[NamedTable, ...] = self._once(_TABLES, "SHOW TABLES (FORMAT JSON)")
        return found

    def functions(self) -> tuple[NamedFunction, ...]:
        found: tuple[NamedFunction, ...] = self._once(_FUNCTIONS, "SHOW FUNCTIONS (FORMAT JSON)")
        return found

    def named_settings(self) -> tuple[NamedSetting, ...]:
        found: tuple[NamedSetting, ...] = self._once(_SETTINGS, "SHOW SETTINGS (FORMAT JSON)")
        return found

    # --- inside ------------------------------------------------------------------------------------------------------

    def _once(self, kind: Any, command: str) -> Any:
        """It is of the schema, of the server and of what the account has made here: the first two stay as they are."""
        with self._lock:
            if command not in self._known:
                self._known[command] = self._told(kind, command)
            return self._known[command]

    def _told(self, kind: Any, command: str) -> Any:
        with self._lock:
            return _read(kind, ask_json(self._link, command))

    def _run(self, work: Callable[[Heard], Heard], ticket: Ticket) -> Heard:
        """The wire belongs to another thread than the one that Ctrl-C interrupts: no reply is left half read."""
        with self._turning:
            ticket.check(0)
            self._ticket, self._heard = ticket, Heard()
        try:
            if threading.current_thread() is not threading.main_thread():
                return work(self._heard)
            return self._wait(work, ticket)
        finally:
            with self._turning:
                self._ticket = None

    def _wait(self, work: Callable[[Heard], Heard], ticket: Ticket) -> Heard:
        trouble: list[BaseException] = []
        heard, ended = self._heard, threading.Event()

        def run() -> None:
            try:
                work(heard)
            except BaseException as error:
                trouble.append(error)
            finally:
                ended.set()

        threading.Thread(target=run, name="dpsql-remote", daemon=True).start()
        try:
            while not ended.wait(LONG):
                pass
        except KeyboardInterrupt:
            self._leave(ended, ticket)
            raise
        if trouble:
            raise trouble[0]
        return heard

    def _leave(self, ended: threading.Event, ticket: Ticket) -> None:
        """Let go of the statement under way: the server does at once. Where it does not, or on a second Ctrl-C, the
        connection is given up."""
        try:
            self.cancel(ticket)
            ended.wait(PATIENCE)
        finally:
            if not ended.is_set():
                self._link.broken = True
                self._link.close()


@contextmanager
def _about(sql: str) -> Iterator[None]:
    """Errors tell the statement that they are about."""
    try:
        yield
    except Error as error:
        if error.statement is None:
            error.statement = sql
        raise


def _read(kind: Any, plain: Any) -> Any:
    try:
        return from_plain(kind, plain)
    except ValueError:
        raise _not_understood() from None


def _not_understood() -> OperationalError:
    return OperationalError(
        "the server tells it in another form", hint="Is it of another version of dpsql?", sqlstate="08P01"
    )


def _cell(heard: Heard) -> Any:
    try:
        (cell,) = heard.rows[0]
        return read_json(cell or b"")
    except (ValueError, IndexError):
        return None


def _answer(heard: Heard) -> Answer:
    told = heard.told
    if heard.tag is None:
        raise InvalidSyntax("the statement is empty", hint="Write a SELECT, for example: SELECT COUNT(*) FROM visits")
    columns = tuple(OutputColumn(*column) for column in told.columns)
    return Answer(
        columns,
        _rows(columns, heard),
        [told.bars_of(row) for row in range(told.rows)],
        notices=told.notices,
        command=told.command or heard.tag,
        receipts=tuple(Receipt(*receipt) for receipt in told.receipts),
    )


def _rows(columns: Sequence[OutputColumn], heard: Heard) -> list[tuple[Any, ...]]:
    read, told = reader(columns), heard.told
    try:
        rows = [read(cells) for cells in heard.rows]
    except ValueError:
        raise _not_understood() from None
    exact = [place for place, column in enumerate(columns) if column.type is None]
    if exact:
        rows = [_with_exact(row, place, exact, told) for place, row in enumerate(rows)]
    return rows


def _with_exact(row: tuple[Any, ...], place: int, exact: Sequence[int], told: Told) -> tuple[Any, ...]:
    """Values of a type that the wire has none for are as the server told them beside the row."""
    cells = list(row)
    for column in exact:
        cells[column] = told.values.get((place, column), cells[column])
    return tuple(cells)
