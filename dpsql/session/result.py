"""A statement's result: rows with their errors, what was charged, and notices."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.amounts import CellError, Charge
from dpsql.base.serialization import to_json
from dpsql.compiler.catalog import show
from dpsql.compiler.catalog.tables import CatalogTable
from dpsql.compiler.catalog.variables import canonical_name
from dpsql.compiler.compiled import Compiled
from dpsql.compiler.settings import Settings
from dpsql.ledger.base import Balance, Entitlement, Receipt, ReleaseRequest
from dpsql.privacy.exact import Row
from dpsql.privacy.loss import NO_LOSS, Loss, sum_losses
from dpsql.schema.model import Schema
from dpsql.session.postprocess.sandbox import OutputColumn, QueryRows
from dpsql.session.transaction import SettingValues
from dpsql.types import TEXT, Type


@dataclass(frozen=True)
class StatementResult:
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
    unknown_clipping: tuple[str, ...] = ()  # notices for the first answer of a session that they concern

    def copy_uncharged(self) -> StatementResult:
        """The same answer for someone else to change, and for nothing."""
        return replace(self, rows=list(self.rows), errors=list(self.errors), loss=NO_LOSS)


def build_query_result(
    compiled: Compiled, notices: tuple[str, ...], result: QueryRows, charged: Loss, receipts: tuple[Receipt, ...]
) -> StatementResult:
    """The asked columns of a result, and behind them its errors."""
    output_count = len(compiled.errors) if compiled.errors else len(result.columns)
    errors = [tuple(_read_cell_error(row, bar) for bar in compiled.errors) for row in result.rows]
    if not compiled.errors:
        errors = [(None,) * output_count for _ in result.rows]
    rows = [row[:output_count] for row in result.rows]
    notices = compiled.notices + notices + _wide_noise_notices(rows, errors)
    return StatementResult(
        result.columns[:output_count],
        rows,
        errors,
        charged,
        notices,
        "SELECT",
        compiled.settings,
        receipts,
        compiled.warnings,
        compiled.unknown_clipping,
    )


def _read_cell_error(row: Row, bar: object) -> CellError | None:
    if bar is None:
        return None
    stderr, low, high, clipped = (row[getattr(bar, field)] for field in ("stderr", "low", "high", "clipped"))
    return None if stderr is None else CellError(stderr, low, high, clipped)


def _wide_noise_notices(rows: list[Row], errors: list[tuple[CellError | None, ...]]) -> tuple[str, ...]:
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
class PendingCharge:
    """A charge from before it is made: who is interrupted between the two asks the ledger whether it was."""

    settings: Settings
    requests: Sequence[ReleaseRequest]
    loss: Loss
    recorded: bool = False
    prepares: bool = False  # within the epsilon of the statement that follows it


def charged_loss(entitlements: Sequence[Entitlement]) -> Loss:
    """The loss charged for these, each release once."""
    return sum_losses(
        list({entitlement.release: entitlement.loss for entitlement in entitlements if entitlement.charged}.values())
    )


def total_charge(charges: Sequence[PendingCharge]) -> Charge:
    """What a statement and its pilot were charged, together at most; histograms for its norms are within it."""
    statement_charges = [charge for charge in charges if not charge.prepares] or list(charges[:1])
    settings, loss = [charge.settings for charge in statement_charges], sum_losses([charge.loss for charge in charges])
    epsilon, delta = sum((s.epsilon for s in settings), Fraction(0)), sum((s.delta for s in settings), Fraction(0))
    return Charge(epsilon, delta, loss.rho, loss.delta, loss.epsilon)


def format_column_type(column: OutputColumn) -> str:
    return str(column.type) if column.type is not None else column.spelling.lower()


def build_command_result(command: str) -> StatementResult:
    return StatementResult((), [], [], command=command)


def build_rows_result(columns: tuple[tuple[str, Type], ...], rows: Sequence[Row], command: str) -> StatementResult:
    outputs = tuple(OutputColumn(name, type_, str(type_)) for name, type_ in columns)
    return StatementResult(outputs, list(rows), [(None,) * len(columns) for _ in rows], command=command)


def build_catalog_result(table: CatalogTable, command: str) -> StatementResult:
    return build_rows_result(table.columns, table.rows, command)


def build_text_result(title: str, lines: list[str]) -> StatementResult:
    return build_rows_result(((title, TEXT),), [(line,) for line in lines], "EXPLAIN")


def build_json_result(title: str, value: object, command: str) -> StatementResult:
    """One value as JSON, exactly: `dpsql.base.serialization` reads it back."""
    return build_rows_result(((title, TEXT),), [(json.dumps(to_json(value)),)], command)


def build_show_result(
    name: str, schema: Schema, account: str, now: SettingValues, balance: Callable[[], Balance]
) -> StatementResult:
    """SHOW: a setting, or what the schema and the account have to show."""
    match name:
        case "budget":
            return build_budget_result(balance())
        case "tables":
            return build_catalog_result(show.show_tables(schema), "SHOW")
        case "schemas":
            return build_catalog_result(show.show_schemas(), "SHOW")
        case "all":
            return build_rows_result((("name", TEXT), ("setting", TEXT)), now.items(), "SHOW")
        case "session_authorization":
            return build_rows_result(((name, TEXT),), [(account,)], "SHOW")
        case _:
            return build_rows_result(((canonical_name(name), TEXT),), [(now.show_value(name),)], "SHOW")


def build_budget_result(balance: Balance) -> StatementResult:
    return build_rows_result((("budget", TEXT),), [(line,) for line in str(balance).splitlines()], "SHOW")
