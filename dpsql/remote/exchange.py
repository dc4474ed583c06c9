"""One statement to a server, and what comes back: rows as they were sent, and what is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dpsql.errors import Error, NotSupportedError
from dpsql.pgwire import client, meta
from dpsql.pgwire.client import Reply
from dpsql.pgwire.frames import ProtocolViolation
from dpsql.remote.failures import LOST, read_error
from dpsql.remote.link import Link

Row = tuple[bytes | None, ...]
Bound = tuple[int, bytes | None]
"""A parameter: the number of its type, 0 where the server is to find out, and its text; None is NULL."""


@dataclass
class Heard:
    """What the server has said so far; `told` may be looked at from another thread."""

    told: meta.Told = field(default_factory=meta.Told)
    rows: list[Row] = field(default_factory=list)
    tag: str | None = None
    error: client.ErrorResponse | None = None
    copies: bool = False

    def hear(self, reply: Reply) -> None:
        match reply:
            case client.DataRow(values):
                self.rows.append(values)
            case client.NoticeResponse(fields) if fields.get("C") == meta.CODE:
                self.told.add(fields.get("D", ""))
            case client.CommandComplete(tag):
                if self.told.command is not None and self.told.rows != len(self.rows):
                    raise ProtocolViolation("the server has told of other rows than it gave")
                self.tag = tag
            case client.ErrorResponse():
                self.error = reply
            case client.CopyOutResponse():
                self.copies = True
            case client.Authentication() | client.BackendKeyData():
                raise ProtocolViolation("the server begins a login in the middle of a statement")
            case _:
                pass


def ask(
    link: Link, sql: str, parameters: Sequence[Bound] = (), wishes: meta.Wishes | None = None,
    heard: Heard | None = None, before: int = 0,
) -> Heard:  # fmt: skip
    """Run one statement; raises its error. `before` is how many characters of it the client has put in front."""
    heard = heard or Heard()
    name = meta.write_name(wishes or meta.Wishes())
    messages = [
        client.close("S", name),  # one of this name may be left from a statement that failed
        client.close("P", name),
        client.parse(name, sql, [oid for oid, _ in parameters]),
        client.bind(name, name, [value for _, value in parameters]),
        client.execute(name),
        client.SYNC,
    ]
    try:
        link.ask(b"".join(messages), heard.hear)
    except Error as error:
        if heard.error is None or error.sqlstate != LOST:
            raise
    if heard.error is not None:  # also where the server hung up behind it
        raise read_error(heard.error.fields, heard.told, before)
    if heard.copies:
        raise NotSupportedError("COPY is for clients of PostgreSQL", hint="Ask the query itself.")
    return heard


def ask_json(link: Link, sql: str) -> Any:
    """The one value of a command that tells JSON."""
    rows = ask(link, sql).rows
    try:
        (cell,) = rows[0]
        return meta.read_json(cell or b"")
    except (ValueError, IndexError):
        raise NotSupportedError("the server tells it in another form", hint="Is it of another version?") from None
