"""Sockets to a server, with TLS as `sslmode` asks for it.

disable       no TLS
prefer        TLS where the server has it; nothing is verified, and someone between could take it away
require       TLS, or no connection; nothing is verified, unless `sslrootcert` names whom to trust
verify-ca     the certificate is signed by who is trusted
verify-full   and it is the host's
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

from dpsql.errors import OperationalError
from dpsql.interfaces.pgwire.protocol.client_codec import SSL_REQUEST
from dpsql.interfaces.pgwire.server.stream import hash_certificate
from dpsql.interfaces.remote.url import ServerAddress

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
