"""Errors and notices as fields of the wire.

Law: of an exception that is not one of ours nothing is told: its text may hold rows.
"""

from __future__ import annotations

from dpsql.errors import Error, InternalError
from dpsql.figures import NOTHING, Charge

MOST_CHARACTERS = 20_000
"""Of one field: a client holds all of it, and some refuse long messages."""


def told_error(error: BaseException) -> Error:
    """The error itself where it is one of ours."""
    return error if isinstance(error, Error) else InternalError("internal error")


def error_fields(
    error: BaseException,
    severity: str = "ERROR",
    *,
    sql: str | None = None,
    offset: int = 0,
    charge: Charge = NOTHING,
) -> dict[str, str]:
    """Fields by their letters. A position counts characters from 1, in what the client sent: `sql` is the statement,
    which began at `offset` of that. Where the error points into another text, that text is told too."""
    told = told_error(error)
    fields = {"S": severity, "V": severity, "C": told.sqlstate, "M": told.message}
    sentences = [told.detail, charge_sentence(charge)]
    fields["D"] = " ".join(one for one in sentences if one)
    fields["H"] = told.hint or ""
    if told.position is not None:
        if sql is None or told.statement in (None, sql):
            fields["P"] = str(told.position + offset)
        else:
            fields["p"], fields["q"] = str(told.position), told.statement or ""
    return {letter: text[:MOST_CHARACTERS] for letter, text in fields.items() if text}


def charge_sentence(charge: Charge) -> str | None:
    """Of a statement that failed or was canceled after it was paid for."""
    return f"The statement was charged: {charge}. Asking again is free." if charge else None


def notice_fields(message: str, severity: str = "NOTICE", sqlstate: str = "00000", detail: str = "") -> dict[str, str]:
    fields = {"S": severity, "V": severity, "C": sqlstate, "M": message, "D": detail}
    return {letter: text for letter, text in fields.items() if text}
