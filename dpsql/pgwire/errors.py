"""Errors and notices as fields of the wire.

Law: of an exception that is not one of ours nothing is told: its text may hold rows.
"""

from __future__ import annotations

from dpsql.errors import Error, InternalError
from dpsql.figures import NO_CHARGE, Charge

MAX_FIELD_LENGTH = 20_000
"""Of one field: a client holds all of it, and some refuse long messages."""


def to_public_error(error: BaseException) -> Error:
    """The error itself where it is one of ours."""
    return error if isinstance(error, Error) else InternalError("internal error")


def error_fields(
    error: BaseException,
    severity: str = "ERROR",
    *,
    sql: str | None = None,
    offset: int = 0,
    charge: Charge = NO_CHARGE,
) -> dict[str, str]:
    """Fields by their letters. A position counts characters from 1, in what the client sent: `sql` is the statement,
    which began at `offset` of that. Where the error points into another text, that text is told too."""
    public_error = to_public_error(error)
    fields = {"S": severity, "V": severity, "C": public_error.sqlstate, "M": public_error.message}
    sentences = [public_error.detail, charge_sentence(charge)]
    fields["D"] = " ".join(sentence for sentence in sentences if sentence)
    fields["H"] = public_error.hint or ""
    if public_error.position is not None:
        if sql is None or public_error.statement in (None, sql):
            fields["P"] = str(public_error.position + offset)
        else:
            fields["p"], fields["q"] = str(public_error.position), public_error.statement or ""
    return {letter: text[:MAX_FIELD_LENGTH] for letter, text in fields.items() if text}


def charge_sentence(charge: Charge) -> str | None:
    """Of a statement that failed or was canceled after it was paid for."""
    return f"The statement was charged: {charge}. Asking again is free." if charge else None


def notice_fields(message: str, severity: str = "NOTICE", sqlstate: str = "00000", detail: str = "") -> dict[str, str]:
    fields = {"S": severity, "V": severity, "C": sqlstate, "M": message, "D": detail}
    return {letter: text for letter, text in fields.items() if text}
