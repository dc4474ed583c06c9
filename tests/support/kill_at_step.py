"""Ask one question and be killed, as by kill -9, at one step on the way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpsql.engines.duckdb import DuckDBEngine
from dpsql.ledger.ledger import SqlLedger
from dpsql.ledger.postgres import PostgresDatabase
from dpsql.ledger.sqlite import SqliteDatabase
from dpsql.privacy.sampling import ExactSampler
from dpsql.session.dataset import runs
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.postprocess import sandbox
from dpsql.session.session import Session

STEPS = ("before purchase", "after purchase", "before execute", "after execute", "noise", "before store", "after store",
         "post")  # fmt: skip
WRITES = ("in write", "after write")  # before and after the commit of a transaction


def stop() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def around(step: str, stop: Callable[[], None], patch: Callable[[Any, str, Any], None], skip: int = 0) -> None:
    """Arrange for `stop` at that step, after `skip` times; `patch` sets an attribute."""
    when, _, name = step.partition(" ")
    if name == "write":
        for database in (SqliteDatabase, PostgresDatabase):
            patch(database, name, _write(database.write, when, stop, skip))
        return
    if step == "noise":
        owner, name, when = ExactSampler, "gaussian", "before"
    elif step == "post":
        owner, name, when = sandbox, "run_query", "before"
    else:
        name = {"store": "store_body"}.get(name, name)
        owner = DuckDBEngine if name == "execute" else SqlLedger
    real, left = getattr(owner, name), [skip]

    def watched(*args: Any, **named: Any) -> Any:
        left[0] -= 1
        if when == "before" and left[0] < 0:
            stop()
        done = real(*args, **named)
        if when == "after" and left[0] < 0:
            stop()
        return done

    patch(owner, name, watched)


def _write(real: Callable[[Any], Any], when: str, stop: Callable[[], None], skip: int) -> Callable[[Any], Any]:
    left = [skip]

    @contextmanager
    def watched(database: Any) -> Iterator[Any]:
        left[0] -= 1
        with real(database) as db:
            yield db
            if when == "in" and left[0] < 0:
                stop()
        if when == "after" and left[0] < 0:
            stop()

    return watched


def ask_and_be_killed(path: Path, step: str, sql: str, skip: int) -> None:
    """In a process of its own."""
    runs.LEASE_SECONDS = 0.2  # nobody else runs what it runs; who asks after it was killed need not wait for long
    session = Session(open_dataset(path), opened_with={"empty_groups": "show"})
    around(step, stop, setattr, skip)
    session.execute(sql)
