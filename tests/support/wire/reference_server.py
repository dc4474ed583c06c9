"""PostgreSQL itself as the server of the matrix: on a TCP port, with passwords."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.optional_dependencies import missing
from tests.support.postgres import SETTINGS, Server, find_binaries, start
from tests.support.wire.hospital import Place, fill_postgres


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def running_reference(*settings: str) -> Iterator[tuple[Place, Server]]:
    binaries = find_binaries()
    if binaries is None:
        missing("PostgreSQL", "make setup")
    port = free_port()
    given = ("listen_addresses=127.0.0.1", "timezone=UTC", "fsync=off", *settings)
    server = start(binaries, (*SETTINGS[1:], *given), port=port)
    try:
        fill_postgres(server.database(), server.folder)
        yield Place("127.0.0.1", port, private=False), server
    finally:
        server.stop()
