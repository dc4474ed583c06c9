"""What stands beneath the prompt: what is left, and what the statement that is being typed would be charged.

Privacy: it is EXPLAIN and the caller's own balance, which are free and ask no rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.errors import Error
from dpsql.figures import short_up
from dpsql.repl.show import left_text
from dpsql.repl.statements import Statement, pieces

if TYPE_CHECKING:
    from dpsql.dbapi.connection import Connection
    from dpsql.session import Explanation

QUIET = 0.25
"""Seconds without a key before the statement is looked at."""
_SHOWN = 3


class Beneath:
    """The last statement that was typed, explained on a thread of its own; `changed` is called when there is news."""

    def __init__(self, connection: Callable[[], Connection], left: str, changed: Callable[[], None]) -> None:
        self._connection = connection
        self._changed = changed
        self._left = left
        self._next = ""
        self._wanted: str | None = None
        self._typed_at = 0.0
        self._news = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="dpsql-beneath", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        with self._news:
            self._closed = True
            self._news.notify()
        if self._thread.is_alive():
            self._thread.join()

    def typed(self, text: str) -> None:
        with self._news:
            self._wanted, self._typed_at = text, time.monotonic()
            self._news.notify()

    def asked(self) -> None:
        """A statement was asked: what is left may be less."""
        with self._news:
            self._left = ""
            self._wanted = ""
            self._news.notify()

    def text(self) -> str:
        return " · ".join(part for part in (self._left, self._next) if part)

    def _work(self) -> None:
        while True:
            with self._news:
                while not self._closed and self._left and not self._due():
                    wait = None if self._wanted is None else QUIET - (time.monotonic() - self._typed_at)
                    self._news.wait(wait)
                if self._closed:
                    return
                text, self._wanted = self._wanted or "", None
            if not self._left:
                self._left = f"left of {self._tell_left()}"
            self._next = self._tell_next(text)
            self._changed()

    def _due(self) -> bool:
        return self._wanted is not None and time.monotonic() - self._typed_at >= QUIET

    def _tell_left(self) -> str:
        try:
            connection = self._connection()
            return left_text(connection.user, connection.budget())
        except Error:
            return "what is left cannot be told now"

    def _tell_next(self, text: str) -> str:
        sql = next((piece.sql for piece in pieces(text) if isinstance(piece, Statement)), "")
        if not sql:
            return ""
        try:
            return next_text(self._connection().explain(sql))
        except Error:
            return ""


def next_text(explained: Explanation) -> str:
    """For example: next: epsilon 0.5, visits ± 102."""
    if not explained.releases:
        return "next: free, it reads no private rows"
    chosen = next((offer for offer in explained.offers if offer.chosen), None)
    if chosen is not None and chosen.refused:
        return f"next: would be refused, {chosen.reason}"
    within = () if chosen is None else chosen.within
    named = zip((name for name, _ in explained.outputs), within, strict=False)
    errors = [f"{name} ± {short_up(Fraction(half))}" for name, half in named if half is not None]
    shown = errors[:_SHOWN] + (["…"] if len(errors) > _SHOWN else [])
    paid = bool(explained.paid) and all(explained.paid)
    price = "free, paid for before" if paid else f"epsilon {short_up(explained.epsilon)}"
    if explained.undecided:
        return f"next: a pilot ({price}), and then what it decides"
    more = "" if chosen is None or paid or chosen.more else "; the last that the budget covers"
    return f"next: {', '.join([price, *shown])}{more}"
