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
from dpsql.catalog import database
from dpsql.catalog.database import Asked
from dpsql.engines.watch import stopped_by_cancel
from dpsql.errors import Error, LimitExceeded, OperationalError
from dpsql.exact import Row
from dpsql.holding import HOLDING
from dpsql.post.child import MOST_OF_AN_ANSWER, read_frame, write_frame
from dpsql.post.sandbox import OutputColumn, Rows, Table, asker, column_of, run_elsewhere
from dpsql.schema.model import Schema

MOST = 8
"""Children at a time; a statement waits for one."""
KEPT = 4
"""That stay without work. Starting one takes a fifth of a second, and filling its catalog most of another."""
LINGERING = 30.0
"""Seconds for which the others stay: as long as more are needed at a time, none is started anew."""
GRACE = 5.0
"""Seconds beyond a statement's own time, after which its child is ended."""
DESCRIBING = 10.0
MOST_SCHEMAS = 8
"""Catalogs that a child keeps; one with more is ended."""
_PLAIN = {
    ("datetime", "date"), ("datetime", "datetime"), ("datetime", "time"), ("datetime", "timedelta"),
    ("datetime", "timezone"), ("decimal", "Decimal"), ("uuid", "UUID"), ("uuid", "SafeUUID"), ("pytz", "_UTC"),
    ("builtins", "bytearray"), ("dpsql.intervals", "interval"),
}  # fmt: skip


class Children:
    """A pool of them. Threads may share it."""

    def __init__(self, most: int = MOST, kept: int = KEPT, lingering: float = LINGERING) -> None:
        self._most, self._kept, self._lingering = most, kept, lingering
        self._lock = threading.Lock()
        self._left = threading.Condition()
        self._held: Counter[str] = Counter()
        self._idle: list[_Child] = []
        self._schemas: dict[Schema, int] = {}
        self._closed = False

    def run(self, sql: str, tables: Sequence[Table], timeout: float) -> Rows:
        columns, rows = self._ask(("run", sql, list(tables), timeout), timeout)
        return Rows(tuple(column_of(name, spelled) for name, spelled in columns), rows)

    def describe(self, sql: str, tables: Sequence[Table]) -> tuple[OutputColumn, ...]:
        columns = self._ask(("describe", sql, list(tables), DESCRIBING), DESCRIBING)
        return tuple(column_of(name, spelled) for name, spelled in columns)

    def run_catalog(self, schema: Schema, asked: Asked, timeout: float) -> tuple[list[str], list[Row]]:
        types, rows = self._ask(("run catalog", asked, timeout), timeout, schema)
        return types, rows

    def describe_catalog(self, schema: Schema, asked: Asked) -> list[str]:
        types: list[str] = self._ask(("describe catalog", asked, DESCRIBING), DESCRIBING, schema)
        return types

    def start(self, count: int) -> None:
        """So many, before anyone waits for them."""
        for child in [_Child() for _ in range(count)]:
            self._give_back(child)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for child in idle:
            child.end()
        HOLDING.most = None
        run_elsewhere(None)
        database.run_elsewhere(None)

    def _ask(self, question: tuple[Any, ...], timeout: float, schema: Schema | None = None) -> Any:
        with self._place(asker(), timeout):
            number = None if schema is None else self._number(schema)
            child = self._take(number)
            if schema is not None and number is not None:
                kind, asked, seconds = question
                question = (kind, number, None if number in child.schemas else _without_secrets(schema), asked, seconds)
                child.schemas.add(number)
            try:
                with stopped_by_cancel(child.kill):
                    answer = child.ask(pickle.dumps(question, pickle.HIGHEST_PROTOCOL), timeout + GRACE)
            except BaseException:
                child.end()
                raise
            if _is_well(answer):
                self._give_back(child)
            else:
                child.end()
        return _told(answer)

    @contextmanager
    def _place(self, account: str, patience: float) -> Iterator[None]:
        with self._left:
            if not self._left.wait_for(lambda: self._may_take(account), patience):
                hint = "Ask again when some have ended; what was paid for is free."
                raise OperationalError("too many statements are post-processed", hint=hint, sqlstate="53300")
            self._held[account] += 1
        try:
            yield
        finally:
            with self._left:
                self._held[account] -= 1
                self._held += Counter()  # without those that hold none
                self._left.notify_all()

    def _may_take(self, account: str) -> bool:
        free_of_others = self._most - (self._held.total() - self._held[account])
        return self._held.total() < self._most and self._held[account] < (free_of_others + 1) // 2

    def _number(self, schema: Schema) -> int:
        with self._lock:
            if schema not in self._schemas:
                self._schemas[schema] = len(self._schemas)
            return self._schemas[schema]

    def _take(self, number: int | None = None) -> _Child:
        """One that knows the catalog of this schema, if there is: filling another takes most of a second."""
        with self._lock:
            self._idle = [child for child in self._idle if child.is_alive]
            if self._idle:
                knowing = [child for child in self._idle if number in child.schemas]
                child = (knowing or self._idle)[-1]
                self._idle.remove(child)
                return child
        return _Child()

    def _give_back(self, child: _Child) -> None:
        """The one that was used last is taken first, so those that are not needed are the first of the list."""
        child.used = time.monotonic()
        with self._lock:
            leaving = [child]
            if not self._closed and len(child.schemas) <= MOST_SCHEMAS:
                self._idle.append(child)
                others = self._idle[: max(0, len(self._idle) - self._kept)]
                leaving = [one for one in others if one.used + self._lingering <= child.used]
                self._idle = [one for one in self._idle if one not in leaving]
        for one in leaving:
            one.end()


