"""Error bars in a line: clients of PostgreSQL have no other place for them."""

from __future__ import annotations

from dpsql.interfaces.pgwire.backend_session.notices import MAX_ERROR_BARS, format_error_bars
from dpsql.session.session import CellError, OutputColumn, StatementResult
from dpsql.types import BIGINT, TEXT


def answer(*rows: tuple[CellError | None, ...]) -> StatementResult:
    names = tuple(OutputColumn(f"c{n}", TEXT if n == 0 else BIGINT, "") for n in range(len(rows[0])))
    return StatementResult(names, [(1,) * len(names) for _ in rows], list(rows))


def bar(half: float) -> CellError:
    return CellError(half / 2, 10 - half, 10 + half)


def test_widths_are_reported_by_column() -> None:
    assert format_error_bars(answer((None, bar(5), bar(2)), (None, bar(5), bar(7.125)))) == (
        "95 % intervals: c1 ± 5, c2 ± 2 to 7.13",
    )
    assert format_error_bars(answer((None, None))) == ()
    assert format_error_bars(answer((bar(float("inf")), bar(1)))) == ("95 % intervals: c1 ± 1",)


def test_many_columns_are_counted() -> None:
    (told,) = format_error_bars(answer(tuple(bar(1) for _ in range(MAX_ERROR_BARS + 3))))
    assert told.endswith(" and 3 more") and told.count("±") == MAX_ERROR_BARS
