"""What comes back from a statement: rows with their errors, what was charged, and what there is to say about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.catalog import shows
from dpsql.catalog.rows import CatalogTable
from dpsql.catalog.variables import spelled_name
from dpsql.compiled import Compiled
from dpsql.exact import Row
from dpsql.figures import CellError, Charge
from dpsql.ledger.base import Asked, Balance, Claim, Receipt
from dpsql.plain import to_plain
from dpsql.post.sandbox import OutputColumn, Rows
from dpsql.privacy.loss import NO_LOSS, Loss, total
from dpsql.schema.model import Schema
from dpsql.settings import Settings
from dpsql.state import Values
from dpsql.types import TEXT, Type


@dataclass(frozen=True)
class Answer:
    """`loss` is what this statement was charged: nothing where all its releases were paid for before.

    `receipts` name the entries of the account by which its releases were paid, now or before. `warnings` are those of
    the notices without which it would be misread: that rows are made up.
    """

    columns: tuple[OutputColumn, ...]
    rows: list[Row]
    errors: list[tuple[CellError | None, ...]]
    loss: Loss = NO_LOSS
    notices: tuple[str, ...] = ()
    command: str = "SELECT"
    settings: Settings | None = None  # of the statement: those of the session, and what its OPTIONS say
    receipts: tuple[Receipt, ...] = ()
    warnings: tuple[str, ...] = ()

    def again(self) -> Answer:
        """The same answer for someone else to change, and for nothing."""
        return replace(self, rows=list(self.rows), errors=list(self.errors), loss=NO_LOSS)


def query_answer(
    compiled: Compiled, notices: tuple[str, ...], result: Rows, charged: Loss, receipts: tuple[Receipt, ...]
) -> Answer:
    """The asked columns of a result, and behind them its errors."""
    asked = len(compiled.errors) if compiled.errors else len(result.columns)
    errors = [tuple(_cell_error(row, bar) for bar in compiled.errors) for row in result.rows]
    if not compiled.errors:
        errors = [(None,) * asked for _ in result.rows]
    rows = [row[:asked] for row in result.rows]
    notices = compiled.notices + notices + _notices_about(rows, errors)
    return Answer(
        result.columns[:asked], rows, errors, charged, notices, "SELECT", compiled.settings, receipts, compiled.warnings
    )


def _cell_error(row: Row, bar: object) -> CellError | None:
    if bar is None:
        return None
    stderr, low, high = (row[getattr(bar, place)] for place in ("stderr", "low", "high"))
    return None if stderr is None else CellError(stderr, low, high)


def _notices_about(rows: list[Row], errors: list[tuple[CellError | None, ...]]) -> tuple[str, ...]:
    """Noise wider than the value earns a notice; it says nothing that the answer does not."""
    cells = wide = 0
    for row, bars in zip(rows, errors, strict=True):
        for value, bar in zip(row, bars, strict=True):
            if bar is not None and isinstance(value, int | float):
                cells += 1
                wide += bar.stderr > abs(value)
    if not wide:
        return ()
    return (f"the noise is wider than the value in {wide} of {cells} cells; a larger epsilon or coarser groups help",)


@dataclass(eq=False)
class Charging:
    """A charge from before it is made: who is interrupted between the two asks the ledger whether it was."""

    settings: Settings
    asked: Sequence[Asked]
    loss: Loss
    made: bool = False


def loss_of(claims: Sequence[Claim]) -> Loss:
    """What is charged for these, each release once."""
    return total(list({claim.release: claim.loss for claim in claims if claim.charged}.values()))


def charge_of(charges: Sequence[Charging]) -> Charge:
    """What a statement and its pilot were charged, together at most."""
    asked, loss = [one.settings for one in charges], total([one.loss for one in charges])
    epsilon, delta = sum((s.epsilon for s in asked), Fraction(0)), sum((s.delta for s in asked), Fraction(0))
    return Charge(epsilon, delta, loss.rho, loss.delta, loss.epsilon)


def type_text(column: OutputColumn) -> str:
    return str(column.type) if column.type is not None else column.spelling.lower()


def done(command: str) -> Answer:
    return Answer((), [], [], command=command)


def rows_answer(columns: tuple[tuple[str, Type], ...], rows: Sequence[Row], command: str) -> Answer:
    outputs = tuple(OutputColumn(name, type_, str(type_)) for name, type_ in columns)
    return Answer(outputs, list(rows), [(None,) * len(columns) for _ in rows], command=command)


def catalog_answer(table: CatalogTable, command: str) -> Answer:
    return rows_answer(table.columns, table.rows, command)


def text_answer(title: str, lines: list[str]) -> Answer:
    return rows_answer(((title, TEXT),), [(line,) for line in lines], "EXPLAIN")


def json_answer(title: str, value: object, command: str) -> Answer:
    """One value as JSON, exactly: `dpsql.plain` reads it back."""
    return rows_answer(((title, TEXT),), [(json.dumps(to_plain(value)),)], command)


def show_answer(name: str, schema: Schema, account: str, now: Values, balance: Callable[[], Balance]) -> Answer:
    """SHOW: a setting, or what the schema and the account have to show."""
    match name:
        case "budget":
            return budget_answer(balance())
        case "tables":
            return catalog_answer(shows.tables(schema), "SHOW")
        case "schemas":
            return catalog_answer(shows.schemas(), "SHOW")
        case "all":
            return rows_answer((("name", TEXT), ("setting", TEXT)), now.items(), "SHOW")
        case "session_authorization":
            return rows_answer(((name, TEXT),), [(account,)], "SHOW")
        case _:
            return rows_answer(((spelled_name(name), TEXT),), [(now.show(name),)], "SHOW")


def budget_answer(balance: Balance) -> Answer:
    return rows_answer((("budget", TEXT),), [(line,) for line in str(balance).splitlines()], "SHOW")
