"""One client's bytes on the event loop: in and out, in clear or through TLS.

Law: what is held of a client is bounded, in both directions. Who sends faster than it is read is not read from; who
reads slower than it is written to is waited for, and then let go.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

from dpsql.pgwire.tls import Certificate, TlsConnection

HIGH_WATER_BYTES = 256 * 1024
"""Bytes in a direction beyond which the other side waits."""
KEEPALIVE_OPTIONS = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
"""A client whose machine is gone is noticed after two minutes."""


class ClientGone(Exception):
    """The client has left, or does not read: there is nobody to tell."""


class ClientStream(asyncio.Protocol):
    """`met` is called once the connection stands; `left` when the client is seen to have gone."""

    def __init__(self, on_connected: Callable[[ClientStream], None]) -> None:
        self._met = on_connected
        self.left: Callable[[], None] | None = None
        self.gone = False
        self.address = "local"
        self._transport: asyncio.Transport
        self._data = bytearray()
        self._came = asyncio.Event()
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
        self._met(self)

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
        self._came.set()
        if self.tls is not None and self.tls.ended:
            self._mark_gone()
        elif len(self._data) > HIGH_WATER_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """What is on its way to the client may still arrive."""
        self._mark_gone()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._mark_gone()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _mark_gone(self) -> None:
        if not self.gone:
            self.gone = True
            self._came.set()
            self._writable.set()
            if self.left is not None:
                self.left()

    # --- our side ----------------------------------------------------------------------------------------------------

    @property
    def is_local(self) -> bool:
        """By a socket in a folder: nobody is between us."""
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
        """What has come: at least a byte, and no more than `most`."""
        while not self._data:
            await self._wait_for_data()
        data = bytes(self._data[:max_bytes])
        del self._data[:max_bytes]
        if self._paused and len(self._data) <= HIGH_WATER_BYTES:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def _wait_for_data(self) -> None:
        if self.gone:
            raise ClientGone
        self._came.clear()
        await self._came.wait()

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

    async def drain(self, seconds: float | None) -> None:
        """Until the client has read nearly all; who has not after so many seconds is let go."""
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
        """At once."""
        self._transport.abort()
        self._mark_gone()


def _enable_keepalive(client_socket: socket.socket | None) -> None:
    if client_socket is None:
        return
    client_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE_OPTIONS:
        if (option := getattr(socket, name, None)) is not None:
            client_socket.setsockopt(socket.IPPROTO_TCP, option, value)
