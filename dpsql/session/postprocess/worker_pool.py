"""Sandboxes in processes of their own, for a server that many share: what one analyst's statement takes of memory, or
crashes, is nobody else's.

Law: a child gets releases and sends back plain values; from what it sends nothing is run. One that takes too long, dies
or says nonsense is ended, and another takes its place. An account holds at most half of the places that others leave.
"""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpsql import errors
from dpsql.base.cancellation import current_account, stop_on_cancel
from dpsql.base.fair_sharing import RESULT_QUOTA
from dpsql.errors import Error, LimitExceeded, OperationalError
from dpsql.privacy.exact import Row
from dpsql.schema.model import Schema
from dpsql.session.postprocess import catalog_sandbox
from dpsql.session.postprocess.catalog_sandbox import CatalogRequest
from dpsql.session.postprocess.sandbox import (
    OutputColumn,
    QueryRows,
    SandboxTable,
    output_column_of,
    set_executor,
)
from dpsql.session.postprocess.worker import MAX_ANSWER_BYTES, read_frame, write_frame

MAX_WORKERS = 8
"""Children at a time; a statement waits for one."""
MAX_IDLE_WORKERS = 4
"""That stay without work. Starting one takes a fifth of a second, and filling its catalog most of another."""
IDLE_SECONDS = 30.0
"""Seconds for which the others stay: as long as more are needed at a time, none is started anew."""
GRACE_SECONDS = 5.0
"""Seconds beyond a statement's own time, after which its child is ended."""
DESCRIBE_SECONDS = 10.0
MAX_SCHEMAS = 8
"""Catalogs that a child keeps; one with more is ended."""
_PLAIN_CLASSES = {
    ("datetime", "date"), ("datetime", "datetime"), ("datetime", "time"), ("datetime", "timedelta"),
    ("datetime", "timezone"), ("decimal", "Decimal"), ("uuid", "UUID"), ("uuid", "SafeUUID"), ("pytz", "_UTC"),
    ("builtins", "bytearray"), ("dpsql.base.intervals", "make_interval"),
}  # fmt: skip


