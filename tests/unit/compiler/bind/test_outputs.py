"""The types that post-processing is said to give, beside those that it gives."""

from __future__ import annotations

import pytest
from sqlglot import exp

from dpsql.compiler.bind.outputs import infer_type
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.postprocess.postgres_semantics import render_postprocessing
from dpsql.compiler.split.blocks import infer_source_outputs
from dpsql.session.postprocess import sandbox
from dpsql.types import Type

DAY, TIME = "DATE '2024-03-05'", "TIMESTAMP '2024-03-05 10:00:00'"
EXPRESSIONS = [
    f"DATE_TRUNC('month', {DAY})", f"DATE_TRUNC('day', {TIME})", f"{DAY} + 30", f"30 + {DAY}", f"{DAY} - 1",
    f"{DAY} - INTERVAL '1 day'", f"INTERVAL '1 day' + {TIME}", f"{DAY} - {DAY}", f"EXTRACT(YEAR FROM {DAY})",
    f"EXTRACT(SECOND FROM {TIME})", f"YEAR({DAY})", f"MONTH({DAY})", f"DATE({TIME})", f"LAST_DAY({DAY})",
    f"DATE_DIFF('day', {DAY}, {DAY})", f"COALESCE({DAY}, {DAY})", f"CASE WHEN TRUE THEN {DAY} END",
    "FLOOR(7)", "CEIL(CAST(1.5 AS DECIMAL(5, 2)))", "FLOOR(CAST(2 AS DOUBLE PRECISION))", "SQRT(2)", "POWER(2, 3)",
    "'n' || 5", "CONCAT('a', 1)", "UPPER('a')", "SUBSTRING('abc', 1, 2)", "REPLACE('a', 'b', 'c')", "LENGTH('a')",
    "TRIM('a ')", "LEFT('abc', 1)", "SPLIT_PART('a,b', ',', 1)", f"STRFTIME({DAY}, '%Y')", f"TO_CHAR({DAY}, 'YYYY')",
    "CAST('5' AS INTEGER)", "TRY_CAST('5' AS DATE)", "unnest([1, 2])", "unnest(['a', NULL])",
    f"unnest(generate_series({DAY}, {DAY}, INTERVAL '1 day'))", "generate_series(1, 3)", "STRPOS('abc', 'b')",
    "NULLIF(2, 0)", "NULLIF(2, 0.0)", "NULLIF(0.5, 1)", "NULLIF('a', 'b')", f"NULLIF({DAY}, {DAY})",
]  # fmt: skip
SOURCES = [
    f"generate_series({DAY}, {DAY}, INTERVAL '1 day') AS t(d)",
    f"range({TIME}, {TIME}, INTERVAL '1 hour')",
    f"generate_series({DAY}, {DAY} + INTERVAL '3 days', INTERVAL '1 day') AS d",
    "range(5) AS t(i)", "generate_series(1, 5) AS i", "unnest(ARRAY['a', 'b']) AS t(x)", "unnest([1, 2]) AS x",
    "unnest([1.5, 2])", "unnest(generate_series(1, 3)) AS t(i)", "unnest([DATE '2024-01-01'])",
]  # fmt: skip


def alike(said: Type, given: Type) -> bool:
    """Whole numbers of any width, and other numbers of any kind, are read alike."""
    return said == given or (said.is_number and given.is_number and said.is_integer == given.is_integer)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_have_the_type_that_is_said(text: str) -> None:
    tree = parse_query(f"SELECT {text} AS x")
    said = infer_type(tree.selects[0].unalias())
    (given,) = sandbox.describe_query(render_postprocessing(tree), [])
    assert said is not None and given.type is not None and alike(said, given.type), (said, given)


@pytest.mark.parametrize("text", SOURCES)
def test_sources_have_the_columns_that_are_said(text: str) -> None:
    tree = parse_query(f"SELECT * FROM {text}")
    said = infer_source_outputs(tree.args["from_"].this)
    given = sandbox.describe_query(render_postprocessing(tree), [])
    assert said is not None and [o.name for o in said] == [c.name for c in given]
    for ours, theirs in zip(said, given, strict=True):
        assert ours.type is not None and theirs.type is not None and alike(ours.type, theirs.type), (ours, theirs)


@pytest.mark.parametrize("text", ["EXTRACT(EPOCH FROM TIMESTAMP '2024-01-01')", "[1, 2]", "NULL", "x"])
def test_a_type_that_is_not_known_is_not_guessed(text: str) -> None:
    assert infer_type(parse_query(f"SELECT {text} AS x").selects[0].unalias()) is None


def test_a_source_that_reads_another_is_not_known() -> None:
    (join,) = parse_query("SELECT 1 FROM t, unnest([t.a]) AS u(x)").args["joins"]
    assert isinstance(join.this, exp.Unnest) and infer_source_outputs(join.this) is None
