"""Messages to a conversation, or to a real PostgreSQL, and what comes back: the same statements for both."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path

from dpsql.interfaces.pgwire.backend_session.protocol_session import ProtocolSession
from dpsql.interfaces.pgwire.protocol import client_codec
from dpsql.interfaces.pgwire.protocol.framing import frame_message, pack_text
from dpsql.interfaces.pgwire.protocol.frontend import (
    Bind,
    Close,
    CopyDone,
    Describe,
    Execute,
    Flush,
    FrontendMessage,
    FunctionCall,
    Parse,
    SimpleQuery,
    Sync,
    Terminate,
)


def encode_query(sql: str) -> bytes:
    return frame_message(b"Q", pack_text(sql))


def encode_describe(kind: str, name: str = "") -> bytes:
    """`kind` is "S" for a statement, "P" for a portal."""
    return frame_message(b"D", kind.encode("ascii") + pack_text(name))


def encode_copy_fail(reason: str) -> bytes:
    return frame_message(b"f", pack_text(reason))


def to_bytes(message: FrontendMessage) -> bytes:
    """As a client sends it."""
    match message:
        case SimpleQuery(sql):
            return encode_query(sql)
        case Parse(name, sql, types):
            return client_codec.encode_parse(name, sql, types)
        case Bind(portal, statement, formats, values, results):
            return client_codec.encode_bind(portal, statement, values, formats, results)
        case Describe(kind, name):
            return encode_describe(kind, name)
        case Execute(portal, limit):
            return client_codec.encode_execute(portal, limit)
        case Close(kind, name):
            return client_codec.encode_close(kind, name)
        case Flush():
            return client_codec.FLUSH
        case Sync():
            return client_codec.SYNC
        case Terminate():
            return client_codec.TERMINATE
        case CopyDone():
            return client_codec.COPY_DONE
        case FunctionCall():
            return frame_message(b"F", b"\0\0\0\1\0\0\0\0\0\0")
        case _:
            raise AssertionError(message)


def read_all(data: bytes) -> list[client_codec.BackendReply]:
    replies = client_codec.BackendDecoder()
    replies.receive_data(data)
    found = []
    while (reply := replies.next_reply()) is not None:
        found.append(reply)
    assert replies.buffered_bytes == 0
    return found


def say(conversation: ProtocolSession, *messages: FrontendMessage) -> list[client_codec.BackendReply]:
    return read_all(b"".join(part for message in messages for part in conversation.handle_message(message)))


class Real:
    """A connection to a PostgreSQL that asks for no password, on a socket in a folder."""

    def __init__(self, folder: Path, database: str = "postgres", user: str = "postgres") -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(20)
        self._socket.connect(str(folder / ".s.PGSQL.5432"))
        self._replies = client_codec.BackendDecoder()
        self._socket.sendall(client_codec.encode_startup({"user": user, "database": database}))
        self.greeting = self._until_ready()

    def say(self, *messages: FrontendMessage) -> list[client_codec.BackendReply]:
        """Up to as many ReadyForQuery as these messages earn."""
        self._socket.sendall(b"".join(map(to_bytes, messages)))
        skipped = sum(isinstance(one, SimpleQuery | Sync | FunctionCall) for one in messages)
        return [reply for _ in range(skipped) for reply in self._until_ready()]

    def _until_ready(self) -> list[client_codec.BackendReply]:
        found: list[client_codec.BackendReply] = []
        while not found or not isinstance(found[-1], client_codec.ReadyForQuery):
            while (reply := self._replies.next_reply()) is None:
                data = self._socket.recv(65536)
                assert data, found
                self._replies.receive_data(data)
            found.append(reply)
        return found

    def close(self) -> None:
        self._socket.close()


def told(replies: Iterable[client_codec.BackendReply], positions: bool = True) -> list[object]:
    """What matters of replies: all but words for people."""
    found: list[object] = []
    for reply in replies:
        match reply:
            case client_codec.ErrorResponse(fields):
                found.append(("error", fields["S"], fields["C"], fields.get("P") if positions else None))
            case client_codec.NoticeResponse(fields):
                found.append(("notice", fields["S"], fields["C"]))
            case client_codec.RowDescription(columns):
                found.append(("columns", [(one.name, one.type, one.size, one.format) for one in columns]))
            case client_codec.ParameterStatus(name) if name == "search_path":
                continue  # told from PostgreSQL 18 on
            case _:
                found.append(reply)
    return found
