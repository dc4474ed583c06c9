"""A connection for someone at a prompt: what the prompt shows is there at once, and the rest is opened behind it.

Importing the engine and the compiler takes longer than all else until a prompt is drawn; and nobody types a statement
in that time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from dpsql.errors import InterfaceError
from dpsql.interfaces.dbapi.url import SchemaAddress, Setting, read_address
from dpsql.interfaces.remote.url import ServerAddress
from dpsql.session.preload import preload_modules
from dpsql.session.status_preview import StatusPreview, preview_status

if TYPE_CHECKING:
    from dpsql.interfaces.dbapi.connection import Connection
    from dpsql.interfaces.remote.connection import PasswordPrompt, ServerConnection


def open_in_background(
    where: str | os.PathLike[str], user: str | None = None, ask: PasswordPrompt | None = None, /, **settings: Setting
) -> BackgroundConnection:
    """As `dpsql.connect`, but behind a prompt: `start_opening` starts to open it, `wait_for_connection` waits for it.

    The schema and who asks are checked here. Where the data must be registered first, it is opened here too: that takes
    time and may be refused, and no prompt should stand above it. So is a server logged in to; `ask` asks a person for
    a password that stands nowhere.
    """
    address = read_address(where, user, settings)
    if isinstance(address, ServerAddress):
        server_connection = _log_in_to_server(address, ask)
        return BackgroundConnection(
            server_connection, import_module("dpsql.interfaces.remote.session").preview_remote_status(server_connection)
        )
    status_preview = preview_status(address.path, address.user)
    background = BackgroundConnection(address, status_preview)
    if status_preview is None:
        background.wait_for_connection()
    return background


def open_connection(
    where: str | os.PathLike[str], user: str | None = None, ask: PasswordPrompt | None = None, /, **settings: Setting
) -> Connection:
    """As `dpsql.connect`, for a command line: `ask` asks a person for a password that stands nowhere."""
    address, connection_module = read_address(where, user, settings), import_module("dpsql.interfaces.dbapi.connection")
    if isinstance(address, ServerAddress):
        connection: Connection = connection_module.connect_to_server(_log_in_to_server(address, ask))
    else:
        connection = connection_module.connect(address.path, address.user, **address.settings)
    return connection


def _log_in_to_server(address: ServerAddress, ask: PasswordPrompt | None) -> ServerConnection:
    """Imported here, since opening a schema need not wait for the import of the remote client."""
    server_connection: ServerConnection = import_module("dpsql.interfaces.remote.connection").open_server_connection(
        address, ask
    )
    return server_connection


class BackgroundConnection:
    """A connection that is opened on a thread of its own; what opening raises, `wait_for_connection` raises."""

    def __init__(self, address: SchemaAddress | ServerConnection, status_preview: StatusPreview | None) -> None:
        self.user = address.user
        self.status_preview = status_preview
        """What is known beforehand; None where the connection was opened at once."""
        self._address = address
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()  # a join that Ctrl-C interrupts takes the thread for one that has ended
        self._abandoned = False
        self._connection: Connection | None = None
        self._error: BaseException | None = None

    def start_opening(self, failed: Callable[[BaseException], None] | None = None) -> None:
        """Start opening; `failed` is called on the thread with what it raises. Beginning again does nothing."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run_opening, args=(failed,), name="dpsql-open", daemon=True
                )
                self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether `wait_for_connection` would answer without waiting."""
        return self._ended.is_set()

    def wait_for_connection(self) -> Connection:
        """The opened connection, or the error that it ended with; waits for it, and begins it where nobody has."""
        self.start_opening()
        self._ended.wait()
        if self._error is not None:
            raise self._error
        if self._connection is None:
            raise InterfaceError("the connection is closed", hint="Connect again.")
        return self._connection

    def close(self) -> None:
        """Leave: what is being opened is left as soon as that can be done, what is open is closed."""
        self._abandoned = True
        if self._thread is not None:
            self._ended.wait()  # Python ends badly while the driver is at work
        if self._connection is not None:
            self._connection.close()
        elif not isinstance(self._address, SchemaAddress):
            self._address.close()

    def _run_opening(self, failed: Callable[[BaseException], None] | None) -> None:
        try:
            for _ in preload_modules():
                if self._abandoned:
                    return
            address, connection_module = self._address, import_module("dpsql.interfaces.dbapi.connection")
            if isinstance(address, SchemaAddress):
                self._connection = connection_module.connect(address.path, address.user, **address.settings)
            else:
                self._connection = connection_module.connect_to_server(address)
        except BaseException as error:
            self._error = error
            if failed is not None:
                failed(error)
        finally:
            self._ended.set()
