"""The interface of an engine: the database that holds the private rows.

Law: nothing that an engine says about rows leaves this package except sealed, in an `Exact`. When the engine fails
after the charge, everyone gets one fixed text; what happened is written to the owner's log `dpsql.engines`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from dpsql.errors import EngineFailed, Error
from dpsql.privacy.exact import Exact, Row
from dpsql.schema.model import Source

log = logging.getLogger("dpsql.engines")
# Without a handler Python prints errors to stderr, where an analyst may look. The owner sets up logging to see them.
log.addHandler(logging.NullHandler())

ENGINE_FAILED = "the engine could not finish the query"
ENGINE_FAILED_HINT = (
    "Tell the owner of the data: the reason is in the log of dpsql.engines, which DPSQL_LOG=FILE writes to a file."
)

T = TypeVar("T")


class Engine(Protocol):
    """A database that is read, never written, and draws no noise."""

    name: str

    def execute(self, sql: str, key_columns: int, holes: Mapping[str, object]) -> Exact:
        """Run a release's SQL: the first `key_columns` columns are keys, all others BIGINT cells."""
        ...

    def execute_public(self, sql: str, holes: Mapping[str, object]) -> list[Row]:
        """Run SQL that reads public tables only."""
        ...

    def describe(self, source: Source) -> dict[str, str]:
        """The physical columns of a source, with the engine's spelling of their types. Reads no rows."""
        ...

    def close(self) -> None: ...


def run_guarded(run: Callable[[], T]) -> T:
    """Run one engine query; whatever the driver raises becomes the fixed `EngineFailed`.

    Privacy: DuckDB quotes values in its messages (`Could not convert string 'bad'`). The error that leaves here
    has one text, no cause and no context, so it says only that a failure happened (SOUNDNESS 10).
    """
    try:
        return run()
    except Error:  # ours: its text does not depend on rows
        raise
    except Exception:
        log.error("the engine failed", exc_info=True)
    # Outside of the except block, where Python would attach the driver's error as the context of this one.
    raise EngineFailed(ENGINE_FAILED, hint=ENGINE_FAILED_HINT)
