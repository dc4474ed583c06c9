"""What Superset really sends: a relay between it and the server that writes down each statement.

It says no to TLS itself, so that it can read; passwords do not pass it in the clear, since the server asks for SCRAM.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

ENCRYPTION = {80877103, 80877104}  # SSLRequest, GSSENCRequest
CANCEL = 80877102


@dataclass
class Relay:
    """Its port, and all statements since it began, in order, of all connections."""

    port: int
    statements: list[str] = field(default_factory=list)
    startups: list[dict[str, str]] = field(default_factory=list)

    def since(self, start: int) -> list[str]:
        return self.statements[start:]


@contextmanager
def recorded(host: str, port: int) -> Iterator[Relay]:
    listener = socket.create_server(("127.0.0.1", 0))
    relay = Relay(listener.getsockname()[1])
    threading.Thread(target=accept, args=(listener, (host, port), relay), daemon=True).start()
    try:
        yield relay
    finally:
        listener.close()


def accept(listener: socket.socket, server: tuple[str, int], relay: Relay) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=carry, args=(client, server, relay), daemon=True).start()


def carry(client: socket.socket, server: tuple[str, int], relay: Relay) -> None:
    """One connection: what the client says is read and passed on, what the server says is passed on only."""
    with client, suppress(OSError, EOFError):
        startup = read_startup(client)
        with socket.create_connection(server) as upstream:
            threading.Thread(target=pour, args=(upstream, client), daemon=True).start()
            upstream.sendall(startup)
            if int.from_bytes(startup[4:8], "big") == CANCEL:
                return
            relay.startups.append(startup_parameters(startup))
            while True:
                kind, body = read_message(client)
                if kind == b"Q":
                    relay.statements.append(body[:-1].decode())
                elif kind == b"P":
                    relay.statements.append(body.split(b"\0")[1].decode())
                upstream.sendall(kind + (len(body) + 4).to_bytes(4, "big") + body)


def read_startup(client: socket.socket) -> bytes:
    while True:
        size = exactly(client, 4)
        body = exactly(client, int.from_bytes(size, "big") - 4)
        if int.from_bytes(body[:4], "big") not in ENCRYPTION:
            return size + body
        client.sendall(b"N")


def startup_parameters(startup: bytes) -> dict[str, str]:
    words = startup[8:].decode().split("\0")
    return dict(zip(words[::2], words[1::2], strict=False))


def read_message(client: socket.socket) -> tuple[bytes, bytes]:
    kind, size = exactly(client, 1), exactly(client, 4)
    return kind, exactly(client, int.from_bytes(size, "big") - 4)


def exactly(client: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        more = client.recv(size - len(got))
        if not more:
            raise EOFError
        got += more
    return got


def pour(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR)
