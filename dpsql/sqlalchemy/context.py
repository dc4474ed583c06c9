"""One statement: the settings that it brings, and what its answer tells beside the rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import exc
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.engine.interfaces import ExecutionContext

from dpsql.dbapi.connection import Connection
from dpsql.dbapi.cursor import Cursor
from dpsql.figures import NOTHING, CellError, Charge
from dpsql.session import Receipt, read_command

SETTINGS = {
    "epsilon": "epsilon",
    "delta": "delta",
    "contributions_rows": "contributions.rows",
    "contributions_groups": "contributions.groups",
    "noise": "noise",
    "nonnegative": "nonnegative",
    "derive": "derive",
    "max_error": "max_error",
    "max_relative_error": "max_relative_error",
    "confidence": "confidence",
}
"""What `execution_options` may set for its statements, as SET names it."""

_AIMS = ("max_error", "max_relative_error")
_POINT = "dpsql_statement"
_TELLS = re.compile(r"\s*(explain|show|desc(ribe)?)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Told:
    """For each row, and each column in it, its error or None; what was charged; notices and receipts."""

    errors: list[tuple[CellError | None, ...]]
    loss: Charge
    notices: tuple[str, ...]
    receipts: tuple[Receipt, ...]


def told(result: Any) -> Told:
    """What an answer tells beside its rows; of any result of Core or ORM, before and after its rows are fetched."""
    while not hasattr(result, "context"):
        inner = getattr(result, "raw", None) or getattr(result, "_real_result", None)
        if inner is None:
            raise exc.ArgumentError("told() takes what execute() returned")
        result = inner
    return cast(DpsqlExecutionContext, result.context).told


class DpsqlExecutionContext(DefaultExecutionContext):
    told: Told = Told([], NOTHING, (), ())

    def post_exec(self) -> None:
        cursor = cast(Cursor, self.cursor)
        errors = cursor.errors if cursor.description else []
        self.told = Told(errors, cursor.loss, cursor.notices, cursor.receipts)


def is_asking(statement: str, parameters: Sequence[Any]) -> bool:
    """A query, or a command that tells something; others set what is to stay set, or move between savepoints."""
    return read_command(statement, parameters) is None or _TELLS.match(statement) is not None


def settings_of(context: ExecutionContext | None) -> dict[str, str]:
    """The statement's own settings: those of its execution options, over the connection's and the engine's."""
    options: Mapping[str, Any] = {} if context is None else context.execution_options
    for name in options:
        if name.startswith("dpsql_"):
            raise exc.ArgumentError(f'there is no execution option "{name}"; settings are: {", ".join(SETTINGS)}')
    given = {name: options[name] for name in SETTINGS if options.get(name) is not None}
    if "epsilon" in given and "max_error" in given:
        raise exc.ArgumentError("a statement has epsilon or max_error, not both")
    if "epsilon" in given:  # as in OPTIONS: what the session aims at is not asked of a statement with its own epsilon
        given = {**dict.fromkeys(_AIMS, "none"), **given}
    return {SETTINGS[name]: _text(value) for name, value in given.items()}


def _text(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


@contextmanager
def set_for_one_statement(connection: Connection, settings: Mapping[str, str]) -> Iterator[None]:
    """Whatever happens within, the connection's settings are afterwards what they were."""
    cursor = connection.cursor()
    cursor.execute("BEGIN")  # does nothing within a transaction
    cursor.execute(f"SAVEPOINT {_POINT}")
    try:
        for name, value in settings.items():
            cursor.execute(f"SET LOCAL {name} = ?", (value,))
        yield
    finally:
        cursor.execute(f"ROLLBACK TO SAVEPOINT {_POINT}")
        cursor.execute(f"RELEASE SAVEPOINT {_POINT}")