def run_apart(answer_bytes: int | None = None) -> Children:
    """From now on, all that this process post-processes, and is asked of the catalog, runs in children; close them at
    the end. The answers that its clients hold take at most so many bytes together."""
    children = Children()
    HOLDING.most = answer_bytes
    children.start(KEPT // 2)
    run_elsewhere(children)
    database.run_elsewhere(children)
    return children


def _without_secrets(schema: Schema) -> Schema:
    """What the catalog shows needs neither passwords nor the URLs of engine and ledger."""
    return replace(schema, engine="", ledger="", analysts=(), groups=())


class _Child:
    def __init__(self) -> None:
        root = str(Path(__file__).resolve().parents[2])
        known = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": root}
        # A session of its own: Ctrl-C at the server's terminal is for the server.
        self.schemas: set[int] = set()
        self.used = 0.0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dpsql.post.child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=known, cwd=root, start_new_session=True,
        )  # fmt: skip

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, question: bytes, patience: float) -> tuple[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        late = threading.Event()
        answer = None
        with suppress(OSError, ValueError), self._ended_after(patience, late):
            write_frame(stdin, question)
            answer = read_frame(stdout, MOST_OF_AN_ANSWER)
        if answer is None and late.is_set():
            raise _too_long(patience - GRACE)
        if answer is None:  # it died: nearly always for want of memory
            raise _too_large()
        return _read(answer)

    @contextmanager
    def _ended_after(self, seconds: float, late: threading.Event) -> Iterator[None]:
        """Whatever it does meanwhile: one that reads or answers byte by byte is ended too."""

        def end() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(max(seconds, 0), end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def kill(self) -> None:
        with suppress(OSError):
            self._process.kill()

    def end(self) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError, ValueError):
                if pipe is not None:
                    pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)


class _Reader(pickle.Unpickler):
    """Reads plain values: no other class is looked up, whatever the bytes name."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        raise pickle.UnpicklingError("a value of an unknown kind")


def _read(answer: bytes) -> tuple[str, Any]:
    try:
        kind, told = _Reader(io.BytesIO(answer)).load()
    except Exception:
        raise OperationalError("post-processing ended in an unforeseen way", sqlstate="XX000") from None
    return kind, told


def _is_well(answer: tuple[str, Any]) -> bool:
    """What a process took to its limit it does not always give back."""
    kind, told = answer
    return kind == "ok" or (kind == "error" and told[-1] != "53200")


def _told(answer: tuple[str, Any]) -> Any:
    kind, told = answer
    match kind:
        case "ok":
            return told
        case "error":
            raise _error(*told)
        case "large":
            most = f"{MOST_OF_AN_ANSWER >> 20} MB"
            raise LimitExceeded(f"the answer is larger than {most}", hint="Ask for less at a time: add a LIMIT.")
        case _:
            raise _too_large()


def _error(name: str, message: str, detail: str | None, hint: str | None, sqlstate: str) -> Error:
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Error)):
        kind = OperationalError
    return kind(message, detail=detail, hint=hint, sqlstate=sqlstate)


def _too_large() -> Error:
    return OperationalError(
        "post-processing needs more memory than it may have",
        hint="Ask for less at a time; the releases are paid for, and asking again is free.",
        sqlstate="53200",
    )


def _too_long(seconds: float) -> Error:
    return OperationalError(
        f"post-processing took longer than {seconds:g} s",
        hint="Ask for less at a time; the releases are paid for, and asking again is free.",
        sqlstate="57014",
    )
