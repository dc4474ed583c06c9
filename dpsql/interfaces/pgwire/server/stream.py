"""One client's bytes on the event loop: in and out, in clear or through TLS.

Law: buffers are bounded, in both directions. A client that sends faster than it is served is not read from for a
while; one that reads too slowly is waited for, and then disconnected.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dpsql.errors import OperationalError

# TLS between bytes of the network and bytes of the protocol, without I/O; and the server's certificate.
#
# TLS 1.2 and later. The certificate can be changed while the server runs: who connects after `load_certificate` gets
# the new one.

ALPN_PROTOCOL = "postgresql"
HANDSHAKE_FIRST_BYTE = 0x16
"""Of a TLS handshake: a client that begins with TLS at once sends it."""
_READ_BYTES = 256 * 1024

# The hash of a certificate's signature, by its object identifier in DER (RFC 5929: MD5 and SHA-1 become SHA-256).
_SIGNATURE_HASHES = {
    "2a864886f70d010104": "sha256",  # md5WithRSA
    "2a864886f70d010105": "sha256",  # sha1WithRSA
    "2a864886f70d01010b": "sha256",
    "2a864886f70d01010c": "sha384",
    "2a864886f70d01010d": "sha512",
    "2a8648ce3d0401": "sha256",  # ecdsa-with-SHA1
    "2a8648ce3d040302": "sha256",
    "2a8648ce3d040303": "sha384",
    "2a8648ce3d040304": "sha512",
}


@dataclass(frozen=True)
class Certificate:
    """`hash_certificate` is what logins are bound to; None for signatures whose hash is not known, such as
    Ed25519's."""

    context: ssl.SSLContext
    end_point: bytes | None


def load_certificate(certificate: Path, key: Path | None) -> Certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols([ALPN_PROTOCOL])
    try:
        context.load_cert_chain(certificate, key)
        text = certificate.read_text(encoding="ascii", errors="replace")
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or "it cannot be read"
        raise OperationalError(
            f'the certificate "{certificate}" cannot be used', detail=f"{reason}.".replace("..", "."),
            hint="It needs a certificate in PEM, and its key, without a password, in the same file or by --tls-key.",
        ) from None  # fmt: skip
    return Certificate(context, hash_certificate(text))


def hash_certificate(pem: str) -> bytes | None:
    """The hash of the first certificate, `tls-server-end-point` of RFC 5929."""
    start, end = pem.find("-----BEGIN CERTIFICATE-----"), pem.find("-----END CERTIFICATE-----")
    if start < 0 or end < start:
        return None
    der = ssl.PEM_cert_to_DER_cert(pem[start:end] + "-----END CERTIFICATE-----")
    name = _SIGNATURE_HASHES.get(_signature_algorithm(der))
    return None if name is None else hashlib.new(name, der).digest()


def _signature_algorithm(der: bytes) -> str:
    """The object identifier of the signature: Certificate is SEQUENCE {what is signed, SEQUENCE {identifier …}, …}."""
    inside, _ = _find_der_content(der, 0)
    _, after = _find_der_content(der, inside)
    algorithm, _ = _find_der_content(der, after)
    identifier, end = _find_der_content(der, algorithm)
    return der[identifier:end].hex()


