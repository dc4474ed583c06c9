"""Long texts and lists of small numbers."""

from __future__ import annotations

import duckdb
import pytest

from dpsql.compiler.catalog.query import parse_catalog_tree
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.postprocess.postgres_semantics import render_postprocessing
from dpsql.compiler.postprocess.size_limits import check_expansion
from dpsql.errors import LimitExceeded


@pytest.mark.parametrize(("call", "value"), [
    ("repeat('ab', 3)", "ababab"), ("repeat('', 3)", ""), ("repeat('ab', -1)", ""), ("repeat(NULL, 3)", None),
    ("repeat('x', 1000001)", None), ("repeat('xx', 500001)", None), ("length(repeat('xx', 500000))", 1_000_000),
    ("repeat('x', 9223372036854775807)", None), ("repeat(repeat(repeat('x', 10), 1000), 101)", None),
    ("length(repeat(repeat(repeat('x', 10), 1000), 100))", 1_000_000), ("repeat([1, 2], 2)", [1, 2, 1, 2]),
    ("lpad('7', 3, '0')", "007"), ("rpad('7', 3, '.')", "7.."), ("lpad('7', 1000001, '0')", None),
    ("list_resize([1], 2, 5)", [1, 5]), ("array_resize([1], 3000000)", []), ("len(range(1000000))", 1_000_000),
    ("range(5, 0, -2)", [5, 3, 1]), ("format('{:>5} in 2024', 'x')", "    x in 2024"), ("printf('%05d', 7)", "00007"),
])  # fmt: skip
def test_what_is_short_is_as_it_was_and_what_is_long_is_null(call: str, value: object) -> None:
    with duckdb.connect() as connection:
        assert connection.execute(render_postprocessing(parse_query(f"SELECT {call}"))).fetchall() == [(value,)]


@pytest.mark.parametrize("call", [
    "repeat(repeat(repeat(repeat('x', 2), 2), 2), 2)", "lpad(repeat(rpad(repeat('x', 2), 9, 'y'), 2), 9, 'z')",
    " || ".join(["repeat('x', 9)"] * 101), "format('{:>1000000000}', 'x')", "format('{:>{}}', 'x', 1000000000)",
    "printf('%1000000000d', 1)", "printf('%*d', 1000000000, 1)", "printf('%' || '9999999d', 1)", "range(200000000)",
    "unnest(range(1, 200000000))", "generate_series(-200000000, 1)", "list_sum(generate_series(1, 200000000))",
])  # fmt: skip
def test_what_could_be_too_long_is_refused(call: str) -> None:
    with pytest.raises(LimitExceeded):
        render_postprocessing(parse_query(f"SELECT {call}"))


def test_a_series_in_from_is_read_row_by_row() -> None:
    render_postprocessing(parse_query("SELECT COUNT(*) FROM range(100000000000)"))


def test_a_statement_that_is_written_twice_is_the_same() -> None:
    tree = parse_query("SELECT repeat('x', 3)")
    assert render_postprocessing(tree) == render_postprocessing(tree)


NESTING = {
    "nullif": "NULLIF({}, 2)", "between": "({} BETWEEN 0 AND 1)", "case": "CASE {} WHEN 1 THEN 2 WHEN 3 THEN 4 END",
    "split_part": "SPLIT_PART({}, 'a', 1)", "months": "MONTHS_BETWEEN({}, 2)", "fmod": "FMOD({}, 2)",
}  # fmt: skip


def nested(form: str, depth: int) -> str:
    return form.format(nested(form, depth - 1)) if depth else "x"


@pytest.mark.parametrize("form", NESTING.values(), ids=NESTING)
def test_what_doubles_with_each_level_has_few_of_them(form: str) -> None:
    assert render_postprocessing(parse_query(f"SELECT {nested(form, 4)} FROM r"))
    with pytest.raises(LimitExceeded, match="nested too deeply"):
        render_postprocessing(parse_query(f"SELECT {nested(form, 30)} FROM r"))


def test_many_branches_beside_each_other_are_no_levels() -> None:
    branches = " ".join(f"WHEN {i} THEN {i}" for i in range(2000))
    assert render_postprocessing(parse_query(f"SELECT CASE x {branches} END FROM r"))
    assert render_postprocessing(
        parse_query(f"SELECT {nested('REPLACE({}, 1, 2)', 15)}, {nested('COALESCE({}, 1)', 15)} FROM r")
    )


@pytest.mark.parametrize("form", ["NULLIF({}, 2)", "CASE {} WHEN 1 THEN 2 WHEN 3 THEN 4 END", "({} BETWEEN 0 AND 1)"])
def test_nor_do_statements_about_the_catalog(form: str) -> None:
    tree = parse_catalog_tree(f"SELECT {nested(form, 30)} FROM pg_class", ())
    assert tree is not None
    with pytest.raises(LimitExceeded, match="nested too deeply"):
        check_expansion(tree)
