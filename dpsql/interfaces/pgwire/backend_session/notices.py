"""Notices and errors beside the rows: what was charged, what is left, and settings that changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import isfinite

from dpsql.amounts import NO_CHARGE, Charge, format_rounded_up
from dpsql.errors import Error, InternalError
from dpsql.interfaces.pgwire.backend_session.session_interface import SessionProtocol
from dpsql.interfaces.pgwire.protocol import backend, extension
from dpsql.session.session import CellError, StatementResult
from dpsql.session.session import Charge as SessionCharge
from dpsql.version import VERSION

# Errors and notices as fields of the wire.
#
# Law: of an exception that is not one of ours nothing is told: its text may hold rows.

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
    """The sentence about the charge of a statement that failed or was canceled after it was paid for."""
    return f"The statement was charged: {charge}. What is paid for is not charged again." if charge else None


def notice_fields(message: str, severity: str = "NOTICE", sqlstate: str = "00000", detail: str = "") -> dict[str, str]:
    fields = {"S": severity, "V": severity, "C": sqlstate, "M": message, "D": detail}
    return {letter: text for letter, text in fields.items() if text}


REPORTED_SETTINGS = (
    "application_name", "client_encoding", "DateStyle", "default_transaction_read_only", "in_hot_standby",
    "integer_datetimes", "IntervalStyle", "is_superuser", "search_path", "server_encoding", "server_version",
    "session_authorization", "standard_conforming_strings", "TimeZone",
)  # fmt: skip
"""The settings of which a client is told when they change."""

MAX_ERROR_BARS = 8
"""Columns whose error bars are told."""

_SILENT_LEVELS = frozenset({"error", "fatal", "panic"})
"""Values of client_min_messages with which neither notices nor warnings are sent."""
_QUIET_LEVELS = _SILENT_LEVELS | {"warning"}
"""And those with which no notice is sent."""


class ReportedSettings:
    """The value of each setting that was last reported to the client."""

    def __init__(self, session: SessionProtocol) -> None:
        self._session = session
        self._reported_values: dict[str, str] = {}
        self._seen: Sequence[tuple[str, str]] | None = None

    def report_changes(self) -> Iterator[bytes]:
        variables = self._session.variables
        if variables == self._seen:
            return
        self._seen = variables
        values = {"in_hot_standby": "off", "session_authorization": self._session.user or ""}
        values.update(variables)
        for name in REPORTED_SETTINGS:
            value = values.get(name)
            if value is not None and self._reported_values.get(name) != value:
                self._reported_values[name] = value
                yield backend.parameter_status(name, value)


class ClientNotices:
    """`structured`: dpsql's own client, which asked for figures in the place of sentences."""

    def __init__(self, session: SessionProtocol, structured: bool) -> None:
        self._session = session
        self.structured = structured

    @property
    def _min_message_level(self) -> str:
        return dict(self._session.variables).get("client_min_messages", "notice").lower()

    def write_server_info(self) -> Iterator[bytes]:
        if self.structured:
            server = extension.ServerInfo(VERSION, self._session.database, self._session.user)
            yield backend.parameter_status(extension.SERVER_STATUS, extension.encode_server_info(server))

    def write_answer_notices(self, answer: StatementResult, charge: SessionCharge) -> Iterator[bytes]:
        if self.structured:
            remaining = self._remaining_budget_text() if answer.receipts else None
            yield from map(encode_structured_notice, extension.encode_answer_notices(answer, charge, remaining))
        elif answer.notices or answer.receipts:
            level = self._min_message_level
            if level not in _SILENT_LEVELS:
                yield from map(encode_warning, answer.warnings)
            if level in _QUIET_LEVELS:
                return
            for text in (
                *(notice_text for notice_text in answer.notices if notice_text not in answer.warnings),
                *format_error_bars(answer),
            ):
                yield encode_notice(text)
            if answer.receipts:
                remaining = self._remaining_budget_text()
                yield encode_notice(f"charged: {charge}" + ("" if remaining is None else f"; left of {remaining}"))

    def write_error_notice(self, error: Exception, charge: SessionCharge) -> Iterator[bytes]:
        if self.structured:
            yield encode_structured_notice(extension.encode_error_notice(error, charge))

    def write_warning(self, text: str, sqlstate: str) -> Iterator[bytes]:
        if not self.structured and self._min_message_level not in _SILENT_LEVELS:
            yield encode_warning(text, sqlstate)

    def _remaining_budget_text(self) -> str | None:
        try:
            return self._session.left_text()
        except Error:  # the answer is there, whatever becomes of the ledger now
            return None


def format_error_bars(answer: StatementResult) -> tuple[str, ...]:
    """How wide the error bars are, in a line: clients have no other place for them. DP_LOW and DP_HIGH tell each."""
    parts: list[str] = []
    for index, column in enumerate(answer.columns):
        widths = sorted(width for bars in answer.errors if (width := _half_width(bars[index])) is not None)
        if widths:
            narrow, wide = format_rounded_up(Fraction(widths[0])), format_rounded_up(Fraction(widths[-1]))
            text = f"{column.name} ± {wide}" if narrow == wide else f"{column.name} ± {narrow} to {wide}"
            parts.append(text + _format_clipping(bars[index] for bars in answer.errors))
    if not parts:
        return ()
    more = f" and {len(parts) - MAX_ERROR_BARS} more" if len(parts) > MAX_ERROR_BARS else ""
    return (f"95 % intervals: {', '.join(parts[:MAX_ERROR_BARS])}{more}",)


def _format_clipping(bars: Iterable[CellError | None]) -> str:
    """How much of a column's widest bar is for units that were scaled down."""
    clipped = [bar.clipped for bar in bars if bar is not None and bar.clipped and isfinite(bar.clipped)]
    return f" (of it up to {format_rounded_up(Fraction(max(clipped)))} for clipping)" if clipped else ""


def _half_width(bar: CellError | None) -> float | None:
    if bar is None or not all(isinstance(bound, int | float) and isfinite(bound) for bound in (bar.low, bar.high)):
        return None
    return (bar.high - bar.low) / 2


def encode_notice(text: str) -> bytes:
    return backend.notice_response(notice_fields(text))


def encode_warning(text: str, sqlstate: str = "01000") -> bytes:
    return backend.notice_response(notice_fields(text, "WARNING", sqlstate))


def encode_structured_notice(detail: str) -> bytes:
    return backend.notice_response(notice_fields(extension.NOTICE_MESSAGE, "NOTICE", extension.NOTICE_SQLSTATE, detail))
