"""An answer as lines, and what it was charged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from dpsql.dbapi.frames import Frame, with_errors
from dpsql.display.formats import csv_lines, json_lines, unique_names
from dpsql.display.layout import Expanded, Layout
from dpsql.display.screen import Screen
from dpsql.display.table import table_lines
from dpsql.display.text import shown_lines
from dpsql.figures import CellError, Charge, short_left, short_up
from dpsql.repl.view import View

if TYPE_CHECKING:
    from dpsql.dbapi.connection import Connection
    from dpsql.dbapi.cursor import Cursor
    from dpsql.session import Balance


@dataclass(frozen=True)
class Shown:
    """What came back from one statement."""

    names: tuple[str, ...]
    types: tuple[Any, ...]
    rows: list[tuple[Any, ...]]
    errors: list[tuple[CellError | None, ...]]
    notices: tuple[str, ...]
    status: str
    loss: Charge
    receipts: tuple[str, ...]

    @property
    def is_query(self) -> bool:
        return self.status.startswith("SELECT")

    @property
    def is_plan(self) -> bool:
        return self.names == ("QUERY PLAN",)

    @property
    def has_bars(self) -> bool:
        return any(bar is not None for row in self.errors for bar in row)

    def frame(self, errors: bool) -> Frame:
        """With unique names, since files hold no name twice."""
        frame = Frame(tuple(unique_names(self.names)), self.types, self.rows)
        return with_errors(frame, self.errors) if errors else frame


def take(cursor: Cursor) -> Shown:
    described = cursor.description or []
    errors = cursor.errors if described else []
    return Shown(
        tuple(column[0] for column in described),
        tuple(column[1].type for column in described),
        cursor.fetchall() if described else [],
        errors,
        cursor.notices,
        cursor.statusmessage or "",
        cursor.loss,
        tuple(str(receipt) for receipt in cursor.receipts),
    )


def answer_lines(shown: Shown, view: View, screen: Screen | None, expanded: str) -> list[str]:
    """As the view has it; for a file where there is no `screen`."""
    if view.format != "table":
        frame = shown.frame(view.errors and shown.has_bars)
        lines = list((csv_lines if view.format == "csv" else json_lines)(frame.names, frame.rows))
        to_person = screen is not None and screen.out.isatty()
        return [shown_lines(line) for line in lines] if to_person else lines
    if shown.is_plan:
        return [shown_lines(str(line)) for (line,) in shown.rows]
    lines = table_lines(shown.names, shown.rows, shown.errors, layout_for(view, screen, expanded))
    barred = ", ± 95 % intervals" if view.errors and shown.has_bars else ""
    return [*lines, f"({len(shown.rows)} row{'' if len(shown.rows) == 1 else 's'}{barred})"]


def layout_for(view: View, screen: Screen | None, expanded: str) -> Layout:
    """As the screen can show it; a file takes all."""
    return replace(
        Layout() if screen is None else screen.layout(),
        expanded=cast(Expanded, expanded),
        digits="significant" if view.digits else "all",
        errors=view.errors,
    )


def charge_lines(shown: Shown, connection: Connection) -> list[str]:
    """What the statement was charged, and what is left."""
    return [f"charged: {shown.loss}", f"left of {left_text(connection.user, connection.budget())}"]


def left_text(user: str | None, balance: Balance) -> str:
    whose = "the dataset's" if user is None else f"{balance.account}'s"
    left = short_left(balance.left_epsilon, balance.epsilon)
    part = short_left(100 * balance.fraction_left, Fraction(100))
    return f"{whose} budget: {part} % (epsilon {left} of {short_up(balance.epsilon)})"


def listing(names: Sequence[str], rows: Sequence[tuple[Any, ...]], view: View, screen: Screen | None) -> list[str]:
    """A table that is no answer, as of \\d."""
    return table_lines(names, rows, None, layout_for(view, screen, "auto"))