class WorkerPool:
    """A pool of them. Threads may share it."""

    def __init__(
        self, max_workers: int = MAX_WORKERS, max_idle: int = MAX_IDLE_WORKERS, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._max_workers, self._max_idle, self._idle_seconds = max_workers, max_idle, idle_seconds
        self._lock = threading.Lock()
        self._worker_freed = threading.Condition()
        self._workers_in_use: Counter[str] = Counter()
        self._idle: list[_Worker] = []
        self._schemas: dict[Schema, int] = {}
        self._closed = False

    def run_query(self, sql: str, tables: Sequence[SandboxTable], timeout: float, time_zone: str = "UTC") -> QueryRows:
        columns, rows = self._submit_request(("run", sql, list(tables), timeout, time_zone), timeout)
        return QueryRows(tuple(output_column_of(name, type_name) for name, type_name in columns), rows)

    def describe_query(self, sql: str, tables: Sequence[SandboxTable]) -> tuple[OutputColumn, ...]:
        columns = self._submit_request(("describe", sql, list(tables), DESCRIBE_SECONDS), DESCRIBE_SECONDS)
        return tuple(output_column_of(name, type_name) for name, type_name in columns)

    def run_catalog(self, schema: Schema, request: CatalogRequest, timeout: float) -> tuple[list[str], list[Row]]:
        types, rows = self._submit_request(("run catalog", request, timeout), timeout, schema)
        return types, rows

    def describe_catalog(self, schema: Schema, request: CatalogRequest) -> list[str]:
        types: list[str] = self._submit_request(
            ("describe catalog", request, DESCRIBE_SECONDS), DESCRIBE_SECONDS, schema
        )
        return types

    def start_workers(self, count: int) -> None:
        """So many, before anyone waits for them."""
        for worker in [_Worker() for _ in range(count)]:
            self._return_worker(worker)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill_and_close()
        RESULT_QUOTA.max_bytes = None
        set_executor(None)
        catalog_sandbox.set_catalog_executor(None)

    def _submit_request(self, question: tuple[Any, ...], timeout: float, schema: Schema | None = None) -> Any:
        with self._reserve_slot(current_account(), timeout):
            number = None if schema is None else self._schema_number(schema)
            worker = self._take_worker(number)
            if schema is not None and number is not None:
                kind, request, seconds = question
                question = (
                    kind,
                    number,
                    None if number in worker.schemas else _strip_secrets(schema),
                    request,
                    seconds,
                )
                worker.schemas.add(number)
            try:
                with stop_on_cancel(worker.kill):
                    answer = worker.send_request(
                        pickle.dumps(question, pickle.HIGHEST_PROTOCOL), timeout + GRACE_SECONDS
                    )
            except BaseException:
                worker.kill_and_close()
                raise
            if _is_healthy(answer):
                self._return_worker(worker)
            else:
                worker.kill_and_close()
        return _unpack_reply(answer)

    @contextmanager
    def _reserve_slot(self, account: str, seconds: float) -> Iterator[None]:
        with self._worker_freed:
            if not self._worker_freed.wait_for(lambda: self._can_reserve(account), seconds):
                hint = "Ask again when some have ended; what was paid for is free."
                raise OperationalError("too many statements are post-processed", hint=hint, sqlstate="53300")
            self._workers_in_use[account] += 1
        try:
            yield
        finally:
            with self._worker_freed:
                self._workers_in_use[account] -= 1
                self._workers_in_use += Counter()  # without those that hold none
                self._worker_freed.notify_all()

    def _can_reserve(self, account: str) -> bool:
        free_of_others = self._max_workers - (self._workers_in_use.total() - self._workers_in_use[account])
        return (
            self._workers_in_use.total() < self._max_workers
            and self._workers_in_use[account] < (free_of_others + 1) // 2
        )

    def _schema_number(self, schema: Schema) -> int:
        with self._lock:
            if schema not in self._schemas:
                self._schemas[schema] = len(self._schemas)
            return self._schemas[schema]

    def _take_worker(self, number: int | None = None) -> _Worker:
        """One that knows the catalog of this schema, if there is: filling another takes most of a second."""
        with self._lock:
            self._idle = [worker for worker in self._idle if worker.is_alive]
            if self._idle:
                prepared = [worker for worker in self._idle if number in worker.schemas]
                worker = (prepared or self._idle)[-1]
                self._idle.remove(worker)
                return worker
        return _Worker()

    def _return_worker(self, worker: _Worker) -> None:
        """The one that was used last is taken first, so those that are not needed are the first of the list."""
        worker.used = time.monotonic()
        with self._lock:
            leaving = [worker]
            if not self._closed and len(worker.schemas) <= MAX_SCHEMAS:
                self._idle.append(worker)
                others = self._idle[: max(0, len(self._idle) - self._max_idle)]
                leaving = [other for other in others if other.used + self._idle_seconds <= worker.used]
                self._idle = [other for other in self._idle if other not in leaving]
        for other in leaving:
            other.kill_and_close()


def start_worker_pool(answer_bytes: int | None = None) -> WorkerPool:
    """From now on, all that this process post-processes, and is asked of the catalog, runs in children; close them at
    the end. The answers that its clients hold take at most so many bytes together."""
    pool = WorkerPool()
    RESULT_QUOTA.max_bytes = answer_bytes
    pool.start_workers(MAX_IDLE_WORKERS // 2)
    set_executor(pool)
    catalog_sandbox.set_catalog_executor(pool)
    return pool


def _strip_secrets(schema: Schema) -> Schema:
    """What the catalog shows needs neither passwords nor the URLs of engine and ledger."""
    return replace(schema, engine="", ledger="", analysts=(), groups=())


class _Worker:
    def __init__(self) -> None:
        root = str(Path(__file__).resolve().parents[3])
        environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": root}
        # A session of its own: Ctrl-C at the server's terminal is for the server.
        self.schemas: set[int] = set()
        self.used = 0.0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dpsql.session.postprocess.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=environment, cwd=root, start_new_session=True,
        )  # fmt: skip

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def send_request(self, question: bytes, seconds: float) -> tuple[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        late = threading.Event()
        answer = None
        with suppress(OSError, ValueError), self._kill_after(seconds, late):
            write_frame(stdin, question)
            answer = read_frame(stdout, MAX_ANSWER_BYTES)
        if answer is None and late.is_set():
            raise _timeout_error(seconds - GRACE_SECONDS)
        if answer is None:  # it died: nearly always for want of memory
            raise _out_of_memory_error()
        return _read_reply(answer)

    @contextmanager
    def _kill_after(self, seconds: float, late: threading.Event) -> Iterator[None]:
        """Whatever it does meanwhile: one that reads or answers byte by byte is ended too."""

        def kill_late() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(max(seconds, 0), kill_late)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def kill(self) -> None:
        with suppress(OSError):
            self._process.kill()

    def kill_and_close(self) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError, ValueError):
                if pipe is not None:
                    pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)


class _PlainUnpickler(pickle.Unpickler):
    """Reads plain values: no other class is looked up, whatever the bytes name."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN_CLASSES:
            return super().find_class(module, name)
        raise pickle.UnpicklingError("a value of an unknown kind")


def _read_reply(answer: bytes) -> tuple[str, Any]:
    try:
        kind, value = _PlainUnpickler(io.BytesIO(answer)).load()
    except Exception:
        raise OperationalError("post-processing ended in an unforeseen way", sqlstate="XX000") from None
    return kind, value


def _is_healthy(answer: tuple[str, Any]) -> bool:
    """What a process took to its limit it does not always give back."""
    kind, value = answer
    return kind == "ok" or (kind == "error" and value[-1] != "53200")


def _unpack_reply(answer: tuple[str, Any]) -> Any:
    kind, value = answer
    match kind:
        case "ok":
            return value
        case "error":
            raise _rebuild_error(*value)
        case "large":
            limit = f"{MAX_ANSWER_BYTES >> 20} MB"
            raise LimitExceeded(f"the answer is larger than {limit}", hint="Ask for less at a time: add a LIMIT.")
        case _:
            raise _out_of_memory_error()


def _rebuild_error(name: str, message: str, detail: str | None, hint: str | None, sqlstate: str) -> Error:
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Error)):
        kind = OperationalError
    return kind(message, detail=detail, hint=hint, sqlstate=sqlstate)


def _out_of_memory_error() -> Error:
    return OperationalError(
        "post-processing needs more memory than it may have",
        hint="Ask for less at a time.",
        sqlstate="53200",
    )


def _timeout_error(seconds: float) -> Error:
    return OperationalError(
        f"post-processing took longer than {seconds:g} s",
        hint="Ask for less at a time.",
        sqlstate="57014",
    )