def _find_der_content(der: bytes, at: int) -> tuple[int, int]:
    """Where the content of the element at `at` begins and ends."""
    size, start = der[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        size, start = int.from_bytes(der[start : start + count], "big"), start + count
    return start, start + size


class TlsConnection:
    """One connection's TLS. `receive_data` takes bytes of the network and gives those of the client; what is to be sent
    comes from `outgoing`."""

    def __init__(self, certificate: Certificate) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = certificate.context.wrap_bio(self._in, self._out, server_side=True)
        self.end_point = certificate.end_point
        self.ready = False
        self.ended = False

    @property
    def alpn(self) -> str | None:
        return self._tls.selected_alpn_protocol()

    @property
    def version(self) -> str | None:
        return self._tls.version()

    def receive_data(self, data: bytes) -> bytes:
        """Raises ssl.SSLError where the other side does not speak TLS."""
        self._in.write(data)
        if not self.ready:
            try:
                self._tls.do_handshake()
                self.ready = True
            except ssl.SSLWantReadError:
                return b""
        parts = []
        try:
            while part := self._tls.read(_READ_BYTES):
                parts.append(part)
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self.ended = True
        return b"".join(parts)

    def send_data(self, data: bytes) -> None:
        self._tls.write(data)

    def close(self) -> None:
        """Send TLS's closing alert, so that the client sees that nothing was cut off."""
        with suppress(ssl.SSLError):
            self._tls.unwrap()

    def take_outgoing(self) -> bytes:
        return self._out.read()


HIGH_WATER_BYTES = 256 * 1024
"""Bytes in a direction beyond which the other side waits."""
KEEPALIVE_OPTIONS = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
"""A client whose machine is gone is noticed after two minutes."""


class ClientGone(Exception):
    """The client has left, or does not read: there is nobody to tell."""


class ClientStream(asyncio.Protocol):
    """`on_connected` is called once the connection stands; `on_input_ended` when the client has said all that it will
    say, and may still listen; `on_disconnected` when it has gone."""

    def __init__(self, on_connected: Callable[[ClientStream], None]) -> None:
        self._on_connected = on_connected
        self.on_disconnected: Callable[[], None] | None = None
        self.on_input_ended: Callable[[], None] | None = None
        self.gone = False
        self.input_ended = False
        self.address = "local"
        self._transport: asyncio.Transport
        self._data = bytearray()
        self._data_arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._paused = False
        self.tls: TlsConnection | None = None

    # --- asyncio's side ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self.address = str(peer[0])
            _enable_keepalive(transport.get_extra_info("socket"))
        self._on_connected(self)

    def data_received(self, data: bytes) -> None:
        if self.tls is not None:
            try:
                data = self.tls.receive_data(data)
            except ssl.SSLError:
                self._flush_tls()  # the alert
                self.abort()
                return
            self._flush_tls()
        self._data += data
        self._data_arrived.set()
        if self.tls is not None and self.tls.ended:
            self._end_input()
        elif len(self._data) > HIGH_WATER_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """Keep the transport open: what is on its way to the client may still arrive, and what it asked is answered."""
        self._end_input()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._mark_gone()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _end_input(self) -> None:
        if not self.input_ended:
            self.input_ended = True
            self._data_arrived.set()
            if self.on_input_ended is not None:
                self.on_input_ended()

    def _mark_gone(self) -> None:
        if not self.gone:
            self.gone = True
            self._data_arrived.set()
            self._writable.set()
            if self.on_disconnected is not None:
                self.on_disconnected()

    # --- our side ----------------------------------------------------------------------------------------------------

    @property
    def is_local(self) -> bool:
        """Whether the client came by a Unix socket: no network is in between."""
        return self.address == "local"

    @property
    def buffered_bytes(self) -> int:
        """Bytes that came and were not read."""
        return len(self._data)

    async def peek_byte(self) -> int:
        """The first byte that was not read."""
        while not self._data:
            await self._wait_for_data()
        return self._data[0]

    async def read(self, max_bytes: int = HIGH_WATER_BYTES) -> bytes:
        """The bytes that were received: at least one, at most `max_bytes`."""
        while not self._data:
            await self._wait_for_data()
        data = bytes(self._data[:max_bytes])
        del self._data[:max_bytes]
        if self._paused and len(self._data) <= HIGH_WATER_BYTES:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def _wait_for_data(self) -> None:
        if self.gone or self.input_ended:
            raise ClientGone
        self._data_arrived.clear()
        await self._data_arrived.wait()

    def write(self, data: bytes) -> None:
        if self.gone and self._transport.is_closing():
            raise ClientGone
        if self.tls is None:
            self._transport.write(data)
            return
        try:
            self.tls.send_data(data)
        except ssl.SSLError:
            raise ClientGone from None
        self._flush_tls()

    def _flush_tls(self) -> None:
        if self.tls is not None and (out := self.tls.take_outgoing()):
            self._transport.write(out)

    @property
    def is_writable(self) -> bool:
        """Whether the client has read nearly all that was written."""
        return self._writable.is_set()

    async def drain(self, seconds: float | None) -> None:
        """Wait until the client has read nearly all; after so many seconds it counts as gone."""
        if not self._writable.is_set():
            try:
                await asyncio.wait_for(self._writable.wait(), seconds)
            except TimeoutError:
                self.abort()
                raise ClientGone from None

    async def start_tls(self, certificate: Certificate) -> None:
        """The bytes that came so far are TLS's; who sent others before the handshake must have been refused."""
        self.tls = TlsConnection(certificate)
        early = bytes(self._data)
        self._data.clear()
        if early:
            self.data_received(early)
        while not self.tls.ready:
            await self._wait_for_data()

    def close(self) -> None:
        """After what was written has been sent."""
        if self.tls is not None and not self._transport.is_closing():
            self.tls.close()
            self._flush_tls()
        self._transport.close()
        self._mark_gone()

    def abort(self) -> None:
        """Close the stream at once, without sending what is left."""
        self._transport.abort()
        self._mark_gone()


def _enable_keepalive(client_socket: socket.socket | None) -> None:
    if client_socket is None:
        return
    client_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE_OPTIONS:
        if (option := getattr(socket, name, None)) is not None:
            client_socket.setsockopt(socket.IPPROTO_TCP, option, value)
