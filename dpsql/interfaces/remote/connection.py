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
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Self

from dpsql.base.scram import ClientChannelBinding, ScramClient, ServerNotProven
from dpsql.errors import Error, InterfaceError, OperationalError
from dpsql.interfaces.pgwire.protocol import client_codec as client
from dpsql.interfaces.pgwire.protocol import extension as meta
from dpsql.interfaces.pgwire.protocol.client_codec import SSL_REQUEST, BackendDecoder, BackendReply
from dpsql.interfaces.pgwire.protocol.framing import ProtocolViolation
from dpsql.interfaces.pgwire.server.login import generate_login_nonce
from dpsql.interfaces.pgwire.server.stream import hash_certificate
from dpsql.interfaces.remote.errors import connection_lost_error, read_error
from dpsql.interfaces.remote.url import DEFAULT_TIMEOUT_SECONDS, PasswordPrompt, ServerAddress, resolve_password

__all__ = ["PasswordPrompt", "open_server_connection"]

# Sockets to a server, with TLS as `sslmode` asks for it.
#
#     disable       no TLS
#     prefer        TLS where the server has it; nothing is verified, and someone between could take it away
#     require       TLS, or no connection; nothing is verified, unless `sslrootcert` names whom to trust
#     verify-ca     the certificate is signed by who is trusted
#     verify-full   and it is the host's

CONNECTION_FAILED = "08001"
"""The SQLSTATE of a connection that could not be made."""


@dataclass(frozen=True)
class OpenedSocket:
    """A socket, and the hash of the server's certificate that a login is bound to; None without TLS."""

    socket: socket.socket
    end_point: bytes | None = None


def open_socket(address: ServerAddress) -> OpenedSocket:
    """Connected, and with TLS if that was asked for; within the address's timeout, which holds until it is changed."""
    plain = _connect_socket(address)
    try:
        return _start_tls(plain, address)
    except BaseException:
        plain.close()
        raise


def _connect_socket(address: ServerAddress) -> socket.socket:
    timeout = address.timeout or None
    try:
        if address.is_local:
            client_socket = socket.socket(socket.AF_UNIX)
            client_socket.settimeout(timeout)
            client_socket.connect(f"{address.host}/.s.PGSQL.{address.port}")
            return client_socket
        client_socket = socket.create_connection((address.host, address.port), timeout)
        client_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a server that is gone is found out
        return client_socket
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "no answer"
        raise OperationalError(
            f"there is no connection to {address}: {reason}",
            hint="Is the server up, and are host and port right?",
            sqlstate=CONNECTION_FAILED,
        ) from None


def _start_tls(plain: socket.socket, address: ServerAddress) -> OpenedSocket:
    if address.sslmode == "disable" or address.is_local:
        return OpenedSocket(plain)
    try:
        plain.sendall(SSL_REQUEST)
        answer = plain.recv(1)  # no more: what comes behind it belongs to the handshake
    except OSError:
        raise _no_tls_error(address, "it does not answer") from None
    if answer == b"N" and address.sslmode == "prefer":
        return OpenedSocket(plain)
    if answer != b"S":
        raise _no_tls_error(address, "it has no TLS" if answer == b"N" else "it is no PostgreSQL server")
    try:
        secure = make_tls_context(address).wrap_socket(plain, server_hostname=address.host)
    except ssl.SSLCertVerificationError as error:
        raise _no_tls_error(address, f"its certificate is not trusted: {error.verify_message}") from None
    except (OSError, ssl.SSLError, ValueError):
        raise _no_tls_error(address, "the handshake failed") from None
    certificate = secure.getpeercert(binary_form=True)
    end_point_hash = None if certificate is None else hash_certificate(ssl.DER_cert_to_PEM_cert(certificate))
    return OpenedSocket(secure, end_point_hash)


def make_tls_context(address: ServerAddress) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    mode = address.sslmode
    if mode == "require" and address.sslrootcert is not None:
        mode = "verify-ca"  # as PostgreSQL's clients: who names a root wants it to be looked at
    context.check_hostname = mode == "verify-full"
    context.verify_mode = ssl.CERT_REQUIRED if mode in ("verify-ca", "verify-full") else ssl.CERT_NONE
    if context.verify_mode is ssl.CERT_REQUIRED:
        _load_trusted_roots(context, address.sslrootcert)
    return context


def _load_trusted_roots(context: ssl.SSLContext, roots: str | None) -> None:
    """The certificates of a file, or with `system`, or where nothing is named, those of the machine."""
    if roots in (None, "system"):
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(roots)
    except (OSError, ssl.SSLError):
        raise OperationalError(
            f'the certificates of sslrootcert, "{roots}", cannot be read', sqlstate=CONNECTION_FAILED
        ) from None


