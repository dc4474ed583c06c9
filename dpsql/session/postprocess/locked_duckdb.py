"""DuckDB in memory, closed to the world: what the sandbox and the catalog have in common.

Law: an instance has never seen a private row, reaches no file and cannot be reconfigured; what it holds, it was filled
with before it was locked. It runs nothing but one SELECT at a time, so nothing outlives a statement.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import duckdb

from dpsql.base.cancellation import DeadlineWatcher
from dpsql.engines.duckdb import lock_configuration
from dpsql.errors import Error, InternalError

Setting = tuple[str, object]
Key = TypeVar("Key", bound=Hashable)

MAX_DATABASES = 8
"""Instances that are kept, of each kind."""

_SETTINGS: tuple[Setting, ...] = (
    ("temp_directory", ""),  # nothing is written, not even for want of memory
    ("autoload_known_extensions", False),
    ("autoinstall_known_extensions", False),
    ("allow_community_extensions", False),
    ("allow_persistent_secrets", False),
    ("python_enable_replacements", False),  # else an unknown table name is looked up among Python's variables
    ("default_collation", ""),
    ("default_order", "ASC"),
    ("default_null_order", "NULLS_LAST"),
    ("Calendar", "gregorian"),
    ("preserve_insertion_order", True),
)
_watchdog = DeadlineWatcher()


@dataclass(frozen=True, eq=False)
class LockedDatabases(Generic[Key]):
    """Instances of one kind, one for each key and process: `name` is said of them, `fill` fills one before it is
    locked."""

    name: str
    settings: tuple[Setting, ...]
    fill: Callable[[duckdb.DuckDBPyConnection, Key], None]
    translate_error: Callable[[duckdb.Error], Error]
    timeout_error: Callable[[float], Error]
    time_zone: Callable[[Key], str] = lambda _: "UTC"
    instances: OrderedDict[tuple[int, Key], duckdb.DuckDBPyConnection] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def require_single_select(self, sql: str) -> duckdb.Statement:
        try:
            statements = duckdb.extract_statements(sql)
        except duckdb.Error as error:
            raise self.translate_error(error) from None
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InternalError(f"the {self.name} was given something else than one SELECT")
        return statements[0]

    @contextmanager
    def open_cursor(self, key: Key, timeout: float) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor of the instance, interrupted when its time is over."""
        cursor = self.get_instance(key).cursor()
        try:
            with _watchdog.enforce_deadline(timeout, cursor.interrupt):  # left before the cursor is closed
                yield cursor
        except duckdb.InterruptException:
            raise self.timeout_error(timeout) from None
        except duckdb.Error as error:
            raise self.translate_error(error) from None
        finally:
            cursor.close()

    def settings_of(self, key: Key) -> tuple[Setting, ...]:
        return (*self.settings, *_SETTINGS, ("TimeZone", self.time_zone(key)))

    def get_instance(self, key: Key) -> duckdb.DuckDBPyConnection:
        """The locked instance. A forked child makes its own: DuckDB's threads do not survive a fork."""
        own = os.getpid(), key
        with self._lock:
            if own not in self.instances:
                connection = duckdb.connect(":memory:")
                self.fill(connection, key)
                lock_configuration(connection, self.settings_of(key))
                self.instances[own] = connection
                while len(self.instances) > MAX_DATABASES:
                    self.instances.popitem(last=False)
            self.instances.move_to_end(own)
            return self.instances[own]
