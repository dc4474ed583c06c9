"""The server's own texts in a client's encoding: names of columns, errors, notices, settings and tags.

They are written in UTF-8 like everything here, and converted when they leave; a character that the encoding lacks
becomes a question mark. Values in rows are another matter: they are encoded one by one, where their types are known.

>>> from dpsql.base.client_encodings import ENCODINGS
>>> from dpsql.interfaces.pgwire.protocol.backend import command_complete
>>> transcode_messages(command_complete("é €"), ENCODINGS["LATIN1"])
b'C\\x00\\x00\\x00\\x08\\xe9 ?\\x00'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dpsql.base.client_encodings import ClientEncoding
from dpsql.interfaces.pgwire.protocol.framing import frame_message

_COLUMN_BYTES = 18
"""Of a column's description, behind its name."""


def transcode_messages(messages: bytes, encoding: ClientEncoding) -> bytes:
    """One or several whole messages of the server."""
    return b"".join(_transcode_each(messages, encoding))


def _transcode_each(messages: bytes, encoding: ClientEncoding) -> Iterator[bytes]:
    at = 0
    while at < len(messages):
        kind, length = messages[at : at + 1], int.from_bytes(messages[at + 1 : at + 5], "big")
        end = at + 1 + length
        transcode = _TRANSCODERS.get(kind)
        if transcode is None:
            yield messages[at:end]
        else:
            yield frame_message(kind, transcode(messages[at + 5 : end], encoding))
        at = end


def _transcode_text(text: bytes, encoding: ClientEncoding) -> bytes:
    return encoding.encode_leniently(text.decode("utf-8", "replace"))


def _transcode_columns(body: bytes, encoding: ClientEncoding) -> bytes:
    parts, at = [body[:2]], 2
    while at < len(body):
        end = body.index(b"\0", at)
        parts += [_transcode_text(body[at:end], encoding), body[end : end + 1 + _COLUMN_BYTES]]
        at = end + 1 + _COLUMN_BYTES
    return b"".join(parts)


_TRANSCODERS: dict[bytes, Callable[[bytes, ClientEncoding], bytes]] = {
    b"T": _transcode_columns,
    b"C": _transcode_text,
    b"E": _transcode_text,
    b"N": _transcode_text,
    b"S": _transcode_text,
}
"""By the kind of message. Zero bytes between texts and letters of fields are themselves in every encoding."""
