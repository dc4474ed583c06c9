"""The connection to a server: bytes out, replies in, one statement at a time.

Law: nothing is sent twice. A statement whose answer was lost may have been charged, and only its asker decides to ask
again.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Self

from dpsql.base.scram import ClientChannelBinding
from dpsql.errors import Error, OperationalError
from dpsql.interfaces.pgwire.protocol import client_codec
from dpsql.interfaces.pgwire.protocol.client_codec import BackendDecoder, BackendReply
from dpsql.interfaces.pgwire.protocol.framing import ProtocolViolation
from dpsql.interfaces.remote.errors import connection_lost_error
from dpsql.interfaces.remote.login import LoginResult, log_in_to_server
from dpsql.interfaces.remote.transport import CONNECTION_FAILED, OpenedSocket, open_socket
from dpsql.interfaces.remote.url import DEFAULT_TIMEOUT_SECONDS, PasswordPrompt, ServerAddress, resolve_password

__all__ = ["PasswordPrompt", "ServerConnection", "open_server_connection"]

_RECEIVE_BYTES = 256 * 1024
_MIN_TIMEOUT_SECONDS = 1e-6
"""Seconds: 0 would not wait at all, and tell it otherwise."""


class ServerConnection:
    """A connection to a server. One thread uses it at a time, but any thread may call `cancel` and `close`."""

    def __init__(self, address: ServerAddress, opened: OpenedSocket) -> None:
        self.address = address
        self.broken = False
        self._socket = opened.socket
        self._replies = BackendDecoder()
        self._closing = threading.Lock()
        self._closed = False
        self._statement_sent = False
        self._end = monotonic() + address.timeout if address.timeout else None
        channel = ClientChannelBinding(opened.end_point, address.channel_binding)
        self.login: LoginResult = log_in_to_server(address, channel, self._send_data, self._next_reply)
        self._end = None
        self._socket.settimeout(None)  # a statement takes as long as it takes; keep-alives find out a dead server

    @classmethod
    def open(cls, address: ServerAddress) -> Self:
        """Connect and log in."""
        opened = open_socket(address)
        try:
            return cls(address, opened)
        except ProtocolViolation as error:
            opened.socket.close()
            raise OperationalError(
                f"there is no dpsql server at {address}", detail=f"{error.message}.", sqlstate=CONNECTION_FAILED
            ) from None
        except BaseException:
            opened.socket.close()
            raise

    @property
    def user(self) -> str | None:
        return self.login.server.user

    @property
    def security_text(self) -> str:
        """Whether others on the way can read along, for people."""
        if isinstance(self._socket, ssl.SSLSocket):
            return f"with TLS ({self._socket.version() or 'ended'})"
        return "a socket of this machine" if self.address.is_local else "without TLS"

    def exchange_messages(self, data: bytes, on_reply: Callable[[BackendReply], None]) -> None:
        """Send messages that end in Sync, and pass on every reply until the server is ready again.

        An error of the wire, or one that `on_reply` raises, ends the connection.
        """
        if self.broken or self._closed:
            raise connection_lost_error(under_way=False)
        self._statement_sent = True
        try:
            self._send_data(data)
            while not isinstance(reply := self._next_reply(), client_codec.ReadyForQuery):
                on_reply(reply)
        except BaseException as error:
            self.broken = True
            self._close_socket()
            if isinstance(error, ProtocolViolation | ValueError):
                raise connection_lost_error(under_way=True) from None
            raise

    def cancel(self) -> None:
        """Ask the server, on another connection, to let go of the statement under way; wait until it has heard it.

        What fails is left: the statement goes on, and who waits for it goes on waiting.
        """
        login = self.login
        with suppress(OSError, Error):
            opened = open_socket(replace(self.address, timeout=self.address.timeout or DEFAULT_TIMEOUT_SECONDS))
            with opened.socket as cancel_socket:
                cancel_socket.sendall(client_codec.encode_cancel_request(login.process, login.secret))
                while cancel_socket.recv(_RECEIVE_BYTES):  # it says nothing, and hangs up
                    pass

    def close(self) -> None:
        """Say goodbye, if that can be done at once. Closing again does nothing."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        with suppress(OSError, ValueError):
            self._socket.settimeout(1.0)
            self._socket.sendall(client_codec.TERMINATE)
        self._close_socket()

    def _close_socket(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # who waits in another thread is let go
        with suppress(OSError):
            self._socket.close()

    def _send_data(self, data: bytes) -> None:
        with suppress(OSError):  # what the server said before it hung up is told by what comes next
            self._socket.sendall(data)

    def _next_reply(self) -> BackendReply:
        while (reply := self._replies.next_reply()) is None:
            try:
                if self._end is not None:  # of the whole login, whatever the server says meanwhile
                    self._socket.settimeout(max(self._end - monotonic(), _MIN_TIMEOUT_SECONDS))
                data = self._socket.recv(_RECEIVE_BYTES)
            except TimeoutError:
                raise OperationalError(f"{self.address} does not answer", sqlstate=CONNECTION_FAILED) from None
            except (OSError, ValueError):
                data = b""
            if not data:
                raise connection_lost_error(under_way=self._statement_sent)
            self._replies.receive_data(data)
        return reply


def open_server_connection(address: ServerAddress, prompt: PasswordPrompt | None = None) -> ServerConnection:
    """Connected and logged in; `prompt` asks a person for a password that stands nowhere, None: there is nobody."""
    return ServerConnection.open(resolve_password(address, os.environ, prompt))
