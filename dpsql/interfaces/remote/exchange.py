"""One statement sent to a server, and its reply: rows as they were sent, and their metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dpsql.errors import Error, NotSupportedError
from dpsql.interfaces.pgwire.protocol import client_codec, extension
from dpsql.interfaces.pgwire.protocol.client_codec import BackendReply
from dpsql.interfaces.pgwire.protocol.framing import ProtocolViolation
from dpsql.interfaces.remote.connection import ServerConnection
from dpsql.interfaces.remote.errors import CONNECTION_LOST, read_error

Row = tuple[bytes | None, ...]
BoundParameter = tuple[int, bytes | None]
"""A parameter: the number of its type, 0 where the server is to find out, and its text; None is NULL."""


@dataclass
class ReplyCollector:
    """What the server has said so far; `metadata` may be looked at from another thread."""

    metadata: extension.StatementMetadata = field(default_factory=extension.StatementMetadata)
    rows: list[Row] = field(default_factory=list)
    tag: str | None = None
    error: client_codec.ErrorResponse | None = None
    is_copy: bool = False

    def add_reply(self, reply: BackendReply) -> None:
        match reply:
            case client_codec.DataRow(values):
                self.rows.append(values)
            case client_codec.NoticeResponse(fields) if fields.get("C") == extension.NOTICE_SQLSTATE:
                self.metadata.add_notice(fields.get("D", ""))
            case client_codec.CommandComplete(tag):
                if self.metadata.command is not None and self.metadata.rows != len(self.rows):
                    raise ProtocolViolation("the server has told of other rows than it gave")
                self.tag = tag
            case client_codec.ErrorResponse():
                self.error = reply
            case client_codec.CopyOutResponse():
                self.is_copy = True
            case client_codec.Authentication() | client_codec.BackendKeyData():
                raise ProtocolViolation("the server begins a login in the middle of a statement")
            case _:
                pass


def run_statement(
    connection: ServerConnection,
    sql: str,
    parameters: Sequence[BoundParameter] = (),
    options: extension.StatementOptions | None = None,
    collector: ReplyCollector | None = None,
    before: int = 0,
) -> ReplyCollector:
    """Run one statement; raises its error. `before` is how many characters of it the client has put in front."""
    collector = collector or ReplyCollector()
    name = extension.encode_statement_name(options or extension.StatementOptions())
    messages = [
        client_codec.encode_close("S", name),  # one of this name may be left from a statement that failed
        client_codec.encode_close("P", name),
        client_codec.encode_parse(name, sql, [oid for oid, _ in parameters]),
        client_codec.encode_bind(name, name, [value for _, value in parameters]),
        client_codec.encode_execute(name),
        client_codec.SYNC,
    ]
    try:
        connection.exchange_messages(b"".join(messages), collector.add_reply)
    except Error as error:
        if collector.error is None or error.sqlstate != CONNECTION_LOST:
            raise
    if collector.error is not None:  # also where the server hung up behind it
        raise read_error(collector.error.fields, collector.metadata, before)
    if collector.is_copy:
        raise NotSupportedError("COPY is for clients of PostgreSQL", hint="Ask the query itself.")
    return collector


def query_json(connection: ServerConnection, sql: str) -> Any:
    """The one value of a command that tells JSON."""
    rows = run_statement(connection, sql).rows
    try:
        (cell,) = rows[0]
        return extension.read_json(cell or b"")
    except (ValueError, IndexError):
        raise NotSupportedError("the server tells it in another form", hint="Is it of another version?") from None
