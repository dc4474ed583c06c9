"""A server's errors as those of a local session: the same classes, with detail, hint and position."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dpsql import errors
from dpsql.errors import Error, Span
from dpsql.interfaces.pgwire.protocol.extension import StatementMetadata

CONNECTION_LOST = "08006"
"""The SQLSTATE of a connection that broke."""

_ERROR_CLASSES: dict[str, type[Error]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Error)
}
_CLASS_BY_SQLSTATE: dict[str, type[Error]] = {
    kind.default_sqlstate: kind
    for name in (
        "BudgetExceeded", "AccountSuspended", "QueryCanceled", "StaleData", "AccessDenied", "InvalidSyntax",
        "UnknownTable", "UnknownColumn", "AmbiguousColumn", "UnknownFunction", "GroupingError", "TypeMismatch",
        "InvalidParameter", "LimitExceeded", "SchemaError",
    )
    for kind in (_ERROR_CLASSES[name],)
}  # fmt: skip
_CLASS_BY_STATE_CLASS: dict[str, type[Error]] = {
    "08": errors.OperationalError, "0A": errors.NotSupportedError, "22": errors.DataError,
    "23": errors.IntegrityError, "25": errors.ProgrammingError, "26": errors.ProgrammingError,
    "28": errors.AccessDenied, "34": errors.ProgrammingError, "3D": errors.AccessDenied,
    "42": errors.ProgrammingError, "53": errors.OperationalError, "54": errors.ProgrammingError,
    "55": errors.OperationalError, "57": errors.OperationalError, "58": errors.OperationalError,
    "XX": errors.InternalError,
}  # fmt: skip


def read_error(fields: Mapping[str, str], metadata: StatementMetadata | None = None, before: int = 0) -> Error:
    """The error of an ErrorResponse; `before` is how many characters the client put in front of the statement."""
    metadata = metadata or StatementMetadata()
    state = fields.get("C", "XX000")
    message = fields.get("M", "the server tells of an error and not of which")
    if (counted := _PARAMETER_COUNT.match(message)) is not None:
        return _parameter_count_error(int(counted[1]), int(counted[2]))
    inside = fields.get("q")  # another text than the statement, such as a view's, which it points into
    error = _error_class(state, metadata.error)(
        message,
        detail=fields.get("D") if metadata.error is None else metadata.detail,
        hint=fields.get("H"),
        span=_shift_span(fields.get("p" if inside else "P", ""), metadata.span, 0 if inside else before),
        sqlstate=state,
    )
    error.charge, error.statement = metadata.charge, inside
    return error


_PARAMETER_COUNT = re.compile(
    r"bind message supplies (\d{1,5}) parameters, but .* requires (\d{1,5})\Z", re.ASCII | re.DOTALL
)


def _parameter_count_error(supplied: int, used: int) -> Error:
    """As a local session says it."""
    return errors.ProgrammingError(
        f"the statement has {used} placeholder{'' if used == 1 else 's'}, but {supplied} given",
        hint="A placeholder is written ? or $1, and each takes one value: IN (?, ?).",
        sqlstate="08P01",
    )


def _error_class(state: str, name: str | None) -> type[Error]:
    """By its name, where the server tells it; else as near as its SQLSTATE says."""
    if name in _ERROR_CLASSES:
        return _ERROR_CLASSES[name]
    return _CLASS_BY_SQLSTATE.get(state) or _CLASS_BY_STATE_CLASS.get(state[:2]) or errors.DatabaseError


def _shift_span(position: str, server_span: Span | None, before: int) -> Span | None:
    """`server_span` is the server's own, of as many characters; where it begins, the position says."""
    if not (position.isascii() and position.isdigit() and len(position) < 10):
        return None
    start = int(position) - 1 - before
    length = 1 if server_span is None else server_span.end - server_span.start
    return None if start < 0 else Span(start, start + length)


def connection_lost_error(under_way: bool) -> errors.OperationalError:
    """The connection broke, perhaps while a statement was under way."""
    message = "the connection to the server was lost"
    if not under_way:
        return errors.OperationalError(message, hint="Connect again.", sqlstate=CONNECTION_LOST)
    return errors.OperationalError(
        message,
        detail="A statement was under way: it may have been charged, and then its answer is stored.",
        hint="Connect and ask again: what was charged is not charged twice.",
        sqlstate=CONNECTION_LOST,
    )
