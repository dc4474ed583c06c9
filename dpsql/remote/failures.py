"""A server's errors as those of a local session: the same classes, with detail, hint and position."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dpsql import errors
from dpsql.errors import Error
from dpsql.pgwire.meta import Told
from dpsql.span import Span

LOST = "08006"
"""The SQLSTATE of a connection that broke."""

_KNOWN: dict[str, type[Error]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Error)
}
_BY_STATE: dict[str, type[Error]] = {
    kind.default_sqlstate: kind
    for name in (
        "BudgetExceeded", "AccountSuspended", "QueryCanceled", "StaleData", "AccessDenied", "InvalidSyntax",
        "UnknownTable", "UnknownColumn", "AmbiguousColumn", "UnknownFunction", "GroupingError", "TypeMismatch",
        "InvalidParameter", "LimitExceeded", "SchemaError",
    )
    for kind in (_KNOWN[name],)
}  # fmt: skip
_BY_CLASS: dict[str, type[Error]] = {
    "08": errors.OperationalError, "0A": errors.NotSupportedError, "22": errors.DataError,
    "23": errors.IntegrityError, "25": errors.ProgrammingError, "26": errors.ProgrammingError,
    "28": errors.AccessDenied, "34": errors.ProgrammingError, "3D": errors.AccessDenied,
    "42": errors.ProgrammingError, "53": errors.OperationalError, "54": errors.ProgrammingError,
    "55": errors.OperationalError, "57": errors.OperationalError, "58": errors.OperationalError,
    "XX": errors.InternalError,
}  # fmt: skip


def read_error(fields: Mapping[str, str], told: Told | None = None, before: int = 0) -> Error:
    """The error of an ErrorResponse; `before` is how many characters the client put in front of the statement."""
    told = told or Told()
    state = fields.get("C", "XX000")
    message = fields.get("M", "the server tells of an error and not of which")
    if (counted := _BOUND.match(message)) is not None:
        return _other_count(int(counted[1]), int(counted[2]))
    inside = fields.get("q")  # another text than the statement, such as a view's, which it points into
    error = _kind(state, told.error)(
        message,
        detail=fields.get("D") if told.error is None else told.detail,
        hint=fields.get("H"),
        span=_span(fields.get("p" if inside else "P", ""), told.span, 0 if inside else before),
        sqlstate=state,
    )
    error.charge, error.statement = told.charge, inside
    return error


_BOUND = re.compile(r"bind message supplies (\d{1,5}) parameters, but .* requires (\d{1,5})\Z", re.ASCII | re.DOTALL)


def _other_count(given: int, used: int) -> Error:
    """As a local session says it."""
    return errors.ProgrammingError(
        f"the statement has {used} placeholder{'' if used == 1 else 's'}, but {given} given",
        hint="A placeholder is written ? or $1, and each takes one value: IN (?, ?).",
        sqlstate="08P01",
    )


def _kind(state: str, name: str | None) -> type[Error]:
    """By its name, where the server tells it; else as near as its SQLSTATE says."""
    if name in _KNOWN:
        return _KNOWN[name]
    return _BY_STATE.get(state) or _BY_CLASS.get(state[:2]) or errors.DatabaseError


def _span(position: str, told: Span | None, before: int) -> Span | None:
    """`told` is the server's own, of as many characters; where it begins, the position says."""
    if not (position.isascii() and position.isdigit() and len(position) < 10):
        return None
    start = int(position) - 1 - before
    length = 1 if told is None else told.end - told.start
    return None if start < 0 else Span(start, start + length)


def lost(under_way: bool) -> errors.OperationalError:
    """The connection broke, perhaps while a statement was under way."""
    message = "the connection to the server was lost"
    if not under_way:
        return errors.OperationalError(message, hint="Connect again.", sqlstate=LOST)
    return errors.OperationalError(
        message,
        detail="A statement was under way: it may have been charged, and then its answer is stored.",
        hint="Connect and ask again: what was charged is not charged twice.",
        sqlstate=LOST,
    )
