"""The sandbox and the catalog in a process of their own, for a server: `python -m dpsql.session.postprocess.worker`.

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

from dpsql.errors import Error
from dpsql.schema.model import Schema
from dpsql.session.postprocess import catalog_sandbox, sandbox

MAX_EXTRA_MEMORY = 1_500 << 20
"""Bytes of memory beyond those of the process before its first statement."""
MAX_ANSWER_BYTES = 128 << 20
_FRAME_HEADER = struct.Struct("!Q")


def main() -> None:
    # What DuckDB itself might write must not stand between answers.
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sandbox.run_in_process("SELECT 1", (), 10)
    limit_memory()
    schemas: dict[int, Schema] = {}
    while (request := read_frame(incoming)) is not None:
        write_frame(outgoing, _handle_request(request, schemas))


def limit_memory() -> None:
    """Where the system has such a limit: Linux keeps it, macOS does not."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as statm:
            current = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (current + MAX_EXTRA_MEMORY, current + MAX_EXTRA_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        return


def _handle_request(request: bytes, schemas: dict[int, Schema]) -> bytes:
    """Plain values only: the parent reads nothing else. A schema comes with the first question about it."""
    try:
        answer = pickle.dumps(
            ("ok", _execute_request(pickle.loads(request), schemas)), pickle.HIGHEST_PROTOCOL
        )  # of the parent
    except Error as error:
        fields = (type(error).__name__, error.message, error.detail, error.hint, error.sqlstate)
        return pickle.dumps(("error", fields))
    except MemoryError:
        return pickle.dumps(("memory", None))
    return answer if len(answer) <= MAX_ANSWER_BYTES else pickle.dumps(("large", None))


def _execute_request(request: tuple[Any, ...], schemas: dict[int, Schema]) -> object:
    match request:
        case ("run", sql, tables, timeout, time_zone):
            result = sandbox.run_in_process(sql, tables, timeout, time_zone)
            return [(column.name, column.spelling) for column in result.columns], result.rows
        case ("describe", sql, tables, _):
            return [(column.name, column.spelling) for column in sandbox.describe_in_process(sql, tables)]
        case (kind, number, schema, query, timeout):
            if schema is not None:
                schemas[number] = schema
            if kind == "describe catalog":
                return catalog_sandbox.describe_catalog_in_process(schemas[number], query)
            return catalog_sandbox.run_catalog_in_process(schemas[number], query, timeout)
        case _:
            raise ValueError("an unknown question")


def read_frame(stream: IO[bytes], max_bytes: int = 1 << 40) -> bytes | None:
    """None: the other side is gone, or says too much."""
    head = stream.read(_FRAME_HEADER.size)
    if len(head) < _FRAME_HEADER.size:
        return None
    (length,) = _FRAME_HEADER.unpack(head)
    if length > max_bytes:
        return None
    body = stream.read(length)
    return body if len(body) == length else None


def write_frame(stream: IO[bytes], body: bytes) -> None:
    stream.write(_FRAME_HEADER.pack(len(body)))
    stream.write(body)
    stream.flush()


if __name__ == "__main__":
    main()
