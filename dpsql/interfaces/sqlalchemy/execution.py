"""Execution of one statement: its settings, and the metadata of its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast

from sqlalchemy import exc
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.engine.interfaces import ExecutionContext

from dpsql.amounts import NO_CHARGE, CellError, Charge
from dpsql.interfaces.dbapi.cursor import Cursor
from dpsql.session.session import Receipt

EXECUTION_OPTIONS = {
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
    "ranges": "ranges",
    "mechanism": "mechanism",
    "proposal": "proposal",
    "integer_division": "integer_division",
    "overshoot": "overshoot",
    "empty_groups": "empty_groups",
}
"""What `execution_options` may set for its statements, as SET names it."""

SIMILARITY_CUTOFF = 0.75
"""How like a setting's name an option is that is refused: the default would be charged instead. SQLAlchemy's own, and
those of its plugins, are less so."""


@dataclass(frozen=True)
class ResultMetadata:
    """For each row, and each column in it, its error or None; what was charged; notices and receipts."""

    errors: list[tuple[CellError | None, ...]]
    loss: Charge
    notices: tuple[str, ...]
    receipts: tuple[Receipt, ...]


def result_metadata(result: Any) -> ResultMetadata:
    """Errors, charge, notices and receipts of any result of Core or ORM, before and after its rows are fetched."""
    while not hasattr(result, "context"):
        inner = getattr(result, "raw", None) or getattr(result, "_real_result", None)
        if inner is None:
            raise exc.ArgumentError("result_metadata() takes what execute() returned")
        result = inner
    return cast(DpsqlExecutionContext, result.context).result_metadata


told = result_metadata
"""The earlier name of `result_metadata`, which programs may still import."""


class DpsqlExecutionContext(DefaultExecutionContext):
    result_metadata: ResultMetadata = ResultMetadata([], NO_CHARGE, (), ())

    def post_exec(self) -> None:
        cursor = cast(Cursor, self.cursor)
        errors = cursor.errors if cursor.description else []
        self.result_metadata = ResultMetadata(errors, cursor.loss, cursor.notices, cursor.receipts)


def statement_settings_of(context: ExecutionContext | None) -> dict[str, str]:
    """The statement's own settings: those of its execution options, over the connection's and the engine's."""
    options: Mapping[str, Any] = {} if context is None else context.execution_options
    for name in options:
        close_names = (
            []
            if name in EXECUTION_OPTIONS
            else get_close_matches(name.replace(".", "_"), EXECUTION_OPTIONS, n=1, cutoff=SIMILARITY_CUTOFF)
        )
        if close_names or name.startswith("dpsql_"):
            suggestion = f'perhaps you meant "{close_names[0]}"; ' if close_names else ""
            option_names = ", ".join(EXECUTION_OPTIONS)
            raise exc.ArgumentError(f'there is no execution option "{name}"; {suggestion}settings are: {option_names}')
    option_values = {name: options[name] for name in EXECUTION_OPTIONS if options.get(name) is not None}
    if "epsilon" in option_values and "max_error" in option_values:
        raise exc.ArgumentError("a statement has epsilon or max_error, not both")
    return {EXECUTION_OPTIONS[name]: _option_text(value) for name, value in option_values.items()}


def _option_text(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
