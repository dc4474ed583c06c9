"""What stands in a release's holes: values that earlier steps released, moved into the types that were promised.

Law: a hole's values never change what a release costs or how much noise it gets (SOUNDNESS 8): its type, its domain and
the most rows that it may hold were fixed when the statement was compiled. What does not fit becomes NULL.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from dpsql.errors import DataError, LimitExceeded
from dpsql.plan.stages import MOST_LENGTH, Hole, Shape
from dpsql.post import sandbox
from dpsql.post.sandbox import ReleasedTable
from dpsql.privacy.storage import read_scalar, write_scalar

Values = dict[str, Any]


def fill(holes: Sequence[Hole], tables: Sequence[ReleasedTable], timeout: float) -> Values:
    """The values of all holes of one release, from the tables that earlier steps gave."""
    return {hole.name: _filled(hole, tables, timeout) for hole in holes}


def _filled(hole: Hole, tables: Sequence[ReleasedTable], timeout: float) -> Any:
    rows = sandbox.run(hole.sql, tables, timeout).rows
    if len(rows) > hole.most:
        if hole.shape is Shape.VALUE:
            raise DataError("a sub-select that stands for one value gave more than one row", sqlstate="21000")
        raise LimitExceeded(
            f"a sub-select that private rows are compared with gave more than {hole.most:,} rows",
            hint="Add ORDER BY and LIMIT to the sub-select.",
        )
    cleaned = [tuple(_clean(value) for value in row) for row in rows]
    match hole.shape:
        case Shape.VALUE:
            return cleaned[0][0] if cleaned else None
        case Shape.LIST:
            return [row[0] for row in cleaned]
        case Shape.ROWS:
            names = [column.name for column in hole.columns]
            return [dict(zip(names, row, strict=True)) for row in cleaned]


def _clean(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return None if isinstance(value, str) and len(value) > MOST_LENGTH else value


def values_to_bytes(values: Values) -> bytes:
    return json.dumps({name: _written(value) for name, value in values.items()}, sort_keys=True).encode()


def values_from_bytes(data: bytes) -> Values:
    return {name: _read(value) for name, value in json.loads(data).items()}


def _written(value: Any) -> Any:
    if isinstance(value, list):
        return {"list": [_written(item) for item in value]}
    if isinstance(value, dict):
        return {"row": {name: _written(item) for name, item in value.items()}}
    return {"value": write_scalar(value)}


def _read(stored: dict[str, Any]) -> Any:
    if "list" in stored:
        return [_read(item) for item in stored["list"]]
    if "row" in stored:
        return {name: _read(item) for name, item in stored["row"].items()}
    return read_scalar(stored["value"])
