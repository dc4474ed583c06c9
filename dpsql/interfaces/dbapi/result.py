"""An answer as one value: rows with their errors, ready for a notebook, a data frame or a chart."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dpsql.amounts import CellError, Charge
from dpsql.errors import ProgrammingError
from dpsql.interfaces.dbapi.dataframes import Frame, add_error_columns, to_arrow, to_pandas, to_polars
from dpsql.interfaces.dbapi.types import TypeCode
from dpsql.interfaces.display.html import render_html_table
from dpsql.interfaces.display.plot import draw_plot
from dpsql.interfaces.display.table import render_table
from dpsql.interfaces.display.terminal import Layout, escape_text, terminal_width

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from dpsql.session.session import Receipt

Row = tuple[Any, ...]

PLAN_COLUMNS = ("QUERY PLAN",)
"""The columns of what EXPLAIN tells, which is text and no table."""
MAX_ROWS_SHOWN = 100
"""Rows that are shown of an answer; all of them are in `rows`."""


@dataclass(frozen=True, repr=False, eq=False)
class Answer:
    """What came back from a statement. Iterate over its rows, or take them as a data frame or a chart.

    In a notebook, and where it is printed, it is a table with error bars: ± is half of a 95 % interval.
    """

    columns: tuple[str, ...]
    """The names of the columns."""
    types: tuple[TypeCode, ...]
    """Their types: each equals the names of its SQL type, and `dpsql.NUMBER` and the like."""
    rows: list[Row]
    """The released rows."""
    errors: list[tuple[CellError | None, ...]]
    """For each row, and each column in it, how far it may be off, or None where no noise is known: `stderr`, the 95 %
    interval from `low` to `high`, and `clipped`, the part of it for units that were scaled down; None if not known."""
    loss: Charge
    """What the statement was charged; nothing, and false, where all of it was paid for before."""
    notices: tuple[str, ...]
    """What there is to say about the answer, for people."""
    receipts: tuple[Receipt, ...]
    """The entries of the account by which the releases were paid, now or before; keep them."""
    command: str
    """SELECT for a query, or else the command's word: SET, SHOW, EXPLAIN…"""
    left: str | None
    """What was left of the budget after it, for people; None where no private rows were read."""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def scalar(self) -> Any:
        """The only value of an answer that has one row and one column."""
        if len(self.rows) != 1 or len(self.columns) != 1:
            shape = f"{len(self.rows)} by {len(self.columns)}"
            raise ProgrammingError(f"the answer has not one value, but {shape}", hint="Look at its rows.")
        return self.rows[0][0]

    def df(self, *, errors: bool = False) -> pandas.DataFrame:
        """As a pandas data frame; `errors` adds x_stderr, x_low, x_high and x_clipped to noisy x."""
        return to_pandas(self._to_frame(errors))

    def pl(self, *, errors: bool = False) -> polars.DataFrame:
        """As a polars data frame; `errors` adds x_stderr, x_low, x_high and x_clipped to noisy x."""
        return to_polars(self._to_frame(errors))

    def arrow(self, *, errors: bool = False) -> pyarrow.Table:
        """As an Arrow table; `errors` adds x_stderr, x_low, x_high and x_clipped to noisy x."""
        return to_arrow(self._to_frame(errors))

    def plot(
        self,
        x: str | None = None,
        y: str | Sequence[str] | None = None,
        *,
        kind: Literal["bar", "line"] | None = None,
        library: Literal["matplotlib", "altair"] = "matplotlib",
        ax: Any = None,
    ) -> Any:
        """A chart with 95 % error bars: matplotlib's Axes (on `ax`, if given), or altair's Chart.

        `x` is the first key, `y` all noisy columns, unless they are named; other keys become series. Keys that are
        times or numbers make lines, others bars, unless `kind` says so.
        """
        self._require_columns()
        names = None if y is None else [y] if isinstance(y, str) else list(y)
        return draw_plot(self.columns, self.rows, self.errors, x, names, kind, library, ax)

    def __repr__(self) -> str:
        if not self.columns:
            return self.command
        if self.columns == PLAN_COLUMNS:
            return "\n".join(escape_text(str(line)) for (line,) in self.rows)
        width = terminal_width(sys.stdout)
        layout = Layout(width, "off" if width is None else "auto")
        table = render_table(self.columns, self.rows[:MAX_ROWS_SHOWN], self.errors[:MAX_ROWS_SHOWN], layout)
        return "\n".join([*table, *map(escape_text, self._footer_lines())])

    def _repr_html_(self) -> str:
        if self.columns in ((), PLAN_COLUMNS):
            return render_html_table((), (), (), repr(self).splitlines())
        return render_html_table(
            self.columns, self.rows[:MAX_ROWS_SHOWN], self.errors[:MAX_ROWS_SHOWN], self._footer_lines()
        )

    def _footer_lines(self) -> list[str]:
        """The lines below the table."""
        shown_text = f", the first {MAX_ROWS_SHOWN} are shown" if len(self.rows) > MAX_ROWS_SHOWN else ""
        lines = [format_row_count(self, shown_text, has_error_bars(self)), *format_charge_lines(self)]
        return lines + [f"NOTICE:  {notice}" for notice in self.notices]

    def _to_frame(self, errors: bool) -> Frame:
        self._require_columns()
        frame = Frame(self.columns, tuple(code.type for code in self.types), self.rows)
        return add_error_columns(frame, self.errors) if errors else frame

    def _require_columns(self) -> None:
        if not self.columns:
            raise ProgrammingError(f"{self.command} has no rows", hint="Ask a SELECT.")


def has_error_bars(answer: Answer) -> bool:
    return any(bar is not None for bars in answer.errors for bar in bars)


def may_be_clipped(answer: Answer) -> bool:
    """Whether the plan may have scaled units down, and a histogram tells about how far that moves answers."""
    return any(bar is not None and bar.clipped for bars in answer.errors for bar in bars)


def format_row_count(answer: Answer, shown_text: str, barred: bool) -> str:
    """How many rows there are; `shown_text` says which of them are shown."""
    rows = "1 row" if len(answer.rows) == 1 else f"{len(answer.rows)} rows"
    clipping = " of noise and clipping" if may_be_clipped(answer) else ""
    return f"({rows}{shown_text}{f', ± 95 % intervals{clipping}' if barred else ''})"


def format_charge_lines(answer: Answer) -> list[str]:
    """What the statement was charged, and what is left; nothing where it read no private rows."""
    charged = [f"charged: {answer.loss}"] if answer.receipts else []
    return charged + ([] if answer.left is None else [f"left of {answer.left}"])
