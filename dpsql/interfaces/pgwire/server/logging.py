"""The server's log, one line for each event, as JSON or as text.

Law: no row, no parameter and no text of a statement is in a line: an event has a name, and fields that are listed
here. How long a statement took is told on the grid of the owner's `min_latency`, or not at all: it is a clock of rows.
"""

from __future__ import annotations

import json
import math
import sys
import threading
from datetime import UTC, datetime
from fractions import Fraction
from typing import TextIO

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
FIELDS = frozenset({
    "account", "address", "application", "charged_delta", "charged_epsilon", "charged_rho", "connections", "database",
    "error", "kind", "outcome", "reason", "seconds", "signal", "sqlstate", "tls", "user", "version", "where",
})  # fmt: skip
_MAX_VALUE_LENGTH = 200
"""Characters of a value: what a client calls itself may be long."""

FieldValue = str | int | float | bool | None


class EventLog:
    def __init__(self, level: str = "info", form: str = "text", stream: TextIO | None = None) -> None:
        self._min_level = LEVELS.index(level)
        self._json = form == "json"
        self._stream = stream
        self._lock = threading.Lock()

    def debug(self, event: str, **fields: FieldValue) -> None:
        self._write_event("debug", event, fields)

    def info(self, event: str, **fields: FieldValue) -> None:
        self._write_event("info", event, fields)

    def warning(self, event: str, **fields: FieldValue) -> None:
        self._write_event("warning", event, fields)

    def error(self, event: str, **fields: FieldValue) -> None:
        self._write_event("error", event, fields)

    def _write_event(self, level: str, event: str, fields: dict[str, FieldValue]) -> None:
        assert fields.keys() <= FIELDS, "a field that is not listed"
        if LEVELS.index(level) < self._min_level:
            return
        written_fields = {name: _shorten_value(value) for name, value in fields.items() if value is not None}
        timestamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self._json:
            line = json.dumps({"at": timestamp, "level": level, "event": event, **written_fields})
        else:
            line = " ".join(
                [
                    timestamp,
                    f"{level.upper():7}",
                    event,
                    *(f"{name}={_quote_value(field_value)}" for name, field_value in written_fields.items()),
                ]
            )
        with self._lock:
            print(line, file=self._stream or sys.stderr, flush=True)


def _shorten_value(value: FieldValue) -> FieldValue:
    return value[: _MAX_VALUE_LENGTH - 1] + "…" if isinstance(value, str) and len(value) > _MAX_VALUE_LENGTH else value


def _quote_value(value: FieldValue) -> str:
    """One word, or quoted: nobody writes a line of her own into the log."""
    if isinstance(value, str) and not (value.isascii() and value.replace("_", "").replace(".", "").isalnum()):
        return json.dumps(value)
    return str(value)


def round_up_to_grid(seconds: float, grid: Fraction) -> float | None:
    """As it may be told: the next multiple of the grid; nothing where there is none.

    >>> round_up_to_grid(0.3, Fraction(0)), round_up_to_grid(0.3, Fraction(1, 4)), round_up_to_grid(0.0, Fraction(1, 4))
    (None, 0.5, 0.25)
    """
    return float(max(1, math.ceil(seconds / grid)) * grid) if grid else None
