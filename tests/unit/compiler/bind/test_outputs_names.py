"""Names of columns without an alias, as PostgreSQL gives them."""

from __future__ import annotations

import pytest
import sqlglot

from dpsql.compiler.bind.outputs import output_name


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("1::float8", "float8"), ("1::real", "float4"), ("1::integer", "int4"), ("1::bigint", "int8"),
        ("1::int2", "int2"), ("1::numeric(6, 2)", "numeric"), ("'x'::varchar(5)", "varchar"),
        ("'x'::char(3)", "bpchar"),
        ("'x'::text", "text"), ("1::boolean", "bool"), ("DATE '2024-01-01'", "date"), ("'{1}'::int[]", "int4"),
        ("ward::text", "ward"), ("count(*)::float8", "count"), ("1 + 1", "?column?"),
    ],
)  # fmt: skip
def test_names(written: str, name: str) -> None:
    assert output_name(sqlglot.parse_one(f"SELECT {written} FROM t", read="postgres").selects[0]) == name