def _no_tls_error(address: ServerAddress, reason: str) -> OperationalError:
    return OperationalError(f"there is no TLS connection to {address}: {reason}", sqlstate=CONNECTION_FAILED)


# From a socket to a server that answers: startup, login, and whether it is one of dpsql at all.

OK, SASL, CONTINUE, FINAL = 0, 10, 11, 12
"""Codes of Authentication messages. Those that ask for the password itself, or for a hash of it, are not answered."""

Send = Callable[[bytes], None]
Receive = Callable[[], client.BackendReply]


@dataclass(frozen=True)
class LoginResult:
    """What a server told at login; `process` and `secret` are what a cancel names."""

    server: meta.ServerInfo
    process: int = 0
    secret: bytes = field(default=b"", repr=False)


def log_in_to_server(
    address: ServerAddress, channel: ClientChannelBinding, send: Send, receive: Receive
) -> LoginResult:
    """Until the server is ready for statements."""
    send(client.encode_startup(_startup_parameters(address)))
    _authenticate_with_scram(address, channel, send, receive)
    status: dict[str, str] = {}
    process, secret = 0, b""
    while True:
        match receive():
            case client.ParameterStatus(name, value):
                status[name] = value
            case client.BackendKeyData(number, key):
                process, secret = number, key
            case client.ErrorResponse(fields):
                raise read_error(fields)
            case client.ReadyForQuery():
                return LoginResult(_require_dpsql_server(address, status), process, secret)
            case _:
                continue


def _startup_parameters(address: ServerAddress) -> dict[str, str]:
    identity = {"user": address.user, **({} if address.database is None else {"database": address.database})}
    fixed = {"client_encoding": "UTF8", meta.STARTUP_PARAMETER: "on"}
    return {**address.settings, **identity, **fixed}


def _authenticate_with_scram(
    address: ServerAddress, channel: ClientChannelBinding, send: Send, receive: Receive
) -> None:
    login: ScramClient | None = None
    proven = False
    while True:
        match receive():
            case client.Authentication(code=0):
                if not proven:
                    raise ServerNotProven(
                        f"{address} did not prove that it knows the password",
                        detail="A dpsql server does: this is none, or somebody stands between.",
                    )
                return
            case client.Authentication(code=10) as offered if login is None:
                mechanism = channel.choose_mechanism(offered.mechanisms)
                login = ScramClient(_require_password(address), channel, mechanism, generate_login_nonce())
                send(client.encode_sasl_initial(mechanism, login.first_message))
            case client.Authentication(code=11, data=challenge) if login is not None:
                send(client.encode_sasl_response(login.answer_challenge(challenge)))
            case client.Authentication(code=12, data=last) if login is not None:
                login.check_server_signature(last)
                proven = True
            case client.Authentication():
                raise ServerNotProven(
                    f"{address} asks for the password itself, which is never sent",
                    detail="A dpsql server asks by SCRAM-SHA-256 only.",
                )
            case client.ErrorResponse(fields):
                raise read_error(fields)
            case client.ReadyForQuery():
                raise ServerNotProven(f"{address} let nobody log in")
            case _:
                continue


def _require_password(address: ServerAddress) -> str:
    if address.password is None:
        raise InterfaceError("there is no password for the login")
    return address.password


def _require_dpsql_server(address: ServerAddress, status: dict[str, str]) -> meta.ServerInfo:
    try:
        return meta.decode_server_info(status[meta.SERVER_STATUS])
    except (KeyError, ValueError):
        version = status.get("server_version")
        what = "another server" if version is None else f"PostgreSQL {version}"
        raise OperationalError(
            f"there is no dpsql server at {address}",
            detail=f"It is {what}.",
            hint="Here a connection to `dpsql serve` is opened; the data behind it is named in its schema.",
            sqlstate="08004",
        ) from None


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
        self._asked = False
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
        self._asked = True
        try:
            self._send_data(data)
            while not isinstance(reply := self._next_reply(), client.ReadyForQuery):
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
                cancel_socket.sendall(client.encode_cancel_request(login.process, login.secret))
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
            self._socket.sendall(client.TERMINATE)
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
                raise connection_lost_error(under_way=self._asked)
            self._replies.receive_data(data)
        return reply


# Connecting to a server: from an address to a link that is logged in.


def open_server_connection(address: ServerAddress, prompt: PasswordPrompt | None = None) -> ServerConnection:
    """`ask` asks a person for a password that stands nowhere; None where there is nobody."""
    return ServerConnection.open(resolve_password(address, os.environ, prompt))
