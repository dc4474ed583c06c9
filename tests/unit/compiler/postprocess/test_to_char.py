"""TO_CHAR of released numbers prints what PostgreSQL prints."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot

from dpsql.compiler.parse.dialect import AnalystDialect
from dpsql.compiler.postprocess.postgres_semantics import render_postprocessing
from dpsql.compiler.postprocess.to_char import parse_number_format
from dpsql.errors import Unsupported

# As the rules in PostgreSQL's manual have it.
PRINTED = (
    (1234, "999,999", "   1,234"), (-1234, "999,999", "  -1,234"), (1234567, "999,999", " ###,###"),
    (0, "999", "   0"), (7, "000", " 007"), (-7, "FM000", "-007"), (7.5, "FM990.00", "7.50"), (0.5, "9.99", "  .50"),
    (0.5, "0.99", " 0.50"), (1.5, "FM990.99", "1.5"), (1234.5, "FM$999,999.00", "$1,234.50"),
    (12.345, "999.9", "  12.3"),    (45.6, "FM990.0%", "45.6%"), (None, "999", None),
)  # fmt: skip


def post(number: str, fmt: str) -> str:
    tree = sqlglot.parse_one(f"SELECT to_char({number}, '{fmt}') AS t", dialect=AnalystDialect)
    assert isinstance(tree, sqlglot.exp.Query)
    return render_postprocessing(tree)


@pytest.mark.parametrize(("number", "fmt", "expected"), PRINTED)
def test_a_number_is_printed_as_postgres_does(number: float | None, fmt: str, expected: str | None) -> None:
    ((found,),) = duckdb.execute(post("NULL" if number is None else str(number), fmt)).fetchall()
    assert found == expected


@pytest.mark.parametrize("fmt", ["9" * 30, "S999", "RN", "0,000", "$999", "YYYY", "9,9"])
def test_other_formats_are_none(fmt: str) -> None:
    assert parse_number_format(fmt) is None


def test_a_number_with_another_format_is_refused() -> None:
    with pytest.raises(Unsupported, match="TO_CHAR of a number") as caught:
        post("12", "S999")
    assert caught.value.hint == "Write ROUND(x, 2), or format('{:,}', x), of a number x."


def test_dates_are_printed_as_ever() -> None:
    assert "STRFTIME" in post("CURRENT_DATE", "YYYY-MM").upper()
