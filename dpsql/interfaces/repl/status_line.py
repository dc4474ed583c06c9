"""The line below the prompt: what is left, and what the statement that is being typed would be charged.

Privacy: it is EXPLAIN and the caller's own balance, which are free and ask no rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.amounts import format_rounded_up
from dpsql.errors import Error, NotSupportedError
from dpsql.interfaces.display.terminal import display_width
from dpsql.interfaces.repl.split_input import StatementText, split_input

if TYPE_CHECKING:
    from dpsql.interfaces.dbapi.connection import Connection
    from dpsql.session.session import Balance, Explanation

DEBOUNCE_SECONDS = 0.25
"""Seconds without a key before the statement is looked at."""
_MAX_ERRORS_SHOWN = 3
MAX_STATEMENTS = 20
"""Statements of one entry that are looked at."""


class StatusLine:
    """The last statement that was typed, explained on a thread of its own; `changed` is called when there is news."""

    def __init__(
        self, connection: Callable[[], Connection], balance_text: tuple[str, str] | None, changed: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._changed = changed
        self._balance = balance_text  # in full, and short
        self._next = ""
        self._warning = ""
        self._requested_text: str | None = None
        self._typed_at = 0.0
        self._changed_condition = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run_worker, name="dpsql-status-line", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        with self._changed_condition:
            self._closed = True
            self._changed_condition.notify()
        if self._thread.is_alive():
            self._thread.join()

    def update_text(self, text: str) -> None:
        with self._changed_condition:
            self._requested_text, self._typed_at = text, time.monotonic()
            self._changed_condition.notify()

    def refresh_balance(self) -> None:
        """A statement was asked: what is left may be less."""
        with self._changed_condition:
            self._balance = None
            self._requested_text = ""
            self._changed_condition.notify()

    def render(self, width: int = 10**6) -> str:
        """What fits in so many columns, whole: no figure is cut, and what comes next goes last."""
        full, short = self._balance or ("", "")
        cost, warned = self._next, self._warning
        for parts in ((full, cost, warned), (short, cost, warned), (cost, warned), (cost,), (short,)):
            line = " · ".join(part for part in parts if part)
            if line and display_width(line) <= width:
                return line
        return ""

    def _run_worker(self) -> None:
        while True:
            with self._changed_condition:
                while not self._closed and self._balance and not self._is_due():
                    wait = (
                        None if self._requested_text is None else DEBOUNCE_SECONDS - (time.monotonic() - self._typed_at)
                    )
                    self._changed_condition.wait(wait)
                if self._closed:
                    return
                text, self._requested_text = self._requested_text or "", None
            if not self._balance:
                self._balance = self._read_balance()
            self._next, self._warning = self._explain_text(text)
            self._changed()

    def _is_due(self) -> bool:
        return self._requested_text is not None and time.monotonic() - self._typed_at >= DEBOUNCE_SECONDS

    def _read_balance(self) -> tuple[str, str]:
        try:
            return format_balance(self._connection().budget())
        except Error:
            return "what is left cannot be told now", ""

    def _explain_text(self, text: str) -> tuple[str, str]:
        """What the statements cost, and what their answers would be misread without."""
        statements = [piece.sql for piece in split_input(text) if isinstance(piece, StatementText) and piece.sql]
        if not statements:
            return "", ""
        try:
            explained = [self._connection().explain(sql) for sql in statements[:MAX_STATEMENTS]]
        except NotSupportedError as error:
            return f"next: would be refused, {error.message}", ""
        except Error:  # it is being typed
            return "", ""
        cost = (
            format_statement_cost(explained[0])
            if len(statements) == 1
            else format_total_cost(explained, len(statements))
        )
        return cost, format_warning(explained)


def format_balance(balance: Balance) -> tuple[str, str]:
    """What is left, in full and short."""
    return f"left of {balance.left_text}", f"{balance.percent_left} left"


def format_warning(explained: Sequence[Explanation]) -> str:
    """The first warning of statements that read private rows."""
    warnings = [warning for explanation in explained if explanation.releases for warning in explanation.warnings]
    return f"warning: {warnings[0]}" if warnings else ""


def format_total_cost(explained: Sequence[Explanation], count: int) -> str:
    """The cost of several statements, each of which is charged."""
    due = [explanation.epsilon for explanation in explained if not (explanation.paid and all(explanation.paid))]
    more = " and more" if count > len(explained) or any(e.undecided or e.price_open for e in explained) else ""
    price = f"epsilon {format_rounded_up(sum(due, Fraction(0)))}{more} in all" if any(due) or more else "free"
    return f"next: {count} statements, {price}"


def format_statement_cost(explained: Explanation) -> str:
    """For example: next: epsilon 0.5, visits ± 102."""
    if not explained.releases:
        return "next: free, it reads no private rows"
    chosen = next((offer for offer in explained.offers if offer.chosen), None)
    if chosen is not None and chosen.refused:
        return f"next: would be refused, {chosen.reason}"
    within = () if chosen is None else chosen.within
    named_errors = zip((name for name, _ in explained.outputs), within, strict=False)
    errors = [f"{name} ± {format_rounded_up(Fraction(half))}" for name, half in named_errors if half is not None]
    shown_errors = errors[:_MAX_ERRORS_SHOWN] + (["…"] if len(errors) > _MAX_ERRORS_SHOWN else [])
    paid = bool(explained.paid) and all(explained.paid)
    price = "free, paid for before" if paid else f"epsilon {format_rounded_up(explained.epsilon)}"
    if chosen is not None and chosen.noise == "laplace" and explained.noise and not paid:  # else it is gaussian
        price += " with laplace noise"
    if explained.price_open:
        return "next: a histogram of units, and then what max_error needs"
    if explained.undecided:
        return f"next: a pilot ({price}), and then what it decides"
    more = "" if chosen is None or paid or chosen.more else "; the last that the budget covers"
    unknown = "; its error is known once the norm is chosen" if explained.norms_undecided else ""
    return f"next: {', '.join([price, *shown_errors])}{unknown}{more}"
