"""The sandbox and the catalog in a process of their own, for a server: `python -m dpsql.post.child`.

DuckDB counts most of the memory that a statement takes, not all: `repeat('x', 2000000000)` takes gigabytes of it. Here
the operating system counts: what goes beyond fails, or ends this process, and nobody else's. It holds no private row:
its parent sends releases, one statement at a time.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from typing import IO, Any

from dpsql.catalog import database
from dpsql.errors import Error
from dpsql.post import sandbox
from dpsql.schema.model import Schema

MOST = 1_500 << 20
"""Bytes of memory beyond those of the process before its first statement."""
MOST_OF_AN_ANSWER = 128 << 20
_LENGTH = struct.Struct("!Q")


def main() -> None:
    # What DuckDB itself might write must not stand between answers.
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sandbox.run_here("SELECT 1", (), 10)
    limit_memory()
    schemas: dict[int, Schema] = {}
    while (asked := read_frame(incoming)) is not None:
        write_frame(outgoing, _answer(asked, schemas))


def limit_memory() -> None:
    """Where the system has such a limit: Linux keeps it, macOS does not."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as told:
            now = int(told.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + MOST, now + MOST))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        return


def _answer(asked: bytes, schemas: dict[int, Schema]) -> bytes:
    """Plain values only: the parent reads nothing else. A schema comes with the first question about it."""
    try:
        answer = pickle.dumps(("ok", _told(pickle.loads(asked), schemas)), pickle.HIGHEST_PROTOCOL)  # of the parent
    except Error as error:
        known = (type(error).__name__, error.message, error.detail, error.hint, error.sqlstate)
        return pickle.dumps(("error", known))
    except MemoryError:
        return pickle.dumps(("memory", None))
    return answer if len(answer) <= MOST_OF_AN_ANSWER else pickle.dumps(("large", None))


def _told(asked: tuple[Any, ...], schemas: dict[int, Schema]) -> object:
    match asked:
        case ("run", sql, tables, timeout):
            found = sandbox.run_here(sql, tables, timeout)
            return [(one.name, one.spelling) for one in found.columns], found.rows
        case ("describe", sql, tables, _):
            return [(one.name, one.spelling) for one in sandbox.describe_here(sql, tables)]
        case (kind, number, schema, query, timeout):
            if schema is not None:
                schemas[number] = schema
            if kind == "describe catalog":
                return database.describe_here(schemas[number], query)
            return database.run_here(schemas[number], query, timeout)
        case _:
            raise ValueError("an unknown question")


def read_frame(stream: IO[bytes], most: int = 1 << 40) -> bytes | None:
    """None: the other side is gone, or says too much."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > most:
        return None
    body = stream.read(length)
    return body if len(body) == length else None


def write_frame(stream: IO[bytes], body: bytes) -> None:
    stream.write(_LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


if __name__ == "__main__":
    main()
