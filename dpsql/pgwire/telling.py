"""What is told beside the rows: notices of an answer, what it was charged, what is left, and settings that changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import isfinite

from dpsql.about import VERSION
from dpsql.errors import Error
from dpsql.figures import short_up
from dpsql.pgwire import meta, replies
from dpsql.pgwire.answering import Answering
from dpsql.pgwire.errors import notice_fields
from dpsql.session import Answer, CellError, Charge

REPORTED = (
    "application_name", "client_encoding", "DateStyle", "default_transaction_read_only", "in_hot_standby",
    "integer_datetimes", "IntervalStyle", "is_superuser", "search_path", "server_encoding", "server_version",
    "session_authorization", "standard_conforming_strings", "TimeZone",
)  # fmt: skip
"""The settings of which a client is told when they change."""

MOST_BARS = 8
"""Columns whose error bars are told."""

_SILENT = frozenset({"error", "fatal", "panic"})
"""Values of client_min_messages with which neither notices nor warnings are sent."""
_QUIET = _SILENT | {"warning"}
"""And those with which no notice is sent."""


class Reported:
    """What a client was last told of each setting."""

    def __init__(self, session: Answering) -> None:
        self._session = session
        self._told: dict[str, str] = {}
        self._seen: Sequence[tuple[str, str]] | None = None

    def changes(self) -> Iterator[bytes]:
        now = self._session.variables
        if now == self._seen:
            return
        self._seen = now
        values = {"in_hot_standby": "off", "session_authorization": self._session.user or ""}
        values.update(now)
        for name in REPORTED:
            value = values.get(name)
            if value is not None and self._told.get(name) != value:
                self._told[name] = value
                yield replies.parameter_status(name, value)


class Notices:
    """`structured`: dpsql's own client, which asked for figures in the place of sentences."""

    def __init__(self, session: Answering, structured: bool) -> None:
        self._session = session
        self.structured = structured

    @property
    def _level(self) -> str:
        return dict(self._session.variables).get("client_min_messages", "notice").lower()

    def of_server(self) -> Iterator[bytes]:
        if self.structured:
            server = meta.Server(VERSION, self._session.database, self._session.user)
            yield replies.parameter_status(meta.SERVER, meta.write_server(server))

    def of_answer(self, answer: Answer, charge: Charge) -> Iterator[bytes]:
        if self.structured:
            left = self._left() if answer.receipts else None
            yield from map(structured_notice, meta.answer_notices(answer, charge, left))
        elif answer.notices or answer.receipts:
            level = self._level
            if level not in _SILENT:
                yield from map(warning, answer.warnings)
            if level in _QUIET:
                return
            for text in (*(one for one in answer.notices if one not in answer.warnings), *bars_text(answer)):
                yield notice(text)
            if answer.receipts:
                left = self._left()
                yield notice(f"charged: {charge}" + ("" if left is None else f"; left of {left}"))

    def of_error(self, error: Exception, charge: Charge) -> Iterator[bytes]:
        if self.structured:
            yield structured_notice(meta.error_notice(error, charge))

    def warning(self, text: str, sqlstate: str) -> Iterator[bytes]:
        if not self.structured and self._level not in _SILENT:
            yield warning(text, sqlstate)

    def _left(self) -> str | None:
        try:
            return self._session.left_text()
        except Error:  # the answer is there, whatever becomes of the ledger now
            return None


def bars_text(answer: Answer) -> tuple[str, ...]:
    """How wide the error bars are, in a line: clients have no other place for them. DP_LOW and DP_HIGH tell each."""
    told: list[str] = []
    for place, column in enumerate(answer.columns):
        widths = sorted(width for bars in answer.errors if (width := _half(bars[place])) is not None)
        if widths:
            narrow, wide = short_up(Fraction(widths[0])), short_up(Fraction(widths[-1]))
            told.append(f"{column.name} ± {wide}" if narrow == wide else f"{column.name} ± {narrow} to {wide}")
    if not told:
        return ()
    more = f" and {len(told) - MOST_BARS} more" if len(told) > MOST_BARS else ""
    return (f"95 % intervals: {', '.join(told[:MOST_BARS])}{more}",)


def _half(bar: CellError | None) -> float | None:
    if bar is None or not all(isinstance(one, int | float) and isfinite(one) for one in (bar.low, bar.high)):
        return None
    return (bar.high - bar.low) / 2


def notice(text: str) -> bytes:
    return replies.notice_response(notice_fields(text))


def warning(text: str, sqlstate: str = "01000") -> bytes:
    return replies.notice_response(notice_fields(text, "WARNING", sqlstate))


def structured_notice(detail: str) -> bytes:
    return replies.notice_response(notice_fields(meta.MESSAGE, "NOTICE", meta.CODE, detail))
